// SPDX-License-Identifier: GPL-2.0-only
// Descriptors and fixed buffers: each descriptor ends exactly once and alone, none touches
// what it should not, and memory stays pinned exactly as long as it is used.
#include <algorithm>
#include <cstring>
#include <set>

#include "mapped.h"

using namespace sim;

namespace
{

constexpr uint64_t kib = 1 << 10;

using Completions = std::vector<kdirect_completion>;

/* Results by user_data. */
std::map<uint64_t, int> results(const Completions &list)
{
	std::map<uint64_t, int> out;

	for (const kdirect_completion &c : list)
		EXPECT_TRUE(out.emplace(c.user_data, c.result).second) << c.user_data << " twice";
	return out;
}

TEST(Desc, WhatIsWrittenIsRead)
{
	for (uint64_t seed = 0; seed < 20; seed++)
		for (bool poll : {false, true}) {
			Mapped p(polled(seed));
			Memory memory(p.w, 3 * mib);
			uint32_t flags = poll ? KDIRECT_SUBMIT_POLL : 0;
			std::vector<kdirect_desc> writes, reads;
			std::string all;
			uint64_t at = 0, number = 0;

			/* by copy, pinned, and over the ends of keys and pages */
			for (uint32_t len : {1u, 100u, 4096u, 16384u, 16385u, 70000u, 1000000u}) {
				std::string text = pattern(seed + number, len);

				memory.put(at + 7, text);
				writes.push_back(write_desc(memory.at(at + 7), len,
							    2 * mib - 3 + at, number));
				reads.push_back(read_desc(memory.at(at + 7), len, 2 * mib - 3 + at,
							  number));
				number++;
				at += len;
				all += text;
			}
			for (const kdirect_completion &c : p.file.run(writes, flags)) {
				EXPECT_EQ(c.result, static_cast<int>(writes[c.user_data].length));
				EXPECT_EQ(c.index, c.user_data);
				EXPECT_EQ(c.opcode, KDIRECT_OP_WRITE);
				EXPECT_EQ(c.status, 0);
			}
			EXPECT_TRUE(p.bytes().substr(2 * mib - 3, all.size()) == all);
			std::memset(memory.data(), 0, memory.size());
			for (const kdirect_completion &c : p.file.run(reads, flags))
				EXPECT_EQ(c.result, static_cast<int>(reads[c.user_data].length));
			EXPECT_TRUE(memory.text(7, all.size()) == all);
		}
}

TEST(Desc, FixedBuffers)
{
	for (uint64_t seed = 0; seed < 20; seed++) {
		Mapped p(polled(seed));
		Memory memory(p.w, 3 * mib);
		std::string text = pattern(seed, 1500000);
		uint32_t flags = seed % 2 ? KDIRECT_SUBMIT_POLL : 0;

		memory.put(13, text);
		ASSERT_EQ(p.file.set_buffer(9, memory.data() + 3, 2 * mib), 0);
		EXPECT_EQ(stats_of(p.w).fixed_buffers, 1u);
		EXPECT_EQ(stats_of(p.w).fixed_bytes, 2 * mib);
		EXPECT_EQ(p.w.node().memlock, 2 * mib + page_size);
		auto done = p.file.run({fixed_desc(true, 9, 10, 1500000, 1 * mib + 5, 1)}, flags);
		EXPECT_EQ(done[0].result, 1500000);
		EXPECT_TRUE(p.bytes().substr(1 * mib + 5, text.size()) == text);
		std::memset(memory.data(), 0, memory.size());
		done = p.file.run({fixed_desc(false, 9, 0, 700000, 1 * mib + 5, 1),
				   fixed_desc(false, 9, 700000, 800000, 1 * mib + 700005, 2)},
				  flags);
		EXPECT_EQ(done[0].result + done[1].result, 1500000);
		EXPECT_TRUE(memory.text(3, text.size()) == text);
		EXPECT_EQ(p.file.del_buffer(9), 0);
		EXPECT_EQ(p.file.del_buffer(9), KD_ENOENT);
		EXPECT_EQ(p.w.node().memlock, 0u);
		EXPECT_EQ(stats_of(p.w).fixed_buffers, 0u);
		EXPECT_EQ(stats_of(p.w).fixed_bytes, 0u);
	}
}

TEST(Desc, Atomics)
{
	for (uint64_t seed = 0; seed < 10; seed++) {
		Mapped p(seed);
		auto number = [&](uint64_t at) {
			uint64_t value;

			std::memcpy(&value, p.memory->memory.data() + at, sizeof(value));
			return value;
		};
		EXPECT_EQ(p.file.info().flags, KDIRECT_MAP_ATOMICS);
		auto one = p.file.run({add_desc(16, 5)});
		EXPECT_EQ(one[0].result, 8);
		EXPECT_EQ(one[0].old, 0u);
		EXPECT_EQ(one[0].opcode, KDIRECT_OP_FETCH_ADD);
		one = p.file.run({add_desc(16, UINT64_MAX)});
		EXPECT_EQ(one[0].old, 5u);
		EXPECT_EQ(number(16), 4u);
		one = p.file.run({swap_desc(16, 3, 77)});
		EXPECT_EQ(one[0].old, 4u);
		EXPECT_EQ(number(16), 4u);
		one = p.file.run({swap_desc(16, 4, UINT64_MAX)});
		EXPECT_EQ(one[0].old, 4u);
		EXPECT_EQ(number(16), UINT64_MAX);
		/* many at once: each sees a value of its own */
		std::vector<kdirect_desc> many(200, add_desc(2 * mib, 3));
		std::set<uint64_t> seen;
		for (const kdirect_completion &c : p.file.run(many)) {
			EXPECT_EQ(c.result, 8);
			EXPECT_EQ(c.old % 3, 0u);
			seen.insert(c.old);
		}
		EXPECT_EQ(seen.size(), 200u);
		EXPECT_EQ(number(2 * mib), 600u);
		EXPECT_EQ(stats_of(p.w).map_atomics, 204u);
	}
}

TEST(Desc, NoAtomicsWhereADeviceHasNone)
{
	for (bool near : {true, false}) {
		PairOptions options;

		options.device.atomics = near;
		Mapped p(options);
		EXPECT_EQ(p.file.info().flags & KDIRECT_MAP_ATOMICS,
			  near ? uint32_t{KDIRECT_MAP_ATOMICS} : 0u);
		EXPECT_EQ(p.file.run({add_desc(0, 1)})[0].result, near ? 8 : -KD_EOPNOTSUPP);
		EXPECT_EQ(p.w.state("c0"), KDIRECT_STATE_LIVE);
	}
}

/* Everything that can be wrong, each in the middle of what is right. */
TEST(Desc, AnInvalidOneFailsAlone)
{
	Mapped p(polled(3));
	Memory memory(p.w, mib);
	uint64_t addr = memory.at();

	ASSERT_EQ(p.file.set_buffer(2, memory.data(), 64 * kib), 0);
	struct Case {
		int err;
		std::function<void(kdirect_desc &)> spoil;
	};
	const kdirect_desc read = read_desc(addr, 100, 0), fixed = fixed_desc(false, 2, 0, 100, 0),
			   add = add_desc(8, 1), swap = swap_desc(8, 0, 1);
	struct {
		const kdirect_desc *good;
		std::vector<Case> cases;
	} table[] = {
		{&read,
		 {{KD_EINVAL, [](auto &d) { d.opcode = 0; }},
		  {KD_EINVAL, [](auto &d) { d.opcode = 11; }},
		  {KD_EOPNOTSUPP, [](auto &d) { d.opcode = KDIRECT_OP_SEND; }},
		  {KD_EOPNOTSUPP, [](auto &d) { d.opcode = KDIRECT_OP_LOCAL_INV; }},
		  {KD_EINVAL, [](auto &d) { d.opcode = 255; }},
		  {KD_EOPNOTSUPP, [](auto &d) { d.flags = KDIRECT_DESC_FENCE; }},
		  {KD_EOPNOTSUPP, [](auto &d) { d.flags = KDIRECT_DESC_SOLICITED; }},
		  {KD_EINVAL, [](auto &d) { d.flags = 0x80; }},
		  {KD_EINVAL, [](auto &d) { d.buffer = 1; }},
		  {KD_EINVAL, [](auto &d) { d.operand = 1; }},
		  {KD_EINVAL, [](auto &d) { d.compare = 1; }},
		  {KD_EINVAL, [](auto &d) { d.rkey = 1; }},
		  {KD_EINVAL, [](auto &d) { d.imm = 1; }},
		  {KD_EINVAL, [](auto &d) { d.reserved = 1ULL << 63; }},
		  {KD_EINVAL, [](auto &d) { d.length = KDIRECT_DESC_LENGTH_MAX + 1; }},
		  {KD_EINVAL, [](auto &d) { d.length = UINT32_MAX; }},
		  {KD_ERANGE, [&](auto &d) { d.remote = p.size - 99; }},
		  {KD_ERANGE, [&](auto &d) { d.remote = p.size + 1; }},
		  {KD_ERANGE, [](auto &d) { d.remote = UINT64_MAX; }},
		  {KD_ERANGE, [](auto &d) { d.remote = UINT64_MAX - 99; }},
		  {KD_ERANGE, [](auto &d) { d.length = KDIRECT_DESC_LENGTH_MAX; }},
		  {KD_EFAULT, [](auto &d) { d.addr = 0; }},
		  {KD_EFAULT, [](auto &d) { d.addr = UINT64_MAX - 50; }},
		  {KD_EFAULT, [&](auto &d) { d.addr = addr + mib - 99; }}}},
		{&fixed,
		 {{KD_ENOENT, [](auto &d) { d.buffer = 0; }},
		  {KD_ENOENT, [](auto &d) { d.buffer = KDIRECT_BUFFERS - 1; }},
		  {KD_ENOENT, [](auto &d) { d.buffer = KDIRECT_BUFFERS; }},
		  {KD_ENOENT, [](auto &d) { d.buffer = UINT16_MAX; }},
		  {KD_EFAULT, [](auto &d) { d.addr = 64 * kib - 99; }},
		  {KD_EFAULT, [](auto &d) { d.addr = 64 * kib + 1; }},
		  {KD_EFAULT, [](auto &d) { d.addr = UINT64_MAX; }},
		  {KD_EFAULT, [](auto &d) { d.addr = UINT64_MAX - 99; }}}},
		{&add,
		 {{KD_EINVAL, [](auto &d) { d.remote = 12; }},
		  {KD_EINVAL, [](auto &d) { d.length = 4; }},
		  {KD_EINVAL, [](auto &d) { d.length = 16; }},
		  {KD_EINVAL, [&](auto &d) { d.addr = addr; }},
		  {KD_EINVAL, [](auto &d) { d.compare = 1; }},
		  {KD_EINVAL, [](auto &d) { d.flags = KDIRECT_DESC_FIXED; }},
		  {KD_ERANGE, [&](auto &d) { d.remote = (p.size | 7) + 1; }},
		  {KD_ERANGE, [&](auto &d) { d.remote = p.size & ~uint64_t{7}; }},
		  {KD_ERANGE, [](auto &d) { d.remote = UINT64_MAX - 7; }}}},
		{&swap, {{KD_EINVAL, [](auto &d) { d.remote = 1; }}}},
	};

	std::vector<kdirect_desc> batch;
	std::map<uint64_t, int> expected;
	for (const auto &row : table)
		for (const Case &one : row.cases) {
			kdirect_desc good = *row.good, bad = *row.good;

			good.user_data = batch.size();
			expected[batch.size()] = static_cast<int>(good.length);
			batch.push_back(good);
			one.spoil(bad);
			bad.user_data = batch.size();
			expected[batch.size()] = -one.err;
			batch.push_back(bad);
		}
	auto done = p.file.run(batch);
	EXPECT_EQ(results(done), expected);
	uint64_t last = 0;
	for (const kdirect_completion &c : done) {
		EXPECT_EQ(c.index, c.user_data);
		EXPECT_EQ(c.old, c.result == 8 ? c.old : 0u);
		/* the invalid ones in order */
		if (c.result < 0) {
			EXPECT_GT(c.index, last);
			last = c.index;
		}
	}
	EXPECT_EQ(p.w.state("c0"), KDIRECT_STATE_LIVE);
	EXPECT_EQ(p.w.state("store.0"), KDIRECT_STATE_LIVE);
	p.file.close();
	EXPECT_EQ(p.w.node().memlock, 0u);
}

TEST(Desc, NothingIsMovedByALengthOfZero)
{
	Mapped p(1);

	EXPECT_EQ(p.file.run({read_desc(0, 0, 0)})[0].result, 0);
	EXPECT_EQ(p.file.run({write_desc(0, 0, p.size)})[0].result, 0);
	EXPECT_EQ(p.file.run({write_desc(0, 0, p.size + 1)})[0].result, -KD_ERANGE);
	EXPECT_EQ(stats_of(p.w).descs, 0u);
}

TEST(Desc, RightsAreThoseOfTheFileAndTheMapping)
{
	Mapped p(PairOptions{}, mib, true);
	Memory memory(p.w, 4096);

	EXPECT_EQ(p.file.info().flags & KDIRECT_MAP_READ_ONLY, uint32_t{KDIRECT_MAP_READ_ONLY});
	EXPECT_EQ(p.file.run({read_desc(memory.at(), 10, 0)})[0].result, 10);
	EXPECT_EQ(p.file.run({write_desc(memory.at(), 10, 0)})[0].result, -KD_EACCES);
	EXPECT_EQ(p.file.run({add_desc(0, 1)})[0].result, -KD_EACCES);
	EXPECT_EQ(p.file.run({swap_desc(0, 0, 1)})[0].result, -KD_EACCES);
}

TEST(Desc, TheCallsArgumentsAreChecked)
{
	Mapped p(1);
	Memory memory(p.w, 4096);
	const kdirect_submit good{.descs = memory.at(), .completions = memory.at()};
	auto with = [&](const std::function<void(kdirect_submit &)> &spoil) {
		kdirect_submit bad = good;

		spoil(bad);
		return p.file.submit(bad);
	};

	EXPECT_EQ(with([](auto &) {}), 0);
	EXPECT_EQ(with([](auto &b) { b.flags = 2; }), KD_EINVAL);
	EXPECT_EQ(with([](auto &b) { b.reserved[1] = 1; }), KD_EINVAL);
	EXPECT_EQ(with([](auto &b) { b.min_completions = 1; }), KD_EINVAL);
	EXPECT_EQ(with([](auto &b) {
			  b.nr_completions = b.min_completions = KDIRECT_DESC_ENTRIES + 1;
		  }),
		  KD_EINVAL);
	EXPECT_EQ(with([](auto &b) { b.flags = KDIRECT_SUBMIT_POLL; }), KD_EOPNOTSUPP);
	EXPECT_EQ(with([](auto &b) { b.descs = 4, b.nr_descs = 1; }), KD_EFAULT);
	EXPECT_EQ(with([](auto &b) { b.descs = UINT64_MAX, b.nr_descs = UINT32_MAX; }), KD_EFAULT);
	EXPECT_EQ(with([](auto &b) {
			  b.nr_completions = b.min_completions = 1;
			  b.timeout_ns = 5 * ms;
		  }),
		  KD_ETIMEDOUT);
	const kdirect_buffer buffer{.addr = memory.at(), .length = 4096};
	auto set = [&](const std::function<void(kdirect_buffer &)> &spoil) {
		kdirect_buffer bad = buffer;

		spoil(bad);
		return p.file.set_buffer(bad);
	};
	EXPECT_EQ(set([](auto &b) { b.index = KDIRECT_BUFFERS; }), KD_EINVAL);
	EXPECT_EQ(set([](auto &b) { b.length = 0; }), KD_EINVAL);
	EXPECT_EQ(set([](auto &b) { b.length = KDIRECT_BUFFER_MAX + 1; }), KD_EINVAL);
	EXPECT_EQ(set([](auto &b) { b.addr = UINT64_MAX - 4094; }), KD_EINVAL);
	EXPECT_EQ(set([](auto &b) { b.reserved[2] = 1; }), KD_EINVAL);
	EXPECT_EQ(set([](auto &b) { b.length = 4097; }), KD_EFAULT);
	EXPECT_EQ(p.file.del_buffer(KDIRECT_BUFFERS), KD_EINVAL);
	EXPECT_EQ(p.file.del_buffer(0), KD_ENOENT);
	p.w.node().memlock_limit = 0;
	EXPECT_EQ(p.file.set_buffer(buffer), KD_ENOMEM);
	EXPECT_EQ(p.w.node().memlock, 0u);
}

/* The arrays end in the middle. */
TEST(Desc, ArraysThatFault)
{
	Mapped p(2);
	Memory in(p.w, 4 * sizeof(kdirect_desc)), out(p.w, 20 * sizeof(kdirect_completion));
	kdirect_desc add = add_desc(0, 1);

	for (int i = 0; i < 4; i++)
		std::memcpy(in.data() + i * sizeof(add), &add, sizeof(add));
	kdirect_submit batch{.descs = in.at(sizeof(add)), .nr_descs = 9};
	EXPECT_EQ(p.file.submit(batch), 0);
	EXPECT_EQ(batch.submitted, 3u);
	EXPECT_EQ(batch.completed, 0u);
	p.w.run_for(10 * ms);
	/* what cannot be written is kept */
	kdirect_submit reap{.completions = 8, .nr_completions = 9, .min_completions = 3};
	EXPECT_EQ(p.file.submit(reap), KD_EFAULT);
	reap.completions = out.at();
	reap.nr_completions = 2;
	reap.min_completions = 2;
	EXPECT_EQ(p.file.submit(reap), 0);
	EXPECT_EQ(reap.completed, 2u);
	reap.nr_completions = 9;
	reap.min_completions = 0;
	EXPECT_EQ(p.file.submit(reap), 0);
	EXPECT_EQ(reap.completed, 1u);
}

TEST(Desc, EntriesAreTheLimit)
{
	Mapped p(4);
	constexpr uint32_t count = KDIRECT_DESC_ENTRIES + 44;
	Memory in(p.w, count * sizeof(kdirect_desc)), out(p.w, count * sizeof(kdirect_completion));

	for (uint32_t i = 0; i < count; i++) {
		kdirect_desc add = add_desc(0, 1, i);

		std::memcpy(in.data() + i * sizeof(add), &add, sizeof(add));
	}
	kdirect_submit batch{.descs = in.at(), .nr_descs = count};
	EXPECT_EQ(p.file.submit(batch), 0);
	EXPECT_EQ(batch.submitted, uint32_t{KDIRECT_DESC_ENTRIES});
	p.w.run_for(50 * ms);
	batch.descs = in.at(KDIRECT_DESC_ENTRIES * sizeof(kdirect_desc));
	batch.nr_descs = 44;
	EXPECT_EQ(p.file.submit(batch), KD_EAGAIN);
	/* some are reaped: so many fit */
	batch.completions = out.at();
	batch.nr_completions = 40;
	EXPECT_EQ(p.file.submit(batch), 0);
	EXPECT_EQ(batch.submitted, 0u);
	EXPECT_EQ(batch.completed, 40u);
	batch.nr_completions = 0;
	EXPECT_EQ(p.file.submit(batch), 0);
	EXPECT_EQ(batch.submitted, 40u);
	batch.nr_descs = 0;
	batch.completions = out.at(40 * sizeof(kdirect_completion));
	batch.nr_completions = batch.min_completions = KDIRECT_DESC_ENTRIES;
	EXPECT_EQ(p.file.submit(batch), 0);
	EXPECT_EQ(batch.completed, uint32_t{KDIRECT_DESC_ENTRIES});
	std::set<uint64_t> old;
	for (uint32_t i = 0; i < KDIRECT_DESC_ENTRIES + 40; i++) {
		kdirect_completion c;

		std::memcpy(&c, out.data() + i * sizeof(c), sizeof(c));
		EXPECT_EQ(c.result, 8);
		old.insert(c.old);
	}
	EXPECT_EQ(old.size(), KDIRECT_DESC_ENTRIES + 40u);
}

TEST(Desc, OneDoorbellForMany)
{
	/* slots for all of them: who waits for one posts what he has */
	Mapped p({.world = {.seed = 1}, .channel = [](kd_channel_params &c) { c.depth = 128; }});
	Memory memory(p.w, 64 * kib);

	ASSERT_EQ(p.file.set_buffer(0, memory.data(), 64 * kib), 0);
	std::vector<kdirect_desc> batch;
	for (uint32_t i = 0; i < 64; i++)
		batch.push_back(fixed_desc(i % 2, 0, i * kib, kib, i * kib, i));
	(void)p.file.run(batch);
	struct kd_channel_stats stats = stats_of(p.w);
	EXPECT_EQ(stats.descs, 64u);
	EXPECT_GE(stats.desc_posts, 4u);
	EXPECT_LE(stats.desc_posts, 6u) << "and where a chain's scatter-gather entries end";
}

TEST(Desc, ATimeoutEndsTheWaitAndLosesNothing)
{
	Mapped p(5);
	Memory memory(p.w, 4096), out(p.w, 4096);
	kdirect_desc read = read_desc(memory.at(1024), 512, 0, 42);

	std::memcpy(memory.data(), &read, sizeof(read));
	p.w.set_stuck(p.b, true);
	kdirect_submit batch{.descs = memory.at(),
			     .completions = out.at(),
			     .nr_descs = 1,
			     .nr_completions = 1,
			     .min_completions = 1,
			     .timeout_ns = 20 * ms};
	uint64_t start = p.w.now();
	EXPECT_EQ(p.file.submit(batch), 0);
	EXPECT_EQ(batch.submitted, 1u);
	EXPECT_EQ(batch.completed, 0u);
	EXPECT_GE(p.w.now() - start, 20 * ms);
	batch.nr_descs = 0;
	EXPECT_EQ(p.file.submit(batch), KD_ETIMEDOUT);
	p.w.set_stuck(p.b, false);
	batch.timeout_ns = 0;
	EXPECT_EQ(p.file.submit(batch), 0);
	EXPECT_EQ(batch.completed, 1u);
	kdirect_completion c;
	std::memcpy(&c, out.data(), sizeof(c));
	EXPECT_EQ(c.user_data, 42u);
	EXPECT_EQ(c.result, 512);
}

TEST(Desc, ASignalEndsTheWait)
{
	for (bool fatal : {false, true}) {
		Mapped p(6);
		Memory out(p.w, 4096);
		kdirect_submit batch{
			.completions = out.at(), .nr_completions = 1, .min_completions = 1};
		int err = 0;
		Task task = p.w.spawn("reaper", [&] { err = p.file.submit(batch); });

		p.w.run_for(1 * ms);
		EXPECT_TRUE(p.w.running(task));
		p.w.signal(task, fatal);
		EXPECT_TRUE(p.w.finish({task}));
		EXPECT_EQ(err, KD_EINTR);
	}
}

/* Threads of one program submit and reap; each descriptor ends once. */
TEST(Desc, ThreadsShareAFile)
{
	for (uint64_t seed = 0; seed < 30; seed++) {
		Mapped p(polled(seed));
		constexpr uint32_t threads = 4, each = 100;
		std::vector<Task> tasks;
		std::map<uint64_t, int> seen;

		for (uint32_t t = 0; t < threads; t++)
			tasks.push_back(p.w.spawn("thread", [&, t] {
				Memory in(p.w, each * sizeof(kdirect_desc)), out(p.w, 4096);
				uint32_t begun = 0;

				for (uint32_t i = 0; i < each; i++) {
					kdirect_desc add = add_desc(8 * t, 1, t * each + i);
					std::memcpy(in.data() + i * sizeof(add), &add, sizeof(add));
				}
				while (begun < each || seen.size() < threads * each) {
					kdirect_submit batch{
						.descs = in.at(begun * sizeof(kdirect_desc)),
						.completions = out.at(),
						.nr_descs = std::min(each - begun, 7u),
						.nr_completions = 10,
						.min_completions = 1,
						.flags = t % 2 ? KDIRECT_SUBMIT_POLL : 0,
						.timeout_ns = 1 * ms};
					int err = p.file.submit(batch);
					ASSERT_TRUE(!err || err == KD_ETIMEDOUT) << err;
					if (err)
						continue;
					begun += batch.submitted;
					for (uint32_t i = 0; i < batch.completed; i++) {
						kdirect_completion c;
						std::memcpy(&c, out.data() + i * sizeof(c),
							    sizeof(c));
						ASSERT_EQ(c.result, 8);
						seen[c.user_data]++;
					}
				}
			}));
		ASSERT_TRUE(p.w.finish(tasks));
		EXPECT_EQ(seen.size(), threads * each);
		for (auto [data, times] : seen)
			EXPECT_EQ(times, 1) << data;
	}
}

enum class End { Close, Replace, DelBuffer, DelMap, DelExport, DelChannel, Device, Link, Stop };

/* Something ends with everything under way: no completion is lost, no buffer goes early. */
TEST(Desc, EndsUnderLoad)
{
	for (End end : {End::Close, End::Replace, End::DelBuffer, End::DelMap, End::DelExport,
			End::DelChannel, End::Device, End::Link, End::Stop})
		for (uint64_t seed = 0; seed < 25; seed++) {
			PairOptions options = polled(seed);
			options.world.uneven = seed % 3 == 0;
			Mapped p(options);
			constexpr uint32_t count = 120;
			Memory in(p.w, count * sizeof(kdirect_desc)),
				out(p.w, count * sizeof(kdirect_completion));
			auto buffer = std::make_unique<Memory>(p.w, mib),
			     other = std::make_unique<Memory>(p.w, mib);
			Rng rng(seed);
			SCOPED_TRACE(testing::Message() << "end " << int(end) << " seed " << seed);

			ASSERT_EQ(p.file.set_buffer(1, buffer->data(), mib), 0);
			for (uint32_t i = 0; i < count; i++) {
				auto len = static_cast<uint32_t>(rng.range(1, 30000));
				uint64_t at = rng.below(2) * 2 * mib + rng.below(mib);
				kdirect_desc desc =
					i % 4 == 0   ? add_desc(at & ~7ULL, 1, i)
					: i % 4 == 1 ? read_desc(other->at(), len, at, i)
						     : fixed_desc(i % 4 == 2, 1, 100, len, at, i);
				std::memcpy(in.data() + i * sizeof(desc), &desc, sizeof(desc));
			}
			kdirect_submit batch{.descs = in.at(),
					     .completions = out.at(),
					     .nr_descs = count,
					     .flags = seed % 2 ? KDIRECT_SUBMIT_POLL : 0};
			Task task = p.w.spawn("submitter", [&] {
				ASSERT_EQ(p.file.submit(batch), 0);
				EXPECT_EQ(batch.submitted, count);
			});
			if (end == End::Close)
				ASSERT_TRUE(p.w.finish({task}));
			else
				p.w.run_for(rng.below(300 * us));
			switch (end) {
			case End::Close: p.file.close(); break;
			case End::Replace:
				EXPECT_EQ(p.file.set_buffer(1, other->data(), mib), 0);
				break;
			case End::DelBuffer: EXPECT_EQ(p.file.del_buffer(1), 0); break;
			case End::DelMap: EXPECT_EQ(del_map(p.w, "m"), 0); break;
			case End::DelExport: EXPECT_EQ(del_export(p.w, "mem"), 0); break;
			case End::DelChannel: p.w.del("c0"); break;
			case End::Device: p.w.remove_device(p.a); break;
			case End::Link: p.w.set_link(p.b, false); break;
			case End::Stop:
				p.w.set_stuck(p.a, true);
				p.w.del("c0");
				break;
			}
			ASSERT_TRUE(p.w.finish({task}));
			if (end == End::Close) {
				/* the memory is the device's until then */
				EXPECT_TRUE(p.w.run_until(
					[&] { return !p.w.fixed.size() && !p.w.pages.size(); }));
				continue;
			}
			std::map<uint64_t, int> seen;
			while (seen.size() < count) {
				batch.nr_descs = 0;
				batch.nr_completions = count;
				batch.min_completions = 1;
				ASSERT_EQ(p.file.submit(batch), 0);
				ASSERT_NE(batch.completed, 0u);
				for (uint32_t i = 0; i < batch.completed; i++) {
					kdirect_completion c;
					std::memcpy(&c, out.data() + i * sizeof(c), sizeof(c));
					EXPECT_TRUE(seen.emplace(c.user_data, c.result).second);
					if (end == End::Replace) {
						EXPECT_GT(c.result, 0);
					} else if (c.result < 0) {
						static const std::set<int> known = {
							-KD_ENOENT, -KD_ENODEV, -KD_ESTALE,
							-KD_EPIPE, -KD_EIO};
						EXPECT_TRUE(known.contains(c.result)) << c.result;
						EXPECT_EQ(c.status == 0, c.result != -KD_EIO);
					}
				}
			}
			/* nothing is under way, and nothing comes: it says why */
			batch.timeout_ns =
				end == End::Replace || end == End::DelBuffer ? 1 * ms : 0;
			int err = p.file.submit(batch);
			EXPECT_TRUE(err == (batch.timeout_ns ? KD_ETIMEDOUT : err) && err) << err;
			if (end == End::Device || end == End::DelChannel) {
				EXPECT_EQ(p.w.node().memlock, mib) << "until it is closed";
			}
			p.file.close();
			EXPECT_TRUE(p.w.run_until([&] { return p.w.node().memlock == 0; }));
			EXPECT_EQ(p.w.fixed.size(), 0u);
		}
}

/* Who waits for what cannot come any more hears of it. */
TEST(Desc, AReaperHearsOfTheEnd)
{
	for (bool export_goes : {true, false})
		for (bool poll : {true, false}) {
			Mapped p(polled(7));
			Memory out(p.w, 4096);
			kdirect_submit batch{.completions = out.at(),
					     .nr_completions = 1,
					     .min_completions = 1,
					     .flags = poll ? KDIRECT_SUBMIT_POLL : 0};
			int err = 0;
			Task task = p.w.spawn("reaper", [&] { err = p.file.submit(batch); });

			p.w.run_for(1 * ms);
			EXPECT_TRUE(p.w.running(task));
			EXPECT_EQ(export_goes ? del_export(p.w, "mem") : del_map(p.w, "m"), 0);
			EXPECT_TRUE(p.w.finish({task}));
			EXPECT_EQ(err, export_goes ? KD_ESTALE : KD_ENODEV);
			EXPECT_EQ(p.file.set_buffer(0, out.data(), 100), err);
			kdirect_desc read = read_desc(out.at(), 8, 0);
			auto done = p.file.run({read});
			EXPECT_EQ(done[0].result, -err);
			EXPECT_EQ(done[0].status, 0);
		}
}

/* Every call that can fail does, once. */
TEST(Desc, EveryFailure)
{
	for (uint64_t nth = 1; nth < 400; nth++) {
		Mapped p(polled(nth % 3));
		Memory memory(p.w, mib);
		std::vector<kdirect_desc> batch;
		bool fired;

		for (uint32_t i = 0; i < 12; i++) {
			batch.push_back(fixed_desc(i % 2, 0, i * 5000, 5000, i * 5000, 4 * i));
			batch.push_back(add_desc(mib + 8 * i, 1, 4 * i + 1));
			batch.push_back(read_desc(memory.at(), 20000, mib, 4 * i + 2));
			batch.push_back(write_desc(memory.at(), 700, 3 * mib, 4 * i + 3));
		}
		p.w.fail_nth_any(nth);
		int err = p.file.set_buffer(0, memory.data(), 500000);
		EXPECT_TRUE(!err || err == KD_ENOMEM) << err;
		kdirect_submit none{};
		Memory in(p.w, sizeof(kdirect_desc));
		kdirect_desc first = add_desc(0, 1);
		std::memcpy(in.data(), &first, sizeof(first));
		none.descs = in.at();
		none.nr_descs = 1;
		err = p.file.submit(none);
		EXPECT_TRUE(!err || err == KD_ENOMEM) << err;
		if (!err) {
			Memory out(p.w, 4096);
			kdirect_submit reap{
				.completions = out.at(), .nr_completions = 1, .min_completions = 1};
			EXPECT_EQ(p.file.submit(reap), 0);
			EXPECT_EQ(results(p.file.run(batch)).size(), batch.size());
		}
		fired = p.w.fault_fired();
		if (!fired) {
			EXPECT_GT(nth, 50u);
			break;
		}
	}
}

/* A part of a chain is posted only: the connection fails, and each still ends once. */
TEST(Desc, PartOfAChain)
{
	for (uint64_t nth = 1; nth < 12; nth++) {
		Mapped p(nth);
		std::vector<kdirect_desc> batch;

		for (uint32_t i = 0; i < 40; i++)
			batch.push_back(add_desc(8 * i, 1, i));
		p.w.fail_nth(Op::PartialPost, nth);
		auto done = results(p.file.run(batch));
		EXPECT_EQ(done.size(), batch.size());
		EXPECT_TRUE(std::any_of(done.begin(), done.end(),
					[](auto &one) { return one.second == -KD_EIO; }));
	}
}

} // namespace
