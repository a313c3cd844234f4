// SPDX-License-Identifier: GPL-2.0-only
// A queue: one QP with its CQ, its send and receive slots, and the large
// messages that it carries. Queue 0 of a channel is the control queue.
#pragma once

#include "credit.hh"
#include "limits.hh"
#include "list.hh"
#include "os.hh"
#include "poll.hh"
#include "wire.hh"

namespace kd
{

// How far the connection of a queue has come. Events of the connection manager
// move it on in their own context; Channel::run() acts on it.
enum class Step : uint32_t {
	Idle,
	Resolving,  // initiator: address asked for
	Resolved,   // initiator: device known
	Routing,    // initiator: route asked for
	Routed,     // initiator: route known
	Prepared,   // raw: connects or accepts next
	Connecting, // initiator: request sent
	Connected,  // initiator: reply accepted
	Requested,  // target: request arrived
	Accepted    // target: reply sent
};

// A receive, and the message in it until that is read.
struct RxSlot {
	kd_cqe cqe;
	kd_dma buf;
	Queue *queue;
	bool held;        // it has a message, and is not to be posted; Queue::tx_lock
	bool ready;       // the whole message is here
	bool wants_fetch; // it is offered, and nobody fetches it yet
	uint32_t length;
	uint32_t rkey;
	uint64_t addr;
	kd_pages *pages; // a fetched message; else it is in buf
};

struct OfferSlot;

// A message stays in its slot until the peer has let go of it: a connection may fail
// meanwhile, and it is sent once more over the next.
struct TxSlot {
	enum class Use : uint8_t { Message, Ping, Pong, Control };
	kd_cqe cqe;
	kd_dma buf;
	Queue *queue;
	Use use;
	bool signalled;
	bool claimed; // a writer is about to post it
	bool posted;  // the device has it
	bool kept;    // in Queue::kept
	uint32_t length;
	uint64_t seq;
	OfferSlot *offer;  // of a large one
	Link<TxSlot> link; // of the free or the posted list
	Link<TxSlot> kept_link;
};

struct Request;

// A writer that sleeps until its pages are its own again, on its stack; or a SEND.
struct OfferWait {
	std::atomic<bool> finished{false}; // the slot let go of it
	bool delivered = false;            // the peer has the message
	Request *request = nullptr;        // of a SEND: to be completed
};

// A large message that waits for the peer to fetch it.
struct OfferSlot {
	enum class Phase : uint8_t { Free, Claimed, Posted, Invalidating };
	kd_cqe reg_cqe;
	kd_cqe inv_cqe;
	Queue *queue;
	kd_mr *mr;
	kd_pages *pages;
	OfferWait *waiter;
	uint64_t seq;
	Phase phase;
	bool mapped; // the pages, by `mr`
};

// A large message that is being fetched, or whose sender has not been told.
struct FetchSlot {
	kd_cqe cqe;
	kd_read read;
	Queue *queue;
	RxSlot *rx;
	kd_pages *pages;
	uint64_t seq;
	std::atomic<uint64_t> posted_ns; // 0 = not posted
	Link<FetchSlot> link;            // of the queue's free list or the channel's done list
};

using FetchList = Fifo<FetchSlot, &FetchSlot::link>;

// Somebody waits for reads or writes of a mapping, all on one queue. On his stack.
struct IoCall {
	std::atomic<uint32_t> left{0};   // written under tx_lock
	kd_pages *pages = nullptr;       // tx_lock: which a READ was to keep
	uint64_t failed_at = UINT64_MAX; // tx_lock: position of the first that failed
	int err = 0;                     // tx_lock: and why
	WaitQueue *waitq = nullptr;      // tx_lock: of one of the slots
};

// One RDMA READ, WRITE or atomic operation of a mapping: through its buffer, of pages, or
// of a fixed buffer.
struct IoSlot {
	enum class Phase : uint8_t {
		Free,
		Claimed,
		Posted,
		Held, // to be posted once the mapping can be used (again)
		Done, // copies: to be looked at by whoever called
	};
	kd_cqe cqe;
	kd_dma buf; // copies
	kd_read rw; // large
	Queue *queue;
	Link<IoSlot> link;
	WaitQueue waitq;
	bool large;
	bool keeps; // whoever called gets the pages
	// tx_lock while posted:
	Phase phase;
	bool write;
	bool atomic; // of a descriptor; else false
	bool swap;   // atomic: compare and swap
	bool ran;    // it was posted, and may have been executed
	bool blamed; // it was what a connection failed with
	Mapping *mapping;
	kd_pages *pages;
	IoCall *call;     // nullptr: nobody waits (any more)
	kd_iocb *iocb;    // or this is to be completed
	Request *request; // or this is a part of a descriptor's; else nullptr
	kd_fixed *fixed;  // whose memory it is, from `offset`; else nullptr
	uint64_t offset;
	uint64_t operand, compare; // atomic
	uint64_t pos;
	uint32_t length;
	IoSlot *earlier; // ends with this one
	uint16_t status; // Held: of the completion that it had

