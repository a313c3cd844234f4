// SPDX-License-Identifier: GPL-2.0-only
#include "wait.h"

#include "event.h"
#include "failure.h"
#include "signals.h"

namespace kdirect
{

namespace
{

int wait_until_removed(Client &client, EventStream &events, Signals &signals, uint8_t get,
		       uint64_t removed, const std::string &name)
{
	while (!signals.caught()) {
		if (!signals.wait(events.fd()))
			continue;

		const auto batch = events.receive();

		if (!batch && !find(client, get, name))
			return exit_ok;
		for (const Event &event : batch.value_or(std::vector<Event>()))
			if (event.type == removed && event.name == name)
				return exit_ok;
	}
	throw ObjectError("interrupted; the deletion goes on", exit_signal + signals.caught());
}

} // namespace

int del_and_wait(uint8_t del, uint8_t get, uint64_t removed, const Arguments &arguments)
{
	Client client;

	if (arguments.has("nowait"))
		return execute(client, del, arguments);

	Signals signals;
	EventStream events(client);

	execute(client, del, arguments);
	return wait_until_removed(client, events, signals, get, removed, arguments.name());
}

} // namespace kdirect
