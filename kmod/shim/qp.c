// SPDX-License-Identifier: GPL-2.0-only
/* Queue pairs, and how they are drained. */

#include <linux/jiffies.h>
#include <linux/minmax.h>
#include <linux/slab.h>
#include <rdma/ib_verbs.h>
#include <rdma/rdma_cm.h>
#include <rdma/rw.h>

#include "shim.h"

/* While a drain waits, a poll CQ is looked at so often whatever its events do. */
#define KD_DRAIN_SLICE	max(HZ / 50, 1)

static void kd_qp_event(struct ib_event *event, void *context)
{
	struct kd_qp *qp = context;

	switch (event->event) {
	case IB_EVENT_COMM_EST:
		/* the first message overtook the peer's "ready to use" */
		rdma_notify(qp->cm->id, event->event);
		break;
	case IB_EVENT_SQ_DRAINED:
	case IB_EVENT_PATH_MIG:
	case IB_EVENT_QP_LAST_WQE_REACHED:
		break;
	default:
		kd_cq_fatal(qp->cq, ib_event_msg(event->event));
		break;
	}
}

/*
 * A READ without MR takes as many SGEs as the device allows, a SEND takes one. Over iWARP a
 * READ has an MR, and only WRITEs take more.
 */
static u32 kd_qp_send_sge(struct ib_device *dev, u32 port, const struct kd_qp_params *params)
{
	if (params->send_sges)
		return params->send_sges;
	if (!params->max_reads)
		return 1;
	if (rdma_protocol_iwarp(dev, port))
		return dev->attrs.max_send_sge;
	return min(dev->attrs.max_send_sge, dev->attrs.max_sge_rd);
}

/* rdma_rw contexts for @params: a READ of many pages counts as more than one */
static u32 kd_qp_rw_ctxs(struct ib_device *dev, u32 port, const struct kd_qp_params *params)
{
	u32 sge = kd_qp_send_sge(dev, port, params);
	u32 factor;

	if (!params->max_reads)
		return 0;
	factor = rdma_rw_mr_factor(dev, port, params->max_read_pages);
	/* it reckons with max_sge_rd, which a send WQE may not be able to hold */
	if (sge < dev->attrs.max_sge_rd)
		factor = max_t(u32, factor, DIV_ROUND_UP(params->max_read_pages, sge));
	return params->max_reads * factor;
}

static bool kd_qp_probes(struct ib_device *dev, u32 port, const struct kd_qp_params *params)
{
	return params->max_writes && rdma_protocol_iwarp(dev, port);
}

/*
 * What WRITEs over iWARP take besides: probes behind them, whose sink is registered once; and
 * of many pages they are many WRs, where rdma_rw reckons with an MR.
 */
static u32 kd_qp_write_wrs(struct ib_device *dev, u32 port, const struct kd_qp_params *params)
{
	u32 sge = kd_qp_send_sge(dev, port, params);

	if (!kd_qp_probes(dev, port, params))
		return 0;
	return 1 + params->max_writes +
	       params->max_rw * (DIV_ROUND_UP(params->max_read_pages, sge) + 1);
}

static u32 kd_qp_total_send_wrs(struct ib_device *dev, u32 port,
				const struct kd_qp_params *params)
{
	u32 ctxs = kd_qp_rw_ctxs(dev, port, params);

	return params->max_send + 1 + kd_qp_write_wrs(dev, port, params) +
	       rdma_rw_max_send_wr(dev, port, ctxs, 0);
}

uint32_t kd_qp_send_wrs(struct kd_device *device, const struct kd_qp_params *params)
{
	struct ib_device *dev = kd_device_attr(device)->ib->ib;

	return kd_qp_total_send_wrs(dev, rdma_start_port(dev), params);
}

int kd_qp_create(struct kd_cm *cm, const struct kd_qp_params *params, struct kd_qp **out)
{
	struct ib_device *dev = cm->id->device;
	u32 port = cm->id->port_num;
	struct ib_qp_init_attr attr = {
		.event_handler	= kd_qp_event,
		.send_cq	= params->cq->cq,
		.recv_cq	= params->cq->cq,
		.sq_sig_type	= IB_SIGNAL_REQ_WR,
		.qp_type	= IB_QPT_RC,
		.port_num	= port,
		.cap = {
			/* one of each for the drain; ib_create_qp() adds what READs need */
			.max_send_wr	= params->max_send + 1 +
					  kd_qp_write_wrs(dev, port, params),
			.max_recv_wr	= params->max_recv + 1,
			.max_send_sge	= kd_qp_send_sge(dev, port, params),
			.max_recv_sge	= params->recv_sges ?: 1,
			.max_rdma_ctxs	= kd_qp_rw_ctxs(dev, port, params),
		},
	};
	struct kd_qp *qp;
	int ret;

	/* where it does not fit, ib_create_qp() would silently make the QP smaller */
	if (kd_qp_total_send_wrs(dev, port, params) > dev->attrs.max_qp_wr ||
	    attr.cap.max_recv_wr > dev->attrs.max_qp_wr)
		return KD_EINVAL;

	qp = kzalloc(sizeof(*qp), GFP_KERNEL);
	if (!qp)
		return KD_ENOMEM;
	qp->cm = cm;
	qp->cq = params->cq;
	attr.qp_context = qp;

	ret = rdma_create_qp(cm->id, to_pd(params->pd), &attr);
	if (ret) {
		kfree(qp);
		return kd_from_errno(ret);
	}
	qp->qp = cm->id->qp;
	if (kd_qp_probes(dev, port, params)) {
		ret = kd_sink_create(qp);
		if (ret) {
			kd_qp_destroy(qp);
			return ret;
		}
	}
	*out = qp;
	return 0;
}

