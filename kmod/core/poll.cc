// SPDX-License-Identifier: GPL-2.0-only
// Poll queues. Callers who poll handle the CQ themselves, and no interrupt comes
// as long as they do. Somebody always looks after it: at any time the CQ is
// armed, or service() is queued, or a caller is polling.
#include "channel.hh"

#include "../../uapi/kdirect.h"

using namespace kd;

namespace
{
constexpr uint32_t poll_budget = 16;
constexpr uint32_t service_budget = 64;
// How long service() leaves the CQ to callers who poll before it looks again.
constexpr uint64_t leave_alone_ns = 4000000;
} // namespace

// --- one queue ----------------------------------------------------------------------------

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

// --- callers who poll -------------------------------------------------------------------

Status OpenFlags::set(const Channel &channel, uint32_t flags)
{
	uint32_t mode = flags & (KDIRECT_OPEN_BUSY | KDIRECT_OPEN_HYBRID | KDIRECT_OPEN_ADAPTIVE);
	if ((flags & ~KDIRECT_OPEN_FLAGS) || (mode & (mode - 1)))
		return KD_EINVAL;
	if (flags && !channel.has_poll_queues())
		return KD_EOPNOTSUPP;
	flags_.store(flags, std::memory_order_relaxed);
	return {};
}

namespace
{

PollMode mode_of(const Channel &channel, uint32_t open_flags)
{
	if (open_flags & KDIRECT_OPEN_BUSY)
		return PollMode::Busy;
	if (open_flags & KDIRECT_OPEN_HYBRID)
		return PollMode::Hybrid;
	if (open_flags & KDIRECT_OPEN_ADAPTIVE)
		return PollMode::Adaptive;
	return channel.poll_mode.load(std::memory_order_relaxed);
}

} // namespace

Poller::Poller(Queue &queue, const Waiting &how, uint64_t timeout_ns)
	: queue_(queue), timeout_ns_(timeout_ns), cls_(how.cls),
	  mode_(mode_of(queue.channel, how.open_flags)),
	  percent_(queue.channel.poll_cpu_percent.load(std::memory_order_relaxed)),
	  began_ns_(kd_now_ns()),
	  most_ns_(mode_ == PollMode::Adaptive ? queue.poll_policy.allowance_ns(began_ns_, percent_)
					       : 0),
	  since_ns_(began_ns_)
{
}

Poller::~Poller()
{
	uint64_t now = kd_now_ns();
	if (since_ns_)
		spent_ns_ += now - since_ns_;
	queue_.poll_cpu_ns.fetch_add(spent_ns_, std::memory_order_relaxed);
	if (mode_ == PollMode::Adaptive)
		queue_.poll_policy.spend(now, spent_ns_, percent_);
	if (done_)
		queue_.poll_policy.learn(cls_, now - began_ns_, fresh_);
}

Status Poller::pause(Sleepable, kd_wait_mode mode, bool &sleep)
{
	uint64_t now = kd_now_ns();
	spent_ns_ += now - since_ns_;
	since_ns_ = now;
	fresh_ = false;
	uint64_t nap = 0;
	if (mode_ == PollMode::Hybrid && !std::exchange(napped_, true))
		nap = queue_.poll_policy.nap_ns(cls_);
	if (mode_ == PollMode::Adaptive)
		sleep = spent_ns_ >= most_ns_ ||
			now - began_ns_ >= queue_.poll_policy.patience_ns(cls_);
	int err = 0;
	if (nap) {
		queue_.naps.fetch_add(1, std::memory_order_relaxed);
		uint64_t left = left_ns();
		err = kd_nap(nap < left ? nap : left, mode);
		fresh_ = true;
	} else if (!sleep) {
		err = kd_poll_pause();
		if (err && mode == KD_WAIT_KILLABLE && !kd_killed())
			err = 0;
	}
	since_ns_ = kd_now_ns();
	return err;
}

void Poller::sleeps()
{
	since_ns_ = 0;
	queue_.poll_sleeps.fetch_add(1, std::memory_order_relaxed);
}

uint64_t Poller::left_ns() const
{
	if (timeout_ns_ == KD_FOREVER)
		return KD_FOREVER;
	uint64_t spent = since_ns_ - began_ns_;
	return spent < timeout_ns_ ? timeout_ns_ - spent : 0;
}

// --- all poll queues of a channel ---------------------------------------------------------

uint32_t kd_channel::poll_once(bool again)
{
	uint32_t found = 0;
	for (uint32_t i = first_poll_queue(); i < nr_queues; i++)
		found += queues[i]->poll(again);
	return found;
}

void kd_channel::arm_all()
{
	for (uint32_t i = first_poll_queue(); i < nr_queues; i++)
		queues[i]->arm();
}
