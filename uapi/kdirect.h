/* SPDX-License-Identifier: GPL-2.0-only WITH Linux-syscall-note */
/*
 * kdirect.h - the character devices of kdirect's channels and mappings
 *
 * /dev/kdirect/<channel> carries messages between two ends of a channel. (That of a raw
 * channel is another thing, and below.)
 *
 *   write(), writev()   send one message, 1 .. max_message bytes. Returns its
 *                       length once the message is copied (up to the eager
 *                       limit, or with O_NONBLOCK), or once the peer has
 *                       fetched it (above the eager limit, blocking). A length
 *                       of 0 sends nothing and returns 0.
 *   read(), readv()     return at most the rest of one message and never merge
 *                       two. A buffer too small loses nothing: the next read
 *                       goes on in the same message. 0 is the end of a channel
 *                       that the peer closed in order, or an empty message, which
 *                       only descriptors send; POLLHUP tells the end.
 *   poll()              POLLIN: read() will not block; POLLOUT: a message of any
 *                       length can be sent without blocking; POLLPRI: there are
 *                       completions of descriptors; POLLHUP: the channel has ended.
 *   preadv2()/pwritev2() with offset -1: RWF_HIPRI polls the channel's poll
 *                       queues, as its poll mode says (enum kdirect_poll_mode
 *                       in kdirect_netlink.h), RWF_NOWAIT never blocks.
 *   ioctl(), io_uring   KDIRECT_IOC_INFO, _PING; SENDs and RECVs as descriptors, with all
 *                       that a mapping has for those (below)
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
 * /dev/kdirect/<raw channel> is one QP towards any peer of the RDMA connection manager.
 *
 *   open()              with O_RDWR, by one open file at a time
 *   read(), write()     EINVAL: everything is done by descriptors
 *   poll()              POLLIN: there are completions; POLLOUT: it is connected;
 *                       POLLHUP: the connection has ended, and nothing is under way
 *   ioctl()             KDIRECT_IOC_RAW_INFO, _RAW_CONNECT, _RAW_REJECT,
 *                       KDIRECT_IOC_BUFFER_SHARE, a mapping's but KDIRECT_IOC_MAP_INFO
 *   io_uring            commands: KDIRECT_URING_CMD_DESC (below)
 *   close()             ends the channel: the peer is told, what is posted is flushed
 *
 *   EBUSY       open: another file has it open
 *   EACCES      open: not with O_RDWR
 *   EPIPE       open: the connection has ended
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
 * Descriptors: READ, WRITE and atomic operations on the memory of a mapping, SENDs and RECVs
 * of messages of a channel, or work requests of a raw channel, many in one call, with their
 * completions by the same call or a later one. Each open file has requests of its own; its
 * duplicates share them.
 */

/**
 * enum kdirect_opcode - what a descriptor asks for
 * @KDIRECT_OP_READ:	RDMA READ of @length bytes at @remote
 * @KDIRECT_OP_WRITE:	RDMA WRITE of @length bytes to @remote
 * @KDIRECT_OP_CMP_SWAP: compare and swap: where the 8 bytes at @remote are @compare,
 *			they become @operand
 * @KDIRECT_OP_FETCH_ADD: the 8 bytes at @remote grow by @operand, modulo 2^64
 *
 * @KDIRECT_OP_SEND:	session: one message of @length bytes; raw: SEND of @length bytes
 * @KDIRECT_OP_SEND_IMM: raw: SEND with immediate: @imm
 * @KDIRECT_OP_SEND_INV: raw: SEND with invalidate: of the peer's key @rkey
 * @KDIRECT_OP_RECV:	session: the next message, or raw: a receive, of up to @length bytes
 * @KDIRECT_OP_WRITE_IMM: raw: RDMA WRITE, and @imm in a receive of the peer
 * @KDIRECT_OP_LOCAL_INV: raw: takes back @rkey, a key of KDIRECT_IOC_BUFFER_SHARE
 *
 * Atomic operations are on numbers in the byte order of the target, whole against other
 * atomic operations through the same device.
 */
enum kdirect_opcode {
	KDIRECT_OP_READ		= 1,
	KDIRECT_OP_WRITE	= 2,
	KDIRECT_OP_CMP_SWAP	= 3,
	KDIRECT_OP_FETCH_ADD	= 4,
	KDIRECT_OP_SEND		= 5,
	KDIRECT_OP_SEND_IMM	= 6,
	KDIRECT_OP_SEND_INV	= 7,
	KDIRECT_OP_RECV		= 8,
	KDIRECT_OP_WRITE_IMM	= 9,
	KDIRECT_OP_LOCAL_INV	= 10,
};

