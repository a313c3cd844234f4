/* SPDX-License-Identifier: GPL-2.0-only */
/* What the fabric is made of. The functions of os.h work on these, and so do raw peers. */
#pragma once
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "core_api.h"
#include "fiber.h"
#include "sched.h"
#include "zeroes.h"

namespace sim
{

class World;
struct Qp;
struct Cm;

using Bytes = std::string;

/* enum ib_wc_status */
enum WcStatus : uint32_t {
	WC_SUCCESS = 0,
	WC_LOC_LEN_ERR = 1,
	WC_LOC_QP_OP_ERR = 2,
	WC_LOC_PROT_ERR = 4,
	WC_WR_FLUSH_ERR = 5,
	WC_REM_INV_REQ_ERR = 9,
	WC_REM_ACCESS_ERR = 10,
	WC_RETRY_EXC_ERR = 12,
	WC_RNR_RETRY_EXC_ERR = 13,
};
const char *wc_status_name(uint32_t status);

constexpr uint32_t page_size = 4096;

struct Net {
	uint64_t id = 0;
	uint32_t inode = 0;
	bool init = false;
	unsigned int refs = 0;
};

/* A character device node. */
struct DevNode {
	uint64_t id = 0;
	Node *node = nullptr;
	kd_channel *channel = nullptr;
	kd_mapping *mapping = nullptr; /* or a mapping's */
	bool raw = false;              /* the channel is */
	std::string name;
	unsigned int opening = 0;
	bool going = false;
};

struct EventRecord {
	uint64_t time;
	uint32_t type;
	std::string name, listener, device;
	uint32_t state, old_state;
	int err;
	std::string text;
};

/* One instance of the module: one machine. */
struct Node {
	uint64_t id = 0;
	std::string name;
	const CoreApi *core = nullptr;
	Net *net = nullptr;
	std::vector<EventRecord> events;
	std::map<std::string, uint32_t> last_state; /* as published, by channel */
	std::map<std::string, uint64_t> state_since;
	uint32_t phase = 6; /* the last state published; 6 = none */
	uint64_t memlock_limit = UINT64_MAX;
	uint64_t memlock = 0;
	uint32_t max_nodes = 1U << 20;
	bool started = false;
};

struct DeviceOptions {
	uint32_t transport = 1; /* KDIRECT_TRANSPORT_ROCE */
	uint32_t max_qp_wr = 16384;
	uint32_t max_cqe = 32767;
	uint32_t max_sge = 32;
	uint32_t max_read_sge = 32;
	uint32_t max_mr_pages = 512;
	uint32_t max_rd_atom = 128;
	uint32_t max_length = 1U << 31;
	bool atomics = true;
	bool moderation = true;
	bool raw = false; /* no core behind it: for raw peers */
};

struct Device {
	uint64_t id = 0;
	Node *node = nullptr; /* nullptr: raw */
	kd_device *core = nullptr;
	struct kd_device_attr attr {
	};
	std::vector<kd_addr> addrs;
	bool link_up = true;
	bool stuck = false; /* the hardware hangs: nothing completes, not even flushes */
	bool route_fails = false;
	bool removing = false;
	bool iwarp() const;
};

struct CmEventRecord {
	kd_cm_event_type type;
	int status = 0;
	bool no_listener = false;
	Bytes data;
	bool has_data = false;
	uint8_t reads_in = 0;
	uint8_t reads_out = 0;
	Cm *new_cm = nullptr;
};

/* An rdma_cm_id. */
struct Cm {
	enum class State : uint8_t {
		Idle,
		AddrQuery,
		AddrResolved,
		RouteQuery,
		RouteResolved,
		Connecting, /* request sent */
		Requested,  /* request received */
		Accepting,  /* reply sent */
		Established,
		Closed,
		Listening,
	};

	uint64_t id = 0;
	State state = State::Idle;
	Node *node = nullptr;
	Net *net = nullptr;
	Device *dev = nullptr;
	kd_endpoint local{};
	kd_endpoint peer{};
	uint64_t remote = 0; /* the other end's Cm */
	Qp *qp = nullptr;

	kd_queue *queue = nullptr;       /* core: where events go */
	kd_listener *listener = nullptr; /* core: a listening id */
	/* raw: instead of the core; off any fiber */
	std::function<void(CmEventRecord &)> raw;

	std::deque<CmEventRecord> events;
	Fiber *handler = nullptr; /* runs an event now */
	bool scheduled = false;   /* the next event has a date */
	bool announced = true;    /* its CONNECT_REQUEST was handled: events may come */
	uint64_t last_sent = 0;   /* when the last message to the peer arrives: order */
	uint8_t responder_resources = 0, initiator_depth = 0; /* asked for by the peer */
	uint8_t rnr_retry = 7;
	bool no_rtu = false;                /* raw: never confirms */
	std::vector<CmEventRecord> history; /* delivered, but for requests */
	Sched::Timer timer{};
	bool timer_set = false;

