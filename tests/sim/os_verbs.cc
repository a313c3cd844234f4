// SPDX-License-Identifier: GPL-2.0-only
// os.h: PDs, CQs and QPs.
#include <cstring>

#include "fabric.h"
#include "watch.h"

using namespace sim;

namespace
{

/* WRs of one RDMA READ of so many pages. */
uint32_t read_wrs(const struct kd_device_attr &attr, uint32_t pages)
{
	if (attr.transport == KDIRECT_TRANSPORT_IWARP)
		return 3 * ((pages + attr.max_mr_pages - 1) / attr.max_mr_pages);
	return (pages + attr.max_read_sge - 1) / attr.max_read_sge;
}

/* WRs besides of WRITEs over iWARP: READs behind them, and the pages of large ones. */
uint32_t write_wrs(const struct kd_device_attr &attr, const kd_qp_params &params)
{
	if (attr.transport != KDIRECT_TRANSPORT_IWARP || !params.max_writes)
		return 0;
	uint32_t sges = attr.max_send_sge;
	return 1 + params.max_writes +
	       params.max_rw * ((params.max_read_pages + sges - 1) / sges + 1);
}

uint32_t send_wrs(const struct kd_device_attr &attr, const kd_qp_params &params)
{
	return params.max_send + write_wrs(attr, params) +
	       params.max_reads * read_wrs(attr, params.max_read_pages) + 1;
}

Qp *to_qp(const kd_qp *qp, const char *function)
{
	return world().qps.check(qp, function);
}

Cq *to_cq(const kd_cq *cq, const char *function)
{
	return world().cqs.check(cq, function);
}

} // namespace

