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
 *                       queues instead of sleeping, RWF_NOWAIT never blocks.
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
 */
#define KDIRECT_OPEN_POLL	(1U << 0)
#define KDIRECT_OPEN_FLAGS	(KDIRECT_OPEN_POLL)

/*
 * KDIRECT_IOC_SET_FLAGS: replace the flags of this open file.
 * Errors: EINVAL (unknown bit), EOPNOTSUPP (no poll queue), EFAULT.
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

#endif /* _UAPI_KDIRECT_H */
