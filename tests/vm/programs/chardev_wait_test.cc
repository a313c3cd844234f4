// SPDX-License-Identifier: GPL-2.0-only
// Ways to wait: not at all, poll, epoll, polling the queue, io_uring.
#include "chardev.h"

#include <atomic>
#include <liburing.h>
#include <sys/epoll.h>

// --- not at all ---------------------------------------------------------------------

TEST_F(Chardev, NonblockingRead)
{
	char byte;
	b.nonblocking(true);
	EXPECT_EQ(b.receive(&byte, 1), -EAGAIN);
	b.nonblocking(false);
	EXPECT_EQ(b.vectored(false, &byte, 1, RWF_NOWAIT), -EAGAIN);
	EXPECT_EQ(a.send("x", 1), 1);
	ASSERT_TRUE(b.ready(POLLIN, 10000) & POLLIN);
	EXPECT_EQ(b.vectored(false, &byte, 1, RWF_NOWAIT), 1);
}

TEST_F(Chardev, NonblockingWrite)
{
	unsigned count = fill_up(a);
	EXPECT_EQ(a.vectored(true, "x", 1, RWF_NOWAIT), -EAGAIN);
	Bytes large(info.max_message);
	EXPECT_EQ(a.vectored(true, large.data(), large.size(), RWF_NOWAIT), -EAGAIN);
	expect_bytes(b, count);
	ASSERT_TRUE(a.ready(POLLOUT, 10000) & POLLOUT);
	EXPECT_EQ(a.vectored(true, "x", 1, RWF_NOWAIT), 1);
	EXPECT_EQ(b.receive().size(), 1u);
}

// --- poll and epoll ------------------------------------------------------------------

TEST_F(Chardev, PollReadiness)
{
	short both = POLLIN | POLLOUT;
	EXPECT_EQ(a.ready(both), POLLOUT);
	EXPECT_EQ(b.ready(both), POLLOUT);
	EXPECT_EQ(a.send("12", 2), 2);
	EXPECT_EQ(b.ready(POLLIN, 10000), POLLIN);
	EXPECT_EQ(b.ready(both), both);
	char byte;
	EXPECT_EQ(b.receive(&byte, 1), 1);
	EXPECT_EQ(b.ready(POLLIN), POLLIN) << "half a message is left";
	EXPECT_EQ(b.receive(&byte, 1), 1);
	EXPECT_EQ(b.ready(POLLIN), 0);
}

TEST_F(Chardev, PollOutAfterThePeerDrains)
{
	for (int round = 0; round < 3; round++) {
		unsigned count = fill_up(a);
		ASSERT_EQ(a.ready(POLLOUT), 0);
		short revents = 0;
		std::thread poller([&] { revents = a.ready(POLLOUT, 20000); });
		expect_bytes(b, count);
		poller.join();
		ASSERT_EQ(revents, POLLOUT);
		char byte = 0;
		a.nonblocking(true);
		EXPECT_EQ(a.send(&byte, 1), 1);
		a.nonblocking(false);
		EXPECT_EQ(b.receive().size(), 1u);
	}
}

TEST_F(Chardev, PollWakesAReader)
{
	for (int round = 0; round < 20; round++) {
		short revents = 0;
		std::thread poller([&] { revents = b.ready(POLLIN, 20000); });
		if (round % 2)
			usleep(2000);
		EXPECT_EQ(a.send("x", 1), 1);
		poller.join();
		ASSERT_EQ(revents, POLLIN);
		EXPECT_EQ(b.receive().size(), 1u);
	}
}

TEST_F(Chardev, PollWakesForALargeMessage)
{
	ssize_t sent = 0;
	Bytes bytes = content(info.max_message, 1);
	std::thread writer([&] { sent = a.send(bytes); });
	EXPECT_EQ(b.ready(POLLIN, 20000), POLLIN);
	b.nonblocking(true);
	EXPECT_TRUE(b.receive() == bytes);
	b.nonblocking(false);
	writer.join();
	EXPECT_EQ(sent, ssize_t(bytes.size()));
}

TEST_F(Chardev, EpollEdges)
{
	int epoll = epoll_create1(EPOLL_CLOEXEC);
	epoll_event event{};
	event.events = EPOLLIN | EPOLLET;
	ASSERT_EQ(epoll_ctl(epoll, EPOLL_CTL_ADD, b.fd, &event), 0);
	EXPECT_EQ(epoll_wait(epoll, &event, 1, 0), 0);
	for (int round = 0; round < 10; round++) {
		EXPECT_EQ(a.send("x", 1), 1);
		ASSERT_EQ(epoll_wait(epoll, &event, 1, 20000), 1) << "an edge for each message";
		EXPECT_EQ(event.events, uint32_t(EPOLLIN));
		EXPECT_EQ(b.receive().size(), 1u);
		ASSERT_EQ(epoll_wait(epoll, &event, 1, 0), 0) << "and no more than that";
	}
	close(epoll);
}

