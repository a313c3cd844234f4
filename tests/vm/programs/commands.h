// SPDX-License-Identifier: GPL-2.0-only
// Descriptors as commands of io_uring, as programs of scenarios use them.
#pragma once

#include "desc.h"

#include <liburing.h>
#include <sys/uio.h>

// liburing of today's Debian knows the flags; how a command is prepared is up to us.
class CommandRing
{
public:
	static constexpr unsigned usual = IORING_SETUP_SQE128 | IORING_SETUP_CQE32;
	static constexpr int none = -1; // no registered buffer

	struct Result {
		uint64_t user_data;
		int res;
		uint64_t extra;
	};

	explicit CommandRing(unsigned entries, unsigned flags = usual)
	{
		io_uring_params params{};
		params.flags = flags | (flags & IORING_SETUP_SQPOLL ? 0 : IORING_SETUP_CLAMP);
		params.sq_thread_idle = 20;
		err = io_uring_queue_init_params(entries, &ring, &params);
	}
	~CommandRing() { end(); }
	CommandRing(const CommandRing &) = delete;
	CommandRing &operator=(const CommandRing &) = delete;
	explicit operator bool() const { return !err; }
	void end()
	{
		if (!err)
			io_uring_queue_exit(&ring);
		err = -ENXIO;
	}

	int add_buffer(void *memory, size_t length)
	{
		iovec vec{memory, length};
		return io_uring_register_buffers(&ring, &vec, 1);
	}

	// nullptr: no room.
	io_uring_sqe *push(int fd, const kdirect_desc &desc, uint64_t user_data,
			   int registered = none)
	{
		io_uring_sqe *sqe = io_uring_get_sqe(&ring);
		if (!sqe)
			return nullptr;
		bool wide = ring.flags & IORING_SETUP_SQE128;
		std::memset(static_cast<void *>(sqe), 0, wide ? 128 : 64);
		sqe->opcode = IORING_OP_URING_CMD;
		sqe->fd = fd;
		sqe->cmd_op = KDIRECT_URING_CMD_DESC;
		sqe->user_data = user_data;
		if (registered != none) {
			sqe->uring_cmd_flags = IORING_URING_CMD_FIXED;
			sqe->buf_index = uint16_t(registered);
		}
		std::memcpy(sqe->cmd, &desc, wide ? sizeof(desc) : 16);
		return sqe;
	}
	// 0, or the errno behind a minus sign.
	int go(unsigned least = 0)
	{
		int ret;
		do
			ret = least ? io_uring_submit_and_wait(&ring, least)
				    : io_uring_submit(&ring);
		while (ret == -EINTR || ret == -EAGAIN);
		return ret < 0 ? ret : 0;
	}
	bool pop(Result &out)
	{
		io_uring_cqe *cqe;
		if (io_uring_peek_cqe(&ring, &cqe))
			return false;
		out = {cqe->user_data, cqe->res,
		       ring.flags & IORING_SETUP_CQE32 ? cqe->big_cqe[0] : 0};
		io_uring_cqe_seen(&ring, cqe);
		return true;
	}
	bool wait(Result &out)
	{
		while (!pop(out))
			if (go(1))
				return false;
		return true;
	}

	io_uring ring{};
	int err;
};
