// SPDX-License-Identifier: GPL-2.0-only
#include "help.h"

#include <algorithm>
#include <vector>

#include <fmt/format.h>

#include "arguments.h"

namespace kdirect
{

namespace
{

constexpr size_t columns = 80;

std::string placeholder(const Parameter &parameter)
{
	switch (parameter.type) {
	case Type::flag: return {};
	case Type::count16:
	case Type::count32: return "N";
	case Type::port: return "PORT";
	case Type::size:
	case Type::size64: return "SIZE";
	case Type::time_us:
	case Type::time_ms:
	case Type::time_ns: return "TIME";
	case Type::address: return "ADDRESS";
	case Type::endpoint: return "ADDRESS:PORT";
	case Type::prefix: return "PREFIX";
	case Type::name: return "NAME";
	case Type::listener: return "LISTENER";
	case Type::channel: return "CHANNEL";
	case Type::bytes: return "HEX";
	case Type::choice: return fmt::format("{}", fmt::join(parameter.words, "|"));
	}
	return {};
}

// "keep-alive TIME|off"
std::string usage(const Parameter &parameter)
{
	std::string text(parameter.key);

	if (parameter.type != Type::flag)
		text += fmt::format(" {}", placeholder(parameter));
	if (!parameter.word.empty())
		text += fmt::format("|{}", parameter.word);
	if (!parameter.ever.empty())
		text += fmt::format("|{}", parameter.ever);
	return text;
}

// The parts of a synopsis, none of which is broken across lines.
std::vector<std::string> synopsis(const Object &object, const Command &command)
{
	std::vector<std::string> parts{fmt::format("kdirect {}", command_path(object, command))};

	if (command.takes != Name::none)
		parts.emplace_back(command.name_optional ? "[NAME]" : "NAME");
	for (const Parameter &parameter : command.parameters) {
		std::string part = usage(parameter);

		if (!parameter.required)
			part = fmt::format("[{}]", part);
		if (parameter.repeated)
			part += "...";
		parts.push_back(part);
	}
	return parts;
}

// The parts filled into lines, behind lead on the first and indented on the others.
std::string fill(const std::string &lead, const std::vector<std::string> &parts)
{
	std::string text = lead + parts[0];
	const size_t indent = text.size();
	size_t column = indent;

	for (size_t i = 1; i < parts.size(); i++) {
		if (column + 1 + parts[i].size() > columns) {
			text += "\n" + std::string(indent, ' ');
			column = indent;
		}
		text += " " + parts[i];
		column += 1 + parts[i].size();
	}
	return text + "\n";
}

std::string remarks(const Parameter &parameter)
{
	const std::string range = describe_range(parameter);
	std::vector<std::string> notes;

	if (parameter.required)
		notes.emplace_back("required");
	if (!range.empty())
		notes.push_back(range);
	if (!parameter.preset.empty())
		notes.push_back(fmt::format("default {}", parameter.preset));
	if (notes.empty())
		return std::string(parameter.help);
	return fmt::format("{} ({})", parameter.help, fmt::join(notes, "; "));
}

using Rows = std::vector<std::pair<std::string, std::string>>;

std::string two_columns(const Rows &rows)
{
	size_t width = 0;
	std::string text;

	for (const auto &row : rows)
		width = std::max(width, row.first.size());
	for (const auto &[left, right] : rows)
		text += fmt::format("  {:{}}  {}\n", left, width, right);
	return text;
}

} // namespace

std::string command_path(const Object &object, const Command &command)
{
	return command.name.empty() ? std::string(object.name)
				    : fmt::format("{} {}", object.name, command.name);
}

std::string help()
{
	Rows rows;

	for (const Object *object : objects())
		rows.emplace_back(object->name, object->help);
	return "Usage: kdirect [-j] [-p] [-d] OBJECT [COMMAND] [NAME] [KEY VALUE]...\n"
	       "\nObjects and commands may be abbreviated; no command means the first.\n"
	       "Sizes take K, M, G (powers of 1024), times take ns, us, ms, s.\n"
	       "\nObjects:\n" +
	       two_columns(rows) + "\nOptions:\n" +
	       two_columns({{"-j, --json", "print JSON"},
			    {"-p, --pretty", "print JSON, indented"},
			    {"-d, --details", "print more"},
			    {"-V, --version", "print the version"},
			    {"-h, --help", "print help, as the word help does at every level"}}) +
	       "\nSee 'kdirect OBJECT help', and kdirect(8).\n";
}

std::string help(const Object &object)
{
	Rows rows;
	std::string text;

	for (const Command &command : object.commands) {
		text += fill(text.empty() ? "Usage: " : "       ", synopsis(object, command));
		rows.emplace_back(command_path(object, command), command.help);
	}
	text += "\n" + two_columns(rows);
	for (const Command &command : object.commands)
		if (command.name.empty()) // there is no further level
			return help(object, command);
	return text + fmt::format("\nSee 'kdirect {} COMMAND help', and kdirect-{}(8).\n",
				  object.name, object.name);
}

std::string help(const Object &object, const Command &command)
{
	Rows rows;
	std::string text = fill("Usage: ", synopsis(object, command));

	text += fmt::format("\n{}\n", command.help);
	for (const Parameter &parameter : command.parameters)
		rows.emplace_back(usage(parameter), remarks(parameter));
	if (!rows.empty())
		text += "\n" + two_columns(rows);
	return text;
}

} // namespace kdirect
