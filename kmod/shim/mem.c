// SPDX-License-Identifier: GPL-2.0-only
/* Memory: of the core's objects, and buffers for the device. */

#include <linux/mm.h>
#include <linux/slab.h>

#include "shim.h"

void *kd_zalloc(size_t size)
{
	return kvzalloc(size, KD_GFP);
}

void kd_free(void *mem)
{
	might_sleep();
	kvfree(mem);
}

static enum dma_data_direction kd_dma_dir(const struct kd_dma *dma)
{
	switch (dma->dir) {
	case KD_DMA_SEND:
		return DMA_TO_DEVICE;
	case KD_DMA_BOTH:
		return DMA_BIDIRECTIONAL;
	case KD_DMA_RECV:
		break;
	}
	return DMA_FROM_DEVICE;
}

/* Buffers of a page and more are whole pages: a power of two would waste up to half. */
static bool kd_dma_is_pages(const struct kd_dma *dma)
{
	return dma->size >= PAGE_SIZE;
}

int kd_dma_create(struct kd_pd *pd, uint32_t size, enum kd_dma_dir dir, struct kd_dma *out)
{
	/* failing is reported to the user, with the name of what failed */
	gfp_t gfp = KD_GFP | __GFP_ZERO;
	int err;

	*out = (struct kd_dma){ .size = size, .dir = dir };
	if (kd_dma_is_pages(out))
		out->mem = alloc_pages_exact(size, gfp);
	else
		out->mem = kmalloc(size, gfp);
	if (!out->mem)
		return KD_ENOMEM;
	err = kd_dma_map(pd, out);
	if (err)
		kd_dma_free(out);
	return err;
}

int kd_dma_map(struct kd_pd *pd, struct kd_dma *dma)
{
	struct ib_device *dev = to_pd(pd)->device;
	u64 addr = ib_dma_map_single(dev, dma->mem, dma->size, kd_dma_dir(dma));

	if (ib_dma_mapping_error(dev, addr))
		return KD_ENOMEM;
	dma->addr = addr;
	dma->mapped = true;
	return 0;
}

void kd_dma_unmap(struct kd_pd *pd, struct kd_dma *dma)
{
	if (!dma->mapped)
		return;
	ib_dma_unmap_single(to_pd(pd)->device, dma->addr, dma->size, kd_dma_dir(dma));
	dma->mapped = false;
}

void kd_dma_free(struct kd_dma *dma)
{
	if (!dma->mem)
		return;
	if (kd_dma_is_pages(dma))
		free_pages_exact(dma->mem, dma->size);
	else
		kfree(dma->mem);
	dma->mem = NULL;
}

void kd_dma_sync_cpu(struct kd_pd *pd, const struct kd_dma *dma, uint32_t len)
{
	ib_dma_sync_single_for_cpu(to_pd(pd)->device, dma->addr, len, kd_dma_dir(dma));
}
