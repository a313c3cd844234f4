// SPDX-License-Identifier: GPL-2.0-only
/* What rings are made of: shared memory, a thread for a process, a file descriptor. */

#include <linux/anon_inodes.h>
#include <linux/cpumask.h>
#include <linux/file.h>
#include <linux/fs.h>
#include <linux/sched/mm.h>
#include <linux/sched/signal.h>
#include <linux/slab.h>

#include "kdirect.h"

#include "kunit.h"

/* --- shared memory ---------------------------------------------------------------------- */

static const u32 sizes[] = { 1, 2, 3, 97, 300 };

static void kdk_describe_size(const u32 *pages, char *desc)
{
	snprintf(desc, KUNIT_PARAM_DESC_SIZE, "%u pages", *pages);
}

KUNIT_ARRAY_PARAM(size, sizes, kdk_describe_size);

static void shared_memory(struct kunit *test)
{
	size_t size = *(const u32 *)test->param_value * PAGE_SIZE;
	struct kd_shared *shared = NULL;
	u8 *mem;

	KUNIT_ASSERT_EQ(test, kd_shared_create(size, &shared), 0);
	mem = kd_shared_memory(shared);
	KUNIT_EXPECT_TRUE(test, PAGE_ALIGNED(mem));
	KUNIT_EXPECT_PTR_EQ(test, memchr_inv(mem, 0, size), NULL);
	kdk_fill(mem, size, 9);
	KUNIT_EXPECT_EQ(test, kdk_differs(mem, size, 9), size);
	kd_shared_free(shared);
}

static int kdk_shared_op(void *arg)
{
	struct kd_shared *shared = NULL;
	int err = kd_shared_create(5 * PAGE_SIZE, &shared);

	if (!err)
		kd_shared_free(shared);
	return err && shared ? -1 : err;
}

static void shared_without_memory(struct kunit *test)
{
	kdk_each_allocation_fails(test, kdk_shared_op, NULL);
}

/* --- the thread --------------------------------------------------------------------------- */

#define KDK_BYTES	100

/* In the place of a ring; what its thread has found. */
struct kdk_ring {
	struct completion	begun, go;
	struct kd_thread	*thread;
	struct kdk_user		user;
	struct kd_waitq		wq;
	u8			bytes[KDK_BYTES];
	int			nice, waited, cpus, cpu;
	bool			had_mm, adopted, has_mm, written, left_mm;
};

static struct kdk_ring *kdk_ours;

static bool kdk_stopping(void *arg)
{
	return kd_thread_stopping();
}

static void kdk_use_memory(struct kdk_ring *r)
{
	r->had_mm = current->mm;
	r->adopted = kd_thread_adopt(r->thread);
	if (!r->adopted)
		return;
	r->has_mm = current->mm == kdk_mm;
	r->written = kd_user_write(r->user.start, r->bytes, KDK_BYTES);
	kd_thread_leave(r->thread);
	r->left_mm = !current->mm;
}

void kdk_ring_thread(struct kd_ring *ring);

void kdk_ring_thread(struct kd_ring *ring)
{
	struct kdk_ring *r = kdk_ours;

	if (ring != (struct kd_ring *)r) {
		kd_ring_thread(ring);
		return;
	}
	r->nice = task_nice(current);
	r->cpus = cpumask_weight(current->cpus_ptr);
	r->cpu = cpumask_first(current->cpus_ptr);
	complete(&r->begun);
	wait_for_completion(&r->go);
	kdk_use_memory(r);
	/* until it is stopped, which ends a wait as a fatal signal does */
	r->waited = kd_wait(&r->wq, kdk_stopping, NULL, KD_FOREVER, KD_WAIT_KILLABLE);
}

/* Its thread has begun, or what kd_thread_start() said. */
static int kdk_ring_begin(struct kdk_ring *r, int cpu)
{
	int err;

	init_completion(&r->begun);
	init_completion(&r->go);
	kd_waitq_init(&r->wq);
	kdk_ours = r;
	err = kd_thread_start((struct kd_ring *)r, cpu, &r->thread);
	if (!err)
		wait_for_completion(&r->begun);
	return err;
}

static void kdk_ring_end(struct kdk_ring *r)
{
	complete(&r->go);
	kd_thread_stop(r->thread);
	kdk_ours = NULL;
}

