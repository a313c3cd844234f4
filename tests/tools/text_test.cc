// SPDX-License-Identifier: GPL-2.0-only
#include "text.h"

#include <cerrno>

#include <gtest/gtest.h>

#include "failure.h"

namespace kdirect
{

namespace
{

using Words = std::vector<std::string_view>;

TEST(Escape, LeavesTextAlone)
{
	EXPECT_EQ(escape(""), "");
	EXPECT_EQ(escape("peer says: no (5%)"), "peer says: no (5%)");
	EXPECT_EQ(escape("Gerät 設備 😀"), "Gerät 設備 😀");
}

TEST(Escape, ControlCharacters)
{
	EXPECT_EQ(escape("a\nb\tc\x1b[31m\x7f"), "a\\x0ab\\x09c\\x1b[31m\\x7f");
	EXPECT_EQ(escape(std::string_view("a\0b", 3)), "a\\x00b");
	EXPECT_EQ(escape("\xc2\x9b"), "\\xc2\\x9b") << "CSI in one character";
}

TEST(Escape, WhatIsNotUtf8)
{
	EXPECT_EQ(escape("\xff"), "\\xff");
	EXPECT_EQ(escape("\x80"), "\\x80");
	EXPECT_EQ(escape("\xc3"), "\\xc3") << "cut off";
	EXPECT_EQ(escape("\xc3("), "\\xc3(") << "no continuation";
	EXPECT_EQ(escape("\xc0\xaf"), "\\xc0\\xaf") << "overlong /";
	EXPECT_EQ(escape("\xe0\x80\xaf"), "\\xe0\\x80\\xaf") << "overlong /";
	EXPECT_EQ(escape("\xed\xa0\x80"), "\\xed\\xa0\\x80") << "surrogate";
	EXPECT_EQ(escape("\xf4\x90\x80\x80"), "\\xf4\\x90\\x80\\x80") << "above U+10FFFF";
}

TEST(Name, Valid)
{
	for (const char *name :
	     {"a", "Z9", "store", "c0", "a_b-c", "abcdefghijklmnopqrstuvwxyz12345"})
		EXPECT_NO_THROW(check_name(name)) << name;
}

TEST(Name, Invalid)
{
	for (const char *name : {"", "0c", "_a", "-a", "a b", "a.b", "a/b", "a\n", "gerät", "..",
				 "abcdefghijklmnopqrstuvwxyz123456"})
		EXPECT_THROW(check_name(name), BadValue) << name;
}

TEST(ChannelName, AcceptedOnesHaveANumber)
{
	for (const char *name : {"c0", "store.0", "store.17"})
		EXPECT_NO_THROW(check_channel_name(name)) << name;
	for (const char *name : {"store.", ".0", "store.x", "store.01", "store.0.0", "store.-1",
				 "abcdefghijklmnopqrstuvwxyz123.45"})
		EXPECT_THROW(check_channel_name(name), BadValue) << name;
}

TEST(DeviceName, Printable)
{
	for (const char *name : {"rxe0", "mlx5_0", "rocep1s0f0"})
		EXPECT_NO_THROW(check_device_name(name)) << name;
	EXPECT_THROW(check_device_name(""), BadValue);
	EXPECT_THROW(check_device_name("a b"), BadValue);
	EXPECT_THROW(check_device_name("a/b"), BadValue);
	EXPECT_THROW(check_device_name(std::string(64, 'x')), BadValue);
}

TEST(Abbreviation, UniquePrefixOrWholeWord)
{
	const Words words{"set", "show", "shower"};

	EXPECT_EQ(abbreviated("se", words), Words{"set"});
	EXPECT_EQ(abbreviated("show", words), Words{"show"}) << "though shower begins so too";
	EXPECT_EQ(abbreviated("s", words), words);
	EXPECT_EQ(abbreviated("x", words), Words{});
	EXPECT_EQ(abbreviated("", words), Words{});
	EXPECT_EQ(abbreviated("sets", words), Words{});
}

TEST(OneOf, Joins)
{
	EXPECT_EQ(one_of(Words{}), "");
	EXPECT_EQ(one_of(Words{"a"}), "a");
	EXPECT_EQ(one_of(Words{"a", "b"}), "a or b");
	EXPECT_EQ(one_of(Words{"a", "b", "c"}), "a, b or c");
}

TEST(Errno, Names)
{
	EXPECT_EQ(errno_name(ECONNREFUSED), "ECONNREFUSED");
	EXPECT_EQ(errno_name(4711), "errno 4711");
	EXPECT_EQ(describe_errno(ENOENT), "No such file or directory (ENOENT)");
	EXPECT_EQ(describe_errno(-1), "unknown error (errno -1)");
}

} // namespace

} // namespace kdirect
