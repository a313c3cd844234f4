// SPDX-License-Identifier: GPL-2.0-only
/* Deferred work. */

#include <linux/jiffies.h>
#include <linux/workqueue.h>

#include "shim.h"

/*
 * Connections carry block I/O some day, so that they must make progress when
 * memory is short; and a connection's work may block, so that it is not bound to
 * a CPU.
 */
struct workqueue_struct *kd_workqueue;

struct kd_delayed {
	struct delayed_work	work;
	void			(*fn)(struct kd_work *work);
};

static_assert(sizeof(struct kd_delayed) <= sizeof(struct kd_work));

static struct kd_delayed *to_delayed(struct kd_work *work)
{
	return (struct kd_delayed *)work;
}

/* The kernel calls C; the core's function may free @work. */
static void kd_work_run(struct work_struct *work)
{
	struct kd_delayed *delayed = container_of(to_delayed_work(work), struct kd_delayed, work);

	delayed->fn((struct kd_work *)delayed);
}

#ifdef CONFIG_LOCKDEP
/*
 * One lock class for each function: work that waits for work of another kind is
 * no recursion.
 */
static void kd_work_set_class(struct kd_delayed *delayed)
{
	static struct {
		void			(*fn)(struct kd_work *work);
		struct lock_class_key	key;
	} classes[16];
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(classes) - 1; i++) {
		typeof(delayed->fn) old = cmpxchg(&classes[i].fn, NULL, delayed->fn);

		if (!old || old == delayed->fn)
			break;
	}
	lockdep_init_map(&delayed->work.work.lockdep_map, "kdirect work", &classes[i].key, 0);
}
#else
static void kd_work_set_class(struct kd_delayed *delayed)
{
}
#endif

void kd_work_init(struct kd_work *work, void (*fn)(struct kd_work *work))
{
	struct kd_delayed *delayed = to_delayed(work);

	delayed->fn = fn;
	INIT_DELAYED_WORK(&delayed->work, kd_work_run);
	kd_work_set_class(delayed);
}

bool kd_work_queue(struct kd_work *work)
{
	return !mod_delayed_work(kd_workqueue, &to_delayed(work)->work, 0);
}

bool kd_work_queue_after(struct kd_work *work, uint64_t delay_ns)
{
	return queue_delayed_work(kd_workqueue, &to_delayed(work)->work,
				  nsecs_to_jiffies(delay_ns) + 1);
}

bool kd_work_cancel(struct kd_work *work)
{
	return cancel_delayed_work_sync(&to_delayed(work)->work);
}

void kd_work_flush_all(void)
{
	flush_workqueue(kd_workqueue);
}

int kd_workqueues_init(void)
{
	kd_workqueue = alloc_workqueue("kdirect", WQ_UNBOUND | WQ_MEM_RECLAIM, 0);
	return kd_workqueue ? 0 : -ENOMEM;
}

void kd_workqueues_exit(void)
{
	destroy_workqueue(kd_workqueue);
}
