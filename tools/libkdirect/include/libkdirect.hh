// SPDX-License-Identifier: GPL-2.0-only
//
// libkdirect.hh - libkdirect.h for C++20
//
// Nothing but inline functions around libkdirect.h, which says what blocks, what several
// threads may do at a time, and what each error means.
//
// Errors: what a negative errno is in C is thrown here as std::system_error, in
// std::generic_category(), with kdirect_explain()'s sentence. What is no more than "not
// now" is not thrown: try_send() and try_recv() tell it, and waits return what is there,
// which may be nothing when the time is over or a signal came. Results of descriptors are
// in their completions. Destructors throw nothing.
//
// Objects can be moved, not copied, and end what they own. A moved-from object can only be
// assigned to or destroyed. Times are std::chrono's; `forever` waits as long as it takes.
// Since version 0.1.
#pragma once

#include <libkdirect_raw.h>

#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <fcntl.h>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <system_error>
#include <unistd.h>
#include <utility>

namespace kdirect
{

using Nanoseconds = std::chrono::nanoseconds;

inline constexpr Nanoseconds forever{-1};

// Throws if `result` is a negative errno; otherwise returns it.
template <typename Result>
Result check(kdirect_call call, Result result)
{
	if (result < 0)
		throw std::system_error(int(-result), std::generic_category(),
					kdirect_explain(call, int(result)));
	return result;
}

namespace detail
{

// A time in C: any negative one is `forever`.
inline int64_t ns(Nanoseconds time)
{
	return time.count() < 0 ? -1 : int64_t{time.count()};
}

inline uint32_t count(size_t size)
{
	constexpr size_t most = std::numeric_limits<int32_t>::max();
	return uint32_t(size < most ? size : most);
}

inline uint32_t length(size_t size)
{
	constexpr size_t most = std::numeric_limits<uint32_t>::max();
	return uint32_t(size < most ? size : most); // above KDIRECT_DESC_LENGTH_MAX: EINVAL
}

// The wait ended, and nothing is wrong.
inline bool is_end_of_wait(int result)
{
	return result == -ETIMEDOUT || result == -EINTR || result == -EAGAIN;
}

} // namespace detail

// An open file descriptor.
class File
{
public:
	explicit File(int fd) noexcept : _fd(fd) {}
	~File()
	{
		if (_fd >= 0)
			::close(_fd);
	}
	File(File &&other) noexcept : _fd(std::exchange(other._fd, -1)) {}
	File &operator=(File &&other) noexcept
	{
		std::swap(_fd, other._fd);
		return *this;
	}

	int fd() const noexcept { return _fd; }
	// It is the caller's now.
	int release() noexcept { return std::exchange(_fd, -1); }

	// KDIRECT_OPEN_*
	uint32_t flags() const
	{
		uint32_t flags;
		check(KDIRECT_CALL_FLAGS, kdirect_get_flags(_fd, &flags));
		return flags;
	}
	void set_flags(uint32_t flags) { check(KDIRECT_CALL_FLAGS, kdirect_set_flags(_fd, flags)); }

	// Takes up to done.size() completions of descriptors, at least `min` if nothing comes
	// between; returns how many.
	size_t reap(std::span<kdirect_completion> done, uint32_t min = 1,
		    Nanoseconds timeout = forever, uint32_t flags = 0)
	{
		int result = kdirect_reap(_fd, done.data(), detail::count(done.size()), min, flags,
					  detail::ns(timeout));
		if (detail::is_end_of_wait(result))
			return 0;
		return size_t(check(KDIRECT_CALL_SUBMIT, result));
	}

private:
	int _fd;
};

// Messages.
class Channel : public File
{
public:
	// A name or a path. ENOTTY where it is not of a channel.
	explicit Channel(const std::string &node, int flags = O_RDWR)
		: File(check(KDIRECT_CALL_OPEN, kdirect_open(node.c_str(), flags)))
	{
		(void)info();
	}

	kdirect_info info() const
	{
		kdirect_info info;
		check(KDIRECT_CALL_INFO, kdirect_channel_info(fd(), &info));
		return info;
	}
	// The time of one round trip to the peer's kernel.
	Nanoseconds ping(uint32_t size = 64, uint32_t flags = 0,
			 Nanoseconds timeout = std::chrono::seconds(1))
	{
		kdirect_ping ping{};
		ping.size = size;
		ping.flags = flags;
		ping.timeout_ns = uint64_t(timeout.count());
		check(KDIRECT_CALL_PING, kdirect_ping_peer(fd(), &ping));
		return Nanoseconds(ping.rtt_ns);
	}

