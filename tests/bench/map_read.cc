// SPDX-License-Identifier: GPL-2.0-only
// Reads of a mapping, SIZE bytes from its beginning, COUNT times.
//
//   map_read NODE SIZE interrupt|poll|fresh|fresh-poll|huge COUNT
//   map_read NODE SIZE uring|command|fixed|ring|ring-poll COUNT
//
// fresh: each read goes to another buffer than the 1,023 before it; huge: to memory of huge
// pages. The others read 32 at a time, 1 MiB one at a time. uring: with io_uring; command: as
// commands of io_uring to a fixed buffer; fixed: as descriptors of a fixed buffer, with a call
// for each batch; ring, ring-poll: the same through rings.
#include "../vm/programs/rings.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <kdirect.h>
#include <liburing.h>
#include <stdexcept>
#include <string>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <unistd.h>

namespace
{

constexpr unsigned batch = 32;
constexpr long fresh_buffers = 1024;

void fail(const std::string &what, int err)
{
	throw std::runtime_error(what + ": " + strerror(err));
}

void check(long got, size_t wanted)
{
	if (got < 0)
		fail("read", int(-got));
	if (size_t(got) != wanted)
		throw std::runtime_error("a short read");
}

// Memory that is there already: no page fault is measured.
char *memory(size_t size)
{
	void *mem = mmap(nullptr, size, PROT_READ | PROT_WRITE,
			 MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
	if (mem == MAP_FAILED)
		fail("mmap", errno);
	return static_cast<char *>(mem);
}

char *huge_memory(size_t size)
{
	constexpr size_t huge = 2 << 20;
	size_t whole = (size + huge - 1) / huge * huge;
	void *mem = aligned_alloc(huge, whole);
	if (!mem || madvise(mem, whole, MADV_HUGEPAGE))
		fail("huge pages", errno);
	memset(mem, 0, whole);
	return static_cast<char *>(mem);
}

void one_by_one(int fd, size_t size, char *mem, long buffers, bool poll, long count)
{
	for (long i = 0; i < count; i++) {
		iovec iov{mem + size_t(i % buffers) * size, size};
		ssize_t got = poll ? preadv2(fd, &iov, 1, 0, RWF_HIPRI)
				   : pread(fd, iov.iov_base, size, 0);
		check(got < 0 ? -errno : got, size);
	}
}

void prepare_command(io_uring_sqe *sqe, int fd, size_t offset, size_t size)
{
	const kdirect_desc desc = fixed(false, 0, offset, size, 0);
	memset(static_cast<void *>(sqe), 0, 2 * sizeof(*sqe));
	sqe->opcode = IORING_OP_URING_CMD;
	sqe->fd = fd;
	sqe->cmd_op = KDIRECT_URING_CMD_DESC;
	memcpy(sqe->cmd, &desc, sizeof(desc));
}

void in_batches(int fd, size_t size, bool commands, long count)
{
	char *mem = memory(size * batch);
	io_uring ring;
	if (int err = io_uring_queue_init(batch, &ring, commands ? IORING_SETUP_SQE128 : 0);
	    err < 0)
		fail("io_uring_queue_init", -err);
	if (int err = commands ? set_buffer(fd, 0, mem, size * batch) : 0)
		fail("KDIRECT_IOC_BUFFER_SET", -err);
	for (long left = count; left > 0; left -= batch) {
		unsigned n = unsigned(std::min(left, long(batch)));
		for (unsigned i = 0; i < n; i++) {
			io_uring_sqe *sqe = io_uring_get_sqe(&ring);
			if (commands)
				prepare_command(sqe, fd, i * size, size);
			else
				io_uring_prep_read(sqe, fd, mem + i * size, unsigned(size), 0);
		}
		if (int done = io_uring_submit_and_wait(&ring, n); done < 0)
			fail("io_uring_submit_and_wait", -done);
		for (unsigned i = 0; i < n; i++) {
			io_uring_cqe *cqe;
			if (int err = io_uring_wait_cqe(&ring, &cqe); err < 0)
				fail("io_uring_wait_cqe", -err);
			check(cqe->res, size);
			io_uring_cqe_seen(&ring, cqe);
		}
	}
	io_uring_queue_exit(&ring);
}

// Descriptors of a batch: each into its part of a fixed buffer.
Descs batch_of(int fd, size_t size)
{
	unsigned n = size < 1 << 20 ? batch : 1;
	if (int err = set_buffer(fd, 0, memory(size * n), size * n))
		fail("KDIRECT_IOC_BUFFER_SET", -err);
	Descs descs;
	for (unsigned i = 0; i < n; i++)
		descs.push_back(fixed(false, 0, i * size, size, 0));
	return descs;
}

void by_submit(int fd, size_t size, long count)
{
	const Descs descs = batch_of(fd, size);
	Completions done(descs.size());
	for (long left = count; left > 0; left -= long(descs.size())) {
		kdirect_submit call{};
		call.descs = address(descs.data());
		call.completions = address(done.data());
		call.nr_descs = call.nr_completions = call.min_completions = uint32_t(descs.size());
		if (int err = submit(fd, call))
			fail("KDIRECT_IOC_SUBMIT", -err);
		if (call.completed != descs.size())
			throw std::runtime_error("a batch is not completed");
		for (const kdirect_completion &c : done)
			check(c.result, size);
	}
}

void by_ring(int fd, size_t size, bool poll, long count)
{
	const Descs descs = batch_of(fd, size);
	auto n = uint32_t(descs.size());
	Ring ring(fd, batch, batch, poll ? KDIRECT_RING_POLL : 0);
	if (!ring)
		fail("KDIRECT_IOC_RING_SETUP", errno);
	for (long left = count; left > 0; left -= n) {
		for (const kdirect_desc &desc : descs)
			if (!ring.push(desc))
				throw std::runtime_error("no room in the ring");
		if (int err = ring.enter(n, n, poll ? KDIRECT_ENTER_POLL : 0))
			fail("KDIRECT_IOC_RING_ENTER", -err);
		kdirect_completion c;
		for (uint32_t i = 0; i < n; i++) {
			if (!ring.pop(c))
				throw std::runtime_error("a batch is not completed");
			check(c.result, size);
		}
	}
}

} // namespace

int main(int argc, char **argv)
try {
	if (argc != 5)
		throw std::runtime_error("usage: map_read NODE SIZE "
					 "interrupt|poll|fresh|fresh-poll|huge|uring|command|fixed|"
					 "ring|ring-poll COUNT");
	int fd = open(argv[1], O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		fail(argv[1], errno);
	size_t size = strtoul(argv[2], nullptr, 10);
	std::string how = argv[3];
	long count = strtol(argv[4], nullptr, 10);
	long buffers = how.starts_with("fresh") ? fresh_buffers : 1;
	if (how == "uring" || how == "command")
		in_batches(fd, size, how == "command", count);
	else if (how == "fixed")
		by_submit(fd, size, count);
	else if (how.starts_with("ring"))
		by_ring(fd, size, how.ends_with("poll"), count);
	else if (how == "huge")
		one_by_one(fd, size, huge_memory(size), 1, false, count);
	else
		one_by_one(fd, size, memory(size * size_t(buffers)), buffers, how.ends_with("poll"),
			   count);
} catch (const std::exception &e) {
	fprintf(stderr, "map_read: %s\n", e.what());
	return 1;
}
