// SPDX-License-Identifier: GPL-2.0-only
#include "address.h"

#include <gtest/gtest.h>

#include "failure.h"

namespace kdirect
{

namespace
{

TEST(Address, BothFamilies)
{
	const Address v4 = parse_address("10.0.0.2");
	const Address v6 = parse_address("fd00::2");

	EXPECT_EQ(v4.length, 4);
	EXPECT_EQ(v4.storage[0], std::byte(10));
	EXPECT_EQ(v4.storage[3], std::byte(2));
	EXPECT_FALSE(v4.is_v6());
	EXPECT_EQ(v6.length, 16);
	EXPECT_EQ(v6.storage[0], std::byte(0xfd));
	EXPECT_TRUE(v6.is_v6());
	EXPECT_EQ(format(v4), "10.0.0.2");
	EXPECT_EQ(format(parse_address("FD00:0::0002")), "fd00::2");
	EXPECT_EQ(format(Address()), "?");
}

TEST(Address, RefusesTheRest)
{
	for (const char *text : {"", "host", "10.0.0", "10.0.0.256", "10.0.0.2.3", "010.0.0.1",
				 "10.0.0.2 ", "fd00:::2", "fd00::g", "[fd00::2]", "fe80::1%eth0"})
		EXPECT_THROW(parse_address(text), BadValue) << text;
}

TEST(Endpoint, BothFamilies)
{
	EXPECT_EQ(parse_endpoint("10.0.0.2:7471"), (Endpoint{parse_address("10.0.0.2"), 7471}));
	EXPECT_EQ(parse_endpoint("[fd00::2]:1"), (Endpoint{parse_address("fd00::2"), 1}));
	EXPECT_EQ(format(parse_endpoint("[fd00::2]:65535")), "[fd00::2]:65535");
	EXPECT_EQ(format(parse_endpoint("10.0.0.2:7471")), "10.0.0.2:7471");
}

TEST(Endpoint, RefusesTheRest)
{
	for (const char *text : {"", ":", "10.0.0.2", "10.0.0.2:", ":7471", "10.0.0.2:0",
				 "10.0.0.2:65536", "10.0.0.2:x", "fd00::2:7471", "[fd00::2]",
				 "[fd00::2]7471", "[10.0.0.2]:7471", "[]:1", "host:7471"})
		EXPECT_THROW(parse_endpoint(text), BadValue) << text;
}

TEST(Prefix, LengthIsTheWholeAddressIfNotGiven)
{
	EXPECT_EQ(parse_prefix("10.0.0.2"), (Prefix{parse_address("10.0.0.2"), 32}));
	EXPECT_EQ(parse_prefix("fd00::2"), (Prefix{parse_address("fd00::2"), 128}));
	EXPECT_EQ(parse_prefix("10.0.0.0/8"), (Prefix{parse_address("10.0.0.0"), 8}));
	EXPECT_EQ(parse_prefix("0.0.0.0/0").length, 0);
	EXPECT_EQ(parse_prefix("::/0").length, 0);
	EXPECT_EQ(format(parse_prefix("fd00::/16")), "fd00::/16");
}

TEST(Prefix, RefusesBitsBehindTheLength)
{
	EXPECT_NO_THROW(parse_prefix("10.0.0.128/25"));
	EXPECT_THROW(parse_prefix("10.0.0.128/24"), BadValue);
	EXPECT_THROW(parse_prefix("10.0.0.1/8"), BadValue);
	EXPECT_THROW(parse_prefix("fd00::1/127"), BadValue);
	try {
		parse_prefix("10.0.0.1/8");
	} catch (const BadValue &bad) {
		EXPECT_NE(std::string(bad.what()).find("10.0.0.0/8"), std::string::npos);
		EXPECT_NE(std::string(bad.what()).find("10.0.0.1"), std::string::npos);
	}
}

TEST(Prefix, RefusesTheRest)
{
	for (const char *text : {"", "/", "/8", "10.0.0.0/", "10.0.0.0/33", "10.0.0.0/-1", "::/129",
				 "10.0.0.0/8/8", "10.0.0.0/x"})
		EXPECT_THROW(parse_prefix(text), BadValue) << text;
}

TEST(AddressFromBytes, LengthIsChecked)
{
	const std::array<std::byte, 17> bytes{std::byte(10), std::byte(1)};

	EXPECT_EQ(format(address_from_bytes(std::span(bytes).first(4))), "10.1.0.0");
	EXPECT_EQ(format(address_from_bytes(std::span(bytes).first(16))), "a01::");
	for (size_t length : {0U, 3U, 5U, 15U, 17U})
		EXPECT_THROW(address_from_bytes(std::span(bytes).first(length)), BadValue);
}

} // namespace

} // namespace kdirect
