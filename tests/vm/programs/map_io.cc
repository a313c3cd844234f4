// SPDX-License-Identifier: GPL-2.0-only
// What a mapping's device promises, call by call.
//
//	map_test DEVICE SIZE
//
// DEVICE is writable, has SIZE bytes, and its channel has interrupt and poll queues.
#include <fcntl.h>
#include <linux/fs.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>
#include <liburing.h>

namespace
{

std::string device;
off_t size;

std::string pattern(uint64_t number, std::size_t len)
{
	std::string text(len, '\0');
	uint64_t x = number * 0x9e3779b97f4a7c15ULL + 1;

	for (char &byte : text) {
		x = x * 6364136223846793005ULL + 1442695040888963407ULL;
		byte = static_cast<char>(x >> 56);
	}
	return text;
}

class Map : public testing::Test
{
protected:
	void SetUp() override
	{
		fd = open(device.c_str(), O_RDWR);
		ASSERT_GE(fd, 0) << device << ": " << std::strerror(errno);
	}
	void TearDown() override { close(fd); }
	ssize_t write_at(const std::string &text, off_t pos, int flags = 0)
	{
		iovec iov{const_cast<char *>(text.data()), text.size()};
		ssize_t ret = pwritev2(fd, &iov, 1, pos, flags);

		return ret < 0 ? -errno : ret;
	}
	std::string read_at(std::size_t len, off_t pos, int flags = 0)
	{
		std::string text(len, 'x');
		iovec iov{text.data(), len};
		ssize_t ret = preadv2(fd, &iov, 1, pos, flags);

		if (ret < 0)
			return "error " + std::to_string(errno);
		text.resize(static_cast<std::size_t>(ret));
		return text;
	}
	int fd = -1;
};

TEST_F(Map, LengthsAndPlaces)
{
	uint64_t number = 0;

	for (int flags : {0, RWF_HIPRI})
		for (std::size_t len :
		     {1ul, 63ul, 4096ul, 16384ul, 16385ul, 100000ul, 1ul << 20, (3ul << 20) + 7})
			for (off_t pos :
			     {off_t{0}, off_t{4095}, (off_t{2} << 20) - 3, size - 5000}) {
				std::string text = pattern(number++, len);
				std::size_t fits =
					std::min(len, static_cast<std::size_t>(size - pos));

				ASSERT_EQ(write_at(text, pos, flags), static_cast<ssize_t>(fits))
					<< len << " at " << pos;
				text.resize(fits);
				ASSERT_TRUE(read_at(len, pos, flags) == text)
					<< len << " at " << pos << " flags " << flags;
			}
}

TEST_F(Map, SeeksAndEnds)
{
	EXPECT_EQ(lseek(fd, 0, SEEK_END), size);
	EXPECT_EQ(read(fd, &errno, 1), 0);
	EXPECT_EQ(write(fd, "x", 1), -1);
	EXPECT_EQ(errno, ENOSPC);
	EXPECT_EQ(lseek(fd, -3, SEEK_END), size - 3);
	EXPECT_EQ(write(fd, "abcdef", 6), 3);
	EXPECT_EQ(lseek(fd, 0, SEEK_CUR), size);
	EXPECT_EQ(read_at(10, size - 3), "abc");
	EXPECT_EQ(lseek(fd, -1, SEEK_SET), -1);
	EXPECT_EQ(errno, EINVAL);
	EXPECT_EQ(lseek(fd, size + 1, SEEK_SET), -1);
	EXPECT_EQ(errno, EINVAL);
	EXPECT_EQ(pwrite(fd, "x", 1, size), -1);
	EXPECT_EQ(errno, ENOSPC);
	EXPECT_EQ(read_at(5, size + 100), "");
	EXPECT_EQ(write_at("", 0), 0);
	EXPECT_EQ(lseek(fd, 100, SEEK_SET), 100);
	EXPECT_EQ(write(fd, "hello", 5), 5);
	EXPECT_EQ(lseek(fd, -5, SEEK_CUR), 100);
	char text[6] = {};
	EXPECT_EQ(read(fd, text, 5), 5);
	EXPECT_STREQ(text, "hello");
}

TEST_F(Map, CannotBeMapped)
{
	EXPECT_EQ(mmap(nullptr, 4096, PROT_READ, MAP_SHARED, fd, 0), MAP_FAILED);
	EXPECT_EQ(errno, ENODEV);
}

TEST_F(Map, NoWait)
{
	EXPECT_EQ(read_at(10, 0, RWF_NOWAIT), "error " + std::to_string(EAGAIN));
	EXPECT_EQ(write_at("x", 0, RWF_NOWAIT), -EAGAIN);
	// as with a regular file, O_NONBLOCK is nothing to go by
	ASSERT_EQ(fcntl(fd, F_SETFL, O_NONBLOCK), 0);
	EXPECT_EQ(write_at("y", 0), 1);
	EXPECT_EQ(read_at(1, 0), "y");
	EXPECT_EQ(read_at(1, 0, RWF_NOWAIT), "error " + std::to_string(EAGAIN));
}

TEST_F(Map, VectorsAndBadMemory)
{
	std::string text = pattern(1, 200000), back(text.size(), 'x');
	std::vector<iovec> out, in;

	for (std::size_t at = 0, len = 1; at < text.size(); at += len, len = len * 3 + 1) {
		len = std::min(len, text.size() - at);
		out.push_back({text.data() + at, len});
	}
	for (std::size_t at = 0; at < back.size(); at += 50000)
		in.push_back({back.data() + at, 50000});
	ASSERT_EQ(pwritev(fd, out.data(), static_cast<int>(out.size()), 77),
		  static_cast<ssize_t>(text.size()));
	ASSERT_EQ(preadv(fd, in.data(), static_cast<int>(in.size()), 77),
		  static_cast<ssize_t>(text.size()));
	EXPECT_TRUE(back == text);
	for (std::size_t len : {10ul, 100000ul}) {
		EXPECT_EQ(pread(fd, reinterpret_cast<void *>(8), len, 0), -1);
		EXPECT_EQ(errno, EFAULT);
		EXPECT_EQ(pwrite(fd, reinterpret_cast<void *>(8), len, 0), -1);
		EXPECT_EQ(errno, EFAULT);
	}
	/* memory that may only be read takes no data */
	void *page = mmap(nullptr, 1 << 20, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	EXPECT_EQ(pread(fd, page, 1 << 20, 0), -1);
	EXPECT_EQ(errno, EFAULT);
	munmap(page, 1 << 20);
}

TEST_F(Map, WithoutLockedMemory)
{
	pid_t child = fork();

	if (!child) {
		rlimit none{0, 0};
		std::string text = pattern(5, 300000);
		int wrong = setrlimit(RLIMIT_MEMLOCK, &none) || setuid(65534);

		wrong |= write_at(text, 0) != static_cast<ssize_t>(text.size());
		wrong |= read_at(text.size(), 0) != text;
		_exit(wrong);
	}
	int status = -1;
	waitpid(child, &status, 0);
	EXPECT_EQ(status, 0);
}

TEST_F(Map, Direct)
{
	int direct = open(device.c_str(), O_RDWR | O_DIRECT);

	ASSERT_GE(direct, 0) << std::strerror(errno);
	std::string text = pattern(7, 65536), back(text.size(), 'x');
	EXPECT_EQ(pwrite(direct, text.data(), text.size(), 4096),
		  static_cast<ssize_t>(text.size()));
	EXPECT_EQ(pread(direct, back.data(), back.size(), 4096), static_cast<ssize_t>(back.size()));
	EXPECT_TRUE(back == text);
	close(direct);
}

TEST_F(Map, Threads)
{
	std::vector<std::thread> threads;

	for (uint64_t t = 0; t < 4; t++)
		threads.emplace_back([&, t] {
			off_t base = static_cast<off_t>(t) << 20;

			for (uint64_t i = 0; i < 50; i++) {
				std::size_t len = (i % 7 + 1) * 5000;
				std::string text = pattern(t * 1000 + i, len);
				off_t pos = base + static_cast<off_t>(i) * 7777;
				int flags = t & 1 ? RWF_HIPRI : 0;

				if (write_at(text, pos, flags) != static_cast<ssize_t>(len) ||
				    read_at(len, pos, flags) != text) {
					ADD_FAILURE() << "thread " << t << ", turn " << i;
					return;
				}
			}
		});
	for (std::thread &thread : threads)
		thread.join();
}

/* io_uring: queued, from plain and from fixed buffers. */
TEST_F(Map, Uring)
{
	constexpr unsigned int depth = 32, rounds = 4;
	io_uring ring;

	ASSERT_EQ(io_uring_queue_init(depth, &ring, 0), 0);
	std::vector<std::string> out(depth), in(depth);
	for (unsigned int round = 0; round < rounds; round++) {
		std::size_t len = std::size_t{4096} << (2 * round);
		for (bool write : {true, false}) {
			for (unsigned int i = 0; i < depth; i++) {
				io_uring_sqe *sqe = io_uring_get_sqe(&ring);
				/* half of them across the end of a page, or of a key */
				uint64_t pos = i * (512 << 10) - (i & 1 ? 2000 : 0);

				if (write)
					out[i] = pattern(round * 100 + i, len);
				in[i].resize(len);
				if (write)
					io_uring_prep_write(sqe, fd, out[i].data(),
							    static_cast<unsigned int>(len), pos);
				else
					io_uring_prep_read(sqe, fd, in[i].data(),
							   static_cast<unsigned int>(len), pos);
				io_uring_sqe_set_data64(sqe, i);
			}
			ASSERT_EQ(io_uring_submit(&ring), static_cast<int>(depth));
			for (unsigned int i = 0; i < depth; i++) {
				io_uring_cqe *cqe;

				ASSERT_EQ(io_uring_wait_cqe(&ring, &cqe), 0);
				EXPECT_EQ(cqe->res, static_cast<int>(len));
				io_uring_cqe_seen(&ring, cqe);
			}
		}
		for (unsigned int i = 0; i < depth; i++)
			EXPECT_TRUE(in[i] == out[i]) << "round " << round << ", " << i;
	}
	iovec fixed{out[0].data(), out[0].size()};
	ASSERT_EQ(io_uring_register_buffers(&ring, &fixed, 1), 0);
	io_uring_sqe *sqe = io_uring_get_sqe(&ring);
	io_uring_prep_write_fixed(sqe, fd, out[0].data(), 4096, 8192, 0);
	ASSERT_EQ(io_uring_submit(&ring), 1);
	io_uring_cqe *cqe;
	ASSERT_EQ(io_uring_wait_cqe(&ring, &cqe), 0);
	EXPECT_EQ(cqe->res, 4096);
	io_uring_cqe_seen(&ring, cqe);
	EXPECT_TRUE(read_at(4096, 8192) == out[0].substr(0, 4096));
	io_uring_queue_exit(&ring);
}

/* Queued, and the caller's memory begins and ends anywhere in one, two or three pages. */
TEST_F(Map, UringFewPages)
{
	constexpr std::size_t page = 4096, all = 4 * page;
	const std::string stored = pattern(7, all), before(all, 'x');
	auto *memory = static_cast<char *>(std::aligned_alloc(page, all));
	io_uring ring;

	ASSERT_NE(memory, nullptr);
	ASSERT_EQ(io_uring_queue_init(1, &ring, 0), 0);
	auto queued = [&](bool write, char *at, std::size_t len, uint64_t pos) {
		io_uring_sqe *sqe = io_uring_get_sqe(&ring);
		io_uring_cqe *cqe;

		if (write)
			io_uring_prep_write(sqe, fd, at, static_cast<unsigned int>(len), pos);
		else
			io_uring_prep_read(sqe, fd, at, static_cast<unsigned int>(len), pos);
		EXPECT_EQ(io_uring_submit(&ring), 1);
		EXPECT_EQ(io_uring_wait_cqe(&ring, &cqe), 0);
		EXPECT_EQ(cqe->res, static_cast<int>(len));
		io_uring_cqe_seen(&ring, cqe);
	};
	for (std::size_t begin : {std::size_t{0}, std::size_t{1}, page - 1})
		for (std::size_t len :
		     {std::size_t{1}, page - 1, page, page + 1, 2 * page, 2 * page + 1}) {
			std::string wanted = before;

			SCOPED_TRACE(std::to_string(len) + " bytes at " + std::to_string(begin));
			wanted.replace(begin, len, stored, 0, len);
			std::memcpy(memory, stored.data(), all);
			std::memmove(memory + begin, stored.data(), len);
			queued(true, memory + begin, len, 333);
			EXPECT_TRUE(read_at(len, 333) == stored.substr(0, len));
			std::memcpy(memory, before.data(), all);
			queued(false, memory + begin, len, 333);
			EXPECT_TRUE(std::string(memory, all) == wanted);
		}
	io_uring_queue_exit(&ring);
	std::free(memory);
}

/* A process that is killed in the middle of it disturbs nobody. */
TEST_F(Map, Killed)
{
	for (int i = 0; i < 10; i++) {
		pid_t child = fork();

		if (!child)
			for (std::string text(1 << 20, 'k');;)
				write_at(text, 4 << 20, i & 1 ? RWF_HIPRI : 0);
		usleep(3000);
		kill(child, SIGKILL);
		waitpid(child, nullptr, 0);
		std::string text = pattern(static_cast<uint64_t>(i), 100000);
		ASSERT_EQ(write_at(text, 0), static_cast<ssize_t>(text.size()));
		ASSERT_TRUE(read_at(text.size(), 0) == text);
	}
}

} // namespace

int main(int argc, char **argv)
{
	testing::InitGoogleTest(&argc, argv);
	if (argc != 3) {
		std::fprintf(stderr, "usage: map_test DEVICE SIZE\n");
		return 2;
	}
	device = argv[1];
	size = std::atol(argv[2]);
	return RUN_ALL_TESTS();
}
