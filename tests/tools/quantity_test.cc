// SPDX-License-Identifier: GPL-2.0-only
#include "quantity.h"

#include <gtest/gtest.h>

#include "failure.h"

namespace kdirect
{

namespace
{

TEST(Count, TakesWholeNumbers)
{
	EXPECT_EQ(parse_count("0"), 0U);
	EXPECT_EQ(parse_count("007"), 7U);
	EXPECT_EQ(parse_count("18446744073709551615"), UINT64_MAX);
}

TEST(Count, RefusesTheRest)
{
	for (const char *text : {"", "-1", "+1", " 1", "1 ", "0x10", "1e3", "1.5", "1.0", "1K", "x",
				 "18446744073709551616", "99999999999999999999999"})
		EXPECT_THROW(parse_count(text), BadValue) << text;
}

TEST(Size, UnitsArePowersOf1024)
{
	EXPECT_EQ(parse_size("64"), 64U);
	EXPECT_EQ(parse_size("64B"), 64U);
	EXPECT_EQ(parse_size("4K"), 4096U);
	EXPECT_EQ(parse_size("4KiB"), 4096U);
	EXPECT_EQ(parse_size("1M"), 1U << 20);
	EXPECT_EQ(parse_size("1MiB"), 1U << 20);
	EXPECT_EQ(parse_size("3G"), 3ULL << 30);
	EXPECT_EQ(parse_size("3GiB"), 3ULL << 30);
}

TEST(Size, FractionsMustComeOutWhole)
{
	EXPECT_EQ(parse_size("1.5K"), 1536U);
	EXPECT_EQ(parse_size("1.25K"), 1280U);
	EXPECT_EQ(parse_size("0.5M"), 512U << 10);
	EXPECT_EQ(parse_size("2.000K"), 2048U);
	EXPECT_THROW(parse_size("0.3K"), BadValue);
	EXPECT_THROW(parse_size("1.5"), BadValue);
}

TEST(Size, RefusesTheRest)
{
	for (const char *text : {"", "K", "4KB", "4T", "4 K", "4k", "-4K", ".5K", "1.K", "1..5K",
				 "18446744073709551615K", "17179869184G", "1.0000000001G"})
		EXPECT_THROW(parse_size(text), BadValue) << text;
	EXPECT_EQ(parse_size("17179869183G"), 17179869183ULL << 30);
}

TEST(Size, PrintsExactly)
{
	EXPECT_EQ(format_size(0), "0B");
	EXPECT_EQ(format_size(64), "64B");
	EXPECT_EQ(format_size(1000), "1000B");
	EXPECT_EQ(format_size(1024), "1K");
	EXPECT_EQ(format_size(1536), "1536B");
	EXPECT_EQ(format_size(1 << 20), "1M");
	EXPECT_EQ(format_size((1 << 20) + 1024), "1025K");
	EXPECT_EQ(format_size(5ULL << 30), "5G");
}

TEST(Time, NeedsAUnit)
{
	EXPECT_EQ(parse_time("5ns"), 5U);
	EXPECT_EQ(parse_time("5us"), 5'000U);
	EXPECT_EQ(parse_time("5ms"), 5'000'000U);
	EXPECT_EQ(parse_time("5s"), 5'000'000'000U);
	EXPECT_EQ(parse_time("2.5s"), 2'500'000'000U);
	EXPECT_EQ(parse_time("0.000000001s"), 1U);
	for (const char *text : {"", "5", "0", "s", "5m", "5h", "5 s", "-5s", "0.5ns", "5S",
				 "0.0000000001s", "18446744074s"})
		EXPECT_THROW(parse_time(text), BadValue) << text;
}

TEST(Time, PrintsWithAUnit)
{
	EXPECT_EQ(format_time(0), "0ns");
	EXPECT_EQ(format_time(999), "999ns");
	EXPECT_EQ(format_time(1'000), "1us");
	EXPECT_EQ(format_time(21'340), "21.34us");
	EXPECT_EQ(format_time(999'999), "999.999us");
	EXPECT_EQ(format_time(100'000'000), "100ms");
	EXPECT_EQ(format_time(2'500'000'000), "2.5s");
	EXPECT_EQ(format_time(120'000'000'000), "120s");
}

TEST(Time, IsCutAndNotRoundedUpIntoTheNextUnit)
{
	EXPECT_EQ(format_time(999'999'999), "999.999ms");
	EXPECT_EQ(format_time(1'000'999), "1ms");
}

TEST(Time, MillisecondsSaturate)
{
	EXPECT_EQ(ms_to_ns(5), 5'000'000U);
	EXPECT_EQ(ms_to_ns(UINT64_MAX), UINT64_MAX);
}

TEST(Quantity, Bytes)
{
	EXPECT_EQ(parse_bytes("00ffA5", 3), std::string("\0\xff\xa5", 3));
	for (const char *bad : {"", "0", "000", "0g", "g0", "0x10", " 00", "+1", "-1"})
		EXPECT_THROW(parse_bytes(bad, 100), BadValue) << bad;
	EXPECT_THROW(parse_bytes("00000000", 3), BadValue);
}

TEST(Quantity, WhatIsPrintedCanBeTyped)
{
	for (uint64_t value = 1; value < 1ULL << 40; value = value * 3 + 1)
		EXPECT_EQ(parse_size(format_size(value)), value);
	for (uint64_t value : {1ULL, 999ULL, 1'000ULL, 2'500'000ULL, 60'000'000'000ULL})
		EXPECT_EQ(parse_time(format_time(value)), value);
}

} // namespace

} // namespace kdirect