	void send(std::span<const std::byte> message, Nanoseconds timeout = forever)
	{
		check(KDIRECT_CALL_SEND,
		      kdirect_send(fd(), message.data(), message.size(), detail::ns(timeout)));
	}
	// False: there was no room in time.
	bool try_send(std::span<const std::byte> message, Nanoseconds timeout = {})
	{
		int result =
			kdirect_send(fd(), message.data(), message.size(), detail::ns(timeout));
		if (result == -EAGAIN)
			return false;
		check(KDIRECT_CALL_SEND, result);
		return true;
	}
	// A whole message, at the beginning of the buffer, which must have max_message bytes;
	// empty at the end of the channel.
	std::span<std::byte> recv(std::span<std::byte> buffer, Nanoseconds timeout = forever)
	{
		ssize_t length =
			kdirect_recv(fd(), buffer.data(), buffer.size(), detail::ns(timeout));
		return buffer.first(size_t(check(KDIRECT_CALL_RECV, length)));
	}
	// Nothing: there was none in time.
	std::optional<std::span<std::byte>> try_recv(std::span<std::byte> buffer,
						     Nanoseconds timeout = {})
	{
		ssize_t length =
			kdirect_recv(fd(), buffer.data(), buffer.size(), detail::ns(timeout));
		if (length == -EAGAIN)
			return std::nullopt;
		return buffer.first(size_t(check(KDIRECT_CALL_RECV, length)));
	}
};

// Memory of the peer.
class Mapping : public File
{
public:
	// A name or a path. ENOTTY where it is not of a mapping.
	explicit Mapping(const std::string &node, int flags = O_RDWR)
		: File(check(KDIRECT_CALL_OPEN, kdirect_open(node.c_str(), flags)))
	{
		(void)info();
	}

	kdirect_map_info info() const
	{
		kdirect_map_info info;
		check(KDIRECT_CALL_INFO, kdirect_mapping_info(fd(), &info));
		return info;
	}

	// pread() and pwrite(): the bytes that were transferred, fewer only at the end.
	size_t read(std::span<std::byte> to, uint64_t at) const
	{
		ssize_t length = ::pread(fd(), to.data(), to.size(), off_t(at));
		return size_t(check(KDIRECT_CALL_IO, length < 0 ? -errno : length));
	}
	size_t write(std::span<const std::byte> from, uint64_t at)
	{
		ssize_t length = ::pwrite(fd(), from.data(), from.size(), off_t(at));
		return size_t(check(KDIRECT_CALL_IO, length < 0 ? -errno : length));
	}
};

// One QP towards any peer of the RDMA connection manager.
class RawChannel : public File
{
public:
	// A name or a path. ENOTTY where it is not of a raw channel.
	explicit RawChannel(const std::string &node, int flags = O_RDWR)
		: File(check(KDIRECT_CALL_OPEN, kdirect_open(node.c_str(), flags)))
	{
		(void)info();
	}

	kdirect_raw_info info() const
	{
		kdirect_raw_info info;
		check(KDIRECT_CALL_INFO, kdirect_get_raw_info(fd(), &info));
		return info;
	}
	// Of one that is held: connects, or accepts its peer.
	void connect(const kdirect_raw_connect &terms)
	{
		check(KDIRECT_CALL_CONNECT, kdirect_connect(fd(), &terms));
	}
	void reject(std::span<const std::byte> data = {})
	{
		check(KDIRECT_CALL_CONNECT, kdirect_reject(fd(), data.data(), data.size()));
	}
};

// Memory of the peer of a raw channel.
struct Remote {
	uint64_t addr;
	uint32_t rkey;
};

// Memory registered as a fixed buffer of an open file, which must outlive it.
class Buffer
{
public:
	Buffer(File &file, uint16_t index, std::span<std::byte> memory)
		: _fd(file.fd()), _index(index)
	{
		set(memory);
	}
	~Buffer()
	{
		if (_fd >= 0)
			(void)kdirect_buffer_remove(_fd, _index);
	}
	Buffer(Buffer &&other) noexcept
		: _fd(std::exchange(other._fd, -1)), _index(other._index), _memory(other._memory)
	{
	}
	Buffer &operator=(Buffer &&other) noexcept
	{
		std::swap(_fd, other._fd);
		std::swap(_index, other._index);
		std::swap(_memory, other._memory);
		return *this;
	}

