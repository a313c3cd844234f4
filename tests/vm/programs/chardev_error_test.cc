// SPDX-License-Identifier: GPL-2.0-only
// Bad memory, bad calls, signals.
#include "chardev.h"

#include <atomic>
#include <csignal>
#include <sys/syscall.h>

namespace
{

void on_signal(int) {}

void catch_signal(int flags)
{
	struct sigaction action {
	};
	action.sa_handler = on_signal;
	action.sa_flags = flags;
	sigaction(SIGUSR1, &action, nullptr);
}

// Runs a call in a thread, and sends that thread signals.
class Blocked
{
public:
	explicit Blocked(std::function<ssize_t()> call)
		: thread_([this, call] {
			  tid_ = pid_t(syscall(SYS_gettid));
			  result_ = call();
			  done_ = true;
		  })
	{
	}
	~Blocked()
	{
		if (thread_.joinable())
			thread_.join();
	}
	bool sleeps()
	{
		return eventually([&] { return tid_ && !done_ && asleep(tid_); });
	}
	void signal() { tgkill(getpid(), tid_, SIGUSR1); }
	bool done() const { return done_; }
	ssize_t result()
	{
		thread_.join();
		return result_;
	}

private:
	std::atomic<pid_t> tid_{0};
	std::atomic<bool> done_{false};
	std::atomic<ssize_t> result_{0};
	std::thread thread_;
};

} // namespace

// --- bad memory ------------------------------------------------------------------

TEST_F(Chardev, WriteFromBadMemorySendsNothing)
{
	for (size_t size : {size_t(2), size_t(2 * page), size_t(info.eager_limit + page),
			    size_t(info.max_message)}) {
		for (bool nonblocking : {false, true}) {
			SCOPED_TRACE(testing::Message() << size << " nonblocking " << nonblocking);
			size_t good = (size / 2 + page - 1) / page * page;
			Guarded memory(good, (size + page) / page * page);
			a.nonblocking(nonblocking);
			EXPECT_EQ(a.send(memory.end() - size / 2, size), -EFAULT);
			EXPECT_EQ(a.send(memory.end(), size), -EFAULT);
			EXPECT_EQ(a.send(nullptr, size), -EFAULT);
			a.nonblocking(false);
		}
	}
	EXPECT_EQ(b.ready(POLLIN), 0);
	EXPECT_EQ(a.send("next", 4), 4);
	EXPECT_EQ(b.receive().size(), 4u);
}

TEST_F(Chardev, WriteAcrossAHole)
{
	for (size_t size : {size_t(3 * page), size_t(info.eager_limit + 4 * page)}) {
		Guarded memory(page, page, int(size));
		EXPECT_EQ(a.send(memory.start, size), -EFAULT);
		munmap(memory.end(), page);
		EXPECT_EQ(a.send(memory.start, size), -EFAULT);
	}
	EXPECT_EQ(b.ready(POLLIN), 0);
}

TEST_F(Chardev, WriteFailsOften)
{
	// Each failure gives back its slot and credit, or the queue would fill up.
	Guarded memory(page);
	for (unsigned i = 0; i < info.depth * 4; i++)
		ASSERT_EQ(a.send(memory.end() - 1, 2), -EFAULT);
	Guarded large(page, info.max_message);
	for (unsigned i = 0; i < 40; i++)
		ASSERT_EQ(a.send(large.start, info.max_message), -EFAULT);
	carry(a, b, content(info.max_message, 1));
}

TEST_F(Chardev, VectorWithBadSecondPart)
{
	Guarded memory(page);
	Bytes bytes = content(info.max_message, 1);
	for (size_t size : {size_t(100), size_t(info.eager_limit + 1)}) {
		iovec vec[2] = {{bytes.data(), size}, {memory.end(), 100}};
		EXPECT_EQ(outcome(writev(a.fd, vec, 2)), -EFAULT);
		EXPECT_EQ(b.ready(POLLIN), 0);
		ssize_t sent = 0;
		size_t whole = size + 100;
		std::thread writer([&] { sent = a.send(bytes.data(), whole); });
		Bytes got(whole);
		vec[0].iov_base = got.data();
		ASSERT_TRUE(b.ready(POLLIN, 10000) & POLLIN);
		EXPECT_EQ(outcome(readv(b.fd, vec, 2)), -EFAULT);
		// Nothing of it is lost.
		EXPECT_EQ(b.receive(got.data(), whole), ssize_t(whole));
		writer.join();
		EXPECT_EQ(sent, ssize_t(whole));
		EXPECT_EQ(memcmp(got.data(), bytes.data(), whole), 0);
	}
}

