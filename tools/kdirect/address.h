// SPDX-License-Identifier: GPL-2.0-only
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace kdirect
{

// An IPv4 or IPv6 address in network order: 4 or 16 bytes, which is also what tells them
// apart on the wire.
struct Address {
	std::array<std::byte, 16> storage{};
	uint8_t length = 0;

	std::span<const std::byte> bytes() const { return std::span(storage).first(length); }
	bool is_v6() const { return length == 16; }
	bool operator==(const Address &) const = default;
};

struct Endpoint {
	Address address;
	uint16_t port = 0;

	bool operator==(const Endpoint &) const = default;
};

struct Prefix {
	Address address;
	uint8_t length = 0;

	bool operator==(const Prefix &) const = default;
};

// All throw BadValue.
Address parse_address(std::string_view text);
Endpoint parse_endpoint(std::string_view text); // 10.0.0.2:7471, [fd00::2]:7471
Prefix parse_prefix(std::string_view text);     // 10.0.0.0/8, 10.0.0.2, fd00::/16
uint16_t parse_port(std::string_view text);

// From a netlink attribute; throws BadValue unless it is 4 or 16 bytes long.
Address address_from_bytes(std::span<const std::byte> bytes);

std::string format(const Address &address);
std::string format(const Endpoint &endpoint);
std::string format(const Prefix &prefix);

} // namespace kdirect
