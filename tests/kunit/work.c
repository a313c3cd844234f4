// SPDX-License-Identifier: GPL-2.0-only
/* Deferred work: when it runs, that it runs once at a time, and that it ends. */

#include <linux/delay.h>
#include <linux/preempt.h>
#include <linux/slab.h>
#include <linux/workqueue.h>

#include "kunit.h"

#define KDK_MS	1000000ULL
#define KDK_LONG	(3600000 * KDK_MS)	/* an hour: never, for a test */

struct kdk_job {
	struct kd_work		work;
	struct kd_work		*called_with;
	struct completion	begun, go, done;
	struct kd_work		*cancels;
	unsigned int		runs;		/* begun */
	unsigned int		again;		/* queues itself so often */
	unsigned int		sleep_ms;
	bool			holds;		/* waits for @go */
	bool			cancelled;
	bool			atomic;
	atomic_t		inside;
	atomic_t		overlaps;
};

static void kdk_run(struct kd_work *work)
{
	struct kdk_job *job = container_of(work, struct kdk_job, work);

	if (atomic_inc_return(&job->inside) != 1)
		atomic_inc(&job->overlaps);
	job->called_with = work;
	job->atomic |= !in_task() || in_atomic() || irqs_disabled();
	WRITE_ONCE(job->runs, job->runs + 1);
	complete(&job->begun);
	if (job->holds)
		wait_for_completion(&job->go);
	if (job->sleep_ms)
		msleep(job->sleep_ms);
	if (job->cancels)
		job->cancelled = kd_work_cancel(job->cancels);
	if (job->again) {
		job->again--;
		kd_work_queue(work);
	}
	atomic_dec(&job->inside);
	complete(&job->done);
}

/* another function, hence another lock class: it waits for work of the first */
static void kdk_run_other(struct kd_work *work)
{
	kdk_run(work);
}

static struct kdk_job *kdk_job(struct kunit *test)
{
	struct kdk_job *job = kunit_kzalloc(test, sizeof(*job), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, job);
	init_completion(&job->begun);
	init_completion(&job->go);
	init_completion(&job->done);
	kd_work_init(&job->work, kdk_run);
	return job;
}

static bool kdk_happens(struct completion *what, unsigned int ms)
{
	return wait_for_completion_timeout(what, msecs_to_jiffies(ms) + 1);
}

static void runs_once(struct kunit *test)
{
	struct kdk_job *job = kdk_job(test);

	KUNIT_EXPECT_TRUE(test, kd_work_queue(&job->work));
	KUNIT_EXPECT_TRUE(test, kdk_happens(&job->done, 10000));
	KUNIT_EXPECT_PTR_EQ(test, job->called_with, &job->work);
	KUNIT_EXPECT_FALSE_MSG(test, job->atomic, "not in process context");
	KUNIT_EXPECT_FALSE(test, kd_work_cancel(&job->work));
	KUNIT_EXPECT_EQ(test, job->runs, 1);
	KUNIT_EXPECT_TRUE_MSG(test, kd_work_queue(&job->work), "it is no longer pending");
	kd_work_flush_all();
	KUNIT_EXPECT_EQ(test, job->runs, 2);
}

/* Pending work keeps its earlier time; only kd_work_queue() hastens it. */
static void pending(struct kunit *test)
{
	struct kdk_job *job = kdk_job(test);

	KUNIT_EXPECT_TRUE(test, kd_work_queue_after(&job->work, KDK_LONG));
	KUNIT_EXPECT_FALSE(test, kd_work_queue_after(&job->work, KDK_MS));
	KUNIT_EXPECT_FALSE_MSG(test, kdk_happens(&job->begun, 200), "it was hastened");
	KUNIT_EXPECT_FALSE(test, kd_work_queue(&job->work));
	KUNIT_EXPECT_TRUE(test, kdk_happens(&job->done, 10000));
	KUNIT_EXPECT_FALSE(test, kd_work_cancel(&job->work));
	KUNIT_EXPECT_EQ(test, job->runs, 1);

	KUNIT_EXPECT_TRUE(test, kd_work_queue_after(&job->work, 20 * KDK_MS));
	KUNIT_EXPECT_FALSE(test, kd_work_queue_after(&job->work, KDK_LONG));
	KUNIT_EXPECT_TRUE_MSG(test, kdk_happens(&job->done, 10000), "it was put off");
	KUNIT_EXPECT_FALSE(test, kd_work_cancel(&job->work));
	KUNIT_EXPECT_EQ(test, job->runs, 2);
}

static const uint64_t delays[] = { 0, 1, KDK_MS, 10 * KDK_MS, 150 * KDK_MS };

static void kdk_describe_delay(const uint64_t *delay, char *desc)
{
	snprintf(desc, KUNIT_PARAM_DESC_SIZE, "%llu ns", *delay);
}

KUNIT_ARRAY_PARAM(delay, delays, kdk_describe_delay);

