// SPDX-License-Identifier: GPL-2.0-only
/* What the suites share: parameters, threads, user memory. */

#include <linux/delay.h>
#include <linux/inet.h>
#include <linux/moduleparam.h>
#include <linux/sched/mm.h>
#include <linux/sched/signal.h>
#include <linux/sched/task.h>
#include <linux/string.h>
#include <net/net_namespace.h>

#include "kunit.h"

static char *device = "";
module_param(device, charp, 0444);
MODULE_PARM_DESC(device, "the RDMA device to test on");
static char *address = "";
module_param(address, charp, 0444);
MODULE_PARM_DESC(address, "its IPv4 address");
static char *peer = "";
module_param(peer, charp, 0444);
MODULE_PARM_DESC(peer, "another IPv4 address of this machine on the device");

struct mm_struct *kdk_mm;

/* --- for C++ ------------------------------------------------------------------------ */

void kdk_fail(struct kunit *test, const char *file, int line, const char *fmt, ...)
{
	struct va_format vaf = { .fmt = fmt };
	va_list args;

	va_start(args, fmt);
	vaf.va = &args;
	KUNIT_FAIL(test, "%s:%d: %pV", kbasename(file), line, &vaf);
	va_end(args);
}

void kdk_skip(struct kunit *test, const char *why)
{
	kunit_mark_skipped(test, "%s", why);
}

const struct kdk_pair *kdk_param(const struct kunit *test)
{
	return test->param_value;
}

void kdk_sleep_ms(unsigned int ms)
{
	msleep(ms);
}

struct kd_net *kdk_net(void)
{
	return from_net(&init_net);
}

bool kdk_address(struct kd_addr *own, struct kd_addr *other)
{
	memset(own, 0, sizeof(*own));
	memset(other, 0, sizeof(*other));
	own->len = 4;
	other->len = 4;
	return in4_pton(address, -1, own->bytes, -1, NULL) &&
	       in4_pton(peer, -1, other->bytes, -1, NULL);
}

struct ib_device *kdk_device_get(void)
{
	struct kd_device_info info;

	/* as the core knows it, which holds as long as the device is there */
	if (kd_device_info(device, &info) || !ib_device_try_get(info.attr.ib->ib))
		return NULL;
	return info.attr.ib->ib;
}

/* --- threads --------------------------------------------------------------------------- */

static int kdk_thread_run(void *data)
{
	struct kdk_thread *thread = data;

	allow_signal(SIGUSR1);
	allow_signal(SIGKILL);
	complete(&thread->ready);
	thread->fn(thread->arg);
	complete_all(&thread->finished);
	return 0;
}

int kdk_thread_start(struct kdk_thread *thread, void (*fn)(void *arg), void *arg)
{
	init_completion(&thread->ready);
	init_completion(&thread->finished);
	thread->fn = fn;
	thread->arg = arg;
	thread->task = kthread_create(kdk_thread_run, thread, "kdk_thread");
	if (IS_ERR(thread->task))
		return PTR_ERR(thread->task);
	get_task_struct(thread->task);
	wake_up_process(thread->task);
	wait_for_completion(&thread->ready);
	return 0;
}

void kdk_thread_signal(struct kdk_thread *thread, int sig)
{
	send_sig(sig, thread->task, 1);
}

bool kdk_thread_ended(struct kdk_thread *thread, unsigned int ms)
{
	return wait_for_completion_timeout(&thread->finished, msecs_to_jiffies(ms) + 1);
}

void kdk_thread_join(struct kdk_thread *thread)
{
	wait_for_completion(&thread->finished);
	/* it is on its way out of our text, too: an unload must not overtake it */
	kthread_stop(thread->task);
	put_task_struct(thread->task);
}

int kdk_threads(unsigned int count, void (*fn)(void *arg), void *arg)
{
	struct kdk_thread *threads = kcalloc(count, sizeof(*threads), GFP_KERNEL);
	unsigned int n;
	int ret = 0;

	if (!threads)
		return KD_ENOMEM;
	for (n = 0; n < count; n++) {
		ret = kdk_thread_start(&threads[n], fn, arg);
		if (ret)
			break;
	}
	while (n--)
		kdk_thread_join(&threads[n]);
	kfree(threads);
	return kd_from_errno(ret);
}

