// SPDX-License-Identifier: GPL-2.0-only
#include <cstring>

#include "fabric.h"
#include "watch.h"

namespace sim
{

namespace
{

constexpr uint64_t rnr_timeout = 20 * sec;
constexpr uint64_t read_retry = 1 * ms;

Outcome stall(World &w, Qp *qp, SendWr &wr, uint64_t timeout, uint32_t status)
{
	if (!wr.stalled_since)
		wr.stalled_since = w.now();
	if (w.now() - wr.stalled_since < timeout)
		return Outcome::Stalled;
	qp_wr_done(w, qp, wr.id, status);
	return Outcome::Failed;
}

Outcome failed(World &w, Qp *qp, const SendWr &wr, uint32_t status)
{
	qp_wr_done(w, qp, wr.id, status);
	return Outcome::Failed;
}

/* Can @qp reach its peer now? */
Qp *reach(World &w, Qp *qp)
{
	Qp *peer = w.qps.find(qp->remote);

	if (!peer || peer->state != Qp::State::Rts || peer->remote != qp->id || peer->dev->stuck ||
	    !w.connected(qp->dev, peer->dev))
		return nullptr;
	return peer;
}

Mr *find_mr(World &w, Qp *peer, uint32_t rkey)
{
	for (const auto &mr : w.mrs)
		if (mr->rkey == rkey && mr->pd == peer->pd && mr->state == Mr::State::Valid)
			return mr.get();
	return nullptr;
}

bool is_atomic(const SendWr &wr)
{
	return wr.kind == WrKind::CmpSwap || wr.kind == WrKind::FetchAdd;
}

bool fits_atomics(const Qp *peer, const SendWr &wr)
{
	return !is_atomic(wr) || (wr.remote_addr % 8 == 0 && peer->dev->attr.atomics);
}

Mr *accessible(World &w, Qp *peer, const SendWr &wr)
{
	Mr *mr = find_mr(w, peer, wr.rkey);
	uint64_t addr = wr.remote_addr;
	uint32_t len = wr.len;

	bool allowed = mr && (wr.kind == WrKind::Read ? mr->readable
			      : is_atomic(wr)         ? mr->atomics && mr->writable
						      : mr->writable);

	if (!allowed || !fits_atomics(peer, wr) || addr < mr->addr || addr - mr->addr > mr->len ||
	    len > mr->len - (addr - mr->addr))
		return nullptr;
	return mr;
}

/* The memory that a READ or WRITE without pieces uses. */
uint8_t *memory_of(World &w, const SendWr &wr)
{
	return wr.pages   ? wr.pages->data()
	       : wr.fixed ? wr.fixed->user + wr.offset
			  : w.dmas.at(wr.dma).mem;
}

/* The bytes of a READ or WRITE, which the memory at the other end still is for. */
void transfer(World &w, SendWr &wr, Mr *mr)
{
	if (!wr.len)
		return;
	uint8_t *remote = mr->data() + (wr.remote_addr - mr->addr);
	auto dma = w.dmas.find(wr.dma);

	if (is_atomic(wr)) {
		uint64_t old;

		std::memcpy(&old, remote, sizeof(old));
		dma->second.arrived.assign(reinterpret_cast<char *>(&old), sizeof(old));
		uint64_t now = wr.kind == WrKind::FetchAdd ? old + wr.operand
			       : old == wr.compare         ? wr.operand
							   : old;
		std::memcpy(remote, &now, sizeof(now));
	} else if (wr.kind == WrKind::Write)
		std::memcpy(remote, memory_of(w, wr), wr.len);
	else if (wr.fixed)
		wr.fixed->arrived.push_back(
			{wr.offset, Bytes(reinterpret_cast<char *>(remote), wr.len)});
	else if (wr.pages)
		std::memcpy(wr.pages->data(), remote, wr.len);
	else if (dma != w.dmas.end())
		dma->second.arrived.assign(reinterpret_cast<char *>(remote), wr.len);
}

/* Nothing but its own completions tells a raw channel what the peer thinks of it. */
bool promised(const Qp *qp, const Qp *peer)
{
	return qp->core && peer->core && !qp->plain && !peer->plain;
}

/* The peer's QP has no receive. */
Outcome rnr(World &w, Qp *qp, SendWr &wr)
{
	return stall(w, qp, wr, qp->rnr_retry ? rnr_timeout : 0, WC_RNR_RETRY_EXC_ERR);
}

/* What takes the first receive of @peer, and its immediate data. */
CqEntry consume(Qp *peer, const SendWr &wr)
{
	RecvWr recv = peer->rq.front();

	peer->rq.pop_front();
	return {.qp = peer->id,
		.kind = recv.kind,
		.cqe = recv.cqe,
		.wr = recv.id,
		.write = wr.kind == WrKind::Write,
		.with_imm = wr.with_imm,
		.imm = wr.imm};
}

const char *verb(const SendWr &wr)
{
	return is_atomic(wr) ? "atomic operation" : wr.kind == WrKind::Write ? "WRITE" : "READ";
}

/* iWARP: what precedes @wr in the stream is there when it is. */
void place_before(World &w, Qp *qp, Qp *peer, uint64_t wr)
{
	while (!qp->stream.empty() && qp->stream.front().wr < wr) {
		Unplaced next = std::move(qp->stream.front());

		qp->stream.pop_front();
		Mr *mr = accessible(w, peer, next.write);
		if (!mr) {
			fail("memory was taken away before a WRITE was placed");
			return;
		}
		if (next.write.signalled)
			std::memcpy(mr->data() + (next.write.remote_addr - mr->addr),
				    next.copy.data(), next.copy.size());
		else
			transfer(w, next.write, mr);
	}
}

void place_later(World &w, uint64_t qp_id, uint64_t wr_id)
{
	Qp *qp = w.qps.find(qp_id);

	if (!qp || qp->stream.empty() || qp->stream.front().wr > wr_id)
		return;
	if (Qp *peer = qp->dev->stuck ? nullptr : reach(w, qp))
		place_before(w, qp, peer, wr_id + 1);
	else
		w.sched.after(read_retry, [&w, qp_id, wr_id] { place_later(w, qp_id, wr_id); });
}

/* It has completed when TCP has it, which sends it for as long as there is a connection. */
Outcome hand_over(World &w, Qp *qp, SendWr &wr)
{
	uint64_t qp_id = qp->id, wr_id = wr.id;
	Unplaced entry{wr_id, wr, {}};

	if (wr.signalled)
		entry.copy.assign(reinterpret_cast<char *>(memory_of(w, wr)), wr.len);
	qp->stream.push_back(std::move(entry));
	wr.executed = true;
	w.sched.after(w.delay() * qp->slow, [&w, qp_id, wr_id] {
		Qp *self = w.qps.find(qp_id);

		if (self && self->state == Qp::State::Rts && !self->dev->stuck)
			qp_wr_done(w, self, wr_id, WC_SUCCESS);
		else if (self && self->dev->stuck)
			for (SendWr &late : self->sq)
				if (late.id == wr_id)
					late.done = true;
	});
	w.sched.after(2 * w.delay() * qp->slow,
		      [&w, qp_id, wr_id] { place_later(w, qp_id, wr_id); });
	return Outcome::Sent;
}

void finish_one_sided(World &w, uint64_t qp_id, uint64_t wr_id)
{
	Qp *qp = w.qps.find(qp_id);

	if (!qp || qp->state != Qp::State::Rts)
		return;
	auto wr = std::find_if(qp->sq.begin(), qp->sq.end(),
			       [&](const SendWr &entry) { return entry.id == wr_id; });
	if (wr == qp->sq.end())
		return;
	Qp *peer = reach(w, qp);
	if (!peer || qp->dev->stuck) {
		if (stall(w, qp, *wr, w.opts.retry_timeout, WC_RETRY_EXC_ERR) == Outcome::Stalled)
			w.sched.after(read_retry,
				      [&w, qp_id, wr_id] { finish_one_sided(w, qp_id, wr_id); });
		return;
	}
	place_before(w, qp, peer, wr_id);
	Mr *mr = accessible(w, peer, *wr);
	if (!mr) {
		if (promised(qp, peer))
			fail("memory was taken away while an RDMA %s was under way", verb(*wr));
		qp_breaks(w, peer);
		qp_wr_done(w, qp, wr_id, WC_REM_ACCESS_ERR);
		return;
	}
	if (wr->with_imm && peer->rq.empty()) {
		qp_wr_done(w, qp, wr_id, WC_RNR_RETRY_EXC_ERR);
		return;
	}
	transfer(w, *wr, mr);
	if (wr->sink)
		wr->local->state = Mr::State::Free;
	if (wr->with_imm) {
		CqEntry entry = consume(peer, *wr);

		entry.byte_len = wr->len;
		cq_push(w, peer->cq, std::move(entry));
	}
	qp_wr_done(w, qp, wr_id, WC_SUCCESS);
}

Outcome execute_one_sided(World &w, Qp *qp, SendWr &wr)
{
	bool read = wr.kind != WrKind::Write;
	unsigned int in_flight = 0;

	for (const SendWr &other : qp->sq)
		in_flight += other.kind >= WrKind::Read && other.kind != WrKind::Write &&
			     other.executed && !other.done;
	if (read && !qp->reads_out)
		return failed(w, qp, wr, WC_LOC_QP_OP_ERR);
	Qp *peer = reach(w, qp);
	if (!peer)
		return stall(w, qp, wr, w.opts.retry_timeout, WC_RETRY_EXC_ERR);
	if (read && in_flight >= qp->reads_out)
		return Outcome::Stalled;
	if (wr.with_imm && peer->rq.empty())
		return rnr(w, qp, wr);
	wr.stalled_since = 0;
	if (!accessible(w, peer, wr)) {
		if (promised(qp, peer))
			fail("RDMA %s outside of any registered memory", verb(wr));
		qp_breaks(w, peer);
		return failed(w, qp, wr, WC_REM_ACCESS_ERR);
	}
	if (!read && qp->dev->iwarp() && promised(qp, peer))
		return hand_over(w, qp, wr);
	wr.executed = true;
	uint64_t qp_id = qp->id, wr_id = wr.id;
	w.sched.after(w.delay() * qp->slow,
		      [&w, qp_id, wr_id] { finish_one_sided(w, qp_id, wr_id); });
	return Outcome::Sent;
}

Outcome execute_send(World &w, Qp *qp, SendWr &wr)
{
	Qp *peer = reach(w, qp);
	if (qp->dev->iwarp() && qp->passive && !qp->received && peer && promised(qp, peer))
		fail("iWARP: the accepting side sends first");
	if (!peer)
		return stall(w, qp, wr, w.opts.retry_timeout, WC_RETRY_EXC_ERR);
	if (peer->rq.empty()) {
		if (promised(qp, peer) && !w.opts.allow_rnr)
			fail("receiver not ready: a SEND without a posted receive");
		if (qp->dev->iwarp()) {
			qp_breaks(w, peer);
			return failed(w, qp, wr, WC_RETRY_EXC_ERR);
		}
		return rnr(w, qp, wr);
	}
	place_before(w, qp, peer, wr.id);
	RecvWr recv = peer->rq.front();
	if (!usable(recv.local, recv.lkey))
		fail("a receive with an MR that is not registered");
	if (wr.payload.size() > recv.len) {
		if (promised(qp, peer))
			fail("SEND of %zu bytes into a receive of %u", wr.payload.size(), recv.len);
		CqEntry entry = consume(peer, wr);

		entry.status = WC_LOC_LEN_ERR;
		cq_push(w, peer->cq, std::move(entry));
		qp_breaks(w, peer);
		return failed(w, qp, wr, WC_REM_INV_REQ_ERR);
	}
	if (wr.invalidates) {
		Mr *mr = find_mr(w, peer, wr.rkey);

		if (!mr) {
			qp_breaks(w, peer);
			return failed(w, qp, wr, WC_REM_ACCESS_ERR);
		}
		mr->state = Mr::State::Free;
		mr->remotely_invalidated = true;
	}
	CqEntry entry = consume(peer, wr);
	entry.invalidated = wr.invalidates;
	entry.rkey = wr.invalidates ? wr.rkey : 0;
	peer->received = true;
	if (auto dma = w.dmas.find(recv.dma); dma != w.dmas.end())
		dma->second.arrived = wr.payload;
	else if (recv.fixed && !wr.payload.empty())
		recv.fixed->arrived.push_back({recv.offset, wr.payload});
	else if (recv.pages && !wr.payload.empty())
		std::memcpy(recv.pages->data(), wr.payload.data(), wr.payload.size());
	entry.byte_len = static_cast<uint32_t>(wr.payload.size());
	if (!peer->core)
		entry.data = wr.payload;
	cq_push(w, peer->cq, std::move(entry));

	wr.executed = true;
	wr.stalled_since = 0;
	qp->sends_executed++;
	uint64_t qp_id = qp->id, wr_id = wr.id;
	w.sched.after(w.delay() * qp->slow, [&w, qp_id, wr_id] {
		Qp *self = w.qps.find(qp_id);

		if (self && self->state == Qp::State::Rts && !self->dev->stuck)
			qp_wr_done(w, self, wr_id, WC_SUCCESS);
		else if (self && self->dev->stuck)
			for (SendWr &late : self->sq)
				if (late.id == wr_id)
					late.done = true;
	});
	return Outcome::Sent;
}

} // namespace

void qp_breaks(World &w, Qp *peer)
{
	uint64_t id = peer->id;

	qp_error(w, peer);
	if (!peer->core)
		return;
	w.sched.after(w.delay(), [&w, id] {
		Qp *qp = w.qps.find(id);

		if (!qp)
			return;
		qp->fatal_running++;
		w.sched.spawn("async event", Context::Softirq, qp->cq->node, [&w, qp] {
			watch::acquire(qp);
			qp->cq->node->core->queue_fatal(qp->cq->queue, "QP access error");
			watch::release(qp);
			qp->fatal_running--;
			for (const auto &fiber : w.sched.all())
				if (!std::strcmp(fiber->blocked_in, "kd_qp_destroy"))
					w.sched.wake(fiber.get());
		});
	});
}

Outcome execute(World &w, Qp *qp, SendWr &wr)
{
	if (qp->core && w.inject(Op::WrError))
		return failed(w, qp, wr, WC_LOC_QP_OP_ERR);
	if (!usable(wr.local, wr.lkey))
		fail("a work request with an MR that is not registered");
	switch (wr.kind) {
	case WrKind::Send: return execute_send(w, qp, wr);
	case WrKind::Read:
	case WrKind::Write:
	case WrKind::CmpSwap:
	case WrKind::FetchAdd: return execute_one_sided(w, qp, wr);
	case WrKind::Reg:
		wr.executed = true;
		if (wr.mr->local && wr.mr->state == Mr::State::Valid)
			fail("REG_MR of an MR that is registered");
		wr.mr->state = Mr::State::Valid;
		wr.mr->key = wr.rkey;
		wr.mr->remotely_invalidated = false;
		qp_wr_done(w, qp, wr.id, WC_SUCCESS);
		return Outcome::Sent;
	case WrKind::Invalidate:
		wr.executed = true;
		if (wr.mr->state != Mr::State::Valid && !wr.mr->remotely_invalidated)
			fail("LOCAL_INV of an MR that is not registered");
		if (wr.mr->local && wr.mr->key != wr.rkey)
			fail("LOCAL_INV of another key");
		wr.mr->state = Mr::State::Free;
		qp_wr_done(w, qp, wr.id, WC_SUCCESS);
		return Outcome::Sent;
	}
	die("unknown work request");
}

} // namespace sim
