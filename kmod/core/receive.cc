// SPDX-License-Identifier: GPL-2.0-only
// Receiving. A small message stays in its receive slot until it is read; the
// slot is posted again only then, which is all the flow control there is.
#include "channel.hh"

using namespace kd;

void kd_queue::received(RxSlot *slot, const kd_wc &wc)
{
	if (wc.err) {
		// Flushed receives follow an error that somebody else reports; if nobody
		// does, the connection is lost all the same.
		if (!wc.flushed)
			KD_FAIL(channel, KD_EIO, "queue %u: receive failed: %s", index,
				wc.status_name);
		else if (channel.current() == State::Live && !channel.peer_closing)
			KD_FAIL(channel, KD_ECONNRESET, "queue %u: the connection was lost", index);
		return;
	}
	if (wc.byte_len > slot->buf.size) {
		KD_FAIL(channel, KD_EPROTO, "queue %u: %u bytes in a receive of %u", index,
			wc.byte_len, slot->buf.size);
		return;
	}
	if (wc.invalidated) {
		KD_FAIL(channel, KD_EPROTO,
			"queue %u: the peer invalidated key %#x, which no request registered",
			index, wc.rkey);
		return;
	}
	kd_dma_sync_cpu(channel.pd, &slot->buf, wc.byte_len);
	if (!channel.sign_of_life.load(std::memory_order_relaxed))
		channel.sign_of_life.store(true, std::memory_order_relaxed);
	rx.add();

	if (index == 0 && wire::is_map_message(slot->buf.mem, wc.byte_len)) {
		wire::MapInfo info;
		if (!wire::decode_map(slot->buf.mem, wc.byte_len, info)) {
			KD_FAIL(channel, KD_EPROTO,
				"control queue: malformed message about a mapping, of %u bytes",
				wc.byte_len);
			return;
		}
		repost(slot, true);
		channel.map_received(info);
		return;
	}
	if (index == 0) {
		wire::ControlInfo info;
		if (!wire::decode_control(slot->buf.mem, wc.byte_len, info)) {
			KD_FAIL(channel, KD_EPROTO, "control queue: malformed message of %u bytes",
				wc.byte_len);
			return;
		}
		repost(slot, true);
		channel.control_received(info);
		return;
	}

	wire::DataInfo info;
	if (!wire::decode_data(slot->buf.mem, wc.byte_len, channel.terms.eager_limit,
			       channel.terms.max_message, info)) {
		KD_FAIL(channel, KD_EPROTO, "queue %u: malformed message of %u bytes", index,
			wc.byte_len);
		return;
	}
	if (info.type == wire::DataType::Hello) {
		hello_received(slot, info);
		return;
	}
	if (!hello) {
		KD_FAIL(channel, KD_EPROTO, "queue %u: a message before the hello", index);
		return;
	}
	channel.credit_received(*this, info.credits);
	switch (info.type) {
	case wire::DataType::Hello: return;
	case wire::DataType::Eager:
	case wire::DataType::Offer: channel.message_arrived(slot, info); return;
	case wire::DataType::Ping: answer_ping(slot); return;
	case wire::DataType::Pong: pong_arrived(slot, info); return;
	}
}

// What it says is looked at when the channel carries on.
void kd_queue::hello_received(RxSlot *slot, const wire::DataInfo &info)
{
	if (hello) {
		KD_FAIL(channel, KD_EPROTO, "queue %u: unexpected hello", index);
		return;
	}
	// The channel may be live, and its users send, as soon as it is seen: post first.
	repost(slot, false);
	peer_received = info.seq;
	peer_holds = info.credits;
	hello.store(true, std::memory_order_release);
	channel.kick();
}

