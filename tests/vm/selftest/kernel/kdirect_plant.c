// SPDX-License-Identifier: GPL-2.0-only
/*
 * One fault of the kind that is asked for, when loading: a kernel that is there to see
 * such faults must report it. Loading fails on purpose, so that it can be done again.
 */
#include <linux/delay.h>
#include <linux/err.h>
#include <linux/kthread.h>
#include <linux/module.h>
#include <linux/mutex.h>
#include <linux/slab.h>
#include <linux/spinlock.h>

static char *kind = "";
module_param(kind, charp, 0);

static void plant_warn(void)
{
	WARN(1, "kdirect_plant\n");
}

static void plant_uaf(void)
{
	char *p = kmalloc(64, GFP_KERNEL);

	if (!p)
		return;
	kfree(p);
	OPTIMIZER_HIDE_VAR(p);
	READ_ONCE(*p);
}

static DEFINE_SPINLOCK(spin);

static void plant_atomic(void)
{
	spin_lock(&spin);
	msleep(1);
	spin_unlock(&spin);
}

static DEFINE_MUTEX(one);
static DEFINE_MUTEX(two);

static void plant_lock(void)
{
	mutex_lock(&one);
	mutex_lock(&two);
	mutex_unlock(&two);
	mutex_unlock(&one);
	mutex_lock(&two);
	mutex_lock(&one);
	mutex_unlock(&one);
	mutex_unlock(&two);
}

static void plant_leak(void)
{
	int n;

	/* several: a stale register or stack slot may still point to one */
	for (n = 0; n < 10; n++) {
		void *p = kzalloc(64, GFP_KERNEL);

		OPTIMIZER_HIDE_VAR(p);
	}
}

static void plant_shift(void)
{
	volatile int bits = 40, one_bit = 1;

	one_bit <<= bits;
}

static int shared;

static int racer(void *unused)
{
	while (!kthread_should_stop()) {
		shared++;
		cond_resched();
	}
	return 0;
}

static void plant_race(void)
{
	struct task_struct *tasks[2];
	int n;

	for (n = 0; n < 2; n++)
		tasks[n] = kthread_run(racer, NULL, "racer/%d", n);
	msleep(5000);
	for (n = 0; n < 2; n++)
		if (!IS_ERR(tasks[n]))
			kthread_stop(tasks[n]);
}

static const struct {
	const char *name;
	void (*plant)(void);
} kinds[] = {
	{ "warn", plant_warn },
	{ "uaf", plant_uaf },
	{ "atomic", plant_atomic },
	{ "lock", plant_lock },
	{ "leak", plant_leak },
	{ "shift", plant_shift },
	{ "race", plant_race },
};

static int __init plant_init(void)
{
	int n;

	for (n = 0; n < ARRAY_SIZE(kinds); n++) {
		if (!strcmp(kind, kinds[n].name)) {
			kinds[n].plant();
			return -ECANCELED;
		}
	}
	return -EINVAL;
}
module_init(plant_init);

MODULE_DESCRIPTION("planted faults");
MODULE_LICENSE("GPL");
