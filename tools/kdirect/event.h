// SPDX-License-Identifier: GPL-2.0-only
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "attributes.h"
#include "netlink.h"
#include "output.h"

namespace kdirect
{

// What KDIRECT_CMD_EVENT says. Numbers that this version does not know are kept.
struct Event {
	uint64_t type = 0; // enum kdirect_event
	std::string name;  // of the listener or channel, or of the device
	std::optional<uint64_t> state, old_state;
	bool held = false;    // a raw channel waits for its program
	std::string listener; // that accepted the channel
	int error = 0;
	std::string cause;
};

Event parse_event(const Attributes &attributes);

std::string describe(const Event &event);
Json to_json(const Event &event);

// The multicast group, joined before the caller acts, so that no event of its act is missed.
class EventStream
{
public:
	explicit EventStream(const Client &client);

	int fd() const { return _socket.fd(); }

	// Blocks until there is one; nothing if events were lost.
	std::optional<std::vector<Event>> receive();

private:
	Socket _socket;
};

// What an event means to who waits for channel name to be live. It may have been removed, or
// else an older channel of that name: the kernel must be asked.
// In the order of enum kdirect_poll_mode.
constexpr std::string_view poll_modes[] = {"busy", "hybrid", "adaptive"};

// In the order of enum kdirect_mode.
constexpr std::string_view modes[] = {"session", "raw"};

enum class Verdict { waiting, live, removed };

Verdict judge(const Event &event, const std::string &name);

// "connecting"; "state 9" if unknown. Likewise the others.
std::string state_name(uint64_t state);
std::string event_name(uint64_t type);
std::string transport_name(uint64_t transport);
std::string queue_kind_name(uint64_t kind);
std::string poll_mode_name(uint64_t mode);
std::string mode_name(uint64_t mode);
std::string map_state_name(uint64_t state);

} // namespace kdirect
