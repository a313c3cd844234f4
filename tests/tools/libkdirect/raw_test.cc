// SPDX-License-Identifier: GPL-2.0-only
// Raw channels: their connection, keys, and descriptors.
#include "fake.h"

#include <array>
#include <cerrno>
#include <gtest/gtest.h>
#include <libkdirect.hh>

namespace
{

constexpr int raw = fake::Kernel::raw;

class RawChannels : public testing::Test
{
protected:
	RawChannels() { kernel.opened.insert({raw, fake::Kernel::channel}); }

	fake::Kernel kernel;
};

TEST_F(RawChannels, Connecting)
{
	kdirect_raw_info info;
	EXPECT_EQ(kdirect_get_raw_info(raw, &info), 0);
	EXPECT_EQ(info.depth, 16u);
	EXPECT_EQ(kdirect_get_raw_info(fake::Kernel::channel, &info), -ENOTTY);
	kdirect_raw_connect terms{};
	std::memset(&terms, 0x5a, sizeof(terms));
	EXPECT_EQ(kdirect_connect(raw, &terms), 0);
	ASSERT_EQ(kernel.connects.size(), 1u);
	EXPECT_EQ(std::memcmp(&kernel.connects[0], &terms, sizeof(terms)), 0);
	kernel.results = {-ECONNREFUSED};
	EXPECT_EQ(kdirect_connect(raw, &terms), -ECONNREFUSED);

	EXPECT_EQ(kdirect_reject(raw, "no", 2), 0);
	ASSERT_EQ(kernel.rejects.size(), 1u);
	terms = {};
	terms.length = 2;
	std::memcpy(terms.data, "no", 2);
	EXPECT_EQ(std::memcmp(&kernel.rejects[0], &terms, sizeof(terms)), 0);
	EXPECT_EQ(kdirect_reject(raw, nullptr, 0), 0);
	EXPECT_EQ(kernel.rejects[1].length, 0u);
	char more[KDIRECT_RAW_REJECT_MAX + 1] = {};
	EXPECT_EQ(kdirect_reject(raw, more, sizeof(more)), -EINVAL);
	EXPECT_EQ(kdirect_reject(raw, more, sizeof(more) - 1), 0);
	EXPECT_EQ(kernel.rejects.size(), 3u);
}

TEST_F(RawChannels, Keys)
{
	kdirect_share key;
	EXPECT_EQ(kdirect_buffer_share(raw, 3, KDIRECT_ACCESS_READ, &key), 0);
	EXPECT_EQ(key.rkey, 0x1234u);
	EXPECT_EQ(key.addr, 1ULL << 40);
	EXPECT_EQ(key.index, 3u);
	EXPECT_EQ(kdirect_buffer_share(raw, 3, 0, nullptr), 0);
	EXPECT_EQ(kdirect_buffer_share(raw, 3, KDIRECT_ACCESS_READ, nullptr), -EINVAL);
	ASSERT_EQ(kernel.shares.size(), 2u);
	kdirect_share wanted{};
	wanted.index = 3;
	EXPECT_EQ(std::memcmp(&kernel.shares[1], &wanted, sizeof(wanted)), 0);
	wanted.access = KDIRECT_ACCESS_READ;
	EXPECT_EQ(std::memcmp(&kernel.shares[0], &wanted, sizeof(wanted)), 0);
	key.rkey = 5;
	kernel.results = {-ENOENT};
	EXPECT_EQ(kdirect_buffer_share(raw, 3, KDIRECT_ACCESS_READ, &key), -ENOENT);
	EXPECT_EQ(key.rkey, 5u);
}

// What `make` fills in is all of that, whatever was there before.
template <typename Make>
void expect(const kdirect_desc &wanted, Make make)
{
	kdirect_desc desc;
	std::memset(&desc, 0xff, sizeof(desc));
	make(&desc);
	EXPECT_EQ(std::memcmp(&desc, &wanted, sizeof(desc)), 0);
}

TEST(RawPrep, AllFieldsAreSet)
{
	char memory[8];
	kdirect_desc wanted{};
	wanted.opcode = KDIRECT_OP_SEND_IMM;
	wanted.length = 8;
	wanted.addr = reinterpret_cast<uintptr_t>(memory);
	wanted.user_data = 5;
	wanted.imm = 7;
	expect(wanted, [&](auto *d) { kdirect_prep_send_imm(d, memory, 8, 7, 5); });
	wanted.opcode = KDIRECT_OP_SEND_INV;
	wanted.imm = 0;
	wanted.rkey = 9;
	expect(wanted, [&](auto *d) { kdirect_prep_send_inv(d, memory, 8, 9, 5); });
	wanted.opcode = KDIRECT_OP_WRITE_IMM;
	wanted.remote = 1ULL << 40;
	wanted.imm = 7;
	expect(wanted, [&](auto *d) { kdirect_prep_write_imm(d, memory, 8, 1ULL << 40, 9, 7, 5); });
	wanted.flags = KDIRECT_DESC_FENCE | KDIRECT_DESC_SOLICITED;
	expect(wanted, [&](auto *d) {
		kdirect_prep_write_imm(d, memory, 8, 1ULL << 40, 0, 7, 5);
		kdirect_desc_set_key(d, 9);
		kdirect_desc_add_flags(d, KDIRECT_DESC_FENCE);
		kdirect_desc_add_flags(d, KDIRECT_DESC_SOLICITED);
	});
	wanted = {};
	wanted.opcode = KDIRECT_OP_LOCAL_INV;
	wanted.rkey = 9;
	wanted.user_data = 5;
	expect(wanted, [&](auto *d) { kdirect_prep_local_inv(d, 9, 5); });
}

TEST_F(RawChannels, InCxx)
{
	kdirect::RawChannel channel("r0");
	EXPECT_EQ(channel.info().depth, 16u);
	channel.connect({});
	std::array<std::byte, 64> memory{};
	channel.reject(std::span(memory).first(3));
	EXPECT_EQ(kernel.rejects.at(0).length, 3u);
	kernel.results = {-ECONNREFUSED};
	EXPECT_THROW(channel.connect({}), std::system_error);
	kdirect::Buffer buffer(channel, 2, memory);
	kdirect::Remote remote = buffer.share(KDIRECT_ACCESS_WRITE);
	EXPECT_EQ(remote.rkey, 0x1234u);
	buffer.unshare();
	EXPECT_EQ(kernel.shares.back().access, 0u);

	constexpr uint8_t fence = KDIRECT_DESC_FENCE;
	kdirect::Batch batch(20);
	EXPECT_TRUE(batch.send(memory, 1));
	EXPECT_TRUE(batch.send(buffer, 8, 16, 2, fence));
	EXPECT_TRUE(batch.recv(memory, 3));
	EXPECT_TRUE(batch.recv(buffer, 8, 16, 4));
	EXPECT_TRUE(batch.read(memory, remote, 5));
	EXPECT_TRUE(batch.write(memory, remote, 6, fence));
	EXPECT_TRUE(batch.read(buffer, 8, 16, remote, 7));
	EXPECT_TRUE(batch.write(buffer, 8, 16, remote, 8, fence));
	EXPECT_TRUE(batch.write_imm(memory, remote, 77, 9));
	EXPECT_TRUE(batch.fetch_add(remote, 5, 10));
	EXPECT_TRUE(batch.cmp_swap(remote, 5, 6, 11, fence));
	EXPECT_TRUE(batch.send_imm(memory, 77, 12));
	EXPECT_TRUE(batch.send_inv(memory, 88, 13));
	EXPECT_TRUE(batch.local_inv(88, 14, fence));
	std::array<kdirect_completion, 20> done;
	ASSERT_EQ(batch.run(channel, done).size(), 14u);
	constexpr uint8_t opcodes[] = {
		KDIRECT_OP_SEND,      KDIRECT_OP_SEND,     KDIRECT_OP_RECV,
		KDIRECT_OP_RECV,      KDIRECT_OP_READ,     KDIRECT_OP_WRITE,
		KDIRECT_OP_READ,      KDIRECT_OP_WRITE,    KDIRECT_OP_WRITE_IMM,
		KDIRECT_OP_FETCH_ADD, KDIRECT_OP_CMP_SWAP, KDIRECT_OP_SEND_IMM,
		KDIRECT_OP_SEND_INV,  KDIRECT_OP_LOCAL_INV};
	for (size_t i = 0; i < std::size(opcodes); i++) {
		const kdirect_desc &work = kernel.works.at(i);
		bool fixed = i == 1 || i == 3 || i == 6 || i == 7;
		bool fenced = i == 1 || i == 5 || i == 7 || i == 10 || i == 13;
		SCOPED_TRACE(i);
		EXPECT_EQ(work.opcode, opcodes[i]);
		EXPECT_EQ(work.user_data, i + 1);
		EXPECT_EQ(work.flags, (fixed ? KDIRECT_DESC_FIXED : 0) | (fenced ? fence : 0));
		EXPECT_EQ(work.buffer, fixed ? 2 : 0);
		EXPECT_EQ(work.remote, i >= 4 && i <= 10 ? remote.addr : 0);
		EXPECT_EQ(work.rkey, i >= 4 && i <= 10 ? remote.rkey : i >= 12 ? 88u : 0u);
		EXPECT_EQ(work.imm, i == 8 || i == 11 ? 77u : 0u);
	}
	EXPECT_EQ(kdirect::explain_work(kernel.works[13], done[13]), "LOCAL_INV was done");
	kdirect::Batch full(1);
	EXPECT_TRUE(full.send(memory));
	EXPECT_FALSE(full.send(memory, 0, fence));
	EXPECT_FALSE(full.read(memory, remote));
	EXPECT_FALSE(full.recv(buffer, 0, 1));
	EXPECT_THROW(kdirect::RawChannel("c0"), std::system_error);
	EXPECT_THROW(kdirect::Channel("r0"), std::system_error);
	(void)channel.release();
}

} // namespace
