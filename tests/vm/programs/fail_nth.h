// SPDX-License-Identifier: GPL-2.0-only
// Operations that are done again and again, with the first, second, third ... of their
// allocations or user copies failing.
#pragma once

#include "genl.h"

#include <functional>
#include <string>

struct Target {
	const char *node_a, *node_b; // of one channel
	const char *peer;
	uint16_t port;
	const char *mapping; // of node_a's channel; calls only
};

// What one operation consists of. `prepare` and `after` run without failures.
struct Operation {
	std::string name;
	std::function<void()> prepare;
	// 0, or the errno of what was refused; ENOBUFS: netlink could not tell
	std::function<int()> run;
	// Looks at what the call left, and undoes it; a text is what is wrong.
	std::function<std::string(int err)> after;
	std::vector<int> errnos; // besides ENOMEM and EFAULT
};

std::vector<Operation> file_operations(const Target &target);
std::vector<Operation> map_operations(const Target &target);
std::vector<Operation> netlink_operations(const Target &target);

// Helpers that do not fail: they die.
int channel_error(const char *name); // of CHANNEL_GET
void channel_add(const Target &target, const char *name, bool poll_queue);
// Deletes it if it is there, and waits until it is gone.
void channel_remove(const char *name);
// As CHANNEL_GET says it; -1 where there is none.
int channel_state(const char *name);
// One request whose answer decides.
Bytes named(uint8_t command, const char *name, uint16_t flags = NLM_F_ACK);
Bytes channel_request(const Target &target, const char *name, bool poll_queue);
