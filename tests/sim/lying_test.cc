// SPDX-License-Identifier: GPL-2.0-only
// Peers that are no kdirect, or a kdirect that lies, at every step: nothing they
// send crashes, hangs, over-reads or leaks, and the reason is there to be read.
#include "liars.h"

using namespace sim;

namespace
{

TEST(Lying, AnHonestRawPeerIsServed)
{
	for (uint64_t seed = 0; seed < 20; seed++) {
		RawInitiator raw(seed);

		ASSERT_TRUE(raw.live());
		raw.say(raw.data, {wire::DataType::Eager, 5, 0, 0, 0, 0}, "hello");
		EXPECT_EQ(raw.file.read(), "hello");
		Bytes big = pattern(seed, 500000);
		RawConnection::Region region = raw.data.expose(big);
		raw.say(raw.data, {wire::DataType::Offer, 500000, 0, region.rkey, 1, region.addr});
		EXPECT_TRUE(raw.file.read() == big);
		raw.say(raw.data, {wire::DataType::Ping, 3, 0, 0, 77, 0}, "abc");
		EXPECT_TRUE(raw.w.run_until([&] { return !raw.data.received.empty(); }, 1 * sec));
		EXPECT_EQ(raw.data.received.back().substr(sizeof(wire::DataHeader)), "abc");
		EXPECT_EQ(raw.file.write("welcome"), 7);
		EXPECT_TRUE(
			raw.w.run_until([&] { return raw.data.received.size() == 2; }, 1 * sec));
	}
}

/* Foreign private data of every length, and cut-off requests. */
TEST(Lying, RequestsOfEveryLength)
{
	for (uint32_t transport : {KDIRECT_TRANSPORT_ROCE, KDIRECT_TRANSPORT_IWARP})
		for (int kind = 0; kind < 3; kind++)
			for (std::size_t len = 0; len <= KD_PRIVATE_MAX; len++) {
				RawInitiator raw(len, transport);
				Bytes text = pattern(len, len);

				if (kind == 1)
					text = Bytes(len, '\0');
				if (kind == 2) {
					text = request_bytes(plain_request);
					text.resize(56, '\0');
					text.resize(len);
					/* padded with the zeros that were cut off */
					bool padded = transport == KDIRECT_TRANSPORT_ROCE;
					if (len >=
					    (padded ? offsetof(wire::Request, max_message) + 3
						    : sizeof(wire::Request)))
						continue;
				}
				raw.control.connect("10.0.0.2", port, text);
				EXPECT_TRUE(raw.w.run_until([&] { return raw.control.ended(); },
							    10 * sec));
				const CmEventRecord *event = raw.control.event(KD_CM_REJECTED);
				ASSERT_TRUE(event) << "kind " << kind << " length " << len;
				wire::Verdict verdict;
				ASSERT_TRUE(wire::decode_reject(event->data.data(),
								event->data.size(), verdict));
				EXPECT_EQ(raw.w.state("store.0"), -1);
			}
}

/* Each field of a request, one wrong at a time. */
TEST(Lying, RequestsWithOneWrongField)
{
	using Change = std::function<void(wire::RequestInfo &)>;
	struct Case {
		Change change;
		wire::Refusal reason;
	};
	const Case cases[] = {
		{[](auto &r) { r.queue = 1; }, wire::Refusal::NoChannel},
		{[](auto &r) { r.queue = 1, r.token = 99; }, wire::Refusal::NoChannel},
		{[](auto &r) { r.queue = 2, r.token = 99; }, wire::Refusal::Queue},
		{[](auto &r) { r.queue = 65535, r.token = 99; }, wire::Refusal::Queue},
		{[](auto &r) { r.token = 99; }, wire::Refusal::NoChannel},
		{[](auto &r) { r.queues = 0; }, wire::Refusal::Queues},
		{[](auto &r) { r.queues = 65; }, wire::Refusal::Queues},
		{[](auto &r) { r.queues = 65535, r.poll_queues = 65535; }, wire::Refusal::Queues},
		{[](auto &r) { r.queues = 17; }, wire::Refusal::Queues},
		{[](auto &r) { r.depth = 0; }, wire::Refusal::Depth},
		{[](auto &r) { r.depth = 1025; }, wire::Refusal::Depth},
		{[](auto &r) { r.depth = UINT32_MAX; }, wire::Refusal::Depth},
		{[](auto &r) { r.eager_limit = 255; }, wire::Refusal::EagerLimit},
		{[](auto &r) { r.eager_limit = 65537; }, wire::Refusal::EagerLimit},
		{[](auto &r) { r.max_message = 4095; }, wire::Refusal::MaxMessage},
		{[](auto &r) { r.max_message = (1 << 20) + 1; }, wire::Refusal::MaxMessage},
	};

	for (const Case &c : cases) {
		RawInitiator raw(1);
		wire::RequestInfo info = plain_request;
		std::size_t index = static_cast<std::size_t>(&c - cases);

		c.change(info);
		raw.control.connect("10.0.0.2", port, request_bytes(info));
		EXPECT_TRUE(raw.w.run_until([&] { return raw.control.ended(); }, 10 * sec));
		const CmEventRecord *event = raw.control.event(KD_CM_REJECTED);
		ASSERT_TRUE(event) << "case " << index;
		wire::Verdict verdict;
		ASSERT_TRUE(wire::decode_reject(event->data.data(), event->data.size(), verdict));
		EXPECT_EQ(verdict.reason, c.reason) << "case " << index;
		EXPECT_EQ(raw.w.state("store.0"), -1) << "case " << index;
	}
}

/* A second queue that does not fit the first. */
TEST(Lying, SecondQueueWithOneWrongField)
{
	const std::function<void(wire::RequestInfo &)> changes[] = {
		[](auto &r) { r.nonce++; },
		[](auto &r) { r.token++; },
		[](auto &r) { r.depth = 3; },
		[](auto &r) { r.eager_limit = 300; },
		[](auto &r) { r.queues = 2; },
		[](auto &r) { r.max_message = 4096; },
		[](auto &r) { r.queues = 0, r.poll_queues = 1; },
	};

	for (const auto &change : changes) {
		RawInitiator raw(1);
		wire::RequestInfo info = plain_request;
		wire::ReplyInfo reply;

		raw.control.connect("10.0.0.2", port, request_bytes(info));
		ASSERT_TRUE(raw.w.run_until([&] { return raw.control.established(); }, 10 * sec));
		const Bytes &text = raw.control.event(KD_CM_ESTABLISHED)->data;
		ASSERT_TRUE(wire::decode_reply(text.data(), text.size(), info, reply));
		info.queue = 1;
		info.token = reply.token;
		change(info);
		raw.data.connect("10.0.0.2", port, request_bytes(info));
		ASSERT_TRUE(raw.w.run_until([&] { return raw.data.ended(); }, 10 * sec))
			<< "change " << &change - changes;
		EXPECT_TRUE(raw.data.event(KD_CM_REJECTED));
		raw.expect_end("a peer that does not go on");
	}
}

/* The same queue twice. */
TEST(Lying, TheSameQueueTwice)
{
	RawInitiator raw(1);

	ASSERT_TRUE(raw.connect());
	wire::RequestInfo info = plain_request;
	wire::ReplyInfo reply;
	const Bytes &text = raw.control.event(KD_CM_ESTABLISHED)->data;
	ASSERT_TRUE(wire::decode_reply(text.data(), text.size(), info, reply));
	info.queue = 1;
	info.token = reply.token;
	RawConnection again(raw.w, raw.raw_dev);
	again.connect("10.0.0.2", port, request_bytes(info));
	ASSERT_TRUE(raw.w.run_until([&] { return again.ended(); }, 10 * sec));
	EXPECT_TRUE(again.event(KD_CM_REJECTED));
}

/* Killed, silent, or gone after each step of the handshake. */
TEST(Lying, PeerVanishesAtEachStep)
{
	for (int step = 0; step < 6; step++)
		for (uint64_t seed = 0; seed < 20; seed++) {
			RawInitiator raw(seed);

			switch (step) {
			case 0: /* asks, and is gone before the answer */
				raw.control.connect("10.0.0.2", port, request_bytes(plain_request));
				raw.w.run_until([&] { return raw.w.state("store.0") >= 0; },
						10 * sec);
				raw.control.vanish();
				break;
			case 1: /* never confirms */
				raw.control.no_confirmation();
				raw.control.connect("10.0.0.2", port, request_bytes(plain_request));
				break;
			case 2: /* one queue only */
				raw.control.connect("10.0.0.2", port, request_bytes(plain_request));
				ASSERT_TRUE(raw.w.run_until(
					[&] { return raw.control.established(); }, 10 * sec));
				raw.control.vanish();
				break;
			case 3: /* says no hello */ ASSERT_TRUE(raw.connect()); break;
			case 4: /* says no hello, disconnects */
				ASSERT_TRUE(raw.connect());
				raw.data.disconnect();
				break;
			case 5: /* live, and gone */
				ASSERT_TRUE(raw.live());
				raw.control.vanish();
				raw.data.vanish();
				break;
			}
			raw.w.run_until([&] { return raw.w.state("store.0") >= 0; }, 1 * sec);
			raw.expect_end("step " + std::to_string(step) + " seed " +
				       std::to_string(seed));
		}
}

/* Every wrong thing to say on a data queue. */
TEST(Lying, DataMessages)
{
	using wire::DataType;
	struct Case {
		const char *what;
		std::function<void(RawInitiator &)> lie;
	};
	const Case cases[] = {
		{"nothing", [](RawInitiator &r) { r.data.send(""); }},
		{"half a header", [](RawInitiator &r) { r.data.send(Bytes(16, '\2')); }},
		{"zeros", [](RawInitiator &r) { r.data.send(Bytes(32, '\0')); }},
		{"noise", [](RawInitiator &r) { r.data.send(pattern(1, 32)); }},
		{"unknown type",
		 [](RawInitiator &r) {
			 r.say(r.data, {DataType(9), 5, 0, 0, 0, 0}, "hello");
		 }},
		{"hello again",
		 [](RawInitiator &r) {
			 r.say(r.data, {DataType::Hello, 0, 0, 0, 0, 0});
		 }},
		{"length above the payload",
		 [](RawInitiator &r) {
			 r.say(r.data, {DataType::Eager, 6, 0, 0, 0, 0}, "hello");
		 }},
		{"length below the payload",
		 [](RawInitiator &r) {
			 r.say(r.data, {DataType::Eager, 4, 0, 0, 0, 0}, "hello");
		 }},
		{"no length, and a payload",
		 [](RawInitiator &r) {
			 r.say(r.data, {DataType::Eager, 0, 0, 0, 0, 0}, "x");
		 }},
		{"an empty ping",
		 [](RawInitiator &r) {
			 r.say(r.data, {DataType::Ping, 0, 0, 0, 0, 0});
		 }},
		{"above the receive buffer",
		 [](RawInitiator &r) {
			 r.say(r.data, {DataType::Eager, 4097, 0, 0, 0, 0}, Bytes(4097, 'x'));
		 }},
		{"far above it",
		 [](RawInitiator &r) {
			 r.say(r.data, {DataType::Eager, 100000, 0, 0, 0, 0}, Bytes(100000, 'x'));
		 }},
		{"a number far ahead",
		 [](RawInitiator &r) {
			 r.say(r.data, {DataType::Eager, 1, 0, 0, 1000, 0}, "x");
		 }},
		{"the largest number",
		 [](RawInitiator &r) {
			 r.say(r.data, {DataType::Eager, 1, 0, 0, UINT64_MAX, 0}, "x");
		 }},
		{"a number twice",
		 [](RawInitiator &r) {
			 r.say(r.data, {DataType::Eager, 1, 0, 0, 0, 0}, "x");
			 r.say(r.data, {DataType::Eager, 1, 0, 0, 0, 0}, "x");
		 }},
		{"credits that were never used",
		 [](RawInitiator &r) {
			 r.say(r.data, {DataType::Eager, 1, 1, 0, 0, 0}, "x");
		 }},
		{"half of all credits",
		 [](RawInitiator &r) {
			 r.say(r.data, {DataType::Eager, 1, 1U << 30, 0, 0, 0}, "x");
		 }},
		{"an offer with a payload",
		 [](RawInitiator &r) {
			 r.say(r.data, {DataType::Offer, 5000, 0, 1, 0, 4096}, "x");
		 }},
		{"an offer of nothing",
		 [](RawInitiator &r) {
			 r.say(r.data, {DataType::Offer, 0, 0, 1, 0, 4096});
		 }},
		{"an offer above max_message",
		 [](RawInitiator &r) {
			 r.say(r.data, {DataType::Offer, (1 << 20) + 1, 0, 1, 0, 0});
		 }},
		{"an offer of 4 GiB",
		 [](RawInitiator &r) {
			 r.say(r.data, {DataType::Offer, UINT32_MAX, 0, 1, 0, 0});
		 }},
		{"an offer with a wrong key",
		 [](RawInitiator &r) {
			 r.say(r.data, {DataType::Offer, 5000, 0, 1, 0, 4096});
		 }},
		{"an offer around the end of memory",
		 [](RawInitiator &r) {
			 r.say(r.data, {DataType::Offer, 5000, 0, 1, 0, UINT64_MAX - 10});
		 }},
		{"an offer past its region",
		 [](RawInitiator &r) {
			 RawConnection::Region region = r.data.expose(Bytes(6000, 'x'));
			 r.say(r.data,
			       {DataType::Offer, 5000, 0, region.rkey, 0, region.addr + 2000});
		 }},
		{"a pong without a ping",
		 [](RawInitiator &r) {
			 r.say(r.data, {DataType::Pong, 1, 0, 0, 0, 0}, "x");
		 }},
		{"key taken back that nobody registered",
		 [](RawInitiator &r) { r.data.send_invalidating("x", 0x1234); }},
		{"disconnects", [](RawInitiator &r) { r.data.disconnect(); }},
		{"disconnects the control queue", [](RawInitiator &r) { r.control.disconnect(); }},
	};

	for (const Case &c : cases)
		for (uint64_t seed = 0; seed < 5; seed++) {
			RawInitiator raw(seed);

			ASSERT_TRUE(raw.live()) << c.what;
			c.lie(raw);
			raw.expect_end(c.what);
		}
}

/* More than there are credits for: no receive is there, and nobody crashes. */
TEST(Lying, MoreThanTheCredits)
{
	RawInitiator raw(1);

	ASSERT_TRUE(raw.live());
	for (uint64_t seq = 0; seq < 20; seq++)
		raw.say(raw.data, {wire::DataType::Eager, 1, 0, 0, seq, 0}, "x");
	raw.expect_end("flooded");
}

TEST(Lying, PingFlood)
{
	RawInitiator raw(1);

	ASSERT_TRUE(raw.live());
	for (uint64_t number = 0; number < 50; number++)
		raw.say(raw.data, {wire::DataType::Ping, 1, 0, 0, number, 0}, "x");
	raw.w.run_for(30 * sec);
	raw.file.close();
	raw.w.del("store.0");
	EXPECT_TRUE(raw.w.run_until_gone("store.0"));
}

TEST(Lying, ControlMessages)
{
	struct Case {
		const char *what;
		std::function<void(wire::ControlInfo &)> change;
	};
	const Case cases[] = {
		{"hello again", [](auto &c) { c.flags = wire::ControlHello; }},
		{"start from the initiator", [](auto &c) { c.flags = wire::Start; }},
		{"unknown flag", [](auto &c) { c.flags = 1U << 9; }},
		{"credits never used", [](auto &c) { c.credits = 1000; }},
		{"credits of queue 2 of 1",
		 [](auto &c) {
			 c.nr_credits = 1, c.credit[0] = {2, 1};
		 }},
		{"data credits never used",
		 [](auto &c) {
			 c.nr_credits = 1, c.credit[0] = {1, 1};
		 }},
		{"fetched what was not offered",
		 [](auto &c) {
			 c.nr_done = 1, c.done[0] = {0, 1};
		 }},
		{"fetched on queue 64",
		 [](auto &c) {
			 c.nr_done = 1, c.done[0] = {0, 64};
		 }},
		{"answers a goodbye that nobody said",
		 [](auto &c) { c.flags = wire::ByeReply | wire::ControlHello; }},
	};

	for (const Case &c : cases)
		for (uint64_t seed = 0; seed < 5; seed++) {
			RawInitiator raw(seed);
			wire::ControlInfo info;

			ASSERT_TRUE(raw.live()) << c.what;
			c.change(info);
			raw.say_control(info);
			raw.expect_end(c.what);
		}
	/* and what is no control message at all */
	for (std::size_t len = 0; len <= wire::control_size; len++) {
		RawInitiator raw(len);

		ASSERT_TRUE(raw.live());
		raw.control.send(pattern(len, len));
		raw.expect_end("noise of " + std::to_string(len));
	}
}

/* Says goodbye for more messages than it sends: the reader must not wait for ever. */
TEST(Lying, GoodbyeForMessagesThatNeverCome)
{
	RawInitiator raw(1);
	wire::ControlInfo info;

	ASSERT_TRUE(raw.live());
	info.flags = wire::Bye;
	info.last = 5;
	raw.say_control(info);
	raw.w.run_for(1 * sec);
	raw.control.disconnect();
	raw.data.disconnect();
	EXPECT_TRUE(raw.w.run_until_gone("store.0"));
	std::string got = raw.file.read(10);
	EXPECT_TRUE(got.empty() || got[0] == '!') << got;
}

/* A real key of the channel, taken back by a peer that was only to read. */
TEST(Lying, InvalidatesTheOfferedKey)
{
	for (uint64_t seed = 0; seed < 20; seed++) {
		RawInitiator raw(seed);
		std::string big = pattern(1, 100000);

		ASSERT_TRUE(raw.live());
		raw.data.on_message = [&](const Bytes &text) {
			wire::DataInfo info;

			if (wire::decode_data(text.data(), text.size(), 65536, 1 << 20, info) &&
			    info.type == wire::DataType::Offer)
				raw.data.send_invalidating(Bytes(32, '\0'), info.rkey);
		};
		EXPECT_EQ(raw.file.write(big), -KD_EPIPE);
		raw.expect_end("invalidated");
	}
}

/* Reads where it must not: the key's bounds hold. */
TEST(Lying, ReadsPastTheOffer)
{
	for (uint64_t seed = 0; seed < 20; seed++) {
		RawInitiator raw(seed);
		std::string big = pattern(1, 100000);

		ASSERT_TRUE(raw.live());
		raw.data.on_message = [&](const Bytes &text) {
			wire::DataInfo info;

			if (wire::decode_data(text.data(), text.size(), 65536, 1 << 20, info) &&
			    info.type == wire::DataType::Offer)
				raw.data.read(info.addr, info.rkey, info.length + 1);
		};
		EXPECT_EQ(raw.file.write(big), -KD_EPIPE);
		raw.w.run_until([&] { return !raw.data.read_results.empty(); }, 5 * sec);
		ASSERT_FALSE(raw.data.read_results.empty());
		EXPECT_EQ(raw.data.read_results[0].status, uint32_t{WC_REM_ACCESS_ERR});
		raw.expect_end("bounds");
	}
}

/* Says that it fetched before it did, or never fetches at all. */
TEST(Lying, FetchesLateOrNever)
{
	for (uint64_t seed = 0; seed < 20; seed++) {
		RawInitiator raw(seed);
		std::string big = pattern(1, 100000);
		uint64_t answered = seed % 2;

		ASSERT_TRUE(raw.live());
		raw.data.on_message = [&](const Bytes &text) {
			wire::DataInfo info;
			wire::ControlInfo done;

			if (!wire::decode_data(text.data(), text.size(), 65536, 1 << 20, info) ||
			    info.type != wire::DataType::Offer)
				return;
			if (answered) {
				done.nr_done = 1;
				done.done[0] = {info.seq, 1};
				raw.say_control(done);
			}
			raw.data.read(info.addr, info.rkey, info.length);
		};
		if (!answered)
			raw.data.on_message = nullptr;
		Task writer = raw.w.spawn("writer", [&] { (void)raw.file.write(big); });
		raw.w.run_for(1 * ms);
		raw.w.del("store.0");
		EXPECT_TRUE(raw.w.finish({writer}, 30 * sec)) << "seed " << seed;
		EXPECT_TRUE(raw.w.run_until_gone("store.0"));
	}
}

/* --- the other way round: kdirect connects to a liar --- */

TEST(Lying, RefusalsOfEveryLength)
{
	for (uint32_t transport : {KDIRECT_TRANSPORT_ROCE, KDIRECT_TRANSPORT_IWARP})
		for (std::size_t len = 0; len <= 148; len++) {
			RawTarget raw(len, transport);

			raw.listener.on_request = [len](RawListener::Incoming &in) {
				in.connection->reject(pattern(len, len));
			};
			raw.expect_refused("reject of " + std::to_string(len));
		}
}

/* Each reason, and reasons that do not exist, as text. */
TEST(Lying, RefusalsWithEveryReason)
{
	for (uint16_t reason = 0; reason < 300; reason++) {
		RawTarget raw(reason);

		raw.listener.on_request = [reason](RawListener::Incoming &in) {
			wire::Reject reject;

			wire::encode_reject({wire::Refusal(reason), 0xfffffffe}, reject);
			in.connection->reject(bytes_of(reject));
		};
		raw.expect_refused("reason " + std::to_string(reason));
	}
}

TEST(Lying, RepliesOfEveryLength)
{
	for (uint32_t transport : {KDIRECT_TRANSPORT_ROCE, KDIRECT_TRANSPORT_IWARP})
		for (int kind = 0; kind < 2; kind++)
			for (std::size_t len = 0; len <= 196; len += len < 64 ? 1 : 11) {
				RawTarget raw(len, transport);

				raw.listener.on_request = [&](RawListener::Incoming &in) {
					in.connection->post_recvs(4);
					in.connection->accept(kind ? Bytes(len, '\0')
								   : pattern(len, len));
				};
				raw.expect_refused("reply of " + std::to_string(len));
			}
}

TEST(Lying, RepliesWithOneWrongField)
{
	const std::function<void(wire::ReplyInfo &)> changes[] = {
		[](auto &r) { r.queue = 1; },
		[](auto &r) { r.depth = 0; },
		[](auto &r) { r.depth = 33; },
		[](auto &r) { r.eager_limit = 255; },
		[](auto &r) { r.eager_limit = 16385; },
		[](auto &r) { r.max_message = 4095; },
		[](auto &r) { r.max_message = 1048577; },
		[](auto &r) { r.token = 0; },
	};

	for (const auto &change : changes) {
		RawTarget raw(1);

		raw.listener.on_request = [&](RawListener::Incoming &in) {
			wire::ReplyInfo info{0, 32, 16384, 1048576, 7};
			wire::Reply reply;

			change(info);
			wire::encode_reply(info, reply);
			in.connection->post_recvs(4);
			in.connection->accept(bytes_of(reply));
		};
		raw.expect_refused("change " + std::to_string(&change - changes));
	}
}

/* Accepts the first queue as it should and stumbles over the second, or goes silent. */
TEST(Lying, TargetStopsAtEachStep)
{
	for (int step = 0; step < 6; step++)
		for (uint64_t seed = 0; seed < 10; seed++) {
			RawTarget raw(seed);

			raw.listener.on_request = [&](RawListener::Incoming &in) {
				wire::RequestInfo asked;
				wire::Reply reply;

				ASSERT_FALSE(wire::decode_request(in.private_data.data(),
								  in.private_data.size(), asked));
				wire::encode_reply({asked.queue, asked.depth, asked.eager_limit,
						    asked.max_message, 7},
						   reply);
				in.connection->post_recvs(40);
				if (step == 0) /* says nothing */
					return;
				if (asked.queue == 1 && step == 1)
					return in.connection->reject("");
				if (asked.queue == 1 && step == 2)
					return;
				if (asked.queue == 1 && step == 3)
					return in.connection->accept("");
				in.connection->accept(bytes_of(reply));
				if (asked.queue == 1 && step == 4) /* 5: never says start */
					in.connection->vanish();
			};
			raw.expect_refused("step " + std::to_string(step));
		}
}

/* Random noise on a live channel, many times. */
TEST(Lying, Noise)
{
	for (uint64_t seed = 0; seed < 300; seed++) {
		RawInitiator raw(seed);
		Rng rng(seed);

		ASSERT_TRUE(raw.live());
		for (int i = 0; i < 4; i++) {
			wire::DataInfo info{
				wire::DataType(rng.range(0, 6)),
				static_cast<uint32_t>(rng.below(3) ? rng.below(8) : rng.next()),
				static_cast<uint32_t>(rng.below(3) ? 0 : rng.below(4)),
				static_cast<uint32_t>(rng.next()),
				rng.below(6),
				rng.next()};
			wire::ControlInfo control;

			control.flags = static_cast<uint16_t>(rng.below(64) & ~wire::ControlHello);
			control.last = rng.below(4);
			control.credits = static_cast<uint32_t>(rng.below(3));
			control.nr_done = static_cast<uint32_t>(rng.below(2));
			control.done[0] = {rng.below(3), static_cast<uint16_t>(rng.range(1, 2))};
			if (rng.chance(50))
				raw.say(raw.data, info, Bytes(rng.below(8), 'x'));
			else
				raw.say_control(control);
			if (rng.chance(30))
				raw.file.write("x", KD_IO_NOWAIT);
			raw.w.run_for(rng.below(200 * us));
		}
		raw.w.del("store.0");
		EXPECT_TRUE(raw.w.run_until_gone("store.0")) << "seed " << seed;
	}
}

} // namespace
