// SPDX-License-Identifier: GPL-2.0-only
// A channel: one association with a peer. Its life is driven by one work
// function, Channel::run(); everything else only leaves word and kicks it.
#pragma once

#include "export.hh"
#include "fixed.hh"
#include "mapping.hh"
#include "message.hh"
#include "order.hh"
#include "queue.hh"
#include "state.hh"

struct kdirect_ping;

namespace kd
{

// Where a channel was accepted. Copied, since the listener may go first.
struct Acceptance {
	wire::RequestInfo request;
	limits::Terms bounds; // the listener's
	const char *listener;
	uint32_t number; // of the channel
};

struct Raw;

// A send slot and a credit, and for a large message an offer slot.
struct Claim {
	Queue *queue = nullptr;
	TxSlot *slot = nullptr;
	OfferSlot *offer = nullptr;
};

// How far State::Recovering has come.
enum class Outage : uint8_t {
	Down,    // the connection has to be taken down
	Waiting, // for the next attempt, or for the peer's
	Trying,  // to connect
};

// How an operation waits.
struct WaitStyle {
	bool nowait = false;
	bool poll = false;
	uint32_t open_flags = 0;
	Waiting waiting() const { return {poll, open_flags}; }
};

} // namespace kd

struct kd_channel {
	// With all its queues, unconnected; nullptr: no memory.
	static kd_channel *create_initiator(kd::Sleepable s, kd_net *net,
					    const kd_channel_params &params);
	static kd_channel *create_target(kd::Sleepable s, kd_net *net, const kd_endpoint &peer,
					 const kd::Acceptance &acceptance);
	static kd_channel *create_raw_target(kd::Sleepable s, kd_net *net, const kd_endpoint &peer,
					     const kd_listener_params &params, uint32_t number);

	// --- life: life.cc --------------------------------------------------------------
	void get() { refs.get(); }
	void put(kd::Sleepable s);
	void kick();
	void kick_after(uint64_t delay_ns);
	// The first error stays; the connection is torn down. Any context.
	void fail(const kd_error &error);
	void request_delete();

	void take_settings();

	// --- connecting: connect.cc ------------------------------------------------------
	// A connection request for one of our queues; the registry lock is held.
	kd::wire::Verdict adopt(kd::Sleepable s, const kd_cm_event &event,
				const kd::wire::RequestInfo &request);
	// The peer connects anew.
	kd::wire::Verdict adopt_again(kd::Sleepable s, const kd_cm_event &event,
				      const kd::wire::RequestInfo &request);
	void adopt_raw(kd::Sleepable s, const kd_cm_event &event); // the same
	void cm_event(kd::Queue &queue, const kd_cm_event &event);

	// --- control messages: control.cc --------------------------------------------------
	void control_received(const kd::wire::ControlInfo &info);
	void control_sent(kd::TxSlot *slot, const kd_wc &wc);
	void control_raise(uint16_t flags);
	void control_pump();

	// --- sending: send.cc ----------------------------------------------------------------
	kd::Status claim(kd::Sleepable s, kd::WaitStyle style, bool large, kd::Claim &out);
	void unclaim(const kd::Claim &claim);
	void sent(kd::TxSlot *slot, const kd_wc &wc);
	void send_failed(kd::Queue &queue, const kd_wc &wc);
	void credit_received(kd::Queue &queue, uint32_t credits);
	// The slot's buffer holds the message behind the header.
	kd::Status post_eager(const kd::Claim &claim, uint32_t len);
	kd::Status post_offer(const kd::Claim &claim, kd_pages *pages, uint32_t len,
			      kd::OfferWait *waiter);
	kd::Status await_offer(kd::Sleepable s, const kd::Claim &claim, kd::OfferWait &waiter);
	void offer_fetched(uint64_t seq, uint32_t queue_index);
	void release_offer(kd::OfferSlot *offer);
	bool needs_reads() const { return terms.max_message > terms.eager_limit; }
	// The setting, within what was agreed.
	uint32_t copy_limit() const
	{
		// Without RDMA READ nothing can be offered.
		if (!needs_reads())
			return terms.eager_limit;
		uint32_t setting = eager_limit.load(std::memory_order_relaxed);
		return setting < terms.eager_limit ? setting : terms.eager_limit;
	}
	bool may_send() const;
	bool may_keep() const;
	bool send_ended() const;  // and never again
	int send_refusal() const; // why a message cannot be sent, nor wait; 0: it can
	bool ended() const;       // and it does not come back
	// A claim would succeed now.
	bool may_claim(kd::WaitStyle style, bool large);
	// Pages of one offered message: one more for a buffer that begins inside a
	// page, where the device allows it.
	uint32_t max_offer_pages() const
	{
		uint32_t pages =
			(terms.max_message + kd::limits::page_size - 1) / kd::limits::page_size;
		return pages < mr_pages ? pages + 1 : pages;
	}

