// SPDX-License-Identifier: GPL-2.0-only
// Descriptors as programs of scenarios use them.
#pragma once

#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <kdirect.h>
#include <sys/ioctl.h>
#include <vector>

using Descs = std::vector<kdirect_desc>;
using Completions = std::vector<kdirect_completion>;

inline uint64_t address(const void *memory)
{
	return reinterpret_cast<uint64_t>(memory);
}

inline kdirect_desc transfer(bool write, const void *memory, size_t length, uint64_t remote,
			     uint64_t user_data = 0)
{
	kdirect_desc desc{};
	desc.opcode = write ? KDIRECT_OP_WRITE : KDIRECT_OP_READ;
	desc.addr = address(memory);
	desc.length = uint32_t(length);
	desc.remote = remote;
	desc.user_data = user_data;
	return desc;
}

inline kdirect_desc fixed(bool write, unsigned buffer, uint64_t offset, size_t length,
			  uint64_t remote, uint64_t user_data = 0)
{
	kdirect_desc desc = transfer(write, nullptr, length, remote, user_data);
	desc.flags = KDIRECT_DESC_FIXED;
	desc.buffer = uint16_t(buffer);
	desc.addr = offset;
	return desc;
}

inline kdirect_desc fetch_add(uint64_t remote, uint64_t operand, uint64_t user_data = 0)
{
	kdirect_desc desc{};
	desc.opcode = KDIRECT_OP_FETCH_ADD;
	desc.length = 8;
	desc.remote = remote;
	desc.operand = operand;
	desc.user_data = user_data;
	return desc;
}

// soft-iWARP has no atomic operations.
inline bool atomics()
{
	const char *rdma = std::getenv("KD_RDMA");
	return !rdma || std::strcmp(rdma, "siw") != 0;
}

// 8 bytes that nothing changes.
inline kdirect_desc touch(uint64_t remote, uint64_t user_data = 0)
{
	static uint64_t word;
	return atomics() ? fetch_add(remote, 0, user_data)
			 : transfer(false, &word, sizeof(word), remote, user_data);
}

inline kdirect_desc cmp_swap(uint64_t remote, uint64_t compare, uint64_t swap,
			     uint64_t user_data = 0)
{
	kdirect_desc desc = fetch_add(remote, swap, user_data);
	desc.opcode = KDIRECT_OP_CMP_SWAP;
	desc.compare = compare;
	return desc;
}

// SEND, or RECV, of one message of a channel.
inline kdirect_desc message(bool send, const void *memory, size_t length, uint64_t user_data = 0)
{
	kdirect_desc desc = transfer(false, memory, length, 0, user_data);
	desc.opcode = send ? KDIRECT_OP_SEND : KDIRECT_OP_RECV;
	return desc;
}

inline kdirect_desc fixed_message(bool send, unsigned buffer, uint64_t offset, size_t length,
				  uint64_t user_data = 0)
{
	kdirect_desc desc = fixed(false, buffer, offset, length, 0, user_data);
	desc.opcode = send ? KDIRECT_OP_SEND : KDIRECT_OP_RECV;
	return desc;
}

// 0, or the errno behind a minus sign.
inline int submit(int fd, kdirect_submit &batch)
{
	return ioctl(fd, KDIRECT_IOC_SUBMIT, &batch) ? -errno : 0;
}

inline int set_buffer(int fd, unsigned index, const void *memory, uint64_t length)
{
	kdirect_buffer buffer{};
	buffer.addr = address(memory);
	buffer.length = length;
	buffer.index = index;
	return ioctl(fd, KDIRECT_IOC_BUFFER_SET, &buffer) ? -errno : 0;
}

inline int del_buffer(int fd, uint32_t index)
{
	return ioctl(fd, KDIRECT_IOC_BUFFER_DEL, &index) ? -errno : 0;
}

// Takes all that is there, at least `least`.
inline int reap(int fd, Completions &out, uint32_t least, uint32_t flags = 0,
		uint64_t timeout_ns = 0)
{
	out.resize(KDIRECT_DESC_ENTRIES);
	kdirect_submit batch{};
	batch.completions = address(out.data());
	batch.nr_completions = uint32_t(out.size());
	batch.min_completions = least;
	batch.flags = flags;
	batch.timeout_ns = timeout_ns;
	int err = submit(fd, batch);
	out.resize(err ? 0 : batch.completed);
	return err;
}

// Submits all, and waits for nothing.
inline int post(int fd, const Descs &descs, uint32_t flags = 0)
{
	kdirect_submit batch{};
	batch.descs = address(descs.data());
	batch.nr_descs = uint32_t(descs.size());
	batch.flags = flags;
	int err = submit(fd, batch);
	return err ? err : batch.submitted == descs.size() ? 0 : -EAGAIN;
}

// Submits all and waits for as many completions; fewer after an error.
inline Completions run(int fd, const Descs &descs, uint32_t flags = 0)
{
	Completions done(descs.size());
	size_t submitted = 0, completed = 0;
	while (completed < descs.size()) {
		kdirect_submit batch{};
		batch.descs = address(descs.data() + submitted);
		batch.completions = address(done.data() + completed);
		batch.nr_descs = uint32_t(descs.size() - submitted);
		batch.nr_completions = uint32_t(descs.size() - completed);
		batch.min_completions = 1;
		batch.flags = flags;
		if (submit(fd, batch))
			break;
		submitted += batch.submitted;
		completed += batch.completed;
	}
	done.resize(completed);
	return done;
}
