// SPDX-License-Identifier: GPL-2.0-only
#include "kdirect_netlink.h"
#include "request.h"

namespace kdirect
{

namespace
{

constexpr Field fields[] = {
	{KDIRECT_A_DEV_INDEX, "index", Format::number},
	{KDIRECT_A_DEV_TRANSPORT, "transport", Format::transport},
	{KDIRECT_A_DEV_PORTS, "ports", Format::number},
	{KDIRECT_A_DEV_NODE_GUID, "node-guid", Format::guid},
	{KDIRECT_A_DEV_CHANNELS, "channels", Format::number},
	{KDIRECT_A_MAX_MESSAGE, "max-message", Format::size, 1},
	{KDIRECT_A_DEV_MAX_QP_WR, "max-qp-wr", Format::number, 1},
	{KDIRECT_A_DEV_MAX_CQE, "max-cqe", Format::number, 1},
	{KDIRECT_A_DEV_MAX_SGE, "max-sge", Format::number, 1},
	{KDIRECT_A_DEV_MAX_MR_PAGES, "max-mr-pages", Format::number, 1},
	{KDIRECT_A_DEV_MAX_RD_ATOM, "max-rd-atom", Format::number, 1},
};

constexpr View view{"device", KDIRECT_A_DEV_NAME, "name", fields};

int show_devices(const Arguments &arguments, const Output &output)
{
	return show(KDIRECT_CMD_DEVICE_GET, view, arguments, output);
}

constexpr Command commands[] = {
	{
		.name = "show",
		.help = "list the RDMA devices that channels can use",
		.takes = Name::existing_device,
		.name_optional = true,
		.run = show_devices,
	},
};

} // namespace

constexpr Object device_object{
	.name = "device",
	.alias = "dev",
	.help = "RDMA devices",
	.commands = commands,
};

} // namespace kdirect
