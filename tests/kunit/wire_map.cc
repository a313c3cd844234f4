// SPDX-License-Identifier: GPL-2.0-only
// What is said about exports and mappings: there and back, each length, each field that
// an operation does not use, and shapes that are not possible.
#include "wire_map.hh"

#include "core_cases.h"
#include "exact.hh"

using namespace kd;
using namespace kd::wire;

namespace
{

MapInfo good(MapOp op)
{
	MapInfo info{};
	info.op = op;
	info.id = max_maps - 1;
	info.credits = 0x10203040;
	switch (op) {
	case MapOp::Map:
		info.read_only = true;
		copy_bytes(info.name, "mem0", 5);
		break;
	case MapOp::Mapped:
		info.instance = 0x1122334455667788;
		info.size = 3 * max_key_bytes + 1;
		info.key_bytes = max_key_bytes;
		info.atomics = true;
		break;
	case MapOp::Refused: info.error = map_refusals[0]; break;
	case MapOp::Keys:
		info.first = 32;
		info.nr_keys = 3;
		for (uint32_t i = 0; i < info.nr_keys; i++)
			info.keys[i] = {0x1000000000ULL * i, 0x8000 + i};
		break;
	case MapOp::Ready:
	case MapOp::Revoke:
	case MapOp::Unmap:
	case MapOp::Unmapped: break;
	}
	return info;
}

bool same(const MapInfo &a, const MapInfo &b)
{
	bool keys = true;
	for (uint32_t i = 0; i < a.nr_keys && i < b.nr_keys; i++)
		keys &= a.keys[i].addr == b.keys[i].addr && a.keys[i].rkey == b.keys[i].rkey;
	return keys && a.op == b.op && a.id == b.id && a.credits == b.credits &&
	       a.read_only == b.read_only && a.atomics == b.atomics && a.error == b.error &&
	       a.first == b.first && a.nr_keys == b.nr_keys && a.key_bytes == b.key_bytes &&
	       a.instance == b.instance && a.size == b.size &&
	       same_bytes(a.name, b.name, sizeof(a.name));
}

bool taken(const MapInfo &info)
{
	uint8_t bytes[map_message_size];
	MapInfo out{};
	return decode_map(bytes, encode_map(info, bytes), out);
}

} // namespace

void kdk_case_map_round_trip(struct kunit *test)
{
	uint8_t bytes[map_message_size];
	MapInfo info = good(MapOp(kdk_param(test)->a)), out{};
	uint32_t len = encode_map(info, bytes);
	EXPECT(is_map_message(bytes, len));
	EXPECT(decode_map(bytes, len, out));
	EXPECT(same(info, out));
	// little-endian, whatever the machine
	EXPECT_EQ(bytes[4], 0x40);
	EXPECT_EQ(bytes[7], 0x10);
}

void kdk_case_map_lengths(struct kunit *test)
{
	uint8_t bytes[map_message_size + 8] = {};
	MapInfo out{};
	uint32_t whole = encode_map(good(MapOp(kdk_param(test)->a)), bytes);
	EXPECT(!decode_map(nullptr, 0, out));
	for (uint32_t len = 0; len <= whole + 8; len++) {
		Exact cut(bytes, whole, len);
		ASSERT(cut.bytes != nullptr);
		if (decode_map(cut.bytes, len, out) != (len == whole))
			kdk_fail(test, __FILE__, __LINE__, "%u of %u bytes", len, whole);
	}
}

