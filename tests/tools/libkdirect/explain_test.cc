// SPDX-License-Identifier: GPL-2.0-only
// Errors in words.
#include <cerrno>
#include <cstring>
#include <functional>
#include <gtest/gtest.h>
#include <libkdirect_raw.h>
#include <set>
#include <string>

namespace
{

// Where kdirect.h names an error, the sentence is about kdirect, not the one of strerror().
TEST(Explain, EveryErrorOfTheHeader)
{
	const std::pair<kdirect_call, std::set<int>> documented[] = {
		{KDIRECT_CALL_OPEN, {EINVAL, ENOTTY, ENOENT, EACCES, ESTALE, ENODEV, EPIPE}},
		{KDIRECT_CALL_INFO, {ENOTTY}},
		{KDIRECT_CALL_FLAGS, {EINVAL, EOPNOTSUPP, ENOTTY}},
		{KDIRECT_CALL_PING,
		 {EINVAL, EMSGSIZE, EOPNOTSUPP, ETIMEDOUT, EBADMSG, EINTR, EPIPE, EPERM}},
		{KDIRECT_CALL_SEND,
		 {EINVAL, EAGAIN, EMSGSIZE, EFAULT, EINTR, EOPNOTSUPP, EPIPE, ENOMEM}},
		{KDIRECT_CALL_RECV,
		 {EMSGSIZE, EAGAIN, EFAULT, EINTR, EOPNOTSUPP, ECONNRESET, ETIMEDOUT, ENODEV}},
		{KDIRECT_CALL_IO,
		 {ENOSPC, EACCES, EAGAIN, ESTALE, ENODEV, EPIPE, EIO, EFAULT, EOPNOTSUPP, EINTR}},
		{KDIRECT_CALL_SUBMIT,
		 {EAGAIN, EINTR, ETIMEDOUT, ESTALE, ENODEV, EPIPE, EFAULT, EINVAL, EOPNOTSUPP,
		  EBUSY, ENOMEM}},
		{KDIRECT_CALL_DESC,
		 {EINVAL, ERANGE, EACCES, EOPNOTSUPP, ENOENT, EFAULT, ENOMEM, EINTR, ESTALE, ENODEV,
		  EPIPE, EIO}},
		{KDIRECT_CALL_BUFFER,
		 {EINVAL, EFAULT, ENOMEM, EINTR, ESTALE, ENODEV, EPIPE, ENOENT}},
		{KDIRECT_CALL_RING_SETUP,
		 {EINVAL, EOPNOTSUPP, EBUSY, EAGAIN, ENOMEM, EMFILE, ENFILE, EINTR, ESTALE, ENODEV,
		  EPIPE}},
		{KDIRECT_CALL_RING_ENTER,
		 {EAGAIN, EBADMSG, EINTR, ETIMEDOUT, ESTALE, ENODEV, EPIPE, EINVAL}},
		{KDIRECT_CALL_CONNECT, {EINVAL, EBUSY, EINTR, ECONNREFUSED}},
		{KDIRECT_CALL_SHARE,
		 {EINVAL, ENOENT, EBUSY, EFBIG, EOPNOTSUPP, ENOTCONN, ENOMEM, EINTR, EPIPE,
		  ENODEV}},
		{KDIRECT_CALL_WORK,
		 {EINVAL, ENOTCONN, EPIPE, ENODEV, EOPNOTSUPP, EMSGSIZE, ENOENT, ENOMEM, EINTR,
		  EFAULT, ETIMEDOUT, EPROTO, ECONNRESET, EIO}},
	};
	for (const auto &[call, errors] : documented) {
		std::set<std::string> texts;
		for (int err : errors) {
			std::string text = kdirect_explain(call, -err);
			EXPECT_STRNE(text.c_str(), strerrordesc_np(err)) << call;
			EXPECT_EQ(text, kdirect_explain(call, err));
			EXPECT_TRUE(texts.insert(text).second) << call << " twice: " << text;
			EXPECT_NE(text.back(), '.');
		}
	}
}

TEST(Explain, OtherErrors)
{
	EXPECT_STREQ(kdirect_explain(KDIRECT_CALL_OPEN, -ELOOP), strerrordesc_np(ELOOP));
	EXPECT_STREQ(kdirect_explain(kdirect_call(0), EPIPE), strerrordesc_np(EPIPE));
	EXPECT_STREQ(kdirect_explain(kdirect_call(99), EPIPE), strerrordesc_np(EPIPE));
	for (int err : {100000, INT32_MIN, INT32_MAX})
		EXPECT_STREQ(kdirect_explain(KDIRECT_CALL_OPEN, err),
			     "this is not an error's number");
	EXPECT_STREQ(kdirect_explain(KDIRECT_CALL_OPEN, 0), "there is no error");
	EXPECT_STREQ(kdirect_status_text(10), "remote access error");
	EXPECT_STREQ(kdirect_status_text(21), "general error");
	EXPECT_STREQ(kdirect_status_text(22), "unknown status");
}

class Descriptor : public testing::Test
{
protected:
	Descriptor()
	{
		kdirect_prep_read(&read, reinterpret_cast<void *>(0x1000), 4096, 1048000, 0);
		kdirect_prep_write(&write, reinterpret_cast<void *>(0x2000), 10, 0, 0);
		kdirect_prep_write_fixed(&fixed, 3, 100, 10, 0, 0);
		kdirect_prep_fetch_add(&add, 64, 1, 0);
		kdirect_prep_cmp_swap(&swap, 64, 1, 2, 0);
		info.size = 1048576;
	}
	std::string text(const kdirect_desc &desc, int result, unsigned status = 0,
			 bool with_info = true)
	{
		char buffer[200];
		EXPECT_EQ(kdirect_explain_desc(buffer, sizeof(buffer), &desc,
					       with_info ? &info : nullptr, result,
					       uint16_t(status)),
			  buffer);
		return buffer;
	}
	std::string invalid(kdirect_desc desc, const std::function<void(kdirect_desc &)> &spoil)
	{
		spoil(desc);
		return text(desc, -EINVAL);
	}

