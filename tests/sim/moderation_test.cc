// SPDX-License-Identifier: GPL-2.0-only
// Interrupt moderation: what is asked for reaches the CQs of the data queues that
// interrupt, when it is asked for, and is refused where the device cannot.
#include "../../uapi/kdirect_netlink.h"
#include "pair.h"

using namespace sim;

namespace
{

PairOptions moderated(uint32_t count, uint32_t period_us, bool able = true)
{
	PairOptions options;

	options.channel = [=](kd_channel_params &c) {
		c.queues = 2;
		c.poll_queues = 1;
		c.cq_count = count;
		c.cq_period_us = period_us;
	};
	options.device.moderation = able;
	return options;
}

int set(World &w, uint32_t has, uint32_t count, uint32_t period_us, kd_error *error)
{
	kd_channel_params params{};
	int err = 0;

	w.call([&] {
		w.node().core->channel_defaults(&params);
		std::strcpy(params.name, "c0");
		params.has = has;
		params.cq_count = count;
		params.cq_period_us = period_us;
		err = w.node().core->channel_set(reinterpret_cast<kd_net *>(w.node().net), &params,
						 error);
	});
	return err;
}

/* CQs on a device that are moderated like this. */
std::size_t cqs(const World &w, const Device &dev, uint32_t count, uint32_t period_us)
{
	std::size_t n = 0;

	for (const auto &cq : w.cqs)
		n += cq->dev == &dev && cq->count == count && cq->period_us == period_us;
	return n;
}

void exchange(Pair &p)
{
	for (int i = 0; i < 40; i++) {
		EXPECT_EQ(p.near.write("there"), 5);
		EXPECT_EQ(p.far.read(), "there");
		EXPECT_EQ(p.far.write("back"), 4);
		EXPECT_EQ(p.near.read(), "back");
	}
}

TEST(Moderation, OfTheDataQueuesThatInterrupt)
{
	Pair p(moderated(8, 20));

	ASSERT_TRUE(p.up());
	EXPECT_EQ(cqs(p.w, p.a, 8, 20), 2u);
	EXPECT_EQ(cqs(p.w, p.a, 0, 0), 2u); /* control and poll queue */
	EXPECT_EQ(cqs(p.w, p.b, 0, 0), 4u); /* the peer's are its own matter */
	exchange(p);
}

TEST(Moderation, NobodyAsked)
{
	Pair p(moderated(0, 0, false));

	ASSERT_TRUE(p.up());
	exchange(p);
}

TEST(Moderation, ChangesWhileTheChannelLives)
{
	Pair p(moderated(8, 20));
	kd_error error{};
	struct kd_channel_info info;

	ASSERT_TRUE(p.up());
	EXPECT_EQ(set(p.w, KD_HAS_CQ_PERIOD, 0, 33, &error), 0);
	EXPECT_TRUE(p.w.run_until([&] { return cqs(p.w, p.a, 8, 33) == 2; }, 1 * sec));
	EXPECT_EQ(set(p.w, KD_HAS_CQ_COUNT, 3, 0, &error), 0);
	EXPECT_TRUE(p.w.run_until([&] { return cqs(p.w, p.a, 3, 33) == 2; }, 1 * sec));
	ASSERT_TRUE(p.w.info("c0", info));
	EXPECT_EQ(info.params.cq_count, 3u);
	EXPECT_EQ(info.params.cq_period_us, 33u);
	exchange(p);
	EXPECT_EQ(set(p.w, KD_HAS_CQ_COUNT | KD_HAS_CQ_PERIOD, 0, 0, &error), 0);
	EXPECT_TRUE(p.w.run_until([&] { return cqs(p.w, p.a, 0, 0) == 4; }, 1 * sec));
	for (auto [count, period_us] : {std::pair{65536u, 0u}, {0u, 65536u}})
		EXPECT_EQ(set(p.w, KD_HAS_CQ_COUNT | KD_HAS_CQ_PERIOD, count, period_us, &error),
			  KD_ERANGE);
	EXPECT_EQ(cqs(p.w, p.a, 0, 0), 4u);
}

TEST(Moderation, RefusedWhereTheDeviceCannot)
{
	Pair p(moderated(1, 0, false));

	ASSERT_EQ(p.begin(), 0);
	EXPECT_TRUE(p.w.run_until_gone("c0"));
	const EventRecord *why = p.w.last_error("c0");
	ASSERT_TRUE(why);
	EXPECT_EQ(why->err, KD_EOPNOTSUPP);
	EXPECT_NE(std::string(why->text).find("device sim"), std::string::npos) << why->text;
}

TEST(Moderation, NotSetLaterWhereTheDeviceCannot)
{
	Pair p(moderated(0, 0, false));
	kd_error error{};

	ASSERT_TRUE(p.up());
	EXPECT_EQ(set(p.w, KD_HAS_CQ_COUNT, 5, 0, &error), KD_EOPNOTSUPP);
	EXPECT_EQ(error.attr, KDIRECT_A_CQ_COUNT);
	exchange(p);
}

/* A driver may refuse what its device is said to do: the channel goes on without. */
TEST(Moderation, ADriverThatRefuses)
{
	Pair p(moderated(0, 0));
	kd_error error{};

	ASSERT_TRUE(p.up());
	p.a.attr.moderation = false;
	EXPECT_EQ(set(p.w, KD_HAS_CQ_COUNT, 5, 0, &error), 0);
	p.w.run_for(10 * ms);
	EXPECT_EQ(cqs(p.w, p.a, 0, 0), 4u);
	exchange(p);
}

} // namespace
