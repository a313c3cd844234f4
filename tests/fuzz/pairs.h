/* SPDX-License-Identifier: GPL-2.0-only */
/* The pairs that the fuzzers of descriptors and of rings work on. */
#pragma once
#include "../sim/mapped.h"
#include "input.h"

namespace sim
{

inline PairOptions options(Input &in)
{
	uint8_t kinds = in.take<uint8_t>();

	return {.world = {.seed = in.take<uint8_t>()},
		.device = {.max_read_sge = 1 + (kinds >> 3) % 32u, .atomics = (kinds & 4) != 0},
		.channel = [kinds](kd_channel_params &c) {
			c.queues = 1;
			c.poll_queues = kinds & 1;
			c.depth = kinds & 2 ? 1 : 16;
		}};
}

} // namespace sim
