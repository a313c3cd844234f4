// SPDX-License-Identifier: GPL-2.0-only
// What is asked for over netlink. A request's work is done by its sender, as far as
// nobody else has to take part; what workers do afterwards is in fail_nth_worker.
#include "fail_nth.h"

#include <arpa/inet.h>
#include <memory>
#include <unistd.h>

namespace
{

uint16_t family()
{
	static const uint16_t number = kdirect_family();
	return number;
}

void put_address(Bytes &out, const char *text)
{
	in_addr address;
	if (inet_pton(AF_INET, text, &address) != 1)
		die("%s is no IPv4 address", text);
	put(out, KDIRECT_A_ADDR, &address, 4);
}

Bytes listener_request(const Target &target, const char *name)
{
	Bytes list;
	put_string(list, KDIRECT_A_NAME, name);
	put_address(list, target.peer);
	put_number(list, KDIRECT_A_PORT, uint16_t(target.port + 1));
	return genl_message(family(), KDIRECT_CMD_LISTENER_NEW, NLM_F_REQUEST | NLM_F_ACK, list);
}

// Without failures, from a socket of its own.
int ask(const Bytes &message)
{
	return GenlSocket().ask(message).err;
}

void must(const char *what, const Bytes &message)
{
	if (int err = ask(message))
		die("%s: %s", what, errno_name(err));
}

// A request whose socket is there before.
struct Request {
	std::unique_ptr<GenlSocket> socket;
	Bytes message;

	void prepare(const Bytes &what)
	{
		socket = std::make_unique<GenlSocket>();
		message = what;
	}
	int run() const { return socket->ask(message).err; }
};
Request request;

// Refused or granted for sure, and the object is there accordingly.
std::string agrees(int err, bool there, bool wanted)
{
	if (err == 0 && there != wanted)
		return "was granted, and did nothing";
	if (err == ENOMEM && there == wanted)
		return "was refused, and done";
	return "";
}

// --- exports and mappings -----------------------------------------------------------------

constexpr const char *exported = "nth", *mapped = "nth-map";

Bytes export_request()
{
	Bytes list;
	put_string(list, KDIRECT_A_NAME, exported);
	put_string(list, KDIRECT_A_LISTENER, "store");
	put_number(list, KDIRECT_A_SIZE, uint64_t(100001));
	return genl_message(family(), KDIRECT_CMD_EXPORT_NEW, NLM_F_REQUEST | NLM_F_ACK, list);
}

Bytes map_request()
{
	Bytes list;
	put_string(list, KDIRECT_A_NAME, mapped);
	put_string(list, KDIRECT_A_CHANNEL, "c0");
	put_string(list, KDIRECT_A_EXPORT, exported);
	return genl_message(family(), KDIRECT_CMD_MAP_NEW, NLM_F_REQUEST | NLM_F_ACK, list);
}

bool is_exported()
{
	return ask(named(KDIRECT_CMD_EXPORT_GET, exported)) == 0;
}

// -1: there is none.
int map_state()
{
	Answer answer = GenlSocket().ask(named(KDIRECT_CMD_MAP_GET, mapped));
	const uint8_t *data;
	size_t len;
	if (answer.err || !find_attribute(answer.object, KDIRECT_A_MAP_STATE, data, len))
		return -1;
	uint32_t state;
	std::memcpy(&state, data, sizeof(state));
	return int(state);
}

// What was begun has ended, one way or the other.
int settled_map()
{
	int state;
	while ((state = map_state()) == KDIRECT_MAP_ASKING || state == KDIRECT_MAP_LEAVING)
		usleep(2000);
	return state;
}

void drop_export()
{
	ask(named(KDIRECT_CMD_EXPORT_DEL, exported));
	while (is_exported())
		usleep(2000);
}

void drop_map()
{
	ask(named(KDIRECT_CMD_MAP_DEL, mapped));
	while (map_state() >= 0)
		usleep(2000);
	drop_export();
}

void add_map()
{
	must("adding an export", export_request());
	must("adding a mapping", map_request());
	if (settled_map() != KDIRECT_MAP_LIVE)
		die("a mapping could not be added any more");
}

Operation changes(const std::string &name, const std::function<void()> &prepare,
		  const std::function<std::string(int)> &after)
{
	return {name, prepare, [] { return request.run(); }, after, {ENOBUFS}};
}

std::vector<Operation> map_changes()
{
	std::vector<Operation> list;

	list.push_back(changes(
		"export new", [] { request.prepare(export_request()); },
		[](int err) {
			std::string wrong = agrees(err, is_exported(), true);
			drop_export();
			return wrong;
		}));
	list.push_back(changes(
		"export del",
		[] {
			must("adding an export", export_request());
			request.prepare(named(KDIRECT_CMD_EXPORT_DEL, exported));
		},
		[](int err) {
			for (int i = 0; !err && i < 1000 && is_exported(); i++)
				usleep(10000);
			std::string wrong = agrees(err, is_exported(), false);
			drop_export();
			return wrong;
		}));
	list.push_back(changes(
		"map new",
		[] {
			must("adding an export", export_request());
			request.prepare(map_request());
		},
		[](int err) {
			std::string wrong = agrees(err, settled_map() == KDIRECT_MAP_LIVE, true);
			drop_map();
			return wrong;
		}));
	list.push_back(changes(
		"map del",
		[] {
			add_map();
			request.prepare(named(KDIRECT_CMD_MAP_DEL, mapped));
		},
		[](int err) {
			for (int i = 0; !err && i < 1000 && map_state() >= 0; i++)
				usleep(10000);
			std::string wrong = agrees(err, map_state() >= 0, false);
			drop_map();
			return wrong;
		}));
	return list;
}

Operation reads(const std::string &name, const Bytes &message)
{
	return {name,
		[message] { request.prepare(message); },
		[] { return request.run(); },
		[](int) { return std::string(); },
		{ENOBUFS}};
}

} // namespace

