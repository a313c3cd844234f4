// SPDX-License-Identifier: GPL-2.0-only
// Parameters that several commands share. The ranges are those of kdirect_netlink.h, checked
// here as well since a refusal before anything is sent can name what was typed.
#pragma once

#include <string>

#include "arguments.h"
#include "command.h"
#include "event.h"
#include "failure.h"
#include "kdirect_netlink.h"
#include "quantity.h"

namespace kdirect
{

constexpr Parameter max_message_parameter{
	.key = "max-message",
	.type = Type::size,
	.attr = KDIRECT_A_MAX_MESSAGE,
	.min = 4 << 10,
	.max = 1 << 20,
	.preset = "1M",
	.help = "longest message",
};

constexpr Parameter eager_limit_parameter{
	.key = "eager-limit",
	.type = Type::size,
	.attr = KDIRECT_A_EAGER_LIMIT,
	.min = 256,
	.max = 64 << 10,
	.preset = "16K",
	.help = "longest message that is sent by copy; the peer fetches longer ones",
};

constexpr Parameter keep_alive_parameter{
	.key = "keep-alive",
	.type = Type::time_ms,
	.attr = KDIRECT_A_KEEP_ALIVE_MS,
	.min = 100 * ns_per_ms,
	.max = 60 * ns_per_s,
	.word = "off",
	.preset = "5s",
	.help = "how often the peer must give a sign of life",
};

constexpr Parameter drain_timeout_parameter{
	.key = "drain-timeout",
	.type = Type::time_ms,
	.attr = KDIRECT_A_DRAIN_TIMEOUT_MS,
	.min = 10 * ns_per_ms,
	.max = 60 * ns_per_s,
	.preset = "3s",
	.help = "how long a teardown waits for what is in flight",
};

constexpr Parameter keep_alive_misses_parameter{
	.key = "keep-alive-misses",
	.type = Type::count32,
	.attr = KDIRECT_A_KEEP_ALIVE_MISSES,
	.min = 1,
	.max = 100,
	.preset = "3",
	.help = "so many of them without an answer end the connection",
};

constexpr Parameter request_timeout_parameter{
	.key = "request-timeout",
	.type = Type::time_ms,
	.attr = KDIRECT_A_REQUEST_TIMEOUT_MS,
	.min = 1 * ns_per_s,
	.max = 600 * ns_per_s,
	.preset = "15s",
	.help = "how long a work request may take, as far as keep-alives are on",
};

constexpr Parameter loss_timeout_parameter{
	.key = "loss-timeout",
	.type = Type::time_ms,
	.attr = KDIRECT_A_LOSS_TIMEOUT_MS,
	.min = 100 * ns_per_ms,
	.max = 86400 * ns_per_s,
	.word = "off",
	.ever = "forever",
	.preset = "off",
	.help = "how long the channel outlives its connection, and connects again",
};

constexpr Parameter fast_io_fail_parameter{
	.key = "fast-io-fail",
	.type = Type::time_ms,
	.attr = KDIRECT_A_FAST_IO_FAIL_MS,
	.min = 100 * ns_per_ms,
	.max = 86400 * ns_per_s,
	.word = "off",
	.preset = "off",
	.help = "how long users wait for that before they get an error",
};

constexpr Parameter reconnect_delay_parameter{
	.key = "reconnect-delay",
	.type = Type::time_ms,
	.attr = KDIRECT_A_RECONNECT_DELAY_MS,
	.min = 100 * ns_per_ms,
	.max = 600 * ns_per_s,
	.preset = "1s",
	.help = "between the first attempts to connect again; it doubles",
};

constexpr Parameter reconnect_max_delay_parameter{
	.key = "reconnect-max-delay",
	.type = Type::time_ms,
	.attr = KDIRECT_A_RECONNECT_MAX_DELAY_MS,
	.min = 100 * ns_per_ms,
	.max = 600 * ns_per_s,
	.preset = "10s",
	.help = "and between all others at most",
};

constexpr Parameter poll_mode_parameter{
	.key = "poll-mode",
	.type = Type::choice,
	.attr = KDIRECT_A_POLL_MODE,
	.words = poll_modes,
	.preset = "busy",
	.help = "what those who poll do",
};

constexpr Parameter poll_cpu_parameter{
	.key = "poll-cpu",
	.type = Type::count32,
	.attr = KDIRECT_A_POLL_CPU_PERCENT,
	.min = 1,
	.max = 100,
	.preset = "50",
	.help = "percent of a CPU that adaptive polling may take for each queue",
};

constexpr Parameter cq_count_parameter{
	.key = "cq-count",
	.type = Type::count32,
	.attr = KDIRECT_A_CQ_COUNT,
	.max = 65535,
	.preset = "0",
	.help = "completions until an interrupt; 0 with cq-period 0: as the device does it",
};

constexpr Parameter cq_period_parameter{
	.key = "cq-period",
	.type = Type::time_us,
	.attr = KDIRECT_A_CQ_PERIOD_US,
	.max = 65535 * ns_per_us,
	.preset = "0ns",
	.help = "time until an interrupt, with fewer completions",
};

constexpr Parameter max_channels_parameter{
	.key = "max-channels",
	.type = Type::count32,
	.attr = KDIRECT_A_MAX_CHANNELS,
	.min = 1,
	.max = 1024,
	.preset = "128",
	.help = "channels at a time",
};

constexpr Parameter allow_parameter{
	.key = "allow",
	.type = Type::prefix,
	.attr = KDIRECT_A_ALLOW,
	.repeated = true,
	.preset = "everyone",
	.help = "peers that may connect; may be repeated",
};

constexpr Parameter nowait_parameter{
	.key = "nowait",
	.help = "return as soon as the kernel has begun",
};

constexpr Parameter read_only_parameter{
	.key = "ro",
	.attr = KDIRECT_A_READ_ONLY,
	.help = "can be read only",
};

constexpr Parameter mode_parameter{
	.key = "mode",
	.type = Type::choice,
	.attr = KDIRECT_A_MODE,
	.words = modes,
	.preset = "session",
	.help = "raw: one queue pair towards any peer, without a protocol of kdirect's",
};

// What follows is of mode raw only.
constexpr Parameter private_data_parameter(uint64_t most)
{
	return {
		.key = "private-data",
		.type = Type::bytes,
		.attr = KDIRECT_A_PRIVATE_DATA,
		.max = most,
		.help = "raw: what the peer is told when connecting; else nothing",
	};
}

constexpr Parameter hold_parameter{
	.key = "hold",
	.attr = KDIRECT_A_HOLD,
	.help = "raw: the node comes first, and its program connects, accepts or refuses",
};

constexpr Parameter retry_count_parameter{
	.key = "retry-count",
	.type = Type::count32,
	.attr = KDIRECT_A_RETRY_COUNT,
	.max = 7,
	.preset = "6",
	.help = "raw: repetitions of what is not acknowledged; 7 is for ever on some devices",
};

constexpr Parameter rnr_retry_count_parameter{
	.key = "rnr-retry-count",
	.type = Type::count32,
	.attr = KDIRECT_A_RNR_RETRY_COUNT,
	.max = 7,
	.preset = "7",
	.help = "raw: repetitions by the peer of what finds no receive here; 7 is for ever",
};

constexpr Parameter initiator_depth_parameter{
	.key = "initiator-depth",
	.type = Type::count32,
	.attr = KDIRECT_A_INITIATOR_DEPTH,
	.max = 255,
	.preset = "16",
	.help = "raw: RDMA READs of ours in flight",
};

constexpr Parameter responder_resources_parameter{
	.key = "responder-resources",
	.type = Type::count32,
	.attr = KDIRECT_A_RESPONDER_RESOURCES,
	.max = 255,
	.preset = "16",
	.help = "raw: RDMA READs of the peer in flight",
};

// What only raw channels have needs that mode.
inline void check_raw(const Arguments &arguments)
{
	if (arguments.number("mode", KDIRECT_MODE_SESSION) == KDIRECT_MODE_RAW)
		return;
	for (const std::string_view key : {"private-data", "hold", "retry-count", "rnr-retry-count",
					   "initiator-depth", "responder-resources"})
		if (arguments.has(key))
			throw UsageError(std::string(key) + " needs mode raw");
}

// For a set command, where what is not given stays as it is.
constexpr Parameter without_preset(Parameter parameter)
{
	parameter.preset = {};
	return parameter;
}

} // namespace kdirect
