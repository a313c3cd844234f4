// SPDX-License-Identifier: GPL-2.0-only
/* Fixed buffers: memory of a program that stays pinned, and mapped for a device. */

#include <linux/mm.h>
#include <linux/sched.h>
#include <linux/scatterlist.h>
#include <linux/slab.h>
#include <rdma/ib_verbs.h>

#include "dma.h"
#include "shim.h"

/* A range that is contiguous for the device. */
struct kd_range {
	u64	addr;
	u64	end;	/* offset in the buffer */
};

struct kd_fixed {
	struct page		**pages;
	unsigned long		nr;
	u32			offset;		/* of the first byte in the first page */
	u64			len;
	struct mm_struct	*mm;		/* who is charged */
	struct ib_device	*dev;		/* mapped for it */
	struct sg_table		table;
	struct kd_range		*ranges;
	u32			nr_ranges;
};

/* --- pinning -------------------------------------------------------------------------- */

int kd_fixed_pin(uint64_t addr, uint64_t len, struct kd_fixed **out)
{
	unsigned long start = addr;
	struct kd_fixed *fixed;
	int ret;

	might_sleep();
	if (!current->mm || start != addr || start + len != addr + len)
		return KD_EFAULT;
	fixed = kzalloc(sizeof(*fixed), KD_GFP);
	if (!fixed)
		return KD_ENOMEM;
	fixed->offset = offset_in_page(start);
	fixed->len = len;
	fixed->nr = DIV_ROUND_UP_ULL(fixed->offset + len, PAGE_SIZE);
	ret = kd_charge(fixed->nr, &fixed->mm);
	if (ret)
		goto err_free;
	ret = -ENOMEM;
	fixed->pages = kvmalloc_array(fixed->nr, sizeof(*fixed->pages), KD_GFP | __GFP_ACCOUNT);
	if (!fixed->pages)
		goto err_uncharge;
	ret = kd_pin(fixed->pages, fixed->nr, start, FOLL_WRITE | FOLL_LONGTERM);
	if (ret)
		goto err_pages;
	*out = fixed;
	return 0;

err_pages:
	kvfree(fixed->pages);
err_uncharge:
	kd_uncharge(fixed->nr, fixed->mm);
err_free:
	kfree(fixed);
	return kd_from_errno(ret);
}

void kd_fixed_free(struct kd_fixed *fixed)
{
	might_sleep();
	unpin_user_pages_dirty_lock(fixed->pages, fixed->nr, true);
	kd_uncharge(fixed->nr, fixed->mm);
	kvfree(fixed->ranges);
	kvfree(fixed->pages);
	kfree(fixed);
}

struct page *const *kd_fixed_page_array(const struct kd_fixed *fixed, u64 *at)
{
	*at += fixed->offset;
	return fixed->pages;
}

/* --- mapping -------------------------------------------------------------------------- */

/* What is found by offset later on: one range for each entry. */
static int kd_fixed_list_ranges(struct kd_fixed *fixed)
{
	struct scatterlist *sg;
	u64 end = 0;
	u32 i;

	fixed->ranges = kvmalloc_array(fixed->table.nents, sizeof(*fixed->ranges), KD_GFP);
	if (!fixed->ranges)
		return -ENOMEM;
	fixed->nr_ranges = fixed->table.nents;
	for_each_sgtable_dma_sg(&fixed->table, sg, i) {
		end += sg_dma_len(sg);
		fixed->ranges[i] = (struct kd_range){ .addr = sg_dma_address(sg), .end = end };
	}
	return 0;
}

int kd_fixed_map(struct kd_pd *pd, struct kd_fixed *fixed)
{
	struct ib_device *dev = to_pd(pd)->device;
	int ret;

	might_sleep();
	ret = sg_alloc_table_from_pages_segment(&fixed->table, fixed->pages, fixed->nr,
						fixed->offset, fixed->len,
						ib_dma_max_seg_size(dev), KD_GFP);
	if (ret)
		return kd_from_errno(ret);
	ret = ib_dma_map_sgtable_attrs(dev, &fixed->table, DMA_BIDIRECTIONAL, 0);
	if (ret)
		goto err_table;
	ret = kd_fixed_list_ranges(fixed);
	if (ret)
		goto err_unmap;
	fixed->dev = dev;
	return 0;

err_unmap:
	ib_dma_unmap_sgtable_attrs(dev, &fixed->table, DMA_BIDIRECTIONAL, DMA_ATTR_SKIP_CPU_SYNC);
err_table:
	sg_free_table(&fixed->table);
	return kd_from_errno(ret);
}

/*
 * What the device stored was given to the CPU when it was complete. Where the device has a copy
 * of the memory, it is older than what the program has stored since.
 */
void kd_fixed_unmap(struct kd_fixed *fixed)
{
	might_sleep();
	if (!fixed->dev)
		return;
	ib_dma_unmap_sgtable_attrs(fixed->dev, &fixed->table, DMA_BIDIRECTIONAL,
				   DMA_ATTR_SKIP_CPU_SYNC);
	sg_free_table(&fixed->table);
	fixed->dev = NULL;
}

