// SPDX-License-Identifier: GPL-2.0-only
// Sending messages. A writer claims a send slot and a credit, fills the slot
// without any lock, and posts. The number in the stream is given at the last
// moment, so that a writer who stumbles before leaves no gap.
#include "channel.hh"
#include "raw.hh"

using namespace kd;

namespace
{

// Gives a claimed or retired slot back. The owner's lock is held.
void give_back(Queue &queue, TxSlot *slot)
{
	queue.sends.free.push_front(slot); // still warm in the cache
	queue.sends.nr_free++;
}

// The queue's lock is held.
bool can_claim(const Queue &queue, bool large)
{
	return !queue.sealed && queue.window.available() && !queue.sends.free.empty() &&
	       (!large || queue.nr_free_offers);
}

} // namespace

bool kd_channel::ended() const
{
	State now = current();
	return now > State::Recovering || (now == State::Recovering && !resumes);
}

bool kd_channel::may_send() const
{
	return current() == State::Live && !peer_closing;
}

// What has its slot already is kept over an outage.
bool kd_channel::may_keep() const
{
	return current() >= State::Live && !ended() && !peer_closing;
}

bool kd_channel::send_ended() const
{
	return ended() || peer_closing;
}

int kd_channel::send_refusal() const
{
	if (send_ended())
		return KD_EPIPE;
	return fails_fast ? KD_ETIMEDOUT : 0;
}

bool kd_channel::claim_on(Queue &queue, bool large, Claim &out)
{
	SpinGuard guard(queue.tx_lock);
	if (!can_claim(queue, large))
		return false;
	out.queue = &queue;
	out.slot = queue.sends.free.pop();
	out.slot->claimed = true;
	queue.nr_claimed++;
	queue.sends.nr_free--;
	queue.window.take();
	out.offer = nullptr;
	if (!large)
		return true;
	queue.nr_free_offers--;
	queue.claimed_offers++;
	for (out.offer = queue.offer_slots; out.offer->phase != OfferSlot::Phase::Free;)
		out.offer++;
	out.offer->phase = OfferSlot::Phase::Claimed;
	return true;
}

// Visits the queues that a message of this style may take, the CPU's own first,
// until one returns true.
template <class Visit>
bool kd_channel::each_sender(WaitStyle style, const Visit &visit)
{
	bool use_poll = style.poll || nr_interrupt_queues == 0;
	uint32_t first = use_poll ? 1 + nr_interrupt_queues : 1;
	uint32_t count = use_poll ? nr_poll_queues : nr_interrupt_queues;
	uint32_t start = count > 1 ? kd_cpu() % count : 0;
	for (uint32_t i = 0; i < count; i++)
		if (visit(*queues[first + (start + i) % count]))
			return true;
	return false;
}

bool kd_channel::try_claim(WaitStyle style, bool large, Claim &out)
{
	return may_send() &&
	       each_sender(style, [&](Queue &queue) { return claim_on(queue, large, out); });
}

bool kd_channel::may_claim(WaitStyle style, bool large)
{
	return may_send() && each_sender(style, [&](Queue &queue) {
		       SpinGuard guard(queue.tx_lock);
		       return can_claim(queue, large);
	       });
}

// On success the caller posts or unclaims soon; with `large`, without sleeping.
Status kd_channel::claim(Sleepable s, WaitStyle style, bool large, Claim &out)
{
	if (int err = send_refusal())
		return err;
	if (try_claim(style, large, out))
		return {};
	if (has_poll_queues()) {
		poll_once(style.poll);
		if (try_claim(style, large, out))
			return {};
	}
	{
		Queue &queue = *queues[1];
		SpinGuard guard(queue.tx_lock);
		queue.credit_waits.add();
	}
	if (style.nowait)
		return KD_EAGAIN;
	int refused = 0;
	Status st = wait(s, tx_waitq, style.waiting(), KD_WAIT_INTERRUPTIBLE, KD_FOREVER, [&] {
		return (refused = send_refusal()) || try_claim(style, large, out);
	});
	return st.ok() ? Status(refused) : st;
}

void kd_channel::unclaim(const Claim &claim)
{
	Queue &queue = *claim.queue;
	{
		SpinGuard guard(queue.tx_lock);
		claim.slot->claimed = false;
		queue.nr_claimed--;
		give_back(queue, claim.slot);
		queue.window.give_back();
		if (claim.offer) {
			claim.offer->phase = OfferSlot::Phase::Free;
			queue.nr_free_offers++;
			queue.claimed_offers--;
		}
	}
	tx_waitq.wake(KD_WAKE_OUT);
}

