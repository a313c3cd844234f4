// SPDX-License-Identifier: GPL-2.0-only
/* Work requests that share a doorbell. */

#include <linux/slab.h>
#include <rdma/ib_verbs.h>

#include "shim.h"

int kd_chain_create(struct kd_chain **out)
{
	*out = kzalloc(sizeof(**out), GFP_KERNEL_ACCOUNT);
	return *out ? 0 : KD_ENOMEM;
}

void kd_chain_free(struct kd_chain *chain)
{
	might_sleep();
	kfree(chain);
}

static struct ib_rdma_wr kd_chain_rdma(const struct kd_io *io, struct ib_sge *sge, int nr)
{
	return (struct ib_rdma_wr){
		.wr = {
			.wr_cqe		= to_cqe(io->cqe),
			.sg_list	= sge,
			.num_sge	= nr,
			.opcode		= io->write ? IB_WR_RDMA_WRITE : IB_WR_RDMA_READ,
			.send_flags	= io->cqe ? IB_SEND_SIGNALED : 0,
		},
		.remote_addr	= io->addr,
		.rkey		= io->rkey,
	};
}

static struct ib_atomic_wr kd_chain_atomic(const struct kd_io *io, struct ib_sge *sge)
{
	bool swap = io->kind == KD_IO_CMP_SWAP;

	return (struct ib_atomic_wr){
		.wr = {
			.wr_cqe		= to_cqe(io->cqe),
			.sg_list	= sge,
			.num_sge	= 1,
			.opcode		= swap ? IB_WR_ATOMIC_CMP_AND_SWP :
						 IB_WR_ATOMIC_FETCH_AND_ADD,
			.send_flags	= IB_SEND_SIGNALED,
		},
		.remote_addr	= io->addr,
		.rkey		= io->rkey,
		.compare_add	= swap ? io->compare : io->operand,
		.swap		= swap ? io->operand : 0,
	};
}

/* How many SGEs of @sge are used for the WR of @io. */
static u32 kd_chain_sges(struct kd_qp *qp, const struct kd_io *io, struct ib_sge *sge)
{
	u32 lkey = qp->qp->pd->local_dma_lkey;

	if (io->kind == KD_IO_FIXED)
		return kd_fixed_sges(io->fixed, io->offset, io->len, lkey, sge);
	*sge = (struct ib_sge){ .addr = io->dma->addr, .length = io->len, .lkey = lkey };
	ib_dma_sync_single_for_device(kd_qp_device(qp), io->dma->addr, io->len,
				      DMA_BIDIRECTIONAL);
	return 1;
}

int kd_post_chain(struct kd_qp *qp, struct kd_chain *chain, const struct kd_io *ios, uint32_t nr)
{
	struct ib_sge *sge = chain->sges;
	struct ib_send_wr *last = NULL;
	struct kd_probe probe;
	u32 i, used;

	if (WARN_ON_ONCE(!nr || nr > KD_CHAIN_MAX || ios[0].kind == KD_IO_PROBE))
		return KD_EINVAL;
	for (i = 0; i < nr; i++, sge += used) {
		struct ib_send_wr *wr = &chain->wrs[i].rdma.wr;

		if (ios[i].kind == KD_IO_PROBE)
			break;
		used = kd_chain_sges(qp, &ios[i], sge);
		if (ios[i].kind == KD_IO_CMP_SWAP || ios[i].kind == KD_IO_FETCH_ADD)
			chain->wrs[i].atomic = kd_chain_atomic(&ios[i], sge);
		else
			chain->wrs[i].rdma = kd_chain_rdma(&ios[i], sge, used);
		if (last)
			last->next = wr;
		last = wr;
	}
	if (i == nr)
		return kd_post_wrs(qp, &chain->wrs[0].rdma.wr);
	last->next = kd_probe_make(&probe, qp, ios[i].cqe, ios[i].addr, ios[i].rkey);
	return kd_post_probed(qp, &chain->wrs[0].rdma.wr);
}
