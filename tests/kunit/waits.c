// SPDX-License-Identifier: GPL-2.0-only
/* Waiting: when it ends, and for what reason. */

#include <linux/delay.h>
#include <linux/ktime.h>
#include <linux/poll.h>
#include <linux/sched/signal.h>
#include <linux/wait.h>

#include "kunit.h"

#define KDK_MS	1000000ULL

struct kdk_waiter {
	struct kd_waitq		wq;
	bool			flag;
	uint64_t		timeout_ns;
	enum kd_wait_mode	mode;
	int			ret;
	unsigned int		asked;
};

static bool kdk_flag(void *arg)
{
	struct kdk_waiter *w = arg;

	w->asked++;
	return READ_ONCE(w->flag);
}

static void kdk_wait_for_flag(void *arg)
{
	struct kdk_waiter *w = arg;

	w->ret = kd_wait(&w->wq, kdk_flag, w, w->timeout_ns, w->mode);
}

static struct kdk_waiter *kdk_waiter(struct kunit *test)
{
	struct kdk_waiter *w = kunit_kzalloc(test, sizeof(*w), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, w);
	kd_waitq_init(&w->wq);
	w->timeout_ns = KD_FOREVER;
	w->ret = -1;
	return w;
}

static const enum kd_wait_mode modes[] = {
	KD_WAIT_UNINTERRUPTIBLE, KD_WAIT_KILLABLE, KD_WAIT_INTERRUPTIBLE,
};

static const char * const mode_names[] = { "uninterruptible", "killable", "interruptible" };

static void kdk_describe_mode(const enum kd_wait_mode *mode, char *desc)
{
	strscpy(desc, mode_names[*mode], KUNIT_PARAM_DESC_SIZE);
}

KUNIT_ARRAY_PARAM(mode, modes, kdk_describe_mode);

static void true_already(struct kunit *test)
{
	struct kdk_waiter *w = kdk_waiter(test);

	w->mode = *(const enum kd_wait_mode *)test->param_value;
	w->flag = true;
	kdk_wait_for_flag(w);
	KUNIT_EXPECT_EQ(test, w->ret, 0);
	w->timeout_ns = 0;
	kdk_wait_for_flag(w);
	KUNIT_EXPECT_EQ(test, w->ret, 0);
	KUNIT_EXPECT_TRUE(test, kd_waitq_idle(&w->wq));
}

/* Never early; how late is up to the scheduler. */
static void times_out(struct kunit *test)
{
	static const uint64_t timeouts[] = { 0, 1, KDK_MS, 20 * KDK_MS, 150 * KDK_MS };
	struct kdk_waiter *w = kdk_waiter(test);
	unsigned int i;

	w->mode = *(const enum kd_wait_mode *)test->param_value;
	for (i = 0; i < ARRAY_SIZE(timeouts); i++) {
		uint64_t start = kd_now_ns(), spent;

		w->timeout_ns = timeouts[i];
		kdk_wait_for_flag(w);
		spent = kd_now_ns() - start;
		KUNIT_EXPECT_EQ(test, w->ret, KD_ETIMEDOUT);
		KUNIT_EXPECT_GE(test, spent, timeouts[i]);
		KUNIT_EXPECT_LT(test, spent, timeouts[i] + 20000 * KDK_MS);
		KUNIT_EXPECT_TRUE(test, kd_waitq_idle(&w->wq));
	}
}

/* It sleeps until it is woken and the test is true; either alone does nothing. */
static void woken(struct kunit *test)
{
	struct kdk_waiter *w = kdk_waiter(test);
	struct kdk_thread thread;
	unsigned int asked;

	w->mode = *(const enum kd_wait_mode *)test->param_value;
	KUNIT_ASSERT_EQ(test, kdk_thread_start(&thread, kdk_wait_for_flag, w), 0);
	KUNIT_EXPECT_FALSE(test, kdk_thread_ended(&thread, 50));
	KUNIT_EXPECT_FALSE_MSG(test, kd_waitq_idle(&w->wq), "there is a waiter");
	asked = READ_ONCE(w->asked);
	kd_wake(&w->wq, 0);
	KUNIT_EXPECT_FALSE_MSG(test, kdk_thread_ended(&thread, 50), "woken, but not true");
	KUNIT_EXPECT_GT(test, READ_ONCE(w->asked), asked);
	WRITE_ONCE(w->flag, true);
	KUNIT_EXPECT_FALSE_MSG(test, kdk_thread_ended(&thread, 50), "true, but not woken");
	kd_wake(&w->wq, KD_WAKE_IN);
	KUNIT_EXPECT_TRUE(test, kdk_thread_ended(&thread, 10000));
	kdk_thread_join(&thread);
	KUNIT_EXPECT_EQ(test, w->ret, 0);
	KUNIT_EXPECT_TRUE(test, kd_waitq_idle(&w->wq));
}

struct kdk_signal_param {
	enum kd_wait_mode	mode;
	int			sig;
	bool			ends;
};

