// SPDX-License-Identifier: GPL-2.0-only
#include "attributes.h"

#include <algorithm>
#include <cstring>

#include <netlink/attr.h>

namespace kdirect
{

namespace
{

template <typename T>
uint64_t load(std::span<const std::byte> bytes)
{
	T value;

	std::memcpy(&value, bytes.data(), sizeof(value));
	return value;
}

} // namespace

Attributes::Attributes(std::span<const std::byte> bytes) : _bytes(bytes.begin(), bytes.end())
{
	auto *attr = reinterpret_cast<nlattr *>(_bytes.data());
	int left = static_cast<int>(_bytes.size());

	for (; nla_ok(attr, left); attr = nla_next(attr, &left)) {
		const auto *data = static_cast<const std::byte *>(nla_data(attr));

		_entries.push_back({static_cast<uint16_t>(nla_type(attr)),
				    std::span(data, static_cast<size_t>(nla_len(attr)))});
	}
}

std::optional<std::span<const std::byte>> Attributes::find(uint16_t type) const
{
	const auto found = std::ranges::find(_entries, type, &Entry::type);

	if (found == _entries.end())
		return std::nullopt;
	return found->payload;
}

std::vector<std::span<const std::byte>> Attributes::all(uint16_t type) const
{
	std::vector<std::span<const std::byte>> found;

	for (const Entry &entry : _entries)
		if (entry.type == type)
			found.push_back(entry.payload);
	return found;
}

std::optional<uint64_t> Attributes::number(uint16_t type) const
{
	const auto payload = find(type);

	if (!payload)
		return std::nullopt;
	switch (payload->size()) {
	case 1: return load<uint8_t>(*payload);
	case 2: return load<uint16_t>(*payload);
	case 4: return load<uint32_t>(*payload);
	case 8: return load<uint64_t>(*payload);
	default: return std::nullopt;
	}
}

std::optional<std::string_view> Attributes::string(uint16_t type) const
{
	const auto payload = find(type);

	if (!payload)
		return std::nullopt;

	const auto *text = reinterpret_cast<const char *>(payload->data());

	return std::string_view(text, strnlen(text, payload->size()));
}

} // namespace kdirect
