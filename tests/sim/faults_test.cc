// SPDX-License-Identifier: GPL-2.0-only
// What can go wrong at any moment: memory, calls, work requests, the link, the
// device, the administrator. Nothing leaks, hangs or is delivered twice.
#include "pair.h"

using namespace sim;

namespace
{

/* Live at both ends, or gone at both, with a reason at the end that asked. */
void expect_settled(Pair &p, const std::string &where)
{
	bool settled = p.w.run_until(
		[&] {
			int state = p.w.state("c0");

			return state < 0 || state == KDIRECT_STATE_LIVE ||
			       state == KDIRECT_STATE_DEAD;
		},
		200 * sec);

	EXPECT_TRUE(settled) << where << ": state " << p.w.state("c0");
	if (p.w.state("c0") < 0) {
		const EventRecord *error = p.w.last_error("c0");

		ASSERT_TRUE(error) << where << ": removed without a reason";
		EXPECT_NE(error->text, "") << where;
		EXPECT_TRUE(p.w.run_until_gone("store.0")) << where;
	}
}

/* Some of everything, which may fail but must end. */
void some_traffic(Pair &p)
{
	p.near = p.w.open("c0");
	p.far = p.w.open("store.0");
	if (!p.near || !p.far)
		return;
	auto write = [&p](File &file, uint64_t stream) {
		return p.w.spawn("writer", [&file, stream] {
			for (std::size_t size : {10u, 20000u, 300u, 100000u})
				if (file.write(pattern(stream, size)) < 0)
					return;
		});
	};
	auto read = [&p](File &file, uint64_t stream) {
		return p.w.spawn("reader", [&file, stream] {
			for (std::size_t size : {10u, 20000u, 300u, 100000u}) {
				std::string text = file.read();

				if (text.empty() || text[0] == '!')
					return;
				EXPECT_TRUE(text == pattern(stream, size));
			}
		});
	};
	std::vector<Task> tasks = {write(p.near, 1), write(p.far, 2), read(p.far, 1),
				   read(p.near, 2)};
	if (p.w.finish(tasks, 1 * sec))
		return;
	/* somebody waits for what never comes: the end of the channel ends that */
	p.w.del("c0");
	p.w.del("store.0");
	EXPECT_TRUE(p.w.finish(tasks, 60 * sec)) << "stuck";
}

/* The nth call that can fail does, for every n, from the set-up to the end of the traffic. */
TEST(Faults, EveryFallibleCallOfTheSetUp)
{
	uint64_t nth = 1;

	for (bool more = true; more; nth++) {
		Pair p(PairOptions{.world = {.seed = nth}, .channel = [](kd_channel_params &c) {
					   c.queues = 1;
					   c.poll_queues = 1;
					   c.depth = 2;
				   }});
		std::string where = "call " + std::to_string(nth);
		kd_error error{};

		p.w.fail_nth_any(nth);
		int err = p.begin(&error);
		if (err) {
			EXPECT_NE(error.text[0], '\0') << where;
		} else {
			expect_settled(p, where);
			if (p.w.state("c0") == KDIRECT_STATE_LIVE)
				some_traffic(p);
		}
		more = p.w.fault_fired();
		if (HasFatalFailure())
			return;
	}
	EXPECT_GT(nth, 50u);
}

/* The listener too, and the device. */
TEST(Faults, EveryAllocationOfTheStart)
{
	bool more = true;

	for (uint64_t nth = 1; more; nth++) {
		World w({.seed = nth});

		w.fail_nth_any(nth);
		Device &dev = w.add_device("10.0.0.2");
		int err = w.listen("store", "10.0.0.2", port);
		more = w.fault_fired();
		if (!more) {
			EXPECT_EQ(err, 0);
			EXPECT_TRUE(dev.core);
		}
	}
}

class EachKind : public testing::TestWithParam<int>
{
};

/* And then again and again: the nth of one kind and all that follow. */
TEST_P(EachKind, FromTheNthOn)
{
	bool more = true;

	for (uint64_t nth = 1; more && nth < 40; nth++) {
		Pair p(PairOptions{.world = {.seed = nth}, .channel = [](kd_channel_params &c) {
					   c.queues = 2;
					   c.depth = 2;
				   }});

		p.w.fail_nth(static_cast<Op>(GetParam()), nth, UINT64_MAX / 2);
		if (!p.begin()) {
			expect_settled(p, "call " + std::to_string(nth));
			if (p.w.state("c0") == KDIRECT_STATE_LIVE)
				some_traffic(p);
		}
		more = p.w.fault_fired();
	}
}

INSTANTIATE_TEST_SUITE_P(Faults, EachKind, testing::Range(0, static_cast<int>(Op::Count)),
			 [](const auto &test) { return "Op" + std::to_string(test.param); });

/* A work request fails on the device: the connection goes, everything ends. */
TEST(Faults, EveryWorkRequest)
{
	bool more = true;

	for (uint64_t nth = 1; more; nth++) {
		Pair p(PairOptions{.world = {.seed = nth},
				   .channel = [](kd_channel_params &c) { c.depth = 4; }});

		p.w.fail_nth(Op::WrError, nth);
		ASSERT_EQ(p.begin(), 0);
		expect_settled(p, "work request " + std::to_string(nth));
		if (p.w.state("c0") == KDIRECT_STATE_LIVE)
			some_traffic(p);
		more = p.w.fault_fired();
	}
}

/* Deleted at any moment of connecting, from either end. */
TEST(Faults, DeletedAtAnyMoment)
{
	for (uint64_t seed = 0; seed < 400; seed++) {
		Pair p(PairOptions{.world = {.seed = seed},
				   .channel = [](kd_channel_params &c) { c.queues = 2; }});

		ASSERT_EQ(p.begin(), 0);
		p.w.run_for(p.w.sched.rng.below(500 * us));
		switch (seed % 4) {
		case 0: p.w.del("c0"); break;
		case 1:
			if (p.w.del("store.0")) /* not yet there */
				p.w.del("c0");
			break;
		case 2:
			p.w.unlisten("store");
			p.w.del("c0");
			break;
		case 3: { /* both at once */
			Task one = p.w.spawn("del", [&] { p.w.del("c0"); });
			Task two = p.w.spawn("del", [&] { p.w.del("store.0"); });
			p.w.finish({one, two});
		}
		}
		EXPECT_TRUE(p.w.run_until_gone("store.0")) << "seed " << seed;
		if (seed % 4 != 1) {
			EXPECT_TRUE(p.w.run_until_gone("c0")) << "seed " << seed;
		}
	}
}

/* rmmod at any moment. */
TEST(Faults, UnloadedAtAnyMoment)
{
	for (uint64_t seed = 0; seed < 400; seed++) {
		Pair p(PairOptions{.world = {.seed = seed},
				   .channel = [](kd_channel_params &c) { c.queues = 2; }});

		ASSERT_EQ(p.begin(), 0);
		p.w.run_for(p.w.sched.rng.below(500 * us));
		uint64_t start = p.w.now();
		p.w.stop();
		EXPECT_LT(p.w.now() - start, 10 * sec) << "seed " << seed;
	}
}

TEST(Faults, UnloadedUnderTraffic)
{
	for (uint64_t seed = 0; seed < 100; seed++) {
		Pair p(seed);
		std::vector<Task> tasks;

		ASSERT_TRUE(p.up());
		for (File *file : {&p.near, &p.far}) {
			tasks.push_back(p.w.spawn("writer", [file] {
				while (file->write(pattern(1, 30000)) > 0)
					;
			}));
			tasks.push_back(p.w.spawn("reader", [file] {
				for (std::string text; file->read(text, 1 << 20) > 0;)
					EXPECT_TRUE(text == pattern(1, 30000));
			}));
		}
		p.w.run_for(p.w.sched.rng.below(2 * ms));
		p.w.del("c0");
		p.w.del("store.0");
		EXPECT_TRUE(p.w.finish(tasks, 20 * sec)) << "seed " << seed;
		p.close();
		p.w.stop();
	}
}

/* The device goes, at either end, with and without traffic. */
TEST(Faults, DeviceRemovedAtAnyMoment)
{
	for (uint64_t seed = 0; seed < 400; seed++) {
		Pair p(PairOptions{.world = {.seed = seed},
				   .channel = [](kd_channel_params &c) { c.queues = 2; }});
		std::vector<Task> tasks;

		ASSERT_EQ(p.begin(), 0);
		p.w.run_for(p.w.sched.rng.below(seed % 3 ? 500 * us : 3 * ms));
		p.near = p.w.open("c0");
		p.far = p.w.open("store.0");
		for (File *file : {&p.near, &p.far}) {
			if (!*file)
				continue;
			tasks.push_back(p.w.spawn("writer", [file] {
				while (file->write(pattern(1, 30000)) > 0)
					;
			}));
			tasks.push_back(p.w.spawn("reader", [file] {
				for (std::string text; file->read(text, 1 << 20) > 0;)
					;
			}));
		}
		uint64_t start = p.w.now();
		p.w.remove_device(seed % 2 ? p.a : p.b);
		EXPECT_LT(p.w.now() - start, 10 * sec) << "seed " << seed;
		p.w.del("c0");
		p.w.del("store.0");
		EXPECT_TRUE(p.w.finish(tasks, 60 * sec)) << "seed " << seed;
		EXPECT_TRUE(p.w.run_until_gone("c0")) << "seed " << seed;
		EXPECT_TRUE(p.w.run_until_gone("store.0")) << "seed " << seed;
	}
}

TEST(Faults, DeviceComesBackAndTheListenerListens)
{
	for (uint64_t seed = 0; seed < 50; seed++) {
		Pair p(seed);

		ASSERT_TRUE(p.up());
		p.close();
		p.w.remove_device(p.b);
		EXPECT_TRUE(p.w.run_until_gone("store.0"));
		p.w.del("c0");
		EXPECT_TRUE(p.w.run_until_gone("c0"));
		p.w.run_for(2 * sec);
		p.w.add_device("10.0.0.2");
		p.w.run_for(2 * sec);
		ASSERT_EQ(p.w.connect("c1", p.target, port), 0);
		EXPECT_TRUE(p.w.run_until_live("c1")) << "seed " << seed;
	}
}

/* The cable is pulled: every operation ends within the keep-alive's time. */
TEST(Faults, LinkDownEndsEverything)
{
	for (uint64_t seed = 0; seed < 100; seed++) {
		Pair p(PairOptions{.world = {.seed = seed}, .channel = [](kd_channel_params &c) {
					   c.queues = 2;
					   c.keep_alive_ms = 500;
				   }});
		std::vector<Task> tasks;

		ASSERT_TRUE(p.up());
		for (File *file : {&p.near, &p.far}) {
			tasks.push_back(p.w.spawn("writer", [file] {
				while (file->write(pattern(1, 30000)) > 0)
					;
			}));
			tasks.push_back(p.w.spawn("reader", [file, &p, seed] {
				std::string text;

				while (file->read(text, 1 << 20) > 0)
					if (seed % 2)
						p.w.run_for(100 * us);
			}));
		}
		p.w.run_for(p.w.sched.rng.below(2 * ms));
		p.w.set_link(p.b, false);
		EXPECT_TRUE(p.w.finish({tasks[0], tasks[1]}, 6 * sec)) << "seed " << seed;
		EXPECT_TRUE(p.w.finish(tasks, 30 * sec)) << "seed " << seed;
		ASSERT_TRUE(p.w.last_error("c0"));
		EXPECT_TRUE(p.w.run_until_gone("store.0")) << "seed " << seed;
	}
}

/* Not a word from the transport: only the keep-alive finds out. */
TEST(Faults, SilentPeerIsFoundByKeepAlive)
{
	for (uint64_t seed = 0; seed < 20; seed++) {
		Pair p(PairOptions{.world = {.seed = seed, .retry_timeout = 1000 * sec},
				   .channel = [](kd_channel_params &c) { c.keep_alive_ms = 200; }});

		ASSERT_TRUE(p.up());
		p.w.run_for(5 * sec);
		EXPECT_EQ(p.w.state("c0"), KDIRECT_STATE_LIVE) << "idle channels stay";
		p.w.set_link(p.b, false);
		uint64_t start = p.w.now();
		EXPECT_TRUE(p.w.run_until([&] { return p.w.last_error("c0"); }, 20 * sec));
		EXPECT_LE(p.w.now() - start, 1200 * ms) << "seed " << seed;
		EXPECT_EQ(p.w.last_error("c0")->err, KD_ETIMEDOUT);
		EXPECT_EQ(p.near.read(), "!" + std::to_string(KD_ETIMEDOUT));
	}
}

TEST(Faults, ShortOutageHeals)
{
	for (uint64_t seed = 0; seed < 50; seed++) {
		Pair p(seed);
		auto size = [](unsigned int i) { return std::size_t{1} + i * 1500; };

		ASSERT_TRUE(p.up());
		Task sender = send_all(p, p.near, 1, 40, size);
		Task receiver = receive_all(p, p.far, 1, 40, size);
		for (int i = 0; i < 5; i++) {
			p.w.run_for(p.w.sched.rng.below(500 * us));
			p.w.set_link(p.a, false);
			p.w.run_for(100 * ms);
			p.w.set_link(p.a, true);
			p.w.run_for(20 * ms);
		}
		EXPECT_TRUE(p.w.finish({sender, receiver})) << "seed " << seed;
		EXPECT_EQ(p.w.state("c0"), KDIRECT_STATE_LIVE) << "seed " << seed;
	}
}

/* The hardware hangs: the drain deadline bounds the teardown. */
TEST(Faults, StuckDeviceDoesNotStopTheTeardown)
{
	for (uint64_t seed = 0; seed < 100; seed++) {
		Pair p(PairOptions{.world = {.seed = seed}, .channel = [](kd_channel_params &c) {
					   c.queues = 2;
					   c.poll_queues = 1;
					   c.drain_timeout_ms = 500;
				   }});
		std::vector<Task> tasks;

		ASSERT_TRUE(p.up());
		for (File *file : {&p.near, &p.far})
			tasks.push_back(p.w.spawn("writer", [file] {
				while (file->write(pattern(1, 30000)) > 0)
					;
			}));
		p.w.run_for(p.w.sched.rng.below(1 * ms));
		p.w.set_stuck(p.a, true);
		p.w.run_for(p.w.sched.rng.below(1 * ms));
		uint64_t start = p.w.now();
		p.w.del("c0");
		EXPECT_TRUE(p.w.run_until_gone("c0", 20 * sec)) << "seed " << seed;
		EXPECT_LT(p.w.now() - start, 3 * sec) << "seed " << seed;
		p.w.del("store.0");
		EXPECT_TRUE(p.w.finish(tasks, 60 * sec)) << "seed " << seed;
		if (seed % 2)
			p.w.set_stuck(p.a, false);
	}
}

TEST(Faults, NobodyThere)
{
	for (uint64_t seed = 0; seed < 20; seed++) {
		World w({.seed = seed});
		kd_error error{};

		/* no device at all: may be refused at once */
		if (!w.connect("c0", "10.0.0.2", port, {}, &error)) {
			EXPECT_TRUE(w.run_until_gone("c0"));
			ASSERT_TRUE(w.last_error("c0"));
		}
		Device &a = w.add_device("10.0.0.1");
		w.add_device("10.0.0.2");
		/* an address that nobody has */
		EXPECT_EQ(w.connect("c1", "10.0.0.77", port), 0);
		EXPECT_TRUE(w.run_until_gone("c1"));
		ASSERT_TRUE(w.last_error("c1"));
		/* a port without a listener */
		EXPECT_EQ(w.connect("c2", "10.0.0.2", port), 0);
		EXPECT_TRUE(w.run_until_gone("c2"));
		ASSERT_TRUE(w.last_error("c2"));
		EXPECT_EQ(w.last_error("c2")->err, KD_ECONNREFUSED);
		/* no route */
		a.route_fails = true;
		EXPECT_EQ(w.connect("c3", "10.0.0.2", port), 0);
		EXPECT_TRUE(w.run_until_gone("c3"));
		ASSERT_TRUE(w.last_error("c3"));
		a.route_fails = false;
		/* no answer */
		w.set_link(a, false);
		EXPECT_EQ(w.connect("c4", "10.0.0.2", port,
				    [](kd_channel_params &c) { c.connect_timeout_ms = 700; }),
			  0);
		uint64_t start = w.now();
		EXPECT_TRUE(w.run_until_gone("c4"));
		EXPECT_LT(w.now() - start, 5 * sec);
		ASSERT_TRUE(w.last_error("c4"));
		EXPECT_EQ(w.last_error("c4")->err, KD_ETIMEDOUT);
	}
}

TEST(Faults, SmallDevicesAreRefusedOrFitted)
{
	const DeviceOptions small[] = {
		{.max_qp_wr = 64},   {.max_qp_wr = 16},  {.max_qp_wr = 4},    {.max_cqe = 128},
		{.max_cqe = 32},     {.max_cqe = 4},     {.max_read_sge = 1}, {.max_mr_pages = 16},
		{.max_mr_pages = 1}, {.max_rd_atom = 1}, {.max_rd_atom = 0},  {.max_sge = 1},
	};

	for (const DeviceOptions &options : small) {
		Pair p(PairOptions{.device = options,
				   .channel = [](kd_channel_params &c) { c.depth = 128; }});

		ASSERT_EQ(p.begin(), 0);
		expect_settled(p, "small device");
		if (p.w.state("c0") == KDIRECT_STATE_LIVE)
			some_traffic(p);
	}
}

/* One connects, goes, and another comes, for a while. */
TEST(Faults, ManyRoundsAreFlat)
{
	Pair p(11);

	for (int round = 0; round < 50; round++) {
		ASSERT_EQ(p.begin(), 0);
		ASSERT_TRUE(p.w.run_until_live("c0"));
		ASSERT_TRUE(p.w.run_until_live("store.0"));
		std::size_t before = p.w.allocations.size();
		some_traffic(p);
		EXPECT_EQ(p.w.state("c0"), KDIRECT_STATE_LIVE);
		p.close();
		EXPECT_LE(p.w.allocations.size(), before);
		p.w.del("c0");
		ASSERT_TRUE(p.w.run_until_gone("c0"));
		ASSERT_TRUE(p.w.run_until_gone("store.0"));
	}
}

} // namespace
