/* SPDX-License-Identifier: GPL-2.0-only */
/* What tests of unusual paths share. */
#pragma once
#include <cstring>
#include <string>

#include "world.h"

namespace sim
{

inline bool contains(const std::string &text, const char *part)
{
	return text.find(part) != std::string::npos;
}

/* Of the last error of the channel, or mapping. */
inline std::string error_text(World &w, const std::string &name)
{
	const EventRecord *error = w.last_error(name);

	return error ? error->text : "";
}

/* Switches often, and whoever is switched away from may stay away for a while. */
inline void disturb(World &w, unsigned int percent = 100)
{
	w.sched.preempt_percent = percent;
	w.sched.stall_percent = 30;
}

/* Runs until @task comes to @call, where it is away for a while; others go on at once. */
inline void stay_in(World &w, Task task, const char *call)
{
	w.sched.preempt_percent = w.sched.stall_percent = 100;
	w.run_until([&] {
		Fiber *fiber = w.sched.find(task);

		return !fiber || !std::strcmp(fiber->last_calls[0], call);
	});
	w.sched.preempt_percent = w.sched.hurry_percent = 0;
}

} // namespace sim
