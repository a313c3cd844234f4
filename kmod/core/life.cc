// SPDX-License-Identifier: GPL-2.0-only
// The life of a channel. run() is the only function that changes its state, and
// the only one that creates or destroys what it owns; it runs in one work item,
// never twice at once.
#include "../../uapi/kdirect_netlink.h"
#include "channel.hh"
#include "raw.hh"
#include "registry.hh"

using namespace kd;

kd_channel *kd_channel::make(Sleepable s, kd_net *net, uint32_t interrupt_queues,
			     uint32_t poll_queues, const kd_raw_params *raw_params)
{
	auto *c = create<kd_channel>(s);
	if (!c)
		return nullptr;
	c->net = kd_net_get(net);
	kd_work_init(&c->run_work, run_work_fn);
	kd_work_init(&c->fetch_work, fetch_work_fn);
	kd_work_init(&c->message_work, message_work_fn);
	kd_cqe_init(&c->key_cqe, KD_CQE_KEY);
	c->state_since_ns = kd_now_ns();
	c->nr_interrupt_queues = interrupt_queues;
	c->nr_poll_queues = poll_queues;
	registry().channel_created();
	if (raw_params) {
		c->raw = Raw::create(s, *c, *raw_params);
		if (!c->raw) {
			c->put(s);
			return nullptr;
		}
	}

	uint32_t first = c->first_data_queue();
	uint32_t count = first + interrupt_queues + poll_queues;
	for (uint32_t i = 0; i < count; i++) {
		uint32_t kind = i < first                      ? KDIRECT_QUEUE_CONTROL
				: i < first + interrupt_queues ? KDIRECT_QUEUE_INTERRUPT
							       : KDIRECT_QUEUE_POLL;
		void *mem = kd_zalloc(sizeof(Queue));
		if (!mem) {
			c->put(s);
			return nullptr;
		}
		c->queues[i] = new (mem) Queue(*c, i, kind);
		kd_work_init(&c->queues[i]->service_work, [](kd_work *work) {
			KD_CONTAINER(work, kd_queue, service_work)->service();
		});
		c->nr_queues = i + 1;
	}
	return c;
}

// What can be changed later.
void kd_channel::take_settings()
{
	keep_alive_ms = params.keep_alive_ms;
	keep_alive_misses = params.keep_alive_misses;
	request_timeout_ms = params.request_timeout_ms;
	drain_timeout_ms = params.drain_timeout_ms;
	loss_timeout_ms = params.loss_timeout_ms;
	fast_io_fail_ms = params.fast_io_fail_ms;
	reconnect_delay_ms = params.reconnect_delay_ms;
	reconnect_max_delay_ms = params.reconnect_max_delay_ms;
	poll_mode = PollMode(params.poll_mode);
	poll_cpu_percent = params.poll_cpu_percent;
	cq_count = params.cq_count;
	cq_period_us = params.cq_period_us;
	moderation_set = params.cq_count || params.cq_period_us;
}

kd_channel *kd_channel::create_initiator(Sleepable s, kd_net *net, const kd_channel_params &p)
{
	bool is_raw = p.mode == KDIRECT_MODE_RAW;
	kd_channel *c = make(s, net, is_raw && p.poll_queues ? 0 : p.queues, p.poll_queues,
			     is_raw ? &p.raw : nullptr);
	if (!c)
		return nullptr;
	c->initiator = true;
	c->params = p;
	copy_bytes(c->name, p.name, sizeof(c->name));
	c->nonce = kd_random();
	c->terms = {p.depth, p.eager_limit, p.max_message};
	c->eager_limit = p.eager_limit;
	c->take_settings();
	return c;
}

void kd_channel::accepted_by(const char *by, uint32_t as, const kd_endpoint &peer)
{
	kd_channel_defaults(&params);
	kd_format(name, sizeof(name), "%s.%u", by, as);
	copy_bytes(params.name, name, sizeof(name));
	number = as;
	kd_format(listener, sizeof(listener), "%s", by);
	params.peer = peer;
	do
		token = kd_random();
	while (!token);
}

kd_channel *kd_channel::create_raw_target(Sleepable s, kd_net *net, const kd_endpoint &peer,
					  const kd_listener_params &p, uint32_t number)
{
	kd_channel *c = make(s, net, 1, 0, &p.raw);
	if (!c)
		return nullptr;
	c->accepted_by(p.name, number, peer);
	c->params.mode = KDIRECT_MODE_RAW;
	c->params.raw = p.raw;
	c->params.keep_alive_ms = 0;
	c->terms = {p.max_depth, limits::raw_eager(p), p.max_message};
	c->eager_limit = c->terms.eager_limit;
	c->take_settings();
	return c;
}

