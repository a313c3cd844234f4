// SPDX-License-Identifier: GPL-2.0-only
// os.h: waiting and deferred work.
#include <cstring>

#include "watch.h"
#include "world.h"

using namespace sim;

namespace
{

constexpr unsigned long waitq_magic = 0x57414954;
constexpr unsigned long work_magic = 0x574f524b;

using WorkFn = void (*)(kd_work *);

void check_waitq(const kd_waitq *wq, const char *function)
{
	if (wq->opaque[0] != waitq_magic)
		die("%s: wait queue %p is not initialised", function,
		    static_cast<const void *>(wq));
}

WorkFn work_fn(const kd_work *work, const char *function)
{
	if (work->opaque[0] != work_magic)
		die("%s: work %p is not initialised", function, static_cast<const void *>(work));
	return reinterpret_cast<WorkFn>(work->opaque[1]);
}

void wake_flushers(World &w)
{
	for (const auto &fiber : w.sched.all())
		if (!std::strcmp(fiber->blocked_in, "kd_work_cancel") ||
		    !std::strcmp(fiber->blocked_in, "kd_work_flush_all") ||
		    !std::strcmp(fiber->blocked_in, "work"))
			w.sched.wake(fiber.get());
}

/* In a fiber of its own: @token tells whether the work is still to run. */
void run_work(World &w, kd_work *work, uint64_t token)
{
	Fiber *self = w.sched.current();

	for (;;) {
		auto found = w.works.find(work);

		if (found == w.works.end() || found->second.pending != token)
			return;
		if (!found->second.running)
			break;
		w.sched.block("work"); /* never twice at once */
	}
	World::WorkRun &run = w.works[work];
	WorkFn fn = run.fn;
	uint64_t sequence = run.sequence;

	run.pending = 0;
	run.running = self->id;
	self->work = work;
	watch::acquire(work);
	w.sched.preempt();
	w.sched.doze();
	fn(work);
	self->work = nullptr;
	w.working.erase(sequence);
	watch::release(&w.working);
	/* The work may be gone by now, and another may live at its address. */
	auto found = w.works.find(work);
	if (found != w.works.end() && found->second.running == self->id) {
		watch::release(work);
		found->second.running = 0;
		if (!found->second.pending && !found->second.cancelling)
			w.works.erase(found);
	}
	wake_flushers(w);
}

void start_work(World &w, kd_work *work, World::WorkRun &run)
{
	uint64_t token = w.next_work++;

	run.pending = token;
	run.delayed = false;
	run.sequence = token;
	w.working.insert(token);
	w.sched.spawn("work", Context::Process, run.node,
		      [&w, work, token] { run_work(w, work, token); });
}

} // namespace