	// What is to be posted, with the mapping's present key.
	kd_io io() const;
};

// Over iWARP: what follows a WRITE, and tells that it was placed.
kd_io probe_of(const kd_io &last, kd_cqe *cqe);

using IoList = Fifo<IoSlot, &IoSlot::link>;

// Slots of SENDs. A send completion retires every SEND posted before it, so
// most SENDs ask for none. Guarded by the lock of whoever posts.
struct SendRing {
	Fifo<TxSlot, &TxSlot::link> free;
	uint32_t nr_free = 0;     // not kept for the control queue
	uint32_t unsignalled = 0; // since the last that asked for a completion
	uint32_t awaited = 0;     // completions asked for
	uint64_t since_ns = 0;    // when the first of them was asked for

	// A SEND of `slot` is about to be posted.
	void post(TxSlot *slot, bool signalled)
	{
		posted.push_back(slot);
		slot->posted = true;
		slot->signalled = signalled;
		unsignalled = signalled ? 0 : unsignalled + 1;
		if (signalled && awaited++ == 0)
			since_ns = kd_now_ns();
	}
	// The oldest slot; call until it is the one that completed, or nullptr.
	TxSlot *retire()
	{
		TxSlot *slot = posted.pop();
		if (!slot)
			return nullptr;
		slot->posted = false;
		awaited -= slot->signalled;
		return slot;
	}

private:
	Fifo<TxSlot, &TxSlot::link> posted;
};

// One ping and one pong per queue and direction travel outside the credits, in
// receives of their own, so that a ping always gets through.
struct PingWait { // on the caller's stack
	bool answered = false;
	bool differs = false;
	bool lost = false; // with its connection
	uint64_t rtt_ns = 0;
};
struct PingState {
	TxSlot *slot = nullptr;
	bool sending = false; // not yet retired
	bool waiting = false; // for the pong
	uint64_t number = 0;
	uint32_t length = 0;
	uint64_t start_ns = 0;
	PingWait *waiter = nullptr; // nullptr: nobody waits any more
};
struct PongState {
	TxSlot *slot = nullptr;
	bool sending = false;
	RxSlot *next = nullptr; // a ping that waits for `slot`
};

} // namespace kd

struct kd_queue {
	kd_queue(kd::Channel &owner, uint32_t number, uint32_t queue_kind)
		: channel(owner), index(number), kind(queue_kind)
	{
	}

	// --- set-up and teardown: queue.cc; all from Channel::run() -----------------
	kd::Status create_resources(kd::Sleepable s, const kd::limits::Terms &terms);
	kd::Status make_slots(kd::Sleepable s, uint32_t receives_wanted,
			      const kd::limits::Terms &terms);
	kd::Status map_buffer(kd::Sleepable s, kd_dma *buf, uint32_t size, kd_dma_dir dir);
	void open();                // may post from now on
	void seal();                // posts nothing any more
	void stop(kd::Sleepable s); // everything posted is flushed
	// Everything posted has completed, or handlers ignore what still does.
	void drain(kd::Sleepable s, uint64_t timeout_ns);
	// What is under way stays, and messages that wait to be read.
	void destroy_resources(kd::Sleepable s);
	void end_requests(kd::Sleepable s); // what was under way fails
	void destroy_slots(kd::Sleepable s);