	std::string label() const;
};

struct Pd {
	uint64_t id = 0;
	Device *dev = nullptr;
	unsigned int mappings = 0;
};

struct CqEntry {
	uint64_t qp = 0;
	bool send = false;
	bool marker = false; /* of a drain */
	kd_cqe_kind kind = KD_CQE_SEND;
	kd_cqe *cqe = nullptr;
	uint64_t wr = 0;
	uint32_t status = WC_SUCCESS;
	uint32_t byte_len = 0;
	bool invalidated = false;
	uint32_t rkey = 0;
	bool write = false, with_imm = false;
	uint32_t imm = 0;
	Bytes data; /* raw receives */
	uint64_t since = 0;
};

struct Cq {
	uint64_t id = 0;
	Device *dev = nullptr;
	Node *node = nullptr;
	kd_queue *queue = nullptr;
	uint32_t capacity = 0;
	uint32_t count = 0, period_us = 0; /* moderation */
	bool poll = false;
	bool armed = false;
	bool scheduled = false; /* a softirq has a date */
	bool running = false;   /* somebody runs handlers */
	bool event_due = false; /* has a date */
	bool event_running = false;
	bool dying = false;
	unsigned int qps = 0;
	std::deque<CqEntry> entries;
	std::function<void(CqEntry &)> raw;
};

/* Memory that the device may use. */
struct Dma {
	uint64_t addr = 0;
	Pd *pd = nullptr;
	uint8_t *mem = nullptr;
	uint32_t size = 0;
	kd_dma_dir dir = KD_DMA_RECV;
	unsigned int in_use = 0; /* posted, not yet reaped */
	/* iWARP: TCP may send it again until then, and nothing tells when not */
	uint64_t sent_until = 0;
	Bytes arrived; /* what the device wrote and the CPU has not synced */
};

struct Pages {
	uint64_t id = 0;
	Node *node = nullptr;
	std::vector<uint8_t> own;
	uint8_t *user = nullptr; /* pinned */
	uint32_t len = 0;
	uint32_t count = 0; /* pinned for one transfer */
	uint64_t charged = 0;
	unsigned int mapped = 0;
	unsigned int in_use = 0; /* posted without a context, not yet reaped */
	uint8_t *data() { return user ? user : own.data(); }
};

/* A fixed buffer. */
struct Fixed {
	struct Arrived {
		uint64_t offset;
		Bytes bytes;
	};
	uint64_t id = 0;
	Node *node = nullptr;
	uint8_t *user = nullptr;
	uint64_t len = 0;
	uint64_t charged = 0;
	uint64_t range = 0;    /* bytes that are contiguous for the device */
	Device *dev = nullptr; /* mapped for it */
	bool was_mapped = false;
	unsigned int in_use = 0;      /* posted, not yet reaped */
	std::vector<Arrived> arrived; /* what the device wrote and the CPU has not synced */
};

/* Memory of rings. */
struct Shared {
	uint64_t id = 0;
	void *memory = nullptr;
	uint64_t size = 0;
};

/* A kernel thread of a ring. */
struct Thread {
	uint64_t id = 0;
	uint64_t fiber = 0;
	bool stopping = false;
	bool adopted = false; /* has its process's memory */
	bool orphan = false;  /* that process has ended */
};

/* Memory of an export. */
struct Region {
	uint64_t id = 0;
	Node *node = nullptr;
	Zeroes memory;
	unsigned int keys = 0;

	uint8_t *at(uint64_t offset) const
	{
		return reinterpret_cast<uint8_t *>(memory.data()) + offset;
	}
};

struct Mr {
	enum class State : uint8_t { Free, Posted, Valid };

