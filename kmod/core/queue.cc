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

// On failure the caller tears the channel down, which undoes what was done.
Status kd_queue::create_resources(Sleepable s, const limits::Terms &terms)
{
	kd_work_init(&service_work,
		     [](kd_work *work) { KD_CONTAINER(work, kd_queue, service_work)->service(); });
	if (channel.raw)
		return channel.raw->create_resources(s, *this);
	kd_qp_params shape = index == 0 ? limits::control_shape() : limits::queue_shape(terms);
	signal_all = channel.iwarp;
	Status st = kd_cq_create(cm, this, limits::cq_entries(channel.device, shape),
				 kind == queue_poll, uint32_t(channel.id) + index, &cq);
	if (!st.ok())
		return st;
	shape.pd = channel.pd;
	shape.cq = cq;
	if (st = kd_qp_create(cm, &shape, &qp); !st.ok())
		return st;
	qpn = kd_qp_number(qp);

	nr_rx = shape.max_recv;
	nr_tx = index == 0 ? wire::control_receives : limits::send_slots(terms);
	uint32_t large = index == 0 ? 0 : limits::offers(terms.depth);
	rx_slots = create_array<RxSlot>(s, nr_rx);
	tx_slots = create_array<TxSlot>(s, nr_tx);
	if (!rx_slots || !tx_slots)
		return KD_ENOMEM;
	if (large) {
		offer_slots = create_array<OfferSlot>(s, large);
		fetch_slots = create_array<FetchSlot>(s, large);
		if (!offer_slots || !fetch_slots)
			return KD_ENOMEM;
	}
	for (uint32_t i = 0; i < nr_tx; i++) {
		TxSlot &slot = tx_slots[i];
		slot.queue = this;
		slot.use = index == 0 ? TxSlot::Use::Control : TxSlot::Use::Message;
		kd_cqe_init(&slot.cqe, KD_CQE_SEND);
		if (st = kd_dma_create(channel.pd, receive_size(), KD_DMA_SEND, &slot.buf);
		    !st.ok())
			return st;
		sends.free.push_back(&slot);
		sends.nr_free++;
	}
	if (index != 0) {
		ping.slot = sends.free.pop();
		ping.slot->use = TxSlot::Use::Ping;
		pong.slot = sends.free.pop();
		pong.slot->use = TxSlot::Use::Pong;
		sends.nr_free -= limits::extra_slots;
	}
	for (uint32_t i = 0; i < large; i++) {
		OfferSlot &offer = offer_slots[i];
		offer.queue = this;
		kd_cqe_init(&offer.reg_cqe, KD_CQE_OFFER);
		kd_cqe_init(&offer.inv_cqe, KD_CQE_INV);
		if (st = kd_mr_create(channel.pd, channel.max_offer_pages(), &offer.mr); !st.ok())
			return st;
		nr_mrs++;
		FetchSlot &fetch = fetch_slots[i];
		fetch.queue = this;
		kd_cqe_init(&fetch.cqe, KD_CQE_READ);
		free_fetches.push_back(&fetch);
	}
	// The control queue may be at work already, and speak of this queue.
	if (index == 0) {
		SpinGuard guard(channel.ctrl_lock);
		channel.ctrl_window.open(wire::control_receives);
	} else {
		SpinGuard guard(tx_lock);
		window.open(terms.depth);
		nr_large = nr_free_offers = large;
	}
	for (uint32_t i = 0; i < nr_rx; i++) {
		RxSlot &slot = rx_slots[i];
		slot.queue = this;
		kd_cqe_init(&slot.cqe, KD_CQE_RECV);
		if (st = kd_dma_create(channel.pd, receive_size(), KD_DMA_RECV, &slot.buf);
		    !st.ok())
			return st;
		if (st = kd_post_recv(qp, &slot.cqe, &slot.buf, slot.buf.size); !st.ok())
			return st;
	}
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
	cq = nullptr;
	// No completion comes any more, and the device touches no page.
	end_io();
	if (channel.raw)
		channel.raw->end_slots(s);
	for (uint32_t i = 0; i < nr_large; i++) {
		if (fetch_slots[i].posted_ns)
			kd_pages_free(fetch_slots[i].pages);
		fetch_slots[i].posted_ns = 0;
	}
	for (uint32_t i = 0; i < nr_large; i++)
		if (offer_slots[i].phase >= OfferSlot::Phase::Posted)
			channel.release_offer(&offer_slots[i]);
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
