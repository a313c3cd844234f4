// SPDX-License-Identifier: GPL-2.0-only
#pragma once

#include <string_view>

#include <nlohmann/json.hpp>

namespace kdirect
{

using Json = nlohmann::ordered_json;

// Where results go, and in which form. Failures go to stderr, through main().
class Output
{
public:
	Output(bool json, bool pretty, bool details)
		: _json(json), _pretty(pretty), _details(details)
	{
	}

	bool json() const { return _json; }
	bool details() const { return _details; }

	void line(std::string_view text) const;
	void value(const Json &json) const;

	// Makes what was written visible now; throws Failure if it cannot be.
	static void flush();

private:
	bool _json, _pretty, _details;
};

} // namespace kdirect
