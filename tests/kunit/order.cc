// SPDX-License-Identifier: GPL-2.0-only
// The ring that puts the messages of several queues back into one order.
#include "order.hh"
#include "core_cases.h"
#include "os.hh"

using namespace kd;

namespace
{

struct Slot {
	bool ready;
	bool wants_fetch;
	uint64_t number;
};

// A ring for so many receive slots, and messages for it.
struct Ring {
	Ring(struct kunit *test, uint64_t window) : s(ShimEntry::may_sleep())
	{
		places = create_array<Slot *>(s, Order<Slot>::ring_size(window));
		slots = create_array<Slot>(s, window * rounds);
		if (EXPECT(places && slots))
			order.set_ring(places, Order<Slot>::ring_size(window));
		for (uint64_t i = 0; slots && i < window * rounds; i++)
			slots[i] = {true, false, i};
	}
	~Ring()
	{
		destroy_array(s, places);
		destroy_array(s, slots);
	}
	explicit operator bool() const { return places && slots; }

	static constexpr uint64_t rounds = 5;
	Sleepable s;
	Slot **places, *slots;
	Order<Slot> order;
};

} // namespace

// Whatever the order of arrival within the window: read in order, each once.
void kdk_case_permutations(struct kunit *test)
{
	uint64_t window = kdk_param(test)->a, stride = kdk_param(test)->b;
	Ring ring(test, window);
	if (!ring)
		return;
	for (uint64_t base = 0; base < window * Ring::rounds; base += window) {
		uint64_t whole = 0; // of this round, without a gap
		for (uint64_t i = 0; i < window; i++) {
			uint64_t at = (i * stride + stride - 1) % window;
			ASSERT(ring.order.insert(base + at, &ring.slots[base + at]));
			while (whole < window &&
			       ring.places[(base + whole) & (Order<Slot>::ring_size(window) - 1)])
				whole++;
			ASSERT_EQ(ring.order.received(), base + whole);
			ASSERT_EQ(ring.order.front() != nullptr, whole != 0);
		}
		for (uint64_t i = 0; i < window; i++) {
			ASSERT(ring.order.front() != nullptr);
			ASSERT_EQ(ring.order.front()->number, base + i);
			ASSERT_EQ(ring.order.read(), base + i);
			ring.order.pop();
		}
		ASSERT(!ring.order.front());
	}
}

// Too far ahead, repeated, long read.
void kdk_case_refuses(struct kunit *test)
{
	uint64_t window = kdk_param(test)->a, size = Order<Slot>::ring_size(window);
	Ring ring(test, window);
	if (!ring)
		return;
	Order<Slot> none;
	EXPECT(!none.insert(0, &ring.slots[0]) && !none.front());
	EXPECT(!ring.order.insert(size, &ring.slots[0]));
	EXPECT(!ring.order.insert(~0ULL, &ring.slots[0]));
	ASSERT(ring.order.insert(0, &ring.slots[0]));
	EXPECT(!ring.order.insert(0, &ring.slots[1]));
	EXPECT(!ring.order.insert(size, &ring.slots[1]));
	EXPECT(ring.order.front() == &ring.slots[0]);
	ring.order.pop();
	EXPECT(!ring.order.insert(0, &ring.slots[1]));
	EXPECT(ring.order.insert(size, &ring.slots[1])); // a place became free
	EXPECT(!ring.order.insert(size, &ring.slots[2]));
	EXPECT(!ring.order.insert(size + 1, &ring.slots[2]));
	EXPECT_EQ(ring.order.received(), size == 1 ? 2U : 1U);
}

// Offered messages are fetched in order, hold back what follows, and gaps hold them.
void kdk_case_fetch_in_order(struct kunit *test)
{
	uint64_t window = kdk_param(test)->a, cursor = 0;
	Ring ring(test, window);
	if (!ring)
		return;
	for (uint64_t i = window; i-- > 0;) {
		if (i % 3 != 1)
			ring.slots[i].ready = !(ring.slots[i].wants_fetch = true);
		if (i < window - 1)
			EXPECT(!ring.order.to_fetch(cursor)); // behind a gap
		ASSERT(ring.order.insert(i, &ring.slots[i]));
	}
	for (uint64_t i = 0; i < window; i++) {
		EXPECT_EQ(ring.order.received(), i);
		if (i % 3 != 1) {
			ASSERT(ring.order.to_fetch(cursor) == &ring.slots[i]);
			EXPECT_EQ(cursor, i);
			ring.slots[i].wants_fetch = false;
			EXPECT(!ring.order.front());
			ring.slots[i].ready = true;
			ring.order.advance();
		}
		// one that arrived whole came along with the one before it
		if (i + 1 < window && (i + 1) % 3 == 1)
			i++;
		EXPECT_EQ(ring.order.received(), i + 1);
		while (Slot *front = ring.order.front()) {
			EXPECT(front->number <= i);
			ring.order.pop();
		}
	}
	EXPECT(!ring.order.to_fetch(cursor));
	EXPECT_EQ(ring.order.read(), window);
}
