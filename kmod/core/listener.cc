// SPDX-License-Identifier: GPL-2.0-only
#include "listener.hh"

#include "../../uapi/kdirect_netlink.h"
#include "registry.hh"

using namespace kd;
using wire::Refusal;
using wire::Verdict;

namespace
{
constexpr uint64_t reopen_interval_ns = 500000000;
}

kd_listener *kd_listener::create(Sleepable s, kd_net *net, const kd_listener_params &params)
{
	auto *l = kd::create<kd_listener>(s);
	if (!l)
		return nullptr;
	copy_bytes(l->name, params.name, sizeof(l->name));
	l->net = kd_net_get(net);
	l->params = params;
	kd_work_init(&l->reopen_work, reopen_fn);
	registry().listener_created();
	return l;
}

Status kd_listener::open(Sleepable)
{
	return kd_cm_listen(net, &params.local, this, &cm);
}

void kd_listener::close(Sleepable s)
{
	if (kd_work_cancel(&reopen_work))
		(void)refs.put();
	if (cm)
		kd_cm_destroy(cm);
	cm = nullptr;
	// A removal event that came meanwhile finds the listener deleted.
	if (kd_work_cancel(&reopen_work))
		(void)refs.put();
	put(s);
}

void kd_listener::put(Sleepable s)
{
	if (!refs.put())
		return;
	kd_net_put(net);
	destroy(s, this);
	registry().listener_gone();
}

void kd_listener::queue_reopen(uint64_t delay_ns)
{
	refs.get();
	if (!kd_work_queue_after(&reopen_work, delay_ns))
		(void)refs.put();
}

void kd_listener::device_removed()
{
	kd_log(KD_LOG_INFO, "listener %s: its device was removed; waiting for the address", name);
	queue_reopen(0);
}

void kd_listener::reopen_fn(kd_work *work)
{
	Sleepable s = ShimEntry::may_sleep();
	auto *l = KD_CONTAINER(work, kd_listener, reopen_work);
	l->reopen(s);
	l->put(s);
}

void kd_listener::reopen(Sleepable s)
{
	bool busy;
	{
		MutexGuard guard(registry().lock, s);
		if (deleting)
			return; // close() waits for this work, then destroys the id
		busy = !opened;
	}
	if (busy) {
		queue_reopen(reopen_interval_ns);
		return;
	}
	if (cm)
		kd_cm_destroy(cm);
	cm = nullptr;
	if (open(s).ok())
		kd_log(KD_LOG_INFO, "listener %s: listening again", name);
	else
		queue_reopen(reopen_interval_ns);
}

Verdict kd_listener::request(Sleepable s, const kd_cm_event &event)
{
	MutexGuard guard(registry().lock, s);
	Verdict verdict = request_locked(s, event);
	if (verdict)
		rejected++;
	return verdict;
}

Verdict kd_listener::request_locked(Sleepable s, const kd_cm_event &event)
{
	if (deleting)
		return {Refusal::ShuttingDown};
	kd_endpoint peer;
	kd_cm_peer(event.new_cm, &peer);
	bool allowed = params.nr_allow == 0;
	for (uint32_t i = 0; i < params.nr_allow; i++)
		allowed |= limits::matches(params.allow[i], peer.addr);
	if (!allowed)
		return {Refusal::NotAllowed};
	if (params.mode == KDIRECT_MODE_RAW)
		return accept_raw(s, event, peer);
	wire::RequestInfo request;
	if (Verdict v = wire::decode_request(event.data, event.data_len, request))
		return v;
	if (!request.token)
		return accept_channel(s, event, request);
	Channel *channel = registry().find_token(request.token);
	if (!channel || !same_name(channel->listener, name))
		return {Refusal::NoChannel};
	return request.queue == 0 ? channel->adopt_again(s, event, request)
				  : channel->adopt(s, event, request);
}

Verdict kd_listener::accept_channel(Sleepable s, const kd_cm_event &event,
				    const wire::RequestInfo &request)
{
	if (request.queues + request.poll_queues > params.max_queues)
		return {Refusal::Queues, params.max_queues};
	if (registry().count_channels(name) >= params.max_channels)
		return {Refusal::Full, params.max_channels};
	uint64_t bytes =
		limits::buffer_bytes(
			{request.depth < params.max_depth ? request.depth : params.max_depth,
			 request.eager_limit < params.eager_limit ? request.eager_limit
								  : params.eager_limit,
			 0}) *
		(request.queues + request.poll_queues);
	if (registry().buffer_bytes(name) + bytes > limits::max_listener_bytes)
		return {Refusal::Resources, KD_ENOMEM};
	kd_endpoint peer;
	kd_cm_peer(event.new_cm, &peer);
	Channel *channel =
		Channel::create_target(s, net, peer,
				       {request,
					{params.max_depth, params.eager_limit, params.max_message},
					name,
					registry().accepted_number(name)});
	if (!channel)
		return {Refusal::Resources, KD_ENOMEM};
	kd_error error{};
	if (!registry().add(*channel, &error).ok()) {
		channel->put(s);
		return {Refusal::Resources, uint32_t(error.err)};
	}
	Verdict verdict = channel->adopt(s, event, request);
	if (verdict) { // cannot be: its queues are all free
		channel->request_delete();
		return verdict;
	}
	accepted++;
	return {};
}

Verdict kd_listener::accept_raw(Sleepable s, const kd_cm_event &event, const kd_endpoint &peer)
{
	if (registry().count_channels(name) >= params.max_channels)
		return {Refusal::Full, params.max_channels};
	uint64_t bytes = uint64_t(params.max_depth) * limits::raw_eager(params);
	if (registry().buffer_bytes(name) + bytes > limits::max_listener_bytes)
		return {Refusal::Resources, KD_ENOMEM};
	Channel *channel =
		Channel::create_raw_target(s, net, peer, params, registry().accepted_number(name));
	if (!channel)
		return {Refusal::Resources, KD_ENOMEM};
	kd_error error{};
	if (!registry().add(*channel, &error).ok()) {
		channel->put(s);
		return {Refusal::Resources, uint32_t(error.err)};
	}
	channel->adopt_raw(s, event);
	accepted++;
	return {};
}

int kd_listener_cm_event(struct kd_listener *listener, const struct kd_cm_event *event)
{
	Sleepable s = ShimEntry::may_sleep();
	switch (event->type) {
	case KD_CM_CONNECT_REQUEST: {
		Verdict verdict = listener->request(s, *event);
		if (!verdict)
			return 0;
		// Who speaks no protocol of ours gets no reason.
		if (listener->params.mode == KDIRECT_MODE_RAW) {
			(void)kd_cm_reject(event->new_cm, nullptr, 0);
			return KD_ECONNREFUSED;
		}
		wire::Reject reject;
		wire::encode_reject(verdict, reject);
		(void)kd_cm_reject(event->new_cm, &reject, sizeof(reject));
		return KD_ECONNREFUSED;
	}
	case KD_CM_DEVICE_REMOVAL: listener->device_removed(); return 0;
	default: return 0;
	}
}
