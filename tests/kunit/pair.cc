// SPDX-License-Identifier: GPL-2.0-only
// Messages over a channel: its slots, credits and keys are looked at from inside.
#include "pair.hh"

#include "core_cases.h"

using namespace kd;
using Phase = OfferSlot::Phase;

// --- the channel -------------------------------------------------------------------------

Pair::Pair(struct kunit *t, uint32_t depth) : test(t), s(ShimEntry::may_sleep())
{
	kd_endpoint end_point{{}, 7999};
	kd_addr source;
	if (!kdk_address(&end_point.addr, &source)) {
		kdk_skip(test, "no RDMA device");
		return;
	}
	if (!listen(end_point) || !connect(end_point, source, depth))
		return;
	(void)eventually([&] { return find(); });
	live = from && to && eventually([&] {
		       return (from->current() == State::Live && to->current() == State::Live) ||
			      from->current() > State::Live;
	       }) &&
	       from->current() == State::Live;
	if (!live)
		kdk_fail(test, __FILE__, __LINE__, "it did not get live: %s",
			 from ? from->error.text : "there is none");
}

Pair::~Pair()
{
	end();
	for (Channel *c : {from, to})
		if (c)
			c->put(s);
}

// A function of its own, as connect(): the parameters are large, and the stack is not.
bool Pair::listen(const kd_endpoint &end_point)
{
	kd_listener_params l;
	kd_listener_defaults(&l);
	kd_format(l.name, sizeof(l.name), "kdkp");
	l.local = end_point;
	int err = kd_listener_new(kdk_net(), &l, &error);
	if (err)
		kdk_fail(test, __FILE__, __LINE__, "no listener: %s", error.text);
	listening = !err;
	return listening;
}

bool Pair::connect(const kd_endpoint &end_point, const kd_addr &source, uint32_t depth)
{
	kd_channel_params c;
	kd_channel_defaults(&c);
	kd_format(c.name, sizeof(c.name), "kdkc");
	c.source = source;
	c.peer = end_point;
	c.depth = depth;
	c.connect_timeout_ms = 60000;
	c.keep_alive_ms = 10000;
	int err = kd_channel_new(kdk_net(), &c, &error);
	if (err)
		kdk_fail(test, __FILE__, __LINE__, "no channel: %s", error.text);
	return !err;
}

bool Pair::find()
{
	MutexGuard guard(registry().lock, s);
	if (!from && (from = registry().find_channel(kdk_net(), "kdkc")))
		from->get();
	if (!to && (to = registry().find_channel(kdk_net(), "kdkp.0")))
		to->get();
	return (from && to) || (from && from->current() > State::Live);
}

void Pair::end()
{
	if (!listening)
		return;
	listening = false;
	(void)kd_channel_del(kdk_net(), "kdkc", &error);
	(void)kd_listener_del(kdk_net(), "kdkp", &error);
	EXPECT(eventually([&] {
		MutexGuard guard(registry().lock, s);
		return !registry().find_channel(kdk_net(), "kdkc") &&
		       !registry().find_channel(kdk_net(), "kdkp.0");
	}));
}

RxSlot *Pair::next()
{
	RxSlot *slot = nullptr;
	if (eventually([&] { return (slot = to->readable()) || to->current() > State::Live; }) &&
	    slot)
		return slot;
	kdk_fail(test, __FILE__, __LINE__,
		 "no message: %llu sent, %llu received, %u credits, %u slots, "
		 "%s (%s) and %s (%s)",
		 static_cast<unsigned long long>(from->next_seq.load()),
		 static_cast<unsigned long long>(to->order.received()), tx().window.available(),
		 tx().sends.nr_free, name(from->current()), from->error.text, name(to->current()),
		 to->error.text);
	return slot;
}

void Pair::settled()
{
	uint32_t depth = from->terms.depth;
	EXPECT(eventually([&] {
		uint32_t there, owed;
		{
			SpinGuard guard(rx().tx_lock);
			owed = rx().grant.owed();
		}
		{
			SpinGuard guard(tx().tx_lock);
			there = tx().window.available();
		}
		return there + owed == depth;
	}));
	EXPECT(eventually([&] {
		SpinGuard guard(tx().tx_lock);
		return tx().nr_free_offers == tx().nr_large;
	}));
	SpinGuard guard(tx().tx_lock);
	held = tx().claimed_offers;
	busy = 0;
	for (uint32_t i = 0; i < tx().nr_large; i++)
		busy += tx().offer_slots[i].phase != Phase::Free || tx().offer_slots[i].pages ||
			tx().offer_slots[i].waiter;
}

// --- what goes over it ---------------------------------------------------------------------

