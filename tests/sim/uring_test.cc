// SPDX-License-Identifier: GPL-2.0-only
// Commands of io_uring: each ends exactly once, to io_uring; none blocks who submits it, and
// none waits for what only the program can do.
#include <algorithm>
#include <cstring>
#include <set>

#include "mapped.h"
#include "uring.h"

using namespace sim;

namespace
{

constexpr uint64_t kib = 1 << 10;

UringSetup registered(const Memory &memory, bool polls = false)
{
	return {.polls = polls, .buffer = memory.at(), .buffer_len = memory.size()};
}

uint64_t in_workers(const Uring &ring)
{
	return static_cast<uint64_t>(std::count_if(ring.commands.begin(), ring.commands.end(),
						   [](const auto &c) { return c->in_worker; }));
}

/* By copy, pinned, over the ends of keys and pages, with each kind of memory. */
TEST(Uring, WhatIsWrittenIsRead)
{
	for (uint64_t seed = 0; seed < 20; seed++)
		for (bool polls : {false, true})
			for (int kind = 0; kind < 3; kind++) {
				Mapped p(polled(seed));
				Memory memory(p.w, 3 * mib);
				Uring ring(p.w, p.file, registered(memory, polls));
				uint64_t at = 0, skew = kind == 1 ? 0 : memory.at();
				std::vector<kdirect_desc> reads;
				std::string all;

				ASSERT_EQ(p.file.set_buffer(5, memory.data(), memory.size()), 0);
				for (uint32_t len : {1u, 100u, 4096u, 16384u, 16385u, 1000000u}) {
					std::string text = pattern(seed + len, len);
					kdirect_desc write =
						write_desc(skew + at + 7, len, 2 * mib - 3 + at);

					if (kind == 1) {
						write.flags = KDIRECT_DESC_FIXED;
						write.buffer = 5;
					}
					memory.put(at + 7, text);
					ring.submit(write, kind == 2);
					write.opcode = KDIRECT_OP_READ;
					reads.push_back(write);
					at += len;
					all += text;
				}
				ASSERT_TRUE(ring.finish());
				for (const auto &c : ring.commands)
					EXPECT_EQ(c->result.result,
						  static_cast<int>(c->desc.length));
				EXPECT_TRUE(p.bytes().substr(2 * mib - 3, all.size()) == all);
				std::memset(memory.data(), 0, memory.size());
				for (const kdirect_desc &read : reads)
					ring.submit(read, kind == 2);
				ASSERT_TRUE(ring.finish());
				EXPECT_TRUE(memory.text(7, all.size()) == all);
				/* the first use of a file is a worker's */
				EXPECT_TRUE(ring.commands[0]->in_worker);
			}
}

TEST(Uring, Atomics)
{
	Mapped p(1);
	Uring ring(p.w, p.file), narrow(p.w, p.file, {.wide = false});

	for (uint64_t i = 0; i < 5; i++) {
		kd_uring_end end = ring.run(add_desc(8, 3));
		EXPECT_EQ(end.result, 8);
		EXPECT_EQ(end.extra, 3 * i);
	}
	kd_uring_end end = ring.run(swap_desc(8, 15, UINT64_MAX));
	EXPECT_EQ(end.extra, 15u);
	EXPECT_EQ(ring.run(add_desc(8, 2)).extra, UINT64_MAX);
	EXPECT_EQ(ring.run(add_desc(8, 0)).extra, 1u);
	/* nobody would hear of the old number */
	EXPECT_EQ(narrow.run(add_desc(8, 1)).result, -KD_EOPNOTSUPP);
	EXPECT_EQ(narrow.run(swap_desc(8, 1, 1)).result, -KD_EOPNOTSUPP);
	EXPECT_EQ(ring.run(add_desc(8, 0)).extra, 1u);
	/* many at once: each sees a number of its own */
	std::set<uint64_t> seen;
	for (int i = 0; i < 100; i++)
		ring.submit(add_desc(16, 1));
	ASSERT_TRUE(ring.finish());
	for (const auto &c : ring.commands)
		if (c->desc.remote == 16)
			seen.insert(c->result.extra);
	EXPECT_EQ(seen.size(), 100u);
}

/* Everything that can be wrong, each beside what is right. */
TEST(Uring, AnInvalidOneFailsAlone)
{
	Mapped p(polled(3));
	Memory memory(p.w, mib);
	Uring ring(p.w, p.file, registered(memory));
	struct {
		int err;
		bool reg;
		std::function<void(kdirect_desc &)> spoil;
	} cases[] = {
		{KD_EINVAL, false, [](auto &d) { d.opcode = 0; }},
		{KD_EINVAL, false, [](auto &d) { d.opcode = 11; }},
		{KD_EOPNOTSUPP, false, [](auto &d) { d.opcode = KDIRECT_OP_SEND; }},
		{KD_EINVAL, false, [](auto &d) { d.flags = 8; }},
		{KD_EOPNOTSUPP, false, [](auto &d) { d.flags = KDIRECT_DESC_FENCE; }},
		{KD_EINVAL, false, [](auto &d) { d.buffer = 1; }},
		{KD_EINVAL, false, [](auto &d) { d.operand = 1; }},
		{KD_EINVAL, false, [](auto &d) { d.reserved = 1; }},
		{KD_EINVAL, false, [](auto &d) { d.user_data = 1; }},
		{KD_EINVAL, true, [](auto &d) { d.flags = KDIRECT_DESC_FIXED; }},
		{KD_EINVAL, true, [](auto &d) { d = add_desc(8, 1); }},
		{KD_EINVAL, true, [](auto &d) { d = swap_desc(8, 1, 1); }},
		{KD_EINVAL, false, [](auto &d) { d.length = UINT32_MAX; }},
		{KD_ERANGE, false, [&](auto &d) { d.remote = p.size - 99; }},
		{KD_ERANGE, true, [](auto &d) { d.remote = UINT64_MAX; }},
		{KD_ENOENT, false, [](auto &d) { d.flags = KDIRECT_DESC_FIXED; }},
		{KD_ENOENT, false,
		 [](auto &d) {
			 d.flags = KDIRECT_DESC_FIXED;
			 d.buffer = UINT16_MAX;
		 }},
		{KD_EFAULT, false, [](auto &d) { d.addr = 0; }},
		{KD_EFAULT, false, [](auto &d) { d.addr = UINT64_MAX - 50; }},
		{KD_EFAULT, true, [](auto &d) { d.addr--; }},
		{KD_EFAULT, true, [](auto &d) { d.addr += mib - 99; }},
		{KD_EFAULT, true, [](auto &d) { d.addr = UINT64_MAX - 50; }},
	};
	for (bool write : {false, true})
		for (const auto &c : cases) {
			kdirect_desc good = write ? write_desc(memory.at(), 100, 0)
						  : read_desc(memory.at(), 100, 0);
			kdirect_desc bad = good;

			c.spoil(bad);
			Command &before = ring.submit(good), &spoilt = ring.submit(bad, c.reg),
				&after = ring.submit(good, true);
			ASSERT_TRUE(ring.finish());
			EXPECT_EQ(spoilt.result.result, -c.err) << (&c - cases) << write;
			EXPECT_EQ(spoilt.result.extra, 0u);
			EXPECT_EQ(before.result.result, 100);
			EXPECT_EQ(after.result.result, 100);
		}
	EXPECT_EQ(ring.run(read_desc(memory.at(), 0, p.size)).result, 0);
	EXPECT_EQ(p.w.state("c0"), KDIRECT_STATE_LIVE);
}

TEST(Uring, PollingNeedsAPollQueue)
{
	Mapped p(1);
	Memory memory(p.w, 4096);
	Uring ring(p.w, p.file, {.polls = true});

	EXPECT_EQ(ring.run(read_desc(memory.at(), 100, 0)).result, -KD_EOPNOTSUPP);
}

/* Without interrupt queues completions bring events although nobody waits. */
TEST(Uring, EventsOfPollQueues)
{
	for (uint64_t seed = 0; seed < 20; seed++) {
		Mapped p({.world = {.seed = seed}, .channel = [](kd_channel_params &c) {
				  c.queues = 0;
				  c.poll_queues = 2;
			  }});
		Memory memory(p.w, mib);
		Uring ring(p.w, p.file);

		for (uint32_t i = 0; i < 40; i++)
			ring.submit(write_desc(memory.at(i * kib), 1 + i * 900, i * 64 * kib));
		ASSERT_TRUE(ring.finish(1 * sec));
		for (const auto &c : ring.commands)
			EXPECT_EQ(c->result.result, static_cast<int>(c->desc.length));
	}
}

/* More than slots, more than requests: what has no room waits in workers. */
TEST(Uring, MoreThanThereIsRoomFor)
{
	for (uint64_t seed = 0; seed < 5; seed++)
		for (bool polls : {false, true}) {
			Mapped p(polled(seed));
			Memory memory(p.w, mib);
			Uring ring(p.w, p.file, registered(memory, polls));

			for (uint32_t i = 0; i < KDIRECT_DESC_ENTRIES + 100; i++)
				ring.submit(i % 2 ? add_desc(0, 1)
						  : read_desc(memory.at(i * kib), kib, i * kib),
					    i % 4 == 0);
			EXPECT_GT(in_workers(ring), 100u);
			ASSERT_TRUE(ring.finish());
			std::set<uint64_t> seen;
			for (const auto &c : ring.commands) {
				EXPECT_EQ(c->result.result, static_cast<int>(c->desc.length));
				if (c->desc.opcode == KDIRECT_OP_FETCH_ADD)
					seen.insert(c->result.extra);
			}
			EXPECT_EQ(seen.size(), (KDIRECT_DESC_ENTRIES + 100u) / 2);
		}
}

/* A program that never reaps what it has submitted by ioctl, or by a ring. */
TEST(Uring, CompletionsOfOthersAreNotInTheWay)
{
	Mapped p(4);
	constexpr uint32_t count = KDIRECT_DESC_ENTRIES;
	Memory in(p.w, count * sizeof(kdirect_desc)), out(p.w, count * sizeof(kdirect_completion));
	Uring ring(p.w, p.file);
	kdirect_desc add = add_desc(0, 1, 77);

	for (uint32_t i = 0; i < count; i++)
		std::memcpy(in.data() + i * sizeof(add), &add, sizeof(add));
	kdirect_submit batch{.descs = in.at(), .nr_descs = count};
	EXPECT_EQ(p.file.submit(batch), 0);
	EXPECT_EQ(batch.submitted, count);
	std::set<uint64_t> seen;
	for (uint32_t i = 0; i < 300; i++)
		ring.submit(add_desc(0, 1));
	ASSERT_TRUE(ring.finish());
	for (const auto &c : ring.commands)
		seen.insert(c->result.extra);
	EXPECT_EQ(seen.size(), 300u);
	/* and none of the commands' came there */
	kdirect_submit reap{.completions = out.at(),
			    .nr_completions = count,
			    .min_completions = count,
			    .timeout_ns = 1 * sec};
	EXPECT_EQ(p.file.submit(reap), 0);
	EXPECT_EQ(reap.completed, count);
	for (uint32_t i = 0; i < count; i++) {
		kdirect_completion c;

		std::memcpy(&c, out.data() + i * sizeof(c), sizeof(c));
		EXPECT_EQ(c.user_data, 77u);
		EXPECT_TRUE(seen.insert(c.old).second);
	}
	reap.min_completions = 0;
	EXPECT_EQ(p.file.submit(reap), 0);
	EXPECT_EQ(reap.completed, 0u);
}

/* Another submitter has the file, and waits: no command's submitter does. */
TEST(Uring, AnotherSubmitterWaits)
{
	Mapped p(5);
	Memory memory(p.w, 8 * mib);
	Uring ring(p.w, p.file), other(p.w, p.file);
	kdirect_desc read = read_desc(memory.at(mib), 5 * mib, 0);

	ring.run(read_desc(memory.at(), 1, 0));
	p.w.set_stuck(p.b, true);
	std::vector<Command *> large;
	for (int i = 0; i < 20; i++)
		large.push_back(&ring.submit(read));
	p.w.run_for(1 * ms);
	Command &small = other.submit(read_desc(memory.at(), 1, 0));
	EXPECT_TRUE(small.in_worker);
	p.w.run_for(1 * ms);
	EXPECT_FALSE(small.done);
	/* what waits can be cancelled, what is posted cannot */
	for (Command *command : large)
		ring.cancel(*command);
	other.cancel(small);
	p.w.run_for(1 * ms);
	EXPECT_EQ(small.result.result, -KD_EINTR);
	EXPECT_GT(std::count_if(large.begin(), large.end(),
				[](const Command *c) { return c->result.result == -KD_EINTR; }),
		  0);
	p.w.set_stuck(p.b, false);
	ASSERT_TRUE(ring.finish());
	ASSERT_TRUE(other.finish());
	for (Command *command : large)
		EXPECT_TRUE(command->result.result == -KD_EINTR ||
			    command->result.result == static_cast<int>(5 * mib));
}

/* No memory, or no room, at any point: nothing of it is lost or done twice. */
TEST(Uring, EachCallFails)
{
	for (bool large : {false, true})
		for (uint64_t nth = 1;; nth++) {
			Mapped p(nth);
			Memory memory(p.w, mib);
			Uring ring(p.w, p.file, registered(memory));
			uint32_t len = large ? 100000 : 1000;

			p.w.fail_nth_any(nth);
			for (int kind = 0; kind < 3; kind++) {
				Command &c = ring.submit(kind ? write_desc(memory.at(), len, 0)
							      : add_desc(8, 1),
							 kind == 2);
				ASSERT_TRUE(ring.finish());
				EXPECT_TRUE(c.result.result == static_cast<int>(c.desc.length) ||
					    c.result.result == -KD_ENOMEM ||
					    c.result.result == -KD_EIO)
					<< c.result.result;
			}
			if (!p.w.fault_fired())
				break;
			EXPECT_LT(nth, 200u);
		}
}

const std::set<int> endings = {KD_EIO, KD_ESTALE, KD_ENODEV, KD_EPIPE};

/* The mapping, the export, the channel, or the device ends under way. */
TEST(Uring, TheEndUnderWay)
{
	std::set<int> seen;

	for (uint64_t seed = 0; seed < 60; seed++) {
		Mapped p(polled(seed));
		Memory memory(p.w, 2 * mib);
		Uring ring(p.w, p.file, registered(memory, seed % 3 == 0));
		Task killer = p.w.spawn("killer", [&] {
			p.w.run_for((seed % 7) * 30 * us);
			if (seed % 4 == 0)
				del_map(p.w, "m");
			else if (seed % 4 == 1)
				del_export(p.w, "mem");
			else if (seed % 4 == 2)
				p.w.del("c0");
			else
				p.w.remove_device(p.a);
		});

		for (uint32_t i = 0; i < 150; i++)
			ring.submit(i % 3 ? write_desc(memory.at(i * kib), 1 + i * 1000, i * kib)
					  : add_desc(8 * i, 1),
				    i % 3 == 2);
		ASSERT_TRUE(ring.finish());
		ASSERT_TRUE(p.w.finish({killer}));
		for (const auto &c : ring.commands) {
			if (c->result.result == static_cast<int>(c->desc.length))
				continue;
			EXPECT_TRUE(endings.contains(-c->result.result)) << c->result.result;
			seen.insert(-c->result.result);
		}
	}
	EXPECT_EQ(seen, endings);
}

/* A peer that breaks the connection: the status is told where there is room for it. */
TEST(Uring, TheStatusIsTold)
{
	Mapped p(6);
	Uring ring(p.w, p.file);

	ring.run(add_desc(0, 1));
	p.w.fail_nth(Op::WrError, 1);
	kd_uring_end end = ring.run(add_desc(0, 1));
	EXPECT_EQ(end.result, -KD_EIO);
	EXPECT_NE(end.extra, 0u);
}

/* The file is closed, or the program killed: what is under way ends by itself. */
TEST(Uring, ClosedUnderWay)
{
	for (uint64_t seed = 0; seed < 60; seed++) {
		Mapped p(polled(seed));
		Memory memory(p.w, 4 * mib);
		Uring ring(p.w, p.file, registered(memory, seed % 2));

		for (uint32_t i = 0; i < 100; i++)
			ring.submit(read_desc(memory.at(i), 1 + (i % 10) * 300000, i), i % 2);
		for (const auto &c : ring.commands)
			if (seed % 3 == 0 && c->worker)
				p.w.signal(c->worker, true);
		p.file.close();
		ring.close();
		ASSERT_TRUE(ring.finish());
		for (const auto &c : ring.commands)
			EXPECT_TRUE(c->result.result == -KD_EINTR ||
				    c->result.result == static_cast<int>(c->desc.length));
		EXPECT_EQ(p.w.pages.size(), 0u);
		EXPECT_EQ(del_map(p.w, "m"), 0);
		EXPECT_TRUE(run_until_unmapped(p.w, "m"));
	}
}

/* Threads with rings of their own share a file. */
TEST(Uring, ThreadsShareAFile)
{
	for (uint64_t seed = 0; seed < 30; seed++) {
		Mapped p(polled(seed));
		Memory memory(p.w, mib);
		std::vector<Task> tasks;
		std::set<uint64_t> seen;

		for (uint32_t t = 0; t < 4; t++)
			tasks.push_back(p.w.spawn("thread", [&, t] {
				Uring ring(p.w, p.file, registered(memory, t % 2));

				for (uint32_t i = 0; i < 60; i++)
					ring.submit(add_desc(0, 1));
				EXPECT_TRUE(ring.finish());
				for (const auto &c : ring.commands)
					seen.insert(c->result.extra);
			}));
		ASSERT_TRUE(p.w.finish(tasks));
		EXPECT_EQ(seen.size(), 240u);
	}
}

} // namespace
