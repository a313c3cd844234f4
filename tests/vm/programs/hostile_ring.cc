// SPDX-License-Identifier: GPL-2.0-only
// io_uring and Linux AIO on the nodes, and what processes do with their files.
#include "hostile_files.h"

#include <csignal>
#include <liburing.h>
#include <linux/aio_abi.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

namespace
{

constexpr unsigned entries = 8;

// What is in a ring at a time; memory must outlive it.
struct Request {
	const char *kind;
	Target file;
	bool out = false, transfer = false, may_work = true;
	size_t len = 0;
	Allowed allowed{};
	Vector vector;
};

// `wide`: SQEs have room for a descriptor.
void prepare(Thread &t, io_uring_sqe *sqe, Request &r, unsigned index, Request *all, bool wide)
{
	Target &file = r.file;
	bool mapping = file.node->mapping;
	// a ring asks a file that is O_NONBLOCK as with RWF_NOWAIT
	file.nowait = file.may_not_block();
	r.out = t.actor.one_in(3);
	switch (t.actor.below(10)) {
	case 0:
	case 1:
	case 2:
	case 3: {
		r.kind = r.out ? "ring write" : "ring read";
		r.transfer = true;
		r.len = length(t) & 0xffffffff;
		Piece p = t.memory.piece(t.actor, r.len, r.out);
		r.may_work = p.may_work;
		r.allowed = transfer_errors(t, file, r.out, r.len, p.may_fail);
		uint64_t offset = t.actor.one_in(6) ? t.actor.below(3) : uint64_t(-1);
		if (mapping)
			offset = t.actor.below(file.node->map.size + 10);
		if (r.out)
			io_uring_prep_write(sqe, file.fd, p.start, unsigned(r.len), offset);
		else
			io_uring_prep_read(sqe, file.fd, p.start, unsigned(r.len), offset);
		r.allowed.add_if(offset != uint64_t(-1), {ESPIPE});
		break;
	}
	case 4:
	case 5: {
		r.kind = r.out ? "ring writev" : "ring readv";
		r.transfer = true;
		r.vector = make_vector(t, r.out);
		r.len = r.vector.total;
		r.may_work = r.vector.may_work;
		r.allowed = transfer_errors(t, file, r.out, r.len, r.vector.may_fail);
		r.allowed.add_if(r.vector.overflows, {EINVAL, EFAULT});
		uint64_t at = mapping ? t.actor.below(file.node->map.size + 10) : uint64_t(-1);
		if (r.out)
			io_uring_prep_writev(sqe, file.fd, r.vector.vecs.data(),
					     unsigned(r.vector.vecs.size()), at);
		else
			io_uring_prep_readv(sqe, file.fd, r.vector.vecs.data(),
					    unsigned(r.vector.vecs.size()), at);
		break;
	}
	case 6:
		r.kind = "ring poll";
		io_uring_prep_poll_add(sqe, file.fd, unsigned(t.actor.next_bits(16)));
		if (t.actor.one_in(3))
			sqe->len |= IORING_POLL_ADD_MULTI;
		r.allowed.add({EBADF, EINVAL, ECANCELED, ENOENT});
		return;
	case 7:
		r.kind = "ring cancel";
		if (t.actor.one_in(2))
			io_uring_prep_cancel(sqe, &all[t.actor.below(index + 1)], 0);
		else
			io_uring_prep_poll_remove(
				sqe, uint64_t(uintptr_t(&all[t.actor.below(index + 1)])));
		r.allowed.add({ENOENT, EALREADY, EINVAL, ECANCELED});
		return;
	case 8:
		if (wide && mapping && !t.actor.one_in(4)) {
			kdirect_desc desc;
			r.kind = "ring descriptor";
			r.allowed = map_command(t, file, desc);
			sqe->opcode = IORING_OP_URING_CMD;
			sqe->fd = file.fd;
			sqe->cmd_op = KDIRECT_URING_CMD_DESC;
			std::memcpy(sqe->cmd, &desc, sizeof(desc));
			if (t.actor.one_in(20))
				sqe->cmd[t.actor.below(80)] ^= uint8_t(t.actor.next_bits(8)),
					r.allowed.all();
			sqe->uring_cmd_flags =
				t.actor.one_in(10) ? uint32_t{IORING_URING_CMD_FIXED} : 0;
			r.allowed.add({EBADF, EINTR, ECANCELED, EOPNOTSUPP});
			r.allowed.add_if(sqe->uring_cmd_flags, {EFAULT, EINVAL});
			return;
		}
		r.kind = "ring command";
		sqe->opcode = uint8_t(t.actor.one_of(
			{IORING_OP_URING_CMD, IORING_OP_URING_CMD, IORING_OP_FSYNC,
			 IORING_OP_FALLOCATE, IORING_OP_READ_FIXED, IORING_OP_WRITE_FIXED}));
		sqe->fd = file.fd;
		sqe->off = t.actor.next_bits(8);
		sqe->addr = t.actor.next_bits(20);
		sqe->len = uint32_t(t.actor.next_bits(10));
		r.allowed.add(
			{EBADF, EINVAL, EOPNOTSUPP, EFAULT, ENODEV, ENOTTY, ESPIPE, ECANCELED});
		return;
	default: { // anything at all that cannot do harm elsewhere
		r.kind = "ring noise";
		sqe->opcode =
			uint8_t(t.actor.one_of({0, 1, 2, 6, 12, 14, 22, 23, 46, 47, 200, 255}));
		sqe->flags = uint8_t(t.actor.next_bits(8));
		sqe->ioprio = uint16_t(t.actor.next_bits(t.actor.one_in(2) ? 16 : 1) - 0);
		sqe->fd = file.fd;
		sqe->off = t.actor.next_bits(60);
		sqe->addr = t.actor.next_bits(48);
		sqe->len = uint32_t(t.actor.next_bits(12));
		sqe->rw_flags = int(t.actor.next_bits(5));
		r.allowed.all();
		return;
	}
	}
	sqe->rw_flags = t.actor.one_of({0, 0, 0, RWF_NOWAIT, RWF_HIPRI, 1 << 20, -1});
	r.allowed.add_if(sqe->rw_flags, {EOPNOTSUPP, EINVAL});
	r.allowed.add_if(sqe->rw_flags & RWF_NOWAIT, {EAGAIN});
	// A cancelled request that was blocked, or whose link is broken.
	r.allowed.add({ECANCELED, EINTR});
	if (t.actor.one_in(3))
		sqe->flags |= uint8_t(t.actor.one_of(
			{IOSQE_ASYNC, IOSQE_IO_LINK, IOSQE_IO_HARDLINK, IOSQE_IO_DRAIN}));
	// not in a ring where anything had no completion
	r.allowed.add_if(sqe->flags & IOSQE_IO_DRAIN, {EOPNOTSUPP});
}

void completed(Thread &t, const io_uring_cqe *cqe)
{
	auto *r = static_cast<Request *>(io_uring_cqe_get_data(cqe));
	if (!r)
		return;
	if (cqe->res < 0)
		errno = -cqe->res;
	ssize_t n = cqe->res < 0 ? -1 : cqe->res;
	if (r->transfer)
		transferred(t, r->kind, r->file, r->out, n, r->len, r->may_work, r->allowed);
	else
		t.actor.expect(r->kind, cqe->res, r->allowed);
}

} // namespace

