// SPDX-License-Identifier: GPL-2.0-only
// What an administrator may ask for, over netlink. Nothing here waits for a peer.
#include "raw.hh"
#include "registry.hh"

#include "../../uapi/kdirect_netlink.h"

using namespace kd;

namespace
{

void publish(uint32_t type, const char *name, kd_net *net)
{
	kd_event event{};
	event.type = type;
	event.name = name;
	event.net = net;
	kd_event_publish(&event);
}

Status no_such(const char *kind, const char *name, kd_error *error)
{
	return KD_ERROR(error, KD_ENOENT, KDIRECT_A_NAME, "there is no %s \"%s\"", kind, name);
}

} // namespace

int kd_listener_new(struct kd_net *net, const struct kd_listener_params *params,
		    struct kd_error *error)
{
	Sleepable s = ShimEntry::may_sleep();
	if (Status st = limits::check_listener(*params, error); !st.ok())
		return st.err();
	Listener *listener = Listener::create(s, net, *params);
	if (!listener)
		return KD_ERROR(error, KD_ENOMEM, 0, "no memory for a listener").err();
	Status st;
	{
		MutexGuard guard(registry().lock, s);
		st = registry().add(*listener, error);
	}
	if (!st.ok()) {
		listener->close(s);
		return st.err();
	}
	st = listener->open(s);
	{
		MutexGuard guard(registry().lock, s);
		listener->opened = true;
		if (!st.ok())
			registry().remove(*listener);
	}
	if (!st.ok()) {
		listener->close(s);
		const char *why = st.err() == KD_EADDRINUSE      ? "the port is in use"
				  : st.err() == KD_EADDRNOTAVAIL ? "the address is not of this host"
				  : st.err() == KD_ENODEV        ? "the address has no RDMA device"
								 : "cannot listen there";
		uint16_t attr = st.err() == KD_EADDRINUSE ? KDIRECT_A_PORT : KDIRECT_A_ADDR;
		return KD_ERROR(error, st.err(), attr, "%s (port %u)", why, params->local.port)
			.err();
	}
	publish(KDIRECT_EVENT_LISTENER_ADDED, params->name, net);
	return 0;
}

int kd_listener_set(struct kd_net *net, const struct kd_listener_params *params,
		    struct kd_error *error)
{
	Sleepable s = ShimEntry::may_sleep();
	if (Status st = limits::check_listener_change(*params, error); !st.ok())
		return st.err();
	MutexGuard guard(registry().lock, s);
	Listener *listener = registry().find_listener(net, params->name);
	if (!listener)
		return no_such("listener", params->name, error).err();
	if (params->has & KD_HAS_MAX_CHANNELS)
		listener->params.max_channels = params->max_channels;
	if (params->has & (KD_HAS_ALLOW | KD_HAS_ALLOW_CLEAR)) {
		listener->params.nr_allow = params->nr_allow;
		copy_bytes(listener->params.allow, params->allow, sizeof(params->allow));
	}
	return 0;
}

int kd_listener_del(struct kd_net *net, const char *name, struct kd_error *error)
{
	Sleepable s = ShimEntry::may_sleep();
	Listener *listener;
	{
		MutexGuard guard(registry().lock, s);
		listener = registry().find_listener(net, name);
		if (!listener)
			return no_such("listener", name, error).err();
		if (!listener->opened)
			return KD_ERROR(error, KD_EBUSY, KDIRECT_A_NAME,
					"listener \"%s\" is being added", name)
				.err();
		registry().remove(*listener);
	}
	publish(KDIRECT_EVENT_LISTENER_REMOVED, name, listener->net);
	listener->close(s);
	return 0;
}

int kd_channel_new(struct kd_net *net, const struct kd_channel_params *params,
		   struct kd_error *error)
{
	Sleepable s = ShimEntry::may_sleep();
	if (Status st = limits::check_channel(*params, error); !st.ok())
		return st.err();
	Channel *channel = Channel::create_initiator(s, net, *params);
	if (!channel)
		return KD_ERROR(error, KD_ENOMEM, 0, "no memory for a channel of %u queues",
				params->queues + params->poll_queues)
			.err();
	MutexGuard guard(registry().lock, s);
	if (Status st = registry().add(*channel, error); !st.ok()) {
		channel->put(s);
		return st.err();
	}
	channel->kick();
	return 0;
}

