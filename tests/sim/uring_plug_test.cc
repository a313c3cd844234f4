// SPDX-License-Identifier: GPL-2.0-only
// Commands of io_uring that a program issues with one call: they share doorbells, and what one
// has left is posted, whatever happens meanwhile.
#include <algorithm>
#include <cstring>
#include <set>

#include "mapped.h"
#include "uring.h"

using namespace sim;

namespace
{

constexpr uint64_t kib = 1 << 10;

PairOptions roomy(uint64_t seed)
{
	return {.world = {.seed = seed}, .channel = [](kd_channel_params &c) {
			c.depth = 128;
			c.queues = 1;
			c.poll_queues = 1;
		}};
}

/* Written, or read: a KiB each, one behind the other. */
std::vector<kdirect_desc> row(bool write, uint32_t count)
{
	std::vector<kdirect_desc> descs;

	for (uint32_t i = 0; i < count; i++)
		descs.push_back(fixed_desc(write, 0, i * kib, kib, i * kib));
	return descs;
}

void expect_all(const Uring &ring)
{
	for (const auto &c : ring.commands)
		EXPECT_EQ(c->result.result, static_cast<int>(c->desc.length));
}

TEST(UringPlug, OneDoorbellForMany)
{
	unsigned int alone = 0;

	for (bool polls : {false, true})
		for (uint64_t seed = 0; seed < 10; seed++) {
			Mapped p(roomy(seed));
			Memory memory(p.w, 64 * kib);
			Uring ring(p.w, p.file, {.polls = polls});
			std::string text = pattern(seed, 64 * kib);

			ASSERT_EQ(p.file.set_buffer(0, memory.data(), 64 * kib), 0);
			memory.put(0, text);
			/* a worker's, which prepares the file */
			ring.run(add_desc(mib, 1));
			uint64_t before = stats_of(p.w).desc_posts;
			ring.submit_all(row(true, 64));
			ASSERT_TRUE(ring.finish());
			expect_all(ring);
			EXPECT_EQ(stats_of(p.w).descs, 65u);
			/* where no worker had to take one and came in between */
			if (std::none_of(ring.commands.begin() + 1, ring.commands.end(),
					 [](const auto &c) { return c->in_worker; })) {
				EXPECT_LE(stats_of(p.w).desc_posts - before, 6u);
				alone++;
			}
			EXPECT_TRUE(p.bytes().substr(0, 64 * kib) == text);
			std::memset(memory.data(), 0, memory.size());
			ring.submit_all(row(false, 64));
			ASSERT_TRUE(ring.finish());
			expect_all(ring);
			EXPECT_TRUE(memory.text(0, 64 * kib) == text);
		}
	EXPECT_GT(alone, 15u) << "of 20";
}

/* Each kind of memory, of any length, and what is invalid: nothing waits for the next call. */
TEST(UringPlug, AllKindsTogether)
{
	for (uint64_t seed = 0; seed < 60; seed++) {
		Mapped p(roomy(seed));
		Memory memory(p.w, 4 * mib);
		Uring ring(p.w, p.file, {.polls = seed % 2 == 1});
		std::vector<kdirect_desc> descs;
		std::vector<int> expected;
		std::string text = pattern(seed, 3 * mib);
		uint64_t at = 0;
		Rng rng(seed);

		ASSERT_EQ(p.file.set_buffer(0, memory.data(), memory.size()), 0);
		memory.put(0, text);
		while (at < 2 * mib) {
			auto len =
				static_cast<uint32_t>(rng.range(1, rng.chance(20) ? 300000 : 9000));

			descs.push_back(rng.chance(50) ? fixed_desc(true, 0, at, len, at)
						       : write_desc(memory.at(at), len, at));
			expected.push_back(static_cast<int>(len));
			at += len;
			if (rng.chance(20)) {
				descs.push_back(read_desc(0, 1, UINT64_MAX));
				expected.push_back(-KD_ERANGE);
			}
			if (rng.chance(20)) {
				descs.push_back(add_desc(3 * mib, 1));
				expected.push_back(8);
			}
		}
		for (std::size_t i = 0; i < descs.size();) {
			std::size_t n = std::min<std::size_t>(rng.range(1, 40), descs.size() - i);

			ring.submit_all({descs.begin() + static_cast<std::ptrdiff_t>(i),
					 descs.begin() + static_cast<std::ptrdiff_t>(i + n)});
			i += n;
		}
		ASSERT_TRUE(ring.finish());
		for (std::size_t i = 0; i < descs.size(); i++)
			EXPECT_EQ(ring.commands[i]->result.result, expected[i]) << i;
		EXPECT_TRUE(p.bytes().substr(0, at) == text.substr(0, at));
	}
}

/* Another thread submits between them, and takes what is left with it, or is in the way. */
TEST(UringPlug, BesideAnotherSubmitter)
{
	for (uint64_t seed = 0; seed < 60; seed++) {
		Mapped p(roomy(seed));
		Memory memory(p.w, 64 * kib), other(p.w, mib);
		Uring ring(p.w, p.file, {.polls = seed % 3 == 0});
		std::vector<kdirect_desc> batch;

		ASSERT_EQ(p.file.set_buffer(0, memory.data(), 64 * kib), 0);
		for (uint32_t i = 0; i < 20; i++)
			batch.push_back(write_desc(other.at(i * 16 * kib), 100 + i * 800,
						   mib + i * 16 * kib, i));
		Task task = p.w.spawn("submitter", [&] {
			for (int i = 0; i < 5; i++)
				for (const kdirect_completion &c : p.file.run(batch))
					EXPECT_GT(c.result, 0);
		});
		for (int i = 0; i < 20; i++)
			ring.submit_all(row(i % 2, 32));
		ASSERT_TRUE(ring.finish());
		ASSERT_TRUE(p.w.finish({task}));
		expect_all(ring);
	}
}

/* At most so many are under way: what finds no room goes to a worker, what is left is posted. */
TEST(UringPlug, MoreThanThereIsRoomFor)
{
	Mapped p(polled(3));
	Memory memory(p.w, 64 * kib);
	Uring ring(p.w, p.file);

	ASSERT_EQ(p.file.set_buffer(0, memory.data(), 64 * kib), 0);
	for (int i = 0; i < 12; i++)
		ring.submit_all(row(i % 2, 64));
	ASSERT_TRUE(ring.finish());
	expect_all(ring);
}

TEST(UringPlug, EachCallFails)
{
	for (uint64_t nth = 1;; nth++) {
		Mapped p(nth);
		Memory memory(p.w, mib);
		Uring ring(p.w, p.file);

		ASSERT_EQ(p.file.set_buffer(0, memory.data(), memory.size()), 0);
		p.w.fail_nth_any(nth);
		std::vector<kdirect_desc> descs = row(true, 5);
		descs.push_back(add_desc(mib, 1));
		descs.push_back(write_desc(memory.at(), 100000, 0));
		ring.submit_all(descs);
		ring.submit_all(descs);
		ASSERT_TRUE(ring.finish());
		for (const auto &c : ring.commands)
			EXPECT_TRUE(c->result.result == static_cast<int>(c->desc.length) ||
				    c->result.result == -KD_ENOMEM || c->result.result == -KD_EIO)
				<< c->result.result;
		if (!p.w.fault_fired())
			break;
		ASSERT_LT(nth, 400u);
	}
}

/* The mapping, the export, the channel, or the device ends while some are left. */
TEST(UringPlug, TheEndBetween)
{
	const std::set<int> endings = {KD_EIO, KD_ESTALE, KD_ENODEV, KD_EPIPE};
	std::set<int> seen;

	for (uint64_t seed = 0; seed < 120; seed++) {
		Mapped p(polled(seed));
		Memory memory(p.w, 64 * kib);
		Uring ring(p.w, p.file, {.polls = seed % 3 == 0});

		ASSERT_EQ(p.file.set_buffer(0, memory.data(), memory.size()), 0);
		ring.run(add_desc(mib, 1));
		Task killer = p.w.spawn("killer", [&] {
			p.w.run_for((seed % 7) * 5 * us);
			if (seed % 4 == 0)
				del_map(p.w, "m");
			else if (seed % 4 == 1)
				del_export(p.w, "mem");
			else if (seed % 4 == 2)
				p.w.del("c0");
			else
				p.w.remove_device(p.a);
		});
		for (int i = 0; i < 10; i++)
			ring.submit_all(row(i % 2, 10));
		if (seed % 5 == 0) {
			p.file.close();
			ring.close();
		}
		ASSERT_TRUE(ring.finish());
		ASSERT_TRUE(p.w.finish({killer}));
		for (const auto &c : ring.commands) {
			if (c->result.result == static_cast<int>(c->desc.length))
				continue;
			EXPECT_TRUE(endings.contains(-c->result.result)) << c->result.result;
			seen.insert(-c->result.result);
		}
	}
	EXPECT_TRUE(seen.contains(KD_ESTALE) && seen.contains(KD_ENODEV) &&
		    seen.contains(KD_EPIPE));
}

} // namespace
