// SPDX-License-Identifier: GPL-2.0-only
/*
 * Posting work requests, and their completions.
 *
 * WRs are posted with bottom halves disabled. rxe of 6.1 does its work in a
 * tasklet: scheduled from process context it would wait for ksoftirqd, which costs
 * a wake-up and a switch for each WR; this way it runs when they are enabled again.
 * Where they are disabled already, this only counts.
 */

#include <linux/bottom_half.h>
#include <rdma/ib_verbs.h>

#include "shim.h"

static_assert(sizeof(struct ib_cqe) <= sizeof(struct kd_cqe));

/* --- completions ------------------------------------------------------------------ */

static int kd_wc_error(enum ib_wc_status status)
{
	switch (status) {
	case IB_WC_SUCCESS:
		return 0;
	case IB_WC_WR_FLUSH_ERR:
		return KD_ECONNRESET;
	case IB_WC_RETRY_EXC_ERR:
	case IB_WC_RESP_TIMEOUT_ERR:
		return KD_ETIMEDOUT;
	case IB_WC_LOC_LEN_ERR:
		return KD_EMSGSIZE;
	case IB_WC_REM_INV_REQ_ERR:
	case IB_WC_REM_ACCESS_ERR:
	case IB_WC_REM_OP_ERR:
	case IB_WC_RNR_RETRY_EXC_ERR:
		return KD_EPROTO;
	default:
		return KD_EIO;
	}
}

static struct kd_wc kd_wc_from(const struct ib_wc *wc)
{
	struct kd_wc out = {
		.err		= kd_wc_error(wc->status),
		.flushed	= wc->status == IB_WC_WR_FLUSH_ERR,
		.status		= wc->status,
		.status_name	= "success",
	};

	if (out.err) {
		out.status_name = ib_wc_status_msg(wc->status);
		return out;
	}
	out.byte_len = wc->byte_len;
	out.write = wc->opcode == IB_WC_RECV_RDMA_WITH_IMM;
	if (wc->wc_flags & IB_WC_WITH_IMM) {
		out.with_imm = true;
		out.imm = be32_to_cpu(wc->ex.imm_data);
	}
	if (wc->wc_flags & IB_WC_WITH_INVALIDATE) {
		out.invalidated = true;
		out.rkey = wc->ex.invalidate_rkey;
	}
	return out;
}

static struct kd_cqe *from_cqe(struct ib_cqe *cqe)
{
	return (struct kd_cqe *)cqe;
}

static void kd_done_recv(struct ib_cq *cq, struct ib_wc *wc)
{
	struct kd_wc out = kd_wc_from(wc);

	/* a peer's RDMA WRITE with immediate uses a receive, too, and leaves it empty */
	if (!out.err && wc->opcode != IB_WC_RECV) {
		out.err = KD_EPROTO;
		out.status_name = "not a SEND of the peer";
	}
	kd_recv_done(from_cqe(wc->wr_cqe), &out);
}

static void kd_done_send(struct ib_cq *cq, struct ib_wc *wc)
{
	struct kd_wc out = kd_wc_from(wc);

	kd_send_done(from_cqe(wc->wr_cqe), &out);
}

static void kd_done_offer(struct ib_cq *cq, struct ib_wc *wc)
{
	struct kd_wc out = kd_wc_from(wc);

	kd_offer_done(from_cqe(wc->wr_cqe), &out);
}

static void kd_done_inv(struct ib_cq *cq, struct ib_wc *wc)
{
	struct kd_wc out = kd_wc_from(wc);

	kd_inv_done(from_cqe(wc->wr_cqe), &out);
}

static void kd_done_read(struct ib_cq *cq, struct ib_wc *wc)
{
	struct kd_wc out = kd_wc_from(wc);

	kd_read_done(from_cqe(wc->wr_cqe), &out);
}

static void kd_done_io(struct ib_cq *cq, struct ib_wc *wc)
{
	struct kd_wc out = kd_wc_from(wc);

	kd_io_done(from_cqe(wc->wr_cqe), &out);
}

static void kd_done_key(struct ib_cq *cq, struct ib_wc *wc)
{
	struct kd_wc out = kd_wc_from(wc);

	kd_key_done(from_cqe(wc->wr_cqe), &out);
}

static void kd_done_raw_send(struct ib_cq *cq, struct ib_wc *wc)
{
	struct kd_wc out = kd_wc_from(wc);

	kd_raw_sent(from_cqe(wc->wr_cqe), &out);
}

static void kd_done_raw_recv(struct ib_cq *cq, struct ib_wc *wc)
{
	struct kd_wc out = kd_wc_from(wc);

	kd_raw_received(from_cqe(wc->wr_cqe), &out);
}

static void kd_done_raw_control(struct ib_cq *cq, struct ib_wc *wc)
{
	struct kd_wc out = kd_wc_from(wc);

	kd_raw_control(from_cqe(wc->wr_cqe), &out);
}

static void kd_done_raw_reg(struct ib_cq *cq, struct ib_wc *wc)
{
	struct kd_wc out = kd_wc_from(wc);

	kd_raw_registered(from_cqe(wc->wr_cqe), &out);
}

