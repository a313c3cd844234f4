/* SPDX-License-Identifier: GPL-2.0-only WITH Linux-syscall-note */
/*
 * kdirect.h - the character devices of kdirect's channels and mappings
 *
 * /dev/kdirect/<channel> carries messages between two ends of a channel.
 *
 *   write(), writev()   send one message, 1 .. max_message bytes. Returns its
 *                       length once the message is copied (up to the eager
 *                       limit, or with O_NONBLOCK), or once the peer has
 *                       fetched it (above the eager limit, blocking). A length
 *                       of 0 sends nothing and returns 0.
 *   read(), readv()     return at most the rest of one message and never merge
 *                       two. A buffer too small loses nothing: the next read
 *                       goes on in the same message. 0 is the end of a channel
 *                       that the peer closed in order.
 *   poll()              POLLIN: read() will not block; POLLOUT: a message of any
 *                       length can be sent without blocking; POLLHUP: the
 *                       channel has ended.
 *   preadv2()/pwritev2() with offset -1: RWF_HIPRI polls the channel's poll
 *                       queues, as its poll mode says (enum kdirect_poll_mode
 *                       in kdirect_netlink.h), RWF_NOWAIT never blocks.
 *
 * Errors of read() and write():
 *   EAGAIN      would block, and O_NONBLOCK or RWF_NOWAIT was asked for
 *   EMSGSIZE    write: longer than max_message
 *   EFAULT      bad user memory; read: nothing of the message is lost;
 *               write: nothing was sent
 *   EINTR       a signal came before anything was sent or read
 *   EOPNOTSUPP  RWF_HIPRI or KDIRECT_OPEN_POLL, and the channel has no poll queue
 *   EPIPE       write: the channel has ended (no SIGPIPE is raised)
 *   ECONNRESET, ETIMEDOUT, ... read: the connection failed, with its first
 *               cause; what had arrived before is returned first
 *   ENODEV      read: the channel was deleted here, or its device removed
 *   ENOMEM      no memory for a large message sent without blocking
 *
 * /dev/kdirect/<mapping> is memory of the peer, of a fixed size.
 *
 *   pread(), pwrite(), preadv2(), read(), lseek(), ... at any place and of any
 *                       length; up to the channel's eager limit by copy, beyond it
 *                       to and from the program's own pages. A return of all bytes
 *                       says that they are, or were, in the peer's memory. Requests
 *                       of one call, and calls in parallel, are in no order.
 *                       RWF_HIPRI polls a poll queue. O_DIRECT may be given.
 *   libaio, io_uring    a request that lies within one key (map show -d: key-size)
 *                       and in one buffer is queued; others complete at submission,
 *                       or in a worker of io_uring
 *   mmap()              ENODEV: remote memory cannot be mapped
 *   ioctl()             KDIRECT_IOC_SET_FLAGS, _GET_FLAGS as above;
 *                       KDIRECT_IOC_SUBMIT: descriptors, many in one call;
 *                       KDIRECT_IOC_BUFFER_SET, _DEL: fixed buffers;
 *                       KDIRECT_IOC_RING_SETUP: rings (all below)
 *   io_uring            commands: KDIRECT_URING_CMD_DESC (below)
 *
 *   0 of a read         at or past the end; what reaches over it is cut
 *   ENOSPC      write at or past the end; what reaches over it is cut
 *   EACCES      open for writing, and the export or the mapping is read-only
 *   EAGAIN      RWF_NOWAIT: always but for what can be queued at once. As with a
 *               regular file, O_NONBLOCK changes nothing
 *   ESTALE      the peer deleted the export
 *   ENODEV      the mapping was deleted here
 *   EPIPE       the channel has ended
 *   EIO         the connection failed while this was under way: a write may or
 *               may not have been done
 *   EFAULT, EOPNOTSUPP  as above
 *   EINTR       a fatal signal; others do not end a transfer
 *
 * All functions may sleep unless O_NONBLOCK or RWF_NOWAIT is given. Structures
 * are the same for 32 and 64-bit programs. Reserved fields must be zero.
 * Since version 0.1.
 */
