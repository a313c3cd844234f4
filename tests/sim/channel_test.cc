// SPDX-License-Identifier: GPL-2.0-only
// Two ends of one channel: connect, carry messages, end in order.
#include "pair.h"

using namespace sim;

namespace
{

TEST(Channel, ConnectsCarriesAndGoes)
{
	for (uint64_t seed = 0; seed < 100; seed++) {
		Pair p(seed);

		ASSERT_TRUE(p.up());
		EXPECT_EQ(p.near.write("hello"), 5);
		EXPECT_EQ(p.far.read(), "hello");
		std::string big = pattern(seed, 1 << 20);
		Task writer = p.w.spawn("writer", [&] {
			EXPECT_EQ(p.far.write(big), static_cast<int64_t>(big.size()));
		});
		EXPECT_TRUE(p.near.read() == big);
		EXPECT_TRUE(p.w.finish({writer}));
	}
}

TEST(Channel, V6)
{
	Pair p(PairOptions{.v6 = true});

	ASSERT_TRUE(p.up());
	EXPECT_EQ(p.far.write("hello"), 5);
	EXPECT_EQ(p.near.read(), "hello");
}

TEST(Channel, AnyAddress)
{
	World w;

	w.add_device("10.0.0.1");
	w.add_device("10.0.0.2");
	ASSERT_EQ(w.listen("store", "0.0.0.0", port), 0);
	ASSERT_EQ(w.connect("c0", "10.0.0.2", port), 0);
	EXPECT_TRUE(w.run_until_live("c0"));
}

/* A peer may be oneself. */
TEST(Channel, ToItselfOverOneDevice)
{
	World w;

	w.add_device("10.0.0.1");
	ASSERT_EQ(w.listen("store", "10.0.0.1", port), 0);
	ASSERT_EQ(w.connect("c0", "10.0.0.1", port), 0);
	ASSERT_TRUE(w.run_until_live("c0"));
	ASSERT_TRUE(w.run_until_live("store.0"));
	File a = w.open("c0"), b = w.open("store.0");
	EXPECT_EQ(a.write("hello"), 5);
	EXPECT_EQ(b.read(), "hello");
}

TEST(Channel, TermsAreTheLeastOfBothEnds)
{
	Pair p(PairOptions{.listener =
				   [](kd_listener_params &l) {
					   l.max_depth = 8;
					   l.max_message = 65536;
					   l.eager_limit = 4096;
				   },
			   .channel =
				   [](kd_channel_params &c) {
					   c.queues = 2;
					   c.poll_queues = 1;
					   c.depth = 64;
				   }});

	ASSERT_TRUE(p.up());
	for (File *file : {&p.near, &p.far}) {
		kdirect_info info = file->info();

		EXPECT_EQ(info.depth, 8u);
		EXPECT_EQ(info.max_message, 65536u);
		EXPECT_EQ(info.eager_limit, 4096u);
		EXPECT_EQ(info.queues, 2);
		EXPECT_EQ(info.poll_queues, 1);
		EXPECT_EQ(info.state, uint32_t{KDIRECT_STATE_LIVE});
		for (uint32_t word : info.reserved)
			EXPECT_EQ(word, 0u);
	}
	std::string largest(65536, 'x');
	EXPECT_EQ(p.near.write(largest + "y"), -KD_EMSGSIZE);
	Task writer = p.w.spawn("writer", [&] { EXPECT_EQ(p.near.write(largest), 65536); });
	EXPECT_TRUE(p.far.read() == largest);
	EXPECT_TRUE(p.w.finish({writer}));
}

TEST(Channel, ShortReadsLoseNothingAndMergeNothing)
{
	Pair p(3);

	ASSERT_TRUE(p.up());
	EXPECT_EQ(p.near.write("abcdef"), 6);
	EXPECT_EQ(p.near.write("gh"), 2);
	EXPECT_EQ(p.far.read(2), "ab");
	EXPECT_EQ(p.far.read(3), "cde");
	EXPECT_EQ(p.far.read(100), "f");
	EXPECT_EQ(p.far.read(100), "gh");
	std::string big = pattern(1, 100000);
	Task writer = p.w.spawn("writer", [&] { EXPECT_EQ(p.near.write(big), 100000); });
	EXPECT_TRUE(p.far.read(60000) == big.substr(0, 60000));
	EXPECT_TRUE(p.far.read(60000) == big.substr(60000));
	EXPECT_TRUE(p.w.finish({writer}));
}

TEST(Channel, ZeroLengthWriteSendsNothing)
{
	Pair p(4);

	ASSERT_TRUE(p.up());
	EXPECT_EQ(p.near.write(""), 0);
	p.w.run_for(1 * ms);
	EXPECT_EQ(p.far.read(10, KD_IO_NOWAIT), "!" + std::to_string(KD_EAGAIN));
}

TEST(Channel, BadMemorySendsNothingAndLosesNothing)
{
	for (std::size_t size : {100u, 16384u, 16385u, 200000u})
		for (std::size_t fault : {std::size_t{0}, std::size_t{1}, size / 2, size - 1}) {
			Pair p(size + fault);
			std::string text = pattern(7, size), buffer(size, '\0');

			ASSERT_TRUE(p.up());
			kd_iter bad = source_of(text);
			bad.fault_at = fault;
			EXPECT_EQ(p.near.write(bad), -KD_EFAULT);
			EXPECT_EQ(bad.pos, 0u);
			Task writer = p.w.spawn("writer", [&] {
				EXPECT_EQ(p.near.write(text), static_cast<int64_t>(size));
			});
			kd_iter into = target_in(buffer);
			into.fault_at = fault;
			EXPECT_EQ(p.far.read(into), -KD_EFAULT);
			EXPECT_TRUE(p.far.read() == text);
			EXPECT_TRUE(p.w.finish({writer}));
		}
}

TEST(Channel, ScatteredMemory)
{
	Pair p(5);
	std::string text = pattern(1, 300000), got(300000, '\0');
	kd_iter from, to;

	ASSERT_TRUE(p.up());
	for (std::size_t at = 0, step = 1; at < text.size(); at += step, step = step * 3 + 1) {
		step = std::min(step, text.size() - at);
		from.segments.push_back({reinterpret_cast<uint8_t *>(text.data()) + at, step});
	}
	for (std::size_t at = 0; at < got.size(); at += 50000)
		to.segments.push_back({reinterpret_cast<uint8_t *>(got.data()) + at, 50000});
	Task writer = p.w.spawn("writer", [&] { EXPECT_EQ(p.near.write(from), 300000); });
	EXPECT_EQ(p.far.read(to), 300000);
	EXPECT_TRUE(got == text);
	EXPECT_TRUE(p.w.finish({writer}));
}

struct TrafficCase {
	const char *name;
	uint32_t queues, poll_queues, depth, eager;
	uint32_t transport = 1;
	uint32_t near_flags = 0, far_flags = 0;
	unsigned int count = 60;
};

class Traffic : public testing::TestWithParam<TrafficCase>
{
};

/* Both directions at once, random sizes, both sides of the eager limit. */
TEST_P(Traffic, BothWaysInOrder)
{
	const TrafficCase &t = GetParam();

	for (uint64_t seed = 0; seed < 30; seed++) {
		Pair p(PairOptions{
			.world = {.seed = seed},
			.device = {.transport = t.transport},
			.listener = [&](kd_listener_params &l) { l.eager_limit = t.eager; },
			.channel =
				[&](kd_channel_params &c) {
					c.queues = t.queues;
					c.poll_queues = t.poll_queues;
					c.depth = t.depth;
					c.eager_limit = t.eager;
				}});
		auto size = [seed, &t](unsigned int i) -> std::size_t {
			Rng rng(seed * 1000 + i);

			switch (rng.below(6)) {
			case 0: return 1;
			case 1: return t.eager;
			case 2: return t.eager + 1;
			case 3: return rng.range(1, 200000);
			default: return rng.range(1, t.eager);
			}
		};

		ASSERT_TRUE(p.up()) << "seed " << seed;
		EXPECT_TRUE(p.w.finish({send_all(p, p.near, 1000, t.count, size, t.near_flags),
					send_all(p, p.far, 2000, t.count, size, t.far_flags),
					receive_all(p, p.far, 1000, t.count, size, t.far_flags),
					receive_all(p, p.near, 2000, t.count, size, t.near_flags)}))
			<< "seed " << seed;
	}
}

INSTANTIATE_TEST_SUITE_P(
	Channel, Traffic,
	testing::Values(
		TrafficCase{"Plain", 1, 0, 32, 16384}, TrafficCase{"DepthOne", 1, 0, 1, 16384},
		TrafficCase{"DepthTwo", 1, 0, 2, 256}, TrafficCase{"FourQueues", 4, 0, 4, 1024},
		TrafficCase{"ManyQueuesDepthOne", 8, 0, 1, 512},
		TrafficCase{"PollQueuesSleeping", 0, 2, 4, 1024},
		TrafficCase{"PollQueuesPolling", 0, 2, 4, 1024, 1, KD_IO_POLL, KD_IO_POLL},
		TrafficCase{"OneEndPolls", 1, 1, 2, 1024, 1, KD_IO_POLL, 0},
		TrafficCase{"PollDepthOne", 0, 1, 1, 1024, 1, KD_IO_POLL, 0},
		TrafficCase{"Nowait", 2, 0, 3, 1024, 1, KD_IO_NOWAIT, KD_IO_NOWAIT},
		TrafficCase{"NowaitPolling", 1, 1, 3, 1024, 1, KD_IO_NOWAIT | KD_IO_POLL,
			    KD_IO_NOWAIT},
		TrafficCase{"InfiniBand", 1, 0, 8, 4096, 0}, TrafficCase{"Iwarp", 2, 0, 8, 4096, 2},
		TrafficCase{"IwarpDepthOne", 1, 0, 1, 4096, 2}),
	[](const auto &test) { return test.param.name; });

TEST(Channel, SeveralWritersAndReadersAtOnce)
{
	for (uint64_t seed = 0; seed < 30; seed++) {
		Pair p(PairOptions{.world = {.seed = seed}, .channel = [](kd_channel_params &c) {
					   c.queues = 2, c.depth = 2;
				   }});
		std::vector<Task> fibers;
		std::multiset<std::string> sent, got;

		ASSERT_TRUE(p.up());
		for (uint64_t writer = 0; writer < 4; writer++)
			fibers.push_back(p.w.spawn("writer", [&, writer] {
				for (uint64_t i = 0; i < 10; i++) {
					std::string text = pattern(writer * 100 + i, 1 + i * 3000);

					sent.insert(text);
					EXPECT_EQ(p.near.write(text),
						  static_cast<int64_t>(text.size()));
				}
			}));
		for (int reader = 0; reader < 4; reader++)
			fibers.push_back(p.w.spawn("reader", [&] {
				for (int i = 0; i < 10; i++)
					got.insert(p.far.read());
			}));
		ASSERT_TRUE(p.w.finish(fibers)) << "seed " << seed;
		EXPECT_TRUE(sent == got) << "seed " << seed;
	}
}

TEST(Channel, DeletingEndsInOrder)
{
	for (uint64_t seed = 0; seed < 50; seed++) {
		Pair p(seed);

		ASSERT_TRUE(p.up());
		EXPECT_EQ(p.near.write("last words"), 10);
		EXPECT_EQ(p.w.del("c0"), 0);
		p.w.run_until([&] { return p.w.last_error("c0") || p.w.state("c0") < 0; },
			      10 * sec);
		EXPECT_EQ(p.w.state("c0"), -1) << "seed " << seed;
		EXPECT_EQ(p.near.read(), "!" + std::to_string(KD_ENODEV));
		EXPECT_EQ(p.near.write("x"), -KD_EPIPE);
		EXPECT_EQ(p.far.read(), "last words") << "seed " << seed;
		EXPECT_EQ(p.far.read(), "") << "seed " << seed << ": not an end in order";
		EXPECT_EQ(p.far.write("x"), -KD_EPIPE);
		EXPECT_TRUE(p.w.run_until_gone("store.0"));
		EXPECT_EQ(p.far.read(), "") << "still";
	}
}

TEST(Channel, DeletingWaitsForLargeMessages)
{
	for (uint64_t seed = 0; seed < 50; seed++) {
		Pair p(seed);
		std::string big = pattern(seed, 500000);

		ASSERT_TRUE(p.up());
		EXPECT_EQ(p.near.write(big, KD_IO_NOWAIT), static_cast<int64_t>(big.size()));
		EXPECT_EQ(p.w.del("c0"), 0);
		EXPECT_TRUE(p.far.read() == big) << "seed " << seed;
		EXPECT_EQ(p.far.read(), "") << "seed " << seed;
		EXPECT_TRUE(p.w.run_until_gone("c0"));
	}
}

TEST(Channel, ListenerGoesChannelsStay)
{
	Pair p(6);

	ASSERT_TRUE(p.up());
	EXPECT_EQ(p.w.unlisten("store"), 0);
	EXPECT_EQ(p.near.write("still here"), 10);
	EXPECT_EQ(p.far.read(), "still here");
	EXPECT_EQ(p.w.connect("c1", p.target, port), 0);
	EXPECT_TRUE(p.w.run_until_gone("c1"));
	ASSERT_TRUE(p.w.last_error("c1"));
	EXPECT_EQ(p.w.last_error("c1")->err, KD_ECONNREFUSED);
}

TEST(Channel, PollTellsTheTruth)
{
	for (uint64_t seed = 0; seed < 30; seed++) {
		Pair p(PairOptions{.world = {.seed = seed},
				   .channel = [](kd_channel_params &c) { c.depth = 2; }});

		ASSERT_TRUE(p.up());
		EXPECT_EQ(p.far.poll(KD_POLL_IN), 0u);
		EXPECT_EQ(p.near.poll(KD_POLL_IN | KD_POLL_OUT), KD_POLL_OUT);
		Task waiter = p.w.spawn(
			"poll", [&] { EXPECT_EQ(p.far.poll(KD_POLL_IN, 10 * sec), KD_POLL_IN); });
		EXPECT_EQ(p.near.write("x"), 1);
		EXPECT_TRUE(p.w.finish({waiter}, 5 * sec)) << "seed " << seed;
		EXPECT_EQ(p.near.write("x"), 1);
		int64_t ret;
		while ((ret = p.near.write("x", KD_IO_NOWAIT)) == 1)
			;
		EXPECT_EQ(ret, -KD_EAGAIN);
		p.w.run_for(10 * ms);
		EXPECT_EQ(p.near.poll(KD_POLL_OUT), 0u) << "a full receive queue";
		waiter = p.w.spawn("poll", [&] {
			EXPECT_EQ(p.near.poll(KD_POLL_OUT, 10 * sec), KD_POLL_OUT);
		});
		while (p.far.read(10, KD_IO_NOWAIT) == "x")
			;
		EXPECT_TRUE(p.w.finish({waiter}, 5 * sec)) << "seed " << seed;
		waiter = p.w.spawn("poll", [&] {
			EXPECT_TRUE(p.far.poll(KD_POLL_IN, 10 * sec) & KD_POLL_HUP);
		});
		p.w.del("c0");
		EXPECT_TRUE(p.w.finish({waiter}, 5 * sec)) << "seed " << seed;
	}
}

TEST(Channel, Ping)
{
	for (uint64_t seed = 0; seed < 30; seed++) {
		Pair p(PairOptions{.world = {.seed = seed},
				   .channel = [](kd_channel_params &c) { c.poll_queues = 1; }});
		kdirect_ping ping{};

		ASSERT_TRUE(p.up());
		EXPECT_EQ(p.near.ping(64, 0, 0, &ping), 0) << "seed " << seed;
		EXPECT_GT(ping.rtt_ns, 0u);
		EXPECT_EQ(p.near.ping(64, KDIRECT_PING_POLL), 0);
		EXPECT_EQ(p.far.ping(1), 0);
		EXPECT_EQ(p.far.ping(16384), 0);
		EXPECT_EQ(p.far.ping(16385), KD_EMSGSIZE);
		EXPECT_EQ(p.far.ping(0), KD_EINVAL);
		EXPECT_EQ(p.far.ping(1, 0x80), KD_EINVAL);
		EXPECT_EQ(p.far.ping(1, 0, 60 * sec + 1), KD_EINVAL);
		ping = {};
		ping.reserved[1] = 1;
		EXPECT_EQ(p.far.ping(1, 0, 0, &ping), KD_EINVAL);
		/* beside messages, several at once */
		auto size = [](unsigned int) { return std::size_t{500}; };
		auto pings = [&](File &file) {
			return p.w.spawn("ping", [&] {
				for (int i = 0; i < 5; i++)
					EXPECT_EQ(file.ping(1000), 0);
			});
		};
		EXPECT_TRUE(p.w.finish({send_all(p, p.near, 0, 50, size),
					receive_all(p, p.far, 0, 50, size), pings(p.near),
					pings(p.near), pings(p.far)}))
			<< "seed " << seed;
	}
}

TEST(Channel, PollNeedsAPollQueue)
{
	Pair p(7);

	ASSERT_TRUE(p.up());
	EXPECT_EQ(p.near.write("x", KD_IO_POLL), -KD_EOPNOTSUPP);
	EXPECT_EQ(p.near.read(10, KD_IO_POLL), "!" + std::to_string(KD_EOPNOTSUPP));
	EXPECT_EQ(p.near.set_flags(KDIRECT_OPEN_POLL), KD_EOPNOTSUPP);
	EXPECT_EQ(p.near.set_flags(KDIRECT_OPEN_FLAGS + 1), KD_EINVAL);
	EXPECT_EQ(p.near.ping(1, KDIRECT_PING_POLL), KD_EOPNOTSUPP);
}

TEST(Channel, MemlockLimit)
{
	Pair p(8);
	std::string big = pattern(1, 500000);

	ASSERT_TRUE(p.up());
	for (uint64_t limit : {uint64_t{0}, uint64_t{page_size}, uint64_t{121 * page_size}}) {
		p.w.node().memlock_limit = limit;
		Task writer = p.w.spawn("writer", [&] {
			EXPECT_EQ(p.near.write(big), static_cast<int64_t>(big.size()));
		});
		EXPECT_TRUE(p.far.read() == big) << "a copy needs no locked memory";
		EXPECT_TRUE(p.w.finish({writer}));
		EXPECT_EQ(p.w.node().memlock, 0u);
	}
}

TEST(Channel, SignalsEndWaitsCleanly)
{
	for (uint64_t seed = 0; seed < 40; seed++) {
		Pair p(PairOptions{.world = {.seed = seed},
				   .channel = [](kd_channel_params &c) { c.depth = 1; }});

		ASSERT_TRUE(p.up());
		Task reader = p.w.spawn(
			"reader", [&] { EXPECT_EQ(p.far.read(), "!" + std::to_string(KD_EINTR)); });
		p.w.run_for(1 * ms);
		p.w.signal(reader, false);
		EXPECT_TRUE(p.w.finish({reader}, 1 * sec)) << "seed " << seed;
		int sent = 0;
		while (p.near.write("x", KD_IO_NOWAIT) == 1)
			sent++;
		Task writer = p.w.spawn("writer", [&] { EXPECT_EQ(p.near.write("y"), -KD_EINTR); });
		p.w.run_for(1 * ms);
		p.w.signal(writer, false);
		EXPECT_TRUE(p.w.finish({writer}, 1 * sec)) << "seed " << seed;
		for (; sent; sent--)
			EXPECT_EQ(p.far.read(), "x");
		EXPECT_EQ(p.far.read(10, KD_IO_NOWAIT), "!" + std::to_string(KD_EAGAIN));
	}
}

/* Once posted, a large message stays: only a fatal signal ends the wait. */
TEST(Channel, FatalSignalDuringALargeWrite)
{
	for (uint64_t seed = 0; seed < 40; seed++) {
		Pair p(seed);
		auto big = std::make_unique<std::string>(pattern(seed, 400000));
		int64_t ret = 0;

		ASSERT_TRUE(p.up());
		Task writer = p.w.spawn("writer", [&] { ret = p.near.write(*big); });
		p.w.run_for(p.w.sched.rng.below(60 * us));
		bool alive = p.w.running(writer);
		if (alive)
			p.w.signal(writer, true);
		ASSERT_TRUE(p.w.finish({writer})) << "seed " << seed;
		EXPECT_TRUE(ret == -KD_EINTR || ret == static_cast<int64_t>(big->size()))
			<< "seed " << seed << ": " << ret;
		p.w.del("c0");
		EXPECT_TRUE(p.w.run_until_gone("c0"));
		EXPECT_EQ(p.w.node().memlock, 0u) << "seed " << seed;
	}
}

} // namespace