kd_channel *kd_channel::create_target(Sleepable s, kd_net *net, const kd_endpoint &peer,
				      const Acceptance &a)
{
	kd_channel *c = make(s, net, a.request.queues, a.request.poll_queues, nullptr);
	if (c && !c->make_grants(s)) {
		c->put(s);
		return nullptr;
	}
	if (!c)
		return nullptr;
	c->accepted_by(a.listener, a.number, peer);
	c->params.queues = a.request.queues;
	c->params.poll_queues = a.request.poll_queues;
	c->nonce = a.request.nonce;
	auto least = [](uint32_t x, uint32_t y) { return x < y ? x : y; };
	c->params.loss_timeout_ms = least(a.request.keep_ms, limits::max_keep_ms);
	c->terms = {least(a.request.depth, a.bounds.depth),
		    least(a.request.eager_limit, a.bounds.eager_limit),
		    least(a.request.max_message, a.bounds.max_message)};
	c->eager_limit = c->terms.eager_limit;
	c->take_settings();
	return c;
}

void kd_channel::put(Sleepable s)
{
	if (!refs.put())
		return;
	for (uint32_t i = 0; i < nr_queues; i++) {
		queues[i]->destroy_slots(s);
		destroy(s, queues[i]);
	}
	kd_free(order.ring());
	destroy_array(s, grants);
	if (raw)
		raw->destroy(s);
	kd_net_put(net);
	destroy(s, this);
	registry().channel_gone();
}

// Pending work holds a reference, which the work function drops. The caller has
// one of its own, so that giving back a superfluous one is never the last.
void kd_channel::queue_work(kd_work *work)
{
	get();
	if (!kd_work_queue(work))
		(void)refs.put();
}

void kd_channel::kick()
{
	queue_work(&run_work);
}

void kd_channel::kick_after(uint64_t delay_ns)
{
	get();
	if (!kd_work_queue_after(&run_work, delay_ns))
		(void)refs.put();
}

void kd_channel::run_work_fn(kd_work *work)
{
	Sleepable s = ShimEntry::may_sleep();
	auto *c = KD_CONTAINER(work, kd_channel, run_work);
	c->run(s);
	c->put(s);
}

void kd_channel::fail(const kd_error &why)
{
	bool first;
	{
		SpinGuard guard(state_lock);
		first = !error.err;
		if (first)
			error = why;
		else if (!attempt_error.err)
			attempt_error = why;
	}
	// A peer that breaks the protocol would do so again.
	if (why.err == KD_EPROTO)
		hopeless.store(true, std::memory_order_release);
	bool news = !broken.exchange(true);
	if (first || news)
		kd_log(KD_LOG_INFO, "channel %s: %s", name, why.text);
	kick();
}

void kd_channel::request_delete()
{
	delete_requested.store(true, std::memory_order_release);
	// While the queues of a channel that failed are drained, this ends its reads.
	rx_waitq.wake(KD_WAKE_IN | KD_WAKE_END);
	kick();
}

void kd_channel::run(Sleepable s)
{
	while (step(s))
		;
	serve_maps(s);
	set_wakeup();
}

// One step; true if there may be another at once.
bool kd_channel::step(Sleepable s)
{
	State now = current();
	if (delete_requested.load(std::memory_order_acquire) && transition(now, State::Deleting)) {
		if (now == State::Recovering)
			broken = true; // there is nobody to say goodbye to
		enter(s, State::Deleting);
		return true;
	}
	switch (now) {
	case State::New:
		deadline_ns = kd_now_ns() + uint64_t(params.connect_timeout_ms) * 1000000;
		enter(s, State::Connecting);
		return true;
	case State::Connecting:
		if (!broken && kd_now_ns() >= deadline_ns)
			KD_FAIL(*this, KD_ETIMEDOUT, "not connected within %u ms",
				params.connect_timeout_ms);
		if (!broken)
			return raw ? raw->progress(s) : progress(s);
		break_down(s);
		return true;
	case State::Live:
		if (broken) {
			break_down(s);
			return true;
		}
		if (peer_gone || peer_lingers()) {
			if (!end_of_stream)
				KD_FAIL(*this, KD_ECONNRESET,
					"the peer closed before all of its messages had arrived");
			enter(s, State::Deleting);
			return true;
		}
		moderate(s);
		keep_alive_tick();
		return false;
	case State::Recovering: return recover(s);
	case State::Deleting:
		if (!goodbye_done(s))
			return false;
		teardown(s);
		enter(s, State::Dead);
		return true;
	case State::Dead:
		// What an administrator added stays to be looked at, once it was live.
		if (delete_requested || !initiator || !ever_live)
			remove(s);
		return false;
	}
	return false;
}

