// SPDX-License-Identifier: GPL-2.0-only
// What is particular to a raw channel: one QP towards any peer of the connection manager,
// without a protocol of kdirect's. Documentation/raw.md
#pragma once

#include "desc.hh"
#include "limits.hh"

namespace kd
{

static_assert(sizeof(kdirect_share) == 48 && sizeof(kdirect_raw_connect) == 220);
static_assert(sizeof(kdirect_raw_info) == 352);

// The device fills the local memory.
inline bool fills(uint8_t op)
{
	return op == KDIRECT_OP_RECV || op == KDIRECT_OP_READ;
}

// A work request of a descriptor.
struct RawSlot {
	// Of memory in more pieces than a work request has entries for, as one MR.
	enum class Mr : uint8_t {
		None,
		Described, // of a receive: to be registered
		Registering,
		Registered,
	};
	kd_cqe cqe;
	kd_cqe reg_cqe; // REG_MR, and the LOCAL_INV of what was registered before
	kd_dma buf;     // send side: what is copied, and what an atomic operation returns
	Queue *queue;
	Links<RawSlot> link; // of what is posted
	Link<RawSlot> spare; // of the free ones, or of receives that wait
	Request *request;
	kd_pages *pages; // mapped for the device
	kd_fixed *fixed; // whose memory it is, from `offset`
	uint64_t offset;
	kd_frwr *frwr;       // made when it is needed first, for `frwr_pages`
	uint32_t frwr_pages; //
	uint32_t length, rkey;
	uint8_t opcode;
	Mr mr;
	bool claimed; // it is counted in Raw::nr_claimed
};

using RawSlots = Fifo<RawSlot, &RawSlot::spare>;

// One of its two queues of work requests; Queue::tx_lock.
struct RawSide {
	RawSlot *slots = nullptr;
	uint32_t nr = 0;
	RawSlots free;
	Row<RawSlot, &RawSlot::link> posted;
};

// What the program decides of a channel that is held.
enum class RawAnswer : uint8_t { None, Connect, Reject };

struct Raw {
	static Raw *create(Sleepable s, Channel &channel, const kd_raw_params &params);
	void destroy(Sleepable s);

	// --- connecting: raw.cc; of Channel::run() ---------------------------------------
	Status fit(limits::Terms &terms, kd_error *error);
	Status create_resources(Sleepable s, Queue &queue);
	bool progress(Sleepable s);
	void established(const kd_cm_event &event);
	void heard(const kd_cm_event &event); // the peer's private data

	// --- ending ----------------------------------------------------------------------
	void end_slots(Sleepable s); // no QP is left
	void destroy_slots(Sleepable s);
	bool claimed(); // somebody is about to post pages, or what has an MR
	void wake();    // the state has changed

	// --- the open file: raw_file.cc -----------------------------------------------------
	int refusal() const;
	bool is_held() const;  // and waits for its program
	bool may_read() const; // the peer agreed on READs and atomic operations
	Status open(DescFile &by);
	void closed(Sleepable s, DescFile &file);
	// One is about to be under way: the channel ends if its process does.
	void watch_commands();
	Status answer_with(Sleepable s, const kdirect_raw_connect &call, RawAnswer what,
			   bool waits);
	void describe(kdirect_raw_info &out);

	// --- keys of fixed buffers: raw_share.cc ----------------------------------------------
	Status share(Sleepable s, DescFile &file, kdirect_share &call);
	// What it has is taken back. KD_ENOENT: it has none
	Status unshare(Sleepable s, FixedBuffer &buffer);
	void control_done(const kd_wc &wc);
	// tx_lock: whose key it is; nullptr: none of ours
	FixedBuffer *find(uint32_t rkey);
	void taken_back(uint32_t rkey);          // a LOCAL_INV has been done
	bool invalidated_by_peer(uint32_t rkey); // false: it is none of ours
	void end_shares(Sleepable s);            // no QP is left

	// --- completions: raw_done.cc ---------------------------------------------------------
	void sent(RawSlot *slot, const kd_wc &wc);
	void received(RawSlot *slot, const kd_wc &wc);
	void registered(RawSlot *slot, const kd_wc &wc);
	void finish(RawSide &on, RawSlot *slot, int err, uint16_t status);
	// tx_lock: posts receives that wait, as far as it can; what is left teardown ends
	void post_waiting();
	void begin_waiting(); // it is connected
	RawSide &side(uint8_t opcode) { return opcode == KDIRECT_OP_RECV ? recvs : sends; }

	explicit Raw(Channel &owner) : channel(owner) {}
	Channel &channel;

	uint32_t send_sges = 1, recv_sges = 1, read_sges = 1, max_length = 0;
	bool iwarp = false;

	// --- state_lock -------------------------------------------------------------------
	kd_raw_params params{};
	uint8_t peer_data[KDIRECT_RAW_DATA_MAX] = {};
	uint32_t peer_length = 0;
	DescFile *file = nullptr; // that has it open

	std::atomic<uint8_t> depth{0}, resources{0}; // as agreed

	std::atomic<RawAnswer> answer{RawAnswer::None};
	std::atomic<bool> held{false}; // the node was there before the connection
	std::atomic<bool> file_closed{false};
	WaitQueue waitq;    // state, control work requests, receives that wait
	kd_work watch_work; // holds the channel

	// --- tx_lock ------------------------------------------------------------------------
	RawSide sends, recvs;
	// Receives that are not posted yet, in order: the memory of the first is not registered.
	RawSlots waiting;
	uint32_t nr_claimed = 0;
	// By rkey, of which the upper bits are the MR's.
	static constexpr uint32_t nr_shared = 32;
	SharedBag shared[nr_shared];
	SharedBag &shared_as(uint32_t rkey) { return shared[(rkey >> 8) % nr_shared]; }
	// One REG_MR or LOCAL_INV of ours at a time, besides those of descriptors.
	bool control_busy = false;
	uint32_t leaving_rkey = 0; // which a LOCAL_INV of ours takes back
	kd_cqe control_cqe;

private:
	void refuse(Queue &queue);
	void connect(Sleepable s, Queue &queue);
	void accept(Sleepable s, Queue &queue);
	bool hold(Sleepable s);
	kd_cm_params cm_params(const Queue &queue);
	Status init_side(Sleepable s, Queue &queue, RawSide &side, uint32_t nr, bool is_send);
	Status describe_memory(Sleepable s, FixedBuffer &buffer);
	Status share_now(Sleepable s, FixedBuffer &buffer, kdirect_share &call);
	Status try_share(Sleepable s, DescFile &file, kdirect_share &call);
	bool take_back(FixedBuffer &buffer);
	void end_in_order();
	void look_at_commands();
};

} // namespace kd
