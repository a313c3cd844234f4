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

constexpr Field fields[] = {
	{KDIRECT_A_MAP_STATE, "state", Format::map_state},
	{KDIRECT_A_CHANNEL, "channel", Format::text},
	{KDIRECT_A_EXPORT, "export", Format::text},
	{KDIRECT_A_SIZE, "size", Format::size},
	{KDIRECT_A_READ_ONLY, "rights", Format::rights},
	{KDIRECT_A_ERROR, "error", Format::error},
	{KDIRECT_A_OPENS, "opens", Format::number, 1},
	{KDIRECT_A_KEYS, "keys", Format::number, 1},
	{KDIRECT_A_KEY_BYTES, "key-size", Format::size, 1},
	{KDIRECT_A_INSTANCE, "instance", Format::hex, 1},
	{KDIRECT_A_NETNS, "netns", Format::number, 1},
	{KDIRECT_A_CAUSE, "cause", Format::text, 2},
};

constexpr View view{"map", KDIRECT_A_NAME, "name", fields};

int show_maps(const Arguments &arguments, const Output &output)
{
	return show(KDIRECT_CMD_MAP_GET, view, arguments, output);
}

ObjectError failure(int error, std::string_view cause)
{
	if (error == 0)
		error = ECONNABORTED; // removed by somebody else before it was live
	if (cause.empty())
		return ObjectError(describe_errno(error));
	return ObjectError(fmt::format("{} ({})", escape(cause), errno_name(error)));
}

// Whether the mapping is live; throws if it was refused.
bool settled(const Event &event, const std::string &name)
{
	if (event.name != name)
		return false;
	if (event.type == KDIRECT_EVENT_MAP_REMOVED)
		throw failure(event.error, event.cause);
	return event.type == KDIRECT_EVENT_MAP_STATE && event.state == KDIRECT_MAP_LIVE;
}

// As settled(), after events were lost.
bool settled(Client &client, const std::string &name)
{
	const auto map = find(client, KDIRECT_CMD_MAP_GET, name);

	if (!map)
		throw ObjectError("it failed, and the event that tells why was lost");
	return map->number(KDIRECT_A_MAP_STATE) != uint64_t{KDIRECT_MAP_ASKING};
}

int wait_until_live(Client &client, EventStream &events, Signals &signals,
		    const Arguments &arguments)
{
	const std::string &name = arguments.name();

	while (!signals.caught()) {
		if (!signals.wait(events.fd()))
			continue;

		const auto batch = events.receive();

		if (!batch && settled(client, name))
			return exit_ok;
		for (const Event &event : batch.value_or(std::vector<Event>()))
			if (settled(event, name))
				return exit_ok;
	}

	Message message = client.message(KDIRECT_CMD_MAP_DEL);

	message.put_string(KDIRECT_A_NAME, name);
	client.execute(message);
	throw ObjectError("interrupted, and removed", exit_signal + signals.caught());
}

int add(const Arguments &arguments, const Output &)
{
	Client client;

	if (arguments.has("nowait"))
		return execute(client, KDIRECT_CMD_MAP_NEW, arguments);

	Signals signals;
	EventStream events(client);

	execute(client, KDIRECT_CMD_MAP_NEW, arguments);
	return wait_until_live(client, events, signals, arguments);
}

int del(const Arguments &arguments, const Output &)
{
	return del_and_wait(KDIRECT_CMD_MAP_DEL, KDIRECT_CMD_MAP_GET, KDIRECT_EVENT_MAP_REMOVED,
			    arguments);
}

constexpr Parameter add_parameters[] = {
	{
		.key = "channel",
		.type = Type::channel,
		.attr = KDIRECT_A_CHANNEL,
		.required = true,
		.help = "a channel that was added here",
	},
	{
		.key = "export",
		.type = Type::name,
		.attr = KDIRECT_A_EXPORT,
		.required = true,
		.help = "an export of the listener at its other end",
	},
	read_only_parameter,
	nowait_parameter,
};

constexpr Parameter del_parameters[] = {nowait_parameter};

constexpr Command commands[] = {
	{
		.name = "show",
		.help = "list mappings",
		.takes = Name::existing_map,
		.name_optional = true,
		.run = show_maps,
	},
	{
		.name = "add",
		.help = "make a peer's export a device here, and wait until it is",
		.takes = Name::fresh,
		.parameters = add_parameters,
		.run = add,
	},
	{
		.name = "del",
		.help = "remove a mapping, and wait until nothing of it is left",
		.takes = Name::existing_map,
		.parameters = del_parameters,
		.run = del,
	},
};

} // namespace

constexpr Object map_object{
	.name = "map",
	.help = "exports of peers, as devices that can be read and written",
	.commands = commands,
};

} // namespace kdirect
