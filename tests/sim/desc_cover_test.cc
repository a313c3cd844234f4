// SPDX-License-Identifier: GPL-2.0-only
// Open files of mappings, descriptors and rings where something is unusual: paths that
// neither the storms nor the faults come along.
#include <cstring>
#include <set>

#include "cover.h"
#include "mapped.h"
#include "ring.h"

using namespace sim;

namespace
{

PairOptions at_depth(uint32_t depth)
{
	return {.channel = [depth](kd_channel_params &c) { c.depth = depth; }};
}

/* --- open files --------------------------------------------------------------------------- */

TEST(DescCover, NoMemoryForAFile)
{
	Mapped p(1);
	int err = 0;

	p.w.fail_nth(Op::Alloc, 1);
	EXPECT_FALSE(static_cast<bool>(open_map(p.w, "m", true, &err)));
	EXPECT_EQ(err, KD_ENOMEM);
	struct kd_map_info info;
	ASSERT_TRUE(map_info(p.w, "m", info));
	EXPECT_EQ(info.opens, 1u);
	EXPECT_TRUE(static_cast<bool>(open_map(p.w, "m", true, &err)));
}

/* Who waits for somebody that submits, and is interrupted. */
TEST(DescCover, BuffersBehindASubmission)
{
	Mapped p(at_depth(2));
	Memory memory(p.w, 8192), in(p.w, 4096);
	int submitted = -1, also = -1, set = -1, del = -1;

	ASSERT_EQ(p.file.set_buffer(0, memory.data(), 4096), 0);
	for (uint32_t i = 0; i < 16; i++) {
		kdirect_desc desc = add_desc(8 * i, 1, i);

		std::memcpy(in.data() + i * sizeof(desc), &desc, sizeof(desc));
	}
	kdirect_submit batch{.descs = in.at(), .nr_descs = 16};
	p.w.set_stuck(p.b, true);
	Task submitter = p.w.spawn("submitter", [&] { submitted = p.file.submit(batch); });
	p.w.run_for(1 * ms);
	ASSERT_TRUE(p.w.running(submitter));
	Task setter = p.w.spawn("setter",
				[&] { set = p.file.set_buffer(1, memory.data() + 4096, 4096); });
	kdirect_submit other{.descs = in.at(), .nr_descs = 1};
	Task second = p.w.spawn("second", [&] { also = p.file.submit(other); });
	Task deleter = p.w.spawn("deleter", [&] { del = p.file.del_buffer(0); });
	p.w.run_for(1 * ms);
	EXPECT_TRUE(p.w.running(setter) && p.w.running(deleter) && p.w.running(second));
	p.w.signal(setter, false);
	p.w.signal(deleter, false);
	p.w.signal(second, false);
	ASSERT_TRUE(p.w.finish({setter, deleter, second}));
	EXPECT_EQ(set, KD_EINTR);
	EXPECT_EQ(del, KD_EINTR);
	EXPECT_EQ(also, KD_EINTR);
	EXPECT_EQ(other.submitted, 0u);
	EXPECT_EQ(p.w.fixed.size(), 1u);
	p.w.set_stuck(p.b, false);
	ASSERT_TRUE(p.w.finish({submitter}));
	EXPECT_EQ(submitted, 0);
	EXPECT_EQ(p.file.del_buffer(1), KD_ENOENT);
	EXPECT_EQ(p.file.del_buffer(0), 0);
}

/* A buffer that comes when its channel goes. */
TEST(DescCover, ABufferOfAChannelThatEnds)
{
	unsigned int late = 0;

	for (uint64_t seed = 0; seed < 50; seed++) {
		Mapped p(seed);
		Memory memory(p.w, 4096);
		int err = 0;

		disturb(p.w);
		Task task = p.w.spawn("setter",
				      [&] { err = p.file.set_buffer(0, memory.data(), 4096); });
		/* the mapping was looked at */
		p.w.run_until([&] {
			Fiber *fiber = p.w.sched.find(task);

			return !fiber || !std::strcmp(fiber->last_calls[0], "kd_fixed_pin");
		});
		p.w.sched.preempt_percent = 0;
		p.w.remove_device(p.a);
		ASSERT_TRUE(p.w.finish({task}));
		EXPECT_TRUE(!err || err == KD_EPIPE) << err;
		late += err == KD_EPIPE;
		EXPECT_EQ(p.w.fixed.size(), err ? 0u : 1u);
		p.file.close();
		EXPECT_TRUE(p.w.run_until([&] { return p.w.fixed.size() == 0; }));
	}
	EXPECT_GT(late, 0u);
}

/* --- descriptors -------------------------------------------------------------------------- */

TEST(DescCover, EventsOnAPollQueue)
{
	Mapped p({.channel = [](kd_channel_params &c) {
		c.queues = 0;
		c.poll_queues = 1;
	}});
	Memory memory(p.w, 4096);

	memory.put(0, "hello");
	for (int i = 0; i < 20; i++) {
		auto done = p.file.run({write_desc(memory.at(), 5, 8 * i), add_desc(mib, 1)});

		EXPECT_EQ(done[0].result + done[1].result, 5 + 8);
		EXPECT_EQ(p.bytes().substr(8 * i, 5), "hello");
	}
}

/* More than a chain of short WRITEs, one of which cannot be read. */
TEST(DescCover, ShortWrites)
{
	Mapped p(at_depth(64));
	Memory memory(p.w, 4096);
	std::string text = pattern(1, 4096);
	std::vector<kdirect_desc> batch;

	memory.put(0, text);
	for (uint32_t i = 0; i < 40; i++)
		batch.push_back(write_desc(memory.at(i * 100), 100, i * 100, i));
	batch[33].addr = 64;
	/* often enough that none of a chain's is read in two attempts */
	for (int i = 0; i < 100; i++)
		for (const kdirect_completion &c : p.file.run(batch))
			EXPECT_EQ(c.result, c.user_data == 33 ? -KD_EFAULT : 100);
	EXPECT_TRUE(p.bytes().substr(0, 3300) == text.substr(0, 3300));
	EXPECT_EQ(p.bytes().substr(3300, 100), std::string(100, '\0'));
	EXPECT_TRUE(p.bytes().substr(3400, 600) == text.substr(3400, 600));
}

/* The mapping goes, or the caller is killed, while a WRITE waits for a slot. */
TEST(DescCover, ShortWritesWithoutASlot)
{
	for (bool killed : {true, false}) {
		Mapped p(at_depth(1));
		Memory memory(p.w, 4096), in(p.w, 4096), out(p.w, 4096);
		int err = -1;

		for (uint32_t i = 0; i < 8; i++) {
			kdirect_desc desc = write_desc(memory.at(), 8, 8 * i, i);

			std::memcpy(in.data() + i * sizeof(desc), &desc, sizeof(desc));
		}
		kdirect_submit batch{.descs = in.at(), .nr_descs = 8};
		p.w.set_stuck(p.b, true);
		Task task = p.w.spawn("writer", [&] { err = p.file.submit(batch); });
		p.w.run_for(1 * ms);
		ASSERT_TRUE(p.w.running(task));
		if (killed)
			p.w.signal(task, true);
		else
			EXPECT_EQ(del_map(p.w, "m"), 0);
		ASSERT_TRUE(p.w.finish({task}));
		EXPECT_EQ(err, 0);
		EXPECT_GE(batch.submitted, 2u);
		EXPECT_EQ(batch.submitted < 8, killed) << "who is killed submits no more";
		p.w.set_stuck(p.b, false);
		kdirect_submit reap{.completions = out.at(),
				    .nr_completions = batch.submitted,
				    .min_completions = batch.submitted};
		EXPECT_EQ(p.file.submit(reap), 0);
		ASSERT_EQ(reap.completed, batch.submitted);
		unsigned int refused = 0;
		for (uint32_t i = 0; i < reap.completed; i++) {
			kdirect_completion c;

			std::memcpy(&c, out.data() + i * sizeof(c), sizeof(c));
			refused += c.result == (killed ? -KD_EINTR : -KD_ENODEV);
			EXPECT_TRUE(c.result == 8 || c.result < 0);
		}
		EXPECT_GE(refused, 1u);
	}
}

/* --- rings -------------------------------------------------------------------------------- */

/* Who waits for another that submits, and is interrupted. */
TEST(DescCover, EnteringBehindASubmission)
{
	Mapped p(at_depth(2));
	Ring ring = p.file.make_ring({.sq_entries = 32, .cq_entries = 32});
	kdirect_ring_enter first{.to_submit = 16}, second{.to_submit = 1};
	int err[2] = {-1, -1};

	ASSERT_TRUE(static_cast<bool>(ring));
	for (uint32_t i = 0; i < 17; i++)
		ASSERT_TRUE(ring.push(add_desc(8 * i, 1, i)));
	p.w.set_stuck(p.b, true);
	Task a = p.w.spawn("first", [&] { err[0] = ring.enter(first); });
	p.w.run_for(1 * ms);
	Task b = p.w.spawn("second", [&] { err[1] = ring.enter(second); });
	p.w.run_for(1 * ms);
	ASSERT_TRUE(p.w.running(a) && p.w.running(b));
	p.w.signal(b, false);
	ASSERT_TRUE(p.w.finish({b}));
	EXPECT_EQ(err[1], KD_EINTR);
	EXPECT_EQ(second.submitted, 0u);
	p.w.set_stuck(p.b, false);
	ASSERT_TRUE(p.w.finish({a}));
	EXPECT_EQ(err[0], 0);
	EXPECT_EQ(first.submitted, 16u);
	EXPECT_EQ(ring.sq_head(), 16u);
}

TEST(DescCover, NoRingOfADeadMapping)
{
	Mapped p(1);
	int err = 0;

	ASSERT_EQ(del_map(p.w, "m"), 0);
	ASSERT_TRUE(run_until_unmapped(p.w, "m"));
	EXPECT_FALSE(static_cast<bool>(p.file.make_ring({.sq_entries = 8, .cq_entries = 8}, &err)));
	EXPECT_EQ(err, KD_ENODEV);
}

/* A ring and a wait for completions beside it: one of them comes too late. */
TEST(DescCover, ARingWhileSomebodyReaps)
{
	unsigned int rings = 0, waits = 0;

	for (uint64_t seed = 0; seed < 300; seed++) {
		Mapped p(seed);
		Memory out(p.w, 4096);
		int reaped = -1, made = -1;
		Ring ring;

		disturb(p.w);
		Task maker = p.w.spawn("maker", [&] {
			ring = p.file.make_ring({.sq_entries = 8, .cq_entries = 8}, &made);
		});
		Task reaper = p.w.spawn("reaper", [&] {
			kdirect_submit batch{.completions = out.at(),
					     .nr_completions = 1,
					     .min_completions = 1,
					     .timeout_ns = 1 * sec};
			reaped = p.file.submit(batch);
		});
		ASSERT_TRUE(p.w.finish({maker, reaper}));
		EXPECT_EQ(made, ring ? 0 : KD_EBUSY);
		EXPECT_EQ(reaped, ring ? KD_EBUSY : KD_ETIMEDOUT);
		rings += static_cast<bool>(ring);
		waits += !ring;
	}
	EXPECT_GT(rings, 0u);
	EXPECT_GT(waits, 0u);
}

/*
 * A thread that has used up all requests sleeps until one of them has room in the ring:
 * its completion wakes it, and nobody enters.
 */
TEST(DescCover, AThreadWithoutRequestsIsWoken)
{
	Mapped p(at_depth(64));
	kdirect_ring_setup setup{.sq_entries = 512,
				 .cq_entries = 1,
				 .flags = KDIRECT_RING_THREAD,
				 .thread_cpu = -1,
				 .idle_ns = 50 * us};
	Ring ring = p.file.make_ring(setup);
	const uint32_t first = KDIRECT_DESC_ENTRIES - 8;
	kdirect_completion c;

	ASSERT_TRUE(static_cast<bool>(ring));
	for (uint32_t i = 0; i < first; i++)
		ASSERT_TRUE(ring.push(add_desc(0, 1, i)));
	ring.nudge();
	p.w.run_for(20 * ms);
	EXPECT_EQ(ring.sq_head(), first);
	EXPECT_TRUE(ring.state() & KDIRECT_RING_CQ_BEHIND);
	p.w.set_stuck(p.b, true);
	for (uint32_t i = first; i < 400; i++)
		ASSERT_TRUE(ring.push(add_desc(0, 1, i)));
	ring.nudge();
	p.w.run_for(20 * ms);
	/* one is in the ring */
	EXPECT_EQ(ring.sq_head(), KDIRECT_DESC_ENTRIES + 1u);
	ASSERT_TRUE(ring.pop(c));
	p.w.set_stuck(p.b, false);
	p.w.run_for(20 * ms);
	EXPECT_EQ(ring.sq_head(), KDIRECT_DESC_ENTRIES + 2u);
	std::set<uint64_t> seen{c.user_data};
	for (int i = 0; i < 100000 && seen.size() < 400; i++) {
		while (ring.pop(c)) {
			EXPECT_EQ(c.result, 8);
			EXPECT_TRUE(seen.insert(c.user_data).second);
		}
		ASSERT_EQ(ring.enter(0), 0);
		p.w.run_for(1 * us);
	}
	EXPECT_EQ(seen.size(), 400u);
}

} // namespace