	kdirect_desc read, write, fixed, add, swap;
	kdirect_map_info info{};
};

TEST_F(Descriptor, CausesWithTheirValues)
{
	EXPECT_EQ(text(read, -ERANGE), "READ of 4096 bytes at 1048000 reaches past the end of the "
				       "export, which has 1048576");
	EXPECT_EQ(text(read, -ERANGE, 0, false),
		  "READ of 4096 bytes at 1048000 reaches past the end of the export");
	EXPECT_EQ(text(read, -EACCES),
		  "READ of 4096 bytes at 1048000: the file is not open for reading");
	EXPECT_EQ(text(write, -EACCES), "WRITE of 10 bytes at 0: the file is not open for writing");
	EXPECT_EQ(text(write, -EACCES, 0, false),
		  "WRITE of 10 bytes at 0: the file is not open for writing, or the mapping is "
		  "read-only");
	EXPECT_EQ(text(add, -EOPNOTSUPP),
		  "FETCH_ADD at 64: one of the two devices has no atomic operations");
	kdirect_desc fenced = write;
	fenced.flags = KDIRECT_DESC_FENCE;
	EXPECT_EQ(text(fenced, -EOPNOTSUPP), "WRITE of 10 bytes at 0: that is for raw channels");
	EXPECT_EQ(text(fixed, -ENOENT), "WRITE of 10 bytes at 0: there is no fixed buffer 3");
	EXPECT_EQ(text(fixed, -EFAULT), "WRITE of 10 bytes at 0: it reaches past the end of fixed "
					"buffer 3 from its byte 100");
	EXPECT_EQ(text(write, -EFAULT),
		  "WRITE of 10 bytes at 0: the memory at 0x2000 cannot be read");
	EXPECT_EQ(text(read, -EFAULT),
		  "READ of 4096 bytes at 1048000: the memory at 0x1000 cannot be written");
	EXPECT_EQ(text(swap, -EIO, 12),
		  "CMP_SWAP at 64: the connection failed while this was under way: it may or may "
		  "not have been done (work completion: transport retries exceeded)");
	EXPECT_EQ(text(add, 8), "FETCH_ADD at 64 was done");
	info.flags = KDIRECT_MAP_READ_ONLY | KDIRECT_MAP_ATOMICS;
	EXPECT_EQ(text(write, -EACCES), "WRITE of 10 bytes at 0: the mapping is read-only");
	EXPECT_EQ(text(add, -EOPNOTSUPP),
		  "FETCH_ADD at 64: the peer's memory is not aligned for it");
}

TEST_F(Descriptor, OfMessages)
{
	kdirect_desc send{}, recv{};
	send.opcode = KDIRECT_OP_SEND;
	recv.opcode = KDIRECT_OP_RECV;
	send.length = recv.length = 10;
	auto channels = [](const kdirect_desc &d, int result) {
		char room[200];
		return std::string(
			kdirect_explain_desc(room, sizeof(room), &d, nullptr, result, 0));
	};
	EXPECT_EQ(channels(send, 10), "SEND of 10 bytes was done");
	EXPECT_EQ(channels(send, -EACCES), "SEND of 10 bytes: the file is not open for writing");
	EXPECT_EQ(channels(recv, -EACCES), "RECV of 10 bytes: the file is not open for reading");
	EXPECT_EQ(channels(send, -EMSGSIZE), "SEND of 10 bytes is longer than the channel allows");
	EXPECT_EQ(channels(recv, -EOPNOTSUPP),
		  "RECV of 10 bytes: a ring's thread pins no memory, use a fixed buffer");
	EXPECT_EQ(channels(recv, -EFAULT), "RECV of 10 bytes: the memory at 0x0 cannot be written");
	EXPECT_EQ(text(send, -EOPNOTSUPP), "SEND of 10 bytes: that is for channels");
	send.flags = KDIRECT_DESC_FENCE;
	EXPECT_EQ(channels(send, -EOPNOTSUPP), "SEND of 10 bytes: that is for raw channels");
	recv.remote = 5;
	EXPECT_EQ(channels(recv, -EINVAL), "RECV of 10 bytes has a remote, which must be zero");
}

TEST_F(Descriptor, OfRawChannels)
{
	auto of = [](const kdirect_desc &d, int result, unsigned status = 0) {
		char room[200];
		return std::string(
			kdirect_explain_work(room, sizeof(room), &d, result, uint16_t(status)));
	};
	kdirect_desc imm, inv;
	kdirect_prep_write_imm(&imm, nullptr, 4096, 0, 1, 2, 3);
	kdirect_prep_local_inv(&inv, 7, 1);
	EXPECT_EQ(of(imm, 4096), "WRITE_IMM of 4096 bytes was done");
	EXPECT_EQ(
		of(imm, -EPROTO, 10),
		"WRITE_IMM of 4096 bytes: the peer refused it: the key, what it may do, or it had "
		"no receive (work completion: remote access error)");
	EXPECT_EQ(of(inv, -ENOENT), "LOCAL_INV: there is no such fixed buffer, or key");
	EXPECT_EQ(of(read, -EPIPE), "READ of 4096 bytes: the channel has ended");
	inv.opcode = 11;
	EXPECT_EQ(of(inv, -EINVAL), "opcode 11 is none of a raw channel's");
	inv.opcode = KDIRECT_OP_SEND_IMM;
	EXPECT_EQ(of(inv, 0), "SEND_IMM of 0 bytes was done");
	inv.opcode = KDIRECT_OP_SEND_INV;
	EXPECT_EQ(of(inv, 0), "SEND_INV of 0 bytes was done");
}

TEST_F(Descriptor, TheFieldThatIsInvalid)
{
	EXPECT_EQ(invalid(read, [](auto &d) { d.opcode = 77; }),
		  "opcode 77 is none of READ, WRITE, CMP_SWAP, FETCH_ADD, SEND and RECV");
	EXPECT_EQ(invalid(write, [](auto &d) { d.flags = 0x48; }),
		  "WRITE of 10 bytes at 0 has unknown flags 0x48");
	EXPECT_EQ(invalid(write, [](auto &d) { d.reserved = 1; }),
		  "WRITE of 10 bytes at 0 has a reserved field that is not zero");
	EXPECT_EQ(invalid(write, [](auto &d) { d.buffer = 5; }),
		  "WRITE of 10 bytes at 0 names buffer 5 without KDIRECT_DESC_FIXED");
	EXPECT_EQ(invalid(write, [](auto &d) { d.length = (1 << 30) + 1; }),
		  "WRITE of 1073741825 bytes at 0 is longer than 1073741824 bytes");
	EXPECT_EQ(invalid(write, [](auto &d) { d.operand = 1; }),
		  "WRITE of 10 bytes at 0 has an operand, which must be zero");
	EXPECT_EQ(invalid(write, [](auto &d) { d.compare = 1; }),
		  "WRITE of 10 bytes at 0 has a compare, which must be zero");
	EXPECT_EQ(invalid(add, [](auto &d) { d.compare = 1; }),
		  "FETCH_ADD at 64 has a compare, which must be zero");
	EXPECT_EQ(invalid(add, [](auto &d) { d.flags = KDIRECT_DESC_FIXED; }),
		  "FETCH_ADD at 64 cannot use a fixed buffer");
	EXPECT_EQ(invalid(add, [](auto &d) { d.length = 4; }),
		  "FETCH_ADD at 64 must have a length of 8, not 4");
	EXPECT_EQ(invalid(add, [](auto &d) { d.addr = 4; }),
		  "FETCH_ADD at 64 has an addr, which must be zero");
	EXPECT_EQ(invalid(swap, [](auto &d) { d.remote = 65; }),
		  "CMP_SWAP at 65 must be at a multiple of 8");
	EXPECT_EQ(invalid(swap, [](auto &) {}), "CMP_SWAP at 64 is invalid");
}

TEST_F(Descriptor, IsCutToItsRoom)
{
	const std::string whole = text(read, -EIO, 12);
	for (size_t size = 1; size <= whole.size() + 1; size++) {
		std::string room(size + 1, 'x');
		kdirect_explain_desc(room.data(), size, &read, &info, -EIO, 12);
		EXPECT_EQ(std::string(room.c_str()), whole.substr(0, size - 1));
		EXPECT_EQ(room[size], 'x');
	}
}

} // namespace
