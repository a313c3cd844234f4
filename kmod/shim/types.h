/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * types.h - what crosses the boundary between the shim (C, kernel headers) and
 * the core (C++, no kernel headers): plain structures and opaque names.
 *
 * Errors are positive errno values (KD_*, the numbers are Linux's) everywhere
 * in the core and in this boundary; 0 is success. Only the shim turns them into
 * the kernel's negative ones.
 */
#ifndef KDIRECT_SHIM_TYPES_H
#define KDIRECT_SHIM_TYPES_H

#ifdef __cplusplus
#include <cstddef>
#include <cstdint>
#else
#include <linux/types.h>
#include <linux/stddef.h>
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* The core's objects, opaque to the shim. */
struct kd_channel;	/* one association with a peer */
struct kd_queue;	/* one QP of a channel */
struct kd_listener;
struct kd_device;	/* the core's view of an RDMA device */
struct kd_mapping;	/* a remote export made local */
struct kd_desc_file;	/* one open file of a mapping's node, or a raw channel's */
struct kd_ring;		/* rings of one of those */

/* The shim's objects, opaque to the core. */
struct kd_net;		/* a network namespace (struct net) */
struct kd_cm;		/* an rdma_cm_id and its owner */
struct kd_pd;		/* a protection domain */
struct kd_cq;
struct kd_qp;
struct kd_mr;		/* one FRWR MR */
struct kd_frwr;		/* one for local memory */
struct kd_pages;	/* memory of one large message */
struct kd_iter;		/* the caller's memory (struct iov_iter) */
struct kd_node;		/* a character device node */
struct kd_region;	/* memory of an export */
struct kd_key;		/* one MR over a part of a region, for the peer */
struct kd_fixed;	/* a fixed buffer: pinned memory, mapped for a device */
struct kd_shared;	/* memory that is shared with a program */
struct kd_thread;	/* a thread of a ring */
struct kd_chain;	/* room for work requests that share a doorbell */
struct kd_uring;	/* a command of io_uring (struct io_uring_cmd) */
struct kd_iocb;		/* an asynchronous read or write (struct kiocb) */
struct kd_ib_device;	/* an ib_device that kdirect attached to */

enum {
	KD_EPERM = 1, KD_ENOENT = 2, KD_EINTR = 4, KD_EIO = 5, KD_EAGAIN = 11, KD_ENOMEM = 12,
	KD_EACCES = 13, KD_EFAULT = 14, KD_EBUSY = 16, KD_EEXIST = 17, KD_ENODEV = 19,
	KD_EINVAL = 22, KD_ENFILE = 23, KD_EFBIG = 27, KD_ENOSPC = 28, KD_EPIPE = 32,
	KD_ERANGE = 34, KD_EPROTO = 71, KD_EBADMSG = 74,
	KD_EMSGSIZE = 90, KD_EPROTONOSUPPORT = 93, KD_EOPNOTSUPP = 95, KD_EADDRINUSE = 98,
	KD_EADDRNOTAVAIL = 99, KD_ENETUNREACH = 101, KD_ECONNRESET = 104, KD_ENOTCONN = 107,
	KD_ETIMEDOUT = 110, KD_ECONNREFUSED = 111, KD_EHOSTUNREACH = 113, KD_ESTALE = 116,
};

#define KD_NAME_MAX	31
#define KD_TEXT_MAX	160	/* bytes of an error text, NUL included */
#define KD_PRIVATE_MAX	56	/* bytes of private data in a connection request */
#define KD_ACCEPT_MAX	196	/* and in an answer */
#define KD_MAX_PREFIXES	64

/**
 * struct kd_error - an error and what to tell a person about it
 * @err:  KD_*, 0 = none
 * @attr: enum kdirect_attr at fault, 0 = none
 * @text: one line, NUL-terminated, names the value and the limit
 */
struct kd_error {
	int		err;
	uint16_t	attr;
	char		text[KD_TEXT_MAX];
};

/* An IPv4 or IPv6 address; @len is 4, 16, or 0 for none. Network order. */
struct kd_addr {
	uint8_t		bytes[16];
	uint8_t		len;
	uint32_t	scope;	/* IPv6 link-local: interface index */
};

struct kd_endpoint {
	struct kd_addr	addr;
	uint16_t	port;	/* host order */
};

struct kd_prefix {
	struct kd_addr	addr;
	uint8_t		bits;
};

/* Which optional attributes a request carried. */
enum {
	KD_HAS_ALLOW		= 1U << 0,
	KD_HAS_ALLOW_CLEAR	= 1U << 1,
	KD_HAS_MAX_CHANNELS	= 1U << 2,
	KD_HAS_EAGER_LIMIT	= 1U << 3,
	KD_HAS_KEEP_ALIVE	= 1U << 4,
	KD_HAS_DRAIN_TIMEOUT	= 1U << 5,
	KD_HAS_POLL_MODE	= 1U << 6,
	KD_HAS_POLL_CPU		= 1U << 7,
	KD_HAS_CQ_COUNT		= 1U << 8,
	KD_HAS_CQ_PERIOD	= 1U << 9,
	KD_HAS_LOSS_TIMEOUT	= 1U << 11,
	KD_HAS_FAST_IO_FAIL	= 1U << 12,
	KD_HAS_RECONNECT_DELAY	= 1U << 13,
	KD_HAS_RECONNECT_MAX_DELAY = 1U << 14,
	KD_HAS_KEEP_ALIVE_MISSES = 1U << 15,
	KD_HAS_REQUEST_TIMEOUT	= 1U << 16,
	KD_HAS_RAW		= 1U << 10,	/* what only raw channels have */
};

/* What is set of a raw channel. */
struct kd_raw_params {
	bool			hold;
	uint32_t		retry_count;
	uint32_t		rnr_retry_count;
	uint32_t		initiator_depth;
	uint32_t		responder_resources;
	uint32_t		data_len;
	uint8_t			data[KD_ACCEPT_MAX];
};

/**
 * struct kd_listener_params - LISTENER_NEW, LISTENER_SET
 *
 * The shim fills absent numbers with the defaults of kd_listener_defaults();
 * the core checks every range.
 */
struct kd_listener_params {
	char			name[KD_NAME_MAX + 1];
	struct kd_endpoint	local;
	uint32_t		has;		/* KD_HAS_*, for SET */
	uint32_t		nr_allow;
	struct kd_prefix	allow[KD_MAX_PREFIXES];
	uint32_t		max_channels;
	uint32_t		max_queues;
	uint32_t		max_depth;
	uint32_t		max_message;
	uint32_t		eager_limit;
	uint32_t		mode;		/* enum kdirect_mode */
	struct kd_raw_params	raw;
};

/**
 * struct kd_channel_params - CHANNEL_NEW, CHANNEL_SET
 * @owner: netlink socket that owns the channel until it is live, 0 = none. Port ids are
 *	unique per namespace only, so this is the namespace's inode and the port id.
 */
struct kd_channel_params {
	char			name[KD_NAME_MAX + 1];
	struct kd_endpoint	peer;
	struct kd_addr		source;
	uint32_t		has;		/* KD_HAS_*, for SET */
	uint32_t		queues;
	uint32_t		poll_queues;
	uint32_t		depth;
	uint32_t		max_message;
	uint32_t		eager_limit;
	uint32_t		keep_alive_ms;
	uint32_t		keep_alive_misses;
	uint32_t		request_timeout_ms;	/* of a work request */
	uint32_t		connect_timeout_ms;
	uint32_t		drain_timeout_ms;
	uint32_t		loss_timeout_ms;	/* ~0: for ever; 0: no recovery */
	uint32_t		fast_io_fail_ms;	/* 0: not before the loss timeout */
	uint32_t		reconnect_delay_ms;	/* the first, doubled up to the next */
	uint32_t		reconnect_max_delay_ms;
	uint32_t		poll_mode;	/* enum kdirect_poll_mode */
	uint32_t		poll_cpu_percent;
	uint32_t		cq_count, cq_period_us;	/* both 0: the device's own way */
	uint32_t		mode;		/* enum kdirect_mode */
	struct kd_raw_params	raw;
	uint64_t		owner;
};

/* EXPORT_NEW */
struct kd_export_params {
	char			name[KD_NAME_MAX + 1];
	char			listener[KD_NAME_MAX + 1];
	uint64_t		size;
	bool			read_only;
};

/* MAP_NEW */
struct kd_map_params {
	char			name[KD_NAME_MAX + 1];
	char			channel[KD_NAME_MAX + 1];
	char			export_name[KD_NAME_MAX + 1];
	bool			read_only;
};

/* What a device can do, read once from ib_device. */
struct kd_device_attr {
	char		name[64];
	uint32_t	index;
	uint64_t	node_guid;
	uint32_t	transport;	/* enum kdirect_transport */
	uint32_t	ports;
	uint32_t	max_qp_wr;
	uint32_t	max_cqe;
	uint32_t	max_send_sge;
	uint32_t	max_recv_sge;
	uint32_t	max_read_sge;
	uint32_t	max_mr_pages;	/* PAGE_SIZE pages of one FRWR MR */
	uint32_t	max_rd_atom;	/* as responder */
	uint32_t	max_init_rd_atom;
	uint32_t	max_length;	/* bytes of one message or RDMA operation */
	bool		atomics;	/* compare and swap, fetch and add */
	bool		moderation;	/* kd_cq_moderate() */
	struct kd_ib_device *ib;	/* the shim's; the core keeps it with the rest */
};

enum kd_cm_event_type {
	KD_CM_ADDR_RESOLVED,
	KD_CM_ROUTE_RESOLVED,
	KD_CM_CONNECT_REQUEST,
	KD_CM_ESTABLISHED,
	KD_CM_ADDR_ERROR,	/* no path to the address */
	KD_CM_ROUTE_ERROR,
	KD_CM_UNREACHABLE,	/* no answer to the connection request */
	KD_CM_CONNECT_ERROR,
	KD_CM_REJECTED,
	KD_CM_DISCONNECTED,
	KD_CM_DEVICE_REMOVAL,
	KD_CM_OTHER,		/* known to be harmless, or unknown: logged only */
};

/**
 * struct kd_cm_event - one event of an rdma_cm_id
 * @status:	KD_* of an error event; REJECTED: the transport's reason code
 * @no_listener: REJECTED: the transport says that nothing listens there
 * @name:	the event's name, for messages
 * @data:	private data, valid during the call; may be NULL
 * @data_len:	its length as the transport gives it (padded on IB and RoCE)
 * @reads_in:	CONNECT_REQUEST, ESTABLISHED: READs that the peer will have in
 *		flight towards us (responder resources)
 * @reads_out:	READs that the peer accepts from us (initiator depth)
 * @new_cm:	CONNECT_REQUEST: the new connection's id. The callee owns it if
 *		it returns 0; otherwise the shim destroys it after the call.
 */
struct kd_cm_event {
	enum kd_cm_event_type	type;
	int			status;
	bool			no_listener;
	const char		*name;
	const uint8_t		*data;
	uint32_t		data_len;
	uint8_t			reads_in;
	uint8_t			reads_out;
	struct kd_cm		*new_cm;
};

/* Parameters of rdma_connect() and rdma_accept(). */
struct kd_cm_params {
	const void	*data;
	uint32_t	data_len;
	uint8_t		responder_resources;
	uint8_t		initiator_depth;
	uint8_t		retry_count;
	uint8_t		rnr_retry_count;	/* of the peer */
};

/**
 * struct kd_qp_params - what a QP must hold
 * @max_send:	SEND, REG_MR and LOCAL_INV WRs outstanding, without drain and
 *		without what RDMA READs need
 * @max_recv:	receives outstanding, without drain
 * @max_reads:	kd_read contexts in use at once
 * @max_read_pages: pages of the largest of them
 * @max_writes:	of @max_send, WRs that kd_post_io() and kd_post_chain() post
 * @max_rw:	of @max_reads, those of kd_rw_post()
 * @send_sges:	entries of one WR of the send side; 0: what the others need
 * @recv_sges:	of one receive; 0: one
 */
struct kd_qp_params {
	struct kd_pd	*pd;
	struct kd_cq	*cq;
	uint32_t	max_send;
	uint32_t	max_recv;
	uint32_t	max_reads;
	uint32_t	max_read_pages;
	uint32_t	max_writes;
	uint32_t	max_rw;
	uint32_t	send_sges;
	uint32_t	recv_sges;
};

enum kd_dma_dir {
	KD_DMA_RECV,	/* from the device */
	KD_DMA_SEND,	/* to the device */
	KD_DMA_BOTH,
};

/* A DMA-mapped buffer in kernel memory. The memory outlives the mapping. */
struct kd_dma {
	void		*mem;
	uint64_t	addr;
	uint32_t	size;
	enum kd_dma_dir	dir;
	bool		mapped;		/* @addr is valid */
};

/* The kinds of work requests, each with its handler in core.h. */
enum kd_cqe_kind {
	KD_CQE_RECV,
	KD_CQE_SEND,
	KD_CQE_OFFER,	/* REG_MR of an offered message (completes only on error) */
	KD_CQE_INV,	/* LOCAL_INV of an offered message */
	KD_CQE_READ,
	KD_CQE_IO,	/* READ or WRITE of a mapping */
	KD_CQE_KEY,	/* REG_MR of an export's keys (completes only on error) */
	KD_CQE_RAW_SEND, /* of a raw channel: anything on the send side */
	KD_CQE_RAW_RECV,
	KD_CQE_RAW_CONTROL, /* REG_MR or LOCAL_INV of a fixed buffer's key */
	KD_CQE_RAW_REG, /* REG_MR or LOCAL_INV of local memory */
};

/* Storage of a struct ib_cqe, embedded in whatever is posted. */
struct kd_cqe {
	unsigned long	opaque[2];
};

/**
 * struct kd_wc - a work completion
 * @err:	KD_*, 0 = success
 * @flushed:	the QP was in the error state: the WR did not run
 * @status:	the transport's (enum ib_wc_status)
 * @status_name: of the transport's status, for messages
 * @byte_len:	receives: bytes that arrived
 * @invalidated: receives: the peer asked to invalidate @rkey
 * @write:	receives: of an RDMA WRITE with immediate
 * @with_imm:	receives: there is @imm, in host order
 */
struct kd_wc {
	int		err;
	bool		flushed;
	uint16_t	status;
	uint32_t	byte_len;
	bool		invalidated;
	bool		write;
	bool		with_imm;
	uint32_t	rkey;
	uint32_t	imm;
	const char	*status_name;
};

/* Storage of kernel objects that the core embeds; sizes are asserted in the shim. */
struct kd_spinlock { unsigned long opaque[16]; };
struct kd_mutex { unsigned long opaque[32]; };
struct kd_waitq { unsigned long opaque[24]; };
struct kd_work { unsigned long opaque[40]; };
struct kd_read { unsigned long opaque[24]; };

/**
 * struct kd_uring_call - a command of io_uring that is issued; of the call only
 * @cmd:	the command
 * @issue:	the shim's
 * @nowait:	where it would have to wait it is to be issued once more: KD_EAGAIN
 * @polls:	its completion is polled for
 * @registered:	its memory is of a buffer that is registered with the ring
 * @wide:	its completion has room for kd_uring_end.extra
 */
struct kd_uring_call {
	struct kd_uring	*cmd;
	unsigned int	issue;
	bool		nowait;
	bool		polls;
	bool		registered;
	bool		wide;
};

/* Its end: bytes, or a negative KD_* value; the old number, or the completion's status. */
struct kd_uring_end {
	int32_t		result;
	uint64_t	extra;
};

/* An event for the multicast group. Absent values are 0 or NULL. */
struct kd_event {
	uint32_t		type;		/* enum kdirect_event */
	const char		*name;
	const char		*listener;
	const char		*device;
	uint32_t		state;		/* CHANNEL_STATE, MAP_STATE */
	uint32_t		old_state;
	bool			held;		/* CHANNEL_STATE */
	const struct kd_error	*error;
	struct kd_net		*net;
};

/* Snapshots for GET. Strings are NUL-terminated copies. */
struct kd_device_info {
	struct kd_device_attr	attr;
	uint32_t		channels;
};

struct kd_listener_info {
	struct kd_listener_params params;
	uint32_t		channels;
	uint64_t		accepted;
	uint64_t		rejected;
	uint32_t		netns;
};

struct kd_channel_info {
	struct kd_channel_params params;	/* as agreed once live */
	char			listener[KD_NAME_MAX + 1];
	char			device[64];
	struct kd_endpoint	local;
	uint32_t		state;
	uint64_t		state_age_ms;
	struct kd_error		error;
	struct kd_error		last_error;	/* of the outage before */
	struct kd_error		attempt_error;	/* of the last attempt to connect again */
	uint32_t		opens;
	uint32_t		netns;
	bool			held;		/* raw, as these */
	uint32_t		peer_len;
	uint8_t			peer_data[256];
};

struct kd_export_info {
	struct kd_export_params	params;
	uint64_t		instance;
	uint32_t		maps;
	bool			deleting;
	uint32_t		netns;
};

struct kd_map_info {
	struct kd_map_params	params;		/* read_only: as agreed once live */
	uint64_t		size;
	uint64_t		instance;
	uint32_t		key_bytes;
	uint32_t		keys;
	uint32_t		state;
	struct kd_error		error;
	uint32_t		opens;
	uint32_t		netns;
};

struct kd_channel_stats {
	uint64_t	tx_messages, tx_bytes, rx_messages, rx_bytes;
	uint64_t	tx_rendezvous, rx_rendezvous, tx_pinned_bytes;
	uint64_t	credit_waits, ctrl_tx, ctrl_rx, keep_alives, pings;
	uint64_t	map_reads, map_read_bytes, map_writes, map_write_bytes;
	uint64_t	map_pinned_bytes, map_waits;
	uint64_t	map_atomics, descs, desc_posts;
	uint64_t	fixed_buffers, fixed_bytes;	/* now */
	uint64_t	outages, outage_ms, attempts, replayed, io_replayed;
};

struct kd_queue_stats {
	uint32_t	index, kind, qpn, depth, credits;
	uint32_t	mr_total, mr_used;
	uint64_t	cqe_interrupt, cqe_polled, polls, tx, rx;
	uint64_t	poll_cpu_ns, poll_naps, poll_sleeps;
};

#define KD_MAX_QUEUES	65	/* control queue and 64 data queues */

#ifdef __cplusplus
}
#endif
#endif
