// SPDX-License-Identifier: GPL-2.0-only
/* Memory of large messages: pinned, charged, given back, copied. */

#include <linux/cred.h>
#include <linux/sched/mm.h>
#include <linux/sched/signal.h>
#include <linux/slab.h>

#include "kunit.h"

#define KDK_PAGES	8
#define KDK_BYTES	(KDK_PAGES * PAGE_SIZE)

static s64 kdk_charged(void)
{
	return atomic64_read(&current->mm->pinned_vm);
}

/* One range of the area, as write() gives it. */
static void kdk_range_iter(const struct kdk_user *user, u32 start, u32 len, struct iovec *vec,
			   struct iov_iter *iter)
{
	*vec = (struct iovec){ .iov_base = kdk_user_at(user, start), .iov_len = len };
	iov_iter_init(iter, ITER_SOURCE, vec, 1, len);
}

/* Writes the pattern over the whole area: present, and private to the process. */
static u8 *kdk_area_fill(struct kunit *test, const struct kdk_user *user)
{
	u8 *bytes = kunit_kzalloc(test, KDK_BYTES, GFP_KERNEL);

	if (!bytes)
		return NULL;
	kdk_fill(bytes, KDK_BYTES, 1);
	return copy_to_user(kdk_user_at(user, 0), bytes, KDK_BYTES) ? NULL : bytes;
}

/* From now on without the right to lock memory without limit. */
static bool kdk_limit_memlock(unsigned long pages)
{
	struct cred *cred = prepare_creds();

	if (!cred)
		return false;
	cap_lower(cred->cap_effective, CAP_IPC_LOCK);
	commit_creds(cred);
	current->signal->rlim[RLIMIT_MEMLOCK].rlim_cur = pages << PAGE_SHIFT;
	return true;
}

/* --- pinning ---------------------------------------------------------------------------- */

struct kdk_span {
	u32	start, len, pages;
};

static const struct kdk_span spans[] = {
	{ 0, 1, 1 }, { 4095, 1, 1 }, { 4095, 2, 2 }, { 0, 4096, 1 }, { 1, 4096, 2 },
	{ 0, 4097, 2 }, { 2048, 4096, 2 }, { 100, 20000, 5 }, { 0, 32768, 8 }, { 4096, 28672, 7 },
};

static void kdk_describe_span(const struct kdk_span *span, char *desc)
{
	snprintf(desc, KUNIT_PARAM_DESC_SIZE, "%u bytes at %u", span->len, span->start);
}

KUNIT_ARRAY_PARAM(span, spans, kdk_describe_span);

static void pin(struct kunit *test)
{
	const struct kdk_span *span = test->param_value;
	struct kd_pages *pages = NULL;
	struct iov_iter iter, part;
	struct kdk_user user;
	struct iovec vec;
	u8 *area, *got;
	struct kvec to;
	s64 before;
	u32 i;

	if (!kdk_user_begin(test, &user, KDK_PAGES))
		return;
	area = kdk_area_fill(test, &user);
	got = kunit_kzalloc(test, KDK_BYTES, GFP_KERNEL);
	before = kdk_charged();
	kdk_range_iter(&user, span->start, span->len, &vec, &iter);
	if (!area || !got || kd_pages_pin(from_iter(&iter), span->len, span->pages, &pages)) {
		KUNIT_FAIL(test, "it cannot be pinned");
		goto out;
	}
	KUNIT_EXPECT_TRUE(test, kd_pages_pinned(pages));
	KUNIT_EXPECT_EQ(test, iov_iter_count(&iter), 0);
	KUNIT_EXPECT_EQ(test, kdk_charged() - before, span->pages);
	KUNIT_EXPECT_EQ(test, pages->nr, span->pages);
	for (i = 0; i < pages->nr; i++)
		KUNIT_EXPECT_TRUE(test, folio_maybe_dma_pinned(page_folio(pages->pages[i])));

	/* all of it, and what lies at its very end */
	to = (struct kvec){ .iov_base = got, .iov_len = span->len };
	iov_iter_kvec(&part, ITER_DEST, &to, 1, span->len);
	KUNIT_EXPECT_TRUE(test, kd_pages_copy_to(pages, 0, span->len, from_iter(&part)));
	KUNIT_EXPECT_EQ(test, memcmp(got, area + span->start, span->len), 0);
	iov_iter_kvec(&part, ITER_DEST, &to, 1, 1);
	KUNIT_EXPECT_TRUE(test, kd_pages_copy_to(pages, span->len - 1, 1, from_iter(&part)));
	KUNIT_EXPECT_EQ(test, got[0], area[span->start + span->len - 1]);
	kd_pages_free(pages);
	KUNIT_EXPECT_EQ(test, kdk_charged(), before);

	/* one page too few allowed: nothing happened */
	kdk_range_iter(&user, span->start, span->len, &vec, &iter);
	KUNIT_EXPECT_EQ(test, kd_pages_pin(from_iter(&iter), span->len, span->pages - 1, &pages),
			KD_EOPNOTSUPP);
	KUNIT_EXPECT_EQ(test, iov_iter_count(&iter), span->len);
	KUNIT_EXPECT_EQ(test, kdk_charged(), before);
out:
	kdk_user_end(&user);
}

