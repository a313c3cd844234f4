// SPDX-License-Identifier: GPL-2.0-only
/* Locks: what they exclude, and what may happen under them. */

#include <linux/bottom_half.h>
#include <linux/delay.h>
#include <linux/lockdep.h>
#include <linux/preempt.h>
#include <linux/sched/signal.h>

#include "kunit.h"

#define KDK_THREADS	4
#define KDK_ROUNDS	2000

struct kdk_counter {
	struct kd_spinlock	spin;
	struct kd_mutex		mutex;
	bool			use_mutex;
	unsigned int		value;		/* read, then written: a race shows */
};

static void kdk_count(void *arg)
{
	struct kdk_counter *c = arg;
	unsigned int i, old;

	for (i = 0; i < KDK_ROUNDS; i++) {
		if (c->use_mutex)
			kd_mutex_lock(&c->mutex);
		else
			kd_spin_lock(&c->spin);
		old = READ_ONCE(c->value);
		cpu_relax();
		if (c->use_mutex && i % 256 == 0)
			msleep(1);
		WRITE_ONCE(c->value, old + 1);
		if (c->use_mutex)
			kd_mutex_unlock(&c->mutex);
		else
			kd_spin_unlock(&c->spin);
	}
}

static void kdk_exclusion(struct kunit *test, bool use_mutex)
{
	struct kdk_counter *c = kunit_kzalloc(test, sizeof(*c), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, c);
	kd_spin_init(&c->spin, KD_LOCK_TX);
	kd_mutex_init(&c->mutex, KD_LOCK_READER);
	c->use_mutex = use_mutex;
	KUNIT_EXPECT_EQ(test, kdk_threads(KDK_THREADS, kdk_count, c), 0);
	KUNIT_EXPECT_EQ(test, c->value, KDK_THREADS * KDK_ROUNDS);
}

static void spin_excludes(struct kunit *test)
{
	kdk_exclusion(test, false);
}

static void mutex_excludes(struct kunit *test)
{
	kdk_exclusion(test, true);
}

/* From process and softirq: bottom halves are off between lock and unlock, only there. */
static void spin_stops_softirqs(struct kunit *test)
{
	struct kd_spinlock lock;
	bool before, inside, inside_try, between, after, got;

	kd_spin_init(&lock, KD_LOCK_TX);
	before = in_softirq();
	kd_spin_lock(&lock);
	inside = in_softirq();
	kd_spin_unlock(&lock);
	between = in_softirq();
	got = kd_spin_trylock(&lock);
	inside_try = in_softirq();
	if (got)
		kd_spin_unlock(&lock);
	after = in_softirq();

	KUNIT_EXPECT_FALSE(test, before);
	KUNIT_EXPECT_TRUE(test, inside);
	KUNIT_EXPECT_FALSE(test, between);
	KUNIT_EXPECT_TRUE(test, got);
	KUNIT_EXPECT_TRUE(test, inside_try);
	KUNIT_EXPECT_FALSE(test, after);
}

struct kdk_try {
	struct kd_spinlock	spin;
	struct kd_mutex		mutex;
	bool			got_spin, got_mutex, softirqs_off;
};

static void kdk_try_both(void *arg)
{
	struct kdk_try *t = arg;

	t->got_spin = kd_spin_trylock(&t->spin);
	t->softirqs_off = in_softirq();
	if (t->got_spin)
		kd_spin_unlock(&t->spin);
	t->got_mutex = kd_mutex_trylock(&t->mutex);
	if (t->got_mutex)
		kd_mutex_unlock(&t->mutex);
}

/* A lock that is held cannot be had, and trying leaves nothing behind. */
static void trylock(struct kunit *test)
{
	struct kdk_try *t = kunit_kzalloc(test, sizeof(*t), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, t);
	kd_spin_init(&t->spin, KD_LOCK_TX);
	kd_mutex_init(&t->mutex, KD_LOCK_READER);
	kdk_try_both(t);
	KUNIT_EXPECT_TRUE(test, t->got_spin);
	KUNIT_EXPECT_TRUE(test, t->got_mutex);

	kd_mutex_lock(&t->mutex);
	KUNIT_EXPECT_EQ(test, kdk_threads(1, kdk_try_both, t), 0);
	kd_mutex_unlock(&t->mutex);
	KUNIT_EXPECT_FALSE(test, t->got_mutex);
	KUNIT_EXPECT_TRUE(test, t->got_spin);

	/* the holder would be a thread on another CPU: here it is this one itself */
	if (IS_ENABLED(CONFIG_SMP)) {
		kd_spin_lock(&t->spin);
		t->got_spin = kd_spin_trylock(&t->spin);
		kd_spin_unlock(&t->spin);
		KUNIT_EXPECT_FALSE(test, t->got_spin);
		KUNIT_EXPECT_FALSE(test, in_softirq());
	}
	kdk_try_both(t);
	KUNIT_EXPECT_TRUE(test, t->got_spin);
	KUNIT_EXPECT_TRUE(test, t->got_mutex);
}