#ifndef _UAPI_KDIRECT_H
#define _UAPI_KDIRECT_H

#include <linux/types.h>
#include <linux/ioctl.h>

#define KDIRECT_NAME_MAX	31	/* longest name of an object, in bytes */

#define KDIRECT_IOC_MAGIC	0xBD

/*
 * Flags of one open file (shared by its duplicates).
 * KDIRECT_OPEN_POLL: every read and write of this file polls, as if it had
 * RWF_HIPRI.
 * KDIRECT_OPEN_BUSY, _HYBRID, _ADAPTIVE: when a call of this file polls, then
 * in this mode instead of the channel's; at most one of them.
 */
#define KDIRECT_OPEN_POLL	(1U << 0)
#define KDIRECT_OPEN_BUSY	(1U << 1)
#define KDIRECT_OPEN_HYBRID	(1U << 2)
#define KDIRECT_OPEN_ADAPTIVE	(1U << 3)
#define KDIRECT_OPEN_FLAGS	(KDIRECT_OPEN_POLL | KDIRECT_OPEN_BUSY | \
				 KDIRECT_OPEN_HYBRID | KDIRECT_OPEN_ADAPTIVE)

/*
 * KDIRECT_IOC_SET_FLAGS: replace the flags of this open file.
 * Errors: EINVAL (unknown bit, two modes), EOPNOTSUPP (no poll queue), EFAULT.
 * KDIRECT_IOC_GET_FLAGS: read them. Errors: EFAULT.
 */
#define KDIRECT_IOC_SET_FLAGS	_IOW(KDIRECT_IOC_MAGIC, 1, __u32)
#define KDIRECT_IOC_GET_FLAGS	_IOR(KDIRECT_IOC_MAGIC, 2, __u32)

/**
 * struct kdirect_info - what a channel agreed on (KDIRECT_IOC_INFO)
 * @name:		the channel's name, NUL-terminated
 * @max_message:	longest message, bytes
 * @eager_limit:	longest message that is sent by copy, bytes
 * @depth:		messages in flight per queue and direction
 * @queues:		interrupt queues
 * @poll_queues:	poll queues
 * @state:		enum kdirect_state (kdirect_netlink.h)
 * @reserved:		zero
 *
 * Errors: EFAULT.
 */
struct kdirect_info {
	char	name[KDIRECT_NAME_MAX + 1];
	__u32	max_message;
	__u32	eager_limit;
	__u32	depth;
	__u16	queues;
	__u16	poll_queues;
	__u32	state;
	__u32	reserved[3];
};

#define KDIRECT_IOC_INFO	_IOR(KDIRECT_IOC_MAGIC, 3, struct kdirect_info)

/*
 * One round trip to the peer's kernel and back (KDIRECT_IOC_PING). No program
 * at the peer takes part. It goes over the same queues as messages, but uses no
 * credits and is not part of the message stream, so that a reader who is slow
 * does not stop it.
 */
#define KDIRECT_PING_POLL	(1U << 0)	/* use a poll queue, and poll */
#define KDIRECT_PING_FLAGS	(KDIRECT_PING_POLL)

/**
 * struct kdirect_ping - one round trip
 * @size:	in: payload, bytes, 1 .. eager_limit; it comes back and is compared
 * @flags:	in: KDIRECT_PING_*
 * @timeout_ns:	in: give up after this time, ns; 0 means 1 s; at most 60 s
 * @rtt_ns:	out: time from posting to completion, ns
 * @queue:	out: the queue that carried it
 * @reserved:	zero
 *
 * Errors: EINVAL (flag, reserved, size 0, timeout), EMSGSIZE (size above the
 * eager limit), EOPNOTSUPP (no poll queue), ETIMEDOUT, EBADMSG (the echo
 * differs), EINTR, EPIPE (channel ended), EFAULT, EPERM (file not open for
 * both reading and writing).
 */
struct kdirect_ping {
	__u32	size;
	__u32	flags;
	__u64	timeout_ns;
	__u64	rtt_ns;
	__u32	queue;
	__u32	reserved[3];
};