#define KDIRECT_DESC_FIXED	(1U << 0)	/* @addr is an offset in a fixed buffer */
#define KDIRECT_DESC_FENCE	(1U << 1)	/* raw: after READs and atomics before */
#define KDIRECT_DESC_SOLICITED	(1U << 2)	/* raw: SENDs and WRITE_IMM: a solicited event */
#define KDIRECT_DESC_FLAGS	(KDIRECT_DESC_FIXED | KDIRECT_DESC_FENCE | \
				 KDIRECT_DESC_SOLICITED)

/**
 * struct kdirect_desc - one operation
 * @opcode:	enum kdirect_opcode
 * @flags:	KDIRECT_DESC_*
 * @buffer:	with KDIRECT_DESC_FIXED the index of the buffer, otherwise zero
 * @length:	bytes, 0 .. KDIRECT_DESC_LENGTH_MAX; atomic operations: 8
 * @addr:	the local memory: an address, or an offset in the fixed buffer; atomic
 *		operations, LOCAL_INV: zero
 * @remote:	where in the export, bytes; raw: READ, WRITE, WRITE_IMM, atomic operations:
 *		the peer's address, otherwise zero; atomic operations: a multiple of 8
 * @operand:	atomic operations; otherwise zero
 * @compare:	KDIRECT_OP_CMP_SWAP; otherwise zero
 * @user_data:	comes back in the completion
 * @rkey:	raw: the key of @remote, or the one to invalidate; otherwise zero
 * @imm:	SEND_IMM, WRITE_IMM: in host order; otherwise zero
 * @reserved:	zero
 *
 * A descriptor is executed whole or ends in one error, which is in its completion and
 * concerns no other descriptor:
 *   EINVAL	unknown opcode or flag, a field that must be zero is not, a length
 *		or an alignment out of range
 *   ERANGE	@remote and @length reach past the end of the export, or past 2^64
 *   EACCES	READ, RECV: the file is not open for reading; others: it is not open for
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
 *
 * Raw channels are different: one descriptor is one work request, and work requests are
 * posted in the order of the descriptors. Errors are these instead:
 *   EINVAL	as above; a field or flag that the opcode has no use for is not zero
 *   ENOTCONN	not connected yet: only RECVs may be posted
 *   EPIPE, ENODEV	the connection has ended, or was deleted: it was not posted
 *   EOPNOTSUPP	atomic operation, and the device has none; immediate data, or a READ of
 *		nothing, on iWARP; READ or atomic operation, and the peer agreed on none in
 *		flight; plain memory that would have to be pinned, from the thread of a ring
 *   EMSGSIZE	longer than the device can; or the memory is in more pieces than one work
 *		request holds, and in more pages than an MR (kdirect_raw_info). Neighbouring
 *		pages are one piece
 *   ENOENT	there is no fixed buffer @buffer; LOCAL_INV: @rkey is no key of this file,
 *		or is being taken back already
 *   ENOMEM	no memory, or over RLIMIT_MEMLOCK, to which pages that are pinned are charged
 *   EINTR	a fatal signal came while it waited for a RECV to be registered
 *   EFAULT	as above
 * and from the transport, with @status of the completion, which is the end of the
 * connection: all that is posted behind completes with ECONNRESET and IBV_WC_WR_FLUSH_ERR.
 *   ETIMEDOUT	the peer does not answer (RETRY_EXC_ERR)
 *   EMSGSIZE	RECV: the peer's message was longer (LOC_LEN_ERR)
 *   EPROTO	the peer refused: a key, or what it may do (REM_ACCESS_ERR, REM_INV_REQ_ERR,
 *		REM_OP_ERR), or had no receive (RNR_RETRY_EXC_ERR)
 *   ECONNRESET	flushed: it was not done, or nobody knows (WR_FLUSH_ERR)
 *   EIO	anything else
 *
 * SENDs and WRITEs of plain memory up to the eager limit are copied; else it is pinned, and
 * RECV's and READ's always, until the completion. Memory in more pieces than one work request
 * of a raw channel holds is registered first, in the send queue: submitting a RECV with such
 * memory waits for that, and so for SENDs before it, which may wait for a receive of the peer;
 * and before the channel is connected, a RECV with such memory, and RECVs behind it, are posted
 * only as soon as it is. A mapping takes no opcode and no flag that says "raw" here, and no SEND
 * or RECV: EOPNOTSUPP.
 *
 * A channel that is a session takes SEND and RECV only, of messages of 0 .. max_message bytes.
 * What cannot be done at once waits by itself, not who submits, and ends at the latest with
 * the channel. If the file is closed first, it is not sent, and takes no message.
 *   SEND	Messages leave in the order of one open file's SENDs, whatever their lengths.
 *		Completes as write() returns: up to the eager limit copied, above it fetched by
 *		the peer; a command of io_uring always when it was copied and posted. write()
 *		may overtake SENDs that have not completed, and no others.
 *   RECV	gets a message in the order of submission, whoever submitted, and before any
 *		read(). If the memory is too short, nothing is lost: the completion has
 *		KDIRECT_COMPLETION_MORE, and in @data how many bytes are left for the next
 *		RECV or read(). 0 bytes of memory tell the length of a message.
 * Plain memory of RECVs that wait, and of SENDs above the eager limit, is pinned and charged to
 * RLIMIT_MEMLOCK (ENOMEM). Errors are as first above, but for these:
 *   EOPNOTSUPP	another opcode; KDIRECT_DESC_FENCE, _SOLICITED; plain memory that would have to
 *		be pinned, from the thread of a ring
 *   EMSGSIZE	SEND: longer than max_message
 *   EPIPE	SEND: the channel has ended, and it was not sent, or not fetched; RECV: the
 *		peer closed the channel in order, and there is no more message
 *   ENODEV, ECONNRESET, ETIMEDOUT, ... RECV: as read(); what had arrived is received first
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
	__u32	rkey;
	__u32	imm;
	__u64	reserved;
};

#define KDIRECT_DESC_LENGTH_MAX	(1U << 30)

/**
 * struct kdirect_completion - the end of one descriptor
 * @user_data:	the descriptor's
 * @old:	atomic operations: the number before it; otherwise 0
 * @result:	bytes, all of the descriptor's, RECV: that came; or a negative errno
 * @index:	the place of the descriptor in its batch, from 0
 * @status:	of the work completion (numbers of enum ibv_wc_status); 0 where no
 *		work request failed
 * @opcode:	the descriptor's
 * @flags:	KDIRECT_COMPLETION_*
 * @data:	RECV: the immediate data, in host order, or the key that the peer invalidated;
 *		of a session: bytes of the message that are left; otherwise 0
 */
