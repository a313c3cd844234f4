// SPDX-License-Identifier: GPL-2.0-only
// Messages, files and teardown where something is unusual: paths that neither the
// storms nor the faults come along.
#include <algorithm>
#include <cstring>
#include <set>

#include "cover.h"
#include "fabric.h"
#include "liars.h"

using namespace sim;

namespace
{

constexpr int live = KDIRECT_STATE_LIVE;

PairOptions poll_queues(uint64_t seed, uint32_t depth = 32)
{
	return {.world = {.seed = seed}, .channel = [depth](kd_channel_params &c) {
			c.queues = 0;
			c.poll_queues = 1;
			c.depth = depth;
		}};
}

wire::ControlInfo flags(uint16_t value)
{
	wire::ControlInfo info;

	info.flags = value;
	return info;
}

/* The core's data QP on @dev. */
Qp *data_qp(World &w, const Device &dev)
{
	Qp *last = nullptr;

	for (const auto &qp : w.qps)
		if (qp->core && qp->dev == &dev)
			last = qp.get();
	return last;
}

/* --- files --- */

TEST(Cover, FlagsOfAFile)
{
	Pair p(poll_queues(1));

	ASSERT_TRUE(p.up());
	const CoreApi &core = linked_core();
	EXPECT_EQ(core.desc_flags(p.near.get()), 0U);
	EXPECT_EQ(p.near.set_flags(KDIRECT_OPEN_POLL), 0);
	EXPECT_EQ(core.desc_flags(p.near.get()), uint32_t{KDIRECT_OPEN_POLL});
	EXPECT_EQ(p.near.set_flags(~0U), KD_EINVAL);
	EXPECT_EQ(core.desc_flags(p.near.get()), uint32_t{KDIRECT_OPEN_POLL});
	EXPECT_EQ(p.near.write("x"), 1);
	EXPECT_EQ(p.near.set_flags(0), 0);
	EXPECT_EQ(p.near.write("y"), 1);
	EXPECT_EQ(p.far.read(), "x");
	EXPECT_EQ(p.far.read(), "y");
}

TEST(Cover, ReadsOfNothing)
{
	Pair p(1);
	std::string none;

	ASSERT_TRUE(p.up());
	EXPECT_EQ(p.near.write("x"), 1);
	EXPECT_EQ(p.far.read(none, 0), 0);
	EXPECT_EQ(p.far.read(), "x");
}

TEST(Cover, PollOnPollQueues)
{
	Pair p(poll_queues(1));

	ASSERT_TRUE(p.up());
	EXPECT_EQ(p.near.poll(KD_POLL_IN | KD_POLL_OUT), uint32_t{KD_POLL_OUT});
	Task writer = p.w.spawn("writer", [&] {
		p.w.run_for(1 * ms);
		EXPECT_EQ(p.near.write("x"), 1);
	});
	EXPECT_EQ(p.far.poll(KD_POLL_IN, 1 * sec), uint32_t{KD_POLL_IN});
	ASSERT_TRUE(p.w.finish({writer}));
	EXPECT_EQ(p.far.read(), "x");
}

TEST(Cover, PollAfterAFailure)
{
	RawInitiator raw(1);

	ASSERT_TRUE(raw.live());
	raw.control.vanish();
	raw.data.send("");
	ASSERT_TRUE(raw.w.run_until_gone("store.0"));
	EXPECT_EQ(raw.file.poll(KD_POLL_IN | KD_POLL_OUT),
		  uint32_t{KD_POLL_IN | KD_POLL_OUT | KD_POLL_HUP | KD_POLL_ERR});
}

/* A large message that cannot be offered is copied; copying may fail, too. */
TEST(Cover, LargeMessagesByCopy)
{
	Pair p(1);
	std::string text = pattern(1, 100000);
	kd_iter iter = source_of(text);

	ASSERT_TRUE(p.up());
	iter.user = false;
	p.w.fail_nth(Op::PagesAlloc, 1);
	EXPECT_EQ(p.near.write(iter), -KD_ENOMEM);
	EXPECT_EQ(iter.pos, 0U);
	iter.fault_at = 70000;
	EXPECT_EQ(p.near.write(iter), -KD_EFAULT);
	iter.fault_at = SIZE_MAX;
	EXPECT_EQ(p.near.write(iter), 100000);
	EXPECT_TRUE(p.far.read() == text);
}

/* Two readers of one file: one does not wait, the other may be interrupted. */
TEST(Cover, ReadersInEachOthersWay)
{
	bool would_block = false, interrupted = false;

	for (uint64_t seed = 0; seed < 400; seed++) {
		Pair p(seed);

		ASSERT_TRUE(p.up());
		p.w.sched.preempt_percent = 80;
		for (int i = 0; i < 4; i++)
			EXPECT_EQ(p.near.write("x"), 1);
		p.w.run_for(1 * ms);
		std::vector<Task> readers;
		for (int i = 0; i < 4; i++)
			readers.push_back(p.w.spawn("reader", [&, i] {
				std::string out;
				int64_t ret = p.far.read(out, 1, i % 2 ? KD_IO_NOWAIT : 0);

				would_block |= ret == -KD_EAGAIN;
				interrupted |= ret == -KD_EINTR;
				EXPECT_TRUE(ret == 1 || ret == -KD_EAGAIN || ret == -KD_EINTR);
			}));
		for (int i = 0; i < 8; i++) {
			p.w.sched.step();
			if (i == 5)
				p.w.signal(readers[2], false);
		}
		ASSERT_TRUE(p.w.finish(readers));
	}
	EXPECT_TRUE(would_block);
	EXPECT_TRUE(interrupted);
}

/* A poller that nobody answers looks at the clock, and at signals. */
TEST(Cover, PollingHasAnEnd)
{
	Pair p(poll_queues(1));
	int64_t ret = 0;

	ASSERT_TRUE(p.up());
	Task reader = p.w.spawn("reader", [&] {
		std::string out;
		ret = p.near.read(out, 1, KD_IO_POLL);
	});
	p.w.run_for(1 * ms);
	p.w.signal(reader, false);
	ASSERT_TRUE(p.w.finish({reader}));
	EXPECT_EQ(ret, -KD_EINTR);
	p.w.set_link(p.b, false);
	EXPECT_EQ(p.near.ping(1, KDIRECT_PING_POLL, 1 * ms), KD_ETIMEDOUT);
	/* what the first one left behind is in the way of a second */
	EXPECT_EQ(p.near.ping(1, KDIRECT_PING_POLL, 1 * ms), KD_ETIMEDOUT);
	p.w.set_link(p.b, true);
}

/* More completions than one turn of the service handles. */
TEST(Cover, BurstOnAPollQueue)
{
	for (uint64_t seed = 0; seed < 8; seed++) {
		Pair p(poll_queues(seed, 128));

		ASSERT_TRUE(p.up());
		p.w.run_for(20 * ms);
		p.w.set_stuck(p.b, true);
		for (int i = 0; i < 120; i++)
			EXPECT_EQ(p.near.write("x", KD_IO_NOWAIT), 1);
		p.w.run_for(1 * ms);
		p.w.set_stuck(p.b, false);
		for (int i = 0; i < 120; i++)
			ASSERT_EQ(p.far.read(), "x") << "seed " << seed;
	}
}

/* --- pings --- */

TEST(Cover, EchoesThatDiffer)
{
	const std::function<void(wire::DataInfo &, Bytes &)> changes[] = {
		[](auto &, auto &text) { text[2] = static_cast<char>(text[2] + 1); },
		[](auto &info, auto &text) {
			info.length++;
			text.push_back('x');
		},
		[](auto &info, auto &text) {
			info.length--;
			text.pop_back();
		},
	};

	for (const auto &change : changes) {
		RawInitiator raw(1);

		ASSERT_TRUE(raw.live());
		raw.data.on_message = [&](const Bytes &text) {
			wire::DataInfo info;
			Bytes payload = text.substr(sizeof(wire::DataHeader));

			ASSERT_TRUE(
				wire::decode_data(text.data(), text.size(), 65536, 1 << 20, info));
			info.type = wire::DataType::Pong;
			info.credits = 0;
			change(info, payload);
			raw.say(raw.data, info, payload);
		};
		EXPECT_EQ(raw.file.ping(64), KD_EBADMSG);
		EXPECT_EQ(raw.w.state("store.0"), live);
	}
}

TEST(Cover, EchoOfAnotherPing)
{
	RawInitiator raw(1);

	ASSERT_TRUE(raw.live());
	raw.data.on_message = [&](const Bytes &text) {
		wire::DataInfo info;

		ASSERT_TRUE(wire::decode_data(text.data(), text.size(), 65536, 1 << 20, info));
		raw.say(raw.data, {wire::DataType::Pong, info.length, 0, 0, info.seq + 1, 0},
			text.substr(sizeof(wire::DataHeader)));
	};
	EXPECT_EQ(raw.file.ping(64), KD_EPIPE);
	raw.expect_end("an echo of another ping");
	EXPECT_TRUE(contains(error_text(raw.w, "store.0"), "a ping that was not sent"));
}

/* A ping, and its answer, that cannot be posted. */
TEST(Cover, PingsThatCannotBePosted)
{
	for (Op op : {Op::PostSend, Op::PostRecv}) {
		Pair p(1);

		ASSERT_TRUE(p.up());
		p.w.run_for(10 * ms);
		p.w.fail_nth(op, op == Op::PostSend ? 2 : 1);
		int err = p.near.ping(64);
		EXPECT_TRUE(err == KD_EPIPE || err == KD_ETIMEDOUT) << err;
		EXPECT_TRUE(contains(error_text(p.w, "store.0"), "cannot answer a ping"))
			<< error_text(p.w, "store.0");
	}
	Pair p(1);

	ASSERT_TRUE(p.up());
	p.w.run_for(10 * ms);
	p.w.fail_nth(Op::PostRecv, 2); /* of what the echo came in */
	EXPECT_EQ(p.near.ping(64), 0);
	EXPECT_TRUE(p.w.run_until([&] { return p.w.last_error("c0"); }, 10 * sec));
	EXPECT_TRUE(contains(error_text(p.w, "c0"), "cannot post a receive"));
}

TEST(Cover, PingThatCannotBePosted)
{
	Pair p(1);

	ASSERT_TRUE(p.up());
	p.w.run_for(10 * ms);
	p.w.fail_nth(Op::PostSend, 1);
	EXPECT_EQ(p.near.ping(64), KD_EPIPE);
	EXPECT_TRUE(p.w.run_until([&] { return p.w.last_error("c0"); }, 10 * sec));
	EXPECT_TRUE(contains(error_text(p.w, "c0"), "cannot post a SEND"));
}

/* Pings while the other end goes away: its queues are sealed. */
TEST(Cover, PingsWhileTheChannelIsDeleted)
{
	for (uint64_t seed = 0; seed < 100; seed++) {
		RawInitiator raw(seed);

		ASSERT_TRUE(raw.live());
		Task del = raw.w.spawn("del", [&] { (void)raw.w.del("store.0"); });
		for (uint64_t number = 0; number < 6; number++) {
			raw.say(raw.data, {wire::DataType::Ping, 1, 0, 0, number, 0}, "x");
			raw.w.run_for(5 * us);
		}
		raw.say_control(flags(wire::Bye));
		raw.say_control(flags(wire::ByeReply));
		ASSERT_TRUE(raw.w.finish({del}));
		EXPECT_TRUE(raw.w.run_until_gone("store.0"));
	}
}

/* --- control messages --- */

/* More to be said than one message holds, and nothing may go out for a while. */
TEST(Cover, MoreFetchedThanOneMessageTells)
{
	RawInitiator raw(1);
	constexpr uint32_t count = 24;

	raw.request.queues = 3;
	raw.request.depth = 32;
	ASSERT_TRUE(raw.live());
	/* takes all control credits, which this peer does not give back */
	for (uint32_t i = 0; i < wire::control_receives; i++) {
		raw.say_control(flags(wire::KeepAlive));
		raw.w.run_for(1 * ms);
	}
	RawConnection *queues[] = {&raw.data, &raw.more[0], &raw.more[1]};
	Bytes big = pattern(1, 5000);
	for (uint32_t seq = 0; seq < count; seq++) {
		RawConnection &queue = *queues[seq % 3];
		RawConnection::Region region = queue.expose(big);

		raw.say(queue, {wire::DataType::Offer, 5000, 0, region.rkey, seq, region.addr});
	}
	raw.w.run_for(100 * ms);
	wire::ControlInfo bye = flags(wire::Bye);
	bye.last = count;
	raw.say_control(bye);
	for (uint32_t seq = 0; seq < count; seq++)
		EXPECT_TRUE(raw.file.read() == big) << seq;
	raw.w.run_for(10 * ms);
	std::size_t before = raw.control.received.size();
	wire::ControlInfo grant;
	grant.credits = static_cast<uint32_t>(before);
	raw.say_control(grant);
	raw.w.run_for(10 * ms);
	uint32_t told = 0;
	std::vector<uint32_t> answered;
	for (const Bytes &text : raw.control.received) {
		wire::ControlInfo info;

		ASSERT_TRUE(wire::decode_control(text.data(), text.size(), info));
		told += info.nr_done;
		if (info.flags & wire::ByeReply)
			answered.push_back(told);
	}
	EXPECT_EQ(told, count);
	/* the answer to the goodbye goes out with the last of them */
	EXPECT_EQ(answered, std::vector<uint32_t>{count});
}

/* Credits of many queues that are due at once. */
TEST(Cover, MoreCreditsThanOneMessageTells)
{
	RawInitiator raw(1, 1, [](kd_listener_params &p) { p.max_queues = 64; });

	raw.request.queues = 20;
	raw.request.depth = 1;
	ASSERT_TRUE(raw.live());
	for (uint32_t i = 0; i < wire::control_receives; i++) {
		raw.say_control(flags(wire::KeepAlive));
		raw.w.run_for(1 * ms);
	}
	for (uint32_t seq = 0; seq < 20; seq++)
		raw.say(seq ? raw.more[seq - 1] : raw.data,
			{wire::DataType::Eager, 1, 0, 0, seq, 0}, "x");
	for (uint32_t seq = 0; seq < 20; seq++)
		EXPECT_EQ(raw.file.read(), "x");
	wire::ControlInfo grant;
	grant.credits = static_cast<uint32_t>(raw.control.received.size());
	raw.say_control(grant);
	raw.w.run_for(10 * ms);
	uint32_t credited = 0, most = 0;
	for (const Bytes &text : raw.control.received) {
		wire::ControlInfo info;

		ASSERT_TRUE(wire::decode_control(text.data(), text.size(), info));
		credited += info.nr_credits;
		most = std::max(most, info.nr_credits);
	}
	EXPECT_EQ(credited, 20U);
	EXPECT_EQ(most, uint32_t{wire::max_credit_entries});
}

TEST(Cover, WhatOnlyTheOtherEndSays)
{
	{
		RawTarget raw(1);
		ASSERT_TRUE(raw.live());
		raw.say_control(flags(wire::ControlHello));
		EXPECT_TRUE(raw.w.run_until([&] { return raw.w.last_error("c0"); }, 10 * sec));
		EXPECT_TRUE(contains(error_text(raw.w, "c0"), "unexpected hello"));
	}
	{
		RawTarget raw(1);
		ASSERT_TRUE(raw.live());
		raw.say_control(flags(wire::Start));
		EXPECT_TRUE(raw.w.run_until([&] { return raw.w.last_error("c0"); }, 10 * sec));
		EXPECT_TRUE(contains(error_text(raw.w, "c0"), "unexpected start"));
	}
	{
		RawTarget raw(1);
		ASSERT_TRUE(raw.live());
		Bytes hello(sizeof(wire::DataHeader), '\0');
		wire::encode_data({wire::DataType::Hello, 0, 0, 0, 0, 0}, hello.data());
		raw.queue(1).send(hello);
		EXPECT_TRUE(raw.w.run_until([&] { return raw.w.last_error("c0"); }, 10 * sec));
		EXPECT_TRUE(contains(error_text(raw.w, "c0"), "unexpected hello"));
	}
}

/* A goodbye that contradicts what was sent before, or what comes after. */
TEST(Cover, GoodbyesThatAreNotTrue)
{
	for (int kind = 0; kind < 3; kind++) {
		RawInitiator raw(1);
		wire::ControlInfo bye = flags(wire::Bye);

		ASSERT_TRUE(raw.live());
		for (uint64_t seq = 0; seq < 2; seq++)
			raw.say(raw.data, {wire::DataType::Eager, 1, 0, 0, seq, 0}, "x");
		raw.w.run_for(10 * ms);
		bye.last = kind == 0 ? 1 : kind == 1 ? 2 : 3;
		raw.say_control(bye);
		raw.w.run_for(1 * ms);
		if (kind == 1) /* more than was said */
			raw.say(raw.data, {wire::DataType::Eager, 1, 0, 0, 2, 0}, "x");
		if (kind == 2) /* says it twice */
			raw.say_control(bye);
		EXPECT_TRUE(raw.w.run_until([&] { return raw.w.last_error("store.0"); }, 10 * sec))
			<< kind;
		EXPECT_TRUE(raw.w.run_until_gone("store.0"));
	}
}

/* --- fetching --- */

/* Only so much is fetched before somebody reads. */
TEST(Cover, FetchesAheadWithinABudget)
{
	Pair p(1);
	std::string big = pattern(1, 1 << 20);

	ASSERT_TRUE(p.up());
	for (int i = 0; i < 7; i++)
		ASSERT_EQ(p.near.write(big, KD_IO_NOWAIT), 1 << 20);
	p.w.run_for(1 * sec);
	std::size_t held = 0;
	for (const auto &pages : p.w.pages)
		held += pages->own.size();
	/* the sender's three that wait, and four that were fetched */
	EXPECT_LE(held, std::size_t{7 << 20});
	for (int i = 0; i < 7; i++)
		ASSERT_TRUE(p.far.read() == big) << i;
}

/* No memory while more offers arrive: tried again, in order. */
TEST(Cover, NoMemoryForFetching)
{
	for (uint64_t seed = 0; seed < 40; seed++) {
		Pair p(seed);
		std::string big = pattern(seed, 20000);

		ASSERT_TRUE(p.up());
		for (int i = 0; i < 8; i++) {
			ASSERT_EQ(p.near.write(big, KD_IO_NOWAIT), 20000);
			p.w.fail_nth(i % 2 ? Op::PagesAlloc : Op::PostRead, 1, 3);
			p.w.run_for(20 * us);
			p.w.fail_nth(i % 2 ? Op::PagesAlloc : Op::PostRead, 1, 0);
		}
		for (int i = 0; i < 8; i++)
			ASSERT_TRUE(p.far.read() == big) << i;
	}
}

/* What is fetched fails while more offers arrive: it is tried again, none is passed over. */
TEST(Cover, FetchesThatFailWhileOthersCome)
{
	for (uint64_t seed = 0; seed < 60; seed++) {
		Pair p({.world = {.seed = seed},
			.channel = [](kd_channel_params &c) { c.queues = 2; }});
		std::string big = pattern(seed, 20000);

		ASSERT_TRUE(p.up());
		p.w.sched.preempt_percent = 100;
		p.w.sched.stall_percent = 30;
		p.w.fail_nth(Op::PostRead, 1, 3);
		for (int i = 0; i < 8; i++)
			ASSERT_EQ(p.near.write(big, KD_IO_NOWAIT), 20000);
		for (int i = 0; i < 8; i++)
			ASSERT_TRUE(p.far.read() == big) << i;
	}
}

/* --- life --- */

/* Said goodbye, and says nothing more: keep-alive ends it before the drain timeout. */
TEST(Cover, GoodbyeAndSilence)
{
	for (bool keep_alive : {true, false}) {
		RawTarget raw(1);

		ASSERT_TRUE(raw.live([&](kd_channel_params &c) {
			c.keep_alive_ms = keep_alive ? 100 : 0;
			c.drain_timeout_ms = 20000;
		}));
		raw.say_control(flags(wire::Bye));
		EXPECT_EQ(raw.file.read(), "");
		EXPECT_EQ(raw.w.state("c0"), live);
		uint64_t since = raw.w.now();
		EXPECT_TRUE(raw.w.run_until([&] { return raw.w.state("c0") > live; }, 60 * sec));
		if (keep_alive)
			EXPECT_LE(raw.w.now() - since, 2 * sec);
		else
			EXPECT_GE(raw.w.now() - since, 19 * sec);
		EXPECT_EQ(raw.file.read(), "");
	}
}

/* Said goodbye, and is gone: what cannot be sent to it is no failure. */
TEST(Cover, GoodbyeAndGone)
{
	RawTarget raw(1);

	ASSERT_TRUE(raw.live([](kd_channel_params &c) {
		c.keep_alive_ms = 1000;
		c.drain_timeout_ms = 60000;
	}));
	raw.say_control(flags(wire::Bye));
	EXPECT_EQ(raw.file.read(), "");
	raw.w.set_link(raw.raw_dev, false);
	EXPECT_TRUE(raw.w.run_until([&] { return raw.w.state("c0") > live; }, 30 * sec));
	EXPECT_FALSE(raw.w.last_error("c0"));
	EXPECT_EQ(raw.file.read(), "");
}

/* One queue stalls while the control queue works: SENDs, or READs. */
TEST(Cover, AStalledQueue)
{
	for (bool reads : {false, true}) {
		RawInitiator raw(1);

		raw.w.opts.retry_timeout = 1000 * sec;
		ASSERT_TRUE(raw.live());
		/* answers keep-alives for ever */
		raw.control.on_message = [&](const Bytes &text) {
			wire::ControlInfo info, answer = flags(wire::KeepAliveReply);

			ASSERT_TRUE(wire::decode_control(text.data(), text.size(), info));
			answer.credits = static_cast<uint32_t>(raw.control.received.size());
			if (info.flags & wire::KeepAlive)
				raw.say_control(answer);
		};
		if (reads) {
			RawConnection::Region region = raw.data.expose(pattern(1, 5000));
			raw.say(raw.data,
				{wire::DataType::Offer, 5000, 0, region.rkey, 0, region.addr});
			raw.w.run_until([&] { return !raw.w.reads.empty(); }, 1 * sec);
		}
		data_qp(raw.w, raw.dev)->remote = 0;
		Task writer = raw.w.spawn("writer", [&] {
			while (!reads && raw.file.write("x", KD_IO_NOWAIT) == 1)
				;
		});
		ASSERT_TRUE(raw.w.finish({writer}));
		EXPECT_TRUE(raw.w.run_until([&] { return raw.w.last_error("store.0"); }, 60 * sec));
		EXPECT_TRUE(contains(error_text(raw.w, "store.0"),
				     reads ? "queue 1: an RDMA READ has not completed"
					   : "queue 1: a SEND has not completed"))
			<< error_text(raw.w, "store.0");
	}
}

/*
 * Completions that a device still brings after its QP was reset: what is in the
 * CQ may be handled until the CQ is gone, and must find nothing to do.
 */
void complete_late(uint64_t seed, std::set<unsigned long> &kinds)
{
	Pair p(seed);
	std::string big = pattern(1, 20000);

	ASSERT_TRUE(p.up());
	p.w.sched.preempt_percent = 100;
	/* one that is being invalidated, one that is offered, one that is being fetched */
	ASSERT_EQ(p.near.write(big, KD_IO_NOWAIT), 20000);
	ASSERT_TRUE(p.w.run_until(
		[&] {
			return std::any_of(p.w.posted.begin(), p.w.posted.end(), [](auto &entry) {
				return (entry.first->opaque[0] & 0xff) == KD_CQE_INV;
			});
		},
		1 * sec));
	p.w.set_stuck(p.a, true);
	ASSERT_EQ(p.near.write(big, KD_IO_NOWAIT), 20000);
	ASSERT_EQ(p.w.del("c0"), 0);
	/* every queue has been given up, and nobody has waited for handlers yet */
	ASSERT_TRUE(p.w.run_until(
		[&] {
			return std::any_of(p.w.sched.all().begin(), p.w.sched.all().end(),
					   [](auto &fiber) {
						   return !std::strcmp(fiber->last_calls[0],
								       "kd_handlers_synchronize");
					   });
		},
		60 * sec));
	auto deliver = [&] {
		const CoreApi &core = linked_core();

		for (const auto &[posted, cq] : p.w.lingering) {
			auto *cqe = const_cast<kd_cqe *>(posted);
			kd_wc wc{};

			wc.status_name = "success";
			kinds.insert(cqe->opaque[0] & 0xff);
			switch (cqe->opaque[0] & 0xff) {
			case KD_CQE_RECV: core.recv_done(cqe, &wc); break;
			case KD_CQE_SEND: core.send_done(cqe, &wc); break;
			case KD_CQE_OFFER: core.offer_done(cqe, &wc); break;
			case KD_CQE_INV: core.inv_done(cqe, &wc); break;
			case KD_CQE_READ: core.read_done(cqe, &wc); break;
			default: FAIL() << "an unknown kind";
			}
		}
	};
	ASSERT_TRUE(
		p.w.finish({p.w.sched.spawn("late", Context::Softirq, &p.w.node(), deliver)->id}));
	p.w.set_stuck(p.a, false);
	p.close();
	EXPECT_TRUE(p.w.run_until_gone("c0"));
}

TEST(Cover, CompletionsOfAnAbandonedQueue)
{
	std::set<unsigned long> kinds;

	/* whether the core or the handler goes on first is the seed's choice */
	for (uint64_t seed = 0; seed < 20; seed++)
		complete_late(seed, kinds);
	for (unsigned long kind : {KD_CQE_RECV, KD_CQE_SEND, KD_CQE_OFFER, KD_CQE_INV})
		EXPECT_TRUE(kinds.contains(kind)) << "kind " << kind;
}

/* A device that says it wrote more than there was room for. */
TEST(Cover, MoreBytesThanTheReceiveHolds)
{
	RawInitiator raw(1);

	ASSERT_TRUE(raw.live());
	Qp *qp = data_qp(raw.w, raw.dev);
	RecvWr wr = qp->rq.front();
	qp->rq.pop_front();
	cq_push(raw.w, qp->cq,
		{.qp = qp->id,
		 .kind = KD_CQE_RECV,
		 .cqe = wr.cqe,
		 .wr = wr.id,
		 .byte_len = 1 << 20});
	raw.expect_end("too many bytes");
	EXPECT_TRUE(contains(error_text(raw.w, "store.0"), "1048576 bytes in a receive"));
}

} // namespace
