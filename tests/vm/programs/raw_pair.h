// SPDX-License-Identifier: GPL-2.0-only
// Two raw channels, of which both ends are in this machine and in one process.
#pragma once

#include "raw.h"

#include <algorithm>
#include <functional>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "common.h"

extern std::string to; // ADDRESS:PORT of the listener

constexpr uint16_t flushed = 5, access_error = 10, rnr_error = 13;

inline int sh(const std::string &command)
{
	return WEXITSTATUS(std::system(command.c_str()));
}

inline size_t page_size()
{
	return size_t(sysconf(_SC_PAGESIZE));
}

inline bool wait_for(const std::function<bool()> &what)
{
	for (int i = 0; i < 1000; i++) {
		if (what())
			return true;
		usleep(10000);
	}
	return false;
}

inline bool is_there(const char *path)
{
	return access(path, F_OK) == 0;
}

// a connected to b, which accepted.
class Raw : public testing::Test
{
protected:
	void SetUp() override
	{
		alarm(100 * slow());
		ASSERT_TRUE(wait_for([] { return !is_there("/dev/kdirect/raw.0"); }));
		for (size_t i = 0; i < memory.size(); i++)
			memory[i] = char((i * 2654435761U) >> 9);
	}
	void TearDown() override
	{
		close_both();
		EXPECT_TRUE(wait_for([] { return pinned() == 0; }))
			<< "pages are charged for nothing";
		alarm(0);
	}
	void close_both()
	{
		for (int *fd : {&a, &b})
			if (*fd >= 0) {
				close(*fd);
				*fd = -1;
			}
		if (added)
			sh("kdirect channel del r0");
		added = false;
	}
	// Held at this end; `more` of the tool.
	void add(const std::string &more = {})
	{
		ASSERT_EQ(sh("kdirect channel add r0 to " + to + " mode raw hold " + more), 0);
		added = true;
		a = open("/dev/kdirect/r0", O_RDWR | O_NONBLOCK);
		ASSERT_GE(a, 0) << std::strerror(errno);
	}
	// The request has come to the other end.
	void request(const kdirect_raw_connect &call)
	{
		ASSERT_EQ(raw_connect(a, call), 0);
		b = open_soon("/dev/kdirect/raw.0");
		ASSERT_GE(b, 0) << std::strerror(-b);
	}
	void pair(const std::string &more = {}, const kdirect_raw_connect &from = raw_terms(),
		  const kdirect_raw_connect &back = raw_terms())
	{
		ASSERT_NO_FATAL_FAILURE(add(more));
		ASSERT_NO_FATAL_FAILURE(request(from));
		ASSERT_EQ(raw_connect(b, back), 0);
		ASSERT_TRUE(happens(a, POLLOUT, 20000) & POLLOUT);
	}
	static int one(int fd, const kdirect_desc &desc, kdirect_completion *out = nullptr)
	{
		if (int err = post(fd, {desc}))
			return err;
		Completions done = await(fd, 1);
		if (out && done.size() == 1)
			*out = done[0];
		return done.size() == 1 ? done[0].result : -9999;
	}
	void give(int fd, unsigned index, size_t from, size_t length)
	{
		ASSERT_EQ(set_buffer(fd, index, memory.data() + from, length), 0);
	}
	// A key of b's memory from 1 MiB on, 64 KiB.
	void key(uint32_t access, kdirect_share &out)
	{
		ASSERT_NO_FATAL_FAILURE(give(b, 0, 1 << 20, 65536));
		ASSERT_EQ(share(b, 0, access, out), 0);
	}
	// What is posted at this end completes flushed, in order, and there is no more.
	void flushes(int fd, size_t count, uint64_t first)
	{
		Completions done = await(fd, count);
		ASSERT_EQ(done.size(), count);
		for (size_t i = 0; i < count; i++) {
			EXPECT_EQ(done[i].user_data, first + i);
			EXPECT_EQ(done[i].result, -ECONNRESET);
			EXPECT_EQ(done[i].status, flushed);
		}
		EXPECT_TRUE(happens(fd, 0, 20000) & POLLHUP);
	}
	char *at(size_t offset) { return memory.data() + offset; }

	std::vector<char> memory = std::vector<char>(2 << 20);
	int a = -1, b = -1;
	bool added = false;
};