struct kdirect_completion {
	__u64	user_data;
	__u64	old;
	__s32	result;
	__u32	index;
	__u16	status;
	__u8	opcode;
	__u8	flags;
	__u32	data;
};

#define KDIRECT_COMPLETION_IMM	(1U << 0)	/* @data is immediate data */
#define KDIRECT_COMPLETION_INV	(1U << 1)	/* @data is a key: it is not valid any more */
#define KDIRECT_COMPLETION_WRITE (1U << 2)	/* a WRITE with immediate, of @result bytes: the
						 * receive's own memory is untouched
						 */
#define KDIRECT_COMPLETION_MORE	(1U << 3)	/* session: @data bytes of the message are left */

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
 * next call. Submitting to a mapping may wait for request slots of the channel, which become
 * free by themselves. What can share a doorbell does: descriptors of fixed buffers, atomic
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
 * executed, or not, and their memory is pinned until then. "The mapping": or the channel.
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

#define KDIRECT_ACCESS_READ	(1U << 0)	/* the peer may read */
#define KDIRECT_ACCESS_WRITE	(1U << 1)	/* and write */
#define KDIRECT_ACCESS_ATOMIC	(1U << 2)	/* and do atomic operations */
#define KDIRECT_ACCESS_FLAGS	(KDIRECT_ACCESS_READ | KDIRECT_ACCESS_WRITE | \
				 KDIRECT_ACCESS_ATOMIC)

