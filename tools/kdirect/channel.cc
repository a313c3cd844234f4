// SPDX-License-Identifier: GPL-2.0-only
#include <cerrno>

#include <fmt/format.h>

#include "event.h"
#include "failure.h"
#include "kdirect_netlink.h"
#include "parameters.h"
#include "request.h"
#include "signals.h"
#include "text.h"
#include "wait.h"

namespace kdirect
{

namespace
{

constexpr uint64_t max_data_queues = 64;

constexpr Field fields[] = {
	{KDIRECT_A_STATE, "state", Format::state},
	{KDIRECT_A_ADDR, "peer", Format::endpoint},
	{KDIRECT_A_DEV_NAME, "device", Format::text},
	{KDIRECT_A_LISTENER, "listener", Format::text},
	{KDIRECT_A_MODE, "mode", Format::mode},
	{KDIRECT_A_HELD, "held", Format::flag},
	{KDIRECT_A_ERROR, "error", Format::error},
	{KDIRECT_A_LOCAL_ADDR, "local", Format::endpoint, 1},
	{KDIRECT_A_SRC_ADDR, "from", Format::address, 1},
	{KDIRECT_A_QUEUES, "queues", Format::number, 1},
	{KDIRECT_A_POLL_QUEUES, "poll-queues", Format::number, 1},
	{KDIRECT_A_DEPTH, "depth", Format::number, 1},
	{KDIRECT_A_MAX_MESSAGE, "max-message", Format::size, 1},
	{KDIRECT_A_EAGER_LIMIT, "eager-limit", Format::size, 1},
	{KDIRECT_A_KEEP_ALIVE_MS, "keep-alive", Format::time_ms_or_off, 2},
	{KDIRECT_A_CONNECT_TIMEOUT_MS, "connect-timeout", Format::time_ms, 2},
	{KDIRECT_A_DRAIN_TIMEOUT_MS, "drain-timeout", Format::time_ms, 2},
	{KDIRECT_A_KEEP_ALIVE_MISSES, "keep-alive-misses", Format::number, 7},
	{KDIRECT_A_REQUEST_TIMEOUT_MS, "request-timeout", Format::time_ms, 7},
	{KDIRECT_A_LOSS_TIMEOUT_MS, "loss-timeout", Format::time_ms_or_off, 7},
	{KDIRECT_A_FAST_IO_FAIL_MS, "fast-io-fail", Format::time_ms_or_off, 7},
	{KDIRECT_A_RECONNECT_DELAY_MS, "reconnect-delay", Format::time_ms, 7},
	{KDIRECT_A_RECONNECT_MAX_DELAY_MS, "reconnect-max-delay", Format::time_ms, 7},
	{KDIRECT_A_POLL_MODE, "poll-mode", Format::poll_mode, 2},
	{KDIRECT_A_POLL_CPU_PERCENT, "poll-cpu", Format::percent, 2},
	{KDIRECT_A_CQ_COUNT, "cq-count", Format::number, 2},
	{KDIRECT_A_CQ_PERIOD_US, "cq-period", Format::time_us, 2},
	{KDIRECT_A_INITIATOR_DEPTH, "initiator-depth", Format::number, 3},
	{KDIRECT_A_RESPONDER_RESOURCES, "responder-resources", Format::number, 3},
	{KDIRECT_A_RETRY_COUNT, "retry-count", Format::number, 3},
	{KDIRECT_A_RNR_RETRY_COUNT, "rnr-retry-count", Format::number, 3},
	{KDIRECT_A_PRIVATE_DATA, "private-data", Format::bytes, 4},
	{KDIRECT_A_PEER_DATA, "peer-data", Format::bytes, 4},
	{KDIRECT_A_STATE_AGE_MS, "state-age", Format::time_ms, 5},
	{KDIRECT_A_OPENS, "opens", Format::number, 5},
	{KDIRECT_A_NETNS, "netns", Format::number, 5},
	{KDIRECT_A_CAUSE, "cause", Format::text, 6},
	{KDIRECT_A_ATTEMPT_CAUSE, "attempt-cause", Format::text, 8},
	{KDIRECT_A_LAST_CAUSE, "last-cause", Format::text, 9},
};

constexpr View view{"channel", KDIRECT_A_NAME, "name", fields};

ObjectError failure(int error, std::string_view cause)
{
	if (error == 0)
		error = ECONNABORTED; // removed by somebody else before it was live
	if (cause.empty())
		return ObjectError(describe_errno(error));
	return ObjectError(fmt::format("{} ({})", escape(cause), errno_name(error)));
}

// The state of the channel now; dead if there is none.
uint64_t state_of(Client &client, const std::string &name)
{
	const auto channel = find(client, KDIRECT_CMD_CHANNEL_GET, name);

	return channel ? channel->number(KDIRECT_A_STATE).value_or(KDIRECT_STATE_DEAD)
		       : static_cast<uint64_t>(KDIRECT_STATE_DEAD);
}

bool is_ending(uint64_t state)
{
	return state == KDIRECT_STATE_DELETING || state == KDIRECT_STATE_DEAD;
}

// Whether the channel is live, or held; throws if it has failed.
bool settled(Client &client, const std::string &name, const Event &event)
{
	switch (judge(event, name)) {
	case Verdict::waiting: return false;
	case Verdict::live: return true;
	case Verdict::removed:
		if (is_ending(state_of(client, name)))
			throw failure(event.error, event.cause);
	}
	return false;
}

// As settled(), after events were lost.
bool settled(Client &client, const std::string &name)
{
	const auto channel = find(client, KDIRECT_CMD_CHANNEL_GET, name);
	const uint64_t state = channel ? channel->number(KDIRECT_A_STATE).value_or(0)
				       : static_cast<uint64_t>(KDIRECT_STATE_DEAD);

	if (is_ending(state))
		throw ObjectError("it failed, and the event that tells why was lost");
	return state == KDIRECT_STATE_LIVE || channel->has(KDIRECT_A_HELD);
}

int wait_until_live(Client &client, EventStream &events, Signals &signals, const std::string &name)
{
	while (!signals.caught()) {
		if (!signals.wait(events.fd()))
			continue;

		const auto batch = events.receive();

		if (!batch && settled(client, name))
			return exit_ok;
		for (const Event &event : batch.value_or(std::vector<Event>()))
			if (settled(client, name, event))
				return exit_ok;
	}
	// The kernel removes the channel when the socket closes.
	throw ObjectError("interrupted, and removed", exit_signal + signals.caught());
}

void check_queues(const Arguments &arguments)
{
	const uint64_t queues = arguments.number("queues", 1);
	const uint64_t poll_queues = arguments.number("poll-queues", 0);
	const bool raw = arguments.number("mode", KDIRECT_MODE_SESSION) == KDIRECT_MODE_RAW;

	if (raw && (queues > 1 || poll_queues > 1))
		throw UsageError("queues and poll-queues: a raw channel has one queue");
	if (queues + poll_queues < 1 || queues + poll_queues > max_data_queues)
		throw UsageError(fmt::format("queues {} and poll-queues {}: together they must "
					     "be 1 to {}",
					     queues, poll_queues, max_data_queues));
}

void check_from(const Arguments &arguments)
{
	const Setting *const from = arguments.find("from");

	if (from && std::get<Address>(from->value).is_v6() !=
			    std::get<Endpoint>(arguments.find("to")->value).address.is_v6())
		throw UsageError("from and to: one is IPv4, the other IPv6");
}

int add(const Arguments &arguments, const Output &)
{
	check_queues(arguments);
	check_from(arguments);
	check_raw(arguments);

	Client client;

	if (arguments.has("nowait"))
		return execute(client, KDIRECT_CMD_CHANNEL_NEW, arguments);

	Signals signals;
	EventStream events(client);
	Message message = client.message(KDIRECT_CMD_CHANNEL_NEW);

	put(message, arguments);
	message.put_flag(KDIRECT_A_SOCKET_OWNER);
	client.execute(message);
	return wait_until_live(client, events, signals, arguments.name());
}

int set(const Arguments &arguments, const Output &)
{
	if (arguments.settings().empty())
		throw UsageError("nothing to set: give eager-limit, keep-alive, keep-alive-misses, "
				 "request-timeout, drain-timeout, "
				 "loss-timeout, fast-io-fail, reconnect-delay, "
				 "reconnect-max-delay, poll-mode, poll-cpu, cq-count or cq-period");

	Client client;

	return execute(client, KDIRECT_CMD_CHANNEL_SET, arguments);
}

int del(const Arguments &arguments, const Output &)
{
	return del_and_wait(KDIRECT_CMD_CHANNEL_DEL, KDIRECT_CMD_CHANNEL_GET,
			    KDIRECT_EVENT_CHANNEL_REMOVED, arguments);
}

int show_channels(const Arguments &arguments, const Output &output)
{
	return show(KDIRECT_CMD_CHANNEL_GET, view, arguments, output);
}

constexpr Parameter add_parameters[] = {
	{
		.key = "to",
		.type = Type::endpoint,
		.attr = KDIRECT_A_ADDR,
		.required = true,
		.help = "the peer's listener",
	},
	{
		.key = "from",
		.type = Type::address,
		.attr = KDIRECT_A_SRC_ADDR,
		.preset = "by route",
		.help = "local address",
	},
	{
		.key = "queues",
		.type = Type::count16,
		.attr = KDIRECT_A_QUEUES,
		.max = max_data_queues,
		.preset = "1",
		.help = "queues that complete by interrupt",
	},
	{
		.key = "poll-queues",
		.type = Type::count16,
		.attr = KDIRECT_A_POLL_QUEUES,
		.max = max_data_queues,
		.preset = "0",
		.help = "queues that the caller polls; with queues 64 at most",
	},
	{
		.key = "depth",
		.type = Type::count32,
		.attr = KDIRECT_A_DEPTH,
		.min = 1,
		.max = 1024,
		.preset = "32",
		.help = "messages in flight per queue and direction",
	},
	max_message_parameter,
	eager_limit_parameter,
	keep_alive_parameter,
	{
		.key = "connect-timeout",
		.type = Type::time_ms,
		.attr = KDIRECT_A_CONNECT_TIMEOUT_MS,
		.min = 100 * ns_per_ms,
		.max = 120 * ns_per_s,
		.preset = "10s",
		.help = "how long to try until the channel is live",
	},
	drain_timeout_parameter,
	keep_alive_misses_parameter,
	request_timeout_parameter,
	loss_timeout_parameter,
	fast_io_fail_parameter,
	reconnect_delay_parameter,
	reconnect_max_delay_parameter,
	poll_mode_parameter,
	poll_cpu_parameter,
	cq_count_parameter,
	cq_period_parameter,
	mode_parameter,
	private_data_parameter(56),
	hold_parameter,
	retry_count_parameter,
	rnr_retry_count_parameter,
	initiator_depth_parameter,
	responder_resources_parameter,
	nowait_parameter,
};

constexpr Parameter set_parameters[] = {
	without_preset(eager_limit_parameter),
	without_preset(keep_alive_parameter),
	without_preset(drain_timeout_parameter),
	without_preset(keep_alive_misses_parameter),
	without_preset(request_timeout_parameter),
	without_preset(loss_timeout_parameter),
	without_preset(fast_io_fail_parameter),
	without_preset(reconnect_delay_parameter),
	without_preset(reconnect_max_delay_parameter),
	without_preset(poll_mode_parameter),
	without_preset(poll_cpu_parameter),
	without_preset(cq_count_parameter),
	without_preset(cq_period_parameter),
};

constexpr Parameter del_parameters[] = {nowait_parameter};

constexpr Command commands[] = {
	{
		.name = "show",
		.help = "list channels",
		.takes = Name::existing_channel,
		.name_optional = true,
		.run = show_channels,
	},
	{
		.name = "add",
		.help = "connect to a listener, and wait until the channel is live, or held",
		.takes = Name::fresh,
		.parameters = add_parameters,
		.run = add,
	},
	{
		.name = "set",
		.help = "change a channel while it lives",
		.takes = Name::existing_channel,
		.parameters = set_parameters,
		.run = set,
	},
	{
		.name = "del",
		.help = "drain and remove a channel, and wait until nothing of it is left",
		.takes = Name::existing_channel,
		.parameters = del_parameters,
		.run = del,
	},
};

} // namespace

constexpr Object channel_object{
	.name = "channel",
	.help = "connections that carry messages",
	.commands = commands,
};

} // namespace kdirect
