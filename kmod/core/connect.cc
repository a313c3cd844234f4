// SPDX-License-Identifier: GPL-2.0-only
// Connecting: the initiator brings up the control queue, then all data queues;
// each says hello; once the target has heard every queue it says Start, and both
// ends are live. Events leave word in Queue::step; progress() acts on it.
#include "channel.hh"
#include "raw.hh"
#include "registry.hh"

#include "../../uapi/kdirect_netlink.h"

using namespace kd;
using wire::Refusal;
using wire::Verdict;

namespace
{

constexpr uint32_t resolve_timeout_ms = 2000;
constexpr uint32_t reads_in_flight = limits::default_reads; // of one QP; more wait in the device
// Credits make sure that a receive is posted before anything is sent, so that an RNR is a
// fault at the peer. Seven ("for ever") would hide it, zero would take one transient RNR of a
// device that is short of its own resources for one.
constexpr uint8_t rnr_retry_count = 3;

uint8_t least(uint32_t a, uint32_t b)
{
	return uint8_t(a < b ? a : b);
}

// A peer that says so is another than before.
bool is_forgotten(Refusal reason)
{
	return reason == Refusal::NoChannel || reason == Refusal::Malformed ||
	       reason == Refusal::Version || reason == Refusal::Features;
}

// An address and port as text, for messages.
struct AddressText {
	char text[64];
	explicit AddressText(const kd_endpoint &e)
	{
		const uint8_t *b = e.addr.bytes;
		if (e.addr.len == 4) {
			kd_format(text, sizeof(text), "%u.%u.%u.%u:%u", b[0], b[1], b[2], b[3],
				  e.port);
			return;
		}
		int at = kd_format(text, sizeof(text), "[");
		for (int i = 0; i < 16; i += 2)
			at += kd_format(text + at, sizeof(text) - size_t(at), i ? ":%x" : "%x",
					unsigned(b[i] << 8 | b[i + 1]));
		kd_format(text + at, sizeof(text) - size_t(at), "]:%u", e.port);
	}
};

} // namespace

wire::RequestInfo kd_channel::request_info(const Queue &queue) const
{
	bool first = queue.index == 0 && attempt == 0;
	return {queue.index,       nr_interrupt_queues, nr_poll_queues, terms.depth,
		terms.eager_limit, terms.max_message,   nonce,          first ? 0 : token,
		attempt,           loss_timeout_ms};
}

bool kd_channel::progress(Sleepable s)
{
	bool connected = true, heard = true;
	for (uint32_t i = 0; i < nr_queues && !broken; i++) {
		Queue &queue = *queues[i];
		advance(s, queue);
		Step step = queue.step.load(std::memory_order_acquire);
		connected &= step == Step::Connected || step == Step::Accepted;
		heard &= (initiator && i == 0) || queue.hello.load(std::memory_order_acquire);
		// The terms come with the control queue's reply.
		if (initiator && i == 0 && step != Step::Connected)
			return false;
	}
	if (broken)
		return true;
	// The initiator speaks first.
	if (!connected || (!initiator && !heard))
		return false;
	if (!hello_sent) {
		hello_sent = true;
		say_hello();
	}
	if (broken || (initiator && !(started && heard)))
		return broken;
	return make_live(s);
}

void kd_channel::advance(Sleepable s, Queue &queue)
{
	switch (queue.step.load(std::memory_order_acquire)) {
	case Step::Idle:
		if (!initiator)
			return;
		if (Status st = kd_cm_create(net, &queue, &queue.cm); !st.ok()) {
			KD_FAIL(*this, st.err(), "queue %u: no connection id", queue.index);
			return;
		}
		queue.step = Step::Resolving;
		if (Status st = kd_cm_resolve_addr(queue.cm, &params.source, &params.peer,
						   resolve_timeout_ms);
		    !st.ok())
			KD_FAIL(*this, st.err(), "no RDMA path to %s",
				AddressText(params.peer).text);
		return;
	case Step::Resolved: resolved(s, queue); return;
	case Step::Routed: routed(s, queue); return;
	case Step::Requested: requested(s, queue); return;
	case Step::Resolving:
	case Step::Routing:
	case Step::Prepared:
	case Step::Connecting:
	case Step::Connected:
	case Step::Accepted: return;
	}
}

