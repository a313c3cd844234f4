// SPDX-License-Identifier: GPL-2.0-only
/* Fixed buffers: pinned, charged, mapped for a device, and found by offset. */

#include <linux/cred.h>
#include <linux/sched/signal.h>
#include <linux/slab.h>
#include <rdma/ib_verbs.h>

#include "mapped.h"

static s64 kdk_charged(void)
{
	return atomic64_read(&current->mm->pinned_vm);
}

/* One page is not pinned by us: true, or it cannot be looked at. */
static bool kdk_page_pinned(unsigned long addr)
{
	struct page *page = NULL;
	bool pinned;

	if (get_user_pages_fast(addr, 1, 0, &page) != 1)
		return false;
	pinned = folio_maybe_dma_pinned(page_folio(page));
	put_page(page);
	return pinned;
}

/* --- pinning ---------------------------------------------------------------------------- */

struct kdk_span {
	u32	start, len, pages;
};

static const struct kdk_span spans[] = {
	{ 0, 1, 1 }, { 4095, 1, 1 }, { 4095, 2, 2 }, { 0, 4096, 1 }, { 1, 4096, 2 },
	{ 100, 20000, 5 }, { 0, KDK_BYTES, KDK_PAGES }, { 4097, KDK_BYTES - 4097, KDK_PAGES - 1 },
};

static void kdk_describe_span(const struct kdk_span *span, char *desc)
{
	snprintf(desc, KUNIT_PARAM_DESC_SIZE, "%u bytes at %u", span->len, span->start);
}

KUNIT_ARRAY_PARAM(span, spans, kdk_describe_span);

static void fixed_pin(struct kunit *test)
{
	const struct kdk_span *span = test->param_value;
	struct kd_fixed *fixed = NULL, *again = NULL;
	struct kdk_user user;
	s64 before;

	if (!kdk_user_begin(test, &user, KDK_PAGES))
		return;
	kdk_area_fill(test, &user);
	before = kdk_charged();
	if (kd_fixed_pin(user.start + span->start, span->len, &fixed)) {
		KUNIT_FAIL(test, "it cannot be pinned");
		goto out;
	}
	KUNIT_EXPECT_EQ(test, kdk_charged() - before, span->pages);
	KUNIT_EXPECT_TRUE(test, kdk_page_pinned(user.start + span->start));
	KUNIT_EXPECT_TRUE(test, kdk_page_pinned(user.start + span->start + span->len - 1));
	/* what is pinned twice is charged twice */
	if (!kd_fixed_pin(user.start + span->start, span->len, &again)) {
		KUNIT_EXPECT_EQ(test, kdk_charged() - before, 2 * span->pages);
		kd_fixed_free(again);
	} else {
		KUNIT_FAIL(test, "it cannot be pinned twice");
	}
	KUNIT_EXPECT_EQ(test, kdk_charged() - before, span->pages);
	kd_fixed_unmap(fixed);
	kd_fixed_free(fixed);
	KUNIT_EXPECT_EQ(test, kdk_charged(), before);
	KUNIT_EXPECT_FALSE(test, kdk_page_pinned(user.start + span->start));
out:
	kdk_user_end(&user);
}

static const u32 missing[] = { 0, 1, 7, KDK_PAGES - 1 };

static void kdk_describe_page(const u32 *page, char *desc)
{
	snprintf(desc, KUNIT_PARAM_DESC_SIZE, "page %u", *page);
}

KUNIT_ARRAY_PARAM(missing, missing, kdk_describe_page);

/* What was pinned before the fault is given back. */
static void fixed_fault(struct kunit *test)
{
	u32 hole = *(const u32 *)test->param_value;
	struct kd_fixed *fixed = NULL;
	struct kdk_user user;
	s64 before;

	if (!kdk_user_begin(test, &user, KDK_PAGES))
		return;
	kdk_area_fill(test, &user);
	before = kdk_charged();
	kdk_user_hole(&user, hole);
	KUNIT_EXPECT_EQ(test, kd_fixed_pin(user.start, KDK_BYTES, &fixed), KD_EFAULT);
	KUNIT_EXPECT_PTR_EQ(test, fixed, NULL);
	KUNIT_EXPECT_EQ(test, kdk_charged(), before);
	KUNIT_EXPECT_FALSE(test, kdk_page_pinned(user.start + (hole ? 0 : PAGE_SIZE)));
	KUNIT_EXPECT_EQ(test, kd_fixed_pin(ULONG_MAX - 100, 50, &fixed), KD_EFAULT);
	KUNIT_EXPECT_EQ(test, kd_fixed_pin(0, 1, &fixed), KD_EFAULT);
	KUNIT_EXPECT_EQ(test, kdk_charged(), before);
	kdk_user_end(&user);
}

