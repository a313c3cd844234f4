// SPDX-License-Identifier: GPL-2.0-only
// How far the connection of a queue has come, and the phases of an offered message:
// every state with every event.
#include "core_cases.h"
#include "lone.hh"

using namespace kd;

namespace
{

using Phase = OfferSlot::Phase;

wire::Reply good_reply(LoneChannel &channel, uint32_t queue)
{
	wire::Reply reply;
	const limits::Terms &t = channel->terms;
	wire::encode_reply({queue, t.depth, t.eager_limit, t.max_message, 0x7001}, reply);
	return reply;
}

kd_cm_event event_of(kd_cm_event_type type, const wire::Reply &reply)
{
	kd_cm_event event{};
	event.type = type;
	event.name = "an event";
	event.reads_in = event.reads_out = 1;
	if (type == KD_CM_ESTABLISHED) {
		event.data = reinterpret_cast<const uint8_t *>(&reply);
		event.data_len = sizeof(reply);
	}
	return event;
}

struct Outcome {
	Step step;
	int error;
};

Outcome outcome(Step step, kd_cm_event_type type)
{
	switch (type) {
	case KD_CM_ADDR_RESOLVED: return {step == Step::Resolving ? Step::Resolved : step, 0};
	case KD_CM_ROUTE_RESOLVED: return {step == Step::Routing ? Step::Routed : step, 0};
	case KD_CM_ESTABLISHED: return {step == Step::Connecting ? Step::Connected : step, 0};
	case KD_CM_ADDR_ERROR:
	case KD_CM_ROUTE_ERROR:
	case KD_CM_UNREACHABLE: return {step, KD_EHOSTUNREACH};
	case KD_CM_CONNECT_ERROR:
	case KD_CM_DISCONNECTED: return {step, KD_ECONNRESET};
	case KD_CM_REJECTED: return {step, KD_ECONNREFUSED};
	case KD_CM_DEVICE_REMOVAL: return {step, KD_ENODEV};
	case KD_CM_CONNECT_REQUEST:
	case KD_CM_OTHER: break;
	}
	return {step, 0};
}

} // namespace

void kdk_case_cm_event_at_step(struct kunit *test)
{
	Step step = Step(kdk_param(test)->a);
	auto type = kd_cm_event_type(kdk_param(test)->b);
	LoneChannel channel(test);
	if (!channel)
		return;
	channel.set(State::Dead);
	Queue &queue = channel.queue(0);
	queue.step = step;
	wire::Reply reply = good_reply(channel, 0);
	kd_cm_event event = event_of(type, reply);
	kd_queue_cm_event(&queue, &event);
	Outcome wanted = outcome(step, type);
	EXPECT_EQ(queue.step.load(), wanted.step);
	EXPECT_EQ(channel.error(), wanted.error);
	EXPECT_EQ(channel->token,
		  wanted.step == Step::Connected && step == Step::Connecting ? 0x7001 : 0);
	// An error's own status counts for more than the kind of event.
	if (wanted.error && type != KD_CM_REJECTED && type != KD_CM_DISCONNECTED &&
	    type != KD_CM_DEVICE_REMOVAL) {
		LoneChannel other(test);
		if (!other)
			return;
		other.set(State::Dead);
		event.status = KD_ENETUNREACH;
		kd_queue_cm_event(&other.queue(0), &event);
		EXPECT_EQ(other.error(), KD_ENETUNREACH);
	}
}

// Of an accepted connection: a reply that says something else than was asked for.
void kdk_case_reply_is_checked(struct kunit *test)
{
	uint32_t index = kdk_param(test)->a, what = kdk_param(test)->b;
	LoneChannel channel(test);
	if (!channel)
		return;
	channel.set(State::Dead);
	channel->token = index ? 0x7001 : 0;
	Queue &queue = channel.queue(index);
	queue.step = Step::Connecting;
	wire::Reply reply = good_reply(channel, index);
	kd_cm_event event = event_of(KD_CM_ESTABLISHED, reply);
	const limits::Terms terms = channel->terms;
	int error = KD_EPROTO;
	switch (what) {
	case 0: reply.magic = wire::magic + 1; break;
	case 1: reply.version = uint16_t(wire::version + 1); break;
	case 2: reply.queue = uint16_t(index + 1); break;
	case 3: reply.depth = 0U; break;
	case 4: reply.depth = terms.depth + 1; break;
	case 5: reply.eager_limit = wire::min_eager - 1; break;
	case 6: reply.eager_limit = terms.eager_limit + 1; break;
	case 7: reply.max_message = wire::min_message - 1; break;
	case 8: reply.max_message = terms.max_message + 1; break;
	case 9: reply.features = 1U; break;
	case 10: reply.token = uint64_t(0); break;
	case 11: reply.reserved[7] = 1; break;
	case 12: event.data_len--; break;
	case 13: event.data = nullptr; break;
	// from here on queue 1 only: what was agreed with queue 0 holds
	case 14: reply.token = uint64_t(0x7002); break;
	case 15: reply.depth = terms.depth - 1; break;
	case 16: reply.eager_limit = terms.eager_limit - 1; break;
	case 17:
		event.reads_out = 0;
		error = KD_EOPNOTSUPP;
		break;
	default: EXPECT(!"a reply that is not there");
	}
	kd_queue_cm_event(&queue, &event);
	EXPECT_EQ(channel.error(), error);
	EXPECT_EQ(queue.step.load(), Step::Connecting);
}