// Each bit of the header that an operation does not use, set.
void kdk_case_map_unused(struct kunit *test)
{
	auto op = MapOp(kdk_param(test)->a);
	bool mapped = op == MapOp::Mapped, keys = op == MapOp::Keys, map = op == MapOp::Map;
	struct {
		size_t at, size;
		bool used;
	} const fields[] = {
		{offsetof(MapHeader, type), 1, false},
		{offsetof(MapHeader, keys), 1, false}, // of keys it belies the length
		{offsetof(MapHeader, read_only), 1, mapped || map},
		{offsetof(MapHeader, error), 2, op == MapOp::Refused},
		{offsetof(MapHeader, first), 4, keys},
		{offsetof(MapHeader, instance), 8, mapped},
		{offsetof(MapHeader, size), 8, mapped},
		{offsetof(MapHeader, key_bytes), 4, mapped},
		{offsetof(MapHeader, atomics), 1, mapped},
		{offsetof(MapHeader, sole), 1, mapped},
		{offsetof(MapHeader, reserved), 2, false},
	};
	uint8_t bytes[map_message_size];
	MapInfo out{};
	uint32_t len = encode_map(good(op), bytes);
	for (const auto &field : fields)
		for (size_t bit = 0; !field.used && bit < 8 * field.size; bit++) {
			uint8_t &byte = bytes[field.at + bit / 8];
			auto mask = uint8_t(1U << bit % 8);
			byte ^= mask;
			if (decode_map(bytes, len, out))
				kdk_fail(test, __FILE__, __LINE__, "bit %zu of byte %zu was taken",
					 bit % 8, field.at + bit / 8);
			byte ^= mask;
		}
}

void kdk_case_map_bounds(struct kunit *test)
{
	MapInfo info = good(MapOp::Unmap);
	info.id = max_maps;
	EXPECT(!taken(info));
	for (uint32_t op : {0U, 9U, 255U}) {
		info = good(MapOp::Unmap);
		info.op = MapOp(op);
		EXPECT(!taken(info));
	}

	auto shape = [](uint64_t size, uint32_t key_bytes) {
		MapInfo mapped = good(MapOp::Mapped);
		mapped.size = size;
		mapped.key_bytes = key_bytes;
		return taken(mapped);
	};
	EXPECT(shape(1, min_key_bytes) && shape(1, max_key_bytes));
	EXPECT(shape(uint64_t(max_map_keys) * max_key_bytes, max_key_bytes));
	EXPECT(!shape(uint64_t(max_map_keys) * max_key_bytes + 1, max_key_bytes));
	EXPECT(!shape(UINT64_MAX, max_key_bytes));
	EXPECT(!shape(0, max_key_bytes) && !shape(4096, 0));
	EXPECT(!shape(4096, min_key_bytes / 2) && !shape(4096, 2 * max_key_bytes));
	EXPECT(!shape(4096, max_key_bytes - 4096));
	info = good(MapOp::Mapped);
	info.instance = 0;
	EXPECT(!taken(info));
	uint8_t whole[map_message_size];
	uint32_t len = encode_map(good(MapOp::Mapped), whole);
	reinterpret_cast<MapHeader *>(whole)->atomics = 2;
	EXPECT(!decode_map(whole, len, info));

	for (uint32_t error = 0; error < 200; error++) {
		bool known = false;
		for (uint16_t one : map_refusals)
			known |= one == error;
		info = good(MapOp::Refused);
		info.error = uint16_t(error);
		EXPECT_EQ(taken(info), known);
	}

	// keys whose end wraps; none; as many as there is room for, and one more
	info = good(MapOp::Keys);
	info.keys[1].addr = UINT64_MAX - max_key_bytes;
	EXPECT(taken(info));
	info.keys[1].addr++;
	EXPECT(!taken(info));
	info.nr_keys = 0;
	EXPECT(!taken(info));
	info = good(MapOp::Keys);
	info.nr_keys = map_keys_at_once;
	EXPECT(taken(info));
	uint8_t bytes[map_message_size + sizeof(MapKey)] = {};
	len = encode_map(info, bytes);
	reinterpret_cast<MapHeader *>(bytes)->keys++;
	EXPECT(!decode_map(bytes, len + sizeof(MapKey), info));
}

// A name has an end, something before it, and nothing behind it.
void kdk_case_map_names(struct kunit *test)
{
	MapInfo info = good(MapOp::Map);
	for (char &c : info.name)
		c = 0;
	EXPECT(!taken(info));
	for (uint32_t i = 0; i < map_name_size; i++) {
		info.name[i] = 'x';
		EXPECT_EQ(taken(info), i + 1 < map_name_size);
	}
	info = good(MapOp::Map);
	info.name[map_name_size - 1] = 'x';
	EXPECT(!taken(info));
}
