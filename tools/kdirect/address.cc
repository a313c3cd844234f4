// SPDX-License-Identifier: GPL-2.0-only
#include "address.h"

#include <algorithm>
#include <arpa/inet.h>

#include <fmt/format.h>

#include "failure.h"
#include "quantity.h"

namespace kdirect
{

namespace
{

void clear_bit(Address &address, unsigned i)
{
	address.storage[i / 8] &= ~std::byte(0x80 >> i % 8);
}

} // namespace

Address parse_address(std::string_view text)
{
	const std::string copy(text);
	Address address;

	if (text.find('%') != std::string_view::npos)
		throw BadValue("addresses with a scope (%interface) are not supported");
	if (inet_pton(AF_INET, copy.c_str(), address.storage.data()) == 1)
		address.length = 4;
	else if (inet_pton(AF_INET6, copy.c_str(), address.storage.data()) == 1)
		address.length = 16;
	else
		throw BadValue("not an IPv4 or IPv6 address (names are not resolved)");
	return address;
}

uint16_t parse_port(std::string_view text)
{
	const uint64_t port = parse_count(text);

	if (port < 1 || port > 65535)
		throw BadValue("a port is 1 to 65535");
	return static_cast<uint16_t>(port);
}

Endpoint parse_endpoint(std::string_view text)
{
	constexpr const char *form = "not ADDRESS:PORT or [IPV6]:PORT";
	const size_t colon = text.rfind(':');

	if (colon == std::string_view::npos || text.ends_with(']'))
		throw BadValue(form);

	std::string_view host = text.substr(0, colon);
	const bool bracketed = host.size() >= 2 && host.front() == '[' && host.back() == ']';

	if (bracketed)
		host = host.substr(1, host.size() - 2);

	const Address address = parse_address(host);

	// fd00::2:7471 could be an address without a port.
	if (address.is_v6() != bracketed)
		throw BadValue(form);
	return {address, parse_port(text.substr(colon + 1))};
}

Prefix parse_prefix(std::string_view text)
{
	const size_t slash = text.find('/');
	const Address address = parse_address(text.substr(0, slash));
	const unsigned bits = address.length * 8U;
	uint64_t length = bits;

	if (slash != std::string_view::npos)
		length = parse_count(text.substr(slash + 1));
	if (length > bits)
		throw BadValue(fmt::format("the prefix length is 0 to {}", bits));

	Prefix prefix{address, static_cast<uint8_t>(length)};

	for (unsigned i = prefix.length; i < bits; i++)
		clear_bit(prefix.address, i);
	// Who writes 10.0.0.1/8 may mean one host or the whole network: ask, since this decides
	// who may connect.
	if (prefix.address != address)
		throw BadValue(fmt::format("bits are set behind the prefix length; the network "
					   "is {}, the host {}",
					   format(prefix), format(address)));
	return prefix;
}

Address address_from_bytes(std::span<const std::byte> bytes)
{
	Address address;

	if (bytes.size() != 4 && bytes.size() != 16)
		throw BadValue(fmt::format("an address of {} bytes", bytes.size()));
	std::ranges::copy(bytes, address.storage.begin());
	address.length = static_cast<uint8_t>(bytes.size());
	return address;
}

std::string format(const Address &address)
{
	char text[INET6_ADDRSTRLEN];

	if (address.length == 0)
		return "?";
	inet_ntop(address.is_v6() ? AF_INET6 : AF_INET, address.storage.data(), text, sizeof(text));
	return text;
}

std::string format(const Endpoint &endpoint)
{
	const std::string host = format(endpoint.address);

	return endpoint.address.is_v6() ? fmt::format("[{}]:{}", host, endpoint.port)
					: fmt::format("{}:{}", host, endpoint.port);
}

std::string format(const Prefix &prefix)
{
	return fmt::format("{}/{}", format(prefix.address), prefix.length);
}

} // namespace kdirect
