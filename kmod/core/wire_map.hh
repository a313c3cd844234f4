// SPDX-License-Identifier: GPL-2.0-only
// What the control queue says about exports and mappings: Documentation/protocol.md.
// The target's memory is described by a table of keys, which is delivered in pages.
#pragma once

#include "wire.hh"

namespace kd::wire
{

// Limits of the protocol itself.
constexpr uint32_t max_maps = 64;         // of one channel
constexpr uint32_t max_map_keys = 16384;  // of one mapping
constexpr uint32_t map_keys_at_once = 16; // in one message
constexpr uint32_t min_key_bytes = 4096;  // what one key covers: a power of two
constexpr uint32_t max_key_bytes = 1 << 21;
constexpr uint32_t map_name_size = 32; // padded with zeros

enum class MapOp : uint8_t {
	Map = 1, // initiator: asks for an export, by name
	Mapped,  // target: what it is
	Refused, // target: no; the id is free again
	Ready,   // initiator: send the keys
	Keys,    // target: some of them, in order
	Revoke,  // target: stop, and let go of it
	Unmap,   // initiator: nothing is in flight any more, and nothing will be
	Unmapped // target: the keys are gone; the id is free again
};

// Why a target refuses. The numbers are Linux's errno values.
constexpr uint16_t map_refusals[] = {2 /* ENOENT */, 12 /* ENOMEM */, 16 /* EBUSY */};

struct MapHeader {
	uint8_t type; // 17
	uint8_t op;
	uint8_t keys;      // Keys: how many follow
	uint8_t read_only; // Map: no more is wanted; Mapped: no more is allowed; 0 or 1
	Le32 credits;      // control receives posted anew, ever
	Le16 id;           // of the mapping, chosen by the initiator
	Le16 error;        // Refused
	Le32 first;        // Keys: index of the first
	Le64 instance;     // Mapped: of the export, not 0
	Le64 size;         // Mapped: bytes
	Le32 key_bytes;    // Mapped: what one key covers, but for the last
	uint8_t atomics;   // Mapped: the target's device has atomic operations; 0 or 1
	uint8_t sole;      // Mapped, once more: nobody else could write meanwhile; 0 or 1
	uint8_t reserved[2];
};
static_assert(sizeof(MapHeader) == 40 && alignof(MapHeader) == 1);

struct MapKey {
	Le64 addr;
	Le32 rkey;
};
static_assert(sizeof(MapKey) == 12);

// As it stands in a buffer: the header, and for Map a name, for Keys the keys.
constexpr uint32_t map_message_size = sizeof(MapHeader) + map_keys_at_once * sizeof(MapKey);
static_assert(map_message_size <= control_size);
static_assert(sizeof(MapHeader) + map_name_size <= control_size);

struct RemoteKey {
	uint64_t addr;
	uint32_t rkey;
};

struct MapInfo {
	MapOp op;
	uint32_t id = 0, credits = 0;
	bool read_only = false, atomics = false, sole = false;
	uint16_t error = 0;
	uint32_t first = 0, nr_keys = 0, key_bytes = 0;
	uint64_t instance = 0, size = 0;
	char name[map_name_size] = {};
	RemoteKey keys[map_keys_at_once];
};

// How many keys a mapping of that shape has.
constexpr uint64_t map_keys(uint64_t size, uint32_t key_bytes)
{
	return size / key_bytes + (size % key_bytes != 0);
}

// Is this one of these messages, rather than one of wire.hh's?
bool is_map_message(const void *data, size_t len);
[[nodiscard]] bool decode_map(const void *data, size_t len, MapInfo &out);
// returns the length
uint32_t encode_map(const MapInfo &info, void *out);
const char *name(MapOp op);

} // namespace kd::wire