uint32_t kd_qp_number(const struct kd_qp *qp)
{
	return qp->qp->qp_num;
}

void kd_qp_destroy(struct kd_qp *qp)
{
	rdma_destroy_qp(qp->cm->id);
	kd_sink_destroy(qp);
	kfree(qp);
}

/* --- drain ------------------------------------------------------------------------- */

static void kd_marker_done(struct ib_cq *cq, struct ib_wc *wc)
{
	struct kd_marker *marker = container_of(wc->wr_cqe, struct kd_marker, cqe);

	complete(&marker->done);
}

static int kd_qp_set_state(struct kd_qp *qp, enum ib_qp_state state)
{
	struct ib_qp_attr attr = { .qp_state = state };

	return ib_modify_qp(qp->qp, &attr, IB_QP_STATE);
}

/* Behind everything that was posted, since queues complete in order. */
static int kd_qp_post_markers(struct kd_qp *qp)
{
	struct kd_marker *send = &qp->cq->send_marker;
	struct kd_marker *recv = &qp->cq->recv_marker;
	struct ib_recv_wr recv_wr = { .wr_cqe = &recv->cqe };
	struct ib_rdma_wr send_wr = {
		.wr = {
			.wr_cqe = &send->cqe,
			.opcode = IB_WR_RDMA_WRITE,
			.send_flags = IB_SEND_SIGNALED,
		},
	};
	int ret;

	send->cqe.done = kd_marker_done;
	recv->cqe.done = kd_marker_done;
	reinit_completion(&send->done);
	reinit_completion(&recv->done);

	local_bh_disable();
	ret = ib_post_send(qp->qp, &send_wr.wr, NULL);
	if (!ret)
		ret = ib_post_recv(qp->qp, &recv_wr, NULL);
	local_bh_enable();
	return ret;
}

static bool kd_qp_wait_marker(struct kd_qp *qp, struct kd_marker *marker, unsigned long deadline)
{
	while (time_before(jiffies, deadline)) {
		unsigned long slice = min_t(unsigned long, deadline - jiffies, KD_DRAIN_SLICE);

		if (qp->cq->poll)
			kd_cq_kick(qp->cq);
		if (wait_for_completion_timeout(&marker->done, slice))
			return true;
	}
	return try_wait_for_completion(&marker->done);
}

/*
 * Some (iWARP) devices cannot post in the error state and bring a drain of their own:
 * what that takes is not ours to bound.
 */
static bool kd_qp_drains_itself(struct kd_qp *qp)
{
	const struct ib_device_ops *ops = &kd_qp_device(qp)->ops;

	return ops->drain_sq && ops->drain_rq &&
	       rdma_protocol_iwarp(kd_qp_device(qp), qp->cm->id->port_num);
}

void kd_qp_stop(struct kd_qp *qp)
{
	might_sleep();
	if (qp->cq->poll && kd_cq_arm(qp->cq))
		kd_cq_kick(qp->cq);
	qp->marked = !kd_qp_set_state(qp, IB_QPS_ERR) && !kd_qp_drains_itself(qp) &&
		     !kd_qp_post_markers(qp);
}

/* ib_drain_qp() has no timeout, and cannot wait for a CQ that others poll. */
int kd_qp_drain(struct kd_qp *qp, uint64_t timeout_ns)
{
	unsigned long deadline = jiffies + nsecs_to_jiffies(timeout_ns) + 1;

	might_sleep();
	if (kd_qp_drains_itself(qp)) {
		ib_drain_qp(qp->qp);
		return 0;
	}
	if (qp->marked && kd_qp_wait_marker(qp, &qp->cq->send_marker, deadline) &&
	    kd_qp_wait_marker(qp, &qp->cq->recv_marker, deadline))
		return 0;

	/*
	 * Resetting takes the queues away from the device. If not even that works,
	 * destroying the QP comes next and does.
	 */
	if (kd_qp_set_state(qp, IB_QPS_RESET))
		kd_log(KD_LOG_WARN, "QP %u can be neither drained nor reset", qp->qp->qp_num);
	return KD_ETIMEDOUT;
}
