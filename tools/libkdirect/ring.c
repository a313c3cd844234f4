// SPDX-License-Identifier: GPL-2.0-only
// Rings. kdirect.h has the protocol; each word is written by one side only.
#include "libkdirect.h"
#include "system.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>

typedef _Atomic uint32_t word;

/* next is of the submitting side: the number of the descriptor behind the last handed out. */
struct kdirect_ring {
	struct kdirect_ring_setup setup;
	int fd;
	uint32_t next;
	char *memory;
	word *sq_head;
	word *sq_tail;
	word *cq_head;
	word *cq_tail;
	word *state;
	struct kdirect_desc *descs;
	const struct kdirect_completion *completions;
};

/* --- life ------------------------------------------------------------------------------ */

static bool is_size(uint32_t entries)
{
	return entries && entries <= KDIRECT_RING_ENTRIES && !(entries & (entries - 1));
}

static bool has(const struct kdirect_ring_setup *setup, uint32_t at, uint64_t count, uint64_t size)
{
	return at % sizeof(uint32_t) == 0 && at <= setup->length &&
	       count <= (setup->length - at) / size;
}

static bool can_be(const struct kdirect_ring_setup *s)
{
	return is_size(s->sq_entries) && is_size(s->cq_entries) && (size_t)s->length == s->length &&
	       has(s, s->sq_head, 1, sizeof(word)) && has(s, s->sq_tail, 1, sizeof(word)) &&
	       has(s, s->cq_head, 1, sizeof(word)) && has(s, s->cq_tail, 1, sizeof(word)) &&
	       has(s, s->state, 1, sizeof(word)) && s->descs % sizeof(uint64_t) == 0 &&
	       has(s, s->descs, s->sq_entries, sizeof(struct kdirect_desc)) &&
	       s->completions % sizeof(uint64_t) == 0 &&
	       has(s, s->completions, s->cq_entries, sizeof(struct kdirect_completion));
}

int kdirect_ring_attach(int ring_fd, const struct kdirect_ring_setup *setup,
			struct kdirect_ring **ring)
{
	struct kdirect_ring *made;
	int err = -ENOMEM;

	if (!can_be(setup))
		return -EINVAL;
	made = calloc(1, sizeof(*made));
	if (!made)
		return err;
	made->memory = kd_sys_map(ring_fd, setup->length, &err);
	if (!made->memory) {
		free(made);
		return err;
	}
	made->setup = *setup;
	made->fd = ring_fd;
	made->sq_head = (word *)(made->memory + setup->sq_head);
	made->sq_tail = (word *)(made->memory + setup->sq_tail);
	made->cq_head = (word *)(made->memory + setup->cq_head);
	made->cq_tail = (word *)(made->memory + setup->cq_tail);
	made->state = (word *)(made->memory + setup->state);
	made->descs = (struct kdirect_desc *)(made->memory + setup->descs);
	made->completions = (struct kdirect_completion *)(made->memory + setup->completions);
	made->next = atomic_load_explicit(made->sq_tail, memory_order_relaxed);
	*ring = made;
	return 0;
}

int kdirect_ring_create(int fd, const struct kdirect_ring_setup *setup, struct kdirect_ring **ring)
{
	struct kdirect_ring_setup made = *setup;
	int ring_fd = kd_sys_ioctl(fd, KDIRECT_IOC_RING_SETUP, &made);
	int err;

	if (ring_fd < 0)
		return ring_fd;
	err = kdirect_ring_attach(ring_fd, &made, ring);
	if (err)
		kd_sys_close(ring_fd);
	return err;
}

void kdirect_ring_free(struct kdirect_ring *ring)
{
	if (!ring)
		return;
	kd_sys_unmap(ring->memory, ring->setup.length);
	kd_sys_close(ring->fd);
	free(ring);
}

int kdirect_ring_fd(const struct kdirect_ring *ring)
{
	return ring->fd;
}

const struct kdirect_ring_setup *kdirect_ring_layout(const struct kdirect_ring *ring)
{
	return &ring->setup;
}

/* --- both sides ------------------------------------------------------------------------ */

static bool is_threaded(const struct kdirect_ring *ring)
{
	return ring->setup.flags & KDIRECT_RING_THREAD;
}

/* Nobody polls for us. */
static bool must_poll(const struct kdirect_ring *ring)
{
	return (ring->setup.flags & KDIRECT_RING_POLL) && !is_threaded(ring);
}

static int enter(const struct kdirect_ring *ring, uint32_t to_submit, uint32_t min,
		 int64_t timeout_ns)
{
	struct kdirect_ring_enter call = {
		.to_submit = to_submit,
		.min_completions = timeout_ns ? min : 0,
		.flags = must_poll(ring) ? KDIRECT_ENTER_POLL : 0,
		.timeout_ns = timeout_ns > 0 ? (uint64_t)timeout_ns : 0,
	};
	int err = kd_sys_ioctl(ring->fd, KDIRECT_IOC_RING_ENTER, &call);

	return err ? err : (int)call.submitted;
}