#define KDIRECT_IOC_PING	_IOWR(KDIRECT_IOC_MAGIC, 4, struct kdirect_ping)

/*
 * Descriptors: READ, WRITE and atomic operations on the memory of a mapping, many in
 * one call, with their completions by the same call or a later one. Each open file of
 * a mapping has requests of its own; its duplicates share them.
 */

/**
 * enum kdirect_opcode - what a descriptor asks for
 * @KDIRECT_OP_READ:	RDMA READ of @length bytes at @remote
 * @KDIRECT_OP_WRITE:	RDMA WRITE of @length bytes to @remote
 * @KDIRECT_OP_CMP_SWAP: compare and swap: where the 8 bytes at @remote are @compare,
 *			they become @operand
 * @KDIRECT_OP_FETCH_ADD: the 8 bytes at @remote grow by @operand, modulo 2^64
 *
 * Atomic operations are on numbers in the byte order of the target, whole against other
 * atomic operations through the same device.
 */
enum kdirect_opcode {
	KDIRECT_OP_READ		= 1,
	KDIRECT_OP_WRITE	= 2,
	KDIRECT_OP_CMP_SWAP	= 3,
	KDIRECT_OP_FETCH_ADD	= 4,
};

#define KDIRECT_DESC_FIXED	(1U << 0)	/* @addr is an offset in a fixed buffer */
#define KDIRECT_DESC_FLAGS	(KDIRECT_DESC_FIXED)

/**
 * struct kdirect_desc - one operation
 * @opcode:	enum kdirect_opcode
 * @flags:	KDIRECT_DESC_*
 * @buffer:	with KDIRECT_DESC_FIXED the index of the buffer, otherwise zero
 * @length:	bytes, 0 .. KDIRECT_DESC_LENGTH_MAX; atomic operations: 8
 * @addr:	READ, WRITE: the local memory: an address, or an offset in the fixed
 *		buffer; atomic operations: zero
 * @remote:	where in the export, bytes; atomic operations: a multiple of 8
 * @operand:	atomic operations; otherwise zero
 * @compare:	KDIRECT_OP_CMP_SWAP; otherwise zero
 * @user_data:	comes back in the completion
 * @reserved:	zero
 *
 * A descriptor is executed whole or ends in one error, which is in its completion and
 * concerns no other descriptor:
 *   EINVAL	unknown opcode or flag, a field that must be zero is not, a length
 *		or an alignment out of range
 *   ERANGE	@remote and @length reach past the end of the export, or past 2^64
 *   EACCES	READ: the file is not open for reading; others: it is not open for
 *		writing, or the mapping is read-only
 *   EOPNOTSUPP	atomic operation, and one of the two devices has none
 *   ENOENT	there is no fixed buffer @buffer
 *   EFAULT	bad memory, or @addr and @length reach past the end of the fixed buffer
 *   ENOMEM	no memory for the pages' description
 *   EINTR	a fatal signal came while it waited for a request slot of the channel
 *   ESTALE, ENODEV, EPIPE	as for pread(): nothing was done
 *   EIO	the connection failed while this was under way: it may or may not
 *		have been done, in whole or in part
 *
 * The local memory belongs to the operation until its completion. Descriptors are in no
 * order, those of one call neither.
 */
struct kdirect_desc {
	__u8	opcode;
	__u8	flags;
	__u16	buffer;
	__u32	length;
	__u64	addr;
	__u64	remote;
	__u64	operand;
	__u64	compare;
	__u64	user_data;
	__u64	reserved[2];
};

#define KDIRECT_DESC_LENGTH_MAX	(1U << 30)

/**
 * struct kdirect_completion - the end of one descriptor
 * @user_data:	the descriptor's
 * @old:	atomic operations: the number before it; otherwise 0
 * @result:	bytes, all of the descriptor's; or a negative errno
 * @index:	the place of the descriptor in its batch, from 0
 * @status:	of the work completion (numbers of enum ibv_wc_status); 0 where no
 *		work request failed
 * @opcode:	the descriptor's
 * @reserved:	0
 */
