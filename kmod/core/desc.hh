// SPDX-License-Identifier: GPL-2.0-only
// An open file with descriptors, of a mapping or a channel: Documentation/descriptors.md.
// It lives until it is released and the last of its requests has ended.
#pragma once

#include "fixed.hh"
#include "list.hh"
#include "os.hh"
#include "poll.hh"

#include "../../uapi/kdirect.h"

namespace kd
{

class SubmitterMemory;
struct Message; // message.hh

static_assert(sizeof(kdirect_desc) == 64 && sizeof(kdirect_completion) == 32);
static_assert(sizeof(kdirect_submit) == 64 && sizeof(kdirect_buffer) == 32);

inline bool is_atomic(uint8_t op)
{
	return op == KDIRECT_OP_CMP_SWAP || op == KDIRECT_OP_FETCH_ADD;
}

// A descriptor that was taken, until its completion is reaped.
struct Request {
	// One more part is about to begin.
	void add_part();
	// One of its parts has ended.
	void part_done(int error, uint16_t wc_status, uint64_t before);
	kdirect_completion completion() const;
	void start(const kdirect_desc &desc, uint32_t number);

	// --- of a command: uring.cc -----------------------------------------------------
	// True: it was the last, and who called has to tell.
	bool command_part_done(int error, uint16_t wc_status, uint64_t before);
	// Ends it; whoever waits for one may have it.
	kd_uring_end end_command();
	void complete_command();

	Link<Request> link; // free or done
	DescFile *file;
	FixedBuffer *buffer; // in use
	uint64_t user_data, old;
	uint32_t index, length;
	uint32_t left; // parts under way, and one for who submits; DescFile::lock
	int err;       // the first; DescFile::lock, as is status
	uint16_t status;
	uint8_t opcode;
	uint8_t flags; // of the completion, as the next
	uint32_t data;
	kd_uring *command; // of io_uring, which gets the completion; else nullptr
	Message *message;  // of a session's file; else nullptr
	bool events;       // of a command: it is counted in Channel::sleepers

private:
	bool last_part(int error, uint16_t wc_status, uint64_t before); // DescFile::lock
};

struct Commands; // uring.hh
struct IoSlot;   // queue.hh

// Parts of requests that have their slots, and are posted with one doorbell.
struct MapBatch {
	kd_io ios[KD_CHAIN_MAX];
	IoSlot *slots[KD_CHAIN_MAX];
	uint32_t nr, sges;
	Queue *queue;           // theirs
	bool polls;             // who submitted them looks for their completions
	std::atomic<bool> left; // by a command, to be posted with the next one
};

} // namespace kd

struct kd_desc_file {
	// nullptr: no memory. The caller says what it is open of.
	static kd_desc_file *create(kd::Sleepable s, kd::Channel &channel);
	void release(kd::Sleepable s);
	void discard(kd::Sleepable s); // instead, if it was never open
	bool is_session() const;       // it is open of its node
	// Why nothing may begin; 0: it may.
	int refusal() const;
	void put_later(); // from where it cannot be freed

	// --- submit_lock ----------------------------------------------------------------
	kd::Status prepare(kd::Sleepable s); // on first use
	kd::Status submit(kd::Sleepable s, kdirect_submit &batch);
	// Up to `most` from the ring; adds them to `taken`.
	kd::Status submit(kd::Sleepable s, kd_ring &ring, uint32_t most, uint32_t &taken);
	kd::Status attach(kd_ring &ring); // KD_EBUSY
	// Posts all of it, or with call.nowait nothing: KD_EAGAIN.
	kd::Status submit(kd::Sleepable s, kd::Request &request, const kdirect_desc &desc,
			  const kd_uring_call &call);
	void replace_buffer(kd::Sleepable s, uint32_t index, kd::FixedBuffer *buffer);
	// As what it is open of does it: desc_post.cc, raw_post.cc, message_post.cc
	template <class Source>
	kd::Status submit_mapped(kd::Sleepable s, Source &source, bool polls,
				 kd::SubmitterMemory &memory);
	template <class Source>
	kd::Status submit_raw(kd::Sleepable s, Source &source, bool polls,
			      kd::SubmitterMemory &memory);
	template <class Source>
	kd::Status submit_messages(kd::Sleepable s, Source &source, bool polls,
				   kd::SubmitterMemory &memory);
	kd::Status run_mapped(kd::Sleepable s, kd::Request &request, const kdirect_desc &desc,
			      const kd_uring_call &call);
	void post_mapped(kd::Sleepable s); // what run_mapped() has left
	kd::Status run_raw(kd::Sleepable s, kd::Request &request, const kdirect_desc &desc,
			   const kd_uring_call &call);
	kd::Status run_message(kd::Sleepable s, kd::Request &request, const kdirect_desc &desc,
			       const kd_uring_call &call);
	void await_message(kd::Sleepable s, kd::Request &request);