TEST_F(Chardev, ReadIntoBadMemoryLosesNothing)
{
	for (size_t size : {size_t(2), size_t(2 * page), size_t(info.eager_limit + page),
			    size_t(info.max_message)}) {
		SCOPED_TRACE(size);
		Bytes bytes = content(size, size);
		ssize_t sent = 0;
		std::thread writer([&] { sent = a.send(bytes); });
		EXPECT_TRUE(b.ready(POLLIN, 10000) & POLLIN);
		size_t good = (size / 2 + page - 1) / page * page;
		Guarded memory(good, (size + page) / page * page);
		EXPECT_EQ(b.receive(memory.end() - size / 2, size), -EFAULT);
		EXPECT_EQ(b.receive(memory.end(), size), -EFAULT);
		EXPECT_EQ(b.receive(nullptr, size), -EFAULT);
		// The first half fits into what is good.
		EXPECT_EQ(b.receive(memory.end() - size / 2, size / 2), ssize_t(size / 2));
		EXPECT_EQ(memcmp(memory.end() - size / 2, bytes.data(), size / 2), 0);
		if (size / 2 > 1) {
			EXPECT_EQ(b.receive(memory.end() - 1, size), -EFAULT);
		}
		Bytes rest(size);
		EXPECT_EQ(b.receive(rest.data(), size), ssize_t(size - size / 2));
		EXPECT_EQ(memcmp(rest.data(), bytes.data() + size / 2, size - size / 2), 0);
		writer.join();
		EXPECT_EQ(sent, ssize_t(size));
	}
}