	// --- receiving: receive.cc, fetch.cc ------------------------------------------------
	kd::RxSlot *readable();
	kd::RxSlot *readable_now();
	void consume(kd::RxSlot *slot);
	void consider_fetching();
	void fetch(kd::Sleepable s);
	void fetched(kd::FetchSlot *slot, const kd_wc &wc);
	// What a reader gets when nothing is left to read: -1 = wait, else 0 or an error.
	int read_end() const;
	bool may_read();
	bool deleted_here() const { return delete_requested && current() > kd::State::Live; }
	void message_arrived(kd::RxSlot *slot, const kd::wire::DataInfo &info);
	void message_complete(); // more has arrived in order
	void answer_bye();

	// --- SENDs and RECVs of descriptors: message.cc --------------------------------------
	void opened(kd::DescFile &file);
	void closed(kd::Sleepable s, kd::DescFile &file);
	// Why a descriptor of an open file of a session cannot begin; 0: it can.
	int refusal() const;
	// SENDs wait, and others go behind them.
	bool sends_wait() const { return tx_waitq.descs.load() != 0; }
	bool try_claim(kd::WaitStyle style, bool large, kd::Claim &out);
	// It ends in Request::part_done(), which may have been called by the return.
	void enqueue(kd::Sleepable s, kd::Message &message);
	// True: it had not begun, and ends with `err`.
	bool cancel(kd::Sleepable s, kd::Message &message, int err);
	// The first message, for a read() (which holds `reader`), or for a RECV that none
	// waits before; nullptr: there is none for it now. Until leave_front() it is its own.
	kd::RxSlot *take_front(bool by_read);
	void leave_front(bool by_read);
	// So many bytes of it were read.
	void read_on(kd::RxSlot *slot, uint32_t n);
	// As much of it as fits; the same, if it was copied already
	void take_message(kd::Message &message, kd::RxSlot *slot);
	void received(kd::Request &request, kd::RxSlot *slot, uint32_t n);
	void woken(unsigned key, bool descs);

	// --- pings: ping.cc -----------------------------------------------------------------
	kd::Status ping(kd::Sleepable s, struct kdirect_ping &p, uint32_t open_flags);

	// --- exports and mappings: map_control.cc; of the target: grant.cc ------------------
	void map_received(const kd::wire::MapInfo &info);
	void keys_failed(const kd_wc &wc);
	bool take_place(kd::Mapping &mapping);
	// Slots for reads and writes of mappings, once.
	kd::Status prepare_io(kd::Sleepable s);
	// Is a work request of the mapping outstanding?
	bool has_io(const kd::Mapping &mapping);
	void end_held(const kd::Mapping &mapping, int err);
	void repost_io(kd::Sleepable s, const kd::Mapping &mapping, bool sole);
	// The queue for reads and writes of mappings by this caller.
	kd::Queue &io_queue(bool polls) const
	{
		bool use_poll = polls || nr_interrupt_queues == 0;
		uint32_t first = use_poll ? first_poll_queue() : first_data_queue();
		uint32_t count = use_poll ? nr_poll_queues : nr_interrupt_queues;
		return *queues[first + (count > 1 ? kd_cpu() % count : 0)];
	}
	// For what completes on one queue; a signal of how.io_mode ends it.
	template <class Done>
	kd::Status wait_io(kd::Sleepable s, kd::Queue &queue, kd::WaitQueue &waitq, kd::Waiting how,
			   const Done &done);

	// --- fixed buffers: fixed.cc --------------------------------------------------------
	kd::Status add_fixed(kd::Sleepable s, kd::FixedBuffer &buffer, bool for_device);
	void drop_fixed(kd::Sleepable s, kd::FixedBuffer &buffer);
	// The device is about to go: none of them can be used any more.
	void lose_fixed(kd::Sleepable s);
	void unmap_fixed(kd::Sleepable s);
	void end_fixed(kd::Sleepable s); // and none is added