TEST_F(Chardev, EpollEdgeForRoom)
{
	int epoll = epoll_create1(EPOLL_CLOEXEC);
	epoll_event event{};
	event.events = EPOLLOUT | EPOLLET;
	ASSERT_EQ(epoll_ctl(epoll, EPOLL_CTL_ADD, a.fd, &event), 0);
	EXPECT_EQ(epoll_wait(epoll, &event, 1, 1000), 1);
	unsigned count = fill_up(a);
	while (epoll_wait(epoll, &event, 1, 100) == 1 && a.ready(POLLOUT))
		count += fill_up(a, uint8_t(count));
	expect_bytes(b, count);
	ASSERT_EQ(epoll_wait(epoll, &event, 1, 20000), 1);
	EXPECT_TRUE(event.events & EPOLLOUT);
	close(epoll);
}

// Nobody polls the poll queues: poll() itself must arm them.
TEST_F(Chardev, PollWithoutAPollingReader)
{
	if (!has_poll)
		GTEST_SKIP() << "no poll queue";
	for (int round = 0; round < 10; round++) {
		ASSERT_EQ(a.vectored(true, "x", 1, RWF_HIPRI), 1);
		ASSERT_EQ(b.ready(POLLIN, 20000), POLLIN);
		EXPECT_EQ(b.receive().size(), 1u);
	}
}

// --- polling the queue ---------------------------------------------------------------

TEST_F(Chardev, HighPriority)
{
	char byte = 0;
	if (!has_poll) {
		EXPECT_EQ(a.vectored(true, "x", 1, RWF_HIPRI), -EOPNOTSUPP);
		EXPECT_EQ(b.vectored(false, &byte, 1, RWF_HIPRI), -EOPNOTSUPP);
		return;
	}
	for (int round = 0; round < 50; round++) {
		ASSERT_EQ(a.vectored(true, "x", 1, RWF_HIPRI), 1);
		ASSERT_EQ(b.vectored(false, &byte, 1, RWF_HIPRI), 1);
		ASSERT_EQ(b.vectored(true, "y", 1, RWF_HIPRI), 1);
		ASSERT_EQ(a.vectored(false, &byte, 1, RWF_HIPRI), 1);
	}
	EXPECT_EQ(b.vectored(false, &byte, 1, RWF_HIPRI | RWF_NOWAIT), -EAGAIN);
}

// A polling reader hears of what comes over an interrupt queue, and the reverse.
TEST_F(Chardev, HighPriorityAndOrdinaryMix)
{
	if (!has_poll)
		GTEST_SKIP() << "no poll queue";
	char byte = 0;
	for (int round = 0; round < 20; round++) {
		ASSERT_EQ(a.vectored(true, "1", 1, round % 2 ? RWF_HIPRI : 0), 1);
		ASSERT_EQ(a.vectored(true, "2", 1, round % 2 ? 0 : RWF_HIPRI), 1);
		ASSERT_EQ(b.vectored(false, &byte, 1, round % 3 ? RWF_HIPRI : 0), 1);
		ASSERT_EQ(byte, '1') << "one order over all queues";
		ASSERT_EQ(b.vectored(false, &byte, 1, round % 3 ? 0 : RWF_HIPRI), 1);
		ASSERT_EQ(byte, '2');
	}
}

TEST_F(Chardev, PollingFile)
{
	if (!has_poll)
		GTEST_SKIP() << "no poll queue";
	File from(node_a), to(node_b);
	uint32_t flags = KDIRECT_OPEN_POLL;
	ASSERT_EQ(ioctl(from.fd, KDIRECT_IOC_SET_FLAGS, &flags), 0);
	ASSERT_EQ(ioctl(to.fd, KDIRECT_IOC_SET_FLAGS, &flags), 0);
	for (size_t size : {size_t(1), size_t(info.eager_limit), size_t(info.max_message)})
		for (int round = 0; round < 5; round++)
			carry(from, to, content(size, size));
	to.nonblocking(true);
	char byte;
	EXPECT_EQ(to.receive(&byte, 1), -EAGAIN);
}

TEST_F(Chardev, SeveralPollingReaders)
{
	if (!has_poll)
		GTEST_SKIP() << "no poll queue";
	constexpr unsigned count = 60;
	std::atomic<unsigned> got{0};
	std::vector<std::thread> threads;
	for (int t = 0; t < 3; t++)
		threads.emplace_back([&, t] {
			File file(node_b);
			for (unsigned i = 0; i < count / 3; i++) {
				char byte;
				EXPECT_EQ(file.vectored(false, &byte, 1, t ? RWF_HIPRI : 0), 1);
				got++;
			}
		});
	for (unsigned i = 0; i < count; i++)
		ASSERT_EQ(a.vectored(true, "x", 1, i % 2 ? RWF_HIPRI : 0), 1);
	for (std::thread &thread : threads)
		thread.join();
	EXPECT_EQ(got, count);
}