/* It works in the process's memory when it has adopted that, and not before or after. */
static void thread_adopts(struct kunit *test)
{
	struct kdk_ring *r = kunit_kzalloc(test, sizeof(*r), GFP_KERNEL);
	u8 got[KDK_BYTES];
	int users, err;

	KUNIT_ASSERT_NOT_NULL(test, r);
	kdk_fill(r->bytes, KDK_BYTES, 3);
	if (!kdk_user_begin(test, &r->user, 1))
		return;
	users = atomic_read(&kdk_mm->mm_users);
	err = kdk_ring_begin(r, -1);
	KUNIT_EXPECT_EQ(test, err, 0);
	if (!err) {
		KUNIT_EXPECT_EQ_MSG(test, atomic_read(&kdk_mm->mm_users), users,
				    "it keeps the process's memory");
		kdk_ring_end(r);
		KUNIT_EXPECT_FALSE(test, r->had_mm);
		KUNIT_EXPECT_TRUE(test, r->adopted);
		KUNIT_EXPECT_TRUE(test, r->has_mm);
		KUNIT_EXPECT_TRUE(test, r->written);
		KUNIT_EXPECT_TRUE(test, r->left_mm);
		KUNIT_EXPECT_TRUE(test, r->waited == 0 || r->waited == KD_EINTR);
		KUNIT_EXPECT_EQ(test, copy_from_user(got, kdk_user_at(&r->user, 0), KDK_BYTES), 0);
		KUNIT_EXPECT_EQ(test, kdk_differs(got, KDK_BYTES, 3), KDK_BYTES);
		KUNIT_EXPECT_EQ(test, atomic_read(&kdk_mm->mm_users), users);
	}
	kdk_user_end(&r->user);
}

/* Of a process that has ended there is nothing to adopt. */
static void thread_of_the_dead(struct kunit *test)
{
	struct kdk_ring *r = kunit_kzalloc(test, sizeof(*r), GFP_KERNEL);
	int users, err;

	KUNIT_ASSERT_NOT_NULL(test, r);
	if (!kdk_user_begin(test, &r->user, 1))
		return;
	err = kdk_ring_begin(r, -1);
	KUNIT_EXPECT_EQ(test, err, 0);
	if (!err) {
		/* nobody else looks at it meanwhile: its process waits for us */
		users = atomic_xchg(&kdk_mm->mm_users, 0);
		complete(&r->go);
		while (!READ_ONCE(r->waited) && kd_waitq_idle(&r->wq))
			msleep(1);
		atomic_set(&kdk_mm->mm_users, users);
		kdk_ring_end(r);
		KUNIT_EXPECT_FALSE(test, r->adopted);
	}
	kdk_user_end(&r->user);
}

/* It runs where, and with the nice value that, its process does. */
static void thread_is_the_processes(struct kunit *test)
{
	struct kdk_ring *r = kunit_kzalloc(test, sizeof(*r), GFP_KERNEL);
	int nice = task_nice(current), cpu;

	KUNIT_ASSERT_NOT_NULL(test, r);
	if (!kdk_user_begin(test, &r->user, 1))
		return;
	set_user_nice(current, 7);
	for (cpu = -1; cpu < (int)nr_cpu_ids; cpu++) {
		int err = kdk_ring_begin(r, cpu);

		if (err) {
			KUNIT_EXPECT_FALSE(test, cpu < 0 || cpu_online(cpu));
			continue;
		}
		kdk_ring_end(r);
		KUNIT_EXPECT_EQ(test, r->nice, 7);
		KUNIT_EXPECT_EQ(test, r->cpus, cpu < 0 ? cpumask_weight(current->cpus_ptr) : 1);
		if (cpu >= 0)
			KUNIT_EXPECT_EQ(test, r->cpu, cpu);
	}
	set_user_nice(current, nice);
	KUNIT_EXPECT_EQ(test, kdk_ring_begin(r, nr_cpu_ids), KD_EINVAL);
	KUNIT_EXPECT_EQ(test, kdk_ring_begin(r, INT_MAX), KD_EINVAL);
	if (num_online_cpus() > 1) {
		struct cpumask *before = kunit_kzalloc(test, sizeof(*before), GFP_KERNEL);
		int other = cpumask_next(cpumask_first(cpu_online_mask), cpu_online_mask);

		cpumask_copy(before, current->cpus_ptr);
		set_cpus_allowed_ptr(current, cpumask_of(cpumask_first(cpu_online_mask)));
		KUNIT_EXPECT_EQ_MSG(test, kdk_ring_begin(r, other), KD_EINVAL,
				    "on a processor that its process may not use");
		set_cpus_allowed_ptr(current, before);
	}
	kdk_ours = NULL;
	kdk_user_end(&r->user);
}

