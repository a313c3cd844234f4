// SPDX-License-Identifier: GPL-2.0-only
#include "kdirect_netlink.h"
#include "request.h"

namespace kdirect
{

namespace
{

constexpr Field queue_fields[] = {
	{KDIRECT_A_QUEUE_INDEX, "index", Format::number},
	{KDIRECT_A_QUEUE_KIND, "kind", Format::queue_kind},
	{KDIRECT_A_QUEUE_QPN, "qpn", Format::number},
	{KDIRECT_A_QUEUE_DEPTH, "depth", Format::number},
	{KDIRECT_A_QUEUE_CREDITS, "credits", Format::number},
	{KDIRECT_A_QUEUE_TX, "tx", Format::number},
	{KDIRECT_A_QUEUE_RX, "rx", Format::number},
	{KDIRECT_A_QUEUE_CQE_INTERRUPT, "cqe-interrupt", Format::number},
	{KDIRECT_A_QUEUE_CQE_POLLED, "cqe-polled", Format::number},
	{KDIRECT_A_QUEUE_POLLS, "polls", Format::number},
	{KDIRECT_A_QUEUE_POLL_CPU_NS, "poll-cpu", Format::time_ns},
	{KDIRECT_A_QUEUE_POLL_NAPS, "poll-naps", Format::number},
	{KDIRECT_A_QUEUE_POLL_SLEEPS, "poll-sleeps", Format::number},
	{KDIRECT_A_QUEUE_MR_USED, "mr-used", Format::number},
	{KDIRECT_A_QUEUE_MR_TOTAL, "mr-total", Format::number},
};

constexpr View queue_view{"queue", 0, {}, queue_fields};

constexpr Field fields[] = {
	{KDIRECT_A_STAT_TX_MESSAGES, "tx-messages", Format::number},
	{KDIRECT_A_STAT_TX_BYTES, "tx", Format::size},
	{KDIRECT_A_STAT_RX_MESSAGES, "rx-messages", Format::number},
	{KDIRECT_A_STAT_RX_BYTES, "rx", Format::size},
	{KDIRECT_A_STAT_TX_RENDEZVOUS, "tx-rendezvous", Format::number, 1},
	{KDIRECT_A_STAT_RX_RENDEZVOUS, "rx-rendezvous", Format::number, 1},
	{KDIRECT_A_STAT_TX_PINNED_BYTES, "tx-pinned", Format::size, 1},
	{KDIRECT_A_STAT_CREDIT_WAITS, "credit-waits", Format::number, 1},
	{KDIRECT_A_STAT_MAP_READS, "map-reads", Format::number, 3},
	{KDIRECT_A_STAT_MAP_READ_BYTES, "map-read", Format::size, 3},
	{KDIRECT_A_STAT_MAP_WRITES, "map-writes", Format::number, 3},
	{KDIRECT_A_STAT_MAP_WRITE_BYTES, "map-written", Format::size, 3},
	{KDIRECT_A_STAT_MAP_PINNED_BYTES, "map-pinned", Format::size, 3},
	{KDIRECT_A_STAT_MAP_WAITS, "map-waits", Format::number, 3},
	{KDIRECT_A_STAT_MAP_ATOMICS, "map-atomics", Format::number, 3},
	{KDIRECT_A_STAT_DESCS, "descs", Format::number, 3},
	{KDIRECT_A_STAT_DESC_POSTS, "desc-posts", Format::number, 3},
	{KDIRECT_A_STAT_FIXED_BUFFERS, "fixed-buffers", Format::number, 3},
	{KDIRECT_A_STAT_FIXED_BYTES, "fixed", Format::size, 3},
	{KDIRECT_A_STAT_CTRL_TX, "ctrl-tx", Format::number, 2},
	{KDIRECT_A_STAT_CTRL_RX, "ctrl-rx", Format::number, 2},
	{KDIRECT_A_STAT_KEEP_ALIVES, "keep-alives", Format::number, 2},
	{KDIRECT_A_STAT_PINGS, "pings", Format::number, 2},
	{KDIRECT_A_STAT_OUTAGES, "outages", Format::number, 4},
	{KDIRECT_A_STAT_OUTAGE_MS, "outage", Format::time_ms, 4},
	{KDIRECT_A_STAT_ATTEMPTS, "attempts", Format::number, 4},
	{KDIRECT_A_STAT_REPLAYED, "replayed", Format::number, 4},
	{KDIRECT_A_STAT_IO_REPLAYED, "io-replayed", Format::number, 4},
};

constexpr View view{
	.object = "channel",
	.name_attr = KDIRECT_A_NAME,
	.name_key = "name",
	.fields = fields,
	.nest_attr = KDIRECT_A_QUEUE,
	.nest_key = "queues",
	.nest = &queue_view,
};

int show_stats(const Arguments &arguments, const Output &output)
{
	return show(KDIRECT_CMD_STATS_GET, view, arguments, output);
}

constexpr Command commands[] = {
	{
		.name = "show",
		.help = "counters of channels, and with -d of their queues",
		.takes = Name::existing_channel,
		.name_optional = true,
		.run = show_stats,
	},
};

} // namespace

constexpr Object stats_object{
	.name = "stats",
	.help = "counters",
	.commands = commands,
	.implicit = true,
};

} // namespace kdirect