static void never_early(struct kunit *test)
{
	uint64_t delay = *(const uint64_t *)test->param_value, start, spent;
	struct kdk_job *job = kdk_job(test);

	start = kd_now_ns();
	KUNIT_EXPECT_TRUE(test, kd_work_queue_after(&job->work, delay));
	KUNIT_EXPECT_TRUE(test, kdk_happens(&job->begun, 20000));
	spent = kd_now_ns() - start;
	KUNIT_EXPECT_GE(test, spent, delay);
	kd_work_cancel(&job->work);
}

static void cancel_pending(struct kunit *test)
{
	struct kdk_job *job = kdk_job(test);

	KUNIT_EXPECT_FALSE_MSG(test, kd_work_cancel(&job->work), "it was never queued");
	KUNIT_EXPECT_TRUE(test, kd_work_queue_after(&job->work, 50 * KDK_MS));
	KUNIT_EXPECT_TRUE(test, kd_work_cancel(&job->work));
	KUNIT_EXPECT_FALSE(test, kdk_happens(&job->begun, 200));
	KUNIT_EXPECT_FALSE(test, kd_work_cancel(&job->work));
	KUNIT_EXPECT_TRUE_MSG(test, kd_work_queue(&job->work), "cancelled work can be queued");
	KUNIT_EXPECT_TRUE(test, kdk_happens(&job->done, 10000));
	kd_work_cancel(&job->work);
}

static void cancel_running(struct kunit *test)
{
	struct kdk_job *job = kdk_job(test);

	job->sleep_ms = 100;
	kd_work_queue(&job->work);
	KUNIT_EXPECT_TRUE(test, kdk_happens(&job->begun, 10000));
	KUNIT_EXPECT_FALSE_MSG(test, kd_work_cancel(&job->work), "it ran");
	KUNIT_EXPECT_EQ(test, atomic_read(&job->inside), 0);
	KUNIT_EXPECT_TRUE_MSG(test, kdk_happens(&job->done, 0), "it was not waited for");
}

/* Queued again while it runs: it runs again, after. */
static void queued_while_running(struct kunit *test)
{
	struct kdk_job *job = kdk_job(test);

	job->holds = true;
	kd_work_queue(&job->work);
	KUNIT_EXPECT_TRUE(test, kdk_happens(&job->begun, 10000));
	KUNIT_EXPECT_TRUE_MSG(test, kd_work_queue(&job->work), "running is not pending");
	KUNIT_EXPECT_FALSE(test, kd_work_queue(&job->work));
	KUNIT_EXPECT_FALSE_MSG(test, kdk_happens(&job->begun, 100), "twice at once");
	complete_all(&job->go);
	kd_work_flush_all();
	KUNIT_EXPECT_EQ(test, job->runs, 2);
	KUNIT_EXPECT_EQ(test, atomic_read(&job->overlaps), 0);
	KUNIT_EXPECT_FALSE(test, kd_work_cancel(&job->work));
}

static void queues_itself(struct kunit *test)
{
	struct kdk_job *job = kdk_job(test);
	unsigned int i;

	job->again = 5;
	kd_work_queue(&job->work);
	for (i = 0; i < 6; i++)
		KUNIT_EXPECT_TRUE(test, kdk_happens(&job->done, 10000));
	KUNIT_EXPECT_FALSE(test, kd_work_cancel(&job->work));
	KUNIT_EXPECT_EQ(test, job->runs, 6);

	/* without end: cancelling ends it all the same */
	job->again = UINT_MAX;
	kd_work_queue(&job->work);
	msleep(20);
	kd_work_cancel(&job->work);
	i = READ_ONCE(job->runs);
	msleep(50);
	KUNIT_EXPECT_EQ_MSG(test, READ_ONCE(job->runs), i, "it goes on");
	KUNIT_EXPECT_GT(test, i, 6);
	KUNIT_EXPECT_EQ(test, atomic_read(&job->overlaps), 0);
}

static void kdk_queue_often(void *arg)
{
	struct kdk_job *job = arg;
	unsigned int i;

	for (i = 0; i < 500; i++) {
		if (i % 3)
			kd_work_queue(&job->work);
		else
			kd_work_queue_after(&job->work, 1);
		if (i % 50 == 0)
			msleep(1);
	}
}

static void never_twice_at_once(struct kunit *test)
{
	struct kdk_job *job = kdk_job(test);

	job->sleep_ms = 1;
	KUNIT_EXPECT_EQ(test, kdk_threads(4, kdk_queue_often, job), 0);
	kd_work_cancel(&job->work);
	KUNIT_EXPECT_EQ(test, atomic_read(&job->overlaps), 0);
	KUNIT_EXPECT_EQ(test, atomic_read(&job->inside), 0);
	KUNIT_EXPECT_GT(test, job->runs, 1);
}

struct kdk_own {
	struct kd_work		work;
	struct completion	*freed;
};

