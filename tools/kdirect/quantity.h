// SPDX-License-Identifier: GPL-2.0-only
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace kdirect
{

constexpr uint64_t ns_per_us = 1'000;
constexpr uint64_t ns_per_ms = 1'000'000;
constexpr uint64_t ns_per_s = 1'000'000'000;

// All throw BadValue. What the format_ functions print, the parse_ functions take.
uint64_t parse_count(std::string_view text);
uint64_t parse_size(std::string_view text); // bytes
uint64_t parse_time(std::string_view text); // ns

// From two hexadecimal digits for each byte; most of them at most.
std::string parse_bytes(std::string_view text, uint64_t most);

// Exact: in the largest unit that leaves no fraction, as "16K" or "1000B".
std::string format_size(uint64_t bytes);

// In the unit that leaves 1 to 3 digits before the point, with up to 3 digits after it;
// further digits are cut off, not rounded, so that a time never shows as 1000us.
std::string format_time(uint64_t ns);

// Milliseconds as the kernel counts them, into ns; far future instead of overflow.
uint64_t ms_to_ns(uint64_t ms);

} // namespace kdirect
