// SPDX-License-Identifier: GPL-2.0-only
// Memory of raw channels in more pieces than a work request has entries for.
#include "raw_pair.h"
#include "scattered.h"

#include <atomic>

namespace
{

class RawMemory : public Raw
{
protected:
	void fill(char *to, size_t length, unsigned seed)
	{
		for (size_t i = 0; i < length; i++)
			to[i] = twice(i, seed);
	}
	// A key of `length` bytes of b's from 1 MiB on.
	void key_of(size_t length, kdirect_share &k)
	{
		ASSERT_NO_FATAL_FAILURE(give(b, 7, 1 << 20, length));
		ASSERT_EQ(share(b, 7, KDIRECT_ACCESS_READ | KDIRECT_ACCESS_WRITE, k), 0);
	}
	char *far() { return at(1 << 20); }
};

TEST_F(RawMemory, Scattered)
{
	ASSERT_NO_FATAL_FAILURE(pair());
	kdirect_raw_info info = raw_info(a);
	ASSERT_TRUE(info.flags & KDIRECT_RAW_READS);
	size_t pages = 3 * std::max({info.send_sges, info.recv_sges, info.read_sges});
	ASSERT_LE(pages, info.mr_pages);
	Scattered here(pages), there(pages);
	const size_t skip = 100, length = here.length() - 2 * skip;
	kdirect_share k;
	ASSERT_NO_FATAL_FAILURE(key_of(here.length(), k));
	ASSERT_EQ(set_buffer(a, 0, here.at(), here.length()), 0);
	ASSERT_EQ(set_buffer(b, 0, there.at(), there.length()), 0);
	unsigned seed = 0;
	for (int round = 0; round < 3; round++)
		for (bool fixed : {false, true}) {
			SCOPED_TRACE(fixed ? "fixed buffers" : "plain memory");
			auto mine = [&](uint8_t opcode, const Scattered &memory) {
				return fixed ? work_fixed(opcode, 0, skip, length)
					     : work(opcode, memory.at(skip), length);
			};
			fill(here.at(), here.length(), ++seed);
			ASSERT_EQ(post(b, {mine(KDIRECT_OP_RECV, there)}), 0);
			ASSERT_EQ(one(a, mine(KDIRECT_OP_SEND, here)), int(length));
			Completions done = await(b, 1);
			ASSERT_EQ(done.size(), 1u);
			EXPECT_EQ(done[0].result, int(length));
			EXPECT_EQ(std::memcmp(there.at(skip), here.at(skip), length), 0);

			ASSERT_EQ(one(a, remote(mine(KDIRECT_OP_WRITE, here), k.addr + 5, k.rkey)),
				  int(length));
			EXPECT_EQ(std::memcmp(far() + 5, here.at(skip), length), 0);

			fill(far(), here.length(), ++seed);
			ASSERT_EQ(
				one(a, remote(mine(KDIRECT_OP_READ, here), k.addr + skip, k.rkey)),
				int(length));
			EXPECT_EQ(std::memcmp(here.at(skip), far() + skip, length), 0);
		}
}

// All that an MR holds, and a page more.
TEST_F(RawMemory, TooManyPages)
{
	ASSERT_NO_FATAL_FAILURE(pair());
	size_t most = raw_info(a).mr_pages, page = page_size();
	ASSERT_GT(most / 2, size_t{KDIRECT_RAW_SGES});
	Scattered here(most + 1);
	ASSERT_EQ(set_buffer(a, 0, here.at(), here.length()), 0);
	fill(here.at(), here.length(), 1);
	for (uint8_t opcode :
	     {KDIRECT_OP_SEND, KDIRECT_OP_RECV, KDIRECT_OP_WRITE, KDIRECT_OP_READ}) {
		SCOPED_TRACE(int(opcode));
		EXPECT_EQ(one(a, work(opcode, here.at(), here.length())), -EMSGSIZE);
		EXPECT_EQ(one(a, work(opcode, here.at(page - 1), here.length() - page + 1)),
			  -EMSGSIZE);
		EXPECT_EQ(one(a, work_fixed(opcode, 0, 0, here.length())), -EMSGSIZE);
	}
	Scattered there(most);
	for (bool fixed : {false, true}) {
		ASSERT_EQ(post(b, {work(KDIRECT_OP_RECV, there.at(), there.length())}), 0);
		EXPECT_EQ(one(a, fixed ? work_fixed(KDIRECT_OP_SEND, 0, 0, there.length())
				       : work(KDIRECT_OP_SEND, here.at(), there.length())),
			  int(there.length()));
		ASSERT_EQ(await(b, 1).size(), 1u);
		EXPECT_EQ(std::memcmp(there.at(), here.at(), there.length()), 0);
	}
}

// Posted before the connection and after it, of whatever memory.
TEST_F(RawMemory, ReceivesKeepTheirOrder)
{
	constexpr size_t count = 16;
	ASSERT_NO_FATAL_FAILURE(add());
	size_t pages = 3 * raw_info(a).recv_sges;
	Scattered here(pages);
	auto recv = [&](size_t i) {
		return i % 3 == 1 ? work(KDIRECT_OP_RECV, at(i * 100), 100, i)
				  : work(KDIRECT_OP_RECV, here.at(), here.length() - i, i);
	};
	ASSERT_EQ(post(a, {recv(0), recv(1), recv(2)}), 0);
	ASSERT_NO_FATAL_FAILURE(request(raw_terms()));
	ASSERT_EQ(raw_connect(b, raw_terms()), 0);
	ASSERT_TRUE(happens(a, POLLOUT, 20000) & POLLOUT);
	Descs recvs, sends;
	for (size_t i = 0; i < count; i++) {
		if (i > 2)
			recvs.push_back(recv(i));
		sends.push_back(work(KDIRECT_OP_SEND, at(1 << 20), i + 1, i));
	}
	ASSERT_EQ(post(b, sends), 0);
	ASSERT_EQ(post(a, recvs), 0);
	Completions done = await(a, count);
	ASSERT_EQ(done.size(), count);
	for (size_t i = 0; i < count; i++) {
		EXPECT_EQ(done[i].user_data, i);
		EXPECT_EQ(done[i].result, int(i + 1));
	}
	EXPECT_EQ(await(b, count).size(), count);
}

// What waits to be registered, or is posted, ends in order and lets go of its pages.
TEST_F(RawMemory, Flushes)
{
	ASSERT_NO_FATAL_FAILURE(pair());
	Scattered here(3 * raw_info(b).recv_sges);
	Descs recvs;
	for (size_t i = 0; i < 20; i++)
		recvs.push_back(work(KDIRECT_OP_RECV, here.at(), here.length(), 100 + i));
	ASSERT_EQ(post(b, recvs), 0);
	close(a);
	a = -1;
	flushes(b, 20, 100);
}

TEST_F(RawMemory, DeletedUnderLoad)
{
	for (const char *what : {"r0", "raw.0"}) {
		SCOPED_TRACE(what);
		ASSERT_NO_FATAL_FAILURE(SetUp());
		ASSERT_NO_FATAL_FAILURE(pair());
		Scattered here(3 * raw_info(a).send_sges), there(3 * raw_info(a).send_sges);
		// Each SEND finds a RECV: Documentation/testing.md on rxe and REG_MR.
		std::atomic<size_t> posted = 0, sent = 0, received = 0;
		std::atomic<bool> over = false;
		auto four = [&](int fd, uint8_t opcode, const Scattered &memory) {
			int err = post(fd, Descs(4, work(opcode, memory.at(), memory.length())));
			posted += opcode == KDIRECT_OP_RECV && !err;
			for (const kdirect_completion &c : await(fd, 4))
				err = c.result < 0 ? c.result : err;
			over = over || err;
		};
		std::thread sender([&] {
			while (!over)
				if (posted > sent) {
					four(a, KDIRECT_OP_SEND, here);
					sent++;
				} else {
					usleep(100);
				}
		});
		std::thread receiver([&] {
			for (; !over; received++)
				four(b, KDIRECT_OP_RECV, there);
		});
		EXPECT_TRUE(wait_for([&] { return sent > 1 && received > 1; }));
		EXPECT_EQ(sh(std::string("kdirect channel del ") + what), 0);
		sender.join();
		receiver.join();
		added = added && std::string(what) != "r0";
		close_both();
	}
}

} // namespace
