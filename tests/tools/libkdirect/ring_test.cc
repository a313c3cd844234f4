// SPDX-License-Identifier: GPL-2.0-only
// The protocol of rings, against a kernel that keeps its side of it.
#include "fake.h"

#include <atomic>
#include <cerrno>
#include <gtest/gtest.h>

namespace
{

class Rings : public testing::Test
{
protected:
	Rings() { kernel.opened.insert(fake::Kernel::mapping); }
	~Rings() override { kdirect_ring_free(ring); }

	int make(uint32_t sq, uint32_t cq, uint32_t flags = 0, uint64_t idle = 1000)
	{
		kdirect_ring_setup setup{};
		setup.sq_entries = sq;
		setup.cq_entries = cq;
		setup.flags = flags;
		setup.idle_ns = flags & KDIRECT_RING_THREAD ? idle : 0;
		return kdirect_ring_create(fake::Kernel::mapping, &setup, &ring);
	}
	bool push(uint64_t user_data, uint64_t operand = 1)
	{
		kdirect_desc *desc = kdirect_ring_next(ring);
		if (desc)
			kdirect_prep_fetch_add(desc, 0, operand, user_data);
		return desc;
	}
	uint32_t word(uint32_t at) { return kernel.ring->word(at); }
	size_t calls() { return kernel.ring->calls.size(); }