struct kdirect_completion {
	__u64	user_data;
	__u64	old;
	__s32	result;
	__u32	index;
	__u16	status;
	__u8	opcode;
	__u8	reserved[5];
};

/* Descriptors of one open file that are under way, or wait to be reaped. */
#define KDIRECT_DESC_ENTRIES	256

#define KDIRECT_SUBMIT_POLL	(1U << 0)	/* on a poll queue, and poll while waiting */
#define KDIRECT_SUBMIT_FLAGS	(KDIRECT_SUBMIT_POLL)

/**
 * struct kdirect_submit - submit a batch and reap a batch (KDIRECT_IOC_SUBMIT)
 * @descs:		in: address of an array of struct kdirect_desc
 * @completions:	in: address of an array of struct kdirect_completion
 * @nr_descs:		in: descriptors
 * @nr_completions:	in: room for completions
 * @min_completions:	in: wait until there are so many, at most @nr_completions and
 *			KDIRECT_DESC_ENTRIES; 0 does not wait
 * @flags:		in: KDIRECT_SUBMIT_*
 * @timeout_ns:		in: the longest wait for them, ns; 0: there is no limit
 * @submitted:		out: descriptors that were taken, from the first on
 * @completed:		out: completions that were written
 * @reserved:		zero
 *
 * First submits, then waits, then reaps. Of the descriptors as many are taken as there
 * are entries free (KDIRECT_DESC_ENTRIES); each that was taken has one completion, also
 * if it is invalid, and no completion is lost: what finds no room now is kept for the
 * next call. Submitting may wait for request slots of the channel, which become free by
 * themselves. What can share a doorbell does: descriptors of fixed buffers, atomic
 * operations, and WRITEs up to the eager limit.
 *
 * The wait ends without error at the timeout, by a signal, and when nothing is under way
 * and the mapping has ended, if anything was submitted or reaped. Otherwise, and only
 * then, the call fails:
 *   EAGAIN	no entry is free
 *   EINTR	a signal came first
 *   ETIMEDOUT	nothing was completed in time
 *   ESTALE, ENODEV, EPIPE	the wait cannot end, since the mapping has ended
 *   EFAULT	bad memory of the arrays: descriptors before it are submitted,
 *		completions behind it are kept
 * and before anything else:
 *   EINVAL	a flag, @reserved, @min_completions above @nr_completions or
 *		KDIRECT_DESC_ENTRIES
 *   EOPNOTSUPP	KDIRECT_SUBMIT_POLL, and the channel has no poll queue
 *   EBUSY	the file has rings
 *   ENOMEM	first use of the file only
 *
 * A file that is closed with descriptors under way does not wait for them: they are
 * executed, or not, and their memory is pinned until then.
 */
struct kdirect_submit {
	__u64	descs;
	__u64	completions;
	__u32	nr_descs;
	__u32	nr_completions;
	__u32	min_completions;
	__u32	flags;
	__u64	timeout_ns;
	__u32	submitted;
	__u32	completed;
	__u64	reserved[2];
};

#define KDIRECT_IOC_SUBMIT	_IOWR(KDIRECT_IOC_MAGIC, 5, struct kdirect_submit)

#define KDIRECT_BUFFERS		256		/* fixed buffers of one open file */
#define KDIRECT_BUFFER_MAX	(1ULL << 30)	/* bytes of one */

