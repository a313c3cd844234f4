// SPDX-License-Identifier: GPL-2.0-only
/* Locks, and waiting for what somebody else does. */

#include <linux/jiffies.h>
#include <linux/mutex.h>
#include <linux/poll.h>
#include <linux/sched/signal.h>
#include <linux/sched/stat.h>
#include <linux/spinlock.h>
#include <linux/wait.h>

#include "shim.h"

static_assert(sizeof(spinlock_t) <= sizeof(struct kd_spinlock));
static_assert(sizeof(struct mutex) <= sizeof(struct kd_mutex));
static_assert(sizeof(struct wait_queue_head) <= sizeof(struct kd_waitq));

static struct lock_class_key kd_lock_keys[KD_LOCK_CLASSES];

static const char * const kd_lock_names[KD_LOCK_CLASSES] = {
	[KD_LOCK_REGISTRY]	= "kdirect registry",
	[KD_LOCK_READER]	= "kdirect reader",
	[KD_LOCK_SUBMIT]	= "kdirect submit",
	[KD_LOCK_FIXED]		= "kdirect fixed",
	[KD_LOCK_POLL]		= "kdirect poll",
	[KD_LOCK_TX]		= "kdirect tx",
	[KD_LOCK_CTRL]		= "kdirect ctrl",
	[KD_LOCK_RX]		= "kdirect rx",
	[KD_LOCK_MESSAGE]	= "kdirect message",
	[KD_LOCK_STATE]		= "kdirect state",
	[KD_LOCK_FILE]		= "kdirect file",
};

static spinlock_t *to_spinlock(struct kd_spinlock *lock)
{
	return (spinlock_t *)lock;
}

static struct mutex *to_mutex(struct kd_mutex *lock)
{
	return (struct mutex *)lock;
}

void kd_spin_init(struct kd_spinlock *lock, enum kd_lock_class cls)
{
	spin_lock_init(to_spinlock(lock));
	lockdep_set_class_and_name(to_spinlock(lock), &kd_lock_keys[cls], kd_lock_names[cls]);
}

void kd_spin_lock(struct kd_spinlock *lock)
	__acquires(lock)
{
	spin_lock_bh(to_spinlock(lock));
}

bool kd_spin_trylock(struct kd_spinlock *lock)
{
	if (!spin_trylock_bh(to_spinlock(lock)))
		return false;
	__release(lock);	/* sparse cannot follow a function that may have locked */
	return true;
}

void kd_spin_unlock(struct kd_spinlock *lock)
	__releases(lock)
{
	spin_unlock_bh(to_spinlock(lock));
}

void kd_mutex_init(struct kd_mutex *lock, enum kd_lock_class cls)
{
	mutex_init(to_mutex(lock));
	lockdep_set_class_and_name(to_mutex(lock), &kd_lock_keys[cls], kd_lock_names[cls]);
}

void kd_mutex_lock(struct kd_mutex *lock)
{
	mutex_lock(to_mutex(lock));
}

int kd_mutex_lock_interruptible(struct kd_mutex *lock)
{
	return kd_from_errno(mutex_lock_interruptible(to_mutex(lock)));
}

bool kd_mutex_trylock(struct kd_mutex *lock)
{
	return mutex_trylock(to_mutex(lock));
}

void kd_mutex_unlock(struct kd_mutex *lock)
{
	mutex_unlock(to_mutex(lock));
}

void kd_waitq_init(struct kd_waitq *wq)
{
	init_waitqueue_head(to_waitq(wq));
}

void kd_wake(struct kd_waitq *wq, unsigned int key)
{
	__poll_t events = 0;

	if (key & KD_WAKE_END) {
		wake_up_all(to_waitq(wq));
		return;
	}
	if (key & KD_WAKE_IN)
		events |= EPOLLIN | EPOLLRDNORM;
	if (key & KD_WAKE_PRI)
		events |= EPOLLPRI;
	if (key & KD_WAKE_OUT)
		events |= EPOLLOUT | EPOLLWRNORM;
	wake_up_poll(to_waitq(wq), events);
}

bool kd_waitq_idle(struct kd_waitq *wq)
{
	return !wq_has_sleeper(to_waitq(wq));
}

/* Rounded up, and one more for the tick that is under way: never too early. */
static unsigned long kd_timeout_jiffies(u64 timeout_ns)
{
	u64 ticks;

	if (timeout_ns == KD_FOREVER)
		return MAX_SCHEDULE_TIMEOUT;
	ticks = nsecs_to_jiffies64(timeout_ns) + 2;
	return min_t(u64, ticks, MAX_SCHEDULE_TIMEOUT - 1);
}

int kd_wait(struct kd_waitq *wq, bool (*done)(void *arg), void *arg, uint64_t timeout_ns,
	    enum kd_wait_mode mode)
{
	struct wait_queue_head *head = to_waitq(wq);
	long left = kd_timeout_jiffies(timeout_ns);

	switch (mode) {
	case KD_WAIT_UNINTERRUPTIBLE:
		left = wait_event_timeout(*head, done(arg), left);
		break;
	case KD_WAIT_KILLABLE:
		left = wait_event_killable_timeout(*head, done(arg), left);
		break;
	case KD_WAIT_INTERRUPTIBLE:
		left = wait_event_interruptible_timeout(*head, done(arg), left);
		break;
	}
	if (left < 0)
		return KD_EINTR;
	return left ? 0 : KD_ETIMEDOUT;
}

int kd_nap(uint64_t ns, enum kd_wait_mode mode)
{
	ktime_t timeout = ns_to_ktime(ns);

	set_current_state(mode == KD_WAIT_KILLABLE ? TASK_KILLABLE : TASK_INTERRUPTIBLE);
	schedule_hrtimeout(&timeout, HRTIMER_MODE_REL);
	if (mode == KD_WAIT_KILLABLE ? fatal_signal_pending(current) : signal_pending(current))
		return KD_EINTR;
	return 0;
}

int kd_poll_pause(void)
{
	/*
	 * What is waited for may need this very CPU: the peer on this machine, or the
	 * ksoftirqd that runs the device. cond_resched() alone would keep both waiting
	 * for a whole time slice; without it RCU might wait for us for ever.
	 */
	if (single_task_running()) {
		cpu_relax();
		cond_resched();
	} else {
		yield();
	}
	return signal_pending(current) ? KD_EINTR : 0;
}
