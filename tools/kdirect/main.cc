// SPDX-License-Identifier: GPL-2.0-only
#include <algorithm>
#include <cstdio>
#include <new>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "arguments.h"
#include "failure.h"
#include "help.h"
#include "output.h"
#include "text.h"

namespace kdirect
{

namespace
{

using Words = std::span<const std::string>;

struct Options {
	bool json = false;
	bool pretty = false;
	bool details = false;
	bool version = false;
	bool help = false;
};

// The words that are not options, in order.
std::vector<std::string> parse_options(int argc, char **argv, Options &options)
{
	CLI::App app;

	app.set_help_flag();
	app.allow_extras();
	app.add_flag("-j,--json", options.json);
	app.add_flag("-p,--pretty", options.pretty);
	app.add_flag("-d,--details", options.details);
	app.add_flag("-V,--version", options.version);
	app.add_flag("-h,--help", options.help);
	try {
		app.parse(argc, argv);
	} catch (const CLI::ParseError &error) {
		throw UsageError(error.what());
	}

	std::vector<std::string> words = app.remaining();

	for (const std::string &word : words)
		if (word.starts_with('-'))
			throw UsageError(fmt::format("unknown option '{}'", escape(word)));
	return words;
}

// Takes the command off the front of words; null if help is wanted.
const Command *take_command(const Object &object, Words &words)
{
	const Command *command = &object.commands[0];

	if (words.empty())
		return command;
	if (object.implicit) {
		if (words[0] == "help")
			return nullptr;
		if (words[0] != command->name)
			return command; // its name or key already
	} else {
		command = find_command(object, words[0]);
	}
	words = words.subspan(1);
	return command;
}

int print_help(const std::string &text)
{
	std::fputs(text.c_str(), stdout);
	return exit_ok;
}

int run(const Object &object, const Command &command, Words words, const Output &output)
{
	std::string subject(object.name);

	try {
		const Arguments arguments(object, command, words);

		if (!arguments.name().empty())
			subject += " " + arguments.name();
		return command.run(arguments, output);
	} catch (const UsageError &error) {
		throw UsageError(fmt::format("{}: {}\nTry 'kdirect {} help'.",
					     command_path(object, command), error.what(),
					     command_path(object, command)));
	} catch (const ObjectError &error) {
		throw Failure(fmt::format("{}: {}", subject, error.what()), error.status);
	}
}

int dispatch(int argc, char **argv)
{
	Options options;
	const std::vector<std::string> all = parse_options(argc, argv, options);
	Words words(all);

	if (options.version) {
		fmt::print("kdirect {}\n", KDIRECT_VERSION);
		return exit_ok;
	}
	if (words.empty())
		return print_help(help());

	const Object *const object = find_object(words[0]);

	words = words.subspan(1);
	if (!object)
		return print_help(help());
	if (words.empty() && options.help)
		return print_help(help(*object));

	const Command *const command = take_command(*object, words);

	if (!command)
		return print_help(help(*object));
	if (options.help || (words.size() == 1 && words[0] == "help"))
		return print_help(help(*object, *command));
	return run(*object, *command, words,
		   Output(options.json || options.pretty, options.pretty, options.details));
}

} // namespace

} // namespace kdirect

int main(int argc, char **argv)
{
	using namespace kdirect;

	try {
		const int status = dispatch(argc, argv);

		Output::flush();
		return status;
	} catch (const Failure &failure) {
		std::fflush(stdout);
		fmt::print(stderr, "kdirect: {}\n", failure.what());
		return failure.status;
	} catch (const std::exception &error) {
		fmt::print(stderr, "kdirect: {}\n", error.what());
		return exit_failed;
	}
}