/* A thread of the kernel has no memory that could be charged. */
static void fixed_without_a_process(struct kunit *test)
{
	struct kd_fixed *fixed = NULL;

	KUNIT_EXPECT_EQ(test, kd_fixed_pin(4096, 4096, &fixed), KD_EFAULT);
	KUNIT_EXPECT_PTR_EQ(test, fixed, NULL);
}

static void fixed_memlock(struct kunit *test)
{
	struct kd_fixed *fixed = NULL, *more = NULL;
	struct cred *cred = prepare_creds();
	struct kdk_user user;
	s64 before;
	int err;

	KUNIT_ASSERT_NOT_NULL(test, cred);
	cap_lower(cred->cap_effective, CAP_IPC_LOCK);
	commit_creds(cred);
	if (!kdk_user_begin(test, &user, KDK_PAGES))
		return;
	kdk_area_fill(test, &user);
	before = kdk_charged();
	current->signal->rlim[RLIMIT_MEMLOCK].rlim_cur = (before + 10) << PAGE_SHIFT;
	KUNIT_EXPECT_EQ(test, kd_fixed_pin(user.start, 11 * PAGE_SIZE, &fixed), KD_ENOMEM);
	KUNIT_EXPECT_EQ(test, kdk_charged(), before);
	err = kd_fixed_pin(user.start, 10 * PAGE_SIZE, &fixed);
	KUNIT_EXPECT_EQ(test, err, 0);
	if (!err) {
		/* the limit is for all that is pinned, not for each */
		KUNIT_EXPECT_EQ(test, kd_fixed_pin(user.start, 1, &more), KD_ENOMEM);
		kd_fixed_free(fixed);
		err = kd_fixed_pin(user.start, 1, &more);
		KUNIT_EXPECT_EQ_MSG(test, err, 0, "what was given back does not count");
		if (!err)
			kd_fixed_free(more);
	}
	KUNIT_EXPECT_EQ(test, kdk_charged(), before);
	kdk_user_end(&user);
}

static int kdk_pin_op(void *arg)
{
	struct kdk_user *user = arg;
	struct kd_fixed *fixed = NULL;
	s64 before = kdk_charged();
	int err = kd_fixed_pin(user->start, KDK_BYTES, &fixed);

	if (!err)
		kd_fixed_free(fixed);
	else if (fixed)
		return -1;
	return kdk_charged() == before ? err : -2;
}

static void fixed_pin_without_memory(struct kunit *test)
{
	struct kdk_user user;

	if (!kdk_user_begin(test, &user, KDK_PAGES))
		return;
	kdk_area_fill(test, &user);
	kdk_each_allocation_fails(test, kdk_pin_op, &user);
	kdk_user_end(&user);
}

/* --- mapping ---------------------------------------------------------------------------- */

/* Whether these entries are @len bytes of the area from @offset of the buffer. */
static bool kdk_sges_are(const struct kdk_mapped *m, const struct ib_sge *sge, u32 nr, u64 offset,
			 u32 len, u32 lkey)
{
	u32 i;

	for (i = 0; i < nr; i++) {
		if (sge[i].lkey != lkey || !sge[i].length || sge[i].length > len)
			return false;
		if (ib_uses_virt_dma(m->dev) &&
		    memcmp(kdk_at(sge[i].addr), m->bytes + KDK_SKEW + offset,
			   sge[i].length))
			return false;
		offset += sge[i].length;
		len -= sge[i].length;
	}
	return !len;
}

static const u32 allowed[] = { 1, 2, 3, 5, KDK_PAGES + 1 };

static void kdk_describe_allowed(const u32 *most, char *desc)
{
	snprintf(desc, KUNIT_PARAM_DESC_SIZE, "%u entries", *most);
}

KUNIT_ARRAY_PARAM(allowed, allowed, kdk_describe_allowed);

