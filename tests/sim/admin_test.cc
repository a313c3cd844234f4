// SPDX-License-Identifier: GPL-2.0-only
// What an administrator sees and changes: names, settings, dumps, namespaces, owners.
#include <cstring>

#include "pair.h"

using namespace sim;

namespace
{

kd_net *handle(Net &net)
{
	return reinterpret_cast<kd_net *>(&net);
}

kd_net *own(World &w)
{
	return handle(*w.node().net);
}

TEST(Admin, NamesAreUniqueAndChecked)
{
	World w;
	kd_error error{};

	w.add_device("10.0.0.2");
	EXPECT_EQ(w.listen("store", "10.0.0.2", port), 0);
	EXPECT_EQ(w.listen("store", "10.0.0.2", port + 1, {}, &error), KD_EEXIST);
	EXPECT_EQ(error.attr, KDIRECT_A_NAME);
	EXPECT_EQ(w.listen("other", "10.0.0.2", port), KD_EADDRINUSE);
	EXPECT_EQ(w.listen("a.b", "10.0.0.2", port + 2), KD_EINVAL);
	EXPECT_EQ(w.listen("away", "10.9.9.9", port + 3, {}, &error), KD_EADDRNOTAVAIL);
	EXPECT_NE(error.text[0], '\0');
	EXPECT_EQ(w.connect("c0", "10.0.0.2", port), 0);
	EXPECT_EQ(w.connect("c0", "10.0.0.2", port), KD_EEXIST);
	EXPECT_EQ(w.connect("store.0", "10.0.0.2", port), KD_EINVAL);
	EXPECT_EQ(w.del("nobody"), KD_ENOENT);
	EXPECT_EQ(w.unlisten("nobody"), KD_ENOENT);
}

TEST(Admin, ListenerSettings)
{
	Pair p(1);
	const CoreApi &core = *p.w.node().core;
	kd_listener_params set{};
	kd_error error{};

	std::strcpy(set.name, "store");
	auto apply = [&] {
		int err = 0;

		p.w.call([&] { err = core.listener_set(own(p.w), &set, &error); });
		return err;
	};
	EXPECT_EQ(apply(), KD_EINVAL) << "nothing to set";
	set.has = KD_HAS_MAX_CHANNELS;
	set.max_channels = 0;
	EXPECT_EQ(apply(), KD_ERANGE);
	set.max_channels = 1;
	EXPECT_EQ(apply(), 0);
	ASSERT_TRUE(p.up());
	ASSERT_EQ(p.w.connect("c1", p.target, port), 0);
	EXPECT_TRUE(p.w.run_until_gone("c1"));
	ASSERT_TRUE(p.w.last_error("c1"));
	EXPECT_EQ(p.w.last_error("c1")->err, KD_ECONNREFUSED);
	EXPECT_NE(p.w.last_error("c1")->text.find("1 channels"), std::string::npos);
	set.max_channels = 8;
	set.has |= KD_HAS_ALLOW;
	set.nr_allow = 1;
	set.allow[0] = {parse_addr("192.168.0.0"), 16};
	EXPECT_EQ(apply(), 0);
	ASSERT_EQ(p.w.connect("c2", p.target, port), 0);
	EXPECT_TRUE(p.w.run_until_gone("c2"));
	ASSERT_TRUE(p.w.last_error("c2"));
	EXPECT_NE(p.w.last_error("c2")->text.find("allow list"), std::string::npos);
	set.has = KD_HAS_ALLOW_CLEAR;
	set.nr_allow = 0;
	EXPECT_EQ(apply(), 0);
	ASSERT_EQ(p.w.connect("c3", p.target, port), 0);
	EXPECT_TRUE(p.w.run_until_live("c3"));
	struct kd_listener_info info {
	};
	p.w.call([&] { EXPECT_EQ(core.listener_info(own(p.w), "store", &info), 0); });
	EXPECT_EQ(info.channels, 2u);
	EXPECT_EQ(info.accepted, 2u);
	EXPECT_EQ(info.rejected, 2u);
	EXPECT_EQ(info.params.nr_allow, 0u);
	EXPECT_EQ(info.netns, p.w.node().net->inode);
	std::strcpy(set.name, "nobody");
	EXPECT_EQ(apply(), KD_ENOENT);
}

TEST(Admin, ChannelSettings)
{
	Pair p(2);
	const CoreApi &core = *p.w.node().core;
	kd_channel_params set{};
	kd_error error{};
	struct kd_channel_info info {
	};

	ASSERT_TRUE(p.up());
	std::strcpy(set.name, "c0");
	auto apply = [&] {
		int err = 0;

		p.w.call([&] { err = core.channel_set(own(p.w), &set, &error); });
		return err;
	};
	core.channel_defaults(&set);
	std::strcpy(set.name, "c0");
	EXPECT_EQ(apply(), KD_EINVAL) << "nothing to set";
	set.has = KD_HAS_EAGER_LIMIT | KD_HAS_KEEP_ALIVE | KD_HAS_DRAIN_TIMEOUT;
	set.eager_limit = 1000;
	set.keep_alive_ms = 150;
	set.drain_timeout_ms = 77;
	EXPECT_EQ(apply(), 0);
	ASSERT_TRUE(p.w.info("c0", info));
	EXPECT_EQ(info.params.eager_limit, 1000u);
	EXPECT_EQ(info.params.keep_alive_ms, 150u);
	EXPECT_EQ(info.params.drain_timeout_ms, 77u);
	set.eager_limit = 65536;
	EXPECT_EQ(apply(), KD_ERANGE) << "above what was agreed";
	set.eager_limit = 255;
	EXPECT_EQ(apply(), KD_ERANGE);
	set.eager_limit = 1000;
	set.keep_alive_ms = 5;
	EXPECT_EQ(apply(), KD_ERANGE);
	/* the new keep-alive is the one that finds a silent peer */
	p.w.opts.retry_timeout = 1000 * sec;
	p.w.run_for(1 * sec);
	EXPECT_EQ(p.w.state("c0"), KDIRECT_STATE_LIVE);
	p.w.set_link(p.b, false);
	EXPECT_TRUE(p.w.run_until([&] { return p.w.last_error("c0"); }, 1 * sec));
	std::strcpy(set.name, "nobody");
	set.keep_alive_ms = 0;
	EXPECT_EQ(apply(), KD_ENOENT);
}

TEST(Admin, SnapshotsTellWhatIs)
{
	Pair p(PairOptions{
		.channel = [](kd_channel_params &c) { c.queues = 2, c.poll_queues = 1; }});
	struct kd_channel_info info {
	};
	struct kd_channel_stats stats {
	};
	std::vector<kd_queue_stats> queues;

	ASSERT_TRUE(p.up());
	EXPECT_EQ(p.near.write("hello"), 5);
	EXPECT_EQ(p.far.read(), "hello");
	std::string big(100000, 'x');
	Task writer = p.w.spawn("writer", [&] { EXPECT_EQ(p.near.write(big), 100000); });
	EXPECT_TRUE(p.far.read() == big);
	EXPECT_TRUE(p.w.finish({writer}));
	EXPECT_EQ(p.far.ping(64), 0);
	ASSERT_TRUE(p.w.info("store.0", info));
	EXPECT_STREQ(info.listener, "store");
	EXPECT_STREQ(info.device, p.b.attr.name);
	EXPECT_TRUE(same_addr(info.local.addr, parse_addr("10.0.0.2")));
	EXPECT_EQ(info.local.port, port);
	EXPECT_EQ(info.state, uint32_t{KDIRECT_STATE_LIVE});
	EXPECT_EQ(info.opens, 1u);
	EXPECT_EQ(info.params.queues, 2u);
	ASSERT_TRUE(p.w.info("c0", info));
	EXPECT_STREQ(info.listener, "");
	ASSERT_TRUE(p.w.stats("c0", stats, &queues));
	EXPECT_EQ(stats.tx_messages, 2u);
	EXPECT_EQ(stats.tx_bytes, 100005u);
	EXPECT_EQ(stats.tx_rendezvous, 1u);
	EXPECT_EQ(stats.tx_pinned_bytes, 100000u);
	EXPECT_EQ(stats.rx_messages, 0u);
	EXPECT_EQ(stats.pings, 1u);
	ASSERT_EQ(queues.size(), 4u);
	for (uint32_t i = 0; i < 4; i++)
		EXPECT_EQ(queues[i].index, i);
	EXPECT_EQ(queues[0].kind, uint32_t{KDIRECT_QUEUE_CONTROL});
	EXPECT_EQ(queues[1].kind, uint32_t{KDIRECT_QUEUE_INTERRUPT});
	EXPECT_EQ(queues[3].kind, uint32_t{KDIRECT_QUEUE_POLL});
	ASSERT_TRUE(p.w.stats("store.0", stats));
	EXPECT_EQ(stats.rx_messages, 2u);
	EXPECT_EQ(stats.rx_bytes, 100005u);
	EXPECT_EQ(stats.rx_rendezvous, 1u);
	EXPECT_FALSE(p.w.stats("nobody", stats));
	struct kd_device_info dev {
	};
	p.w.call([&] {
		EXPECT_EQ(p.w.node().core->device_info(p.b.attr.name, &dev), 0);
		EXPECT_EQ(dev.channels, 1u);
		EXPECT_EQ(p.w.node().core->device_info("nobody", &dev), KD_ENOENT);
	});
}

TEST(Admin, DumpsShowEachOnce)
{
	World w;
	const CoreApi &core = *w.node().core;
	std::multiset<std::string> devices, listeners, channels;
	uint64_t cursor = 0;

	w.add_device("10.0.0.1");
	w.add_device("10.0.0.2");
	for (uint16_t i = 0; i < 5; i++) {
		std::string number = std::to_string(i);

		ASSERT_EQ(w.listen("l" + number, "10.0.0.2", static_cast<uint16_t>(port + i)), 0);
		ASSERT_EQ(w.connect("c" + number, "10.0.0.2", static_cast<uint16_t>(port + i)), 0);
		ASSERT_TRUE(w.run_until_live("c" + number));
	}
	w.call([&] {
		struct kd_device_info dev;
		struct kd_listener_info listener;
		struct kd_channel_info channel;

		while (!core.device_next(&cursor, &dev))
			devices.insert(dev.attr.name);
		cursor = 0;
		while (!core.listener_next(own(w), &cursor, &listener))
			listeners.insert(listener.params.name);
		cursor = 0;
		while (!core.channel_next(own(w), &cursor, &channel))
			channels.insert(channel.params.name);
	});
	EXPECT_EQ(devices.size(), 2u);
	EXPECT_EQ(listeners, (std::multiset<std::string>{"l0", "l1", "l2", "l3", "l4"}));
	EXPECT_EQ(channels, (std::multiset<std::string>{"c0", "c1", "c2", "c3", "c4", "l0.0",
							"l1.0", "l2.0", "l3.0", "l4.0"}));
}

/* The initial namespace sees everything; another sees its own. */
TEST(Admin, Namespaces)
{
	World w;
	const CoreApi &core = *w.node().core;
	Net &net = w.add_net();
	struct kd_listener_info info;
	kd_listener_params params{};
	kd_error error{};

	w.add_device("10.0.0.2");
	ASSERT_EQ(w.listen("here", "10.0.0.2", port), 0);
	w.call([&] {
		uint64_t cursor = 0;

		core.listener_defaults(&params);
		std::strcpy(params.name, "there");
		params.local = {parse_addr("10.0.0.2"), port + 1};
		EXPECT_EQ(core.listener_new(handle(net), &params, &error), 0);
		EXPECT_EQ(core.listener_info(handle(net), "there", &info), 0);
		EXPECT_EQ(info.netns, net.inode);
		EXPECT_EQ(core.listener_info(handle(net), "here", &info), KD_ENOENT);
		EXPECT_EQ(core.listener_info(own(w), "there", &info), 0);
		EXPECT_EQ(core.listener_del(handle(net), "here", &error), KD_ENOENT);
		EXPECT_EQ(core.listener_next(handle(net), &cursor, &info), 0);
		EXPECT_STREQ(info.params.name, "there");
		EXPECT_EQ(core.listener_next(handle(net), &cursor, &info), KD_ENOENT);
		std::strcpy(params.name, "here");
		EXPECT_EQ(core.listener_new(handle(net), &params, &error), KD_EEXIST);
		EXPECT_EQ(core.listener_del(own(w), "there", &error), 0);
	});
}

/* The socket that asked is gone: what was never live goes, what was live stays. */
TEST(Admin, OwnerGone)
{
	Pair p(PairOptions{.channel = [](kd_channel_params &c) { c.owner = 0x1234; }});
	const CoreApi &core = *p.w.node().core;

	ASSERT_TRUE(p.up());
	p.w.set_link(p.a, false);
	ASSERT_EQ(p.w.connect("c1", p.target, port, p.channel), 0);
	ASSERT_EQ(p.w.connect("c2", p.target, port), 0);
	p.w.run_for(1 * ms);
	p.w.call([&] { core.owner_gone(0x1234); });
	EXPECT_TRUE(p.w.run_until_gone("c1", 5 * sec));
	EXPECT_GE(p.w.state("c2"), 0);
	EXPECT_GE(p.w.state("c0"), 0);
	p.w.call([&] { core.owner_gone(0); });
	EXPECT_GE(p.w.state("c2"), 0) << "nobody's";
}

} // namespace
