// SPDX-License-Identifier: GPL-2.0-only
// A kernel of the tests' own behind system.h: nodes, messages, a mapping with its memory,
// and rings, which a thread may serve. What it does with shared memory is what
// kdirect.h says of the kernel.
#pragma once

#include <condition_variable>
#include <cstring>
#include <deque>
#include <libkdirect_raw.h>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <vector>

namespace fake
{

using Bytes = std::vector<char>;

// The export's memory, and what descriptors do to it.
class Remote
{
public:
	explicit Remote(size_t size) : bytes(size) {}
	kdirect_completion execute(const kdirect_desc &desc, uint32_t index);

	std::mutex mutex;
	Bytes bytes;
	std::map<uint32_t, kdirect_buffer> buffers;

private:
	int32_t result(const kdirect_desc &desc, uint64_t &old);
};

class Ring
{
public:
	// Its numbers begin with `first`.
	Ring(Remote &remote, const kdirect_ring_setup &asked, uint32_t first);
	~Ring();
	Ring(const Ring &) = delete;
	Ring &operator=(const Ring &) = delete;

	int enter(kdirect_ring_enter &call);
	uint32_t &word(uint32_t at) const { return memory_[at / sizeof(uint32_t)]; }

	kdirect_ring_setup setup;
	std::vector<kdirect_ring_enter> calls;
	bool mapped = false;
	void *memory() const { return memory_.get(); }

private:
	bool threaded() const { return setup.flags & KDIRECT_RING_THREAD; }
	uint32_t ready() const;
	int take(uint32_t most, uint32_t &taken);
	void follow();
	void tell(uint32_t bit, bool on);
	void serve();

	Remote &remote_;
	std::unique_ptr<uint32_t[]> memory_;
	std::mutex mutex_;
	std::condition_variable changed_;
	std::deque<kdirect_completion> waiting_;
	uint32_t sq_head_, cq_tail_;
	bool behind_ = false, woken_ = false, stop_ = false;
	std::thread thread_;
};

class Kernel
{
public:
	static constexpr size_t size = 1 << 16;
	Kernel();
	~Kernel();

	// What there is; further files get higher numbers.
	static constexpr int channel = 100, mapping = 101, other = 102, ring_fd = 103, raw = 104;
	std::set<int> opened;
	std::string last_path;
	int last_flags = 0, open_result = 0;

	// The next ioctls end so, whatever they are.
	std::deque<int> results;
	uint32_t flags = 0;
	uint32_t max_message = 1000;

	// Messages: what can be read, and how many can be written without waiting.
	std::deque<Bytes> arrived, sent;
	unsigned room = 10;
	std::vector<bool> nowait;
	std::optional<int> read_error, write_error;
	// What happens when somebody polls; nothing more: the time goes by.
	std::deque<std::pair<short, void (*)(Kernel &)>> events;
	int64_t now = 1000;

	// Descriptors
	Remote remote{size};
	std::vector<kdirect_submit> submits;
	std::deque<kdirect_completion> done;
	uint32_t under_way = 0; // of somebody else: never complete
	uint32_t at_once = KDIRECT_DESC_ENTRIES;
	unsigned signals = 0;

	// A raw channel: what it was told, and work requests, which all succeed.
	std::vector<kdirect_raw_connect> connects, rejects;
	std::vector<kdirect_share> shares;
	std::vector<kdirect_desc> works;

	std::unique_ptr<Ring> ring;
	uint32_t first = 0; // number of a ring's first entry
	int map_error = 0;
	bool spoil_setup = false;

	int ioctl(int fd, unsigned long request, void *argument);

private:
	int submit(int fd, kdirect_submit &call);
	int raw_ioctl(unsigned long request, void *argument);
	int make_ring(kdirect_ring_setup &setup);
};

// The one behind the system calls.
extern Kernel *kernel;

} // namespace fake