/**
 * struct kdirect_buffer - a fixed buffer (KDIRECT_IOC_BUFFER_SET)
 * @addr:	its address; writable memory
 * @length:	bytes, 1 .. KDIRECT_BUFFER_MAX
 * @index:	0 .. KDIRECT_BUFFERS - 1
 * @reserved:	zero
 *
 * Pins the memory, charges it to the process (RLIMIT_MEMLOCK), and maps it for the
 * channel's device, once for all descriptors that will use it. It stays the memory of
 * this process, also where another one uses the file after fork().
 *
 * KDIRECT_IOC_BUFFER_SET replaces a buffer that has the index already;
 * KDIRECT_IOC_BUFFER_DEL takes the index of one and removes it. Both return at once:
 * descriptors that were submitted before keep the old one, and it is unpinned, and no
 * more charged, when the last of them has ended. What is left goes when the file is
 * closed.
 *
 * Errors of SET: EINVAL (reserved, index, length, addr and length reach past 2^64),
 * EFAULT (not writable memory, or not of a kind that can stay pinned), ENOMEM (over
 * RLIMIT_MEMLOCK, or no memory), EINTR, ESTALE, ENODEV, EPIPE (the mapping has ended).
 * Errors of DEL: EINVAL (index), ENOENT (no such buffer), EFAULT, EINTR.
 */
struct kdirect_buffer {
	__u64	addr;
	__u64	length;
	__u32	index;
	__u32	reserved[3];
};

#define KDIRECT_IOC_BUFFER_SET	_IOW(KDIRECT_IOC_MAGIC, 6, struct kdirect_buffer)
#define KDIRECT_IOC_BUFFER_DEL	_IOW(KDIRECT_IOC_MAGIC, 7, __u32)

#define KDIRECT_MAP_READ_ONLY	(1U << 0)
#define KDIRECT_MAP_ATOMICS	(1U << 1)	/* both devices have atomic operations */

/**
 * struct kdirect_map_info - what a mapping is (KDIRECT_IOC_MAP_INFO)
 * @name:	its name, NUL-terminated
 * @size:	of the export, bytes
 * @flags:	KDIRECT_MAP_*
 * @eager_limit: longest READ or WRITE that is done by copy, bytes
 * @poll_queues: of its channel
 * @reserved:	zero
 *
 * Errors: EFAULT.
 */
struct kdirect_map_info {
	char	name[KDIRECT_NAME_MAX + 1];
	__u64	size;
	__u32	flags;
	__u32	eager_limit;
	__u32	poll_queues;
	__u32	reserved[3];
};

#define KDIRECT_IOC_MAP_INFO	_IOR(KDIRECT_IOC_MAGIC, 8, struct kdirect_map_info)

/*
 * Rings: descriptors and completions in memory that the program shares with the kernel.
 * A pair of them belongs to one open file of a mapping and is an open file itself, which
 * KDIRECT_IOC_RING_SETUP makes:
 *
 *   mmap()	of all @length bytes at offset 0, MAP_SHARED, as often as one likes.
 *		Otherwise EINVAL. It is not inherited by fork().
 *   ioctl()	KDIRECT_IOC_RING_ENTER
 *   poll()	POLLIN: there are completions; POLLOUT: the submission ring has room;
 *		POLLHUP: the mapping has ended, and nothing is under way
 *   close()	with the last duplicate and the last mmap() the rings end; what is under way
 *		is completed to KDIRECT_IOC_SUBMIT
 *
 * All numbers of entries count on from 0, modulo 2^32; entry number n is at n modulo the
 * ring's size. To submit: write descriptors from sq_tail on, where fewer than sq_entries
 * lie between sq_head and it; then store sq_tail (release). To reap: load cq_tail
 * (acquire), read completions from cq_head on; then store cq_head (release). Only the
 * program writes sq_tail and cq_head, only the kernel the rest. Whatever a program writes
 * there, it harms itself only: a cq_head that cannot be is a ring without room, and while
 * sq_tail cannot be, nothing is submitted.
 *
 * A descriptor is copied before it is looked at, and its place is free when sq_head is past
 * it. @index of its completion is its number. Completions that find no room wait, in order,
 * and follow when a later one does, or with KDIRECT_IOC_RING_ENTER, poll(), or the thread;
 * none is lost. A program that has stored cq_head and then finds KDIRECT_RING_CQ_BEHIND set
 * calls KDIRECT_IOC_RING_ENTER.
 */
#define KDIRECT_RING_POLL	(1U << 0)	/* on a poll queue */
#define KDIRECT_RING_THREAD	(1U << 1)	/* a kernel thread submits, and polls */
#define KDIRECT_RING_FLAGS	(KDIRECT_RING_POLL | KDIRECT_RING_THREAD)

