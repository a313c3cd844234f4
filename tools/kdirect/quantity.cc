// SPDX-License-Identifier: GPL-2.0-only
#include "quantity.h"

#include <algorithm>
#include <charconv>
#include <iterator>
#include <limits>
#include <span>
#include <system_error>

#include <fmt/format.h>

#include "failure.h"

namespace kdirect
{

namespace
{

constexpr uint64_t u64_max = std::numeric_limits<uint64_t>::max();

struct Unit {
	std::string_view name;
	uint64_t factor;
};

constexpr Unit size_units[] = {
	{"", 1},           {"B", 1},
	{"K", 1ULL << 10}, {"KiB", 1ULL << 10},
	{"M", 1ULL << 20}, {"MiB", 1ULL << 20},
	{"G", 1ULL << 30}, {"GiB", 1ULL << 30},
};

constexpr Unit time_units[] = {
	{"ns", 1},
	{"us", ns_per_us},
	{"ms", ns_per_ms},
	{"s", ns_per_s},
};

bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

std::string_view take_digits(std::string_view &text)
{
	const auto end = std::ranges::find_if_not(text, is_digit);
	const std::string_view digits = text.substr(0, static_cast<size_t>(end - text.begin()));

	text.remove_prefix(digits.size());
	return digits;
}

bool to_u64(std::string_view digits, uint64_t &value)
{
	const char *end = digits.data() + digits.size();
	const auto [stop, error] = std::from_chars(digits.data(), end, value);

	return error == std::errc() && stop == end;
}

// DIGITS[.DIGITS]UNIT, exactly: 1.5K is 1536, and 0.3K is refused since there is no 0.2 byte.
uint64_t parse_scaled(std::string_view text, std::span<const Unit> units, const char *form)
{
	std::string_view rest = text;
	const std::string_view whole = take_digits(rest);
	std::string_view fraction;

	if (rest.starts_with('.')) {
		rest.remove_prefix(1);
		fraction = take_digits(rest);
		if (fraction.empty())
			throw BadValue(form);
	}

	const auto unit = std::ranges::find(units, rest, &Unit::name);

	if (whole.empty() || unit == units.end())
		throw BadValue(form);

	uint64_t value;
	if (!to_u64(whole, value) || value > u64_max / unit->factor)
		throw BadValue("too large");
	value *= unit->factor;

	// 9 digits times the largest factor, 2^30, fit 64 bits.
	const size_t significant = fraction.find_last_not_of('0') + 1;
	uint64_t numerator = 0, denominator = 1;

	if (significant > 9)
		throw BadValue("too many digits after the point");
	for (char digit : fraction.substr(0, significant)) {
		numerator = numerator * 10 + static_cast<uint64_t>(digit - '0');
		denominator *= 10;
	}
	numerator *= unit->factor;
	if (numerator % denominator != 0)
		throw BadValue("too fine: not a whole number of the smallest unit");
	if (numerator / denominator > u64_max - value)
		throw BadValue("too large");
	value += numerator / denominator;
	return value;
}

} // namespace

uint64_t parse_count(std::string_view text)
{
	constexpr Unit units[] = {{"", 1}};

	if (text.find('.') != std::string_view::npos)
		throw BadValue("not a whole number");
	return parse_scaled(text, units, "not a whole number");
}

uint64_t parse_size(std::string_view text)
{
	return parse_scaled(text, size_units,
			    "not a size: a number of bytes, or with K, M or G (powers of 1024)");
}

uint64_t parse_time(std::string_view text)
{
	return parse_scaled(text, time_units, "not a time: a number with ns, us, ms or s");
}

std::string format_size(uint64_t bytes)
{
	constexpr Unit units[] = {{"G", 1ULL << 30}, {"M", 1ULL << 20}, {"K", 1ULL << 10}};

	for (const Unit &unit : units)
		if (bytes >= unit.factor && bytes % unit.factor == 0)
			return fmt::format("{}{}", bytes / unit.factor, unit.name);
	return fmt::format("{}B", bytes);
}

std::string format_time(uint64_t ns)
{
	const auto unit = std::ranges::find_if(std::rbegin(time_units), std::rend(time_units) - 1,
					       [&](const Unit &u) { return ns >= u.factor; });
	std::string text = fmt::format("{}", ns / unit->factor);

	if (unit->factor > 1) {
		text += fmt::format(".{:03}", ns % unit->factor / (unit->factor / 1000));
		text.erase(text.find_last_not_of('0') + 1);
		if (text.back() == '.')
			text.pop_back();
	}
	return text.append(unit->name);
}

uint64_t ms_to_ns(uint64_t ms)
{
	return ms > u64_max / ns_per_ms ? u64_max : ms * ns_per_ms;
}

std::string parse_bytes(std::string_view text, uint64_t most)
{
	std::string bytes;

	if (text.empty() || text.size() % 2)
		throw BadValue("two hexadecimal digits for each byte");
	if (text.size() / 2 > most)
		throw BadValue(fmt::format("more than {} bytes", most));
	for (size_t i = 0; i < text.size(); i += 2) {
		const char *const first = text.data() + i;
		unsigned value = 0;

		if (std::from_chars(first, first + 2, value, 16).ptr != first + 2)
			throw BadValue("two hexadecimal digits for each byte");
		bytes.push_back(static_cast<char>(value));
	}
	return bytes;
}

} // namespace kdirect
