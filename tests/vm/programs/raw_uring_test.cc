// SPDX-License-Identifier: GPL-2.0-only
// Commands of io_uring to raw channels.
#include "commands.h"
#include "raw_pair.h"
#include "scattered.h"

#include <csignal>
#include <sys/wait.h>

namespace
{

class RawUring : public Raw
{
protected:
	using Result = CommandRing::Result;
	static Result run(CommandRing &ring, int fd, const kdirect_desc &desc,
			  int registered = CommandRing::none)
	{
		Result result{0, -9999, 0};
		ring.push(fd, desc, 1, registered);
		EXPECT_TRUE(ring.wait(result));
		return result;
	}
	static int code(CommandRing &ring, int fd, const kdirect_desc &desc,
			int registered = CommandRing::none)
	{
		return run(ring, fd, desc, registered).res;
	}
	// A SEND of a's by `ring`, into a RECV of b's by `other`.
	void message(CommandRing &ring, const kdirect_desc &send, CommandRing &other,
		     const kdirect_desc &recv, Result &got, int registered = CommandRing::none)
	{
		other.push(b, recv, 2, registered);
		ASSERT_EQ(other.go(), 0);
		EXPECT_EQ(code(ring, a, send, registered), int(send.length));
		ASSERT_TRUE(other.wait(got));
		EXPECT_EQ(got.user_data, 2u);
	}
};

TEST_F(RawUring, EachOperation)
{
	ASSERT_NO_FATAL_FAILURE(pair());
	CommandRing ring(8), other(8);
	ASSERT_TRUE(ring) << std::strerror(-ring.err);
	ASSERT_TRUE(other) << std::strerror(-other.err);
	Scattered here(128), there(128);
	ASSERT_EQ(ring.add_buffer(at(0), 1 << 20), 0);
	ASSERT_EQ(other.add_buffer(at(1 << 20), 1 << 20), 0);
	ASSERT_NO_FATAL_FAILURE(give(a, 3, 0, 1 << 20));
	ASSERT_NO_FATAL_FAILURE(give(b, 4, 1 << 20, 1 << 20));
	for (size_t i = 0; i < here.length(); i++)
		here.at()[i] = twice(i, 1);
	Result got;
	for (size_t len : {1ul, 4096ul, 20000ul, 300000ul}) {
		SCOPED_TRACE(len);
		char *from = at(3), *into = at((1 << 20) + 5);
		ASSERT_NO_FATAL_FAILURE(message(ring, work(KDIRECT_OP_SEND, from, len), other,
						work(KDIRECT_OP_RECV, into, len + 1), got));
		EXPECT_EQ(got.res, int(len));
		EXPECT_EQ(got.extra, 0u);
		EXPECT_EQ(std::memcmp(into, from, len), 0);
		std::memset(into, 0, len);
		ASSERT_NO_FATAL_FAILURE(message(ring, work(KDIRECT_OP_SEND, from, len), other,
						work(KDIRECT_OP_RECV, into, len), got, 0));
		EXPECT_EQ(std::memcmp(into, from, len), 0);
		std::memset(into, 0, len);
		ASSERT_NO_FATAL_FAILURE(message(ring, work_fixed(KDIRECT_OP_SEND, 3, 3, len), other,
						work_fixed(KDIRECT_OP_RECV, 4, 5, len), got));
		EXPECT_EQ(std::memcmp(into, from, len), 0);
		ASSERT_NO_FATAL_FAILURE(message(ring, work(KDIRECT_OP_SEND, here.at(), len), other,
						work(KDIRECT_OP_RECV, there.at(), len), got));
	}
	EXPECT_EQ(std::memcmp(there.at(), here.at(), 294912), 0); // pages in pairs

	kdirect_share k;
	ASSERT_NO_FATAL_FAILURE(
		key(KDIRECT_ACCESS_READ | KDIRECT_ACCESS_WRITE | KDIRECT_ACCESS_ATOMIC, k));
	EXPECT_EQ(code(ring, a, remote(work(KDIRECT_OP_WRITE, at(7), 30000), k.addr, k.rkey)),
		  30000);
	EXPECT_EQ(std::memcmp(at(1 << 20), at(7), 30000), 0);
	EXPECT_EQ(
		code(ring, a, remote(work(KDIRECT_OP_READ, at(200000), 30000), k.addr, k.rkey), 0),
		30000);
	EXPECT_EQ(std::memcmp(at(200000), at(7), 30000), 0);
	kdirect_desc add{};
	add.opcode = KDIRECT_OP_FETCH_ADD;
	add.length = 8;
	add.operand = 2;
	add = remote(add, (k.addr + 71) & ~uint64_t{7}, k.rkey);
	Result first = run(ring, a, add), second = run(ring, a, add);
	EXPECT_EQ(first.res, 8);
	EXPECT_EQ(second.extra, first.extra + 2);

	kdirect_desc imm = work(KDIRECT_OP_SEND_IMM, at(0), 9);
	imm.imm = 0xfffffff0;
	ASSERT_NO_FATAL_FAILURE(
		message(ring, imm, other, work(KDIRECT_OP_RECV, at(1 << 20), 100), got));
	EXPECT_EQ(got.res, 9);
	EXPECT_EQ(got.extra, uint64_t{KDIRECT_COMPLETION_IMM} << 32 | 0xfffffff0);
	kdirect_desc inv = work(KDIRECT_OP_SEND_INV, at(0), 9);
	inv.rkey = k.rkey;
	ASSERT_NO_FATAL_FAILURE(
		message(ring, inv, other, work(KDIRECT_OP_RECV, at(1 << 20), 100), got));
	EXPECT_EQ(got.extra, uint64_t{KDIRECT_COMPLETION_INV} << 32 | k.rkey);
}

TEST_F(RawUring, Errors)
{
	ASSERT_NO_FATAL_FAILURE(pair());
	CommandRing ring(8), narrow(8, IORING_SETUP_SQE128),
		polled(8, CommandRing::usual | IORING_SETUP_IOPOLL);
	ASSERT_TRUE(ring && narrow && polled);
	kdirect_desc send = work(KDIRECT_OP_SEND, at(0), 8), recv = work(KDIRECT_OP_RECV, at(0), 8);
	kdirect_desc inv{};
	inv.opcode = KDIRECT_OP_LOCAL_INV;
	inv.rkey = 77;
	auto with = [&](kdirect_desc d, const std::function<void(kdirect_desc &)> &change) {
		change(d);
		return code(ring, a, d);
	};
	EXPECT_EQ(with(send, [](auto &d) { d.opcode = 0; }), -EINVAL);
	EXPECT_EQ(with(send, [](auto &d) { d.user_data = 1; }), -EINVAL);
	EXPECT_EQ(with(send, [](auto &d) { d.addr = 16; }), -EFAULT);
	EXPECT_EQ(with(recv, [](auto &d) { d.addr = 16; }), -EFAULT);
	EXPECT_EQ(with(send, [](auto &d) { d.length = 1U << 30; }), -EMSGSIZE);
	EXPECT_EQ(code(ring, a, inv), -ENOENT);
	EXPECT_EQ(code(polled, a, send), -EOPNOTSUPP);
	Result got;
	ASSERT_NO_FATAL_FAILURE(
		message(narrow, send, ring, work(KDIRECT_OP_RECV, at(1 << 20), 8), got));
	close(b);
	b = -1;
	EXPECT_TRUE(happens(a, 0, 20000) & POLLHUP);
	EXPECT_EQ(code(ring, a, send), -EPIPE);
}

// Commands and other descriptors share the slots of the queue.
TEST_F(RawUring, Depth)
{
	ASSERT_NO_FATAL_FAILURE(pair("depth 4"));
	CommandRing ring(16), other(8);
	ASSERT_TRUE(ring && other);
	ASSERT_EQ(post(a, {work(KDIRECT_OP_RECV, at(0), 100, 10)}), 0);
	for (uint64_t i = 1; i < 8; i++)
		ring.push(a, work(KDIRECT_OP_RECV, at(i * 100), 100), i);
	ASSERT_EQ(ring.go(), 0);
	usleep(100000);
	EXPECT_EQ(post(a, {work(KDIRECT_OP_RECV, at(0), 100, 11)}), -EAGAIN);
	// What completes in between interrupts an ioctl of this thread.
	for (size_t i = 0; i < 8; i++)
		ASSERT_EQ(code(other, b, work(KDIRECT_OP_SEND, at(1 << 20), i + 1)), int(i + 1));
	Result got;
	size_t bytes = 0;
	for (int i = 1; i < 8; i++) {
		ASSERT_TRUE(ring.wait(got));
		EXPECT_GT(got.res, 0);
		bytes += size_t(got.res);
	}
	Completions done = await(a, 1);
	ASSERT_EQ(done.size(), 1u);
	EXPECT_EQ(done[0].user_data, 10u);
	EXPECT_EQ(bytes + size_t(done[0].result), 36u);
}

TEST_F(RawUring, Polled)
{
	ASSERT_NO_FATAL_FAILURE(pair("poll-queues 1"));
	CommandRing ring(8, CommandRing::usual | IORING_SETUP_IOPOLL), usual(8);
	ASSERT_TRUE(ring && usual);
	for (CommandRing *from : {&ring, &usual})
		for (int i = 0; i < 20; i++) {
			ASSERT_EQ(post(b, {work(KDIRECT_OP_RECV, at(1 << 20), 20000)}), 0);
			EXPECT_EQ(code(*from, a, work(KDIRECT_OP_SEND, at(0), 20000)), 20000);
			ASSERT_EQ(await(b, 1).size(), 1u);
		}
}

// A receive may wait for ever, and its process ends all the same, which is the end of the
// channel: io_uring holds the file until then.
TEST_F(RawUring, ProcessEnds)
{
	for (bool killed : {false, true}) {
		SCOPED_TRACE(killed);
		ASSERT_NO_FATAL_FAILURE(SetUp());
		ASSERT_NO_FATAL_FAILURE(add());
		ASSERT_EQ(raw_connect(a, raw_terms()), 0);
		pid_t child = fork();
		if (!child) {
			close(a);
			int fd = open_soon("/dev/kdirect/raw.0");
			CommandRing ring(8);
			for (uint64_t i = 0; i < 4; i++)
				ring.push(fd, work(KDIRECT_OP_RECV, at(i * 30000), 30000), i);
			if (fd < 0 || !ring || ring.go() || raw_connect(fd, raw_terms()))
				_exit(1);
			usleep(100000);
			if (killed)
				kill(getpid(), SIGKILL);
			_exit(0);
		}
		EXPECT_TRUE(happens(a, 0, 20000) & POLLHUP);
		int status = 0;
		ASSERT_EQ(waitpid(child, &status, 0), child);
		EXPECT_EQ(WIFSIGNALED(status), killed);
		EXPECT_EQ(WEXITSTATUS(status), 0);
		close_both();
	}
}

} // namespace
