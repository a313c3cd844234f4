// SPDX-License-Identifier: GPL-2.0-only
// Messages over an outage. A message stays in its slot until the peer has let go of it; with
// the hellos of a new connection both ends say what has arrived, and what has not is sent
// once more, in order. Everything here is called by Channel::run() alone.
#include "channel.hh"

using namespace kd;

// All slots are as before the first connection, but for messages and claims.
void kd_queue::forget_connection()
{
	PingWait *waiter;
	{
		SpinGuard rx(channel.rx_lock);
		free_fetches = {};
		for (uint32_t i = 0; i < nr_large; i++)
			free_fetches.push_back(&fetch_slots[i]);
	}
	{
		SpinGuard tx(tx_lock);
		sends = {};
		for (uint32_t i = 0; i < nr_tx; i++) {
			TxSlot &slot = tx_slots[i];
			slot.posted = false;
			if (&slot == ping.slot || &slot == pong.slot || slot.kept || slot.claimed)
				continue;
			sends.free.push_back(&slot);
			sends.nr_free++;
		}
		grant.reset();
		early_credits = 0;
		fresh = true;
		hello = false;
		waiter = std::exchange(ping.waiter, nullptr);
		ping.sending = ping.waiting = false;
		pong.sending = false;
		pong.next = nullptr;
		if (waiter)
			__atomic_store_n(&waiter->lost, true, __ATOMIC_RELEASE);
	}
	if (waiter)
		channel.ping_waitq.wake(0);
}

Status kd_queue::post_receives()
{
	Status st;
	SpinGuard guard(tx_lock);
	holds = 0;
	for (uint32_t i = 0; i < nr_rx && st.ok(); i++) {
		RxSlot &slot = rx_slots[i];
		holds += slot.held;
		if (!slot.held)
			st = kd_post_recv(qp, &slot.cqe, &slot.buf, slot.buf.size);
	}
	receives = st.ok();
	return st;
}

void kd_queue::say_hello()
{
	Status st = KD_EPIPE;
	{
		SpinGuard guard(tx_lock);
		TxSlot *slot = sealed ? nullptr : sends.free.pop();
		if (slot) {
			sends.nr_free--;
			wire::encode_data(
				{wire::DataType::Hello, 0, holds, 0, channel.arrived_before, 0},
				slot->buf.mem);
			sends.post(slot, true);
			st = kd_post_send(qp, &slot->cqe, &slot->buf, sizeof(wire::DataHeader),
					  true);
		}
	}
	if (!st.ok())
		KD_FAIL(channel, st.err(), "queue %u: cannot send", index);
}

// What the peer has fetched is done with; the rest is offered anew.
Status kd_queue::map_offers(Sleepable)
{
	for (uint32_t i = 0; i < nr_large; i++) {
		OfferSlot &offer = offer_slots[i];
		if (offer.phase < OfferSlot::Phase::Posted)
			continue;
		if (offer.seq < peer_received) {
			{
				SpinGuard guard(tx_lock);
				if (offer.waiter)
					offer.waiter->delivered = true;
			}
			channel.release_offer(&offer);
			continue;
		}
		if (Status st = kd_mr_map(offer.mr, offer.pages); !st.ok())
			return st;
		offer.mapped = true;
		SpinGuard guard(tx_lock);
		offer.phase = OfferSlot::Phase::Posted;
	}
	return {};
}

void kd_queue::carry_on(Sleepable s)
{
	if (Status st = map_offers(s); !st.ok()) {
		KD_FAIL(channel, st.err(), "queue %u: cannot offer a message anew (error %d)",
			index, st.err());
		return;
	}
	Status st;
	uint32_t arrived = 0, again = 0, early;
	bool lie;
	{
		SpinGuard guard(tx_lock);
		bool taken_back = false; // what it had said to have fetched
		kept.each([&](const TxSlot &slot) {
			const OfferSlot *offer = slot.offer;
			arrived += slot.seq < peer_received;
			taken_back |= slot.seq >= peer_received && offer &&
				      (offer->phase != OfferSlot::Phase::Posted ||
				       offer->seq != slot.seq);
		});
		lie = peer_received < let_go || peer_received > channel.next_seq ||
		      peer_holds > arrived || taken_back;
		while (!lie && arrived > peer_holds && let_go_of_one())
			arrived--;
		window.open(channel.terms.depth, nr_kept + nr_claimed);
		carries = !lie;
		fresh = false;
		early = early_credits;
		kept.each([&](TxSlot &slot) {
			if (lie || !st.ok() || slot.seq < peer_received)
				return;
			st = transmit(&slot);
			again++;
		});
	}
	channel.replayed.add(again);
	if (!lie)
		channel.credit_received(*this, early);
	if (lie)
		KD_FAIL(channel, KD_EPROTO,
			"queue %u: the peer says that %llu messages have arrived and %u are held, "
			"which cannot be",
			index, static_cast<unsigned long long>(peer_received), peer_holds);
	else if (!st.ok())
		KD_FAIL(channel, st.err(), "queue %u: cannot post a SEND (error %d)", index,
			st.err());
}