	uint64_t id = 0;
	Pd *pd = nullptr;
	uint32_t max_pages = 0;
	uint32_t rkey = 0;
	uint64_t addr = 0;
	uint32_t len = 0;
	State state = State::Free;
	bool remotely_invalidated = false;
	Pages *pages = nullptr;
	Region *region = nullptr; /* a key over a part of it */
	uint64_t offset = 0;
	Fixed *fixed = nullptr; /* or over a fixed buffer */
	bool readable = true, writable = false, atomics = true;
	bool local = false;      /* of a work request's own memory */
	uint32_t key = 0;        /* local: under which it is valid */
	unsigned int in_use = 0; /* local: by WRs that were not reaped */
	uint8_t *data() const
	{
		return region ? region->at(offset) : fixed ? fixed->user : pages->data();
	}
};

enum class WrKind : uint8_t { Send, Reg, Invalidate, Read, Write, CmpSwap, FetchAdd };

struct SendWr {
	WrKind kind = WrKind::Send;
	uint64_t id = 0;
	kd_cqe *cqe = nullptr;
	kd_cqe_kind cqe_kind = KD_CQE_SEND;
	bool signalled = true;
	bool executed = false;
	bool done = false;
	uint32_t status = WC_SUCCESS;
	Bytes payload;
	uint64_t dma = 0;         /* Dma::addr, 0 = raw */
	bool invalidates = false; /* SEND with invalidate */
	bool with_imm = false;    /* SEND or WRITE with immediate */
	uint32_t imm = 0;
	bool own_pages = false;   /* pages without a context */
	uint32_t rkey = 0;        /* that, or READ and WRITE */
	uint64_t remote_addr = 0; /* READ, WRITE */
	uint32_t len = 0;         /* READ, WRITE */
	Pages *pages = nullptr;   /* READ, WRITE: with a context of their own; else dma */
	Fixed *fixed = nullptr;   /* or a fixed buffer, from offset */
	uint64_t offset = 0, operand = 0, compare = 0;
	Mr *mr = nullptr;
	Mr *local = nullptr; /* its own memory is one MR, under lkey */
	uint32_t lkey = 0;
	bool sink = false; /* and ends with it */
	uint64_t stalled_since = 0;
};

struct RecvWr {
	uint64_t id = 0;
	kd_cqe *cqe = nullptr;
	uint64_t dma = 0;
	uint32_t len = 0;
	kd_cqe_kind kind = KD_CQE_RECV;
	Fixed *fixed = nullptr; /* or this, from offset */
	uint64_t offset = 0;
	Pages *pages = nullptr; /* or these */
	Mr *local = nullptr;    /* as one MR, under lkey */
	uint32_t lkey = 0;
};

/* A WRITE over iWARP that has completed, and is with TCP. */
struct Unplaced {
	uint64_t wr;
	SendWr write;
	Bytes copy; /* of one that asked for a completion; else it is still where it was */
};

/* A WR that the consumer has not seen the end of. */
struct Outstanding {
	uint64_t wr;
	kd_cqe *cqe;
	uint64_t dma;
	bool context; /* of max_reads, and not of max_send */
	Fixed *fixed = nullptr;
	Pages *pages = nullptr; /* without a context */
	Mr *mr = nullptr;       /* local */
};

struct Qp {
	enum class State : uint8_t { Init, Rts, Error, Reset };

	uint64_t id = 0;
	State state = State::Init;
	Device *dev = nullptr;
	Cm *cm = nullptr;
	Pd *pd = nullptr;
	Cq *cq = nullptr;
	bool core = false;     /* false: raw */
	bool plain = false;    /* of a raw channel: nobody promises anything about the peer */
	uint8_t rnr_retry = 7; /* as the peer says; 0: never */
	uint64_t remote = 0;
	bool passive = false;
	bool received = false;
	uint32_t max_send = 0, max_recv = 0, max_reads = 0, max_read_pages = 0;
	uint8_t reads_out = 255; /* what the peer accepts */

	std::deque<SendWr> sq;
	std::deque<RecvWr> rq;
	std::deque<Outstanding> out_send, out_recv;
	std::deque<Unplaced> stream;
	unsigned int reads = 0;
	uint64_t next_wr = 1;
	uint32_t slow = 1;   /* all that it does takes so many times longer */
	bool engine = false; /* its next turn has a date */
	bool draining = false;
	bool drained = false;
	bool flush_held = false; /* in error, and the device hangs */
	unsigned int markers = 0;
	unsigned int markers_to_push = 0;
	uint64_t sends_executed = 0;
	unsigned int fatal_running = 0; /* asynchronous events being delivered */
};

struct ReadContext {
	Qp *qp;
	Pages *pages;
	kd_cqe *cqe;
	uint64_t wr;
	bool done;
	/* kd_rw_prepare() */
	bool write = false;
	uint64_t addr = 0;
	uint32_t rkey = 0;
};

} // namespace sim

/* The caller's memory: segments, one of which may fault from a byte on. */
struct kd_iter {
	struct Segment {
		uint8_t *base;
		std::size_t len;
	};
	std::vector<Segment> segments;
	std::size_t pos = 0;
	std::size_t fault_at = SIZE_MAX; /* byte at which an access faults */
	bool user = true;                /* can be pinned */

	std::size_t total() const;
};