// `held`: it waits for its program to connect.
void kd_channel::publish_state(State from, bool held)
{
	kd_error why;
	{
		SpinGuard guard(state_lock);
		why = error;
	}
	kd_event event{};
	event.type = KDIRECT_EVENT_CHANNEL_STATE;
	event.name = name;
	event.listener = listener[0] ? listener : nullptr;
	event.state = uint32_t(current());
	event.old_state = uint32_t(from);
	event.held = held;
	event.error = why.err ? &why : nullptr;
	event.net = net;
	kd_event_publish(&event);
}

uint64_t kd_channel::buffer_bytes() const
{
	limits::Terms now = agreed();
	if (raw)
		return uint64_t(now.depth) * now.eager_limit;
	return limits::buffer_bytes(now) * (nr_queues - 1);
}

void kd_channel::enter(Sleepable, State next)
{
	State from = current();
	{
		SpinGuard guard(state_lock);
		if (transition(from, next)) {
			state.store(next, std::memory_order_release);
			state_since_ns = kd_now_ns();
		} else {
			kd_log(KD_LOG_ERR, "channel %s: %s after %s is not possible", name,
			       kd::name(next), kd::name(from));
		}
	}
	if (next == State::Live)
		ever_live = true;
	publish_state(from, false);
	wake_users();
}

// Something has changed for whoever waits.
void kd_channel::wake_users()
{
	if (raw)
		raw->wake();
	rx_waitq.wake(KD_WAKE_IN | KD_WAKE_OUT | KD_WAKE_END);
	tx_waitq.wake(KD_WAKE_IN | KD_WAKE_OUT | KD_WAKE_END);
	ping_waitq.wake(KD_WAKE_END);
	for (uint32_t i = 1; i < nr_queues; i++)
		queues[i]->io_waitq.wake(0);
}

void kd_channel::moderate(Sleepable)
{
	if (!moderation_set.exchange(false))
		return;
	uint32_t count = cq_count, period_us = cq_period_us;
	for (uint32_t i = first_data_queue(); i < first_poll_queue(); i++)
		if (Status st = kd_cq_moderate(queues[i]->cq, count, period_us); !st.ok())
			kd_log(KD_LOG_WARN,
			       "channel %s: queue %u: device %s refused cq-count %u cq-period %u "
			       "us "
			       "(%d)",
			       name, i, device_name, count, period_us, st.err());
}

// The next time that run() has something to do by itself.
void kd_channel::set_wakeup()
{
	uint64_t at = 0;
	switch (current()) {
	case State::Connecting:
	case State::Deleting: at = deadline_ns; break;
	case State::Live:
		at = next_keep_alive_ns;
		if (deadline_of_peer_ns && (!at || deadline_of_peer_ns < at))
			at = deadline_of_peer_ns;
		if (map_deadline_ns && (!at || map_deadline_ns < at))
			at = map_deadline_ns;
		break;
	case State::Recovering: at = outage_wakeup(); break;
	case State::New:
	case State::Dead: break;
	}
	uint64_t now = kd_now_ns();
	if (at)
		kick_after(at > now ? at - now : 0);
}

// Who has said goodbye, and knows that everything arrived, has to disconnect, too.
bool kd_channel::peer_lingers()
{
	if (!end_of_stream)
		return false;
	uint64_t now = kd_now_ns();
	if (!deadline_of_peer_ns)
		deadline_of_peer_ns = now + uint64_t(drain_timeout_ms.load()) * 1000000;
	return now >= deadline_of_peer_ns;
}

