// SPDX-License-Identifier: GPL-2.0-only
// Rings of an open file with descriptors, shared with a program: descriptors come from one,
// completions go to the other. The program writes there what it likes at any time, so that
// what counts is kept here.
#pragma once

#include "desc.hh"

namespace kd
{

static_assert(sizeof(kdirect_ring_setup) == 72 && sizeof(kdirect_ring_enter) == 40);

// The beginning of the shared memory.
struct RingWords {
	alignas(64) std::atomic<uint32_t> sq_tail; // the program's
	alignas(64) std::atomic<uint32_t> cq_head; // the program's
	alignas(64) std::atomic<uint32_t> sq_head;
	alignas(64) std::atomic<uint32_t> state;
	alignas(64) std::atomic<uint32_t> cq_tail;
};

} // namespace kd

struct kd_ring {
	static kd::Status create(kd::Sleepable s, kd::DescFile &file, kdirect_ring_setup &setup,
				 kd_ring **out);
	void release(kd::Sleepable s);
	kd::Status enter(kd::Sleepable s, kdirect_ring_enter &call);
	uint32_t poll();
	void serve(kd::Sleepable s); // the thread, until it is to stop

	// --- submit_lock ----------------------------------------------------------------
	// Descriptors that the program has written. KD_EBADMSG: its word cannot be.
	uint32_t submitted(kd::Status &st);
	// One of them, from sq_head on.
	kdirect_desc desc(uint32_t ahead) const;
	void take();

	// Descriptors that are still to be taken.
	uint32_t pending() const
	{
		uint32_t count = words->sq_tail.load() - sq_head.load(std::memory_order_relaxed);
		return count <= sq_entries ? count : 0;
	}
	bool is_watched();

	// --- DescFile::lock --------------------------------------------------------------
	// False: there is no room.
	bool put(const kdirect_completion &completion);
	// True: the program is told only now.
	bool behind(bool is);
	// Completions that the program has not reaped.
	uint32_t ready() const;

	bool thread_needed() const
	{
		return thread && words->sq_tail.load() != sq_head.load(std::memory_order_relaxed);
	}

	// --- constant -------------------------------------------------------------------
	kd::DescFile *file = nullptr;
	uint32_t sq_entries = 0, cq_entries = 0;
	bool polls = false;
	uint64_t idle_ns = 0;
	kd_shared *shared = nullptr;
	kd::RingWords *words = nullptr;
	const uint64_t *descs = nullptr;
	kdirect_completion *completions = nullptr;
	kd_thread *thread = nullptr;

	std::atomic<uint32_t> sq_head{0}; // written under submit_lock
	bool sq_bad = false;              // submit_lock
	std::atomic<uint32_t> cq_tail{0}; // written under DescFile::lock
	bool is_behind = false;           // DescFile::lock, as these
	bool starved = false;             // what was to be submitted waits for a request
	std::atomic<bool> woken{false};   // the thread is to look again

private:
	kd::Status make(kd::Sleepable s, kdirect_ring_setup &setup);
	uint32_t ready_in_all();
	bool pass(kd::Sleepable s);
	void sleep(kd::Sleepable s);
	void tell(uint32_t state, bool on);
};
