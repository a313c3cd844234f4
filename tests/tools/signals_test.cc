// SPDX-License-Identifier: GPL-2.0-only
#include "signals.h"

#include <unistd.h>

#include <gtest/gtest.h>

#include "quantity.h"

namespace kdirect
{

namespace
{

TEST(Signals, TimeoutIsNoSignal)
{
	Signals signals;

	EXPECT_FALSE(signals.wait(-1, ns_per_ms));
	EXPECT_EQ(signals.caught(), 0);
}

TEST(Signals, ReadableFile)
{
	Signals signals;
	int ends[2];

	ASSERT_EQ(pipe(ends), 0);
	EXPECT_FALSE(signals.wait(ends[0], ns_per_ms));
	ASSERT_EQ(write(ends[1], "x", 1), 1);
	EXPECT_TRUE(signals.wait(ends[0]));
	close(ends[0]);
	close(ends[1]);
}

// A signal before the wait must end it too, or it would hang.
TEST(Signals, PendingSignalEndsTheWait)
{
	Signals signals;

	raise(SIGTERM);
	EXPECT_EQ(signals.caught(), 0) << "blocked so far";
	EXPECT_FALSE(signals.wait(-1));
	EXPECT_EQ(signals.caught(), SIGTERM);
	EXPECT_FALSE(signals.wait(-1)) << "and every later wait";
}

TEST(Signals, OpenLetsThemIn)
{
	Signals signals;

	raise(SIGINT);
	{
		const Signals::Open open(signals);
	}
	EXPECT_EQ(signals.caught(), SIGINT);
}

TEST(Signals, EachBeginsAnew)
{
	{
		Signals signals;

		raise(SIGINT);
		signals.wait(-1);
	}
	EXPECT_EQ(Signals().caught(), 0);
}

} // namespace

} // namespace kdirect
