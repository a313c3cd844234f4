/* SPDX-License-Identifier: GPL-2.0-only */
/* What the network and the devices do; shared by os.h's functions and raw peers. */
#pragma once
#include "world.h"

namespace sim
{

/* --- cm.cc: the connection manager --- */

/* Private data as it arrives: padded on IB and RoCE, exact on iWARP. */
constexpr uint32_t request_data = 56, reply_data = 196, reject_data = 148;

void cm_push(World &w, Cm *cm, CmEventRecord event);
int cm_resolve_addr(World &w, Cm *cm, const kd_addr *source, const kd_endpoint *peer,
		    uint64_t timeout);
int cm_resolve_route(World &w, Cm *cm);
int cm_connect(World &w, Cm *cm, const kd_cm_params &params);
int cm_accept(World &w, Cm *cm, const kd_cm_params &params);
int cm_reject(World &w, Cm *cm, const void *data, uint32_t len);
void cm_disconnect(World &w, Cm *cm);
/* Tells the peer whatever the state asks for, and forgets the id. */
void cm_destroy(World &w, Cm *cm);

/* --- qp.cc: queue pairs --- */

void qp_connect(World &w, Qp *qp, uint64_t remote, bool passive);
void qp_error(World &w, Qp *qp);
void qp_reset(World &w, Qp *qp);
void qp_kick(World &w, Qp *qp);
void qp_release_flush(World &w, Qp *qp);
uint64_t qp_post_send(World &w, Qp *qp, SendWr wr);
uint64_t qp_post_recv(World &w, Qp *qp, RecvWr wr);
/* Tells the queue that posted WRs before and with @wr have ended. */
void qp_reaped(World &w, Qp *qp, const CqEntry &entry);

/* --- remote.cc: what a QP's WRs do at the other end --- */

enum class Outcome : uint8_t {
	Sent,    /* go on with the next WR */
	Stalled, /* try again later */
	Failed,  /* the QP is in error */
};
Outcome execute(World &w, Qp *qp, SendWr &wr);
/* The QP breaks by itself, and its owner hears of it. */
void qp_breaks(World &w, Qp *qp);
void qp_wr_done(World &w, Qp *qp, uint64_t wr, uint32_t status);

/* --- os_frwr.cc --- */

/* A WR with this MR, or none, may use its own memory. */
bool usable(const Mr *mr, uint32_t lkey);

/* --- cq.cc --- */

void cq_push(World &w, Cq *cq, CqEntry entry);
void cq_event(World &w, Cq *cq);
/* In a fiber: runs the core's handlers of up to @budget completions. */
uint32_t cq_run(World &w, Cq *cq, uint32_t budget);
void cq_purge(Cq *cq, uint64_t qp);

} // namespace sim
