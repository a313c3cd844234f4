// SPDX-License-Identifier: GPL-2.0-only
#include "kdirect_netlink.h"
#include "parameters.h"
#include "request.h"
#include "wait.h"

namespace kdirect
{

namespace
{

constexpr Field fields[] = {
	{KDIRECT_A_LISTENER, "listener", Format::text},
	{KDIRECT_A_SIZE, "size", Format::size},
	{KDIRECT_A_READ_ONLY, "rights", Format::rights},
	{KDIRECT_A_MAPS, "maps", Format::number},
	{KDIRECT_A_DELETING, "deleting", Format::flag},
	{KDIRECT_A_INSTANCE, "instance", Format::hex, 1},
	{KDIRECT_A_NETNS, "netns", Format::number, 1},
};

constexpr View view{"export", KDIRECT_A_NAME, "name", fields};

int show_exports(const Arguments &arguments, const Output &output)
{
	return show(KDIRECT_CMD_EXPORT_GET, view, arguments, output);
}

int add(const Arguments &arguments, const Output &)
{
	Client client;

	return execute(client, KDIRECT_CMD_EXPORT_NEW, arguments);
}

int del(const Arguments &arguments, const Output &)
{
	return del_and_wait(KDIRECT_CMD_EXPORT_DEL, KDIRECT_CMD_EXPORT_GET,
			    KDIRECT_EVENT_EXPORT_REMOVED, arguments);
}

constexpr Parameter add_parameters[] = {
	{
		.key = "listener",
		.type = Type::listener,
		.attr = KDIRECT_A_LISTENER,
		.required = true,
		.help = "whose channels may map it",
	},
	{
		.key = "size",
		.type = Type::size64,
		.attr = KDIRECT_A_SIZE,
		.min = 1,
		.max = 16ULL << 30,
		.required = true,
		.help = "memory that is set aside for it, all zeros at first",
	},
	read_only_parameter,
};

constexpr Parameter del_parameters[] = {nowait_parameter};

constexpr Command commands[] = {
	{
		.name = "show",
		.help = "list exports",
		.takes = Name::existing_export,
		.name_optional = true,
		.run = show_exports,
	},
	{
		.name = "add",
		.help = "offer memory to the peers of a listener",
		.takes = Name::fresh,
		.parameters = add_parameters,
		.run = add,
	},
	{
		.name = "del",
		.help = "take an export back from all peers, and wait until none can touch it",
		.takes = Name::existing_export,
		.parameters = del_parameters,
		.run = del,
	},
};

} // namespace

constexpr Object export_object{
	.name = "export",
	.help = "memory that peers may map",
	.commands = commands,
};

} // namespace kdirect
