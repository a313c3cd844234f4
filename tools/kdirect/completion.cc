// SPDX-License-Identifier: GPL-2.0-only
#include <string>

#include <fmt/format.h>

#include "arguments.h"
#include "help.h"
#include "output.h"

namespace kdirect
{

namespace
{

// The part that does not depend on the table. It splits COMP_LINE itself, since bash breaks
// words at colons, which addresses are full of.
constexpr std::string_view engine = R"bash(
_kdirect_names() {
	kdirect -j "$1" show 2>/dev/null | grep -o '"name":"[^"]*"' | cut -d '"' -f 4
}

# The only word of the list $2 that $1 stands for, else nothing.
_kdirect_expand() {
	local word found=()
	for word in $2; do
		if [[ $word == "$1" ]]; then
			found=("$word")
			break
		fi
		[[ -n $1 && $word == "$1"* ]] && found+=("$word")
	done
	[[ ${#found[@]} -eq 1 ]] && echo "${found[0]}"
}

_kdirect_candidates() {
	local object='' path='' state=object word

	for word in "$@"; do
		case $state in
		object)
			object=$(_kdirect_expand "$word" "$(_kdirect_objects)")
			[[ -n $object ]] || return
			path=$(_kdirect_implicit "$object")
			state='command'
			continue
			;;
		command)
			if [[ -z $path ]]; then
				path="$object $(_kdirect_expand "$word" "$(_kdirect_commands "$object")")"
				state=name
				continue
			elif [[ $path == "$object $word" ]]; then
				state=name
				continue
			fi
			state=name
			;;
		value)
			state=key
			continue
			;;
		esac
		if [[ $state == name && -n $(_kdirect_takes "$path") ]]; then
			state=key
		elif [[ " $(_kdirect_flags "$path") " == *" $word "* ]]; then
			state=key
		else
			state=value
			key=$word
		fi
	done

	[[ $state == name && -z $(_kdirect_takes "$path") ]] && state=key
	case $state in
	object) _kdirect_objects ;;
	command)
		_kdirect_commands "$object"
		if [[ -n $path ]]; then
			local takes
			takes=$(_kdirect_takes "$path")
			case $takes in
			'') _kdirect_keys "$path" ;;
			fresh) ;;
			*) _kdirect_names "$takes" ;;
			esac
		fi
		;;
	name)
		echo help
		[[ $(_kdirect_takes "$path") == fresh ]] || _kdirect_names "$(_kdirect_takes "$path")"
		;;
	key) _kdirect_keys "$path" ;;
	value)
		_kdirect_word "$path $key"
		word=$(_kdirect_of "$path $key")
		[[ -z $word ]] || _kdirect_names "$word"
		;;
	esac
}

_kdirect() {
	local line=${COMP_LINE:0:COMP_POINT} key='' word
	local words=() typed=()

	read -ra words <<<"$line"
	[[ $line == *[[:space:]] ]] && words+=('')

	local current=${words[-1]}
	for word in "${words[@]:1:${#words[@]}-2}"; do
		[[ $word == -* ]] || typed+=("$word")
	done
	if [[ $current == -* ]]; then
		mapfile -t COMPREPLY < <(compgen -W "$(_kdirect_options)" -- "$current")
	else
		mapfile -t COMPREPLY < <(compgen -W "$(_kdirect_candidates "${typed[@]}")" -- "$current")
	fi
}

complete -F _kdirect kdirect
)bash";

// The object whose names a parameter takes.
std::string_view takes(Type type)
{
	return type == Type::listener ? "listener" : type == Type::channel ? "channel" : "";
}

std::string_view takes(Name name)
{
	switch (name) {
	case Name::none: return {};
	case Name::fresh: return "fresh";
	case Name::existing_device: return "device";
	case Name::existing_listener: return "listener";
	case Name::existing_channel: return "channel";
	case Name::existing_export: return "export";
	case Name::existing_map: return "map";
	}
	return {};
}

// A shell function that maps its first argument.
class Function
{
public:
	explicit Function(std::string_view name)
		: _text(fmt::format("\n{}() {{\n\tcase $1 in\n", name))
	{
	}

	void add(std::string_view argument, std::string_view words)
	{
		if (!words.empty())
			_text += fmt::format("\t'{}') echo '{}' ;;\n", argument, words);
	}

	std::string text() const { return _text + "\tesac\n}\n"; }

private:
	std::string _text;
};

void append(std::string &words, std::string_view word)
{
	words += fmt::format("{}{}", words.empty() ? "" : " ", word);
}

std::string bash_script()
{
	Function commands("_kdirect_commands"), implicit("_kdirect_implicit");
	Function names("_kdirect_takes"), keys("_kdirect_keys"), flags("_kdirect_flags");
	Function words("_kdirect_word"), of("_kdirect_of");
	std::string object_list;

	for (const Object *object : objects()) {
		std::string command_list;

		append(object_list, object->name);
		for (const Command &command : object->commands) {
			const std::string path = command_path(*object, command);
			std::string key_list, flag_list;

			if (!command.name.empty())
				append(command_list, command.name);
			for (const Parameter &parameter : command.parameters) {
				append(key_list, parameter.key);
				if (parameter.type == Type::flag)
					append(flag_list, parameter.key);
				std::string word_list(parameter.word);
				if (!parameter.ever.empty())
					append(word_list, parameter.ever);
				for (const std::string_view word : parameter.words)
					append(word_list, word);
				words.add(fmt::format("{} {}", path, parameter.key), word_list);
				of.add(fmt::format("{} {}", path, parameter.key),
				       takes(parameter.type));
			}
			names.add(path, takes(command.takes));
			keys.add(path, key_list);
			flags.add(path, flag_list);
		}
		append(command_list, "help");
		commands.add(object->name, command_list);
		if (object->implicit)
			implicit.add(object->name, command_path(*object, object->commands[0]));
	}
	append(object_list, "help");
	return fmt::format("# bash completion for kdirect, made by 'kdirect completion bash'\n"
			   "# shellcheck shell=bash\n"
			   "\n_kdirect_objects() {{\n\techo '{}'\n}}\n"
			   "\n_kdirect_options() {{\n\techo '--json --pretty --details --version "
			   "--help'\n}}\n",
			   object_list) +
	       commands.text() + implicit.text() + names.text() + keys.text() + flags.text() +
	       words.text() + of.text() + std::string(engine);
}

int print_bash(const Arguments &, const Output &output)
{
	std::string script = bash_script();

	script.pop_back(); // line() adds it
	output.line(script);
	return 0;
}

constexpr Command bash_commands[] = {
	{
		.name = "bash",
		.help = "print the completion script for bash",
		.run = print_bash,
	},
};

} // namespace

constexpr Object completion_object{
	.name = "completion",
	.help = "shell completion",
	.commands = bash_commands,
};

} // namespace kdirect
