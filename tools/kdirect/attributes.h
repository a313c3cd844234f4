// SPDX-License-Identifier: GPL-2.0-only
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

namespace kdirect
{

// The attributes of one message or nest, in their order, with a copy of their bytes. What
// does not fit its length is ignored, as libnl does: a newer kernel may say more.
class Attributes
{
public:
	Attributes() = default;
	explicit Attributes(std::span<const std::byte> bytes);

	// Movable only: the index points into the copy.
	Attributes(Attributes &&) = default;
	Attributes &operator=(Attributes &&) = default;

	bool has(uint16_t type) const { return find(type).has_value(); }
	std::optional<std::span<const std::byte>> find(uint16_t type) const;
	std::vector<std::span<const std::byte>> all(uint16_t type) const;

	// An unsigned number of whatever width the kernel chose.
	std::optional<uint64_t> number(uint16_t type) const;
	std::optional<std::string_view> string(uint16_t type) const;

private:
	struct Entry {
		uint16_t type;
		std::span<const std::byte> payload;
	};

	std::vector<std::byte> _bytes;
	std::vector<Entry> _entries;
};

} // namespace kdirect
