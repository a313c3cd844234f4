// SPDX-License-Identifier: GPL-2.0-only
// What descriptors of a channel's node promise.
//
//	session_test DEVICE PEER
//
// Both are nodes of one channel, a session's, whose ends are on this machine, and which has
// interrupt and poll queues. All that is sent is received by the end of each test.
#include "commands.h"
#include "common.h"
#include "rings.h"
#include "user_memory.h"

#include <csignal>
#include <cstdio>
#include <fcntl.h>
#include <functional>
#include <map>
#include <poll.h>
#include <random>
#include <string>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <thread>

#include <gtest/gtest.h>

namespace
{

constexpr size_t mib = 1 << 20;
std::string device, peer;
kdirect_info agreed;

class Session : public testing::Test
{
protected:
	void SetUp() override
	{
		alarm(200);
		out = open(device.c_str(), O_RDWR);
		in = open(peer.c_str(), O_RDWR);
		ASSERT_GE(out, 0) << device << ": " << std::strerror(errno);
		ASSERT_GE(in, 0) << peer << ": " << std::strerror(errno);
	}
	void TearDown() override
	{
		close(out);
		close(in);
		for (int i = 0; pinned() && i < 500; i++)
			usleep(10000);
		EXPECT_EQ(pinned(), 0u) << "pages are charged to us for nothing";
		alarm(0);
	}
	Completions await(int fd, size_t count, uint32_t flags = 0)
	{
		Completions all, some;
		while (all.size() < count && !reap(fd, some, 1, flags, 20000000000))
			all.insert(all.end(), some.begin(), some.end());
		return all;
	}
	int out = -1, in = -1;
};

TEST_F(Session, EachLengthAndMemory)
{
	Memory from(3 * mib), to(3 * mib);
	from.fill(1);
	ASSERT_EQ(set_buffer(out, 3, from.at(), from.length), 0);
	ASSERT_EQ(set_buffer(in, 4, to.at(), to.length), 0);
	for (uint32_t flags : {0u, uint32_t{KDIRECT_SUBMIT_POLL}})
		for (size_t len :
		     {size_t{0}, size_t{1}, size_t{4096}, size_t{agreed.eager_limit},
		      size_t{agreed.eager_limit} + 1, size_t{100000}, size_t{agreed.max_message}})
			for (int way = 0; way < 8; way++) {
				SCOPED_TRACE(testing::Message() << len << " way " << way);
				kdirect_desc send = way & 1 ? message(true, from.at(5), len, 66)
							    : fixed_message(true, 3, 5, len, 66);
				kdirect_desc recv = way & 2 ? message(false, to.at(9), len, 77)
							    : fixed_message(false, 4, 9, len, 77);
				std::memset(to.at(), 0, to.length);
				if (way & 4) {
					ASSERT_EQ(post(in, {recv}, flags), 0);
				}
				ASSERT_EQ(post(out, {send}, flags), 0);
				if (!(way & 4)) {
					ASSERT_EQ(post(in, {recv}, flags), 0);
				}
				Completions got = await(in, 1, flags), sent = await(out, 1, flags);
				ASSERT_EQ(got.size(), 1u);
				ASSERT_EQ(sent.size(), 1u);
				EXPECT_EQ(sent[0].result, int(len));
				EXPECT_EQ(sent[0].user_data, 66u);
				EXPECT_EQ(got[0].result, int(len));
				EXPECT_EQ(got[0].user_data, 77u);
				EXPECT_EQ(got[0].status | got[0].flags | got[0].data, 0u);
				ASSERT_EQ(std::memcmp(to.at(9), from.at(5), len), 0);
				EXPECT_EQ(*to.at(9 + len), 0);
			}
}

// Far more than there is room for, of all lengths: nobody waits, and the order stays.
TEST_F(Session, NobodyWaitsToSubmit)
{
	constexpr size_t place = 64 << 10, count = KDIRECT_DESC_ENTRIES;
	Memory from(count * place), to(place);
	Descs sends;
	from.fill(2);
	ASSERT_EQ(set_buffer(out, 0, from.at(), from.length), 0);
	auto length = [](size_t i) { return i % 5 == 4 ? 40000 + i : i * 3; };
	for (size_t i = 0; i < count; i++)
		sends.push_back(i % 2 ? fixed_message(true, 0, i * place, length(i), i)
				      : message(true, from.at(i * place), length(i), i));
	ASSERT_EQ(post(out, sends), 0);
	EXPECT_EQ(post(out, {sends[0]}), -EAGAIN);
	for (size_t i = 0; i < count; i++) {
		if (i % 3) {
			ASSERT_EQ(post(in, {message(false, to.at(), place)}), 0);
			Completions got = await(in, 1);
			ASSERT_EQ(got.size(), 1u);
			ASSERT_EQ(got[0].result, int(length(i)));
		} else {
			ASSERT_EQ(read(in, to.at(), place), ssize_t(length(i)));
		}
		ASSERT_EQ(std::memcmp(to.at(), from.at(i * place), length(i)), 0) << i;
	}
	EXPECT_EQ(await(out, count).size(), count);
}

TEST_F(Session, ShortMemoryLosesNothing)
{
	Memory from(mib), to(mib);
	from.fill(3);
	for (size_t len : {size_t{1000}, size_t{100000}}) {
		ASSERT_EQ(post(out, {message(true, from.at(), len)}), 0);
		const size_t sizes[] = {0, 300, 200};
		size_t left = len;
		for (size_t size : sizes) {
			Completions got = run(in, {message(false, to.at(len - left), size)});
			left -= size;
			ASSERT_EQ(got.size(), 1u);
			EXPECT_EQ(got[0].result, int(size));
			EXPECT_EQ(got[0].flags, KDIRECT_COMPLETION_MORE);
			EXPECT_EQ(got[0].data, left);
		}
		EXPECT_EQ(read(in, to.at(500), 100), 100);
		Completions got = run(in, {message(false, to.at(600), mib - 600)});
		EXPECT_EQ(got[0].result, int(len - 600));
		EXPECT_EQ(got[0].flags, 0);
		EXPECT_EQ(std::memcmp(to.at(), from.at(), len), 0);
		EXPECT_EQ(await(out, 1).size(), 1u);
	}
}

TEST_F(Session, RecvsComeBeforeReads)
{
	Memory to(8192);
	int other = open(peer.c_str(), O_RDWR | O_NONBLOCK);
	char byte = 0;
	ASSERT_EQ(post(in, {message(false, to.at(), 10)}), 0);
	std::thread reader([&] { EXPECT_EQ(read(in, &byte, 1), 1); });
	usleep(20000);
	ASSERT_EQ(write(out, "a", 1), 1);
	EXPECT_EQ(await(in, 1).size(), 1u);
	EXPECT_EQ(to.at()[0], 'a');
	EXPECT_EQ(read(other, &byte, 1), -1);
	EXPECT_EQ(errno, EAGAIN);
	ASSERT_EQ(write(out, "b", 1), 1);
	reader.join();
	EXPECT_EQ(byte, 'b');
	close(other);
}

TEST_F(Session, AnInvalidOneFailsAlone)
{
	Memory memory(mib), hole(4096, PROT_NONE), constant(4096, PROT_READ);
	ASSERT_EQ(set_buffer(out, 2, memory.at(), 65536), 0);
	const kdirect_desc send = message(true, memory.at(), 10),
			   recv = message(false, memory.at(), 10),
			   slot = fixed_message(true, 2, 0, 10);
	struct Case {
		int err;
		kdirect_desc from;
		std::function<void(kdirect_desc &)> spoil;
	};
	const Case cases[] = {
		{EINVAL, send, [](auto &d) { d.opcode = 0; }},
		{EINVAL, send, [](auto &d) { d.opcode = 11; }},
		{EINVAL, recv, [](auto &d) { d.opcode = 255; }},
		{EOPNOTSUPP, send, [](auto &d) { d.opcode = KDIRECT_OP_READ; }},
		{EOPNOTSUPP, send, [](auto &d) { d.opcode = KDIRECT_OP_WRITE; }},
		{EOPNOTSUPP, send, [](auto &d) { d.opcode = KDIRECT_OP_CMP_SWAP; }},
		{EOPNOTSUPP, send, [](auto &d) { d.opcode = KDIRECT_OP_FETCH_ADD; }},
		{EOPNOTSUPP, send, [](auto &d) { d.opcode = KDIRECT_OP_SEND_IMM; }},
		{EOPNOTSUPP, send, [](auto &d) { d.opcode = KDIRECT_OP_SEND_INV; }},
		{EOPNOTSUPP, send, [](auto &d) { d.opcode = KDIRECT_OP_WRITE_IMM; }},
		{EOPNOTSUPP, send, [](auto &d) { d.opcode = KDIRECT_OP_LOCAL_INV; }},
		{EOPNOTSUPP, send, [](auto &d) { d.flags = KDIRECT_DESC_FENCE; }},
		{EOPNOTSUPP, recv, [](auto &d) { d.flags = KDIRECT_DESC_SOLICITED; }},
		{EINVAL, send, [](auto &d) { d.flags = 0x40; }},
		{EINVAL, recv, [](auto &d) { d.buffer = 2; }},
		{EINVAL, send, [](auto &d) { d.remote = 1; }},
		{EINVAL, send, [](auto &d) { d.operand = 1; }},
		{EINVAL, recv, [](auto &d) { d.compare = 1; }},
		{EINVAL, send, [](auto &d) { d.rkey = 1; }},
		{EINVAL, recv, [](auto &d) { d.imm = 1; }},
		{EINVAL, recv, [](auto &d) { d.reserved = 1ULL << 63; }},
		{EINVAL, recv, [](auto &d) { d.length = UINT32_MAX; }},
		{EMSGSIZE, send, [](auto &d) { d.length = agreed.max_message + 1; }},
		{EFAULT, send, [](auto &d) { d.addr = 0; }},
		{EFAULT, recv, [](auto &d) { d.addr = 0; }},
		{EFAULT, send, [](auto &d) { d.addr = UINT64_MAX - 5; }},
		{EFAULT, recv, [](auto &d) { d.addr = UINT64_MAX - 5; }},
		{EFAULT, send, [](auto &d) { d.addr = 0xffff888000000000; }},
		{EFAULT, recv, [](auto &d) { d.addr = 0xffff888000000000; }},
		{EFAULT, send, [&](auto &d) { d.addr = address(hole.at()); }},
		{EFAULT, send, [&](auto &d) { d.addr = address(hole.at()), d.length = 100000; }},
		{EFAULT, recv, [&](auto &d) { d.addr = address(hole.at()); }},
		{EFAULT, recv, [&](auto &d) { d.addr = address(constant.at()); }},
		{ENOENT, slot, [](auto &d) { d.buffer = 3; }},
		{ENOENT, slot, [](auto &d) { d.buffer = UINT16_MAX; }},
		{EFAULT, slot, [](auto &d) { d.addr = 65536 - 9; }},
		{EFAULT, slot, [](auto &d) { d.addr = UINT64_MAX - 5; }},
	};
	Descs batch;
	std::map<uint64_t, int> expected, got;
	for (const Case &c : cases) {
		kdirect_desc bad = c.from;
		c.spoil(bad);
		bad.user_data = batch.size();
		expected[batch.size()] = -c.err;
		batch.push_back(bad);
		kdirect_desc good = send;
		good.user_data = batch.size();
		expected[batch.size()] = 10;
		batch.push_back(good);
	}
	std::thread reader([&] {
		char buffer[16];
		for (size_t i = 0; i < std::size(cases); i++)
			EXPECT_EQ(read(in, buffer, sizeof(buffer)), 10);
	});
	for (const kdirect_completion &c : run(out, batch)) {
		EXPECT_EQ(c.index, c.user_data);
		EXPECT_EQ(c.status, 0);
		got[c.user_data] = c.result;
	}
	EXPECT_EQ(got, expected);
	reader.join();
}

// Bits that change anywhere: one completion each, and the channel lives on.
TEST_F(Session, Noise)
{
	Memory memory(mib);
	std::mt19937 random(7);
	int quiet = open(peer.c_str(), O_RDWR | O_NONBLOCK);
	ASSERT_EQ(set_buffer(out, 0, memory.at(), mib), 0);
	for (int round = 0; round < 40; round++) {
		Descs batch;
		for (unsigned i = 0; i < 32; i++) {
			kdirect_desc d = i % 2 ? message(true, memory.at(i), random() % 20000)
					       : fixed_message(true, 0, i, random() % 20000);
			auto *bytes = reinterpret_cast<uint8_t *>(&d);
			for (unsigned n = random() % 4; n; n--) {
				size_t at = random() % sizeof(d);
				// not what makes a RECV of it, which would wait
				if (at)
					bytes[at] ^= uint8_t(1 << random() % 8);
			}
			d.user_data = i;
			batch.push_back(d);
		}
		std::vector<bool> seen(32);
		ASSERT_EQ(post(out, batch), 0);
		Completions some;
		for (unsigned n = 0; n < 32;) {
			while (read(quiet, memory.at(), mib) > 0 || errno != EAGAIN)
				if (errno == EPIPE)
					break;
			int err = reap(out, some, 1, 0, 1000000);
			ASSERT_TRUE(!err || err == -ETIMEDOUT) << err;
			for (const kdirect_completion &c : some) {
				EXPECT_FALSE(seen.at(c.user_data));
				seen.at(c.user_data) = true;
				n++;
			}
		}
	}
	pollfd watch{quiet, POLLIN, 0};
	while (poll(&watch, 1, 1000) == 1)
		ASSERT_GE(read(quiet, memory.at(), mib), 0);
	close(quiet);
	ASSERT_EQ(write(out, "x", 1), 1);
	ASSERT_EQ(read(in, memory.at(), 1), 1);
}

TEST_F(Session, RightsAndLimits)
{
	Memory memory(mib);
	int reads = open(device.c_str(), O_RDONLY), writes = open(device.c_str(), O_WRONLY);
	EXPECT_EQ(run(reads, {message(true, memory.at(), 1)})[0].result, -EACCES);
	EXPECT_EQ(run(writes, {message(false, memory.at(), 1)})[0].result, -EACCES);
	close(reads);
	close(writes);
	pid_t child = fork();
	if (!child) {
		rlimit none{};
		setrlimit(RLIMIT_MEMLOCK, &none);
		if (setuid(65534))
			_exit(9);
		if (run(in, {message(false, memory.at(), 10)})[0].result != -ENOMEM)
			_exit(1);
		if (run(out, {message(true, memory.at(), 100000)})[0].result != -ENOMEM)
			_exit(2);
		if (run(out, {message(true, memory.at(), 100)})[0].result != 100)
			_exit(3);
		_exit(0);
	}
	int status = -1;
	waitpid(child, &status, 0);
	EXPECT_EQ(status, 0);
	EXPECT_EQ(read(in, memory.at(), mib), 100);
}

TEST_F(Session, PollTells)
{
	Memory to(4096);
	pollfd watch{in, POLLIN | POLLPRI, 0};
	ASSERT_EQ(post(in, {message(false, to.at(), 10)}), 0);
	EXPECT_EQ(poll(&watch, 1, 0), 0);
	int set = epoll_create1(0);
	epoll_event what{}, event{};
	what.events = EPOLLPRI | EPOLLET;
	ASSERT_EQ(epoll_ctl(set, EPOLL_CTL_ADD, in, &what), 0);
	EXPECT_EQ(epoll_wait(set, &event, 1, 0), 0);
	std::thread writer([&] {
		usleep(50000);
		EXPECT_EQ(write(out, "x", 1), 1);
	});
	EXPECT_EQ(epoll_wait(set, &event, 1, 10000), 1);
	writer.join();
	EXPECT_EQ(event.events, uint32_t{EPOLLPRI});
	ASSERT_EQ(poll(&watch, 1, 10000), 1);
	EXPECT_EQ(watch.revents, POLLPRI); // there is nothing for a read
	EXPECT_EQ(await(in, 1).size(), 1u);
	EXPECT_EQ(poll(&watch, 1, 0), 0);
	close(set);
}

// What has not begun ends with the file, killed or closed; the next message is another's.
TEST_F(Session, ClosedWithSomeWaiting)
{
	Memory to(2 * mib);
	char byte = 0;
	for (bool killed : {false, true}) {
		pid_t child = fork();
		if (!child) {
			int own = open(peer.c_str(), O_RDWR);
			Descs recvs(200, message(false, to.at(), 4096));
			if (post(own, recvs))
				_exit(1);
			if (killed)
				kill(getpid(), SIGKILL);
			close(own);
			_exit(0);
		}
		int status = -1;
		waitpid(child, &status, 0);
		EXPECT_EQ(WIFSIGNALED(status), killed);
		EXPECT_EQ(write(out, "x", 1), 1);
		EXPECT_EQ(read(in, &byte, 1), 1);
		// the same of SENDs: those that have begun arrive, from the first on
		child = fork();
		if (!child) {
			int own = open(device.c_str(), O_RDWR);
			Descs sends;
			for (int i = 0; i < 250; i++) {
				*to.at(size_t(i) * 4096) = char(i);
				sends.push_back(message(true, to.at(size_t(i) * 4096),
							i % 4 ? 4096 : 50000));
			}
			if (post(own, sends))
				_exit(1);
			if (killed)
				kill(getpid(), SIGKILL);
			close(own);
			_exit(0);
		}
		waitpid(child, &status, 0);
		EXPECT_EQ(WIFSIGNALED(status), killed);
		pollfd watch{in, POLLIN, 0};
		int n = 0;
		for (; poll(&watch, 1, 1000) == 1; n++) {
			ASSERT_GT(read(in, to.at(), 2 * mib), 0);
			EXPECT_EQ(to.at()[0], char(n));
		}
		EXPECT_GT(n, 0);
		EXPECT_LT(n, 250);
	}
}

TEST_F(Session, Rings)
{
	constexpr size_t count = 200, place = 32 << 10;
	Memory from(count * place), to(count * place);
	from.fill(9);
	ASSERT_EQ(set_buffer(out, 0, from.at(), from.length), 0);
	ASSERT_EQ(set_buffer(in, 0, to.at(), to.length), 0);
	auto length = [](size_t i) { return i % 9 == 8 ? 20000 + i : i * 7; };
	for (uint32_t flags = 0; flags < 4; flags++) {
		SCOPED_TRACE(testing::Message() << "flags " << flags);
		Descs sends, recvs;
		for (size_t i = 0; i < count; i++) {
			sends.push_back(fixed_message(true, 0, i * place, length(i), i));
			recvs.push_back(fixed_message(false, 0, i * place, place, i));
		}
		std::memset(to.at(), 0, to.length);
		Ring a(out, 16, 16, flags), b(in, 16, 16, flags);
		ASSERT_TRUE(a && b) << std::strerror(errno);
		EXPECT_EQ(post(out, {sends[0]}), -EBUSY);
		Completions got;
		std::thread receiver([&] { got = run(b, recvs); });
		EXPECT_EQ(run(a, sends).size(), count);
		receiver.join();
		ASSERT_EQ(got.size(), count);
		for (const kdirect_completion &c : got) {
			ASSERT_EQ(c.result, int(length(c.user_data)));
			ASSERT_EQ(std::memcmp(to.at(c.user_data * place),
					      from.at(c.user_data * place), length(c.user_data)),
				  0);
		}
		if (!a.threaded())
			continue;
		// nobody would be charged for what a thread pins
		got = run(b, {message(false, to.at(), 10)});
		ASSERT_EQ(got.size(), 1u);
		EXPECT_EQ(got[0].result, -EOPNOTSUPP);
	}
}

TEST_F(Session, Commands)
{
	Memory from(2 * mib), to(2 * mib);
	char byte = 0;
	from.fill(11);
	for (unsigned more : {0u, unsigned{IORING_SETUP_IOPOLL}}) {
		CommandRing a(64, CommandRing::usual | more), b(64, CommandRing::usual | more);
		ASSERT_TRUE(a && b) << a.err;
		ASSERT_EQ(a.add_buffer(from.at(), mib), 0);
		ASSERT_EQ(b.add_buffer(to.at(), mib), 0);
		for (size_t len :
		     {size_t{1}, size_t{4096}, size_t{agreed.eager_limit} + 1, size_t{100000}})
			for (int way = 0; way < 4; way++) {
				SCOPED_TRACE(testing::Message()
					     << len << " way " << way << " more " << more);
				int index = way & 1 ? 0 : CommandRing::none;
				CommandRing::Result sent, got;
				std::memset(to.at(), 0, to.length);
				ASSERT_TRUE(b.push(in, message(false, to.at(3), len), 7, index));
				if (way & 2) {
					ASSERT_EQ(b.go(), 0);
				}
				ASSERT_TRUE(a.push(out, message(true, from.at(5), len), 8, index));
				ASSERT_EQ(a.go(), 0);
				ASSERT_TRUE(b.wait(got));
				ASSERT_TRUE(a.wait(sent));
				EXPECT_EQ(sent.res, int(len));
				EXPECT_EQ(got.res, int(len));
				EXPECT_EQ(got.user_data, 7u);
				EXPECT_EQ(std::memcmp(to.at(3), from.at(5), len), 0);
			}
		CommandRing::Result r;
		ASSERT_TRUE(a.push(out, fetch_add(0, 1), 1));
		ASSERT_TRUE(a.wait(r));
		EXPECT_EQ(r.res, -EOPNOTSUPP);
		// RECVs that wait go with their ring, whose workers are interrupted
		for (int i = 0; i < 5; i++)
			ASSERT_TRUE(b.push(in, message(false, to.at(), 10), 9));
		ASSERT_EQ(b.go(), 0);
		a.end();
		b.end();
		for (int i = 0; pinned() && i < 2000; i++)
			usleep(10000);
		ASSERT_EQ(pinned(), 0u);
		ASSERT_EQ(write(out, "x", 1), 1);
		EXPECT_EQ(read(in, &byte, 1), 1);
	}
}

} // namespace

int main(int argc, char **argv)
{
	testing::InitGoogleTest(&argc, argv);
	if (argc != 3) {
		std::fprintf(stderr, "usage: session_test DEVICE PEER\n");
		return 2;
	}
	device = argv[1];
	peer = argv[2];
	int fd = open(argv[1], O_RDWR);
	if (fd < 0 || ioctl(fd, KDIRECT_IOC_INFO, &agreed)) {
		std::perror(argv[1]);
		return 2;
	}
	close(fd);
	return RUN_ALL_TESTS();
}
