// SPDX-License-Identifier: GPL-2.0-only
// What rings promise.
//
//	rings_test DEVICE SIZE
//
// DEVICE is a mapping, writable, of SIZE bytes; its channel has interrupt and poll queues.
#include "common.h"
#include "rings.h"

#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <sys/epoll.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include <csignal>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <functional>
#include <set>
#include <string>
#include <thread>

#include <gtest/gtest.h>

namespace
{

constexpr size_t page = 4096;
constexpr size_t mib = 1 << 20;
constexpr uint32_t both = KDIRECT_RING_POLL | KDIRECT_RING_THREAD;
const uint32_t all_flags[] = {0, KDIRECT_RING_POLL, KDIRECT_RING_THREAD, both};
std::string device;
uint64_t size;

std::vector<char> pattern(size_t length, unsigned seed)
{
	std::vector<char> out(length);
	for (size_t i = 0; i < length; i++)
		out[i] = char((i * 2654435761U + seed * 40503U) >> 9);
	return out;
}

// Threads that serve rings of ours.
unsigned threads()
{
	unsigned count = 0;
	std::string name = "kdring-" + std::to_string(getpid());
	for (const auto &entry : std::filesystem::directory_iterator("/proc")) {
		std::ifstream file(entry.path() / "comm");
		std::string comm;
		if (file && std::getline(file, comm) && comm == name.substr(0, 15))
			count++;
	}
	return count;
}

class Rings : public testing::Test
{
protected:
	void SetUp() override
	{
		alarm(120 * slow());
		fd = open(device.c_str(), O_RDWR);
		ASSERT_GE(fd, 0) << device << ": " << std::strerror(errno);
	}
	void TearDown() override
	{
		close(fd);
		alarm(0);
	}
	int fd = -1;
};

TEST_F(Rings, DataIsRight)
{
	for (uint32_t flags : all_flags)
		for (uint32_t entries : {2u, 64u}) {
			SCOPED_TRACE(testing::Message() << flags << ", " << entries);
			int own = open(device.c_str(), O_RDWR);
			Ring ring(own, entries, entries, flags);
			ASSERT_TRUE(static_cast<bool>(ring)) << std::strerror(errno);
			constexpr size_t count = 150, len = 5000;
			std::vector<char> out = pattern(count * len, flags + entries),
					  in(count * len);
			ASSERT_EQ(set_buffer(own, 3, in.data(), in.size()), 0);
			Descs writes, reads;
			for (size_t i = 0; i < count; i++) {
				size_t at = i * len;
				writes.push_back(transfer(true, &out[at], len, at + 3, i));
				reads.push_back(i % 2 ? fixed(false, 3, at, len, at + 3, i)
						      : transfer(false, &in[at], len, at + 3, i));
			}
			for (const Descs &batch : {writes, reads}) {
				std::set<uint64_t> seen;
				for (const kdirect_completion &c : run(ring, batch)) {
					EXPECT_EQ(c.result, int(len));
					EXPECT_EQ(c.index % count, c.user_data);
					seen.insert(c.user_data);
				}
				EXPECT_EQ(seen.size(), count);
			}
			EXPECT_TRUE(in == out);
			close(own);
		}
	EXPECT_EQ(threads(), 0u);
}

// A child that the parent follows, counting its system calls between two getppid().
unsigned long calls_between(const std::function<void()> &before, const std::function<bool()> &body)
{
	pid_t child = fork();
	if (!child) {
		ptrace(PTRACE_TRACEME, 0, nullptr, nullptr);
		before();
		raise(SIGSTOP);
		syscall(SYS_getppid);
		bool good = body();
		syscall(SYS_getppid);
		_exit(good ? 0 : 1);
	}
	int status = 0;
	unsigned long count = 0;
	bool within = false, entry = true;
	waitpid(child, &status, 0);
	EXPECT_TRUE(WIFSTOPPED(status));
	ptrace(PTRACE_SETOPTIONS, child, nullptr, PTRACE_O_TRACESYSGOOD | PTRACE_O_EXITKILL);
	while (!ptrace(PTRACE_SYSCALL, child, nullptr, nullptr) &&
	       waitpid(child, &status, 0) == child && WIFSTOPPED(status)) {
		if (WSTOPSIG(status) != (SIGTRAP | 0x80))
			continue;
		if (entry) {
			__ptrace_syscall_info info{};
			ptrace(PTRACE_GET_SYSCALL_INFO, child, sizeof(info), &info);
			if (info.entry.nr == SYS_getppid)
				within = !within;
			else if (within)
				count++;
		}
		entry = !entry;
	}
	EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
	return count;
}

// The thread is awake: thousands of operations, not one system call. The same through a
// ring without a thread is there to show that the count counts.
TEST_F(Rings, SteadyStateHasNoSystemCall)
{
	for (bool threaded : {true, false}) {
		Ring ring;
		std::vector<char> in(32 * page), out = pattern(in.size(), 7);
		ASSERT_EQ(pwrite(fd, out.data(), out.size(), 0), ssize_t(out.size()));
		unsigned long calls = calls_between(
			[&] {
				set_buffer(fd, 0, in.data(), in.size());
				ring = Ring(fd, 64, 64, threaded ? both : KDIRECT_RING_POLL,
					    KDIRECT_RING_IDLE_MAX);
			},
			[&] {
				uint64_t begun = 0, ended = 0;
				constexpr uint64_t count = 3000;
				while (ended < count) {
					kdirect_completion c;
					while (begun < count && begun - ended < 32 &&
					       ring.push(fixed(false, 0, begun % 32 * page, page,
							       begun % 32 * page)))
						begun++;
					if (!threaded && ring.go(1))
						return false;
					while (ring.pop(c)) {
						if (c.result != int(page))
							return false;
						ended++;
					}
				}
				return std::memcmp(in.data(), out.data(), in.size()) == 0;
			});
		if (threaded)
			EXPECT_EQ(calls, 0u);
		else
			EXPECT_GE(calls, 3000u / 32);
	}
}

TEST_F(Rings, ASleepingThreadIsWoken)
{
	Ring ring(fd, 8, 8, both, 0);
	ASSERT_TRUE(static_cast<bool>(ring));
	unsigned slept = 0;
	for (uint64_t i = 0; i < 300; i++) {
		kdirect_completion c;
		ASSERT_TRUE(ring.push(touch(0, i)));
		if (ring.state() & KDIRECT_RING_NEED_WAKEUP) {
			slept++;
			ASSERT_EQ(ring.enter(0), 0);
		}
		ASSERT_EQ(ring.enter(0, 1, 0, 10000000000), 0);
		ASSERT_TRUE(ring.pop(c));
		ASSERT_EQ(c.user_data, i);
		if (i % 3 == 0)
			usleep(2000);
	}
	EXPECT_GT(slept, 50u);
}

TEST_F(Rings, ArgumentsAreChecked)
{
	kdirect_ring_setup setup{};
	auto make = [&] {
		int made = ioctl(fd, KDIRECT_IOC_RING_SETUP, &setup);
		int err = made < 0 ? -errno : 0;
		if (made >= 0)
			close(made);
		return err;
	};
	auto with = [&](const std::function<void()> &spoil) {
		setup = {};
		setup.sq_entries = setup.cq_entries = 8;
		spoil();
		return make();
	};
	EXPECT_EQ(with([] {}), 0);
	EXPECT_EQ(with([&] { setup.sq_entries = 0; }), -EINVAL);
	EXPECT_EQ(with([&] { setup.cq_entries = 6; }), -EINVAL);
	EXPECT_EQ(with([&] { setup.cq_entries = 2 * KDIRECT_RING_ENTRIES; }), -EINVAL);
	EXPECT_EQ(with([&] { setup.flags = 4; }), -EINVAL);
	EXPECT_EQ(with([&] { setup.reserved[2] = 1; }), -EINVAL);
	EXPECT_EQ(with([&] { setup.thread_cpu = 1; }), -EINVAL);
	for (int cpu : {-2, 8191, 1 << 30}) {
		EXPECT_EQ(with([&] {
				  setup.flags = KDIRECT_RING_THREAD;
				  setup.thread_cpu = cpu;
			  }),
			  -EINVAL);
	}
	EXPECT_EQ(ioctl(fd, KDIRECT_IOC_RING_SETUP, 8), -1);
	EXPECT_EQ(errno, EFAULT);
	EXPECT_EQ(threads(), 0u);

	Ring ring(fd, 8, 8);
	ASSERT_TRUE(static_cast<bool>(ring));
	EXPECT_EQ(with([] {}), -EBUSY);
	kdirect_submit batch{};
	EXPECT_EQ(submit(fd, batch), -EBUSY);
	EXPECT_EQ(ring.enter(0, 9), -EINVAL);
	EXPECT_EQ(ring.enter(0, 0, KDIRECT_ENTER_POLL), -EINVAL);
	EXPECT_EQ(ring.enter(0, 1, 0, 10000000), -ETIMEDOUT);
	EXPECT_EQ(ioctl(ring.fd, KDIRECT_IOC_RING_ENTER, 8), -1);
	EXPECT_EQ(errno, EFAULT);
	EXPECT_EQ(ioctl(ring.fd, KDIRECT_IOC_SUBMIT, &batch), -1);
	EXPECT_EQ(errno, ENOTTY);
}

// Where the thread runs, and for whom.
TEST_F(Rings, TheThreadsPlace)
{
	cpu_set_t before, one;
	ASSERT_EQ(sched_getaffinity(0, sizeof(before), &before), 0);
	CPU_ZERO(&one);
	CPU_SET(0, &one);
	{
		Ring ring(fd, 8, 8, KDIRECT_RING_THREAD, 0, 0);
		ASSERT_TRUE(static_cast<bool>(ring));
		EXPECT_EQ(threads(), 1u);
	}
	if (CPU_COUNT(&before) > 1) {
		ASSERT_EQ(sched_setaffinity(0, sizeof(one), &one), 0);
		Ring ring(fd, 8, 8, KDIRECT_RING_THREAD, 0, 1);
		EXPECT_EQ(errno, EINVAL);
		EXPECT_FALSE(static_cast<bool>(ring));
		ASSERT_EQ(sched_setaffinity(0, sizeof(before), &before), 0);
	}
	EXPECT_EQ(threads(), 0u);
}

TEST_F(Rings, Mmap)
{
	EXPECT_EQ(mmap(nullptr, page, PROT_READ, MAP_SHARED, fd, 0), MAP_FAILED);
	EXPECT_EQ(errno, ENODEV);
	Ring ring(fd, 64, 64);
	ASSERT_TRUE(static_cast<bool>(ring));
	EXPECT_EQ(mmap(nullptr, page, PROT_READ, MAP_SHARED, fd, 0), MAP_FAILED);
	EXPECT_EQ(errno, ENODEV);
	auto refused = [&](size_t length, int rights, int flags, off_t at) {
		void *got = mmap(nullptr, length, rights, flags, ring.fd, at);
		return got == MAP_FAILED ? errno : 0;
	};
	size_t length = ring.setup.length;
	EXPECT_EQ(refused(length + page, PROT_READ, MAP_SHARED, 0), EINVAL);
	EXPECT_EQ(refused(length - page, PROT_READ, MAP_SHARED, 0), EINVAL);
	EXPECT_EQ(refused(length, PROT_READ, MAP_SHARED, off_t(page)), EINVAL);
	EXPECT_EQ(refused(length, PROT_READ, MAP_SHARED, off_t(1) << 40), EINVAL);
	EXPECT_EQ(refused(length, PROT_READ | PROT_WRITE, MAP_PRIVATE, 0), EINVAL);
	// twice is the same memory
	auto *again = static_cast<char *>(
		mmap(nullptr, length, PROT_READ | PROT_WRITE, MAP_SHARED, ring.fd, 0));
	ASSERT_NE(again, MAP_FAILED);
	ring.sq_tail() = 77;
	EXPECT_EQ(*reinterpret_cast<uint32_t *>(again + ring.setup.sq_tail), 77u);
	ring.sq_tail() = 0;
	EXPECT_EQ(mremap(again, length, 2 * length, MREMAP_MAYMOVE), MAP_FAILED);
	munmap(again, length);
	// the memory holds the ring, the ring the file
	Ring other;
	{
		int own = open(device.c_str(), O_RDWR);
		other = Ring(own, 4, 4, KDIRECT_RING_THREAD);
		close(own);
	}
	close(std::exchange(other.fd, -1));
	ASSERT_TRUE(other.push(touch(0)));
	for (int i = 0;
	     i < 1000 && other.cq_tail() == 0 && !(other.state() & KDIRECT_RING_NEED_WAKEUP); i++)
		usleep(1000);
	EXPECT_EQ(threads(), 1u);
	other = Ring();
}

// The memory of rings is not inherited; the file is, and works in the child's memory.
TEST_F(Rings, Fork)
{
	Ring ring(fd, 8, 8);
	std::vector<char> out = pattern(100, 5);
	ASSERT_TRUE(static_cast<bool>(ring));
	pid_t child = fork();
	if (!child) {
		unsigned char there;
		if (!mincore(ring.base, page, &there))
			_exit(1);
		void *base = mmap(nullptr, ring.setup.length, PROT_READ | PROT_WRITE, MAP_SHARED,
				  ring.fd, 0);
		if (base == MAP_FAILED)
			_exit(2);
		ring.base = static_cast<char *>(base);
		out = pattern(100, 6);
		if (run(ring, {transfer(true, out.data(), 100, 0, 1)}).size() != 1)
			_exit(3);
		_exit(0);
	}
	int status = -1;
	waitpid(child, &status, 0);
	EXPECT_EQ(status, 0);
	char back[100];
	ASSERT_EQ(pread(fd, back, 100, 0), 100);
	EXPECT_EQ(std::memcmp(back, pattern(100, 6).data(), 100), 0);
	EXPECT_EQ(run(ring, {touch(8, 2)}).size(), 1u);
}

// What is handed to another process: the ring, and an address of who made it.
struct Handed {
	kdirect_ring_setup setup;
	uint64_t addr;
};

ssize_t hand(int socket, Handed &what, int &fd, bool give)
{
	char control[CMSG_SPACE(sizeof(int))] = {};
	iovec part{&what, sizeof(what)};
	msghdr message{};
	message.msg_iov = &part;
	message.msg_iovlen = 1;
	message.msg_control = control;
	message.msg_controllen = sizeof(control);
	cmsghdr *header = CMSG_FIRSTHDR(&message);
	header->cmsg_level = SOL_SOCKET;
	header->cmsg_type = SCM_RIGHTS;
	header->cmsg_len = CMSG_LEN(sizeof(int));
	if (give)
		std::memcpy(CMSG_DATA(header), &fd, sizeof(int));
	ssize_t done = give ? sendmsg(socket, &message, 0) : recvmsg(socket, &message, 0);
	if (!give && done == sizeof(what))
		std::memcpy(&fd, CMSG_DATA(CMSG_FIRSTHDR(&message)), sizeof(int));
	return done;
}

// The thread works in the memory of who made the ring, and not after its end.
TEST_F(Rings, TheProcessEnds)
{
	int ends[2];
	ASSERT_EQ(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, ends), 0);
	pid_t child = fork();
	if (!child) {
		auto *ring = new Ring(fd, 8, 8, both);
		std::vector<char> out = pattern(100, 8);
		Handed handed{ring->setup, address(out.data())};
		bool good = run(*ring, {transfer(true, out.data(), 100, 0)}).size() == 1;
		_exit(good && hand(ends[1], handed, ring->fd, true) > 0 ? 0 : 1);
	}
	Handed handed;
	Ring ring;
	ASSERT_EQ(hand(ends[0], handed, ring.fd, false), ssize_t(sizeof(handed)));
	int status = -1;
	waitpid(child, &status, 0);
	ASSERT_EQ(status, 0);
	ring.setup = handed.setup;
	ring.base = static_cast<char *>(
		mmap(nullptr, ring.setup.length, PROT_READ | PROT_WRITE, MAP_SHARED, ring.fd, 0));
	ASSERT_NE(ring.base, MAP_FAILED);
	Completions done =
		run(ring, {transfer(true, reinterpret_cast<void *>(handed.addr), 100, 0, 1),
			   fetch_add(0, 0, 2)});
	ASSERT_EQ(done.size(), 2u);
	for (const kdirect_completion &c : done)
		EXPECT_EQ(c.result, c.user_data == 1 ? -EFAULT : atomics() ? 8 : -EOPNOTSUPP);
	close(ends[0]);
	close(ends[1]);
}

