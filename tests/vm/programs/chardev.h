// SPDX-License-Identifier: GPL-2.0-only
// Fixture of the tests of /dev/kdirect/CHANNEL: both nodes of a channel that
// connects a machine with itself. Each test begins and ends with empty queues.
#pragma once

#include "common.h"

#include <fcntl.h>
#include <functional>
#include <gtest/gtest.h>
#include <kdirect.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

using Bytes = std::vector<uint8_t>;

extern const char *node_a, *node_b;

constexpr size_t page = 4096;

// What a call did: bytes, or the errno behind a minus sign.
inline ssize_t outcome(ssize_t n)
{
	return n < 0 ? -errno : n;
}

class File
{
public:
	explicit File(const char *node, int flags = O_RDWR) : fd(open(node, flags | O_CLOEXEC))
	{
		if (fd < 0)
			die("%s: %s", node, errno_name(errno));
	}
	~File() { close(fd); }
	File(const File &) = delete;
	File &operator=(const File &) = delete;

	ssize_t send(const void *bytes, size_t len) const { return outcome(write(fd, bytes, len)); }
	ssize_t send(const Bytes &bytes) const { return send(bytes.data(), bytes.size()); }
	ssize_t receive(void *bytes, size_t len) const { return outcome(read(fd, bytes, len)); }
	// One whole message; empty where the call failed.
	Bytes receive() const
	{
		Bytes bytes(max + 1);
		ssize_t n = receive(bytes.data(), bytes.size());
		bytes.resize(n > 0 ? size_t(n) : 0);
		return bytes;
	}
	ssize_t vectored(bool out, const void *bytes, size_t len, int flags) const
	{
		iovec vec{const_cast<void *>(bytes), len};
		return outcome(out ? pwritev2(fd, &vec, 1, -1, flags)
				   : preadv2(fd, &vec, 1, -1, flags));
	}
	// Which of `events` hold within the time.
	short ready(short events, int timeout_ms = 0) const
	{
		pollfd p{fd, events, 0};
		return ::poll(&p, 1, timeout_ms) < 0 ? short(-1) : p.revents;
	}
	void nonblocking(bool on) const { fcntl(fd, F_SETFL, on ? O_NONBLOCK : 0); }

	const int fd;
	static inline size_t max = 1 << 20;
};

class Chardev : public testing::Test
{
protected:
	void SetUp() override
	{
		alarm(60 * slow());
		ASSERT_EQ(ioctl(a.fd, KDIRECT_IOC_INFO, &info), 0);
		File::max = info.max_message;
		has_poll = info.poll_queues != 0;
		drain("before the test");
	}
	void TearDown() override
	{
		drain("after the test");
		// io_uring lets go of its own in the background.
		for (int i = 0; pinned() && i < 500; i++)
			usleep(10000);
		EXPECT_EQ(pinned(), 0u) << "pages are charged to us for nothing";
		alarm(0);
	}

	// KiB that are charged as pinned to this process.
	static unsigned pinned()
	{
		FILE *file = std::fopen("/proc/self/status", "r");
		char line[256];
		unsigned value = 0;
		while (file && std::fgets(line, sizeof(line), file))
			if (std::sscanf(line, "VmPin: %u", &value) == 1)
				break;
		if (file)
			std::fclose(file);
		return value;
	}

	void drain(const char *when)
	{
		for (const File *file : {&a, &b}) {
			Bytes bytes(info.max_message);
			file->nonblocking(true);
			ssize_t n;
			while ((n = file->receive(bytes.data(), bytes.size())) > 0)
				ADD_FAILURE() << when << " there is a message of " << n << " bytes";
			EXPECT_EQ(n, -EAGAIN) << when;
			file->nonblocking(false);
		}
	}

	// A blocking write of any size, and what the other end reads.
	void carry(const File &from, const File &to, const Bytes &bytes)
	{
		ssize_t sent = 0;
		std::thread writer([&] { sent = from.send(bytes); });
		Bytes got = to.receive();
		writer.join();
		ASSERT_EQ(sent, ssize_t(bytes.size()));
		ASSERT_EQ(got.size(), bytes.size());
		ASSERT_TRUE(got == bytes) << "content differs, " << bytes.size() << " bytes";
	}

	// Small messages until no more go out; how many. The peer may owe a part of the
	// credits, less than half of the depth; others may still be on their way.
	unsigned fill_up(const File &from, uint8_t first = 0)
	{
		from.nonblocking(true);
		unsigned count = 0;
		for (;;) {
			uint8_t byte = uint8_t(first + count);
			ssize_t n = from.send(&byte, 1);
			if (n == 1) {
				count++;
				continue;
			}
			EXPECT_EQ(n, -EAGAIN);
			int late_ms = count > info.depth / 2 ? 100 * int(slow()) : 20000;
			if (n != -EAGAIN || !(from.ready(POLLOUT, late_ms) & POLLOUT))
				break;
		}
		from.nonblocking(false);
		return count;
	}
	void expect_bytes(const File &to, unsigned count, uint8_t first = 0)
	{
		for (unsigned i = 0; i < count; i++) {
			Bytes got = to.receive();
			ASSERT_EQ(got.size(), 1u) << "message " << i;
			ASSERT_EQ(got[0], uint8_t(first + i)) << "message " << i;
		}
	}

	File a{node_a}, b{node_b};
	kdirect_info info{};
	bool has_poll = false;
};

// Pages, the last of which cannot be touched.
class Guarded
{
public:
	explicit Guarded(size_t good, size_t bad = page, int after = -1)
		: good_(good), total_(good + bad + (after > 0 ? size_t(after) : 0))
	{
		start = static_cast<uint8_t *>(mmap(nullptr, total_, PROT_READ | PROT_WRITE,
						    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
		if (start == MAP_FAILED)
			die("mmap: %s", errno_name(errno));
		mprotect(start + good, bad, PROT_NONE);
	}
	~Guarded() { munmap(start, total_); }
	Guarded(const Guarded &) = delete;
	Guarded &operator=(const Guarded &) = delete;
	uint8_t *end() const { return start + good_; } // the first bad byte

	uint8_t *start;

private:
	size_t good_, total_;
};

inline bool eventually(const std::function<bool()> &holds, int seconds = 20)
{
	for (int i = 0; i < seconds * 100; i++) {
		if (holds())
			return true;
		usleep(10000);
	}
	return false;
}

// The state letter of a thread, as in /proc/PID/stat.
inline char thread_state(pid_t tid)
{
	std::string path = "/proc/" + std::to_string(tid) + "/stat";
	FILE *file = std::fopen(path.c_str(), "r");
	if (!file)
		return 0;
	char state = 0;
	if (std::fscanf(file, "%*d (%*[^)]) %c", &state) != 1)
		state = 0;
	std::fclose(file);
	return state;
}

inline bool asleep(pid_t tid)
{
	char state = thread_state(tid);
	return state == 'S' || state == 'D';
}
