// SPDX-License-Identifier: GPL-2.0-only
// A fixed buffer: memory of a program, pinned, and mapped for the device of a channel unless
// only the CPU uses it. It has a reference from the table of its open file, and one from each
// request that uses it.
#pragma once

#include "list.hh"
#include "os.hh"

namespace kd
{

struct FixedBuffer {
	// `for_device`: it is mapped for the channel's; else only pinned.
	static Status create(Sleepable s, Channel &channel, bool for_device, uint64_t addr,
			     uint64_t length, FixedBuffer **out);
	void get() { refs.get(); }
	void put(Sleepable s);
	void put_later(); // from where it cannot be freed
	void end(Sleepable s);
	void unmap(); // and no key; fixed_lock

	Refs refs;
	Channel *channel;
	kd_fixed *memory;
	uint64_t length;
	bool for_device;
	std::atomic<bool> lost;  // with the device that it was mapped for
	Links<FixedBuffer> link; // Channel::fixed_lock
	kd_work end_work;

	// Its key, for the peer of a raw channel: raw_share.cc
	enum class Share : uint8_t {
		None,
		Valid,
		Leaving, // a LOCAL_INV of it is under way
		Gone,    // so it is, and the peer was faster
	};
	kd_mr *mr;                      // nullptr: never shared; Channel::fixed_lock
	Share share;                    // Queue::tx_lock, as these
	uint32_t rkey;                  //
	Links<FixedBuffer> shared_link; //
};

using FixedBag = Bag<FixedBuffer, &FixedBuffer::link>;
using SharedBag = Bag<FixedBuffer, &FixedBuffer::shared_link>;

} // namespace kd
