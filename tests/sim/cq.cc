// SPDX-License-Identifier: GPL-2.0-only
#include <cstring>

#include "fabric.h"
#include "watch.h"

namespace sim
{

namespace
{

constexpr uint32_t softirq_budget = 16;

int error_of(uint32_t status)
{
	switch (status) {
	case WC_SUCCESS: return 0;
	case WC_WR_FLUSH_ERR: return KD_ECONNRESET;
	case WC_RETRY_EXC_ERR:
	case WC_RNR_RETRY_EXC_ERR: return KD_ETIMEDOUT;
	default: return KD_EIO;
	}
}

void handle(World &w, Cq *cq, CqEntry &entry)
{
	const CoreApi &core = *cq->node->core;
	kd_wc wc{};

	wc.err = error_of(entry.status);
	wc.flushed = entry.status == WC_WR_FLUSH_ERR;
	wc.status = static_cast<uint16_t>(entry.status);
	wc.status_name = wc_status_name(entry.status);
	wc.byte_len = entry.byte_len;
	wc.invalidated = entry.invalidated;
	wc.rkey = entry.rkey;
	wc.write = entry.write;
	wc.with_imm = entry.with_imm;
	wc.imm = entry.imm;
	if (!entry.cqe)
		return;
	w.sched.preempt();
	switch (entry.kind) {
	case KD_CQE_RECV: return core.recv_done(entry.cqe, &wc);
	case KD_CQE_SEND: return core.send_done(entry.cqe, &wc);
	case KD_CQE_OFFER: return core.offer_done(entry.cqe, &wc);
	case KD_CQE_INV: return core.inv_done(entry.cqe, &wc);
	case KD_CQE_READ: return core.read_done(entry.cqe, &wc);
	case KD_CQE_IO: return core.io_done(entry.cqe, &wc);
	case KD_CQE_KEY: return core.key_done(entry.cqe, &wc);
	case KD_CQE_RAW_SEND: return core.raw_sent(entry.cqe, &wc);
	case KD_CQE_RAW_RECV: return core.raw_received(entry.cqe, &wc);
	case KD_CQE_RAW_CONTROL: return core.raw_control(entry.cqe, &wc);
	case KD_CQE_RAW_REG: return core.raw_registered(entry.cqe, &wc);
	}
}

void softirq(World &w, uint64_t id)
{
	Cq *cq = w.cqs.find(id);

	if (!cq || cq->scheduled || cq->entries.empty())
		return;
	cq->scheduled = true;
	uint64_t moderated = cq->entries.size() < cq->count ? cq->period_us * us : 0;
	w.sched.after(w.delay() + moderated, [&w, id] {
		Cq *due = w.cqs.find(id);

		if (!due)
			return;
		w.sched.spawn("softirq", Context::Softirq, due->node, [&w, id] {
			Cq *now = w.cqs.find(id);

			if (!now)
				return;
			cq_run(w, now, softirq_budget);
			now->scheduled = false;
			softirq(w, id);
		});
	});
}

} // namespace

uint32_t cq_run(World &w, Cq *cq, uint32_t budget)
{
	Fiber *self = w.sched.current();
	uint32_t count = 0;

	if (cq->running) {
		fail("two callers run the handlers of one CQ");
		return 0;
	}
	cq->running = true;
	while (count < budget && !cq->entries.empty()) {
		CqEntry entry = std::move(cq->entries.front());
		Qp *qp = w.qps.find(entry.qp);

		cq->entries.pop_front();
		count++;
		watch::acquire(cq);
		if (qp) {
			watch::acquire(qp);
			qp_reaped(w, qp, entry);
		}
		if (entry.marker)
			continue;
		std::size_t locks = self->held.size();
		self->atomic_depth++;
		handle(w, cq, entry);
		self->atomic_depth--;
		if (self->held.size() != locks)
			fail("a completion handler returned with a lock held");
	}
	watch::release(cq);
	watch::release(&w.cqs);
	cq->running = false;
	for (const auto &fiber : w.sched.all())
		if (!std::strcmp(fiber->blocked_in, "kd_cq_destroy"))
			w.sched.wake(fiber.get());
	return count;
}

void cq_event(World &w, Cq *cq)
{
	uint64_t id = cq->id;

	if (cq->event_due)
		return;
	cq->event_due = true;
	w.sched.after(w.delay(), [&w, id] {
		Cq *due = w.cqs.find(id);

		if (!due || due->dying)
			return;
		due->event_due = false;
		if (due->event_running) { /* one at a time; this one is not lost */
			cq_event(w, due);
			return;
		}
		due->event_running = true;
		w.sched.spawn("cq event", Context::Softirq, due->node, [&w, id] {
			Cq *now = w.cqs.find(id);

			watch::acquire(now);
			now->node->core->queue_cq_event(now->queue);
			watch::release(now);
			now->event_running = false;
			for (const auto &fiber : w.sched.all())
				if (!std::strcmp(fiber->blocked_in, "kd_cq_destroy"))
					w.sched.wake(fiber.get());
		});
	});
}

void cq_push(World &w, Cq *cq, CqEntry entry)
{
	if (cq->raw) {
		cq->raw(entry);
		return;
	}
	if (cq->entries.size() >= cq->capacity)
		fail("CQ overrun: more than %u completions", cq->capacity);
	entry.since = w.now();
	cq->entries.push_back(std::move(entry));
	if (!cq->poll) {
		softirq(w, cq->id);
	} else if (cq->armed) {
		cq->armed = false;
		cq_event(w, cq);
	}
}

void cq_purge(Cq *cq, uint64_t qp)
{
	std::erase_if(cq->entries, [&](const CqEntry &entry) { return entry.qp == qp; });
}

} // namespace sim