extern "C" {

int kd_pd_create(struct kd_cm *cm, struct kd_pd **out)
{
	World &w = world();

	w.enter(__func__, true);
	Cm *self = w.cms.check(cm, __func__);
	if (!self->dev)
		die("kd_pd_create() before the address was resolved");
	if (w.inject(Op::PdCreate))
		return KD_ENOMEM;
	Pd *pd = w.pds.add();
	pd->dev = self->dev;
	*out = reinterpret_cast<kd_pd *>(pd);
	return 0;
}

void kd_pd_destroy(struct kd_pd *pd)
{
	World &w = world();

	w.enter(__func__, true);
	Pd *self = w.pds.check(pd, __func__);
	for (const auto &qp : w.qps)
		if (qp->pd == self)
			fail("kd_pd_destroy() while a QP uses it");
	for (const auto &mr : w.mrs)
		if (mr->pd == self)
			fail("kd_pd_destroy() while an MR uses it");
	if (self->mappings)
		fail("kd_pd_destroy() with %u buffers mapped", self->mappings);
	w.pds.remove(self);
}

int kd_cq_create(struct kd_cm *cm, struct kd_queue *queue, uint32_t entries, bool poll,
		 uint32_t spread, struct kd_cq **out)
{
	World &w = world();

	(void)spread;
	w.enter(__func__, true);
	Cm *self = w.cms.check(cm, __func__);
	if (!self->dev)
		die("kd_cq_create() before the address was resolved");
	if (!entries || entries > self->dev->attr.max_cqe)
		return KD_EINVAL;
	if (w.inject(Op::CqCreate))
		return KD_ENOMEM;
	Cq *cq = w.cqs.add();
	cq->dev = self->dev;
	cq->node = w.here();
	cq->queue = queue;
	cq->capacity = entries;
	cq->poll = poll;
	watch::release(cq);
	*out = reinterpret_cast<kd_cq *>(cq);
	return 0;
}

void kd_cq_destroy(struct kd_cq *cq)
{
	World &w = world();

	w.enter(__func__, true);
	Cq *self = to_cq(cq, __func__);
	if (self->qps)
		fail("kd_cq_destroy() while %u QPs use it", self->qps);
	if (self->running && w.sched.current()->atomic_depth)
		die("kd_cq_destroy() from one of its handlers");
	self->dying = true;
	if (self->poll && !self->event_running && w.sched.rng.chance(50)) {
		/* one event may still come */
		self->event_running = true;
		w.sched.spawn("last cq event", Context::Softirq, self->node, [&w, self] {
			watch::acquire(self);
			self->node->core->queue_cq_event(self->queue);
			watch::release(self);
			self->event_running = false;
			for (const auto &fiber : w.sched.all())
				if (!std::strcmp(fiber->blocked_in, "kd_cq_destroy"))
					w.sched.wake(fiber.get());
		});
	}
	while (self->running || self->event_running)
		w.sched.block(__func__);
	watch::acquire(self);
	std::erase_if(w.lingering, [&](const auto &entry) { return entry.second == self->id; });
	w.cqs.remove(self);
}

uint32_t kd_cq_poll(struct kd_cq *cq, uint32_t budget)
{
	World &w = world();

	w.enter(__func__, false);
	Cq *self = to_cq(cq, __func__);
	Fiber *fiber = w.sched.current();
	bool locked = std::any_of(fiber->held.begin(), fiber->held.end(),
				  [](const HeldLock &held) { return held.cls == KD_LOCK_POLL; });

	if (!self->poll)
		fail("kd_cq_poll() of an interrupt CQ");
	if (self->dying)
		fail("kd_cq_poll() of a CQ that is being destroyed");
	if (!locked)
		fail("kd_cq_poll() without the poll lock");
	return cq_run(w, self, budget);
}

int kd_cq_moderate(struct kd_cq *cq, uint32_t count, uint32_t period_us)
{
	World &w = world();

	w.enter(__func__, true);
	Cq *self = to_cq(cq, __func__);
	if (!self->dev->attr.moderation)
		return KD_EOPNOTSUPP;
	if (count > UINT16_MAX || period_us > UINT16_MAX)
		fail("kd_cq_moderate(): %u completions, %u us", count, period_us);
	self->count = count;
	self->period_us = period_us;
	return 0;
}

bool kd_cq_arm(struct kd_cq *cq)
{
	World &w = world();

	w.enter(__func__, false);
	Cq *self = to_cq(cq, __func__);
	if (!self->poll)
		fail("kd_cq_arm() of an interrupt CQ");
	if (self->dying)
		fail("kd_cq_arm() of a CQ that is being destroyed");
	watch::release(self);
	if (!self->entries.empty())
		return true;
	self->armed = true;
	return false;
}

int kd_qp_create(struct kd_cm *cm, const struct kd_qp_params *params, struct kd_qp **out)
{
	World &w = world();

	w.enter(__func__, true);
	Cm *self = w.cms.check(cm, __func__);
	if (!self->dev || self->qp)
		die("kd_qp_create(): no device, or a second QP");
	const struct kd_device_attr &attr = self->dev->attr;
	uint32_t sends = send_wrs(attr, *params);

	if (sends > attr.max_qp_wr || params->max_recv + 1 > attr.max_qp_wr)
		return KD_EINVAL;
	if (w.inject(Op::QpCreate))
		return KD_ENOMEM;
	Qp *qp = w.qps.add();
	qp->dev = self->dev;
	qp->cm = self;
	qp->pd = w.pds.check(params->pd, __func__);
	qp->cq = to_cq(params->cq, __func__);
	qp->core = true;
	if (w.opts.uneven && w.sched.rng.chance(40))
		qp->slow = static_cast<uint32_t>(w.sched.rng.range(2, 30));
	qp->max_send = params->max_send;
	if (self->dev->iwarp())
		qp->max_send += params->max_writes + params->max_rw;
	qp->max_recv = params->max_recv;
	qp->max_reads = params->max_reads;
	qp->max_read_pages = params->max_read_pages;
	qp->plain = params->send_sges;
	if (params->send_sges > attr.max_send_sge || params->recv_sges > attr.max_recv_sge)
		fail("a QP of more entries than the device has");
	if (qp->cq->capacity < sends + params->max_recv + 1)
		fail("a CQ of %u entries for %u send and %u receive WRs", qp->cq->capacity, sends,
		     params->max_recv + 1);
	qp->cq->qps++;
	self->qp = qp;
	watch::release(qp);
	*out = reinterpret_cast<kd_qp *>(qp);
	return 0;
}

uint32_t kd_qp_send_wrs(struct kd_device *dev, const struct kd_qp_params *params)
{
	return send_wrs(*world().here()->core->device_attr(dev), *params);
}

uint32_t kd_qp_number(const struct kd_qp *qp)
{
	return static_cast<uint32_t>(to_qp(qp, __func__)->id) + 16;
}

void kd_handlers_synchronize(void)
{
	/* a handler is never interrupted here */
	world().enter(__func__, true);
	watch::acquire(&world().cqs);
}

void kd_qp_stop(struct kd_qp *qp)
{
	World &w = world();

	w.enter(__func__, true);
	Qp *self = to_qp(qp, __func__);
	Cq *cq = self->cq;

	if (self->draining)
		fail("kd_qp_stop() twice");
	self->draining = true;
	watch::release(self);
	qp_error(w, self);
	self->markers = 2;
	if (self->flush_held) {
		self->markers_to_push = 2;
	} else {
		cq_push(w, cq, {.qp = self->id, .marker = true});
		cq_push(w, cq, {.qp = self->id, .marker = true});
	}
}

int kd_qp_drain(struct kd_qp *qp, uint64_t timeout_ns)
{
	World &w = world();

	w.enter(__func__, true);
	Qp *self = to_qp(qp, __func__);
	Cq *cq = self->cq;
	Fiber *fiber = w.sched.current();
	uint64_t deadline = w.now() + timeout_ns;

	if (!self->draining || self->drained)
		fail("kd_qp_drain() without kd_qp_stop(), or twice");
	uint64_t id = fiber->id;
	Sched::Timer timer = w.sched.at(deadline, [&w, fiber, id] {
		if (w.sched.alive(id))
			w.sched.wake(fiber);
	});
	while (self->markers && w.now() < deadline) {
		if (cq->poll && kd_cq_arm(reinterpret_cast<kd_cq *>(cq))) {
			cq_event(w, cq);
			w.sched.sleep(5 * us);
			continue;
		}
		if (self->markers)
			w.sched.block(__func__);
	}
	w.sched.cancel(timer);
	watch::acquire(cq);
	self->drained = true;
	if (!self->markers)
		return 0;
	qp_reset(w, self);
	return KD_ETIMEDOUT;
}

void kd_qp_destroy(struct kd_qp *qp)
{
	World &w = world();

	w.enter(__func__, true);
	Qp *self = to_qp(qp, __func__);
	while (self->fatal_running)
		w.sched.block(__func__);
	watch::acquire(self);
	if (!self->out_send.empty() || !self->out_recv.empty())
		fail("kd_qp_destroy() with %zu send and %zu receive WRs outstanding%s",
		     self->out_send.size(), self->out_recv.size(),
		     self->drained ? "" : " (not drained)");
	qp_reset(w, self);
	for (auto &[key, read] : w.reads)
		if (read.qp == self)
			fail("kd_qp_destroy() with an RDMA READ context not released");
	self->cq->qps--;
	self->cm->qp = nullptr;
	w.qps.remove(self);
}

} /* extern "C" */