static const struct kdk_signal_param signals[] = {
	{ KD_WAIT_UNINTERRUPTIBLE, SIGUSR1, false },
	{ KD_WAIT_UNINTERRUPTIBLE, SIGKILL, false },
	{ KD_WAIT_KILLABLE, SIGUSR1, false },
	{ KD_WAIT_KILLABLE, SIGKILL, true },
	{ KD_WAIT_INTERRUPTIBLE, SIGUSR1, true },
	{ KD_WAIT_INTERRUPTIBLE, SIGKILL, true },
};

static void kdk_describe_signal(const struct kdk_signal_param *p, char *desc)
{
	snprintf(desc, KUNIT_PARAM_DESC_SIZE, "%s, signal %d", mode_names[p->mode], p->sig);
}

KUNIT_ARRAY_PARAM(signal, signals, kdk_describe_signal);

static void signalled(struct kunit *test)
{
	const struct kdk_signal_param *p = test->param_value;
	struct kdk_waiter *w = kdk_waiter(test);
	struct kdk_thread thread;
	bool ended;

	w->mode = p->mode;
	KUNIT_ASSERT_EQ(test, kdk_thread_start(&thread, kdk_wait_for_flag, w), 0);
	while (kd_waitq_idle(&w->wq))
		msleep(1);
	kdk_thread_signal(&thread, p->sig);
	ended = kdk_thread_ended(&thread, p->ends ? 10000 : 100);
	WRITE_ONCE(w->flag, true);
	kd_wake(&w->wq, 0);
	kdk_thread_join(&thread);
	KUNIT_EXPECT_EQ(test, ended, p->ends);
	KUNIT_EXPECT_EQ(test, w->ret, p->ends ? KD_EINTR : 0);
}

/* What a poll() caller sees of a wake-up. */
struct kdk_poller {
	wait_queue_entry_t	entry;
	unsigned int		woken;
	__poll_t		events;
};

static int kdk_poller_woken(wait_queue_entry_t *entry, unsigned int mode, int flags, void *key)
{
	struct kdk_poller *p = container_of(entry, struct kdk_poller, entry);

	p->woken++;
	p->events = key_to_poll(key);
	return 0;
}

static void wake_keys(struct kunit *test)
{
	static const struct {
		unsigned int	key;
		__poll_t	with, without;
	} keys[] = {
		{ KD_WAKE_IN, EPOLLIN, EPOLLOUT },
		{ KD_WAKE_OUT, EPOLLOUT, EPOLLIN },
		{ KD_WAKE_IN | KD_WAKE_OUT, EPOLLIN | EPOLLOUT, 0 },
	};
	struct kdk_poller poller = {};
	struct kd_waitq wq;
	unsigned int i;

	kd_waitq_init(&wq);
	KUNIT_EXPECT_TRUE(test, kd_waitq_idle(&wq));
	init_waitqueue_func_entry(&poller.entry, kdk_poller_woken);
	add_wait_queue(to_waitq(&wq), &poller.entry);
	KUNIT_EXPECT_FALSE(test, kd_waitq_idle(&wq));
	for (i = 0; i < ARRAY_SIZE(keys); i++) {
		kd_wake(&wq, keys[i].key);
		KUNIT_EXPECT_EQ(test, poller.woken, i + 1);
		KUNIT_EXPECT_EQ(test, (u32)(poller.events & keys[i].with), (u32)keys[i].with);
		KUNIT_EXPECT_EQ(test, (u32)(poller.events & keys[i].without), 0);
	}
	/* the end is for all, whatever they wait for: without a key poll() looks for itself */
	kd_wake(&wq, KD_WAKE_IN | KD_WAKE_END);
	KUNIT_EXPECT_EQ(test, poller.woken, i + 1);
	KUNIT_EXPECT_EQ(test, (u32)poller.events, 0);
	remove_wait_queue(to_waitq(&wq), &poller.entry);
	KUNIT_EXPECT_TRUE(test, kd_waitq_idle(&wq));
}

static void wakes_all(struct kunit *test)
{
	struct kdk_waiter *w = kdk_waiter(test);
	struct kdk_thread threads[3];
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(threads); i++)
		KUNIT_ASSERT_EQ(test, kdk_thread_start(&threads[i], kdk_wait_for_flag, w), 0);
	msleep(50);
	WRITE_ONCE(w->flag, true);
	kd_wake(&w->wq, KD_WAKE_OUT);
	for (i = 0; i < ARRAY_SIZE(threads); i++) {
		KUNIT_EXPECT_TRUE(test, kdk_thread_ended(&threads[i], 10000));
		kd_wake(&w->wq, KD_WAKE_END);
		kdk_thread_join(&threads[i]);
	}
}

struct kdk_pause {
	struct completion	go;
	int			ret;
};

static void kdk_pause_when_told(void *arg)
{
	struct kdk_pause *p = arg;

	wait_for_completion(&p->go);
	p->ret = kd_poll_pause();
}

