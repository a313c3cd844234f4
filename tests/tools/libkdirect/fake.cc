// SPDX-License-Identifier: GPL-2.0-only
#include "fake.h"

#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <fcntl.h>
#include <poll.h>

#include "system.h"

namespace fake
{

Kernel *kernel;

// --- descriptors -----------------------------------------------------------------------

int32_t Remote::result(const kdirect_desc &d, uint64_t &old)
{
	uint64_t local = d.addr;
	if (d.opcode < KDIRECT_OP_READ || d.opcode > KDIRECT_OP_FETCH_ADD || d.reserved)
		return -EINVAL;
	if (d.remote > bytes.size() || d.length > bytes.size() - d.remote)
		return -ERANGE;
	if (d.flags & KDIRECT_DESC_FIXED) {
		auto buffer = buffers.find(d.buffer);
		if (buffer == buffers.end())
			return -ENOENT;
		if (d.addr + d.length > buffer->second.length)
			return -EFAULT;
		local += buffer->second.addr;
	}
	char *there = &bytes[d.remote];
	auto *here = reinterpret_cast<char *>(local);
	switch (d.opcode) {
	case KDIRECT_OP_READ: std::memcpy(here, there, d.length); break;
	case KDIRECT_OP_WRITE: std::memcpy(there, here, d.length); break;
	default:
		std::memcpy(&old, there, sizeof(old));
		uint64_t next = d.opcode == KDIRECT_OP_FETCH_ADD ? old + d.operand
				: old == d.compare               ? d.operand
								 : old;
		std::memcpy(there, &next, sizeof(next));
	}
	return int32_t(d.length);
}

kdirect_completion Remote::execute(const kdirect_desc &desc, uint32_t index)
{
	std::lock_guard guard(mutex);
	kdirect_completion out{};
	uint64_t old = 0;
	out.result = result(desc, old);
	out.old = old;
	out.user_data = desc.user_data;
	out.opcode = desc.opcode;
	out.index = index;
	return out;
}

// --- rings -----------------------------------------------------------------------------

using Word = std::atomic_ref<uint32_t>;

Ring::Ring(Remote &remote, const kdirect_ring_setup &asked, uint32_t first)
	: setup(asked), remote_(remote), sq_head_(first), cq_tail_(first)
{
	setup.sq_head = 0;
	setup.sq_tail = 64;
	setup.cq_head = 128;
	setup.cq_tail = 192;
	setup.state = 256;
	setup.descs = 320;
	setup.completions = setup.descs + setup.sq_entries * uint32_t(sizeof(kdirect_desc));
	setup.length = setup.completions + setup.cq_entries * sizeof(kdirect_completion);
	memory_ = std::make_unique<uint32_t[]>(setup.length / sizeof(uint32_t));
	for (uint32_t at : {setup.sq_head, setup.sq_tail, setup.cq_head, setup.cq_tail})
		word(at) = first;
	if (threaded())
		thread_ = std::thread([this] { serve(); });
}

Ring::~Ring()
{
	{
		std::lock_guard guard(mutex_);
		stop_ = true;
	}
	changed_.notify_all();
	if (thread_.joinable())
		thread_.join();
}

void Ring::tell(uint32_t bit, bool on)
{
	if (on)
		Word(word(setup.state)).fetch_or(bit);
	else
		Word(word(setup.state)).fetch_and(~bit);
}

uint32_t Ring::ready() const
{
	return cq_tail_ - Word(word(setup.cq_head)).load();
}

void Ring::follow()
{
	while (!waiting_.empty()) {
		if (ready() >= setup.cq_entries) {
			if (behind_)
				return;
			behind_ = true;
			tell(KDIRECT_RING_CQ_BEHIND, true);
			continue;
		}
		auto *there = reinterpret_cast<kdirect_completion *>(&word(setup.completions)) +
			      cq_tail_ % setup.cq_entries;
		*there = waiting_.front();
		waiting_.pop_front();
		Word(word(setup.cq_tail)).store(++cq_tail_, std::memory_order_release);
	}
	if (behind_)
		tell(KDIRECT_RING_CQ_BEHIND, behind_ = false);
}

int Ring::take(uint32_t most, uint32_t &taken)
{
	uint32_t count = Word(word(setup.sq_tail)).load() - sq_head_;
	if (count > setup.sq_entries)
		return -EBADMSG;
	for (; taken < most && count; count--, taken++) {
		if (waiting_.size() >= KDIRECT_DESC_ENTRIES)
			return -EAGAIN;
		kdirect_desc desc = reinterpret_cast<const kdirect_desc *>(
			&word(setup.descs))[sq_head_ % setup.sq_entries];
		uint32_t number = sq_head_++;
		Word(word(setup.sq_head)).store(sq_head_, std::memory_order_release);
		waiting_.push_back(remote_.execute(desc, number));
		follow();
	}
	return 0;
}

int Ring::enter(kdirect_ring_enter &call)
{
	std::unique_lock lock(mutex_);
	calls.push_back(call);
	bool polls = setup.flags & KDIRECT_RING_POLL;
	if ((call.flags & ~KDIRECT_ENTER_FLAGS) || call.min_completions > setup.cq_entries ||
	    (call.to_submit && threaded()) || (call.flags && !polls))
		return -EINVAL;
	follow();
	if (threaded()) {
		woken_ = true;
		changed_.notify_all();
	}
	int err = call.to_submit ? take(call.to_submit, call.submitted) : 0;
	auto there = [&] { return ready() + waiting_.size() >= call.min_completions; };
	int waited = 0;
	if (!err || err == -EAGAIN) {
		auto limit =
			std::chrono::nanoseconds(call.timeout_ns ? call.timeout_ns : 20000000000);
		if (!threaded() ? !there() : !changed_.wait_for(lock, limit, there))
			waited = -ETIMEDOUT;
	}
	follow();
	call.ready = uint32_t(ready() + waiting_.size());
	if (call.submitted || ((!err || err == -EAGAIN) && call.ready))
		return 0;
	return err ? err : waited;
}

void Ring::serve()
{
	unsigned idle = 0;
	std::unique_lock lock(mutex_);
	while (!stop_) {
		uint32_t taken = 0;
		follow();
		(void)take(UINT32_MAX, taken);
		idle = taken ? 0 : idle + 1;
		if (taken)
			changed_.notify_all();
		if (idle > setup.idle_ns) {
			tell(KDIRECT_RING_NEED_WAKEUP, true);
			if (Word(word(setup.sq_tail)).load() == sq_head_ ||
			    waiting_.size() >= KDIRECT_DESC_ENTRIES)
				changed_.wait(lock, [&] { return woken_ || stop_; });
			woken_ = false;
			tell(KDIRECT_RING_NEED_WAKEUP, false);
			idle = 0;
		}
		lock.unlock();
		std::this_thread::yield();
		lock.lock();
	}
}

// --- files -----------------------------------------------------------------------------

Kernel::Kernel()
{
	kernel = this;
}

Kernel::~Kernel()
{
	kernel = nullptr;
}

int Kernel::submit(int fd, kdirect_submit &call)
{
	submits.push_back(call);
	if (ring)
		return -EBUSY;
	if ((call.flags & ~KDIRECT_SUBMIT_FLAGS) || call.min_completions > call.nr_completions ||
	    call.min_completions > KDIRECT_DESC_ENTRIES)
		return -EINVAL;
	auto *descs = reinterpret_cast<const kdirect_desc *>(call.descs);
	auto *out = reinterpret_cast<kdirect_completion *>(call.completions);
	for (; call.submitted < call.nr_descs && call.submitted < at_once; call.submitted++) {
		if (under_way + done.size() >= KDIRECT_DESC_ENTRIES)
			break;
		const kdirect_desc &desc = descs[call.submitted];
		if (fd == raw) {
			kdirect_completion succeeded{};
			succeeded.user_data = desc.user_data;
			succeeded.result = int32_t(desc.length);
			works.push_back(desc);
			done.push_back(succeeded);
		} else {
			done.push_back(remote.execute(desc, call.submitted));
		}
	}
	int err = call.nr_descs && !call.submitted ? -EAGAIN : 0;
	bool interrupted = call.min_completions && signals && signals--;
	uint32_t most = interrupted ? 0 : call.nr_completions;
	for (; call.completed < most && !done.empty(); call.completed++, done.pop_front())
		out[call.completed] = done.front();
	if (call.completed < call.min_completions && !interrupted && !call.timeout_ns)
		std::abort(); // would wait forever
	if (call.completed < call.min_completions && !interrupted)
		now += int64_t(call.timeout_ns);
	if (call.submitted || call.completed)
		return 0;
	if (err || !call.min_completions)
		return err;
	return interrupted ? -EINTR : -ETIMEDOUT;
}

int Kernel::make_ring(kdirect_ring_setup &setup)
{
	ring = std::make_unique<Ring>(remote, setup, first);
	setup = ring->setup;
	if (spoil_setup)
		setup.descs = uint32_t(setup.length);
	opened.insert(ring_fd);
	return ring_fd;
}

int Kernel::raw_ioctl(unsigned long request, void *argument)
{
	switch (request) {
	case KDIRECT_IOC_SUBMIT: return submit(raw, *static_cast<kdirect_submit *>(argument));
	case KDIRECT_IOC_RAW_INFO: {
		kdirect_raw_info info{};
		info.depth = 16;
		*static_cast<kdirect_raw_info *>(argument) = info;
		return 0;
	}
	case KDIRECT_IOC_RAW_CONNECT:
		connects.push_back(*static_cast<kdirect_raw_connect *>(argument));
		return 0;
	case KDIRECT_IOC_RAW_REJECT:
		rejects.push_back(*static_cast<kdirect_raw_connect *>(argument));
		return 0;
	case KDIRECT_IOC_BUFFER_SHARE: {
		auto &share = *static_cast<kdirect_share *>(argument);
		shares.push_back(share);
		share.rkey = 0x1234;
		share.addr = 1ULL << 40;
		share.length = 64;
		return 0;
	}
	case KDIRECT_IOC_BUFFER_SET:
	case KDIRECT_IOC_BUFFER_DEL: return 0;
	}
	return -ENOTTY;
}

int Kernel::ioctl(int fd, unsigned long request, void *argument)
{
	if (!opened.contains(fd))
		return -EBADF;
	if (!results.empty()) {
		int result = results.front();
		results.pop_front();
		return result;
	}
	if (fd == ring_fd && request == KDIRECT_IOC_RING_ENTER)
		return ring->enter(*static_cast<kdirect_ring_enter *>(argument));
	if (fd == channel && request == KDIRECT_IOC_INFO) {
		kdirect_info info{};
		info.max_message = max_message;
		*static_cast<kdirect_info *>(argument) = info;
		return 0;
	}
	if (fd == channel && request == KDIRECT_IOC_PING) {
		auto &ping = *static_cast<kdirect_ping *>(argument);
		ping.rtt_ns = ping.size;
		return 0;
	}
	if (fd == raw)
		return raw_ioctl(request, argument);
	if (fd != channel && fd != mapping)
		return -ENOTTY;
	switch (request) {
	case KDIRECT_IOC_GET_FLAGS: *static_cast<uint32_t *>(argument) = flags; return 0;
	case KDIRECT_IOC_SET_FLAGS: flags = *static_cast<uint32_t *>(argument); return 0;
	}
	if (fd != mapping)
		return -ENOTTY;
	switch (request) {
	case KDIRECT_IOC_SUBMIT: return submit(mapping, *static_cast<kdirect_submit *>(argument));
	case KDIRECT_IOC_RING_SETUP: return make_ring(*static_cast<kdirect_ring_setup *>(argument));
	case KDIRECT_IOC_BUFFER_SET: {
		auto &buffer = *static_cast<kdirect_buffer *>(argument);
		if (buffer.index >= KDIRECT_BUFFERS || !buffer.length)
			return -EINVAL;
		remote.buffers[buffer.index] = buffer;
		return 0;
	}
	case KDIRECT_IOC_BUFFER_DEL:
		return remote.buffers.erase(*static_cast<uint32_t *>(argument)) ? 0 : -ENOENT;
	case KDIRECT_IOC_MAP_INFO: {
		kdirect_map_info info{};
		info.size = remote.bytes.size();
		*static_cast<kdirect_map_info *>(argument) = info;
		return 0;
	}
	}
	return -ENOTTY;
}

} // namespace fake

