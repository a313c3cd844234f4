// SPDX-License-Identifier: GPL-2.0-only
#include "arguments.h"

#include <algorithm>

#include <fmt/format.h>

#include "failure.h"
#include "quantity.h"
#include "text.h"

namespace kdirect
{

namespace
{

uint64_t in_range(const Parameter &parameter, uint64_t value)
{
	if (value < parameter.min || value > parameter.max)
		throw BadValue(fmt::format("must be {}{}{}{}{}", describe_range(parameter),
					   parameter.word.empty() ? "" : ", or ", parameter.word,
					   parameter.ever.empty() ? "" : ", or ", parameter.ever));
	return value;
}

uint64_t parse_time_in(std::string_view text, uint64_t unit_ns, const char *unit)
{
	const uint64_t ns = parse_time(text);

	if (ns % unit_ns != 0)
		throw BadValue(fmt::format("must be whole {}", unit));
	return ns;
}

void check(Name kind, std::string_view name)
{
	switch (kind) {
	case Name::none: return;
	case Name::fresh:
	case Name::existing_export:
	case Name::existing_map:
	case Name::existing_listener: return check_name(name);
	case Name::existing_channel: return check_channel_name(name);
	case Name::existing_device: return check_device_name(name);
	}
}

uint64_t parse_choice(const Parameter &parameter, std::string_view text)
{
	const auto found = std::ranges::find(parameter.words, text);

	if (found == parameter.words.end())
		throw BadValue(fmt::format("must be {}", one_of(parameter.words)));
	return static_cast<uint64_t>(found - parameter.words.begin());
}

const Parameter &find_parameter(const Command &command, std::string_view key)
{
	const auto found = std::ranges::find(command.parameters, key, &Parameter::key);
	std::vector<std::string_view> keys;

	if (found != command.parameters.end())
		return *found;
	if (command.parameters.empty())
		throw UsageError(fmt::format("unexpected '{}'", escape(key)));
	std::ranges::transform(command.parameters, std::back_inserter(keys), &Parameter::key);
	throw UsageError(fmt::format("unknown key '{}': use {}", escape(key), one_of(keys)));
}

} // namespace

std::string describe_range(const Parameter &parameter)
{
	switch (parameter.type) {
	case Type::count16:
	case Type::count32:
	case Type::port: return fmt::format("{} to {}", parameter.min, parameter.max);
	case Type::bytes: return fmt::format("up to {} bytes", parameter.max);
	case Type::size:
	case Type::size64:
		return fmt::format("{} to {}", format_size(parameter.min),
				   format_size(parameter.max));
	case Type::time_us:
	case Type::time_ms:
	case Type::time_ns:
		return fmt::format("{} to {}", format_time(parameter.min),
				   format_time(parameter.max));
	case Type::flag:
	case Type::address:
	case Type::endpoint:
	case Type::prefix:
	case Type::name:
	case Type::listener:
	case Type::channel:
	case Type::choice: break;
	}
	return {};
}

std::string checked(std::string_view text, void (*check)(std::string_view))
{
	check(text);
	return std::string(text);
}

Value parse_value(const Parameter &parameter, std::string_view text)
{
	if (!parameter.word.empty() && text == parameter.word)
		return std::monostate();
	if (!parameter.ever.empty() && text == parameter.ever)
		return UINT32_MAX * ns_per_ms;
	switch (parameter.type) {
	case Type::flag: break;
	case Type::count16:
	case Type::count32:
	case Type::port: return in_range(parameter, parse_count(text));
	case Type::size:
	case Type::size64: return in_range(parameter, parse_size(text));
	case Type::time_us:
		return in_range(parameter, parse_time_in(text, ns_per_us, "microseconds"));
	case Type::time_ms:
		return in_range(parameter, parse_time_in(text, ns_per_ms, "milliseconds"));
	case Type::time_ns: return in_range(parameter, parse_time(text));
	case Type::address: return parse_address(text);
	case Type::endpoint: return parse_endpoint(text);
	case Type::prefix: return parse_prefix(text);
	case Type::name:
	case Type::listener: return checked(text, check_name);
	case Type::channel: return checked(text, check_channel_name);
	case Type::bytes: return parse_bytes(text, parameter.max);
	case Type::choice: return parse_choice(parameter, text);
	}
	return std::monostate();
}

Arguments::Arguments(const Object &object, const Command &command,
		     std::span<const std::string> words)
	: _object(&object)
{
	if (command.takes != Name::none) {
		if (!words.empty()) {
			_name = words[0];
			words = words.subspan(1);
			try {
				check(command.takes, _name);
			} catch (const BadValue &bad) {
				throw UsageError(
					fmt::format("name '{}': {}", escape(_name), bad.what()));
			}
		} else if (!command.name_optional) {
			throw UsageError("a name is missing");
		}
	}

	while (!words.empty()) {
		const std::string &key = words[0];
		const Parameter &parameter = find_parameter(command, key);

		words = words.subspan(1);
		if (!parameter.repeated && has(key))
			throw UsageError(fmt::format("{} is given twice", key));
		if (parameter.type == Type::flag) {
			_settings.push_back({&parameter, {}});
			continue;
		}
		if (words.empty())
			throw UsageError(fmt::format("{} needs a value", key));
		try {
			_settings.push_back({&parameter, parse_value(parameter, words[0])});
		} catch (const BadValue &bad) {
			throw UsageError(
				fmt::format("{} '{}': {}", key, escape(words[0]), bad.what()));
		}
		words = words.subspan(1);
	}

	for (const Parameter &parameter : command.parameters)
		if (parameter.required && !has(parameter.key))
			throw UsageError(fmt::format("{} is missing", parameter.key));
}

const Setting *Arguments::find(std::string_view key) const
{
	const auto found = std::ranges::find(
		_settings, key, [](const Setting &setting) { return setting.parameter->key; });

	return found == _settings.end() ? nullptr : &*found;
}

uint64_t Arguments::number(std::string_view key, uint64_t fallback) const
{
	const Setting *setting = find(key);
	const auto *number = setting ? std::get_if<uint64_t>(&setting->value) : nullptr;

	return number ? *number : fallback;
}

} // namespace kdirect