/* The device sees what the process writes later: these are its pages, not copies. */
static void pinned_are_the_callers(struct kunit *test)
{
	struct kd_pages *pages;
	struct iov_iter iter;
	struct kdk_user user;
	struct iovec vec;

	if (!kdk_user_begin(test, &user, KDK_PAGES))
		return;
	kdk_area_fill(test, &user);
	kdk_range_iter(&user, 0, KDK_BYTES, &vec, &iter);
	if (!kd_pages_pin(from_iter(&iter), KDK_BYTES, KDK_PAGES, &pages)) {
		u8 *later = kunit_kzalloc(test, KDK_BYTES, GFP_KERNEL);

		kdk_fill(later, KDK_BYTES, 77);
		KUNIT_EXPECT_EQ(test, copy_to_user(kdk_user_at(&user, 0), later, KDK_BYTES), 0);
		KUNIT_EXPECT_EQ(test, kdk_pages_differ(pages, KDK_BYTES, 77), KDK_BYTES);
		/* unmapped by the process: the pages stay until they are given back */
		kdk_user_hole(&user, 3);
		KUNIT_EXPECT_EQ(test, kdk_pages_differ(pages, KDK_BYTES, 77), KDK_BYTES);
		kd_pages_free(pages);
	} else {
		KUNIT_FAIL(test, "it cannot be pinned");
	}
	kdk_user_end(&user);
}

/* A part of a longer iterator: it stands behind that part afterwards. */
static void pin_a_part(struct kunit *test)
{
	struct kd_pages *pages;
	struct iov_iter iter;
	struct kdk_user user;
	struct iovec vec;
	u8 *area, byte;

	if (!kdk_user_begin(test, &user, KDK_PAGES))
		return;
	area = kdk_area_fill(test, &user);
	kdk_range_iter(&user, 100, KDK_BYTES - 100, &vec, &iter);
	if (area && !kd_pages_pin(from_iter(&iter), 5000, 2, &pages)) {
		KUNIT_EXPECT_EQ(test, iov_iter_count(&iter), KDK_BYTES - 5100);
		KUNIT_EXPECT_TRUE(test, kd_copy_from(&byte, 1, from_iter(&iter)));
		KUNIT_EXPECT_EQ(test, byte, area[5100]);
		kd_pages_free(pages);
	} else {
		KUNIT_FAIL(test, "it cannot be pinned");
	}
	kdk_user_end(&user);
}

/* Not one range of user memory, so that it is copied instead. */
static void not_pinned(struct kunit *test)
{
	struct iovec vec[2];
	struct kvec kernel = {};
	struct kd_pages *pages = NULL;
	struct iov_iter iter;
	struct kdk_user user;
	s64 before;

	if (!kdk_user_begin(test, &user, KDK_PAGES))
		return;
	before = kdk_charged();
	vec[0] = (struct iovec){ .iov_base = kdk_user_at(&user, 0), .iov_len = 4096 };
	vec[1] = (struct iovec){ .iov_base = kdk_user_at(&user, 4096), .iov_len = 4096 };
	iov_iter_init(&iter, ITER_SOURCE, vec, 2, 8192);
	KUNIT_EXPECT_EQ(test, kd_pages_pin(from_iter(&iter), 8192, 8, &pages), KD_EOPNOTSUPP);
	KUNIT_EXPECT_EQ(test, iov_iter_count(&iter), 8192);
	KUNIT_EXPECT_EQ(test, kd_pages_pin(from_iter(&iter), 0, 8, &pages), KD_EOPNOTSUPP);

	kernel.iov_base = kunit_kzalloc(test, 4096, GFP_KERNEL);
	kernel.iov_len = 4096;
	iov_iter_kvec(&iter, ITER_SOURCE, &kernel, 1, 4096);
	KUNIT_EXPECT_EQ(test, kd_pages_pin(from_iter(&iter), 4096, 8, &pages), KD_EOPNOTSUPP);
	KUNIT_EXPECT_EQ(test, iov_iter_count(&iter), 4096);
	KUNIT_EXPECT_PTR_EQ(test, pages, NULL);
	KUNIT_EXPECT_EQ(test, kdk_charged(), before);
	kdk_user_end(&user);
}

