/* SPDX-License-Identifier: GPL-2.0-only WITH Linux-syscall-note */
/*
 * kdirect_netlink.h - generic netlink family "kdirect"
 *
 * The machine-readable form is Documentation/netlink/kdirect.yaml; a test holds
 * the two and the module against each other.
 *
 * Attributes (all in one space, KDIRECT_A_*). "req": needed in a request.
 *
 *  DEVICE_GET    do: DEV_NAME req; dump: none
 *     reply      DEV_INDEX, DEV_NAME, DEV_NODE_GUID, DEV_TRANSPORT, DEV_PORTS,
 *                DEV_MAX_QP_WR, DEV_MAX_CQE, DEV_MAX_SGE, DEV_MAX_MR_PAGES,
 *                DEV_MAX_RD_ATOM, DEV_CHANNELS, MAX_MESSAGE
 *  LISTENER_NEW  NAME req, ADDR req, PORT req, ALLOW*, MAX_CHANNELS,
 *                MAX_QUEUES, MAX_DEPTH, MAX_MESSAGE, EAGER_LIMIT, MODE; with mode raw
 *                PRIVATE_DATA, HOLD, RETRY_COUNT, RNR_RETRY_COUNT,
 *                INITIATOR_DEPTH, RESPONDER_RESOURCES
 *  LISTENER_SET  NAME req, ALLOW* (replaces the list; ALLOW_CLEAR empties it),
 *                MAX_CHANNELS
 *  LISTENER_DEL  NAME req
 *  LISTENER_GET  do: NAME req; dump: none
 *     reply      as in NEW, and CHANNELS, ACCEPTED, REJECTED, NETNS
 *  CHANNEL_NEW   NAME req, ADDR req, PORT req, SRC_ADDR, QUEUES, POLL_QUEUES,
 *                DEPTH, MAX_MESSAGE, EAGER_LIMIT, KEEP_ALIVE_MS,
 *                CONNECT_TIMEOUT_MS, DRAIN_TIMEOUT_MS, KEEP_ALIVE_MISSES,
 *                REQUEST_TIMEOUT_MS, LOSS_TIMEOUT_MS,
 *                FAST_IO_FAIL_MS, RECONNECT_DELAY_MS, RECONNECT_MAX_DELAY_MS, POLL_MODE,
 *                POLL_CPU_PERCENT, CQ_COUNT, CQ_PERIOD_US, SOCKET_OWNER, MODE; with
 *                mode raw PRIVATE_DATA, HOLD, RETRY_COUNT, RNR_RETRY_COUNT,
 *                INITIATOR_DEPTH, RESPONDER_RESOURCES
 *  CHANNEL_SET   NAME req, EAGER_LIMIT, KEEP_ALIVE_MS, DRAIN_TIMEOUT_MS,
 *                KEEP_ALIVE_MISSES, REQUEST_TIMEOUT_MS,
 *                LOSS_TIMEOUT_MS, FAST_IO_FAIL_MS, RECONNECT_DELAY_MS,
 *                RECONNECT_MAX_DELAY_MS, POLL_MODE, POLL_CPU_PERCENT, CQ_COUNT,
 *                CQ_PERIOD_US
 *  CHANNEL_DEL   NAME req
 *  CHANNEL_GET   do: NAME req; dump: none
 *     reply      as in NEW, and LISTENER (accepted ones), STATE, STATE_AGE_MS,
 *                ERROR, CAUSE, LAST_CAUSE, ATTEMPT_CAUSE, LOCAL_ADDR, LOCAL_PORT,
 *                DEV_NAME, OPENS, NETNS; of raw ones HELD, PEER_DATA, and once connected
 *                the depths as agreed
 *  STATS_GET     do: NAME req; dump: none
 *     reply      NAME, STAT_* of the channel, QUEUE* (nest: QUEUE_*)
 *  EXPORT_NEW    NAME req, LISTENER req, SIZE req, READ_ONLY
 *  EXPORT_DEL    NAME req
 *  EXPORT_GET    do: NAME req; dump: none
 *     reply      as in NEW, and MAPS, DELETING, INSTANCE, NETNS
 *  MAP_NEW       NAME req, CHANNEL req, EXPORT req, READ_ONLY
 *  MAP_DEL       NAME req
 *  MAP_GET       do: NAME req; dump: none
 *     reply      as in NEW, and MAP_STATE, OPENS, ERROR, CAUSE, NETNS; once the
 *                peer has told them SIZE, INSTANCE, KEYS, KEY_BYTES
 *  EVENT         multicast group "events": EVENT_TYPE, NAME, ERROR, CAUSE, and
 *                for channels STATE, OLD_STATE, LISTENER, HELD; for devices DEV_NAME;
 *                for exports LISTENER; for mappings MAP_STATE, OLD_MAP_STATE
 *
 * Names have 1 .. 31 bytes, those of listeners 1 .. 26: a letter, then letters,
 * digits, '_' and '-'. A channel that a listener accepts is named <listener>.<n> with
 * the lowest free n. Address and port are a listener's own and a channel's peer's. A
 * channel has 1 .. 64 data queues, of either kind, each with depth messages in flight in
 * each direction. The eager limit is cut down to the longest message; a listener's is a
 * bound for its peers and 65536 by default.
 *
 * NEW, SET and DEL need CAP_NET_ADMIN in the network namespace of the socket;
 * CHANNEL_NEW, LISTENER_NEW and MAP_NEW, since they create device nodes, and
 * EXPORT_NEW, since it sets memory aside, in the initial user namespace as well.
 * GET is open to everyone who can open the socket.
 *
 * CHANNEL_NEW and CHANNEL_DEL return as soon as the work has begun; its end is
 * an event: CHANNEL_STATE with STATE live, or CHANNEL_REMOVED with ERROR and
 * CAUSE. A channel whose first connection fails is removed by itself. With
 * SOCKET_OWNER it is also removed when the socket that asked for it closes
 * before it was live. Deleting a listener leaves the channels that it accepted. No
 * command waits for a peer.
 *
 * A session whose connection fails is recovering for up to LOSS_TIMEOUT_MS: its initiator
 * connects again, at first at once, then after RECONNECT_DELAY_MS, which doubles up to
 * RECONNECT_MAX_DELAY_MS and is shortened by up to a fifth by chance; an attempt is given up
 * when the next is due, but not within a second. Its target waits for that, as long as the
 * initiator's LOSS_TIMEOUT_MS was when it connected. Users wait meanwhile; after
 * FAST_IO_FAIL_MS what they wait for fails with ETIMEDOUT, and the channel goes on trying.
 * Once it is live again messages go on without a loss or a repetition, READs of mappings
 * are repeated, and WRITEs if nobody else could write. ERROR and CAUSE are those of the
 * outage that goes on, LAST_CAUSE of the one before, ATTEMPT_CAUSE of the last attempt.
 *
 * A raw channel (MODE) has one QP, speaks no protocol of kdirect's, and its node is for
 * descriptors (kdirect.h). A listener of mode raw accepts such channels, each of MAX_DEPTH.
 * With HOLD the node comes before the connection, and its program connects, accepts or
 * refuses; it is told by CHANNEL_STATE, STATE and OLD_STATE connecting, and HELD. Whom
 * nobody answers within CONNECT_TIMEOUT_MS (10 s for a listener's) is refused, or given up.
 * HELD ends SOCKET_OWNER.
 * MAX_MESSAGE, KEEP_ALIVE_MS and MAX_QUEUES mean nothing to raw channels, EAGER_LIMIT is the
 * longest SEND or WRITE that is copied.
 *
 * EXPORT_DEL, MAP_NEW and MAP_DEL likewise: their ends are EXPORT_REMOVED,
 * MAP_STATE with MAP_STATE live, and MAP_REMOVED. A mapping that the peer refuses
 * removes itself. Once EXPORT_REMOVED was sent no peer can read or write the
 * memory, and it is freed. The memory of an export is charged to the memory cgroup
 * of who added it. A mapping whose export was deleted or whose channel has ended
 * stays to be looked at until MAP_DEL. Names of mappings and channels are in one
 * space, since their nodes are in one directory.
 *
 * Errors, each with an extended-ack text that names the attribute and its
 * limit: EINVAL, ERANGE (value out of range), EEXIST, ENOENT, ENODEV (address
 * without RDMA device), EADDRNOTAVAIL, EADDRINUSE, EPERM, ENOMEM, ENFILE (no
 * minor number left), EBUSY (being added, or the module
 * is being unloaded).
 * Since version 0.1.
 */