struct kdk_interrupted {
	struct kd_mutex	mutex;
	int		ret;
};

static void kdk_lock_interruptible(void *arg)
{
	struct kdk_interrupted *i = arg;

	i->ret = kd_mutex_lock_interruptible(&i->mutex);
	if (!i->ret)
		kd_mutex_unlock(&i->mutex);
}

static void mutex_interrupted(struct kunit *test)
{
	struct kdk_interrupted *i = kunit_kzalloc(test, sizeof(*i), GFP_KERNEL);
	struct kdk_thread thread;
	bool ended;

	KUNIT_ASSERT_NOT_NULL(test, i);
	kd_mutex_init(&i->mutex, KD_LOCK_READER);
	i->ret = -1;
	kd_mutex_lock(&i->mutex);
	if (kdk_thread_start(&thread, kdk_lock_interruptible, i)) {
		kd_mutex_unlock(&i->mutex);
		KUNIT_FAIL(test, "no thread");
		return;
	}
	ended = kdk_thread_ended(&thread, 100);
	kdk_thread_signal(&thread, SIGUSR1);
	KUNIT_EXPECT_FALSE_MSG(test, ended, "it did not wait");
	KUNIT_EXPECT_TRUE(test, kdk_thread_ended(&thread, 10000));
	KUNIT_EXPECT_EQ(test, i->ret, KD_EINTR);
	kd_mutex_unlock(&i->mutex);
	kdk_thread_join(&thread);

	/* nobody holds it: it is had, and given back */
	kdk_lock_interruptible(i);
	KUNIT_EXPECT_EQ(test, i->ret, 0);
}

/* The documented order; lockdep would speak up if two classes were one. */
static void documented_order(struct kunit *test)
{
	struct kd_mutex mutexes[KD_LOCK_POLL];
	struct kd_spinlock spins[KD_LOCK_CLASSES];
	int cls;

	for (cls = 0; cls < KD_LOCK_POLL; cls++) {
		kd_mutex_init(&mutexes[cls], cls);
		kd_mutex_lock(&mutexes[cls]);
	}
	for (; cls < KD_LOCK_CLASSES; cls++) {
		kd_spin_init(&spins[cls], cls);
		kd_spin_lock(&spins[cls]);
	}
	while (cls-- > KD_LOCK_POLL)
		kd_spin_unlock(&spins[cls]);
	for (; cls >= 0; cls--)
		kd_mutex_unlock(&mutexes[cls]);
	KUNIT_EXPECT_FALSE(test, in_atomic());
}

/* What lockdep tells apart, and what it cannot: two of one class. */
static void classes_differ(struct kunit *test)
{
#ifdef CONFIG_LOCKDEP
	struct kd_spinlock locks[KD_LOCK_CLASSES], same;
	int a, b;

	for (a = 0; a < KD_LOCK_CLASSES; a++)
		kd_spin_init(&locks[a], a);
	for (a = 0; a < KD_LOCK_CLASSES; a++) {
		struct lockdep_map *map = &((spinlock_t *)&locks[a])->dep_map;

		KUNIT_EXPECT_NOT_NULL(test, map->name);
		for (b = 0; b < a; b++)
			KUNIT_EXPECT_PTR_NE(test, map->key,
					    ((spinlock_t *)&locks[b])->dep_map.key);
		kd_spin_init(&same, a);
		KUNIT_EXPECT_PTR_EQ(test, map->key, ((spinlock_t *)&same)->dep_map.key);
	}
#else
	kunit_skip(test, "this kernel has no lockdep");
#endif
}

static struct kunit_case kdk_locks_cases[] = {
	KUNIT_CASE(spin_excludes),
	KUNIT_CASE(mutex_excludes),
	KUNIT_CASE(spin_stops_softirqs),
	KUNIT_CASE(trylock),
	KUNIT_CASE(mutex_interrupted),
	KUNIT_CASE(documented_order),
	KUNIT_CASE(classes_differ),
	{}
};

KDK_SUITE(locks, kdk_locks_cases);