namespace
{

constexpr WaitStyle nowait{.nowait = true, .poll = false};

void expect_settled(struct kunit *test, Pair &pair)
{
	pair.settled();
	EXPECT_EQ(pair.held, 0U);
	EXPECT_EQ(pair.busy, 0U);
}

// Offers `len` bytes of new pages. Status of claim() or post_offer().
Status offer(Pair &pair, uint32_t len, uint8_t seed)
{
	Claim claim;
	kd_pages *pages = nullptr;
	if (int err = kd_pages_alloc(len, KD_PAGES_WRITER, &pages))
		return err;
	Status st = kdk_pages_fill(pages, len, seed) ? pair.from->claim(pair.s, nowait, true, claim)
						     : Status(KD_ENOMEM);
	if (st.ok())
		st = pair.from->post_offer(claim, pages, len, nullptr);
	if (!st.ok())
		kd_pages_free(pages);
	return st;
}

// Reads one message, which was offered.
void read_offer(struct kunit *test, Pair &pair, uint32_t len, uint8_t seed)
{
	RxSlot *slot = pair.next();
	ASSERT(slot && slot->pages);
	EXPECT_EQ(slot->length, len);
	EXPECT_EQ(kdk_pages_differ(slot->pages, len, seed), len);
	pair.to->consume(slot);
}

// One message of each kind goes across.
void still_works(struct kunit *test, Pair &pair)
{
	Claim claim;
	ASSERT_EQ(pair.from->claim(pair.s, nowait, false, claim).err(), 0);
	auto *bytes = static_cast<uint8_t *>(claim.slot->buf.mem) + sizeof(wire::DataHeader);
	kdk_fill(bytes, 50, 9);
	ASSERT_EQ(pair.from->post_eager(claim, 50).err(), 0);
	RxSlot *slot = pair.next();
	ASSERT(slot && !slot->pages);
	EXPECT_EQ(slot->length, 50U);
	pair.to->consume(slot);
	ASSERT_EQ(offer(pair, 20000, 3).err(), 0);
	read_offer(test, pair, 20000, 3);
}

} // namespace

// Over IB and RoCE the handshake's private data came padded.
void kdk_case_connects(struct kunit *test)
{
	Pair pair(test);
	if (!pair)
		return;
	EXPECT(pair.from->initiator && !pair.to->initiator);
	EXPECT_EQ(pair.from->terms.depth, 8U);
	EXPECT(same_bytes(&pair.from->terms, &pair.to->terms, sizeof(pair.to->terms)));
	EXPECT(pair.from->token == pair.to->token && pair.from->nonce == pair.to->nonce);
	EXPECT(pair.from->device && pair.from->device == pair.to->device);
	EXPECT_EQ(pair.from->queues[0]->step.load(), Step::Connected);
	EXPECT_EQ(pair.to->queues[0]->step.load(), Step::Accepted);
	EXPECT_EQ(pair.tx().nr_large, limits::offers(8));
	EXPECT_EQ(pair.tx().nr_mrs, pair.tx().nr_large);
	expect_settled(test, pair);
	EXPECT_EQ(pair.tx().window.available(), 8U);
	pair.end();
	EXPECT(pair.from->current() == State::Dead && pair.to->current() == State::Dead);
	EXPECT_EQ(pair.from->error.err, 0);
	EXPECT_EQ(pair.to->error.err, 0);
}

void kdk_case_eager(struct kunit *test)
{
	uint32_t len = kdk_param(test)->a, count = kdk_param(test)->b;
	Pair pair(test);
	if (!pair)
		return;
	uint32_t sent = 0, read = 0, most = 0;
	while (read < count) {
		Claim claim;
		while (sent < count && pair.from->claim(pair.s, nowait, false, claim).ok()) {
			auto *bytes = static_cast<uint8_t *>(claim.slot->buf.mem) +
				      sizeof(wire::DataHeader);
			kdk_fill(bytes, len, uint8_t(sent));
			ASSERT_EQ(pair.from->post_eager(claim, len).err(), 0);
			sent++;
			claim = {};
		}
		most = sent - read > most ? sent - read : most;
		if (sent == read) { // the credits are on their way
			kdk_sleep_ms(1);
			ASSERT(pair.from->current() == State::Live);
			continue;
		}
		RxSlot *slot = pair.next();
		ASSERT(slot != nullptr);
		ASSERT_EQ(slot->length, len);
		auto *bytes = static_cast<uint8_t *>(slot->buf.mem) + sizeof(wire::DataHeader);
		ASSERT_EQ(kdk_differs(bytes, len, uint8_t(read)), len);
		pair.to->consume(slot);
		read++;
	}
	EXPECT_EQ(most, pair.from->terms.depth); // all credits, and never more
	EXPECT(!pair.to->readable());
	expect_settled(test, pair);
}