#ifndef _UAPI_KDIRECT_NETLINK_H
#define _UAPI_KDIRECT_NETLINK_H

#define KDIRECT_GENL_NAME	"kdirect"
#define KDIRECT_GENL_VERSION	1
#define KDIRECT_GENL_EVENTS	"events"

/* commands; append only */
enum kdirect_cmd {
	KDIRECT_CMD_UNSPEC,
	KDIRECT_CMD_DEVICE_GET,
	KDIRECT_CMD_LISTENER_NEW,
	KDIRECT_CMD_LISTENER_SET,
	KDIRECT_CMD_LISTENER_DEL,
	KDIRECT_CMD_LISTENER_GET,
	KDIRECT_CMD_CHANNEL_NEW,
	KDIRECT_CMD_CHANNEL_SET,
	KDIRECT_CMD_CHANNEL_DEL,
	KDIRECT_CMD_CHANNEL_GET,
	KDIRECT_CMD_STATS_GET,
	KDIRECT_CMD_EVENT,
	KDIRECT_CMD_EXPORT_NEW,
	KDIRECT_CMD_EXPORT_DEL,
	KDIRECT_CMD_EXPORT_GET,
	KDIRECT_CMD_MAP_NEW,
	KDIRECT_CMD_MAP_DEL,
	KDIRECT_CMD_MAP_GET,

