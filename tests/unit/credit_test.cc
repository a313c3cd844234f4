// SPDX-License-Identifier: GPL-2.0-only
// Credits: never more SENDs than receives, whatever is lost, late or repeated.
#include "../../kmod/core/credit.hh"

#include <gtest/gtest.h>

#include <algorithm>
#include <deque>

#include "../sim/rng.h"

using kd::CreditGrant;
using kd::CreditWindow;

namespace
{

TEST(Credit, TakesUntilNothingIsLeft)
{
	for (uint32_t receives : {1u, 2u, 32u, 1024u}) {
		CreditWindow window;

		EXPECT_EQ(window.available(), 0u) << "before it is open";
		window.open(receives);
		for (uint32_t i = 0; i < receives; i++) {
			EXPECT_EQ(window.available(), receives - i);
			window.take();
		}
		EXPECT_EQ(window.available(), 0u);
		window.give_back();
		EXPECT_EQ(window.available(), 1u);
	}
}

TEST(Credit, RepeatedAndOvertakenUpdatesCountOnce)
{
	CreditWindow window;

	window.open(4);
	for (int i = 0; i < 4; i++)
		window.take();
	EXPECT_NE(window.update(3), CreditWindow::Update::Lie);
	EXPECT_EQ(window.available(), 3u);
	EXPECT_NE(window.update(3), CreditWindow::Update::Lie);
	EXPECT_NE(window.update(1), CreditWindow::Update::Lie);
	EXPECT_NE(window.update(0), CreditWindow::Update::Lie);
	EXPECT_EQ(window.available(), 3u);
	EXPECT_NE(window.update(4), CreditWindow::Update::Lie);
	EXPECT_EQ(window.available(), 4u);
}

TEST(Credit, NoMoreThanWereUsed)
{
	CreditWindow window;

	window.open(4);
	EXPECT_NE(window.update(0), CreditWindow::Update::Lie);
	EXPECT_EQ(window.update(1), CreditWindow::Update::Lie);
	EXPECT_EQ(window.update(0x7fffffff), CreditWindow::Update::Lie);
	window.take();
	EXPECT_NE(window.update(1), CreditWindow::Update::Lie);
	EXPECT_EQ(window.update(2), CreditWindow::Update::Lie);
	EXPECT_EQ(window.available(), 4u) << "a refused update changes nothing";
	/* what lies more than half of all numbers ahead is old, not new */
	EXPECT_NE(window.update(0x80000001u), CreditWindow::Update::Lie);
	EXPECT_EQ(window.available(), 4u);
}

TEST(Credit, Reopened)
{
	CreditWindow window;

	window.open(4);
	window.take();
	ASSERT_NE(window.update(1), CreditWindow::Update::Lie);
	window.open(2);
	EXPECT_EQ(window.available(), 2u);
	EXPECT_EQ(window.update(1), CreditWindow::Update::Lie);
}

/* Over a new connection, with messages that the peer holds or that are sent again. */
TEST(Credit, OpenedWithSomeTaken)
{
	CreditWindow window;

	window.open(4, 3);
	EXPECT_EQ(window.available(), 1u);
	EXPECT_EQ(window.update(3), CreditWindow::Update::Grew);
	EXPECT_EQ(window.granted(), 3u);
	EXPECT_EQ(window.available(), 4u);
	EXPECT_EQ(window.update(4), CreditWindow::Update::Lie);
}

/* More than 2^32 messages. */
TEST(Credit, WrapsAround)
{
	constexpr uint32_t chunk = 1U << 30;
	CreditWindow window;
	uint32_t sent = 0;

	window.open(chunk);
	for (int i = 0; i < 5; i++) {
		for (uint32_t taken = 0; taken < chunk; taken++)
			window.take();
		sent += chunk; /* wraps, too */
		EXPECT_EQ(window.available(), 0u);
		EXPECT_NE(window.update(sent - 1), CreditWindow::Update::Lie);
		EXPECT_EQ(window.available(), chunk - 1);
		EXPECT_EQ(window.update(sent + 1), CreditWindow::Update::Lie) << "not yet sent";
		EXPECT_NE(window.update(sent), CreditWindow::Update::Lie);
		EXPECT_NE(window.update(sent - chunk), CreditWindow::Update::Lie) << "old";
		EXPECT_EQ(window.available(), chunk);
	}
}

TEST(Credit, Grant)
{
	CreditGrant grant;

	EXPECT_EQ(grant.owed(), 0u);
	EXPECT_EQ(grant.tell(), 0u);
	grant.posted();
	grant.posted();
	EXPECT_EQ(grant.owed(), 2u);
	EXPECT_EQ(grant.tell(), 2u);
	EXPECT_EQ(grant.owed(), 0u);
	EXPECT_EQ(grant.tell(), 2u) << "cumulative";
	grant.reset();
	EXPECT_EQ(grant.tell(), 0u);
}

/*
 * Two ends at any depth, updates delayed, lost in newer ones, repeated and
 * overtaken: never a SEND without a receive, and never nobody who may send.
 */
TEST(Credit, TwoEnds)
{
	for (uint64_t seed = 0; seed < 300; seed++) {
		sim::Rng rng(seed);
		uint32_t depth = static_cast<uint32_t>(rng.range(1, 4));
		CreditWindow window;
		CreditGrant grant;
		uint32_t receives = depth, unread = 0, sent = 0;
		std::deque<uint32_t> updates;

		window.open(depth);
		for (int step = 0; step < 3000; step++) {
			switch (rng.below(4)) {
			case 0:
				if (!window.available())
					break;
				window.take();
				sent++;
				ASSERT_GT(receives, 0u) << "seed " << seed << ": no receive";
				receives--;
				unread++;
				break;
			case 1:
				if (!unread)
					break;
				unread--;
				receives++;
				grant.posted();
				break;
			case 2:
				updates.push_back(grant.tell());
				if (rng.chance(20))
					updates.push_back(updates.front());
				if (rng.chance(20) && updates.size() > 1)
					std::swap(updates.front(), updates.back());
				break;
			case 3:
				if (updates.empty())
					break;
				ASSERT_NE(window.update(updates.front()), CreditWindow::Update::Lie)
					<< "seed " << seed;
				updates.pop_front();
				break;
			}
			ASSERT_LE(window.available(), depth);
		}
		/* all read and told: all may be sent again */
		while (unread--) {
			receives++;
			grant.posted();
		}
		ASSERT_NE(window.update(grant.tell()), CreditWindow::Update::Lie);
		EXPECT_EQ(window.available(), depth) << "seed " << seed << ": a credit was lost";
		EXPECT_GT(sent, 20u);
	}
}

} // namespace