TEST_F(Rings, PollAndEpoll)
{
	for (uint32_t flags : all_flags) {
		Ring ring(fd, 2, 2, flags);
		ASSERT_TRUE(static_cast<bool>(ring));
		pollfd in{ring.fd, POLLIN | POLLOUT, 0};
		EXPECT_EQ(poll(&in, 1, 1000), 1);
		EXPECT_EQ(in.revents, POLLOUT);
		int set = epoll_create1(EPOLL_CLOEXEC);
		epoll_event event{}, got{};
		event.events = EPOLLIN;
		ASSERT_EQ(epoll_ctl(set, EPOLL_CTL_ADD, ring.fd, &event), 0);
		EXPECT_EQ(epoll_wait(set, &got, 1, 20), 0);
		ASSERT_TRUE(ring.push(touch(0)) && ring.push(touch(0)));
		if (!ring.threaded()) {
			in.events = POLLOUT;
			EXPECT_EQ(poll(&in, 1, 0), 0);
		}
		// Poll queues: nobody polls now, and it comes all the same.
		ASSERT_EQ(ring.threaded() ? ring.go() : ring.enter(2), 0);
		EXPECT_EQ(epoll_wait(set, &got, 1, 10000), 1);
		EXPECT_EQ(got.events, uint32_t{EPOLLIN});
		in.events = POLLOUT;
		EXPECT_EQ(poll(&in, 1, 10000), 1);
		close(set);
	}
}

