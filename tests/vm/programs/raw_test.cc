// SPDX-License-Identifier: GPL-2.0-only
// What raw channels promise, with both ends in this machine.
//
//	raw_test ADDRESS PORT
//
// "raw" is a raw listener there, that holds.
#include "raw_pair.h"

#include <csignal>
#include <sys/mman.h>
#include <sys/wait.h>

std::string to;

namespace
{

TEST_F(Raw, SendsOfEachLength)
{
	ASSERT_NO_FATAL_FAILURE(pair());
	ASSERT_NO_FATAL_FAILURE(give(a, 3, 0, 1 << 20));
	ASSERT_NO_FATAL_FAILURE(give(b, 5, 1 << 20, 1 << 20));
	// Each page may be a piece of its own.
	kdirect_raw_info info = raw_info(a);
	size_t longest = (std::min(info.send_sges, info.recv_sges) - 1) * page_size();
	for (size_t len : {0ul, 1ul, 64ul, 4096ul, 16384ul, 16385ul, 65536ul, longest - 5})
		for (int how = 0; how < 4; how++) {
			SCOPED_TRACE(testing::Message() << len << " bytes, way " << how);
			std::memset(at(1 << 20), 0, len + 16);
			ASSERT_EQ(
				post(b,
				     {how & 1 ? work(KDIRECT_OP_RECV, at((1 << 20) + 5), len + 1, 7)
					      : work_fixed(KDIRECT_OP_RECV, 5, 5, len + 1, 7)}),
				0);
			ASSERT_EQ(one(a, how & 2 ? work(KDIRECT_OP_SEND, at(3), len)
						 : work_fixed(KDIRECT_OP_SEND, 3, 3, len)),
				  int(len));
			Completions done = await(b, 1);
			ASSERT_EQ(done.size(), 1u);
			EXPECT_EQ(done[0].result, int(len));
			EXPECT_EQ(done[0].user_data, 7u);
			EXPECT_EQ(done[0].flags, 0);
			ASSERT_EQ(std::memcmp(at((1 << 20) + 5), at(3), len), 0);
		}
}

TEST_F(Raw, OrderAndDepth)
{
	ASSERT_NO_FATAL_FAILURE(pair("depth 16"));
	EXPECT_EQ(raw_info(a).depth, 16u);
	Descs recvs, sends;
	for (size_t i = 0; i < 40; i++) {
		recvs.push_back(work(KDIRECT_OP_RECV, at((1 << 20) + i * 100), 100, i));
		sends.push_back(work(KDIRECT_OP_SEND, at(i * 100), i + 1, i));
	}
	ASSERT_EQ(post(b, recvs), 0);
	kdirect_submit batch{};
	batch.descs = address(sends.data());
	batch.nr_descs = 40;
	ASSERT_EQ(submit(a, batch), 0);
	EXPECT_EQ(batch.submitted, 16u);
	for (uint32_t at = 16; at < 40;) {
		ASSERT_EQ(await(a, 1).size(), 1u);
		ASSERT_EQ(post(a, {sends[at++]}), 0);
	}
	Completions done = await(b, 40);
	ASSERT_EQ(done.size(), 40u);
	for (size_t i = 0; i < 40; i++) {
		EXPECT_EQ(done[i].user_data, i);
		EXPECT_EQ(done[i].result, int(i + 1));
		EXPECT_EQ(std::memcmp(at((1 << 20) + i * 100), at(i * 100), i + 1), 0);
	}
}

TEST_F(Raw, ImmediateData)
{
	ASSERT_NO_FATAL_FAILURE(pair());
	kdirect_share k;
	ASSERT_NO_FATAL_FAILURE(key(KDIRECT_ACCESS_WRITE, k));
	ASSERT_EQ(post(b, {work(KDIRECT_OP_RECV, at(0), 100, 1),
			   work(KDIRECT_OP_RECV, nullptr, 0, 2)}),
		  0);
	kdirect_desc send = work(KDIRECT_OP_SEND_IMM, at(1000), 9);
	send.imm = 0x12345678;
	send.flags = KDIRECT_DESC_SOLICITED;
	EXPECT_EQ(one(a, send), 9);
	kdirect_desc write = remote(work(KDIRECT_OP_WRITE_IMM, at(2000), 50), k.addr + 10, k.rkey);
	write.imm = 0xfffffffe;
	EXPECT_EQ(one(a, write), 50);
	Completions done = await(b, 2);
	ASSERT_EQ(done.size(), 2u);
	EXPECT_EQ(done[0].result, 9);
	EXPECT_EQ(done[0].flags, KDIRECT_COMPLETION_IMM);
	EXPECT_EQ(done[0].data, 0x12345678u);
	EXPECT_EQ(done[1].result, 50);
	EXPECT_EQ(done[1].flags, KDIRECT_COMPLETION_IMM | KDIRECT_COMPLETION_WRITE);
	EXPECT_EQ(done[1].data, 0xfffffffeu);
	EXPECT_EQ(std::memcmp(at((1 << 20) + 10), at(2000), 50), 0);
}

TEST_F(Raw, RemoteMemory)
{
	ASSERT_NO_FATAL_FAILURE(pair());
	kdirect_share k;
	ASSERT_NO_FATAL_FAILURE(
		key(KDIRECT_ACCESS_READ | KDIRECT_ACCESS_WRITE | KDIRECT_ACCESS_ATOMIC, k));
	EXPECT_EQ(k.length, 65536u);
	for (size_t len : {1ul, 4096ul, 30000ul}) {
		EXPECT_EQ(one(a, remote(work(KDIRECT_OP_WRITE, at(7), len), k.addr + 1, k.rkey)),
			  int(len));
		EXPECT_EQ(std::memcmp(at((1 << 20) + 1), at(7), len), 0);
		EXPECT_EQ(
			one(a, remote(work(KDIRECT_OP_READ, at(200000), len), k.addr + 1, k.rkey)),
			int(len));
		EXPECT_EQ(std::memcmp(at(200000), at(7), len), 0);
	}
	auto *number = reinterpret_cast<uint64_t *>(at((1 << 20) + 64));
	const size_t skew = k.addr % 8;
	ASSERT_EQ(skew, address(at(1 << 20)) % 8);
	*number = 40;
	kdirect_completion c{};
	kdirect_desc add{};
	add.opcode = KDIRECT_OP_FETCH_ADD;
	add.length = 8;
	add.operand = 2;
	EXPECT_EQ(one(a, remote(add, k.addr + 64, k.rkey), &c), 8);
	EXPECT_EQ(c.old, 40u);
	EXPECT_EQ(*number, 42u);
	add.opcode = KDIRECT_OP_CMP_SWAP;
	add.compare = 42;
	add.operand = 7;
	EXPECT_EQ(one(a, remote(add, k.addr + 64, k.rkey), &c), 8);
	EXPECT_EQ(c.old, 42u);
	EXPECT_EQ(*number, 7u);

	// A WRITE of what a READ brings, in one batch.
	ASSERT_NO_FATAL_FAILURE(give(a, 9, 300000, 4096));
	std::memset(at(300000), 0, 4096);
	kdirect_desc read = remote(work_fixed(KDIRECT_OP_READ, 9, 0, 512, 1), k.addr, k.rkey);
	kdirect_desc write =
		remote(work_fixed(KDIRECT_OP_WRITE, 9, 0, 512, 2), k.addr + 32768, k.rkey);
	write.flags |= KDIRECT_DESC_FENCE;
	ASSERT_EQ(post(a, {read, write}), 0);
	ASSERT_EQ(await(a, 2).size(), 2u);
	EXPECT_EQ(std::memcmp(at((1 << 20) + 32768), at(1 << 20), 512), 0);
}

// What a key does not allow costs the connection, and nothing else.
TEST_F(Raw, AccessDenied)
{
	struct {
		const char *what;
		uint32_t access;
		uint8_t opcode;
		int64_t from;
	} cases[] = {
		{"WRITE with a key to read", KDIRECT_ACCESS_READ, KDIRECT_OP_WRITE, 0},
		{"READ with a key to write", KDIRECT_ACCESS_WRITE, KDIRECT_OP_READ, 0},
		{"READ past the end", KDIRECT_ACCESS_READ, KDIRECT_OP_READ, 65536 - 63},
		{"READ before the beginning", KDIRECT_ACCESS_READ, KDIRECT_OP_READ, -1},
	};
	for (const auto &c : cases) {
		SCOPED_TRACE(c.what);
		ASSERT_NO_FATAL_FAILURE(SetUp());
		ASSERT_NO_FATAL_FAILURE(pair());
		kdirect_share k;
		ASSERT_NO_FATAL_FAILURE(key(c.access, k));
		std::vector<char> before(at(1 << 20), at((1 << 20) + 65536));
		kdirect_completion end{};
		EXPECT_EQ(one(a,
			      remote(work(c.opcode, at(0), 64), k.addr + uint64_t(c.from), k.rkey),
			      &end),
			  -EPROTO);
		EXPECT_EQ(end.status, access_error);
		EXPECT_EQ(one(a, work(KDIRECT_OP_SEND, at(0), 1)), -EPIPE);
		EXPECT_TRUE(happens(a, 0, 20000) & POLLHUP);
		EXPECT_TRUE(happens(b, 0, 20000) & POLLHUP);
		EXPECT_EQ(std::memcmp(before.data(), at(1 << 20), before.size()), 0);
		close_both();
	}
}

TEST_F(Raw, KeysEnd)
{
	enum { by_call, by_descriptor, by_deletion, by_replacement, by_peer };
	for (int way : {by_call, by_descriptor, by_deletion, by_replacement, by_peer}) {
		SCOPED_TRACE(way);
		ASSERT_NO_FATAL_FAILURE(SetUp());
		ASSERT_NO_FATAL_FAILURE(pair());
		kdirect_share k, again;
		ASSERT_NO_FATAL_FAILURE(key(KDIRECT_ACCESS_READ, k));
		EXPECT_EQ(share(b, 0, KDIRECT_ACCESS_READ, again), -EBUSY);
		EXPECT_EQ(one(a, remote(work(KDIRECT_OP_READ, at(0), 64), k.addr, k.rkey)), 64);
		kdirect_desc desc{};
		desc.opcode = KDIRECT_OP_LOCAL_INV;
		desc.rkey = k.rkey;
		switch (way) {
		case by_call:
			EXPECT_EQ(share(b, 0, 0, again), 0);
			EXPECT_EQ(share(b, 0, 0, again), -ENOENT);
			break;
		case by_descriptor:
			EXPECT_EQ(one(b, desc), 0);
			EXPECT_EQ(one(b, desc), -ENOENT);
			break;
		case by_deletion: EXPECT_EQ(del_buffer(b, 0), 0); break;
		case by_replacement: give(b, 0, 1 << 20, 4096); break;
		case by_peer: {
			ASSERT_EQ(post(b, {work(KDIRECT_OP_RECV, at(500000), 10)}), 0);
			kdirect_desc send = work(KDIRECT_OP_SEND_INV, at(0), 4);
			send.rkey = k.rkey;
			EXPECT_EQ(one(a, send), 4);
			Completions done = await(b, 1);
			ASSERT_EQ(done.size(), 1u);
			EXPECT_EQ(done[0].result, 4);
			EXPECT_EQ(done[0].flags, KDIRECT_COMPLETION_INV);
			EXPECT_EQ(done[0].data, k.rkey);
			break;
		}
		}
		// Another key is another number, and good; the old one is not.
		if (way != by_deletion) {
			ASSERT_EQ(share(b, 0, KDIRECT_ACCESS_READ, again), 0);
			EXPECT_NE(again.rkey, k.rkey);
			EXPECT_EQ(one(a, remote(work(KDIRECT_OP_READ, at(0), 64), again.addr,
						again.rkey)),
				  64);
		}
		kdirect_completion end{};
		EXPECT_EQ(one(a, remote(work(KDIRECT_OP_READ, at(0), 64), k.addr, k.rkey), &end),
			  -EPROTO);
		EXPECT_EQ(end.status, access_error);
		close_both();
	}
}

TEST_F(Raw, ForeignKeyIsNotInvalidated)
{
	ASSERT_NO_FATAL_FAILURE(pair());
	ASSERT_EQ(post(b, {work(KDIRECT_OP_RECV, at(0), 10, 3)}), 0);
	kdirect_desc send = work(KDIRECT_OP_SEND_INV, at(0), 4);
	send.rkey = 0x12345601;
	(void)one(a, send); // rxe acknowledges it all the same
	Completions done = await(b, 1);
	ASSERT_EQ(done.size(), 1u);
	EXPECT_LT(done[0].result, 0);
	EXPECT_TRUE(happens(b, 0, 20000) & POLLHUP);
}

TEST_F(Raw, NoReceive)
{
	kdirect_raw_connect impatient = raw_terms();
	impatient.rnr_retry_count = 0;
	ASSERT_NO_FATAL_FAILURE(pair("", raw_terms(), impatient));
	kdirect_completion end{};
	EXPECT_EQ(one(a, work(KDIRECT_OP_SEND, at(0), 4), &end), -EPROTO);
	EXPECT_EQ(end.status, rnr_error);
	EXPECT_TRUE(happens(b, 0, 20000) & POLLHUP);
}

TEST_F(Raw, WaitsForAReceive)
{
	ASSERT_NO_FATAL_FAILURE(pair());
	ASSERT_EQ(post(a, {work(KDIRECT_OP_SEND, at(0), 4)}), 0);
	usleep(300000);
	EXPECT_EQ(one(b, work(KDIRECT_OP_RECV, at(100), 10)), 4);
	EXPECT_EQ(await(a, 1).size(), 1u);
}

TEST_F(Raw, TooLong)
{
	ASSERT_NO_FATAL_FAILURE(pair());
	ASSERT_EQ(post(b, {work(KDIRECT_OP_RECV, at(0), 10)}), 0);
	EXPECT_LT(one(a, work(KDIRECT_OP_SEND, at(0), 11)), 0);
	Completions done = await(b, 1);
	ASSERT_EQ(done.size(), 1u);
	// "local length error" by the book; rxe says "local QP operation error"
	EXPECT_LT(done[0].result, 0);
	EXPECT_TRUE(done[0].status && done[0].status != flushed) << done[0].status;
}

TEST_F(Raw, FlushesInOrder)
{
	ASSERT_NO_FATAL_FAILURE(pair());
	Descs recvs;
	for (uint64_t i = 0; i < 20; i++)
		recvs.push_back(work(KDIRECT_OP_RECV, at(i * 5000), 5000, 100 + i));
	ASSERT_EQ(post(b, recvs), 0);
	EXPECT_EQ(happens(b, POLLIN, 0) & (POLLIN | POLLHUP), 0);
	close(a);
	a = -1;
	EXPECT_TRUE(happens(b, POLLIN, 20000) & POLLIN);
	flushes(b, 20, 100);
	EXPECT_EQ(one(b, recvs[0]), -EPIPE);
	kdirect_submit batch{};
	kdirect_completion room;
	batch.completions = address(&room);
	batch.nr_completions = batch.min_completions = 1;
	EXPECT_EQ(submit(b, batch), -EPIPE);
}

TEST_F(Raw, FlushedBeforeItConnects)
{
	ASSERT_NO_FATAL_FAILURE(add());
	ASSERT_EQ(post(a, {work(KDIRECT_OP_RECV, at(0), 100, 5)}), 0);
	EXPECT_EQ(one(a, work(KDIRECT_OP_SEND, at(0), 100)), -ENOTCONN);
	ASSERT_EQ(sh("kdirect channel del r0"), 0);
	added = false;
	flushes(a, 1, 5);
}

TEST_F(Raw, OneOwner)
{
	ASSERT_NO_FATAL_FAILURE(pair());
	EXPECT_EQ(open("/dev/kdirect/r0", O_RDWR), -1);
	EXPECT_EQ(errno, EBUSY);
	EXPECT_EQ(open("/dev/kdirect/raw.0", O_RDONLY), -1);
	EXPECT_EQ(errno, EACCES);
	char byte;
	EXPECT_EQ(read(a, &byte, 1), -1);
	EXPECT_EQ(errno, EINVAL);
	EXPECT_EQ(ioctl(a, KDIRECT_IOC_MAP_INFO, &byte), -1);
	EXPECT_EQ(errno, ENOTTY);
	close(b);
	b = -1;
	EXPECT_TRUE(happens(a, 0, 20000) & POLLHUP);
	close(a);
	a = open("/dev/kdirect/r0", O_RDWR);
	EXPECT_EQ(a, -1);
	EXPECT_EQ(errno, EPIPE);
}

TEST_F(Raw, OwnerIsKilled)
{
	ASSERT_NO_FATAL_FAILURE(add());
	ASSERT_EQ(raw_connect(a, raw_terms()), 0);
	pid_t child = fork();
	if (!child) {
		close(a);
		int fd = open_soon("/dev/kdirect/raw.0");
		Descs recvs(8, work(KDIRECT_OP_RECV, at(0), 100000));
		kdirect_share k;
		if (fd < 0 || post(fd, recvs) || raw_connect(fd, raw_terms()) ||
		    set_buffer(fd, 0, at(0), 65536) || share(fd, 0, KDIRECT_ACCESS_WRITE, k))
			_exit(1);
		kill(getpid(), SIGKILL);
	}
	int status = 0;
	waitpid(child, &status, 0);
	EXPECT_TRUE(WIFSIGNALED(status)) << WEXITSTATUS(status);
	EXPECT_TRUE(happens(a, 0, 20000) & POLLHUP);
}

TEST_F(Raw, DeletedUnderLoad)
{
	for (const char *what : {"r0", "raw.0"}) {
		SCOPED_TRACE(what);
		ASSERT_NO_FATAL_FAILURE(SetUp());
		ASSERT_NO_FATAL_FAILURE(pair());
		auto keep_on = [this](int fd, uint8_t opcode, size_t place) {
			size_t done = 0;
			for (int err = 0; !err; done++) {
				err = post(fd, Descs(8, work(opcode, at(place), 20000)));
				for (const kdirect_completion &c : await(fd, 8))
					if (c.result < 0)
						err = c.result;
			}
			return done;
		};
		size_t sent = 0, received = 0;
		std::thread sender([&] { sent = keep_on(a, KDIRECT_OP_SEND, 0); });
		std::thread receiver([&] { received = keep_on(b, KDIRECT_OP_RECV, 1 << 20); });
		usleep(300000);
		EXPECT_EQ(sh(std::string("kdirect channel del ") + what), 0);
		sender.join();
		receiver.join();
		EXPECT_GT(sent, 0u);
		EXPECT_GT(received, 0u);
		added = added && std::string(what) != "r0";
		close_both();
	}
}

TEST_F(Raw, PrivateData)
{
	ASSERT_NO_FATAL_FAILURE(add());
	ASSERT_NO_FATAL_FAILURE(request(raw_terms("hello there")));
	kdirect_raw_info info = raw_info(b);
	EXPECT_TRUE(info.flags & KDIRECT_RAW_HELD);
	EXPECT_TRUE(info.flags & KDIRECT_RAW_ACCEPTS);
	EXPECT_EQ(info.data_length, 56);
	EXPECT_STREQ(reinterpret_cast<char *>(info.data), "hello there");
	ASSERT_EQ(raw_connect(b, raw_terms("general", 1)), 0);
	ASSERT_TRUE(happens(a, POLLOUT, 20000) & POLLOUT);
	info = raw_info(a);
	EXPECT_EQ(info.data_length, 196);
	EXPECT_STREQ(reinterpret_cast<char *>(info.data), "general");
	EXPECT_FALSE(info.flags & (KDIRECT_RAW_HELD | KDIRECT_RAW_ACCEPTS));
	EXPECT_EQ(info.initiator_depth, 1);
	EXPECT_EQ(info.responder_resources, 1);
	EXPECT_EQ(raw_connect(a, raw_terms()), -EBUSY);
}

TEST_F(Raw, Refused)
{
	ASSERT_NO_FATAL_FAILURE(add());
	ASSERT_NO_FATAL_FAILURE(request(raw_terms()));
	kdirect_raw_connect no{};
	std::memcpy(no.data, "go away", 7);
	no.length = 7;
	ASSERT_EQ(ioctl(b, KDIRECT_IOC_RAW_REJECT, &no), 0);
	EXPECT_TRUE(happens(a, 0, 20000) & POLLHUP);
	EXPECT_TRUE(happens(b, 0, 20000) & POLLHUP);
	kdirect_raw_info info = raw_info(a);
	EXPECT_EQ(info.error, uint32_t(ECONNREFUSED));
	EXPECT_STREQ(reinterpret_cast<char *>(info.data), "go away");
	added = false; // it was never live, and goes by itself
}

TEST_F(Raw, NobodyAnswers)
{
	ASSERT_NO_FATAL_FAILURE(add("connect-timeout 500ms"));
	EXPECT_TRUE(happens(a, 0, 20000) & POLLHUP);
	EXPECT_EQ(raw_info(a).error, uint32_t(ETIMEDOUT));
	EXPECT_EQ(raw_connect(a, raw_terms()), -EBUSY);
	EXPECT_TRUE(wait_for([] { return !is_there("/dev/kdirect/r0"); }));
	added = false;
}

TEST_F(Raw, BadDescriptors)
{
	ASSERT_NO_FATAL_FAILURE(pair());
	ASSERT_NO_FATAL_FAILURE(give(a, 0, 0, 4096));
	auto with = [&](kdirect_desc d, const std::function<void(kdirect_desc &)> &change) {
		change(d);
		return one(a, d);
	};
	kdirect_desc send = work(KDIRECT_OP_SEND, at(0), 8), recv = work(KDIRECT_OP_RECV, at(0), 8);
	kdirect_desc inv{};
	inv.opcode = KDIRECT_OP_LOCAL_INV;
	EXPECT_EQ(with(send, [](auto &d) { d.opcode = 0; }), -EINVAL);
	EXPECT_EQ(with(send, [](auto &d) { d.opcode = 11; }), -EINVAL);
	EXPECT_EQ(with(send, [](auto &d) { d.flags = 8; }), -EINVAL);
	EXPECT_EQ(with(send, [](auto &d) { d.buffer = 1; }), -EINVAL);
	EXPECT_EQ(with(send, [](auto &d) { d.remote = 8; }), -EINVAL);
	EXPECT_EQ(with(send, [](auto &d) { d.rkey = 8; }), -EINVAL);
	EXPECT_EQ(with(send, [](auto &d) { d.imm = 8; }), -EINVAL);
	EXPECT_EQ(with(send, [](auto &d) { d.operand = 8; }), -EINVAL);
	EXPECT_EQ(with(send, [](auto &d) { d.compare = 8; }), -EINVAL);
	EXPECT_EQ(with(send, [](auto &d) { d.reserved = 8; }), -EINVAL);
	EXPECT_EQ(with(send, [](auto &d) { d.length = (1U << 30) + 1; }), -EINVAL);
	EXPECT_EQ(with(send, [](auto &d) { d.length = 1U << 30; }), -EMSGSIZE);
	EXPECT_EQ(with(send, [](auto &d) { d.addr = 16; }), -EFAULT);
	EXPECT_EQ(with(send, [](auto &d) { d.addr = UINT64_MAX - 3; }), -EFAULT);
	EXPECT_EQ(with(recv, [](auto &d) { d.addr = 16; }), -EFAULT);
	EXPECT_EQ(with(recv, [](auto &d) { d.flags = KDIRECT_DESC_FENCE; }), -EINVAL);
	EXPECT_EQ(with(recv, [](auto &d) { d.flags = KDIRECT_DESC_SOLICITED; }), -EINVAL);
	EXPECT_EQ(one(a, work_fixed(KDIRECT_OP_SEND, 1, 0, 8)), -ENOENT);
	EXPECT_EQ(one(a, work_fixed(KDIRECT_OP_SEND, 300, 0, 8)), -ENOENT);
	EXPECT_EQ(one(a, work_fixed(KDIRECT_OP_SEND, 0, 4089, 8)), -EFAULT);
	EXPECT_EQ(one(a, work_fixed(KDIRECT_OP_RECV, 0, UINT64_MAX, 8)), -EFAULT);
	EXPECT_EQ(with(inv, [](auto &d) { d.rkey = 77; }), -ENOENT);
	EXPECT_EQ(with(inv, [](auto &d) { d.length = 1; }), -EINVAL);
	std::vector<char> long_one(3 << 20);
	EXPECT_EQ(one(a, work(KDIRECT_OP_SEND, long_one.data(), long_one.size())), -EMSGSIZE);

	kdirect_share k;
	EXPECT_EQ(share(a, 7, KDIRECT_ACCESS_READ, k), -ENOENT);
	EXPECT_EQ(share(a, 0, 8, k), -EINVAL);
	EXPECT_EQ(share(a, 256, KDIRECT_ACCESS_READ, k), -EINVAL);
	EXPECT_EQ(share(a, 0, 0, k), -ENOENT);
	ASSERT_EQ(set_buffer(a, 1, long_one.data(), long_one.size()), 0);
	EXPECT_EQ(share(a, 1, KDIRECT_ACCESS_READ, k), -EFBIG);

	// None of them disturbed it.
	ASSERT_EQ(post(b, {work(KDIRECT_OP_RECV, at(4096), 8)}), 0);
	EXPECT_EQ(one(a, send), 8);
}

TEST_F(Raw, BadAnswers)
{
	ASSERT_NO_FATAL_FAILURE(add());
	auto bad = [&](const std::function<void(kdirect_raw_connect &)> &change,
		       unsigned long what) {
		kdirect_raw_connect call = raw_terms();
		change(call);
		return ioctl(a, what, &call) ? -errno : 0;
	};
	EXPECT_EQ(bad([](auto &c) { c.length = 57; }, KDIRECT_IOC_RAW_CONNECT), -EINVAL);
	EXPECT_EQ(bad([](auto &c) { c.length = UINT32_MAX; }, KDIRECT_IOC_RAW_CONNECT), -EINVAL);
	EXPECT_EQ(bad([](auto &c) { c.retry_count = 8; }, KDIRECT_IOC_RAW_CONNECT), -EINVAL);
	EXPECT_EQ(bad([](auto &c) { c.rnr_retry_count = 8; }, KDIRECT_IOC_RAW_CONNECT), -EINVAL);
	EXPECT_EQ(bad([](auto &c) { c.reserved[3] = 1; }, KDIRECT_IOC_RAW_CONNECT), -EINVAL);
	EXPECT_EQ(bad([](auto &) {}, KDIRECT_IOC_RAW_REJECT), -EINVAL);
	EXPECT_EQ(ioctl(a, KDIRECT_IOC_RAW_CONNECT, nullptr), -1);
	EXPECT_EQ(errno, EFAULT);
	EXPECT_TRUE(raw_info(a).flags & KDIRECT_RAW_HELD);
}

TEST_F(Raw, Polled)
{
	ASSERT_NO_FATAL_FAILURE(pair("poll-queues 1"));
	EXPECT_EQ(raw_info(a).poll_queues, 1u);
	for (uint32_t flags : {0u, uint32_t{KDIRECT_SUBMIT_POLL}}) {
		ASSERT_EQ(post(b, {work(KDIRECT_OP_RECV, at(0), 10)}), 0);
		EXPECT_EQ(run(a, {work(KDIRECT_OP_SEND, at(0), 10)}, flags).size(), 1u);
		EXPECT_EQ(await(b, 1).size(), 1u);
	}
}

TEST_F(Raw, Rings)
{
	ASSERT_NO_FATAL_FAILURE(pair());
	ASSERT_NO_FATAL_FAILURE(give(a, 0, 0, 65536));
	for (uint32_t flags : {0u, uint32_t{KDIRECT_RING_THREAD}}) {
		SCOPED_TRACE(flags);
		kdirect_ring_setup setup{};
		setup.sq_entries = setup.cq_entries = 16;
		setup.flags = flags;
		setup.thread_cpu = flags ? -1 : 0;
		int fd = ioctl(a, KDIRECT_IOC_RING_SETUP, &setup);
		ASSERT_GE(fd, 0) << std::strerror(errno);
		void *map = mmap(nullptr, setup.length, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
		ASSERT_NE(map, MAP_FAILED);
		auto *base = static_cast<char *>(map);
		auto *descs = reinterpret_cast<kdirect_desc *>(base + setup.descs);
		auto *completions =
			reinterpret_cast<kdirect_completion *>(base + setup.completions);
		auto word = [&](uint32_t offset) {
			return reinterpret_cast<uint32_t *>(base + offset);
		};
		ASSERT_EQ(post(b, {work(KDIRECT_OP_RECV, at(1 << 20), 100, 1),
				   work(KDIRECT_OP_RECV, at((1 << 20) + 100), 100, 2)}),
			  0);
		descs[0] = work(KDIRECT_OP_SEND, at(5), 50, 10);
		descs[1] = work_fixed(KDIRECT_OP_SEND, 0, 60, 70, 11);
		// Pages that stay pinned are charged to a process.
		descs[2] = work(KDIRECT_OP_RECV, at(0), 100, 12);
		__atomic_store_n(word(setup.sq_tail), 3, __ATOMIC_SEQ_CST);
		kdirect_ring_enter enter{};
		enter.to_submit = flags ? 0 : 2;
		enter.min_completions = flags ? 3 : 2;
		enter.timeout_ns = 20000000000ULL;
		ASSERT_EQ(ioctl(fd, KDIRECT_IOC_RING_ENTER, &enter), 0) << std::strerror(errno);
		EXPECT_EQ(enter.ready, flags ? 3u : 2u);
		uint32_t refused = 0;
		for (uint32_t i = 0; i < enter.ready; i++) {
			const kdirect_completion &c = completions[i];
			refused += c.result == -EOPNOTSUPP && c.user_data == 12;
			EXPECT_EQ(c.result, c.user_data == 10   ? 50
					    : c.user_data == 11 ? 70
								: -EOPNOTSUPP);
		}
		EXPECT_EQ(refused, flags ? 1u : 0u);
		Completions done = await(b, 2);
		ASSERT_EQ(done.size(), 2u);
		EXPECT_EQ(done[0].result, 50);
		EXPECT_EQ(done[1].result, 70);
		EXPECT_EQ(std::memcmp(at((1 << 20) + 100), at(60), 70), 0);
		munmap(map, setup.length);
		close(fd);
	}
}

} // namespace

int main(int argc, char **argv)
{
	testing::InitGoogleTest(&argc, argv);
	if (argc != 3) {
		std::fprintf(stderr, "usage: raw_test ADDRESS PORT\n");
		return 2;
	}
	to = std::string(argv[1]) + ":" + argv[2];
	return RUN_ALL_TESTS();
}
