// SPDX-License-Identifier: GPL-2.0-only
/*
 * iWARP: what follows WRITEs, and tells that they have been placed. A READ of no bytes would
 * do, and need no memory, but siw answers it with whatever it sent before (testing.md).
 */

#include <linux/scatterlist.h>
#include <linux/slab.h>
#include <rdma/ib_verbs.h>

#include "shim.h"

static int kd_sink_map(struct kd_sink *sink)
{
	struct scatterlist sg;

	sg_init_one(&sg, sink->dma.mem, 1);
	sg_dma_address(&sg) = sink->dma.addr;
	sg_dma_len(&sg) = 1;
	return kd_mr_describe(sink->mr, &sg, 1, 1);
}

int kd_sink_create(struct kd_qp *qp)
{
	struct kd_pd *pd = (struct kd_pd *)qp->qp->pd;
	struct kd_sink *sink = kzalloc(sizeof(*sink), GFP_KERNEL);
	int err = KD_ENOMEM;

	if (!sink)
		return err;
	sink->mr = ib_alloc_mr(qp->qp->pd, IB_MR_TYPE_MEM_REG, 1);
	if (IS_ERR(sink->mr)) {
		err = kd_from_errno(PTR_ERR(sink->mr));
		goto err_free;
	}
	err = kd_dma_create(pd, 1, KD_DMA_RECV, &sink->dma);
	if (err)
		goto err_mr;
	err = kd_sink_map(sink);
	if (err)
		goto err_dma;
	sink->reg.wr.opcode = IB_WR_REG_MR;
	sink->reg.mr = sink->mr;
	sink->reg.key = sink->mr->rkey;
	sink->reg.access = IB_ACCESS_LOCAL_WRITE | IB_ACCESS_REMOTE_WRITE;
	qp->sink = sink;
	return 0;

err_dma:
	kd_dma_unmap(pd, &sink->dma);
	kd_dma_free(&sink->dma);
err_mr:
	ib_dereg_mr(sink->mr);
err_free:
	kfree(sink);
	return err;
}

/* The QP does nothing any more. */
void kd_sink_destroy(struct kd_qp *qp)
{
	struct kd_sink *sink = qp->sink;

	if (!sink)
		return;
	kd_dma_unmap((struct kd_pd *)sink->mr->pd, &sink->dma);
	kd_dma_free(&sink->dma);
	ib_dereg_mr(sink->mr);
	kfree(sink);
}

struct ib_send_wr *kd_probe_make(struct kd_probe *probe, struct kd_qp *qp, struct kd_cqe *cqe,
				 u64 addr, u32 rkey)
{
	struct kd_sink *sink = qp->sink;

	probe->sge = (struct ib_sge){
		.addr	= sink->mr->iova,
		.length	= 1,
		.lkey	= sink->mr->lkey,
	};
	probe->read = (struct ib_rdma_wr){
		.wr = {
			.wr_cqe		= to_cqe(cqe),
			.sg_list	= &probe->sge,
			.num_sge	= 1,
			.opcode		= IB_WR_RDMA_READ,
			.send_flags	= IB_SEND_SIGNALED,
		},
		.remote_addr	= addr,
		.rkey		= rkey,
	};
	if (sink->registered)
		return &probe->read.wr;
	sink->reg.wr.next = &probe->read.wr;
	return &sink->reg.wr;
}

int kd_post_probed(struct kd_qp *qp, const struct ib_send_wr *first)
{
	int err = kd_post_wrs(qp, first);

	if (!err)
		qp->sink->registered = true;
	return err;
}