	// Other memory from now on; what is under way goes on with the old.
	void set(std::span<std::byte> memory)
	{
		check(KDIRECT_CALL_BUFFER,
		      kdirect_buffer_set(_fd, _index, memory.data(), memory.size()));
		_memory = memory;
	}
	// A key for the peer of a raw channel: KDIRECT_ACCESS_*
	Remote share(uint32_t access)
	{
		kdirect_share key;
		check(KDIRECT_CALL_SHARE, kdirect_buffer_share(_fd, _index, access, &key));
		return {key.addr, key.rkey};
	}
	void unshare() { check(KDIRECT_CALL_SHARE, kdirect_buffer_share(_fd, _index, 0, nullptr)); }
	uint16_t index() const noexcept { return _index; }
	std::span<std::byte> memory() const noexcept { return _memory; }

private:
	int _fd;
	uint16_t _index;
	std::span<std::byte> _memory;
};

// What batches and rings have in common: room for descriptors. Each of these is false where
// there is none.
template <typename Queue>
class Descriptors
{
public:
	bool read(std::span<std::byte> to, uint64_t remote, uint64_t user_data = 0)
	{
		return add(kdirect_prep_read, to.data(), detail::length(to.size()), remote,
			   user_data);
	}
	bool write(std::span<const std::byte> from, uint64_t remote, uint64_t user_data = 0)
	{
		return add(kdirect_prep_write, from.data(), detail::length(from.size()), remote,
			   user_data);
	}
	bool read(const Buffer &to, uint64_t offset, uint32_t length, uint64_t remote,
		  uint64_t user_data = 0)
	{
		return add(kdirect_prep_read_fixed, to.index(), offset, length, remote, user_data);
	}
	bool write(const Buffer &from, uint64_t offset, uint32_t length, uint64_t remote,
		   uint64_t user_data = 0)
	{
		return add(kdirect_prep_write_fixed, from.index(), offset, length, remote,
			   user_data);
	}
	bool fetch_add(uint64_t remote, uint64_t operand, uint64_t user_data = 0)
	{
		return add(kdirect_prep_fetch_add, remote, operand, user_data);
	}
	bool cmp_swap(uint64_t remote, uint64_t compare, uint64_t swap, uint64_t user_data = 0)
	{
		return add(kdirect_prep_cmp_swap, remote, compare, swap, user_data);
	}

	// Of channels, raw or not. `flags`, here and below: KDIRECT_DESC_FENCE, _SOLICITED, of
	// raw ones.
	bool send(std::span<const std::byte> from, uint64_t user_data = 0, uint8_t flags = 0)
	{
		return add(kdirect_prep_send, from.data(), detail::length(from.size()),
			   user_data) &&
		       change(flags);
	}
	bool recv(std::span<std::byte> to, uint64_t user_data = 0)
	{
		return add(kdirect_prep_recv, to.data(), detail::length(to.size()), user_data);
	}
	bool send(const Buffer &from, uint64_t offset, uint32_t length, uint64_t user_data = 0,
		  uint8_t flags = 0)
	{
		return add(kdirect_prep_send, nullptr, length, user_data) && use(from, offset) &&
		       change(flags);
	}
	bool recv(const Buffer &to, uint64_t offset, uint32_t length, uint64_t user_data = 0)
	{
		return add(kdirect_prep_recv, nullptr, length, user_data) && use(to, offset);
	}