	// --- polling: poll.cc ---------------------------------------------------------------
	bool has_poll_queues() const { return nr_poll_queues != 0; }
	uint32_t first_data_queue() const { return raw ? 0 : 1; }
	uint32_t first_poll_queue() const { return first_data_queue() + nr_interrupt_queues; }
	uint32_t poll_once(bool again); // completions found
	void arm_all();
	template <class Done>
	kd::Status wait(kd::Sleepable s, kd::WaitQueue &wq, kd::Waiting how, kd_wait_mode mode,
			uint64_t timeout_ns, const Done &done);
	template <class Done>
	kd::Status wait_event(kd::Sleepable s, kd::WaitQueue &wq, kd_wait_mode mode,
			      uint64_t timeout_ns, const Done &done);
	template <class Look, class Done>
	kd::Status wait_polling(kd::Sleepable s, kd::Queue &queue, kd::WaitQueue &wq,
				const kd::Waiting &how, kd_wait_mode mode, uint64_t timeout_ns,
				const Look &look, const Done &done);

	// Memory that its peer makes this machine set aside.
	uint64_t buffer_bytes() const;

	kd::State current() const { return state.load(std::memory_order_acquire); }

	// --- identity; constant ---------------------------------------------------------
	char name[KD_NAME_MAX + 1];
	char listener[KD_NAME_MAX + 1]; // "" for an initiator
	kd_net *net = nullptr;
	bool initiator = false;
	uint32_t number = 0; // of an accepted one: its name is LISTENER.NUMBER
	uint64_t id = 0;     // order of creation
	uint64_t nonce = 0;  // chosen by the initiator
	uint64_t token = 0;  // chosen by the target
	kd_channel_params params{};
	kd_endpoint local{};
	kd::Raw *raw = nullptr; // nullptr: it is a session

	// --- life ---------------------------------------------------------------------------
	kd::Refs refs;
	kd_work run_work;
	kd::Link<kd_channel> link;    // registry
	bool registered = false;      // registry lock
	kd::Device *device = nullptr; // registry lock, and run()
	char device_name[64] = {};
	kd_pd *pd = nullptr;
	std::atomic<uint32_t> mr_pages{0}; // of one MR of the device
	std::atomic<uint32_t> io_sges{0};  // entries of one READ or WRITE
	// A READ needs a key, and a WRITE a READ behind it.
	std::atomic<bool> iwarp{false};
	std::atomic<bool> atomics{false}; // the device has them
	kd_node *node = nullptr;
	std::atomic<bool> ever_live{false};
	bool hello_sent = false;
	bool draining = false;
	std::atomic<bool> started{false}; // initiator: the target said Start
	std::atomic<bool> delete_requested{false};
	std::atomic<bool> broken{false};    // error is set and must be acted on
	std::atomic<bool> peer_gone{false}; // disconnected in order
	std::atomic<bool> sign_of_life{false};
	uint64_t deadline_ns = 0;         // of connecting, or of draining
	uint64_t deadline_of_peer_ns = 0; // after its goodbye; 0 = none was said
	uint64_t next_keep_alive_ns = 0;
	uint32_t missed_keep_alives = 0;
	std::atomic<uint32_t> opens{0};

	mutable kd::SpinLock<KD_LOCK_STATE> state_lock;
	std::atomic<kd::State> state{kd::State::New}; // written under state_lock by run()
	uint64_t state_since_ns = 0;                  // state_lock
	kd_error error{};                             // state_lock
	// Settings that change while the channel lives.
	std::atomic<uint32_t> eager_limit{0};
	std::atomic<uint32_t> keep_alive_ms{0}, keep_alive_misses{0};
	std::atomic<uint32_t> request_timeout_ms{0}; // looked at with each keep-alive
	std::atomic<uint32_t> drain_timeout_ms{0};
	std::atomic<uint32_t> loss_timeout_ms{0}; // limits::never: for ever; 0: no recovery
	std::atomic<uint32_t> fast_io_fail_ms{0}; // limits::never: not before the loss timeout
	std::atomic<uint32_t> reconnect_delay_ms{0}, reconnect_max_delay_ms{0};
	std::atomic<kd::PollMode> poll_mode{kd::PollMode::Busy};
	std::atomic<uint32_t> poll_cpu_percent{0}; // of PollMode::Adaptive, for each queue
	std::atomic<uint32_t> cq_count{0}, cq_period_us{0};
	std::atomic<bool> moderation_set{false}; // and not yet told to the device