	fake::Kernel kernel;
	kdirect_ring *ring = nullptr;
};

TEST_F(Rings, EachDescriptorIsDoneOnce)
{
	for (uint32_t flags : {0u, uint32_t{KDIRECT_RING_THREAD}})
		for (uint32_t first : {0u, UINT32_MAX - 100})
			for (auto [sq, cq] : {std::pair{1u, 1u}, {2u, 8u}, {8u, 2u}, {64u, 64u}}) {
				SCOPED_TRACE(testing::Message() << flags << ": " << sq << ", " << cq
								<< " from " << first);
				kernel.first = first;
				ASSERT_EQ(make(sq, cq, flags), 0);
				constexpr uint64_t count = 500;
				std::vector<unsigned> seen(count);
				std::vector<uint64_t> values(count);
				uint64_t begun = 0, ended = 0;
				while (ended < count) {
					kdirect_desc *desc;
					while (begun < count && (desc = kdirect_ring_next(ring))) {
						values[begun] = begun * 3;
						kdirect_prep_write(desc, &values[begun], 8,
								   begun * 8, begun);
						begun++;
					}
					int got = kdirect_ring_submit_and_wait(ring, 1, -1);
					ASSERT_GT(got, 0);
					uint32_t n = 0;
					while (const auto *c = kdirect_ring_peek(ring, n)) {
						EXPECT_EQ(c->result, 8);
						EXPECT_EQ(c->index, uint32_t(first + c->user_data));
						seen.at(c->user_data)++;
						n++;
					}
					ASSERT_EQ(kdirect_ring_advance(ring, n), 0);
					ended += n;
				}
				EXPECT_EQ(seen, std::vector<unsigned>(count, 1));
				EXPECT_EQ(std::memcmp(kernel.remote.bytes.data(), values.data(),
						      count * 8),
					  0);
				kdirect_ring_free(std::exchange(ring, nullptr));
			}
}

// One thread submits, another one reaps, a third is the kernel.
TEST_F(Rings, TwoSidesAtATime)
{
	for (uint32_t flags : {0u, uint32_t{KDIRECT_RING_THREAD}}) {
		ASSERT_EQ(make(16, 4, flags, 3), 0);
		constexpr uint64_t count = 3000;
		std::thread submitter([&] {
			for (uint64_t i = 0; i < count;) {
				if (push(i))
					i++;
				int err = kdirect_ring_submit(ring);
				ASSERT_TRUE(err >= 0 || err == -EAGAIN) << err;
			}
			while (kdirect_ring_unsubmitted(ring))
				(void)kdirect_ring_submit(ring);
		});
		for (uint64_t next = 0; next < count;) {
			const auto *c = kdirect_ring_peek(ring, 0);
			if (!c) {
				std::this_thread::yield();
				continue;
			}
			EXPECT_EQ(c->user_data, next++);
			EXPECT_EQ(kdirect_ring_advance(ring, 1), 0);
		}
		submitter.join();
		kdirect_ring_free(std::exchange(ring, nullptr));
	}
}

TEST_F(Rings, AnAwakeThreadNeedsNoCall)
{
	ASSERT_EQ(make(64, 64, KDIRECT_RING_THREAD, KDIRECT_RING_IDLE_MAX), 0);
	uint64_t begun = 0, ended = 0;
	while (ended < 1000) {
		while (begun < 1000 && begun - ended < 64 && push(begun))
			begun++;
		ASSERT_GE(kdirect_ring_submit(ring), 0);
		uint32_t there = kdirect_ring_ready(ring);
		ASSERT_GE(kdirect_ring_wait(ring, there, -1), int(there));
		ASSERT_EQ(kdirect_ring_advance(ring, there), 0);
		ended += there;
		std::this_thread::yield();
	}
	EXPECT_EQ(calls(), 0u);
}

// Where the thread is not woken nothing comes, since nobody waits in the kernel.
TEST_F(Rings, ASleepingThreadIsWoken)
{
	ASSERT_EQ(make(8, 8, KDIRECT_RING_THREAD, 0), 0);
	for (uint64_t i = 0; i < 2000; i++) {
		ASSERT_TRUE(push(i));
		ASSERT_EQ(kdirect_ring_submit(ring), 1);
		const kdirect_completion *c;
		while (!(c = kdirect_ring_peek(ring, 0)))
			std::this_thread::yield();
		ASSERT_EQ(c->user_data, i);
		ASSERT_EQ(kdirect_ring_advance(ring, 1), 0);
	}
	kdirect_ring_free(std::exchange(ring, nullptr));
}

TEST_F(Rings, WhatWaitsForRoomFollows)
{
	ASSERT_EQ(make(64, 2), 0);
	for (uint64_t i = 0; i < 64; i++)
		ASSERT_TRUE(push(i));
	EXPECT_FALSE(push(64));
	EXPECT_EQ(kdirect_ring_submit(ring), 64);
	EXPECT_TRUE(word(kernel.ring->setup.state) & KDIRECT_RING_CQ_BEHIND);
	size_t before = calls();
	for (uint64_t i = 0; i < 64; i++) {
		ASSERT_EQ(kdirect_ring_ready(ring), i < 63 ? 2u : 1u);
		ASSERT_EQ(kdirect_ring_peek(ring, 0)->user_data, i);
		ASSERT_EQ(kdirect_ring_advance(ring, 1), 0);
	}
	EXPECT_EQ(calls() - before, 62u); // none where nothing is behind
	EXPECT_EQ(kdirect_ring_ready(ring), 0u);
}

TEST_F(Rings, WhatFindsNoEntryStays)
{
	ASSERT_EQ(make(512, 1), 0);
	for (uint64_t i = 0; i < 512; i++)
		ASSERT_TRUE(push(i));
	EXPECT_EQ(kdirect_ring_unsubmitted(ring), 512u);
	EXPECT_EQ(kdirect_ring_submit(ring), KDIRECT_DESC_ENTRIES + 1);
	EXPECT_EQ(kdirect_ring_unsubmitted(ring), 512u - KDIRECT_DESC_ENTRIES - 1);
	EXPECT_EQ(kdirect_ring_submit(ring), 0);
	uint64_t next = 0;
	while (kdirect_ring_submit_and_wait(ring, 1, 0) > 0) {
		EXPECT_EQ(kdirect_ring_peek(ring, 0)->user_data, next++);
		EXPECT_EQ(kdirect_ring_advance(ring, 1), 0);
	}
	EXPECT_EQ(next, 512u);
	EXPECT_EQ(kdirect_ring_unsubmitted(ring), 0u);
}

TEST_F(Rings, NothingIsSeenBeforeItIsSubmitted)
{
	ASSERT_EQ(make(4, 4), 0);
	kdirect_desc *first = kdirect_ring_next(ring);
	std::memset(first, 0xff, sizeof(*first));
	kdirect_prep_fetch_add(first, 0, 1, 7);
	EXPECT_EQ(word(kernel.ring->setup.sq_tail), 0u);
	EXPECT_EQ(calls(), 0u);
	EXPECT_EQ(kdirect_ring_submit(ring), 1);
	EXPECT_EQ(word(kernel.ring->setup.sq_tail), 1u);
	ASSERT_NE(kdirect_ring_peek(ring, 0), nullptr);
	EXPECT_EQ(kdirect_ring_peek(ring, 1), nullptr);
	EXPECT_EQ(kdirect_ring_advance(ring, 2), -EINVAL);
	EXPECT_EQ(kdirect_ring_advance(ring, 1), 0);
	EXPECT_EQ(kdirect_ring_advance(ring, 1), -EINVAL);
	// the place is zeroed when it is used again
	for (int round = 0; round < 4; round++) {
		kdirect_desc *desc = kdirect_ring_next(ring), zero{};
		ASSERT_NE(desc, nullptr);
		EXPECT_EQ(std::memcmp(desc, &zero, sizeof(zero)), 0);
		std::memset(desc, 0xff, sizeof(*desc));
		EXPECT_EQ(kdirect_ring_submit(ring), 1);
		EXPECT_EQ(kdirect_ring_peek(ring, 0)->result, -EINVAL);
		EXPECT_EQ(kdirect_ring_advance(ring, 1), 0);
	}
}

TEST_F(Rings, Waiting)
{
	ASSERT_EQ(make(4, 4), 0);
	EXPECT_EQ(kdirect_ring_wait(ring, 5, -1), -EINVAL);
	EXPECT_EQ(kdirect_ring_submit_and_wait(ring, 5, -1), -EINVAL);
	EXPECT_EQ(kdirect_ring_wait(ring, 0, -1), 0);
	EXPECT_EQ(kdirect_ring_wait(ring, 4, 0), 0);
	EXPECT_EQ(calls(), 0u);
	EXPECT_EQ(kdirect_ring_wait(ring, 1, 5000), -ETIMEDOUT);
	ASSERT_EQ(calls(), 1u);
	EXPECT_EQ(kernel.ring->calls[0].timeout_ns, 5000u);
	EXPECT_EQ(kernel.ring->calls[0].min_completions, 1u);
	EXPECT_EQ(kernel.ring->calls[0].to_submit, 0u);
	ASSERT_TRUE(push(1));
	ASSERT_TRUE(push(2));
	EXPECT_EQ(kdirect_ring_submit_and_wait(ring, 2, -1), 2);
	ASSERT_EQ(calls(), 2u);
	EXPECT_EQ(kernel.ring->calls[1].to_submit, 2u);
	EXPECT_EQ(kernel.ring->calls[1].timeout_ns, 0u);
	EXPECT_EQ(kdirect_ring_wait(ring, 2, -1), 2);
	EXPECT_EQ(calls(), 2u);
	EXPECT_EQ(kdirect_ring_wait(ring, 3, 100), 2); // fewer, at the end of the time
	kernel.results = {-EINTR, -ESTALE, -EPIPE};
	EXPECT_EQ(kdirect_ring_wait(ring, 3, 100), 2); // not lost behind an error
	EXPECT_EQ(kdirect_ring_advance(ring, 2), 0);
	EXPECT_EQ(kdirect_ring_wait(ring, 1, -1), -ESTALE);
	size_t before = calls();
	EXPECT_EQ(kdirect_ring_submit(ring), 0); // nothing to submit
	EXPECT_EQ(calls(), before);
	ASSERT_TRUE(push(3));
	EXPECT_EQ(kdirect_ring_submit(ring), -EPIPE);
	EXPECT_EQ(kdirect_ring_unsubmitted(ring), 1u);
}

// Completions of a ring that polls come in calls only; those say so.
TEST_F(Rings, Polling)
{
	ASSERT_EQ(make(4, 4, KDIRECT_RING_POLL), 0);
	EXPECT_EQ(kdirect_ring_wait(ring, 1, 0), 0);
	EXPECT_EQ(kdirect_ring_wait(ring, 0, 0), 0);
	ASSERT_TRUE(push(1));
	EXPECT_EQ(kdirect_ring_submit_and_wait(ring, 1, -1), 1);
	ASSERT_EQ(calls(), 3u);
	for (const kdirect_ring_enter &call : kernel.ring->calls)
		EXPECT_EQ(call.flags, uint32_t{KDIRECT_ENTER_POLL});
	EXPECT_EQ(kdirect_ring_wait(ring, 1, -1), 1);
	EXPECT_EQ(calls(), 3u);
	kdirect_ring_free(std::exchange(ring, nullptr));

	ASSERT_EQ(make(4, 4, KDIRECT_RING_POLL | KDIRECT_RING_THREAD), 0);
	ASSERT_TRUE(push(1));
	EXPECT_EQ(kdirect_ring_submit_and_wait(ring, 1, -1), 1);
	for (const kdirect_ring_enter &call : kernel.ring->calls) {
		EXPECT_EQ(call.flags, 0u);
		EXPECT_EQ(call.to_submit, 0u);
	}
}

TEST_F(Rings, WordsThatSomebodyElseWrote)
{
	ASSERT_EQ(make(4, 4), 0);
	kernel.ring->word(kernel.ring->setup.cq_tail) = 0x80000000;
	EXPECT_EQ(kdirect_ring_ready(ring), 4u);
	EXPECT_NE(kdirect_ring_peek(ring, 3), nullptr);
	EXPECT_EQ(kdirect_ring_peek(ring, 4), nullptr);
	EXPECT_EQ(kdirect_ring_advance(ring, 5), -EINVAL);
	kernel.ring->word(kernel.ring->setup.sq_head) = 77;
	EXPECT_EQ(kdirect_ring_next(ring), nullptr);
	kernel.ring->word(kernel.ring->setup.cq_tail) = 0;
	kernel.ring->word(kernel.ring->setup.sq_head) = 0;
	kernel.ring->word(kernel.ring->setup.sq_tail) = 9;
	EXPECT_EQ(kdirect_ring_submit(ring), 0);
	EXPECT_EQ(word(kernel.ring->setup.sq_tail), 0u); // its writer knows better
	ASSERT_TRUE(push(1));
	kernel.results = {-EBADMSG};
	EXPECT_EQ(kdirect_ring_submit(ring), -EBADMSG);
}

TEST_F(Rings, Making)
{
	kernel.results = {-EBUSY};
	EXPECT_EQ(make(4, 4), -EBUSY);
	kernel.map_error = -EPERM;
	EXPECT_EQ(make(4, 4), -EPERM);
	EXPECT_FALSE(kernel.opened.contains(fake::Kernel::ring_fd));
	kernel.map_error = 0;
	kernel.spoil_setup = true;
	EXPECT_EQ(make(4, 4), -EINVAL);
	EXPECT_FALSE(kernel.opened.contains(fake::Kernel::ring_fd));
	kernel.spoil_setup = false;
	ASSERT_EQ(make(4, 8), 0);
	EXPECT_TRUE(kernel.ring->mapped);
	EXPECT_EQ(kdirect_ring_fd(ring), fake::Kernel::ring_fd);
	EXPECT_EQ(kdirect_ring_layout(ring)->cq_entries, 8u);
	kdirect_ring_free(std::exchange(ring, nullptr));
	EXPECT_FALSE(kernel.opened.contains(fake::Kernel::ring_fd));
	kdirect_ring_free(nullptr);
}

TEST_F(Rings, LayoutsThatCannotBe)
{
	ASSERT_EQ(make(4, 8), 0);
	const kdirect_ring_setup good = *kdirect_ring_layout(ring);
	auto with = [&](auto &&spoil) {
		kdirect_ring_setup setup = good;
		spoil(setup);
		kdirect_ring *other = nullptr;
		int err = kdirect_ring_attach(fake::Kernel::ring_fd, &setup, &other);
		EXPECT_EQ(other, nullptr);
		return err;
	};
	EXPECT_EQ(with([](auto &s) { s.sq_entries = 0; }), -EINVAL);
	EXPECT_EQ(with([](auto &s) { s.sq_entries = 3; }), -EINVAL);
	EXPECT_EQ(with([](auto &s) { s.cq_entries = 2 * KDIRECT_RING_ENTRIES; }), -EINVAL);
	EXPECT_EQ(with([](auto &s) { s.cq_entries = 16; }), -EINVAL);
	EXPECT_EQ(with([](auto &s) { s.length = 0; }), -EINVAL);
	EXPECT_EQ(with([](auto &s) { s.length--; }), -EINVAL);
	EXPECT_EQ(with([](auto &s) { s.sq_head = 2; }), -EINVAL);
	EXPECT_EQ(with([](auto &s) { s.sq_tail = uint32_t(s.length); }), -EINVAL);
	EXPECT_EQ(with([](auto &s) { s.cq_head = uint32_t(s.length - 2); }), -EINVAL);
	EXPECT_EQ(with([](auto &s) { s.cq_tail = UINT32_MAX - 3; }), -EINVAL);
	EXPECT_EQ(with([](auto &s) { s.state = 1; }), -EINVAL);
	EXPECT_EQ(with([](auto &s) { s.descs += 4; }), -EINVAL);
	EXPECT_EQ(with([](auto &s) { s.descs = s.completions + 128; }), -EINVAL);
	EXPECT_EQ(with([](auto &s) { s.completions += 8; }), -EINVAL);
}

// Numbers go on where the rings are, as for who gets them from another process.
TEST_F(Rings, AttachingGoesOn)
{
	ASSERT_EQ(make(4, 4), 0);
	for (uint64_t i = 0; i < 3; i++) {
		ASSERT_TRUE(push(i));
		ASSERT_EQ(kdirect_ring_submit_and_wait(ring, 1, -1), 1);
		ASSERT_EQ(kdirect_ring_advance(ring, 1), 0);
	}
	kdirect_ring *first = std::exchange(ring, nullptr);
	ASSERT_EQ(kdirect_ring_attach(fake::Kernel::ring_fd, kdirect_ring_layout(first), &ring), 0);
	EXPECT_EQ(kdirect_ring_unsubmitted(ring), 0u);
	ASSERT_TRUE(push(3));
	EXPECT_EQ(kdirect_ring_submit_and_wait(ring, 1, -1), 1);
	EXPECT_EQ(kdirect_ring_peek(ring, 0)->user_data, 3u);
	EXPECT_EQ(kdirect_ring_peek(ring, 0)->index, 3u);
	std::free(first); // its memory and file are the other's
}

} // namespace