bool kd_channel::offers_claimed()
{
	bool any = raw && raw->claimed();
	for (uint32_t i = 1; i < nr_queues; i++) {
		SpinGuard guard(queues[i]->tx_lock);
		any |= queues[i]->claimed_offers != 0 || queues[i]->claimed_io != 0;
	}
	return any;
}

// Hands a message that is kept to the device; tx_lock.
Status kd_queue::transmit(TxSlot *slot)
{
	wire::DataHeader header;
	copy_bytes(&header, slot->buf.mem, sizeof(header));
	header.credits = grant.tell();
	if (slot->offer) {
		header.rkey = kd_mr_rkey(slot->offer->mr);
		header.addr = kd_mr_address(slot->offer->mr);
	}
	copy_bytes(slot->buf.mem, &header, sizeof(header));
	bool signalled = slot->offer || signal_all || sends.nr_free == 0 ||
			 sends.unsignalled + 1 >= nr_tx / 2;
	sends.post(slot, signalled);
	if (slot->offer)
		return kd_post_offer(qp, &slot->offer->reg_cqe, slot->offer->mr, &slot->cqe,
				     &slot->buf, sizeof(header));
	return kd_post_send(qp, &slot->cqe, &slot->buf, uint32_t(sizeof(header)) + slot->length,
			    signalled);
}

// The rest of posting, common to both kinds of message. On failure the claim is
// still the caller's.
Status kd_channel::post_message(const Claim &claim, wire::DataInfo message)
{
	Queue &queue = *claim.queue;
	TxSlot *slot = claim.slot;
	Status st;
	{
		SpinGuard guard(queue.tx_lock);
		if (!may_keep())
			return KD_EPIPE;
		message.seq = next_seq.fetch_add(1, std::memory_order_relaxed);
		wire::encode_data(message, slot->buf.mem);
		slot->claimed = false;
		queue.nr_claimed--;
		slot->seq = message.seq;
		slot->offer = claim.offer;
		slot->length = message.type == wire::DataType::Eager ? message.length : 0;
		slot->kept = true;
		queue.kept.push_back(slot);
		queue.nr_kept++;
		if (claim.offer) {
			claim.offer->seq = message.seq;
			claim.offer->phase = OfferSlot::Phase::Posted;
			queue.claimed_offers--;
			queue.tx_rendezvous.add();
			if (claim.offer->waiter)
				queue.tx_pinned_bytes.add(message.length);
		}
		if (queue.carries)
			st = queue.transmit(slot);
		else if (claim.offer)
			tx_waitq.wake(KD_WAKE_OUT); // who takes the connection down waits for it
		queue.tx.add();
		queue.tx_bytes.add(message.length);
	}
	// It is kept, but this connection has a gap.
	if (!st.ok())
		KD_FAIL(*this, st.err(), "queue %u: cannot post a SEND (error %d)", queue.index,
			st.err());
	return {};
}

Status kd_channel::post_eager(const Claim &claim, uint32_t len)
{
	Status st = post_message(claim, {wire::DataType::Eager, len, 0, 0, 0, 0});
	if (!st.ok())
		unclaim(claim);
	return st;
}

// Takes over `pages` on success.
Status kd_channel::post_offer(const Claim &claim, kd_pages *pages, uint32_t len, OfferWait *waiter)
{
	OfferSlot &offer = *claim.offer;
	Status st = kd_mr_map(offer.mr, pages);
	if (st.ok()) {
		offer.pages = pages;
		offer.waiter = waiter;
		offer.mapped = true;
		st = post_message(claim, {wire::DataType::Offer, len, 0, 0, 0, 0});
		if (!st.ok()) {
			offer.pages = nullptr;
			offer.waiter = nullptr;
			offer.mapped = false;
			kd_mr_unmap(offer.mr, pages);
		}
	}
	if (!st.ok())
		unclaim(claim);
	return st;
}

// Until the pages are the caller's again. KD_EINTR: a fatal signal; the message
// stays on its way.
Status kd_channel::await_offer(Sleepable s, const Claim &claim, OfferWait &waiter)
{
	Status st = wait_event(s, tx_waitq, KD_WAIT_KILLABLE, KD_FOREVER,
			       [&] { return waiter.finished.load(std::memory_order_acquire); });
	SpinGuard guard(claim.queue->tx_lock);
	if (!waiter.finished) {
		claim.offer->waiter = nullptr;
		return st;
	}
	return waiter.delivered ? 0 : KD_EPIPE;
}

