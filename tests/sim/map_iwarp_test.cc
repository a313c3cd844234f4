// SPDX-License-Identifier: GPL-2.0-only
// Mappings over iWARP: a READ needs memory with a key, and a WRITE is done when the peer has
// it, and not when TCP has. The simulation refuses the one, and loses the other.
#include <algorithm>
#include <cstring>

#include "mapped.h"
#include "uring.h"

using namespace sim;

namespace
{

/* As siw is. */
PairOptions siw(uint64_t seed, uint32_t depth = 32)
{
	return {.world = {.seed = seed, .uneven = seed % 2 == 1},
		.device = {.transport = KDIRECT_TRANSPORT_IWARP,
			   .max_sge = 6,
			   .max_read_sge = 1,
			   .max_mr_pages = 256},
		.channel = [depth](kd_channel_params &c) {
			c.poll_queues = 1;
			c.depth = depth;
		}};
}

/* What was written is there, and not on its way, when the call returns. */
TEST(MapIwarp, EveryLengthAndPlace)
{
	for (uint64_t seed = 0; seed < 4; seed++) {
		Mapped p(siw(seed));
		uint32_t flags = seed / 2 ? uint32_t{KD_IO_POLL} : 0;
		uint64_t number = 0;

		for (std::size_t len : {1u, 4095u, 4096u, 16384u, 16385u, (1u << 20) + 1, 2u << 20})
			for (uint64_t pos : {uint64_t{0}, mib - 1, 2 * mib - 16384, 3 * mib - 7}) {
				std::string text = pattern(number++, len), back(len, '\0');
				kd_iter from = source_of(text), into = target_in(back);

				from.user = number % 3;
				into.user = number % 4;
				ASSERT_EQ(p.file.io(from, pos, true, flags),
					  static_cast<int64_t>(len));
				ASSERT_TRUE(p.bytes().substr(pos, len) == text)
					<< len << " at " << pos;
				ASSERT_EQ(p.file.io(into, pos, false, flags),
					  static_cast<int64_t>(len));
				ASSERT_TRUE(back == text) << len << " at " << pos;
			}
	}
}

TEST(MapIwarp, Async)
{
	Mapped p(siw(1, 4));
	constexpr std::size_t count = 40, len = 5000;
	std::vector<std::string> texts(count);
	std::vector<AsyncIo> ios(count);
	auto all = [&] {
		return std::all_of(ios.begin(), ios.end(),
				   [](const AsyncIo &io) { return io.done; });
	};

	for (bool write : {true, false}) {
		for (std::size_t i = 0; i < count; i++) {
			ios[i] = {};
			texts[i] = write ? pattern(i, len) : std::string(len, '\0');
			kd_iter iter = target_in(texts[i]);
			ASSERT_EQ(p.file.io(iter, i * len, write, 0, &ios[i]), KD_IO_QUEUED);
		}
		ASSERT_TRUE(p.w.run_until(all));
		for (std::size_t i = 0; i < count; i++) {
			EXPECT_EQ(ios[i].result, static_cast<int64_t>(len));
			EXPECT_TRUE(texts[i] == pattern(i, len)) << i;
		}
	}
}

/* With each kind of memory, in batches and by io_uring. */
TEST(MapIwarp, Descriptors)
{
	for (uint64_t seed = 0; seed < 8; seed++)
		for (bool fixed : {false, true})
			for (bool uring : {false, true}) {
				Mapped p(siw(seed));
				Memory memory(p.w, 3 * mib);
				std::vector<kdirect_desc> descs;
				uint64_t at = 3;

				ASSERT_EQ(p.file.set_buffer(0, memory.data(), memory.size()), 0);
				memory.put(0, pattern(seed, memory.size()));
				for (uint32_t len : {1u, 100u, 4096u, 16384u, 16385u, 70000u, 1u,
						     1000000u, 1048577u}) {
					descs.push_back(
						fixed ? fixed_desc(true, 0, at, len, mib - 9 + at)
						      : write_desc(memory.at(at), len,
								   mib - 9 + at));
					descs.back().user_data = uring ? 0 : descs.size();
					at += len;
				}
				auto run = [&] {
					if (!uring) {
						for (const auto &c : p.file.run(descs))
							EXPECT_GT(c.result, 0);
						return;
					}
					Uring ring(p.w, p.file,
						   {.polls = false,
						    .buffer = memory.at(),
						    .buffer_len = memory.size()});
					for (const kdirect_desc &desc : descs)
						ring.submit(desc, false);
					ASSERT_TRUE(ring.finish());
					for (const auto &c : ring.commands)
						EXPECT_EQ(c->result.result,
							  static_cast<int>(c->desc.length));
				};
				run();
				std::string_view all = memory.text(3, at - 3);
				ASSERT_TRUE(p.bytes().substr(mib - 6, at - 3) == all);
				for (kdirect_desc &desc : descs)
					desc.opcode = KDIRECT_OP_READ;
				std::string kept(all);
				std::memset(memory.data(), 0, memory.size());
				run();
				EXPECT_TRUE(all == kept);
			}
}

TEST(MapIwarp, NoAtomics)
{
	Mapped p(siw(1));

	EXPECT_EQ(p.file.info().flags, 0u);
	EXPECT_EQ(p.file.run({add_desc(0, 1)})[0].result, -KD_EOPNOTSUPP);
}

/* WRs that went to the send queue of the channel's data queue. */
uint64_t posted(Pair &p)
{
	uint64_t most = 0;

	for (const auto &qp : p.w.qps)
		if (qp->dev == &p.a && qp->max_reads)
			most = std::max(most, qp->next_wr);
	return most;
}

TEST(MapIwarp, OneReadEndsABatch)
{
	PairOptions options = siw(2, 128);
	options.channel = [](kd_channel_params &c) { c.depth = 128; };
	Mapped p(options);
	Memory memory(p.w, 64 << 10);
	std::vector<kdirect_desc> batch;

	ASSERT_EQ(p.file.set_buffer(0, memory.data(), memory.size()), 0);
	for (uint32_t i = 0; i < 60; i++)
		batch.push_back(fixed_desc(true, 0, i << 10, 1 << 10, i << 10, i));
	uint64_t before = posted(p);
	EXPECT_EQ(p.file.run(batch).size(), batch.size());
	EXPECT_LE(posted(p) - before, 60u + 6);
	EXPECT_LE(stats_of(p.w).desc_posts, 6u);
}

/* The link breaks: what was reported as written by then has arrived. */
TEST(MapIwarp, DoneIsPlaced)
{
	constexpr uint32_t writers = 4, large = 70000;

	for (uint64_t seed = 0; seed < 60; seed++) {
		Mapped p(siw(seed, 1 + seed % 7));
		std::deque<Memory> memory;
		std::vector<uint32_t> done(writers, 0);
		std::vector<Task> tasks;

		for (uint32_t i = 0; i < writers; i++)
			memory.emplace_back(p.w, 2 * large);
		for (uint32_t i = 0; i < writers; i++)
			tasks.push_back(p.w.spawn("writer", [&, i] {
				MapFile file = open_map(p.w, "m");
				uint32_t len = i % 2 ? large : 100;

				for (uint32_t round = 1;; round++) {
					std::memcpy(memory[i].data(), &round, sizeof(round));
					std::memcpy(memory[i].data() + large, &round,
						    sizeof(round));
					if (i < 2) {
						auto both = file.run(
							{write_desc(memory[i].at(), len, i * mib),
							 write_desc(memory[i].at(large), len,
								    i * mib + large)});
						if (both.size() != 2 || both[0].result < 0 ||
						    both[1].result < 0)
							return;
					} else if (file.pwrite({memory[i].data(), len}, i * mib) !=
						   static_cast<int64_t>(len)) {
						return;
					}
					done[i] = round;
				}
			}));
		p.w.run_for(p.w.sched.rng.below(3 * ms));
		p.w.set_link(p.b, false);
		ASSERT_TRUE(p.w.finish(tasks));
		for (uint32_t i = 0; i < writers; i++)
			for (uint32_t from : {0u, i < 2 ? large : 0}) {
				uint32_t there;

				std::memcpy(&there, p.bytes().data() + i * mib + from,
					    sizeof(there));
				EXPECT_GE(there, done[i]) << seed << ", writer " << i;
			}
	}
}

/* A call that reads through pages of the kernel is killed, and they are nobody's. */
TEST(MapIwarp, KilledReader)
{
	for (uint64_t seed = 0; seed < 20; seed++) {
		Mapped p(siw(seed));
		std::string buffer(5000, '\0');
		int64_t ret = 0;

		p.w.set_stuck(p.b, true);
		Task task = p.w.spawn("reader", [&] {
			MapFile file = open_map(p.w, "m");
			kd_iter into = target_in(buffer);

			into.user = false;
			ret = file.io(into, 0, false);
		});
		p.w.run_for(1 * ms);
		if (seed % 2)
			p.w.set_stuck(p.b, false);
		p.w.signal(task, true);
		ASSERT_TRUE(p.w.finish({task}));
		EXPECT_TRUE(ret == -KD_EINTR || (seed % 2 && ret == 5000)) << ret;
		p.w.set_stuck(p.b, false);
		EXPECT_EQ(p.file.pwrite("x", 0), 1);
	}
}

/* Everything once, with each kind of memory. How many got an error. */
void use_all(Mapped &p, Memory &memory)
{
	std::vector<kdirect_desc> batch;
	std::string text = pattern(1, 20000);

	for (uint32_t i = 0; i < 6; i++) {
		batch.push_back(fixed_desc(i % 2, 0, i * 5000, 5000, i * 5000));
		batch.push_back(read_desc(memory.at(), 20000, mib));
		batch.push_back(write_desc(memory.at(), 700, 3 * mib));
		batch.push_back(write_desc(memory.at(), 20000, 4 * mib));
	}
	int err = p.file.set_buffer(0, memory.data(), 500000);
	EXPECT_TRUE(!err || err == KD_ENOMEM) << err;
	if (!p.file.post({batch[1]})) {
		EXPECT_EQ(p.file.await(1).size(), 1u);
		EXPECT_EQ(p.file.run(batch).size(), batch.size());
	}
	for (std::size_t len : {std::size_t{10}, text.size()})
		for (bool write : {true, false})
			for (bool user : {true, false}) {
				kd_iter iter = target_in(text);

				iter.segments[0].len = len;
				iter.user = user;
				int64_t ret = p.file.io(iter, 0, write);
				EXPECT_TRUE(ret > 0 || ret == -KD_EIO || ret == -KD_ENOMEM ||
					    ret == -KD_EPIPE)
					<< ret;
			}
}

TEST(MapIwarp, EveryFailure)
{
	for (uint64_t nth = 1; nth < 400; nth++) {
		Mapped p(siw(nth % 3));
		Memory memory(p.w, mib);

		p.w.fail_nth_any(nth);
		use_all(p, memory);
		if (!p.w.fault_fired()) {
			EXPECT_GT(nth, 50u);
			break;
		}
	}
}

/* On the device, or when a part of a chain is posted only. */
TEST(MapIwarp, TheConnectionFails)
{
	for (Op op : {Op::PartialPost, Op::WrError})
		for (uint64_t nth = 1; nth < 60; nth++) {
			Mapped p(siw(nth));
			Memory memory(p.w, mib);

			p.w.fail_nth(op, nth);
			use_all(p, memory);
		}
}

} // namespace