/* --- using ---------------------------------------------------------------------------- */

/* The range that holds the byte at @offset, which is within the buffer. */
static u32 kd_fixed_find(const struct kd_fixed *fixed, u64 offset)
{
	u32 low = 0, high = fixed->nr_ranges - 1;

	while (low < high) {
		u32 middle = low + (high - low) / 2;

		if (fixed->ranges[middle].end > offset)
			high = middle;
		else
			low = middle + 1;
	}
	return low;
}

uint32_t kd_fixed_fit(const struct kd_fixed *fixed, uint64_t offset, uint32_t len,
		      uint32_t max_sges, uint32_t *sges)
{
	u32 first = kd_fixed_find(fixed, offset), i = first;

	while (i - first + 1 < max_sges && fixed->ranges[i].end < offset + len)
		i++;
	*sges = i - first + 1;
	return min_t(u64, len, fixed->ranges[i].end - offset);
}

/* The next part of a range of bytes that is contiguous for the device. */
static u32 kd_fixed_next(const struct kd_fixed *fixed, u32 i, u64 offset, u32 len, u64 *addr)
{
	u64 begin = i ? fixed->ranges[i - 1].end : 0;

	*addr = fixed->ranges[i].addr + (offset - begin);
	return min_t(u64, len, fixed->ranges[i].end - offset);
}

u32 kd_fixed_sges(struct kd_fixed *fixed, u64 offset, u32 len, u32 lkey, struct ib_sge *sge)
{
	u32 first = kd_fixed_find(fixed, offset), i;

	for (i = first; len; i++, sge++) {
		sge->length = kd_fixed_next(fixed, i, offset, len, &sge->addr);
		sge->lkey = lkey;
		ib_dma_sync_single_for_device(fixed->dev, sge->addr, sge->length,
					      DMA_BIDIRECTIONAL);
		offset += sge->length;
		len -= sge->length;
	}
	return i - first;
}

uint64_t kd_fixed_pages(const struct kd_fixed *fixed)
{
	return fixed->nr;
}

u32 kd_fixed_span(const struct kd_fixed *fixed, u64 offset, u32 len)
{
	return DIV_ROUND_UP(offset_in_page(fixed->offset + offset) + (u64)len, PAGE_SIZE);
}

uint32_t kd_fixed_room(const struct kd_fixed *fixed, uint64_t offset, uint32_t len,
		       uint32_t max_pages)
{
	return kd_user_fit(fixed->offset + offset, len, max_pages);
}

int kd_fixed_table(struct kd_fixed *fixed, u64 offset, u32 len, struct sg_table *out)
{
	u32 first = kd_fixed_find(fixed, offset), i;
	u32 nr = kd_fixed_find(fixed, offset + len - 1) - first + 1;
	struct scatterlist *sg;
	int ret;

	ret = sg_alloc_table(out, nr, KD_GFP);
	if (ret)
		return ret;
	for_each_sg(out->sgl, sg, nr, i) {
		u64 addr;

		sg->length = kd_fixed_next(fixed, first + i, offset, len, &addr);
		sg_dma_address(sg) = addr;
		sg_dma_len(sg) = sg->length;
		ib_dma_sync_single_for_device(fixed->dev, addr, sg->length, DMA_BIDIRECTIONAL);
		offset += sg->length;
		len -= sg->length;
	}
	return 0;
}

int kd_mr_describe(struct ib_mr *mr, struct scatterlist *sgl, u32 nents, u64 len)
{
	int ret = ib_map_mr_sg(mr, sgl, nents, NULL, PAGE_SIZE);

	/* of the last entry it may be a part */
	if (ret != nents || mr->length != len)
		return ret < 0 ? kd_from_errno(ret) : KD_EFBIG;
	/* a key is good for one time: the peer's late use of an old one must fail */
	ib_update_fast_reg_key(mr, ib_inc_rkey(mr->rkey));
	return 0;
}

int kd_mr_map_fixed(struct kd_mr *mr, struct kd_fixed *fixed)
{
	u32 i;

	/* when the peer has stored something, nobody knows */
	for (i = 0; i < fixed->nr_ranges; i++)
		if (kd_dma_has_copy(fixed->dev, fixed->ranges[i].addr))
			return KD_EOPNOTSUPP;
	return kd_mr_describe(to_mr(mr), fixed->table.sgl, fixed->table.nents, fixed->len);
}

void kd_fixed_sync_cpu(struct kd_fixed *fixed, uint64_t offset, uint32_t len)
{
	u32 i = kd_fixed_find(fixed, offset), n;
	u64 addr;

	for (; len; i++, offset += n, len -= n) {
		n = kd_fixed_next(fixed, i, offset, len, &addr);
		ib_dma_sync_single_for_cpu(fixed->dev, addr, n, DMA_BIDIRECTIONAL);
	}
}
