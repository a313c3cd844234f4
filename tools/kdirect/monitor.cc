// SPDX-License-Identifier: GPL-2.0-only
#include <ctime>
#include <limits>

#include <fmt/chrono.h>
#include <fmt/format.h>

#include "arguments.h"
#include "event.h"
#include "failure.h"
#include "kdirect_netlink.h"
#include "output.h"
#include "quantity.h"
#include "text.h"

namespace kdirect
{

namespace
{

constexpr uint64_t forever = std::numeric_limits<uint64_t>::max();

// When the event was received: it carries no time of its own.
std::string now()
{
	timespec time{};

	clock_gettime(CLOCK_REALTIME, &time);
	return fmt::format("{:%Y-%m-%dT%H:%M:%S}.{:06}Z", fmt::gmtime(time.tv_sec),
			   static_cast<uint64_t>(time.tv_nsec) / ns_per_us);
}

void print(const Output &output, const std::string &text, Json json)
{
	const std::string time = now();

	if (output.json()) {
		Json line{{"time", time}};

		line.update(json);
		output.value(line);
	} else {
		output.line(fmt::format("[{}] {}", time, text));
	}
	Output::flush();
}

int monitor(const Arguments &arguments, const Output &output)
{
	Client client;
	EventStream events(client);
	uint64_t left = arguments.number("count", forever);

	// Whoever starts us in the background must know from when on nothing is missed.
	if (output.details())
		print(output, "monitoring", Json::object({{"event", "monitoring"}}));
	for (;;) {
		const auto batch = events.receive();

		if (!batch) {
			print(output,
			      "events were lost: they came faster than they could be printed",
			      Json::object({{"event", "lost"}}));
			continue;
		}
		for (const Event &event : *batch) {
			print(output, describe(event), to_json(event));
			if (--left == 0)
				return exit_ok;
		}
	}
}

constexpr Parameter parameters[] = {
	{
		.key = "count",
		.type = Type::count32,
		.min = 1,
		.max = std::numeric_limits<uint32_t>::max(),
		.preset = "no end",
		.help = "stop after that many events",
	},
};

constexpr Command commands[] = {
	{
		.help = "print events as they happen, one a line",
		.parameters = parameters,
		.run = monitor,
	},
};

} // namespace

constexpr Object monitor_object{
	.name = "monitor",
	.help = "events of devices, listeners and channels",
	.commands = commands,
	.implicit = true,
};

} // namespace kdirect
