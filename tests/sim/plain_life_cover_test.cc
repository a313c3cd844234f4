// SPDX-License-Identifier: GPL-2.0-only
// Raw channels that come and go where something is unusual: paths that neither the storms
// nor the faults come along.
#include <cstring>
#include <deque>

#include "cover.h"
#include "fabric.h"
#include "plain_pair.h"
#include "raw.h"

using namespace sim;

namespace
{

void raw_channel(kd_channel_params &p)
{
	p.mode = KDIRECT_MODE_RAW;
}

/* Nobody holds them: the nodes come with the connections, as those of sessions. */
struct Unheld {
	explicit Unheld(uint64_t seed, const World::ListenerTweak &tweak = {}) : w({.seed = seed})
	{
		w.add_device("10.0.0.1");
		w.add_device("10.0.0.2");
		EXPECT_EQ(w.listen("raw", "10.0.0.2", port,
				   [&](kd_listener_params &p) {
					   p.mode = KDIRECT_MODE_RAW;
					   if (tweak)
						   tweak(p);
				   }),
			  0);
	}
	int connect(const char *name) { return w.connect(name, "10.0.0.2", port, raw_channel); }
	bool up(const char *name, const char *accepted)
	{
		return !connect(name) && w.run_until_live(name) && w.run_until_live(accepted);
	}
	World w;
};

/* The channel's settings, again and again: each time it looks what there is to do. */
int set_drain_timeout(World &w, const char *name, uint32_t timeout)
{
	kd_channel_params params{};
	kd_error error{};
	int err = 0;

	w.call([&] {
		Node *on = w.here();

		on->core->channel_defaults(&params);
		std::strcpy(params.name, name);
		params.has = KD_HAS_DRAIN_TIMEOUT;
		params.drain_timeout_ms = timeout;
		err = on->core->channel_set(reinterpret_cast<kd_net *>(on->net), &params, &error);
	});
	return err;
}

/* The core's id of a channel that connects. */
Cm *id_towards(World &w, const char *addr)
{
	kd_addr peer = parse_addr(addr);

	for (const auto &cm : w.cms)
		if (cm->queue && same_addr(cm->peer.addr, peer))
			return cm.get();
	return nullptr;
}

/* --- nodes -------------------------------------------------------------------------------- */

TEST(PlainLife, NodesOfWhatIsConnected)
{
	for (uint64_t seed = 0; seed < 5; seed++) {
		Unheld p(seed);
		Memory memory(p.w, 4096);
		PlainFile files[2][2];

		for (int i = 0; i < 2; i++) {
			std::string near_name = "r" + std::to_string(i);
			std::string far_name = "raw." + std::to_string(i);
			std::string text = "hello " + near_name;

			EXPECT_FALSE(p.w.has_node(near_name));
			ASSERT_TRUE(p.up(near_name.c_str(), far_name.c_str()));
			PlainFile &near = files[i][0] = open_plain(p.w, near_name);
			PlainFile &far = files[i][1] = open_plain(p.w, far_name);
			ASSERT_TRUE(near && far);
			EXPECT_FALSE(near.info().flags & KDIRECT_RAW_HELD);
			memory.put(0, text);
			ASSERT_EQ(far.post({work(KDIRECT_OP_RECV, memory.at(2048), 100)}), 0);
			EXPECT_EQ(near.one(work(KDIRECT_OP_SEND, memory.at(),
						static_cast<uint32_t>(text.size())))
					  .result,
				  static_cast<int>(text.size()));
			ASSERT_EQ(far.await(1).size(), 1u);
			EXPECT_EQ(memory.text(2048, text.size()), text);
			/* there is nothing that its program could say to this */
			EXPECT_EQ(near.connect(raw_terms()), KD_EBUSY);
			EXPECT_EQ(far.reject(""), KD_EBUSY);
		}
	}
}

TEST(PlainLife, NoNode)
{
	for (uint64_t seed = 0; seed < 5; seed++) {
		Unheld p(seed);

		p.w.fail_nth(Op::NodeCreate, 1);
		ASSERT_EQ(p.connect("r0"), 0);
		ASSERT_TRUE(p.w.run_until([&] { return p.w.fault_fired(); }));
		EXPECT_TRUE(p.w.run_until_gone("raw.0"));
		EXPECT_TRUE(contains(error_text(p.w, "r0") + error_text(p.w, "raw.0"),
				     "no device node for channel"));
		p.w.del("r0");
		EXPECT_TRUE(p.w.run_until_gone("r0"));
		EXPECT_EQ(p.w.devnodes.size(), 0u);
		EXPECT_TRUE(p.up("r1", "raw.0"));
	}
}

/* --- listeners ---------------------------------------------------------------------------- */

TEST(PlainLife, AListenerThatIsFull)
{
	Unheld p(1, [](kd_listener_params &l) { l.max_channels = 1; });

	ASSERT_TRUE(p.up("r0", "raw.0"));
	ASSERT_EQ(p.connect("r1"), 0);
	EXPECT_TRUE(p.w.run_until_gone("r1"));
	ASSERT_TRUE(p.w.last_error("r1"));
	EXPECT_EQ(p.w.last_error("r1")->err, KD_ECONNREFUSED);
	EXPECT_EQ(p.w.state("raw.0"), KDIRECT_STATE_LIVE);
	EXPECT_EQ(p.w.del("r0"), 0);
	EXPECT_TRUE(p.w.run_until_gone("raw.0"));
	EXPECT_TRUE(p.up("r2", "raw.0"));
}

/* What peers make a listener set aside has a bound: 16 times 64 MiB. */
TEST(PlainLife, BuffersOfAListenersPeers)
{
	World w({.seed = 1});
	w.add_device("10.0.0.2");
	Device &device = w.add_device("10.0.0.9", {.raw = true});
	std::deque<RawConnection> peers;
	auto refused = [&] {
		return std::any_of(peers.begin(), peers.end(),
				   [](const auto &peer) { return peer.event(KD_CM_REJECTED); });
	};

	ASSERT_EQ(w.listen("raw", "10.0.0.2", port,
			   [](kd_listener_params &p) {
				   p.mode = KDIRECT_MODE_RAW;
				   p.raw.hold = true;
				   p.max_depth = 1024;
				   p.has = KD_HAS_EAGER_LIMIT;
			   }),
		  0);
	/* memory takes its time */
	w.sched.doze_percent = 100;
	for (int i = 0; i < 17; i++)
		peers.emplace_back(w, device).connect("10.0.0.2", port, "");
	EXPECT_TRUE(w.run_until(refused, 8 * sec));
	w.sched.doze_percent = 0;
	w.fail_nth(Op::DmaCreate, 1, UINT32_MAX);
	EXPECT_GE(w.state("raw.15"), 0);
	EXPECT_EQ(w.state("raw.16"), -1);
	EXPECT_TRUE(w.run_until_gone("raw.15"));
}

TEST(PlainLife, AsManyChannelsAsThereCanBe)
{
	Unheld p(1);
	Device &device = p.w.add_device("10.0.0.9", {.raw = true});
	RawConnection peer(p.w, device);

	for (unsigned int i = 0; i < 1024; i++)
		ASSERT_EQ(p.w.connect("r" + std::to_string(i), "10.9.9.9", port, raw_channel), 0);
	peer.connect("10.0.0.2", port, "hello");
	ASSERT_TRUE(p.w.run_until([&] { return peer.ended(); }, 1 * sec));
	/* its reason is no business of who speaks another protocol */
	const CmEventRecord *event = peer.event(KD_CM_REJECTED);
	ASSERT_TRUE(event);
	EXPECT_EQ(event->data.find_first_not_of('\0'), Bytes::npos);
	EXPECT_EQ(p.w.state("raw.0"), -1);
}

/* --- settings ----------------------------------------------------------------------------- */

TEST(PlainLife, WhatOnlyRawChannelsHave)
{
	Plain p({.seed = 1});
	kd_error error{};

	EXPECT_EQ(p.w.connect(
			  "c0", "10.0.0.2", port, [](kd_channel_params &c) { c.has = KD_HAS_RAW; },
			  &error),
		  KD_EINVAL);
	EXPECT_EQ(error.attr, KDIRECT_A_MODE);
	EXPECT_TRUE(contains(error.text, "mode raw only")) << error.text;
	EXPECT_EQ(p.w.listen(
			  "l", "10.0.0.2", 7480, [](kd_listener_params &l) { l.has = KD_HAS_RAW; },
			  &error),
		  KD_EINVAL);
	/* and what they do not */
	ASSERT_TRUE(p.up());
	EXPECT_EQ(add_map(p.w, "m", "r0", "mem", false, &error), KD_EOPNOTSUPP);
	EXPECT_EQ(error.attr, KDIRECT_A_CHANNEL);
	EXPECT_TRUE(contains(error.text, "\"r0\" is raw")) << error.text;
	EXPECT_EQ(map_state(p.w, "m"), -1);
}

/* The depth is cut down to what a device has room for. */
TEST(PlainLife, SmallDevices)
{
	for (const DeviceOptions &device :
	     {DeviceOptions{.max_qp_wr = 20}, DeviceOptions{.max_cqe = 40}}) {
		Plain p({.seed = 1}, 0, 64, device);
		ASSERT_TRUE(p.up());
		uint32_t depth = p.far.info().depth;
		EXPECT_GE(depth, 1u);
		EXPECT_LT(depth, 20u);
		EXPECT_EQ(depth, p.near.info().depth);
		std::vector<kdirect_desc> sends, recvs;
		for (uint32_t i = 0; i < depth; i++) {
			sends.push_back(work(KDIRECT_OP_SEND, p.near_memory.at(), 8, i));
			recvs.push_back(work(KDIRECT_OP_RECV, p.far_memory.at(place(i)), 8, i));
		}
		EXPECT_EQ(p.far.post(recvs), 0);
		EXPECT_EQ(p.far.post({recvs[0]}), KD_EAGAIN);
		EXPECT_EQ(p.near.post(sends), 0);
		EXPECT_EQ(p.near.post({sends[0]}), KD_EAGAIN);
		EXPECT_EQ(p.near.await(depth).size(), depth);
		EXPECT_EQ(p.far.await(depth).size(), depth);
	}
	for (const DeviceOptions &device :
	     {DeviceOptions{.max_qp_wr = 1}, DeviceOptions{.max_cqe = 2}}) {
		Plain p({.seed = 1}, 0, 64, device);
		ASSERT_EQ(p.w.connect("r0", "10.0.0.2", port, p.tweak), 0);
		EXPECT_TRUE(p.w.run_until_gone("r0"));
		ASSERT_TRUE(p.w.last_error("r0"));
		EXPECT_EQ(p.w.last_error("r0")->err, KD_EOPNOTSUPP);
		EXPECT_TRUE(contains(error_text(p.w, "r0"), "too few for a depth of 1"));
	}
}

/* Whatever step it is in, or while it waits for its program. */
TEST(PlainLife, SettingsWhileItConnects)
{
	for (uint64_t seed = 0; seed < 10; seed++) {
		Plain p({.seed = seed});
		bool over = false;
		int err[2] = {};
		Task setter = p.w.spawn("setter", [&] {
			while (!over) {
				err[0] = set_drain_timeout(p.w, "r0", 700);
				err[1] = set_drain_timeout(p.w, "raw.0", 900);
				p.w.run_for(1 * us);
			}
		});

		ASSERT_TRUE(p.up());
		over = true;
		ASSERT_TRUE(p.w.finish({setter}));
		EXPECT_EQ(err[0] + err[1], 0);
		EXPECT_EQ(p.near.info().error + p.far.info().error, 0u);
		struct kd_channel_info info {
		};
		EXPECT_TRUE(p.w.info("raw.0", info));
		EXPECT_EQ(info.params.drain_timeout_ms, 900u);
	}
}

/* --- connecting --------------------------------------------------------------------------- */

/* Everything that can be wrong with an answer, and it still can be given. */
TEST(PlainLife, InvalidAnswers)
{
	auto changed = [](const std::function<void(kdirect_raw_connect &)> &change) {
		kdirect_raw_connect call = raw_terms("hello");

		change(call);
		return call;
	};
	auto refusal = [](const std::function<void(kdirect_raw_connect &)> &change) {
		kdirect_raw_connect call{};

		change(call);
		return call;
	};
	Plain p({.seed = 1});
	ASSERT_TRUE(p.begin());
	for (const auto &call : {
		     changed([](auto &c) { c.reserved[0] = 1; }),
		     changed([](auto &c) { c.reserved[3] = 1; }),
		     changed([](auto &c) { c.length = KDIRECT_RAW_CONNECT_MAX + 1; }),
		     changed([](auto &c) { c.length = UINT32_MAX; }),
		     changed([](auto &c) { c.retry_count = 8; }),
		     changed([](auto &c) { c.rnr_retry_count = 8; }),
	     }) {
		EXPECT_EQ(p.near.connect(call), KD_EINVAL);
		EXPECT_TRUE(p.near.info().flags & KDIRECT_RAW_HELD);
	}
	ASSERT_TRUE(p.requested());
	EXPECT_EQ(p.far.connect(changed([](auto &c) { c.length = KDIRECT_RAW_ACCEPT_MAX + 1; })),
		  KD_EINVAL);
	for (const auto &call : {
		     refusal([](auto &c) { c.length = KDIRECT_RAW_REJECT_MAX + 1; }),
		     refusal([](auto &c) { c.reserved[1] = 1; }),
		     refusal([](auto &c) { c.initiator_depth = 1; }),
		     refusal([](auto &c) { c.responder_resources = 1; }),
		     refusal([](auto &c) { c.retry_count = 1; }),
		     refusal([](auto &c) { c.rnr_retry_count = 1; }),
	     }) {
		EXPECT_EQ(p.far.reject(call), KD_EINVAL);
		EXPECT_TRUE(p.far.info().flags & KDIRECT_RAW_HELD);
	}
	EXPECT_EQ(p.far.connect(changed([](auto &c) { c.length = KDIRECT_RAW_ACCEPT_MAX; })), 0);
	EXPECT_TRUE(p.w.run_until_live("r0"));
	EXPECT_EQ(p.near.info().data_length, uint32_t{KDIRECT_RAW_ACCEPT_MAX});
	EXPECT_EQ(p.far.reject(""), KD_EBUSY);
}

/* A transport that brings more than any can, and one that says things twice. */
TEST(PlainLife, WhatAPeerSaysIsCut)
{
	{
		Plain p({.seed = 1});
		ASSERT_TRUE(p.begin());
		ASSERT_EQ(p.near.connect(raw_terms("hello"), true), 0);
		Cm *id = id_towards(p.w, "10.0.0.2");
		ASSERT_TRUE(id);
		cm_push(p.w, id,
			{.type = KD_CM_REJECTED, .data = Bytes(300, 'x'), .has_data = true});
		EXPECT_TRUE(p.w.run_until_gone("r0"));
		kdirect_raw_info info = p.near.info();
		EXPECT_EQ(info.error, uint32_t{KD_ECONNREFUSED});
		EXPECT_EQ(info.data_length, uint32_t{KDIRECT_RAW_DATA_MAX});
		EXPECT_EQ(std::string(reinterpret_cast<char *>(info.data), KDIRECT_RAW_DATA_MAX),
			  std::string(KDIRECT_RAW_DATA_MAX, 'x'));
	}
	for (uint64_t seed = 0; seed < 5; seed++) {
		Plain p({.seed = seed});
		ASSERT_TRUE(p.up());
		kdirect_raw_info before = p.near.info();
		cm_push(p.w, id_towards(p.w, "10.0.0.2"),
			{.type = KD_CM_ESTABLISHED, .data = "other", .has_data = true});
		p.w.run_for(1 * ms);
		kdirect_raw_info after = p.near.info();
		EXPECT_EQ(std::memcmp(&before, &after, sizeof(after)), 0);
		EXPECT_EQ(p.near.info().initiator_depth, 4u);
		EXPECT_EQ(p.w.state("r0"), KDIRECT_STATE_LIVE);
	}
}

/* Who waits with poll() hears of the connection, of completions, and of the end. */
TEST(PlainLife, WaitingForEvents)
{
	for (uint64_t seed = 0; seed < 10; seed++) {
		Plain p({.seed = seed}, seed % 2);
		uint32_t writable = 0, readable = 0, over = 0;

		ASSERT_TRUE(p.begin());
		EXPECT_EQ(p.near.poll(KD_POLL_IN | KD_POLL_OUT, 100 * us), 0u);
		Task out = p.w.spawn("out", [&] { writable = p.near.poll(KD_POLL_OUT, 10 * sec); });
		ASSERT_TRUE(p.requested());
		EXPECT_TRUE(p.w.running(out));
		ASSERT_EQ(p.far.connect(raw_terms()), 0);
		ASSERT_TRUE(p.w.finish({out}, 1 * sec));
		EXPECT_EQ(writable, uint32_t{KD_POLL_OUT});
		ASSERT_EQ(p.near.post({work(KDIRECT_OP_RECV, p.near_memory.at(), 8)}), 0);
		Task in = p.w.spawn("in", [&] { readable = p.near.poll(KD_POLL_IN, 10 * sec); });
		p.w.run_for(1 * ms);
		EXPECT_TRUE(p.w.running(in));
		EXPECT_EQ(p.far.one(work(KDIRECT_OP_SEND, p.far_memory.at(), 8)).result, 8);
		ASSERT_TRUE(p.w.finish({in}, 1 * sec));
		EXPECT_EQ(readable, uint32_t{KD_POLL_IN});
		EXPECT_EQ(p.near.await(1).size(), 1u);
		Task hup = p.w.spawn("hup", [&] { over = p.near.poll(KD_POLL_IN, 10 * sec); });
		p.w.run_for(1 * ms);
		EXPECT_TRUE(p.w.running(hup));
		p.far.close();
		ASSERT_TRUE(p.w.finish({hup}, 1 * sec));
		EXPECT_EQ(over, uint32_t{KD_POLL_HUP});
	}
}

/* Nobody else comes in between the close and the end. */
TEST(PlainLife, NobodyOpensWhatIsClosed)
{
	for (uint64_t seed = 0; seed < 100; seed++) {
		Plain p({.seed = seed});
		ASSERT_TRUE(p.up());
		bool another = false;
		Task closes = p.w.spawn("closes", [&] { p.far.close(); });
		Task opens = p.w.spawn("opens", [&] {
			for (int i = 0; i < 20; i++)
				another |= bool(open_plain(p.w, "raw.0"));
		});
		ASSERT_TRUE(p.w.finish({closes, opens}));
		EXPECT_FALSE(another) << "seed " << seed;
		EXPECT_TRUE(p.w.run_until_gone("raw.0"));
	}
}

} // namespace
