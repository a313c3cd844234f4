// SPDX-License-Identifier: GPL-2.0-only
// One channel over a real device, both ends in this module:
//
//   channel kdkc  --->  listener kdkp, channel kdkp.0
#pragma once

#include "check.h"
#include "registry.hh"

class Pair
{
public:
	Pair(struct kunit *test, uint32_t depth = 8);
	~Pair();
	Pair(const Pair &) = delete;
	Pair &operator=(const Pair &) = delete;
	explicit operator bool() const { return live; }

	// Deletes it and waits until nothing of it is registered.
	void end();
	template <class Done>
	bool eventually(const Done &done)
	{
		constexpr uint64_t patience_ns = 50000000000;
		uint64_t start = kd_now_ns();
		do {
			if (done())
				return true;
			kdk_sleep_ms(1);
		} while (kd_now_ns() - start < patience_ns);
		return false;
	}
	kd::Queue &tx() { return *from->queues[1]; }
	kd::Queue &rx() { return *to->queues[1]; }
	// The next message of the receiver.
	kd::RxSlot *next();
	// Everything was read and told: each credit, slot and key is back.
	void settled();

	struct kunit *test;
	kd::Sleepable s;
	kd::Channel *from = nullptr, *to = nullptr;
	bool listening = false, live = false;
	kd_error error{};
	uint32_t held = 0, busy = 0; // by settled()

private:
	bool listen(const kd_endpoint &end_point);
	bool connect(const kd_endpoint &end_point, const kd_addr &source, uint32_t depth);
	bool find();
};
