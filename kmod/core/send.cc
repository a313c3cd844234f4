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

bool kd_channel::may_send() const
{
	return current() == State::Live && !peer_closing;
}

bool kd_channel::send_ended() const
{
	return current() > State::Live || peer_closing;
}

bool kd_channel::claim_on(Queue &queue, bool large, Claim &out)
{
	SpinGuard guard(queue.tx_lock);
	if (!can_claim(queue, large))
		return false;
	out.queue = &queue;
	out.slot = queue.sends.free.pop();
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
	if (send_ended())
		return KD_EPIPE;
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
	Status st = wait(s, tx_waitq, style.waiting(), KD_WAIT_INTERRUPTIBLE, KD_FOREVER,
			 [&] { return send_ended() || try_claim(style, large, out); });
	if (out.slot)
		return {};
	return st.ok() ? KD_EPIPE : st;
}

void kd_channel::unclaim(const Claim &claim)
{
	Queue &queue = *claim.queue;
	{
		SpinGuard guard(queue.tx_lock);
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

// The rest of posting, common to both kinds of message. On failure the claim is
// still the caller's.
Status kd_channel::post_message(const Claim &claim, const wire::DataInfo &message)
{
	Queue &queue = *claim.queue;
	SendRing &ring = queue.sends;
	wire::DataInfo info = message;
	bool large = claim.offer != nullptr;
	Status st;
	{
		SpinGuard guard(queue.tx_lock);
		if (queue.sealed || !may_send())
			return KD_EPIPE;
		info.seq = next_seq.fetch_add(1, std::memory_order_relaxed);
		info.credits = queue.grant.tell();
		wire::encode_data(info, claim.slot->buf.mem);
		bool signalled = large || queue.signal_all || ring.nr_free == 0 ||
				 ring.unsignalled + 1 >= queue.nr_tx / 2;
		ring.post(claim.slot, signalled);
		if (large) {
			claim.offer->seq = info.seq;
			claim.offer->phase = OfferSlot::Phase::Posted;
			queue.claimed_offers--;
			st = kd_post_offer(queue.qp, &claim.offer->reg_cqe, claim.offer->mr,
					   &claim.slot->cqe, &claim.slot->buf,
					   sizeof(wire::DataHeader));
			queue.tx_rendezvous.add();
			if (claim.offer->waiter)
				queue.tx_pinned_bytes.add(info.length);
		} else {
			st = kd_post_send(queue.qp, &claim.slot->cqe, &claim.slot->buf,
					  uint32_t(sizeof(wire::DataHeader)) + info.length,
					  signalled);
		}
		queue.tx.add();
		queue.tx_bytes.add(info.length);
	}
	// A number was used up: the stream has a gap, so the channel ends here, and
	// teardown takes care of the slots.
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
		st = post_message(claim, {wire::DataType::Offer, len, 0, kd_mr_rkey(offer.mr), 0,
					  kd_mr_address(offer.mr)});
		if (!st.ok()) {
			offer.pages = nullptr;
			offer.waiter = nullptr;
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
			if (o.phase == OfferSlot::Phase::Posted && o.seq == seq)
				offer = &o;
		}
		if (offer) {
			offer->phase = OfferSlot::Phase::Invalidating;
			if (offer->waiter)
				offer->waiter->delivered = true;
			if (!queue.sealed)
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

void kd_channel::credit_received(Queue &queue, uint32_t credits)
{
	CreditWindow::Update update;
	{
		SpinGuard guard(queue.tx_lock);
		update = queue.window.update(credits);
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
			case TxSlot::Use::Message: give_back(queue, done); break;
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