#define KDIRECT_RING_ENTRIES	4096		/* of one ring, at most */
#define KDIRECT_RING_IDLE_MAX	10000000000ULL	/* ns */

/* The word at @state, written by the kernel. */
#define KDIRECT_RING_NEED_WAKEUP (1U << 0)	/* the thread sleeps */
#define KDIRECT_RING_CQ_BEHIND	(1U << 1)	/* completions wait for room */
#define KDIRECT_RING_SQ_BAD	(1U << 2)	/* sq_tail is more than sq_entries ahead */

/**
 * struct kdirect_ring_setup - make rings (KDIRECT_IOC_RING_SETUP, of a mapping's file)
 * @sq_entries:	in: size of the submission ring, a power of two, 1 .. KDIRECT_RING_ENTRIES
 * @cq_entries:	in: of the completion ring, the same
 * @flags:	in: KDIRECT_RING_*
 * @thread_cpu:	in: where the thread runs: a CPU that the caller may use, or -1: any of
 *		those; without a thread 0
 * @idle_ns:	in: the thread sleeps when there was nothing to do for so long, 0 ..
 *		KDIRECT_RING_IDLE_MAX; without a thread 0
 * @length:	out: bytes to mmap()
 * @sq_head:	out: offset of the word, as of the next four
 * @sq_tail:	out
 * @cq_head:	out
 * @cq_tail:	out
 * @state:	out: KDIRECT_RING_NEED_WAKEUP, ...
 * @descs:	out: offset of @sq_entries times struct kdirect_desc
 * @completions: out: offset of @cq_entries times struct kdirect_completion
 * @reserved:	zero
 *
 * Returns a file descriptor, with close-on-exec. Until it is closed KDIRECT_IOC_SUBMIT
 * fails with EBUSY, and what was submitted with that is completed here. Fixed buffers stay
 * with the mapping's file.
 *
 * With KDIRECT_RING_THREAD a thread of the kernel submits what the program writes, in the
 * program's memory, and with KDIRECT_RING_POLL polls, too: no system call is needed. The
 * addresses are those of the process that made the rings, and EFAULT when that has ended.
 * When it sleeps, KDIRECT_RING_NEED_WAKEUP is set: a program that has stored sq_tail and
 * then (in this order for all processors: sequentially consistent) finds it set calls
 * KDIRECT_IOC_RING_ENTER.
 *
 * Errors: EINVAL (a size, flag, time or reserved field; a CPU that is not there, or that
 * the caller may not use), EOPNOTSUPP (KDIRECT_RING_POLL, and the channel has no poll
 * queue), EBUSY (the file has rings, or KDIRECT_IOC_SUBMIT waits or reaps), EAGAIN (the channel
 * has KDIRECT_RING_THREADS threads), ENOMEM, EMFILE, ENFILE, EINTR, EFAULT, ESTALE, ENODEV,
 * EPIPE (the mapping has ended).
 */
struct kdirect_ring_setup {
	__u32	sq_entries;
	__u32	cq_entries;
	__u32	flags;
	__s32	thread_cpu;
	__u64	idle_ns;
	__u64	length;
	__u32	sq_head;
	__u32	sq_tail;
	__u32	cq_head;
	__u32	cq_tail;
	__u32	state;
	__u32	descs;
	__u32	completions;
	__u32	reserved[3];
};

#define KDIRECT_RING_THREADS	64	/* of all rings of one channel */

#define KDIRECT_IOC_RING_SETUP	_IOWR(KDIRECT_IOC_MAGIC, 9, struct kdirect_ring_setup)

#define KDIRECT_ENTER_POLL	(1U << 0)	/* poll while waiting */
#define KDIRECT_ENTER_FLAGS	(KDIRECT_ENTER_POLL)

