// SPDX-License-Identifier: GPL-2.0-only
// Making and unmaking what a queue owns. Everything here is called by
// Channel::run() alone; nothing else posts before open() or after seal().
#include "channel.hh"
#include "raw.hh"

#include "../../uapi/kdirect_netlink.h"

using namespace kd;

uint32_t kd_queue::receive_size() const
{
	return index == 0 ? wire::control_size
			  : uint32_t(sizeof(wire::DataHeader)) + channel.terms.eager_limit;
}

// A buffer, or one that an earlier connection had.
Status kd_queue::map_buffer(Sleepable, kd_dma *buf, uint32_t size, kd_dma_dir dir)
{
	if (buf->mem)
		return kd_dma_map(channel.pd, buf);
	return kd_dma_create(channel.pd, size, dir, buf);
}

// The arrays of slots, once.
Status kd_queue::make_slots(Sleepable s, uint32_t receives_wanted, const limits::Terms &terms)
{
	if (tx_slots)
		return {};
	nr_rx = receives_wanted;
	nr_tx = index == 0 ? wire::control_receives : limits::send_slots(terms);
	uint32_t large = index == 0 ? 0 : limits::offers(terms.depth);
	rx_slots = create_array<RxSlot>(s, nr_rx);
	if (large) {
		offer_slots = create_array<OfferSlot>(s, large);
		fetch_slots = create_array<FetchSlot>(s, large);
	}
	// The last: with these all are there.
	tx_slots = rx_slots && (!large || (offer_slots && fetch_slots))
			   ? create_array<TxSlot>(s, nr_tx)
			   : nullptr;
	if (!tx_slots)
		return KD_ENOMEM;
	for (uint32_t i = 0; i < nr_rx; i++) {
		rx_slots[i].queue = this;
		kd_cqe_init(&rx_slots[i].cqe, KD_CQE_RECV);
	}
	for (uint32_t i = 0; i < nr_tx; i++) {
		TxSlot &slot = tx_slots[i];
		slot.queue = this;
		slot.use = index == 0 ? TxSlot::Use::Control : TxSlot::Use::Message;
		kd_cqe_init(&slot.cqe, KD_CQE_SEND);
	}
	if (index != 0) {
		ping.slot = &tx_slots[0];
		ping.slot->use = TxSlot::Use::Ping;
		pong.slot = &tx_slots[1];
		pong.slot->use = TxSlot::Use::Pong;
	}
	for (uint32_t i = 0; i < large; i++) {
		OfferSlot &offer = offer_slots[i];
		offer.queue = this;
		kd_cqe_init(&offer.reg_cqe, KD_CQE_OFFER);
		kd_cqe_init(&offer.inv_cqe, KD_CQE_INV);
		fetch_slots[i].queue = this;
		kd_cqe_init(&fetch_slots[i].cqe, KD_CQE_READ);
	}
	{
		SpinGuard guard(tx_lock);
		nr_large = nr_free_offers = large;
	}
	forget_connection();
	return {};
}

// What a connection needs. On failure the caller takes it down, which undoes what was done.
Status kd_queue::create_resources(Sleepable s, const limits::Terms &terms)
{
	if (channel.raw)
		return channel.raw->create_resources(s, *this);
	kd_qp_params shape = index == 0 ? limits::control_shape() : limits::queue_shape(terms);
	signal_all = channel.iwarp;
	kd_cq *made;
	Status st = kd_cq_create(cm, this, limits::cq_entries(channel.device, shape),
				 kind == queue_poll, uint32_t(channel.id) + index, &made);
	if (!st.ok())
		return st;
	{
		SpinGuard guard(poll_lock);
		cq = made;
		retiring = false;
	}
	shape.pd = channel.pd;
	shape.cq = cq;
	if (st = kd_qp_create(cm, &shape, &qp); !st.ok())
		return st;
	qpn = kd_qp_number(qp);
	abandoned = false;
	if (st = make_slots(s, shape.max_recv, terms); !st.ok())
		return st;
	for (uint32_t i = 0; i < nr_tx; i++)
		if (st = map_buffer(s, &tx_slots[i].buf, receive_size(), KD_DMA_SEND); !st.ok())
			return st;
	for (uint32_t i = 0; i < nr_rx; i++)
		if (st = map_buffer(s, &rx_slots[i].buf, receive_size(), KD_DMA_RECV); !st.ok())
			return st;
	for (uint32_t i = 0; i < nr_io_copies; i++)
		if (st = map_buffer(s, &io_copies[i].buf, 0, KD_DMA_BOTH); !st.ok())
			return st;
	for (; nr_mrs < nr_large; nr_mrs++)
		if (st = kd_mr_create(channel.pd, channel.max_offer_pages(),
				      &offer_slots[nr_mrs].mr);
		    !st.ok())
			return st;
	if (index == 0) {
		SpinGuard guard(channel.ctrl_lock);
		channel.ctrl_window.open(wire::control_receives);
	}
	if (st = post_receives(); !st.ok())
		return st;
	if (kind == queue_poll)
		arm();
	// The first data queue makes the ring that orders the messages of all.
	if (index == 0 || channel.order.ring())
		return {};
	uint64_t places = Order<RxSlot>::ring_size(uint64_t(nr_rx) * (channel.nr_queues - 1));
	auto **ring = create_array<RxSlot *>(s, places);
	if (!ring)
		return KD_ENOMEM;
	SpinGuard guard(channel.rx_lock);
	channel.order.set_ring(ring, places);
	return {};
}

