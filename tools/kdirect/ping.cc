// SPDX-License-Identifier: GPL-2.0-only
#include <cerrno>
#include <ctime>
#include <fcntl.h>
#include <limits>
#include <sys/ioctl.h>
#include <unistd.h>

#include <fmt/format.h>

#include "arguments.h"
#include "failure.h"
#include "kdirect.h"
#include "kdirect_netlink.h"
#include "netlink.h"
#include "output.h"
#include "percentiles.h"
#include "quantity.h"
#include "request.h"
#include "signals.h"
#include "text.h"

namespace kdirect
{

namespace
{

constexpr uint64_t default_count = 1000;
constexpr uint64_t default_size = 64;
constexpr uint64_t default_timeout_ns = ns_per_s;

class Node
{
public:
	explicit Node(const std::string &channel)
		: _fd(open(("/dev/kdirect/" + channel).c_str(), O_RDWR | O_CLOEXEC))
	{
		if (_fd < 0)
			explain(channel, errno);
	}
	~Node() { close(_fd); }
	Node(const Node &) = delete;
	Node &operator=(const Node &) = delete;

	int fd() const { return _fd; }

private:
	// No node may mean no module or no channel, which says more than "no such file".
	[[noreturn]] static void explain(const std::string &channel, int error)
	{
		if (error == ENOENT) {
			Client client;

			client.get(KDIRECT_CMD_CHANNEL_GET, KDIRECT_A_NAME, channel);
		}
		throw Failure(fmt::format("cannot open /dev/kdirect/{}: {}", channel,
					  describe_errno(error)));
	}

	int _fd;
};

struct Options {
	uint64_t count, warmup;
	uint64_t interval_ns;
	kdirect_ping request; // as each one starts
};

struct RoundTrip {
	int error;        // 0: it came back
	uint64_t rtt_ns;  // measured by the kernel, from posting to completion
	uint64_t call_ns; // the whole ioctl as the program sees it
	uint32_t queue;
};

struct Run {
	std::vector<RoundTrip> trips;
	uint64_t elapsed_ns = 0;
	int fatal = 0; // errno that ended the run early