void kdk_case_offers(struct kunit *test)
{
	uint32_t len = kdk_param(test)->a, count = kdk_param(test)->b;
	Pair pair(test);
	if (!pair)
		return;
	for (uint32_t sent = 0, read = 0; read < count;) {
		while (sent < count && sent - read < limits::max_offers) {
			Status st = offer(pair, len, uint8_t(sent));
			if (st.err() == KD_EAGAIN)
				break;
			ASSERT_EQ(st.err(), 0);
			sent++;
		}
		if (sent == read) { // its key is being taken back
			kdk_sleep_ms(1);
			ASSERT(pair.from->current() == State::Live);
			continue;
		}
		read_offer(test, pair, len, uint8_t(read));
		read++;
	}
	EXPECT(!pair.to->readable());
	expect_settled(test, pair);
	EXPECT_EQ(pair.tx().tx_rendezvous.get(), count);
}

// Each message that an MR describes has a key of its own.
void kdk_case_keys_change(struct kunit *test)
{
	Pair pair(test, 1);
	if (!pair)
		return;
	ASSERT_EQ(pair.tx().nr_large, 1U);
	OfferSlot &slot = pair.tx().offer_slots[0];
	uint32_t last = kd_mr_rkey(slot.mr);
	for (uint32_t i = 0; i < 20; i++) {
		int err = KD_EAGAIN;
		EXPECT(pair.eventually(
			[&] { return (err = offer(pair, 20000, uint8_t(i)).err()) != KD_EAGAIN; }));
		ASSERT_EQ(err, 0);
		EXPECT(kd_mr_rkey(slot.mr) != last);
		EXPECT_EQ(kd_mr_rkey(slot.mr) >> 8, last >> 8);
		last = kd_mr_rkey(slot.mr);
		read_offer(test, pair, 20000, uint8_t(i));
	}
	expect_settled(test, pair);
}

void kdk_case_exhaustion(struct kunit *test)
{
	Pair pair(test, 16);
	if (!pair)
		return;
	Claim claims[limits::max_offers], one_more;
	for (uint32_t round = 0; round < 3; round++) {
		for (Claim &claim : claims) {
			ASSERT_EQ(pair.from->claim(pair.s, nowait, true, claim).err(), 0);
			for (Claim &other : claims)
				if (&other != &claim && other.offer)
					EXPECT(other.offer->mr != claim.offer->mr);
		}
		EXPECT_EQ(pair.tx().nr_free_offers, 0U);
		EXPECT(!pair.from->may_claim(nowait, true));
		EXPECT_EQ(pair.from->claim(pair.s, nowait, true, one_more).err(), KD_EAGAIN);
		// credits are left: small messages still go
		ASSERT_EQ(pair.from->claim(pair.s, nowait, false, one_more).err(), 0);
		pair.from->unclaim(one_more);
		one_more = {};
		pair.from->unclaim(claims[3]);
		ASSERT_EQ(pair.from->claim(pair.s, nowait, true, claims[3]).err(), 0);
		for (Claim &claim : claims) {
			pair.from->unclaim(claim);
			claim = {};
		}
		expect_settled(test, pair);
	}
	still_works(test, pair);
	expect_settled(test, pair);
}

// What was claimed and given back leaves no gap in the stream, and loses no credit.
void kdk_case_unclaimed(struct kunit *test)
{
	Pair pair(test);
	if (!pair)
		return;
	for (uint32_t i = 0; i < 100; i++) {
		Claim claim;
		ASSERT_EQ(pair.from->claim(pair.s, nowait, i % 3 == 0, claim).err(), 0);
		pair.from->unclaim(claim);
		if (i % 20 == 0) {
			still_works(test, pair);
			expect_settled(test, pair);
		}
	}
	expect_settled(test, pair);
}

