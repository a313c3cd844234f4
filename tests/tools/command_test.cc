// SPDX-License-Identifier: GPL-2.0-only
#include "command.h"

#include <set>
#include <string>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "arguments.h"
#include "failure.h"
#include "help.h"
#include "kdirect_netlink.h"
#include "quantity.h"

namespace kdirect
{

namespace
{

TEST(FindObject, AbbreviationsAndAlias)
{
	EXPECT_EQ(find_object("channel"), &channel_object);
	EXPECT_EQ(find_object("ch"), &channel_object);
	EXPECT_EQ(find_object("d"), &device_object);
	EXPECT_EQ(find_object("dev"), &device_object);
	EXPECT_EQ(find_object("l"), &listener_object);
	EXPECT_EQ(find_object("s"), &stats_object);
	EXPECT_EQ(find_object("help"), nullptr);
	EXPECT_THROW(find_object("c"), UsageError) << "channel or completion";
	EXPECT_THROW(find_object(""), UsageError);
	EXPECT_THROW(find_object("channels"), UsageError);
}

TEST(FindCommand, SaysWhatWouldBeValid)
{
	EXPECT_EQ(find_command(channel_object, "a")->name, "add");
	EXPECT_EQ(find_command(channel_object, "d")->name, "del");
	EXPECT_EQ(find_command(channel_object, "he"), nullptr);
	try {
		find_command(channel_object, "s");
		FAIL() << "s is show or set";
	} catch (const UsageError &error) {
		EXPECT_STREQ(error.what(), "channel command 's' could be show or set");
	}
	try {
		find_command(channel_object, "rm");
		FAIL();
	} catch (const UsageError &error) {
		EXPECT_STREQ(error.what(),
			     "unknown channel command 'rm': use show, add, set, del or help");
	}
}

TEST(ParameterKey, ByAttribute)
{
	EXPECT_EQ(parameter_key(KDIRECT_A_DEPTH), "depth");
	EXPECT_EQ(parameter_key(KDIRECT_A_KEEP_ALIVE_MS), "keep-alive");
	EXPECT_EQ(parameter_key(KDIRECT_A_OPENS), "");
	EXPECT_EQ(parameter_key(0), "") << "what has no attribute is not attribute 0";
}

template <typename Check>
void for_each_command(Check check)
{
	for (const Object *object : objects())
		for (const Command &command : object->commands)
			check(command, command_path(*object, command));
}

template <typename Check>
void for_each_parameter(Check check)
{
	for_each_command([&](const Command &command, const std::string &path) {
		for (const Parameter &parameter : command.parameters)
			check(parameter, fmt::format("{} {}", path, parameter.key));
	});
}

// What holds for every entry, now and later.
TEST(Table, CommandsAreComplete)
{
	for_each_command([](const Command &command, const std::string &path) {
		std::set<std::string_view> keys;

		EXPECT_NE(command.run, nullptr) << path;
		EXPECT_FALSE(command.help.empty()) << path;
		EXPECT_NE(command.name, "help") << path;
		for (const Parameter &parameter : command.parameters)
			EXPECT_TRUE(keys.insert(parameter.key).second) << path;
	});
}

TEST(Table, ParametersAreComplete)
{
	for_each_parameter([](const Parameter &parameter, const std::string &path) {
		const bool has_range = !describe_range(parameter).empty();

		EXPECT_FALSE(parameter.help.empty()) << path;
		EXPECT_NE(parameter.key, "help") << path;
		EXPECT_LE(parameter.min, parameter.max) << path;
		EXPECT_EQ(has_range, parameter.max > 0) << path;
	});
}

TEST(Table, PresetsAreValidValues)
{
	for_each_parameter([](const Parameter &parameter, const std::string &path) {
		const bool has_range = !describe_range(parameter).empty();

		const bool checked = has_range || parameter.type == Type::choice;

		if (parameter.attr && checked && !parameter.preset.empty()) {
			EXPECT_NO_THROW(parse_value(parameter, parameter.preset)) << path;
		}
	});
}

TEST(Table, ValuesFitTheirAttributes)
{
	for_each_parameter([](const Parameter &parameter, const std::string &path) {
		const uint64_t unit = parameter.type == Type::time_ms ? ns_per_ms : 1;
		uint64_t most = UINT32_MAX;

		if (parameter.type == Type::count16 || parameter.type == Type::port)
			most = UINT16_MAX;
		else if (parameter.type == Type::size64)
			most = UINT64_MAX;
		if (parameter.attr) {
			EXPECT_LE(parameter.max / unit, most) << path;
		}
	});
}

TEST(Help, NamesEverything)
{
	const std::string top = help();

	for (const Object *object : objects()) {
		EXPECT_NE(top.find(object->name), std::string::npos);
		for (const Command &command : object->commands) {
			const std::string text = help(*object, command);

			EXPECT_NE(help(*object).find("kdirect " + command_path(*object, command)),
				  std::string::npos);
			for (const Parameter &parameter : command.parameters)
				EXPECT_NE(text.find("\n  " + std::string(parameter.key)),
					  std::string::npos);
		}
	}
}

} // namespace

} // namespace kdirect
