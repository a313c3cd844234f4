// SPDX-License-Identifier: GPL-2.0-only
// Whole messages, with a time limit.
#include "deadline.h"
#include "libkdirect.h"

#include <errno.h>
#include <poll.h>

/* No channel has longer ones (KDIRECT_A_MAX_MESSAGE). */
#define LONGEST (1 << 20)

/* 0: try again. The time limit is no -ETIMEDOUT, with which a connection may have failed. */
static int wait_for(int fd, short events, int64_t deadline)
{
	int64_t left = kd_left(deadline);
	int got = left ? kd_sys_poll(fd, events, left) : 0;

	if (got < 0)
		return got;
	return got ? 0 : -EAGAIN;
}

int kdirect_send(int fd, const void *message, size_t length, int64_t timeout_ns)
{
	int64_t deadline = kd_deadline(timeout_ns);

	if (!length)
		return -EINVAL;
	for (;;) {
		ssize_t got = kd_sys_write(fd, message, length, timeout_ns >= 0);
		int err;

		if (got != -EAGAIN)
			return got < 0 ? (int)got : 0;
		err = wait_for(fd, POLLOUT, deadline);
		if (err)
			return err;
	}
}

ssize_t kdirect_recv(int fd, void *buffer, size_t size, int64_t timeout_ns)
{
	int64_t deadline = kd_deadline(timeout_ns);

	if (size < LONGEST) {
		struct kdirect_info info;
		int err = kdirect_channel_info(fd, &info);

		if (err)
			return err;
		if (size < info.max_message)
			return -EMSGSIZE;
	}
	for (;;) {
		ssize_t got = kd_sys_read(fd, buffer, size, timeout_ns >= 0);
		int err;

		if (got != -EAGAIN)
			return got;
		err = wait_for(fd, POLLIN, deadline);
		if (err)
			return err;
	}
}