static void poll_pause(struct kunit *test)
{
	struct kdk_pause *p = kunit_kzalloc(test, sizeof(*p), GFP_KERNEL);
	struct kdk_thread thread;
	int sig;

	KUNIT_ASSERT_NOT_NULL(test, p);
	for (sig = 0; sig < 2; sig++) {
		init_completion(&p->go);
		KUNIT_ASSERT_EQ(test, kdk_thread_start(&thread, kdk_pause_when_told, p), 0);
		if (sig)
			kdk_thread_signal(&thread, SIGUSR1);
		complete(&p->go);
		kdk_thread_join(&thread);
		KUNIT_EXPECT_EQ(test, p->ret, sig ? KD_EINTR : 0);
	}
}

struct kdk_nap {
	enum kd_wait_mode	mode;
	uint64_t		ns;
	int			ret;
};

static void kdk_nap_as_told(void *arg)
{
	struct kdk_nap *nap = arg;
	uint64_t start = kd_now_ns();

	nap->ret = kd_nap(nap->ns, nap->mode);
	nap->ns = kd_now_ns() - start;
}

static void naps(struct kunit *test)
{
	static const enum kd_wait_mode modes[] = { KD_WAIT_KILLABLE, KD_WAIT_INTERRUPTIBLE };
	struct kdk_nap *nap = kunit_kzalloc(test, sizeof(*nap), GFP_KERNEL);
	struct kdk_thread thread;
	unsigned int i;

	KUNIT_ASSERT_NOT_NULL(test, nap);
	for (i = 0; i < ARRAY_SIZE(modes); i++) {
		nap->mode = modes[i];
		nap->ns = 300000;
		kdk_nap_as_told(nap);
		KUNIT_EXPECT_EQ(test, nap->ret, 0);
		KUNIT_EXPECT_GE(test, nap->ns, 300000);
		/* a signal of the mode ends a long one */
		nap->ns = 3600ULL * NSEC_PER_SEC;
		KUNIT_ASSERT_EQ(test, kdk_thread_start(&thread, kdk_nap_as_told, nap), 0);
		msleep(20);
		kdk_thread_signal(&thread, modes[i] == KD_WAIT_KILLABLE ? SIGKILL : SIGUSR1);
		kdk_thread_join(&thread);
		KUNIT_EXPECT_EQ(test, nap->ret, KD_EINTR);
		KUNIT_EXPECT_LT(test, nap->ns, 60ULL * NSEC_PER_SEC);
	}
	/* no other signal ends it */
	nap->mode = KD_WAIT_KILLABLE;
	nap->ns = 100 * KDK_MS;
	KUNIT_ASSERT_EQ(test, kdk_thread_start(&thread, kdk_nap_as_told, nap), 0);
	kdk_thread_signal(&thread, SIGUSR1);
	kdk_thread_join(&thread);
	KUNIT_EXPECT_EQ(test, nap->ret, 0);
	KUNIT_EXPECT_GE(test, nap->ns, 100 * KDK_MS);
}

static void clock(struct kunit *test)
{
	uint64_t last = kd_now_ns();
	ktime_t start = ktime_get();
	unsigned int i;

	KUNIT_EXPECT_LE(test, last, (uint64_t)ktime_to_ns(start));
	for (i = 0; i < 1000; i++) {
		uint64_t now = kd_now_ns();

		KUNIT_EXPECT_GE(test, now, last);
		last = now;
	}
	KUNIT_EXPECT_LE(test, last, (uint64_t)ktime_to_ns(ktime_get()));
	msleep(20);
	KUNIT_EXPECT_GE(test, kd_now_ns() - last, 20 * KDK_MS);
}

static void chance(struct kunit *test)
{
	uint64_t ones = 0, zeros = 0, last = 0;
	unsigned int i;

	for (i = 0; i < 64; i++) {
		uint64_t number = kd_random();

		KUNIT_EXPECT_NE(test, number, last);
		ones |= number;
		zeros |= ~number;
		last = number;
	}
	KUNIT_EXPECT_EQ_MSG(test, ones, ~0ULL, "a bit that was never set");
	KUNIT_EXPECT_EQ_MSG(test, zeros, ~0ULL, "a bit that was always set");
	KUNIT_EXPECT_LT(test, kd_cpu(), nr_cpu_ids);
}

static struct kunit_case kdk_waits_cases[] = {
	KUNIT_CASE_PARAM(true_already, mode_gen_params),
	KUNIT_CASE_PARAM(times_out, mode_gen_params),
	KUNIT_CASE_PARAM(woken, mode_gen_params),
	KUNIT_CASE_PARAM(signalled, signal_gen_params),
	KUNIT_CASE(wake_keys),
	KUNIT_CASE(wakes_all),
	KUNIT_CASE(poll_pause),
	KUNIT_CASE(naps),
	KUNIT_CASE(clock),
	KUNIT_CASE(chance),
	{}
};

KDK_SUITE(waits, kdk_waits_cases);