Bytes named(uint8_t command, const char *name, uint16_t flags)
{
	Bytes list;
	if (name)
		put_string(list,
			   command == KDIRECT_CMD_DEVICE_GET ? KDIRECT_A_DEV_NAME : KDIRECT_A_NAME,
			   name);
	return genl_message(family(), command, NLM_F_REQUEST | flags, list);
}

Bytes channel_request(const Target &target, const char *name, bool poll_queue)
{
	Bytes list;
	put_string(list, KDIRECT_A_NAME, name);
	put_address(list, target.peer);
	put_number(list, KDIRECT_A_PORT, target.port);
	put_number(list, KDIRECT_A_DEPTH, uint32_t(1));
	put_number(list, KDIRECT_A_QUEUES, uint16_t(!poll_queue));
	put_number(list, KDIRECT_A_POLL_QUEUES, uint16_t(poll_queue));
	put_number(list, KDIRECT_A_DRAIN_TIMEOUT_MS, uint32_t(1000));
	return genl_message(family(), KDIRECT_CMD_CHANNEL_NEW, NLM_F_REQUEST | NLM_F_ACK, list);
}

int channel_state(const char *name)
{
	Answer answer = GenlSocket().ask(named(KDIRECT_CMD_CHANNEL_GET, name));
	const uint8_t *data;
	size_t len;
	if (answer.err || !find_attribute(answer.object, KDIRECT_A_STATE, data, len))
		return -1;
	uint32_t state;
	std::memcpy(&state, data, sizeof(state));
	return int(state);
}

int channel_error(const char *name)
{
	return ask(named(KDIRECT_CMD_CHANNEL_GET, name));
}

void channel_add(const Target &target, const char *name, bool poll_queue)
{
	must("adding a channel", channel_request(target, name, poll_queue));
	for (int state; (state = channel_state(name)) != KDIRECT_STATE_LIVE; usleep(2000))
		if (state < 0)
			die("a channel could not be added any more");
}

void channel_remove(const char *name)
{
	ask(named(KDIRECT_CMD_CHANNEL_DEL, name));
	while (channel_error(name) != ENOENT)
		usleep(2000);
}

