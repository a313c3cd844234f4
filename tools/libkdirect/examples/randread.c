// SPDX-License-Identifier: GPL-2.0-only
//
// Rings: random READs of a mapping, DEPTH of them under way at a time.
//
//	randread MAPPING COUNT DEPTH LENGTH [poll] [thread]
//
// poll: on the channel's poll queues. thread: a kernel thread submits.
#include <errno.h>
#include <fcntl.h>
#include <libkdirect.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#define IDLE_NS 1000000

static int fail(const char *name, enum kdirect_call call, int err)
{
	fprintf(stderr, "randread: %s: %s\n", name, kdirect_explain(call, err));
	return 1;
}

static uint64_t next_random(uint64_t *state)
{
	*state ^= *state << 13;
	*state ^= *state >> 7;
	*state ^= *state << 17;
	return *state;
}

/* 0, 1 or the end of it. Each slot of the buffer has one READ under way. */
static int run(const char *name, struct kdirect_ring *ring, uint64_t size, uint64_t count,
	       uint32_t depth, uint32_t length)
{
	uint64_t begun = 0, ended = 0, random = 88172645463325252ULL;
	uint32_t idle[KDIRECT_DESC_ENTRIES], nr_idle = depth;

	for (uint32_t i = 0; i < depth; i++)
		idle[i] = i;
	while (ended < count) {
		const struct kdirect_completion *done;
		struct kdirect_desc *desc;
		uint32_t reaped = 0;
		int err;

		while (begun < count && nr_idle && (desc = kdirect_ring_next(ring))) {
			uint32_t slot = idle[--nr_idle];
			uint64_t at = next_random(&random) % (size / length) * length;

			kdirect_prep_read_fixed(desc, 0, (uint64_t)slot * length, length, at, slot);
			begun++;
		}
		err = kdirect_ring_submit_and_wait(ring, 1, -1);
		if (err < 0 && err != -EINTR)
			return fail(name, KDIRECT_CALL_RING_ENTER, err);
		while ((done = kdirect_ring_peek(ring, reaped))) {
			if (done->result < 0)
				return fail(name, KDIRECT_CALL_DESC, done->result);
			idle[nr_idle++] = (uint32_t)done->user_data;
			reaped++;
		}
		ended += reaped;
		err = kdirect_ring_advance(ring, reaped);
		if (err)
			return fail(name, KDIRECT_CALL_RING_ENTER, err);
	}
	return 0;
}

static int measure(const char *name, int fd, const struct kdirect_ring_setup *setup, uint64_t count,
		   uint32_t depth, uint32_t length)
{
	struct kdirect_map_info info;
	struct kdirect_ring *ring;
	struct timespec begun, ended;
	double seconds;
	void *memory;
	int err = kdirect_mapping_info(fd, &info);

	if (err)
		return fail(name, KDIRECT_CALL_INFO, err);
	if (info.size < length) {
		fprintf(stderr, "randread: %s: LENGTH is at most %llu\n", name,
			(unsigned long long)info.size);
		return 2;
	}
	err = kdirect_ring_create(fd, setup, &ring);
	if (err)
		return fail(name, KDIRECT_CALL_RING_SETUP, err);
	memory = malloc((size_t)depth * length);
	err = memory ? kdirect_buffer_set(fd, 0, memory, (size_t)depth * length) : -ENOMEM;
	if (err) {
		err = fail(name, KDIRECT_CALL_BUFFER, err);
	} else {
		clock_gettime(CLOCK_MONOTONIC, &begun);
		err = run(name, ring, info.size, count, depth, length);
		clock_gettime(CLOCK_MONOTONIC, &ended);
		seconds = (double)(ended.tv_sec - begun.tv_sec) +
			  (double)(ended.tv_nsec - begun.tv_nsec) / 1e9;
		if (!err)
			printf("%llu READs of %u bytes, %u at a time: %.0f IOPS\n",
			       (unsigned long long)count, length, depth, (double)count / seconds);
	}
	kdirect_ring_free(ring);
	free(memory);
	return err;
}

int main(int argc, char **argv)
{
	struct kdirect_ring_setup setup = {.sq_entries = 64, .cq_entries = KDIRECT_DESC_ENTRIES};
	unsigned long count, depth, length;
	int fd, status;

	count = argc > 4 ? strtoul(argv[2], NULL, 10) : 0;
	depth = argc > 4 ? strtoul(argv[3], NULL, 10) : 0;
	length = argc > 4 ? strtoul(argv[4], NULL, 10) : 0;
	for (int i = 5; i < argc; i++)
		if (!strcmp(argv[i], "poll"))
			setup.flags |= KDIRECT_RING_POLL;
		else if (!strcmp(argv[i], "thread"))
			setup.flags |= KDIRECT_RING_THREAD;
		else
			count = 0;
	if (!count || !depth || depth > KDIRECT_DESC_ENTRIES || !length || length > 1 << 20) {
		fprintf(stderr,
			"usage: randread MAPPING COUNT DEPTH LENGTH [poll] [thread]\n"
			"DEPTH is 1 to %d, LENGTH 1 to 1048576 bytes\n",
			KDIRECT_DESC_ENTRIES);
		return 2;
	}
	if (setup.flags & KDIRECT_RING_THREAD) {
		setup.thread_cpu = -1;
		setup.idle_ns = IDLE_NS;
	}
	fd = kdirect_open(argv[1], O_RDONLY);
	if (fd < 0)
		return fail(argv[1], KDIRECT_CALL_OPEN, fd);
	status = measure(argv[1], fd, &setup, count, (uint32_t)depth, (uint32_t)length);
	close(fd);
	return status;
}