void kdk_case_fatal_event(struct kunit *test)
{
	LoneChannel channel(test);
	if (!channel)
		return;
	channel.set(State::Live);
	kd_queue_fatal(&channel.queue(1), "the first");
	kd_queue_fatal(&channel.queue(0), "the second");
	ASSERT(channel.reaches(State::Dead));
	EXPECT_EQ(channel.error(), KD_EIO);
	EXPECT(same_bytes(channel->error.text, "queue 1: the first", sizeof("queue 1: the first")));
}

// The peer says that it has fetched a message: believed of what was offered, only.
void kdk_case_fetched_in_phase(struct kunit *test)
{
	Phase phase = Phase(kdk_param(test)->a);
	for (int wrong = 0; wrong < 3; wrong++) {
		LoneChannel channel(test);
		if (!channel)
			return;
		channel.set(State::Dead);
		Queue &queue = channel.queue(1);
		queue.offer_slots = create_array<OfferSlot>(channel.sleepable(), 2);
		ASSERT(queue.offer_slots != nullptr);
		OfferWait waiter;
		OfferSlot &offer = queue.offer_slots[1];
		queue.nr_large = 2;
		queue.fresh = false;
		offer.queue = &queue;
		offer.phase = phase;
		offer.seq = 7;
		offer.waiter = phase >= Phase::Posted ? &waiter : nullptr;
		channel->offer_fetched(wrong == 1 ? 8 : 7, wrong == 2 ? channel->nr_queues : 1);
		bool good = phase == Phase::Posted && !wrong;
		EXPECT_EQ(channel.error(), good ? 0 : KD_EPROTO);
		EXPECT_EQ(offer.phase, good ? Phase::Invalidating : phase);
		EXPECT_EQ(waiter.delivered, good);
		EXPECT(!waiter.finished.load());
	}
}

// A writer gets a slot that is free, and nothing else; giving it back undoes all.
void kdk_case_claim_in_phase(struct kunit *test)
{
	Phase phase = Phase(kdk_param(test)->a);
	LoneChannel channel(test);
	if (!channel)
		return;
	Queue &queue = channel.queue(1);
	queue.offer_slots = create_array<OfferSlot>(channel.sleepable(), 2);
	queue.tx_slots = create_array<TxSlot>(channel.sleepable(), 4);
	ASSERT(queue.offer_slots && queue.tx_slots);
	queue.nr_tx = 4;
	for (uint32_t i = 0; i < 4; i++) {
		queue.tx_slots[i].queue = &queue;
		queue.sends.free.push_back(&queue.tx_slots[i]);
		queue.sends.nr_free++;
	}
	queue.nr_large = 2;
	queue.offer_slots[0].phase = phase;
	uint32_t free = queue.nr_free_offers = phase == Phase::Free ? 2 : 1;
	queue.window.open(4);

	Claim claim, more;
	Sleepable s = channel.sleepable();
	WaitStyle nowait{.nowait = true, .poll = false};
	EXPECT_EQ(channel->claim(s, nowait, true, claim).err(), KD_EAGAIN); // not yet live
	channel.set(State::Live);
	EXPECT_EQ(channel->claim(s, nowait, true, claim).err(), KD_EAGAIN); // sealed
	queue.open();
	EXPECT(channel->may_claim(nowait, true));
	ASSERT_EQ(channel->claim(s, nowait, true, claim).err(), 0);
	EXPECT(claim.offer == &queue.offer_slots[phase == Phase::Free ? 0 : 1]);
	EXPECT_EQ(claim.offer->phase, Phase::Claimed);
	EXPECT_EQ(queue.nr_free_offers, free - 1);
	EXPECT_EQ(queue.claimed_offers, 1U);
	EXPECT_EQ(queue.window.available(), 3U);
	EXPECT_EQ(queue.sends.nr_free, 3U);

	int second = channel->claim(s, nowait, true, more).err();
	EXPECT_EQ(second, phase == Phase::Free ? 0 : KD_EAGAIN);
	if (!second) {
		EXPECT(more.offer != claim.offer && more.slot != claim.slot);
		channel->unclaim(more);
	}
	// A small message needs no offer slot.
	more = {};
	ASSERT_EQ(channel->claim(s, nowait, false, more).err(), 0);
	EXPECT(!more.offer);
	channel->unclaim(more);
	channel->unclaim(claim);
	EXPECT_EQ(queue.offer_slots[0].phase, phase);
	EXPECT_EQ(queue.offer_slots[1].phase, Phase::Free);
	EXPECT_EQ(queue.nr_free_offers, free);
	EXPECT_EQ(queue.claimed_offers, 0U);
	EXPECT_EQ(queue.window.available(), 4U);
	EXPECT_EQ(queue.sends.nr_free, 4U);
	queue.seal();
	EXPECT(!channel->may_claim(nowait, false));
	channel.set(State::Recovering);
	EXPECT_EQ(channel->claim(s, nowait, false, more).err(), KD_EPIPE);
	// the channel's own end would wait for what these slots do not have
	channel.set(State::Dead);
}
