// SPDX-License-Identifier: GPL-2.0-only
#include "attributes.h"

#include <gtest/gtest.h>

#include "builder.h"

namespace kdirect
{

namespace
{

TEST(Attributes, NumbersOfEveryWidth)
{
	const Attributes attributes = Builder()
					      .number<uint8_t>(1, 0xff)
					      .number<uint16_t>(2, 0xffee)
					      .number<uint32_t>(3, 0xffeeddcc)
					      .number<uint64_t>(4, 0xffeeddccbbaa9988)
					      .bytes(5, {1, 2, 3})
					      .attributes();

	EXPECT_EQ(attributes.number(1), 0xffU);
	EXPECT_EQ(attributes.number(2), 0xffeeU);
	EXPECT_EQ(attributes.number(3), 0xffeeddccU);
	EXPECT_EQ(attributes.number(4), 0xffeeddccbbaa9988U);
	EXPECT_EQ(attributes.number(5), std::nullopt) << "no number is 3 bytes long";
	EXPECT_EQ(attributes.number(6), std::nullopt);
}

TEST(Attributes, StringsEndAtNulOrAtTheEnd)
{
	const Attributes attributes = Builder()
					      .bytes(1, {'a', 'b', 0})
					      .bytes(2, {'a', 'b'})
					      .bytes(3, {'a', 0, 'b', 0})
					      .bytes(4, {})
					      .attributes();

	EXPECT_EQ(attributes.string(1), "ab");
	EXPECT_EQ(attributes.string(2), "ab");
	EXPECT_EQ(attributes.string(3), "a");
	EXPECT_EQ(attributes.string(4), "");
	EXPECT_EQ(attributes.string(5), std::nullopt);
}

TEST(Attributes, RepeatedOnesKeepTheirOrder)
{
	const Attributes attributes = Builder()
					      .number<uint32_t>(1, 10)
					      .number<uint32_t>(2, 20)
					      .number<uint32_t>(1, 11)
					      .attributes();

	ASSERT_EQ(attributes.all(1).size(), 2U);
	EXPECT_EQ(attributes.all(1)[1][0], std::byte(11));
	EXPECT_EQ(attributes.number(1), 10U) << "the first";
}

TEST(Attributes, SurviveAMove)
{
	Attributes from = Builder().string(1, "text").attributes();
	const Attributes to = std::move(from);

	EXPECT_EQ(to.string(1), "text");
}

// An attribute that claims to be longer than what is there must not be read.
TEST(Attributes, NothingBehindTheEndIsRead)
{
	std::vector<std::byte> bytes = Builder().number<uint32_t>(1, 7).take();
	const std::vector<std::byte> second = Builder().number<uint32_t>(2, 8).take();

	bytes.insert(bytes.end(), second.begin(), second.end());
	bytes[8] = std::byte(200);

	const Attributes attributes{bytes};

	EXPECT_EQ(attributes.number(1), 7U);
	EXPECT_FALSE(attributes.has(2));
	EXPECT_FALSE(Attributes(std::span(bytes).first(3)).has(1));
	EXPECT_FALSE(Attributes(std::span(bytes).first(7)).has(1));
}

} // namespace

} // namespace kdirect
