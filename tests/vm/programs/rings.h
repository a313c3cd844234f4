// SPDX-License-Identifier: GPL-2.0-only
// Rings as programs of scenarios use them.
#pragma once

#include "desc.h"

#include <atomic>
#include <sys/mman.h>
#include <unistd.h>
#include <utility>

class Ring
{
public:
	Ring() = default;
	// On failure it is false, and errno says why.
	Ring(int file, uint32_t sq, uint32_t cq, uint32_t flags = 0, uint64_t idle_ns = 1000000,
	     int cpu = -1)
	{
		bool threaded = flags & KDIRECT_RING_THREAD;
		setup.sq_entries = sq;
		setup.cq_entries = cq;
		setup.flags = flags;
		setup.thread_cpu = threaded ? cpu : 0;
		setup.idle_ns = threaded ? idle_ns : 0;
		fd = ioctl(file, KDIRECT_IOC_RING_SETUP, &setup);
		if (fd < 0)
			return;
		void *memory =
			mmap(nullptr, setup.length, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
		base = memory == MAP_FAILED ? nullptr : static_cast<char *>(memory);
	}
	Ring(Ring &&other) noexcept { *this = std::move(other); }
	Ring &operator=(Ring &&other) noexcept
	{
		std::swap(setup, other.setup);
		std::swap(fd, other.fd);
		std::swap(base, other.base);
		return *this;
	}
	~Ring()
	{
		if (base)
			munmap(base, setup.length);
		if (fd >= 0)
			close(fd);
	}
	explicit operator bool() const { return base; }

	using Word = std::atomic_ref<uint32_t>;
	Word word(uint32_t at) const { return Word(*reinterpret_cast<uint32_t *>(base + at)); }
	Word sq_head() const { return word(setup.sq_head); }
	Word sq_tail() const { return word(setup.sq_tail); }
	Word cq_head() const { return word(setup.cq_head); }
	Word cq_tail() const { return word(setup.cq_tail); }
	uint32_t state() const { return word(setup.state).load(); }
	bool polls() const { return setup.flags & KDIRECT_RING_POLL; }
	bool threaded() const { return setup.flags & KDIRECT_RING_THREAD; }

	// False: no room.
	bool push(const kdirect_desc &desc) const
	{
		uint32_t tail = sq_tail().load(std::memory_order_relaxed);
		if (tail - sq_head().load(std::memory_order_acquire) >= setup.sq_entries)
			return false;
		std::memcpy(base + setup.descs + tail % setup.sq_entries * sizeof(desc), &desc,
			    sizeof(desc));
		sq_tail().store(tail + 1);
		return true;
	}
	bool pop(kdirect_completion &out) const
	{
		uint32_t head = cq_head().load(std::memory_order_relaxed);
		if (head == cq_tail().load(std::memory_order_acquire))
			return false;
		std::memcpy(&out, base + setup.completions + head % setup.cq_entries * sizeof(out),
			    sizeof(out));
		cq_head().store(head + 1, std::memory_order_release);
		return true;
	}
	// 0, or the errno behind a minus sign.
	int enter(kdirect_ring_enter &call) const
	{
		return ioctl(fd, KDIRECT_IOC_RING_ENTER, &call) ? -errno : 0;
	}
	int enter(uint32_t to_submit, uint32_t least = 0, uint32_t flags = 0,
		  uint64_t timeout_ns = 0) const
	{
		kdirect_ring_enter call{};
		call.to_submit = to_submit;
		call.min_completions = least;
		call.flags = flags;
		call.timeout_ns = timeout_ns;
		return enter(call);
	}
	// What was pushed is seen by the kernel, and `least` completions are there.
	int go(uint32_t least = 0, uint64_t timeout_ns = 0) const
	{
		if (threaded())
			return state() || least ? enter(0, least, 0, timeout_ns) : 0;
		return enter(setup.sq_entries, least, polls() ? KDIRECT_ENTER_POLL : 0, timeout_ns);
	}

	kdirect_ring_setup setup{};
	int fd = -1;
	char *base = nullptr;
};

// Submits all through the ring and waits for as many completions; fewer after an error.
inline Completions run(const Ring &ring, const Descs &descs)
{
	Completions done;
	size_t begun = 0;
	while (done.size() < descs.size()) {
		kdirect_completion c;
		while (begun < descs.size() && ring.push(descs[begun]))
			begun++;
		while (ring.pop(c))
			done.push_back(c);
		int err = ring.go(done.size() < begun, 10000000000);
		if (err && err != -EAGAIN && err != -EINTR)
			break;
	}
	return done;
}

// Submits `batch` as far as there is room, and adds what has completed to `out`; `wait`:
// until something has. What was submitted, or the errno behind a minus sign.
inline int by_ioctl(int fd, uint32_t flags, const Descs &batch, bool wait, Completions &out)
{
	kdirect_submit call{};
	out.resize(64);
	call.descs = address(batch.data());
	call.nr_descs = uint32_t(batch.size());
	call.completions = address(out.data());
	call.nr_completions = uint32_t(out.size());
	call.min_completions = wait;
	call.flags = flags;
	int err = submit(fd, call);
	out.resize(err ? 0 : call.completed);
	return err ? err : int(call.submitted);
}

inline int by_ring(const Ring &ring, const Descs &batch, bool wait, Completions &out)
{
	kdirect_completion c;
	int taken = 0;
	out.clear();
	while (size_t(taken) < batch.size() && ring.push(batch[size_t(taken)]))
		taken++;
	int err = ring.go(wait);
	while (ring.pop(c))
		out.push_back(c);
	return err && err != -EAGAIN && err != -EINTR && !taken && out.empty() ? err : taken;
}