int kd_channel_set(struct kd_net *net, const struct kd_channel_params *params,
		   struct kd_error *error)
{
	Sleepable s = ShimEntry::may_sleep();
	if (!params->has)
		return KD_ERROR(error, KD_EINVAL, 0,
				"nothing to set: eager-limit, keep-alive, keep-alive-misses, "
				"request-timeout, drain-timeout, "
				"loss-timeout, fast-io-fail, reconnect-delay, "
				"reconnect-max-delay, poll-mode, poll-cpu, cq-count, cq-period")
			.err();
	if (Status st = limits::check_channel_change(*params, error); !st.ok())
		return st.err();
	MutexGuard guard(registry().lock, s);
	Channel *channel = registry().find_channel(net, params->name);
	if (!channel)
		return no_such("channel", params->name, error).err();
	uint32_t most = channel->agreed().eager_limit;
	if ((params->has & KD_HAS_EAGER_LIMIT) && params->eager_limit > most)
		return KD_ERROR(error, KD_ERANGE, KDIRECT_A_EAGER_LIMIT,
				"eager-limit %u bytes is above the %u bytes that the channel "
				"agreed on",
				params->eager_limit, most)
			.err();
	if (params->has & (KD_HAS_CQ_COUNT | KD_HAS_CQ_PERIOD)) {
		if (channel->device)
			if (Status st = limits::can_moderate(channel->device, error); !st.ok())
				return st.err();
		if (params->has & KD_HAS_CQ_COUNT)
			channel->cq_count = params->cq_count;
		if (params->has & KD_HAS_CQ_PERIOD)
			channel->cq_period_us = params->cq_period_us;
		channel->moderation_set = true;
	}
	if (params->has & KD_HAS_EAGER_LIMIT)
		channel->eager_limit = params->eager_limit;
	if (params->has & KD_HAS_KEEP_ALIVE)
		channel->keep_alive_ms = params->keep_alive_ms;
	if (params->has & KD_HAS_DRAIN_TIMEOUT)
		channel->drain_timeout_ms = params->drain_timeout_ms;
	if (params->has & KD_HAS_KEEP_ALIVE_MISSES)
		channel->keep_alive_misses = params->keep_alive_misses;
	if (params->has & KD_HAS_REQUEST_TIMEOUT)
		channel->request_timeout_ms = params->request_timeout_ms;
	if (params->has & KD_HAS_LOSS_TIMEOUT)
		channel->loss_timeout_ms = params->loss_timeout_ms;
	if (params->has & KD_HAS_FAST_IO_FAIL)
		channel->fast_io_fail_ms = params->fast_io_fail_ms;
	if (params->has & KD_HAS_RECONNECT_DELAY)
		channel->reconnect_delay_ms = params->reconnect_delay_ms;
	if (params->has & KD_HAS_RECONNECT_MAX_DELAY)
		channel->reconnect_max_delay_ms = params->reconnect_max_delay_ms;
	if (params->has & KD_HAS_POLL_MODE)
		channel->poll_mode = PollMode(params->poll_mode);
	if (params->has & KD_HAS_POLL_CPU)
		channel->poll_cpu_percent = params->poll_cpu_percent;
	channel->kick();
	return 0;
}

int kd_channel_del(struct kd_net *net, const char *name, struct kd_error *error)
{
	MutexGuard guard(registry().lock, ShimEntry::may_sleep());
	Channel *channel = registry().find_channel(net, name);
	if (!channel)
		return no_such("channel", name, error).err();
	channel->request_delete();
	return 0;
}

void kd_owner_gone(uint64_t owner)
{
	MutexGuard guard(registry().lock, ShimEntry::may_sleep());
	registry().each_channel([&](Channel &c) {
		if (c.initiator && c.params.owner == owner && !c.ever_live &&
		    !(c.raw && c.raw->held))
			c.request_delete();
	});
}
