// SPDX-License-Identifier: GPL-2.0-only
#include <algorithm>

#include "failure.h"
#include "kdirect_netlink.h"
#include "parameters.h"
#include "request.h"

namespace kdirect
{

namespace
{

constexpr size_t max_prefixes = 64;

constexpr Field fields[] = {
	{KDIRECT_A_ADDR, "addr", Format::address},
	{KDIRECT_A_PORT, "port", Format::number},
	{KDIRECT_A_CHANNELS, "channels", Format::number},
	{KDIRECT_A_MAX_CHANNELS, "max-channels", Format::number},
	{KDIRECT_A_ALLOW, "allow", Format::prefixes},
	{KDIRECT_A_MAX_QUEUES, "max-queues", Format::number, 1},
	{KDIRECT_A_MAX_DEPTH, "max-depth", Format::number, 1},
	{KDIRECT_A_MAX_MESSAGE, "max-message", Format::size, 1},
	{KDIRECT_A_EAGER_LIMIT, "eager-limit", Format::size, 1},
	{KDIRECT_A_MODE, "mode", Format::mode, 1},
	{KDIRECT_A_HOLD, "hold", Format::flag, 1},
	{KDIRECT_A_INITIATOR_DEPTH, "initiator-depth", Format::number, 1},
	{KDIRECT_A_RESPONDER_RESOURCES, "responder-resources", Format::number, 1},
	{KDIRECT_A_RETRY_COUNT, "retry-count", Format::number, 1},
	{KDIRECT_A_RNR_RETRY_COUNT, "rnr-retry-count", Format::number, 1},
	{KDIRECT_A_ACCEPTED, "accepted", Format::number, 2},
	{KDIRECT_A_REJECTED, "rejected", Format::number, 2},
	{KDIRECT_A_NETNS, "netns", Format::number, 2},
	{KDIRECT_A_PRIVATE_DATA, "private-data", Format::bytes, 3},
};

constexpr View view{"listener", KDIRECT_A_NAME, "name", fields};

// "none" among prefixes contradicts them, and a prefix of the other family never matches.
void check_allow(const Arguments &arguments)
{
	const Setting *const addr = arguments.find("addr");
	size_t prefixes = 0, nones = 0;

	for (const Setting &setting : arguments.settings()) {
		if (setting.parameter->attr != KDIRECT_A_ALLOW)
			continue;

		const auto *prefix = std::get_if<Prefix>(&setting.value);

		prefix ? prefixes++ : nones++;
		if (prefix && addr &&
		    prefix->address.is_v6() != std::get<Address>(addr->value).is_v6())
			throw UsageError("allow '" + format(*prefix) +
					 "': not of the same family as addr");
	}
	if (nones > 1 || (nones && prefixes))
		throw UsageError("'allow none' stands alone");
	if (prefixes > max_prefixes)
		throw UsageError("allow: at most 64 prefixes");
}

int add(const Arguments &arguments, const Output &)
{
	check_allow(arguments);
	check_raw(arguments);

	Client client;

	return execute(client, KDIRECT_CMD_LISTENER_NEW, arguments);
}

int set(const Arguments &arguments, const Output &)
{
	check_allow(arguments);
	if (arguments.settings().empty())
		throw UsageError("nothing to set: give allow or max-channels");

	Client client;

	return execute(client, KDIRECT_CMD_LISTENER_SET, arguments);
}

int del(const Arguments &arguments, const Output &)
{
	Client client;

	return execute(client, KDIRECT_CMD_LISTENER_DEL, arguments);
}

int show_listeners(const Arguments &arguments, const Output &output)
{
	return show(KDIRECT_CMD_LISTENER_GET, view, arguments, output);
}

constexpr Parameter allow_or_none()
{
	Parameter parameter = allow_parameter;

	parameter.word = "none";
	parameter.preset = {};
	parameter.help = "replaces the list of peers that may connect; none empties it, which "
			 "admits everyone";
	return parameter;
}

// As a limit it allows all that channels may ask for.
constexpr Parameter highest_eager_limit()
{
	Parameter parameter = eager_limit_parameter;

	parameter.preset = "64K";
	return parameter;
}

constexpr Parameter add_parameters[] = {
	{
		.key = "addr",
		.type = Type::address,
		.attr = KDIRECT_A_ADDR,
		.required = true,
		.help = "local address to listen on",
	},
	{
		.key = "port",
		.type = Type::port,
		.attr = KDIRECT_A_PORT,
		.min = 1,
		.max = 65535,
		.required = true,
		.help = "port to listen on",
	},
	allow_parameter,
	max_channels_parameter,
	{
		.key = "max-queues",
		.type = Type::count16,
		.attr = KDIRECT_A_MAX_QUEUES,
		.min = 1,
		.max = 64,
		.preset = "16",
		.help = "data queues of one channel",
	},
	{
		.key = "max-depth",
		.type = Type::count32,
		.attr = KDIRECT_A_MAX_DEPTH,
		.min = 1,
		.max = 1024,
		.preset = "128",
		.help = "messages in flight per queue and direction; the depth of raw channels",
	},
	max_message_parameter,
	highest_eager_limit(),
	mode_parameter,
	private_data_parameter(196),
	hold_parameter,
	retry_count_parameter,
	rnr_retry_count_parameter,
	initiator_depth_parameter,
	responder_resources_parameter,
};

constexpr Parameter set_parameters[] = {
	allow_or_none(),
	without_preset(max_channels_parameter),
};

constexpr Command commands[] = {
	{
		.name = "show",
		.help = "list listeners",
		.takes = Name::existing_listener,
		.name_optional = true,
		.run = show_listeners,
	},
	{
		.name = "add",
		.help = "accept channels on an address and port",
		.takes = Name::fresh,
		.parameters = add_parameters,
		.run = add,
	},
	{
		.name = "set",
		.help = "change a listener; its channels stay",
		.takes = Name::existing_listener,
		.parameters = set_parameters,
		.run = set,
	},
	{
		.name = "del",
		.help = "stop accepting; the channels stay",
		.takes = Name::existing_listener,
		.run = del,
	},
};

} // namespace

constexpr Object listener_object{
	.name = "listener",
	.help = "addresses and ports that accept channels",
	.commands = commands,
};

} // namespace kdirect