TEST_F(Chardev, ReadIntoReadOnlyMemory)
{
	void *memory = mmap(nullptr, page, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	ASSERT_EQ(a.send("text", 4), 4);
	EXPECT_EQ(b.receive(memory, page), -EFAULT);
	EXPECT_EQ(b.receive().size(), 4u);
	// Sending from there is fine, large or small, though it was never written.
	EXPECT_EQ(a.send(memory, page), ssize_t(page));
	EXPECT_EQ(b.receive(), Bytes(page));
	munmap(memory, page);
	memory = mmap(nullptr, 1 << 18, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	ssize_t sent = 0;
	std::thread writer([&] { sent = a.send(memory, 1 << 18); });
	EXPECT_TRUE(b.receive() == Bytes(1 << 18));
	writer.join();
	EXPECT_EQ(sent, 1 << 18);
	munmap(memory, 1 << 18);
}

// --- calls that are not for this device ---------------------------------------------

TEST_F(Chardev, OffsetsAreRefused)
{
	char byte = 0;
	EXPECT_EQ(outcome(pread(b.fd, &byte, 1, 0)), -ESPIPE);
	EXPECT_EQ(outcome(pwrite(a.fd, &byte, 1, 0)), -ESPIPE);
	EXPECT_EQ(outcome(lseek(a.fd, 0, SEEK_SET)), -ESPIPE);
	iovec vec{&byte, 1};
	EXPECT_EQ(outcome(preadv2(b.fd, &vec, 1, 0, 0)), -ESPIPE);
	EXPECT_EQ(outcome(pwritev2(a.fd, &vec, 1, 0, 0)), -ESPIPE);
}

TEST_F(Chardev, MappingIsRefused)
{
	EXPECT_EQ(mmap(nullptr, page, PROT_READ, MAP_SHARED, a.fd, 0), MAP_FAILED);
	EXPECT_EQ(errno, ENODEV);
	EXPECT_EQ(outcome(ftruncate(a.fd, 0)), -EINVAL);
	EXPECT_EQ(outcome(fsync(a.fd)), -EINVAL);
}

TEST_F(Chardev, OpenModes)
{
	File reads(node_a, O_RDONLY), writes(node_a, O_WRONLY);
	EXPECT_EQ(reads.send("x", 1), -EBADF);
	EXPECT_EQ(writes.receive().size(), 0u);
	char byte;
	EXPECT_EQ(writes.receive(&byte, 1), -EBADF);
	EXPECT_EQ(writes.send("x", 1), 1);
	EXPECT_EQ(b.receive().size(), 1u);
	EXPECT_EQ(b.send("y", 1), 1);
	EXPECT_EQ(reads.receive().size(), 1u);
}

TEST_F(Chardev, UnknownIoctls)
{
	uint32_t value = 0;
	EXPECT_EQ(outcome(ioctl(a.fd, _IO(KDIRECT_IOC_MAGIC, 0))), -ENOTTY);
	EXPECT_EQ(outcome(ioctl(a.fd, _IO(KDIRECT_IOC_MAGIC, 99))), -ENOTTY);
	EXPECT_EQ(outcome(ioctl(a.fd, _IOW(KDIRECT_IOC_MAGIC, 1, uint64_t), &value)), -ENOTTY);
	EXPECT_EQ(outcome(ioctl(a.fd, _IOR(KDIRECT_IOC_MAGIC, 1, uint32_t), &value)), -ENOTTY);
	EXPECT_EQ(outcome(ioctl(a.fd, TCGETS, &value)), -ENOTTY);
}

TEST_F(Chardev, FlagsOfAFile)
{
	uint32_t flags = 7;
	ASSERT_EQ(ioctl(a.fd, KDIRECT_IOC_GET_FLAGS, &flags), 0);
	EXPECT_EQ(flags, 0u);
	for (unsigned bit = 0; bit < 32; bit++) {
		flags = 1U << bit;
		if (flags & KDIRECT_OPEN_FLAGS)
			flags = KDIRECT_OPEN_BUSY | KDIRECT_OPEN_HYBRID;
		EXPECT_EQ(outcome(ioctl(a.fd, KDIRECT_IOC_SET_FLAGS, &flags)), -EINVAL) << flags;
	}
	flags = KDIRECT_OPEN_ADAPTIVE;
	EXPECT_EQ(outcome(ioctl(a.fd, KDIRECT_IOC_SET_FLAGS, &flags)), has_poll ? 0 : -EOPNOTSUPP);
	flags = KDIRECT_OPEN_POLL;
	ssize_t result = outcome(ioctl(a.fd, KDIRECT_IOC_SET_FLAGS, &flags));
	EXPECT_EQ(result, has_poll ? 0 : -EOPNOTSUPP);
	if (has_poll) {
		int copy = dup(a.fd);
		File other(node_a);
		EXPECT_EQ(ioctl(copy, KDIRECT_IOC_GET_FLAGS, &flags), 0);
		EXPECT_EQ(flags, KDIRECT_OPEN_POLL);
		EXPECT_EQ(ioctl(other.fd, KDIRECT_IOC_GET_FLAGS, &flags), 0);
		EXPECT_EQ(flags, 0u);
		close(copy);
		flags = 0;
		EXPECT_EQ(ioctl(a.fd, KDIRECT_IOC_SET_FLAGS, &flags), 0);
	}
	EXPECT_EQ(outcome(ioctl(a.fd, KDIRECT_IOC_SET_FLAGS, nullptr)), -EFAULT);
	EXPECT_EQ(outcome(ioctl(a.fd, KDIRECT_IOC_GET_FLAGS, nullptr)), -EFAULT);
	EXPECT_EQ(outcome(ioctl(a.fd, KDIRECT_IOC_INFO, nullptr)), -EFAULT);
	EXPECT_EQ(outcome(ioctl(a.fd, KDIRECT_IOC_PING, nullptr)), -EFAULT);
	Guarded memory(page);
	EXPECT_EQ(outcome(ioctl(a.fd, KDIRECT_IOC_INFO, memory.end() - 8)), -EFAULT);
}

TEST_F(Chardev, Pings)
{
	auto ping = [&](auto change, int fd) {
		kdirect_ping p{};
		p.size = 64;
		change(p);
		ssize_t result = outcome(ioctl(fd, KDIRECT_IOC_PING, &p));
		if (result == 0) {
			EXPECT_GT(p.rtt_ns, 0u);
			EXPECT_GE(p.queue, 1u);
			EXPECT_LE(p.queue, info.queues + info.poll_queues);
		}
		return result;
	};
	using P = kdirect_ping;
	for (int fd : {a.fd, b.fd}) {
		EXPECT_EQ(ping([](P &) {}, fd), 0);
		EXPECT_EQ(ping([](P &p) { p.size = 1; }, fd), 0);
		EXPECT_EQ(ping([&](P &p) { p.size = info.eager_limit; }, fd), 0);
		EXPECT_EQ(ping([](P &p) { p.timeout_ns = 60000000000; }, fd), 0);
		EXPECT_EQ(ping([](P &p) { p.size = 0; }, fd), -EINVAL);
		EXPECT_EQ(ping([&](P &p) { p.size = info.eager_limit + 1; }, fd), -EMSGSIZE);
		EXPECT_EQ(ping([](P &p) { p.size = UINT32_MAX; }, fd), -EMSGSIZE);
		EXPECT_EQ(ping([](P &p) { p.timeout_ns = 60000000001; }, fd), -EINVAL);
		EXPECT_EQ(ping([](P &p) { p.timeout_ns = UINT64_MAX; }, fd), -EINVAL);
		for (unsigned i = 0; i < 3; i++)
			EXPECT_EQ(ping([&](P &p) { p.reserved[i] = 1; }, fd), -EINVAL);
		for (unsigned bit = 1; bit < 32; bit++)
			EXPECT_EQ(ping([&](P &p) { p.flags = 1U << bit; }, fd), -EINVAL);
		EXPECT_EQ(ping([](P &p) { p.flags = KDIRECT_PING_POLL; }, fd),
			  has_poll ? 0 : -EOPNOTSUPP);
		for (unsigned i = 0; i < info.depth * 2 + 5; i++)
			ASSERT_EQ(ping([](P &) {}, fd), 0);
	}
	File reads(node_a, O_RDONLY), writes(node_a, O_WRONLY);
	EXPECT_EQ(ping([](P &) {}, reads.fd), -EPERM);
	EXPECT_EQ(ping([](P &) {}, writes.fd), -EPERM);
}

// A ping does not wait behind a reader who does not come.
TEST_F(Chardev, PingPastAFullQueue)
{
	unsigned count = fill_up(a);
	kdirect_ping p{};
	p.size = 64;
	p.timeout_ns = 10000000000;
	EXPECT_EQ(outcome(ioctl(a.fd, KDIRECT_IOC_PING, &p)), 0);
	EXPECT_EQ(outcome(ioctl(b.fd, KDIRECT_IOC_PING, &p)), 0);
	expect_bytes(b, count);
}

TEST_F(Chardev, ManyPingsAtOnce)
{
	std::vector<std::thread> threads;
	for (int t = 0; t < 6; t++)
		threads.emplace_back([&, t] {
			for (int i = 0; i < 30; i++) {
				kdirect_ping p{};
				p.size = 1 + uint32_t(i) * 10;
				p.timeout_ns = 20000000000;
				if (has_poll && t % 3 == 0)
					p.flags = KDIRECT_PING_POLL;
				EXPECT_EQ(outcome(ioctl(t % 2 ? a.fd : b.fd, KDIRECT_IOC_PING, &p)),
					  0);
			}
		});
	for (std::thread &thread : threads)
		thread.join();
}

// --- signals -----------------------------------------------------------------------

TEST_F(Chardev, SignalEndsARead)
{
	catch_signal(0);
	char byte;
	Blocked reader([&] { return b.receive(&byte, 1); });
	ASSERT_TRUE(reader.sleeps());
	while (!reader.done()) {
		reader.signal();
		usleep(10000);
	}
	EXPECT_EQ(reader.result(), -EINTR);
	EXPECT_EQ(a.send("x", 1), 1);
	EXPECT_EQ(b.receive().size(), 1u);
}

TEST_F(Chardev, SignalRestartsARead)
{
	catch_signal(SA_RESTART);
	char byte = 0;
	Blocked reader([&] { return b.receive(&byte, 1); });
	ASSERT_TRUE(reader.sleeps());
	for (int i = 0; i < 5; i++) {
		reader.signal();
		ASSERT_TRUE(reader.sleeps());
	}
	EXPECT_EQ(a.send("r", 1), 1);
	EXPECT_EQ(reader.result(), 1);
	EXPECT_EQ(byte, 'r');
}

TEST_F(Chardev, SignalEndsAWrite)
{
	catch_signal(0);
	unsigned count = fill_up(a);
	char byte = 'z';
	Blocked writer([&] { return a.send(&byte, 1); });
	ASSERT_TRUE(writer.sleeps());
	while (!writer.done()) {
		writer.signal();
		usleep(10000);
	}
	EXPECT_EQ(writer.result(), -EINTR);
	expect_bytes(b, count); // and not one more: drain() would find it
}

TEST_F(Chardev, SignalEndsAPollingRead)
{
	if (!has_poll)
		GTEST_SKIP() << "no poll queue";
	catch_signal(0);
	char byte;
	std::atomic<bool> running{false};
	Blocked reader([&] {
		running = true;
		return b.vectored(false, &byte, 1, RWF_HIPRI);
	});
	while (!running)
		usleep(1000);
	while (!reader.done()) {
		reader.signal();
		usleep(10000);
	}
	EXPECT_EQ(reader.result(), -EINTR);
}

// Once a large message is posted, an ordinary signal does not end the wait.
TEST_F(Chardev, SignalsDoNotBreakALargeWrite)
{
	catch_signal(0);
	constexpr unsigned count = 12; // more than the receiver reads ahead
	Bytes bytes = content(info.max_message, 1);
	std::atomic<unsigned> whole{0};
	Blocked writer([&] {
		while (whole < count) {
			ssize_t n = a.send(bytes);
			if (n == ssize_t(bytes.size()))
				whole++;
			else if (n != -EINTR)
				return n;
		}
		return ssize_t(0);
	});
	ASSERT_TRUE(writer.sleeps());
	for (unsigned i = 0; i < count; i++) {
		for (int s = 0; s < 5; s++) {
			writer.signal();
			usleep(2000);
		}
		ASSERT_TRUE(b.receive() == bytes) << i;
	}
	EXPECT_EQ(writer.result(), 0);
}

// The message stays on its way with the pages of the dead; nothing hangs.
TEST_F(Chardev, KillInABlockedLargeWrite)
{
	auto *sent = static_cast<std::atomic<unsigned> *>(
		mmap(nullptr, page, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
	Bytes bytes = content(info.max_message, 5);
	for (int round = 0; round < 3; round++) {
		*sent = 0;
		pid_t child = fork();
		if (child == 0) {
			while (a.send(bytes) == ssize_t(bytes.size()))
				++*sent;
			_exit(1);
		}
		// It stops when what it sent is not read.
		ASSERT_TRUE(eventually([&] {
			unsigned before = *sent;
			usleep(300000);
			return before && *sent == before && asleep(child);
		}));
		kill(child, SIGKILL);
		int status = 0;
		ASSERT_TRUE(
			eventually([&] { return waitpid(child, &status, WNOHANG) == child; }, 10));
		EXPECT_TRUE(WIFSIGNALED(status));
		// And the one that it was killed in, perhaps.
		unsigned got = 0;
		for (; b.ready(POLLIN, got < *sent ? 20000 : 1000 * int(slow())) & POLLIN; got++)
			ASSERT_TRUE(b.receive() == bytes);
		EXPECT_GE(got, *sent);
		EXPECT_LE(got, *sent + 1);
	}
	munmap(sent, page);
}

TEST_F(Chardev, KillABlockedReaderAndWriter)
{
	unsigned count = fill_up(a);
	pid_t children[2];
	for (int i = 0; i < 2; i++) {
		children[i] = fork();
		if (children[i] == 0) {
			char byte = 1;
			_exit(i ? a.send(&byte, 1) == 1 : a.receive(&byte, 1) == 1);
		}
		ASSERT_TRUE(eventually([&] { return asleep(children[i]); }));
	}
	for (pid_t child : children) {
		kill(child, SIGKILL);
		int status = 0;
		ASSERT_TRUE(
			eventually([&] { return waitpid(child, &status, WNOHANG) == child; }, 10));
		EXPECT_TRUE(WIFSIGNALED(status));
	}
	expect_bytes(b, count);
}
