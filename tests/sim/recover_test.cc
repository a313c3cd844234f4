// SPDX-License-Identifier: GPL-2.0-only
// Sessions that outlive their connection: nothing is lost, repeated or changed, whatever fails
// and whenever, and every wait has its end.
#include "mapped.h"
#include "pair.h"

using namespace sim;

namespace
{

constexpr uint32_t for_ever = UINT32_MAX;

PairOptions lasting(uint64_t seed, uint32_t loss_ms = 60000)
{
	return {.world = {.seed = seed, .uneven = seed % 2 == 1},
		.channel = [seed, loss_ms](kd_channel_params &c) {
			c.queues = static_cast<uint32_t>(1 + seed % 3);
			c.poll_queues = seed % 5 == 0;
			c.depth = static_cast<uint32_t>(1 + seed % 7);
			c.loss_timeout_ms = loss_ms;
			c.reconnect_delay_ms = 200;
			c.reconnect_max_delay_ms = 1000;
			c.keep_alive_ms = 500;
			c.connect_timeout_ms = 5000;
			c.drain_timeout_ms = 500;
		}};
}

struct kd_channel_info info_of(World &w, const char *channel)
{
	struct kd_channel_info info {
	};

	EXPECT_TRUE(w.info(channel, info));
	return info;
}

/* Messages in both directions, small and large ones mixed, each seen once and in order. */
struct Streams {
	Streams(Pair &pair, unsigned int count) : p(pair)
	{
		auto size = [](unsigned int i) { return 1 + (i * 7919) % (i % 4 ? 3000 : 60000); };

		tasks = {send_all(p, p.near, 1000, count, size),
			 receive_all(p, p.far, 1000, count, size),
			 send_all(p, p.far, 5000, count, size),
			 receive_all(p, p.near, 5000, count, size)};
	}
	bool done() const
	{
		return std::none_of(tasks.begin(), tasks.end(),
				    [this](Task task) { return p.w.running(task); });
	}
	bool end() { return p.w.finish(tasks); }