// --- io_uring ------------------------------------------------------------------------

namespace
{

class Ring
{
public:
	explicit Ring(unsigned entries = 64)
	{
		int err = io_uring_queue_init(entries, &ring, 0);
		if (err)
			die("io_uring_queue_init: %s", errno_name(-err));
	}
	~Ring() { io_uring_queue_exit(&ring); }
	Ring(const Ring &) = delete;
	Ring &operator=(const Ring &) = delete;

	io_uring_sqe *sqe(uint64_t data)
	{
		io_uring_sqe *sqe = io_uring_get_sqe(&ring);
		io_uring_sqe_set_data64(sqe, data);
		return sqe;
	}
	void submit() { io_uring_submit(&ring); }
	// The next completion's result and user data.
	std::pair<int, uint64_t> next()
	{
		io_uring_cqe *cqe;
		__kernel_timespec limit{20, 0};
		int err = io_uring_wait_cqe_timeout(&ring, &cqe, &limit);
		if (err)
			return {err, ~0ULL};
		std::pair<int, uint64_t> result{cqe->res, cqe->user_data};
		io_uring_cqe_seen(&ring, cqe);
		return result;
	}
	bool nothing()
	{
		io_uring_cqe *cqe;
		return io_uring_peek_cqe(&ring, &cqe) == -EAGAIN;
	}

	io_uring ring;
};

} // namespace

TEST_F(Chardev, UringWriteAndRead)
{
	Ring ring;
	for (size_t size : {size_t(1), size_t(info.eager_limit), size_t(info.max_message)}) {
		Bytes bytes = content(size, size), got(size + 1);
		io_uring_prep_read(ring.sqe(1), b.fd, got.data(), unsigned(got.size()),
				   uint64_t(-1));
		ring.submit();
		EXPECT_TRUE(ring.nothing());
		io_uring_prep_write(ring.sqe(2), a.fd, bytes.data(), unsigned(size), uint64_t(-1));
		ring.submit();
		for (int i = 0; i < 2; i++)
			EXPECT_EQ(ring.next().first, int(size));
		got.resize(size);
		EXPECT_TRUE(got == bytes);
	}
}

TEST_F(Chardev, UringVectorsAndFixedBuffers)
{
	Ring ring;
	Bytes bytes = content(5000, 1), got(5000);
	iovec out[2] = {{bytes.data(), 1000}, {bytes.data() + 1000, 4000}};
	iovec in[2] = {{got.data(), 3000}, {got.data() + 3000, 2000}};
	io_uring_prep_writev(ring.sqe(1), a.fd, out, 2, uint64_t(-1));
	io_uring_prep_readv(ring.sqe(2), b.fd, in, 2, uint64_t(-1));
	ring.submit();
	EXPECT_EQ(ring.next().first, 5000);
	EXPECT_EQ(ring.next().first, 5000);
	EXPECT_EQ(got, bytes);

	Bytes large = content(info.max_message, 2), target(info.max_message);
	iovec fixed[2] = {{large.data(), large.size()}, {target.data(), target.size()}};
	ASSERT_EQ(io_uring_register_buffers(&ring.ring, fixed, 2), 0);
	io_uring_prep_read_fixed(ring.sqe(1), b.fd, target.data(), unsigned(target.size()),
				 uint64_t(-1), 1);
	io_uring_prep_write_fixed(ring.sqe(2), a.fd, large.data(), unsigned(large.size()),
				  uint64_t(-1), 0);
	ring.submit();
	EXPECT_EQ(ring.next().first, int(large.size()));
	EXPECT_EQ(ring.next().first, int(large.size()));
	EXPECT_TRUE(target == large);
}

TEST_F(Chardev, UringPollThenRead)
{
	Ring ring;
	char byte = 0;
	io_uring_sqe *first = ring.sqe(1);
	io_uring_prep_poll_add(first, b.fd, POLLIN);
	first->flags |= IOSQE_IO_LINK;
	io_uring_prep_read(ring.sqe(2), b.fd, &byte, 1, uint64_t(-1));
	ring.submit();
	EXPECT_TRUE(ring.nothing());
	EXPECT_EQ(a.send("p", 1), 1);
	EXPECT_EQ(ring.next(), std::make_pair(int(POLLIN), uint64_t(1)));
	EXPECT_EQ(ring.next(), std::make_pair(1, uint64_t(2)));
	EXPECT_EQ(byte, 'p');
}

