/* SPDX-License-Identifier: GPL-2.0-only */
/* clang-format off */
/* kunit.h - what the suites in C share */
#ifndef KDIRECT_KUNIT_KUNIT_H
#define KDIRECT_KUNIT_KUNIT_H

#include <kunit/test.h>
#include <linux/completion.h>
#include <linux/kthread.h>
#include <linux/mm.h>
#include <linux/mman.h>
#include <linux/uaccess.h>
#include <linux/uio.h>

#include "shim.h"

#include "check.h"

#ifndef ITER_SOURCE	/* 6.2 */
#define ITER_SOURCE	WRITE
#define ITER_DEST	READ
#endif

/* Every suite: a name in the list, a struct kunit_suite kdk_suite_NAME. */
#define KDK_SUITES(X) \
	X(state) X(steps) X(listener) X(credit) X(order) X(wire) X(token) \
	X(memory) X(locks) X(waits) X(work) X(text) X(copies) X(pages) \
	X(marks) X(device) X(fixed) X(frwr) X(chain) X(rings) X(pair) X(wire_map) X(mapping) X(maps)

#define KDK_SUITE(id, cases)					\
	struct kunit_suite kdk_suite_##id = {			\
		.name		= #id,				\
		.test_cases	= cases,			\
	}

#define KDK_DECLARE(id)	extern struct kunit_suite kdk_suite_##id;
KDK_SUITES(KDK_DECLARE)

/* of the process that loads the module, and waits for the cases, which are threads */
extern struct mm_struct *kdk_mm;

/*
 * A case that works on user memory begins and ends with these: in between it runs in
 * the address space of the process that loads the module. It must not end early
 * in between: no KUNIT_ASSERT_*().
 */
struct kdk_user {
	unsigned long	start;
	unsigned long	pages;
};

bool kdk_user_begin(struct kunit *test, struct kdk_user *user, unsigned long pages);
void kdk_user_end(struct kdk_user *user);
/* no access, from then on, to one page */
void kdk_user_hole(struct kdk_user *user, unsigned long page);

static inline void __user *kdk_user_at(const struct kdk_user *user, unsigned long offset)
{
	return (void __user *)(user->start + offset);
}

/* the RDMA device named by the module's parameter, held, or NULL; put it back */
struct ib_device *kdk_device_get(void);

/* A thread that can be sent signals. */
struct kdk_thread {
	struct task_struct	*task;
	struct completion	ready;		/* signals are allowed */
	struct completion	finished;
	void			(*fn)(void *arg);
	void			*arg;
};

int kdk_thread_start(struct kdk_thread *thread, void (*fn)(void *arg), void *arg);
void kdk_thread_signal(struct kdk_thread *thread, int sig);
bool kdk_thread_ended(struct kdk_thread *thread, unsigned int ms);
/* waits */
void kdk_thread_join(struct kdk_thread *thread);

/*
 * Runs @op again and again, with the first, the second, ... allocation failing, until it
 * needs no more of them. @op undoes what it did and returns KD_*. False: told.
 */
void kdk_each_allocation_fails(struct kunit *test, int (*op)(void *arg), void *arg);

#endif