// Without a connection the slot is posted with the next one.
void kd_queue::repost(RxSlot *slot, bool credit)
{
	Status st;
	uint32_t owed = 0;
	{
		SpinGuard guard(tx_lock);
		slot->held = false;
		if (!receives)
			return;
		st = kd_post_recv(qp, &slot->cqe, &slot->buf, slot->buf.size);
		if (st.ok() && credit) {
			grant.posted();
			owed = grant.owed();
		}
	}
	if (!st.ok()) {
		KD_FAIL(channel, st.err(), "queue %u: cannot post a receive (error %d)", index,
			st.err());
		return;
	}
	// The control queue's own are told with whatever it says.
	if (index == 0)
		return;
	uint32_t due = channel.terms.depth / 2;
	if (owed < (due ? due : 1))
		return;
	uint64_t bit = 1ULL << (index - 1);
	if (!(channel.owing.fetch_or(bit) & bit))
		channel.control_pump();
}

void kd_channel::message_arrived(RxSlot *slot, const wire::DataInfo &info)
{
	Queue &queue = *slot->queue;
	bool offered = info.type == wire::DataType::Offer;
	if (offered && !needs_reads()) {
		KD_FAIL(*this, KD_EPROTO, "queue %u: an offer where no RDMA READ was agreed on",
			queue.index);
		return;
	}
	slot->length = info.length;
	slot->addr = info.addr;
	slot->rkey = info.rkey;
	slot->ready = !offered;
	slot->wants_fetch = offered;
	queue.rx_bytes.add(info.length);
	if (offered)
		queue.rx_rendezvous.add();
	queue.rx_messages.add();
	bool valid, in_order, fetchable;
	slot->held = true; // nobody else has it yet
	{
		SpinGuard guard(rx_lock);
		uint64_t before = order.received();
		valid = !(peer_bye && info.seq >= peer_last) && order.insert(info.seq, slot);
		in_order = order.received() != before;
		fetchable = order.to_fetch(fetch_cursor);
	}
	if (!valid) {
		KD_FAIL(*this, KD_EPROTO,
			"queue %u: message %llu is a repetition, or out of the window", queue.index,
			static_cast<unsigned long long>(info.seq));
		return;
	}
	if (in_order)
		message_complete();
	if (fetchable)
		consider_fetching();
}

void kd_channel::message_complete()
{
	if (peer_closing)
		answer_bye();
	rx_waitq.wake(KD_WAKE_IN);
	if (done_waits)
		control_pump();
}

// Once everything that the peer sent before its goodbye is here.
void kd_channel::answer_bye()
{
	bool all = false;
	{
		SpinGuard guard(rx_lock);
		if (peer_bye && !bye_reply_raised && order.received() == peer_last)
			all = bye_reply_raised = true;
	}
	if (!all)
		return;
	end_of_stream.store(true, std::memory_order_release);
	rx_waitq.wake(KD_WAKE_IN | KD_WAKE_END);
	control_raise(wire::ByeReply);
	kick();
}

// The first message in order, unless it is lost because the channel was deleted.
RxSlot *kd_channel::readable()
{
	if (deleted_here())
		return nullptr;
	SpinGuard guard(rx_lock);
	return order.front();
}

// The same, for a read(), which RECVs come before.
RxSlot *kd_channel::readable_now()
{
	if (deleted_here())
		return nullptr;
	SpinGuard guard(rx_lock);
	return recvs_first() ? nullptr : order.front();
}

// The first message has been read.
void kd_channel::consume(RxSlot *slot)
{
	kd_pages *pages = std::exchange(slot->pages, nullptr);
	{
		SpinGuard guard(rx_lock);
		order.pop();
		if (pages)
			fetched_bytes -= slot->length;
	}
	kd_pages_free(pages);
	slot->queue->repost(slot, true);
	if (pages)
		consider_fetching();
}

int kd_channel::read_end() const
{
	// What a deletion here has taken from the readers is no end of the channel.
	auto unread = [&] {
		SpinGuard guard(rx_lock);
		return order.front() != nullptr;
	};
	if (end_of_stream && !(deleted_here() && unread()))
		return 0;
	// Until the queues are drained, messages still arrive.
	if (current() != State::Dead && !deleted_here())
		return -1;
	SpinGuard guard(state_lock);
	if (error.err)
		return error.err;
	return delete_requested ? KD_ENODEV : 0;
}

bool kd_channel::may_read()
{
	return readable_now() || (read_end() >= 0 && !readable());
}