void ring(Thread &t)
{
	static const unsigned setups[] = {0,
					  0,
					  0,
					  0,
					  IORING_SETUP_IOPOLL,
					  IORING_SETUP_SQPOLL,
					  IORING_SETUP_CQSIZE,
					  IORING_SETUP_SQE128,
					  IORING_SETUP_SQE128 | IORING_SETUP_CQE32,
					  IORING_SETUP_SQE128 | IORING_SETUP_CQE32,
					  IORING_SETUP_SQE128 | IORING_SETUP_IOPOLL,
					  IORING_SETUP_COOP_TASKRUN};
	io_uring_params params{};
	params.flags = t.actor.one_of(setups);
	params.cq_entries = entries;
	params.sq_thread_idle = 1;
	io_uring ring;
	t.actor.begin("a ring with flags %#x", params.flags);
	int ret = io_uring_queue_init_params(entries, &ring, &params);
	t.actor.expect("ring", ret, {EINVAL, EPERM, ENOMEM});
	if (ret)
		return;
	Request requests[entries];
	unsigned count = 1 + unsigned(t.actor.below(entries));
	std::string kinds;
	for (unsigned i = 0; i < count; i++) {
		io_uring_sqe *sqe = io_uring_get_sqe(&ring);
		if (!sqe)
			break;
		// Rings outlast what this thread knows of its files: it may close them.
		requests[i].file = t.target();
		bool wide = params.flags & IORING_SETUP_SQE128;
		std::memset(static_cast<void *>(sqe), 0, wide ? 128 : 64);
		prepare(t, sqe, requests[i], i, requests, wide);
		kinds += std::string(" ") + requests[i].kind;
		if (params.flags & IORING_SETUP_IOPOLL)
			requests[i].allowed.add({EOPNOTSUPP, EINVAL});
		io_uring_sqe_set_data(sqe, &requests[i]);
	}
	t.actor.begin("io_uring_submit:%s", kinds.substr(0, 150).c_str());
	ret = io_uring_submit(&ring);
	t.actor.expect("ring submit", ret,
		       {EINTR, EAGAIN, EBUSY, EBADF, EINVAL, EOPNOTSUPP, EFAULT, ECANCELED, ENXIO});
	for (unsigned i = 0; i < count; i++) {
		__kernel_timespec time{0, 2000000};
		io_uring_cqe *cqe;
		t.actor.begin("io_uring_wait_cqe_timeout:%s", kinds.substr(0, 150).c_str());
		if (io_uring_wait_cqe_timeout(&ring, &cqe, &time))
			break;
		t.actor.end();
		completed(t, cqe);
		io_uring_cqe_seen(&ring, cqe);
	}
	// What still waits is cancelled with the ring, in the background: the memory stays.
	t.actor.begin("the end of a ring of%s", kinds.substr(0, 150).c_str());
	io_uring_queue_exit(&ring);
	t.actor.end();
}