/* From any offset, any length: as much as fits, what the entries are, and no byte else. */
static void fixed_fit(struct kunit *test)
{
	static const u32 lens[] = { 1, 2, 4096, 5000, 20000, KDK_BYTES - KDK_SKEW - 50 };
	u32 most = *(const u32 *)test->param_value, i;
	struct ib_sge sges[KDK_PAGES + 1];
	struct kdk_mapped m;
	u64 offset;

	if (!kdk_mapped_begin(test, &m))
		return;
	for (offset = 0; offset < m.len; offset += 509)
		for (i = 0; i < ARRAY_SIZE(lens); i++) {
			u32 len = min_t(u64, lens[i], m.len - offset), used = 99, fit, made;

			fit = kd_fixed_fit(m.fixed, offset, len, most, &used);
			if (!fit || fit > len || !used || used > most ||
			    (fit < len && used < most)) {
				KUNIT_FAIL(test, "%u of %u bytes at %llu in %u entries", fit, len,
					   offset, used);
				goto out;
			}
			made = kd_fixed_sges(m.fixed, offset, fit, 77, sges);
			if (made != used || !kdk_sges_are(&m, sges, made, offset, fit, 77)) {
				KUNIT_FAIL(test, "%u entries for %u bytes at %llu, not %u", made,
					   fit, offset, used);
				goto out;
			}
			kd_fixed_sync_cpu(m.fixed, offset, fit);
			fit = kd_fixed_room(m.fixed, offset, len, most);
			if (!fit || fit > len || kd_fixed_span(m.fixed, offset, fit) > most ||
			    (fit < len && kd_fixed_span(m.fixed, offset, fit + 1) <= most)) {
				KUNIT_FAIL(test, "%u of %u bytes at %llu in %u pages", fit, len,
					   offset, most);
				goto out;
			}
		}
	/* who still asks when the device is gone gets an answer */
	kd_fixed_unmap(m.fixed);
	kd_fixed_unmap(m.fixed);
	KUNIT_EXPECT_GT(test, kd_fixed_fit(m.fixed, 0, 1, 1, &i), 0);
out:
	kdk_mapped_end(&m);
}

/* The device writes to the process's own pages. */
static void fixed_is_the_callers(struct kunit *test)
{
	struct ib_sge sges[KDK_PAGES + 1];
	struct kdk_mapped m;
	u32 used, i;
	u8 byte;

	if (!kdk_mapped_begin(test, &m))
		return;
	if (!ib_uses_virt_dma(m.dev)) {
		kunit_mark_skipped(test, "the device's addresses are its own");
		goto out;
	}
	KUNIT_EXPECT_EQ(test, kd_fixed_fit(m.fixed, 0, m.len, KDK_PAGES + 1, &used), m.len);
	used = kd_fixed_sges(m.fixed, 0, m.len, 1, sges);
	for (i = 0; i < used; i++)
		*kdk_at(sges[i].addr) = 200 + i;
	KUNIT_EXPECT_EQ(test, get_user(byte, (u8 __user *)kdk_user_at(&m.user, KDK_SKEW)), 0);
	KUNIT_EXPECT_EQ(test, byte, 200);
	/* the process unmaps it: the pages stay until they are given back */
	kdk_user_hole(&m.user, 0);
	KUNIT_EXPECT_EQ(test, *kdk_at(sges[0].addr), 200);
out:
	kdk_mapped_end(&m);
}

static int kdk_map_op(void *arg)
{
	struct kdk_mapped *m = arg;
	struct kd_fixed *fixed;
	int err = kd_fixed_pin(m->user.start, KDK_BYTES, &fixed);

	if (err)
		return err;
	err = kd_fixed_map((struct kd_pd *)m->pd, fixed);
	kd_fixed_unmap(fixed);
	kd_fixed_free(fixed);
	return err;
}

static void fixed_map_without_memory(struct kunit *test)
{
	struct kdk_mapped m;

	if (!kdk_mapped_begin(test, &m))
		return;
	kdk_each_allocation_fails(test, kdk_map_op, &m);
	kdk_mapped_end(&m);
}

/* --- where the device has a copy of its own ------------------------------------------------- */

