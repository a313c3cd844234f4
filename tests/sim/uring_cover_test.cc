// SPDX-License-Identifier: GPL-2.0-only
// Commands of io_uring where something is unusual: paths that neither the storms nor the
// faults come along.
#include <set>

#include "mapped.h"
#include "uring.h"

using namespace sim;

namespace
{

/* More slots for work requests than an open file has commands under way. */
PairOptions deep(uint64_t seed)
{
	return {.world = {.seed = seed},
		.listener = [](kd_listener_params &l) { l.max_depth = 512; },
		.channel =
			[](kd_channel_params &c) {
				c.depth = 512;
				c.eager_limit = 512;
			}};
}

/* As many as there can be are under way, and some wait for their turn. */
struct Crowded : Mapped {
	static constexpr uint32_t most = KDIRECT_DESC_ENTRIES, more = 6;

	explicit Crowded(uint64_t seed) : Mapped(deep(seed)), ring(w, file)
	{
		ring.run(add_desc(0, 0)); /* the first use is a worker's */
		w.set_stuck(b, true);
		for (uint32_t i = 0; i < most + more; i++)
			ring.submit(add_desc(8, 1));
		w.run_for(1 * ms);
		for (uint32_t i = 0; i < more; i++)
			EXPECT_TRUE(waiting(i).in_worker && !waiting(i).done);
	}
	Command &waiting(uint32_t i) { return *ring.commands[1 + most + i]; }
	/* Each that was executed saw a number of its own. */
	void expect_numbers(std::size_t count)
	{
		std::set<uint64_t> seen;

		for (const auto &c : ring.commands)
			if (c->desc.remote == 8 && c->result.result == 8)
				seen.insert(c->result.extra);
		EXPECT_EQ(seen.size(), count);
		EXPECT_EQ(ring.run(add_desc(8, 0)).extra, count);
	}

	Uring ring;
};

TEST(UringCover, MoreThanCanBeUnderWay)
{
	for (uint64_t seed = 0; seed < 10; seed++) {
		Crowded p(seed);

		p.w.set_stuck(p.b, false);
		ASSERT_TRUE(p.ring.finish());
		p.expect_numbers(Crowded::most + Crowded::more);
	}
}

/* Who waits for that is cancelled, and takes nobody's turn. */
TEST(UringCover, CancelledBeforeTheirTurn)
{
	for (uint64_t seed = 0; seed < 10; seed++) {
		Crowded p(seed);

		p.ring.cancel(p.waiting(0));
		p.ring.cancel(p.waiting(3));
		p.w.run_for(1 * ms);
		for (uint32_t i = 0; i < Crowded::more; i++) {
			bool cancelled = i == 0 || i == 3;

			EXPECT_EQ(p.waiting(i).done, cancelled);
			EXPECT_EQ(p.waiting(i).result.result, cancelled ? -KD_EINTR : 0);
		}
		p.w.set_stuck(p.b, false);
		ASSERT_TRUE(p.ring.finish());
		p.expect_numbers(Crowded::most + Crowded::more - 2);
	}
}

/* The mapping goes: who waits is told at once, who is under way when that has ended. */
TEST(UringCover, TheMappingGoesBeforeTheirTurn)
{
	for (uint64_t seed = 0; seed < 10; seed++) {
		Crowded p(seed);

		EXPECT_EQ(del_map(p.w, "m"), 0);
		p.w.run_for(1 * ms);
		for (uint32_t i = 0; i < Crowded::more; i++) {
			EXPECT_TRUE(p.waiting(i).done);
			EXPECT_EQ(p.waiting(i).result.result, -KD_ENODEV);
		}
		p.w.set_stuck(p.b, false);
		ASSERT_TRUE(p.ring.finish());
		for (uint32_t i = 1; i <= Crowded::most; i++)
			EXPECT_EQ(p.ring.commands[i]->result.result, 8);
	}
}

} // namespace
