// SPDX-License-Identifier: GPL-2.0-only
// What is done with a node.
#include "fail_nth.h"

#include <fcntl.h>
#include <kdirect.h>
#include <liburing.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/select.h>
#include <sys/uio.h>
#include <unistd.h>

namespace
{

constexpr size_t small = 100, large = 200000;

// Both ends, and messages between them. The memory is there before anything fails.
struct Ends {
	explicit Ends(const Target &target)
		: a(open(target.node_a, O_RDWR | O_CLOEXEC)),
		  b(open(target.node_b, O_RDWR | O_CLOEXEC | O_NONBLOCK)), out(1 << 20), in(1 << 20)
	{
		if (a < 0 || b < 0)
			die("%s, %s: %s", target.node_a, target.node_b, errno_name(errno));
	}

	// What `from` has: a length, or an errno behind a minus sign.
	ssize_t get(int from, int patience_ms)
	{
		pollfd ready{from, POLLIN, 0};
		if (poll(&ready, 1, patience_ms) != 1)
			return -EAGAIN;
		std::fill(in.begin(), in.end(), 0);
		ssize_t n = read(from, in.data(), in.size());
		return n < 0 ? -errno : n;
	}
	void fresh(size_t len) { fill(out.data(), len, ++number); }
	bool same(size_t len) const { return !std::memcmp(out.data(), in.data(), len); }

	// After a write of `len`: all of it is there, or nothing is.
	std::string written(int err, size_t len)
	{
		ssize_t n = get(b, err ? 0 : 10000);
		if (err)
			return n == -EAGAIN ? "" : "a message came of a write that failed";
		if (n != ssize_t(len))
			return "a message of " + std::to_string(len) + " bytes came as " +
			       std::to_string(n);
		return same(len) ? "" : "the content differs";
	}
	void offer(size_t len)
	{
		fresh(len);
		fcntl(b, F_SETFL, 0);
		if (write(b, out.data(), len) != ssize_t(len))
			die("write: %s", errno_name(errno));
		fcntl(b, F_SETFL, O_NONBLOCK);
		pollfd ready{a, POLLIN, 0};
		if (poll(&ready, 1, 20000) != 1)
			die("a message did not arrive");
		std::fill(in.begin(), in.end(), 0);
	}
	// After a read of all: it is in `in`, or still to be read.
	std::string taken(int err, size_t len)
	{
		if (err) {
			ssize_t n = get(a, 0);
			if (n != ssize_t(len))
				return "after a read that failed there are " + std::to_string(n) +
				       " bytes of " + std::to_string(len);
		}
		if (!same(len))
			return "the content differs";
		return get(a, 0) == -EAGAIN ? "" : "and there is more";
	}

	const int a, b;
	Bytes out, in;
	uint64_t number = 0;
};

int result(ssize_t n)
{
	return n < 0 ? errno : 0;
}

Operation writing(const std::string &name, Ends &ends, size_t len,
		  const std::function<int(Ends &, size_t)> &run, std::vector<int> errnos = {})
{
	return {name, [&ends, len] { ends.fresh(len); },
		[&ends, len, run] { return run(ends, len); },
		[&ends, len](int err) { return ends.written(err, len); }, std::move(errnos)};
}

Operation reading(const std::string &name, Ends &ends, size_t len,
		  const std::function<int(Ends &, size_t)> &run, std::vector<int> errnos = {})
{
	return {name, [&ends, len] { ends.offer(len); },
		[&ends, len, run] { return run(ends, len); },
		[&ends, len](int err) { return ends.taken(err, len); }, std::move(errnos)};
}

Operation plain(const std::string &name, const std::function<int()> &run,
		std::vector<int> errnos = {})
{
	return {name, [] {}, run, [](int) { return std::string(); }, std::move(errnos)};
}

// A transfer in pieces, which nobody can pin.
int vectored(Ends &ends, size_t len, bool out, int flags)
{
	uint8_t *mem = out ? ends.out.data() : ends.in.data();
	iovec vecs[12];
	size_t piece = len / 12;
	for (unsigned i = 0; i < 12; i++)
		vecs[i] = {mem + i * piece, i < 11 ? piece : len - 11 * piece};
	return result(out ? pwritev2(ends.a, vecs, 12, -1, flags)
			  : preadv2(ends.a, vecs, 12, -1, flags));
}

int through_ring(Ends &ends, size_t len, bool out, io_uring &ring)
{
	io_uring_sqe *sqe = io_uring_get_sqe(&ring);
	if (out)
		io_uring_prep_write(sqe, ends.a, ends.out.data(), unsigned(len), uint64_t(-1));
	else
		io_uring_prep_read(sqe, ends.a, ends.in.data(), unsigned(len), uint64_t(-1));
	// What was not taken is tried again: it would do the work a second time.
	for (int ret; (ret = io_uring_submit(&ring)) < 1;)
		if (ret < 0 && ret != -EAGAIN && ret != -ENOMEM && ret != -EFAULT)
			die("io_uring_submit: %s", errno_name(-ret));
	io_uring_cqe *cqe;
	while (io_uring_peek_cqe(&ring, &cqe))
		usleep(1000);
	int res = cqe->res;
	io_uring_cqe_seen(&ring, cqe);
	return res < 0 ? -res : 0;
}

} // namespace

