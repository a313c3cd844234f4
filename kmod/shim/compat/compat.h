/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * compat.h - the newest kernel's interface on older kernels
 *
 * The only file that knows kernel versions. The shim is written to the newest
 * interface; what an older kernel lacks or calls otherwise is added here, by the
 * HAVE_* answers that compat/probe found when building.
 */
#ifndef KDIRECT_COMPAT_H
#define KDIRECT_COMPAT_H

#include <linux/version.h>
#include <linux/kconfig.h>

#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 1, 0)
#error "kdirect needs Linux 6.1 or newer; build it against newer headers: make KDIR=/lib/modules/VERSION/build"
#endif

#if !IS_ENABLED(CONFIG_64BIT)
#error "kdirect needs a 64-bit kernel"
#endif

#if !IS_ENABLED(CONFIG_INFINIBAND)
#error "kdirect needs a kernel with CONFIG_INFINIBAND (RDMA support); this one has none"
#elif !IS_ENABLED(CONFIG_INFINIBAND_ADDR_TRANS)
#error "kdirect needs a kernel with CONFIG_INFINIBAND_ADDR_TRANS (the RDMA connection manager); this one has none"
#endif

#include "have.h"

#include <linux/device.h>
#include <linux/gfp.h>
#include <linux/mm.h>
#include <linux/module.h>
#include <linux/uio.h>
#include <net/genetlink.h>
#include <rdma/rw.h>

#ifndef HAVE_CLASS_CREATE_NAME
#undef class_create
#define class_create(name) ({					\
	static struct lock_class_key __key;			\
	__class_create(THIS_MODULE, name, &__key);		\
})
#endif

#ifdef HAVE_CLASS_DEVNODE_CONST
#define kd_devnode_device	const struct device
#else
#define kd_devnode_device	struct device
#endif

#ifndef HAVE_ITER_IOV_ADDR
static inline void __user *iter_iov_addr(const struct iov_iter *iter)
{
	return iter->iov->iov_base + iter->iov_offset;
}
#endif

#ifndef HAVE_VM_FLAGS_SET
static inline void vm_flags_set(struct vm_area_struct *vma, vm_flags_t flags)
{
	vma->vm_flags |= flags;
}
#endif

#ifdef HAVE_GENL_SPLIT_OPS
#define kd_genl_doit_ops	genl_split_ops
#else
#define kd_genl_doit_ops	genl_ops
#endif

#ifndef HAVE_ALLOC_PAGES_BULK
#undef alloc_pages_bulk
#define alloc_pages_bulk(gfp, nr, array)	alloc_pages_bulk_array(gfp, nr, array)
#endif

#ifndef HAVE_RDMA_RW_MAX_SEND_WR
/* What rdma_rw_init_qp() adds on kernels that do not tell: READ, registration, invalidation. */
static inline unsigned int rdma_rw_max_send_wr(struct ib_device *dev, u32 port_num,
					       unsigned int max_rdma_ctxs, u32 create_flags)
{
	return 3 * max_rdma_ctxs;
}
#endif

#endif /* KDIRECT_COMPAT_H */