/*
 * For who has just stored an index: the store and this load are in one order with the
 * kernel's store of the state and its load of that index, so that one of the two sees what
 * the other stored.
 */
static bool is_told(const struct kdirect_ring *ring, uint32_t bit)
{
	return atomic_load_explicit(ring->state, memory_order_seq_cst) & bit;
}

/* --- submitting ------------------------------------------------------------------------ */

uint32_t kdirect_ring_unsubmitted(const struct kdirect_ring *ring)
{
	return ring->next - atomic_load_explicit(ring->sq_head, memory_order_acquire);
}

struct kdirect_desc *kdirect_ring_next(struct kdirect_ring *ring)
{
	struct kdirect_desc *desc;

	if (kdirect_ring_unsubmitted(ring) >= ring->setup.sq_entries)
		return NULL;
	desc = &ring->descs[ring->next++ & (ring->setup.sq_entries - 1)];
	memset(desc, 0, sizeof(*desc));
	return desc;
}

/* How many were not there before. */
static uint32_t publish(struct kdirect_ring *ring)
{
	uint32_t count = ring->next - atomic_load_explicit(ring->sq_tail, memory_order_relaxed);

	if (count)
		atomic_store_explicit(ring->sq_tail, ring->next, memory_order_seq_cst);
	return count;
}

int kdirect_ring_submit(struct kdirect_ring *ring)
{
	uint32_t count = publish(ring);
	int err;

	if (!is_threaded(ring)) {
		count = kdirect_ring_unsubmitted(ring);
		return count || must_poll(ring) ? enter(ring, count, 0, 0) : 0;
	}
	if (!is_told(ring, KDIRECT_RING_NEED_WAKEUP))
		return (int)count;
	err = enter(ring, 0, 0, 0);
	return err < 0 ? err : (int)count;
}

/* --- reaping --------------------------------------------------------------------------- */

uint32_t kdirect_ring_ready(const struct kdirect_ring *ring)
{
	uint32_t head = atomic_load_explicit(ring->cq_head, memory_order_relaxed);
	uint32_t ready = atomic_load_explicit(ring->cq_tail, memory_order_acquire) - head;

	return ready < ring->setup.cq_entries ? ready : ring->setup.cq_entries;
}

const struct kdirect_completion *kdirect_ring_peek(const struct kdirect_ring *ring, uint32_t n)
{
	uint32_t head = atomic_load_explicit(ring->cq_head, memory_order_relaxed);

	if (n >= kdirect_ring_ready(ring))
		return NULL;
	return &ring->completions[(head + n) & (ring->setup.cq_entries - 1)];
}

int kdirect_ring_advance(struct kdirect_ring *ring, uint32_t n)
{
	uint32_t head = atomic_load_explicit(ring->cq_head, memory_order_relaxed);

	if (n > kdirect_ring_ready(ring))
		return -EINVAL;
	if (!n)
		return 0;
	atomic_store_explicit(ring->cq_head, head + n, memory_order_seq_cst);
	return is_told(ring, KDIRECT_RING_CQ_BEHIND) ? enter(ring, 0, 0, 0) : 0;
}

/* With @to_submit descriptors, if there is no thread for them. */
static int wait_for(const struct kdirect_ring *ring, uint32_t to_submit, uint32_t min,
		    int64_t timeout_ns)
{
	uint32_t ready = kdirect_ring_ready(ring);
	int err;

	if (min > ring->setup.cq_entries)
		return -EINVAL;
	if (!to_submit && ready >= min && !(must_poll(ring) && !ready))
		return (int)ready;
	if (!to_submit && !timeout_ns && !must_poll(ring) && !is_told(ring, KDIRECT_RING_CQ_BEHIND))
		return (int)ready;
	err = enter(ring, to_submit, min, timeout_ns);
	ready = kdirect_ring_ready(ring);
	return err < 0 && !ready ? err : (int)ready;
}

int kdirect_ring_wait(struct kdirect_ring *ring, uint32_t min, int64_t timeout_ns)
{
	return wait_for(ring, 0, min, timeout_ns);
}

int kdirect_ring_submit_and_wait(struct kdirect_ring *ring, uint32_t min, int64_t timeout_ns)
{
	int err;

	if (!is_threaded(ring)) {
		publish(ring);
		return wait_for(ring, kdirect_ring_unsubmitted(ring), min, timeout_ns);
	}
	err = kdirect_ring_submit(ring);
	return err < 0 ? err : wait_for(ring, 0, min, timeout_ns);
}
