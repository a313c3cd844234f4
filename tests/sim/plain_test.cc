// SPDX-License-Identifier: GPL-2.0-only
// Raw channels on the simulated fabric, with a core at both ends.
#include "plain_pair.h"

#include "../../uapi/kdirect_netlink.h"

using namespace sim;

namespace
{

constexpr uint16_t flushed = 5;

TEST(Plain, SendsOfEachLength)
{
	for (uint64_t seed = 0; seed < 6; seed++) {
		Plain p({.seed = seed}, seed % 2);
		ASSERT_TRUE(p.up()) << "seed " << seed;
		ASSERT_EQ(p.near.set_buffer(3, p.near_memory.data(), mib), 0);
		ASSERT_EQ(p.far.set_buffer(4, p.far_memory.data(), mib), 0);
		for (uint32_t len : {0u, 1u, 100u, 16384u, 16385u, 65536u})
			for (int way = 0; way < 4; way++) {
				std::string text = pattern(len, len);
				p.near_memory.put(5, text);
				uint64_t into = p.far_memory.at(9);
				ASSERT_EQ(p.far.post({way & 1 ? work(KDIRECT_OP_RECV, into, len, 7)
							      : work_fixed(KDIRECT_OP_RECV, 4, 9,
									   len, 7)}),
					  0);
				kdirect_completion sent = p.near.one(
					way & 2 ? work(KDIRECT_OP_SEND, p.near_memory.at(5), len)
						: work_fixed(KDIRECT_OP_SEND, 3, 5, len));
				ASSERT_EQ(sent.result, static_cast<int32_t>(len));
				auto got = p.far.await(1);
				ASSERT_EQ(got.size(), 1u);
				EXPECT_EQ(got[0].result, static_cast<int32_t>(len));
				EXPECT_EQ(got[0].user_data, 7u);
				EXPECT_TRUE(p.far_memory.text(9, len) == text);
			}
	}
}

TEST(Plain, DepthBoundsWhatIsTaken)
{
	Plain p({.seed = 3}, 0, 4);
	ASSERT_TRUE(p.up());
	std::vector<kdirect_desc> sends, recvs;
	for (unsigned int i = 0; i < 4; i++) {
		sends.push_back(work(KDIRECT_OP_SEND, p.near_memory.at(), 8, i));
		recvs.push_back(work(KDIRECT_OP_RECV, p.far_memory.at(place(i)), 8, i));
	}
	EXPECT_EQ(p.far.post(recvs), 0);
	EXPECT_EQ(p.far.post({recvs[0]}), KD_EAGAIN);
	// the other side of the same QP has room
	EXPECT_EQ(p.far.one(work(KDIRECT_OP_WRITE, p.far_memory.at(), 0)).status, 10);
}

TEST(Plain, RemoteMemory)
{
	for (uint64_t seed = 0; seed < 6; seed++) {
		Plain p({.seed = seed});
		kdirect_share key;
		ASSERT_TRUE(p.up());
		ASSERT_EQ(p.far.set_buffer(0, p.far_memory.data(), 65536), 0);
		EXPECT_EQ(p.far.share(1, KDIRECT_ACCESS_READ, key), KD_ENOENT);
		ASSERT_EQ(p.share(p.far, KDIRECT_ACCESS_FLAGS, key), 0);
		p.near_memory.put(0, pattern(seed, 30000));
		for (uint32_t len : {8u, 30000u}) {
			EXPECT_EQ(p.near.one(remote(work(KDIRECT_OP_WRITE, p.near_memory.at(), len),
						    key.addr + 3, key.rkey))
					  .result,
				  static_cast<int32_t>(len));
			EXPECT_TRUE(p.far_memory.text(3, len) == p.near_memory.text(0, len));
			EXPECT_EQ(
				p.near.one(remote(work(KDIRECT_OP_READ, p.near_memory.at(mib), len),
						  key.addr + 3, key.rkey))
					.result,
				static_cast<int32_t>(len));
			EXPECT_TRUE(p.near_memory.text(mib, len) == p.near_memory.text(0, len));
		}
		uint64_t number = 40;
		std::memcpy(p.far_memory.data() + 64, &number, 8);
		kdirect_desc add = work(KDIRECT_OP_FETCH_ADD, 0, 8);
		add.operand = 2;
		EXPECT_EQ(p.near.one(remote(add, key.addr + 64, key.rkey)).old, 40u);
		kdirect_desc swap = add;
		swap.opcode = KDIRECT_OP_CMP_SWAP;
		swap.compare = 42;
		EXPECT_EQ(p.near.one(remote(swap, key.addr + 64, key.rkey)).old, 42u);

		ASSERT_EQ(p.far.post({work(KDIRECT_OP_RECV, p.far_memory.at(mib), 10)}), 0);
		kdirect_desc write = remote(work(KDIRECT_OP_WRITE_IMM, p.near_memory.at(), 77),
					    key.addr, key.rkey);
		write.imm = 0xabcd;
		EXPECT_EQ(p.near.one(write).result, 77);
		auto got = p.far.await(1);
		ASSERT_EQ(got.size(), 1u);
		EXPECT_EQ(got[0].flags, KDIRECT_COMPLETION_IMM | KDIRECT_COMPLETION_WRITE);
		EXPECT_EQ(got[0].data, 0xabcdu);
		EXPECT_EQ(got[0].result, 77);
	}
}

TEST(Plain, KeysEnd)
{
	enum { by_call, by_descriptor, by_deletion, by_replacement, by_peer, ways };
	for (int way = 0; way < ways; way++) {
		Plain p({.seed = static_cast<uint64_t>(way)});
		kdirect_share key, again;
		ASSERT_TRUE(p.up());
		ASSERT_EQ(p.far.set_buffer(0, p.far_memory.data(), 65536), 0);
		ASSERT_EQ(p.share(p.far, KDIRECT_ACCESS_READ, key), 0);
		EXPECT_EQ(p.far.share(0, KDIRECT_ACCESS_READ, again), KD_EBUSY);
		kdirect_desc inv{};
		inv.opcode = KDIRECT_OP_LOCAL_INV;
		inv.rkey = key.rkey;
		switch (way) {
		case by_call:
			EXPECT_EQ(p.far.share(0, 0, again), 0);
			EXPECT_EQ(p.far.share(0, 0, again), KD_ENOENT);
			break;
		case by_descriptor:
			EXPECT_EQ(p.far.one(inv).result, 0);
			EXPECT_EQ(p.far.one(inv).result, -KD_ENOENT);
			break;
		case by_deletion: EXPECT_EQ(p.far.del_buffer(0), 0); break;
		case by_replacement:
			EXPECT_EQ(p.far.set_buffer(0, p.far_memory.data(), 8192), 0);
			break;
		default: {
			kdirect_desc send = work(KDIRECT_OP_SEND_INV, p.near_memory.at(), 4);
			ASSERT_EQ(p.far.post({work(KDIRECT_OP_RECV, p.far_memory.at(mib), 4)}), 0);
			send.rkey = key.rkey;
			EXPECT_EQ(p.near.one(send).result, 4);
			auto got = p.far.await(1);
			ASSERT_EQ(got.size(), 1u);
			EXPECT_EQ(got[0].flags, KDIRECT_COMPLETION_INV);
			EXPECT_EQ(got[0].data, key.rkey);
		}
		}
		if (way != by_deletion) {
			ASSERT_EQ(p.share(p.far, KDIRECT_ACCESS_READ, again), 0) << way;
			EXPECT_NE(again.rkey, key.rkey);
		}
		kdirect_completion end = p.near.one(
			remote(work(KDIRECT_OP_READ, p.near_memory.at(), 8), key.addr, key.rkey));
		EXPECT_LT(end.result, 0) << way;
		EXPECT_EQ(end.status, 10) << way;
		EXPECT_TRUE(p.w.run_until([&] { return p.near.poll() & KD_POLL_HUP; }));
	}
}

// The device said so, whatever the peer named.
TEST(Plain, ForeignKeyIsAFault)
{
	Plain p({.seed = 1});
	ASSERT_TRUE(p.up());
	ASSERT_EQ(p.far.post({work(KDIRECT_OP_RECV, p.far_memory.at(), 8)}), 0);
	kdirect_desc send = work(KDIRECT_OP_SEND_INV, p.near_memory.at(), 4);
	send.rkey = 0x4711;
	EXPECT_LT(p.near.one(send).result, 0);
	EXPECT_TRUE(p.w.run_until([&] { return p.w.state("raw.0") < 0; }));
}

TEST(Plain, NoReceive)
{
	Plain p({.seed = 1});
	ASSERT_TRUE(p.up(0));
	kdirect_completion end = p.near.one(work(KDIRECT_OP_SEND, p.near_memory.at(), 4));
	EXPECT_EQ(end.status, 13);
	EXPECT_TRUE(p.w.run_until([&] { return p.near.poll() & KD_POLL_HUP; }));
}

TEST(Plain, FlushesInOrder)
{
	for (uint64_t seed = 0; seed < 10; seed++) {
		Plain p({.seed = seed});
		ASSERT_TRUE(p.up());
		std::vector<kdirect_desc> recvs;
		for (unsigned int i = 0; i < 20; i++)
			recvs.push_back(work(KDIRECT_OP_RECV, p.far_memory.at(place(i)), 60000, i));
		ASSERT_EQ(p.far.post(recvs), 0);
		if (seed % 3 == 2)
			p.w.set_stuck(p.b, true);
		if (seed % 3 == 0)
			p.near.close();
		else
			p.w.del("raw.0");
		auto got = p.far.await(20);
		ASSERT_EQ(got.size(), 20u) << "seed " << seed;
		for (unsigned int i = 0; i < 20; i++) {
			EXPECT_EQ(got[i].user_data, i);
			EXPECT_EQ(got[i].result, -KD_ECONNRESET);
			EXPECT_EQ(got[i].status, flushed);
		}
		EXPECT_TRUE(p.far.poll() & KD_POLL_HUP);
		p.w.set_stuck(p.b, false);
	}
}

TEST(Plain, OneOwner)
{
	Plain p({.seed = 2});
	int err = 0;
	ASSERT_TRUE(p.up());
	EXPECT_FALSE(open_plain(p.w, "r0", &err));
	EXPECT_EQ(err, KD_EBUSY);
	p.far.close();
	EXPECT_TRUE(p.w.run_until([&] { return p.w.state("r0") == KDIRECT_STATE_DEAD; }));
	EXPECT_TRUE(p.w.run_until_gone("raw.0"));
	p.near.close();
	EXPECT_FALSE(open_plain(p.w, "r0", &err));
	EXPECT_EQ(err, KD_EPIPE);
	p.w.del("r0");
	EXPECT_TRUE(p.w.run_until_gone("r0"));
}

TEST(Plain, Held)
{
	{
		Plain p({.seed = 4});
		ASSERT_TRUE(p.begin());
		EXPECT_TRUE(p.near.info().flags & KDIRECT_RAW_HELD);
		EXPECT_EQ(p.near.one(work(KDIRECT_OP_SEND, p.near_memory.at(), 4)).result,
			  -KD_ENOTCONN);
		ASSERT_EQ(p.near.post({work(KDIRECT_OP_RECV, p.near_memory.at(), 4)}), 0);
		EXPECT_TRUE(p.w.run_until([&] { return p.near.poll() & KD_POLL_IN; }));
		EXPECT_EQ(p.near.info().error, uint32_t{KD_ETIMEDOUT});
		EXPECT_EQ(p.near.connect(raw_terms()), KD_EBUSY);
		EXPECT_TRUE(p.w.run_until_gone("r0"));
	}
	{
		Plain p({.seed = 5});
		ASSERT_TRUE(p.begin() && p.requested());
		EXPECT_EQ(std::string(reinterpret_cast<char *>(p.far.info().data)), "hello");
		EXPECT_EQ(p.far.reject("no"), 0);
		EXPECT_TRUE(p.w.run_until_gone("r0"));
		EXPECT_EQ(p.near.info().error, uint32_t{KD_ECONNREFUSED});
		EXPECT_EQ(std::string(reinterpret_cast<char *>(p.near.info().data)), "no");
	}
	{
		Plain p({.seed = 6});
		ASSERT_TRUE(p.begin() && p.requested());
		p.far.close();
		EXPECT_TRUE(p.w.run_until_gone("r0"));
		EXPECT_TRUE(p.w.run_until_gone("raw.0"));
	}
}

/* Both ends send, receive and share until they are told an error; each descriptor that was
 * taken has one completion.
 */
void keep_on(Plain &p, PlainFile &file, Memory &memory, Rng &rng)
{
	uint64_t posted = 0, done = 0;
	bool ended = false;
	(void)file.set_buffer(0, memory.data() + 2 * mib, mib);
	while (!ended) {
		uint8_t op = rng.chance(50) ? KDIRECT_OP_RECV : KDIRECT_OP_SEND;
		uint32_t len = op == KDIRECT_OP_RECV || rng.chance(50) ? 30000 : 100;
		kdirect_share key;
		kdirect_desc desc =
			rng.chance(50) ? work(op, memory.at(place(uint32_t(rng.below(20)))), len)
				       : work_fixed(op, 0, rng.below(1000000), len);
		int err = file.post({desc});
		posted += !err;
		ended = err && err != KD_EAGAIN;
		if (rng.chance(20))
			(void)file.share(0, rng.chance(50) ? KDIRECT_ACCESS_READ : 0, key);
		if (rng.chance(10))
			(void)file.set_buffer(0, memory.data() + 2 * mib, mib);
		for (const auto &c : file.await(1, 1 * ms)) {
			done++;
			ended |= c.result == -KD_EPIPE || c.result == -KD_ENODEV ||
				 c.status == flushed;
		}
	}
	while (done < posted) {
		std::size_t more = file.await(1).size();
		if (!more)
			break;
		done += more;
	}
	EXPECT_EQ(done, posted);
	EXPECT_TRUE(p.w.run_until([&] { return file.poll() & KD_POLL_HUP; }));
}

TEST(Plain, EndsAtAnyMoment)
{
	for (uint64_t seed = 0; seed < 60; seed++) {
		SCOPED_TRACE(testing::Message() << "seed " << seed);
		/* Every other device holds less than they ask for. */
		Plain p({.seed = seed}, seed % 5 == 0, 32, {.max_sge = seed % 2 ? 32U : 3U});
		Rng rng(seed + 1), near_rng(seed + 2), far_rng(seed + 3);
		ASSERT_TRUE(p.up());
		std::vector<Task> tasks = {
			p.w.spawn("near", [&] { keep_on(p, p.near, p.near_memory, near_rng); }),
			p.w.spawn("far", [&] { keep_on(p, p.far, p.far_memory, far_rng); })};
		p.w.run_for(rng.below(3 * ms));
		EXPECT_EQ(p.near.info().error, 0u) << (p.w.log.empty() ? "" : p.w.log.back());
		EXPECT_EQ(p.far.info().error, 0u) << (p.w.log.empty() ? "" : p.w.log.back());
		switch (seed % 4) {
		case 0: EXPECT_EQ(p.w.del("r0"), 0); break;
		case 1: EXPECT_EQ(p.w.del("raw.0"), 0); break;
		case 2: p.w.set_link(p.a, false); break;
		default: p.w.set_stuck(p.b, true); EXPECT_EQ(p.w.del("raw.0"), 0);
		}
		p.w.run_for(1 * sec);
		p.w.del("r0");
		p.w.del("raw.0");
		EXPECT_TRUE(p.w.finish(tasks, 120 * sec));
		p.w.set_stuck(p.b, false);
		p.near.close();
		p.far.close();
		if (HasFatalFailure())
			return;
	}
}

/* The nth call that can fail does, for every n. */
TEST(Plain, EveryFallibleCall)
{
	uint64_t nth = 1;

	for (bool more = true; more; nth++) {
		SCOPED_TRACE(testing::Message() << "call " << nth);
		Plain p({.seed = nth}, 0, 2);
		p.w.fail_nth_any(nth);
		if (p.up()) {
			kdirect_share key{};
			std::vector<Task> tasks = {p.w.spawn("peer", [&] {
				(void)p.far.set_buffer(0, p.far_memory.data(), 65536);
				(void)p.far.post(
					{work_fixed(KDIRECT_OP_RECV, 0, 0, 100),
					 work(KDIRECT_OP_RECV, p.far_memory.at(mib), 100)});
				(void)p.far.share(0, KDIRECT_ACCESS_WRITE, key);
				(void)p.far.await(2, 1 * sec);
				(void)p.far.share(0, 0, key);
			})};
			(void)p.near.set_buffer(0, p.near_memory.data(), 65536);
			(void)p.near.post({work(KDIRECT_OP_SEND, p.near_memory.at(), 20),
					   work_fixed(KDIRECT_OP_SEND, 0, 0, 20)});
			(void)p.near.await(2, 1 * sec);
			(void)p.near.one(work(KDIRECT_OP_RECV, p.near_memory.at(), 100000));
			p.w.del("r0");
			p.w.del("raw.0");
			EXPECT_TRUE(p.w.finish(tasks, 60 * sec));
		}
		more = p.w.fault_fired();
		p.near.close();
		p.far.close();
		if (HasFatalFailure())
			return;
	}
	EXPECT_GT(nth, 50u);
}

TEST(Plain, SessionsAndRawChannelsRefuseEachOther)
{
	Plain p({.seed = 8});
	kd_error error{};
	EXPECT_EQ(p.w.connect("c0", "10.0.0.2", port), 0);
	EXPECT_TRUE(p.w.run_until_gone("c0"));
	ASSERT_TRUE(p.w.last_error("c0"));
	EXPECT_EQ(p.w.connect(
			  "c1", "10.0.0.2", port, [](kd_channel_params &c) { c.mode = 7; }, &error),
		  KD_ERANGE);
	EXPECT_EQ(p.w.connect(
			  "c1", "10.0.0.2", port,
			  [](kd_channel_params &c) {
				  c.mode = KDIRECT_MODE_RAW;
				  c.raw.retry_count = 8;
			  },
			  &error),
		  KD_ERANGE);
	EXPECT_EQ(p.w.connect(
			  "c1", "10.0.0.2", port,
			  [](kd_channel_params &c) {
				  c.mode = KDIRECT_MODE_RAW;
				  c.raw.data_len = 57;
			  },
			  &error),
		  KD_ERANGE);
	EXPECT_EQ(p.w.connect(
			  "c1", "10.0.0.2", port,
			  [](kd_channel_params &c) {
				  c.mode = KDIRECT_MODE_RAW;
				  c.queues = 2;
			  },
			  &error),
		  KD_EINVAL);
}

} // namespace
