// SPDX-License-Identifier: GPL-2.0-only
/*
 * os.h marks each function [any] or [sleep], and the core's token follows from that. Here
 * the kernel is asked whether the marks are true: a [sleep] function tells
 * might_sleep(), whether it sleeps this time or not; an [any] function never does, and
 * is called with a lock held.
 */

#include <linux/console.h>
#include <linux/delay.h>
#include <linux/jiffies.h>
#include <linux/slab.h>
#include <linux/tracepoint.h>
#include <rdma/ib_verbs.h>

#include "kunit.h"

/* what the functions are called with; all of it is there beforehand */
struct kdk_props {
	struct kdk_user		user;
	struct kd_waitq		wq;
	struct kd_mutex		mutex;
	struct kd_spinlock	spin;
	struct kd_work		work;
	struct kd_pages		*pages;
	void			*mem;
	struct ib_device	*dev;
	struct ib_pd		*pd;
	struct kd_mr		*mr;
	struct kd_dma		dma;
	struct kd_cqe		cqe;
	struct iovec		vec;
	struct iov_iter		iter;
	u8			bytes[64];
	char			text[64];
};

static bool kdk_yes(void *arg)
{
	return true;
}

static void kdk_no_work(struct kd_work *work)
{
}

#define KDK_OP(id, body) static void kdk_op_##id(struct kdk_props *p) { body; }

KDK_OP(zalloc, p->mem = kd_zalloc(64))
KDK_OP(free, kd_free(p->mem); p->mem = NULL)
KDK_OP(mutex_lock, kd_mutex_lock(&p->mutex); kd_mutex_unlock(&p->mutex))
KDK_OP(mutex_intr, if (!kd_mutex_lock_interruptible(&p->mutex)) kd_mutex_unlock(&p->mutex))
KDK_OP(wait_for, kd_wait(&p->wq, kdk_yes, NULL, KD_FOREVER, KD_WAIT_UNINTERRUPTIBLE))
KDK_OP(wait_killable, kd_wait(&p->wq, kdk_yes, NULL, 0, KD_WAIT_KILLABLE))
KDK_OP(wait_intr, kd_wait(&p->wq, kdk_yes, NULL, KD_FOREVER, KD_WAIT_INTERRUPTIBLE))
KDK_OP(work_cancel, kd_work_cancel(&p->work))
KDK_OP(flush_all, kd_work_flush_all())
KDK_OP(copy_from, kd_copy_from(p->bytes, 16, from_iter(&p->iter)))
KDK_OP(copy_to, kd_copy_to(p->bytes, 16, from_iter(&p->iter)))
KDK_OP(pages_pin, kd_pages_pin(from_iter(&p->iter), 16, 1, &p->pages))
KDK_OP(pages_alloc, kd_pages_alloc(5000, KD_PAGES_FETCH, &p->pages))
KDK_OP(pages_alloc_writer, kd_pages_alloc(5000, KD_PAGES_WRITER, &p->pages))
KDK_OP(pages_copy_from, kd_pages_copy_from(p->pages, from_iter(&p->iter), 16))
KDK_OP(pages_copy_to, kd_pages_copy_to(p->pages, 0, 16, from_iter(&p->iter)))
KDK_OP(handlers, kd_handlers_synchronize())
KDK_OP(dma_create, kd_dma_create((struct kd_pd *)p->pd, 100, true, &p->dma))
KDK_OP(mr_create, kd_mr_create((struct kd_pd *)p->pd, 4, &p->mr))
KDK_OP(mr_destroy, kd_mr_destroy(p->mr); p->mr = NULL)

KDK_OP(spin, kd_spin_lock(&p->spin); kd_spin_unlock(&p->spin))
KDK_OP(trylock, if (kd_spin_trylock(&p->spin)) kd_spin_unlock(&p->spin))
KDK_OP(wake, kd_wake(&p->wq, KD_WAKE_IN | KD_WAKE_OUT); kd_wake(&p->wq, KD_WAKE_END))
KDK_OP(idle, kd_waitq_idle(&p->wq))
KDK_OP(inits, kd_spin_init(&p->spin, KD_LOCK_STATE); kd_waitq_init(&p->wq);
       kd_mutex_init(&p->mutex, KD_LOCK_READER); kd_cqe_init(&p->cqe, KD_CQE_SEND))
