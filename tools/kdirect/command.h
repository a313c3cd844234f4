// SPDX-License-Identifier: GPL-2.0-only
// The command table: parsing, help and completion all come from it, and nowhere else is an
// object, a command or a parameter listed.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

namespace kdirect
{

class Arguments;
class Output;

// What a parameter's value looks like. A flag has none.
enum class Type {
	flag,
	count16,
	count32,
	port,
	size,
	size64,
	time_us,
	time_ms,
	time_ns,
	address,
	endpoint,
	prefix,
	name,
	listener, // the name of one
	channel,
	bytes,  // in hexadecimal; max of them at most
	choice, // one of Parameter::words; the attribute is its place among them
};

struct Parameter {
	std::string_view key;
	Type type = Type::flag;
	uint16_t attr = 0; // KDIRECT_A_*; 0: not for the kernel
	uint64_t min = 0;  // counts, bytes, or ns
	uint64_t max = 0;
	bool required = false;
	bool repeated = false;
	std::string_view word = {}; // taken instead of a value, and 0: "off", "none"
	std::string_view ever = {}; // the same, and the largest number: "forever"
	std::span<const std::string_view> words = {};
	std::string_view preset = {}; // what holds if it is not given
	std::string_view help = {};
};

// How a command uses the name behind it. existing_ names are completed from that object's
// show command, and may be of an accepted channel.
enum class Name {
	none,
	fresh,
	existing_device,
	existing_listener,
	existing_channel,
	existing_export,
	existing_map,
};

struct Command {
	std::string_view name = {}; // empty: the object's only command, which is not written
	std::string_view help;
	Name takes = Name::none;
	bool name_optional = false;
	std::span<const Parameter> parameters = {};
	int (*run)(const Arguments &, const Output &) = nullptr;
};

struct Object {
	std::string_view name;
	std::string_view alias = {}; // another whole word for it, may be empty
	std::string_view help;
	std::span<const Command> commands;
	// The word behind the object may be a name or key of the first command already:
	// "stats c0", "ping c0". Then commands cannot be abbreviated.
	bool implicit = false;
};

extern const Object device_object;
extern const Object listener_object;
extern const Object channel_object;
extern const Object export_object;
extern const Object map_object;
extern const Object stats_object;
extern const Object monitor_object;
extern const Object ping_object;
extern const Object completion_object;

std::span<const Object *const> objects();

// Both return null for "help", and throw UsageError with what would be valid.
const Object *find_object(std::string_view word);
const Command *find_command(const Object &object, std::string_view word);

// The key of the parameter that sets attribute attr, or nothing.
std::string_view parameter_key(uint16_t attr);

} // namespace kdirect
