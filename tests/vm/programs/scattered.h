// SPDX-License-Identifier: GPL-2.0-only
// Memory that is in many pieces for a device, wherever its pages are: each is there twice,
// one behind the other.
#pragma once

#include "common.h"

#include <cstdint>
#include <sys/mman.h>
#include <unistd.h>

class Scattered
{
public:
	explicit Scattered(size_t nr) : pages(nr)
	{
		int fd = memfd_create("pages", 0);
		void *all = mmap(nullptr, length(), PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		if (fd < 0 || all == MAP_FAILED || ftruncate(fd, off_t((nr + 1) / 2 * page)))
			die("memfd: %s", errno_name(errno));
		start = static_cast<char *>(all);
		for (size_t i = 0; i < nr; i++)
			if (mmap(start + i * page, page, PROT_READ | PROT_WRITE,
				 MAP_SHARED | MAP_FIXED, fd, off_t(i / 2 * page)) == MAP_FAILED)
				die("mmap: %s", errno_name(errno));
		close(fd);
	}
	~Scattered() { munmap(start, length()); }
	Scattered(const Scattered &) = delete;
	Scattered &operator=(const Scattered &) = delete;

	char *at(size_t offset = 0) const { return start + offset; }
	size_t length() const { return pages * page; }

	const size_t pages;
	const size_t page = size_t(sysconf(_SC_PAGESIZE));

private:
	char *start;
};

// What can be told from memory in which each page is there twice.
inline char twice(size_t i, unsigned seed)
{
	size_t at = i / 8192 * 4096 + i % 4096;
	return char((at * 2654435761U + seed) >> 9);
}
