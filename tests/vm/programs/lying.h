// SPDX-License-Identifier: GPL-2.0-only
// Sessions that begin as the protocol wants it, and what comes of them.
#pragma once

#include "foreign.h"

#include <functional>

#include "../../../kmod/core/wire.hh"

namespace wire = kd::wire;

// What this program's cases run against; from the command line.
struct Place {
	const char *address;
	unsigned port;
	const char *bystander; // node of a good channel that nothing here may disturb
	const char *only;      // cases to run, a part of their names
};
extern Place place;

// The transport has private data of exact length, and its initiator sends first.
bool iwarp();

// siw may lose the first message of a connection, and nothing can be done about it
// (Documentation/testing.md): then kdirect has given up for this reason, as `told` says,
// and whoever needs that message tries again, `tries` times in all.
bool lost_hello(const std::string &told, unsigned &tries);

// --- results -----------------------------------------------------------------------------

extern unsigned failures;
void result(const std::string &name, const std::string &complaint);
bool wanted(const std::string &name);

// The kernel's log from now on.
class Log
{
public:
	Log();
	~Log();
	// A line with that in it within the time; empty if there was none.
	std::string find(const std::string &regex, int timeout_ms);
	// What has come by now is not looked at any more.
	void skip();
	std::string seen; // lines so far

private:
	int fd_;
};

// The bystander still answers a ping.
std::string bystander_complaint();

// The output of a command, and whether it succeeded.
struct Output {
	std::string text;
	int status;
};
Output run(const std::vector<std::string> &words);
bool eventually(const std::function<bool()> &holds, int seconds);
// Channels of any kind whose name begins so.
unsigned channels(const std::string &prefix);

// --- sessions ------------------------------------------------------------------------------

struct Shape {
	uint32_t queues = 1, depth = 8, eager = 4096, max_message = 1 << 20;
};

wire::RequestInfo request_of(const Shape &shape);

struct Session {
	Session(const Shape &s) : shape(s), request(request_of(s)) {}
	Shape shape;
	wire::RequestInfo request;
	uint64_t token = 0;
	std::vector<std::unique_ptr<Link>> links; // control queue first

	Link &control() { return *links[0]; }
	Link &data() { return *links[1]; }

	// As initiator: one queue; its verdict where it was refused.
	bool connect(uint32_t queue, wire::Verdict *refused = nullptr);
	void connect_all();
	void say_hello();
	bool hear_hello();
	bool wait_start();
	// All of it, up to a live channel; `log` is one that began before.
	bool establish(Log &log);

	// Waits until a control message has that flag, answering nothing.
	bool wait_control(uint16_t flag, int timeout_ms = 10000 * int(slow()));
	Link::Sent send_data(const wire::DataInfo &info, size_t payload = 0);
	Link::Sent send_control(const wire::ControlInfo &info);
	// The peer closes every connection.
	bool closed(int timeout_ms = 15000 * int(slow()));
};

std::unique_ptr<Link> make_link(std::unique_ptr<Id> id, const Shape &shape, uint32_t queue);

void run_client();
void run_server();
