// SPDX-License-Identifier: GPL-2.0-only
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>
#include <vector>

#include <linux/netlink.h>

#include "attributes.h"

namespace kdirect
{

// Builds what the kernel would send, without libnl, which the code under test uses.
class Builder
{
public:
	template <typename T>
	Builder &number(uint16_t type, T value)
	{
		return raw(type, &value, sizeof(value));
	}

	Builder &string(uint16_t type, std::string_view text)
	{
		const std::string copy(text);

		return raw(type, copy.c_str(), copy.size() + 1);
	}

	Builder &bytes(uint16_t type, std::vector<uint8_t> bytes)
	{
		return raw(type, bytes.data(), bytes.size());
	}

	Builder &nest(uint16_t type, const Builder &inner)
	{
		return raw(type | NLA_F_NESTED, inner._bytes.data(), inner._bytes.size());
	}

	Attributes attributes() const { return Attributes(_bytes); }
	std::vector<std::byte> take() const { return _bytes; }

private:
	Builder &raw(uint16_t type, const void *data, size_t length)
	{
		const nlattr head{static_cast<uint16_t>(NLA_HDRLEN + length), type};
		const size_t at = _bytes.size();

		_bytes.resize(at + NLA_HDRLEN + NLA_ALIGN(length));
		std::memcpy(&_bytes[at], &head, sizeof(head));
		if (length)
			std::memcpy(&_bytes[at + NLA_HDRLEN], data, length);
		return *this;
	}

	std::vector<std::byte> _bytes;
};

} // namespace kdirect
