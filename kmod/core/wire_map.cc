// SPDX-License-Identifier: GPL-2.0-only
#include "wire_map.hh"

namespace kd::wire
{

namespace
{

constexpr uint8_t map_type = 17;

bool is_refusal(uint16_t error)
{
	bool known = false;
	for (uint16_t one : map_refusals)
		known |= one == error;
	return known;
}

bool power_of_two(uint32_t value)
{
	return value && !(value & (value - 1));
}

// The name is not empty, ends, and has nothing behind its end.
bool decode_name(const char *data, char *out)
{
	uint32_t len = 0;
	__builtin_memcpy(out, data, map_name_size);
	while (len < map_name_size && out[len])
		len++;
	if (len == 0 || len == map_name_size)
		return false;
	for (uint32_t i = len; i < map_name_size; i++)
		if (out[i])
			return false;
	return true;
}

bool decode_shape(const MapInfo &info)
{
	return info.instance && info.size && power_of_two(info.key_bytes) &&
	       info.key_bytes >= min_key_bytes && info.key_bytes <= max_key_bytes &&
	       map_keys(info.size, info.key_bytes) <= max_map_keys;
}

// Everything that an operation does not use is zero.
bool only_used(const MapHeader &h, MapOp op)
{
	bool shape = op == MapOp::Mapped, keys = op == MapOp::Keys;
	return !h.reserved[0] && !h.reserved[1] && h.atomics <= uint8_t(shape) &&
	       h.sole <= uint8_t(shape) && (h.error == 0 || op == MapOp::Refused) &&
	       (h.read_only == 0 || op == MapOp::Map || shape) && h.read_only <= 1 &&
	       (keys || (h.keys == 0 && h.first == 0)) &&
	       (shape || (h.instance == 0 && h.size == 0 && h.key_bytes == 0));
}

} // namespace

bool is_map_message(const void *data, size_t len)
{
	return data && len && *static_cast<const uint8_t *>(data) == map_type;
}

bool decode_map(const void *data, size_t len, MapInfo &out)
{
	MapHeader h;
	if (!is_map_message(data, len) || len < sizeof(h))
		return false;
	__builtin_memcpy(&h, data, sizeof(h));
	out.op = MapOp(h.op);
	out.id = h.id;
	out.credits = h.credits;
	out.read_only = h.read_only;
	out.atomics = h.atomics;
	out.sole = h.sole;
	out.error = h.error;
	out.first = h.first;
	out.nr_keys = h.keys;
	out.key_bytes = h.key_bytes;
	out.instance = h.instance;
	out.size = h.size;
	if (out.id >= max_maps || !only_used(h, out.op))
		return false;
	auto *at = static_cast<const char *>(data) + sizeof(h);
	size_t rest = len - sizeof(h);
	switch (out.op) {
	case MapOp::Map: return rest == map_name_size && decode_name(at, out.name);
	case MapOp::Mapped: return rest == 0 && decode_shape(out);
	case MapOp::Refused: return rest == 0 && is_refusal(out.error);
	case MapOp::Ready:
	case MapOp::Revoke:
	case MapOp::Unmap:
	case MapOp::Unmapped: return rest == 0;
	case MapOp::Keys: break;
	default: return false;
	}
	if (out.nr_keys == 0 || out.nr_keys > map_keys_at_once ||
	    rest != out.nr_keys * sizeof(MapKey))
		return false;
	for (uint32_t i = 0; i < out.nr_keys; i++, at += sizeof(MapKey)) {
		MapKey key;
		__builtin_memcpy(&key, at, sizeof(key));
		out.keys[i] = {key.addr, key.rkey};
		// No key wraps, whatever it covers.
		if (out.keys[i].addr + max_key_bytes < out.keys[i].addr)
			return false;
	}
	return true;
}

uint32_t encode_map(const MapInfo &info, void *out)
{
	MapHeader h;
	h.type = map_type;
	h.op = uint8_t(info.op);
	h.keys = uint8_t(info.nr_keys);
	h.read_only = info.read_only;
	h.credits = info.credits;
	h.id = uint16_t(info.id);
	h.error = info.error;
	h.first = info.first;
	h.instance = info.instance;
	h.size = info.size;
	h.key_bytes = info.key_bytes;
	h.atomics = info.atomics;
	h.sole = info.sole;
	h.reserved[0] = h.reserved[1] = 0;
	auto *at = static_cast<uint8_t *>(out);
	__builtin_memcpy(at, &h, sizeof(h));
	at += sizeof(h);
	if (info.op == MapOp::Map) {
		__builtin_memcpy(at, info.name, map_name_size);
		at += map_name_size;
	}
	for (uint32_t i = 0; i < info.nr_keys; i++, at += sizeof(MapKey)) {
		MapKey key;
		key.addr = info.keys[i].addr;
		key.rkey = info.keys[i].rkey;
		__builtin_memcpy(at, &key, sizeof(key));
	}
	return uint32_t(at - static_cast<uint8_t *>(out));
}

const char *name(MapOp op)
{
	switch (op) {
	case MapOp::Map: return "map";
	case MapOp::Mapped: return "mapped";
	case MapOp::Refused: return "refused";
	case MapOp::Ready: return "ready";
	case MapOp::Keys: return "keys";
	case MapOp::Revoke: return "revoke";
	case MapOp::Unmap: return "unmap";
	case MapOp::Unmapped: return "unmapped";
	}
	return "unknown";
}

} // namespace kd::wire
