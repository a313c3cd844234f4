// SPDX-License-Identifier: GPL-2.0-only
#include "text.h"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <iterator>

#include <fmt/format.h>

#include "failure.h"
#include "kdirect.h"

namespace kdirect
{

namespace
{

constexpr size_t device_name_max = 63; // IB_DEVICE_NAME_MAX - 1

bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}
bool is_letter(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}
bool is_name_char(char c)
{
	return is_letter(c) || is_digit(c) || c == '_' || c == '-';
}

// Length of the well-formed UTF-8 sequence at the start of text, 0 if there is none.
size_t utf8_length(std::string_view text)
{
	const auto byte = [&](size_t i) { return static_cast<uint8_t>(text[i]); };
	const uint8_t lead = byte(0);
	const size_t length = lead < 0x80 ? 1 : lead < 0xe0 ? 2 : lead < 0xf0 ? 3 : 4;

	if (length == 1)
		return 1;
	if (lead < 0xc2 || lead > 0xf4 || text.size() < length)
		return 0;

	uint32_t value = lead & (0xff >> (length + 1));

	for (size_t i = 1; i < length; i++) {
		if ((byte(i) & 0xc0) != 0x80)
			return 0;
		value = value << 6 | (byte(i) & 0x3f);
	}
	const bool overlong = (length == 3 && value < 0x800) || (length == 4 && value < 0x10000);
	const bool surrogate = value >= 0xd800 && value <= 0xdfff;
	const bool control = value < 0xa0; // C1: some terminals obey them

	return overlong || surrogate || control || value > 0x10ffff ? 0 : length;
}

} // namespace

std::string escape(std::string_view text)
{
	std::string out;

	while (!text.empty()) {
		size_t length = utf8_length(text);

		if (length == 1 && (text[0] < ' ' || text[0] == 0x7f))
			length = 0;
		if (length == 0) {
			fmt::format_to(std::back_inserter(out), "\\x{:02x}",
				       static_cast<uint8_t>(text[0]));
			length = 1;
		} else {
			out += text.substr(0, length);
		}
		text.remove_prefix(length);
	}
	return out;
}

void check_name(std::string_view text)
{
	if (text.empty() || text.size() > KDIRECT_NAME_MAX || !is_letter(text[0]) ||
	    !std::ranges::all_of(text, is_name_char))
		throw BadValue(fmt::format("a name is 1 to {} of A-Z a-z 0-9 _ -, and begins "
					   "with a letter",
					   KDIRECT_NAME_MAX));
}

void check_channel_name(std::string_view text)
{
	const size_t dot = text.find('.');

	if (dot == std::string_view::npos)
		return check_name(text);

	const std::string_view number = text.substr(dot + 1);

	check_name(text.substr(0, dot));
	if (text.size() > KDIRECT_NAME_MAX || number.empty() ||
	    !std::ranges::all_of(number, is_digit) || (number.size() > 1 && number[0] == '0'))
		throw BadValue(fmt::format("an accepted channel is named LISTENER.N, at most {} "
					   "characters",
					   KDIRECT_NAME_MAX));
}

void check_device_name(std::string_view text)
{
	const auto printable = [](char c) { return c > ' ' && c < 0x7f && c != '/'; };

	if (text.empty() || text.size() > device_name_max || !std::ranges::all_of(text, printable))
		throw BadValue(fmt::format("a device name is 1 to {} printable characters, "
					   "as 'rdma dev' shows it",
					   device_name_max));
}

std::vector<std::string_view> abbreviated(std::string_view word,
					  std::span<const std::string_view> candidates)
{
	std::vector<std::string_view> found;

	for (std::string_view candidate : candidates) {
		if (candidate == word)
			return {candidate};
		if (!word.empty() && candidate.starts_with(word))
			found.push_back(candidate);
	}
	return found;
}

std::string one_of(std::span<const std::string_view> words)
{
	if (words.size() < 2)
		return words.empty() ? std::string() : std::string(words[0]);
	return fmt::format("{} or {}", fmt::join(words.first(words.size() - 1), ", "),
			   words.back());
}

std::string errno_name(int error)
{
	const char *name = strerrorname_np(error);

	return name ? std::string(name) : fmt::format("errno {}", error);
}

std::string describe_errno(int error)
{
	const char *text = strerrordesc_np(error);

	return fmt::format("{} ({})", text ? text : "unknown error", errno_name(error));
}

} // namespace kdirect
