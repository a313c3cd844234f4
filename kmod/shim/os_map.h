/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * os_map.h - the part of os.h that serves exports and mappings: memory that a peer may
 * read and write by itself, and reads and writes of such memory.
 */
#ifndef KDIRECT_SHIM_OS_MAP_H
#define KDIRECT_SHIM_OS_MAP_H

#include "types.h"

#ifdef __cplusplus
extern "C" {
#endif

/* --- memory of exports ---------------------------------------------------------- */

/* [sleep] zeroed pages, charged to the caller's memory cgroup. KD_EINTR: a fatal signal */
int kd_region_alloc(uint64_t size, struct kd_region **out);
/* [sleep] no key over it is left */
void kd_region_free(struct kd_region *region);

/* [sleep] an MR over @len bytes from @offset, a multiple of the page size, mapped for the
 * device of @pd: for remote READ, and if @writable for remote WRITE and atomic operations,
 * where the device has those. Nothing is posted.
 */
int kd_key_create(struct kd_pd *pd, struct kd_region *region, uint64_t offset, uint32_t len,
		  bool writable, struct kd_key **out);
/* [sleep] Deregisters: the device grants no access any more when this returns. A REG_MR
 * of it has been executed, or its QP is gone.
 */
void kd_key_destroy(struct kd_key *key);
uint32_t kd_key_rkey(const struct kd_key *key);				/* [any] */
uint64_t kd_key_address(const struct kd_key *key);			/* [any] */
/* [any] as kd_post_send(): REG_MR of each key (unsignalled; @reg may serve many) chained
 * before a signalled SEND
 */
int kd_post_keys(struct kd_qp *qp, struct kd_cqe *reg, struct kd_key *const *keys, uint32_t nr,
		 struct kd_cqe *cqe, struct kd_dma *dma, uint32_t len);

/* --- reads and writes of a peer's memory ------------------------------------------- */

/* Each ends in kd_io_done(). Over iWARP a WRITE completes when TCP has its bytes: it has to
 * end with a probe, @placed, a READ of one byte which is answered behind it. And a READ needs
 * memory with a key of its own: that is kd_rw_post()'s.
 */

/* [any] as kd_post_send(): one RDMA READ into, or WRITE from, the first @len bytes of
 * @dma (KD_DMA_BOTH)
 */
int kd_post_io(struct kd_qp *qp, struct kd_cqe *cqe, struct kd_dma *dma, uint32_t len,
	       uint64_t addr, uint32_t rkey, bool write, bool placed);
/* [sleep] map all of @pages and make the WRs (rdma_rw); nothing is posted */
int kd_rw_prepare(struct kd_qp *qp, struct kd_read *rw, struct kd_pages *pages, uint64_t addr,
		  uint32_t rkey, bool write);
/* [any] what was prepared, all of it signalled at its end */
int kd_rw_post(struct kd_qp *qp, struct kd_read *rw, struct kd_cqe *cqe, bool placed);
/* [any] as kd_read_release(), and for what was prepared and not posted */
void kd_rw_release(struct kd_qp *qp, struct kd_read *rw, struct kd_pages *pages, bool write);

/* [any] bytes at the front of @iter that kd_pages_pin_io() could take with so many pages;
 * 0: it is no user memory
 */
size_t kd_iter_pinnable(const struct kd_iter *iter, uint32_t max_pages);
/* [sleep] as kd_pages_pin(), for one transfer and therefore not charged; @to_memory: the
 * device writes to the pages
 */
int kd_pages_pin_io(struct kd_iter *iter, uint32_t len, uint32_t max_pages, bool to_memory,
		    struct kd_pages **out);

/* [any] an asynchronous transfer has ended: bytes, or a negative KD_* value */
void kd_iocb_complete(struct kd_iocb *iocb, int64_t result);

#ifdef __cplusplus
}
#endif
#endif