extern "C" {

void kd_waitq_init(struct kd_waitq *wq)
{
	std::memset(wq, 0, sizeof(*wq));
	wq->opaque[0] = waitq_magic;
}

void kd_wake(struct kd_waitq *wq, unsigned int key)
{
	World &w = world();

	w.enter(__func__, false);
	check_waitq(wq, __func__);
	watch::both(wq);
	for (const auto &fiber : w.sched.all()) {
		if (fiber->waitq != wq)
			continue;
		fiber->woken = true;
		w.sched.wake(fiber.get());
	}
	for (const World::Poller &poller : w.pollers) {
		if (poller.waitq != wq || !(poller.key & key))
			continue;
		poller.fiber->woken = true;
		w.sched.wake(poller.fiber);
	}
}

bool kd_waitq_idle(struct kd_waitq *wq)
{
	World &w = world();

	w.enter(__func__, false);
	check_waitq(wq, __func__);
	watch::both(wq);
	for (const auto &fiber : w.sched.all())
		if (fiber->waitq == wq)
			return false;
	for (const World::Poller &poller : w.pollers)
		if (poller.waitq == wq)
			return false;
	return true;
}

int kd_wait(struct kd_waitq *wq, bool (*done)(void *arg), void *arg, uint64_t timeout_ns,
	    enum kd_wait_mode mode)
{
	World &w = world();

	w.enter(__func__, true);
	check_waitq(wq, __func__);
	Fiber *self = w.sched.current();
	bool timed = timeout_ns != KD_FOREVER;
	uint64_t deadline = w.now() + (timed ? timeout_ns : 0);
	uint64_t id = self->id;
	Sched::Timer timer{};
	int err = 0;

	if (self->waitq)
		die("kd_wait() inside kd_wait()");
	self->waitq = wq;
	self->killable = mode == KD_WAIT_KILLABLE;
	self->interruptible = mode == KD_WAIT_INTERRUPTIBLE;
	if (timed)
		timer = w.sched.at(deadline, [&w, self, id] {
			if (w.sched.alive(id) && self->waitq) {
				self->woken = true;
				w.sched.wake(self);
			}
		});
	for (;;) {
		self->woken = false;
		self->atomic_depth++;
		watch::both(wq);
		bool is_done = done(arg);
		self->atomic_depth--;
		if (is_done && self->probing)
			fail("%s waits although it need not: nobody woke it", self->name.c_str());
		if (self->probing) {
			self->probing = false;
			if (!is_done) {
				w.sched.block(__func__);
				continue;
			}
		}
		if (is_done)
			break;
		if (mode != KD_WAIT_UNINTERRUPTIBLE &&
		    self->signal_ends(mode == KD_WAIT_KILLABLE)) {
			err = KD_EINTR;
			break;
		}
		if (timed && w.now() >= deadline) {
			err = KD_ETIMEDOUT;
			break;
		}
		if (self->nowait)
			fail("kd_wait() blocks a caller that must not block");
		w.sched.preempt();
		if (!self->woken)
			w.sched.block(__func__);
	}
	self->waitq = nullptr;
	self->killable = false;
	self->interruptible = false;
	if (timed)
		w.sched.cancel(timer);
	return err;
}

int kd_poll_pause(void)
{
	World &w = world();

	w.enter(__func__, true);
	if (w.sched.current()->nowait)
		fail("kd_poll_pause() for a caller that must not block");
	/* whoever polls for long may do it less often, or nothing else would be simulated */
	unsigned int pauses = w.sched.current()->pauses++;
	w.sched.sleep(w.sched.rng.range(100, 1 * us) << std::min(pauses / 8, 8U));
	return w.sched.current()->signal_ends(false) ? KD_EINTR : 0;
}

int kd_nap(uint64_t ns, enum kd_wait_mode mode)
{
	World &w = world();

	w.enter(__func__, true);
	if (w.sched.current()->nowait)
		fail("kd_nap() for a caller that must not block");
	w.sched.sleep(ns + w.sched.rng.range(0, ns / 4 + 1 * us));
	return w.sched.current()->signal_ends(mode == KD_WAIT_KILLABLE) ? KD_EINTR : 0;
}

void kd_work_init(struct kd_work *work, void (*fn)(struct kd_work *work))
{
	if (world().works.contains(work))
		fail("kd_work_init() of work in use");
	std::memset(work, 0, sizeof(*work));
	work->opaque[0] = work_magic;
	work->opaque[1] = reinterpret_cast<unsigned long>(fn);
}

bool kd_work_queue(struct kd_work *work)
{
	World &w = world();

	w.enter(__func__, false);
	World::WorkRun &run = w.works[work];

	watch::release(work);
	run.fn = work_fn(work, __func__);
	run.node = w.here();
	if (run.cancelling || (run.pending && !run.delayed))
		return false;
	bool fresh = !run.pending;
	if (!fresh)
		w.sched.cancel(run.timer);
	start_work(w, work, run);
	return fresh;
}

bool kd_work_queue_after(struct kd_work *work, uint64_t delay_ns)
{
	World &w = world();

	w.enter(__func__, false);
	World::WorkRun &run = w.works[work];

	watch::release(work);
	run.fn = work_fn(work, __func__);
	run.node = w.here();
	if (run.cancelling || run.pending)
		return false;
	uint64_t token = w.next_work++;
	run.pending = token;
	run.delayed = true;
	run.timer = w.sched.after(delay_ns, [&w, work, token] {
		auto found = w.works.find(work);

		if (found != w.works.end() && found->second.pending == token)
			start_work(w, work, found->second);
	});
	return true;
}

bool kd_work_cancel(struct kd_work *work)
{
	World &w = world();

	w.enter(__func__, true);
	work_fn(work, __func__);
	bool cancelled = false;

	if (w.sched.current()->work == work)
		die("kd_work_cancel() from the work itself");
	for (;;) {
		auto found = w.works.find(work);

		watch::acquire(work);
		if (found == w.works.end())
			return cancelled;
		World::WorkRun &run = found->second;
		if (run.pending) {
			if (run.delayed)
				w.sched.cancel(run.timer);
			else
				w.working.erase(run.sequence);
			run.pending = 0;
			cancelled = true;
		}
		if (!run.running && !run.cancelling) {
			w.works.erase(found);
			return cancelled;
		}
		if (!run.running)
			return cancelled; /* whoever cancels, too, takes it away */
		/* as with cancel_delayed_work_sync() it cannot be queued meanwhile */
		run.cancelling++;
		w.sched.block("kd_work_cancel");
		if (found = w.works.find(work); found != w.works.end())
			found->second.cancelling--;
	}
}

void kd_work_flush_all(void)
{
	World &w = world();

	w.enter(__func__, true);
	if (w.sched.current()->work)
		die("kd_work_flush_all() from work");
	uint64_t last = w.next_work;
	while (!w.working.empty() && *w.working.begin() < last)
		w.sched.block("kd_work_flush_all");
	watch::acquire(&w.working);
}

} /* extern "C" */
