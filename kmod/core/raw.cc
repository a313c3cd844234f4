// SPDX-License-Identifier: GPL-2.0-only
// The life of a raw channel, as far as it is another than that of a session: connecting,
// with a program's help if it is held, and what its QP needs. All of it is called by
// Channel::run(), but for events.
#include "raw.hh"

#include "../../uapi/kdirect_netlink.h"
#include "channel.hh"

using namespace kd;

namespace
{

constexpr uint32_t control_wrs = 1; // of keys
// What registers the memory of a work request: a REG_MR, and a LOCAL_INV before it. Memory of
// receives is registered one after the other.
constexpr uint32_t registering_wrs = 2;

uint8_t least(uint32_t a, uint32_t b)
{
	return uint8_t(a < b ? a : b);
}

uint32_t sges(uint32_t device)
{
	return device < KDIRECT_RAW_SGES ? device : KDIRECT_RAW_SGES;
}

kd_qp_params shape_of(uint32_t depth, const struct kd_device_attr &attr)
{
	kd_qp_params shape{};
	shape.max_send = depth * (1 + registering_wrs) + registering_wrs + control_wrs;
	shape.max_recv = depth;
	shape.send_sges = sges(attr.max_send_sge);
	shape.recv_sges = sges(attr.max_recv_sge);
	return shape;
}

} // namespace

Raw *Raw::create(Sleepable, Channel &channel, const kd_raw_params &params)
{
	void *mem = kd_zalloc(sizeof(Raw));
	if (!mem)
		return nullptr;
	auto *raw = new (mem) Raw(channel);
	raw->params = params;
	kd_cqe_init(&raw->control_cqe, KD_CQE_RAW_CONTROL);
	kd_work_init(&raw->watch_work, [](kd_work *work) {
		Sleepable sleepable = ShimEntry::may_sleep();
		auto *self = KD_CONTAINER(work, Raw, watch_work);
		Channel &owner = self->channel;
		self->look_at_commands();
		owner.put(sleepable);
	});
	return raw;
}

void Raw::destroy(Sleepable s)
{
	kd::destroy(s, this);
}

// --- what the device gives ---------------------------------------------------------------

Status Raw::fit(limits::Terms &terms, kd_error *error)
{
	const struct kd_device_attr &attr = *kd_device_attr(channel.device);
	send_sges = sges(attr.max_send_sge);
	recv_sges = sges(attr.max_recv_sge);
	read_sges = sges(attr.max_read_sge);
	max_length = attr.max_length < KDIRECT_DESC_LENGTH_MAX ? attr.max_length
							       : KDIRECT_DESC_LENGTH_MAX;
	iwarp = attr.transport == KDIRECT_TRANSPORT_IWARP;
	for (;; terms.depth /= 2) {
		kd_qp_params shape = shape_of(terms.depth, attr);
		if (kd_qp_send_wrs(channel.device, &shape) <= attr.max_qp_wr &&
		    shape.max_recv + 1 <= attr.max_qp_wr &&
		    limits::cq_entries(channel.device, shape) <= attr.max_cqe)
			return {};
		if (terms.depth == 1)
			return KD_ERROR(
				error, KD_EOPNOTSUPP, KDIRECT_A_DEPTH,
				"device %s allows %u WRs per QP and %u CQEs per CQ: too few "
				"for a depth of 1",
				attr.name, attr.max_qp_wr, attr.max_cqe);
	}
}

Status Raw::init_side(Sleepable s, Queue &queue, RawSide &side, uint32_t nr, bool is_send)
{
	side.slots = create_array<RawSlot>(s, nr);
	if (!side.slots)
		return KD_ENOMEM;
	for (; side.nr < nr; side.nr++) {
		RawSlot &slot = side.slots[side.nr];
		slot.queue = &queue;
		kd_cqe_init(&slot.cqe, is_send ? KD_CQE_RAW_SEND : KD_CQE_RAW_RECV);
		kd_cqe_init(&slot.reg_cqe, KD_CQE_RAW_REG);
		if (is_send)
			if (Status st = kd_dma_create(channel.pd, channel.terms.eager_limit,
						      KD_DMA_BOTH, &slot.buf);
			    !st.ok())
				return st;
		SpinGuard guard(queue.tx_lock);
		side.free.push_back(&slot);
	}
	return {};
}

