// SPDX-License-Identifier: GPL-2.0-only
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "address.h"
#include "command.h"

namespace kdirect
{

// Nothing for a flag, and for the word that stands instead of a value ("off").
using Value = std::variant<std::monostate, uint64_t, Address, Endpoint, Prefix, std::string>;

struct Setting {
	const Parameter *parameter;
	Value value;
};

// The checked words of one command.
class Arguments
{
public:
	// Throws UsageError, which names the value and what would be valid.
	Arguments(const Object &object, const Command &command, std::span<const std::string> words);

	const Object &object() const { return *_object; }
	const std::string &name() const { return _name; }
	std::span<const Setting> settings() const { return _settings; }

	const Setting *find(std::string_view key) const;
	bool has(std::string_view key) const { return find(key) != nullptr; }
	uint64_t number(std::string_view key, uint64_t fallback) const;

private:
	const Object *_object;
	std::string _name;
	std::vector<Setting> _settings;
};

// Throws BadValue.
Value parse_value(const Parameter &parameter, std::string_view text);

// "1 to 1024", in the unit of the parameter, or nothing if it has no range.
std::string describe_range(const Parameter &parameter);

} // namespace kdirect