	// Of raw channels.
	bool read(std::span<std::byte> to, Remote remote, uint64_t user_data = 0, uint8_t flags = 0)
	{
		return read(to, remote.addr, user_data) && change(flags, remote.rkey);
	}
	bool write(std::span<const std::byte> from, Remote remote, uint64_t user_data = 0,
		   uint8_t flags = 0)
	{
		return write(from, remote.addr, user_data) && change(flags, remote.rkey);
	}
	bool read(const Buffer &to, uint64_t offset, uint32_t length, Remote remote,
		  uint64_t user_data = 0, uint8_t flags = 0)
	{
		return read(to, offset, length, remote.addr, user_data) &&
		       change(flags, remote.rkey);
	}
	bool write(const Buffer &from, uint64_t offset, uint32_t length, Remote remote,
		   uint64_t user_data = 0, uint8_t flags = 0)
	{
		return write(from, offset, length, remote.addr, user_data) &&
		       change(flags, remote.rkey);
	}
	bool write_imm(std::span<const std::byte> from, Remote remote, uint32_t imm,
		       uint64_t user_data = 0, uint8_t flags = 0)
	{
		return add(kdirect_prep_write_imm, from.data(), detail::length(from.size()),
			   remote.addr, remote.rkey, imm, user_data) &&
		       change(flags);
	}
	bool fetch_add(Remote remote, uint64_t operand, uint64_t user_data = 0, uint8_t flags = 0)
	{
		return fetch_add(remote.addr, operand, user_data) && change(flags, remote.rkey);
	}
	bool cmp_swap(Remote remote, uint64_t compare, uint64_t swap, uint64_t user_data = 0,
		      uint8_t flags = 0)
	{
		return cmp_swap(remote.addr, compare, swap, user_data) &&
		       change(flags, remote.rkey);
	}
	bool send_imm(std::span<const std::byte> from, uint32_t imm, uint64_t user_data = 0,
		      uint8_t flags = 0)
	{
		return add(kdirect_prep_send_imm, from.data(), detail::length(from.size()), imm,
			   user_data) &&
		       change(flags);
	}
	bool send_inv(std::span<const std::byte> from, uint32_t rkey, uint64_t user_data = 0,
		      uint8_t flags = 0)
	{
		return add(kdirect_prep_send_inv, from.data(), detail::length(from.size()), rkey,
			   user_data) &&
		       change(flags);
	}
	bool local_inv(uint32_t rkey, uint64_t user_data = 0, uint8_t flags = 0)
	{
		return add(kdirect_prep_local_inv, rkey, user_data) && change(flags);
	}

private:
	template <typename Prep, typename... Values>
	bool add(Prep prep, Values... values)
	{
		_last = static_cast<Queue *>(this)->next();
		if (_last)
			prep(_last, values...);
		return _last;
	}
	bool use(const Buffer &buffer, uint64_t offset)
	{
		kdirect_desc_set_fixed(_last, buffer.index(), offset);
		return true;
	}
	bool change(uint8_t flags)
	{
		kdirect_desc_add_flags(_last, flags);
		return true;
	}
	bool change(uint8_t flags, uint32_t rkey)
	{
		kdirect_desc_set_key(_last, rkey);
		return change(flags);
	}

	kdirect_desc *_last = nullptr; // that was added
};

// Many descriptors in one system call.
class Batch : public Descriptors<Batch>
{
public:
	explicit Batch(uint32_t capacity) : _batch(create(capacity)) {}

	// Zeroed and part of the batch, or null: it is full.
	kdirect_desc *next() { return kdirect_batch_next(_batch.get()); }
	// Those that the kernel has not taken.
	uint32_t size() const { return kdirect_batch_count(_batch.get()); }
	void clear() { kdirect_batch_clear(_batch.get()); }

	// Returns how many have completed; what the kernel did not take is left in the batch.
	size_t submit(File &file, std::span<kdirect_completion> done, uint32_t min = 0,
		      Nanoseconds timeout = forever, uint32_t flags = 0)
	{
		int result = kdirect_batch_submit(_batch.get(), file.fd(), done.data(),
						  detail::count(done.size()), min, flags,
						  detail::ns(timeout));
		if (detail::is_end_of_wait(result))
			return 0;
		return size_t(check(KDIRECT_CALL_SUBMIT, result));
	}
	// All of it; `done` must have room for all. Fewer, if the time was over.
	std::span<kdirect_completion> run(File &file, std::span<kdirect_completion> done,
					  Nanoseconds timeout = forever, uint32_t flags = 0)
	{
		int result = done.size() < size()
				     ? -EINVAL
				     : kdirect_batch_run(_batch.get(), file.fd(), done.data(),
							 flags, detail::ns(timeout));
		if (detail::is_end_of_wait(result))
			return done.first(0);
		return done.first(size_t(check(KDIRECT_CALL_SUBMIT, result)));
	}

private:
	struct Free {
		void operator()(kdirect_batch *batch) const { kdirect_batch_free(batch); }
	};
	static kdirect_batch *create(uint32_t capacity)
	{
		kdirect_batch *batch;
		check(KDIRECT_CALL_SUBMIT, kdirect_batch_create(capacity, &batch));
		return batch;
	}

