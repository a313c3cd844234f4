// SPDX-License-Identifier: GPL-2.0-only
// How the attributes of a reply are shown, as text and as JSON, from one description.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "attributes.h"
#include "output.h"

namespace kdirect
{

enum class Format {
	text,
	number,
	size,
	time_us,
	time_ms,
	time_ms_or_off, // 0 means off, the largest number for ever
	time_ns,
	percent,
	guid,
	address,
	endpoint, // with the port attribute that belongs to it
	prefixes, // a nest, repeated
	state,
	transport,
	queue_kind,
	poll_mode,
	mode,
	bytes, // in hexadecimal
	map_state,
	hex,
	flag,   // the key alone, if it is there
	rights, // of a flag that says read-only
	error,
};

struct Field {
	uint16_t attr;
	// JSON has the same key with _ for - and the unit behind it.
	std::string_view key;
	Format format;
	// 0: the object's line; others: a further line that only -d shows.
	unsigned line = 0;
};

struct View {
	std::string_view object; // begins each line: "channel"
	uint16_t name_attr;
	std::string_view name_key; // of JSON
	std::span<const Field> fields;
	// A repeated nest with a view of its own, shown only with -d in text.
	uint16_t nest_attr = 0;
	std::string_view nest_key = {}; // of JSON
	const View *nest = nullptr;
};

// Nothing if the kernel did not send it.
std::optional<std::string> to_text(const Field &field, const Attributes &attributes);

Json to_json(const View &view, const Attributes &attributes);

// Lines without newline; the columns of all objects are aligned.
std::vector<std::string> to_lines(const View &view, std::span<const Attributes> objects,
				  bool details);

void show(const View &view, std::span<const Attributes> objects, const Output &output);

} // namespace kdirect
