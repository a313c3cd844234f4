// SPDX-License-Identifier: GPL-2.0-only
/* Work requests of raw channels, on memory of a program. */

#include <linux/bottom_half.h>
#include <rdma/ib_verbs.h>

#include "kdirect.h"

#include "shim.h"

/* --- pages ------------------------------------------------------------------------------ */

static enum dma_data_direction kd_pages_direction(bool to_memory)
{
	return to_memory ? DMA_FROM_DEVICE : DMA_TO_DEVICE;
}

int kd_pages_map(struct kd_pd *pd, struct kd_pages *pages, bool to_memory)
{
	return kd_from_errno(ib_dma_map_sgtable_attrs(to_pd(pd)->device, &pages->table,
						      kd_pages_direction(to_memory), 0));
}

void kd_pages_unmap(struct kd_pd *pd, struct kd_pages *pages, bool to_memory)
{
	ib_dma_unmap_sgtable_attrs(to_pd(pd)->device, &pages->table,
				   kd_pages_direction(to_memory), 0);
}

uint32_t kd_pages_sges(const struct kd_pages *pages)
{
	return pages->table.nents;
}

static u32 kd_pages_fill_sges(struct kd_pages *pages, u32 lkey, struct ib_sge *sge)
{
	struct scatterlist *sg;
	u32 i;

	for_each_sgtable_dma_sg(&pages->table, sg, i)
		sge[i] = (struct ib_sge){
			.addr	= sg_dma_address(sg),
			.length	= sg_dma_len(sg),
			.lkey	= lkey,
		};
	return pages->table.nents;
}

/* --- posting ---------------------------------------------------------------------------- */

/* How many SGEs of @sge the memory of @wr takes. */
static u32 kd_raw_sges(struct kd_qp *qp, const struct kd_raw_wr *wr, struct ib_sge *sge)
{
	u32 lkey = qp->qp->pd->local_dma_lkey;

	if (wr->frwr) {
		struct ib_mr *mr = wr->frwr->mr;

		*sge = (struct ib_sge){ .addr = mr->iova, .length = wr->len, .lkey = mr->lkey };
		return 1;
	}
	if (wr->fixed)
		return kd_fixed_sges(wr->fixed, wr->offset, wr->len, lkey, sge);
	if (wr->pages)
		return kd_pages_fill_sges(wr->pages, lkey, sge);
	if (!wr->dma)
		return 0;
	*sge = (struct ib_sge){ .addr = wr->dma->addr, .length = wr->len, .lkey = lkey };
	ib_dma_sync_single_for_device(kd_qp_device(qp), wr->dma->addr, wr->len,
				      DMA_BIDIRECTIONAL);
	return 1;
}

static enum ib_wr_opcode kd_raw_opcode(enum kd_raw_op op)
{
	switch (op) {
	case KD_RAW_SEND:
		return IB_WR_SEND;
	case KD_RAW_SEND_IMM:
		return IB_WR_SEND_WITH_IMM;
	case KD_RAW_SEND_INV:
		return IB_WR_SEND_WITH_INV;
	case KD_RAW_WRITE:
		return IB_WR_RDMA_WRITE;
	case KD_RAW_WRITE_IMM:
		return IB_WR_RDMA_WRITE_WITH_IMM;
	case KD_RAW_READ:
		return IB_WR_RDMA_READ;
	case KD_RAW_CMP_SWAP:
		return IB_WR_ATOMIC_CMP_AND_SWP;
	case KD_RAW_FETCH_ADD:
		return IB_WR_ATOMIC_FETCH_AND_ADD;
	case KD_RAW_LOCAL_INV:
		break;
	}
	return IB_WR_LOCAL_INV;
}