	// --- recovery: recover.cc ---------------------------------------------------------
	// What is Recovering comes back, if it can.
	std::atomic<bool> resumes{false};
	std::atomic<bool> fails_fast{false}; // fast-io-fail has passed
	std::atomic<bool> forgotten{false};  // the peer does not know the session any more
	std::atomic<bool> hopeless{false};   // the error is one that no connection mends
	std::atomic<bool> trying{false};     // connections of this attempt are adopted
	std::atomic<kd::Outage> outage{kd::Outage::Down};                      // written by run()
	uint64_t outage_since_ns = 0, next_attempt_ns = 0, attempt_end_ns = 0; // run()
	uint32_t tries = 0;               // of this outage; run()
	std::atomic<uint32_t> attempt{0}; // connections ever; of a target: the peer's number
	uint64_t arrived_before = 0;      // run(): messages, before this connection
	// Target: the peer connects anew; registry lock
	kd_cm *pending_cm = nullptr;
	uint8_t pending_reads_in = 0, pending_reads_out = 0;
	kd_error attempt_error{};                         // state_lock
	kd_error last_error{};                            // state_lock: of the outage before
	kd::Tally outages, outage_ms, attempts, replayed; // run()
	std::atomic<uint64_t> io_replayed{0};

	// What was agreed. Written under state_lock while the channel connects; run(), and
	// everybody once it has been live, may read it without, others use agreed().
	kd::limits::Terms terms{};
	kd::limits::Terms agreed() const
	{
		kd::SpinGuard guard(state_lock);
		return terms;
	}
	kd::Queue *queues[KD_MAX_QUEUES] = {};
	uint32_t nr_queues = 0; // control queue included; a raw channel has one, which is none
	uint32_t nr_interrupt_queues = 0;
	uint32_t nr_poll_queues = 0;

	// --- control ----------------------------------------------------------------------------
	kd::SpinLock<KD_LOCK_CTRL> ctrl_lock;
	uint16_t ctrl_flags = 0;             // to be sent
	uint64_t bye_last = 0;               // our Bye's count
	kd::CreditWindow ctrl_window;        // the control queue's
	kd::FetchList done;                  // fetched, sender not told
	std::atomic<bool> done_waits{false}; // there are some; written under ctrl_lock
	std::atomic<uint64_t> owing{0};      // bit per data queue: owes the peer credits
	std::atomic<bool> bye_said{false};
	std::atomic<bool> bye_answered{false};
	kd::Tally ctrl_tx, ctrl_rx, keep_alives;

	// --- exports and mappings -----------------------------------------------------------
	kd::Grant *grants = nullptr;                // of a target; each says what guards it
	kd::Mapping *maps[kd::wire::max_maps] = {}; // of an initiator; ctrl_lock
	uint64_t map_look = 0;              // ctrl_lock: bit per id: may have to say something
	bool map_turn = false;              // ctrl_lock
	kd::TxSlot *keys_sending = nullptr; // ctrl_lock: REG_MRs are before it
	kd_cqe key_cqe;
	uint64_t map_deadline_ns = 0; // run()
	bool io_ready = false;        // run()
	kd::Mutex<KD_LOCK_FIXED> fixed_lock;
	kd::FixedBag fixed;               // fixed_lock
	bool fixed_ended = false;         // fixed_lock: none is mapped any more
	kd::Tally nr_fixed, fixed_length; // fixed_lock

	// --- sending --------------------------------------------------------------------------
	std::atomic<uint64_t> next_seq{0};
	kd::MessageWaitQueue tx_waitq{*this}; // credits, slots, fetched offers
	kd::WaitQueue ping_waitq;             // pongs
	kd::SpinLock<KD_LOCK_MESSAGE> message_lock;
	kd::Messages sends;      // message_lock: descriptors that wait, as these
	bool sending = false;    // somebody is at it
	bool send_again = false; // and has to look again
	kd::DescFiles files;     // message_lock: open files of its node
	kd_work message_work;

