// SPDX-License-Identifier: GPL-2.0-only
// Puts messages that arrive over several queues back into one order. Every
// message holds a receive slot until it is read, so a ring with a place for
// each slot is always large enough.
#pragma once

#include <bit>
#include <cstdint>

namespace kd
{

template <class Slot>
class Order
{
public:
	// `places` is a power of two of zeroed pointers, at least one per receive slot.
	void set_ring(Slot **places, uint64_t count)
	{
		ring_ = places;
		mask_ = count - 1;
	}
	Slot **ring() const { return ring_; }
	static constexpr uint64_t ring_size(uint64_t slots) { return std::bit_ceil(slots); }

	// False: the peer repeats a number, or runs ahead of its credits.
	[[nodiscard]] bool insert(uint64_t seq, Slot *slot)
	{
		if (!ring_ || seq < next_read_ || seq - next_read_ > mask_ || at(seq))
			return false;
		at(seq) = slot;
		advance();
		return true;
	}
	// After a slot's `ready` was set.
	void advance()
	{
		while (next_in_ - next_read_ <= mask_ && at(next_in_) && at(next_in_)->ready)
			next_in_++;
	}
	// The message to read now, or none.
	Slot *front() const { return next_read_ < next_in_ ? at(next_read_) : nullptr; }
	void pop()
	{
		at(next_read_) = nullptr;
		next_read_++;
	}
	// The first message in order, from `from` on, that is offered and not being
	// fetched; messages behind a gap do not count. Moves `from` on.
	Slot *to_fetch(uint64_t &from) const
	{
		if (from < next_read_)
			from = next_read_;
		for (; ring_ && from - next_read_ <= mask_ && at(from); from++)
			if (at(from)->wants_fetch)
				return at(from);
		return nullptr;
	}
	// Takes out what has not arrived whole and in order.
	template <class Visit>
	void forget_rest(const Visit &visit)
	{
		for (uint64_t seq = next_in_; ring_ && seq - next_read_ <= mask_; seq++)
			if (Slot *slot = at(seq)) {
				at(seq) = nullptr;
				visit(slot);
			}
	}
	// Messages that have arrived whole and in order, ever.
	uint64_t received() const { return next_in_; }
	uint64_t read() const { return next_read_; }

private:
	Slot *&at(uint64_t seq) const { return ring_[seq & mask_]; }

	Slot **ring_ = nullptr;
	uint64_t mask_ = 0;
	uint64_t next_in_ = 0;
	uint64_t next_read_ = 0;
};

} // namespace kd
