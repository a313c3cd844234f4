// SPDX-License-Identifier: GPL-2.0-only
// Raw channels as programs of scenarios use them.
#pragma once

#include "desc.h"

#include <cstdlib>
#include <fcntl.h>
#include <poll.h>
#include <string>
#include <unistd.h>

inline kdirect_desc work(uint8_t opcode, const void *memory, size_t length, uint64_t user_data = 0)
{
	kdirect_desc desc{};
	desc.opcode = opcode;
	desc.addr = address(memory);
	desc.length = uint32_t(length);
	desc.user_data = user_data;
	return desc;
}

inline kdirect_desc work_fixed(uint8_t opcode, unsigned buffer, uint64_t offset, size_t length,
			       uint64_t user_data = 0)
{
	kdirect_desc desc = work(opcode, nullptr, length, user_data);
	desc.flags = KDIRECT_DESC_FIXED;
	desc.buffer = uint16_t(buffer);
	desc.addr = offset;
	return desc;
}

// On the peer's memory.
inline kdirect_desc remote(kdirect_desc desc, uint64_t addr, uint32_t rkey)
{
	desc.remote = addr;
	desc.rkey = rkey;
	return desc;
}

// So many completions, in the order in which they came; fewer after an error or 20 s.
inline Completions await(int fd, size_t count)
{
	Completions all(count);
	size_t done = 0;
	while (done < count) {
		kdirect_submit batch{};
		batch.completions = address(all.data() + done);
		batch.nr_completions = uint32_t(count - done);
		batch.min_completions = 1;
		batch.timeout_ns = 20000000000ULL;
		if (submit(fd, batch))
			break;
		done += batch.completed;
	}
	all.resize(done);
	return all;
}

inline kdirect_raw_connect raw_terms(const std::string &data = {}, uint8_t reads = 4)
{
	kdirect_raw_connect call{};
	std::memcpy(call.data, data.data(), data.size());
	call.length = uint32_t(data.size());
	call.initiator_depth = call.responder_resources = reads;
	call.retry_count = 6;
	call.rnr_retry_count = 7;
	return call;
}

inline int raw_connect(int fd, const kdirect_raw_connect &call)
{
	return ioctl(fd, KDIRECT_IOC_RAW_CONNECT, &call) ? -errno : 0;
}

inline kdirect_raw_info raw_info(int fd)
{
	kdirect_raw_info info{};
	if (ioctl(fd, KDIRECT_IOC_RAW_INFO, &info))
		info.error = uint32_t(errno);
	return info;
}

inline int share(int fd, unsigned index, uint32_t access, kdirect_share &out)
{
	out = {};
	out.index = index;
	out.access = access;
	return ioctl(fd, KDIRECT_IOC_BUFFER_SHARE, &out) ? -errno : 0;
}

// Which of them happen within so long.
inline short happens(int fd, short events, int ms)
{
	pollfd p{fd, events, 0};
	return poll(&p, 1, ms) > 0 ? p.revents : short(0);
}

// The node, once it is there; -errno.
inline int open_soon(const std::string &path, int flags = O_RDWR, int tries = 2000)
{
	for (int i = 0;; i++) {
		int fd = open(path.c_str(), flags);
		if (fd >= 0 || errno != ENOENT || i == tries)
			return fd >= 0 ? fd : -errno;
		usleep(10000);
	}
}