	// --- receiving ------------------------------------------------------------------------
	mutable kd::SpinLock<KD_LOCK_RX> rx_lock;
	kd::Order<kd::RxSlot> order;   // rx_lock
	uint64_t fetch_cursor = 0;     // rx_lock
	uint64_t fetched_bytes = 0;    // rx_lock: fetched or being fetched, not read
	bool peer_bye = false;         // rx_lock
	uint64_t peer_last = 0;        // rx_lock
	bool bye_reply_raised = false; // rx_lock
	std::atomic<bool> peer_closing{false};
	std::atomic<bool> end_of_stream{false}; // closed in order: reads end with 0
	kd_work fetch_work;
	kd::MessageWaitQueue rx_waitq{*this};
	kd::Mutex<KD_LOCK_READER> reader;
	kd::Messages recvs;       // rx_lock: descriptors that wait
	bool reading = false;     // rx_lock: a read() has the first message
	bool serving = false;     // rx_lock: a RECV has it
	uint32_t read_offset = 0; // whose the first message is: into it

	std::atomic<uint32_t> sleepers{0};     // on poll queues' completions
	std::atomic<uint32_t> ring_threads{0}; // of rings of its mappings

private:
	static void run_work_fn(kd_work *work);
	static void fetch_work_fn(kd_work *work);
	friend struct kd::Raw;
	static kd_channel *make(kd::Sleepable s, kd_net *net, uint32_t interrupt_queues,
				uint32_t poll_queues, const kd_raw_params *raw);
	void accepted_by(const char *listener, uint32_t number, const kd_endpoint &peer);
	void publish_state(kd::State from, bool held);
	void run(kd::Sleepable s);
	bool step(kd::Sleepable s);
	void enter(kd::Sleepable s, kd::State next);
	void set_wakeup();
	void keep_alive_tick();
	bool peer_lingers();
	bool goodbye_done(kd::Sleepable s);
	void take_down(kd::Sleepable s);
	void teardown(kd::Sleepable s);
	void remove(kd::Sleepable s);

	void break_down(kd::Sleepable s);
	bool recover(kd::Sleepable s);
	bool outage_over(kd::Sleepable s);
	bool begin_attempt(kd::Sleepable s);
	void forget_attempt();
	void back_off();
	void forget_unfinished(kd::Sleepable s);
	void fail_fast(kd::Sleepable s);
	void let_device_go(kd::Sleepable s);
	uint64_t outage_wakeup() const;
	uint64_t loss_deadline() const;
	uint64_t fast_deadline() const;
	bool take_pending(kd::Sleepable s);
	void drop_pending(kd::Sleepable s);
	bool carry_on(kd::Sleepable s);
	void back_again();
	void leave_device(kd::Sleepable s);
	void wake_users();

	bool begin(kd::Sleepable s);
	bool progress(kd::Sleepable s);
	void advance(kd::Sleepable s, kd::Queue &queue);
	kd::Status attach(kd::Sleepable s, kd::Queue &queue);
	void resolved(kd::Sleepable s, kd::Queue &queue);
	void routed(kd::Sleepable s, kd::Queue &queue);
	void requested(kd::Sleepable s, kd::Queue &queue);
	void established(kd::Queue &queue, const kd_cm_event &event);
	void rejected(kd::Queue &queue, const kd_cm_event &event);
	void disconnected(kd::Queue &queue);
	void say_hello();
	bool make_live(kd::Sleepable s);
	void moderate(kd::Sleepable s);
	kd::wire::RequestInfo request_info(const kd::Queue &queue) const;

