// SPDX-License-Identifier: GPL-2.0-only
//
// Messages: two programs, each at one end of a channel.
//
//	pingpong CHANNEL echo		sends every message back, until the channel ends
//	pingpong CHANNEL COUNT SIZE	sends COUNT messages of SIZE bytes and takes them back
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <libkdirect.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#define SECOND 1000000000LL

static int fail(const char *name, enum kdirect_call call, int err)
{
	fprintf(stderr, "pingpong: %s: %s\n", name, kdirect_explain(call, err));
	return 1;
}

static int echo(const char *name, int fd, unsigned char *buffer, size_t size)
{
	for (;;) {
		ssize_t length = kdirect_recv(fd, buffer, size, -1);
		int err;

		if (!length)
			return 0;
		if (length < 0)
			return fail(name, KDIRECT_CALL_RECV, (int)length);
		err = kdirect_send(fd, buffer, (size_t)length, 10 * SECOND);
		if (err)
			return fail(name, KDIRECT_CALL_SEND, err);
	}
}

static int play(const char *name, int fd, unsigned char *buffer, size_t size, long count,
		size_t length)
{
	unsigned char *message = buffer + size;
	struct timespec begun, ended;
	double us;

	clock_gettime(CLOCK_MONOTONIC, &begun);
	for (long i = 0; i < count; i++) {
		ssize_t got;
		int err;

		memset(message, (int)i, length);
		err = kdirect_send(fd, message, length, 10 * SECOND);
		if (err)
			return fail(name, KDIRECT_CALL_SEND, err);
		got = kdirect_recv(fd, buffer, size, 10 * SECOND);
		if (got < 0)
			return fail(name, KDIRECT_CALL_RECV, (int)got);
		if ((size_t)got != length || memcmp(buffer, message, length)) {
			fprintf(stderr, "pingpong: %s: message %ld came back changed\n", name, i);
			return 1;
		}
	}
	clock_gettime(CLOCK_MONOTONIC, &ended);
	us = (double)(ended.tv_sec - begun.tv_sec) * 1e6 +
	     (double)(ended.tv_nsec - begun.tv_nsec) / 1e3;
	printf("%ld round trips of %zu bytes, %.1f us each\n", count, length, us / (double)count);
	return 0;
}

int main(int argc, char **argv)
{
	struct kdirect_info info;
	unsigned char *buffer;
	size_t length;
	long count;
	int fd, status;

	if (argc < 3 || argc > 4 || (argc == 3) != !strcmp(argv[2], "echo")) {
		fprintf(stderr, "usage: pingpong CHANNEL echo | COUNT SIZE\n");
		return 2;
	}
	count = argc == 4 ? atol(argv[2]) : 0;
	length = argc == 4 ? strtoul(argv[3], NULL, 10) : 0;
	fd = kdirect_open(argv[1], O_RDWR);
	if (fd < 0)
		return fail(argv[1], KDIRECT_CALL_OPEN, fd);
	status = kdirect_channel_info(fd, &info);
	if (status) {
		close(fd);
		return fail(argv[1], KDIRECT_CALL_INFO, status);
	}
	if (argc == 4 && (count < 1 || !length || length > info.max_message)) {
		fprintf(stderr, "pingpong: %s: COUNT from 1 on, SIZE from 1 to %" PRIu32 "\n",
			argv[1], info.max_message);
		close(fd);
		return 2;
	}
	buffer = malloc(info.max_message + length);
	if (!buffer) {
		status = fail(argv[1], KDIRECT_CALL_RECV, ENOMEM);
	} else if (argc == 3) {
		status = echo(argv[1], fd, buffer, info.max_message);
	} else {
		status = play(argv[1], fd, buffer, info.max_message, count, length);
	}
	free(buffer);
	close(fd);
	return status;
}