	Pair &p;
	std::vector<Task> tasks;
};

bool both_live(Pair &p)
{
	return p.w.state("c0") == KDIRECT_STATE_LIVE && p.w.state("store.0") == KDIRECT_STATE_LIVE;
}

/* Time passes until both ends are through with what has happened. */
bool calm(Pair &p, uint64_t timeout = 60 * sec)
{
	return p.w.run_until([&] { return both_live(p); }, timeout);
}

TEST(Recover, LinkDownUnderMessages)
{
	for (uint64_t seed = 0; seed < 120; seed++) {
		Pair p(lasting(seed));
		Rng rng(seed);

		ASSERT_TRUE(p.up());
		Streams streams(p, 60);
		for (int outage = 0; outage < 3; outage++) {
			p.w.run_for(rng.below(3 * ms));
			Device &dev = rng.chance(50) ? p.a : p.b;
			p.w.set_link(dev, false);
			p.w.run_for(rng.below(4 * sec));
			p.w.set_link(dev, true);
			if (rng.chance(70)) {
				ASSERT_TRUE(calm(p)) << seed;
			}
		}
		ASSERT_TRUE(streams.end()) << seed;
		ASSERT_TRUE(calm(p)) << seed;
		p.close();
	}
}

/* A work request fails on its own, of any kind. */
TEST(Recover, WorkRequestsThatFail)
{
	for (uint64_t seed = 0; seed < 150; seed++) {
		Pair p(lasting(seed));
		Rng rng(seed);

		ASSERT_TRUE(p.up());
		Streams streams(p, 40);
		p.w.fail_nth(Op::WrError, 1 + rng.below(120));
		ASSERT_TRUE(streams.end()) << seed;
		ASSERT_TRUE(calm(p)) << seed;
		p.close();
	}
}

/* Each call of an attempt that can fail fails once. */
TEST(Recover, EachCallOfAnAttemptFails)
{
	unsigned int fired = 0;

	for (uint64_t nth = 1; nth < 120; nth++) {
		Pair p(lasting(nth));

		ASSERT_TRUE(p.up());
		Streams streams(p, 30);
		p.w.run_for(300 * us);
		p.w.set_link(p.a, false);
		p.w.run_for(2 * sec);
		p.w.fail_nth_any(nth);
		p.w.set_link(p.a, true);
		ASSERT_TRUE(streams.end()) << nth;
		ASSERT_TRUE(calm(p)) << nth;
		fired += p.w.fault_fired();
		p.close();
	}
	EXPECT_GT(fired, 100u);
}

TEST(Recover, DevicesThatGoAndComeBack)
{
	for (uint64_t seed = 0; seed < 60; seed++) {
		Pair p(lasting(seed));
		Rng rng(seed);
		bool near = seed % 2;
		const char *addr = near ? "10.0.0.1" : "10.0.0.2";

		ASSERT_TRUE(p.up());
		Streams streams(p, 40);
		p.w.run_for(rng.below(2 * ms));
		p.w.remove_device(near ? p.a : p.b);
		p.w.run_for(rng.below(3 * sec));
		p.w.add_device(addr);
		ASSERT_TRUE(streams.end()) << seed;
		ASSERT_TRUE(calm(p)) << seed;
		p.close();
	}
}

TEST(Recover, TheListenerIsGoneForAWhile)
{
	for (uint64_t seed = 0; seed < 40; seed++) {
		Pair p(lasting(seed));
		Rng rng(seed);

		ASSERT_TRUE(p.up());
		Streams streams(p, 40);
		p.w.run_for(rng.below(2 * ms));
		ASSERT_EQ(p.w.unlisten("store"), 0);
		p.w.set_link(p.b, false);
		p.w.run_for(1 * sec);
		p.w.set_link(p.b, true);
		p.w.run_for(rng.below(3 * sec));
		ASSERT_EQ(p.w.listen("store", "10.0.0.2", port), 0);
		ASSERT_TRUE(streams.end()) << seed;
		ASSERT_TRUE(calm(p)) << seed;
		p.close();
	}
}

/* The end comes in time, with the first cause, and wakes everybody. */
TEST(Recover, TheLossTimeoutEndsIt)
{
	for (uint64_t seed = 0; seed < 30; seed++) {
		Pair p(lasting(seed, 3000));
		std::string text;
		int64_t written = 1;
		int64_t got = 1;

		ASSERT_TRUE(p.up());
		Task reader = p.w.spawn("reader", [&] { got = p.near.read(text, 100); });
		Task writer = p.w.spawn("writer", [&] {
			while (written > 0)
				written = p.near.write("message");
		});
		p.w.run_for(1 * ms);
		uint64_t begun = p.w.now();
		p.w.set_link(p.a, false);
		ASSERT_TRUE(
			p.w.run_until([&] { return p.w.state("c0") == KDIRECT_STATE_RECOVERING; }));
		uint64_t noticed = p.w.now() - begun;
		ASSERT_TRUE(p.w.finish({reader, writer}));
		uint64_t took = p.w.now() - begun - noticed;
		EXPECT_GE(took, 2900 * ms) << seed;
		EXPECT_LE(took, 3000 * ms * 11 / 10 + 1 * sec) << seed;
		EXPECT_EQ(written, -KD_EPIPE);
		EXPECT_LT(got, 0);
		ASSERT_TRUE(p.w.run_until([&] { return p.w.state("c0") == KDIRECT_STATE_DEAD; }));
		EXPECT_NE(std::string(info_of(p.w, "c0").error.text).find("no connection for 3000"),
			  std::string::npos)
			<< info_of(p.w, "c0").error.text;
		/* the target has waited as long */
		EXPECT_TRUE(p.w.run_until_gone("store.0"));
		p.close();
	}
}

/* Messages end with ECONNRESET at once where the peer has forgotten the session. */
TEST(Recover, APeerThatForgets)
{
	for (uint64_t seed = 0; seed < 30; seed++) {
		Pair p(lasting(seed, for_ever));
		std::string text;
		int64_t got = 1;

		ASSERT_TRUE(p.up());
		Task reader = p.w.spawn("reader", [&] { got = p.near.read(text, 100); });
		p.w.run_for(1 * ms);
		p.w.set_link(p.a, false);
		p.far.close();
		ASSERT_EQ(p.w.del("store.0"), 0);
		ASSERT_TRUE(p.w.run_until_gone("store.0"));
		p.w.set_link(p.a, true);
		ASSERT_TRUE(p.w.finish({reader}, 20 * sec)) << seed;
		EXPECT_EQ(got, -KD_ECONNRESET);
		EXPECT_EQ(p.near.write("x"), -KD_EPIPE);
		EXPECT_EQ(info_of(p.w, "c0").error.err, KD_ECONNRESET);
		p.close();
	}
}

/* Whoever deletes, or unloads, during an outage does not wait for the peer. */
TEST(Recover, DeletedDuringAnOutage)
{
	for (uint64_t seed = 0; seed < 120; seed++) {
		Pair p(lasting(seed, for_ever));
		Rng rng(seed);

		ASSERT_TRUE(p.up());
		Streams streams(p, 10);
		ASSERT_TRUE(streams.end());
		p.w.set_link(p.b, false);
		p.w.run_for(rng.below(4 * sec));
		if (seed % 2)
			p.w.set_link(p.b, true);
		p.w.run_for(rng.below(seed % 4 ? 200 * us : 2 * sec));
		if (seed % 3 == 0)
			continue; /* the end of the world unloads */
		p.close();
		uint64_t begun = p.w.now();
		ASSERT_EQ(p.w.del("c0"), 0);
		ASSERT_TRUE(p.w.run_until_gone("c0", 5 * sec)) << seed;
		EXPECT_LE(p.w.now() - begun, 1500 * ms) << seed;
	}
}

TEST(Recover, FastFailure)
{
	PairOptions options = lasting(1, for_ever);
	auto tweak = options.channel;
	options.channel = [tweak](kd_channel_params &c) {
		tweak(c);
		c.fast_io_fail_ms = 2000;
	};
	Pair p(options);
	ASSERT_TRUE(p.up());
	p.w.set_link(p.a, false);
	int64_t written = 1;
	Task writer = p.w.spawn("writer", [&] {
		while (written > 0)
			written = p.near.write("message");
	});
	ASSERT_TRUE(p.w.finish({writer}, 10 * sec));
	EXPECT_EQ(written, -KD_ETIMEDOUT);
	EXPECT_EQ(p.w.state("c0"), KDIRECT_STATE_RECOVERING);
	EXPECT_EQ(p.near.write("x"), -KD_ETIMEDOUT);
	EXPECT_TRUE(p.near.poll(KD_POLL_OUT));
	p.w.set_link(p.a, true);
	ASSERT_TRUE(calm(p));
	/* what was accepted before it failed arrives, and what comes now */
	writer = p.w.spawn("writer", [&] { written = p.near.write("now"); });
	for (std::string text; text != "now"; text = p.far.read())
		ASSERT_TRUE(text.empty() || text == "message") << text;
	ASSERT_TRUE(p.w.finish({writer}));
	EXPECT_EQ(written, 3);
	p.close();
}

/* --- mappings ------------------------------------------------------------------------------ */

/* Writes, and reads back what it wrote, in a part of the mapping of its own. */
struct Verifier {
	Verifier(Mapped &mapped, unsigned int number, unsigned int rounds)
		: m(mapped), base(number * mib), file(open_map(mapped.w, "m")), memory(2 * mib, 0)
	{
		task = m.w.spawn("verifier", [this, number, rounds] { run(number, rounds); });
	}
	void run(unsigned int number, unsigned int rounds)
	{
		Rng rng(m.w.opts.seed * 31 + number);

		for (unsigned int i = 0; i < rounds; i++) {
			std::size_t len = rng.chance(60) ? 1 + rng.below(9000) : 1 + rng.below(mib);
			uint64_t at = base + rng.below(mib - len + 1);
			std::string text = pattern(number * 1000 + i, len);
			std::memcpy(memory.data(), text.data(), len);
			kd_iter from = source_of(std::string_view(memory.data(), len));
			ASSERT_EQ(file.io(from, at, true), static_cast<int64_t>(len))
				<< m.w.opts.seed << ' ' << i;
			kd_iter to = target_in(std::span<char>(memory.data() + mib, len));
			ASSERT_EQ(file.io(to, at, false), static_cast<int64_t>(len))
				<< m.w.opts.seed << ' ' << i;
			ASSERT_TRUE(std::string_view(memory.data() + mib, len) == text)
				<< m.w.opts.seed << ' ' << i;
		}
	}
	Mapped &m;
	uint64_t base;
	MapFile file;
	std::string memory;
	Task task;
};

TEST(Recover, MappingsAreVerified)
{
	for (uint64_t seed = 0; seed < 100; seed++) {
		Mapped m(lasting(seed));
		Rng rng(seed);
		std::deque<Verifier> verifiers;
		std::vector<Task> tasks;

		for (unsigned int i = 0; i < 4; i++) {
			verifiers.emplace_back(m, i, 12);
			tasks.push_back(verifiers.back().task);
		}
		for (int outage = 0; outage < 3; outage++) {
			m.w.run_for(rng.below(2 * ms));
			if (rng.chance(30))
				m.w.fail_nth(Op::WrError, 1 + rng.below(20));
			Device &dev = rng.chance(50) ? m.a : m.b;
			m.w.set_link(dev, false);
			m.w.run_for(rng.below(3 * sec));
			m.w.set_link(dev, true);
			m.w.run_for(rng.below(2 * sec));
		}
		ASSERT_TRUE(m.w.finish(tasks)) << seed;
		m.close();
	}
}

/* What the peer made anew is another export: nothing is written into it. */
TEST(Recover, AnotherExportIsStale)
{
	for (uint64_t seed = 0; seed < 40; seed++) {
		Mapped m(lasting(seed, for_ever));
		std::string text(5000, 'w');
		int64_t ret = 1;
		Task writer = m.w.spawn("writer", [&] {
			while (ret > 0)
				ret = m.file.pwrite(text, 0);
		});

		m.w.run_for(1 * ms);
		m.w.set_link(m.a, false);
		m.w.run_for(2 * sec);
		ASSERT_EQ(del_export(m.w, "mem"), 0);
		ASSERT_TRUE(run_until_unexported(m.w, "mem"));
		if (seed % 2) {
			ASSERT_EQ(add_export(m.w, "mem", "store", m.size), 0);
		}
		m.w.set_link(m.a, true);
		ASSERT_TRUE(m.w.finish({writer})) << seed;
		EXPECT_EQ(ret, -KD_ESTALE);
		ASSERT_TRUE(m.w.run_until([&] { return map_state(m.w, "m") == KDIRECT_MAP_DEAD; }));
		m.file.close();
		ASSERT_EQ(del_map(m.w, "m"), 0);
		ASSERT_TRUE(run_until_unmapped(m.w, "m"));
		if (seed % 2) {
			ASSERT_EQ(add_map(m.w, "m", "c0", "mem"), 0);
			ASSERT_TRUE(run_until_mapped(m.w, "m"));
		}
		m.close();
	}
}

TEST(Recover, MappingsAndExportsGoDuringAnOutage)
{
	for (uint64_t seed = 0; seed < 80; seed++) {
		Mapped m(lasting(seed, for_ever));
		Rng rng(seed);
		int64_t ret = 1;
		std::string text(5000, 'w');
		Task writer = m.w.spawn("writer", [&] {
			while (ret > 0)
				ret = m.file.pwrite(text, rng.below(mib));
		});

		m.w.run_for(rng.below(1 * ms));
		m.w.set_link(m.a, false);
		m.w.run_for(rng.below(4 * sec));
		bool near = seed % 2, far = seed % 3 == 0 || !near;
		if (near) {
			ASSERT_EQ(del_map(m.w, "m"), 0);
		}
		if (far) {
			ASSERT_EQ(del_export(m.w, "mem"), 0);
		}
		if (seed % 5 == 0)
			m.w.set_link(m.a, true);
		if (near) {
			ASSERT_TRUE(m.w.finish({writer}, 10 * sec)) << seed;
			EXPECT_TRUE(ret == -KD_ENODEV || ret == -KD_ESTALE) << ret;
		}
		if (far) {
			ASSERT_TRUE(run_until_unexported(m.w, "mem"));
		}
		m.w.set_link(m.a, true);
		ASSERT_TRUE(m.w.finish({writer}, 60 * sec)) << seed;
		m.file.close();
		if (near) {
			ASSERT_TRUE(run_until_unmapped(m.w, "m")) << seed;
		}
		m.close();
	}
}

} // namespace
