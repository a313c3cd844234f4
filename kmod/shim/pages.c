// SPDX-License-Identifier: GPL-2.0-only
/* Memory of large messages: the caller's own pages, or the kernel's. */

#include <linux/bvec.h>
#include <linux/capability.h>
#include <linux/mm.h>
#include <linux/sched/mm.h>
#include <linux/sched/signal.h>
#include <linux/scatterlist.h>
#include <linux/slab.h>
#include <linux/uio.h>

#include "shim.h"

/*
 * Pages are not allocated for one device, so that entries of the table must suit all:
 * 64 KiB is what a device that says nothing can do.
 */
#define KD_MAX_SEGMENT	SZ_64K

/* Between two looks at signals: 2 MiB. */
#define KD_PIN_AT_ONCE	512UL

static struct kd_pages *kd_pages_new(u32 offset, u32 len, gfp_t gfp)
{
	u32 nr = DIV_ROUND_UP(offset + len, PAGE_SIZE);
	struct kd_pages *pages = kzalloc(struct_size(pages, pages, nr), gfp);

	if (!pages)
		return NULL;
	pages->len = len;
	pages->nr = nr;
	pages->offset = offset;
	return pages;
}

static int kd_pages_build_table(struct kd_pages *pages, gfp_t gfp)
{
	u32 i, at = pages->offset, left = pages->len;

	if (pages->nr <= ARRAY_SIZE(pages->few)) {
		sg_init_table(pages->few, pages->nr);
		for (i = 0; i < pages->nr; i++, at = 0) {
			u32 len = min_t(u32, left, PAGE_SIZE - at);

			sg_set_page(&pages->few[i], pages->pages[i], len, at);
			left -= len;
		}
		pages->table.sgl = pages->few;
		pages->table.nents = pages->nr;
		pages->table.orig_nents = pages->nr;
		return 0;
	}
	return sg_alloc_table_from_pages_segment(&pages->table, pages->pages, pages->nr,
						 pages->offset, pages->len, KD_MAX_SEGMENT, gfp);
}

/* --- the caller's pages -------------------------------------------------------------- */

/* As RDMA memory regions are charged: locked by mm, against the limit of the process. */
int kd_charge(unsigned long nr, struct mm_struct **out)
{
	struct mm_struct *mm = current->mm;
	unsigned long limit = rlimit(RLIMIT_MEMLOCK) >> PAGE_SHIFT;

	if (atomic64_add_return(nr, &mm->pinned_vm) > limit && !capable(CAP_IPC_LOCK)) {
		atomic64_sub(nr, &mm->pinned_vm);
		return -ENOMEM;
	}
	mmgrab(mm);
	*out = mm;
	return 0;
}

void kd_uncharge(unsigned long nr, struct mm_struct *mm)
{
	atomic64_sub(nr, &mm->pinned_vm);
	mmdrop(mm);
}

static void kd_drop_mm(struct work_struct *work)
{
	struct kd_pages *pages = container_of(work, struct kd_pages, drop);

	mmdrop(pages->mm);
	kfree(pages);
}

/*
 * Frees @pages. Completions call this from softirq, where a mm must not be torn down:
 * if this is the last reference to it, a worker does.
 */
static void kd_uncharge_and_free(struct kd_pages *pages)
{
	if (!pages->mm) {
		kfree(pages);
		return;
	}
	atomic64_sub(pages->nr, &pages->mm->pinned_vm);
	if (atomic_add_unless(&pages->mm->mm_count, -1, 1)) {
		kfree(pages);
		return;
	}
	INIT_WORK(&pages->drop, kd_drop_mm);
	queue_work(kd_workqueue, &pages->drop);
}

/* One range of user memory, @len bytes of it; false if @iter is something else. */
static bool kd_iter_user_range(const struct iov_iter *iter, u32 len, unsigned long *start)
{
	if (iov_iter_single_seg_count(iter) < len)
		return false;
	if (iter_is_ubuf(iter))
		*start = (unsigned long)iter->ubuf + iter->iov_offset;
	else if (iter_is_iovec(iter))
		*start = (unsigned long)iter_iov_addr(iter);
	else
		return false;
	return true;
}

