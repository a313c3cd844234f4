// SPDX-License-Identifier: GPL-2.0-only
// Pings: round trips between the two kernels, for measuring and for finding out
// whether the path works. Each queue has one ping and one pong of its own in each
// direction, outside the credits, so a stuck reader does not stop them.
#include "channel.hh"

#include "../../uapi/kdirect.h"

using namespace kd;

namespace
{

constexpr uint64_t default_timeout_ns = 1000000000;
constexpr uint64_t max_timeout_ns = 60 * default_timeout_ns;

// The payload differs from ping to ping, so that an old echo is no new one.
void fill(uint8_t *bytes, uint32_t len, uint64_t number)
{
	for (uint32_t i = 0; i < len; i++)
		bytes[i] = uint8_t(number + i);
}

uint8_t *payload(const kd_dma &buf)
{
	return static_cast<uint8_t *>(buf.mem) + sizeof(wire::DataHeader);
}

} // namespace

// Sends the echo of the ping in `slot`, now or when the last echo has left.
void kd_queue::answer_ping(RxSlot *slot)
{
	Status st;
	bool twice = false;
	{
		SpinGuard guard(tx_lock);
		if (sealed)
			return;
		if (pong.sending) {
			twice = pong.next != nullptr;
			pong.next = slot;
		} else {
			wire::DataHeader asked;
			copy_bytes(&asked, slot->buf.mem, sizeof(asked));
			uint32_t len = asked.length;
			wire::encode_data(
				{wire::DataType::Pong, len, grant.tell(), 0, asked.seq, 0},
				pong.slot->buf.mem);
			copy_bytes(payload(pong.slot->buf), payload(slot->buf), len);
			// The peer pings again as soon as it has the echo: post first.
			st = kd_post_recv(qp, &slot->cqe, &slot->buf, slot->buf.size);
			if (st.ok()) {
				pong.sending = true;
				sends.post(pong.slot, true);
				st = kd_post_send(qp, &pong.slot->cqe, &pong.slot->buf,
						  uint32_t(sizeof(asked)) + len, true);
			}
			pings.add();
		}
	}
	if (twice)
		KD_FAIL(channel, KD_EPROTO,
			"queue %u: the peer sent a ping before the last was answered", index);
	if (!st.ok())
		KD_FAIL(channel, st.err(), "queue %u: cannot answer a ping (error %d)", index,
			st.err());
}

void kd_queue::pong_arrived(RxSlot *slot, const wire::DataInfo &info)
{
	bool expected;
	Status st;
	{
		SpinGuard guard(tx_lock);
		expected = ping.waiting && info.seq == ping.number;
		if (expected) {
			if (PingWait *waiter = std::exchange(ping.waiter, nullptr)) {
				waiter->rtt_ns = kd_now_ns() - ping.start_ns;
				waiter->differs = info.length != ping.length ||
						  !same_bytes(payload(slot->buf),
							      payload(ping.slot->buf), ping.length);
				__atomic_store_n(&waiter->answered, true, __ATOMIC_RELEASE);
			}
			// The next ping may go out as soon as nobody waits: post first, and
			// without a receive for its echo none goes out.
			if (!sealed)
				st = kd_post_recv(qp, &slot->cqe, &slot->buf, slot->buf.size);
			ping.waiting = !st.ok();
		}
	}
	if (!expected) {
		KD_FAIL(channel, KD_EPROTO, "queue %u: the peer answered a ping that was not sent",
			index);
		return;
	}
	if (!st.ok())
		KD_FAIL(channel, st.err(), "queue %u: cannot post a receive (error %d)", index,
			st.err());
	channel.ping_waitq.wake(0);
}

// Sends a ping, or returns false if the last one is still under way.
bool kd_queue::try_ping(uint32_t len, PingWait &waiter, Status &st)
{
	SpinGuard guard(tx_lock);
	if (!carries || ping.sending || ping.waiting)
		return false;
	ping.waiter = &waiter;
	ping.number++;
	ping.length = len;
	fill(payload(ping.slot->buf), len, ping.number);
	wire::encode_data({wire::DataType::Ping, len, grant.tell(), 0, ping.number, 0},
			  ping.slot->buf.mem);
	ping.sending = ping.waiting = true;
	sends.post(ping.slot, true);
	ping.start_ns = kd_now_ns();
	st = kd_post_send(qp, &ping.slot->cqe, &ping.slot->buf,
			  uint32_t(sizeof(wire::DataHeader)) + len, true);
	return true;
}

Status kd_channel::ping(Sleepable s, struct kdirect_ping &p, uint32_t open_flags)
{
	uint64_t timeout = p.timeout_ns ? p.timeout_ns : default_timeout_ns;
	bool poll = p.flags & KDIRECT_PING_POLL;
	if ((p.flags & ~KDIRECT_PING_FLAGS) || p.size == 0 || timeout > max_timeout_ns)
		return KD_EINVAL;
	for (uint32_t reserved : p.reserved)
		if (reserved)
			return KD_EINVAL;
	if (p.size > terms.eager_limit)
		return KD_EMSGSIZE;
	if (poll && !has_poll_queues())
		return KD_EOPNOTSUPP;
	bool use_poll = poll || nr_interrupt_queues == 0;
	uint32_t count = use_poll ? nr_poll_queues : nr_interrupt_queues;
	Queue &queue = *queues[(use_poll ? 1 + nr_interrupt_queues : 1) + kd_cpu() % count];

	// From here on it is us who look after the CQ, before an echo can come.
	if (poll)
		queue.poll(true);
	PingWait waiter;
	bool begun = false;
	Status posted;
	uint64_t start = kd_now_ns();
	const Waiting how(poll, open_flags);
	Status st = wait(s, ping_waitq, how, KD_WAIT_INTERRUPTIBLE, timeout, [&] {
		return send_ended() || (begun = queue.try_ping(p.size, waiter, posted));
	});
	if (!begun)
		return st.ok() ? KD_EPIPE : st;
	if (!posted.ok())
		KD_FAIL(*this, posted.err(), "queue %u: cannot post a SEND (error %d)", queue.index,
			posted.err());
	uint64_t spent = kd_now_ns() - start;
	st = wait(s, ping_waitq, how, KD_WAIT_INTERRUPTIBLE, spent < timeout ? timeout - spent : 0,
		  [&] {
			  return __atomic_load_n(&waiter.answered, __ATOMIC_ACQUIRE) ||
				 __atomic_load_n(&waiter.lost, __ATOMIC_ACQUIRE) || send_ended();
		  });
	// An echo that comes after we gave up makes room for the next caller.
	SpinGuard guard(queue.tx_lock);
	if (!waiter.answered) {
		if (waiter.lost)
			return KD_ECONNRESET;
		queue.ping.waiter = nullptr;
		return st.ok() ? KD_EPIPE : st;
	}
	p.queue = queue.index;
	p.rtt_ns = waiter.rtt_ns;
	return waiter.differs ? KD_EBADMSG : 0;
}