void aio(Thread &t)
{
	aio_context_t context = 0;
	t.actor.begin("io_setup");
	if (syscall(SYS_io_setup, 4, &context)) {
		t.actor.expect("aio setup", -errno, {EAGAIN, ENOMEM});
		return;
	}
	Target &file = t.target();
	iocb block{};
	block.aio_fildes = uint32_t(file.fd);
	block.aio_lio_opcode =
		uint16_t(t.actor.one_of({IOCB_CMD_PREAD, IOCB_CMD_PWRITE, IOCB_CMD_POLL,
					 IOCB_CMD_FSYNC, IOCB_CMD_PREADV, IOCB_CMD_NOOP}));
	bool out = block.aio_lio_opcode == IOCB_CMD_PWRITE;
	size_t len = length(t);
	Piece p = t.memory.piece(t.actor, len, out);
	block.aio_buf = block.aio_lio_opcode == IOCB_CMD_POLL ? t.actor.next_bits(16)
							      : uint64_t(uintptr_t(p.start));
	block.aio_nbytes = block.aio_lio_opcode == IOCB_CMD_POLL ? 0 : len;
	block.aio_offset = t.actor.one_in(4) ? 5 : 0;
	block.aio_rw_flags = t.actor.one_of({0, 0, RWF_NOWAIT, RWF_HIPRI});
	iocb *blocks[] = {&block};
	t.actor.begin("io_submit(%u on %d)", block.aio_lio_opcode, file.fd);
	long n = syscall(SYS_io_submit, context, 1, blocks);
	t.actor.expect("aio submit", n < 0 ? -errno : n,
		       {EINVAL, EBADF, EFAULT, EAGAIN, EOPNOTSUPP, ESPIPE, EINTR});
	io_event event;
	timespec time{0, 1000000};
	t.actor.begin("io_getevents");
	n = syscall(SYS_io_getevents, context, 1, 1, &event, &time);
	t.actor.end();
	if (n == 1 && block.aio_lio_opcode <= IOCB_CMD_PWRITE) {
		errno = event.res < 0 ? int(-event.res) : 0;
		Allowed allowed = transfer_errors(t, file, out, len, p.may_fail);
		allowed.add({EOPNOTSUPP, ESPIPE});
		allowed.add_if(block.aio_rw_flags & RWF_NOWAIT, {EAGAIN});
		transferred(t, out ? "aio write" : "aio read", file, out,
			    event.res < 0 ? -1 : event.res, len, p.may_work, allowed);
	}
	t.actor.begin("io_destroy of %u on %d", block.aio_lio_opcode, file.fd);
	syscall(SYS_io_destroy, context);
	t.actor.end();
}