/* A thread of the kernel (an io_uring worker without a process) has no user memory. */
static void without_a_process(struct kunit *test)
{
	struct iovec vec = { .iov_base = (void __user *)4096, .iov_len = 4096 };
	struct kd_pages *pages = NULL;
	struct iov_iter iter;

	iov_iter_init(&iter, ITER_SOURCE, &vec, 1, 4096);
	KUNIT_EXPECT_EQ(test, kd_pages_pin(from_iter(&iter), 4096, 8, &pages), KD_EOPNOTSUPP);
	KUNIT_EXPECT_PTR_EQ(test, pages, NULL);
}

static const u32 missing[] = { 0, 1, 4, 7 };

static void kdk_describe_page(const u32 *page, char *desc)
{
	snprintf(desc, KUNIT_PARAM_DESC_SIZE, "page %u of %u", *page, KDK_PAGES);
}

KUNIT_ARRAY_PARAM(missing, missing, kdk_describe_page);

/* What was pinned before the fault is given back. */
static void pin_fault(struct kunit *test)
{
	struct kd_pages *pages = NULL;
	struct page *first = NULL;
	struct iov_iter iter;
	struct kdk_user user;
	struct iovec vec;
	s64 before;
	u32 hole = *(const u32 *)test->param_value;

	if (!kdk_user_begin(test, &user, KDK_PAGES))
		return;
	kdk_area_fill(test, &user);
	before = kdk_charged();
	kdk_user_hole(&user, hole);
	kdk_range_iter(&user, 0, KDK_BYTES, &vec, &iter);
	KUNIT_EXPECT_EQ(test, kd_pages_pin(from_iter(&iter), KDK_BYTES, KDK_PAGES, &pages),
			KD_EFAULT);
	KUNIT_EXPECT_PTR_EQ(test, pages, NULL);
	KUNIT_EXPECT_EQ(test, iov_iter_count(&iter), KDK_BYTES);
	KUNIT_EXPECT_EQ(test, kdk_charged(), before);
	if (hole) {
		if (get_user_pages_fast(user.start, 1, 0, &first) == 1) {
			KUNIT_EXPECT_FALSE_MSG(test, folio_maybe_dma_pinned(page_folio(first)),
					       "the first page is still pinned");
			put_page(first);
		} else {
			KUNIT_FAIL(test, "where is the first page?");
		}
	}
	kdk_user_end(&user);
}

struct kdk_limit {
	int	slack;		/* pages that the limit has more than are needed */
	int	err;
};

static const struct kdk_limit limits[] = {
	{ -KDK_PAGES, KD_ENOMEM }, { -1, KD_ENOMEM }, { 0, 0 }, { 1, 0 },
};

static void kdk_describe_limit(const struct kdk_limit *limit, char *desc)
{
	snprintf(desc, KUNIT_PARAM_DESC_SIZE, "%d pages to spare", limit->slack);
}

KUNIT_ARRAY_PARAM(limit, limits, kdk_describe_limit);

