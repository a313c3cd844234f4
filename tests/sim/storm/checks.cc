// SPDX-License-Identifier: GPL-2.0-only
// What must hold when nobody runs and nothing is due for a while, and at the end.
#include <cstring>

#include "../watch.h"
#include "storm.h"

namespace sim
{

namespace
{

/* of the core: how much longer than asked for something may take, all delays included */
constexpr uint64_t slack = 3 * sec;
constexpr uint64_t longest_look = 1 * ms;

const InstanceTable *table_of(const std::array<Machine, 3> &machines, const Node *node)
{
	for (const Machine &m : machines)
		if (m.node == node)
			return m.core;
	return nullptr;
}

} // namespace

/*
 * A send credit is at the sender, in flight, a message that was not read, or owed by
 * the receiver. With nothing in flight the receives that are posted and the credits
 * that the sender has differ by what is owed, and so much as must be told is told.
 */
void Schedule::check_credits()
{
	auto busy = [&](const Qp *qp) {
		return !qp->sq.empty() || qp->state != Qp::State::Rts || !qp->core ||
		       !qp->cq->entries.empty() || qp->dev->stuck || !qp->dev->link_up ||
		       qp->cq->running || qp->cq->event_running;
	};
	/* a message on any queue of a channel is answered on its control queue */
	std::set<const void *> unsettled;
	struct Pair {
		const Qp *qp, *peer;
		QueueSnap here, there;
	};
	std::vector<Pair> pairs;

	for (const auto &work : w->works)
		if (work.second.pending && !work.second.delayed)
			return;
	for (const auto &qp : w->qps) {
		const Qp *peer = w->qps.find(qp->remote);
		Pair pair{qp.get(), peer, {}, {}};

		if (!qp->core || qp->plain || !qp->cq->queue)
			continue;
		table_of(machines, qp->cq->node)->snap(qp->cq->queue, pair.here);
		if (!peer || !peer->core || busy(qp.get()) || busy(peer)) {
			unsettled.insert(pair.here.channel);
			continue;
		}
		table_of(machines, peer->cq->node)->snap(peer->cq->queue, pair.there);
		if (!pair.here.settled || !pair.there.settled) {
			unsettled.insert(pair.here.channel);
			unsettled.insert(pair.there.channel);
			continue;
		}
		pairs.push_back(pair);
	}
	for (const Pair &pair : pairs) {
		const QueueSnap &here = pair.here, &there = pair.there;

		if (unsettled.contains(here.channel) || unsettled.contains(there.channel))
			continue;
		uint32_t posted = static_cast<uint32_t>(pair.peer->rq.size());
		if (here.index)
			posted -= there.pong_waits ? 1 : 2; /* for a ping and a pong */
		reach->credits_checked++;
		if (posted - here.available != there.owed)
			fail("credits of queue %u: %u at the sender, %u receives posted, %u owed",
			     here.index, here.available, posted, there.owed);
		else if (there.owed > there.due)
			fail("queue %u owes %u credits and does not tell it", here.index,
			     there.owed);
		if (here.awaited)
			fail("queue %u awaits %u completions, and none can come", here.index,
			     here.awaited);
		if (here.claimed)
			fail("queue %u: %u MRs are claimed by nobody", here.index, here.claimed);
		if (here.index && posted == here.depth && here.free_offers != here.large)
			fail("queue %u: %u of %u MRs are free, and all messages are read",
			     here.index, here.free_offers, here.large);
	}
}

/* Whoever waits does so because he must. */
void Schedule::check_waits()
{
	std::vector<uint64_t> waiting;

	for (const auto &fiber : w->sched.all())
		if (fiber->state == Fiber::State::Blocked && fiber->waitq && !fiber->woken &&
		    !std::strcmp(fiber->blocked_in, "kd_wait"))
			waiting.push_back(fiber->id);
	for (uint64_t id : waiting)
		if (Fiber *fiber = w->sched.find(id)) {
			reach->waits_checked++;
			w->sched.probe(fiber);
		}
	bool polls = std::any_of(w->cqs.begin(), w->cqs.end(),
				 [](const auto &cq) { return cq->poll && !cq->entries.empty(); });
	waiting.clear();
	for (const auto &fiber : w->sched.all())
		if (fiber->state == Fiber::State::Blocked && !fiber->woken &&
		    !std::strcmp(fiber->blocked_in, "poll"))
			waiting.push_back(fiber->id);
	for (uint64_t id : waiting)
		if (Fiber *fiber = polls ? nullptr : w->sched.find(id)) {
			reach->waits_checked++;
			w->sched.probe(fiber);
		}
}

/* Somebody looks after every CQ. */
void Schedule::check_cqs()
{
	for (const auto &cq : w->cqs)
		if (cq->node && !cq->dying && !cq->entries.empty() &&
		    cq->entries.front().since + 500 * ms < w->now() && !jumped)
			fail("completions of a CQ are left alone");
}

/* No state but live and dead lasts longer than its deadline. */
void Schedule::check_states()
{
	if (jumped)
		return;
	for (unsigned int i = 0; i < nr_machines; i++) {
		Node *node = machines[i].node;

		for (const auto &[name, state] : node->last_state) {
			/* a raw listener's have 10 s */
			bool raw = name[0] == 'p';
			uint64_t limit = 2 * sec;

			if (state == KDIRECT_STATE_CONNECTING)
				limit = raw ? 10 * sec : 3 * sec;
			else if (state == KDIRECT_STATE_RECOVERING)
				limit += longest_loss_ms * ms;

			if (state != KDIRECT_STATE_LIVE && state != KDIRECT_STATE_DEAD &&
			    node->state_since[name] + limit + slack < w->now())
				fail("channel %s is in state %u for %llu ms", name.c_str(), state,
				     static_cast<unsigned long long>(
					     (w->now() - node->state_since[name]) / ms));
		}
	}
}

void Schedule::quiet()
{
	if (w->now() < checked_at + longest_look)
		return;
	checked_at = w->now();
	reach->quiet++;
	check_credits();
	check_cqs();
	check_states();
	check_waits();
}

/* Who has read the end has read everything before it. */
void Schedule::check_ends()
{
	for (const auto &[end, stream] : streams) {
		if (!stream.ended || !stream.peer)
			continue;
		reach->ends++;
		if (!stream.part.empty())
			fail("the end came in the middle of a message");
		for (const auto &[writer, accepted] : streams[stream.peer].accepted) {
			auto found = stream.from.find(writer);
			uint32_t got = found == stream.from.end() ? 0 : found->second.next;

			if (got < accepted)
				fail("%u messages of writer %u were accepted, %u came before the "
				     "end",
				     accepted, writer, got);
		}
	}
}

} // namespace sim
