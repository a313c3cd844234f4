/* SPDX-License-Identifier: GPL-2.0-only */
/* clang-format off */
/*
 * fixed_dma.h - put before the product's fixed.c: how it maps goes through mapped.c, which can
 * do as swiotlb does.
 */
#ifndef KDIRECT_KUNIT_FIXED_DMA_H
#define KDIRECT_KUNIT_FIXED_DMA_H

#include "dma.h"

int kdk_dma_map(struct ib_device *dev, struct sg_table *table, enum dma_data_direction dir,
		unsigned long attrs);
void kdk_dma_unmap(struct ib_device *dev, struct sg_table *table, enum dma_data_direction dir,
		   unsigned long attrs);
void kdk_dma_sync_for_cpu(struct ib_device *dev, u64 addr, size_t size,
			  enum dma_data_direction dir);
void kdk_dma_sync_for_device(struct ib_device *dev, u64 addr, size_t size,
			     enum dma_data_direction dir);
bool kdk_dma_has_copy(struct ib_device *dev, u64 addr);

#ifdef KDK_PRODUCT
#include "shim.h"
#define ib_dma_map_sgtable_attrs	kdk_dma_map
#define ib_dma_unmap_sgtable_attrs	kdk_dma_unmap
#define ib_dma_sync_single_for_cpu	kdk_dma_sync_for_cpu
#define ib_dma_sync_single_for_device	kdk_dma_sync_for_device
#define kd_dma_has_copy			kdk_dma_has_copy
#endif

#endif