TEST_F(Rings, AFullCompletionRing)
{
	for (uint32_t flags : all_flags) {
		Ring ring(fd, 512, 4, flags);
		ASSERT_TRUE(static_cast<bool>(ring));
		for (uint64_t i = 0; i < 500; i++)
			ASSERT_TRUE(ring.push(touch(8, i)));
		ASSERT_EQ(ring.threaded() ? ring.go() : ring.enter(500), 0);
		std::vector<unsigned> seen(500);
		size_t got = 0;
		for (int idle = 0; got < 500 && idle < 10000; idle++) {
			kdirect_completion c;
			while (ring.pop(c)) {
				ASSERT_LT(c.user_data, 500u);
				EXPECT_EQ(c.result, 8);
				seen[c.user_data]++;
				got++;
				idle = 0;
			}
			int err = ring.threaded() ? ring.go() : ring.enter(500);
			ASSERT_TRUE(!err || err == -EAGAIN) << err;
			if (!ring.pop(c))
				usleep(100);
			else
				seen[c.user_data]++, got++;
		}
		EXPECT_EQ(seen, std::vector<unsigned>(500, 1));
		EXPECT_FALSE(ring.state() & KDIRECT_RING_CQ_BEHIND);
	}
}

// Two threads at the same ring, and a third that writes nonsense into it.
TEST_F(Rings, HostileIndexes)
{
	for (uint32_t flags : all_flags) {
		Ring ring(fd, 16, 16, flags, 100000);
		ASSERT_TRUE(static_cast<bool>(ring));
		std::vector<char> memory(64 * page);
		ASSERT_EQ(set_buffer(fd, 0, memory.data(), memory.size()), 0);
		std::atomic<bool> stop{false};
		std::vector<std::thread> users;
		for (unsigned t = 0; t < 2; t++)
			users.emplace_back([&, t] {
				uint64_t x = 88172645463325252ULL + t;
				auto next = [&] { return x ^= x << 13, x ^= x >> 7, x ^= x << 17; };
				for (unsigned i = 0; i < 1500 / few(); i++) {
					(void)ring.push(fixed(next() % 2, 0, next() % 300000,
							      next() % 9000, next() % size));
					int err = ring.enter(ring.threaded() ? 0 : next() % 40,
							     next() % 17, 0, next() % 200000);
					EXPECT_TRUE(!err || err == -EAGAIN || err == -EBADMSG ||
						    err == -ETIMEDOUT)
						<< err;
				}
			});
		std::thread scribbler([&] {
			uint64_t x = 99;
			auto next = [&] { return x ^= x << 13, x ^= x >> 7, x ^= x << 17; };
			while (!stop) {
				uint32_t value = uint32_t(next() % 3 ? next() % 40 : next());
				switch (next() % 4) {
				case 0: ring.sq_tail() += value; break;
				case 1: ring.cq_head() = value; break;
				default: {
					// not at addresses of ours: there are none in fixed ones
					uint32_t at = uint32_t(next() % ring.setup.descs) & ~3U;
					ring.word(at) = value;
				}
				}
				sched_yield();
			}
		});
		for (std::thread &user : users)
			user.join();
		stop = true;
		scribbler.join();
		int other = open(device.c_str(), O_RDWR);
		EXPECT_EQ(run(other, {touch(0)}).size(), 1u);
		close(other);
	}
}

