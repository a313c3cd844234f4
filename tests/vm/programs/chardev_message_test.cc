// SPDX-License-Identifier: GPL-2.0-only
// Messages: bounds, sizes, pieces, many users at once.
#include "chardev.h"

#include <atomic>
#include <sys/resource.h>

TEST_F(Chardev, InfoTellsTheTerms)
{
	kdirect_info other{};
	ASSERT_EQ(ioctl(b.fd, KDIRECT_IOC_INFO, &other), 0);
	EXPECT_STREQ(info.name, strrchr(node_a, '/') + 1);
	EXPECT_STREQ(other.name, strrchr(node_b, '/') + 1);
	EXPECT_EQ(info.max_message, other.max_message);
	EXPECT_EQ(info.eager_limit, other.eager_limit);
	EXPECT_EQ(info.depth, other.depth);
	EXPECT_EQ(info.queues, other.queues);
	EXPECT_EQ(info.poll_queues, other.poll_queues);
	EXPECT_GE(info.max_message, 1u << 20);
	for (uint32_t reserved : info.reserved)
		EXPECT_EQ(reserved, 0u);
}

TEST_F(Chardev, ShortReadsContinueAndNeverMerge)
{
	Bytes first = content(10, 1), second = content(20, 2);
	ASSERT_EQ(a.send(first), 10);
	ASSERT_EQ(a.send(second), 20);
	Bytes got(30);
	EXPECT_EQ(b.receive(got.data(), 4), 4);
	EXPECT_EQ(b.receive(got.data() + 4, 26), 6);
	EXPECT_EQ(b.receive(got.data() + 10, 7), 7);
	EXPECT_EQ(b.receive(got.data() + 17, 13), 13);
	Bytes both = first;
	both.insert(both.end(), second.begin(), second.end());
	EXPECT_EQ(got, both);
}

TEST_F(Chardev, PiecesOfALargeMessage)
{
	Bytes bytes = content(info.max_message - 3, 3), got(bytes.size());
	ssize_t sent = 0;
	std::thread writer([&] { sent = a.send(bytes); });
	size_t at = 0;
	for (size_t want = 1; at < got.size(); want = want * 3 + 1) {
		ssize_t n = b.receive(got.data() + at, std::min(want, got.size() - at));
		ASSERT_GT(n, 0);
		at += size_t(n);
	}
	writer.join();
	EXPECT_EQ(sent, ssize_t(bytes.size()));
	EXPECT_TRUE(got == bytes);
}

// The rest of a message belongs to whoever reads next, whichever file it is.
TEST_F(Chardev, AnotherFileGoesOnInTheMessage)
{
	File other(node_b);
	Bytes bytes = content(100, 4), got(100);
	ASSERT_EQ(a.send(bytes), 100);
	EXPECT_EQ(b.receive(got.data(), 60), 60);
	EXPECT_EQ(other.receive(got.data() + 60, 100), 40);
	EXPECT_EQ(got, bytes);
}

TEST_F(Chardev, LengthZero)
{
	EXPECT_EQ(a.send("", 0), 0);
	EXPECT_EQ(b.receive(nullptr, 0), 0);
	EXPECT_EQ(b.ready(POLLIN), 0);
	iovec vec{nullptr, 0};
	EXPECT_EQ(outcome(writev(a.fd, &vec, 1)), 0);
	EXPECT_EQ(outcome(writev(a.fd, &vec, 0)), 0);
	EXPECT_EQ(a.send("x", 1), 1);
	EXPECT_EQ(b.receive(nullptr, 0), 0);
	EXPECT_EQ(b.receive().size(), 1u);
}

TEST_F(Chardev, Sizes)
{
	for (size_t size :
	     {size_t(1), page - 1, page, page + 1, size_t(info.eager_limit - 1),
	      size_t(info.eager_limit), size_t(info.eager_limit + 1), size_t(65535), size_t(65537),
	      size_t(info.max_message - 1), size_t(info.max_message)}) {
		SCOPED_TRACE(size);
		carry(a, b, content(size, size));
		carry(b, a, content(size, size + 1));
	}
}

TEST_F(Chardev, LongerThanTheMaximum)
{
	Bytes bytes(info.max_message + 1);
	EXPECT_EQ(a.send(bytes), -EMSGSIZE);
	a.nonblocking(true);
	EXPECT_EQ(a.send(bytes), -EMSGSIZE);
	a.nonblocking(false);
	iovec vec[2] = {{bytes.data(), info.max_message}, {bytes.data(), 1}};
	EXPECT_EQ(outcome(writev(a.fd, vec, 2)), -EMSGSIZE);
	Bytes huge(64 << 20);
	EXPECT_EQ(a.send(huge), -EMSGSIZE);
	EXPECT_EQ(b.ready(POLLIN), 0);
}