KDK_OP(queue_work, kd_work_queue_after(&p->work, 1000); kd_work_queue(&p->work))
KDK_OP(clock, kd_now_ns(); kd_random(); kd_cpu())
KDK_OP(format, kd_format(p->text, sizeof(p->text), "%s %llu", "text", 12345678901ULL))
KDK_OP(logs, kd_log(KD_LOG_DEBUG, "debug %d", 1); kd_log(KD_LOG_INFO, "a test says %d", 2))
KDK_OP(nets, kd_net_put(kd_net_get(from_net(&init_net))); kd_net_is_init(from_net(&init_net));
       kd_net_inode(from_net(&init_net)))
KDK_OP(pages_nowait, kd_pages_alloc(5000, KD_PAGES_NOWAIT, &p->pages))
KDK_OP(pages_free, kd_pages_free(p->pages); p->pages = NULL)
KDK_OP(pages_free_none, kd_pages_free(NULL))
KDK_OP(mr_unmap, kd_mr_unmap(p->mr, p->pages))
KDK_OP(mr_key, kd_mr_rkey(p->mr); kd_mr_address(p->mr))
KDK_OP(sync_cpu, kd_dma_sync_cpu((struct kd_pd *)p->pd, &p->dma, 100))

enum kdk_needs {
	KDK_MEM		= 1,
	KDK_SOURCE	= 2,
	KDK_DEST	= 4,
	KDK_SOME	= 8,	/* pages */
	KDK_PD		= 16,
	KDK_MR		= 32,
	KDK_MAPPED	= 64,
	KDK_DMA		= 128,
};

struct kdk_mark {
	const char	*name;
	void		(*op)(struct kdk_props *p);
	bool		sleeps;
	unsigned int	needs;
};

#define KDK_SLEEPS(id, needs)	{ #id, kdk_op_##id, true, needs }
#define KDK_ANY(id, needs)	{ #id, kdk_op_##id, false, needs }

static const struct kdk_mark marks[] = {
	KDK_SLEEPS(zalloc, 0),
	KDK_SLEEPS(free, KDK_MEM),
	KDK_SLEEPS(mutex_lock, 0),
	KDK_SLEEPS(mutex_intr, 0),
	KDK_SLEEPS(wait_for, 0),
	KDK_SLEEPS(wait_killable, 0),
	KDK_SLEEPS(wait_intr, 0),
	KDK_SLEEPS(work_cancel, 0),
	KDK_SLEEPS(flush_all, 0),
	KDK_SLEEPS(copy_from, KDK_SOURCE),
	KDK_SLEEPS(copy_to, KDK_DEST),
	KDK_SLEEPS(pages_pin, KDK_SOURCE),
	KDK_SLEEPS(pages_alloc, 0),
	KDK_SLEEPS(pages_alloc_writer, 0),
	KDK_SLEEPS(pages_copy_from, KDK_SOURCE | KDK_SOME),
	KDK_SLEEPS(pages_copy_to, KDK_DEST | KDK_SOME),
	KDK_SLEEPS(handlers, 0),
	KDK_SLEEPS(dma_create, KDK_PD),
	KDK_SLEEPS(mr_create, KDK_PD),
	KDK_SLEEPS(mr_destroy, KDK_PD | KDK_MR),
	KDK_ANY(spin, 0),
	KDK_ANY(trylock, 0),
	KDK_ANY(wake, 0),
	KDK_ANY(idle, 0),
	KDK_ANY(inits, 0),
	KDK_ANY(queue_work, 0),
	KDK_ANY(clock, 0),
	KDK_ANY(format, 0),
	KDK_ANY(logs, 0),
	KDK_ANY(nets, 0),
	KDK_ANY(pages_nowait, 0),
	KDK_ANY(pages_free, KDK_SOME),
	KDK_ANY(pages_free_none, 0),
	KDK_ANY(mr_unmap, KDK_PD | KDK_MR | KDK_SOME | KDK_MAPPED),
	KDK_ANY(mr_key, KDK_PD | KDK_MR),
	KDK_ANY(sync_cpu, KDK_PD | KDK_DMA),
};

