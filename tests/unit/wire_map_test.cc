// SPDX-License-Identifier: GPL-2.0-only
// What a peer can say about exports and mappings, at every length, with every field at
// and past its limits.
#include "../../kmod/core/wire_map.hh"

#include <gtest/gtest.h>

#include <cstring>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <vector>

using namespace kd::wire;

namespace
{

MapInfo sample(MapOp op)
{
	MapInfo info{.op = op, .id = 5, .credits = 7};

	switch (op) {
	case MapOp::Map:
		std::strcpy(info.name, "mem0");
		info.read_only = true;
		break;
	case MapOp::Mapped:
		info.instance = 0x1122334455667788;
		info.size = (64 << 20) + 1;
		info.key_bytes = 2 << 20;
		break;
	case MapOp::Refused: info.error = 2; break;
	case MapOp::Keys:
		info.first = 32;
		info.nr_keys = 3;
		for (uint32_t i = 0; i < 3; i++)
			info.keys[i] = {0x1000ULL * i, 0x100 + i};
		break;
	default: break;
	}
	return info;
}

constexpr MapOp all[] = {MapOp::Map,  MapOp::Mapped, MapOp::Refused, MapOp::Ready,
			 MapOp::Keys, MapOp::Revoke, MapOp::Unmap,   MapOp::Unmapped};

std::vector<uint8_t> encoded(const MapInfo &info)
{
	std::vector<uint8_t> bytes(control_size);

	bytes.resize(encode_map(info, bytes.data()));
	return bytes;
}

/* On the heap and exactly as long, so that a byte too far is seen. */
bool decodes(const std::vector<uint8_t> &bytes, MapInfo *out = nullptr)
{
	MapInfo info{};
	auto exact = std::make_unique<uint8_t[]>(bytes.size());

	std::memcpy(exact.get(), bytes.data(), bytes.size());
	bool good = decode_map(exact.get(), bytes.size(), info);
	if (out)
		*out = info;
	return good;
}

bool changed(MapOp op, const std::function<void(MapInfo &)> &change)
{
	MapInfo info = sample(op);

	change(info);
	return decodes(encoded(info));
}

TEST(WireMap, EveryMessageComesBackAsItWas)
{
	for (MapOp op : all) {
		MapInfo in = sample(op), out{};

		ASSERT_TRUE(decodes(encoded(in), &out)) << name(op);
		EXPECT_EQ(out.op, op);
		EXPECT_EQ(out.id, in.id);
		EXPECT_EQ(out.credits, in.credits);
		EXPECT_EQ(out.read_only, in.read_only);
		EXPECT_EQ(out.error, in.error);
		EXPECT_EQ(out.first, in.first);
		EXPECT_EQ(out.instance, in.instance);
		EXPECT_EQ(out.size, in.size);
		EXPECT_EQ(out.key_bytes, in.key_bytes);
		EXPECT_STREQ(out.name, in.name);
		ASSERT_EQ(out.nr_keys, in.nr_keys);
		for (uint32_t i = 0; i < in.nr_keys; i++) {
			EXPECT_EQ(out.keys[i].addr, in.keys[i].addr);
			EXPECT_EQ(out.keys[i].rkey, in.keys[i].rkey);
		}
	}
}

TEST(WireMap, AnyOtherLengthIsRefused)
{
	for (MapOp op : all) {
		std::vector<uint8_t> good = encoded(sample(op));

		for (std::size_t len = 0; len <= control_size + 8; len++) {
			std::vector<uint8_t> bytes = good;

			bytes.resize(len);
			EXPECT_EQ(decodes(bytes), len == good.size()) << name(op) << " " << len;
		}
	}
}

TEST(WireMap, NoLongerThanAReceive)
{
	MapInfo most = sample(MapOp::Keys);

	most.nr_keys = map_keys_at_once;
	EXPECT_EQ(encoded(most).size(), map_message_size);
	EXPECT_LE(map_message_size, control_size);
	EXPECT_TRUE(changed(MapOp::Keys, [](MapInfo &i) { i.nr_keys = map_keys_at_once; }));
}

TEST(WireMap, OnlyKnownOperations)
{
	for (unsigned int op = 0; op < 256; op++) {
		std::vector<uint8_t> bytes = encoded(sample(MapOp::Ready));

		bytes[1] = static_cast<uint8_t>(op);
		bool plain = op == unsigned(MapOp::Ready) || op == unsigned(MapOp::Revoke) ||
			     op == unsigned(MapOp::Unmap) || op == unsigned(MapOp::Unmapped);
		EXPECT_EQ(decodes(bytes), plain) << op;
	}
}

TEST(WireMap, WhatAnOperationDoesNotUseIsZero)
{
	struct Case {
		const char *what;
		std::size_t at;
		std::vector<MapOp> used;
	};
	const Case cases[] = {
		{"read-only", offsetof(MapHeader, read_only), {MapOp::Map, MapOp::Mapped}},
		{"first", offsetof(MapHeader, first), {MapOp::Keys}},
		{"instance", offsetof(MapHeader, instance), {MapOp::Mapped}},
		{"atomics", offsetof(MapHeader, atomics), {MapOp::Mapped}},
		{"sole", offsetof(MapHeader, sole), {MapOp::Mapped}},
		{"reserved", offsetof(MapHeader, reserved), {}},
		{"reserved, its end", offsetof(MapHeader, reserved) + 1, {}},
	};

	for (const Case &c : cases)
		for (MapOp op : all) {
			MapInfo info = sample(op);
			std::vector<uint8_t> bytes = encoded(info);
			bool used = false;

			for (MapOp one : c.used)
				used |= one == op;
			bytes[c.at] = 1;
			EXPECT_EQ(decodes(bytes), used) << c.what << " in " << name(op);
		}
	EXPECT_FALSE(changed(MapOp::Ready, [](MapInfo &i) { i.size = 1; }));
	EXPECT_FALSE(changed(MapOp::Ready, [](MapInfo &i) { i.key_bytes = 4096; }));
	EXPECT_FALSE(changed(MapOp::Unmap, [](MapInfo &i) { i.error = 2; }));
	std::vector<uint8_t> twice = encoded(sample(MapOp::Map));
	twice[offsetof(MapHeader, read_only)] = 2;
	EXPECT_FALSE(decodes(twice));
	twice = encoded(sample(MapOp::Mapped));
	twice[offsetof(MapHeader, atomics)] = 2;
	EXPECT_FALSE(decodes(twice));
}

TEST(WireMap, IdsAreBounded)
{
	EXPECT_TRUE(changed(MapOp::Ready, [](MapInfo &i) { i.id = max_maps - 1; }));
	EXPECT_FALSE(changed(MapOp::Ready, [](MapInfo &i) { i.id = max_maps; }));
	EXPECT_FALSE(changed(MapOp::Ready, [](MapInfo &i) { i.id = 65535; }));
}

TEST(WireMap, NamesEndAndAreNotEmpty)
{
	EXPECT_FALSE(changed(MapOp::Map, [](MapInfo &i) { i.name[0] = 0; }));
	EXPECT_FALSE(changed(MapOp::Map, [](MapInfo &i) { std::memset(i.name, 'x', 32); }));
	EXPECT_TRUE(changed(MapOp::Map, [](MapInfo &i) { std::memset(i.name, 'x', 31); }));
	EXPECT_FALSE(changed(MapOp::Map, [](MapInfo &i) { i.name[31] = 'x'; }));
}

TEST(WireMap, ShapesAreBounded)
{
	auto shape = [](uint64_t size, uint32_t key_bytes) {
		return changed(MapOp::Mapped, [&](MapInfo &i) {
			i.size = size;
			i.key_bytes = key_bytes;
		});
	};

	EXPECT_TRUE(shape(1, 4096));
	EXPECT_FALSE(shape(0, 4096));
	EXPECT_FALSE(shape(1, 2048));
	EXPECT_FALSE(shape(1, 4097));
	EXPECT_FALSE(shape(1, 0));
	EXPECT_TRUE(shape(1, max_key_bytes));
	EXPECT_FALSE(shape(1, max_key_bytes * 2));
	EXPECT_TRUE(shape(4096ULL * max_map_keys, 4096));
	EXPECT_FALSE(shape(4096ULL * max_map_keys + 1, 4096));
	EXPECT_FALSE(shape(UINT64_MAX, max_key_bytes));
	EXPECT_FALSE(changed(MapOp::Mapped, [](MapInfo &i) { i.instance = 0; }));
}

TEST(WireMap, OnlyKnownRefusals)
{
	for (uint32_t error = 0; error < 200; error++)
		EXPECT_EQ(changed(MapOp::Refused,
				  [&](MapInfo &i) { i.error = static_cast<uint16_t>(error); }),
			  error == 2 || error == 12 || error == 16)
			<< error;
}

TEST(WireMap, KeysDoNotWrap)
{
	EXPECT_TRUE(changed(MapOp::Keys,
			    [](MapInfo &i) { i.keys[2].addr = UINT64_MAX - max_key_bytes; }));
	EXPECT_FALSE(changed(MapOp::Keys,
			     [](MapInfo &i) { i.keys[2].addr = UINT64_MAX - max_key_bytes + 1; }));
	EXPECT_FALSE(changed(MapOp::Keys, [](MapInfo &i) { i.nr_keys = 0; }));
	std::vector<uint8_t> bytes = encoded(sample(MapOp::Keys));
	bytes.resize(sizeof(MapHeader) + 17 * sizeof(MapKey));
	bytes[2] = 17;
	EXPECT_FALSE(decodes(bytes));
}

TEST(WireMap, IsToldFromTheOtherControlMessages)
{
	ControlInfo info;
	uint8_t bytes[control_size];
	uint32_t len = encode_control(info, bytes);

	EXPECT_FALSE(is_map_message(bytes, len));
	EXPECT_FALSE(is_map_message(bytes, 0));
	EXPECT_FALSE(is_map_message(nullptr, 0));
	std::vector<uint8_t> map = encoded(sample(MapOp::Ready));
	EXPECT_TRUE(is_map_message(map.data(), map.size()));
	ControlInfo out;
	EXPECT_FALSE(decode_control(map.data(), map.size(), out));
}

TEST(WireMap, EveryOperationHasAName)
{
	std::set<std::string> names;

	for (MapOp op : all)
		EXPECT_TRUE(names.insert(name(op)).second) << name(op);
	EXPECT_STREQ(name(MapOp{}), "unknown");
	EXPECT_FALSE(names.contains("unknown"));
}

} // namespace
