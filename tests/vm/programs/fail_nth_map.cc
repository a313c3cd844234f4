// SPDX-License-Identifier: GPL-2.0-only
// What is done with the node of a mapping.
#include "commands.h"
#include "fail_nth.h"

#include <fcntl.h>
#include <liburing.h>
#include <memory>
#include <sys/mman.h>
#include <unistd.h>

namespace
{

constexpr size_t small = 100, large = 200000, space = 1 << 18;
constexpr uint64_t remote = 4097;
constexpr uint32_t entries = 3; // descriptors of one call

uint8_t *some_memory()
{
	void *mem =
		mmap(nullptr, space, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (mem == MAP_FAILED)
		die("mmap: %s", errno_name(errno));
	return static_cast<uint8_t *>(mem);
}

// A file that nothing fails for, and one that the operation uses.
struct Ends {
	explicit Ends(const char *node) : path(node), fd(open(node, O_RDWR | O_CLOEXEC))
	{
		if (fd < 0)
			die("%s: %s", node, errno_name(errno));
		std::memset(in, 0, space);
	}

	void reopen()
	{
		used = open(path, O_RDWR | O_CLOEXEC);
		if (used < 0)
			die("%s: %s", path, errno_name(errno));
	}
	// Fresh content in `out`, which is still to be written or read.
	void fresh(bool write)
	{
		fill(out, space, ++number);
		std::memset(in, 0, space);
		if (!write && pwrite(fd, out, space, off_t(remote)) != ssize_t(space))
			die("pwrite: %s", errno_name(errno));
	}
	// Whether what was written or read is what `out` has.
	bool same(bool write, size_t len)
	{
		if (write && pread(fd, in, len, off_t(remote)) != ssize_t(len))
			die("pread: %s", errno_name(errno));
		return !std::memcmp(in, out, len);
	}

	const char *const path;
	const int fd;
	int used = -1;
	uint8_t *const out = some_memory(), *const in = some_memory();
	uint64_t number = 0;
	uint32_t submitted = 0, completed = 0; // by a call that tells
};

// A short transfer has met the failure.
int result(ssize_t n, size_t len)
{
	return n < 0 ? errno : size_t(n) == len ? 0 : EFAULT;
}

using Run = std::function<int(Ends &, size_t)>;

Operation transferring(const std::string &name, Ends &ends, bool write, size_t len, const Run &run)
{
	return {name,
		[&ends, write] { ends.fresh(write); },
		[&ends, len, run] { return run(ends, len); },
		[&ends, write, len](int err) {
			return std::string(err || ends.same(write, len) ? ""
									: "the content differs");
		},
		{}};
}

int through_ring(Ends &ends, bool write, size_t len, io_uring &ring)
{
	io_uring_sqe *sqe = io_uring_get_sqe(&ring);
	if (write)
		io_uring_prep_write(sqe, ends.fd, ends.out, unsigned(len), remote);
	else
		io_uring_prep_read(sqe, ends.fd, ends.in, unsigned(len), remote);
	for (int ret; (ret = io_uring_submit(&ring)) < 1;)
		if (ret < 0 && ret != -EAGAIN && ret != -ENOMEM && ret != -EFAULT)
			die("io_uring_submit: %s", errno_name(-ret));
	io_uring_cqe *cqe;
	while (io_uring_peek_cqe(&ring, &cqe))
		usleep(1000);
	errno = cqe->res < 0 ? -cqe->res : 0;
	int err = result(cqe->res < 0 ? -1 : cqe->res, len);
	io_uring_cqe_seen(&ring, cqe);
	return err;
}

// As a command of io_uring, of registered memory or not.
int as_command(Ends &ends, bool write, size_t len, CommandRing &commands, bool registered)
{
	CommandRing::Result r;
	uint8_t *memory = write ? ends.out : ends.in;
	commands.push(ends.used, transfer(write, memory, len, remote), 0,
		      !registered ? CommandRing::none
		      : write     ? 0
				  : 1);
	for (int ret; (ret = io_uring_submit(&commands.ring)) < 1;)
		if (ret < 0 && ret != -EAGAIN && ret != -ENOMEM && ret != -EFAULT)
			die("io_uring_submit: %s", errno_name(-ret));
	while (!commands.pop(r))
		usleep(1000);
	return r.res < 0 ? -r.res : size_t(r.res) == len ? 0 : EFAULT;
}

Operation commanding(const std::string &name, Ends &ends, bool write, size_t len,
		     CommandRing &commands, bool registered)
{
	return {name,
		[&ends, write, &commands] {
			ends.reopen();
			ends.fresh(write);
			// the first one of a file is a worker's
			if (as_command(ends, false, 0, commands, false))
				die("no command");
		},
		[&ends, write, len, &commands, registered] {
			return as_command(ends, write, len, commands, registered);
		},
		[&ends, write, len](int err) {
			close(ends.used);
			return std::string(err || ends.same(write, len) ? ""
									: "the content differs");
		},
		{}};
}

// --- descriptors ------------------------------------------------------------------------

// Three of them, with `len` bytes together.
Descs descs_of(const Ends &ends, bool write, bool in_buffer, size_t len)
{
	Descs list;
	size_t piece = len / entries;
	for (uint32_t i = 0; i < entries; i++) {
		size_t at = i * piece, n = i + 1 < entries ? piece : len - at;
		list.push_back(in_buffer ? fixed(write, 0, at, n, remote + at, i)
					 : transfer(write, (write ? ends.out : ends.in) + at, n,
						    remote + at, i));
	}
	return list;
}

int submit_all(Ends &ends, const Descs &list)
{
	static kdirect_completion done[entries];
	kdirect_submit batch{};
	batch.descs = address(list.data());
	batch.completions = address(done);
	batch.nr_descs = uint32_t(list.size());
	batch.nr_completions = batch.min_completions = uint32_t(list.size());
	ends.submitted = ends.completed = 0;
	if (int err = submit(ends.used, batch))
		return -err;
	ends.submitted = batch.submitted;
	ends.completed = batch.completed;
	for (uint32_t i = 0; i < batch.completed; i++)
		if (done[i].result < 0)
			return -done[i].result;
	return batch.completed == list.size() ? 0 : EFAULT;
}

// What was submitted and not reaped has its completion.
std::string reaped(Ends &ends)
{
	Completions rest;
	uint32_t left = ends.submitted - ends.completed;
	if (left && (reap(ends.used, rest, left) || rest.size() != left))
		return "of " + std::to_string(left) + " completions " +
		       std::to_string(rest.size()) + " came";
	return reap(ends.used, rest, 0) || !rest.empty() ? "there are more completions" : "";
}

Operation submitting(const std::string &name, Ends &ends, bool write, bool in_buffer, size_t len)
{
	auto list = std::make_shared<Descs>();
	return {name,
		[&ends, write, in_buffer, len, list] {
			ends.reopen();
			ends.fresh(write);
			*list = descs_of(ends, write, in_buffer, len);
			uint8_t *memory = write ? ends.out : ends.in;
			if (in_buffer && set_buffer(ends.used, 0, memory, space))
				die("no fixed buffer");
		},
		[&ends, list] { return submit_all(ends, *list); },
		[&ends, write, len](int err) {
			// the call that failed has told nothing
			std::string wrong = err && !ends.submitted ? "" : reaped(ends);
			close(ends.used);
			if (wrong.empty() && !err && !ends.same(write, len))
				wrong = "the content differs";
			return wrong;
		},
		{}};
}

// The result of a descriptor of fixed buffer 0.
int use_buffer(const Ends &ends)
{
	Completions done = run(ends.used, {fixed(false, 0, 0, large, remote)});
	return done.size() == 1 ? done[0].result : -EIO;
}

std::string buffer_is(Ends &ends, bool there)
{
	int got = use_buffer(ends);
	close(ends.used);
	if (got == (there ? int(large) : -ENOENT))
		return "";
	return "a descriptor of the buffer gives " + std::to_string(got);
}

} // namespace

std::vector<Operation> map_operations(const Target &target)
{
	static Ends ends(target.mapping);
	static io_uring ring;
	if (int err = io_uring_queue_init(4, &ring, 0))
		die("io_uring: %s", errno_name(-err));
	static CommandRing commands(4);
	iovec vecs[] = {{ends.out, space}, {ends.in, space}};
	if (!commands || io_uring_register_buffers(&commands.ring, vecs, 2))
		die("io_uring: no ring for commands");
	std::vector<Operation> list;

	list.push_back({"map open",
			[] { ends.used = -1; },
			[] {
				ends.used = open(ends.path, O_RDWR | O_CLOEXEC);
				return ends.used < 0 ? errno : 0;
			},
			[](int) {
				close(ends.used);
				return std::string();
			},
			{}});
	list.push_back(
		{"map close",
		 [] {
			 ends.reopen();
			 if (set_buffer(ends.used, 0, ends.in, space) ||
			     use_buffer(ends) != int(large))
				 die("no fixed buffer");
		 },
		 [] { return close(ends.used) ? errno : 0; },
		 [](int) { return std::string(fcntl(ends.used, F_GETFD) < 0 ? "" : "is open"); },
		 {}});
	for (auto [size, len] : {std::pair{"small", small}, std::pair{"large", large}}) {
		std::string text = size;
		list.push_back(
			transferring("map pwrite " + text, ends, true, len, [](Ends &e, size_t n) {
				return result(pwrite(e.fd, e.out, n, remote), n);
			}));
		list.push_back(
			transferring("map pread " + text, ends, false, len, [](Ends &e, size_t n) {
				return result(pread(e.fd, e.in, n, remote), n);
			}));
		for (bool write : {true, false})
			list.push_back(transferring(std::string("map ring ") +
							    (write ? "write " : "read ") + text,
						    ends, write, len, [write](Ends &e, size_t n) {
							    return through_ring(e, write, n, ring);
						    }));
		for (bool registered : {false, true})
			for (bool write : {true, false})
				list.push_back(
					commanding(std::string("command ") +
							   (registered ? "registered " : "") +
							   (write ? "write " : "read ") + text,
						   ends, write, len, commands, registered));
		for (bool in_buffer : {false, true})
			for (bool write : {true, false})
				list.push_back(submitting(
					std::string("submit ") + (in_buffer ? "fixed " : "") +
						(write ? "write " : "read ") + text,
					ends, write, in_buffer, len));
	}
	list.push_back({"submit atomic",
			[] { ends.reopen(); },
			[] {
				static const Descs list{fetch_add(0, 1, 0), cmp_swap(8, 0, 0, 1)};
				return submit_all(ends, list);
			},
			[](int err) {
				std::string wrong = err && !ends.submitted ? "" : reaped(ends);
				close(ends.used);
				return wrong;
			},
			{}});
	list.push_back({"buffer set",
			[] { ends.reopen(); },
			[] { return -set_buffer(ends.used, 0, ends.in, space); },
			[](int err) { return buffer_is(ends, !err); },
			{}});
	list.push_back({"buffer del",
			[] {
				ends.reopen();
				if (set_buffer(ends.used, 0, ends.in, space))
					die("no fixed buffer");
			},
			[] { return -del_buffer(ends.used, 0); },
			[](int err) { return buffer_is(ends, err); },
			{}});
	list.push_back({"map info",
			[] {},
			[] {
				kdirect_map_info info;
				return ioctl(ends.fd, KDIRECT_IOC_MAP_INFO, &info) ? errno : 0;
			},
			[](int) { return std::string(); },
			{}});
	return list;
}
