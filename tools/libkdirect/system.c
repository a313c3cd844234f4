// SPDX-License-Identifier: GPL-2.0-only
#include "system.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#define NS_PER_S 1000000000

static ssize_t outcome(ssize_t got)
{
	return got < 0 ? -errno : got;
}

int kd_sys_open(const char *path, int flags)
{
	return (int)outcome(open(path, flags));
}

void kd_sys_close(int fd)
{
	close(fd);
}

int kd_sys_ioctl(int fd, unsigned long request, void *argument)
{
	return (int)outcome(ioctl(fd, request, argument));
}

ssize_t kd_sys_read(int fd, void *buffer, size_t size, bool nowait)
{
	struct iovec part = {buffer, size};

	return outcome(nowait ? preadv2(fd, &part, 1, -1, RWF_NOWAIT) : read(fd, buffer, size));
}

ssize_t kd_sys_write(int fd, const void *buffer, size_t size, bool nowait)
{
	struct iovec part = {(void *)buffer, size};

	return outcome(nowait ? pwritev2(fd, &part, 1, -1, RWF_NOWAIT) : write(fd, buffer, size));
}

int kd_sys_poll(int fd, short events, int64_t timeout_ns)
{
	struct pollfd one = {fd, events, 0};
	struct timespec limit = {timeout_ns / NS_PER_S, timeout_ns % NS_PER_S};

	return (int)outcome(ppoll(&one, 1, timeout_ns < 0 ? NULL : &limit, NULL));
}

void *kd_sys_map(int fd, size_t length, int *err)
{
	void *memory = mmap(NULL, length, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

	if (memory != MAP_FAILED)
		return memory;
	*err = -errno;
	return NULL;
}

void kd_sys_unmap(void *memory, size_t length)
{
	munmap(memory, length);
}

int64_t kd_sys_now(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (int64_t)now.tv_sec * NS_PER_S + now.tv_nsec;
}
