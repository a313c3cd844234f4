// SPDX-License-Identifier: GPL-2.0-only
// The control queue: credits, fetched messages, keep-alive, hello and goodbye.
// What is to be said is state, not a list of messages: control_pump() says all
// that is due in one message whenever one may go out.
//
// Its own credits cannot lock up: the last one is kept for a message that gives
// credits back, so the two ends never both wait without one.
#include "channel.hh"

using namespace kd;

namespace
{
constexpr uint32_t credits_due = wire::control_receives / 2;
}

void kd_channel::control_raise(uint16_t flags)
{
	{
		SpinGuard guard(ctrl_lock);
		ctrl_flags |= flags;
	}
	control_pump();
}

// Takes as much of what is due as one message holds.
void kd_channel::control_collect(wire::ControlInfo &info, FetchList &told)
{
	info.flags = std::exchange(ctrl_flags, uint16_t(0));
	if (info.flags & wire::Bye)
		info.last = bye_last;
	uint64_t queues_owing = owing.load(std::memory_order_relaxed);
	while (queues_owing && info.nr_credits < wire::max_credit_entries) {
		uint32_t bit = uint32_t(__builtin_ctzll(queues_owing));
		queues_owing &= queues_owing - 1;
		owing.fetch_and(~(1ULL << bit));
		Queue &queue = *queues[bit + 1];
		SpinGuard guard(queue.tx_lock);
		if (queue.grant.owed()) // a data message may have told it meanwhile
			info.credit[info.nr_credits++] = {uint16_t(queue.index),
							  queue.grant.tell()};
	}
	// Until all before it have arrived, an outage could make us forget it.
	done_waits = !done.empty();
	uint64_t arrived;
	{
		SpinGuard guard(rx_lock);
		arrived = order.received();
	}
	auto in_order = [arrived](const FetchSlot &fetch) { return fetch.seq < arrived; };
	while (info.nr_done < wire::max_done_entries) {
		FetchSlot *fetch = done.take(in_order);
		if (!fetch)
			break;
		info.done[info.nr_done++] = {fetch->seq, uint16_t(fetch->queue->index)};
		told.push_back(fetch);
	}
	done_waits = !done.empty();
	// The peer leaves when it has this: it goes out with the last of the rest.
	if (!done.empty() && (info.flags & wire::ByeReply)) {
		info.flags &= uint16_t(~wire::ByeReply);
		ctrl_flags |= wire::ByeReply;
	}
}

// Sends one message if something is due and it may go out. False: not (any more).
bool kd_channel::control_send_one(FetchList &told)
{
	Queue &control = *queues[0];
	uint32_t owed;
	{
		SpinGuard guard(control.tx_lock);
		owed = control.grant.owed();
	}
	uint32_t credits = ctrl_window.available();
	// After one that could not be sent, the peer would not make sense of the next. An
	// initiator speaks first (iWARP).
	if (broken || !(initiator || control.hello) || control.sealed ||
	    control.sends.free.empty() || credits < (owed ? 1u : 2u))
		return false;
	// The two kinds of message take turns.
	map_turn = !map_turn;
	if (map_turn && map_send_one())
		return true;
	wire::ControlInfo info;
	control_collect(info, told);
	if (!info.flags && !info.nr_credits && !info.nr_done && owed < credits_due)
		return !map_turn && map_send_one();
	{
		SpinGuard guard(control.tx_lock);
		info.credits = control.grant.tell();
	}
	TxSlot *slot = control.sends.free.pop();
	uint32_t len = wire::encode_control(info, slot->buf.mem);
	control.sends.post(slot, true);
	ctrl_window.take();
	ctrl_tx.add();
	int err = kd_post_send(control.qp, &slot->cqe, &slot->buf, len, true);
	if (err)
		KD_FAIL(*this, err, "control queue: cannot post a SEND (error %d)", err);
	return !err;
}

void kd_channel::control_pump()
{
	bool freed;
	{
		SpinGuard guard(ctrl_lock);
		FetchList told;
		while (control_send_one(told))
			;
		freed = !told.empty();
		SpinGuard rx(rx_lock);
		while (FetchSlot *fetch = told.pop())
			fetch->queue->free_fetches.push_back(fetch);
	}
	if (freed)
		consider_fetching();
}

void kd_channel::control_sent(TxSlot *slot, const kd_wc &wc)
{
	Queue &control = *queues[0];
	bool keys_sent = false;
	{
		SpinGuard guard(ctrl_lock);
		for (TxSlot *sent = nullptr; sent != slot && (sent = control.sends.retire());) {
			control.sends.free.push_back(sent);
			keys_sent |= sent == keys_sending;
		}
		if (keys_sent)
			keys_sending = nullptr;
	}
	if (keys_sent)
		kick();
	if (wc.err && !wc.flushed)
		send_failed(control, wc);
	if (!wc.err)
		control_pump();
}

void kd_channel::control_received(const wire::ControlInfo &info)
{
	ctrl_rx.add();
	bool ok;
	{
		SpinGuard guard(ctrl_lock);
		ok = ctrl_window.update(info.credits) != CreditWindow::Update::Lie;
	}
	if (!ok) {
		KD_FAIL(*this, KD_EPROTO,
			"control queue: the peer granted %u credits, more than were used",
			info.credits);
		return;
	}
	for (uint32_t i = 0; i < info.nr_credits; i++) {
		if (info.credit[i].queue >= nr_queues) {
			KD_FAIL(*this, KD_EPROTO, "the peer granted credits for queue %u of %u",
				info.credit[i].queue, nr_queues - 1);
			return;
		}
		credit_received(*queues[info.credit[i].queue], info.credit[i].credits);
	}
	for (uint32_t i = 0; i < info.nr_done; i++)
		offer_fetched(info.done[i].seq, info.done[i].queue);

	uint16_t answer = 0;
	if (info.flags & wire::ControlHello) {
		if (initiator || queues[0]->hello.exchange(true)) {
			KD_FAIL(*this, KD_EPROTO, "control queue: unexpected hello");
			return;
		}
		kick();
	}
	if (info.flags & wire::Start) {
		if (!initiator || started.exchange(true)) {
			KD_FAIL(*this, KD_EPROTO, "control queue: unexpected start");
			return;
		}
		kick();
	}
	if (info.flags & wire::KeepAlive)
		answer |= wire::KeepAliveReply;
	if (info.flags & wire::KeepAliveReply)
		keep_alives.add();
	if (info.flags & wire::Bye) {
		bool valid;
		{
			SpinGuard guard(rx_lock);
			valid = !peer_bye && info.last >= order.received();
			peer_bye = true;
			peer_last = info.last;
		}
		if (!valid) {
			KD_FAIL(*this, KD_EPROTO,
				"control queue: unexpected goodbye after %llu messages",
				static_cast<unsigned long long>(info.last));
			return;
		}
		peer_closing.store(true, std::memory_order_release);
		tx_waitq.wake(KD_WAKE_OUT | KD_WAKE_END);
		ping_waitq.wake(KD_WAKE_END);
		answer_bye();
	}
	if (info.flags & wire::ByeReply) {
		if (!bye_said) {
			KD_FAIL(*this, KD_EPROTO, "control queue: an answer to no goodbye");
			return;
		}
		bye_answered.store(true, std::memory_order_release);
		kick();
	}
	if (answer)
		control_raise(answer);
	else
		control_pump();
}