// The device behind a queue, and what the channel shares on it.
Status kd_channel::attach(Sleepable s, Queue &queue)
{
	kd_error error{};
	if (pd) {
		if (kd_cm_device(queue.cm) == device)
			return {};
		KD_FAIL(*this, KD_ENODEV, "queue %u came over another device than the first",
			queue.index);
		return KD_ENODEV;
	}
	// After an outage it may be another.
	let_device_go(s);
	if (device && kd_cm_device(queue.cm) != device)
		leave_device(s);
	if (Status st = device ? 0 : registry().attach(s, *this, queue.cm); !st.ok()) {
		KD_FAIL(*this, st.err(), "the RDMA device of this address cannot be used");
		return st;
	}
	if (moderation_set && !limits::can_moderate(device, &error).ok()) {
		fail(error);
		return error.err;
	}
	const struct kd_device_attr *attr = kd_device_attr(device);
	mr_pages = attr->max_mr_pages;
	iwarp = attr->transport == KDIRECT_TRANSPORT_IWARP;
	io_sges = iwarp ? attr->max_send_sge : attr->max_read_sge;
	atomics = attr->atomics;
	limits::Terms fitting = terms;
	Status st = raw ? raw->fit(fitting, &error) : limits::fit(device, fitting, &error);
	if (st.ok() && !raw && !initiator && (!queue.reads_in || !queue.reads_out))
		st = limits::fit_without_reads(fitting, &error);
	if (st.ok() && ever_live && fitting != terms)
		st = KD_ERROR(&error, KD_EOPNOTSUPP, 0, "device %s cannot do what was agreed on",
			      device_name);
	if (!ever_live) {
		SpinGuard guard(state_lock);
		terms = fitting;
	}
	if (!st.ok()) {
		fail(error);
		return st;
	}
	kd_pd *made = nullptr;
	st = kd_pd_create(queue.cm, &made);
	{
		MutexGuard guard(fixed_lock, s);
		pd = made;
	}
	if (!st.ok()) {
		KD_FAIL(*this, st.err(), "no protection domain on device %s", device_name);
		return st;
	}
	return {};
}

void kd_channel::resolved(Sleepable s, Queue &queue)
{
	if (!attach(s, queue).ok())
		return;
	if (Status st = queue.create_resources(s, terms); !st.ok()) {
		KD_FAIL(*this, st.err(),
			"queue %u: out of memory or of resources of device %s (%d)", queue.index,
			device_name, st.err());
		return;
	}
	queue.step = Step::Routing;
	if (Status st = kd_cm_resolve_route(queue.cm, resolve_timeout_ms); !st.ok())
		KD_FAIL(*this, st.err(), "no route to %s", AddressText(params.peer).text);
}

void kd_channel::routed(Sleepable, Queue &queue)
{
	wire::Request request;
	wire::encode_request(request_info(queue), request);
	const struct kd_device_attr *attr = kd_device_attr(device);
	kd_cm_params cm{};
	cm.data = &request;
	cm.data_len = sizeof(request);
	cm.responder_resources = least(attr->max_rd_atom, reads_in_flight);
	cm.initiator_depth = least(attr->max_init_rd_atom, reads_in_flight);
	cm.retry_count = limits::default_retry_count;
	cm.rnr_retry_count = rnr_retry_count;
	queue.open();
	queue.step = Step::Connecting;
	if (Status st = kd_cm_connect(queue.cm, &cm); !st.ok())
		KD_FAIL(*this, st.err(), "queue %u: cannot connect to %s", queue.index,
			AddressText(params.peer).text);
}

void kd_channel::requested(Sleepable s, Queue &queue)
{
	Status st = attach(s, queue);
	if (st.ok()) {
		st = queue.create_resources(s, terms);
		if (!st.ok())
			KD_FAIL(*this, st.err(),
				"queue %u: out of memory or of resources of device %s (%d)",
				queue.index, device_name, st.err());
	}
	if (raw) {
		if (st.ok())
			queue.step = Step::Prepared;
		return;
	}
	if (!st.ok()) {
		wire::Reject reject;
		wire::encode_reject({Refusal::Resources, uint32_t(st.err())}, reject);
		(void)kd_cm_reject(queue.cm, &reject, sizeof(reject));
		return;
	}
	wire::Reply reply;
	wire::encode_reply({queue.index, terms.depth, terms.eager_limit, terms.max_message, token},
			   reply);
	const struct kd_device_attr *attr = kd_device_attr(device);
	kd_cm_params cm{};
	cm.data = &reply;
	cm.data_len = sizeof(reply);
	cm.responder_resources = least(least(attr->max_rd_atom, reads_in_flight), queue.reads_in);
	cm.initiator_depth = least(least(attr->max_init_rd_atom, reads_in_flight), queue.reads_out);
	cm.retry_count = limits::default_retry_count;
	cm.rnr_retry_count = rnr_retry_count;
	queue.open();
	queue.step = Step::Accepted;
	if (st = kd_cm_accept(queue.cm, &cm); !st.ok())
		KD_FAIL(*this, st.err(), "queue %u: cannot accept", queue.index);
}

