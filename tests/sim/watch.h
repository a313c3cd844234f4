/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * In a build with -DKD_WATCH the core is compiled with -fsanitize=thread, and its
 * calls for each access to memory come here instead of to ThreadSanitizer. So
 *   - another fiber may run at any access, not only at the calls of os.h;
 *   - an access to freed memory is found without AddressSanitizer;
 *   - two accesses that nothing orders are found (vector clocks, as FastTrack),
 *     whatever the schedule was.
 * Fibers are the threads. What os.h promises to order is told by acquire() and
 * release(); the core's own atomics speak for themselves.
 */
#pragma once
#include <cstddef>
#include <cstdint>

namespace sim
{

struct Fiber;

namespace watch
{

#ifdef KD_WATCH
constexpr bool on = true;

/* Before a world: forgets everything. @races, @preempt: look for races, switch at accesses. */
void reset(bool races, unsigned int preempt_permille);

/* Memory that is watched. It is not used again before the next reset(). */
void *allocate(std::size_t size);
/* False: it was not allocated here. */
bool deallocate(void *mem, std::size_t size);

void acquire(const void *object);
void release(const void *object);
inline void both(const void *object)
{
	acquire(object);
	release(object);
}

/* @fiber inherits what the running one, or the scheduler, knows. */
void begin(Fiber *fiber);
void end(Fiber *fiber);
void run(const Fiber *fiber); /* nullptr: the scheduler */

/* What was found, by the addresses of the code: for counting. */
uint64_t found();
#else
constexpr bool on = false;

inline void reset(bool, unsigned int) {}
inline void acquire(const void *) {}
inline void release(const void *) {}
inline void both(const void *) {}
inline void begin(Fiber *) {}
inline void end(Fiber *) {}
inline void run(const Fiber *) {}
#endif

} // namespace watch
} // namespace sim
