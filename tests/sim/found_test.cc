// SPDX-License-Identifier: GPL-2.0-only
// What the storm found, each for itself. Its seeds are in storm/seeds.
#include "fabric.h"
#include "pair.h"

using namespace sim;

namespace
{

/* A channel that failed drains its queues; who reads then need not wait for that. */
TEST(Found, DeletingEndsReadsOfAFailedChannel)
{
	Pair p(3);
	std::string said;

	ASSERT_TRUE(p.up());
	p.w.set_stuck(p.a, true); /* nothing is flushed: the drain takes its time */
	for (const auto &qp : p.w.qps)
		if (qp->dev == &p.a) {
			qp_breaks(p.w, qp.get());
			break;
		}
	ASSERT_TRUE(p.w.run_until([&] { return p.w.state("c0") == KDIRECT_STATE_RECOVERING; }));
	Task reader = p.w.spawn("reader", [&] { said = p.near.read(); });
	p.w.run_for(10 * ms);
	ASSERT_TRUE(p.w.running(reader));
	p.w.del("c0");
	EXPECT_TRUE(p.w.finish({reader}, 10 * ms));
	EXPECT_EQ(p.w.state("c0"), KDIRECT_STATE_RECOVERING);
	EXPECT_EQ(said.substr(0, 1), "!");
	p.w.set_stuck(p.a, false);
	p.close();
}

/* What the peer sent before its goodbye waits to be read; deleting here loses it. */
TEST(Found, DeletingIsNoEndWhileMessagesAreUnread)
{
	Pair p(5);
	std::string got;

	ASSERT_TRUE(p.up());
	ASSERT_EQ(p.far.write(pattern(1, 100)), 100);
	ASSERT_EQ(p.far.write(pattern(2, 100)), 100);
	p.w.del("store.0");
	ASSERT_TRUE(p.w.run_until([&] { return p.w.state("c0") == KDIRECT_STATE_DEAD; }));
	EXPECT_EQ(p.near.read(), pattern(1, 100));
	p.w.del("c0");
	EXPECT_EQ(p.near.read(got, 100), -KD_ENODEV);
	p.close();
}

TEST(Found, DeletingAfterTheLastMessageIsTheEnd)
{
	Pair p(7);
	std::string got;

	ASSERT_TRUE(p.up());
	ASSERT_EQ(p.far.write(pattern(1, 100)), 100);
	p.w.del("store.0");
	ASSERT_TRUE(p.w.run_until([&] { return p.w.state("c0") == KDIRECT_STATE_DEAD; }));
	EXPECT_EQ(p.near.read(), pattern(1, 100));
	p.w.del("c0");
	EXPECT_EQ(p.near.read(got, 100), 0);
	p.close();
}

/* The echo that came in it cannot be answered by a receive for the next one. */
TEST(Found, NoPingWithoutAReceiveForItsEcho)
{
	for (uint64_t seed = 1; seed <= 60; seed++) {
		Pair p(seed);

		ASSERT_TRUE(p.up());
		p.w.run_for(10 * ms);
		p.w.fail_nth(Op::PostRecv, 2); /* the first is the other end's */
		EXPECT_EQ(p.near.ping(64), 0);
		/* the fabric fails a SEND that finds no receive */
		EXPECT_EQ(p.near.ping(64), KD_EPIPE);
		p.close();
	}
}

} // namespace
