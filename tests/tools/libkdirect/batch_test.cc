// SPDX-License-Identifier: GPL-2.0-only
// Batches, buffers, descriptors.
#include "fake.h"

#include <array>
#include <cerrno>
#include <gtest/gtest.h>
#include <libkdirect_uring.h>

namespace
{

constexpr int mapping = fake::Kernel::mapping;

class Batches : public testing::Test
{
protected:
	Batches() { kernel.opened.insert(mapping); }
	~Batches() override { kdirect_batch_free(batch); }
	void make(uint32_t capacity) { ASSERT_EQ(kdirect_batch_create(capacity, &batch), 0); }
	bool push(uint64_t user_data)
	{
		kdirect_desc *desc = kdirect_batch_next(batch);
		if (desc)
			kdirect_prep_fetch_add(desc, 8 * (user_data % 8), 1, user_data);
		return desc;
	}

	fake::Kernel kernel;
	kdirect_batch *batch = nullptr;
	std::array<kdirect_completion, 1000> done;
};

TEST(Prep, AllFieldsAreSet)
{
	char memory[8];
	kdirect_desc desc, zero{};
	auto fill = [&] { std::memset(&desc, 0xff, sizeof(desc)); };
	auto expect = [&](kdirect_desc wanted) {
		EXPECT_EQ(std::memcmp(&desc, &wanted, sizeof(desc)), 0);
	};
	kdirect_desc wanted = zero;
	wanted.opcode = KDIRECT_OP_READ;
	wanted.length = 8;
	wanted.addr = reinterpret_cast<uintptr_t>(memory);
	wanted.remote = 1ULL << 40;
	wanted.user_data = 5;
	fill();
	kdirect_prep_read(&desc, memory, 8, 1ULL << 40, 5);
	expect(wanted);
	wanted.opcode = KDIRECT_OP_WRITE;
	fill();
	kdirect_prep_write(&desc, memory, 8, 1ULL << 40, 5);
	expect(wanted);
	wanted.flags = KDIRECT_DESC_FIXED;
	wanted.buffer = 200;
	wanted.addr = 4096;
	fill();
	kdirect_prep_write_fixed(&desc, 200, 4096, 8, 1ULL << 40, 5);
	expect(wanted);
	wanted.opcode = KDIRECT_OP_READ;
	fill();
	kdirect_prep_read_fixed(&desc, 200, 4096, 8, 1ULL << 40, 5);
	expect(wanted);
	wanted = zero;
	wanted.opcode = KDIRECT_OP_FETCH_ADD;
	wanted.length = 8;
	wanted.remote = 16;
	wanted.operand = UINT64_MAX;
	wanted.user_data = 6;
	fill();
	kdirect_prep_fetch_add(&desc, 16, UINT64_MAX, 6);
	expect(wanted);
	wanted.opcode = KDIRECT_OP_CMP_SWAP;
	wanted.compare = 3;
	wanted.operand = 4;
	fill();
	kdirect_prep_cmp_swap(&desc, 16, 3, 4, 6);
	expect(wanted);
}

TEST(Prep, Messages)
{
	char memory[8];
	kdirect_desc desc, wanted{};
	auto fill = [&] { std::memset(&desc, 0xff, sizeof(desc)); };
	auto expect = [&] { EXPECT_EQ(std::memcmp(&desc, &wanted, sizeof(desc)), 0); };
	wanted.opcode = KDIRECT_OP_SEND;
	wanted.length = 8;
	wanted.addr = reinterpret_cast<uintptr_t>(memory);
	wanted.user_data = 5;
	fill();
	kdirect_prep_send(&desc, memory, 8, 5);
	expect();
	wanted.opcode = KDIRECT_OP_RECV;
	fill();
	kdirect_prep_recv(&desc, memory, 8, 5);
	expect();
	wanted.flags = KDIRECT_DESC_FIXED;
	wanted.buffer = 200;
	wanted.addr = 4096;
	kdirect_desc_set_fixed(&desc, 200, 4096);
	expect();
}

TEST(Prep, IoUringCommand)
{
	alignas(io_uring_sqe) unsigned char sqe[129];
	std::memset(sqe, 0xff, sizeof(sqe));
	kdirect_desc desc;
	kdirect_prep_cmp_swap(&desc, 16, 3, 4, 77);
	kdirect_uring_prep(reinterpret_cast<io_uring_sqe *>(sqe), 9, &desc);
	auto *made = reinterpret_cast<io_uring_sqe *>(sqe);
	EXPECT_EQ(made->opcode, IORING_OP_URING_CMD);
	EXPECT_EQ(made->fd, 9);
	EXPECT_EQ(made->cmd_op, uint32_t{KDIRECT_URING_CMD_DESC});
	EXPECT_EQ(made->user_data, 77u);
	desc.user_data = 0;
	EXPECT_EQ(std::memcmp(sqe + 48, &desc, sizeof(desc)), 0);
	for (size_t i = 48 + sizeof(desc); i < 128; i++)
		EXPECT_EQ(sqe[i], 0);
	EXPECT_EQ(made->flags | made->ioprio | made->buf_index | made->personality, 0);
	EXPECT_EQ(made->addr, 0u);
	EXPECT_EQ(made->uring_cmd_flags, 0u);
	EXPECT_EQ(sqe[128], 0xff);
}

TEST_F(Batches, Capacity)
{
	EXPECT_EQ(kdirect_batch_create(0, &batch), -EINVAL);
	EXPECT_EQ(kdirect_batch_create((1 << 24) + 1, &batch), -EINVAL);
	make(3);
	for (uint64_t i = 0; i < 3; i++)
		EXPECT_TRUE(push(i));
	EXPECT_FALSE(push(3));
	EXPECT_EQ(kdirect_batch_count(batch), 3u);
	kdirect_batch_clear(batch);
	EXPECT_EQ(kdirect_batch_count(batch), 0u);
	EXPECT_TRUE(push(4));
	EXPECT_EQ(kdirect_batch_submit(batch, mapping, done.data(), 10, 0, 0, 0), 1);
	EXPECT_EQ(done[0].user_data, 4u);
	kdirect_batch_free(nullptr);
}

TEST_F(Batches, WhatIsNotTakenStays)
{
	make(4);
	kernel.at_once = 3;
	for (uint64_t i = 0; i < 4; i++)
		ASSERT_TRUE(push(i));
	EXPECT_EQ(kdirect_batch_submit(batch, mapping, done.data(), 2, 1, 0, -1), 2);
	EXPECT_EQ(kdirect_batch_count(batch), 1u);
	// there is room behind what is left
	for (uint64_t i = 4; i < 7; i++)
		ASSERT_TRUE(push(i));
	EXPECT_FALSE(push(7));
	kernel.at_once = 10;
	EXPECT_EQ(kdirect_batch_submit(batch, mapping, done.data(), 10, 1, 0, -1), 5);
	for (uint64_t i = 0; i < 5; i++)
		EXPECT_EQ(done[i].user_data, i + 2);
	EXPECT_EQ(kdirect_batch_count(batch), 0u);
}

TEST_F(Batches, TheCall)
{
	make(4);
	ASSERT_TRUE(push(1));
	ASSERT_TRUE(push(2));
	EXPECT_EQ(kdirect_batch_submit(batch, mapping, done.data(), 7, 2, KDIRECT_SUBMIT_POLL, 55),
		  2);
	kdirect_submit call = kernel.submits.back();
	EXPECT_EQ(call.nr_completions, 7u);
	EXPECT_EQ(call.min_completions, 2u);
	EXPECT_EQ(call.nr_descs, 0u + 2);
	EXPECT_EQ(call.flags, uint32_t{KDIRECT_SUBMIT_POLL});
	EXPECT_EQ(call.timeout_ns, 55u);
	EXPECT_EQ(call.reserved[0] | call.reserved[1], 0u);
	// 0 does not wait, a negative time has no limit
	EXPECT_EQ(kdirect_reap(mapping, done.data(), 7, 2, 0, 0), 0);
	EXPECT_EQ(kernel.submits.back().min_completions, 0u);
	ASSERT_TRUE(push(3));
	EXPECT_EQ(kdirect_batch_submit(batch, mapping, done.data(), 7, 1, 0, -1), 1);
	EXPECT_EQ(kernel.submits.back().timeout_ns, 0u);
	EXPECT_EQ(kdirect_reap(mapping, done.data(), 7, 1, 0, 1000), -ETIMEDOUT);
	size_t calls = kernel.submits.size();
	EXPECT_EQ(kdirect_reap(mapping, done.data(), 7, 8, 0, 1000), -EINVAL);
	EXPECT_EQ(kdirect_reap(mapping, done.data(), 1000, KDIRECT_DESC_ENTRIES + 1, 0, 0),
		  -EINVAL);
	EXPECT_EQ(kdirect_reap(mapping, done.data(), UINT32_MAX, 0, 0, 0), -EINVAL);
	EXPECT_EQ(kernel.submits.size(), calls);
	kernel.results = {-EBUSY};
	ASSERT_TRUE(push(4));
	EXPECT_EQ(kdirect_batch_submit(batch, mapping, done.data(), 7, 1, 0, -1), -EBUSY);
	EXPECT_EQ(kdirect_batch_count(batch), 1u);
}

TEST_F(Batches, RunDoesAllOfIt)
{
	make(1000);
	for (uint32_t count : {1u, 255u, 256u, 257u, 1000u}) {
		SCOPED_TRACE(count);
		std::vector<unsigned> seen(count);
		for (uint64_t i = 0; i < count; i++)
			ASSERT_TRUE(push(i));
		kernel.signals = 3;
		ASSERT_EQ(kdirect_batch_run(batch, mapping, done.data(), 0, -1), int(count));
		EXPECT_EQ(kdirect_batch_count(batch), 0u);
		for (uint32_t i = 0; i < count; i++)
			seen.at(done[i].user_data)++;
		EXPECT_EQ(seen, std::vector<unsigned>(count, 1));
		kernel.signals = 0;
	}
}

TEST_F(Batches, RunEnds)
{
	make(10);
	EXPECT_EQ(kdirect_batch_run(batch, mapping, done.data(), 0, -1), 0);
	kernel.under_way = KDIRECT_DESC_ENTRIES - 4;
	for (uint64_t i = 0; i < 10; i++)
		ASSERT_TRUE(push(i));
	// 4 at a time, so that not all can be waited for
	int64_t begun = kernel.now;
	int got = kdirect_batch_run(batch, mapping, done.data(), 0, 1000);
	EXPECT_GE(got, 4);
	EXPECT_LT(got, 10);
	EXPECT_GE(kernel.now - begun, 1000);
	kdirect_batch_clear(batch);

	kernel.under_way = KDIRECT_DESC_ENTRIES;
	ASSERT_TRUE(push(1));
	EXPECT_EQ(kdirect_batch_run(batch, mapping, done.data(), 0, 1000), -ETIMEDOUT);
	EXPECT_EQ(kdirect_batch_run(batch, mapping, done.data(), 0, 0), 0);
	kernel.results = {-ESTALE};
	EXPECT_EQ(kdirect_batch_run(batch, mapping, done.data(), 0, -1), -ESTALE);
	EXPECT_EQ(kdirect_batch_count(batch), 1u);
}

TEST_F(Batches, Buffers)
{
	char memory[64];
	EXPECT_EQ(kdirect_buffer_set(mapping, 3, memory, sizeof(memory)), 0);
	kdirect_buffer buffer = kernel.remote.buffers.at(3);
	EXPECT_EQ(buffer.addr, reinterpret_cast<uintptr_t>(memory));
	EXPECT_EQ(buffer.length, sizeof(memory));
	EXPECT_EQ(buffer.reserved[0] | buffer.reserved[1] | buffer.reserved[2], 0u);
	EXPECT_EQ(kdirect_buffer_set(mapping, KDIRECT_BUFFERS, memory, 1), -EINVAL);
	EXPECT_EQ(kdirect_buffer_set(mapping, 0, memory, 0), -EINVAL);
	EXPECT_EQ(kdirect_buffer_remove(mapping, 3), 0);
	EXPECT_EQ(kdirect_buffer_remove(mapping, 3), -ENOENT);
	EXPECT_EQ(kdirect_buffer_set(5, 3, memory, 1), -EBADF);
}

} // namespace
