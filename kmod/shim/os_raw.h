/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * os_raw.h - the part of os.h that serves raw channels: any work request of an RC QP, on a
 * program's memory, and keys of fixed buffers.
 */
#ifndef KDIRECT_SHIM_OS_RAW_H
#define KDIRECT_SHIM_OS_RAW_H

#include "types.h"

#ifdef __cplusplus
extern "C" {
#endif

/* --- a program's memory ------------------------------------------------------------- */

/* [sleep] as kd_pages_pin_user(), for as long as it may take: charged to RLIMIT_MEMLOCK
 * (KD_ENOMEM)
 */
int kd_pages_pin_stay(uint64_t addr, uint32_t len, bool to_memory, struct kd_pages **out);
/* [any] for the device of @pd, which is to write there, if @to_memory, or to read */
int kd_pages_map(struct kd_pd *pd, struct kd_pages *pages, bool to_memory);
void kd_pages_unmap(struct kd_pd *pd, struct kd_pages *pages, bool to_memory);
/* [any] mapped: scatter-gather entries that hold them */
uint32_t kd_pages_sges(const struct kd_pages *pages);

/* --- work requests -------------------------------------------------------------------- */

enum kd_raw_op {
	KD_RAW_SEND,
	KD_RAW_SEND_IMM,
	KD_RAW_SEND_INV,
	KD_RAW_WRITE,
	KD_RAW_WRITE_IMM,
	KD_RAW_READ,
	KD_RAW_CMP_SWAP,
	KD_RAW_FETCH_ADD,
	KD_RAW_LOCAL_INV,
};

/*
 * One of a chain. Its memory is one of @dma, @fixed from @offset and @pages, or there is none.
 * With @frwr, which kd_frwr_map() was called for, it is one entry; two more WRs are before
 * it then, which complete only if they fail.
 */
struct kd_raw_wr {
	enum kd_raw_op	op;
	bool		fence;
	bool		solicited;
	uint32_t	len;
	uint32_t	rkey;
	uint32_t	imm;		/* host order */
	uint64_t	addr;		/* the peer's */
	struct kd_cqe	*cqe;
	struct kd_dma	*dma;
	struct kd_fixed	*fixed;
	uint64_t	offset;
	struct kd_pages	*pages;		/* mapped */
	struct kd_frwr	*frwr;
	struct kd_cqe	*reg_cqe;	/* with @frwr: ends in kd_raw_registered() */
	bool		sink;		/* with @frwr: the peer writes, and it ends with the READ */
	uint64_t	operand, compare;
};

/* [any] as kd_post_chain(); each ends in kd_raw_sent(). No more entries altogether than
 * KD_CHAIN_SGES of @fixed, or those of one WR with @pages
 */
int kd_post_raw(struct kd_qp *qp, struct kd_chain *chain, const struct kd_raw_wr *wrs, uint32_t nr);
/* [any] one receive, of which @cqe, @len and memory count; ends in kd_raw_received(). With
 * @frwr: it is registered
 */
int kd_post_raw_recv(struct kd_qp *qp, struct kd_chain *chain, const struct kd_raw_wr *wr);

/* --- memory in more pieces than a work request has entries for -------------------------- */

/* [sleep] an FRWR MR for so many pages, of one work request at a time */
int kd_frwr_create(struct kd_pd *pd, uint32_t max_pages, struct kd_frwr **out);
/* [sleep] no work request with it is outstanding, or its QP is gone */
void kd_frwr_destroy(struct kd_frwr *frwr);
/* [any] pages that the memory of @wr lies in, which is @fixed or @pages */
uint32_t kd_raw_pages(const struct kd_raw_wr *wr);
/* [sleep] describes that memory, which is mapped, under a new key; nothing is posted. KD_EFBIG:
 * it is too much, or the device cannot
 */
int kd_frwr_map(struct kd_frwr *frwr, const struct kd_raw_wr *wr);
/* [any] as kd_post_send(), for a receive: two WRs at most, of which the last, signalled, ends
 * in kd_raw_registered()
 */
int kd_post_frwr(struct kd_qp *qp, struct kd_cqe *cqe, struct kd_frwr *frwr);

/* --- keys of fixed buffers -------------------------------------------------------------- */

/* [any] pages of it, in part or whole */
uint64_t kd_fixed_pages(const struct kd_fixed *fixed);
/* [sleep] describes @fixed, which is mapped, in @mr, under a new key; nothing is posted.
 * KD_EFBIG: as above, KD_EOPNOTSUPP: what the device stores has to be synced
 */
int kd_mr_map_fixed(struct kd_mr *mr, struct kd_fixed *fixed);
/* [any] as kd_post_send(): REG_MR, signalled, with KDIRECT_ACCESS_* */
int kd_post_share(struct kd_qp *qp, struct kd_cqe *cqe, struct kd_mr *mr, uint32_t access);

/* --- nodes -------------------------------------------------------------------------------- */

/* [sleep] as kd_node_create(); opens come to kd_raw_open() */
int kd_raw_node_create(struct kd_channel *channel, const char *name, struct kd_node **out);

#ifdef __cplusplus
}
#endif
#endif