void kd_cqe_init(struct kd_cqe *cqe, enum kd_cqe_kind kind)
{
	struct ib_cqe *out = to_cqe(cqe);

	switch (kind) {
	case KD_CQE_RECV:
		out->done = kd_done_recv;
		break;
	case KD_CQE_SEND:
		out->done = kd_done_send;
		break;
	case KD_CQE_OFFER:
		out->done = kd_done_offer;
		break;
	case KD_CQE_INV:
		out->done = kd_done_inv;
		break;
	case KD_CQE_READ:
		out->done = kd_done_read;
		break;
	case KD_CQE_IO:
		out->done = kd_done_io;
		break;
	case KD_CQE_KEY:
		out->done = kd_done_key;
		break;
	case KD_CQE_RAW_SEND:
		out->done = kd_done_raw_send;
		break;
	case KD_CQE_RAW_RECV:
		out->done = kd_done_raw_recv;
		break;
	case KD_CQE_RAW_CONTROL:
		out->done = kd_done_raw_control;
		break;
	case KD_CQE_RAW_REG:
		out->done = kd_done_raw_reg;
		break;
	}
}

/* --- posting ----------------------------------------------------------------------- */

/*
 * The send queue has room for everything, so that a chain is posted as a whole or not at all.
 * Should a provider post a part, the device may use the memory: the chain counts as
 * posted, will not complete, and the QP is finished.
 */
int kd_post_wrs(struct kd_qp *qp, const struct ib_send_wr *first)
{
	const struct ib_send_wr *bad = first;
	int ret;

	local_bh_disable();
	ret = ib_post_send(qp->qp, first, &bad);
	local_bh_enable();
	if (likely(!ret))
		return 0;
	if (bad == first)
		return kd_from_errno(ret);
	kd_queue_fatal(qp->cq->queue, "only a part of the work requests was posted");
	return 0;
}

static struct ib_sge kd_sge(struct kd_qp *qp, const struct kd_dma *dma, u32 len)
{
	return (struct ib_sge){
		.addr	= dma->addr,
		.length	= len,
		.lkey	= qp->qp->pd->local_dma_lkey,
	};
}

int kd_post_recv(struct kd_qp *qp, struct kd_cqe *cqe, struct kd_dma *dma, uint32_t len)
{
	struct ib_sge sge = kd_sge(qp, dma, len);
	struct ib_recv_wr wr = {
		.wr_cqe		= to_cqe(cqe),
		.sg_list	= &sge,
		.num_sge	= 1,
	};
	int ret;

	ib_dma_sync_single_for_device(kd_qp_device(qp), dma->addr, len, DMA_FROM_DEVICE);
	local_bh_disable();
	ret = ib_post_recv(qp->qp, &wr, NULL);
	local_bh_enable();
	return kd_from_errno(ret);
}

static struct ib_send_wr kd_send_wr(struct kd_cqe *cqe, struct ib_sge *sge, bool signalled)
{
	return (struct ib_send_wr){
		.wr_cqe = to_cqe(cqe),
		.sg_list	= sge,
		.num_sge	= 1,
		.opcode		= IB_WR_SEND,
		.send_flags	= signalled ? IB_SEND_SIGNALED : 0,
	};
}

int kd_post_send(struct kd_qp *qp, struct kd_cqe *cqe, struct kd_dma *dma, uint32_t len,
		 bool signalled)
{
	struct ib_sge sge = kd_sge(qp, dma, len);
	struct ib_send_wr wr = kd_send_wr(cqe, &sge, signalled);

	ib_dma_sync_single_for_device(kd_qp_device(qp), dma->addr, len, DMA_TO_DEVICE);
	return kd_post_wrs(qp, &wr);
}

int kd_post_offer(struct kd_qp *qp, struct kd_cqe *reg, struct kd_mr *mr, struct kd_cqe *cqe,
		  struct kd_dma *dma, uint32_t len)
{
	struct ib_sge sge = kd_sge(qp, dma, len);
	struct ib_send_wr send = kd_send_wr(cqe, &sge, true);
	struct ib_mr *ib_mr = to_mr(mr);
	struct ib_reg_wr wr = {
		.wr = {
			.next	= &send,
			.wr_cqe = to_cqe(reg),
			.opcode	= IB_WR_REG_MR,
		},
		.mr	= ib_mr,
		.key	= ib_mr->rkey,
		.access	= IB_ACCESS_REMOTE_READ,
	};

	ib_dma_sync_single_for_device(kd_qp_device(qp), dma->addr, len, DMA_TO_DEVICE);
	return kd_post_wrs(qp, &wr.wr);
}

int kd_post_invalidate(struct kd_qp *qp, struct kd_cqe *cqe, struct kd_mr *mr)
{
	struct ib_send_wr wr = {
		.wr_cqe = to_cqe(cqe),
		.opcode		= IB_WR_LOCAL_INV,
		.send_flags	= IB_SEND_SIGNALED,
		.ex.invalidate_rkey = to_mr(mr)->rkey,
	};

	return kd_post_wrs(qp, &wr);
}
