// SPDX-License-Identifier: GPL-2.0-only
#include "ring.h"

#include <cstring>

#include "watch.h"

namespace sim
{

namespace
{

template <typename Fn>
void call(const OpenMap &open, const char *what, const Fn &fn)
{
	World &w = *open.world;

	w.call(
		[&] {
			Fiber *self = w.sched.current();

			self->pauses = 0;
			watch::acquire(&w.devnodes);
			fn(*open.node->core);
			watch::release(open.file);
			if (!self->held.empty())
				fail("%s returned with a lock held", what);
		},
		what, open.node);
}

} // namespace

Ring make_ring(const std::shared_ptr<OpenMap> &open, const kdirect_ring_setup &setup, int *err)
{
	kdirect_ring_setup out = setup;
	kd_ring *ring = nullptr;
	int result = 0;

	call(*open, "ring_create", [&](const CoreApi &core) {
		result = core.ring_create(open->file, &out, &ring);
		watch::release(&open->world->devnodes);
	});
	if (err)
		*err = result;
	return result ? Ring() : Ring(open, ring, out);
}

Ring MapFile::make_ring(const kdirect_ring_setup &setup, int *err)
{
	return sim::make_ring(open, setup, err);
}

Ring::Ring(std::shared_ptr<OpenMap> holds, kd_ring *r, const kdirect_ring_setup &s)
	: setup(s), open(std::move(holds)), ring(r)
{
	call(*open, "mmap", [&](const CoreApi &core) {
		base = static_cast<char *>(kd_shared_memory(core.ring_memory(ring)));
	});
}

Ring &Ring::operator=(Ring &&other) noexcept
{
	if (this == &other)
		return *this;
	close();
	setup = other.setup;
	open = std::move(other.open);
	ring = std::exchange(other.ring, nullptr);
	base = std::exchange(other.base, nullptr);
	return *this;
}

void Ring::close()
{
	kd_ring *old = std::exchange(ring, nullptr);

	if (!old)
		return;
	call(*open, "ring_release", [&](const CoreApi &core) {
		watch::acquire(open->file);
		core.ring_release(old);
	});
	open.reset();
}

int Ring::enter(kdirect_ring_enter &args)
{
	int err = 0;

	call(*open, "ring_enter", [&](const CoreApi &core) { err = core.ring_enter(ring, &args); });
	return err;
}

int Ring::enter(uint32_t to_submit, uint32_t min_completions, uint32_t flags, uint64_t timeout_ns)
{
	kdirect_ring_enter args{.to_submit = to_submit,
				.min_completions = min_completions,
				.flags = flags,
				.timeout_ns = timeout_ns};

	return enter(args);
}

uint32_t Ring::poll(uint32_t mask, uint64_t timeout)
{
	uint32_t ready = 0;

	call(*open, "poll", [&](const CoreApi &core) {
		ready = wait_for_events(*open->world, {core.ring_waitq(ring)}, mask, timeout,
					[&] { return core.ring_poll(ring); });
	});
	return ready;
}

bool Ring::push(const kdirect_desc &desc)
{
	uint32_t tail = sq_tail();

	if (tail - sq_head() >= setup.sq_entries)
		return false;
	std::memcpy(base + setup.descs + tail % setup.sq_entries * sizeof(desc), &desc,
		    sizeof(desc));
	sq_tail().store(tail + 1);
	return true;
}

bool Ring::pop(kdirect_completion &out)
{
	uint32_t head = cq_head();

	if (head == cq_tail())
		return false;
	std::memcpy(&out, base + setup.completions + head % setup.cq_entries * sizeof(out),
		    sizeof(out));
	cq_head().store(head + 1);
	return true;
}

void Ring::nudge()
{
	if (state() & KDIRECT_RING_NEED_WAKEUP && enter(0))
		fail("a thread cannot be woken");
}

void Ring::orphan()
{
	for (const auto &thread : open->world->threads)
		thread->orphan = true;
}

} // namespace sim