	// The key that the buffer has ends; KD_ENOENT: it `must` have one.
	kd::Status take_key_back(kd::Sleepable s, uint32_t index, bool must);
	// A request for a descriptor, or nullptr: none is free.
	kd::Request *begin(const kdirect_desc &desc, uint32_t index);
	// lock: may be taken again; whoever waits for one is woken.
	void give_back(kd::Request *request);
	// Waits until so many are there.
	kd::Status reap(kd::Sleepable s, kdirect_submit &batch, uint32_t wanted);
	// Until so many completions are there, or none can come any more.
	kd::Status await(kd::Sleepable s, uint32_t wanted, bool polls, uint64_t timeout_ns,
			 const kd_ring *via);
	// Completions that found no room in the ring. True: some do now.
	bool catch_up();
	void detach(kd::Sleepable s, const kd_ring &ring);

	kd::Refs refs; // of who opened it, and of each request that has not ended
	kd::Channel *channel = nullptr;
	kd::Mapping *mapping = nullptr; // nullptr: it is the channel's, a session or raw
	bool can_read = false, can_write = false;
	kd::OpenFlags flags;
	kd::Links<kd_desc_file> link; // the mapping's or the session's
	kd_work end_work;

	kd::Mutex<KD_LOCK_SUBMIT> submit_lock;
	kd::FixedBuffer **buffers = nullptr; // submit_lock, as these
	kd::MapBatch *batch = nullptr;       // of a mapping
	kd_raw_wr *wrs = nullptr;            // instead, of a raw channel
	kd_chain *chain = nullptr;
	kd::Message *messages = nullptr; // instead, of a session

	kd::SpinLock<KD_LOCK_FILE> lock;
	kd::Request *requests = nullptr;
	kd::Fifo<kd::Request, &kd::Request::link> free, done; // lock
	// Requests that may be taken: RECVs, and others; lock. Of a raw channel commands count.
	uint32_t room[2] = {KDIRECT_DESC_ENTRIES, KDIRECT_DESC_ENTRIES};
	std::atomic<uint32_t> nr_done{0}, under_way{0}; // written under lock
	uint32_t waiters = 0, wake_at = UINT32_MAX;     // lock: when it is worth it
	uint32_t reapers = 0;                           // lock: of requests in neither list
	kd_ring *ring = nullptr;                        // lock and submit_lock: takes `done`
	bool watched = false;                           // lock: by poll()
	kd::Commands *commands = nullptr;               // submit_lock
	kd::WaitQueue waitq;                            // completions, free commands
	kd::WaitQueue poll_waitq;                       // poll() of the ring
	kd::WaitQueue thread_waitq;                     // the ring's thread

private:
	friend struct kd::Request;
	template <class Source>
	kd::Status submit_from(kd::Sleepable s, Source &source, bool polls,
			       kd::SubmitterMemory &memory);
	void follow(); // lock: of catch_up()
	kd::Status reap_some(kd::Sleepable s, kdirect_submit &batch, uint32_t most);
	void end(kd::Sleepable s);
};

namespace kd
{

using DescFiles = Bag<DescFile, &kd_desc_file::link>;

} // namespace kd