TEST_F(Chardev, UringManyAtOnce)
{
	constexpr unsigned count = 32;
	Ring ring(2 * count);
	uint8_t out[count], in[count] = {};
	for (unsigned i = 0; i < count; i++) {
		out[i] = uint8_t(i + 1);
		io_uring_prep_read(ring.sqe(i), b.fd, in + i, 1, uint64_t(-1));
		io_uring_prep_write(ring.sqe(count + i), a.fd, out + i, 1, uint64_t(-1));
	}
	ring.submit();
	for (unsigned i = 0; i < 2 * count; i++)
		ASSERT_EQ(ring.next().first, 1);
	// Which read got which message is open; each came once.
	unsigned sum = 0;
	for (uint8_t byte : in)
		sum += byte;
	EXPECT_EQ(sum, count * (count + 1) / 2);
}

// io_uring waits by polling where the file itself does not.
TEST_F(Chardev, UringNonblockingFile)
{
	Ring ring;
	File file(node_b, O_RDWR | O_NONBLOCK);
	char byte = 0;
	io_uring_prep_read(ring.sqe(1), file.fd, &byte, 1, uint64_t(-1));
	ring.submit();
	EXPECT_TRUE(ring.nothing());
	EXPECT_EQ(a.send("n", 1), 1);
	EXPECT_EQ(ring.next().first, 1);
	iovec vec{&byte, 1};
	io_uring_prep_readv2(ring.sqe(2), file.fd, &vec, 1, uint64_t(-1), RWF_NOWAIT);
	ring.submit();
	EXPECT_EQ(ring.next().first, -EAGAIN);
}

TEST_F(Chardev, UringCancel)
{
	Ring ring;
	char byte = 0;
	io_uring_prep_read(ring.sqe(1), b.fd, &byte, 1, uint64_t(-1));
	ring.submit();
	EXPECT_TRUE(ring.nothing());
	io_uring_prep_cancel64(ring.sqe(2), 1, 0);
	ring.submit();
	for (int i = 0; i < 2; i++) {
		auto [result, data] = ring.next();
		if (data == 1)
			EXPECT_TRUE(result == -ECANCELED || result == -EINTR) << result;
		else
			EXPECT_TRUE(result == 0 || result == -EALREADY) << result;
	}
}

TEST_F(Chardev, UringLeftBehind)
{
	pid_t child = fork();
	if (child == 0) {
		Ring ring;
		char byte = 0;
		for (int i = 0; i < 8; i++)
			io_uring_prep_read(ring.sqe(1), b.fd, &byte, 1, uint64_t(-1));
		ring.submit();
		_exit(0);
	}
	int status = 0;
	EXPECT_TRUE(eventually([&] { return waitpid(child, &status, WNOHANG) == child; }, 10));
	EXPECT_EQ(status, 0);
	// Its reads end with it, in the background: until then each may take a message.
	b.nonblocking(true);
	bool ours = false;
	for (int i = 0; i <= 8 && !ours; i++) {
		ASSERT_EQ(a.send("x", 1), 1);
		ours = (b.ready(POLLIN, 2000) & POLLIN) && b.receive().size() == 1;
	}
	EXPECT_TRUE(ours);
	b.nonblocking(false);
}

// Large writes that wait in io_uring's workers until the peer reads.
TEST_F(Chardev, UringLargeWritesLeftBehind)
{
	Bytes bytes = content(info.max_message, 6);
	for (bool killed : {false, true}) {
		int go[2];
		ASSERT_EQ(pipe(go), 0);
		pid_t child = fork();
		if (child == 0) {
			close(go[1]);
			Ring ring;
			for (int i = 0; i < 8; i++) {
				io_uring_sqe *sqe = ring.sqe(1);
				io_uring_prep_write(sqe, a.fd, bytes.data(), unsigned(bytes.size()),
						    uint64_t(-1));
				sqe->flags |= IOSQE_ASYNC;
			}
			ring.submit();
			char byte;
			_exit(read(go[0], &byte, 1) == 0 ? 0 : 1);
		}
		close(go[0]);
		EXPECT_TRUE(b.ready(POLLIN, 10000 * int(slow())) & POLLIN);
		if (killed)
			kill(child, SIGKILL);
		close(go[1]);
		int status = 0;
		EXPECT_TRUE(eventually([&] { return waitpid(child, &status, WNOHANG) == child; },
				       10 * int(slow())));
		EXPECT_EQ(WIFSIGNALED(status), killed);
		EXPECT_TRUE(killed || status == 0) << status;
		unsigned got = 0;
		for (; b.ready(POLLIN, 1000 * int(slow())) & POLLIN; got++)
			ASSERT_TRUE(b.receive() == bytes);
		EXPECT_GE(got, 1u);
		EXPECT_LE(got, 8u);
	}
}