static void kdk_free_own(struct kd_work *work)
{
	struct kdk_own *own = container_of(work, struct kdk_own, work);
	struct completion *freed = own->freed;

	memset(own, 0x5a, sizeof(*own));
	kfree(own);
	complete(freed);
}

static void frees_itself(struct kunit *test)
{
	DECLARE_COMPLETION_ONSTACK(freed);
	unsigned int i;

	for (i = 0; i < 50; i++) {
		struct kdk_own *own = kzalloc(sizeof(*own), GFP_KERNEL);

		if (!own)
			break;
		own->freed = &freed;
		kd_work_init(&own->work, kdk_free_own);
		if (i & 1)
			kd_work_queue(&own->work);
		else
			kd_work_queue_after(&own->work, KDK_MS);
		if (!wait_for_completion_timeout(&freed, 20 * HZ)) {
			KUNIT_FAIL(test, "it did not run");
			kd_work_cancel(&own->work);
			return;
		}
	}
	kd_work_flush_all();
	KUNIT_EXPECT_EQ(test, i, 50);
}

static void flush(struct kunit *test)
{
	struct kdk_job *jobs[4];
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(jobs); i++) {
		jobs[i] = kdk_job(test);
		jobs[i]->sleep_ms = 20 + 20 * i;
	}
	for (i = 0; i < ARRAY_SIZE(jobs); i++)
		kd_work_queue(&jobs[i]->work);
	kd_work_flush_all();
	for (i = 0; i < ARRAY_SIZE(jobs); i++) {
		KUNIT_EXPECT_EQ(test, READ_ONCE(jobs[i]->runs), 1);
		KUNIT_EXPECT_EQ(test, atomic_read(&jobs[i]->inside), 0);
		KUNIT_EXPECT_FALSE(test, kd_work_cancel(&jobs[i]->work));
	}
}

static void kdk_flush(void *arg)
{
	kd_work_flush_all();
}

/* From another thread, while one item runs and nothing else goes on. */
static void flush_from_elsewhere(struct kunit *test)
{
	struct kdk_job *job = kdk_job(test), *later = kdk_job(test);
	struct kdk_thread thread;

	job->holds = true;
	kd_work_queue(&job->work);
	KUNIT_EXPECT_TRUE(test, kdk_happens(&job->begun, 10000));
	if (kdk_thread_start(&thread, kdk_flush, NULL)) {
		complete_all(&job->go);
		kd_work_cancel(&job->work);
		KUNIT_FAIL(test, "no thread");
		return;
	}
	KUNIT_EXPECT_FALSE_MSG(test, kdk_thread_ended(&thread, 100), "it runs still");
	/* what is queued afterwards need not be waited for, and is not held up */
	kd_work_queue(&later->work);
	KUNIT_EXPECT_TRUE(test, kdk_happens(&later->done, 10000));
	complete_all(&job->go);
	KUNIT_EXPECT_TRUE(test, kdk_thread_ended(&thread, 10000));
	kdk_thread_join(&thread);
	KUNIT_EXPECT_EQ(test, atomic_read(&job->inside), 0);
	kd_work_cancel(&job->work);
	kd_work_cancel(&later->work);
}

/* Work that waits for other work: no recursion, for lockdep neither. */
static void cancel_from_other_work(struct kunit *test)
{
	struct kdk_job *job = kdk_job(test), *other = kdk_job(test);

	kd_work_init(&other->work, kdk_run_other);
	other->cancels = &job->work;
	job->sleep_ms = 50;
	kd_work_queue(&job->work);
	KUNIT_EXPECT_TRUE(test, kdk_happens(&job->begun, 10000));
	kd_work_queue(&other->work);
	KUNIT_EXPECT_TRUE(test, kdk_happens(&other->done, 10000));
	KUNIT_EXPECT_FALSE(test, other->cancelled);
	KUNIT_EXPECT_EQ(test, atomic_read(&job->inside), 0);

	kd_work_queue_after(&job->work, KDK_LONG);
	kd_work_queue(&other->work);
	KUNIT_EXPECT_TRUE(test, kdk_happens(&other->done, 10000));
	KUNIT_EXPECT_TRUE(test, other->cancelled);
	KUNIT_EXPECT_EQ(test, job->runs, 1);
	kd_work_cancel(&other->work);
}

static struct kunit_case kdk_work_cases[] = {
	KUNIT_CASE(runs_once),
	KUNIT_CASE(pending),
	KUNIT_CASE_PARAM(never_early, delay_gen_params),
	KUNIT_CASE(cancel_pending),
	KUNIT_CASE(cancel_running),
	KUNIT_CASE(queued_while_running),
	KUNIT_CASE(queues_itself),
	KUNIT_CASE(never_twice_at_once),
	KUNIT_CASE(frees_itself),
	KUNIT_CASE(flush),
	KUNIT_CASE(flush_from_elsewhere),
	KUNIT_CASE(cancel_from_other_work),
	{}
};

KDK_SUITE(work, kdk_work_cases);