static bool kdk_is(const struct kdk_mapped *m, u64 offset, u32 len, u8 byte)
{
	u8 got[100];

	return len <= sizeof(got) &&
	       !copy_from_user(got, kdk_user_at(&m->user, KDK_SKEW + offset), len) &&
	       !memchr_inv(got, byte, len);
}

static bool kdk_store(const struct kdk_mapped *m, u64 offset, u32 len, u8 byte)
{
	u8 bytes[100];

	memset(bytes, byte, sizeof(bytes));
	return len <= sizeof(bytes) &&
	       !copy_to_user(kdk_user_at(&m->user, KDK_SKEW + offset), bytes, len);
}

/* The device stores; true: it saw what the program had stored there. */
static bool kdk_device_stores(struct kdk_mapped *m, u64 offset, u32 len, u8 was, u8 byte)
{
	struct ib_sge sges[KDK_PAGES + 1];
	u32 nr = kd_fixed_sges(m->fixed, offset, len, 1, sges), i;
	bool saw = true;

	for (i = 0; i < nr; i++) {
		saw &= !memchr_inv(kdk_at(sges[i].addr), was, sges[i].length);
		memset(kdk_at(sges[i].addr), byte, sges[i].length);
	}
	return saw;
}

/* What the device has stored is there once it was given back, and nothing else changes. */
static void fixed_of_a_copy(struct kunit *test)
{
	struct kdk_mapped m;

	kdk_bounce(true);
	if (!kdk_mapped_begin(test, &m))
		goto out;
	KUNIT_EXPECT_TRUE(test, kdk_store(&m, 4050, 100, 0x11));
	KUNIT_EXPECT_TRUE(test, kdk_device_stores(&m, 4050, 100, 0x11, 0x22));
	KUNIT_EXPECT_TRUE(test, kdk_is(&m, 4050, 100, 0x11));
	kd_fixed_sync_cpu(m.fixed, 4050, 60);
	KUNIT_EXPECT_TRUE(test, kdk_is(&m, 4050, 60, 0x22));
	KUNIT_EXPECT_TRUE(test, kdk_is(&m, 4110, 40, 0x11));
	/* what is stored from then on stays, also when the mapping ends */
	KUNIT_EXPECT_TRUE(test, kdk_store(&m, 4050, 30, 0x33));
	KUNIT_EXPECT_TRUE(test, kdk_store(&m, 20000, 100, 0x44));
	kd_fixed_unmap(m.fixed);
	KUNIT_EXPECT_TRUE(test, kdk_is(&m, 4050, 30, 0x33));
	KUNIT_EXPECT_TRUE(test, kdk_is(&m, 4080, 30, 0x22));
	KUNIT_EXPECT_TRUE(test, kdk_is(&m, 20000, 100, 0x44));
	kdk_mapped_end(&m);
out:
	kdk_bounce(false);
}

/* What a peer stores nobody would give back: there is no key. */
static void fixed_of_a_copy_has_no_key(struct kunit *test)
{
	struct kdk_mapped m;
	struct kd_mr *mr;

	kdk_bounce(true);
	if (!kdk_mapped_begin(test, &m))
		goto out;
	if (kd_mr_create((struct kd_pd *)m.pd, KDK_PAGES, &mr)) {
		KUNIT_FAIL(test, "no MR");
	} else {
		KUNIT_EXPECT_EQ(test, kd_mr_map_fixed(mr, m.fixed), KD_EOPNOTSUPP);
		kd_mr_destroy(mr);
	}
	kdk_mapped_end(&m);
out:
	kdk_bounce(false);
}

static struct kunit_case kdk_fixed_cases[] = {
	KUNIT_CASE_PARAM(fixed_pin, span_gen_params),
	KUNIT_CASE_PARAM(fixed_fault, missing_gen_params),
	KUNIT_CASE(fixed_without_a_process),
	KUNIT_CASE(fixed_memlock),
	KUNIT_CASE(fixed_pin_without_memory),
	KUNIT_CASE_PARAM(fixed_fit, allowed_gen_params),
	KUNIT_CASE(fixed_is_the_callers),
	KUNIT_CASE(fixed_map_without_memory),
	KUNIT_CASE(fixed_of_a_copy),
	KUNIT_CASE(fixed_of_a_copy_has_no_key),
	{}
};

KDK_SUITE(fixed, kdk_fixed_cases);
