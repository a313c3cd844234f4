/* SPDX-License-Identifier: GPL-2.0-only */
/* A flow of control with a stack of its own: a process, a worker, a softirq. */
#pragma once
#ifndef __x86_64__
#include <ucontext.h>
#endif

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

struct kd_work;
struct kd_waitq;
struct kd_mutex;
struct kd_spinlock;

namespace sim
{

struct Node;
struct Cm;
struct Thread;
struct Plug;

enum class Context : uint8_t {
	Process,
	Softirq,
};

struct HeldLock {
	const void *lock;
	unsigned int cls;
	bool spin;
};

struct Fiber {
	enum class State : uint8_t { Runnable, Blocked, Done };

	uint64_t id = 0;
	std::string name;
	Context context = Context::Process;
	Node *node = nullptr;
	State state = State::Runnable;
	std::function<void()> body;

	std::vector<HeldLock> held;
	unsigned int atomic_depth = 0; /* inside something that must not sleep */
	bool nowait = false;           /* serves a caller that must not block */
	bool signalled = false;
	bool fatal_signal = false;

	const char *blocked_in = "";
	const char *last_calls[4] = {"", "", "", ""}; /* of os.h, for messages */
	kd_waitq *waitq = nullptr;                    /* registered here, awake or not */
	bool woken = false;
	kd_mutex *mutex = nullptr;
	kd_spinlock *spin = nullptr; /* waits for it */
	bool interruptible = false;
	bool killable = false;
	Cm *event_of = nullptr;  /* runs an event handler of this id */
	Cm *event_new = nullptr; /* a connection request's new id */
	kd_work *work = nullptr; /* runs this work */
	Thread *thread = nullptr;
	Plug *plug = nullptr;    /* issues several commands: uring.h */
	unsigned int pauses = 0; /* while it polls, in one call */
	bool probing = false;    /* tests its condition although nobody woke it */
	unsigned int slot = 0;   /* watch.h */

	bool signal_ends(bool fatal_only) const
	{
		return fatal_only ? fatal_signal : signalled || fatal_signal;
	}
	bool holds_spin() const;

	Fiber();
	~Fiber();
	Fiber(const Fiber &) = delete;
	Fiber &operator=(const Fiber &) = delete;

	/* Called by the scheduler, off any fiber: runs it until it switches back. */
	void resume();
	/* Called on the fiber. */
	void suspend();

	static void entry(unsigned int hi, unsigned int lo);

private:
	void start();
	void switch_in();
	void switch_out();

#ifdef __x86_64__
	void *self_sp = nullptr;
	void *back_sp = nullptr;
#else
	ucontext_t self;
	ucontext_t back;
#endif
	void *stack = nullptr;
	bool started = false;
	/* the sanitizers', each used by its build only */
	[[maybe_unused]] void *fake_stack = nullptr;
	[[maybe_unused]] void *back_fake_stack = nullptr;
	[[maybe_unused]] const void *back_bottom = nullptr;
	[[maybe_unused]] std::size_t back_size = 0;
	[[maybe_unused]] void *tsan = nullptr;
	[[maybe_unused]] void *back_tsan = nullptr;
};

} // namespace sim
