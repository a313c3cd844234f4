/* SPDX-License-Identifier: GPL-2.0-only */
/* clang-format off */
/* mapped.h - a buffer of user memory that is mapped for the RDMA device */
#ifndef KDIRECT_KUNIT_MAPPED_H
#define KDIRECT_KUNIT_MAPPED_H

#include <rdma/ib_verbs.h>

#include "kunit.h"

#define KDK_PAGES	16
#define KDK_BYTES	(KDK_PAGES * PAGE_SIZE)
#define KDK_SKEW	100

/* A buffer of the whole area but for its ends. */
struct kdk_mapped {
	struct kdk_user		user;
	struct ib_device	*dev;
	struct ib_pd		*pd;
	struct kd_fixed		*fixed;
	u8			*bytes;
	u64			len;
};

/* False: told. As kdk_user_begin(). */
bool kdk_mapped_begin(struct kunit *test, struct kdk_mapped *m);
void kdk_mapped_end(struct kdk_mapped *m);

/* What is in an area of KDK_PAGES from then on; NULL: no memory. */
u8 *kdk_area_fill(struct kunit *test, const struct kdk_user *user);

/*
 * Until the next call, fixed buffers are mapped as swiotlb does it: the device has a copy of
 * its own, at addresses that are the kernel's. One at a time.
 */
void kdk_bounce(bool on);

/* of a device whose addresses are the kernel's (ib_uses_virt_dma()), or with kdk_bounce() */
static inline u8 *kdk_at(u64 addr)
{
	return (u8 *)(uintptr_t)addr;
}

#endif
