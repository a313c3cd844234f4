// SPDX-License-Identifier: GPL-2.0-only
// Keys of fixed buffers where something is unusual: paths that neither the storms nor the
// faults come along.
#include <set>

#include "cover.h"
#include "plain_pair.h"

using namespace sim;

namespace
{

kdirect_desc local_inv(uint32_t rkey)
{
	kdirect_desc desc{};

	desc.opcode = KDIRECT_OP_LOCAL_INV;
	desc.rkey = rkey;
	return desc;
}

/* A pair whose far end has fixed buffers. */
struct Keys : Plain {
	explicit Keys(const Options &options, uint32_t buffers = 1) : Plain(options)
	{
		EXPECT_TRUE(up());
		for (uint32_t i = 0; i < buffers; i++)
			EXPECT_EQ(far.set_buffer(i, far_memory.data() + i * 8192ULL, 8192), 0);
	}
	int read(const kdirect_share &key)
	{
		return near
			.one(remote(work(KDIRECT_OP_READ, near_memory.at(), 8192), key.addr,
				    key.rkey))
			.result;
	}
};

TEST(PlainKeys, WhatIsInvalid)
{
	Keys p({.seed = 1});
	auto key_of = [](uint32_t index, const std::function<void(kdirect_share &)> &change) {
		kdirect_share call{};

		call.index = index;
		call.access = KDIRECT_ACCESS_READ;
		change(call);
		return call;
	};
	for (kdirect_share call : {
		     key_of(0, [](auto &c) { c.access = KDIRECT_ACCESS_FLAGS + 1; }),
		     key_of(0, [](auto &c) { c.pad = 1; }),
		     key_of(0, [](auto &c) { c.reserved[0] = 1; }),
		     key_of(0, [](auto &c) { c.reserved[1] = 1; }),
		     key_of(KDIRECT_BUFFERS, [](auto &) {}),
		     key_of(KDIRECT_BUFFERS, [](auto &c) { c.access = 0; }),
	     })
		EXPECT_EQ(p.far.share(call), KD_EINVAL);
	kdirect_share key;
	EXPECT_EQ(p.far.share(0, 0, key), KD_ENOENT);
	EXPECT_EQ(p.far.share(1, 0, key), KD_ENOENT);
	EXPECT_EQ(p.near.share(0, KDIRECT_ACCESS_READ, key), KD_ENOENT);
	/* more pages than the device registers at once */
	ASSERT_EQ(p.far.set_buffer(1, p.far_memory.data(), 4 * mib), 0);
	EXPECT_EQ(p.far.share(1, KDIRECT_ACCESS_READ, key), KD_EFBIG);
	EXPECT_EQ(key.rkey, 0u);
	ASSERT_EQ(p.share(p.far, KDIRECT_ACCESS_READ, key), 0);
	EXPECT_EQ(key.length, 8192u);
	EXPECT_EQ(p.read(key), 8192);
}

TEST(PlainKeys, NotBeforeItIsConnected)
{
	Plain p({.seed = 1});
	kdirect_share key;
	ASSERT_TRUE(p.begin());
	ASSERT_EQ(p.near.set_buffer(0, p.near_memory.data(), 4096), 0);
	EXPECT_EQ(p.near.share(0, KDIRECT_ACCESS_READ, key), KD_ENOTCONN);
	ASSERT_TRUE(p.requested());
	ASSERT_EQ(p.far.connect(raw_terms()), 0);
	ASSERT_TRUE(p.w.run_until_live("r0"));
	EXPECT_EQ(p.share(p.near, KDIRECT_ACCESS_READ, key), 0);
	EXPECT_EQ(p.w.del("r0"), 0);
	EXPECT_TRUE(p.w.run_until_gone("r0"));
	EXPECT_EQ(p.near.share(0, KDIRECT_ACCESS_READ, key), KD_ENODEV);
}

/* One is made at a time: others wait for it, and can be interrupted. */
TEST(PlainKeys, OneAfterTheOther)
{
	for (bool deleted : {false, true}) {
		Keys p({.seed = 1}, 3);
		kdirect_share keys[3];
		int err[3] = {-1, -1, -1};
		p.w.set_stuck(p.b, true);
		Task first = p.w.spawn(
			"first", [&] { err[0] = p.far.share(0, KDIRECT_ACCESS_READ, keys[0]); });
		p.w.run_for(1 * ms);
		EXPECT_TRUE(p.w.running(first)) << "a key is told when it is good";
		Task second = p.w.spawn(
			"second", [&] { err[1] = p.far.share(1, KDIRECT_ACCESS_READ, keys[1]); });
		Task third = p.w.spawn(
			"third", [&] { err[2] = p.far.share(2, KDIRECT_ACCESS_READ, keys[2]); });
		p.w.run_for(1 * ms);
		EXPECT_TRUE(p.w.running(second) && p.w.running(third));
		p.w.signal(third, false);
		ASSERT_TRUE(p.w.finish({third}, 1 * sec));
		EXPECT_EQ(err[2], KD_EINTR);
		EXPECT_EQ(keys[2].rkey, 0u);
		if (deleted)
			p.w.del("raw.0");
		else
			p.w.set_stuck(p.b, false);
		ASSERT_TRUE(p.w.finish({first, second}, 10 * sec));
		EXPECT_EQ(err[0], deleted ? KD_ENODEV : 0);
		EXPECT_EQ(err[1], deleted ? KD_ENODEV : 0);
		if (deleted)
			continue;
		p.w.run_for(1 * ms);
		EXPECT_NE(keys[1].rkey, keys[0].rkey);
		EXPECT_EQ(p.read(keys[0]), 8192);
		EXPECT_EQ(p.read(keys[1]), 8192);
		EXPECT_EQ(p.share(p.far, KDIRECT_ACCESS_READ, keys[2]), KD_EBUSY);
		EXPECT_EQ(p.far.share(2, KDIRECT_ACCESS_READ, keys[2]), 0);
	}
}

/* Who waits for another that has the file can be interrupted. */
TEST(PlainKeys, InterruptedBeforeTheirTurn)
{
	unsigned int interrupted = 0;

	for (uint64_t seed = 0; seed < 20; seed++) {
		Keys p({.seed = seed}, 2);
		kdirect_share keys[3];
		int err[4] = {-1, -1, -1, -1};
		Task first = p.w.spawn(
			"first", [&] { err[0] = p.far.share(0, KDIRECT_ACCESS_READ, keys[0]); });
		stay_in(p.w, first, "kd_mr_create");
		std::vector<Task> others = {
			p.w.spawn("second",
				  [&] { err[1] = p.far.share(1, KDIRECT_ACCESS_READ, keys[1]); }),
			p.w.spawn("third", [&] { err[2] = p.far.share(1, 0, keys[2]); }),
			p.w.spawn("fourth", [&] { err[3] = p.far.del_buffer(1); }),
		};
		bool all = p.w.run_until(
			[&] {
				for (Task task : others) {
					Fiber *fiber = p.w.sched.find(task);

					if (!fiber || !fiber->mutex)
						return false;
				}
				return true;
			},
			100 * us);
		for (Task task : others)
			p.w.signal(task, false);
		others.push_back(first);
		ASSERT_TRUE(p.w.finish(others, 1 * sec));
		EXPECT_EQ(err[0], 0);
		if (!all)
			continue;
		interrupted++;
		for (int i = 1; i < 4; i++)
			EXPECT_EQ(err[i], KD_EINTR);
		p.w.run_for(1 * ms);
		EXPECT_EQ(p.read(keys[0]), 8192);
		EXPECT_EQ(p.far.share(1, KDIRECT_ACCESS_READ, keys[1]), 0);
	}
	EXPECT_GT(interrupted, 5u);
}

/* The channel goes just then: there is no key, and the buffer is given back. */
TEST(PlainKeys, OfAChannelThatEnds)
{
	for (const char *call : {"kd_mutex_lock_interruptible", "kd_mr_create"}) {
		std::set<int> results;

		for (uint64_t seed = 0; seed < 12; seed++) {
			Keys p({.seed = seed, .min_delay = 100, .max_delay = 1 * us});
			kdirect_share key;
			int err = -1;
			Task task = p.w.spawn(
				"sharer", [&] { err = p.far.share(0, KDIRECT_ACCESS_READ, key); });
			stay_in(p.w, task, call);
			p.near.close(); /* in order: the far end goes, too */
			ASSERT_TRUE(p.w.finish({task}, 10 * sec));
			EXPECT_TRUE(p.w.run_until_gone("raw.0"));
			results.insert(err);
			p.far.close();
			EXPECT_TRUE(p.w.run_until([&] { return p.w.fixed.size() == 0; }));
			EXPECT_EQ(p.w.mrs.size(), 0u);
		}
		EXPECT_TRUE(results.contains(KD_EPIPE)) << call;
		results.erase(KD_EPIPE);
		results.erase(0);
		EXPECT_TRUE(results.empty()) << call;
	}
}

/* --- what cannot be ----------------------------------------------------------------------- */

TEST(PlainKeys, TheDeviceMakesNone)
{
	Keys p({.seed = 1});
	kdirect_share key;
	p.w.fail_nth(Op::WrError, 1);
	EXPECT_EQ(p.far.share(0, KDIRECT_ACCESS_READ, key), KD_EPIPE);
	EXPECT_TRUE(p.w.run_until_gone("raw.0"));
	EXPECT_TRUE(contains(error_text(p.w, "raw.0"), "a key cannot be made or taken back"))
		<< error_text(p.w, "raw.0");
	EXPECT_TRUE(p.far.poll() & KD_POLL_HUP);
}

TEST(PlainKeys, LocalInvCannotBePosted)
{
	Keys p({.seed = 1});
	kdirect_share key;
	ASSERT_EQ(p.share(p.far, KDIRECT_ACCESS_READ, key), 0);
	p.w.fail_nth(Op::PostChain, 1);
	EXPECT_EQ(p.far.one(local_inv(key.rkey)).result, -KD_EIO);
	EXPECT_TRUE(p.w.run_until_gone("raw.0"));
	EXPECT_TRUE(contains(error_text(p.w, "raw.0"), "cannot be posted"));
	p.far.close();
	EXPECT_TRUE(p.w.run_until([&] { return p.w.fixed.size() == 0; }));
}

/* Both ends take a key back at once: the buffer has none, whoever was faster. */
TEST(PlainKeys, BothInvalidate)
{
	unsigned int both = 0;

	for (uint64_t seed = 0; seed < 40; seed++) {
		Keys p({.seed = seed});
		kdirect_share key, again;
		int sent = 0, posted = -1;
		ASSERT_EQ(p.share(p.far, KDIRECT_ACCESS_READ, key), 0);
		ASSERT_EQ(p.far.post({work(KDIRECT_OP_RECV, p.far_memory.at(mib), 4, 1)}), 0);
		kdirect_desc send = work(KDIRECT_OP_SEND_INV, p.near_memory.at(), 4);
		send.rkey = key.rkey;
		kdirect_desc inv = local_inv(key.rkey);
		inv.user_data = 2;
		Task peer = p.w.spawn("peer", [&] { sent = p.near.one(send).result; });
		Task own = p.w.spawn("own", [&] {
			p.w.run_for(seed % 20 * us);
			posted = p.far.post({inv});
		});
		ASSERT_TRUE(p.w.finish({peer, own}));
		ASSERT_EQ(posted, 0);
		std::map<uint64_t, kdirect_completion> done;
		for (const auto &c : p.far.await(2))
			EXPECT_TRUE(done.emplace(c.user_data, c).second);
		ASSERT_EQ(done.size(), 2u);
		if (sent != 4) { /* too late: that is the peer's fault */
			EXPECT_LT(done[1].result, 0);
			EXPECT_TRUE(p.w.run_until_gone("raw.0"));
			continue;
		}
		EXPECT_EQ(done[1].result, 4);
		EXPECT_EQ(done[1].flags, KDIRECT_COMPLETION_INV);
		EXPECT_EQ(done[1].data, key.rkey);
		EXPECT_TRUE(!done[2].result || done[2].result == -KD_ENOENT) << done[2].result;
		both += !done[2].result;
		ASSERT_EQ(p.share(p.far, KDIRECT_ACCESS_READ, again), 0);
		EXPECT_NE(again.rkey, key.rkey);
		EXPECT_EQ(p.read(again), 8192);
	}
	EXPECT_GT(both, 0u);
}

/*
 * A LOCAL_INV waits behind a SEND that the peer does not receive yet, and meanwhile the peer
 * invalidates the key: there is no new one until that LOCAL_INV is done.
 */
TEST(PlainKeys, NoNewKeyBeforeTheOldOnesInvalidation)
{
	Keys p({.seed = 1});
	kdirect_share key, again;
	ASSERT_EQ(p.share(p.far, KDIRECT_ACCESS_READ, key), 0);
	ASSERT_EQ(p.far.post({work(KDIRECT_OP_RECV, p.far_memory.at(mib), 4, 1),
			      work(KDIRECT_OP_SEND, p.far_memory.at(mib), 4, 2),
			      local_inv(key.rkey)}),
		  0);
	kdirect_desc send = work(KDIRECT_OP_SEND_INV, p.near_memory.at(), 4);
	send.rkey = key.rkey;
	EXPECT_EQ(p.near.one(send).result, 4);
	auto got = p.far.await(1);
	ASSERT_EQ(got.size(), 1u);
	EXPECT_EQ(got[0].flags, KDIRECT_COMPLETION_INV);
	EXPECT_EQ(p.far.share(0, KDIRECT_ACCESS_READ, again), KD_EBUSY);
	ASSERT_EQ(p.near.post({work(KDIRECT_OP_RECV, p.near_memory.at(), 4)}), 0);
	EXPECT_EQ(p.near.await(1).size(), 1u);
	EXPECT_EQ(p.far.await(2).size(), 2u);
	ASSERT_EQ(p.share(p.far, KDIRECT_ACCESS_READ, again), 0);
	EXPECT_EQ(p.read(again), 8192);
}

} // namespace