int kd_pin(struct page **pages, unsigned long nr, unsigned long start, unsigned int flags)
{
	unsigned long done = 0;
	int ret = 0;

	start &= PAGE_MASK;
	/* the end of all addresses: newer kernels have an error of their own for it */
	if (start + nr * PAGE_SIZE < start)
		return -EFAULT;
	while (done < nr) {
		ret = pin_user_pages_fast(start + done * PAGE_SIZE,
					  min(nr - done, KD_PIN_AT_ONCE), flags, pages + done);
		if (ret <= 0)
			break;
		done += ret;
		if (done < nr && fatal_signal_pending(current)) {
			ret = -EINTR;
			break;
		}
	}
	if (done == nr)
		return 0;
	unpin_user_pages(pages, done);
	return ret ? ret : -EFAULT;
}

int kd_pages_pin(struct kd_iter *iter, uint32_t len, uint32_t max_pages, struct kd_pages **out)
{
	struct kd_pages *pages;
	unsigned long start;
	int ret;

	might_sleep();
	if (!len || !current->mm || !kd_iter_user_range(to_iter(iter), len, &start))
		return KD_EOPNOTSUPP;
	pages = kd_pages_new(offset_in_page(start), len, GFP_KERNEL);
	if (!pages)
		return KD_ENOMEM;
	if (pages->nr > max_pages) {
		kfree(pages);
		return KD_EOPNOTSUPP;
	}
	pages->pinned = true;

	ret = kd_charge(pages->nr, &pages->mm);
	if (ret)
		goto err_free;
	/* not for writing: the device reads what the caller sends */
	ret = kd_pin(pages->pages, pages->nr, start, FOLL_LONGTERM);
	if (ret)
		goto err_uncharge;
	ret = kd_pages_build_table(pages, GFP_KERNEL);
	if (ret)
		goto err_unpin;
	iov_iter_advance(to_iter(iter), len);
	*out = pages;
	return 0;

err_unpin:
	unpin_user_pages(pages->pages, pages->nr);
err_uncharge:
	kd_uncharge_and_free(pages);
	return kd_from_errno(ret);
err_free:
	kfree(pages);
	return kd_from_errno(ret);
}

/* --- the caller's pages for one transfer ----------------------------------------------- */

size_t kd_iter_pinnable(const struct kd_iter *kd_iter, uint32_t max_pages)
{
	const struct iov_iter *iter = (const struct iov_iter *)kd_iter;
	unsigned long start;

	if (!current->mm || !kd_iter_user_range(iter, 1, &start))
		return 0;
	return min_t(size_t, iov_iter_single_seg_count(iter),
		     (size_t)max_pages * PAGE_SIZE - offset_in_page(start));
}

static void kd_unpin_dirty(struct work_struct *work)
{
	struct kd_pages *pages = container_of(work, struct kd_pages, drop);

	unpin_user_pages_dirty_lock(pages->pages, pages->nr, true);
	kd_uncharge_and_free(pages);
}

/*
 * Marking pages dirty can sleep. So it was done before the transfer; a worker does it
 * again in case they were cleaned since, which is rare.
 */
static void kd_unpin_transient(struct kd_pages *pages)
{
	u32 i;

	for (i = 0; pages->written && i < pages->nr; i++) {
		if (folio_test_dirty(page_folio(pages->pages[i])))
			continue;
		INIT_WORK(&pages->drop, kd_unpin_dirty);
		queue_work(kd_workqueue, &pages->drop);
		return;
	}
	unpin_user_pages(pages->pages, pages->nr);
	kd_uncharge_and_free(pages);
}

/* With FOLL_LONGTERM they may stay pinned for any time, and are charged. */
static int kd_pages_pin_range(uint64_t addr, uint32_t len, bool to_memory, unsigned int more,
			      struct kd_pages **out)
{
	unsigned int flags = (to_memory ? FOLL_WRITE : 0) | more;
	bool stays = more & FOLL_LONGTERM;
	unsigned long start = addr;
	struct kd_pages *pages;
	int ret;
	u32 i;

