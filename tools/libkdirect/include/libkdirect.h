/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * libkdirect.h - channels and mappings of kdirect, for programs
 *
 * A thin layer over the system calls of kdirect.h, which says what the nodes promise; here
 * is only what the library adds. Objects are file descriptors wherever one is enough, so
 * that read(), poll(), io_uring and so on work beside the library, and close() ends them.
 *
 * Errors: every function that can fail returns a negative errno (never -1 for its own
 * sake), and errno itself has no meaning. Nothing global is kept. kdirect_explain() makes
 * sentences of errors.
 *
 * Times: nanoseconds on CLOCK_MONOTONIC. A negative timeout_ns waits as long as it takes, 0
 * does not wait.
 *
 * Threads: functions that take a file descriptor may be called by any number of threads at
 * a time, also for the same one. A batch is one thread's at a time. A ring has two sides:
 * one thread at a time may submit, and at the same time another one may reap.
 *
 * May block: says the comment of each function; none that does not say so blocks.
 *
 * C11 or C++. For C++20 there is libkdirect.hh, and for raw channels libkdirect_raw.h. Since
 * version 0.1.
 */
#ifndef LIBKDIRECT_H
#define LIBKDIRECT_H

#include <kdirect.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/types.h>

#ifdef __cplusplus
extern "C" {
#endif

/* --- nodes ----------------------------------------------------------------------------- */

/**
 * kdirect_open() - open the node of a channel, raw or not, or of a mapping
 * @node: its name, or a path (with a slash)
 * @flags: O_RDONLY, O_WRONLY or O_RDWR, O_NONBLOCK, O_DIRECT; O_CLOEXEC is added
 *
 * Return: a file descriptor, to be closed with close(), or
 *   -EINVAL	@node is NULL, empty, or not a name and without a slash
 *   -ENOTTY	there is something at @node that is not of kdirect
 *   -ENOENT	there is no such node
 *   -EACCES	the caller may not, or a mapping is read-only and was to be written
 *   others	of open(2)
 */
int kdirect_open(const char *node, int flags);

/**
 * enum kdirect_node_kind - what a file descriptor is
 * @KDIRECT_NODE_CHANNEL: messages
 * @KDIRECT_NODE_MAPPING: memory of the peer
 * @KDIRECT_NODE_RAW: a raw channel (libkdirect_raw.h)
 */
enum kdirect_node_kind {
	KDIRECT_NODE_CHANNEL = 1,
	KDIRECT_NODE_MAPPING = 2,
	KDIRECT_NODE_RAW = 3,
};

/**
 * kdirect_kind_of() - what a file descriptor is of
 * @fd: any file descriptor
 *
 * Return: enum kdirect_node_kind, -ENOTTY (none of them), -EBADF.
 */
int kdirect_kind_of(int fd);

/**
 * kdirect_channel_info() - what a channel agreed on
 * @fd: of a channel
 * @info: all of it is written
 *
 * Return: 0, -ENOTTY (not a channel), -EBADF.
 */
int kdirect_channel_info(int fd, struct kdirect_info *info);

/**
 * kdirect_mapping_info() - size, rights and limits of a mapping
 * @fd: of a mapping
 * @info: all of it is written
 *
 * Return: 0, -ENOTTY (not a mapping), -EBADF.
 */
int kdirect_mapping_info(int fd, struct kdirect_map_info *info);

/**
 * kdirect_get_flags() - the flags of an open file
 * @fd: of a channel or of a mapping
 * @flags: KDIRECT_OPEN_*
 *
 * Return: 0, -ENOTTY, -EBADF.
 */
int kdirect_get_flags(int fd, uint32_t *flags);

/**
 * kdirect_set_flags() - replace them
 * @fd: of a channel or of a mapping; its duplicates have the same flags
 * @flags: KDIRECT_OPEN_*
 *
 * Return: 0, -EINVAL (unknown flag, two modes), -EOPNOTSUPP (no poll queue), -ENOTTY, -EBADF.
 */
int kdirect_set_flags(int fd, uint32_t flags);

/**
 * kdirect_ping_peer() - one round trip to the peer's kernel
 * @fd: of a channel, open for reading and writing
 * @ping: size, flags and timeout_ns go in, rtt_ns and queue come out
 *
 * Blocks, for ping->timeout_ns at most (where 0 is one second, as in kdirect.h).
 *
 * Return: 0 or an error of struct kdirect_ping.
 */
int kdirect_ping_peer(int fd, struct kdirect_ping *ping);

/* --- messages -------------------------------------------------------------------------- */

/**
 * kdirect_send() - send one message, with a time limit
 * @fd: of a channel; whether it has O_NONBLOCK makes no difference
 * @message: its bytes
 * @length: 1 .. max_message of the channel
 * @timeout_ns: how long to wait for room
 *
 * Blocks as @timeout_ns says. With a negative one a message above the eager limit goes from
 * the caller's own pages, and the call returns when the peer has fetched it, as write()
 * does; otherwise it is copied first.
 *
 * Return: 0 (all of it), -EINVAL (@length is 0), -EAGAIN (there was no room in time), -EINTR
 * (nothing was sent), or an error of write() in kdirect.h.
 */
int kdirect_send(int fd, const void *message, size_t length, int64_t timeout_ns);

/**
 * kdirect_recv() - receive one whole message, with a time limit
 * @fd: of a channel; whether it has O_NONBLOCK makes no difference
 * @buffer: where to
 * @size: at least max_message of the channel, so that no message can be cut
 * @timeout_ns: how long to wait for one
 *
 * Blocks as @timeout_ns says. Where somebody has read a part of a message with read(), the
 * rest of it is returned.
 *
 * Return: the message's length, 0 at the end of a channel that the peer closed in order (and
 * for an empty message, which only descriptors send),
 * -EMSGSIZE (@size below max_message; nothing was read), -EAGAIN (there was none in time),
 * -EINTR, or an error of read() in kdirect.h, where -ETIMEDOUT is the connection's.
 */
ssize_t kdirect_recv(int fd, void *buffer, size_t size, int64_t timeout_ns);

/* --- descriptors ----------------------------------------------------------------------- */

/*
 * Fill in a descriptor, wherever it is to go: into a batch, a ring, or an io_uring command.
 * Nothing is checked here: a wrong one completes with its error (struct kdirect_desc).
 */

/**
 * kdirect_prep_read() - RDMA READ into memory of the program
 * @desc: all of it is written, as in the next seven
 * @to: where to; it belongs to the operation until its completion
 * @length: bytes, 0 .. KDIRECT_DESC_LENGTH_MAX
 * @remote: where in the export, bytes
 * @user_data: comes back in the completion
 */
static inline void kdirect_prep_read(struct kdirect_desc *desc, void *to, uint32_t length,
				     uint64_t remote, uint64_t user_data)
{
	memset(desc, 0, sizeof(*desc));
	desc->opcode = KDIRECT_OP_READ;
	desc->length = length;
	desc->addr = (uint64_t)(uintptr_t)to;
	desc->remote = remote;
	desc->user_data = user_data;
}

/**
 * kdirect_prep_write() - RDMA WRITE from memory of the program
 * @desc: the descriptor
 * @from: where from; it must not change until the completion
 * @length: bytes, 0 .. KDIRECT_DESC_LENGTH_MAX
 * @remote: where in the export, bytes
 * @user_data: comes back in the completion
 */
static inline void kdirect_prep_write(struct kdirect_desc *desc, const void *from, uint32_t length,
				      uint64_t remote, uint64_t user_data)
{
	memset(desc, 0, sizeof(*desc));
	desc->opcode = KDIRECT_OP_WRITE;
	desc->length = length;
	desc->addr = (uint64_t)(uintptr_t)from;
	desc->remote = remote;
	desc->user_data = user_data;
}

/**
 * kdirect_prep_read_fixed() - RDMA READ into a fixed buffer
 * @desc: the descriptor
 * @buffer: index of the buffer, see kdirect_buffer_set()
 * @offset: where in the buffer, bytes
 * @length: bytes, 0 .. KDIRECT_DESC_LENGTH_MAX
 * @remote: where in the export, bytes
 * @user_data: comes back in the completion
 */
static inline void kdirect_prep_read_fixed(struct kdirect_desc *desc, uint16_t buffer,
					   uint64_t offset, uint32_t length, uint64_t remote,
					   uint64_t user_data)
{
	memset(desc, 0, sizeof(*desc));
	desc->opcode = KDIRECT_OP_READ;
	desc->flags = KDIRECT_DESC_FIXED;
	desc->buffer = buffer;
	desc->length = length;
	desc->addr = offset;
	desc->remote = remote;
	desc->user_data = user_data;
}

/**
 * kdirect_prep_write_fixed() - RDMA WRITE from a fixed buffer
 * @desc: the descriptor
 * @buffer: index of the buffer
 * @offset: where in the buffer, bytes
 * @length: bytes, 0 .. KDIRECT_DESC_LENGTH_MAX
 * @remote: where in the export, bytes
 * @user_data: comes back in the completion
 */
static inline void kdirect_prep_write_fixed(struct kdirect_desc *desc, uint16_t buffer,
					    uint64_t offset, uint32_t length, uint64_t remote,
					    uint64_t user_data)
{
	kdirect_prep_read_fixed(desc, buffer, offset, length, remote, user_data);
	desc->opcode = KDIRECT_OP_WRITE;
}

/**
 * kdirect_prep_fetch_add() - add to 8 bytes of the export, and learn what they were
 * @desc: the descriptor
 * @remote: where in the export, a multiple of 8
 * @add: what to add, modulo 2^64
 * @user_data: comes back in the completion, and the number before it in its @old
 */
static inline void kdirect_prep_fetch_add(struct kdirect_desc *desc, uint64_t remote, uint64_t add,
					  uint64_t user_data)
{
	memset(desc, 0, sizeof(*desc));
	desc->opcode = KDIRECT_OP_FETCH_ADD;
	desc->length = 8;
	desc->remote = remote;
	desc->operand = add;
	desc->user_data = user_data;
}

/**
 * kdirect_prep_cmp_swap() - replace 8 bytes of the export if they are what is expected
 * @desc: the descriptor
 * @remote: where in the export, a multiple of 8
 * @compare: what is expected; it was replaced if the completion's @old is the same
 * @swap: what to replace it by
 * @user_data: comes back in the completion
 */
static inline void kdirect_prep_cmp_swap(struct kdirect_desc *desc, uint64_t remote,
					 uint64_t compare, uint64_t swap, uint64_t user_data)
{
	kdirect_prep_fetch_add(desc, remote, swap, user_data);
	desc->opcode = KDIRECT_OP_CMP_SWAP;
	desc->compare = compare;
}

/**
 * kdirect_prep_send() - send a message of a channel, or SEND of a raw one
 * @desc: the descriptor
 * @from: where from; it must not change until the completion
 * @length: bytes, 0 .. max_message of the channel
 * @user_data: comes back in the completion
 */
static inline void kdirect_prep_send(struct kdirect_desc *desc, const void *from, uint32_t length,
				     uint64_t user_data)
{
	kdirect_prep_write(desc, from, length, 0, user_data);
	desc->opcode = KDIRECT_OP_SEND;
}

/**
 * kdirect_prep_recv() - receive a message of a channel, or RECV of a raw one
 * @desc: the descriptor
 * @to: where to; it belongs to the operation until its completion
 * @length: bytes that there is room for; the completion says how many came
 * @user_data: comes back in the completion
 */
static inline void kdirect_prep_recv(struct kdirect_desc *desc, void *to, uint32_t length,
				     uint64_t user_data)
{
	kdirect_prep_read(desc, to, length, 0, user_data);
	desc->opcode = KDIRECT_OP_RECV;
}

/**
 * kdirect_desc_set_fixed() - of a descriptor: its memory is a fixed buffer's
 * @desc: any but an atomic operation
 * @buffer: index of the buffer
 * @offset: where in the buffer, bytes
 */
static inline void kdirect_desc_set_fixed(struct kdirect_desc *desc, uint16_t buffer,
					  uint64_t offset)
{
	desc->flags = (uint8_t)(desc->flags | KDIRECT_DESC_FIXED);
	desc->buffer = buffer;
	desc->addr = offset;
}

/* --- batches: many descriptors in one system call -------------------------------------- */

struct kdirect_batch;

/**
 * kdirect_batch_create() - an empty batch
 * @capacity: descriptors that it can hold, 1 .. 2^24; more than KDIRECT_DESC_ENTRIES are
 *	taken by the kernel as earlier ones complete and are reaped
 * @batch: set when 0 is returned; to be freed with kdirect_batch_free()
 *
 * Return: 0, -EINVAL, -ENOMEM.
 */
int kdirect_batch_create(uint32_t capacity, struct kdirect_batch **batch);

/**
 * kdirect_batch_free() - end of a batch; what was submitted is not affected
 * @batch: may be NULL
 */
void kdirect_batch_free(struct kdirect_batch *batch);

/**
 * kdirect_batch_next() - room for one more descriptor
 * @batch: the batch
 *
 * Return: the descriptor, all zero and part of the batch at once, or NULL: it is full.
 */
struct kdirect_desc *kdirect_batch_next(struct kdirect_batch *batch);

/**
 * kdirect_batch_count() - descriptors in the batch that the kernel has not taken
 * @batch: the batch
 *
 * Return: how many.
 */
uint32_t kdirect_batch_count(const struct kdirect_batch *batch);

/**
 * kdirect_batch_clear() - remove them from the batch
 * @batch: the batch
 */
void kdirect_batch_clear(struct kdirect_batch *batch);

/**
 * kdirect_batch_submit() - submit a batch, and reap what has completed
 * @batch: what the kernel takes leaves it, from the first descriptor on; the rest stays,
 *	see kdirect_batch_count()
 * @fd: of a mapping or a channel
 * @done: completions; those of earlier calls for this open file come here, too
 * @room: so many fit there
 * @min: wait for so many, at most @room and KDIRECT_DESC_ENTRIES
 * @flags: KDIRECT_SUBMIT_*
 * @timeout_ns: how long to wait for them
 *
 * Blocks for request slots of the channel, which become free by themselves, and for
 * completions as @timeout_ns says. @index of a completion counts from the first descriptor
 * of the call that submitted it; user_data is the better name of an operation.
 *
 * Return: completions at @done, which may be fewer than @min when the time is over, after a
 * signal, or when the mapping has ended; or, and then the kernel took nothing, -EAGAIN (no
 * entry is free and there is nothing to reap), -ETIMEDOUT, -EINTR, -EBUSY (the file has
 * rings), or another error of struct kdirect_submit.
 */
int kdirect_batch_submit(struct kdirect_batch *batch, int fd, struct kdirect_completion *done,
			 uint32_t room, uint32_t min, uint32_t flags, int64_t timeout_ns);

/**
 * kdirect_batch_run() - submit all of a batch, and wait for all of it
 * @batch: the batch; empty afterwards, unless the call returned an error or fewer than were
 *	in it
 * @fd: of a mapping or a channel; nothing else should be under way on this open file, since its
 *	completions would be taken for those of the batch
 * @done: room for as many completions as the batch has descriptors; they come in no order
 * @flags: KDIRECT_SUBMIT_*
 * @timeout_ns: for all of it
 *
 * Blocks as kdirect_batch_submit(). Signals do not end it.
 *
 * Return: completions at @done: fewer than there were descriptors when the time was over;
 * what is still under way then comes to whoever reaps next. If there are none, -ETIMEDOUT
 * or an error as above.
 */
int kdirect_batch_run(struct kdirect_batch *batch, int fd, struct kdirect_completion *done,
		      uint32_t flags, int64_t timeout_ns);

/**
 * kdirect_reap() - take completions, and submit nothing
 * @fd: of a mapping or a channel
 * @done: where to
 * @room: so many fit there
 * @min: wait for so many, at most @room and KDIRECT_DESC_ENTRIES
 * @flags: KDIRECT_SUBMIT_*
 * @timeout_ns: how long to wait for them
 *
 * Blocks as @timeout_ns says.
 *
 * Return: as kdirect_batch_submit(); 0 only if @min or @timeout_ns is 0.
 */
int kdirect_reap(int fd, struct kdirect_completion *done, uint32_t room, uint32_t min,
		 uint32_t flags, int64_t timeout_ns);

/* --- fixed buffers --------------------------------------------------------------------- */

/**
 * kdirect_buffer_set() - register memory, or replace what the index stands for
 * @fd: of a mapping or a channel; the buffer is its open file's
 * @index: 0 .. KDIRECT_BUFFERS - 1
 * @memory: writable; pinned and charged to RLIMIT_MEMLOCK
 * @length: bytes, 1 .. KDIRECT_BUFFER_MAX
 *
 * May block for memory. Operations that were submitted before go on with what the index
 * stood for, which is given back when the last of them has ended.
 *
 * Return: 0 or an error of struct kdirect_buffer.
 */
int kdirect_buffer_set(int fd, uint32_t index, void *memory, size_t length);

/**
 * kdirect_buffer_remove() - forget a buffer
 * @fd: of a mapping or a channel
 * @index: 0 .. KDIRECT_BUFFERS - 1
 *
 * May be called at any time: operations that were submitted before still use the memory.
 *
 * Return: 0, -EINVAL, -ENOENT (there is none), -EINTR.
 */
int kdirect_buffer_remove(int fd, uint32_t index);

/* --- rings: descriptors and completions in memory shared with the kernel ---------------- */

struct kdirect_ring;

/**
 * kdirect_ring_create() - a pair of rings for an open file
 * @fd: of a mapping or a channel; it may be closed afterwards, but has the fixed buffers
 * @setup: sq_entries, cq_entries, flags, thread_cpu and idle_ns; the rest is zero
 * @ring: set when 0 is returned; to be freed with kdirect_ring_free()
 *
 * May block for memory. Until the rings end kdirect_batch_submit() and kdirect_reap() of
 * this open file fail with -EBUSY.
 *
 * Return: 0 or an error of struct kdirect_ring_setup, or of mmap().
 */
int kdirect_ring_create(int fd, const struct kdirect_ring_setup *setup, struct kdirect_ring **ring);

/**
 * kdirect_ring_attach() - use rings that another process made, or the parent of this one
 * @ring_fd: kdirect_ring_fd() there, handed over; closed by kdirect_ring_free() if 0 is
 *	returned
 * @setup: kdirect_ring_layout() there
 * @ring: set when 0 is returned
 *
 * The memory of rings is not inherited by fork(), so that a child must not use the ring of
 * its parent, and may use this with dup() of its file descriptor. Only one process at a
 * time may be at each side of the rings.
 *
 * Return: 0, -EINVAL (@setup cannot be), -ENOMEM, or an error of mmap().
 */
int kdirect_ring_attach(int ring_fd, const struct kdirect_ring_setup *setup,
			struct kdirect_ring **ring);

/**
 * kdirect_ring_free() - end of the rings; what is under way is completed to kdirect_reap()
 * @ring: may be NULL; no thread uses it any more
 */
void kdirect_ring_free(struct kdirect_ring *ring);

/**
 * kdirect_ring_fd() - the rings' own file descriptor
 * @ring: the ring
 *
 * For poll() and epoll: POLLIN when there are completions, POLLOUT when there is room.
 *
 * Return: the file descriptor, which stays the ring's.
 */
int kdirect_ring_fd(const struct kdirect_ring *ring);

/**
 * kdirect_ring_layout() - how the rings were made, and where things are in their memory
 * @ring: the ring
 *
 * Return: valid as long as the ring.
 */
const struct kdirect_ring_setup *kdirect_ring_layout(const struct kdirect_ring *ring);

/**
 * kdirect_ring_next() - room for one more descriptor (submitting side)
 * @ring: the ring
 *
 * Return: the descriptor, all zero, in the shared memory; the kernel looks at it after the
 * next kdirect_ring_submit() or kdirect_ring_submit_and_wait(), and until then it may be
 * changed. NULL: the submission ring is full.
 */
struct kdirect_desc *kdirect_ring_next(struct kdirect_ring *ring);

/**
 * kdirect_ring_unsubmitted() - descriptors that the kernel has not taken (submitting side)
 * @ring: the ring
 *
 * Return: how many, those included that were not submitted yet.
 */
uint32_t kdirect_ring_unsubmitted(const struct kdirect_ring *ring);

/**
 * kdirect_ring_submit() - let the kernel have the descriptors (submitting side)
 * @ring: the ring
 *
 * With a thread (KDIRECT_RING_THREAD) a system call is made only if that sleeps, and what
 * is returned is what was given to it. Without one blocks for request slots of the channel,
 * which become free by themselves, and descriptors that find no entry free stay and go with
 * the next call. Completions of a ring that polls without a thread arrive only in this
 * call, in kdirect_ring_wait(), or while poll() waits.
 *
 * Return: descriptors taken, or, and then the kernel took none, -EAGAIN (no entry is free:
 * reap), -EBADMSG (sq_tail was overwritten), -EINTR, -EPIPE, -ESTALE, -ENODEV.
 */
int kdirect_ring_submit(struct kdirect_ring *ring);

/**
 * kdirect_ring_wait() - wait for completions (reaping side)
 * @ring: the ring
 * @min: so many, at most cq_entries
 * @timeout_ns: for so long
 *
 * Blocks as @timeout_ns says; no system call is made if they are there. Polls if the ring
 * does and has no thread.
 *
 * Return: completions that can be looked at: fewer than @min when the time is over, after a
 * signal, or when nothing more can come; 0 only if @min or @timeout_ns is 0. An error, if
 * there are none: -EINVAL (@min), -ETIMEDOUT, -EINTR, or, when the mapping has ended and
 * nothing is under way, -ESTALE, -ENODEV, -EPIPE.
 */
int kdirect_ring_wait(struct kdirect_ring *ring, uint32_t min, int64_t timeout_ns);

/**
 * kdirect_ring_submit_and_wait() - both, in one system call or none (both sides)
 * @ring: the ring
 * @min: wait for so many completions, at most cq_entries
 * @timeout_ns: for so long
 *
 * Return: as kdirect_ring_wait(), or an error of kdirect_ring_submit(), if there are no
 * completions; also 0 if something was submitted, and the wait ended before it completed.
 */
int kdirect_ring_submit_and_wait(struct kdirect_ring *ring, uint32_t min, int64_t timeout_ns);

/**
 * kdirect_ring_ready() - completions that can be looked at (reaping side)
 * @ring: the ring
 *
 * Return: how many, 0 .. cq_entries. Makes no system call.
 */
uint32_t kdirect_ring_ready(const struct kdirect_ring *ring);

/**
 * kdirect_ring_peek() - look at a completion (reaping side)
 * @ring: the ring
 * @n: 0 is the oldest
 *
 * Return: the completion, in the shared memory and valid until kdirect_ring_advance()
 * passes it, or NULL: there are not so many. Makes no system call.
 */
const struct kdirect_completion *kdirect_ring_peek(const struct kdirect_ring *ring, uint32_t n);

/**
 * kdirect_ring_advance() - give back the oldest completions (reaping side)
 * @ring: the ring
 * @n: so many, at most kdirect_ring_ready()
 *
 * Makes a system call only where completions wait for the room.
 *
 * Return: 0, -EINVAL (@n), or an error of KDIRECT_IOC_RING_ENTER, after which they are
 * given back all the same.
 */
int kdirect_ring_advance(struct kdirect_ring *ring, uint32_t n);

/* --- errors in words ------------------------------------------------------------------- */

/**
 * enum kdirect_call - what failed
 * @KDIRECT_CALL_OPEN: kdirect_open()
 * @KDIRECT_CALL_INFO: kdirect_channel_info(), kdirect_mapping_info(), kdirect_kind_of()
 * @KDIRECT_CALL_FLAGS: kdirect_get_flags(), kdirect_set_flags()
 * @KDIRECT_CALL_PING: kdirect_ping_peer()
 * @KDIRECT_CALL_SEND: kdirect_send(), write() to a channel
 * @KDIRECT_CALL_RECV: kdirect_recv(), read() from a channel
 * @KDIRECT_CALL_IO: read() and write() of a mapping, and their relatives
 * @KDIRECT_CALL_SUBMIT: kdirect_batch_submit(), kdirect_batch_run(), kdirect_reap()
 * @KDIRECT_CALL_DESC: the result of one descriptor; kdirect_explain_desc() knows more
 * @KDIRECT_CALL_BUFFER: kdirect_buffer_set(), kdirect_buffer_remove()
 * @KDIRECT_CALL_RING_SETUP: kdirect_ring_create(), kdirect_ring_attach()
 * @KDIRECT_CALL_RING_ENTER: the other functions of rings
 * @KDIRECT_CALL_CONNECT: kdirect_connect(), kdirect_reject()
 * @KDIRECT_CALL_SHARE: kdirect_buffer_share()
 * @KDIRECT_CALL_WORK: the result of a work request of a raw channel; kdirect_explain_work()
 *	knows more
 */
enum kdirect_call {
	KDIRECT_CALL_OPEN = 1,
	KDIRECT_CALL_INFO,
	KDIRECT_CALL_FLAGS,
	KDIRECT_CALL_PING,
	KDIRECT_CALL_SEND,
	KDIRECT_CALL_RECV,
	KDIRECT_CALL_IO,
	KDIRECT_CALL_SUBMIT,
	KDIRECT_CALL_DESC,
	KDIRECT_CALL_BUFFER,
	KDIRECT_CALL_RING_SETUP,
	KDIRECT_CALL_RING_ENTER,
	KDIRECT_CALL_CONNECT,
	KDIRECT_CALL_SHARE,
	KDIRECT_CALL_WORK,
};

/**
 * kdirect_explain() - a sentence about an error
 * @call: what failed
 * @err: the errno, with its sign or without
 *
 * Return: English, without a full stop, constant; never NULL.
 */
const char *kdirect_explain(enum kdirect_call call, int err);

/**
 * kdirect_explain_desc() - a sentence about a descriptor that failed, with its values
 * @text: where to, NUL-terminated, cut to @size
 * @size: bytes, at least 1
 * @desc: the descriptor
 * @info: of the mapping, or NULL where it is not at hand
 * @result: of its completion
 * @status: of its completion
 *
 * For example "READ of 4096 bytes at 1048000 reaches past the end of the export, which has
 * 1048576". Names the field of an invalid descriptor.
 *
 * Return: @text.
 */
char *kdirect_explain_desc(char *text, size_t size, const struct kdirect_desc *desc,
			   const struct kdirect_map_info *info, int32_t result, uint16_t status);

/**
 * kdirect_status_text() - the name of a work completion's status
 * @status: as in struct kdirect_completion
 *
 * Return: constant; never NULL.
 */
const char *kdirect_status_text(uint16_t status);

#ifdef __cplusplus
}
#endif

#endif /* LIBKDIRECT_H */