/* --- user memory -------------------------------------------------------------------------- */

bool kdk_user_begin(struct kunit *test, struct kdk_user *user, unsigned long pages)
{
	kthread_use_mm(kdk_mm);
	user->pages = pages;
	user->start = vm_mmap(NULL, 0, pages * PAGE_SIZE, PROT_READ | PROT_WRITE,
			      MAP_PRIVATE | MAP_ANONYMOUS, 0);
	if (!IS_ERR_VALUE(user->start))
		return true;
	kthread_unuse_mm(kdk_mm);
	KUNIT_FAIL(test, "no user memory: %ld", (long)user->start);
	return false;
}

void kdk_user_end(struct kdk_user *user)
{
	vm_munmap(user->start, user->pages * PAGE_SIZE);
	kthread_unuse_mm(kdk_mm);
}

void kdk_user_hole(struct kdk_user *user, unsigned long page)
{
	vm_munmap(user->start + page * PAGE_SIZE, PAGE_SIZE);
}

void kdk_fill(uint8_t *bytes, size_t len, uint8_t seed)
{
	size_t i;

	/* not periodic in pages */
	for (i = 0; i < len; i++)
		bytes[i] = seed + i + i / 251;
}

size_t kdk_differs(const uint8_t *bytes, size_t len, uint8_t seed)
{
	size_t i;

	for (i = 0; i < len; i++)
		if (bytes[i] != (uint8_t)(seed + i + i / 251))
			break;
	return i;
}

size_t kdk_pages_differ(struct kd_pages *pages, uint32_t len, uint8_t seed)
{
	uint8_t *bytes = kvzalloc(len, GFP_KERNEL);
	struct kvec vec = { .iov_base = bytes, .iov_len = len };
	struct iov_iter iter;
	size_t at = 0;

	if (!bytes)
		return 0;
	iov_iter_kvec(&iter, ITER_DEST, &vec, 1, len);
	if (kd_pages_copy_to(pages, 0, len, from_iter(&iter)))
		at = kdk_differs(bytes, len, seed);
	kvfree(bytes);
	return at;
}

bool kdk_pages_fill(struct kd_pages *pages, uint32_t len, uint8_t seed)
{
	uint8_t *bytes = kvzalloc(len, GFP_KERNEL);
	struct kvec vec = { .iov_base = bytes, .iov_len = len };
	struct iov_iter iter;
	bool done;

	if (!bytes)
		return false;
	kdk_fill(bytes, len, seed);
	iov_iter_kvec(&iter, ITER_SOURCE, &vec, 1, len);
	done = kd_pages_copy_from(pages, from_iter(&iter), len);
	kvfree(bytes);
	return done;
}

struct kdk_range {
	struct mm_struct	*mm;
	unsigned long		start;
	unsigned long		bytes;
};

static void __user *kdk_range_at(const struct kdk_range *range, u32 offset)
{
	return (void __user *)(range->start + offset);
}

struct kdk_range *kdk_range_create(uint32_t bytes)
{
	struct kdk_range *range = kzalloc(sizeof(*range), GFP_KERNEL);
	uint8_t *content = kvzalloc(bytes, GFP_KERNEL);

	if (!range || !content)
		goto err;
	range->mm = kdk_mm;
	range->bytes = bytes;
	kthread_use_mm(range->mm);
	range->start = vm_mmap(NULL, 0, bytes, PROT_READ | PROT_WRITE,
			       MAP_PRIVATE | MAP_ANONYMOUS, 0);
	kdk_fill(content, bytes, 1);
	if (IS_ERR_VALUE(range->start) ||
	    copy_to_user(kdk_range_at(range, 0), content, bytes)) {
		kthread_unuse_mm(range->mm);
		goto err;
	}
	kthread_unuse_mm(range->mm);
	kvfree(content);
	return range;
err:
	kvfree(content);
	kfree(range);
	return NULL;
}

