// SPDX-License-Identifier: GPL-2.0-only
#include "event.h"

#include <span>
#include <sys/socket.h>

#include <fmt/format.h>
#include <netlink/genl/genl.h>
#include <netlink/msg.h>
#include <netlink/socket.h>

#include "kdirect_netlink.h"
#include "text.h"

namespace kdirect
{

namespace
{

constexpr int buffer_bytes = 1 << 20; // some 2,500 events; more than that is reported lost

std::string name_in(std::span<const std::string_view> names, const char *what, uint64_t value)
{
	return value < names.size() ? std::string(names[value]) : fmt::format("{} {}", what, value);
}

bool is_state(const Event &event)
{
	return event.type == KDIRECT_EVENT_CHANNEL_STATE || event.type == KDIRECT_EVENT_MAP_STATE;
}

std::string state_in(const Event &event, uint64_t state)
{
	return event.type == KDIRECT_EVENT_MAP_STATE ? map_state_name(state) : state_name(state);
}

Event parse_message(nlmsghdr *header)
{
	const auto *data = static_cast<const std::byte *>(nlmsg_data(header));
	const std::span bytes(data, static_cast<size_t>(nlmsg_datalen(header)));

	return parse_event(Attributes(bytes.subspan(std::min<size_t>(GENL_HDRLEN, bytes.size()))));
}

} // namespace

Event parse_event(const Attributes &attributes)
{
	const auto text = [&](uint16_t attr) {
		return std::string(attributes.string(attr).value_or(""));
	};
	Event event;

	event.type = attributes.number(KDIRECT_A_EVENT_TYPE).value_or(UINT64_MAX);
	event.name = text(attributes.has(KDIRECT_A_NAME) ? KDIRECT_A_NAME : KDIRECT_A_DEV_NAME);
	const bool map = event.type == KDIRECT_EVENT_MAP_STATE;

	event.state = attributes.number(map ? KDIRECT_A_MAP_STATE : KDIRECT_A_STATE);
	event.old_state = attributes.number(map ? KDIRECT_A_OLD_MAP_STATE : KDIRECT_A_OLD_STATE);
	event.held = attributes.has(KDIRECT_A_HELD);
	event.listener = text(KDIRECT_A_LISTENER);
	event.error = static_cast<int>(attributes.number(KDIRECT_A_ERROR).value_or(0));
	event.cause = text(KDIRECT_A_CAUSE);
	return event;
}

std::string describe(const Event &event)
{
	const std::string type = event_name(event.type);
	const size_t dash = type.find('-');
	std::string text = fmt::format("{} {}", type.substr(0, dash), escape(event.name));

	if (!is_state(event) && dash != std::string::npos)
		text += " " + type.substr(dash + 1);
	if (is_state(event) && event.old_state && event.state)
		text += fmt::format(" {} -> {}", state_in(event, *event.old_state),
				    state_in(event, *event.state));
	if (event.held)
		text += " held";
	if (!event.listener.empty())
		text += " listener " + escape(event.listener);
	if (event.error)
		text += " error " + errno_name(event.error);
	if (!event.cause.empty())
		text += " cause " + escape(event.cause);
	return text;
}

Json to_json(const Event &event)
{
	Json json{{"event", event_name(event.type)}, {"name", event.name}};

	if (is_state(event) && event.old_state && event.state) {
		json["old_state"] = state_in(event, *event.old_state);
		json["state"] = state_in(event, *event.state);
	}
	if (event.held)
		json["held"] = true;
	if (!event.listener.empty())
		json["listener"] = event.listener;
	if (event.error) {
		json["errno"] = event.error;
		json["error"] = errno_name(event.error);
	}
	if (!event.cause.empty())
		json["cause"] = event.cause;
	return json;
}

EventStream::EventStream(const Client &client)
{
	// Without privileges the system's limit holds, which is enough for some 500.
	if (setsockopt(fd(), SOL_SOCKET, SO_RCVBUFFORCE, &buffer_bytes, sizeof(buffer_bytes)) < 0)
		nl_socket_set_buffer_size(_socket.get(), buffer_bytes, 0);
	if (nl_socket_add_membership(_socket.get(), client.events_group()) < 0)
		throw Failure("cannot join the netlink group " KDIRECT_GENL_EVENTS);
}

std::optional<std::vector<Event>> EventStream::receive()
{
	auto datagram = _socket.receive();
	std::vector<Event> events;

	if (!datagram)
		return std::nullopt;

	auto *header = reinterpret_cast<nlmsghdr *>(datagram->data());
	int left = static_cast<int>(datagram->size());

	for (; nlmsg_ok(header, left); header = nlmsg_next(header, &left))
		if (header->nlmsg_type >= NLMSG_MIN_TYPE)
			events.push_back(parse_message(header));
	return events;
}

Verdict judge(const Event &event, const std::string &name)
{
	if (event.name != name)
		return Verdict::waiting;
	if (event.type == KDIRECT_EVENT_CHANNEL_REMOVED)
		return Verdict::removed;
	if (event.type == KDIRECT_EVENT_CHANNEL_STATE &&
	    (event.held || event.state == KDIRECT_STATE_LIVE))
		return Verdict::live;
	return Verdict::waiting;
}

std::string state_name(uint64_t state)
{
	constexpr std::string_view names[] = {"new",        "connecting", "live",
					      "recovering", "deleting",   "dead"};

	return name_in(names, "state", state);
}

std::string map_state_name(uint64_t state)
{
	constexpr std::string_view names[] = {"asking", "live", "leaving", "dead"};

	return name_in(names, "state", state);
}

std::string event_name(uint64_t type)
{
	constexpr std::string_view names[] = {
		"device-added",   "device-removed", "listener-added",  "listener-removed",
		"channel-added",  "channel-state",  "channel-removed", "export-added",
		"export-removed", "map-added",      "map-state",       "map-removed",
	};

	return name_in(names, "event", type);
}

std::string transport_name(uint64_t transport)
{
	constexpr std::string_view names[] = {"ib", "roce", "iwarp"};

	return name_in(names, "transport", transport);
}

std::string queue_kind_name(uint64_t kind)
{
	constexpr std::string_view names[] = {"control", "interrupt", "poll"};

	return name_in(names, "kind", kind);
}

std::string mode_name(uint64_t mode)
{
	return name_in(modes, "mode", mode);
}

std::string poll_mode_name(uint64_t mode)
{
	return name_in(poll_modes, "mode", mode);
}

} // namespace kdirect