// The CQ and the QP of the channel, and slots for work requests. On failure the caller tears
// the channel down, which undoes what was done.
Status Raw::create_resources(Sleepable s, Queue &queue)
{
	const struct kd_device_attr &attr = *kd_device_attr(channel.device);
	uint32_t depth = channel.terms.depth;
	kd_qp_params shape = shape_of(depth, attr);
	Status st = kd_cq_create(queue.cm, &queue, limits::cq_entries(channel.device, shape),
				 queue.kind == Queue::queue_poll, uint32_t(channel.id), &queue.cq);
	if (!st.ok())
		return st;
	shape.pd = channel.pd;
	shape.cq = queue.cq;
	if (st = kd_qp_create(queue.cm, &shape, &queue.qp); !st.ok())
		return st;
	queue.qpn = kd_qp_number(queue.qp);
	if (st = init_side(s, queue, sends, depth, true); !st.ok())
		return st;
	if (st = init_side(s, queue, recvs, depth, false); !st.ok())
		return st;
	if (queue.kind == Queue::queue_poll)
		queue.arm();
	// Receives may come from here on.
	queue.open();
	return {};
}

// --- connecting ----------------------------------------------------------------------------

bool Raw::progress(Sleepable s)
{
	Queue &queue = *channel.queues[0];
	if (file_closed && held)
		KD_FAIL(channel, KD_ECONNRESET, "its program closed it before it was connected");
	else if (answer == RawAnswer::Reject)
		refuse(queue);
	if (channel.broken)
		return true;
	switch (queue.step.load(std::memory_order_acquire)) {
	case Step::Idle:
	case Step::Resolved:
	case Step::Requested:
		channel.advance(s, queue);
		return channel.broken || queue.step == Step::Prepared;
	case Step::Routed: queue.step = Step::Prepared; return true;
	case Step::Prepared:
		if (params.hold && answer == RawAnswer::None)
			return hold(s);
		if (params.hold)
			channel.deadline_ns =
				kd_now_ns() + uint64_t(channel.params.connect_timeout_ms) * 1000000;
		channel.initiator ? connect(s, queue) : accept(s, queue);
		return channel.broken;
	case Step::Connected:
		if (!channel.make_live(s))
			return false;
		begin_waiting();
		return true;
	case Step::Resolving:
	case Step::Routing:
	case Step::Connecting:
	case Step::Accepted: return false;
	}
	return false;
}

// The node comes first, and its program decides.
bool Raw::hold(Sleepable)
{
	if (held)
		return false;
	channel.deadline_ns = kd_now_ns() + uint64_t(channel.params.connect_timeout_ms) * 1000000;
	// The program may answer as soon as it finds the node.
	held = true;
	if (Status st = kd_raw_node_create(&channel, channel.name, &channel.node); !st.ok()) {
		KD_FAIL(channel, st.err(), "no device node for channel %s", channel.name);
		return true;
	}
	channel.publish_state(State::Connecting, true);
	return false;
}

kd_cm_params Raw::cm_params(const Queue &queue)
{
	const struct kd_device_attr &attr = *kd_device_attr(channel.device);
	kd_cm_params cm{};
	SpinGuard guard(channel.state_lock);
	cm.data = params.data;
	cm.data_len = params.data_len;
	cm.retry_count = params.retry_count;
	cm.rnr_retry_count = params.rnr_retry_count;
	cm.responder_resources = least(attr.max_rd_atom, params.responder_resources);
	cm.initiator_depth = least(attr.max_init_rd_atom, params.initiator_depth);
	if (!channel.initiator) {
		resources = cm.responder_resources = least(cm.responder_resources, queue.reads_in);
		depth = cm.initiator_depth = least(cm.initiator_depth, queue.reads_out);
	}
	return cm;
}

