// SPDX-License-Identifier: GPL-2.0-only
// Work completions, from the shim to whoever posted.
#include "channel.hh"
#include "raw.hh"

using namespace kd;

namespace
{

// False: the queue was given up, and its slots are being taken apart.
bool counts(Queue &queue)
{
	queue.count_interrupt();
	return !queue.abandoned.load(std::memory_order_acquire);
}

// The same for the send side, where a completion is progress.
bool counts(Queue &queue, const kd_wc &wc)
{
	if (!counts(queue))
		return false;
	if (!wc.err)
		queue.progress_ns.store(kd_now_ns(), std::memory_order_relaxed);
	return true;
}

} // namespace

void kd_recv_done(struct kd_cqe *cqe, const struct kd_wc *wc)
{
	auto *slot = KD_CONTAINER(cqe, RxSlot, cqe);
	if (counts(*slot->queue))
		slot->queue->received(slot, *wc);
}

void kd_send_done(struct kd_cqe *cqe, const struct kd_wc *wc)
{
	auto *slot = KD_CONTAINER(cqe, TxSlot, cqe);
	Queue &queue = *slot->queue;
	if (!counts(queue, *wc))
		return;
	if (queue.index == 0)
		queue.channel.control_sent(slot, *wc);
	else
		queue.channel.sent(slot, *wc);
}

// A REG_MR asks for no completion: this is an error.
void kd_offer_done(struct kd_cqe *cqe, const struct kd_wc *wc)
{
	auto *offer = KD_CONTAINER(cqe, OfferSlot, reg_cqe);
	if (counts(*offer->queue) && wc->err && !wc->flushed)
		KD_FAIL(offer->queue->channel, KD_EIO, "queue %u: REG_MR failed: %s",
			offer->queue->index, wc->status_name);
}

void kd_inv_done(struct kd_cqe *cqe, const struct kd_wc *wc)
{
	auto *offer = KD_CONTAINER(cqe, OfferSlot, inv_cqe);
	Queue &queue = *offer->queue;
	if (!counts(queue, *wc))
		return;
	if (!wc->err)
		queue.channel.release_offer(offer);
	else if (!wc->flushed) // teardown releases it, once the QP is gone
		KD_FAIL(queue.channel, KD_EIO, "queue %u: LOCAL_INV failed: %s", queue.index,
			wc->status_name);
}

void kd_io_done(struct kd_cqe *cqe, const struct kd_wc *wc)
{
	auto *slot = KD_CONTAINER(cqe, IoSlot, cqe);
	if (counts(*slot->queue, *wc))
		slot->queue->io_done(slot, *wc);
}

void kd_raw_sent(struct kd_cqe *cqe, const struct kd_wc *wc)
{
	auto *slot = KD_CONTAINER(cqe, RawSlot, cqe);
	if (counts(*slot->queue, *wc))
		slot->queue->channel.raw->sent(slot, *wc);
}

void kd_raw_received(struct kd_cqe *cqe, const struct kd_wc *wc)
{
	auto *slot = KD_CONTAINER(cqe, RawSlot, cqe);
	if (counts(*slot->queue))
		slot->queue->channel.raw->received(slot, *wc);
}

void kd_raw_control(struct kd_cqe *cqe, const struct kd_wc *wc)
{
	auto *raw = KD_CONTAINER(cqe, Raw, control_cqe);
	if (counts(*raw->channel.queues[0], *wc))
		raw->control_done(*wc);
}

void kd_raw_registered(struct kd_cqe *cqe, const struct kd_wc *wc)
{
	auto *slot = KD_CONTAINER(cqe, RawSlot, reg_cqe);
	if (counts(*slot->queue, *wc))
		slot->queue->channel.raw->registered(slot, *wc);
}

void kd_key_done(struct kd_cqe *cqe, const struct kd_wc *wc)
{
	auto *channel = KD_CONTAINER(cqe, kd_channel, key_cqe);
	if (counts(*channel->queues[0]))
		channel->keys_failed(*wc);
}

void kd_read_done(struct kd_cqe *cqe, const struct kd_wc *wc)
{
	auto *fetch = KD_CONTAINER(cqe, FetchSlot, cqe);
	if (counts(*fetch->queue, *wc))
		fetch->queue->channel.fetched(fetch, *wc);
}