void kd_queue::open()
{
	SpinGuard ctrl(channel.ctrl_lock);
	SpinGuard tx(tx_lock);
	sealed = false;
}

void kd_queue::seal()
{
	SpinGuard ctrl(channel.ctrl_lock);
	SpinGuard tx(tx_lock);
	sealed = true;
	carries = receives = false;
}

void kd_queue::stop(Sleepable)
{
	if (qp)
		kd_qp_stop(qp);
}

void kd_queue::drain(Sleepable, uint64_t timeout_ns)
{
	if (!qp || !kd_qp_drain(qp, timeout_ns))
		return;
	kd_log(KD_LOG_WARN, "channel %s: queue %u was not drained in time; its QP was reset",
	       channel.name, index);
	abandoned.store(true, std::memory_order_release);
}

// Work requests that wait behind others are not stalled as long as those complete.
const char *kd_queue::stalled(uint64_t now_ns, uint64_t limit_ns)
{
	uint64_t progress_at = progress_ns.load(std::memory_order_relaxed);
	auto late = [&](uint64_t since_ns) {
		return now_ns > (since_ns > progress_at ? since_ns : progress_at) + limit_ns;
	};
	for (uint32_t i = 0; i < nr_large; i++) {
		uint64_t since_ns = fetch_slots[i].posted_ns.load(std::memory_order_relaxed);
		if (since_ns && late(since_ns))
			return "an RDMA READ";
	}
	SpinGuard guard(tx_lock);
	if (io_posted && late(io_since_ns))
		return "a read or write of a mapping";
	return sends.awaited && late(sends.since_ns) ? "a SEND" : nullptr;
}

void kd_queue::destroy_resources(Sleepable s)
{
	if (cq) {
		{
			SpinGuard guard(poll_lock);
			retiring = true;
		}
		kd_work_cancel(&service_work);
	}
	// Reads that a reset QP left behind.
	release_io();
	for (uint32_t i = 0; i < nr_large; i++)
		if (fetch_slots[i].posted_ns)
			kd_read_release(qp, &fetch_slots[i].read, fetch_slots[i].pages);
	if (qp)
		kd_qp_destroy(qp);
	qp = nullptr;
	if (cq)
		kd_cq_destroy(cq);
	{
		SpinGuard guard(poll_lock);
		cq = nullptr;
	}
	// No completion comes any more, and the device touches no page.
	hold_io();
	if (channel.raw)
		channel.raw->end_slots(s);
	for (uint32_t i = 0; i < nr_large; i++) {
		if (fetch_slots[i].posted_ns)
			kd_pages_free(fetch_slots[i].pages);
		fetch_slots[i].posted_ns = 0;
		if (std::exchange(offer_slots[i].mapped, false))
			kd_mr_unmap(offer_slots[i].mr, offer_slots[i].pages);
	}
	for (; nr_mrs; nr_mrs--)
		kd_mr_destroy(offer_slots[nr_mrs - 1].mr);
	for (uint32_t i = 0; tx_slots && i < nr_tx; i++)
		kd_dma_unmap(channel.pd, &tx_slots[i].buf);
	for (uint32_t i = 0; rx_slots && i < nr_rx; i++)
		kd_dma_unmap(channel.pd, &rx_slots[i].buf);
	for (uint32_t i = 0; io_copies && i < nr_io_copies; i++)
		kd_dma_unmap(channel.pd, &io_copies[i].buf);
	if (cm)
		kd_cm_destroy(cm);
	cm = nullptr;
	if (tx_slots)
		forget_connection();
	step = Step::Idle;
}

void kd_queue::end_requests(Sleepable)
{
	end_io([](const IoSlot &, const Mapping *) { return true; }, nullptr, KD_EIO);
	for (uint32_t i = 0; i < nr_large; i++)
		if (offer_slots[i].phase >= OfferSlot::Phase::Posted)
			channel.release_offer(&offer_slots[i]);
}

void kd_queue::destroy_slots(Sleepable s)
{
	for (uint32_t i = 0; tx_slots && i < nr_tx; i++)
		kd_dma_free(&tx_slots[i].buf);
	for (uint32_t i = 0; rx_slots && i < nr_rx; i++) {
		kd_pages_free(rx_slots[i].pages);
		kd_dma_free(&rx_slots[i].buf);
	}
	for (uint32_t i = 0; io_copies && i < nr_io_copies; i++)
		kd_dma_free(&io_copies[i].buf);
	if (channel.raw)
		channel.raw->destroy_slots(s);
	destroy_array(s, io_copies);
	destroy_array(s, io_large);
	destroy_array(s, tx_slots);
	destroy_array(s, rx_slots);
	destroy_array(s, offer_slots);
	destroy_array(s, fetch_slots);
}