// --- the system calls --------------------------------------------------------------------

using fake::kernel;

int kd_sys_open(const char *path, int flags)
{
	kernel->last_path = path;
	kernel->last_flags = flags;
	if (kernel->open_result)
		return kernel->open_result;
	int fd = kernel->last_path == "/dev/kdirect/c0"   ? fake::Kernel::channel
		 : kernel->last_path == "/dev/kdirect/m0" ? fake::Kernel::mapping
		 : kernel->last_path == "/dev/kdirect/r0" ? fake::Kernel::raw
							  : fake::Kernel::other;
	kernel->opened.insert(fd);
	return fd;
}

void kd_sys_close(int fd)
{
	if (!kernel->opened.erase(fd))
		std::abort();
	if (fd == fake::Kernel::ring_fd)
		kernel->ring.reset();
}

int kd_sys_ioctl(int fd, unsigned long request, void *argument)
{
	return kernel->ioctl(fd, request, argument);
}

ssize_t kd_sys_read(int, void *buffer, size_t size, bool nowait)
{
	kernel->nowait.push_back(nowait);
	if (kernel->read_error)
		return *kernel->read_error;
	if (kernel->arrived.empty())
		return -EAGAIN;
	fake::Bytes message = kernel->arrived.front();
	kernel->arrived.pop_front();
	size_t length = message.size() < size ? message.size() : size;
	std::memcpy(buffer, message.data(), length);
	return ssize_t(length);
}