	// --- recovery: replay.cc ------------------------------------------------------------
	void forget_connection();
	kd::Status post_receives(); // all but those that hold a message
	void say_hello();
	// Sends again what the peer has not, and from now on whatever comes.
	void carry_on(kd::Sleepable s);
	kd::Status map_offers(kd::Sleepable s);
	// send.cc; tx_lock
	kd::Status transmit(kd::TxSlot *slot);
	bool let_go_of_one();

	// --- receiving: receive.cc ----------------------------------------------------
	void received(kd::RxSlot *slot, const kd_wc &wc);
	// Posts a slot's receive again; the peer gets a credit for it if `credit`.
	void repost(kd::RxSlot *slot, bool credit);
	void hello_received(kd::RxSlot *slot, const kd::wire::DataInfo &info);

	// A WR whose completion has been awaited for so long: its name, or nullptr.
	const char *stalled(uint64_t now_ns, uint64_t limit_ns);

	// --- pings: ping.cc -----------------------------------------------------------
	void answer_ping(kd::RxSlot *slot);
	void pong_arrived(kd::RxSlot *slot, const kd::wire::DataInfo &info);
	bool try_ping(uint32_t len, kd::PingWait &waiter, kd::Status &st);

	// --- mappings: map_slots.cc; of teardown: release_io() and end_io() ------------------
	kd::Status make_io_slots(kd::Sleepable s);
	kd::IoSlot *claim_io(const kd::Mapping &mapping, bool large);
	bool has_large_io(const kd::Mapping &mapping); // a claim would succeed now
	// Waits for one; nullptr: `st` says why there is none.
	kd::IoSlot *await_io(kd::Sleepable s, const kd::Mapping &mapping, bool large,
			     kd::Waiting how, kd::Status &st);
	void unclaim_io(kd::IoSlot *slot);
	void io_done(kd::IoSlot *slot, const kd_wc &wc);
	kd::IoSlot *finish_io(kd::IoSlot *slot, int err, uint16_t status);
	kd::IoSlot *hold(kd::IoSlot *slot, uint16_t status);
	int post_alone(const kd::IoSlot &slot, const kd_io &io, kd_chain *chain);
	void release_io(); // what the QP holds; it is drained
	void hold_io();    // and it is gone
	// Those that are held, and that `match` accepts, fail.
	void end_io(bool (*match)(const kd::IoSlot &slot, const kd::Mapping *mapping),
		    const kd::Mapping *mapping, int err);
	kd::Status repost_io(kd::Sleepable s, const kd::Mapping &mapping, kd_chain *chain);
	template <class Visit>
	void each_io(const Visit &visit)
	{
		for (uint32_t i = 0; i < nr_io_large; i++)
			visit(io_large[i]);
		for (uint32_t i = 0; i < nr_io_copies; i++)
			visit(io_copies[i]);
	}

	// --- polling: poll.cc ---------------------------------------------------------
	// Handles completions that are there; returns how many. One caller at a time;
	// `again`: who comes back soon, so that no event is needed.
	uint32_t poll(bool again);
	// The next completion brings an event; handles those that are there already.
	void arm();
	void service();

	void count_interrupt()
	{
		if (kind != queue_poll)
			cqe_interrupt.add();
	}
	uint32_t receive_size() const;

	static constexpr uint32_t queue_poll = 2; // KDIRECT_QUEUE_POLL

