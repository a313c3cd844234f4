/* SPDX-License-Identifier: GPL-2.0-only */
/* One stream of chance for a whole world (splitmix64): the seed is the schedule. */
#pragma once
#include <cstdint>

namespace sim
{

class Rng
{
public:
	explicit Rng(uint64_t seed) : state(seed) {}

	uint64_t next()
	{
		uint64_t z = (state += 0x9e3779b97f4a7c15ULL);

		z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
		z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
		return z ^ (z >> 31);
	}

	/* 0 .. n - 1 */
	uint64_t below(uint64_t n) { return n ? next() % n : 0; }
	/* first .. last */
	uint64_t range(uint64_t first, uint64_t last) { return first + below(last - first + 1); }
	bool chance(unsigned int percent) { return percent && below(100) < percent; }

private:
	uint64_t state;
};

} // namespace sim