// An offer with a key that the peer must not be able to use: its READ is refused, which
// ends the channel at both ends.
void kdk_case_stale_key(struct kunit *test)
{
	enum { TakenBack, WrongRange, NeverRegistered };
	uint32_t what = kdk_param(test)->a;
	constexpr uint32_t len = 20000;
	Pair pair(test);
	if (!pair)
		return;
	still_works(test, pair);
	expect_settled(test, pair);
	Claim claim;
	kd_pages *pages = nullptr;
	ASSERT_EQ(kd_pages_alloc(len, KD_PAGES_WRITER, &pages), 0);
	if (!EXPECT_EQ(pair.from->claim(pair.s, nowait, true, claim).err(), 0))
		return kd_pages_free(pages);
	OfferSlot &o = *claim.offer;
	uint32_t old_key = kd_mr_rkey(o.mr);
	int err = kd_mr_map(o.mr, pages);
	EXPECT_EQ(err, 0);
	if (err) {
		kd_pages_free(pages);
		return pair.from->unclaim(claim);
	}
	Queue &queue = pair.tx();
	{
		SpinGuard guard(queue.tx_lock);
		wire::DataInfo info{wire::DataType::Offer,
				    len,
				    queue.grant.tell(),
				    what == TakenBack ? old_key : kd_mr_rkey(o.mr),
				    pair.from->next_seq.fetch_add(1),
				    kd_mr_address(o.mr) + (what == WrongRange ? 4096 : 0)};
		wire::encode_data(info, claim.slot->buf.mem);
		queue.sends.post(claim.slot, true);
		o.pages = pages; // the teardown's
		o.seq = info.seq;
		o.phase = Phase::Posted;
		queue.claimed_offers--;
		if (what == NeverRegistered)
			err = kd_post_send(queue.qp, &claim.slot->cqe, &claim.slot->buf,
					   sizeof(wire::DataHeader), true);
		else
			err = kd_post_offer(queue.qp, &o.reg_cqe, o.mr, &claim.slot->cqe,
					    &claim.slot->buf, sizeof(wire::DataHeader));
	}
	EXPECT_EQ(err, 0);
	EXPECT(pair.eventually([&] {
		return pair.from->current() == State::Dead && pair.to->current() == State::Dead;
	}));
	EXPECT(!pair.to->readable());
	{
		SpinGuard guard(pair.to->state_lock);
		err = pair.to->error.err;
	}
	// The READ, unless the other end, whose QP failed as well, has hung up before.
	EXPECT(err == KD_EIO || err == KD_ECONNRESET);
}

// Deleted while messages are offered: all pages come back, whoever has them.
void kdk_case_gone_with_offers(struct kunit *test)
{
	constexpr uint32_t len = 65536, count = limits::max_offers;
	Sleepable s = ShimEntry::may_sleep();
	kdk_range *range = kdk_range_create(len * count);
	auto *waiters = create_array<OfferWait>(s, count);
	if (!EXPECT(range && waiters))
		return kdk_range_destroy(range), destroy_array(s, waiters);
	int64_t before = kdk_range_pinned(range);
	{
		Pair pair(test);
		for (uint32_t i = 0; pair && i < count; i++) {
			Claim claim;
			kd_pages *pages;
			if (!EXPECT_EQ(kdk_range_pin(range, i * len, len, &pages), 0))
				break;
			Status st = pair.from->claim(s, nowait, true, claim);
			if (EXPECT_EQ(st.err(), 0))
				st = pair.from->post_offer(claim, pages, len, &waiters[i]);
			if (!st.ok()) {
				waiters[i].finished = true;
				kd_pages_free(pages);
			}
		}
		if (pair) {
			pair.end();
			for (uint32_t i = 0; i < count; i++)
				EXPECT(waiters[i].finished.load());
			EXPECT_EQ(pair.tx().nr_free_offers, count);
		}
	}
	kd_work_flush_all();
	EXPECT_EQ(kdk_range_pinned(range), before);
	kdk_range_destroy(range);
	destroy_array(s, waiters);
}

// The writer's own pages: its again, and uncharged, when the peer has the message.
void kdk_case_pinned_offer(struct kunit *test)
{
	constexpr uint32_t room = 262144, len = 100001;
	kdk_range *range = kdk_range_create(room);
	ASSERT(range != nullptr);
	int64_t before = kdk_range_pinned(range);
	Pair pair(test);
	for (uint32_t offset : {0U, 502U, 4016U, 8283U}) { // multiples of 251, as kdk_fill()
		Claim claim;
		OfferWait waiter;
		kd_pages *pages;
		if (!pair || !EXPECT_EQ(kdk_range_pin(range, offset, len, &pages), 0))
			break;
		EXPECT_EQ(kdk_range_pinned(range) - before, (offset % 4096 + len + 4095) / 4096);
		Status st = pair.from->claim(pair.s, nowait, true, claim);
		if (st.ok())
			st = pair.from->post_offer(claim, pages, len, &waiter);
		if (!EXPECT_EQ(st.err(), 0)) {
			kd_pages_free(pages);
			break;
		}
		st = pair.from->await_offer(pair.s, claim, waiter);
		EXPECT_EQ(st.err(), 0);
		EXPECT(waiter.finished.load() && waiter.delivered);
		EXPECT_EQ(kdk_range_pinned(range), before);
		read_offer(test, pair, len, uint8_t(1 + offset + offset / 251));
	}
	if (pair) {
		expect_settled(test, pair);
		EXPECT_EQ(pair.tx().tx_pinned_bytes.get(), 4ULL * len);
	}
	kdk_range_destroy(range);
}