	/* private: */
	__KDIRECT_CMD_MAX,
};

#define KDIRECT_CMD_MAX (__KDIRECT_CMD_MAX - 1)

/* attributes; append only */
enum kdirect_attr {
	KDIRECT_A_UNSPEC,
	KDIRECT_A_PAD,
	KDIRECT_A_NAME,			/* string, 1 .. 31; names are described above */
	KDIRECT_A_ADDR,			/* binary, 4 or 16 bytes, network order */
	KDIRECT_A_PORT,			/* u16, host order, 1 .. 65535 */
	KDIRECT_A_SRC_ADDR,		/* binary, 4 or 16 bytes; same family as ADDR */
	KDIRECT_A_ALLOW,		/* nest, may repeat: PREFIX_ADDR, PREFIX_LEN; at most 64 */
	KDIRECT_A_PREFIX_ADDR,		/* binary, 4 or 16 bytes */
	KDIRECT_A_PREFIX_LEN,		/* u8, 0 .. 32 or 128 */
	KDIRECT_A_ALLOW_CLEAR,		/* flag */
	KDIRECT_A_MAX_CHANNELS,		/* u32, 1 .. 1024, default 128 */
	KDIRECT_A_MAX_QUEUES,		/* u16, 1 .. 64, data queues of one channel, default 16 */
	KDIRECT_A_MAX_DEPTH,		/* u32, 1 .. 1024, default 128 */
	KDIRECT_A_QUEUES,		/* u16, interrupt queues, 0 .. 64, default 1 */
	KDIRECT_A_POLL_QUEUES,		/* u16, 0 .. 64, default 0 */
	KDIRECT_A_DEPTH,		/* u32, 1 .. 1024, default 32 */
	KDIRECT_A_MAX_MESSAGE,		/* u32, bytes, 4096 .. 1048576, default 1048576 */
	KDIRECT_A_EAGER_LIMIT,		/* u32, bytes, 256 .. 65536, default 16384 */
	KDIRECT_A_KEEP_ALIVE_MS,	/* u32, ms, 100 .. 60000, 0 = off, default 5000 */
	KDIRECT_A_CONNECT_TIMEOUT_MS,	/* u32, ms, 100 .. 120000, default 10000 */
	KDIRECT_A_DRAIN_TIMEOUT_MS,	/* u32, ms, 10 .. 60000, default 3000 */
	KDIRECT_A_SOCKET_OWNER,		/* flag */
	KDIRECT_A_LISTENER,		/* string: the listener that accepted this channel */
	KDIRECT_A_STATE,		/* u32, enum kdirect_state */
	KDIRECT_A_OLD_STATE,		/* u32, enum kdirect_state */
	KDIRECT_A_STATE_AGE_MS,		/* u64 */
	KDIRECT_A_ERROR,		/* u32, positive errno of the first error, 0 = none */
	KDIRECT_A_CAUSE,		/* string: the first error in words */
	KDIRECT_A_LOCAL_ADDR,		/* binary, 4 or 16 bytes */
	KDIRECT_A_LOCAL_PORT,		/* u16 */
	KDIRECT_A_OPENS,		/* u32, open files */
	KDIRECT_A_NETNS,		/* u32, inode number of the network namespace */
	KDIRECT_A_CHANNELS,		/* u32, channels of a listener at present */
	KDIRECT_A_ACCEPTED,		/* u64, since the listener was added */
	KDIRECT_A_REJECTED,		/* u64, since the listener was added */