/**
 * struct kdirect_ring_enter - submit from a ring, and wait (KDIRECT_IOC_RING_ENTER)
 * @to_submit:	in: descriptors to take, if there are so many; with a thread zero
 * @min_completions: in: wait until so many are there, in the ring or waiting for room, at
 *		most the ring's size; 0 does not wait
 * @flags:	in: KDIRECT_ENTER_*
 * @submitted:	out: descriptors that were taken
 * @timeout_ns:	in: the longest wait, ns; 0: there is no limit
 * @ready:	out: completions that are there
 * @reserved:	zero
 *
 * Moves what waits into the ring, wakes the thread if the submission ring is not empty,
 * submits, and waits, all as KDIRECT_IOC_SUBMIT does. The wait ends without error at the
 * timeout, by a signal, and when nothing is under way and the mapping has ended, if
 * anything was submitted or is ready. Otherwise, and only then, the call fails:
 *   EAGAIN	no entry is free (KDIRECT_DESC_ENTRIES)
 *   EBADMSG	sq_tail is more than sq_entries ahead of sq_head
 *   EINTR, ETIMEDOUT, ESTALE, ENODEV, EPIPE	as for KDIRECT_IOC_SUBMIT
 * and before anything else:
 *   EINVAL	a flag, @reserved, @min_completions, @to_submit with a thread,
 *		KDIRECT_ENTER_POLL without KDIRECT_RING_POLL
 *   EFAULT
 */
struct kdirect_ring_enter {
	__u32	to_submit;
	__u32	min_completions;
	__u32	flags;
	__u32	submitted;
	__u64	timeout_ns;
	__u32	ready;
	__u32	reserved[3];
};

#define KDIRECT_IOC_RING_ENTER	_IOWR(KDIRECT_IOC_MAGIC, 10, struct kdirect_ring_enter)

/**
 * struct kdirect_uring_cmd - a descriptor as a command of io_uring
 * @desc:	the descriptor; @user_data zero
 * @reserved:	zero
 *
 * The command of an SQE with IORING_OP_URING_CMD, @cmd_op KDIRECT_URING_CMD_DESC and the
 * mapping's file, in a ring with IORING_SETUP_SQE128. With IORING_URING_CMD_FIXED the local
 * memory lies in the buffer of io_uring that the SQE's @buf_index names, and @desc.addr is an
 * address in it; READ and WRITE only, and not with KDIRECT_DESC_FIXED.
 *
 * The result in the CQE is that of struct kdirect_completion. With IORING_SETUP_CQE32 (or
 * _CQE_MIXED) there is a second one, in big_cqe[0]: the number before an atomic operation, or
 * after an error the status of the work completion. Without it atomic operations fail with
 * EOPNOTSUPP. In a ring with IORING_SETUP_IOPOLL commands use the poll queues.
 *
 * KDIRECT_DESC_ENTRIES commands of one open file are under way at a time, beside the
 * descriptors of KDIRECT_IOC_SUBMIT or of rings, whose completions they have nothing to do
 * with. A command that would have to wait when it is submitted, for one of these, for request
 * slots, for memory that is not present, or for another submitter of the file, is left to a
 * worker of io_uring, as is a READ, or a WRITE above the eager limit, that is not one work
 * request. What waits in a worker can be cancelled; what is posted cannot, and ends by itself.
 *
 * Errors in addition to those of struct kdirect_desc:
 *   ENOTTY	another @cmd_op
 *   EINVAL	no SQE128, @reserved, @desc.user_data, a combination of flags above
 *   EOPNOTSUPP	IORING_SETUP_IOPOLL, and the channel has no poll queue; an atomic operation
 *		without a second result; a registered buffer that is not one range of memory
 *   EFAULT	@addr and @length are not within the registered buffer
 *   EINTR, ECANCELED	cancelled while it waited
 *   ENOMEM	also: first use of the file
 */
struct kdirect_uring_cmd {
	struct kdirect_desc	desc;
	__u64			reserved[2];
};

#define KDIRECT_URING_CMD_DESC	_IOW(KDIRECT_IOC_MAGIC, 0x40, struct kdirect_uring_cmd)

#endif /* _UAPI_KDIRECT_H */
