// SPDX-License-Identifier: GPL-2.0-only
// Memory of raw channels in more pieces than a work request has entries for.
#include "plain_pair.h"

#include "../../uapi/kdirect_netlink.h"

using namespace sim;

namespace
{

constexpr uint32_t few = 2, most_pages = 16;

/* Its work requests hold two pieces, and an MR 16 pages. */
DeviceOptions narrow(uint32_t transport = KDIRECT_TRANSPORT_ROCE)
{
	return {.transport = transport,
		.max_sge = few,
		.max_read_sge = few,
		.max_mr_pages = most_pages};
}

uint32_t transport_of(uint64_t seed)
{
	return seed % 3 == 2 ? KDIRECT_TRANSPORT_IWARP : KDIRECT_TRANSPORT_ROCE;
}

TEST(Plain, ScatteredMemory)
{
	for (uint64_t seed = 0; seed < 12; seed++) {
		SCOPED_TRACE(testing::Message() << "seed " << seed);
		Plain p({.seed = seed}, seed % 2, 32, narrow(transport_of(seed)));
		kdirect_share key;
		ASSERT_TRUE(p.up());
		EXPECT_EQ(p.near.info().mr_pages, most_pages);
		EXPECT_TRUE(p.near.info().flags & KDIRECT_RAW_READS);
		ASSERT_EQ(p.near.set_buffer(3, p.near_memory.data(), 3 * mib), 0);
		ASSERT_EQ(p.far.set_buffer(4, p.far_memory.data(), 3 * mib), 0);
		ASSERT_EQ(
			p.far.set_buffer(0, p.far_memory.data() + 3 * mib, most_pages * page_size),
			0);
		ASSERT_EQ(p.share(p.far, KDIRECT_ACCESS_READ | KDIRECT_ACCESS_WRITE, key), 0);
		for (uint32_t pages : {1u, few + 1, most_pages})
			for (int way = 0; way < 4; way++) {
				uint32_t len = pages * page_size - 10;
				auto size = static_cast<int32_t>(len);
				bool near_fixed = way & 1, far_fixed = way & 2;
				auto near = [&](uint8_t opcode, uint64_t at) {
					return near_fixed ? work_fixed(opcode, 3, at, len)
							  : work(opcode, p.near_memory.at(at), len);
				};
				p.near_memory.put(5, pattern(seed + pages, len));
				ASSERT_EQ(
					p.far.post({far_fixed ? work_fixed(KDIRECT_OP_RECV, 4, 9,
									   len, 7)
							      : work(KDIRECT_OP_RECV,
								     p.far_memory.at(9), len, 7)}),
					0);
				ASSERT_EQ(p.near.one(near(KDIRECT_OP_SEND, 5)).result, size);
				auto got = p.far.await(1);
				ASSERT_EQ(got.size(), 1u);
				EXPECT_EQ(got[0].result, size);
				EXPECT_TRUE(p.far_memory.text(9, len) ==
					    p.near_memory.text(5, len));

				ASSERT_EQ(p.near.one(remote(near(KDIRECT_OP_WRITE, 5), key.addr + 3,
							    key.rkey))
						  .result,
					  size);
				EXPECT_TRUE(p.far_memory.text(3 * mib + 3, len) ==
					    p.near_memory.text(5, len));
				ASSERT_EQ(p.near.one(remote(near(KDIRECT_OP_READ, mib + 8),
							    key.addr + 3, key.rkey))
						  .result,
					  size);
				EXPECT_TRUE(p.near_memory.text(mib + 8, len) ==
					    p.near_memory.text(5, len));
			}
	}
}

// Only what an MR cannot hold is too much.
TEST(Plain, TooManyPages)
{
	for (uint64_t seed = 0; seed < 6; seed++) {
		SCOPED_TRACE(testing::Message() << "seed " << seed);
		Plain p({.seed = seed}, 0, 4, narrow(transport_of(seed)));
		uint32_t len = most_pages * page_size;
		ASSERT_TRUE(p.up());
		for (uint8_t opcode :
		     {KDIRECT_OP_SEND, KDIRECT_OP_RECV, KDIRECT_OP_WRITE, KDIRECT_OP_READ})
			EXPECT_EQ(p.near.one(work(opcode, p.near_memory.at(1), len)).result,
				  -KD_EMSGSIZE)
				<< int{opcode};
		if (transport_of(seed) == KDIRECT_TRANSPORT_IWARP) {
			EXPECT_EQ(p.near.one(work(KDIRECT_OP_READ, 0, 0)).result, -KD_EOPNOTSUPP);
		}
		ASSERT_EQ(p.far.post({work(KDIRECT_OP_RECV, p.far_memory.at(), len)}), 0);
		EXPECT_EQ(p.near.one(work(KDIRECT_OP_SEND, p.near_memory.at(), len)).result,
			  static_cast<int32_t>(len));
	}
}

// Whatever their memory is, and posted before the connection or after.
TEST(Plain, ReceivesKeepTheirOrder)
{
	constexpr unsigned int count = 12;

	for (uint64_t seed = 0; seed < 12; seed++) {
		SCOPED_TRACE(testing::Message() << "seed " << seed);
		Plain p({.seed = seed}, seed % 2, 32, narrow());
		Rng rng(seed);
		ASSERT_TRUE(p.begin() && p.requested());
		PlainFile &to = seed % 4 < 2 ? p.near : p.far,
			  &from = seed % 4 < 2 ? p.far : p.near;
		Memory &into = seed % 4 < 2 ? p.near_memory : p.far_memory;
		auto recv = [&](unsigned int i) {
			uint32_t len = rng.chance(50) ? 60000 : 100;
			return work(KDIRECT_OP_RECV, into.at(place(i)), len, i);
		};
		ASSERT_EQ(to.post({recv(0), recv(1), recv(2)}), 0);
		ASSERT_EQ(p.far.connect(raw_terms()), 0);
		ASSERT_TRUE(p.w.run_until_live("r0") && p.w.run_until_live("raw.0"));
		std::vector<kdirect_desc> more, sends;
		for (unsigned int i = 3; i < count; i++)
			more.push_back(recv(i));
		ASSERT_EQ(to.post(more), 0);
		for (unsigned int i = 0; i < count; i++) {
			Memory &source = seed % 4 < 2 ? p.far_memory : p.near_memory;
			source.data()[i * 100] = static_cast<char>('a' + i);
			sends.push_back(work(KDIRECT_OP_SEND, source.at(i * 100), 100, i));
		}
		ASSERT_EQ(from.post(sends), 0);
		auto got = to.await(count);
		ASSERT_EQ(got.size(), count);
		for (unsigned int i = 0; i < count; i++) {
			EXPECT_EQ(got[i].user_data, i);
			EXPECT_EQ(got[i].result, 100);
			EXPECT_EQ(into.text(place(i), 1)[0], static_cast<char>('a' + i));
		}
	}
}

// A program that polls, and does not come back, has its receives posted all the same.
TEST(Plain, PolledReceivesAreRegistered)
{
	Plain p({.seed = 3}, 1, 8, narrow());
	ASSERT_TRUE(p.up());
	std::vector<kdirect_desc> recvs = {
		work(KDIRECT_OP_RECV, p.near_memory.at(place(0)), 60000, 0),
		work(KDIRECT_OP_RECV, p.near_memory.at(place(1)), 60000, 1)};
	kdirect_submit batch{};
	batch.descs = reinterpret_cast<uint64_t>(recvs.data());
	batch.nr_descs = 2;
	batch.flags = KDIRECT_SUBMIT_POLL;
	p.w.user[batch.descs] = sizeof(recvs[0]) * 2;
	ASSERT_EQ(p.near.submit(batch), 0);
	p.w.user.erase(batch.descs);
	EXPECT_EQ(p.far.one(work(KDIRECT_OP_SEND, p.far_memory.at(), 60000)).result, 60000);
	EXPECT_EQ(p.far.one(work(KDIRECT_OP_SEND, p.far_memory.at(), 60000)).result, 60000);
	EXPECT_EQ(p.near.await(2).size(), 2u);
}

// What waits for its memory ends behind what was posted before it.
TEST(Plain, FlushesInOrderWhatWaits)
{
	for (uint64_t seed = 0; seed < 20; seed++) {
		SCOPED_TRACE(testing::Message() << "seed " << seed);
		Plain p({.seed = seed}, 0, 32, narrow());
		Rng rng(seed);
		ASSERT_TRUE(p.up());
		std::vector<kdirect_desc> recvs;
		for (unsigned int i = 0; i < 20; i++)
			recvs.push_back(work(KDIRECT_OP_RECV, p.far_memory.at(place(i)),
					     rng.chance(70) ? 60000 : 100, i));
		ASSERT_EQ(p.far.post(recvs), 0);
		p.w.run_for(rng.below(300 * us));
		switch (seed % 4) {
		case 0: p.near.close(); break;
		case 1: p.w.del("raw.0"); break;
		case 2:
			p.w.set_stuck(p.b, true);
			p.w.del("raw.0");
			break;
		default: (void)p.near.one(work(KDIRECT_OP_WRITE, p.near_memory.at(), 8)); break;
		}
		auto got = p.far.await(20);
		ASSERT_EQ(got.size(), 20u);
		for (unsigned int i = 0; i < 20; i++) {
			EXPECT_EQ(got[i].user_data, i);
			EXPECT_EQ(got[i].result, -KD_ECONNRESET);
		}
		EXPECT_TRUE(p.w.run_until([&] { return p.far.poll() & KD_POLL_HUP; }));
		p.w.set_stuck(p.b, false);
	}
}

/* The nth call that can fail does, for every n; over RoCE and iWARP. */
TEST(Plain, EveryFallibleCallWithAnMr)
{
	for (uint64_t nth = 1, more = 3; more; nth++) {
		SCOPED_TRACE(testing::Message() << "call " << nth);
		more = 0;
		for (uint32_t transport : {KDIRECT_TRANSPORT_ROCE, KDIRECT_TRANSPORT_IWARP}) {
			Plain p({.seed = nth}, 0, 3, narrow(transport));
			kdirect_share key{};
			p.w.fail_nth_any(nth);
			if (p.up()) {
				std::vector<Task> tasks = {p.w.spawn("peer", [&] {
					(void)p.far.set_buffer(0, p.far_memory.data(), 65536);
					(void)p.far.post(
						{work_fixed(KDIRECT_OP_RECV, 0, 0, 60000),
						 work(KDIRECT_OP_RECV, p.far_memory.at(mib), 60000),
						 work(KDIRECT_OP_RECV, p.far_memory.at(2 * mib),
						      100)});
					(void)p.far.share(0, KDIRECT_ACCESS_FLAGS & 3, key);
					(void)p.far.await(3, 1 * sec);
				})};
				(void)p.near.set_buffer(0, p.near_memory.data(), 65536);
				p.w.run_until([&] { return key.rkey != 0; }, 10 * ms);
				for (uint8_t opcode :
				     {KDIRECT_OP_SEND, KDIRECT_OP_WRITE, KDIRECT_OP_READ}) {
					auto on = [&](kdirect_desc d) {
						return opcode == KDIRECT_OP_SEND
							       ? d
							       : remote(d, key.addr, key.rkey);
					};
					(void)p.near.post(
						{on(work(opcode, p.near_memory.at(mib), 60000)),
						 on(work_fixed(opcode, 0, 0, 30000))});
					(void)p.near.await(2, 1 * sec);
				}
				p.w.del("r0");
				p.w.del("raw.0");
				EXPECT_TRUE(p.w.finish(tasks, 60 * sec));
			}
			more += p.w.fault_fired();
			p.near.close();
			p.far.close();
			if (HasFatalFailure())
				return;
		}
		ASSERT_LT(nth, 400u);
	}
}

} // namespace
