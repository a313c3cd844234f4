// SPDX-License-Identifier: GPL-2.0-only
// Credits and send slots: what may be posted, and what comes back.
#include "core_cases.h"
#include "queue.hh"

using namespace kd;
using Update = CreditWindow::Update;

void kdk_case_window(struct kunit *test)
{
	uint32_t depth = kdk_param(test)->a;
	CreditWindow window;
	EXPECT_EQ(window.available(), 0U); // not yet open
	window.open(depth);
	for (uint32_t i = 0; i < depth; i++) {
		ASSERT_EQ(window.available(), depth - i);
		window.take();
	}
	EXPECT_EQ(window.available(), 0U);
	window.give_back();
	EXPECT_EQ(window.available(), 1U);
	window.take();
	// One by one, each of them told three times and once too late.
	for (uint32_t i = 1; i <= depth; i++) {
		ASSERT_EQ(window.update(i), Update::Grew);
		ASSERT_EQ(window.update(i), Update::Old);
		ASSERT_EQ(window.update(i - 1), Update::Old);
		ASSERT_EQ(window.available(), i);
	}
	EXPECT_EQ(window.update(depth + 1), Update::Lie);
	EXPECT_EQ(window.available(), depth);
	window.open(depth);
	EXPECT_EQ(window.available(), depth);
	EXPECT_EQ(window.update(1), Update::Lie); // nothing was used since
}

// 2^32 is a number of messages like any other: the same at each start.
void kdk_case_window_updates(struct kunit *test)
{
	uint32_t sent = kdk_param(test)->a, granted = kdk_param(test)->b;
	Update wanted = granted == 0 || granted > 0x80000000U ? Update::Old
			: granted <= sent                     ? Update::Grew
							      : Update::Lie;
	for (uint32_t start : {0U, 1U, 0x7fffffffU, 0x80000000U, 0xfffffff0U, 0xffffffffU}) {
		// sending that much takes too long under emulation
		struct {
			uint32_t receives, granted, sent;
		} raw = {8, start, start};
		CreditWindow window;
		static_assert(sizeof(window) == sizeof(raw));
		copy_bytes(&window, &raw, sizeof(raw));
		ASSERT_EQ(window.available(), 8U);
		for (uint32_t i = 0; i < sent; i++)
			window.take();
		EXPECT_EQ(window.update(start + granted), wanted);
		EXPECT_EQ(window.available(), 8 - sent + (wanted == Update::Grew ? granted : 0));
	}
}

void kdk_case_grant(struct kunit *test)
{
	CreditGrant grant;
	EXPECT_EQ(grant.owed(), 0U);
	EXPECT_EQ(grant.tell(), 0U);
	for (uint32_t i = 1; i <= 100; i++) {
		grant.posted();
		EXPECT_EQ(grant.owed(), i % 7 ? i % 7 : 7);
		if (i % 7 == 0)
			EXPECT_EQ(grant.tell(), i);
	}
	EXPECT_EQ(grant.tell(), 100U);
	EXPECT_EQ(grant.owed(), 0U);
	grant.reset();
	EXPECT_EQ(grant.tell(), 0U);
}

// A completion retires its own SEND and all before it; each slot comes back once.
void kdk_case_send_ring(struct kunit *test)
{
	uint32_t depth = kdk_param(test)->a, every = 3;
	Sleepable s = ShimEntry::may_sleep();
	auto *slots = create_array<TxSlot>(s, depth);
	auto *retired = create_array<uint8_t>(s, depth);
	if (!EXPECT(slots && retired))
		return destroy_array(s, slots), destroy_array(s, retired);
	SendRing ring;
	uint32_t asked = 0, unsignalled = 0;
	for (uint32_t i = 0; i < depth; i++) {
		bool signalled = i % every == every - 1 || i == depth - 1;
		ring.post(&slots[i], signalled);
		asked += signalled;
		unsignalled = signalled ? 0 : unsignalled + 1;
		EXPECT_EQ(ring.awaited, asked);
		EXPECT_EQ(ring.unsignalled, unsignalled);
		EXPECT_EQ(ring.since_ns != 0, asked != 0);
	}
	for (uint32_t i = 0; i < depth; i++) {
		if (!slots[i].signalled)
			continue;
		for (TxSlot *done = nullptr; done != &slots[i] && (done = ring.retire());)
			retired[done - slots]++;
		asked--;
		EXPECT_EQ(ring.awaited, asked);
		for (uint32_t j = 0; j < depth; j++)
			if (retired[j] != (j <= i))
				kdk_fail(test, __FILE__, __LINE__, "slot %u came back %u times", j,
					 retired[j]);
	}
	EXPECT(!ring.retire());
	EXPECT_EQ(ring.awaited, 0U);
	destroy_array(s, slots);
	destroy_array(s, retired);
}

void kdk_case_fifo(struct kunit *test)
{
	uint32_t count = kdk_param(test)->a;
	Sleepable s = ShimEntry::may_sleep();
	auto *slots = create_array<TxSlot>(s, count);
	ASSERT(slots != nullptr);
	Fifo<TxSlot, &TxSlot::link> list;
	EXPECT(list.empty() && !list.pop() && !list.front());
	for (uint32_t i = 0; i < count; i++)
		list.push_back(&slots[i]);
	uint32_t at = 0;
	list.each([&](TxSlot &slot) { EXPECT(&slot == &slots[at++]); });
	EXPECT_EQ(at, count);
	// the last, out of whatever place, and back to the front
	TxSlot *last = &slots[count - 1];
	EXPECT(list.take([&](TxSlot &slot) { return &slot == last; }) == last);
	EXPECT(!list.take([&](TxSlot &slot) { return &slot == last; }));
	list.push_front(last);
	EXPECT(list.pop() == last);
	list.push_back(last);
	for (uint32_t i = 0; i < count; i++)
		EXPECT(list.pop() == &slots[i]);
	EXPECT(list.empty() && !list.pop());
	// an emptied list works on
	list.push_front(last);
	list.push_back(&slots[0]);
	EXPECT(list.pop() == last);
	if (count > 1)
		EXPECT(list.pop() == &slots[0]);
	destroy_array(s, slots);
}