TEST_F(Chardev, BuffersOfEveryAlignment)
{
	Bytes source(info.eager_limit + 4 * page), target(info.max_message + 2 * page);
	for (size_t size : {size_t(1), page - 1, page, page + 1, size_t(info.eager_limit + 1)})
		for (size_t shift = 0; shift<64; shift += size> 1 ? 3 : 1) {
			size_t at = page - 32 + shift;
			fill(source.data() + at, size, shift + size);
			ssize_t sent = 0;
			std::thread writer([&] { sent = a.send(source.data() + at, size); });
			ssize_t n = b.receive(target.data() + shift, info.max_message);
			writer.join();
			ASSERT_EQ(sent, ssize_t(size));
			ASSERT_EQ(n, ssize_t(size));
			ASSERT_EQ(memcmp(source.data() + at, target.data() + shift, size), 0)
				<< size << " bytes at " << at;
		}
}

// The longest message from a buffer that begins inside a page has one page more.
TEST_F(Chardev, TheMaximumFromTheMiddleOfAPage)
{
	for (size_t shift : {size_t(1), size_t(2048), page - 1}) {
		Bytes source(info.max_message + page);
		fill(source.data() + shift, info.max_message, shift);
		ssize_t sent = 0;
		std::thread writer([&] { sent = a.send(source.data() + shift, info.max_message); });
		Bytes got = b.receive();
		writer.join();
		ASSERT_EQ(sent, ssize_t(info.max_message));
		ASSERT_EQ(got.size(), info.max_message);
		ASSERT_EQ(memcmp(source.data() + shift, got.data(), got.size()), 0);
	}
}

TEST_F(Chardev, VectorsMakeOneMessage)
{
	for (size_t piece : {size_t(1), size_t(17), size_t(1000)}) {
		SCOPED_TRACE(piece);
		Bytes bytes = content(1024 * piece, piece), got(bytes.size());
		std::vector<iovec> out, in;
		for (size_t at = 0; at < bytes.size(); at += piece)
			out.push_back({bytes.data() + at, piece});
		// Read into pieces of other sizes, one of them empty.
		in.push_back({got.data(), 5});
		in.push_back({got.data(), 0});
		in.push_back({got.data() + 5, bytes.size() - 5});
		ssize_t sent = 0;
		std::thread writer(
			[&] { sent = outcome(writev(a.fd, out.data(), int(out.size()))); });
		EXPECT_EQ(outcome(readv(b.fd, in.data(), int(in.size()))), ssize_t(bytes.size()));
		writer.join();
		EXPECT_EQ(sent, ssize_t(bytes.size()));
		EXPECT_TRUE(got == bytes);
	}
}

// Every second page: nothing is contiguous.
TEST_F(Chardev, VectorsOfScatteredPages)
{
	constexpr size_t pieces = 128;
	Bytes memory = content(pieces * 2 * page, 7), wanted;
	std::vector<iovec> out;
	for (size_t i = 0; i < pieces; i++) {
		uint8_t *at = memory.data() + i * 2 * page + i * 7;
		size_t len = page - i * 3;
		out.push_back({at, len});
		wanted.insert(wanted.end(), at, at + len);
	}
	ssize_t sent = 0;
	std::thread writer([&] { sent = outcome(writev(a.fd, out.data(), int(out.size()))); });
	Bytes got = b.receive();
	writer.join();
	EXPECT_EQ(sent, ssize_t(wanted.size()));
	EXPECT_TRUE(got == wanted);
}

