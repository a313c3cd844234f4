// SPDX-License-Identifier: GPL-2.0-only
// The ring that puts messages of several queues back into one order.
#include "../../kmod/core/order.hh"

#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <vector>

#include "../sim/rng.h"

namespace
{

struct Slot {
	bool ready = true;
	bool wants_fetch = false;
	uint64_t number = 0;
};
using Order = kd::Order<Slot>;

struct Ring {
	explicit Ring(uint64_t slots) : places(Order::ring_size(slots))
	{
		order.set_ring(places.data(), places.size());
	}
	std::vector<Slot *> places;
	Order order;
};

TEST(Order, RingSizes)
{
	EXPECT_EQ(Order::ring_size(1), 1u);
	EXPECT_EQ(Order::ring_size(2), 2u);
	EXPECT_EQ(Order::ring_size(3), 4u);
	EXPECT_EQ(Order::ring_size(64 * 1026), 131072u);
}

TEST(Order, WithoutARing)
{
	Order order;
	Slot slot;
	uint64_t from = 0;

	EXPECT_FALSE(order.insert(0, &slot));
	EXPECT_EQ(order.front(), nullptr);
	EXPECT_EQ(order.to_fetch(from), nullptr);
}

TEST(Order, InOrder)
{
	Ring ring(4);
	Slot slots[10];

	for (uint64_t i = 0; i < 10; i++) {
		EXPECT_EQ(ring.order.front(), nullptr);
		ASSERT_TRUE(ring.order.insert(i, &slots[i]));
		EXPECT_EQ(ring.order.front(), &slots[i]);
		EXPECT_EQ(ring.order.received(), i + 1);
		EXPECT_EQ(ring.order.read(), i);
		ring.order.pop();
	}
}

TEST(Order, GapsHoldBack)
{
	Ring ring(4);
	Slot slots[4];

	ASSERT_TRUE(ring.order.insert(2, &slots[2]));
	ASSERT_TRUE(ring.order.insert(1, &slots[1]));
	EXPECT_EQ(ring.order.front(), nullptr);
	EXPECT_EQ(ring.order.received(), 0u);
	ASSERT_TRUE(ring.order.insert(0, &slots[0]));
	EXPECT_EQ(ring.order.received(), 3u);
	for (int i = 0; i < 3; i++) {
		EXPECT_EQ(ring.order.front(), &slots[i]);
		ring.order.pop();
	}
	EXPECT_EQ(ring.order.front(), nullptr);
}

TEST(Order, RefusesWhatCannotBe)
{
	Ring ring(4);
	Slot slots[8];

	EXPECT_FALSE(ring.order.insert(4, &slots[0])) << "ahead of all credits";
	EXPECT_FALSE(ring.order.insert(UINT64_MAX, &slots[0]));
	EXPECT_TRUE(ring.order.insert(3, &slots[3]));
	EXPECT_FALSE(ring.order.insert(3, &slots[4])) << "twice, not yet read";
	EXPECT_TRUE(ring.order.insert(0, &slots[0]));
	EXPECT_FALSE(ring.order.insert(0, &slots[4])) << "twice, arrived";
	ring.order.pop();
	EXPECT_FALSE(ring.order.insert(0, &slots[4])) << "twice, read";
	EXPECT_TRUE(ring.order.insert(4, &slots[4])) << "a place became free";
	EXPECT_FALSE(ring.order.insert(5, &slots[5]));
}

TEST(Order, FullRing)
{
	for (uint64_t size : {1u, 2u, 8u}) {
		Ring ring(size);
		std::vector<Slot> slots(size * 3);

		for (uint64_t base = 0; base < size * 3; base += size) {
			for (uint64_t i = size; i--;)
				ASSERT_TRUE(ring.order.insert(base + i, &slots[base + i]));
			EXPECT_EQ(ring.order.received(), base + size);
			for (uint64_t i = 0; i < size; i++) {
				EXPECT_EQ(ring.order.front(), &slots[base + i]);
				ring.order.pop();
			}
		}
	}
}

TEST(Order, OffersAreFetchedInOrderAndHoldBack)
{
	Ring ring(8);
	Slot slots[8];
	uint64_t from = 0;

	for (int i : {0, 2, 3, 5}) {
		slots[i].ready = false;
		slots[i].wants_fetch = true;
	}
	for (uint64_t i : {1, 2, 3, 5})
		ASSERT_TRUE(ring.order.insert(i, &slots[i]));
	EXPECT_EQ(ring.order.to_fetch(from), nullptr) << "behind a gap";
	ASSERT_TRUE(ring.order.insert(0, &slots[0]));
	EXPECT_EQ(ring.order.front(), nullptr) << "not fetched";
	EXPECT_EQ(ring.order.to_fetch(from), &slots[0]);
	slots[0].wants_fetch = false;
	EXPECT_EQ(ring.order.to_fetch(from), &slots[2]);
	slots[2].wants_fetch = false;
	EXPECT_EQ(ring.order.to_fetch(from), &slots[3]);
	slots[3].wants_fetch = false;
	EXPECT_EQ(ring.order.to_fetch(from), nullptr);
	slots[2].ready = true;
	ring.order.advance();
	EXPECT_EQ(ring.order.received(), 0u);
	slots[0].ready = true;
	ring.order.advance();
	EXPECT_EQ(ring.order.received(), 3u);
	for (int i = 0; i < 3; i++)
		ring.order.pop();
	EXPECT_EQ(ring.order.front(), nullptr);
	from = 0; /* moves on past what was read */
	EXPECT_EQ(ring.order.to_fetch(from), nullptr);
	EXPECT_GE(from, ring.order.read());
}

TEST(Order, RandomArrivals)
{
	for (uint64_t seed = 0; seed < 200; seed++) {
		sim::Rng rng(seed);
		uint64_t window = rng.range(1, 16);
		Ring ring(window);
		std::vector<Slot> slots(400);
		std::vector<uint64_t> waiting;
		uint64_t next = 0, expected = 0;

		for (uint64_t i = 0; i < slots.size(); i++)
			slots[i].number = i;
		while (expected < slots.size()) {
			while (next < slots.size() && next - expected < window)
				waiting.push_back(next++);
			if (!waiting.empty() && rng.chance(60)) {
				std::size_t pick = rng.below(waiting.size());

				ASSERT_TRUE(
					ring.order.insert(waiting[pick], &slots[waiting[pick]]));
				waiting.erase(waiting.begin() + static_cast<std::ptrdiff_t>(pick));
			} else if (Slot *front = ring.order.front()) {
				ASSERT_EQ(front->number, expected) << "seed " << seed;
				ring.order.pop();
				expected++;
			}
		}
	}
}

/* What did not arrive whole and in order comes again after an outage. */
TEST(Order, ForgetsWhatIsNotInOrder)
{
	Ring ring(8);
	Slot slots[6];
	std::vector<Slot *> forgotten;

	slots[2].ready = false;
	for (uint64_t i : {0U, 1U, 2U, 4U, 5U})
		ASSERT_TRUE(ring.order.insert(i, &slots[i]));
	ring.order.forget_rest([&](Slot *slot) { forgotten.push_back(slot); });
	EXPECT_EQ(forgotten, (std::vector<Slot *>{&slots[2], &slots[4], &slots[5]}));
	EXPECT_EQ(ring.order.received(), 2u);
	slots[2].ready = true;
	for (uint64_t i = 2; i < 6; i++)
		ASSERT_TRUE(ring.order.insert(i, &slots[i])) << i;
	for (Slot &slot : slots) {
		EXPECT_EQ(ring.order.front(), &slot);
		ring.order.pop();
	}
}

} // namespace