	might_sleep();
	if (!current->mm || start != addr)
		return KD_EFAULT;
	pages = kd_pages_new(offset_in_page(start), len, GFP_KERNEL);
	if (!pages)
		return KD_ENOMEM;
	pages->pinned = true;
	pages->transient = true;
	pages->written = to_memory;
	ret = stays ? kd_charge(pages->nr, &pages->mm) : 0;
	if (ret)
		goto err_free;
	ret = kd_pin(pages->pages, pages->nr, start, flags);
	if (ret)
		goto err_uncharge;
	ret = kd_pages_build_table(pages, GFP_KERNEL);
	if (ret)
		goto err_unpin;
	for (i = 0; to_memory && i < pages->nr; i++)
		if (!folio_test_dirty(page_folio(pages->pages[i])))
			set_page_dirty_lock(pages->pages[i]);
	*out = pages;
	return 0;

err_unpin:
	unpin_user_pages(pages->pages, pages->nr);
err_uncharge:
	kd_uncharge_and_free(pages);
	return kd_from_errno(ret);
err_free:
	kfree(pages);
	return kd_from_errno(ret);
}

int kd_pages_pin_user(uint64_t addr, uint32_t len, bool to_memory, bool may_fault,
		      struct kd_pages **out)
{
	return kd_pages_pin_range(addr, len, to_memory, may_fault ? 0 : FOLL_NOFAULT, out);
}

int kd_pages_pin_stay(uint64_t addr, uint32_t len, bool to_memory, struct kd_pages **out)
{
	return kd_pages_pin_range(addr, len, to_memory, FOLL_LONGTERM, out);
}

uint32_t kd_user_fit(uint64_t addr, uint32_t len, uint32_t max_pages)
{
	return min_t(u64, len, (u64)max_pages * PAGE_SIZE - offset_in_page(addr));
}

int kd_pages_pin_io(struct kd_iter *iter, uint32_t len, uint32_t max_pages, bool to_memory,
		    struct kd_pages **out)
{
	unsigned long start;
	int err;

	if (!len || !current->mm || !kd_iter_user_range(to_iter(iter), len, &start) ||
	    kd_user_fit(start, len, max_pages) < len)
		return KD_EOPNOTSUPP;
	err = kd_pages_pin_user(start, len, to_memory, true, out);
	if (!err)
		iov_iter_advance(to_iter(iter), len);
	return err;
}

/* --- pages that others keep ---------------------------------------------------------- */

/* Pages one after the other, of which only the first and the last may be used in part. */
static int kd_pages_take_bvecs(struct kd_pages *pages, const struct iov_iter *iter)
{
	struct bvec_iter at = {
		.bi_size	= pages->len,
		.bi_bvec_done	= iter->iov_offset,
	};
	struct bio_vec part;
	u32 left = pages->len, i = 0;

	for_each_bvec(part, iter->bvec, at, at) {
		if (i == pages->nr || part.bv_offset != (i ? 0 : pages->offset) ||
		    part.bv_len != min_t(u32, left, PAGE_SIZE - part.bv_offset))
			return -EOPNOTSUPP;
		pages->pages[i++] = part.bv_page;
		left -= part.bv_len;
	}
	return left ? -EFAULT : 0;
}

int kd_pages_borrow(const struct iov_iter *iter, u32 offset, struct kd_pages **out)
{
	struct kd_pages *pages;
	int ret;

	might_sleep();
	if (!iov_iter_is_bvec(iter))
		return KD_EOPNOTSUPP;
	pages = kd_pages_new(offset, iov_iter_count(iter), GFP_KERNEL);
	if (!pages)
		return KD_ENOMEM;
	pages->borrowed = true;
	ret = kd_pages_take_bvecs(pages, iter);
	if (!ret)
		ret = kd_pages_build_table(pages, GFP_KERNEL);
	if (ret) {
		kfree(pages);
		return kd_from_errno(ret);
	}
	*out = pages;
	return 0;
}

