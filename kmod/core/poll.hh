// SPDX-License-Identifier: GPL-2.0-only
// Callers who wait for completions: for an event, or polling. poll.cc
#pragma once

#include "os.hh"
#include "poll_policy.hh"

namespace kd
{

// How a caller waits: for an event, or polling.
struct Waiting {
	Waiting(bool poll, uint32_t flags, uint32_t which = PollPolicy::any_class)
		: polls(poll), open_flags(flags), cls(which)
	{
	}
	bool polls;
	uint32_t open_flags;                     // KDIRECT_OPEN_* of his file
	uint32_t cls;                            // of PollPolicy
	kd_wait_mode io_mode = KD_WAIT_KILLABLE; // of Channel::wait_io()
};

// KDIRECT_OPEN_* of one open file.
class OpenFlags
{
public:
	Status set(const Channel &channel, uint32_t flags);
	uint32_t get() const { return flags_.load(std::memory_order_relaxed); }

private:
	std::atomic<uint32_t> flags_{0};
};

// One caller who polls: what he does between two looks, and what that costs.
class Poller
{
public:
	Poller(Queue &queue, const Waiting &how, uint64_t timeout_ns);
	~Poller();
	Poller(const Poller &) = delete;
	Poller &operator=(const Poller &) = delete;

	// KD_EINTR: a signal that ends the wait. `sleep`: an event is to be waited for.
	Status pause(Sleepable s, kd_wait_mode mode, bool &sleep);
	// He stopped polling, for an event.
	void sleeps();
	void over() { done_ = true; }
	uint64_t left_ns() const; // of the timeout

private:
	Queue &queue_;
	const uint64_t timeout_ns_;
	const uint32_t cls_;
	const PollMode mode_;
	const uint32_t percent_;
	const uint64_t began_ns_;
	const uint64_t most_ns_; // adaptive: of CPU time
	uint64_t since_ns_;      // he polls; 0: he does not
	uint64_t spent_ns_ = 0;
	bool napped_ = false, fresh_ = false;
	bool done_ = false;
};

} // namespace kd
