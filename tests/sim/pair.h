/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The topology of most tests: one machine, two devices, a channel from one to
 * the other.
 *
 *	c0 (10.0.0.1, dev a) ------ network ------ (10.0.0.2:7471, dev b) store.0
 */
#pragma once
#include <gtest/gtest.h>

#include <cstring>

#include "world.h"

namespace sim
{

constexpr uint16_t port = 7471;

struct PairOptions {
	Options world;
	DeviceOptions device;
	World::ListenerTweak listener;
	World::ChannelTweak channel;
	bool v6 = false;
};

class Pair
{
public:
	explicit Pair(const PairOptions &o)
		: w(o.world), target(o.v6 ? "fd00::2" : "10.0.0.2"),
		  a(w.add_device(o.v6 ? "fd00::1" : "10.0.0.1", o.device)),
		  b(w.add_device(target, o.device)), channel(o.channel)
	{
		EXPECT_EQ(w.listen("store", target, port, o.listener), 0);
	}
	explicit Pair(uint64_t seed) : Pair(PairOptions{.world = {.seed = seed}}) {}

	int begin(kd_error *error = nullptr)
	{
		return w.connect("c0", target, port, channel, error);
	}
	/* Both ends live and open. */
	bool up()
	{
		if (begin() || !w.run_until_live("c0") || !w.run_until_live("store.0"))
			return false;
		near = w.open("c0");
		far = w.open("store.0");
		return near && far;
	}
	void close()
	{
		near.close();
		far.close();
	}

	World w;
	const char *target;
	Device &a;
	Device &b;
	World::ChannelTweak channel;
	File near, far;
};

/* A message that tells its number, its length and every wrong byte. */
inline std::string pattern(uint64_t number, std::size_t size)
{
	Rng rng(number * 0x10001 + size);
	std::string text(size, '\0');

	for (std::size_t at = 0; at < size; at += 8) {
		uint64_t word = rng.next();

		std::memcpy(text.data() + at, &word, std::min<std::size_t>(8, size - at));
	}
	return text;
}

/* Sends @count messages of the sizes that @size gives, one after the other. */
inline Task send_all(Pair &p, File &file, uint64_t stream, unsigned int count,
		     std::function<std::size_t(unsigned int)> size, uint32_t flags = 0)
{
	return p.w.spawn("sender", [&p, &file, stream, count, size = std::move(size), flags] {
		for (unsigned int i = 0; i < count; i++) {
			std::string text = pattern(stream + i, size(i));
			int64_t ret;

			while ((ret = file.write(text, flags)) == -KD_EAGAIN)
				p.w.run_for(5 * us);
			ASSERT_EQ(ret, static_cast<int64_t>(text.size())) << "message " << i;
		}
	});
}

inline Task receive_all(Pair &p, File &file, uint64_t stream, unsigned int count,
			std::function<std::size_t(unsigned int)> size, uint32_t flags = 0)
{
	return p.w.spawn("receiver", [&p, &file, stream, count, size = std::move(size), flags] {
		std::string buffer(1 << 20, '\0');

		for (unsigned int i = 0; i < count; i++) {
			kd_iter into = target_in(buffer);
			int64_t ret;

			while ((ret = file.read(into, flags)) == -KD_EAGAIN)
				p.w.run_for(5 * us);
			ASSERT_EQ(ret, static_cast<int64_t>(size(i))) << "message " << i;
			ASSERT_TRUE(std::string_view(buffer).substr(0, size(i)) ==
				    pattern(stream + i, size(i)))
				<< "message " << i;
		}
	});
}

} // namespace sim