TEST_F(Chardev, ManyWritersAndReaders)
{
	constexpr unsigned users = 4, each = 50;
	struct Head {
		uint32_t writer, number, length;
	};
	std::atomic<uint8_t> seen[users][each] = {};
	std::vector<std::thread> threads;
	for (unsigned w = 0; w < users; w++)
		threads.emplace_back([&, w] {
			File file(node_a, O_WRONLY);
			Random random(w);
			for (unsigned i = 0; i < each; i++) {
				size_t size = i % 10 == 0 ? info.eager_limit + random.next() % 50000
							  : sizeof(Head) + random.next() % 3000;
				Bytes bytes = content(size, w * 1000 + i);
				Head head{w, i, uint32_t(size)};
				memcpy(bytes.data(), &head, sizeof(head));
				EXPECT_EQ(file.send(bytes), ssize_t(size));
			}
		});
	for (unsigned r = 0; r < users; r++)
		threads.emplace_back([&] {
			File file(node_b, O_RDONLY);
			for (unsigned i = 0; i < each; i++) {
				Bytes got = file.receive();
				Head head{};
				ASSERT_GE(got.size(), sizeof(head));
				memcpy(&head, got.data(), sizeof(head));
				ASSERT_LT(head.writer, users);
				ASSERT_LT(head.number, each);
				ASSERT_EQ(head.length, got.size());
				EXPECT_EQ(seen[head.writer][head.number]++, 0);
				Bytes wanted =
					content(got.size(), head.writer * 1000 + head.number);
				memcpy(wanted.data(), &head, sizeof(head));
				EXPECT_TRUE(got == wanted);
			}
		});
	for (std::thread &thread : threads)
		thread.join();
}

// A full queue: the writer is told so, and nothing is lost or out of order.
TEST_F(Chardev, FullQueueThenDrain)
{
	for (int round = 0; round < 3; round++) {
		unsigned count = fill_up(a, uint8_t(round));
		EXPECT_GT(count, info.depth / 2);
		EXPECT_LE(count, info.depth * (info.queues + info.poll_queues));
		// Full in one direction, the other one is not disturbed.
		carry(b, a, content(1000, 1));
		expect_bytes(b, count, uint8_t(round));
	}
}

TEST_F(Chardev, LargeMessagesWithoutBlockingAreCopied)
{
	Bytes bytes = content(info.eager_limit * 3, 1), wanted = bytes;
	a.nonblocking(true);
	ssize_t n = a.send(bytes);
	a.nonblocking(false);
	ASSERT_EQ(n, ssize_t(bytes.size()));
	std::fill(bytes.begin(), bytes.end(), uint8_t(0));
	EXPECT_TRUE(b.receive() == wanted);
}

TEST_F(Chardev, LargeMessagesUntilFull)
{
	unsigned count = 0;
	Bytes bytes = content(info.max_message, 1);
	a.nonblocking(true);
	for (;; count++) {
		bytes[0] = uint8_t(count);
		ssize_t n = a.send(bytes);
		if (n == -EAGAIN)
			break;
		ASSERT_EQ(n, ssize_t(bytes.size()));
		ASSERT_LT(count, 5000u);
	}
	a.nonblocking(false);
	EXPECT_GE(count, 1u);
	for (unsigned i = 0; i < count; i++) {
		Bytes got = b.receive();
		bytes[0] = uint8_t(i);
		ASSERT_TRUE(got == bytes) << "message " << i;
	}
}

TEST_F(Chardev, BothEndsFullAtOnce)
{
	unsigned from_a = fill_up(a, 1), from_b = fill_up(b, 2);
	expect_bytes(b, from_a, 1);
	expect_bytes(a, from_b, 2);
}

TEST_F(Chardev, ForkAndDupShare)
{
	int copy = dup(a.fd);
	pid_t child = fork();
	if (child == 0)
		_exit(write(copy, "child", 5) == 5 ? 0 : 1);
	int status = 0;
	waitpid(child, &status, 0);
	EXPECT_EQ(status, 0);
	Bytes got = b.receive();
	EXPECT_EQ(std::string(got.begin(), got.end()), "child");
	EXPECT_EQ(write(copy, "dup", 3), 3);
	EXPECT_EQ(b.receive().size(), 3u);
	close(copy);
	EXPECT_EQ(a.send("still", 5), 5);
	EXPECT_EQ(b.receive().size(), 5u);
}

// A small limit of pinned memory costs a copy, and is no error.
TEST_F(Chardev, MemlockLimits)
{
	for (rlim_t limit : {rlim_t(0), rlim_t(page), rlim_t(info.max_message - page)}) {
		Bytes bytes = content(info.max_message, limit);
		pid_t child = fork();
		if (child == 0) {
			rlimit r{limit, limit};
			if (setrlimit(RLIMIT_MEMLOCK, &r) || setgid(65534) || setuid(65534))
				_exit(99);
			ssize_t n = a.send(bytes);
			_exit(n == ssize_t(bytes.size()) ? 0 : n < 0 ? int(-n) : 98);
		}
		Bytes got = b.receive();
		int status = 0;
		waitpid(child, &status, 0);
		EXPECT_EQ(status, 0)
			<< "limit " << limit << ": " << errno_name(WEXITSTATUS(status));
		EXPECT_TRUE(got == bytes);
	}
}