std::vector<Operation> file_operations(const Target &target)
{
	static Ends ends(target);
	static int fd = -1;
	static io_uring ring;
	if (int err = io_uring_queue_init(4, &ring, 0))
		die("io_uring: %s", errno_name(-err));
	auto simple_write = [](Ends &e, size_t len) {
		return result(write(e.a, e.out.data(), len));
	};
	auto simple_read = [](Ends &e, size_t len) { return result(read(e.a, e.in.data(), len)); };
	std::vector<Operation> list;

	list.push_back({"open",
			[] {},
			[&target] { return result(fd = open(target.node_a, O_RDWR | O_CLOEXEC)); },
			[](int err) {
				if (!err)
					close(fd);
				return std::string();
			},
			{}});
	list.push_back({"close",
			[&target] { fd = open(target.node_a, O_RDWR | O_CLOEXEC); },
			[] { return result(close(fd)); },
			[](int) { return std::string(fcntl(fd, F_GETFD) < 0 ? "" : "is open"); },
			{}});
	list.push_back(writing("write small", ends, small, simple_write));
	list.push_back(writing("write large", ends, large, simple_write));
	list.push_back(writing("write large nonblocking", ends, large, [](Ends &e, size_t len) {
		fcntl(e.a, F_SETFL, O_NONBLOCK);
		int err = result(write(e.a, e.out.data(), len));
		fcntl(e.a, F_SETFL, 0);
		return err;
	}));
	list.push_back(writing("writev small", ends, small,
			       [](Ends &e, size_t len) { return vectored(e, len, true, 0); }));
	list.push_back(writing("writev large", ends, large,
			       [](Ends &e, size_t len) { return vectored(e, len, true, 0); }));
	list.push_back(writing("write polling", ends, small, [](Ends &e, size_t len) {
		return vectored(e, len, true, RWF_HIPRI);
	}));
	list.push_back(writing("ring write small", ends, small, [](Ends &e, size_t len) {
		return through_ring(e, len, true, ring);
	}));
	list.push_back(writing("ring write large", ends, large, [](Ends &e, size_t len) {
		return through_ring(e, len, true, ring);
	}));
	list.push_back(reading("read small", ends, small, simple_read));
	list.push_back(reading("read large", ends, large, simple_read));
	list.push_back(reading("readv small", ends, small,
			       [](Ends &e, size_t len) { return vectored(e, len, false, 0); }));
	list.push_back(reading("readv large", ends, large,
			       [](Ends &e, size_t len) { return vectored(e, len, false, 0); }));
	list.push_back(reading("read polling", ends, small, [](Ends &e, size_t len) {
		return vectored(e, len, false, RWF_HIPRI);
	}));
	list.push_back(reading("ring read", ends, large, [](Ends &e, size_t len) {
		return through_ring(e, len, false, ring);
	}));
	list.push_back(plain("poll", [] {
		pollfd p{ends.a, POLLIN | POLLOUT, 0};
		return result(poll(&p, 1, 1));
	}));
	list.push_back(plain("select", [] {
		fd_set set;
		FD_ZERO(&set);
		FD_SET(ends.a, &set);
		timeval time{0, 1000};
		return result(select(ends.a + 1, &set, nullptr, nullptr, &time));
	}));
	list.push_back(plain("epoll", [] {
		int set = epoll_create1(EPOLL_CLOEXEC);
		epoll_event event{EPOLLIN | EPOLLOUT, {}};
		int err = set < 0 || epoll_ctl(set, EPOLL_CTL_ADD, ends.a, &event) ||
					  epoll_wait(set, &event, 1, 0) < 0
				  ? errno
				  : 0;
		if (set >= 0)
			close(set);
		return err;
	}));
	list.push_back(plain("info", [] {
		kdirect_info info;
		return result(ioctl(ends.a, KDIRECT_IOC_INFO, &info));
	}));
	list.push_back(plain("flags", [] {
		uint32_t flags = 0;
		return ioctl(ends.a, KDIRECT_IOC_SET_FLAGS, &flags) ||
				       ioctl(ends.a, KDIRECT_IOC_GET_FLAGS, &flags)
			       ? errno
			       : 0;
	}));
	list.push_back(plain("ping", [] {
		kdirect_ping ping{};
		ping.size = 64;
		ping.timeout_ns = 20000000000;
		return result(ioctl(ends.a, KDIRECT_IOC_PING, &ping));
	}));
	return list;
}
