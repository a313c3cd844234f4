// SPDX-License-Identifier: GPL-2.0-only
// Memory of a program, of pages of its own.
#pragma once

#include "common.h"

#include <cstdint>
#include <sys/mman.h>

class Memory
{
public:
	explicit Memory(size_t len, int rights = PROT_READ | PROT_WRITE, int flags = 0)
		: length(len),
		  start(mmap(nullptr, len, rights, MAP_PRIVATE | MAP_ANONYMOUS | flags, -1, 0))
	{
		if (start == MAP_FAILED)
			die("mmap: %s", errno_name(errno));
	}
	~Memory() { munmap(start, length); }
	Memory(const Memory &) = delete;
	Memory &operator=(const Memory &) = delete;
	char *at(size_t offset = 0) const { return static_cast<char *>(start) + offset; }
	uint8_t *bytes(size_t offset) const { return static_cast<uint8_t *>(start) + offset; }
	void fill(unsigned seed) const
	{
		for (size_t i = 0; i < length; i++)
			at()[i] = char((i * 2654435761U + seed * 40503U) >> 9);
	}

	const size_t length;

private:
	void *start;
};