// Closed with everything under way; the thread is gone with it.
TEST_F(Rings, ClosedUnderLoad)
{
	std::vector<char> memory(mib);
	for (int round = 0; round < 12; round++) {
		int own = open(device.c_str(), O_RDWR);
		ASSERT_EQ(set_buffer(own, 0, memory.data(), mib), 0);
		Ring ring(own, 256, 256, all_flags[round % 4]);
		ASSERT_TRUE(static_cast<bool>(ring));
		for (uint64_t i = 0; i < 250; i++)
			ring.push(i % 2 ? fixed(i % 4 == 1, 0, i * page, 20000, i * page)
					: transfer(false, memory.data(), 20000, 0));
		ring.threaded() ? ring.go() : ring.enter(250);
		usleep(unsigned(round) * 500);
		if (round % 2)
			close(own);
		ring = Ring();
		EXPECT_EQ(threads(), 0u);
		if (round % 2)
			continue;
		// what it did not get is here
		Completions out;
		int err;
		while (!(err = reap(own, out, 1, 0, 300000000)))
			;
		EXPECT_EQ(err, -ETIMEDOUT);
		close(own);
	}
}

} // namespace

int main(int argc, char **argv)
{
	testing::InitGoogleTest(&argc, argv);
	if (argc != 3) {
		std::fprintf(stderr, "usage: rings_test DEVICE SIZE\n");
		return 2;
	}
	device = argv[1];
	size = std::stoull(argv[2]);
	return RUN_ALL_TESTS();
}
