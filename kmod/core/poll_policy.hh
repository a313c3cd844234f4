// SPDX-License-Identifier: GPL-2.0-only
// What a poll queue has learned about its completions, and what of a CPU it may cost to
// poll for them. Its callers share it without a lock; what two of them note at once may
// count once.
#pragma once

#include <atomic>
#include <cstdint>

namespace kd
{

// How a caller of a poll queue waits; enum kdirect_poll_mode.
enum class PollMode : uint32_t {
	Busy,     // polls until it is there
	Hybrid,   // sleeps for half of the expected time, then polls
	Adaptive, // polls as long as that pays and the CPU time allows it, then sleeps
};

class PollPolicy
{
public:
	// Waits of like length: for messages, pings and batches, and for I/O by its bytes.
	static constexpr uint32_t classes = 8;
	static constexpr uint32_t any_class = 0;
	static uint32_t class_of(uint64_t bytes)
	{
		uint32_t cls = 1;
		for (uint64_t most = 4096; bytes > most && cls < classes - 1; most *= 4)
			cls++;
		return cls;
	}

	// Hybrid: for so long nobody needs to look; 0: at once.
	uint64_t nap_ns(uint32_t cls) const
	{
		uint64_t nap = mean_ns_[cls].load(std::memory_order_relaxed) / 2;
		return nap < shortest_nap_ns ? 0 : nap;
	}
	// Adaptive: after so long polling does not pay any more.
	uint64_t patience_ns(uint32_t cls) const
	{
		uint64_t mean = mean_ns_[cls].load(std::memory_order_relaxed);
		return mean > worth_ns ? 0 : 2 * mean + least_patience_ns;
	}
	// A wait took so long. `overslept`: it was over when the nap ended, and may have taken
	// less. The estimate falls faster than it grows: a wait that somebody was late for
	// must not make the next ones late.
	void learn(uint32_t cls, uint64_t took_ns, bool overslept)
	{
		uint64_t mean = mean_ns_[cls].load(std::memory_order_relaxed);
		uint64_t took = took_ns < 2 * longest_nap_ns ? took_ns : 2 * longest_nap_ns;
		if (overslept)
			mean -= mean / 4;
		else if (!mean)
			mean = took;
		else if (took < mean)
			mean -= (mean - took) / 2;
		else
			mean += (took - mean) / 8;
		mean_ns_[cls].store(mean, std::memory_order_relaxed);
	}

	// Polling took a CPU for `ns`, of which `percent` of the time may be taken.
	void spend(uint64_t now_ns, uint64_t ns, uint32_t percent)
	{
		uint64_t paid = paid_until_ns_.load(std::memory_order_relaxed);
		paid_until_ns_.store((paid > now_ns ? paid : now_ns) + ns * 100 / percent,
				     std::memory_order_relaxed);
	}
	// How long polling may go on from here; 0: not now.
	uint64_t allowance_ns(uint64_t now_ns, uint32_t percent) const
	{
		uint64_t paid = paid_until_ns_.load(std::memory_order_relaxed);
		if (paid >= now_ns + burst_ns)
			return 0;
		return (paid > now_ns ? now_ns + burst_ns - paid : burst_ns) * percent / 100;
	}

	// Below it, the sleep itself takes as long.
	static constexpr uint64_t shortest_nap_ns = 10'000;
	static constexpr uint64_t longest_nap_ns = 10'000'000;
	static constexpr uint64_t least_patience_ns = 20'000;
	// What is expected to take longer is slept for.
	static constexpr uint64_t worth_ns = 1'000'000;
	// What was not used before is there for so long.
	static constexpr uint64_t burst_ns = 10'000'000;

private:
	std::atomic<uint64_t> mean_ns_[classes]{};
	std::atomic<uint64_t> paid_until_ns_{0};
};

} // namespace kd
