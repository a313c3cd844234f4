/* SPDX-License-Identifier: GPL-2.0-only */
/* The fuzzers' side of kernel.h: what was registered, and what user space does. */
#pragma once
#include <string>
#include <vector>

#include "../../sim/world.h"
#include "kernel.h"

namespace kernel
{

/* What the module registers; reset() forgets it between two inputs. */
struct State {
	genl_family *family = nullptr;
	notifier_block *notifier = nullptr;
	const file_operations *fops = nullptr;
	device *devices[1024] = {};
	/* fails the allocation with this number; 0 = none */
	unsigned int fail_alloc = 0, allocs = 0;
	bool admin = true, host = true; /* CAP_NET_ADMIN: in the namespace, everywhere */
	/* what a pointer may point to: everything else faults */
	uint8_t *user = nullptr;
	std::size_t user_size = 0;
	/* answers, dumps and events */
	std::vector<std::vector<uint8_t>> sent;
	int acked = 0;        /* times netlink_ack() was called */
	std::string ack_text; /* of the last */
};
State &state();
void reset();
/* no lock is held and nothing is registered */
void must_be_idle();

/* One generic netlink message as genetlink would handle it; bytes from the message header on. */
int genl_receive(std::vector<uint8_t> message, uint32_t portid, net *net);
/* Every attribute that the module wrote is well-formed. */
void must_be_wellformed(const uint8_t *attrs, std::size_t len);

} // namespace kernel