	std::unique_ptr<kdirect_batch, Free> _batch;
};

// Descriptors and completions in memory shared with the kernel. One thread at a time may
// submit, and another one reap.
class Ring : public Descriptors<Ring>
{
public:
	// KDIRECT_RING_*; with KDIRECT_RING_THREAD on that CPU, or any for -1.
	Ring(File &file, uint32_t sq_entries, uint32_t cq_entries, uint32_t flags = 0,
	     Nanoseconds idle = std::chrono::milliseconds(1), int cpu = -1)
		: _ring(create(file, sq_entries, cq_entries, flags, idle, cpu))
	{
	}

	int fd() const { return kdirect_ring_fd(_ring.get()); }
	const kdirect_ring_setup &layout() const { return *kdirect_ring_layout(_ring.get()); }

	// Submitting side.
	kdirect_desc *next() { return kdirect_ring_next(_ring.get()); }
	uint32_t unsubmitted() const { return kdirect_ring_unsubmitted(_ring.get()); }
	// Returns how many were taken: 0 also where no entry is free, until something is reaped.
	uint32_t submit()
	{
		int result = kdirect_ring_submit(_ring.get());
		if (detail::is_end_of_wait(result))
			return 0;
		return uint32_t(check(KDIRECT_CALL_RING_ENTER, result));
	}

	// Reaping side: the number of completions that are there.
	uint32_t wait(uint32_t min = 1, Nanoseconds timeout = forever)
	{
		return waited(kdirect_ring_wait(_ring.get(), min, detail::ns(timeout)));
	}
	uint32_t ready() const { return kdirect_ring_ready(_ring.get()); }
	const kdirect_completion *peek(uint32_t n = 0) const
	{
		return kdirect_ring_peek(_ring.get(), n);
	}
	void advance(uint32_t n)
	{
		check(KDIRECT_CALL_RING_ENTER, kdirect_ring_advance(_ring.get(), n));
	}
	// Gives what is there to `each(const kdirect_completion &)`, and returns how many.
	template <typename Each>
	uint32_t reap(Each each)
	{
		uint32_t count = ready();
		for (uint32_t n = 0; n < count; n++)
			each(*peek(n));
		advance(count);
		return count;
	}

	// Both sides.
	uint32_t submit_and_wait(uint32_t min = 1, Nanoseconds timeout = forever)
	{
		return waited(kdirect_ring_submit_and_wait(_ring.get(), min, detail::ns(timeout)));
	}

private:
	struct Free {
		void operator()(kdirect_ring *ring) const { kdirect_ring_free(ring); }
	};
	static kdirect_ring *create(File &file, uint32_t sq_entries, uint32_t cq_entries,
				    uint32_t flags, Nanoseconds idle, int cpu)
	{
		bool threaded = flags & KDIRECT_RING_THREAD;
		kdirect_ring_setup setup{};
		setup.sq_entries = sq_entries;
		setup.cq_entries = cq_entries;
		setup.flags = flags;
		setup.thread_cpu = threaded ? cpu : 0;
		setup.idle_ns = threaded ? uint64_t(idle.count()) : 0;
		kdirect_ring *ring;
		check(KDIRECT_CALL_RING_SETUP, kdirect_ring_create(file.fd(), &setup, &ring));
		return ring;
	}
	static uint32_t waited(int result)
	{
		if (detail::is_end_of_wait(result))
			return 0;
		return uint32_t(check(KDIRECT_CALL_RING_ENTER, result));
	}

	std::unique_ptr<kdirect_ring, Free> _ring;
};

// A sentence about a descriptor that failed.
inline std::string explain(const kdirect_desc &desc, const kdirect_completion &completion,
			   const kdirect_map_info *info = nullptr)
{
	char text[256];
	return kdirect_explain_desc(text, sizeof(text), &desc, info, completion.result,
				    completion.status);
}

// The same about a work request of a raw channel.
inline std::string explain_work(const kdirect_desc &desc, const kdirect_completion &completion)
{
	char text[256];
	return kdirect_explain_work(text, sizeof(text), &desc, completion.result,
				    completion.status);
}

} // namespace kdirect