Verdict kd_channel::adopt(Sleepable, const kd_cm_event &event, const wire::RequestInfo &request)
{
	if (request.queues != nr_interrupt_queues || request.poll_queues != nr_poll_queues)
		return {Refusal::Queues, nr_queues - 1};
	if (request.nonce != nonce)
		return {Refusal::NoChannel};
	if (request.queue >= nr_queues)
		return {Refusal::Queue, request.queue};
	Queue &queue = *queues[request.queue];
	if (broken || delete_requested || (current() > State::Connecting && !trying))
		return {Refusal::NoChannel};
	if (request.attempt != attempt)
		return {Refusal::Again};
	if (queue.step.load(std::memory_order_relaxed) != Step::Idle)
		return {Refusal::Queue, request.queue};
	// What was agreed with the control queue holds for all.
	limits::Terms now = agreed();
	if (request.queue != 0 &&
	    (request.depth != now.depth || request.eager_limit != now.eager_limit ||
	     request.max_message != now.max_message))
		return {Refusal::Malformed};
	bool large = now.max_message > now.eager_limit;
	if (request.queue != 0 && large && (!event.reads_in || !event.reads_out))
		return {Refusal::Resources, KD_EOPNOTSUPP};
	queue.cm = event.new_cm;
	queue.reads_in = event.reads_in;
	queue.reads_out = event.reads_out;
	kd_cm_set_queue(event.new_cm, &queue);
	queue.step.store(Step::Requested, std::memory_order_release);
	kick();
	return {};
}

// Without any word of what the peer wants.
void kd_channel::adopt_raw(Sleepable, const kd_cm_event &event)
{
	Queue &queue = *queues[0];
	raw->heard(event);
	queue.cm = event.new_cm;
	queue.reads_in = event.reads_in;
	queue.reads_out = event.reads_out;
	kd_cm_set_queue(event.new_cm, &queue);
	queue.step.store(Step::Requested, std::memory_order_release);
	kick();
}

void kd_channel::say_hello()
{
	for (uint32_t i = 1; i < nr_queues; i++)
		queues[i]->say_hello();
	if (initiator)
		control_raise(wire::ControlHello);
}

bool kd_channel::make_live(Sleepable s)
{
	Status st;
	if (!raw && !carry_on(s))
		return true;
	if (raw && !node)
		st = kd_raw_node_create(this, name, &node);
	else if (!node)
		st = kd_node_create(this, name, &node);
	if (!st.ok()) {
		KD_FAIL(*this, st.err(), "no device node for channel %s", name);
		return true;
	}
	next_keep_alive_ns = 0;
	missed_keep_alives = 0;
	if (current() == State::Recovering)
		back_again();
	enter(s, State::Live);
	if (raw) {
		kd_log(KD_LOG_INFO, "channel %s: live, raw, of depth %u on %s", name, terms.depth,
		       device_name);
		return true;
	}
	kd_log(KD_LOG_INFO, "channel %s: live, %u+%u queues of depth %u on %s", name,
	       nr_interrupt_queues, nr_poll_queues, terms.depth, device_name);
	if (!initiator)
		control_raise(wire::Start);
	else
		control_pump();
	consider_fetching();
	return true;
}

// --- events, in the connection manager's context ---------------------------------

void kd_channel::established(Queue &queue, const kd_cm_event &event)
{
	if (raw)
		return raw->established(event);
	if (!initiator) // the hello says it, perhaps before this event
		return;
	wire::ReplyInfo reply;
	if (queue.step.load(std::memory_order_acquire) != Step::Connecting)
		return;
	if (!wire::decode_reply(event.data, event.data_len, request_info(queue), reply)) {
		KD_FAIL(*this, KD_EPROTO,
			"the peer accepted, but is no kdirect listener (%u bytes of private data)",
			event.data_len);
		return;
	}
	if (queue.index == 0 && attempt == 0) {
		token = reply.token;
		SpinGuard guard(state_lock);
		terms = {reply.depth, reply.eager_limit, reply.max_message};
	} else if (reply.depth != terms.depth || reply.eager_limit != terms.eager_limit ||
		   reply.max_message != terms.max_message) {
		KD_FAIL(*this, KD_EPROTO, "queue %u: the peer changed its terms", queue.index);
		return;
	}
	if (queue.index != 0 && needs_reads() && (!event.reads_in || !event.reads_out)) {
		KD_FAIL(*this, KD_EOPNOTSUPP, "queue %u: the peer allows no RDMA READ",
			queue.index);
		return;
	}
	queue.step.store(Step::Connected, std::memory_order_release);
	kick();
}

