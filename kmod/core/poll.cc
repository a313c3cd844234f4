// SPDX-License-Identifier: GPL-2.0-only
// Poll queues. Callers who poll handle the CQ themselves, and no interrupt comes
// as long as they do. Somebody always looks after it: at any time the CQ is
// armed, or service() is queued, or a caller is polling.
#include "channel.hh"

using namespace kd;

namespace
{
constexpr uint32_t poll_budget = 16;
constexpr uint32_t service_budget = 64;
// How long service() leaves the CQ to callers who poll before it looks again.
constexpr uint64_t leave_alone_ns = 4000000;
} // namespace

uint32_t kd_queue::poll(bool again)
{
	if (!poll_lock.try_lock())
		return 0;
	uint32_t found = 0;
	if (!retiring && cq) {
		found = kd_cq_poll(cq, poll_budget);
		polled |= again;
		polls.add();
		cqe_polled.add(found);
	}
	poll_lock.unlock();
	return found;
}

void kd_queue::arm()
{
	SpinGuard guard(poll_lock);
	if (retiring || !cq)
		return;
	polled = false;
	if (!kd_cq_arm(cq))
		return;
	cqe_interrupt.add(kd_cq_poll(cq, service_budget));
	if (kd_cq_arm(cq)) // they come faster than one caller can be held up for
		kd_work_queue(&service_work);
}

void kd_queue::service()
{
	SpinGuard guard(poll_lock);
	if (retiring || !cq)
		return;
	uint32_t found = kd_cq_poll(cq, service_budget);
	cqe_interrupt.add(found);
	if (found == service_budget) {
		kd_work_queue(&service_work);
	} else if (std::exchange(polled, false) && !channel.sleepers) {
		kd_work_queue_after(&service_work, leave_alone_ns);
	} else if (kd_cq_arm(cq)) {
		kd_work_queue(&service_work);
	}
}

void kd_queue_cq_event(struct kd_queue *queue)
{
	queue->service();
}

void kd_channel::poll_once(bool again)
{
	for (uint32_t i = 1 + nr_interrupt_queues; i < nr_queues; i++)
		queues[i]->poll(again);
}

void kd_channel::arm_all()
{
	for (uint32_t i = 1 + nr_interrupt_queues; i < nr_queues; i++)
		queues[i]->arm();
}