	KDIRECT_A_DEV_INDEX,		/* u32 */
	KDIRECT_A_DEV_NAME,		/* string, as `rdma dev` shows it */
	KDIRECT_A_DEV_NODE_GUID,	/* u64, host order */
	KDIRECT_A_DEV_TRANSPORT,	/* u32, enum kdirect_transport */
	KDIRECT_A_DEV_PORTS,		/* u32 */
	KDIRECT_A_DEV_MAX_QP_WR,	/* u32 */
	KDIRECT_A_DEV_MAX_CQE,		/* u32 */
	KDIRECT_A_DEV_MAX_SGE,		/* u32 */
	KDIRECT_A_DEV_MAX_MR_PAGES,	/* u32, pages of one FRWR MR */
	KDIRECT_A_DEV_MAX_RD_ATOM,	/* u32, RDMA READs in flight per QP */
	KDIRECT_A_DEV_CHANNELS,		/* u32, channels using the device */

	KDIRECT_A_EVENT_TYPE,		/* u32, enum kdirect_event */

	/* all u64 counters since the object was created */
	KDIRECT_A_STAT_TX_MESSAGES,	/* messages handed to the peer */
	KDIRECT_A_STAT_TX_BYTES,
	KDIRECT_A_STAT_RX_MESSAGES,	/* messages that arrived whole */
	KDIRECT_A_STAT_RX_BYTES,
	KDIRECT_A_STAT_TX_RENDEZVOUS,	/* of these: above the eager limit */
	KDIRECT_A_STAT_RX_RENDEZVOUS,
	KDIRECT_A_STAT_TX_PINNED_BYTES,	/* sent from the program's own pages */
	KDIRECT_A_STAT_CREDIT_WAITS,	/* times a writer found no credit */
	KDIRECT_A_STAT_CTRL_TX,		/* control messages */
	KDIRECT_A_STAT_CTRL_RX,
	KDIRECT_A_STAT_KEEP_ALIVES,	/* keep-alive answers received */
	KDIRECT_A_STAT_PINGS,		/* echo requests answered */

	KDIRECT_A_QUEUE,		/* nest, may repeat */
	KDIRECT_A_QUEUE_INDEX,		/* u16, 0 = control queue */
	KDIRECT_A_QUEUE_KIND,		/* u32, enum kdirect_queue_kind */
	KDIRECT_A_QUEUE_QPN,		/* u32 */
	KDIRECT_A_QUEUE_DEPTH,		/* u32 */
	KDIRECT_A_QUEUE_CREDITS,	/* u32, receives known to be posted at the peer */
	KDIRECT_A_QUEUE_CQE_INTERRUPT,	/* u64, completions handled by interrupt */
	KDIRECT_A_QUEUE_CQE_POLLED,	/* u64, completions found by a polling caller */
	KDIRECT_A_QUEUE_POLLS,		/* u64, polls of the CQ by callers */
	KDIRECT_A_QUEUE_TX,		/* u64, data SENDs posted */
	KDIRECT_A_QUEUE_RX,		/* u64, data receives completed */
	KDIRECT_A_QUEUE_MR_TOTAL,	/* u32, MRs in the FRWR pool */
	KDIRECT_A_QUEUE_MR_USED,	/* u32 */

	KDIRECT_A_EXPORT,		/* string: the peer's export */
	KDIRECT_A_CHANNEL,		/* string: the channel of a mapping */
	KDIRECT_A_SIZE,			/* u64, bytes, 1 .. 17179869184 */
	KDIRECT_A_READ_ONLY,		/* flag */
	KDIRECT_A_INSTANCE,		/* u64, names this export, and no later one of its name */
	KDIRECT_A_MAPS,			/* u32, mappings of an export at present */
	KDIRECT_A_DELETING,		/* flag; it is being taken back from the peers */
	KDIRECT_A_MAP_STATE,		/* u32, enum kdirect_map_state */
	KDIRECT_A_OLD_MAP_STATE,	/* u32, enum kdirect_map_state */
	KDIRECT_A_KEYS,			/* u32, keys of a mapping */
	KDIRECT_A_KEY_BYTES,		/* u32, bytes that one of them covers */