void kd_channel::rejected(Queue &queue, const kd_cm_event &event)
{
	Verdict verdict;
	AddressText peer(params.peer);
	if (raw) {
		raw->heard(event);
		KD_FAIL(*this, KD_ECONNREFUSED, "%s refused the connection: %s", peer.text,
			event.no_listener ? "nothing listens there" : event.name);
	} else if (wire::decode_reject(event.data, event.data_len, verdict)) {
		char why[KD_TEXT_MAX / 2];
		// Every format takes at most the one number.
		kd_format(why, sizeof(why), wire::refusal_format(verdict.reason), verdict.value);
		if (attempt && queue.index == 0 && is_forgotten(verdict.reason)) {
			forgotten = true;
			hopeless = true;
			KD_FAIL(*this, KD_ECONNRESET, "%s does not know the session any more: %s",
				peer.text, why);
			return;
		}
		KD_FAIL(*this, KD_ECONNREFUSED, "%s refused queue %u: %s", peer.text, queue.index,
			why);
	} else if (event.no_listener) {
		KD_FAIL(*this, KD_ECONNREFUSED, "nothing listens on %s", peer.text);
	} else {
		KD_FAIL(*this, KD_ECONNREFUSED,
			"%s refused queue %u without a kdirect reason: no kdirect listener there? "
			"(transport's reason %d)",
			peer.text, queue.index, event.status);
	}
}

void kd_channel::disconnected(Queue &queue)
{
	if (raw)
		end_of_stream = true;
	if (raw || peer_closing || current() == State::Deleting) {
		peer_gone.store(true, std::memory_order_release);
		kick();
	} else {
		KD_FAIL(*this, KD_ECONNRESET, "the peer closed the connection (queue %u)",
			queue.index);
	}
}

void kd_channel::cm_event(Queue &queue, const kd_cm_event &event)
{
	auto move = [&](Step from, Step to) {
		if (queue.step.compare_exchange_strong(from, to))
			kick();
	};
	switch (event.type) {
	case KD_CM_ADDR_RESOLVED: move(Step::Resolving, Step::Resolved); return;
	case KD_CM_ROUTE_RESOLVED: move(Step::Routing, Step::Routed); return;
	case KD_CM_ESTABLISHED: established(queue, event); return;
	case KD_CM_ADDR_ERROR:
	case KD_CM_ROUTE_ERROR:
		KD_FAIL(*this, event.status ? event.status : KD_EHOSTUNREACH,
			"no RDMA path to %s (%s)", AddressText(params.peer).text, event.name);
		return;
	case KD_CM_UNREACHABLE:
		KD_FAIL(*this, event.status ? event.status : KD_EHOSTUNREACH, "no answer from %s",
			AddressText(params.peer).text);
		return;
	case KD_CM_CONNECT_ERROR:
		KD_FAIL(*this, event.status ? event.status : KD_ECONNRESET, "queue %u: %s",
			queue.index, event.name);
		return;
	case KD_CM_REJECTED: rejected(queue, event); return;
	case KD_CM_DISCONNECTED: disconnected(queue); return;
	case KD_CM_DEVICE_REMOVAL:
		KD_FAIL(*this, KD_ENODEV, "device %s was removed", device_name);
		return;
	case KD_CM_CONNECT_REQUEST:
	case KD_CM_OTHER:
		kd_log(KD_LOG_DEBUG, "channel %s: queue %u: %s", name, queue.index, event.name);
		return;
	}
}

void kd_queue_cm_event(struct kd_queue *queue, const struct kd_cm_event *event)
{
	queue->channel.cm_event(*queue, *event);
}

void kd_queue_fatal(struct kd_queue *queue, const char *what)
{
	KD_FAIL(queue->channel, KD_EIO, "queue %u: %s", queue->index, what);
}