ssize_t kd_sys_write(int, const void *buffer, size_t size, bool nowait)
{
	kernel->nowait.push_back(nowait);
	if (kernel->write_error)
		return *kernel->write_error;
	if (!kernel->room)
		return -EAGAIN;
	kernel->room--;
	auto *bytes = static_cast<const char *>(buffer);
	kernel->sent.emplace_back(bytes, bytes + size);
	return ssize_t(size);
}

int kd_sys_poll(int, short events, int64_t timeout_ns)
{
	if (kernel->events.empty()) {
		if (timeout_ns < 0)
			std::abort(); // would wait forever
		kernel->now += timeout_ns;
		return 0;
	}
	auto [wanted, happens] = kernel->events.front();
	kernel->events.pop_front();
	if (wanted != events)
		std::abort();
	happens(*kernel);
	kernel->now += 10;
	return 1;
}

void *kd_sys_map(int fd, size_t length, int *err)
{
	*err = kernel->map_error;
	if (*err)
		return nullptr;
	if (fd != fake::Kernel::ring_fd || length != kernel->ring->setup.length)
		std::abort();
	kernel->ring->mapped = true;
	return kernel->ring->memory();
}

void kd_sys_unmap(void *memory, size_t length)
{
	if (memory != kernel->ring->memory() || length != kernel->ring->setup.length)
		std::abort();
	kernel->ring->mapped = false;
}

int64_t kd_sys_now(void)
{
	return kernel->now;
}