std::vector<Operation> netlink_operations(const Target &target)
{
	static const char listener[] = "nth", channel[] = "nth";
	auto listener_there = [] { return ask(named(KDIRECT_CMD_LISTENER_GET, listener)) == 0; };
	auto add_listener = [&target] {
		must("adding a listener", listener_request(target, listener));
	};
	auto drop_listener = [] { ask(named(KDIRECT_CMD_LISTENER_DEL, listener)); };
	std::vector<Operation> list;

	list.push_back({"listener new",
			[&target] { request.prepare(listener_request(target, listener)); },
			[] { return request.run(); },
			[=](int err) {
				std::string wrong = agrees(err, listener_there(), true);
				drop_listener();
				return wrong;
			},
			{ENOBUFS}});
	list.push_back({"listener set",
			[=] {
				add_listener();
				Bytes set;
				put_string(set, KDIRECT_A_NAME, listener);
				put_number(set, KDIRECT_A_MAX_CHANNELS, uint32_t(3));
				request.prepare(genl_message(family(), KDIRECT_CMD_LISTENER_SET,
							     NLM_F_REQUEST | NLM_F_ACK, set));
			},
			[] { return request.run(); },
			[=](int) {
				drop_listener();
				return std::string();
			},
			{ENOBUFS}});
	list.push_back({"listener del",
			[=] {
				add_listener();
				request.prepare(named(KDIRECT_CMD_LISTENER_DEL, listener));
			},
			[] { return request.run(); },
			[=](int err) {
				std::string wrong = agrees(err, listener_there(), false);
				drop_listener();
				return wrong;
			},
			{ENOBUFS}});
	list.push_back({"channel new",
			[&target] { request.prepare(channel_request(target, channel, false)); },
			[] { return request.run(); },
			[](int err) {
				int state = channel_state(channel);
				// what began without a failure must also come to its end
				while (state >= 0 && state < KDIRECT_STATE_LIVE) {
					usleep(2000);
					state = channel_state(channel);
				}
				channel_remove(channel);
				return agrees(err, state >= 0, true);
			},
			{ENOBUFS}});
	list.push_back({"channel set",
			[] {
				Bytes set;
				put_string(set, KDIRECT_A_NAME, "c0");
				put_number(set, KDIRECT_A_DRAIN_TIMEOUT_MS, uint32_t(1000));
				request.prepare(genl_message(family(), KDIRECT_CMD_CHANNEL_SET,
							     NLM_F_REQUEST | NLM_F_ACK, set));
			},
			[] { return request.run(); },
			[](int) { return std::string(); },
			{ENOBUFS}});
	list.push_back({"channel del",
			[&target] {
				channel_add(target, channel, true);
				request.prepare(named(KDIRECT_CMD_CHANNEL_DEL, channel));
			},
			[] { return request.run(); },
			[](int err) {
				if (err == 0) // it goes by itself
					while (channel_error(channel) != ENOENT)
						usleep(2000);
				channel_remove(channel);
				return std::string();
			},
			{ENOBUFS}});
	for (const Operation &change : map_changes())
		list.push_back(change);
	list.push_back(reads("export get", named(KDIRECT_CMD_EXPORT_GET, "mem0")));
	list.push_back(reads("map get", named(KDIRECT_CMD_MAP_GET, "m0")));
	list.push_back(reads("device get", named(KDIRECT_CMD_DEVICE_GET, std::getenv("RXE"))));
	list.push_back(reads("listener get", named(KDIRECT_CMD_LISTENER_GET, "store")));
	list.push_back(reads("channel get", named(KDIRECT_CMD_CHANNEL_GET, "c0")));
	list.push_back(reads("stats get", named(KDIRECT_CMD_STATS_GET, "c0")));
	const std::pair<const char *, uint8_t> dumps[] = {
		{"device dump", KDIRECT_CMD_DEVICE_GET},
		{"listener dump", KDIRECT_CMD_LISTENER_GET},
		{"channel dump", KDIRECT_CMD_CHANNEL_GET},
		{"export dump", KDIRECT_CMD_EXPORT_GET},
		{"map dump", KDIRECT_CMD_MAP_GET},
		{"stats dump", KDIRECT_CMD_STATS_GET},
	};
	for (auto [name, command] : dumps)
		list.push_back(reads(name, named(command, nullptr, NLM_F_DUMP)));
	return list;
}
