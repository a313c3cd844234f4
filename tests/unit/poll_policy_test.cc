// SPDX-License-Identifier: GPL-2.0-only
// What a poll queue learns, and that polling stays within its share of a CPU.
#include "../../kmod/core/poll_policy.hh"

#include <gtest/gtest.h>

#include "../sim/rng.h"

using kd::PollPolicy;

namespace
{

constexpr uint64_t us = 1000, ms = 1000 * us, sec = 1000 * ms;
constexpr uint32_t cls = 3;

TEST(PollPolicy, ClassesGrowWithTheBytes)
{
	EXPECT_EQ(PollPolicy::class_of(0), PollPolicy::class_of(4096));
	EXPECT_NE(PollPolicy::class_of(0), PollPolicy::any_class);
	uint32_t before = 0;
	for (uint64_t bytes = 1; bytes; bytes *= 2) {
		uint32_t now = PollPolicy::class_of(bytes);
		EXPECT_GE(now, before);
		EXPECT_LT(now, PollPolicy::classes);
		before = now;
	}
	EXPECT_EQ(PollPolicy::class_of(UINT64_MAX), PollPolicy::classes - 1);
}

TEST(PollPolicy, NapsForHalfOfWhatItTakes)
{
	PollPolicy policy;

	EXPECT_EQ(policy.nap_ns(cls), 0u) << "nothing is known";
	policy.learn(cls, 100 * us, false);
	EXPECT_EQ(policy.nap_ns(cls), 50 * us);
	EXPECT_EQ(policy.nap_ns(cls + 1), 0u) << "another class";
	for (int i = 0; i < 100; i++)
		policy.learn(cls, 200 * us, false);
	EXPECT_NEAR(static_cast<double>(policy.nap_ns(cls)), 100e3, 2e3);
	for (int i = 0; i < 200; i++)
		policy.learn(cls, 10 * us, false);
	EXPECT_EQ(policy.nap_ns(cls), 0u) << "a sleep would take longer";
	for (int i = 0; i < 200; i++)
		policy.learn(cls, 60 * sec, false);
	EXPECT_LE(policy.nap_ns(cls), PollPolicy::longest_nap_ns);
	EXPECT_GT(policy.nap_ns(cls), PollPolicy::longest_nap_ns - us);
	/* and one such wait does not make the next ones late for long */
	for (int i = 0; i < 8; i++)
		policy.learn(cls, 50 * us, i < 2);
	EXPECT_LT(policy.nap_ns(cls), 500 * us);
}

/* A wait that ends with its nap says only that it took no longer. */
TEST(PollPolicy, FindsBackFromNapsThatAreTooLong)
{
	constexpr uint64_t real = 40 * us, overhead = 60 * us;
	PollPolicy policy;

	policy.learn(cls, 10 * ms, false);
	for (int i = 0; i < 200; i++) {
		uint64_t nap = policy.nap_ns(cls);
		uint64_t woken = nap ? nap + overhead : 0;
		bool overslept = woken > real;

		policy.learn(cls, overslept ? woken : real, overslept);
	}
	EXPECT_LE(policy.nap_ns(cls), real);
	EXPECT_LT(policy.patience_ns(cls), 2 * (real + PollPolicy::least_patience_ns));
}

TEST(PollPolicy, PatienceEndsWhereItDoesNotPay)
{
	PollPolicy policy;

	EXPECT_EQ(policy.patience_ns(cls), PollPolicy::least_patience_ns);
	policy.learn(cls, 100 * us, false);
	EXPECT_EQ(policy.patience_ns(cls), 200 * us + PollPolicy::least_patience_ns);
	for (int i = 0; i < 100; i++)
		policy.learn(cls, 10 * ms, false);
	EXPECT_EQ(policy.patience_ns(cls), 0u);
}

/* However its callers come and go, and each polls as long as he may. */
TEST(PollPolicy, StaysWithinItsShare)
{
	for (uint32_t percent : {1u, 7u, 50u, 99u, 100u})
		for (uint64_t seed = 0; seed < 4; seed++) {
			sim::Rng rng(seed);
			PollPolicy policy;
			uint64_t now = 5 * sec, began = now, spent = 0;

			while (now < began + 300 * ms) {
				uint64_t allowed = policy.allowance_ns(now, percent);
				uint64_t wanted = rng.range(1, seed % 2 ? 50 * us : 20 * ms);
				uint64_t used = std::min(allowed, wanted);

				now += used;
				spent += used;
				if (used)
					policy.spend(now, used, percent);
				now += rng.range(1, 30 * us);
				ASSERT_LE(spent,
					  (now - began + PollPolicy::burst_ns) * percent / 100 +
						  us);
			}
			if (seed % 2 == 0) {
				EXPECT_GE(spent, (now - began) * percent / 100 * 9 / 10 - 1 * ms)
					<< "and uses it";
			}
		}
}

TEST(PollPolicy, SavesNoMoreThanABurst)
{
	PollPolicy policy;

	EXPECT_EQ(policy.allowance_ns(3600 * sec, 50), PollPolicy::burst_ns / 2);
	policy.spend(3600 * sec, 5 * ms, 50);
	EXPECT_EQ(policy.allowance_ns(3600 * sec, 50), 0u);
	EXPECT_EQ(policy.allowance_ns(3600 * sec + 4 * ms, 50), 2 * ms);
	EXPECT_EQ(policy.allowance_ns(7200 * sec, 50), PollPolicy::burst_ns / 2);
}

} // namespace