	/* u64 counters of mappings' I/O, by channel and in requests on the wire */
	KDIRECT_A_STAT_MAP_READS,
	KDIRECT_A_STAT_MAP_READ_BYTES,
	KDIRECT_A_STAT_MAP_WRITES,
	KDIRECT_A_STAT_MAP_WRITE_BYTES,
	KDIRECT_A_STAT_MAP_PINNED_BYTES, /* of both: to and from the program's own pages */
	KDIRECT_A_STAT_MAP_WAITS,	/* times a caller found no free slot */
	KDIRECT_A_STAT_MAP_ATOMICS,
	KDIRECT_A_STAT_DESCS,		/* of all of these: requests of descriptors */
	KDIRECT_A_STAT_DESC_POSTS,	/* doorbells rung for them */
	KDIRECT_A_STAT_FIXED_BUFFERS,	/* there are now */
	KDIRECT_A_STAT_FIXED_BYTES,	/* of these */

	KDIRECT_A_POLL_MODE,		/* u32, enum kdirect_poll_mode, default busy */
	KDIRECT_A_POLL_CPU_PERCENT,	/* u32, 1 .. 100, default 50 */
	KDIRECT_A_QUEUE_POLL_CPU_NS,	/* u64, CPU time that callers have polled for */
	KDIRECT_A_QUEUE_POLL_NAPS,	/* u64, times one slept before polling (hybrid) */
	KDIRECT_A_QUEUE_POLL_SLEEPS,	/* u64, times one went to sleep instead (adaptive) */

	/* Interrupt moderation: an interrupt after so many completions or so long after the
	 * first, whichever comes first; both 0: the device's own way, which is the default.
	 */
	KDIRECT_A_CQ_COUNT,		/* u32, 0 .. 65535 */
	KDIRECT_A_CQ_PERIOD_US,		/* u32, 0 .. 65535 */

	KDIRECT_A_MODE,			/* u32, enum kdirect_mode, default session */
	KDIRECT_A_PRIVATE_DATA,		/* binary, ours: at most 56 bytes; of listeners 196 */
	KDIRECT_A_HOLD,			/* flag: the program connects or accepts */
	KDIRECT_A_RETRY_COUNT,		/* u32, 0 .. 7, default 6; for rxe 7 is "for ever" */
	KDIRECT_A_RNR_RETRY_COUNT,	/* u32, 0 .. 7, of the peer; default 7: for ever */
	KDIRECT_A_INITIATOR_DEPTH,	/* u32, 0 .. 255, READs of ours in flight, default 16 */
	KDIRECT_A_RESPONDER_RESOURCES,	/* u32, 0 .. 255, READs of the peer, default 16 */
	KDIRECT_A_HELD,			/* flag: it waits for its program */
	KDIRECT_A_PEER_DATA,		/* binary, the peer's private data, up to 256 bytes */

	/* Recovery of sessions */
	KDIRECT_A_LOSS_TIMEOUT_MS,	/* u32, ms: 0 = off, ~0 = for ever, 100 to 86400000 */
	KDIRECT_A_FAST_IO_FAIL_MS,	/* u32, ms, 100 .. 86400000, 0 = off, default 0 */
	KDIRECT_A_RECONNECT_DELAY_MS,	/* u32, ms, 100 .. 600000, default 1000 */
	KDIRECT_A_RECONNECT_MAX_DELAY_MS, /* u32, ms, 100 .. 600000, default 10000 */
	KDIRECT_A_LAST_CAUSE,		/* string: of the last outage that is over */
	KDIRECT_A_ATTEMPT_CAUSE,	/* string: why the last attempt to connect again failed */
	KDIRECT_A_STAT_OUTAGES,		/* u64, since the channel was created, as these */
	KDIRECT_A_STAT_OUTAGE_MS,	/* how long those took that are over */
	KDIRECT_A_STAT_ATTEMPTS,	/* to connect again */
	KDIRECT_A_STAT_REPLAYED,	/* messages that were sent again */
	KDIRECT_A_STAT_IO_REPLAYED,	/* READs and WRITEs of mappings that were posted again */

