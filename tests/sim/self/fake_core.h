/* SPDX-License-Identifier: GPL-2.0-only */
/* A core of hooks, to test the simulation itself. */
#pragma once
#include <functional>

#include "../world.h"

namespace sim
{

struct FakeCore {
	std::function<void(kd_queue *, const kd_cm_event *)> queue_event;
	std::function<int(kd_listener *, const kd_cm_event *)> listener_event;
	std::function<void(kd_cqe *, const kd_wc *)> completion; /* of any kind */
	std::function<void(kd_queue *)> cq_event;
	std::function<void(kd_queue *)> fatal;
};

/* The hooks of the test that runs; cleared by fake_core(). */
FakeCore &hooks();
const CoreApi &fake_core();

} // namespace sim