static void kdk_describe_mark(const struct kdk_mark *mark, char *desc)
{
	snprintf(desc, KUNIT_PARAM_DESC_SIZE, "%s [%s]", mark->name,
		 mark->sleeps ? "sleep" : "any");
}

KUNIT_ARRAY_PARAM(mark, marks, kdk_describe_mark);

/* --- asking the kernel ------------------------------------------------------------------ */

/*
 * A section where sleeping is prohibited (non_block_start()): might_sleep() complains
 * in it, and what sleeps does so all the same. The complaint is a fault of the run if it
 * reaches the console, so that this is silent meanwhile; it is seen on its way into the log.
 */
#if defined(CONFIG_DEBUG_ATOMIC_SLEEP) && defined(CONFIG_TRACEPOINTS)
#define KDK_CAN_ASK	1

static struct tracepoint *kdk_console;
static struct task_struct *kdk_watched;
static unsigned int kdk_asked, kdk_others;

static void kdk_heard(void *data, const char *text, size_t len)
{
	if (READ_ONCE(kdk_watched) != current || !in_task()) {
		if (READ_ONCE(kdk_watched))
			WRITE_ONCE(kdk_others, kdk_others + 1);
		return;
	}
	if (strnstr(text, "sleeping function called", len) ||
	    strnstr(text, "scheduling in a non-blocking section", len))
		kdk_asked++;
	else if (strnstr(text, "BUG", len) || strnstr(text, "WARNING", len))
		kdk_others++;
}

static void kdk_find_console(struct tracepoint *tp, void *data)
{
	if (!strcmp(tp->name, "console"))
		kdk_console = tp;
}

static int kdk_watch(void)
{
	for_each_kernel_tracepoint(kdk_find_console, NULL);
	return kdk_console ? tracepoint_probe_register(kdk_console, kdk_heard, NULL) : -ENOENT;
}

static void kdk_unwatch(void)
{
	tracepoint_probe_unregister(kdk_console, kdk_heard, NULL);
	tracepoint_synchronize_unregister();
}

/* How often it was said that @op may sleep. */
static unsigned int kdk_call(void (*op)(struct kdk_props *p), struct kdk_props *p)
{
	static unsigned long last;
	int level = console_loglevel;

	/* the kernel complains once in a second */
	while (last && time_before(jiffies, last + HZ + HZ / 10))
		msleep(50);
	kdk_asked = 0;
	kdk_others = 0;
	/* KUnit's results have no newline, and are printed when another line comes: one does */
	printk(KERN_DEBUG "asking\n");
	console_lock();
	console_unlock();
	console_loglevel = CONSOLE_LOGLEVEL_SILENT;
	WRITE_ONCE(kdk_watched, current);
	non_block_start();
	op(p);
	non_block_end();
	WRITE_ONCE(kdk_watched, NULL);
	/* what was said goes before it is audible again */
	console_lock();
	console_unlock();
	console_loglevel = level;
	if (kdk_asked)
		last = jiffies;
	return kdk_asked;
}
#else
#define KDK_CAN_ASK	0

static unsigned int kdk_others;

static int kdk_watch(void)
{
	return 0;
}

static void kdk_unwatch(void)
{
}

static unsigned int kdk_call(void (*op)(struct kdk_props *p), struct kdk_props *p)
{
	op(p);
	return 0;
}
#endif

/* --- the props ---------------------------------------------------------------------------- */

static bool kdk_props_iter(struct kdk_props *p, int direction)
{
	p->vec = (struct iovec){ .iov_base = kdk_user_at(&p->user, 0), .iov_len = 16 };
	iov_iter_init(&p->iter, direction, &p->vec, 1, 16);
	/* the page is there: no fault, which would sleep in its own name */
	return !copy_to_user(kdk_user_at(&p->user, 0), p->bytes, 16);
}

