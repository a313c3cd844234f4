/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * os_desc.h - the part of os.h that serves descriptors: a program's memory by its
 * address, fixed buffers, and work requests that share a doorbell.
 */
#ifndef KDIRECT_SHIM_OS_DESC_H
#define KDIRECT_SHIM_OS_DESC_H

#include "types.h"

#ifdef __cplusplus
extern "C" {
#endif

/* --- a program's memory ------------------------------------------------------------- */

/* [sleep] exactly @len bytes, or false. Without @may_fault only of what is in memory, so
 * that it takes no time; false then says nothing.
 */
bool kd_user_read(void *dst, uint64_t addr, size_t len, bool may_fault);
bool kd_user_write(uint64_t addr, const void *src, size_t len);
/* [any] bytes, of @len from @addr, that lie in so many pages */
uint32_t kd_user_fit(uint64_t addr, uint32_t len, uint32_t max_pages);
/* [sleep] as kd_pages_pin_io(), of what kd_user_fit() allows; @may_fault as above: KD_EFAULT
 * then says nothing
 */
int kd_pages_pin_user(uint64_t addr, uint32_t len, bool to_memory, bool may_fault,
		      struct kd_pages **out);

/* --- fixed buffers -------------------------------------------------------------------- */

/* [sleep] pins @len bytes of the caller's, to be written, and charges them to
 * RLIMIT_MEMLOCK (KD_ENOMEM). KD_EINTR: a fatal signal
 */
int kd_fixed_pin(uint64_t addr, uint64_t len, struct kd_fixed **out);
/* [sleep] for the device of @pd, in both directions */
int kd_fixed_map(struct kd_pd *pd, struct kd_fixed *fixed);
/* [sleep] no work request uses it. No effect if it is not mapped. kd_fixed_fit() may
 * still be called. What the device stored, and kd_fixed_sync_cpu() was not called for, may be
 * lost; nothing else changes.
 */
void kd_fixed_unmap(struct kd_fixed *fixed);
/* [sleep] is not mapped (any more); unpins and uncharges */
void kd_fixed_free(struct kd_fixed *fixed);
/* [any] has been mapped: how many bytes, of @len from @offset, so many scatter-gather
 * entries hold, and in *@sges how many do
 */
uint32_t kd_fixed_fit(const struct kd_fixed *fixed, uint64_t offset, uint32_t len,
		      uint32_t max_sges, uint32_t *sges);
/* [any] how many bytes, of @len from @offset, lie in so many pages */
uint32_t kd_fixed_room(const struct kd_fixed *fixed, uint64_t offset, uint32_t len,
		       uint32_t max_pages);
/* [any] give the bytes of a READ back to the CPU */
void kd_fixed_sync_cpu(struct kd_fixed *fixed, uint64_t offset, uint32_t len);

/* --- copying --------------------------------------------------------------------------- */

/* Memory of a descriptor: of @pages, or of @fixed, from @offset; not mapped for a device */
struct kd_place {
	struct kd_pages	*pages;
	struct kd_fixed	*fixed;
	uint64_t	offset;
};

/* [any] by the CPU; all of it lies in there */
void kd_place_read(const struct kd_place *from, void *to, uint32_t len);
void kd_place_write(const struct kd_place *to, const void *from, uint32_t len);
/* [any] from @offset of @from */
void kd_place_copy(const struct kd_place *to, struct kd_pages *from, uint32_t offset,
		   uint32_t len);
/* [sleep] the pages of a range of @fixed, which keeps them. KD_EOPNOTSUPP: more than @max_pages */
int kd_fixed_borrow(struct kd_fixed *fixed, uint64_t offset, uint32_t len, uint32_t max_pages,
		    struct kd_pages **out);

/* --- chains of work requests ------------------------------------------------------------ */

enum kd_io_kind {
	KD_IO_BUFFER,		/* READ into, or WRITE from, @dma (KD_DMA_BOTH) */
	KD_IO_FIXED,		/* the same with @fixed, from @offset */
	KD_IO_CMP_SWAP,		/* the old number goes into @dma */
	KD_IO_FETCH_ADD,
	KD_IO_PROBE,		/* os_map.h; as the last one */
};

/* One of a chain. Each ends in kd_io_done(), but without @cqe with the next that has one. */
struct kd_io {
	enum kd_io_kind	kind;
	bool		write;
	uint32_t	len;
	uint32_t	rkey;
	uint64_t	addr;		/* the peer's */
	struct kd_cqe	*cqe;
	struct kd_dma	*dma;
	struct kd_fixed	*fixed;
	uint64_t	offset;
	uint64_t	operand, compare;
};

#define KD_CHAIN_MAX	16	/* WRs */
#define KD_CHAIN_SGES	64	/* entries of KD_IO_FIXED in one chain */

int kd_chain_create(struct kd_chain **out);		/* [sleep] */
void kd_chain_free(struct kd_chain *chain);		/* [sleep] NULL is allowed */
/* [any] as kd_post_send(): all of them, 1 .. KD_CHAIN_MAX, with one doorbell, each that has
 * a cqe signalled. What @chain holds is used up by the return.
 */
int kd_post_chain(struct kd_qp *qp, struct kd_chain *chain, const struct kd_io *ios, uint32_t nr);

#ifdef __cplusplus
}
#endif
#endif
