// SPDX-License-Identifier: GPL-2.0-only
#include "command.h"

#include <string>
#include <vector>

#include <fmt/format.h>

#include "failure.h"
#include "text.h"

namespace kdirect
{

namespace
{

constexpr const Object *table[] = {
	&device_object, &listener_object, &channel_object, &export_object,     &map_object,
	&stats_object,  &monitor_object,  &ping_object,    &completion_object,
};

// The one of names that word stands for.
std::string_view resolve(std::string_view what, std::string_view word,
			 std::span<const std::string_view> names)
{
	const std::vector<std::string_view> found = abbreviated(word, names);

	if (found.size() == 1)
		return found[0];
	if (found.empty())
		throw UsageError(
			fmt::format("unknown {} '{}': use {}", what, escape(word), one_of(names)));
	throw UsageError(fmt::format("{} '{}' could be {}", what, escape(word), one_of(found)));
}

} // namespace

std::span<const Object *const> objects()
{
	return table;
}

const Object *find_object(std::string_view word)
{
	std::vector<std::string_view> names;

	for (const Object *object : table) {
		if (!word.empty() && word == object->alias)
			return object;
		names.push_back(object->name);
	}
	names.push_back("help");

	const std::string_view name = resolve("object", word, names);

	for (const Object *object : table)
		if (object->name == name)
			return object;
	return nullptr;
}

const Command *find_command(const Object &object, std::string_view word)
{
	std::vector<std::string_view> names;

	for (const Command &command : object.commands)
		names.push_back(command.name);
	names.push_back("help");

	const std::string_view name = resolve(fmt::format("{} command", object.name), word, names);

	for (const Command &command : object.commands)
		if (command.name == name)
			return &command;
	return nullptr;
}

std::string_view parameter_key(uint16_t attr)
{
	for (const Object *object : table)
		for (const Command &command : object->commands)
			for (const Parameter &parameter : command.parameters)
				if (attr && parameter.attr == attr)
					return parameter.key;
	return {};
}

} // namespace kdirect
