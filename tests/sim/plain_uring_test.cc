// SPDX-License-Identifier: GPL-2.0-only
// Commands of io_uring to raw channels: each ends exactly once, to io_uring.
#include "plain_pair.h"
#include "uring.h"

#include <algorithm>

using namespace sim;

namespace
{

Uring ring_of(Plain &p, PlainFile &file, Memory &memory, bool polls = false)
{
	return {p.w,
		file.hold(),
		{.polls = polls, .buffer = memory.at(), .buffer_len = memory.size()}};
}

kdirect_desc random_work(uint8_t opcode, Memory &memory, uint32_t len, Rng &rng, bool &registered)
{
	registered = rng.chance(30);
	return !registered && rng.chance(30) ? work_fixed(opcode, 0, 0, len)
					     : work(opcode, memory.at(100), len);
}

TEST(Plain, CommandsSendAndReceive)
{
	for (uint64_t seed = 0; seed < 16; seed++) {
		SCOPED_TRACE(testing::Message() << "seed " << seed);
		Plain p({.seed = seed}, seed % 2, 32, {.max_sge = seed % 4 < 2 ? 32U : 2U});
		Rng rng(seed);
		ASSERT_TRUE(p.up());
		ASSERT_EQ(p.near.set_buffer(0, p.near_memory.data() + 100, mib), 0);
		ASSERT_EQ(p.far.set_buffer(0, p.far_memory.data() + 100, mib), 0);
		Uring ring = ring_of(p, p.near, p.near_memory, seed % 2 && seed % 3);
		Uring other = ring_of(p, p.far, p.far_memory);
		for (uint32_t len : {12u, 4096u, 20000u, 65536u}) {
			bool registered;
			p.near_memory.put(100, pattern(seed + len, len));
			kdirect_desc recv =
				random_work(KDIRECT_OP_RECV, p.far_memory, len, rng, registered);
			Command &got = other.submit(recv, registered);
			kdirect_desc send =
				random_work(KDIRECT_OP_SEND, p.near_memory, len, rng, registered);
			EXPECT_EQ(ring.run(send, registered).result, static_cast<int>(len));
			ASSERT_TRUE(other.finish());
			EXPECT_EQ(got.result.result, static_cast<int>(len));
			EXPECT_EQ(got.result.extra, 0u);
			EXPECT_TRUE(p.far_memory.text(100, len) == p.near_memory.text(100, len));
		}
		kdirect_desc send = work(KDIRECT_OP_SEND_IMM, p.near_memory.at(), 5);
		send.imm = 0x87654321;
		Command &got = other.submit(work(KDIRECT_OP_RECV, p.far_memory.at(), 5));
		EXPECT_EQ(ring.run(send).result, 5);
		ASSERT_TRUE(other.finish());
		EXPECT_EQ(got.result.extra, uint64_t{KDIRECT_COMPLETION_IMM} << 32 | 0x87654321);
	}
}

/* Commands take the slots of others, and wait for theirs. */
TEST(Plain, CommandsShareTheDepth)
{
	for (uint64_t seed = 0; seed < 8; seed++) {
		SCOPED_TRACE(testing::Message() << "seed " << seed);
		Plain p({.seed = seed}, 0, 4);
		ASSERT_TRUE(p.up());
		Uring ring = ring_of(p, p.near, p.near_memory);
		ASSERT_EQ(p.near.post({work(KDIRECT_OP_RECV, p.near_memory.at(), 100)}), 0);
		for (unsigned int i = 1; i < 9; i++) {
			ring.submit(work(KDIRECT_OP_RECV, p.near_memory.at(place(i)), 100));
			p.w.run_for(20 * us);
		}
		p.w.run_for(5 * ms);
		EXPECT_EQ(p.near.post({work(KDIRECT_OP_RECV, p.near_memory.at(), 100)}), KD_EAGAIN);
		/* those that wait are taken back, and others are not */
		for (const auto &command : ring.commands)
			ring.cancel(*command);
		p.w.run_for(5 * ms);
		for (unsigned int i = 0; i < 4; i++)
			EXPECT_EQ(p.far.one(work(KDIRECT_OP_SEND, p.far_memory.at(), 8)).result, 8);
		ASSERT_TRUE(ring.finish());
		auto ended = [&](int result) {
			return std::count_if(
				ring.commands.begin(), ring.commands.end(),
				[&](const auto &c) { return c->result.result == result; });
		};
		EXPECT_EQ(ended(8), 3);
		EXPECT_EQ(ended(-KD_EINTR), 5);
		EXPECT_EQ(p.near.await(1).size(), 1u);
	}
}

/* And have what others, that were reaped, had. */
TEST(Plain, CommandsFollowOthers)
{
	for (uint64_t seed = 0; seed < 4; seed++) {
		SCOPED_TRACE(testing::Message() << "seed " << seed);
		Plain p({.seed = seed}, 0, 1);
		ASSERT_TRUE(p.up());
		Uring ring = ring_of(p, p.near, p.near_memory);
		ASSERT_EQ(p.near.post({work(KDIRECT_OP_RECV, p.near_memory.at(), 100)}), 0);
		ring.submit(work(KDIRECT_OP_RECV, p.near_memory.at(place(1)), 100));
		p.w.run_for(1 * ms);
		EXPECT_EQ(p.far.one(work(KDIRECT_OP_SEND, p.far_memory.at(), 7)).result, 7);
		EXPECT_EQ(p.near.await(1).size(), 1u);
		EXPECT_EQ(p.far.one(work(KDIRECT_OP_SEND, p.far_memory.at(), 8)).result, 8);
		ASSERT_TRUE(ring.finish());
		EXPECT_EQ(ring.commands[0]->result.result, 8);
	}
}

TEST(Plain, CommandsThatAreWrong)
{
	Plain p({.seed = 4});
	ASSERT_TRUE(p.up());
	Uring ring = ring_of(p, p.near, p.near_memory);
	Uring narrow(p.w, p.near.hold(), {.wide = false}),
		polled(p.w, p.near.hold(), {.polls = true});
	kdirect_desc send = work(KDIRECT_OP_SEND, p.near_memory.at(), 8);
	EXPECT_EQ(ring.run(work(KDIRECT_OP_SEND, 16, 8)).result, -KD_EFAULT);
	EXPECT_EQ(ring.run(work(KDIRECT_OP_RECV, 16, 8), true).result, -KD_EFAULT);
	EXPECT_EQ(ring.run(work(KDIRECT_OP_SEND, 0, 8, 3)).result, -KD_EINVAL);
	EXPECT_EQ(ring.run(work_fixed(KDIRECT_OP_SEND, 1, 0, 8)).result, -KD_ENOENT);
	EXPECT_EQ(polled.run(send).result, -KD_EOPNOTSUPP);
	ASSERT_EQ(p.far.post({work(KDIRECT_OP_RECV, p.far_memory.at(), 8)}), 0);
	EXPECT_EQ(narrow.run(send).result, 8);
}

/* Its process cannot end before its commands: so the channel does. */
TEST(Plain, CommandsOfWhoEnds)
{
	for (uint64_t seed = 0; seed < 6; seed++) {
		SCOPED_TRACE(testing::Message() << "seed " << seed);
		Plain p({.seed = seed}, seed % 2);
		ASSERT_TRUE(p.up());
		Uring ring = ring_of(p, p.near, p.near_memory);
		for (unsigned int i = 0; i < 3; i++)
			ring.submit(work(KDIRECT_OP_RECV, p.near_memory.at(place(i)), 30000));
		p.w.run_for(5 * sec);
		EXPECT_EQ(p.w.state("r0"), KDIRECT_STATE_LIVE);
		for (const auto &command : ring.commands)
			command->orphan = true;
		if (seed % 3 == 0)
			p.near.close(); /* it is not the last who has it */
		ASSERT_TRUE(ring.finish(10 * sec));
		for (const auto &command : ring.commands)
			EXPECT_EQ(command->result.result, -KD_ECONNRESET);
		EXPECT_TRUE(p.w.run_until([&] { return p.far.poll() & KD_POLL_HUP; }));
	}
}

/* Nor does it wait for one that will not connect it any more. */
TEST(Plain, CommandsOfWhoEndsBeforeConnecting)
{
	Plain p({.seed = 5});
	ASSERT_TRUE(p.begin());
	Uring ring = ring_of(p, p.near, p.near_memory);
	ring.submit(work(KDIRECT_OP_RECV, p.near_memory.at(), 8));
	p.w.run_for(500 * ms);
	EXPECT_EQ(p.w.state("r0"), KDIRECT_STATE_CONNECTING);
	ring.commands[0]->orphan = true;
	ASSERT_TRUE(ring.finish(2 * sec));
	EXPECT_LT(ring.commands[0]->result.result, 0);
}

TEST(Plain, CommandsEndWithTheChannel)
{
	for (uint64_t seed = 0; seed < 20; seed++) {
		SCOPED_TRACE(testing::Message() << "seed " << seed);
		Plain p({.seed = seed}, seed % 2, 8, {.max_sge = seed % 4 < 2 ? 32U : 2U});
		Rng rng(seed);
		ASSERT_TRUE(p.up());
		Uring ring = ring_of(p, p.near, p.near_memory, seed % 2 && seed % 3);
		for (unsigned int i = 0; i < 40; i++) {
			uint8_t opcode = rng.chance(50) ? KDIRECT_OP_RECV : KDIRECT_OP_SEND;
			ring.submit(work(opcode, p.near_memory.at(place(i)), 60000));
			if (rng.chance(30))
				p.w.run_for(rng.below(30 * us));
		}
		switch (seed % 4) {
		case 0: p.w.del("r0"); break;
		case 1: p.far.close(); break;
		case 2: p.w.set_link(p.a, false); break;
		default: p.w.set_stuck(p.a, true); p.w.del("r0");
		}
		p.w.run_for(1 * sec);
		p.w.del("r0");
		ASSERT_TRUE(ring.finish(120 * sec));
		p.w.set_stuck(p.a, false);
		for (const auto &command : ring.commands)
			EXPECT_LT(command->result.result, 0);
	}
}

} // namespace