static int kdk_props_make(struct kdk_props *p, unsigned int needs)
{
	struct kd_pd *pd;
	int err = 0;

	kd_waitq_init(&p->wq);
	kd_mutex_init(&p->mutex, KD_LOCK_READER);
	kd_spin_init(&p->spin, KD_LOCK_STATE);
	kd_work_init(&p->work, kdk_no_work);
	if (needs & KDK_MEM)
		p->mem = kd_zalloc(100);
	if (needs & (KDK_SOURCE | KDK_DEST) &&
	    !kdk_props_iter(p, needs & KDK_SOURCE ? ITER_SOURCE : ITER_DEST))
		return KD_EFAULT;
	if (needs & KDK_SOME)
		err = kd_pages_alloc(5000, KD_PAGES_FETCH, &p->pages);
	if (err || !(needs & KDK_PD))
		return err;
	p->dev = kdk_device_get();
	if (!p->dev)
		return KD_ENODEV;
	p->pd = ib_alloc_pd(p->dev, 0);
	if (IS_ERR(p->pd)) {
		p->pd = NULL;
		return KD_ENOMEM;
	}
	pd = (struct kd_pd *)p->pd;
	if (needs & KDK_MR)
		err = kd_mr_create(pd, 4, &p->mr);
	if (!err && needs & KDK_MAPPED)
		err = kd_mr_map(p->mr, p->pages);
	if (!err && needs & KDK_DMA)
		err = kd_dma_create(pd, 100, false, &p->dma);
	return err;
}

static void kdk_props_free(struct kdk_props *p)
{
	struct kdk_user user = p->user;

	kd_work_flush_all();
	kd_work_cancel(&p->work);
	kd_free(p->mem);
	if (p->mr)
		kd_mr_destroy(p->mr);
	if (p->pd) {
		kd_dma_unmap((struct kd_pd *)p->pd, &p->dma);
		ib_dealloc_pd(p->pd);
	}
	kd_dma_free(&p->dma);
	kd_pages_free(p->pages);
	if (p->dev)
		ib_device_put(p->dev);
	memset(p, 0, sizeof(*p));
	p->user = user;
}

static void marks_are_true(struct kunit *test)
{
	const struct kdk_mark *mark = test->param_value;
	struct kdk_props *p = kunit_kzalloc(test, sizeof(*p), GFP_KERNEL);
	struct kd_spinlock outer;
	unsigned int asked;
	int err;

	KUNIT_ASSERT_NOT_NULL(test, p);
	err = kdk_watch();
	KUNIT_ASSERT_EQ_MSG(test, err, 0, "the kernel's messages cannot be watched");
	if (!kdk_user_begin(test, &p->user, 1))
		goto out;
	err = kdk_props_make(p, mark->needs);
	if (err == KD_ENODEV) {
		kunit_mark_skipped(test, "no RDMA device");
	} else if (err) {
		KUNIT_FAIL(test, "cannot be prepared: %d", err);
	} else {
		kd_spin_init(&outer, KD_LOCK_POLL);
		/* with a lock held, or in a section like that, which may sleep after all */
		if (mark->sleeps) {
			asked = kdk_call(mark->op, p);
		} else {
			kd_spin_lock(&outer);
			mark->op(p);
			kd_spin_unlock(&outer);
			kdk_props_free(p);
			err = kdk_props_make(p, mark->needs);
			asked = err ? 0 : kdk_call(mark->op, p);
		}
		KUNIT_EXPECT_EQ_MSG(test, kdk_others, 0, "something else was said meanwhile");
		if (!KDK_CAN_ASK)
			kunit_mark_skipped(test, "called, but this kernel does not tell");
		else if (mark->sleeps)
			KUNIT_EXPECT_GT_MSG(test, asked, 0, "it may sleep and does not say so");
		else
			KUNIT_EXPECT_EQ_MSG(test, asked, 0, "it may sleep");
	}
	kdk_props_free(p);
	kdk_user_end(&p->user);
out:
	kdk_unwatch();
}

static struct kunit_case kdk_marks_cases[] = {
	KUNIT_CASE_PARAM(marks_are_true, mark_gen_params),
	{}
};

KDK_SUITE(marks, kdk_marks_cases);
