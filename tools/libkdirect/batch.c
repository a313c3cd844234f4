// SPDX-License-Identifier: GPL-2.0-only
// Batches of descriptors, and fixed buffers.
#include "deadline.h"
#include "libkdirect.h"

#include <errno.h>
#include <stdlib.h>

#define CAPACITY_MAX (1U << 24)

/* Those from first to end are not submitted. */
struct kdirect_batch {
	uint32_t capacity;
	uint32_t first;
	uint32_t end;
	struct kdirect_desc descs[];
};

int kdirect_batch_create(uint32_t capacity, struct kdirect_batch **batch)
{
	struct kdirect_batch *made;

	if (!capacity || capacity > CAPACITY_MAX)
		return -EINVAL;
	made = malloc(sizeof(*made) + (size_t)capacity * sizeof(made->descs[0]));
	if (!made)
		return -ENOMEM;
	made->capacity = capacity;
	made->first = 0;
	made->end = 0;
	*batch = made;
	return 0;
}

void kdirect_batch_free(struct kdirect_batch *batch)
{
	free(batch);
}

uint32_t kdirect_batch_count(const struct kdirect_batch *batch)
{
	return batch->end - batch->first;
}

void kdirect_batch_clear(struct kdirect_batch *batch)
{
	batch->first = 0;
	batch->end = 0;
}

struct kdirect_desc *kdirect_batch_next(struct kdirect_batch *batch)
{
	struct kdirect_desc *desc;

	if (batch->end == batch->capacity && batch->first) {
		uint32_t count = kdirect_batch_count(batch);

		memmove(batch->descs, batch->descs + batch->first, count * sizeof(*desc));
		batch->first = 0;
		batch->end = count;
	}
	if (batch->end == batch->capacity)
		return NULL;
	desc = &batch->descs[batch->end++];
	memset(desc, 0, sizeof(*desc));
	return desc;
}

/* Of @nr descriptors *@submitted are taken; returns the completions, or an error. */
static int submit(int fd, const struct kdirect_desc *descs, uint32_t nr, uint32_t *submitted,
		  struct kdirect_completion *done, uint32_t room, uint32_t min, uint32_t flags,
		  int64_t timeout_ns)
{
	struct kdirect_submit call = {
		.descs = (uintptr_t)descs,
		.completions = (uintptr_t)done,
		.nr_descs = nr,
		.nr_completions = room,
		.min_completions = timeout_ns ? min : 0,
		.flags = flags,
		.timeout_ns = timeout_ns > 0 ? (uint64_t)timeout_ns : 0,
	};
	int err;

	*submitted = 0;
	if (room > INT32_MAX || min > room || min > KDIRECT_DESC_ENTRIES)
		return -EINVAL;
	err = kd_sys_ioctl(fd, KDIRECT_IOC_SUBMIT, &call);
	if (err)
		return err;
	*submitted = call.submitted;
	return (int)call.completed;
}

int kdirect_batch_submit(struct kdirect_batch *batch, int fd, struct kdirect_completion *done,
			 uint32_t room, uint32_t min, uint32_t flags, int64_t timeout_ns)
{
	uint32_t submitted;
	int got = submit(fd, batch->descs + batch->first, kdirect_batch_count(batch), &submitted,
			 done, room, min, flags, timeout_ns);

	batch->first += submitted;
	if (batch->first == batch->end)
		kdirect_batch_clear(batch);
	return got;
}

int kdirect_batch_run(struct kdirect_batch *batch, int fd, struct kdirect_completion *done,
		      uint32_t flags, int64_t timeout_ns)
{
	int64_t deadline = kd_deadline(timeout_ns);
	uint32_t all = kdirect_batch_count(batch), completed = 0;

	while (completed < all) {
		uint32_t left = all - completed, min = left;
		int64_t time_left = kd_left(deadline);
		int got;

		/* Where all cannot be under way at once, keep what can. */
		if (min > KDIRECT_DESC_ENTRIES)
			min = KDIRECT_DESC_ENTRIES / 2;
		got = kdirect_batch_submit(batch, fd, done + completed, left, min, flags,
					   time_left);
		if (got == -EAGAIN || got == -EINTR || got == -ETIMEDOUT)
			got = 0;
		if (got < 0)
			return completed ? (int)completed : got;
		completed += (uint32_t)got;
		if (!time_left && completed < all)
			return completed || !timeout_ns ? (int)completed : -ETIMEDOUT;
	}
	return (int)completed;
}

int kdirect_reap(int fd, struct kdirect_completion *done, uint32_t room, uint32_t min,
		 uint32_t flags, int64_t timeout_ns)
{
	uint32_t submitted;

	return submit(fd, NULL, 0, &submitted, done, room, min, flags, timeout_ns);
}

int kdirect_buffer_set(int fd, uint32_t index, void *memory, size_t length)
{
	struct kdirect_buffer buffer = {
		.addr = (uintptr_t)memory,
		.length = length,
		.index = index,
	};

	return kd_sys_ioctl(fd, KDIRECT_IOC_BUFFER_SET, &buffer);
}

int kdirect_buffer_remove(int fd, uint32_t index)
{
	return kd_sys_ioctl(fd, KDIRECT_IOC_BUFFER_DEL, &index);
}
