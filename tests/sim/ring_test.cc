// SPDX-License-Identifier: GPL-2.0-only
// Rings: what is true of descriptors stays true, with a program that writes into the shared
// memory what it likes, and a thread that never misses what was submitted.
#include <cstring>
#include <set>

#include "mapped.h"
#include "ring.h"

using namespace sim;

namespace
{

constexpr uint64_t kib = 1 << 10;

kdirect_ring_setup entries(uint32_t sq, uint32_t cq, uint32_t flags = 0, uint64_t idle = 50 * us)
{
	bool threaded = flags & KDIRECT_RING_THREAD;

	return {.sq_entries = sq,
		.cq_entries = cq,
		.flags = flags,
		.thread_cpu = threaded ? -1 : 0,
		.idle_ns = threaded ? idle : 0};
}

const uint32_t all_flags[] = {0, KDIRECT_RING_POLL, KDIRECT_RING_THREAD,
			      KDIRECT_RING_POLL | KDIRECT_RING_THREAD};

/* Keeps a ring busy until all of @descs have ended; results by user_data. */
std::map<uint64_t, kdirect_completion> run(World &w, Ring &ring,
					   const std::vector<kdirect_desc> &descs)
{
	std::map<uint64_t, kdirect_completion> out;
	bool threaded = ring.setup.flags & KDIRECT_RING_THREAD;
	bool polls = ring.setup.flags & KDIRECT_RING_POLL;
	std::size_t begun = 0;

	w.call([&] {
		uint64_t deadline = w.now() + 20 * sec;

		while (out.size() < descs.size() && w.now() < deadline) {
			kdirect_completion c;

			while (begun < descs.size() && ring.push(descs[begun]))
				begun++;
			while (ring.pop(c))
				if (!out.emplace(c.user_data, c).second)
					fail("%llu completed twice",
					     static_cast<unsigned long long>(c.user_data));
			if (threaded) {
				ring.nudge();
				if (ring.state() & KDIRECT_RING_CQ_BEHIND)
					ring.enter(0);
				w.sched.sleep(1 * us);
				continue;
			}
			int err = ring.enter(ring.setup.sq_entries - ring.room(), 1,
					     polls ? KDIRECT_ENTER_POLL : 0, 1 * ms);
			if (err && err != KD_ETIMEDOUT && err != KD_EAGAIN)
				fail("entering ended in error %d", err);
		}
	});
	EXPECT_EQ(out.size(), descs.size());
	return out;
}

TEST(Ring, WhatIsWrittenIsRead)
{
	for (uint32_t flags : all_flags)
		for (uint64_t seed = 0; seed < 4; seed++) {
			Mapped p(polled(seed));
			Memory memory(p.w, 2 * mib), back(p.w, 2 * mib);
			Ring ring = p.file.make_ring(entries(4, seed % 2 ? 4 : 16, flags));
			std::vector<kdirect_desc> writes, reads;
			std::string text = pattern(seed, 300 * 4000);

			SCOPED_TRACE(testing::Message() << "flags " << flags << " seed " << seed);
			ASSERT_TRUE(static_cast<bool>(ring));
			ASSERT_EQ(p.file.set_buffer(1, memory.data(), 2 * mib), 0);
			memory.put(0, text);
			/* around both rings many times */
			for (uint32_t i = 0; i < 300; i++) {
				uint64_t at = 4000UL * i;

				writes.push_back(
					i % 3 ? fixed_desc(true, 1, at, 4000, at + 5, i)
					      : write_desc(memory.at(at), 4000, at + 5, i));
				reads.push_back(read_desc(back.at(at), 4000, at + 5, 1000 + i));
			}
			for (const auto &[data, c] : run(p.w, ring, writes)) {
				EXPECT_EQ(c.result, 4000);
				EXPECT_EQ(c.index, data);
				EXPECT_EQ(c.opcode, KDIRECT_OP_WRITE);
			}
			EXPECT_TRUE(p.bytes().substr(5, text.size()) == text);
			for (const auto &[data, c] : run(p.w, ring, reads)) {
				EXPECT_EQ(c.result, 4000);
				EXPECT_EQ(c.index, data - 700);
			}
			EXPECT_TRUE(back.text(0, text.size()) == text);
			EXPECT_EQ(ring.sq_head(), 600u);
			EXPECT_EQ(ring.cq_tail(), 600u);
		}
}

TEST(Ring, ArgumentsAreChecked)
{
	Mapped p(1);
	const kdirect_ring_setup good = entries(8, 8),
				 thread = entries(8, 8, KDIRECT_RING_THREAD, KDIRECT_RING_IDLE_MAX);
	auto with = [&](kdirect_ring_setup bad,
			const std::function<void(kdirect_ring_setup &)> &spoil) {
		int err;

		spoil(bad);
		Ring ring = p.file.make_ring(bad, &err);
		return err;
	};

	for (uint32_t bad : {0u, 3u, 4097u, 8192u, UINT32_MAX}) {
		EXPECT_EQ(with(good, [&](auto &s) { s.sq_entries = bad; }), KD_EINVAL);
		EXPECT_EQ(with(good, [&](auto &s) { s.cq_entries = bad; }), KD_EINVAL);
	}
	EXPECT_EQ(with(good, [](auto &s) { s.flags = 4; }), KD_EINVAL);
	EXPECT_EQ(with(good, [](auto &s) { s.flags = KDIRECT_RING_POLL; }), KD_EOPNOTSUPP);
	EXPECT_EQ(with(good, [](auto &s) { s.thread_cpu = 1; }), KD_EINVAL);
	EXPECT_EQ(with(good, [](auto &s) { s.idle_ns = 1; }), KD_EINVAL);
	for (int i = 0; i < 3; i++)
		EXPECT_EQ(with(good, [&](auto &s) { s.reserved[i] = 1; }), KD_EINVAL);
	EXPECT_EQ(with(thread, [](auto &) {}), 0);
	EXPECT_EQ(with(thread, [](auto &s) { s.thread_cpu = -2; }), KD_EINVAL);
	EXPECT_EQ(with(thread, [](auto &s) { s.thread_cpu = 8; }), KD_EINVAL);
	EXPECT_EQ(with(thread, [](auto &s) { s.thread_cpu = INT32_MAX; }), KD_EINVAL);
	EXPECT_EQ(with(thread, [](auto &s) { s.idle_ns++; }), KD_EINVAL);
	EXPECT_EQ(with(good, [](auto &s) { s.sq_entries = s.cq_entries = 4096; }), 0);
	EXPECT_EQ(with(good, [](auto &s) { s.sq_entries = s.cq_entries = 1; }), 0);

	Ring ring = p.file.make_ring(good);
	EXPECT_EQ(ring.setup.length % page_size, 0u);
	EXPECT_GE(ring.setup.length, ring.setup.completions + 8 * sizeof(kdirect_completion));
	EXPECT_EQ(ring.setup.descs % 64, 0u);
	auto entered = [&](const std::function<void(kdirect_ring_enter &)> &spoil) {
		kdirect_ring_enter bad{};

		spoil(bad);
		return ring.enter(bad);
	};
	EXPECT_EQ(entered([](auto &) {}), 0);
	EXPECT_EQ(entered([](auto &e) { e.flags = 2; }), KD_EINVAL);
	EXPECT_EQ(entered([](auto &e) { e.flags = KDIRECT_ENTER_POLL; }), KD_EINVAL);
	EXPECT_EQ(entered([](auto &e) { e.min_completions = 9; }), KD_EINVAL);
	for (int i = 0; i < 3; i++)
		EXPECT_EQ(entered([&](auto &e) { e.reserved[i] = 1; }), KD_EINVAL);
	EXPECT_EQ(entered([](auto &e) { e.min_completions = 1, e.timeout_ns = 5 * ms; }),
		  KD_ETIMEDOUT);
	ring.close();
	ring = p.file.make_ring(thread);
	EXPECT_EQ(entered([](auto &e) { e.to_submit = 1; }), KD_EINVAL);
}

/* One way in at a time, and completions follow it. */
TEST(Ring, BesideSubmit)
{
	for (uint64_t seed = 0; seed < 10; seed++) {
		Mapped p(seed);
		Memory in(p.w, 4096), out(p.w, 4096);
		kdirect_desc add = add_desc(0, 1, 5);
		int err;

		std::memcpy(in.data(), &add, sizeof(add));
		kdirect_submit batch{.descs = in.at(), .nr_descs = 1};
		ASSERT_EQ(p.file.submit(batch), 0);
		if (seed % 2)
			p.w.run_for(1 * ms);
		Ring ring = p.file.make_ring(entries(4, 4));
		(void)p.file.make_ring(entries(4, 4), &err);
		EXPECT_EQ(err, KD_EBUSY);
		EXPECT_EQ(p.file.submit(batch), KD_EBUSY);
		batch.nr_descs = 0;
		EXPECT_EQ(p.file.submit(batch), KD_EBUSY);
		EXPECT_EQ(ring.enter(0, 1), 0);
		kdirect_completion c;
		ASSERT_TRUE(ring.pop(c));
		EXPECT_EQ(c.user_data, 5u);
		add.user_data = 6;
		ASSERT_TRUE(ring.push(add));
		EXPECT_EQ(ring.enter(9), 0);
		bool in_ring = ring.cq_tail() - ring.cq_head() == 1;
		ring.close();
		/* which the ring did not get is there */
		batch.completions = out.at();
		batch.nr_completions = 1;
		batch.timeout_ns = 50 * ms;
		batch.min_completions = 1;
		err = p.file.submit(batch);
		EXPECT_EQ(err, in_ring ? KD_ETIMEDOUT : 0);
		ring = p.file.make_ring(entries(4, 4));
		EXPECT_EQ(run(p.w, ring, {add_desc(8, 2, 7)}).at(7).result, 8);
		p.file.close();
		EXPECT_EQ(run(p.w, ring, {add_desc(8, 2, 8)}).at(8).old, 2u);
	}
}

TEST(Ring, AWaitInSubmitKeepsItsCompletions)
{
	Mapped p(1);
	Memory out(p.w, 4096);
	kdirect_submit batch{.completions = out.at(), .nr_completions = 1, .min_completions = 1};
	int err = 0, made = 0;
	Task task = p.w.spawn("reaper", [&] { err = p.file.submit(batch); });

	p.w.run_for(1 * ms);
	(void)p.file.make_ring(entries(4, 4), &made);
	EXPECT_EQ(made, KD_EBUSY);
	p.w.signal(task, false);
	EXPECT_TRUE(p.w.finish({task}));
	EXPECT_EQ(err, KD_EINTR);
	(void)p.file.make_ring(entries(4, 4), &made);
	EXPECT_EQ(made, 0);
}

/* What finds no room waits and follows in order, each once. */
TEST(Ring, FullCompletionRing)
{
	for (uint32_t flags : all_flags)
		for (uint64_t seed = 0; seed < 10; seed++) {
			Mapped p(polled(seed));
			Ring ring = p.file.make_ring(entries(512, 2, flags));
			bool threaded = flags & KDIRECT_RING_THREAD;
			std::set<uint64_t> seen;
			uint32_t pushed = 0;

			SCOPED_TRACE(testing::Message() << "flags " << flags << " seed " << seed);
			for (; pushed < 400; pushed++)
				ASSERT_TRUE(ring.push(add_desc(8 * pushed, 1, pushed)));
			if (threaded) {
				ring.nudge();
			} else {
				kdirect_ring_enter call{.to_submit = 400};

				EXPECT_EQ(ring.enter(call), 0);
				EXPECT_GE(call.submitted, uint32_t{KDIRECT_DESC_ENTRIES});
			}
			p.w.run_for(50 * ms);
			/* it stands still */
			EXPECT_EQ(ring.cq_tail(), 2u);
			if (threaded || !(flags & KDIRECT_RING_POLL)) {
				EXPECT_EQ(ring.sq_head(), KDIRECT_DESC_ENTRIES + 2u);
			}
			EXPECT_TRUE(ring.state() & KDIRECT_RING_CQ_BEHIND);
			if (!threaded) {
				p.w.run_for(50 * ms);
				(void)ring.enter(0);
				EXPECT_LE(ring.cq_tail(), 2u);
			}
			for (int i = 0; i < 100000 && seen.size() < 400; i++) {
				kdirect_completion c;

				while (ring.pop(c)) {
					EXPECT_EQ(c.result, 8);
					EXPECT_TRUE(seen.insert(c.user_data).second);
				}
				int err = ring.enter(threaded ? 0 : 400);
				ASSERT_TRUE(!err || err == KD_EAGAIN) << err;
				p.w.run_for(1 * us);
			}
			EXPECT_EQ(seen.size(), 400u);
			EXPECT_FALSE(ring.state() & KDIRECT_RING_CQ_BEHIND);
		}
}

TEST(Ring, ATailThatCannotBe)
{
	for (uint32_t flags : {0u, uint32_t{KDIRECT_RING_THREAD}})
		for (uint32_t ahead : {5u, 6u, 1000u, 0x80000000u, UINT32_MAX}) {
			Mapped p(2);
			Ring ring = p.file.make_ring(entries(4, 4, flags));

			(void)run(p.w, ring, {add_desc(0, 1, 1), add_desc(0, 1, 2)});
			ring.sq_tail() = 2 + ahead;
			if (flags) {
				ring.nudge();
				EXPECT_EQ(ring.enter(0, 1, 0, 5 * ms), KD_ETIMEDOUT);
			} else {
				EXPECT_EQ(ring.enter(4), KD_EBADMSG);
			}
			p.w.run_for(5 * ms);
			EXPECT_TRUE(ring.state() & KDIRECT_RING_SQ_BAD);
			EXPECT_EQ(ring.sq_head(), 2u);
			/* an idle thread sleeps all the same */
			EXPECT_EQ(ring.state() & KDIRECT_RING_NEED_WAKEUP, flags ? 1u : 0u);
			ring.sq_tail() = 2;
			EXPECT_EQ(run(p.w, ring, {add_desc(0, 1, 3)}).at(3).old, 2u);
			EXPECT_FALSE(ring.state() & KDIRECT_RING_SQ_BAD);
		}
}

TEST(Ring, AHeadThatCannotBe)
{
	for (uint32_t head : {3u, 100u, 0x80000000u, UINT32_MAX - 3}) {
		Mapped p(3);
		Ring ring = p.file.make_ring(entries(4, 4));

		(void)run(p.w, ring, {add_desc(0, 1, 1), add_desc(0, 1, 2)});
		ring.cq_head() = head;
		ASSERT_TRUE(ring.push(add_desc(0, 1, 3)));
		EXPECT_EQ(ring.enter(1), 0);
		p.w.run_for(5 * ms);
		EXPECT_EQ(ring.cq_tail(), 2u);
		EXPECT_TRUE(ring.state() & KDIRECT_RING_CQ_BEHIND);
		ring.cq_head() = 2;
		EXPECT_EQ(ring.enter(0), 0);
		kdirect_completion c;
		ASSERT_TRUE(ring.pop(c));
		EXPECT_EQ(c.user_data, 3u);
		EXPECT_EQ(c.old, 2u);
	}
}

/* Anything anywhere at any time: it harms nobody else, and ends. */
TEST(Ring, HostileMemory)
{
	for (uint32_t flags : all_flags)
		for (uint64_t seed = 0; seed < 10; seed++) {
			Mapped p(polled(seed));
			Memory memory(p.w, 64 * kib);
			MapFile other = open_map(p.w, "m");
			Ring ring = p.file.make_ring(entries(8, 8, flags, seed % 3 * 20 * us));
			Rng rng(seed);
			bool stop = false;

			SCOPED_TRACE(testing::Message() << "flags " << flags << " seed " << seed);
			ASSERT_EQ(p.file.set_buffer(0, memory.data(), 64 * kib), 0);
			Task scribbler = p.w.spawn("scribbler", [&] {
				while (!stop) {
					auto value = static_cast<uint32_t>(
						rng.chance(70) ? rng.below(20) : rng.next());

					switch (rng.below(4)) {
					case 0: ring.sq_tail() += value; break;
					case 1: ring.cq_head() = value; break;
					case 2:
						std::memcpy(
							ring.memory() +
								rng.below(ring.setup.length / 4) *
									4,
							&value, sizeof(value));
						break;
					default:
						/* one that works, if it is not spoilt */
						(void)ring.push(fixed_desc(value % 2, 0, value,
									   value * 5, value));
						break;
					}
					p.w.sched.sleep(rng.range(1, 2000));
				}
			});
			Task user = p.w.spawn("user", [&] {
				bool threaded = flags & KDIRECT_RING_THREAD;

				for (int i = 0; i < 150; i++) {
					int err = ring.enter(
						threaded ? 0 : static_cast<uint32_t>(rng.next()),
						static_cast<uint32_t>(rng.below(9)),
						flags & KDIRECT_RING_POLL && rng.chance(50)
							? KDIRECT_ENTER_POLL
							: 0,
						rng.range(1, 50 * us));
					EXPECT_TRUE(!err || err == KD_EAGAIN || err == KD_EBADMSG ||
						    err == KD_ETIMEDOUT)
						<< err;
				}
			});
			ASSERT_TRUE(p.w.finish({user}));
			stop = true;
			ASSERT_TRUE(p.w.finish({scribbler}));
			EXPECT_EQ(other.run({add_desc(4 * mib, 1)})[0].result, 8);
			EXPECT_EQ(p.w.state("c0"), KDIRECT_STATE_LIVE);
			EXPECT_EQ(p.w.state("store.0"), KDIRECT_STATE_LIVE);
		}
}

/* The thread is asleep, or about to: what is submitted is done all the same. */
TEST(Ring, NoWakeUpIsMissed)
{
	for (bool poll : {false, true})
		for (uint64_t seed = 0; seed < 16; seed++) {
			PairOptions options = polled(seed);
			options.world.max_delay = 5 * us;
			Mapped p(options);
			uint32_t flags = KDIRECT_RING_THREAD | (poll ? KDIRECT_RING_POLL : 0);
			Ring ring = p.file.make_ring(entries(4, 8, flags, seed % 4 * 5 * us));
			Rng rng(seed);
			uint64_t slept = 0;

			SCOPED_TRACE(testing::Message() << "poll " << poll << " seed " << seed);
			Task user = p.w.spawn("user", [&] {
				for (uint64_t i = 0; i < 60; i++) {
					kdirect_completion c;
					uint64_t deadline = p.w.now() + 1 * sec;

					ASSERT_TRUE(ring.push(add_desc(0, 1, i)));
					slept += ring.state() & KDIRECT_RING_NEED_WAKEUP;
					ring.nudge();
					while (!ring.pop(c) && p.w.now() < deadline)
						p.w.sched.sleep(200);
					ASSERT_LT(p.w.now(), deadline);
					ASSERT_EQ(c.user_data, i);
					ASSERT_EQ(c.old, i);
					p.w.sched.sleep(rng.below(20 * us) + 1);
				}
			});
			ASSERT_TRUE(p.w.finish({user}));
			if (seed % 4 == 0) {
				EXPECT_GT(slept, 5u);
			}
		}
}

/* No system call while the thread is awake. */
TEST(Ring, AwakeItNeedsNobody)
{
	Mapped p(polled(1));
	Ring ring =
		p.file.make_ring(entries(8, 8, KDIRECT_RING_THREAD | KDIRECT_RING_POLL, 10 * sec));
	uint64_t done = 0, begun = 0;

	Task user = p.w.spawn("user", [&] {
		while (done < 1000) {
			kdirect_completion c;

			if (begun < 1000 && ring.push(add_desc(0, 1, begun)))
				begun++;
			while (ring.pop(c))
				done++;
			EXPECT_FALSE(ring.state() & KDIRECT_RING_NEED_WAKEUP);
			p.w.sched.sleep(500);
		}
	});
	EXPECT_TRUE(p.w.finish({user}));
	EXPECT_EQ(done, 1000u);
}

TEST(Ring, TheProcessHasEnded)
{
	Mapped p(4);
	Memory memory(p.w, 64 * kib);
	Ring ring = p.file.make_ring(entries(8, 8, KDIRECT_RING_THREAD));

	ASSERT_EQ(p.file.set_buffer(0, memory.data(), 64 * kib), 0);
	auto all = [&] {
		return run(p.w, ring,
			   {read_desc(memory.at(), 100, 0, 1), write_desc(memory.at(), 100, 0, 2),
			    add_desc(0, 0, 3), fixed_desc(true, 0, 0, 100, 0, 4)});
	};
	for (const auto &[data, c] : all())
		EXPECT_GT(c.result, 0);
	ring.orphan();
	for (const auto &[data, c] : all())
		EXPECT_EQ(c.result, data < 3 ? -KD_EFAULT : data == 3 ? 8 : 100);
}

TEST(Ring, Poll)
{
	for (uint32_t flags : all_flags)
		for (uint64_t seed = 0; seed < 10; seed++) {
			Mapped p(polled(seed));
			Ring ring = p.file.make_ring(entries(2, 2, flags));
			uint32_t in = 0, out = 0, up = 0;

			SCOPED_TRACE(testing::Message() << "flags " << flags << " seed " << seed);
			EXPECT_EQ(ring.poll(KD_POLL_IN | KD_POLL_OUT, 1 * ms), KD_POLL_OUT);
			Task poller = p.w.spawn("in", [&] { in = ring.poll(KD_POLL_IN, 1 * sec); });
			p.w.run_for(100 * us);
			ASSERT_TRUE(ring.push(add_desc(0, 1, 1)));
			ASSERT_TRUE(ring.push(add_desc(0, 1, 2)));
			if (flags & KDIRECT_RING_THREAD) {
				Task writer = p.w.spawn(
					"out", [&] { out = ring.poll(KD_POLL_OUT, 1 * sec); });
				p.w.run_for(100 * us);
				ring.nudge();
				ASSERT_TRUE(p.w.finish({writer}));
				EXPECT_EQ(out, KD_POLL_OUT);
			} else {
				EXPECT_EQ(ring.poll(KD_POLL_OUT, 1 * ms), 0u);
				EXPECT_EQ(ring.enter(2), 0);
				EXPECT_EQ(ring.poll(KD_POLL_OUT, 1 * ms), KD_POLL_OUT);
			}
			ASSERT_TRUE(p.w.finish({poller}));
			EXPECT_EQ(in, KD_POLL_IN);
			kdirect_completion c;
			(void)ring.enter(0, 2, 0, 1 * sec);
			while (ring.pop(c))
				;
			Task hup = p.w.spawn("hup", [&] { up = ring.poll(0, 1 * sec); });
			p.w.run_for(100 * us);
			EXPECT_EQ(del_map(p.w, "m"), 0);
			ASSERT_TRUE(p.w.finish({hup}));
			EXPECT_EQ(up, KD_POLL_HUP);
		}
}

/* Several threads of a program enter and reap, with a lock of their own for the rings. */
TEST(Ring, ThreadsShareARing)
{
	for (uint64_t seed = 0; seed < 10; seed++) {
		Mapped p(polled(seed));
		uint32_t flags = seed % 2 ? KDIRECT_RING_POLL : 0;
		Ring ring = p.file.make_ring(entries(8, 16, flags));
		std::vector<Task> tasks;
		std::set<uint64_t> seen;
		uint64_t begun = 0;

		for (uint32_t t = 0; t < 4; t++)
			tasks.push_back(p.w.spawn("thread", [&, t] {
				while (seen.size() < 300) {
					kdirect_completion c;

					if (begun < 300 && ring.push(add_desc(8 * t, 1, begun)))
						begun++;
					while (ring.pop(c)) {
						ASSERT_EQ(c.result, 8);
						ASSERT_TRUE(seen.insert(c.user_data).second);
					}
					int err = ring.enter(
						3, t % 2, flags && t > 1 ? KDIRECT_ENTER_POLL : 0,
						300 * us);
					ASSERT_TRUE(!err || err == KD_ETIMEDOUT || err == KD_EAGAIN)
						<< err;
					p.w.sched.sleep(1 * us);
				}
			}));
		ASSERT_TRUE(p.w.finish(tasks));
		EXPECT_EQ(seen.size(), 300u);
	}
}

TEST(Ring, ASignalEndsTheWait)
{
	for (uint32_t flags : all_flags) {
		Mapped p(polled(6));
		Ring ring = p.file.make_ring(entries(4, 4, flags));
		int err = 0;
		Task task = p.w.spawn("waiter", [&] {
			err = ring.enter(0, 1, flags & KDIRECT_RING_POLL ? KDIRECT_ENTER_POLL : 0);
		});

		p.w.run_for(1 * ms);
		EXPECT_TRUE(p.w.running(task));
		p.w.signal(task, false);
		EXPECT_TRUE(p.w.finish({task}));
		EXPECT_EQ(err, KD_EINTR);
	}
}

TEST(Ring, ThreadsAreLimited)
{
	Mapped p(1);
	std::vector<MapFile> files;
	std::vector<Ring> rings;
	int err = 0;

	for (uint32_t i = 0; i <= KDIRECT_RING_THREADS; i++) {
		files.push_back(open_map(p.w, "m"));
		rings.push_back(
			files.back().make_ring(entries(1, 1, KDIRECT_RING_THREAD, 0), &err));
		EXPECT_EQ(err, i < KDIRECT_RING_THREADS ? 0 : KD_EAGAIN);
	}
	rings[7].close();
	rings.back() = files.back().make_ring(entries(1, 1, KDIRECT_RING_THREAD, 0), &err);
	EXPECT_EQ(err, 0);
}

enum class End { Close, CloseRing, DelBuffer, DelMap, DelExport, DelChannel, Device, Link, Stop };

/* Something ends with everything under way: no completion is lost, no memory goes early. */
TEST(Ring, EndsUnderLoad)
{
	for (End end : {End::Close, End::CloseRing, End::DelBuffer, End::DelMap, End::DelExport,
			End::DelChannel, End::Device, End::Link, End::Stop})
		for (uint64_t seed = 0; seed < 12; seed++) {
			PairOptions options = polled(seed);
			options.world.uneven = seed % 3 == 0;
			Mapped p(options);
			constexpr uint32_t count = 120;
			uint32_t flags = all_flags[seed % 4];
			bool threaded = flags & KDIRECT_RING_THREAD;
			Memory buffer(p.w, mib), other(p.w, mib);
			Ring ring = p.file.make_ring(entries(128, seed % 5 ? 128 : 16, flags));
			Rng rng(seed);

			SCOPED_TRACE(testing::Message() << "end " << int(end) << " seed " << seed);
			ASSERT_TRUE(static_cast<bool>(ring));
			ASSERT_EQ(p.file.set_buffer(1, buffer.data(), mib), 0);
			for (uint32_t i = 0; i < count; i++) {
				auto len = static_cast<uint32_t>(rng.range(1, 30000));
				uint64_t at = rng.below(2) * 2 * mib + rng.below(mib);

				ASSERT_TRUE(ring.push(
					i % 4 == 0   ? add_desc(at & ~7ULL, 1, i)
					: i % 4 == 1 ? read_desc(other.at(), len, at, i)
						     : fixed_desc(i % 4 == 2, 1, 100, len, at, i)));
			}
			int entered = 0;
			Task task = p.w.spawn("submitter", [&] {
				if (threaded)
					ring.nudge();
				else
					entered = ring.enter(count);
			});
			if (end == End::Close || end == End::CloseRing) {
				ASSERT_TRUE(p.w.finish({task}));
			}
			p.w.run_for(rng.below(300 * us));
			switch (end) {
			case End::Close: p.file.close(); [[fallthrough]];
			case End::CloseRing: ring.close(); break;
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
			EXPECT_EQ(entered, 0);
			if (end == End::Close || end == End::CloseRing) {
				p.file.close();
				EXPECT_EQ(p.w.threads.size(), 0u);
				EXPECT_TRUE(p.w.run_until(
					[&] { return !p.w.fixed.size() && !p.w.pages.size(); }));
				continue;
			}
			std::set<uint64_t> seen;
			while (seen.size() < count) {
				kdirect_completion c;

				ASSERT_EQ(ring.enter(0, 1, 0, 100 * sec), 0);
				while (ring.pop(c)) {
					static const std::set<int> known = {-KD_ENOENT, -KD_ENODEV,
									    -KD_ESTALE, -KD_EPIPE,
									    -KD_EIO};
					EXPECT_TRUE(seen.insert(c.user_data).second);
					EXPECT_TRUE(c.result > 0 || known.contains(c.result))
						<< c.result;
				}
			}
			if (end != End::DelBuffer) {
				int err = ring.enter(0, 1, 0, 100 * sec);
				EXPECT_TRUE(err == KD_ESTALE || err == KD_ENODEV || err == KD_EPIPE)
					<< err;
			}
		}
}

/* Every call that can fail does, once. */
TEST(Ring, EveryFailure)
{
	for (uint32_t flags : {0u, KDIRECT_RING_POLL | KDIRECT_RING_THREAD})
		for (uint64_t nth = 1;; nth++) {
			Mapped p(polled(nth % 3));
			Memory memory(p.w, mib);
			std::vector<kdirect_desc> batch;
			int err;

			for (uint32_t i = 0; i < 6; i++) {
				batch.push_back(add_desc(mib + 8 * i, 1, 3 * i));
				batch.push_back(read_desc(memory.at(), 20000, mib, 3 * i + 1));
				batch.push_back(write_desc(memory.at(), 700, 3 * mib, 3 * i + 2));
			}
			p.w.fail_nth_any(nth);
			Ring ring = p.file.make_ring(entries(8, 8, flags), &err);
			EXPECT_TRUE(!err || err == KD_ENOMEM) << err;
			if (!err) {
				EXPECT_EQ(run(p.w, ring, batch).size(), batch.size());
			}
			if (p.w.fault_fired())
				continue;
			EXPECT_GT(nth, 20u);
			break;
		}
}

} // namespace