static void memlock(struct kunit *test)
{
	const struct kdk_limit *limit = test->param_value;
	struct kd_pages *pages = NULL, *more = NULL;
	struct iov_iter iter;
	struct kdk_user user;
	struct iovec vec;
	s64 before;
	int err;

	if (!kdk_user_begin(test, &user, KDK_PAGES))
		return;
	kdk_area_fill(test, &user);
	before = kdk_charged();
	if (!kdk_limit_memlock(before + KDK_PAGES + limit->slack)) {
		KUNIT_FAIL(test, "no memory");
		goto out;
	}
	kdk_range_iter(&user, 0, KDK_BYTES, &vec, &iter);
	err = kd_pages_pin(from_iter(&iter), KDK_BYTES, KDK_PAGES, &pages);
	KUNIT_EXPECT_EQ(test, err, limit->err);
	KUNIT_EXPECT_EQ(test, kdk_charged() - before, err ? 0 : KDK_PAGES);
	KUNIT_EXPECT_EQ(test, iov_iter_count(&iter), err ? KDK_BYTES : 0);
	if (!err) {
		/* the limit is for all that is pinned, not for each */
		kdk_range_iter(&user, 0, 4096 * (limit->slack + 1), &vec, &iter);
		KUNIT_EXPECT_EQ(test, kd_pages_pin(from_iter(&iter), 4096 * (limit->slack + 1), 8,
						   &more), KD_ENOMEM);
		kd_pages_free(pages);
		KUNIT_EXPECT_EQ(test, kdk_charged(), before);
		err = kd_pages_pin(from_iter(&iter), 4096 * (limit->slack + 1), 8, &more);
		KUNIT_EXPECT_EQ_MSG(test, err, 0, "what was given back does not count");
		if (!err)
			kd_pages_free(more);
	}
	KUNIT_EXPECT_EQ(test, kdk_charged(), before);
out:
	kdk_user_end(&user);
}

static int kdk_pin_op(void *arg)
{
	struct kdk_user *user = arg;
	struct kd_pages *pages = NULL;
	s64 before = kdk_charged();
	struct iov_iter iter;
	struct iovec vec;
	int err;

	kdk_range_iter(user, 0, KDK_BYTES, &vec, &iter);
	err = kd_pages_pin(from_iter(&iter), KDK_BYTES, KDK_PAGES, &pages);
	if (!err)
		kd_pages_free(pages);
	else if (iov_iter_count(&iter) != KDK_BYTES || pages)
		return -1;
	return kdk_charged() == before ? err : -2;
}

static void pin_without_memory(struct kunit *test)
{
	struct kdk_user user;

	if (!kdk_user_begin(test, &user, KDK_PAGES))
		return;
	kdk_area_fill(test, &user);
	kdk_each_allocation_fails(test, kdk_pin_op, &user);
	kdk_user_end(&user);
}

/* --- the kernel's pages ------------------------------------------------------------------- */

struct kdk_alloc {
	u32			len;
	enum kd_pages_for	whom;
};

static const struct kdk_alloc allocs[] = {
	{ 1, KD_PAGES_FETCH }, { 4096, KD_PAGES_FETCH }, { 4097, KD_PAGES_FETCH },
	{ SZ_1M, KD_PAGES_FETCH }, { 1, KD_PAGES_WRITER }, { 65537, KD_PAGES_WRITER },
	{ SZ_1M, KD_PAGES_WRITER }, { 1, KD_PAGES_NOWAIT }, { 65536, KD_PAGES_NOWAIT },
};

static void kdk_describe_alloc(const struct kdk_alloc *a, char *desc)
{
	static const char * const names[] = { "fetch", "writer", "nowait" };

	snprintf(desc, KUNIT_PARAM_DESC_SIZE, "%u bytes, %s", a->len, names[a->whom]);
}

KUNIT_ARRAY_PARAM(alloc, allocs, kdk_describe_alloc);

