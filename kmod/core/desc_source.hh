// SPDX-License-Identifier: GPL-2.0-only
// What submitting descriptors has in common, whatever they do: where they come from, and
// who submits them.
#pragma once

#include "channel.hh"
#include "ring.hh"

namespace kd
{

// Where descriptors come from. read(): copies some, all that may be taken now at most.
class ArraySource
{
public:
	explicit ArraySource(kdirect_submit &b) : batch(b) {}
	template <class Submission>
	uint32_t read(Submission &by, kdirect_desc *to, uint32_t most, Status &st)
	{
		uint32_t n = batch.nr_descs - batch.submitted;
		if (n > most)
			n = most;
		bool any = n;
		uint64_t from = batch.descs + uint64_t(batch.submitted) * sizeof(*to);
		while (n && !by.read_user(to, from, n * sizeof(*to)))
			n /= 2; // as far as they can be read
		if (any && !n)
			st = KD_EFAULT;
		return n;
	}
	uint32_t number() const { return batch.submitted; }
	void take() { batch.submitted++; }

private:
	kdirect_submit &batch;
};

class RingSource
{
public:
	RingSource(kd_ring &r, uint32_t most, uint32_t &t) : ring(r), left(most), taken(t) {}
	template <class Submission>
	uint32_t read(Submission &, kdirect_desc *to, uint32_t most, Status &st)
	{
		uint32_t n = ring.submitted(st);
		if (n > left)
			n = left;
		if (n > most)
			n = most;
		for (uint32_t i = 0; i < n; i++)
			to[i] = ring.desc(i);
		return n;
	}
	uint32_t number() const { return ring.sq_head.load(std::memory_order_relaxed); }
	void take()
	{
		ring.take();
		left--;
		taken++;
	}

private:
	kd_ring &ring;
	uint32_t left;
	uint32_t &taken;
};

// The memory of who submits: of the process that calls, or of the one that `thread` serves.
class SubmitterMemory
{
public:
	explicit SubmitterMemory(kd_thread *for_process) : thread(for_process) {}
	// Without submit_lock: the memory may end with this.
	~SubmitterMemory()
	{
		if (adopted)
			kd_thread_leave(thread);
	}
	SubmitterMemory(const SubmitterMemory &) = delete;
	SubmitterMemory &operator=(const SubmitterMemory &) = delete;

	// Whether addresses mean anything.
	bool present()
	{
		if (thread && !adopted)
			adopted = kd_thread_adopt(thread);
		return !thread || adopted;
	}

	kd_thread *const thread; // nullptr: the process itself

private:
	bool adopted = false; // by `thread`
};

// Takes what there is and lets `submission` begin each. KD_EAGAIN: no request is free.
template <class Submission, class Source>
Status submit_all(Sleepable s, DescFile &file, Submission &submission, Source &source)
{
	constexpr uint32_t at_once = 8;
	kdirect_desc descs[at_once];
	Status st;
	while (uint32_t n = source.read(submission, descs, at_once, st)) {
		for (uint32_t i = 0; i < n && st.ok(); i++) {
			Request *request = file.begin(descs[i], source.number());
			if (!request) {
				st = KD_EAGAIN;
				break;
			}
			source.take();
			Status begun = submission.begin(s, *request, descs[i]);
			request->part_done(begun.err(), 0, 0);
			if (kd_killed())
				st = KD_EINTR;
		}
		if (!st.ok())
			break;
	}
	submission.flush();
	return st;
}

} // namespace kd