/**
 * struct kdirect_share - a key of a fixed buffer (KDIRECT_IOC_BUFFER_SHARE, raw channels)
 * @index:	in: the fixed buffer
 * @access:	in: KDIRECT_ACCESS_*; 0 takes the key back
 * @rkey:	out: the key, for the peer
 * @pad:	zero
 * @addr:	out: what the peer calls the buffer's first byte
 * @length:	out: bytes, the whole buffer
 * @reserved:	zero
 *
 * The key is good when the call returns, however the peer hears of it; it is a new one each
 * time. The call waits for the device, and so for SENDs before it, which may wait for a receive
 * of the peer; only a fatal signal or the end of the channel ends that. The key ends with
 * @access 0, with a LOCAL_INV, when the peer invalidates it by a SEND (the completion of
 * the RECV says so), when the buffer is removed or replaced, and with the connection. Taking
 * it back, as removing the buffer does, waits until the device has done so: afterwards the
 * peer can neither read nor write. A peer that invalidates what is no key of this channel
 * ends the connection.
 *
 * Errors: EINVAL (@index, flag, @reserved, @pad), ENOENT (no such buffer; @access 0: no key),
 * EBUSY (it has a key, or is about to lose one), EFBIG (longer than the device registers at
 * once: device show -d), EOPNOTSUPP (no atomic operations, or the device has a copy of the
 * memory: swiotlb), ENOTCONN (not connected yet), ENOMEM, EINTR, EPIPE, ENODEV, EFAULT.
 */
struct kdirect_share {
	__u32	index;
	__u32	access;
	__u32	rkey;
	__u32	pad;
	__u64	addr;
	__u64	length;
	__u64	reserved[2];
};

#define KDIRECT_IOC_BUFFER_SHARE _IOWR(KDIRECT_IOC_MAGIC, 11, struct kdirect_share)

#define KDIRECT_RAW_SGES	32	/* pieces of memory that need no MR, at most */
#define KDIRECT_RAW_CONNECT_MAX	56	/* bytes of private data of a connection request */
#define KDIRECT_RAW_ACCEPT_MAX	196	/* of the answer */
#define KDIRECT_RAW_REJECT_MAX	148	/* of a refusal */
#define KDIRECT_RAW_DATA_MAX	256	/* of what a peer sends */

/**
 * struct kdirect_raw_connect - connect, accept, or refuse (KDIRECT_IOC_RAW_CONNECT, _RAW_REJECT)
 * @data:		private data for the peer
 * @length:		bytes of it: connecting up to KDIRECT_RAW_CONNECT_MAX, accepting up to
 *			KDIRECT_RAW_ACCEPT_MAX, refusing up to KDIRECT_RAW_REJECT_MAX
 * @initiator_depth:	READs and atomic operations of ours in flight, 0 .. 255
 * @responder_resources: the peer's, towards us, 0 .. 255
 * @retry_count:	0 .. 7: repetitions of what is not acknowledged. Some devices (rxe)
 *			take 7 for "for ever", and never notice a dead peer
 * @rnr_retry_count:	0 .. 7: repetitions by the peer of what finds no receive here;
 *			7: for ever
 * @reserved:		zero
 *
 * Of a channel or listener that was added with "hold". CONNECT sends the connection request,
 * or accepts the peer's, and waits for the end of that; with O_NONBLOCK, and after EINTR,
 * the channel goes on by itself, and POLLOUT or POLLHUP is the end. The depths are cut down
 * to what the device and the peer can. REJECT refuses the peer's request; of a channel that
 * connects itself it does without a request. The channel ends.
 * Who does neither within connect-timeout is rejected.
 *
 * Errors: EINVAL (range, @length, @reserved; not @length of REJECT: what is only CONNECT's is
 * not zero), EBUSY (it is not held, or not any more), EINTR, EFAULT; of CONNECT: why the
 * connection failed, ECONNREFUSED for one (struct kdirect_raw_info has the peer's data).
 */
struct kdirect_raw_connect {
	__u8	data[KDIRECT_RAW_ACCEPT_MAX];
	__u32	length;
	__u8	initiator_depth;
	__u8	responder_resources;
	__u8	retry_count;
	__u8	rnr_retry_count;
	__u32	reserved[4];
};

#define KDIRECT_IOC_RAW_CONNECT	_IOW(KDIRECT_IOC_MAGIC, 12, struct kdirect_raw_connect)
#define KDIRECT_IOC_RAW_REJECT	_IOW(KDIRECT_IOC_MAGIC, 13, struct kdirect_raw_connect)