void kdk_range_destroy(struct kdk_range *range)
{
	if (!range)
		return;
	kthread_use_mm(range->mm);
	vm_munmap(range->start, range->bytes);
	kthread_unuse_mm(range->mm);
	kfree(range);
}

int kdk_range_pin(struct kdk_range *range, uint32_t offset, uint32_t len, struct kd_pages **out)
{
	struct iovec vec = {
		.iov_base = kdk_range_at(range, offset),
		.iov_len = len,
	};
	struct iov_iter iter;
	int ret;

	kthread_use_mm(range->mm);
	iov_iter_init(&iter, ITER_SOURCE, &vec, 1, len);
	ret = kd_pages_pin(from_iter(&iter), len, 1024, out);
	kthread_unuse_mm(range->mm);
	return ret;
}

bool kdk_range_fill(struct kdk_range *range, uint32_t offset, uint32_t len, uint8_t seed)
{
	u8 *bytes = kvzalloc(len, GFP_KERNEL);
	bool done;

	if (!bytes)
		return false;
	kdk_fill(bytes, len, seed);
	kthread_use_mm(range->mm);
	done = !copy_to_user(kdk_range_at(range, offset), bytes, len);
	kthread_unuse_mm(range->mm);
	kvfree(bytes);
	return done;
}

bool kdk_range_get(struct kdk_range *range, uint32_t offset, uint32_t len, uint8_t *out)
{
	bool done;

	kthread_use_mm(range->mm);
	done = !copy_from_user(out, kdk_range_at(range, offset), len);
	kthread_unuse_mm(range->mm);
	return done;
}

size_t kdk_range_differs(struct kdk_range *range, uint32_t offset, uint32_t len, uint8_t seed)
{
	u8 *bytes = kvzalloc(len, GFP_KERNEL);
	size_t at = 0;

	if (bytes && kdk_range_get(range, offset, len, bytes))
		at = kdk_differs(bytes, len, seed);
	kvfree(bytes);
	return at;
}

int64_t kdk_range_io(struct kdk_range *range, uint32_t offset, uint32_t len,
		     struct kd_desc_file *file, uint64_t pos, bool write)
{
	struct iovec vec = { .iov_base = kdk_range_at(range, offset), .iov_len = len };
	struct iov_iter iter;
	s64 ret;

	kthread_use_mm(range->mm);
	iov_iter_init(&iter, write ? ITER_SOURCE : ITER_DEST, &vec, 1, len);
	ret = kd_map_io(file, from_iter(&iter), len, pos, write, 0, NULL);
	kthread_unuse_mm(range->mm);
	return ret;
}

int64_t kdk_range_pinned(const struct kdk_range *range)
{
	return atomic64_read(&range->mm->pinned_vm);
}

/* --- failing allocations ------------------------------------------------------------------ */

#ifdef CONFIG_FAULT_INJECTION
void kdk_each_allocation_fails(struct kunit *test, int (*op)(void *arg), void *arg)
{
	unsigned int nth, failed = 0;

	for (nth = 1; nth < 1000; nth++) {
		unsigned int left;
		int err;

		current->fail_nth = nth;
		err = op(arg);
		left = current->fail_nth;
		current->fail_nth = 0;
		if (left) {
			KUNIT_EXPECT_EQ_MSG(test, err, 0, "although no allocation failed");
			break;
		}
		/* what has another way to memory takes it */
		if (err)
			KUNIT_EXPECT_EQ_MSG(test, err, KD_ENOMEM, "after allocation %u failed",
					    nth);
		failed += err != 0;
	}
	KUNIT_EXPECT_LT_MSG(test, nth, 1000, "it never ended");
	if (nth == 1) {
		kunit_mark_skipped(test, "no allocation can fail: failslab/ignore-gfp-wait");
		return;
	}
	KUNIT_EXPECT_GT_MSG(test, failed, 0, "no failed allocation made it fail");
}
#else
void kdk_each_allocation_fails(struct kunit *test, int (*op)(void *arg), void *arg)
{
	KUNIT_EXPECT_EQ(test, op(arg), 0);
	kunit_mark_skipped(test, "this kernel has no fault injection");
}
#endif