static void allocated(struct kunit *test)
{
	const struct kdk_alloc *a = test->param_value;
	u8 *bytes = kvzalloc(a->len + 1, GFP_KERNEL);
	struct kvec half[2] = {
		{ .iov_base = bytes, .iov_len = a->len / 2 },
		{ .iov_base = bytes + a->len / 2, .iov_len = a->len - a->len / 2 },
	};
	struct kd_pages *pages = NULL;
	struct scatterlist *sg;
	struct iov_iter iter;
	struct kvec whole = { .iov_base = bytes, .iov_len = a->len };
	u32 total = 0;
	int i, err;

	KUNIT_ASSERT_NOT_NULL(test, bytes);
	err = kd_pages_alloc(a->len, a->whom, &pages);
	KUNIT_EXPECT_EQ(test, err, 0);
	if (err)
		goto out;
	KUNIT_EXPECT_FALSE(test, kd_pages_pinned(pages));
	/* entries that every device can do, and together all bytes */
	for_each_sgtable_sg(&pages->table, sg, i) {
		KUNIT_EXPECT_LE(test, sg->length, SZ_64K);
		total += sg->length;
	}
	KUNIT_EXPECT_EQ(test, total, a->len);

	kdk_fill(bytes, a->len, 21);
	iov_iter_kvec(&iter, ITER_SOURCE, half, 2, a->len);
	KUNIT_EXPECT_TRUE(test, kd_pages_copy_from(pages, from_iter(&iter), a->len));
	KUNIT_EXPECT_EQ(test, iov_iter_count(&iter), 0);
	memset(bytes, 0, a->len + 1);
	iov_iter_kvec(&iter, ITER_DEST, half, 2, a->len);
	KUNIT_EXPECT_TRUE(test, kd_pages_copy_to(pages, 0, a->len, from_iter(&iter)));
	KUNIT_EXPECT_EQ(test, kdk_differs(bytes, a->len, 21), a->len);
	KUNIT_EXPECT_EQ(test, bytes[a->len], 0);

	/* past the end: refused, and the iterator stays */
	iov_iter_kvec(&iter, ITER_DEST, &whole, 1, a->len);
	KUNIT_EXPECT_FALSE(test, kd_pages_copy_to(pages, a->len, 1, from_iter(&iter)));
	KUNIT_EXPECT_FALSE(test, kd_pages_copy_to(pages, 1, a->len, from_iter(&iter)));
	KUNIT_EXPECT_FALSE(test, kd_pages_copy_to(pages, U32_MAX, 2, from_iter(&iter)));
	KUNIT_EXPECT_FALSE(test, kd_pages_copy_to(pages, 0, U32_MAX, from_iter(&iter)));
	KUNIT_EXPECT_FALSE(test, kd_pages_copy_from(pages, from_iter(&iter), a->len + 1));
	KUNIT_EXPECT_EQ(test, iov_iter_count(&iter), a->len);
	/* less in the iterator than is asked for */
	iov_iter_kvec(&iter, ITER_DEST, &whole, 1, a->len - 1);
	KUNIT_EXPECT_FALSE(test, kd_pages_copy_to(pages, 0, a->len, from_iter(&iter)));
	KUNIT_EXPECT_EQ(test, iov_iter_count(&iter), a->len - 1);
	kd_pages_free(pages);
out:
	kvfree(bytes);
}

static void nothing(struct kunit *test)
{
	struct kd_pages *pages = NULL;

	KUNIT_EXPECT_EQ(test, kd_pages_alloc(0, KD_PAGES_FETCH, &pages), KD_EINVAL);
	KUNIT_EXPECT_PTR_EQ(test, pages, NULL);
	kd_pages_free(NULL);
}

/* A reader whose buffer ends in a hole: nothing counts as read. */
static void copy_fault(struct kunit *test)
{
	struct kd_pages *pages;
	struct iov_iter iter;
	struct kdk_user user;
	struct iovec vec;

	if (kd_pages_alloc(3 * PAGE_SIZE, KD_PAGES_FETCH, &pages)) {
		KUNIT_FAIL(test, "no memory");
		return;
	}
	if (kdk_user_begin(test, &user, KDK_PAGES)) {
		kdk_user_hole(&user, 2);
		kdk_range_iter(&user, 100, 3 * PAGE_SIZE, &vec, &iter);
		KUNIT_EXPECT_FALSE(test, kd_pages_copy_from(pages, from_iter(&iter),
							    3 * PAGE_SIZE));
		KUNIT_EXPECT_EQ(test, iov_iter_count(&iter), 3 * PAGE_SIZE);
		iov_iter_init(&iter, ITER_DEST, &vec, 1, 3 * PAGE_SIZE);
		KUNIT_EXPECT_FALSE(test, kd_pages_copy_to(pages, 0, 3 * PAGE_SIZE,
							  from_iter(&iter)));
		KUNIT_EXPECT_EQ(test, iov_iter_count(&iter), 3 * PAGE_SIZE);
		KUNIT_EXPECT_TRUE(test, kd_pages_copy_to(pages, 5, 2 * PAGE_SIZE - 100,
							 from_iter(&iter)));
		KUNIT_EXPECT_EQ(test, iov_iter_count(&iter), PAGE_SIZE + 100);
		kdk_user_end(&user);
	}
	kd_pages_free(pages);
}