	KDIRECT_A_KEEP_ALIVE_MISSES,	/* u32, 1 .. 100, without an answer, default 3 */
	KDIRECT_A_REQUEST_TIMEOUT_MS,	/* u32, ms, 1000 .. 600000, default 15000 */

	/* private: */
	__KDIRECT_A_MAX,
};

#define KDIRECT_A_MAX (__KDIRECT_A_MAX - 1)

/**
 * enum kdirect_state - states of a channel
 * @KDIRECT_STATE_NEW:		created, nothing begun
 * @KDIRECT_STATE_CONNECTING:	addresses, queues and the handshake
 * @KDIRECT_STATE_LIVE:		messages flow
 * @KDIRECT_STATE_RECOVERING:	the connection failed; its queues are torn down, and unless that
 *				is the end, the peers connect again
 * @KDIRECT_STATE_DELETING:	removal was asked for; draining
 * @KDIRECT_STATE_DEAD:		no RDMA resource is left; open files see the end
 */
enum kdirect_state {
	KDIRECT_STATE_NEW,
	KDIRECT_STATE_CONNECTING,
	KDIRECT_STATE_LIVE,
	KDIRECT_STATE_RECOVERING,
	KDIRECT_STATE_DELETING,
	KDIRECT_STATE_DEAD,
};

enum kdirect_transport {
	KDIRECT_TRANSPORT_IB,
	KDIRECT_TRANSPORT_ROCE,
	KDIRECT_TRANSPORT_IWARP,
};

enum kdirect_queue_kind {
	KDIRECT_QUEUE_CONTROL,
	KDIRECT_QUEUE_INTERRUPT,
	KDIRECT_QUEUE_POLL,
};

/**
 * enum kdirect_poll_mode - what those who poll a channel's poll queues do
 * @KDIRECT_POLL_BUSY:	poll until the completion is there
 * @KDIRECT_POLL_HYBRID: sleep for half of the time that such waits have taken lately, if
 *			that is worth it, then poll
 * @KDIRECT_POLL_ADAPTIVE: poll as long as such waits are short, for twice as long as they
 *			have taken lately, and within POLL_CPU_PERCENT of one CPU for each
 *			queue (10 ms of that may be saved up); then sleep until an event
 *			comes
 *
 * "Such": of messages, pings and descriptors, or I/O of mappings of like size.
 */
enum kdirect_poll_mode {
	KDIRECT_POLL_BUSY,
	KDIRECT_POLL_HYBRID,
	KDIRECT_POLL_ADAPTIVE,
};

/**
 * enum kdirect_mode - what a channel is
 * @KDIRECT_MODE_SESSION:	kdirect at both ends: messages, exports, mappings
 * @KDIRECT_MODE_RAW:		one QP towards any peer of the RDMA connection manager
 */
enum kdirect_mode {
	KDIRECT_MODE_SESSION,
	KDIRECT_MODE_RAW,
};

enum kdirect_event {
	KDIRECT_EVENT_DEVICE_ADDED,
	KDIRECT_EVENT_DEVICE_REMOVED,
	KDIRECT_EVENT_LISTENER_ADDED,
	KDIRECT_EVENT_LISTENER_REMOVED,
	KDIRECT_EVENT_CHANNEL_ADDED,
	KDIRECT_EVENT_CHANNEL_STATE,
	KDIRECT_EVENT_CHANNEL_REMOVED,
	KDIRECT_EVENT_EXPORT_ADDED,
	KDIRECT_EVENT_EXPORT_REMOVED,
	KDIRECT_EVENT_MAP_ADDED,
	KDIRECT_EVENT_MAP_STATE,
	KDIRECT_EVENT_MAP_REMOVED,
};

/**
 * enum kdirect_map_state - states of a mapping
 * @KDIRECT_MAP_ASKING:		the peer was asked for the export and its keys
 * @KDIRECT_MAP_LIVE:		can be read and written
 * @KDIRECT_MAP_LEAVING:	no I/O begins any more; what is under way ends, and the peer is told
 * @KDIRECT_MAP_DEAD:		nothing is left of it; open files see an error
 */
enum kdirect_map_state {
	KDIRECT_MAP_ASKING,
	KDIRECT_MAP_LIVE,
	KDIRECT_MAP_LEAVING,
	KDIRECT_MAP_DEAD,
};

#endif /* _UAPI_KDIRECT_NETLINK_H */
