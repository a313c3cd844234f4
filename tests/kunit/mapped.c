// SPDX-License-Identifier: GPL-2.0-only
/* Fixed buffers of the suites, and a device that has a copy of them. */

#include <linux/dma-mapping.h>
#include <linux/scatterlist.h>
#include <linux/slab.h>

#include "mapped.h"

#include "fixed_dma.h"

/* The last page first, so that neighbours are seldom neighbours in memory, too. */
u8 *kdk_area_fill(struct kunit *test, const struct kdk_user *user)
{
	u8 *bytes = kunit_kzalloc(test, KDK_BYTES, GFP_KERNEL);
	int i;

	if (!bytes)
		return NULL;
	kdk_fill(bytes, KDK_BYTES, 1);
	for (i = KDK_PAGES - 1; i >= 0; i--)
		if (copy_to_user(kdk_user_at(user, i * PAGE_SIZE), bytes + i * PAGE_SIZE,
				 PAGE_SIZE))
			return NULL;
	return bytes;
}

void kdk_mapped_end(struct kdk_mapped *m)
{
	if (m->fixed) {
		kd_fixed_unmap(m->fixed);
		kd_fixed_free(m->fixed);
	}
	kdk_user_end(&m->user);
	ib_dealloc_pd(m->pd);
	ib_device_put(m->dev);
}

bool kdk_mapped_begin(struct kunit *test, struct kdk_mapped *m)
{
	memset(m, 0, sizeof(*m));
	m->dev = kdk_device_get();
	if (!m->dev) {
		kunit_mark_skipped(test, "no RDMA device");
		return false;
	}
	m->pd = ib_alloc_pd(m->dev, 0);
	if (IS_ERR(m->pd)) {
		ib_device_put(m->dev);
		KUNIT_FAIL(test, "no protection domain");
		return false;
	}
	if (!kdk_user_begin(test, &m->user, KDK_PAGES)) {
		ib_dealloc_pd(m->pd);
		ib_device_put(m->dev);
		return false;
	}
	m->len = KDK_BYTES - KDK_SKEW - 50;
	m->bytes = kdk_area_fill(test, &m->user);
	if (m->bytes && !kd_fixed_pin(m->user.start + KDK_SKEW, m->len, &m->fixed) &&
	    !kd_fixed_map((struct kd_pd *)m->pd, m->fixed))
		return true;
	KUNIT_FAIL(test, "it cannot be pinned and mapped");
	kdk_mapped_end(m);
	return false;
}

/* --- a copy of its own ---------------------------------------------------------------------- */

static struct {
	bool	on;
	u8	*mem;
	size_t	len;
	struct sg_table *table;
} kdk_copy;

void kdk_bounce(bool on)
{
	kdk_copy.on = on;
}

int kdk_dma_map(struct ib_device *dev, struct sg_table *table, enum dma_data_direction dir,
		unsigned long attrs)
{
	struct scatterlist *sg;
	size_t at = 0;
	int i;

	if (!kdk_copy.on)
		return ib_dma_map_sgtable_attrs(dev, table, dir, attrs);
	kdk_copy.len = 0;
	for_each_sgtable_sg(table, sg, i)
		kdk_copy.len += sg->length;
	kdk_copy.mem = kzalloc(kdk_copy.len, GFP_KERNEL);
	if (!kdk_copy.mem)
		return -ENOMEM;
	kdk_copy.table = table;
	sg_pcopy_to_buffer(table->sgl, table->orig_nents, kdk_copy.mem, kdk_copy.len, 0);
	for_each_sgtable_sg(table, sg, i) {
		sg_dma_address(sg) = (uintptr_t)(kdk_copy.mem + at);
		sg_dma_len(sg) = sg->length;
		at += sg->length;
	}
	table->nents = table->orig_nents;
	return 0;
}

void kdk_dma_unmap(struct ib_device *dev, struct sg_table *table, enum dma_data_direction dir,
		   unsigned long attrs)
{
	if (!kdk_copy.on) {
		ib_dma_unmap_sgtable_attrs(dev, table, dir, attrs);
		return;
	}
	if (!(attrs & DMA_ATTR_SKIP_CPU_SYNC))
		sg_pcopy_from_buffer(table->sgl, table->orig_nents, kdk_copy.mem, kdk_copy.len, 0);
	kfree(kdk_copy.mem);
	kdk_copy.mem = NULL;
}

void kdk_dma_sync_for_cpu(struct ib_device *dev, u64 addr, size_t size,
			  enum dma_data_direction dir)
{
	if (kdk_copy.on)
		sg_pcopy_from_buffer(kdk_copy.table->sgl, kdk_copy.table->orig_nents,
				     kdk_at(addr), size, kdk_at(addr) - kdk_copy.mem);
	else
		ib_dma_sync_single_for_cpu(dev, addr, size, dir);
}

void kdk_dma_sync_for_device(struct ib_device *dev, u64 addr, size_t size,
			     enum dma_data_direction dir)
{
	if (kdk_copy.on)
		sg_pcopy_to_buffer(kdk_copy.table->sgl, kdk_copy.table->orig_nents, kdk_at(addr),
				   size, kdk_at(addr) - kdk_copy.mem);
	else
		ib_dma_sync_single_for_device(dev, addr, size, dir);
}

bool kdk_dma_has_copy(struct ib_device *dev, u64 addr)
{
	return kdk_copy.on || kd_dma_has_copy(dev, addr);
}