static int kdk_thread_op(void *arg)
{
	struct kdk_ring *r = arg;
	int err = kdk_ring_begin(r, -1);

	if (!err)
		kdk_ring_end(r);
	return err;
}

static void thread_without_memory(struct kunit *test)
{
	struct kdk_ring *r = kunit_kzalloc(test, sizeof(*r), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, r);
	if (!kdk_user_begin(test, &r->user, 1))
		return;
	kdk_each_allocation_fails(test, kdk_thread_op, r);
	kdk_ours = NULL;
	kdk_user_end(&r->user);
}

/* --- the descriptor ----------------------------------------------------------------------- */

static const struct file_operations kdk_no_fops;

/* The next descriptor there would be. */
static int kdk_next_fd(void)
{
	int fd = get_unused_fd_flags(0);

	if (fd >= 0)
		put_unused_fd(fd);
	return fd;
}

/* What is refused leaves no descriptor and no reference to the mapping's file. */
static void setup_is_refused(struct kunit *test)
{
	struct kdirect_ring_setup good = { .sq_entries = 8, .cq_entries = 8 }, bad[] = {
		{ .sq_entries = 7, .cq_entries = 8 },
		{ .sq_entries = 8, .cq_entries = 2 * KDIRECT_RING_ENTRIES },
		{ .sq_entries = 8, .cq_entries = 8, .flags = ~KDIRECT_RING_FLAGS },
		{ .sq_entries = 8, .cq_entries = 8, .thread_cpu = 1 },
		{ .sq_entries = 8, .cq_entries = 8, .reserved = { 0, 1, 0 } },
	};
	struct kdk_user user;
	struct file *of;
	int fd, i;

	of = anon_inode_getfile("[kdk]", &kdk_no_fops, NULL, O_RDWR);
	KUNIT_ASSERT_FALSE(test, IS_ERR(of));
	if (!kdk_user_begin(test, &user, 2))
		goto out;
	fd = kdk_next_fd();
	KUNIT_EXPECT_GE(test, fd, 0);
	for (i = 0; i < ARRAY_SIZE(bad); i++) {
		KUNIT_EXPECT_EQ(test, copy_to_user(kdk_user_at(&user, 0), &bad[i], sizeof(bad[i])),
				0);
		KUNIT_EXPECT_EQ(test, kd_ring_setup(of, kdk_user_at(&user, 0)), -EINVAL);
		KUNIT_EXPECT_EQ(test, kdk_next_fd(), fd);
	}
	/* it cannot be read whole */
	kdk_user_hole(&user, 1);
	KUNIT_EXPECT_EQ(test, copy_to_user(kdk_user_at(&user, PAGE_SIZE - 8), &good, 8), 0);
	KUNIT_EXPECT_EQ(test, kd_ring_setup(of, kdk_user_at(&user, PAGE_SIZE - 8)), -EFAULT);
	KUNIT_EXPECT_EQ(test, kd_ring_setup(of, NULL), -EFAULT);
	KUNIT_EXPECT_EQ(test, kdk_next_fd(), fd);
	KUNIT_EXPECT_EQ(test, file_count(of), 1);
	kdk_user_end(&user);
out:
	fput(of);
}

static struct kunit_case kdk_rings_cases[] = {
	KUNIT_CASE_PARAM(shared_memory, size_gen_params),
	KUNIT_CASE(shared_without_memory),
	KUNIT_CASE(thread_adopts),
	KUNIT_CASE(thread_of_the_dead),
	KUNIT_CASE(thread_is_the_processes),
	KUNIT_CASE(thread_without_memory),
	KUNIT_CASE(setup_is_refused),
	{}
};

KDK_SUITE(rings, kdk_rings_cases);
