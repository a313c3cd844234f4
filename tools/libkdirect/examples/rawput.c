// SPDX-License-Identifier: GPL-2.0-only
//
// Raw channels: one program writes into the memory of another one.
//
//	rawput CHANNEL take		accepts, tells its key, and prints what was written
//	rawput CHANNEL put TEXT		connects, and writes TEXT there
//
// Both channels were made with "mode raw hold", so that the programs connect them.
#include <errno.h>
#include <fcntl.h>
#include <libkdirect_raw.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define SECOND 1000000000LL
#define ROOM 4096

static const struct kdirect_raw_connect terms = {.retry_count = 6, .rnr_retry_count = 7};

/* The memory of both: what is written, and behind it what tells the peer where. */
struct memory {
	char text[ROOM];
	struct kdirect_share key;
};

static int fail(const char *name, const char *what)
{
	fprintf(stderr, "rawput: %s: %s\n", name, what);
	return 1;
}

static int failed(const char *name, enum kdirect_call call, int err)
{
	return fail(name, kdirect_explain(call, err));
}

/* Posts what is in the batch, and reaps `count` completions of that and of what was before. */
static int run(const char *name, struct kdirect_batch *batch, int fd, uint32_t count,
	       struct kdirect_completion *done)
{
	uint32_t got = 0;

	while (got < count) {
		int n = kdirect_batch_submit(batch, fd, done + got, count - got, 1, 0, 20 * SECOND);

		if (n < 0)
			return failed(name, KDIRECT_CALL_SUBMIT, n);
		got += (uint32_t)n;
	}
	for (uint32_t i = 0; i < count; i++)
		if (done[i].result < 0)
			return failed(name, KDIRECT_CALL_WORK, done[i].result);
	return 0;
}

static int take(const char *name, int fd, struct kdirect_batch *batch, struct memory *memory)
{
	struct kdirect_completion done[2];
	int err;

	/* before the peer may write: the immediate data needs a receive */
	kdirect_prep_recv(kdirect_batch_next(batch), NULL, 0, 1);
	err = kdirect_batch_submit(batch, fd, done, 1, 0, 0, 0);
	if (err)
		return failed(name, KDIRECT_CALL_SUBMIT, err);
	err = kdirect_connect(fd, &terms);
	if (err)
		return failed(name, KDIRECT_CALL_CONNECT, err);
	err = kdirect_buffer_set(fd, 0, memory->text, ROOM);
	if (err)
		return failed(name, KDIRECT_CALL_BUFFER, err);
	err = kdirect_buffer_share(fd, 0, KDIRECT_ACCESS_WRITE, &memory->key);
	if (err)
		return failed(name, KDIRECT_CALL_SHARE, err);
	kdirect_prep_send(kdirect_batch_next(batch), &memory->key, sizeof(memory->key), 2);
	if (run(name, batch, fd, 2, done))
		return 1;
	for (int i = 0; i < 2; i++)
		if (done[i].user_data == 1 && (done[i].flags & KDIRECT_COMPLETION_WRITE))
			printf("%.*s\n", (int)(done[i].data % ROOM), memory->text);
	return 0;
}

static int put(const char *name, int fd, struct kdirect_batch *batch, struct memory *memory,
	       const char *text)
{
	uint32_t length = (uint32_t)strlen(text);
	struct kdirect_completion done[1];
	int err;

	kdirect_prep_recv(kdirect_batch_next(batch), &memory->key, sizeof(memory->key), 1);
	err = kdirect_batch_submit(batch, fd, done, 1, 0, 0, 0);
	if (err)
		return failed(name, KDIRECT_CALL_SUBMIT, err);
	err = kdirect_connect(fd, &terms);
	if (err)
		return failed(name, KDIRECT_CALL_CONNECT, err);
	if (run(name, batch, fd, 1, done))
		return 1;
	if (done[0].result != (int)sizeof(memory->key) || length > memory->key.length)
		return fail(name, "the peer has no room for that");
	memcpy(memory->text, text, length);
	kdirect_prep_write_imm(kdirect_batch_next(batch), memory->text, length, memory->key.addr,
			       memory->key.rkey, length, 2);
	return run(name, batch, fd, 1, done);
}

int main(int argc, char **argv)
{
	struct kdirect_batch *batch = NULL;
	struct memory *memory;
	int fd, status = 1;

	if (argc < 3 || (argc == 3) != !strcmp(argv[2], "take") ||
	    (argc != 3 && (argc != 4 || strcmp(argv[2], "put") || strlen(argv[3]) >= ROOM))) {
		fprintf(stderr, "usage: rawput CHANNEL take | put TEXT\n");
		return 2;
	}
	fd = kdirect_open(argv[1], O_RDWR);
	if (fd < 0)
		return failed(argv[1], KDIRECT_CALL_OPEN, fd);
	memory = calloc(1, sizeof(*memory));
	if (!memory || kdirect_batch_create(2, &batch))
		status = failed(argv[1], KDIRECT_CALL_SUBMIT, ENOMEM);
	else if (argc == 3)
		status = take(argv[1], fd, batch, memory);
	else
		status = put(argv[1], fd, batch, memory, argv[3]);
	close(fd); /* before its memory: the channel ends */
	kdirect_batch_free(batch);
	free(memory);
	return status;
}