namespace
{

// In a child that shares nothing but files: no allocation, no lock.
[[noreturn]] void child(Random random, const int *fds, unsigned count, bool exec, bool maps)
{
	signal(SIGALRM, SIG_DFL);
	static char buffer[70000];
	for (unsigned i = 0; i < 20; i++) {
		int fd = fds[random.next() % count];
		size_t len = random.next() % sizeof(buffer);
		pollfd ready{fd, POLLIN, 0};
		switch (random.next() % (maps ? 8 : 5)) {
		case 0: (void)!read(fd, buffer, len); break;
		case 1: (void)!write(fd, buffer, len); break;
		case 2: poll(&ready, 1, 2); break;
		case 3: close(fd); break;
		case 4: dup2(fd, fds[random.next() % count]); break;
		default: child_submit(random, fd); break;
		}
	}
	if (exec) {
		for (unsigned i = 0; i < count; i++)
			fcntl(fds[i], F_SETFD, 0);
		execl("/bin/true", "true", nullptr);
	}
	_exit(0);
}

void fork_one(Thread &t)
{
	int fds[4];
	for (int &fd : fds) {
		Target &file = t.target();
		file.exposed |= file.node->mapping;
		fd = file.fd;
	}
	Random random(t.actor.random.next());
	bool exec = t.actor.one_in(3);
	useconds_t delay = useconds_t(t.actor.below(8000));
	t.actor.begin("fork%s, and kill", exec ? " and exec" : "");
	pid_t pid = fork();
	if (pid == 0)
		child(random, fds, std::size(fds), exec, t.attack.nodes[0].mapping);
	if (pid < 0) {
		t.actor.expect("fork", -errno, {EAGAIN, ENOMEM});
		return;
	}
	usleep(delay);
	kill(pid, SIGKILL);
	int status;
	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	t.actor.expect("fork", 0, {});
}

// A file that is only in a message, which nobody will ever receive.
void send_file(Thread &t)
{
	int ends[2];
	if (socketpair(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0, ends))
		return;
	Target &file = t.target();
	char byte = 0;
	iovec vec{&byte, 1};
	alignas(cmsghdr) char space[CMSG_SPACE(2 * sizeof(int))] = {};
	msghdr message{};
	message.msg_iov = &vec;
	message.msg_iovlen = 1;
	message.msg_control = space;
	message.msg_controllen = sizeof(space);
	cmsghdr *rights = CMSG_FIRSTHDR(&message);
	rights->cmsg_level = SOL_SOCKET;
	rights->cmsg_type = SCM_RIGHTS;
	rights->cmsg_len = CMSG_LEN(2 * sizeof(int));
	int fds[] = {file.fd, ends[1]}; // its own receiver: only collect_sockets() frees it
	std::memcpy(CMSG_DATA(rights), fds, sizeof(fds));
	t.actor.begin("send file %d", file.fd);
	ssize_t n = sendmsg(ends[0], &message, MSG_DONTWAIT);
	t.actor.expect("send file", n < 0 ? -errno : n, {EBADF, EAGAIN, ETOOMANYREFS, EINTR});
	close(ends[0]);
	close(ends[1]);
}

} // namespace

// Closing a socket, while a file is in a message, makes the kernel look for such cycles.
void collect_sockets()
{
	for (int i = 0; i < 2; i++)
		close(socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0));
}

void process(Thread &t)
{
	if (t.actor.one_in(3))
		send_file(t);
	else
		fork_one(t);
}