static int kdk_alloc_op(void *arg)
{
	enum kd_pages_for *whom = arg;
	struct kd_pages *pages = NULL;
	int err = kd_pages_alloc(100000, *whom, &pages);

	kd_pages_free(pages);
	return err;
}

static const enum kd_pages_for everyone[] = {
	KD_PAGES_FETCH, KD_PAGES_WRITER, KD_PAGES_NOWAIT,
};
KUNIT_ARRAY_PARAM(whom, everyone, NULL);

static void alloc_without_memory(struct kunit *test)
{
	enum kd_pages_for whom = *(const enum kd_pages_for *)test->param_value;

	kdk_each_allocation_fails(test, kdk_alloc_op, &whom);
}

/* Completions give pages back in softirq. */
static void freed_in_softirq(struct kunit *test)
{
	struct kd_pages *pages = NULL, *pinned = NULL;
	struct iov_iter iter;
	struct kdk_user user;
	struct iovec vec;
	s64 before;

	if (!kdk_user_begin(test, &user, KDK_PAGES))
		return;
	kdk_area_fill(test, &user);
	before = kdk_charged();
	kdk_range_iter(&user, 0, KDK_BYTES, &vec, &iter);
	KUNIT_EXPECT_EQ(test, kd_pages_pin(from_iter(&iter), KDK_BYTES, KDK_PAGES, &pinned), 0);
	KUNIT_EXPECT_EQ(test, kd_pages_alloc(SZ_64K, KD_PAGES_FETCH, &pages), 0);
	local_bh_disable();
	kd_pages_free(pages);
	kd_pages_free(pinned);
	local_bh_enable();
	KUNIT_EXPECT_EQ(test, kdk_charged(), before);
	kdk_user_end(&user);
}

/* For the device to read or to write, by address, and for any time: charged until the end. */
static void pinned_to_stay(struct kunit *test)
{
	struct kd_pages *pages;
	struct kdk_user user;
	s64 before;
	int way;

	if (!kdk_user_begin(test, &user, KDK_PAGES))
		return;
	kdk_area_fill(test, &user);
	before = kdk_charged();
	for (way = 0; way < 2; way++) {
		if (kd_pages_pin_stay((unsigned long)kdk_user_at(&user, 4095), 2, way, &pages)) {
			KUNIT_FAIL(test, "it cannot be pinned");
			break;
		}
		KUNIT_EXPECT_EQ(test, kdk_charged() - before, 2);
		KUNIT_EXPECT_EQ(test, pages->nr, 2);
		KUNIT_EXPECT_TRUE(test, folio_maybe_dma_pinned(page_folio(pages->pages[1])));
		local_bh_disable();
		kd_pages_free(pages);
		local_bh_enable();
		KUNIT_EXPECT_EQ(test, kdk_charged(), before);
	}
	kdk_user_hole(&user, 3);
	KUNIT_EXPECT_EQ(test, kd_pages_pin_stay((unsigned long)kdk_user_at(&user, 0), KDK_BYTES,
						true, &pages), KD_EFAULT);
	KUNIT_EXPECT_EQ(test, kdk_charged(), before);
	if (kdk_limit_memlock(before + 1)) {
		KUNIT_EXPECT_EQ(test, kd_pages_pin_stay((unsigned long)kdk_user_at(&user, 4095), 2,
							false, &pages), KD_ENOMEM);
		KUNIT_EXPECT_EQ(test, kdk_charged(), before);
	}
	kdk_user_end(&user);
}

static struct kunit_case kdk_pages_cases[] = {
	KUNIT_CASE_PARAM(pin, span_gen_params),
	KUNIT_CASE(pinned_are_the_callers),
	KUNIT_CASE(pin_a_part),
	KUNIT_CASE(not_pinned),
	KUNIT_CASE(without_a_process),
	KUNIT_CASE_PARAM(pin_fault, missing_gen_params),
	KUNIT_CASE_PARAM(memlock, limit_gen_params),
	KUNIT_CASE(pin_without_memory),
	KUNIT_CASE_PARAM(allocated, alloc_gen_params),
	KUNIT_CASE(nothing),
	KUNIT_CASE(copy_fault),
	KUNIT_CASE_PARAM(alloc_without_memory, whom_gen_params),
	KUNIT_CASE(freed_in_softirq),
	KUNIT_CASE(pinned_to_stay),
	{}
};

KDK_SUITE(pages, kdk_pages_cases);