// The peer has fetched an offered message: take its key back.
void kd_channel::offer_fetched(uint64_t seq, uint32_t queue_index)
{
	if (queue_index >= nr_queues) {
		KD_FAIL(*this, KD_EPROTO, "the peer fetched a message from queue %u of %u",
			queue_index, nr_queues - 1);
		return;
	}
	Queue &queue = *queues[queue_index];
	OfferSlot *offer = nullptr;
	Status st;
	{
		SpinGuard guard(queue.tx_lock);
		for (uint32_t i = 0; i < queue.nr_large && !offer; i++) {
			OfferSlot &o = queue.offer_slots[i];
			if (!queue.fresh && o.phase == OfferSlot::Phase::Posted && o.seq == seq)
				offer = &o;
		}
		if (offer) {
			offer->phase = OfferSlot::Phase::Invalidating;
			if (offer->waiter)
				offer->waiter->delivered = true;
			if (queue.carries)
				st = kd_post_invalidate(queue.qp, &offer->inv_cqe, offer->mr);
		}
	}
	if (!offer)
		KD_FAIL(*this, KD_EPROTO, "the peer fetched message %llu, which was not offered",
			static_cast<unsigned long long>(seq));
	else if (!st.ok())
		KD_FAIL(*this, st.err(), "queue %u: cannot post LOCAL_INV (error %d)", queue.index,
			st.err());
}

// The key is gone (or the QP is): give the pages back.
void kd_channel::release_offer(OfferSlot *offer)
{
	Queue &queue = *offer->queue;
	if (std::exchange(offer->mapped, false))
		kd_mr_unmap(offer->mr, offer->pages);
	kd_pages_free(offer->pages);
	offer->pages = nullptr;
	Request *request = nullptr;
	bool delivered = false;
	{
		SpinGuard guard(queue.tx_lock);
		offer->phase = OfferSlot::Phase::Free;
		queue.nr_free_offers++;
		if (OfferWait *waiter = std::exchange(offer->waiter, nullptr)) {
			request = waiter->request;
			delivered = waiter->delivered;
			waiter->finished.store(true, std::memory_order_release);
		}
	}
	if (request)
		request->part_done(delivered ? 0 : KD_EPIPE, 0, 0);
	tx_waitq.wake(KD_WAKE_OUT);
}

// The peer has let go of the oldest message. False: there is none; tx_lock.
bool kd_queue::let_go_of_one()
{
	TxSlot *slot = kept.pop();
	if (!slot)
		return false;
	nr_kept--;
	slot->kept = false;
	let_go = slot->seq + 1;
	if (!slot->posted)
		give_back(*this, slot);
	return true;
}

void kd_channel::credit_received(Queue &queue, uint32_t credits)
{
	auto update = CreditWindow::Update::Old;
	{
		SpinGuard guard(queue.tx_lock);
		uint32_t before = queue.window.granted();
		// The peer may be live before us, and its readers go on.
		if (queue.fresh)
			queue.early_credits = credits;
		else
			update = queue.window.update(credits);
		for (; before != queue.window.granted(); before++)
			if (!queue.let_go_of_one())
				update = CreditWindow::Update::Lie;
	}
	if (update == CreditWindow::Update::Lie)
		KD_FAIL(*this, KD_EPROTO,
			"queue %u: the peer granted %u credits, more than were used", queue.index,
			credits);
	if (update == CreditWindow::Update::Grew)
		tx_waitq.wake(KD_WAKE_OUT);
}

// Once everything has arrived and the peer has said goodbye, it may be gone already.
void kd_channel::send_failed(Queue &queue, const kd_wc &wc)
{
	if (end_of_stream) {
		peer_gone.store(true, std::memory_order_release);
		kick();
		return;
	}
	KD_FAIL(*this, KD_EIO, "queue %u: SEND failed: %s", queue.index, wc.status_name);
}

// A SEND on a data queue has completed, and with it all before it.
void kd_channel::sent(TxSlot *slot, const kd_wc &wc)
{
	Queue &queue = *slot->queue;
	RxSlot *ping_waits = nullptr;
	bool pinged = false;
	{
		SpinGuard guard(queue.tx_lock);
		for (TxSlot *done = nullptr; done != slot && (done = queue.sends.retire());) {
			switch (done->use) {
			case TxSlot::Use::Message:
				if (!done->kept)
					give_back(queue, done);
				break;
			case TxSlot::Use::Ping:
				queue.ping.sending = false;
				pinged = true;
				break;
			case TxSlot::Use::Pong:
				queue.pong.sending = false;
				ping_waits = std::exchange(queue.pong.next, nullptr);
				break;
			case TxSlot::Use::Control: break;
			}
		}
	}
	if (wc.err && !wc.flushed)
		send_failed(queue, wc);
	if (ping_waits && !wc.err)
		queue.answer_ping(ping_waits);
	if (pinged)
		ping_waitq.wake(0);
	tx_waitq.wake(KD_WAKE_OUT);
}
