/* SPDX-License-Identifier: GPL-2.0-only */
/* The topology of tests of mappings: a pair, and memory of its target mapped. */
#pragma once
#include "map.h"
#include "pair.h"

namespace sim
{

constexpr uint64_t mib = 1 << 20;

/* A pair with an export "mem" at its target and a mapping "m" of it. */
struct Mapped : Pair {
	explicit Mapped(const PairOptions &o, uint64_t bytes = 5 * mib + 123,
			bool read_only = false)
		: Pair(o), size(bytes)
	{
		EXPECT_TRUE(up());
		EXPECT_EQ(add_export(w, "mem", "store", size, read_only), 0);
		EXPECT_EQ(add_map(w, "m", "c0", "mem"), 0);
		EXPECT_TRUE(run_until_mapped(w, "m"));
		file = open_map(w, "m", !read_only);
		EXPECT_TRUE(static_cast<bool>(file));
		memory = memory_of(w);
	}
	explicit Mapped(uint64_t seed) : Mapped(PairOptions{.world = {.seed = seed}}) {}
	std::string_view bytes() const
	{
		return {reinterpret_cast<char *>(memory->memory.data()), memory->memory.size()};
	}

	uint64_t size;
	MapFile file;
	Region *memory;
};

inline struct kd_channel_stats stats_of(World &w, const char *channel = "c0")
{
	struct kd_channel_stats stats {
	};

	EXPECT_TRUE(w.stats(channel, stats));
	return stats;
}

/* A pair whose channel has a poll queue, too. */
inline PairOptions polled(uint64_t seed = 1)
{
	return {.world = {.seed = seed},
		.channel = [](kd_channel_params &c) { c.poll_queues = 1; }};
}

} // namespace sim