	uint64_t received() const;
	std::optional<Summary> summary(uint64_t RoundTrip::*value) const;
};

uint64_t monotonic_ns()
{
	timespec time{};

	clock_gettime(CLOCK_MONOTONIC, &time);
	return static_cast<uint64_t>(time.tv_sec) * ns_per_s + static_cast<uint64_t>(time.tv_nsec);
}

uint64_t Run::received() const
{
	return static_cast<uint64_t>(std::ranges::count(trips, 0, &RoundTrip::error));
}

std::optional<Summary> Run::summary(uint64_t RoundTrip::*value) const
{
	std::vector<uint64_t> values;

	for (const RoundTrip &trip : trips)
		if (trip.error == 0)
			values.push_back(trip.*value);
	return summarize(std::move(values));
}

Options to_options(const Arguments &arguments)
{
	Options options{
		.count = arguments.number("count", default_count),
		.warmup = arguments.number("warmup", 0),
		.interval_ns = arguments.number("interval", 0),
		.request = {},
	};

	options.request.size = static_cast<uint32_t>(arguments.number("size", default_size));
	options.request.flags = arguments.has("poll") ? KDIRECT_PING_POLL : 0;
	options.request.timeout_ns = arguments.number("timeout", default_timeout_ns);
	return options;
}

RoundTrip round_trip(const Node &node, const Signals &signals, kdirect_ping request)
{
	const Signals::Open open(signals);
	const uint64_t begin = monotonic_ns();
	const int result = ioctl(node.fd(), KDIRECT_IOC_PING, &request);
	const int error = result < 0 ? errno : 0;

	return {error, request.rtt_ns, monotonic_ns() - begin, request.queue};
}

// One lost or damaged echo says something about the channel; any other error would only
// repeat itself.
bool is_loss(int error)
{
	return error == ETIMEDOUT || error == EBADMSG;
}

Run ping_all(const Node &node, const Options &options)
{
	Signals signals;
	Run run;
	uint64_t begin = monotonic_ns();

	run.trips.reserve(options.count);
	for (uint64_t i = 0; i < options.warmup + options.count && !signals.caught(); i++) {
		if (i == options.warmup)
			begin = monotonic_ns();
		if (i > 0 && options.interval_ns)
			signals.wait(-1, options.interval_ns);
		if (signals.caught())
			break;

		const RoundTrip trip = round_trip(node, signals, options.request);

		if (trip.error == EINTR)
			break;
		if (trip.error && !is_loss(trip.error)) {
			run.fatal = trip.error;
			break;
		}
		if (i >= options.warmup)
			run.trips.push_back(trip);
	}
	run.elapsed_ns = monotonic_ns() - begin;
	return run;
}

Json to_json(const std::optional<Summary> &summary)
{
	if (!summary)
		return nullptr;
	return {{"min_ns", summary->min}, {"mean_ns", summary->mean}, {"p50_ns", summary->p50},
		{"p90_ns", summary->p90}, {"p99_ns", summary->p99},   {"p99_9_ns", summary->p99_9},
		{"max_ns", summary->max}};
}

Json to_json(const RoundTrip &trip)
{
	if (trip.error)
		return {{"errno", trip.error}, {"error", errno_name(trip.error)}};
	return {{"rtt_ns", trip.rtt_ns}, {"call_ns", trip.call_ns}, {"queue", trip.queue}};
}

Json to_json(const Arguments &arguments, const Options &options, const Run &run, bool details)
{
	Json json{
		{"name", arguments.name()},
		{"size_bytes", options.request.size},
		{"completion", options.request.flags & KDIRECT_PING_POLL ? "poll" : "interrupt"},
		{"sent", run.trips.size()},
		{"received", run.received()},
		{"failed", run.trips.size() - run.received()},
		{"elapsed_ns", run.elapsed_ns},
		{"rtt", to_json(run.summary(&RoundTrip::rtt_ns))},
		{"call", to_json(run.summary(&RoundTrip::call_ns))},
	};

	if (details) {
		Json &list = json["round_trips"] = Json::array();

		for (const RoundTrip &trip : run.trips)
			list.push_back(to_json(trip));
	}
	return json;
}

void print_summary(const Output &output, const char *what, const std::optional<Summary> &summary)
{
	if (!summary)
		return;
	output.line(fmt::format("{:4}  min {:>9}  mean {:>9}  p50 {:>9}  p90 {:>9}  p99 {:>9}  "
				"p99.9 {:>9}  max {:>9}",
				what, format_time(summary->min), format_time(summary->mean),
				format_time(summary->p50), format_time(summary->p90),
				format_time(summary->p99), format_time(summary->p99_9),
				format_time(summary->max)));
}

void print(const Output &output, const Arguments &arguments, const Options &options, const Run &run)
{
	if (output.json())
		return output.value(to_json(arguments, options, run, output.details()));
	for (size_t i = 0; output.details() && i < run.trips.size(); i++) {
		const RoundTrip &trip = run.trips[i];

		if (trip.error)
			output.line(fmt::format("{} error {}", i + 1, errno_name(trip.error)));
		else
			output.line(fmt::format("{} queue {} rtt {} call {}", i + 1, trip.queue,
						format_time(trip.rtt_ns),
						format_time(trip.call_ns)));
	}
	output.line(fmt::format("ping {} size {} {} sent {} received {} failed {} elapsed {}",
				arguments.name(), format_size(options.request.size),
				options.request.flags & KDIRECT_PING_POLL ? "poll" : "interrupt",
				run.trips.size(), run.received(), run.trips.size() - run.received(),
				format_time(run.elapsed_ns)));
	print_summary(output, "rtt", run.summary(&RoundTrip::rtt_ns));
	print_summary(output, "call", run.summary(&RoundTrip::call_ns));
}

std::string explain(int error)
{
	switch (error) {
	case EMSGSIZE: return "size is above the channel's eager limit (EMSGSIZE)";
	case EOPNOTSUPP: return "the channel has no poll queue (EOPNOTSUPP)";
	case EPIPE: return "the channel has ended (EPIPE)";
	default: return describe_errno(error);
	}
}

int ping(const Arguments &arguments, const Output &output)
{
	const Options options = to_options(arguments);
	const Node node(arguments.name());
	const Run run = ping_all(node, options);

	if (!run.trips.empty() || !run.fatal)
		print(output, arguments, options, run);
	if (run.fatal)
		throw ObjectError(explain(run.fatal));
	return run.received() == run.trips.size() && !run.trips.empty() ? exit_ok : exit_failed;
}

constexpr Parameter parameters[] = {
	{
		.key = "count",
		.type = Type::count32,
		.min = 1,
		.max = 10'000'000,
		.preset = "1000",
		.help = "round trips",
	},
	{
		.key = "size",
		.type = Type::size,
		.min = 1,
		.max = 64 << 10,
		.preset = "64B",
		.help = "payload, up to the channel's eager limit",
	},
	{
		.key = "interval",
		.type = Type::time_ns,
		.max = 3600 * ns_per_s,
		.preset = "0ns",
		.help = "pause between round trips",
	},
	{
		.key = "timeout",
		.type = Type::time_ns,
		.min = 1,
		.max = 60 * ns_per_s,
		.preset = "1s",
		.help = "when a round trip counts as failed",
	},
	{
		.key = "warmup",
		.type = Type::count32,
		.max = 1'000'000,
		.preset = "0",
		.help = "round trips before the ones that count",
	},
	{
		.key = "poll",
		.help = "use a poll queue, and poll instead of sleeping",
	},
};

constexpr Command commands[] = {
	{
		.help = "measure round trips to the peer's kernel",
		.takes = Name::existing_channel,
		.parameters = parameters,
		.run = ping,
	},
};

} // namespace

constexpr Object ping_object{
	.name = "ping",
	.help = "round trips to the peer's kernel",
	.commands = commands,
	.implicit = true,
};

} // namespace kdirect