	kd::Channel &channel;
	const uint32_t index;
	const uint32_t kind; // enum kdirect_queue_kind
	kd_cm *cm = nullptr;
	std::atomic<kd::Step> step{kd::Step::Idle};
	std::atomic<bool> hello{false}; // the peer's first message came
	uint64_t peer_received = 0;     // it said so in there, as the next
	uint32_t peer_holds = 0;
	uint32_t holds = 0; // receives of this connection that held a message at its beginning
	uint8_t reads_in = 0, reads_out = 0;

	kd_cq *cq = nullptr;
	kd_qp *qp = nullptr;
	std::atomic<uint32_t> qpn{0};
	kd::RxSlot *rx_slots = nullptr;
	kd::TxSlot *tx_slots = nullptr;
	kd::OfferSlot *offer_slots = nullptr;
	kd::FetchSlot *fetch_slots = nullptr;
	uint32_t nr_rx = 0, nr_tx = 0;
	// When a SEND, READ or LOCAL_INV last completed; by whoever handles the CQ
	std::atomic<uint64_t> progress_ns{0};
	uint32_t nr_large = 0;              // of offer and of fetch slots in use
	uint32_t nr_mrs = 0;                // of offer slots that have one
	std::atomic<bool> abandoned{false}; // the QP was reset: completions do not count

	// Sending; the control queue's are guarded by Channel::ctrl_lock instead.
	kd::SpinLock<KD_LOCK_TX> tx_lock;
	kd::SendRing sends;
	kd::CreditWindow window;
	bool signal_all = false; // iWARP: a buffer is ours again only with its own completion
	std::atomic<bool> sealed{true}; // written under ctrl_lock and tx_lock, read under either
	bool carries = false;           // messages are posted; else they are kept for later
	bool fresh = true;              // this connection has not carried any yet
	bool receives = false;          // as soon as a receive is free it is posted
	kd::Fifo<kd::TxSlot, &kd::TxSlot::kept_link> kept; // by number
	uint32_t nr_kept = 0, nr_claimed = 0;
	uint32_t early_credits = 0; // told before it carries
	uint64_t let_go = 0;        // the peer has let go of all messages of this queue below
	uint32_t nr_free_offers = 0;
	uint32_t claimed_offers = 0; // a writer is about to post them
	kd::PingState ping;
	kd::PongState pong;
	// Receiving: granted under tx_lock
	kd::CreditGrant grant;

	kd::FetchList free_fetches; // Channel::rx_lock

	// Reads and writes of mappings. The arrays stay once they are there.
	kd::IoSlot *io_copies = nullptr, *io_large = nullptr;
	uint32_t nr_io_copies = 0, nr_io_large = 0; // tx_lock, as all of these
	kd::IoList free_io_copies, free_io_large;
	// One more free slot for copies, which takes no lock.
	std::atomic<kd::IoSlot *> spare_io{nullptr};
	uint32_t claimed_io = 0; // large ones: about to be posted
	uint32_t io_posted = 0;
	uint64_t io_since_ns = 0; // when the first of them was posted
	kd::WaitQueue io_waitq;   // free slots

	kd::SpinLock<KD_LOCK_POLL> poll_lock;
	bool polled = false;   // since service() last looked; poll_lock
	bool retiring = false; // service() ends; poll_lock
	kd_work service_work;
	kd::PollPolicy poll_policy;
	std::atomic<uint64_t> poll_cpu_ns{0}; // of its callers
	std::atomic<uint64_t> naps{0};        // of hybrid ones
	std::atomic<uint64_t> poll_sleeps{0}; // of adaptive ones

	kd::Tally cqe_interrupt, cqe_polled, polls, rx; // by whoever handles the CQ
	kd::Tally rx_messages, rx_bytes, rx_rendezvous;
	kd::Tally tx, tx_bytes, tx_rendezvous, tx_pinned_bytes;           // tx_lock
	kd::Tally credit_waits, pings;                                    // tx_lock
	kd::Tally map_reads, map_read_bytes, map_writes, map_write_bytes; // tx_lock
	kd::Tally map_pinned_bytes, map_waits;                            // tx_lock
	kd::Tally map_atomics, descs, desc_posts;                         // tx_lock
};