#define KDIRECT_RAW_HELD	(1U << 0)	/* waits for KDIRECT_IOC_RAW_CONNECT or _REJECT */
#define KDIRECT_RAW_ACCEPTS	(1U << 1)	/* the peer connected, or wants to */
#define KDIRECT_RAW_ATOMICS	(1U << 2)	/* the device has atomic operations */
#define KDIRECT_RAW_IMM		(1U << 3)	/* and immediate data */
#define KDIRECT_RAW_READS	(1U << 4)	/* READ can be used */

/**
 * struct kdirect_raw_info - what a raw channel is (KDIRECT_IOC_RAW_INFO)
 * @name:		its name, NUL-terminated
 * @state:		enum kdirect_state (kdirect_netlink.h)
 * @flags:		KDIRECT_RAW_*
 * @error:		positive errno of the first error, 0: none
 * @depth:		RECVs, and other work requests, that can be posted, each
 * @send_sges:		pieces of memory of one SEND or WRITE that need no MR
 * @recv_sges:		of one RECV
 * @read_sges:		of one READ; iWARP: a READ always needs one
 * @eager_limit:	longest SEND or WRITE of plain memory that is copied
 * @max_length:		bytes of one work request
 * @poll_queues:	0 or 1: the QP completes by polling
 * @initiator_depth:	as agreed, once connected
 * @responder_resources: as agreed, once connected
 * @data_length:	bytes of @data
 * @data:		the peer's private data, with its request, answer or refusal. InfiniBand
 *			and RoCE fill it up with zeros: 56, 196 or 148 bytes
 * @mr_pages:		pages that the memory of a work request lies in, at most, if it needs
 *			an MR
 * @reserved:		zero
 *
 * Errors: EFAULT.
 */
struct kdirect_raw_info {
	char	name[KDIRECT_NAME_MAX + 1];
	__u32	state;
	__u32	flags;
	__u32	error;
	__u32	depth;
	__u32	send_sges;
	__u32	recv_sges;
	__u32	read_sges;
	__u32	eager_limit;
	__u32	max_length;
	__u32	poll_queues;
	__u8	initiator_depth;
	__u8	responder_resources;
	__u16	data_length;
	__u8	data[KDIRECT_RAW_DATA_MAX];
	__u32	mr_pages;
	__u32	reserved[4];
};

#define KDIRECT_IOC_RAW_INFO	_IOR(KDIRECT_IOC_MAGIC, 14, struct kdirect_raw_info)

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
 * A pair of them belongs to one open file with descriptors and is an open file itself, which
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
 * struct kdirect_ring_setup - make rings (KDIRECT_IOC_RING_SETUP)
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
 * with the file that the rings were made for.
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
 * The command of an SQE with IORING_OP_URING_CMD, @cmd_op KDIRECT_URING_CMD_DESC and the file
 * of a mapping or a channel, in a ring with IORING_SETUP_SQE128. With IORING_URING_CMD_FIXED
 * the local memory lies in the buffer of io_uring that the SQE's @buf_index names, and
 * @desc.addr is an address in it; not with atomic operations or KDIRECT_DESC_FIXED.
 *
 * The result in the CQE is that of struct kdirect_completion. With IORING_SETUP_CQE32 (or
 * _CQE_MIXED) there is a second one, in big_cqe[0]: the number before an atomic operation; of
 * a RECV @data of the completion, and its @flags from bit 32 on; after an error the status of
 * the work completion. Without it atomic operations fail with
 * EOPNOTSUPP. In a ring with IORING_SETUP_IOPOLL commands use the poll queues.
 *
 * KDIRECT_DESC_ENTRIES commands of one open file are under way at a time, beside the
 * descriptors of KDIRECT_IOC_SUBMIT or of rings, whose completions they have nothing to do
 * with. A command that would have to wait when it is submitted, for one of these, for request
 * slots, for memory that is not present, or for another submitter of the file, is left to a
 * worker of io_uring, as is a READ, or a WRITE above the eager limit, that is not one work
 * request, a RECV without a message, and a SEND without room or above the eager limit; these
 * are in no order. What waits in a worker can be cancelled; what is posted ends by itself.
 *
 * On a raw channel commands take the places of other descriptors (kdirect_raw_info.depth), and
 * wait for one; they are posted in order unless one is left to a worker, as is what pins or
 * registers memory. io_uring keeps the file open while a RECV is posted: when the process that
 * submitted a command ends meanwhile, the channel does within two seconds, as with close().
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
