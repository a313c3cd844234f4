/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The topology of the tests of raw channels, with a core at both ends.
 *
 *	r0 (10.0.0.1, dev a) ------ network ------ (10.0.0.2:7471, dev b) raw.0
 */
#pragma once
#include "plain.h"

#include "../../uapi/kdirect_netlink.h"
#include "pair.h"

namespace sim
{

constexpr uint64_t mib = 1 << 20;

/* Both hold, so that programs connect them. */
class Plain
{
public:
	explicit Plain(const Options &options, uint32_t poll_queues = 0, uint32_t depth = 32,
		       const DeviceOptions &device = {})
		: w(options), a(w.add_device("10.0.0.1", device)),
		  b(w.add_device("10.0.0.2", device)), near_memory(w, 4 * mib),
		  far_memory(w, 4 * mib)
	{
		EXPECT_EQ(w.listen("raw", "10.0.0.2", port,
				   [&](kd_listener_params &p) {
					   p.mode = KDIRECT_MODE_RAW;
					   p.raw.hold = true;
					   p.max_depth = depth;
				   }),
			  0);
		tweak = [=](kd_channel_params &p) {
			p.mode = KDIRECT_MODE_RAW;
			p.raw.hold = true;
			p.depth = depth;
			p.poll_queues = poll_queues;
		};
	}
	/* In small steps: who holds a channel has only so much time. */
	PlainFile open_soon(const std::string &name)
	{
		PlainFile file;

		for (int i = 0; i < 1000 && !file && w.state("r0") >= 0; i++) {
			w.run_for(20 * us);
			file = open_plain(w, name);
		}
		return file;
	}
	bool begin()
	{
		return !w.connect("r0", "10.0.0.2", port, tweak) && (near = open_soon("r0"));
	}
	bool requested()
	{
		return !near.connect(raw_terms("hello"), true) && (far = open_soon("raw.0"));
	}
	bool up(uint8_t rnr_retry = 7)
	{
		return begin() && requested() && !far.connect(raw_terms("welcome", rnr_retry)) &&
		       w.run_until_live("r0") && w.run_until_live("raw.0");
	}
	/* The peer hears of it only when the device has made it. */
	int share(PlainFile &file, uint32_t access, kdirect_share &key)
	{
		int err = file.share(0, access, key);

		w.run_for(1 * ms);
		return err;
	}
	World w;
	Device &a, &b;
	Memory near_memory, far_memory;
	World::ChannelTweak tweak;
	PlainFile near, far;
};

/* Memory of one of many work requests. */
inline uint64_t place(unsigned int i)
{
	return i * 70000ULL;
}

} // namespace sim
