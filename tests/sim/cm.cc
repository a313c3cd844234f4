// SPDX-License-Identifier: GPL-2.0-only
#include <cstring>

#include "fabric.h"
#include "watch.h"

namespace sim
{

namespace
{

/* Reasons of the InfiniBand CM. */
constexpr int reject_timeout = 4;
constexpr int reject_no_service = 8;
constexpr int reject_consumer = 28;

constexpr uint64_t dreq_timeout = 3 * sec;

Bytes padded(const Device *dev, const void *data, uint32_t len, uint32_t to)
{
	Bytes out(static_cast<const char *>(data), len);

	if (!dev->iwarp())
		out.resize(to, '\0');
	return out;
}

/* One message, in order behind the earlier ones of @from, retried while the link is down. */
void send(World &w, Cm *from, uint64_t dev_a, uint64_t dev_b, uint64_t give_up,
	  std::function<void()> arrive, std::function<void()> lost)
{
	uint64_t when = w.now() + w.delay();

	if (from) {
		when = std::max(when, from->last_sent + 1);
		from->last_sent = when;
	}
	w.sched.at(when, [&w, dev_a, dev_b, give_up, arrive = std::move(arrive),
			  lost = std::move(lost)]() mutable {
		if (w.connected(w.devices.find(dev_a), w.devices.find(dev_b))) {
			arrive();
		} else if (w.now() >= give_up) {
			if (lost)
				lost();
		} else {
			w.sched.after(100 * ms, [&w, dev_a, dev_b, give_up, arrive, lost] {
				send(w, nullptr, dev_a, dev_b, give_up, arrive, lost);
			});
		}
	});
}

void send(World &w, Cm *from, std::function<void(Cm *)> arrive, std::function<void()> lost = {},
	  uint64_t patience = 0)
{
	Cm *peer = w.cms.find(from->remote);
	uint64_t id = from->remote;

	if (!peer || !peer->dev || !from->dev)
		return;
	send(
		w, from, from->dev->id, peer->dev->id, w.now() + patience,
		[&w, id, arrive = std::move(arrive)] {
			if (Cm *to = w.cms.find(id))
				arrive(to);
		},
		std::move(lost));
}

void stop_timer(World &w, Cm *cm)
{
	if (cm->timer_set)
		w.sched.cancel(cm->timer);
	cm->timer_set = false;
}

/* No answer in time ends the attempt. */
void start_timer(World &w, Cm *cm)
{
	uint64_t id = cm->id;

	stop_timer(w, cm);
	cm->timer_set = true;
	cm->timer = w.sched.after(w.opts.cm_timeout, [&w, id] {
		Cm *late = w.cms.find(id);

		if (!late)
			return;
		late->timer_set = false;
		if (late->state != Cm::State::Connecting && late->state != Cm::State::Accepting)
			return;
		late->state = Cm::State::Closed;
		cm_push(w, late, {.type = KD_CM_UNREACHABLE, .status = KD_ETIMEDOUT});
	});
}

bool is_of(const Device *dev, const kd_addr &addr)
{
	return std::any_of(dev->addrs.begin(), dev->addrs.end(),
			   [&](const kd_addr &own) { return same_addr(own, addr); });
}

Device *owner(World &w, const kd_addr &addr)
{
	for (const auto &dev : w.devices)
		if (!dev->removing && is_of(dev.get(), addr))
			return dev.get();
	return nullptr;
}

/* The device that a route to @peer leaves by; another than the peer's if there is one. */
Device *route(World &w, Cm *cm, const kd_addr &peer)
{
	Device *self = nullptr;

	for (const auto &dev : w.devices) {
		if (dev->node != cm->node || dev->removing || (!dev->node && cm->dev != dev.get()))
			continue;
		if (dev->addrs.empty() || dev->addrs[0].len != peer.len)
			continue;
		if (!is_of(dev.get(), peer))
			return dev.get();
		self = dev.get();
	}
	return self;
}

Cm *find_listener(World &w, Device *dev, const kd_endpoint &at)
{
	for (const auto &cm : w.cms) {
		if (cm->state != Cm::State::Listening || cm->local.port != at.port)
			continue;
		if (cm->dev ? cm->dev != dev : cm->node != dev->node)
			continue;
		if (any_addr(cm->local.addr) || same_addr(cm->local.addr, at.addr))
			return cm.get();
	}
	return nullptr;
}

void rejected(World &w, Cm *cm, int status, bool no_listener, Bytes data, bool has_data)
{
	stop_timer(w, cm);
	cm->state = Cm::State::Closed;
	cm_push(w, cm,
		{.type = KD_CM_REJECTED,
		 .status = status,
		 .no_listener = no_listener,
		 .data = std::move(data),
		 .has_data = has_data});
}

struct RequestMessage {
	uint64_t from;
	kd_endpoint to, back;
	Bytes data;
	uint8_t responder_resources, initiator_depth, rnr_retry;
};

void request_arrives(World &w, uint64_t dev_id, const RequestMessage &request)
{
	Device *dev = w.devices.find(dev_id);
	Cm *from = w.cms.find(request.from);
	Cm *listener = find_listener(w, dev, request.to);

	if (!from || from->state != Cm::State::Connecting)
		return; /* gave up meanwhile; a real request would meet its own cancellation */
	if (!listener) {
		uint64_t back = from->id;
		send(w, nullptr, dev->id, from->dev->id, 0,
		     [&w, back, iwarp = dev->iwarp()] {
			     Cm *cm = w.cms.find(back);

			     if (cm && cm->state == Cm::State::Connecting)
				     rejected(w, cm, iwarp ? KD_ECONNREFUSED : reject_no_service,
					      true, {}, false);
		     },
		     {});
		return;
	}
	Cm *cm = w.cms.add();
	cm->state = Cm::State::Requested;
	cm->announced = false;
	cm->node = listener->node;
	cm->net = listener->net;
	if (cm->net)
		cm->net->refs++;
	cm->dev = dev;
	cm->local = request.to;
	cm->peer = request.back;
	cm->remote = from->id;
	cm->responder_resources = request.responder_resources;
	cm->initiator_depth = request.initiator_depth;
	cm->rnr_retry = request.rnr_retry;
	from->remote = cm->id;
	cm_push(w, listener,
		{.type = KD_CM_CONNECT_REQUEST,
		 .data = request.data,
		 .has_data = !request.data.empty(),
		 .reads_in = request.initiator_depth,
		 .reads_out = request.responder_resources,
		 .new_cm = cm});
}

void confirm_arrives(World &w, Cm *cm)
{
	if (cm->state != Cm::State::Accepting)
		return;
	stop_timer(w, cm);
	cm->state = Cm::State::Established;
	cm_push(w, cm, {.type = KD_CM_ESTABLISHED});
}

void reply_arrives(World &w, Cm *cm, const Bytes &data, const kd_cm_params &params)
{
	if (cm->state != Cm::State::Connecting)
		return;
	stop_timer(w, cm);
	if (w.inject(Op::ConnectError)) {
		cm->state = Cm::State::Closed;
		cm_push(w, cm, {.type = KD_CM_CONNECT_ERROR, .status = KD_ECONNRESET});
		return;
	}
	cm->state = Cm::State::Established;
	if (cm->qp) {
		Cm *peer = w.cms.find(cm->remote);

		qp_connect(w, cm->qp, peer && peer->qp ? peer->qp->id : 0, false);
		cm->qp->reads_out = params.responder_resources;
		cm->qp->rnr_retry = params.rnr_retry_count;
	}
	cm_push(w, cm,
		{.type = KD_CM_ESTABLISHED,
		 .data = data,
		 .has_data = !data.empty(),
		 .reads_in = params.initiator_depth,
		 .reads_out = params.responder_resources});
	if (!cm->no_rtu && !w.inject(Op::ConfirmLost))
		send(w, cm, [&w](Cm *peer) { confirm_arrives(w, peer); });
}

void disconnect_arrives(World &w, Cm *cm)
{
	if (cm->state == Cm::State::Closed || cm->state == Cm::State::Requested)
		return;
	stop_timer(w, cm);
	cm->state = Cm::State::Closed;
	if (cm->qp && cm->dev->iwarp())
		qp_error(w, cm->qp);
	cm_push(w, cm, {.type = KD_CM_DISCONNECTED});
}

void tell_disconnect(World &w, Cm *cm)
{
	uint64_t id = cm->id;
	auto over = [&w, id] {
		Cm *self = w.cms.find(id);

		if (self)
			cm_push(w, self, {.type = KD_CM_DISCONNECTED});
	};
	Cm *peer = w.cms.find(cm->remote);

	if (!peer) {
		w.sched.after(dreq_timeout, over);
		return;
	}
	send(
		w, cm,
		[&w, over](Cm *to) {
			disconnect_arrives(w, to);
			w.sched.after(w.delay(), over);
		},
		over, dreq_timeout);
}

void schedule(World &w, Cm *cm);

/* The same event once more, or an older one when nobody expects it. */
void repeat(World &w, Cm *cm)
{
	if (w.inject(Op::EventTwice))
		cm->events.push_back(cm->history.back());
	if (!w.inject(Op::EventStale))
		return;
	uint64_t id = cm->id;
	CmEventRecord old = cm->history[w.sched.rng.below(cm->history.size())];
	w.sched.after(w.delay() * w.sched.rng.range(1, 40), [&w, id, old = std::move(old)] {
		if (Cm *late = w.cms.find(id))
			cm_push(w, late, old);
	});
}

/* Runs in a fiber of its own: one event of a core's id. */
void deliver(World &w, uint64_t id)
{
	Cm *cm = w.cms.find(id);

	if (!cm || cm->events.empty())
		return;
	CmEventRecord record = std::move(cm->events.front());
	Fiber *self = w.sched.current();
	cm->events.pop_front();
	if (record.new_cm && record.new_cm->dev->removing) {
		cm_destroy(w, record.new_cm);
		return;
	}
	/* as long as the data, so that reading past it shows */
	std::vector<uint8_t> data(record.data.begin(), record.data.end());
	data.shrink_to_fit();
	kd_cm_event event{};

	event.type = record.type;
	event.status = record.status;
	event.no_listener = record.no_listener;
	event.name = "event";
	event.data = record.has_data ? data.data() : nullptr;
	event.data_len = static_cast<uint32_t>(data.size());
	event.reads_in = record.reads_in;
	event.reads_out = record.reads_out;
	event.new_cm = reinterpret_cast<kd_cm *>(record.new_cm);
	cm->handler = self;
	watch::acquire(cm);
	self->event_of = cm;
	self->event_new = record.new_cm;
	bool again = cm->queue && !record.new_cm && record.type != KD_CM_DEVICE_REMOVAL;
	if (again)
		cm->history.push_back(record);
	if (cm->listener) {
		uint64_t new_id = record.new_cm ? record.new_cm->id : 0;
		int err = cm->node->core->listener_cm_event(cm->listener, &event);
		Cm *fresh = new_id ? w.cms.find(new_id) : nullptr;

		if (err && record.type != KD_CM_CONNECT_REQUEST)
			fail("%s: an error from an event that is no connection request",
			     cm->label().c_str());
		self->event_new = nullptr;
		if (fresh && err)
			cm_destroy(w, fresh);
		else if (fresh && !fresh->queue)
			fail("%s: taken without a queue for its events", fresh->label().c_str());
		else if (fresh) {
			fresh->announced = true;
			schedule(w, fresh);
		}
	} else if (cm->queue) {
		cm->node->core->queue_cm_event(cm->queue, &event);
	} else {
		fail("%s: event %d for nobody", cm->label().c_str(), record.type);
	}
	watch::release(cm);
	self->event_of = nullptr;
	self->event_new = nullptr;
	if (!self->held.empty())
		fail("a connection event returned with a lock held");
	cm->handler = nullptr;
	if (again)
		repeat(w, cm);
	for (const auto &fiber : w.sched.all())
		if (!std::strcmp(fiber->blocked_in, "kd_cm_destroy"))
			w.sched.wake(fiber.get());
}

void schedule(World &w, Cm *cm)
{
	if (cm->scheduled || !cm->announced || cm->events.empty())
		return;
	cm->scheduled = true;
	uint64_t id = cm->id;

	w.sched.after(w.delay(), [&w, id] {
		Cm *now = w.cms.find(id);

		if (!now)
			return;
		if (now->raw) {
			now->scheduled = false;
			while (!now->events.empty()) {
				CmEventRecord record = std::move(now->events.front());

				now->events.pop_front();
				now->raw(record);
				now = w.cms.find(id);
				if (!now)
					return;
			}
			return;
		}
		w.sched.spawn("cm event", Context::Process, now->node, [&w, id] {
			deliver(w, id);
			if (Cm *later = w.cms.find(id)) {
				later->scheduled = false;
				schedule(w, later);
			}
		});
	});
}

} // namespace

void cm_push(World &w, Cm *cm, CmEventRecord event)
{
	cm->events.push_back(std::move(event));
	schedule(w, cm);
}

int cm_resolve_addr(World &w, Cm *cm, const kd_addr *source, const kd_endpoint *peer,
		    uint64_t timeout)
{
	Device *dev = nullptr;

	if (source && source->len) {
		dev = owner(w, *source);
		if (!dev || dev->node != cm->node)
			return KD_EADDRNOTAVAIL;
		if (source->len != peer->addr.len)
			return KD_EINVAL;
	} else {
		dev = cm->node ? route(w, cm, peer->addr) : cm->dev;
	}
	cm->state = Cm::State::AddrQuery;
	cm->peer = *peer;
	uint64_t id = cm->id, dev_id = dev ? dev->id : 0;
	bool known = owner(w, peer->addr);
	w.sched.after(known && dev ? w.delay() : timeout, [&w, id, dev_id, known] {
		Cm *self = w.cms.find(id);
		Device *out = w.devices.find(dev_id);

		if (!self || self->state != Cm::State::AddrQuery)
			return;
		if (!out || out->removing || !known) {
			self->state = Cm::State::Idle;
			cm_push(w, self,
				{.type = KD_CM_ADDR_ERROR,
				 .status = out ? KD_ETIMEDOUT : KD_ENODEV});
			return;
		}
		self->state = Cm::State::AddrResolved;
		self->dev = out;
		self->local.addr = out->addrs[0];
		self->local.port = w.next_port++;
		cm_push(w, self, {.type = KD_CM_ADDR_RESOLVED});
	});
	return 0;
}

int cm_resolve_route(World &w, Cm *cm)
{
	if (cm->state != Cm::State::AddrResolved)
		return KD_EINVAL;
	cm->state = Cm::State::RouteQuery;
	uint64_t id = cm->id;
	w.sched.after(w.delay(), [&w, id] {
		Cm *self = w.cms.find(id);

		if (!self || self->state != Cm::State::RouteQuery)
			return;
		bool bad = self->dev->route_fails || self->dev->removing;
		self->state = bad ? Cm::State::AddrResolved : Cm::State::RouteResolved;
		cm_push(w, self,
			{.type = bad ? KD_CM_ROUTE_ERROR : KD_CM_ROUTE_RESOLVED,
			 .status = bad ? KD_EHOSTUNREACH : 0});
	});
	return 0;
}

int cm_connect(World &w, Cm *cm, const kd_cm_params &params)
{
	if (cm->state != Cm::State::RouteResolved)
		return KD_EINVAL;
	Device *to = owner(w, cm->peer.addr);
	RequestMessage request{.from = cm->id,
			       .to = cm->peer,
			       .back = cm->local,
			       .data = padded(cm->dev, params.data, params.data_len, request_data),
			       .responder_resources = params.responder_resources,
			       .initiator_depth = params.initiator_depth,
			       .rnr_retry = params.rnr_retry_count};

	cm->state = Cm::State::Connecting;
	start_timer(w, cm);
	if (to && !w.inject(Op::RequestLost)) {
		uint64_t dev = to->id;
		send(w, cm, cm->dev->id, dev, w.now() + w.opts.cm_timeout,
		     [&w, dev, request = std::move(request)] { request_arrives(w, dev, request); },
		     {});
	}
	return 0;
}

int cm_accept(World &w, Cm *cm, const kd_cm_params &params)
{
	Cm *peer = w.cms.find(cm->remote);

	if (cm->state != Cm::State::Requested || !cm->qp || cm->dev->removing)
		return KD_EINVAL;
	qp_connect(w, cm->qp, peer && peer->qp ? peer->qp->id : 0, true);
	cm->qp->reads_out = cm->responder_resources;
	cm->qp->rnr_retry = cm->rnr_retry;
	cm->state = Cm::State::Accepting;
	start_timer(w, cm);
	Bytes data = padded(cm->dev, params.data, params.data_len, reply_data);
	if (w.inject(Op::ReplyLost))
		return 0;
	send(
		w, cm, [&w, data, params](Cm *to) { reply_arrives(w, to, data, params); }, {},
		w.opts.cm_timeout);
	return 0;
}

int cm_reject(World &w, Cm *cm, const void *data, uint32_t len)
{
	if (cm->state != Cm::State::Requested)
		return KD_EINVAL;
	cm->state = Cm::State::Closed;
	Bytes out = padded(cm->dev, data, len, reject_data);
	if (w.inject(Op::RejectLost))
		return 0;
	send(w, cm, [&w, out](Cm *to) {
		if (to->state == Cm::State::Connecting)
			rejected(w, to, reject_consumer, false, out, !out.empty());
	});
	return 0;
}

void cm_disconnect(World &w, Cm *cm)
{
	if (cm->qp)
		qp_error(w, cm->qp);
	if (cm->state != Cm::State::Established)
		return;
	cm->state = Cm::State::Closed;
	if (!w.inject(Op::DisconnectLost))
		tell_disconnect(w, cm);
}

void cm_destroy(World &w, Cm *cm)
{
	stop_timer(w, cm);
	for (CmEventRecord &event : cm->events)
		if (event.new_cm)
			cm_destroy(w, event.new_cm);
	cm->events.clear();
	switch (cm->state) {
	case Cm::State::Requested: cm_reject(w, cm, "", 0); break;
	case Cm::State::Connecting:
		send(w, cm, [&w](Cm *peer) {
			if (peer->state == Cm::State::Requested ||
			    peer->state == Cm::State::Accepting)
				rejected(w, peer, reject_timeout, false, {}, false);
		});
		break;
	case Cm::State::Accepting:
	case Cm::State::Established:
		send(w, cm, [&w](Cm *peer) {
			if (peer->state == Cm::State::Connecting)
				rejected(w, peer, reject_timeout, false, {}, false);
			else
				disconnect_arrives(w, peer);
		});
		break;
	default: break;
	}
	if (cm->net)
		cm->net->refs--;
	w.cms.remove(cm);
}

} // namespace sim