void Raw::refuse(Queue &queue)
{
	if (!channel.initiator)
		(void)kd_cm_reject(queue.cm, params.data, params.data_len);
	KD_FAIL(channel, KD_ECONNREFUSED, "its program refused the connection");
}

void Raw::connect(Sleepable, Queue &queue)
{
	kd_cm_params cm = cm_params(queue);
	queue.step = Step::Connecting;
	if (Status st = kd_cm_connect(queue.cm, &cm); !st.ok())
		KD_FAIL(channel, st.err(), "cannot connect (error %d)", st.err());
}

void Raw::accept(Sleepable, Queue &queue)
{
	kd_cm_params cm = cm_params(queue);
	queue.step = Step::Accepted;
	if (Status st = kd_cm_accept(queue.cm, &cm); !st.ok())
		KD_FAIL(channel, st.err(), "cannot accept (error %d)", st.err());
}

// --- events, in the connection manager's context -------------------------------------------

void Raw::heard(const kd_cm_event &event)
{
	uint32_t len = event.data ? event.data_len : 0;
	if (len > sizeof(peer_data))
		len = sizeof(peer_data);
	SpinGuard guard(channel.state_lock);
	if (len)
		copy_bytes(peer_data, event.data, len);
	peer_length = len;
}

void Raw::established(const kd_cm_event &event)
{
	Queue &queue = *channel.queues[0];
	Step from = channel.initiator ? Step::Connecting : Step::Accepted;
	if (queue.step.load(std::memory_order_acquire) != from)
		return;
	if (channel.initiator) {
		heard(event);
		const struct kd_device_attr &attr = *kd_device_attr(channel.device);
		SpinGuard guard(channel.state_lock);
		resources =
			least(least(attr.max_rd_atom, params.responder_resources), event.reads_in);
		depth = least(least(attr.max_init_rd_atom, params.initiator_depth),
			      event.reads_out);
	}
	queue.step.store(Step::Connected, std::memory_order_release);
	channel.kick();
}

// --- ending --------------------------------------------------------------------------------

bool Raw::claimed()
{
	SpinGuard guard(channel.queues[0]->tx_lock);
	return nr_claimed;
}

// The QP and its CQ are gone: what did not complete never will.
void Raw::end_slots(Sleepable)
{
	constexpr uint16_t flushed = 5; // IB_WC_WR_FLUSH_ERR
	Queue &queue = *channel.queues[0];
	{
		SpinGuard guard(queue.tx_lock);
		waiting = {};
	}
	for (RawSide *side : {&recvs, &sends}) {
		for (;;) {
			RawSlot *slot;
			{
				SpinGuard guard(queue.tx_lock);
				slot = side->posted.front();
			}
			if (!slot)
				break;
			finish(*side, slot, KD_ECONNRESET, flushed);
		}
		for (uint32_t i = 0; i < side->nr; i++) {
			RawSlot &slot = side->slots[i];
			kd_dma_unmap(channel.pd, &slot.buf);
			if (kd_frwr *frwr = std::exchange(slot.frwr, nullptr))
				kd_frwr_destroy(frwr);
		}
	}
}

void Raw::destroy_slots(Sleepable s)
{
	for (RawSide *side : {&recvs, &sends}) {
		for (uint32_t i = 0; i < side->nr; i++)
			kd_dma_free(&side->slots[i].buf);
		destroy_array(s, side->slots);
	}
}

void Raw::wake()
{
	waitq.wake(0);
	SpinGuard guard(channel.state_lock);
	if (!file)
		return;
	file->waitq.wake(0);
	file->poll_waitq.wake(KD_WAKE_IN | KD_WAKE_OUT | KD_WAKE_END);
}
