// SPDX-License-Identifier: GPL-2.0-only
// os_ring.h: memory that is shared with a program, and threads.
#include <cstring>

#include "watch.h"
#include "world.h"

using namespace sim;

namespace
{

constexpr int32_t nr_cpus = 8;

Thread *self_of(const char *function)
{
	Thread *thread = world().sched.current()->thread;

	if (!thread)
		die("%s: this is no thread of a ring", function);
	return thread;
}

void run_thread(World &w, kd_ring *ring, Thread *thread, const CoreApi &core)
{
	w.sched.current()->thread = thread;
	watch::acquire(thread);
	core.ring_thread(ring);
	if (!thread->stopping)
		fail("a thread ends that was not stopped");
	if (thread->adopted)
		fail("a thread ends with memory of its process");
	watch::release(thread);
	thread->fiber = 0;
	for (const auto &fiber : w.sched.all())
		if (!std::strcmp(fiber->blocked_in, "kd_thread_stop"))
			w.sched.wake(fiber.get());
}

} // namespace

extern "C" {

int kd_shared_create(uint64_t size, struct kd_shared **out)
{
	World &w = world();

	w.enter(__func__, true);
	if (!size || size % page_size)
		die("kd_shared_create() of %llu bytes", static_cast<unsigned long long>(size));
	if (w.inject(Op::SharedCreate))
		return KD_ENOMEM;
	Shared *shared = w.shared.add();
	shared->memory = w.dma_memory(size);
	shared->size = size;
	*out = reinterpret_cast<kd_shared *>(shared);
	return 0;
}

void kd_shared_free(struct kd_shared *shared)
{
	World &w = world();

	w.enter(__func__, true);
	Shared *self = w.shared.check(shared, __func__);
	w.free_memory(self->memory, self->size);
	w.shared.remove(self);
}

void *kd_shared_memory(struct kd_shared *shared)
{
	return world().shared.check(shared, __func__)->memory;
}

int kd_thread_start(struct kd_ring *ring, int32_t cpu, struct kd_thread **out)
{
	World &w = world();
	Node *node = w.here();

	w.enter(__func__, true);
	if (cpu < -1)
		die("kd_thread_start() on CPU %d", cpu);
	if (cpu >= nr_cpus)
		return KD_EINVAL;
	if (w.inject(Op::ThreadStart))
		return KD_ENOMEM;
	Thread *thread = w.threads.add();
	*out = reinterpret_cast<kd_thread *>(thread);
	watch::release(thread);
	thread->fiber = w.sched.spawn("ring", Context::Process, node,
				      [&w, ring, thread, node] {
					      run_thread(w, ring, thread, *node->core);
				      })
				->id;
	return 0;
}

void kd_thread_stop(struct kd_thread *thread)
{
	World &w = world();

	w.enter(__func__, true);
	Thread *self = w.threads.check(thread, __func__);
	if (self->stopping)
		die("kd_thread_stop() twice");
	self->stopping = true;
	w.signal(self->fiber, true);
	while (self->fiber)
		w.sched.block(__func__);
	watch::acquire(self);
	w.threads.remove(self);
}

bool kd_thread_stopping(void)
{
	const Thread *self = self_of(__func__);

	world().enter(__func__, false);
	if (self->adopted)
		fail("a thread keeps its process's memory between two passes");
	return self->stopping;
}

bool kd_thread_adopt(struct kd_thread *thread)
{
	World &w = world();

	w.enter(__func__, true);
	Thread *self = w.threads.check(thread, __func__);
	if (self != self_of(__func__) || self->adopted)
		die("kd_thread_adopt() by another, or twice");
	self->adopted = !self->orphan;
	return self->adopted;
}

void kd_thread_leave(struct kd_thread *thread)
{
	World &w = world();

	w.enter(__func__, true);
	Thread *self = w.threads.check(thread, __func__);
	if (self != self_of(__func__) || !self->adopted)
		die("kd_thread_leave() of what was not adopted");
	self->adopted = false;
}

} /* extern "C" */
