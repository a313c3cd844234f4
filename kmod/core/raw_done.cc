// SPDX-License-Identifier: GPL-2.0-only
// Work completions of a raw channel, and receives that wait for their memory to be registered.
// The receive queue is in no order with the send queue, which registers, so that such a
// receive is posted when that has been done, and with it those behind.
#include "channel.hh"
#include "raw.hh"

using namespace kd;

// The device is done with it.
void Raw::finish(RawSide &on, RawSlot *slot, int err, uint16_t status)
{
	Request *request;
	uint64_t old = 0;
	if (kd_pages *pages = std::exchange(slot->pages, nullptr)) {
		kd_pages_unmap(channel.pd, pages, fills(slot->opcode));
		kd_pages_free(pages);
	}
	if (is_atomic(slot->opcode) && !err)
		copy_bytes(&old, slot->buf.mem, sizeof(old));
	{
		SpinGuard guard(slot->queue->tx_lock);
		request = std::exchange(slot->request, nullptr);
		on.posted.remove(slot);
		on.free.push_front(slot);
	}
	request->part_done(err, status, old);
}

void Raw::sent(RawSlot *slot, const kd_wc &wc)
{
	// siw may flush a READ twice (Documentation/testing.md).
	if (wc.err) {
		SpinGuard guard(slot->queue->tx_lock);
		if (!slot->request)
			return;
	}
	if (wc.err && !wc.flushed)
		KD_FAIL(channel, wc.err, "a work request failed: %s", wc.status_name);
	if (!wc.err && slot->fixed && slot->opcode == KDIRECT_OP_READ)
		kd_fixed_sync_cpu(slot->fixed, slot->offset, slot->length);
	if (!wc.err && is_atomic(slot->opcode))
		kd_dma_sync_cpu(channel.pd, &slot->buf, slot->length);
	if (!wc.err && slot->opcode == KDIRECT_OP_LOCAL_INV)
		taken_back(slot->rkey);
	finish(sends, slot, wc.err, wc.status);
}

void Raw::received(RawSlot *slot, const kd_wc &wc)
{
	Request &request = *slot->request;
	int err = wc.err;
	uint32_t len = wc.byte_len;
	if (!wc.write && len > slot->length)
		len = slot->length;
	if (err && !wc.flushed)
		KD_FAIL(channel, err, "a receive failed: %s", wc.status_name);
	if (!err && wc.invalidated && !invalidated_by_peer(wc.rkey)) {
		KD_FAIL(channel, KD_EPROTO, "the peer invalidated key 0x%x, which is none of ours",
			wc.rkey);
		err = KD_EPROTO;
	}
	if (!err) {
		request.length = len;
		request.flags = uint8_t((wc.with_imm ? KDIRECT_COMPLETION_IMM : 0) |
					(wc.invalidated ? KDIRECT_COMPLETION_INV : 0) |
					(wc.write ? KDIRECT_COMPLETION_WRITE : 0));
		request.data = wc.with_imm ? wc.imm : wc.invalidated ? wc.rkey : 0;
		if (slot->fixed && len && !wc.write)
			kd_fixed_sync_cpu(slot->fixed, slot->offset, len);
	}
	slot->queue->rx.add();
	finish(recvs, slot, err, wc.status);
}

// --- receives that wait ------------------------------------------------------------------

void Raw::post_waiting()
{
	Queue &queue = *channel.queues[0];
	while (RawSlot *slot = waiting.front()) {
		if (queue.sealed || refusal() || slot->mr == RawSlot::Mr::Registering)
			return;
		if (slot->mr == RawSlot::Mr::Described) {
			if (channel.current() != State::Live)
				return;
			slot->mr = RawSlot::Mr::Registering;
			if (kd_post_frwr(queue.qp, &slot->reg_cqe, slot->frwr))
				KD_FAIL(channel, KD_EIO, "memory cannot be registered");
			return;
		}
		waiting.pop();
		kd_raw_wr wr{};
		wr.cqe = &slot->cqe;
		wr.len = slot->length;
		wr.fixed = slot->fixed;
		wr.offset = slot->offset;
		wr.pages = slot->pages;
		wr.frwr = slot->mr == RawSlot::Mr::Registered ? slot->frwr : nullptr;
		if (kd_post_raw_recv(queue.qp, slot->request->file->chain, &wr)) {
			KD_FAIL(channel, KD_EIO, "a receive cannot be posted");
			return;
		}
	}
}

void Raw::begin_waiting()
{
	Queue &queue = *channel.queues[0];
	bool any;
	{
		SpinGuard guard(queue.tx_lock);
		any = !waiting.empty();
		post_waiting();
	}
	if (any && queue.kind == Queue::queue_poll)
		queue.arm();
}

// Only that of a receive asks for a completion.
void Raw::registered(RawSlot *slot, const kd_wc &wc)
{
	Queue &queue = *slot->queue;
	if (wc.err) {
		if (!wc.flushed)
			KD_FAIL(channel, KD_EIO, "memory cannot be registered: %s", wc.status_name);
		return;
	}
	bool more;
	{
		SpinGuard guard(queue.tx_lock);
		slot->mr = RawSlot::Mr::Registered;
		post_waiting();
		more = !waiting.empty();
	}
	if (!more)
		waitq.wake(0);
	else if (queue.kind == Queue::queue_poll)
		kd_work_queue(&queue.service_work);
}