static void kd_raw_make(union kd_chain_wr *out, const struct kd_raw_wr *wr, struct ib_sge *sge,
			u32 nr)
{
	struct ib_send_wr common = {
		.wr_cqe		= to_cqe(wr->cqe),
		.sg_list	= sge,
		.num_sge	= nr,
		.opcode		= kd_raw_opcode(wr->op),
		.send_flags	= IB_SEND_SIGNALED | (wr->fence ? IB_SEND_FENCE : 0) |
				  (wr->solicited ? IB_SEND_SOLICITED : 0),
	};

	if (wr->op == KD_RAW_CMP_SWAP || wr->op == KD_RAW_FETCH_ADD) {
		bool swap = wr->op == KD_RAW_CMP_SWAP;

		out->atomic = (struct ib_atomic_wr){
			.wr		= common,
			.remote_addr	= wr->addr,
			.rkey		= wr->rkey,
			.compare_add	= swap ? wr->compare : wr->operand,
			.swap		= swap ? wr->operand : 0,
		};
		return;
	}
	if (wr->sink) {
		common.opcode = IB_WR_RDMA_READ_WITH_INV;
		common.ex.invalidate_rkey = sge->lkey;
	} else if (wr->op == KD_RAW_SEND_INV || wr->op == KD_RAW_LOCAL_INV) {
		common.ex.invalidate_rkey = wr->rkey;
	} else {
		common.ex.imm_data = cpu_to_be32(wr->imm);
	}
	out->rdma = (struct ib_rdma_wr){
		.wr		= common,
		.remote_addr	= wr->addr,
		.rkey		= wr->rkey,
	};
}

/* The device writes into the memory of a READ; over iWARP the peer does. */
static int kd_raw_access(const struct kd_raw_wr *wr)
{
	return (wr->op == KD_RAW_READ ? IB_ACCESS_LOCAL_WRITE : 0) |
	       (wr->sink ? IB_ACCESS_REMOTE_WRITE : 0);
}

int kd_post_raw(struct kd_qp *qp, struct kd_chain *chain, const struct kd_raw_wr *wrs, uint32_t nr)
{
	struct ib_send_wr *first = NULL, **link = &first;
	struct ib_sge *sge = chain->sges;
	bool any = false;
	u32 i, used;
	int ret;

	if (WARN_ON_ONCE(!nr || nr > KD_CHAIN_MAX))
		return KD_EINVAL;
	for (i = 0; i < nr; i++, sge += used) {
		used = kd_raw_sges(qp, &wrs[i], sge);
		kd_raw_make(&chain->wrs[i], &wrs[i], sge, used);
		if (wrs[i].frwr) {
			link = kd_frwr_chain(wrs[i].frwr, wrs[i].reg_cqe, kd_raw_access(&wrs[i]),
					     link);
			any = true;
		}
		*link = &chain->wrs[i].rdma.wr;
		link = &chain->wrs[i].rdma.wr.next;
	}
	ret = kd_post_wrs(qp, first);
	for (i = 0; any && !ret && i < nr; i++)
		if (wrs[i].frwr)
			kd_frwr_posted(wrs[i].frwr, !wrs[i].sink);
	return ret;
}

int kd_post_raw_recv(struct kd_qp *qp, struct kd_chain *chain, const struct kd_raw_wr *wr)
{
	struct ib_recv_wr recv = {
		.wr_cqe		= to_cqe(wr->cqe),
		.sg_list	= chain->sges,
	};
	int ret;

	recv.num_sge = kd_raw_sges(qp, wr, chain->sges);
	local_bh_disable();
	ret = ib_post_recv(qp->qp, &recv, NULL);
	local_bh_enable();
	return kd_from_errno(ret);
}

/* --- keys -------------------------------------------------------------------------------- */

int kd_post_share(struct kd_qp *qp, struct kd_cqe *cqe, struct kd_mr *mr, uint32_t access)
{
	struct ib_reg_wr wr = {
		.wr = {
			.wr_cqe		= to_cqe(cqe),
			.opcode		= IB_WR_REG_MR,
			.send_flags	= IB_SEND_SIGNALED,
		},
		.mr	= to_mr(mr),
		.key	= to_mr(mr)->rkey,
	};

	if (access & KDIRECT_ACCESS_READ)
		wr.access |= IB_ACCESS_REMOTE_READ;
	if (access & KDIRECT_ACCESS_WRITE)
		wr.access |= IB_ACCESS_REMOTE_WRITE | IB_ACCESS_LOCAL_WRITE;
	if (access & KDIRECT_ACCESS_ATOMIC)
		wr.access |= IB_ACCESS_REMOTE_ATOMIC | IB_ACCESS_LOCAL_WRITE;
	return kd_post_wrs(qp, &wr.wr);
}