int kd_pages_borrow_array(struct page *const *from, u32 offset, u32 len, struct kd_pages **out)
{
	struct kd_pages *pages;
	int ret;

	might_sleep();
	pages = kd_pages_new(offset, len, GFP_KERNEL);
	if (!pages)
		return KD_ENOMEM;
	pages->borrowed = true;
	memcpy(pages->pages, from, pages->nr * sizeof(*from));
	ret = kd_pages_build_table(pages, GFP_KERNEL);
	if (ret) {
		kfree(pages);
		return kd_from_errno(ret);
	}
	*out = pages;
	return 0;
}

bool kd_pages_pinned(const struct kd_pages *pages)
{
	return pages->pinned;
}

/* --- the kernel's pages --------------------------------------------------------------- */

static void kd_free_page_array(struct kd_pages *pages)
{
	u32 i;

	for (i = 0; i < pages->nr && pages->pages[i]; i++)
		__free_page(pages->pages[i]);
}

/* The bulk allocator gives what is at hand, and may give nothing without being out of memory. */
static int kd_fill_page_array(struct kd_pages *pages, gfp_t gfp)
{
	u32 done = alloc_pages_bulk(gfp, pages->nr, pages->pages);

	for (; done < pages->nr; done++) {
		pages->pages[done] = alloc_page(gfp);
		if (!pages->pages[done])
			return -ENOMEM;
	}
	return 0;
}

static gfp_t kd_pages_gfp(enum kd_pages_for whom)
{
	switch (whom) {
	case KD_PAGES_WRITER:
		return KD_GFP | __GFP_ACCOUNT;
	case KD_PAGES_NOWAIT:
		return GFP_NOWAIT | __GFP_NOWARN | __GFP_ACCOUNT;
	case KD_PAGES_FETCH:
		break;
	}
	return KD_GFP;
}

int kd_pages_alloc(uint32_t len, enum kd_pages_for whom, struct kd_pages **out)
{
	gfp_t gfp = kd_pages_gfp(whom);
	struct kd_pages *pages;
	int ret;

	if (!len)
		return KD_EINVAL;
	pages = kd_pages_new(0, len, gfp);
	if (!pages)
		return KD_ENOMEM;
	ret = kd_fill_page_array(pages, gfp);
	if (!ret)
		ret = kd_pages_build_table(pages, gfp);
	if (ret) {
		kd_free_page_array(pages);
		kfree(pages);
		return kd_from_errno(ret);
	}
	*out = pages;
	return 0;
}

void kd_pages_free(struct kd_pages *pages)
{
	if (!pages)
		return;
	if (pages->table.sgl != pages->few)
		sg_free_table(&pages->table);
	if (pages->borrowed) {
		kfree(pages);
	} else if (pages->transient) {
		kd_unpin_transient(pages);
	} else if (pages->pinned) {
		unpin_user_pages(pages->pages, pages->nr);
		kd_uncharge_and_free(pages);
	} else {
		kd_free_page_array(pages);
		kfree(pages);
	}
}

/* --- copying -------------------------------------------------------------------------- */

typedef size_t (*kd_copy_page_fn)(struct page *page, size_t offset, size_t bytes,
				  struct iov_iter *iter);

static bool kd_pages_copy(struct kd_pages *pages, u32 offset, u32 len, struct iov_iter *iter,
			  kd_copy_page_fn copy)
{
	size_t done = 0;

	if (offset > pages->len || len > pages->len - offset)
		return false;
	offset += pages->offset;
	while (done < len) {
		u32 at = offset_in_page(offset + done);
		size_t want = min_t(size_t, len - done, PAGE_SIZE - at);
		size_t got = copy(pages->pages[(offset + done) >> PAGE_SHIFT], at, want, iter);

		done += got;
		if (got < want) {
			iov_iter_revert(iter, done);
			return false;
		}
	}
	return true;
}

bool kd_pages_copy_from(struct kd_pages *pages, struct kd_iter *from, uint32_t len)
{
	return kd_pages_copy(pages, 0, len, to_iter(from), copy_page_from_iter);
}

bool kd_pages_copy_to(struct kd_pages *pages, uint32_t offset, uint32_t len, struct kd_iter *to)
{
	return kd_pages_copy(pages, offset, len, to_iter(to), copy_page_to_iter);
}
