/* SPDX-License-Identifier: GPL-2.0-only */
/* How a device sees memory. */
#ifndef KDIRECT_SHIM_DMA_H
#define KDIRECT_SHIM_DMA_H

#include <linux/dma-mapping.h>
#include <rdma/ib_verbs.h>

/* What the device has at @addr is a copy, or what it stores there must be synced otherwise. */
static inline bool kd_dma_has_copy(struct ib_device *dev, u64 addr)
{
	return !ib_uses_virt_dma(dev) && dma_need_sync(dev->dma_device, addr);
}

#endif
