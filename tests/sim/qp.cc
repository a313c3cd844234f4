// SPDX-License-Identifier: GPL-2.0-only
#include <cstring>

#include "fabric.h"

namespace sim
{

namespace
{

constexpr uint64_t stall_interval = 5 * ms;
constexpr uint64_t tcp_window = 200 * ms; /* the least time until TCP sends again */

CqEntry ended(const Qp *qp, const SendWr &wr, uint32_t status)
{
	return {.qp = qp->id,
		.send = true,
		.kind = wr.cqe_kind,
		.cqe = wr.cqe,
		.wr = wr.id,
		.status = status};
}

/* The device is done with the WR's buffer. */
void check_payload(World &w, const SendWr &wr)
{
	auto dma = w.dmas.find(wr.dma);

	if (!wr.dma || dma == w.dmas.end())
		return;
	if (std::memcmp(dma->second.mem, wr.payload.data(), wr.payload.size()) != 0)
		fail("a buffer was changed between posting and completion of its SEND");
	/*
	 * iWARP sends without a copy what asks for no completion, and completes it when
	 * TCP has taken it: a segment that was lost is read from the buffer once more.
	 */
	if (dma->second.pd->dev->iwarp() && !wr.signalled)
		dma->second.sent_until = w.now() + tcp_window;
}

void end_wr(World &w, Qp *qp, const SendWr &wr, uint32_t status)
{
	check_payload(w, wr);
	if (wr.signalled || status != WC_SUCCESS)
		cq_push(w, qp->cq, ended(qp, wr, status));
}

void flush(World &w, Qp *qp)
{
	if (qp->dev->stuck) {
		qp->flush_held = true;
		return;
	}
	qp->flush_held = false;
	bool twice = qp->core && qp->dev->iwarp() && w.sched.rng.chance(50);
	while (!qp->sq.empty()) {
		SendWr wr = std::move(qp->sq.front());

		qp->sq.pop_front();
		end_wr(w, qp, wr, wr.done ? wr.status : uint32_t{WC_WR_FLUSH_ERR});
		/* as siw does, with the one whose turn has come */
		if (!twice || wr.done || wr.executed || wr.kind != WrKind::Read)
			continue;
		twice = false;
		cq_push(w, qp->cq, ended(qp, wr, WC_WR_FLUSH_ERR));
	}
	while (!qp->rq.empty()) {
		RecvWr wr = qp->rq.front();

		qp->rq.pop_front();
		cq_push(w, qp->cq,
			{.qp = qp->id,
			 .kind = wr.kind,
			 .cqe = wr.cqe,
			 .wr = wr.id,
			 .status = WC_WR_FLUSH_ERR});
	}
	for (; qp->markers_to_push; qp->markers_to_push--)
		cq_push(w, qp->cq, {.qp = qp->id, .marker = true});
}

SendWr *next_to_execute(Qp *qp)
{
	for (SendWr &wr : qp->sq)
		if (!wr.executed)
			return &wr;
	return nullptr;
}

void run_engine(World &w, uint64_t id)
{
	Qp *qp = w.qps.find(id);

	if (!qp)
		return;
	qp->engine = false;
	if (qp->state != Qp::State::Rts || qp->dev->stuck)
		return;
	SendWr *wr = next_to_execute(qp);
	if (!wr)
		return;
	switch (execute(w, qp, *wr)) {
	case Outcome::Sent: qp_kick(w, qp); break;
	case Outcome::Stalled:
		qp->engine = true;
		w.sched.after(stall_interval, [&w, id] { run_engine(w, id); });
		break;
	case Outcome::Failed: break;
	}
}

void pop_done(World &w, Qp *qp)
{
	while (!qp->sq.empty() && qp->sq.front().done) {
		SendWr wr = std::move(qp->sq.front());

		qp->sq.pop_front();
		end_wr(w, qp, wr, wr.status);
	}
}

/* The consumer has seen the end of every WR up to @last. */
void retire(World &w, Qp *qp, std::deque<Outstanding> &list, uint64_t last)
{
	while (!list.empty() && list.front().wr <= last) {
		Outstanding wr = list.front();

		list.pop_front();
		if (wr.cqe)
			w.posted.erase(wr.cqe);
		if (auto dma = w.dmas.find(wr.dma); dma != w.dmas.end())
			dma->second.in_use--;
		if (wr.fixed)
			wr.fixed->in_use--;
		if (wr.pages)
			wr.pages->in_use--;
		if (wr.mr)
			wr.mr->in_use--;
		for (auto &[key, read] : w.reads)
			if (wr.context && read.qp == qp && read.wr == wr.wr)
				read.done = true;
	}
}

} // namespace

const char *wc_status_name(uint32_t status)
{
	switch (status) {
	case WC_SUCCESS: return "success";
	case WC_LOC_LEN_ERR: return "local length error";
	case WC_LOC_QP_OP_ERR: return "local QP operation error";
	case WC_LOC_PROT_ERR: return "local protection error";
	case WC_WR_FLUSH_ERR: return "WR flushed";
	case WC_REM_INV_REQ_ERR: return "remote invalid request error";
	case WC_REM_ACCESS_ERR: return "remote access error";
	case WC_RETRY_EXC_ERR: return "transport retry counter exceeded";
	case WC_RNR_RETRY_EXC_ERR: return "RNR retry counter exceeded";
	default: return "unknown";
	}
}

void qp_connect(World &w, Qp *qp, uint64_t remote, bool passive)
{
	if (qp->state != Qp::State::Init)
		return;
	qp->state = Qp::State::Rts;
	qp->remote = remote;
	qp->passive = passive;
	qp_kick(w, qp);
}

void qp_error(World &w, Qp *qp)
{
	if (qp->state == Qp::State::Error || qp->state == Qp::State::Reset)
		return;
	qp->state = Qp::State::Error;
	qp->stream.clear();
	flush(w, qp);
	Qp *peer = w.qps.find(qp->remote);
	if (!qp->dev->iwarp() || !peer || !w.connected(qp->dev, peer->dev))
		return;
	/* the stream ends for both */
	uint64_t id = peer->id;
	w.sched.after(w.delay(), [&w, id] {
		Qp *other = w.qps.find(id);

		if (!other || other->state == Qp::State::Error || other->state == Qp::State::Reset)
			return;
		qp_error(w, other);
		if (other->cm && other->cm->state == Cm::State::Established) {
			other->cm->state = Cm::State::Closed;
			cm_push(w, other->cm, {.type = KD_CM_DISCONNECTED});
		}
	});
}

void qp_release_flush(World &w, Qp *qp)
{
	if (qp->flush_held) {
		flush(w, qp);
		return;
	}
	pop_done(w, qp);
	qp_kick(w, qp);
}

void qp_reset(World &w, Qp *qp)
{
	qp->state = Qp::State::Reset;
	qp->stream.clear();
	qp->sq.clear();
	qp->rq.clear();
	qp->flush_held = false;
	cq_purge(qp->cq, qp->id);
	qp->markers = 0;
	qp->markers_to_push = 0;
	for (const auto *list : {&qp->out_send, &qp->out_recv})
		for (const Outstanding &wr : *list)
			if (wr.cqe)
				w.lingering[wr.cqe] = qp->cq->id;
	retire(w, qp, qp->out_send, UINT64_MAX);
	retire(w, qp, qp->out_recv, UINT64_MAX);
}

void qp_kick(World &w, Qp *qp)
{
	uint64_t id = qp->id;

	if (qp->engine || qp->state != Qp::State::Rts || qp->dev->stuck || !next_to_execute(qp))
		return;
	qp->engine = true;
	w.sched.after(w.delay() * qp->slow, [&w, id] { run_engine(w, id); });
}

uint64_t qp_post_send(World &w, Qp *qp, SendWr wr)
{
	wr.id = qp->next_wr++;
	uint64_t id = wr.id;

	Mr *mr = wr.mr && wr.mr->local ? wr.mr : wr.local;
	if (mr)
		mr->in_use++;
	qp->out_send.push_back({wr.id, wr.cqe, wr.dma, wr.pages && !wr.own_pages, wr.fixed,
				wr.own_pages ? wr.pages : nullptr, mr});
	qp->sq.push_back(std::move(wr));
	if (qp->state == Qp::State::Error)
		flush(w, qp);
	else
		qp_kick(w, qp);
	return id;
}

uint64_t qp_post_recv(World &w, Qp *qp, RecvWr wr)
{
	wr.id = qp->next_wr++;
	if (wr.local)
		wr.local->in_use++;
	qp->out_recv.push_back({wr.id, wr.cqe, wr.dma, false, wr.fixed, wr.pages, wr.local});
	qp->rq.push_back(wr);
	if (qp->state == Qp::State::Error)
		flush(w, qp);
	return wr.id;
}

void qp_wr_done(World &w, Qp *qp, uint64_t id, uint32_t status)
{
	auto found = std::find_if(qp->sq.begin(), qp->sq.end(),
				  [&](const SendWr &wr) { return wr.id == id; });

	if (found == qp->sq.end())
		return;
	found->done = true;
	found->executed = true;
	found->status = status;
	if (status != WC_SUCCESS) {
		/* an error says that what came before it was answered */
		for (auto wr = qp->sq.begin(); wr != found; wr++) {
			if (wr->done)
				continue;
			wr->done = true;
			bool one_sided = wr->kind >= WrKind::Read;

			wr->status = one_sided ? WC_WR_FLUSH_ERR : WC_SUCCESS;
		}
		pop_done(w, qp);
		qp_error(w, qp);
		return;
	}
	pop_done(w, qp);
	qp_kick(w, qp);
}

void qp_reaped(World &w, Qp *qp, const CqEntry &entry)
{
	if (!entry.marker) {
		retire(w, qp, entry.send ? qp->out_send : qp->out_recv, entry.wr);
		return;
	}
	if (--qp->markers)
		return;
	retire(w, qp, qp->out_send, UINT64_MAX);
	retire(w, qp, qp->out_recv, UINT64_MAX);
	for (const auto &fiber : w.sched.all())
		if (!std::strcmp(fiber->blocked_in, "kd_qp_drain"))
			w.sched.wake(fiber.get());
}

} // namespace sim
