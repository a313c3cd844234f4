// SPDX-License-Identifier: GPL-2.0-only
// Connecting, listening and administration where something is unusual: paths that
// neither the storms nor the faults come along.
#include "cover.h"
#include "fabric.h"
#include "liars.h"

using namespace sim;

namespace
{

constexpr kdirect_state live = KDIRECT_STATE_LIVE;

/* The ids of a channel's end that the core owns. */
std::vector<Cm *> core_ids(World &w)
{
	std::vector<Cm *> ids;

	for (const auto &cm : w.cms)
		if (!cm->raw && cm->queue)
			ids.push_back(cm.get());
	return ids;
}

Cm *listening_id(World &w)
{
	for (const auto &cm : w.cms)
		if (!cm->raw && cm->state == Cm::State::Listening)
			return cm.get();
	return nullptr;
}

void expect_refusal(World &w, const RawConnection &queue, wire::Refusal reason, uint32_t value)
{
	ASSERT_TRUE(w.run_until([&] { return queue.ended(); }, 10 * sec));
	const CmEventRecord *event = queue.event(KD_CM_REJECTED);
	ASSERT_TRUE(event);
	wire::Verdict verdict;
	ASSERT_TRUE(wire::decode_reject(event->data.data(), event->data.size(), verdict));
	EXPECT_EQ(verdict.reason, reason);
	EXPECT_EQ(verdict.value, value);
}

constexpr RawConnection::Terms few_reads[] = {{0, 16}, {16, 0}, {0, 0}};

TEST(Setup, AddressesInErrorsAreReadable)
{
	Pair p({.world = {.seed = 1}, .v6 = true});

	ASSERT_EQ(p.w.connect("c1", "fd00::2", 7472), 0);
	EXPECT_TRUE(p.w.run_until_gone("c1"));
	EXPECT_TRUE(contains(error_text(p.w, "c1"), "[fd00:0:0:0:0:0:0:2]:7472"))
		<< error_text(p.w, "c1");
}

/* Events that come late, twice, or mean nothing to a connection that works. */
TEST(Setup, StaleEventsDoNothing)
{
	for (uint64_t seed = 0; seed < 20; seed++) {
		Pair p(seed);

		ASSERT_TRUE(p.up());
		for (Cm *id : core_ids(p.w))
			for (kd_cm_event_type type : {KD_CM_ADDR_RESOLVED, KD_CM_ROUTE_RESOLVED,
						      KD_CM_ESTABLISHED, KD_CM_OTHER})
				cm_push(p.w, id, {.type = type});
		cm_push(p.w, listening_id(p.w), {.type = KD_CM_OTHER});
		p.w.run_for(10 * ms);
		EXPECT_EQ(p.near.write("x"), 1);
		EXPECT_EQ(p.far.read(), "x");
		EXPECT_EQ(p.w.state("c0"), live);
	}
}

/* Every event that ends a connection, with and without a status of the transport's. */
TEST(Setup, EventsThatEndAConnection)
{
	struct Case {
		kd_cm_event_type type;
		int status, expected;
		const char *text;
	};
	const Case cases[] = {
		{KD_CM_UNREACHABLE, 0, KD_EHOSTUNREACH, "no answer from 10.0.0.2:7471"},
		{KD_CM_UNREACHABLE, KD_ETIMEDOUT, KD_ETIMEDOUT, "no answer from 10.0.0.2:7471"},
		{KD_CM_CONNECT_ERROR, 0, KD_ECONNRESET, "queue 0: event"},
		{KD_CM_CONNECT_ERROR, KD_EIO, KD_EIO, "queue 0: event"},
		{KD_CM_ADDR_ERROR, 0, KD_EHOSTUNREACH, "no RDMA path to 10.0.0.2:7471"},
		{KD_CM_ROUTE_ERROR, KD_ENETUNREACH, KD_ENETUNREACH, "no RDMA path to"},
	};

	for (const Case &c : cases) {
		Pair p(1);

		ASSERT_EQ(p.begin(), 0);
		ASSERT_TRUE(p.w.run_until([&] { return !core_ids(p.w).empty(); }, 1 * sec));
		cm_push(p.w, core_ids(p.w)[0], {.type = c.type, .status = c.status});
		EXPECT_TRUE(p.w.run_until_gone("c0"));
		const EventRecord *error = p.w.last_error("c0");
		ASSERT_TRUE(error);
		EXPECT_EQ(error->err, c.expected);
		EXPECT_TRUE(contains(error->text, c.text)) << error->text;
	}
}

/* A listener on every address: the second queue comes in on another device. */
TEST(Setup, QueuesOverTwoDevices)
{
	RawInitiator raw(1);

	raw.w.add_device("10.0.0.3");
	ASSERT_EQ(raw.w.listen("any", "0.0.0.0", 7480), 0);
	raw.join(raw.control, "10.0.0.2", 7480);
	ASSERT_TRUE(raw.w.run_until([&] { return raw.control.established(); }, 10 * sec));
	wire::ReplyInfo reply;
	const Bytes &text = raw.control.event(KD_CM_ESTABLISHED)->data;
	ASSERT_TRUE(wire::decode_reply(text.data(), text.size(), raw.request, reply));
	raw.request.queue = 1;
	raw.request.token = reply.token;
	raw.join(raw.data, "10.0.0.3", 7480);
	EXPECT_TRUE(raw.w.run_until_gone("any.0"));
	EXPECT_TRUE(raw.data.event(KD_CM_REJECTED));
	EXPECT_TRUE(contains(error_text(raw.w, "any.0"), "another device"));
}

/* The token of one listener's channel, shown to another listener. */
TEST(Setup, QueueOfAnotherListenersChannel)
{
	RawInitiator raw(1);

	ASSERT_EQ(raw.w.listen("other", "10.0.0.2", 7480), 0);
	ASSERT_TRUE(raw.connect_control());
	raw.request.queue = 1;
	raw.join(raw.data, "10.0.0.2", 7480);
	expect_refusal(raw.w, raw.data, wire::Refusal::NoChannel, 0);
}

/* The numbers of both kinds must be those of the first request. */
TEST(Setup, OtherPollQueuesInTheSecondRequest)
{
	RawInitiator raw(1);

	raw.request.queues = 2;
	ASSERT_TRUE(raw.connect_control());
	raw.request.queue = 1;
	raw.request.poll_queues = 1;
	raw.join(raw.data);
	ASSERT_TRUE(raw.w.run_until([&] { return raw.data.ended(); }, 10 * sec));
	EXPECT_TRUE(raw.data.event(KD_CM_REJECTED));
}

/* READs in one direction only: then every message is an eager one, and an offer is a lie. */
TEST(Setup, PeersThatAllowFewReads)
{
	for (const RawConnection::Terms &terms : few_reads) {
		RawInitiator raw(1);

		raw.terms = terms;
		ASSERT_TRUE(raw.live());
		raw.say(raw.data, {wire::DataType::Offer, 4096, 0, 1, 0, 4096});
		raw.expect_end("an offer without READs");
	}
}

TEST(Setup, FewReadsOnTheSecondQueueOfAPeer)
{
	for (const RawConnection::Terms &terms : few_reads) {
		RawInitiator raw(1);

		ASSERT_TRUE(raw.connect_control());
		raw.terms = terms;
		raw.request.queue = 1;
		raw.join(raw.data);
		expect_refusal(raw.w, raw.data, wire::Refusal::Resources, KD_EOPNOTSUPP);
	}
}

TEST(Setup, FewReadsOnTheSecondQueueOfAListener)
{
	for (const RawConnection::Terms &terms : few_reads) {
		RawTarget raw(1);

		raw.listener.on_request = [&](RawListener::Incoming &in) {
			bool first = raw.listener.incoming.size() == 1;

			in.connection->post_recvs(4);
			in.connection->accept(RawTarget::reply_to(in.private_data),
					      first ? RawConnection::Terms() : terms);
		};
		raw.expect_refused("READs on the first queue only");
		EXPECT_TRUE(contains(error_text(raw.w, "c0"), "no RDMA READ"));
	}
}

/* No READs, and an eager limit below the shortest max-message that there may be. */
TEST(Setup, NeitherReadsNorLongEagerMessages)
{
	Pair p({.world = {.seed = 1},
		.device = {.max_rd_atom = 0},
		.channel = [](kd_channel_params &c) { c.eager_limit = 4095; }});

	ASSERT_EQ(p.begin(), 0);
	EXPECT_TRUE(p.w.run_until_gone("c0"));
	EXPECT_TRUE(contains(error_text(p.w, "c0"), "eager-limit 4095")) << error_text(p.w, "c0");
}

TEST(Setup, TermsThatChangeWithTheSecondQueue)
{
	const std::function<void(wire::ReplyInfo &)> changes[] = {
		[](auto &r) { r.depth--; },
		[](auto &r) { r.eager_limit--; },
		[](auto &r) { r.max_message--; },
	};

	for (const auto &change : changes) {
		RawTarget raw(1);

		raw.listener.on_request = [&](RawListener::Incoming &in) {
			bool first = raw.listener.incoming.size() == 1;

			in.connection->post_recvs(4);
			in.connection->accept(RawTarget::reply_to(
				in.private_data,
				first ? std::function<void(wire::ReplyInfo &)>() : change));
		};
		raw.expect_refused("changed terms");
		EXPECT_TRUE(contains(error_text(raw.w, "c0"), "changed its terms"));
	}
}

/* What peers make a listener set aside has a bound. */
TEST(Setup, BuffersOfAListenersPeers)
{
	RawInitiator raw(1, 1, [](kd_listener_params &p) { p.max_depth = 1024; });

	raw.request.queues = 16;
	raw.request.depth = 1024;
	raw.request.eager_limit = 65536;
	raw.join(raw.control);
	expect_refusal(raw.w, raw.control, wire::Refusal::Resources, KD_ENOMEM);
}

TEST(Setup, AsManyChannelsAsThereCanBe)
{
	RawInitiator raw(1);
	kd_error error{};

	for (unsigned int i = 0; i < 1024; i++)
		ASSERT_EQ(raw.w.connect("c" + std::to_string(i), "10.9.9.9", port), 0) << i;
	EXPECT_EQ(raw.w.connect("c1024", "10.9.9.9", port, {}, &error), KD_ENFILE);
	EXPECT_TRUE(contains(error.text, "1024 channels"));
	raw.join(raw.control);
	expect_refusal(raw.w, raw.control, wire::Refusal::Resources, KD_ENFILE);
}

/* Deleted while it is being added: not there yet, busy, or gone. */
TEST(Setup, ListenerDeletedWhileItIsAdded)
{
	bool busy = false;

	for (uint64_t seed = 0; seed < 200; seed++) {
		Pair p(seed);
		int added = -1, deleted = -1;
		Task add = p.w.spawn("add", [&] { added = p.w.listen("l", p.target, 7480); });
		Task del = p.w.spawn("del", [&] {
			for (int i = 0; i < 100 && deleted; i++) {
				deleted = p.w.unlisten("l");
				busy |= deleted == KD_EBUSY;
				EXPECT_TRUE(!deleted || deleted == KD_EBUSY ||
					    deleted == KD_ENOENT);
				p.w.run_for(1 * us);
			}
		});
		ASSERT_TRUE(p.w.finish({add, del}));
		EXPECT_EQ(added, 0);
		EXPECT_EQ(deleted, 0);
	}
	EXPECT_TRUE(busy);
}

/* The device goes while a listener on it is added, waits, or is deleted. */
TEST(Setup, DeviceGoesAroundAListener)
{
	for (uint64_t seed = 0; seed < 300; seed++) {
		World w({.seed = seed});
		Device &dev = w.add_device("10.0.0.2");
		Rng rng(seed);
		int added = -1;
		Task add = w.spawn("add", [&] { added = w.listen("l", "10.0.0.2", port); });
		Task again{}, del{};

		w.run_until([&] { return listening_id(w) || added >= 0; }, 1 * sec);
		/* said twice, and before anybody can know */
		if (Cm *id = listening_id(w))
			for (int i = 0; i < 2; i++)
				cm_push(w, id, {.type = KD_CM_DEVICE_REMOVAL});
		if (seed % 3 == 0)
			w.finish({add});
		w.run_for(rng.below(100 * us));
		w.remove_device(dev);
		ASSERT_TRUE(w.finish({add}));
		w.run_for(rng.below(2 * sec));
		if (seed % 2)
			w.add_device("10.0.0.2");
		w.run_for(rng.below(1 * sec));
		del = w.spawn("del", [&] { (void)w.unlisten("l"); });
		ASSERT_TRUE(w.finish({again, del})) << "seed " << seed;
	}
}

/* A peer asks while the module stops. */
TEST(Setup, RequestWhileTheModuleStops)
{
	for (uint64_t seed = 0; seed < 200; seed++) {
		RawInitiator raw(seed);
		Rng rng(seed);

		ASSERT_EQ(raw.w.listen("other", "10.0.0.2", 7480), 0);
		raw.join(raw.control, "10.0.0.2", 7480);
		raw.w.run_for(rng.below(120 * us));
		Task stop = raw.w.spawn("stop", [] { linked_core().core_stop(); });
		ASSERT_TRUE(raw.w.finish({stop}));
		EXPECT_EQ(raw.w.state("other.0"), -1);
	}
}

TEST(Setup, EverySettingByItself)
{
	Pair p(1);

	ASSERT_TRUE(p.up());
	auto set = [&](uint32_t has, uint32_t eager, uint32_t keep_alive, uint32_t drain) {
		kd_channel_params params{};
		kd_error error{};
		int err = 0;

		p.w.call([&] {
			Node *on = p.w.here();

			on->core->channel_defaults(&params);
			std::strcpy(params.name, "c0");
			params.has = has;
			params.eager_limit = eager;
			params.keep_alive_ms = keep_alive;
			params.drain_timeout_ms = drain;
			err = on->core->channel_set(reinterpret_cast<kd_net *>(on->net), &params,
						    &error);
		});
		EXPECT_EQ(err, error.err);
		return err;
	};
	auto now = [&] {
		struct kd_channel_info info {
		};

		EXPECT_TRUE(p.w.info("c0", info));
		return info.params;
	};
	EXPECT_EQ(set(KD_HAS_EAGER_LIMIT, 512, 7000, 7000), 0);
	EXPECT_EQ(now().eager_limit, 512U);
	EXPECT_EQ(now().keep_alive_ms, 5000U);
	EXPECT_EQ(set(KD_HAS_KEEP_ALIVE, 600, 0, 7000), 0);
	EXPECT_EQ(now().keep_alive_ms, 0U);
	EXPECT_EQ(now().drain_timeout_ms, 3000U);
	EXPECT_EQ(set(KD_HAS_DRAIN_TIMEOUT, 600, 800, 50), 0);
	EXPECT_EQ(now().drain_timeout_ms, 50U);
	EXPECT_EQ(now().eager_limit, 512U);
	EXPECT_EQ(set(KD_HAS_EAGER_LIMIT, 65536, 0, 50), KD_ERANGE);
	EXPECT_EQ(set(0, 512, 0, 50), KD_EINVAL);
	/* without keep-alive, and with a peer that says goodbye */
	p.far.close();
	EXPECT_EQ(p.w.del("store.0"), 0);
	EXPECT_TRUE(p.w.run_until([&] { return p.w.state("c0") > live; }, 10 * sec));
}

} // namespace
