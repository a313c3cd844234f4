// SPDX-License-Identifier: GPL-2.0-only
// Mappings that lose an end while they are in use. The simulation itself says when a
// transfer reaches memory that was taken away, or memory is freed that still can be
// reached.
#include "map.h"
#include "pair.h"

using namespace sim;

namespace
{

constexpr uint64_t mib = 1 << 20;

bool mapped(Pair &p, uint64_t size = 3 * mib)
{
	return p.up() && !add_export(p.w, "mem", "store", size) &&
	       !add_map(p.w, "m", "c0", "mem") && run_until_mapped(p.w, "m");
}

/* Reads and writes until it is told an error. */
struct Load {
	Load(Pair &pair, unsigned int count) : p(pair), rng(pair.w.opts.seed + 77)
	{
		for (unsigned int i = 0; i < count; i++) {
			errors.push_back(0);
			tasks.push_back(p.w.spawn("load", [this, i] { run(i); }));
		}
	}
	void run(unsigned int i)
	{
		MapFile file = open_map(p.w, "m");

		if (!file)
			return;
		/* memory that lives as long as a transfer may touch it */
		buffers.emplace_back(2 * mib, 'x');
		std::string &buffer = buffers.back();
		for (;;) {
			kd_iter iter = target_in(buffer);

			iter.segments[0].len =
				rng.chance(50) ? 100 + rng.below(4000) : 20000 + rng.below(mib);
			int64_t ret = file.io(iter, rng.below(2 * mib), rng.chance(50));
			transfers++;
			if (ret > 0)
				continue;
			errors[i] = static_cast<int>(-ret);
			return;
		}
	}
	bool end() { return p.w.finish(tasks); }
	Pair &p;
	Rng rng;
	std::deque<std::string> buffers;
	std::vector<Task> tasks;
	std::vector<int> errors;
	unsigned int transfers = 0;
};

PairOptions busy(uint64_t seed)
{
	uint32_t transport = seed % 3 == 2 ? KDIRECT_TRANSPORT_IWARP : KDIRECT_TRANSPORT_ROCE;

	return {.world = {.seed = seed, .uneven = true},
		.device = {.transport = transport},
		.channel = [seed](kd_channel_params &c) {
			c.queues = 1 + seed % 2;
			c.poll_queues = seed % 3 == 0;
			c.depth = 1 + seed % 5;
		}};
}

TEST(MapFaults, ExportDeletedUnderLoad)
{
	for (uint64_t seed = 0; seed < 60; seed++) {
		Pair p(busy(seed));

		ASSERT_TRUE(mapped(p));
		Load load(p, 6);
		p.w.run_for(p.w.sched.rng.below(3 * ms));
		ASSERT_EQ(del_export(p.w, "mem"), 0);
		ASSERT_TRUE(run_until_unexported(p.w, "mem"));
		EXPECT_EQ(p.w.regions.size(), 0u);
		ASSERT_TRUE(load.end());
		for (int err : load.errors)
			EXPECT_TRUE(err == KD_ESTALE || err == 0) << err;
		EXPECT_EQ(p.w.state("c0"), KDIRECT_STATE_LIVE);
		EXPECT_TRUE(p.w.run_until([&] { return map_state(p.w, "m") == KDIRECT_MAP_DEAD; }));
	}
}

TEST(MapFaults, MappingDeletedUnderLoad)
{
	for (uint64_t seed = 0; seed < 60; seed++) {
		Pair p(busy(seed));

		ASSERT_TRUE(mapped(p));
		Load load(p, 6);
		p.w.run_for(p.w.sched.rng.below(3 * ms));
		ASSERT_EQ(del_map(p.w, "m"), 0);
		ASSERT_TRUE(run_until_unmapped(p.w, "m"));
		struct kd_export_info info;
		ASSERT_TRUE(export_info(p.w, "mem", info));
		EXPECT_EQ(info.maps, 0u);
		EXPECT_EQ(p.w.regions.size(), 1u);
		ASSERT_TRUE(load.end());
		for (int err : load.errors)
			EXPECT_TRUE(err == KD_ENODEV || err == 0) << err;
		EXPECT_EQ(p.w.state("c0"), KDIRECT_STATE_LIVE);
		ASSERT_EQ(add_map(p.w, "m", "c0", "mem"), 0);
		ASSERT_TRUE(run_until_mapped(p.w, "m"));
	}
}

/* Both at once, at any moment, from the first question on. */
TEST(MapFaults, BothEndsAtAnyMoment)
{
	for (uint64_t seed = 0; seed < 150; seed++) {
		Pair p(PairOptions{.world = {.seed = seed}, .device = {.max_mr_pages = 16}});

		ASSERT_TRUE(p.up());
		ASSERT_EQ(add_export(p.w, "mem", "store", 2 * mib), 0);
		ASSERT_EQ(add_map(p.w, "m", "c0", "mem"), 0);
		p.w.run_for(p.w.sched.rng.below(400 * us));
		bool both = seed % 3 == 0;
		if (both || seed % 3 == 1) {
			ASSERT_EQ(del_export(p.w, "mem"), 0);
		}
		if (both || seed % 3 == 2)
			(void)del_map(p.w, "m"); /* it may be gone already */
		ASSERT_TRUE(run_until_unexported(p.w, seed % 3 == 2 ? "none" : "mem"));
		ASSERT_TRUE(p.w.run_until([&] {
			int state = map_state(p.w, "m");
			return state < 0 || state == KDIRECT_MAP_DEAD;
		}));
		EXPECT_EQ(p.w.state("c0"), KDIRECT_STATE_LIVE) << seed;
		(void)del_map(p.w, "m");
		EXPECT_TRUE(run_until_unmapped(p.w, "m"));
		if (seed % 3 != 2) {
			ASSERT_EQ(add_export(p.w, "mem", "store", mib), 0);
		}
		ASSERT_EQ(add_map(p.w, "m", "c0", "mem"), 0);
		ASSERT_TRUE(run_until_mapped(p.w, "m")) << seed;
	}
}

TEST(MapFaults, ChannelLostUnderLoad)
{
	for (uint64_t seed = 0; seed < 60; seed++) {
		Pair p(busy(seed));

		ASSERT_TRUE(mapped(p));
		Load load(p, 5);
		p.w.run_for(p.w.sched.rng.below(3 * ms));
		switch (seed % 6) {
		case 0: p.w.del("c0"); break;
		case 1: p.w.del("store.0"); break;
		case 2: p.w.set_link(p.b, false); break;
		case 3: p.w.remove_device(p.a); break;
		case 4: p.w.remove_device(p.b); break;
		default: p.w.set_stuck(p.b, true); break;
		}
		ASSERT_TRUE(load.end()) << seed;
		for (int err : load.errors)
			EXPECT_TRUE(err == KD_EPIPE || err == KD_EIO || err == 0) << err;
		ASSERT_TRUE(p.w.run_until([&] { return map_state(p.w, "m") == KDIRECT_MAP_DEAD; }))
			<< seed;
		EXPECT_FALSE(static_cast<bool>(open_map(p.w, "m")));
		ASSERT_EQ(del_map(p.w, "m"), 0);
		ASSERT_TRUE(run_until_unmapped(p.w, "m"));
		ASSERT_EQ(del_export(p.w, "mem"), 0);
		ASSERT_TRUE(run_until_unexported(p.w, "mem"));
	}
}

/* The peer is cut off: after the deadline its QPs are gone, and then the memory. */
TEST(MapFaults, ExportDeletedBehindABrokenLink)
{
	for (uint64_t seed = 0; seed < 10; seed++) {
		Pair p(busy(seed));

		ASSERT_TRUE(mapped(p));
		Load load(p, 3);
		p.w.run_for(p.w.sched.rng.below(1 * ms));
		p.w.set_link(p.a, false);
		ASSERT_EQ(del_export(p.w, "mem"), 0);
		uint64_t begin = p.w.now();
		ASSERT_TRUE(run_until_unexported(p.w, "mem"));
		EXPECT_LT(p.w.now() - begin, 10 * sec);
		EXPECT_EQ(p.w.regions.size(), 0u);
		ASSERT_TRUE(load.end());
	}
}

TEST(MapFaults, KilledUnderLoad)
{
	for (uint64_t seed = 0; seed < 60; seed++) {
		Pair p(busy(seed));

		ASSERT_TRUE(mapped(p));
		{
			Load load(p, 6);
			for (Task task : load.tasks) {
				p.w.run_for(p.w.sched.rng.below(1 * ms));
				p.w.signal(task, false); /* which a transfer does not mind */
				p.w.run_for(p.w.sched.rng.below(100 * us));
				p.w.signal(task, true);
			}
			ASSERT_TRUE(load.end());
			for (int err : load.errors)
				EXPECT_TRUE(err == KD_EINTR || err == 0) << err;
			MapFile file = open_map(p.w, "m");
			EXPECT_EQ(file.pwrite("hello", 0), 5);
			EXPECT_EQ(file.pread(5, 0), "hello");
			/* what is under way still uses the memory of the dead */
			ASSERT_EQ(del_map(p.w, "m"), 0);
			ASSERT_TRUE(run_until_unmapped(p.w, "m"));
		}
	}
}

/* What was only posted does not count as done. */
TEST(MapFaults, KilledBeforeAnythingIsDone)
{
	for (std::size_t len : {std::size_t{100}, std::size_t{20000}, std::size_t{2 * mib}}) {
		Pair p(PairOptions{.world = {.seed = len}});

		ASSERT_TRUE(mapped(p));
		std::string text(len, 'x');
		int64_t ret = 0;
		p.w.set_stuck(p.b, true);
		Task task = p.w.spawn("writer", [&] {
			MapFile file = open_map(p.w, "m");

			ret = file.pwrite(text, 0);
		});
		p.w.run_for(2 * ms);
		p.w.signal(task, true);
		ASSERT_TRUE(p.w.finish({task}));
		EXPECT_EQ(ret, -KD_EINTR) << len;
		p.w.set_stuck(p.b, false);
		ASSERT_EQ(del_map(p.w, "m"), 0);
		ASSERT_TRUE(run_until_unmapped(p.w, "m"));
	}
}

/* Each call fails once: an error for one request or the end of the channel, no more. */
TEST(MapFaults, EachCallFailsOnce)
{
	for (auto op = static_cast<int>(Op::RegionAlloc); op < static_cast<int>(Op::PartialPost);
	     op++)
		for (uint64_t nth = 1; nth < 4; nth++) {
			Pair p(nth);

			ASSERT_TRUE(p.up());
			p.w.fail_nth(static_cast<Op>(op), nth);
			kd_error error{};
			int err = add_export(p.w, "mem", "store", 5 * mib, false, &error);
			if (err) {
				EXPECT_EQ(op, static_cast<int>(Op::RegionAlloc));
				EXPECT_EQ(err, KD_ENOMEM);
				continue;
			}
			ASSERT_EQ(add_map(p.w, "m", "c0", "mem"), 0);
			if (!run_until_mapped(p.w, "m")) {
				EXPECT_TRUE(p.w.fault_fired());
				continue;
			}
			MapFile file = open_map(p.w, "m");
			std::string text = pattern(op, mib);
			for (int round = 0; round < 3; round++) {
				int64_t small = file.pwrite("hello", 0);
				EXPECT_TRUE(small == 5 || small == -KD_EIO) << small;
				int64_t large = file.pwrite(text, 4096);
				EXPECT_TRUE(large > 0 || large == -KD_EIO || large == -KD_ENOMEM)
					<< large;
			}
			EXPECT_EQ(file.pwrite(text, 4096), static_cast<int64_t>(text.size()));
			EXPECT_TRUE(file.pread(text.size(), 4096) == text);
		}
}

TEST(MapFaults, EachAllocationFailsOnce)
{
	for (uint64_t nth = 1; nth < 60; nth++) {
		Pair p(PairOptions{.world = {.seed = nth}, .device = {.max_mr_pages = 64}});

		ASSERT_TRUE(p.up());
		ASSERT_EQ(add_export(p.w, "mem", "store", mib), 0);
		p.w.fail_nth_any(nth);
		if (add_map(p.w, "m", "c0", "mem"))
			continue;
		bool live = run_until_mapped(p.w, "m");
		if (!live && map_state(p.w, "m") == KDIRECT_MAP_DEAD) {
			int err = del_map(p.w, "m"); /* one that was never live goes by itself */

			EXPECT_TRUE(!err || err == KD_ENOENT) << err;
		}
		if (live)
			continue;
		ASSERT_TRUE(p.w.fault_fired());
		ASSERT_TRUE(run_until_unmapped(p.w, "m"));
		if (p.w.state("c0") != KDIRECT_STATE_LIVE)
			continue;
		ASSERT_EQ(add_map(p.w, "m", "c0", "mem"), 0);
		EXPECT_TRUE(run_until_mapped(p.w, "m"));
	}
}

} // namespace