	void control_collect(kd::wire::ControlInfo &info, kd::FetchList &told)
		KD_REQUIRES(ctrl_lock);
	bool control_send_one(kd::FetchList &told) KD_REQUIRES(ctrl_lock);
	bool map_send_one() KD_REQUIRES(ctrl_lock);
	bool map_collect(kd::wire::MapInfo &info, kd_key *const *&keys) KD_REQUIRES(ctrl_lock);
	bool collect_grant(kd::Grant &grant, kd::wire::MapInfo &info, kd_key *const *&keys)
		KD_REQUIRES(ctrl_lock);
	bool grant_hear(kd::Grant &grant, const kd::wire::MapInfo &info) KD_REQUIRES(ctrl_lock);
	void serve_maps(kd::Sleepable s);
	void serve_mappings(kd::Sleepable s);
	uint64_t mappings_deadline();
	bool make_grants(kd::Sleepable s);
	void serve_grants(kd::Sleepable s);
	uint16_t offer(kd::Sleepable s, kd::Grant &grant);
	uint16_t find_export(kd::Sleepable s, kd::Grant &grant);
	void release_grant(kd::Sleepable s, kd::Grant &grant);
	void forget_grant(kd::Sleepable s, kd::Grant &grant);
	void suspend_grants(kd::Sleepable s);
	void await_grants();
	void suspend_maps(kd::Sleepable s);
	void release_grants(kd::Sleepable s);
	uint64_t grants_deadline();
	void queue_work(kd_work *work);
	static void message_work_fn(kd_work *work);
	bool recvs_first() const { return serving || !recvs.empty(); } // rx_lock
	template <class Match>
	bool cancel_first(kd::Sleepable s, kd::Messages &from, const Match &match, int err);
	void send_waiting(kd::Sleepable s);
	void send_claimed(kd::Sleepable s, kd::Message &message, const kd::Claim &claim);
	bool send_next(kd::Sleepable s);
	void serve_recvs(kd::Sleepable s);
	bool serve_recv(kd::Sleepable s);
	void wake_readers();
	template <class Visit>
	bool each_sender(kd::WaitStyle style, const Visit &visit);
	bool claim_on(kd::Queue &queue, bool large, kd::Claim &out);
	bool offers_claimed();
	kd::Status post_message(const kd::Claim &claim, kd::wire::DataInfo message);
	friend struct ::kd_queue;
};

namespace kd
{

// Fails a channel with a formatted text.
// (out of line: it is rare, and there are many of it)
#define KD_FAIL(channel, number, ...)                                                              \
	[&]() __attribute__((noinline, cold))                                                      \
	{                                                                                          \
		kd_error kd_fail_error{};                                                          \
		(void)KD_ERROR(&kd_fail_error, number, 0, __VA_ARGS__);                            \
		(channel).fail(kd_fail_error);                                                     \
	}                                                                                          \
	()

} // namespace kd

template <class Done>
kd::Status kd_channel::wait_io(kd::Sleepable s, kd::Queue &queue, kd::WaitQueue &waitq,
			       kd::Waiting how, const Done &done)
{
	if (queue.kind != kd::Queue::queue_poll)
		return waitq.wait(s, how.io_mode, KD_FOREVER, done);
	if (!how.polls)
		return wait_event(s, waitq, how.io_mode, KD_FOREVER, done);
	return wait_polling(
		s, queue, waitq, how, how.io_mode, KD_FOREVER, [&] { queue.poll(true); }, done);
}

// Sleeps, or polls, until done() is true.
template <class Done>
kd::Status kd_channel::wait(kd::Sleepable s, kd::WaitQueue &wq, kd::Waiting how, kd_wait_mode mode,
			    uint64_t timeout_ns, const Done &done)
{
	if (!how.polls)
		return wait_event(s, wq, mode, timeout_ns, done);
	return wait_polling(
		s, io_queue(true), wq, how, mode, timeout_ns, [&] { poll_once(true); }, done);
}

template <class Done>
kd::Status kd_channel::wait_event(kd::Sleepable s, kd::WaitQueue &wq, kd_wait_mode mode,
				  uint64_t timeout_ns, const Done &done)
{
	if (!has_poll_queues())
		return wq.wait(s, mode, timeout_ns, done);
	sleepers.fetch_add(1);
	arm_all();
	kd::Status st = wq.wait(s, mode, timeout_ns, done);
	sleepers.fetch_sub(1);
	return st;
}

// `queue`: whose experience, and whose share of the CPU.
template <class Look, class Done>
kd::Status kd_channel::wait_polling(kd::Sleepable s, kd::Queue &queue, kd::WaitQueue &wq,
				    const kd::Waiting &how, kd_wait_mode mode, uint64_t timeout_ns,
				    const Look &look, const Done &done)
{
	if (done())
		return {};
	kd::Poller poller(queue, how, timeout_ns);
	for (;;) {
		look();
		if (done())
			break;
		bool sleep = false;
		if (kd::Status st = poller.pause(s, mode, sleep); !st.ok())
			return st;
		uint64_t left = poller.left_ns();
		if (!left)
			return KD_ETIMEDOUT;
		if (!sleep)
			continue;
		poller.sleeps();
		if (kd::Status st = wait_event(s, wq, mode, left, done); !st.ok())
			return st;
		break;
	}
	poller.over();
	return {};
}