void kd_channel::keep_alive_tick()
{
	uint64_t period = uint64_t(keep_alive_ms.load()) * 1000000;
	uint64_t now = kd_now_ns();
	if (!period || raw) {
		next_keep_alive_ns = 0;
		return;
	}
	if (!next_keep_alive_ns || next_keep_alive_ns > now + period)
		next_keep_alive_ns = now + period;
	if (now < next_keep_alive_ns)
		return;
	next_keep_alive_ns = now + period;
	missed_keep_alives = sign_of_life.exchange(false) ? 0 : missed_keep_alives + 1;
	bool silent = missed_keep_alives >= keep_alive_misses;
	if (silent && end_of_stream) {
		peer_gone = true; // it had said goodbye
		kick();
		return;
	}
	if (silent) {
		KD_FAIL(*this, KD_ETIMEDOUT,
			"no sign of life from the peer for %u keep-alives of %u ms",
			missed_keep_alives, keep_alive_ms.load());
		return;
	}
	// The control queue says nothing of the others: a device may stop just one. The
	// transport has its own patience, which must end first.
	uint64_t limit_ns = uint64_t(request_timeout_ms.load()) * 1000000;
	for (uint32_t i = 1; i < nr_queues; i++)
		if (const char *what = queues[i]->stalled(now, limit_ns))
			KD_FAIL(*this, KD_ETIMEDOUT, "queue %u: %s has not completed for %u ms", i,
				what, uint32_t(limit_ns / 1000000));
	control_raise(wire::KeepAlive);
}

// Tells the peer how many messages there were, and waits until it has them all.
// It may take half of the drain timeout; the rest is for the queues.
bool kd_channel::goodbye_done(Sleepable)
{
	// A raw channel has nobody who would answer.
	bool pointless = raw || !ever_live || broken || peer_gone;
	if (!draining && !pointless) {
		draining = true;
		deadline_ns = kd_now_ns() + uint64_t(drain_timeout_ms.load()) * 500000;
		// Whoever still saw the live state under this lock has posted by now.
		for (uint32_t i = 1; i < nr_queues; i++) {
			SpinGuard guard(queues[i]->tx_lock);
		}
		{
			SpinGuard guard(ctrl_lock);
			bye_last = next_seq.load();
		}
		bye_said = true;
		control_raise(wire::Bye);
	}
	return pointless || bye_answered || kd_now_ns() >= deadline_ns;
}

// Contexts that can still come at each step:
//   sealed:       nobody posts; completions and CM events still come
//   no claims:    no writer is between claiming an MR and posting it
//   fetch gone:   no work of ours but run() itself
//   drained:      no completion is outstanding (or the QP was reset)
//   destroyed:    no completion and no event comes; open files still read what
//                 has arrived, from memory that is no longer mapped
void kd_channel::take_down(Sleepable s)
{
	// adopt() tests under this lock whether it may: it has ended, or will not begin.
	{
		MutexGuard guard(registry().lock, s);
		trying = false;
	}
	for (uint32_t i = 0; i < nr_queues; i++)
		queues[i]->seal();
	(void)tx_waitq.wait(s, KD_WAIT_UNINTERRUPTIBLE, KD_FOREVER,
			    [&] { return !offers_claimed(); });
	if (kd_work_cancel(&fetch_work))
		(void)refs.put();
	uint64_t timeout = uint64_t(drain_timeout_ms.load()) * 1000000;
	uint64_t end = kd_now_ns() + (draining ? timeout / 2 : timeout);
	for (uint32_t i = 0; i < nr_queues; i++)
		if (queues[i]->qp)
			kd_cm_disconnect(queues[i]->cm);
	for (uint32_t i = 0; i < nr_queues; i++)
		queues[i]->stop(s);
	bool abandoned = false;
	for (uint32_t i = 0; i < nr_queues; i++) {
		uint64_t now = kd_now_ns();
		queues[i]->drain(s, now < end ? end - now : 0);
		abandoned |= queues[i]->abandoned.load();
	}
	// What lies in a CQ may still be handled at any time: not from here on.
	if (abandoned)
		kd_handlers_synchronize();
	for (uint32_t i = 0; i < nr_queues; i++)
		queues[i]->destroy_resources(s);
	if (raw) {
		raw->end_shares(s);
		end_fixed(s); // with their keys
	}
	suspend_maps(s);
	kd_pd *used;
	{
		MutexGuard guard(fixed_lock, s);
		used = std::exchange(pd, nullptr);
	}
	if (used)
		kd_pd_destroy(used);
}

// And it does not come back.
void kd_channel::teardown(Sleepable s)
{
	take_down(s);
	drop_pending(s);
	for (uint32_t i = 0; i < nr_queues; i++)
		queues[i]->end_requests(s);
	end_fixed(s);
	release_grants(s);
	registry().detach(s, *this);
}

// The name is free again only when the node is gone.
void kd_channel::remove(Sleepable s)
{
	if (node)
		kd_node_destroy(node);
	node = nullptr;
	kd_error why;
	{
		SpinGuard guard(state_lock);
		why = error;
	}
	if (registry().remove(s, *this, why))
		put(s); // the registry's
}
