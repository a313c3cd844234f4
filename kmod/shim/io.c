// SPDX-License-Identifier: GPL-2.0-only
/* Reads and writes of a peer's memory. */

#include <linux/fs.h>
#include <linux/sched/signal.h>
#include <rdma/ib_verbs.h>
#include <rdma/rw.h>

#include "shim.h"

static struct rdma_rw_ctx *to_rw_ctx(struct kd_read *rw)
{
	return (struct rdma_rw_ctx *)rw;
}

static enum dma_data_direction kd_rw_dir(bool write)
{
	return write ? DMA_TO_DEVICE : DMA_FROM_DEVICE;
}

int kd_post_io(struct kd_qp *qp, struct kd_cqe *cqe, struct kd_dma *dma, uint32_t len,
	       uint64_t addr, uint32_t rkey, bool write, bool placed)
{
	struct kd_probe probe;
	struct ib_sge sge = {
		.addr	= dma->addr,
		.length	= len,
		.lkey	= qp->qp->pd->local_dma_lkey,
	};
	struct ib_rdma_wr wr = {
		.wr = {
			.wr_cqe		= to_cqe(cqe),
			.sg_list	= &sge,
			.num_sge	= 1,
			.opcode		= write ? IB_WR_RDMA_WRITE : IB_WR_RDMA_READ,
			.send_flags	= IB_SEND_SIGNALED,
		},
		.remote_addr	= addr,
		.rkey		= rkey,
	};

	ib_dma_sync_single_for_device(kd_qp_device(qp), dma->addr, len, DMA_BIDIRECTIONAL);
	if (!placed)
		return kd_post_wrs(qp, &wr.wr);
	wr.wr.wr_cqe = NULL;
	wr.wr.send_flags = 0;
	wr.wr.next = kd_probe_make(&probe, qp, cqe, addr, rkey);
	return kd_post_probed(qp, &wr.wr);
}

int kd_rw_prepare(struct kd_qp *qp, struct kd_read *rw, struct kd_pages *pages, uint64_t addr,
		  uint32_t rkey, bool write)
{
	struct rdma_rw_ctx *ctx = to_rw_ctx(rw);
	int ret;

	memset(ctx, 0, sizeof(*ctx));
	ret = rdma_rw_ctx_init(ctx, qp->qp, qp->cm->id->port_num, pages->table.sgl,
			       pages->table.orig_nents, 0, addr, rkey, kd_rw_dir(write));
	return ret < 0 ? kd_from_errno(ret) : 0;
}

int kd_rw_post(struct kd_qp *qp, struct kd_read *rw, struct kd_cqe *cqe, bool placed)
{
	struct ib_send_wr *first, *last, *behind;
	struct kd_probe probe;

	if (!placed)
		return kd_post_wrs(qp, rdma_rw_ctx_wrs(to_rw_ctx(rw), qp->qp,
						       qp->cm->id->port_num, to_cqe(cqe), NULL));
	behind = kd_probe_make(&probe, qp, cqe, 0, 0);
	first = rdma_rw_ctx_wrs(to_rw_ctx(rw), qp->qp, qp->cm->id->port_num, NULL, behind);
	for (last = first; last->next != behind; last = last->next)
		;
	probe.read.remote_addr = rdma_wr(last)->remote_addr;
	probe.read.rkey = rdma_wr(last)->rkey;
	return kd_post_probed(qp, first);
}

void kd_rw_release(struct kd_qp *qp, struct kd_read *rw, struct kd_pages *pages, bool write)
{
	rdma_rw_ctx_destroy(to_rw_ctx(rw), qp->qp, qp->cm->id->port_num, pages->table.sgl,
			    pages->table.orig_nents, kd_rw_dir(write));
}

void kd_iocb_complete(struct kd_iocb *kd_iocb, int64_t result)
{
	struct kiocb *iocb = (struct kiocb *)kd_iocb;

	if (result > 0)
		iocb->ki_pos += result;
	iocb->ki_complete(iocb, result);
}

bool kd_killed(void)
{
	return fatal_signal_pending(current);
}
