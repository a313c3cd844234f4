/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What the storm looks at inside of a core: its own headers say where. Compiled
 * for each instance of the core (instance.h), so only plain data crosses.
 */
#pragma once
#include <cstdint>

namespace sim
{

struct QueueSnap {
	uint32_t index, state, depth, due;
	bool settled; /* live, nothing asked for, nothing failed */
	uint32_t available, owed, free_offers, large, claimed;
	uint32_t awaited;
	bool pong_waits;
	const void *channel;
	uint64_t arrived, read; /* of the channel */
};

struct InstanceTable {
	void (*const *calls)();
	uint32_t count;
	/* of whatever a handler was given */
	uint32_t (*queue_state)(const void *queue);
	uint32_t (*file_state)(const void *file);
	uint32_t (*cqe_state)(const void *cqe, uint32_t kind);
	void (*snap)(const void *queue, QueueSnap &out);
};

} // namespace sim

extern "C" {
/* the plain core, the same once more, and one that speaks another version */
extern const sim::InstanceTable kd_a_table, kd_b_table, kd_v_table;
}
