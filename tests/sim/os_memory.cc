// SPDX-License-Identifier: GPL-2.0-only
// os.h: memory, time, chance, text.
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "watch.h"
#include "world.h"

using namespace sim;

namespace sim
{

void *World::dma_memory(std::size_t size)
{
#ifdef KD_WATCH
	return watch::allocate(size);
#else
	return std::calloc(1, size);
#endif
}

void World::free_memory(void *mem, [[maybe_unused]] std::size_t size)
{
#ifdef KD_WATCH
	if (watch::deallocate(mem, size))
		return;
#endif
	std::free(mem);
}

/* What lies in memory that is about to be freed must not be in use. */
void World::check_free(const void *mem, std::size_t size)
{
	auto inside = [&](const void *ptr) {
		return ptr >= mem && ptr < static_cast<const char *>(mem) + size;
	};

	for (const auto &fiber : sched.all()) {
		for (const HeldLock &held : fiber->held)
			if (inside(held.lock))
				fail("freed a lock of class %u that %s holds", held.cls,
				     fiber->name.c_str());
		if (fiber->waitq && inside(fiber->waitq))
			fail("freed a wait queue on which %s waits", fiber->name.c_str());
		if (fiber->mutex && inside(fiber->mutex))
			fail("freed a mutex for which %s waits", fiber->name.c_str());
	}
	for (const Poller &poller : pollers)
		if (inside(poller.waitq))
			fail("freed a wait queue that a poll() uses");
	auto cqe = posted.lower_bound(static_cast<const kd_cqe *>(mem));
	if (cqe != posted.end() && inside(cqe->first))
		fail("freed the cqe of a posted work request");
	auto late = lingering.lower_bound(static_cast<const kd_cqe *>(mem));
	if (late != lingering.end() && inside(late->first))
		fail("freed the cqe of a work request before its CQ");
	auto read = reads.lower_bound(static_cast<const kd_read *>(mem));
	if (read != reads.end() && inside(read->first))
		fail("freed the context of an RDMA READ that was not released");
	auto work = works.lower_bound(static_cast<const kd_work *>(mem));
	while (work != works.end() && inside(work->first)) {
		WorkRun &run = work->second;
		bool own = run.running && sched.current() && run.running == sched.current()->id;

		if (run.pending)
			fail("freed pending work");
		if (run.running && !own)
			fail("freed running work");
		work = works.erase(work);
	}
}

} // namespace sim

extern "C" {

void *kd_zalloc(size_t size)
{
	World &w = world();

	w.enter(__func__, true);
	if (w.sched.current()->nowait)
		fail("kd_zalloc() for a caller that must not block");
	if (w.inject(Op::Alloc))
		return nullptr;
#ifdef KD_WATCH
	void *mem = watch::allocate(size ? size : 1);
#else
	void *mem = std::calloc(1, size ? size : 1);
#endif
	w.allocations[mem] = {size, w.next_allocation++};
	return mem;
}

void kd_free(void *mem)
{
	World &w = world();

	w.enter(__func__, true);
	if (!mem)
		return;
	auto found = w.allocations.find(mem);
	if (found == w.allocations.end())
		die("kd_free(%p): not allocated", mem);
	std::size_t size = found->second.first;
	w.check_free(mem, size);
	w.allocations.erase(found);
	w.free_memory(mem, size);
}

uint64_t kd_now_ns(void)
{
	return world().sched.now();
}

uint64_t kd_random(void)
{
	return world().sched.rng.next();
}

uint32_t kd_cpu(void)
{
	return static_cast<uint32_t>(world().sched.rng.below(8));
}

int kd_format(char *buf, size_t size, const char *fmt, ...)
{
	va_list args;

	if (!size)
		return 0;
	va_start(args, fmt);
	int len = std::vsnprintf(buf, size, fmt, args);
	va_end(args);
	return len < static_cast<int>(size) ? len : static_cast<int>(size) - 1;
}

void kd_log(enum kd_log_level level, const char *fmt, ...)
{
	static const bool print = std::getenv("KD_SIM_LOG");
	World &w = world();
	char text[512];
	va_list args;

	va_start(args, fmt);
	std::vsnprintf(text, sizeof(text), fmt, args);
	va_end(args);
	if (w.trace)
		w.trace("log", text);
	for (const char *c = text; *c; c++)
		if (*c < ' ' || *c > '~')
			fail("log line with a byte 0x%02x", static_cast<unsigned char>(*c));
	if (print)
		std::fprintf(stderr, "[%10.6f] <%d> %s\n", static_cast<double>(w.now()) / 1e9,
			     level, text);
	w.log.emplace_back(text);
}

} /* extern "C" */
