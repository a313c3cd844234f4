// SPDX-License-Identifier: GPL-2.0-only
// What those who poll do in each mode: nothing is lost or late, and the counters tell.
#include "../../uapi/kdirect_netlink.h"
#include "mapped.h"

using namespace sim;

namespace
{

PairOptions in_mode(uint32_t mode, uint64_t seed = 1)
{
	return {.world = {.seed = seed}, .channel = [mode](kd_channel_params &c) {
			c.queues = 1;
			c.poll_queues = 1;
			c.poll_mode = mode;
		}};
}

kd_queue_stats poll_queue_of(World &w, const char *name)
{
	struct kd_channel_stats stats;
	std::vector<kd_queue_stats> queues;

	EXPECT_TRUE(w.stats(name, stats, &queues));
	EXPECT_EQ(queues.back().kind, static_cast<uint32_t>(KDIRECT_QUEUE_POLL));
	return queues.back();
}

void set_mode(World &w, uint32_t has, uint32_t mode, uint32_t percent, int expected)
{
	kd_channel_params set{};
	kd_error error{};

	w.call([&] {
		w.node().core->channel_defaults(&set);
		std::strcpy(set.name, "c0");
		set.has = has;
		set.poll_mode = mode;
		set.poll_cpu_percent = percent;
		EXPECT_EQ(w.node().core->channel_set(reinterpret_cast<kd_net *>(w.node().net), &set,
						     &error),
			  expected);
	});
	if (expected) {
		EXPECT_NE(error.text[0], '\0');
	}
}

class EachMode : public testing::TestWithParam<uint32_t>
{
};

TEST_P(EachMode, CarriesEverything)
{
	for (uint64_t seed = 0; seed < 5; seed++) {
		Mapped p(in_mode(GetParam(), seed));

		for (uint64_t i = 0; i < 60; i++) {
			std::size_t len = std::size_t{64} << (i % 12);
			std::string text = pattern(i, len);

			ASSERT_EQ(p.file.pwrite(text, i * 7, KD_IO_POLL),
				  static_cast<int64_t>(len));
			ASSERT_TRUE(p.file.pread(len, i * 7, KD_IO_POLL) == text);
			p.near.write(text.substr(0, 100), KD_IO_POLL);
			ASSERT_EQ(p.far.read(100), text.substr(0, 100));
		}
		kd_queue_stats queue = poll_queue_of(p.w, "c0");
		EXPECT_GT(queue.cqe_polled, 0u);
		EXPECT_EQ(queue.poll_naps > 0, GetParam() == KDIRECT_POLL_HYBRID);
		EXPECT_EQ(queue.poll_sleeps > 0, GetParam() == KDIRECT_POLL_ADAPTIVE);
	}
}

INSTANTIATE_TEST_SUITE_P(PollMode, EachMode,
			 testing::Values(KDIRECT_POLL_BUSY, KDIRECT_POLL_HYBRID,
					 KDIRECT_POLL_ADAPTIVE));

TEST(PollMode, ChangesWhileTheChannelLives)
{
	Mapped p(in_mode(KDIRECT_POLL_BUSY));
	struct kd_channel_info info {
	};
	auto transfer = [&] {
		for (int i = 0; i < 40; i++)
			EXPECT_EQ(p.file.pwrite(std::string(4096, 'x'), 0, KD_IO_POLL), 4096);
	};

	transfer();
	EXPECT_EQ(poll_queue_of(p.w, "c0").poll_naps, 0u);
	set_mode(p.w, KD_HAS_POLL_MODE, KDIRECT_POLL_HYBRID, 50, 0);
	transfer();
	uint64_t naps = poll_queue_of(p.w, "c0").poll_naps;
	EXPECT_GT(naps, 0u);
	set_mode(p.w, KD_HAS_POLL_MODE | KD_HAS_POLL_CPU, KDIRECT_POLL_ADAPTIVE, 3, 0);
	transfer();
	EXPECT_EQ(poll_queue_of(p.w, "c0").poll_naps, naps);
	ASSERT_TRUE(p.w.info("c0", info));
	EXPECT_EQ(info.params.poll_mode, static_cast<uint32_t>(KDIRECT_POLL_ADAPTIVE));
	EXPECT_EQ(info.params.poll_cpu_percent, 3u);
	set_mode(p.w, KD_HAS_POLL_MODE, KDIRECT_POLL_ADAPTIVE + 1, 50, KD_ERANGE);
	set_mode(p.w, KD_HAS_POLL_CPU, KDIRECT_POLL_BUSY, 0, KD_ERANGE);
	set_mode(p.w, KD_HAS_POLL_CPU, KDIRECT_POLL_BUSY, 101, KD_ERANGE);
	ASSERT_TRUE(p.w.info("c0", info));
	EXPECT_EQ(info.params.poll_mode, static_cast<uint32_t>(KDIRECT_POLL_ADAPTIVE));
	EXPECT_EQ(info.params.poll_cpu_percent, 3u);
}

/* An open file may choose for itself. */
TEST(PollMode, OfAFile)
{
	Mapped p(in_mode(KDIRECT_POLL_BUSY));
	const CoreApi &core = *p.w.node().core;
	auto naps = [&] { return poll_queue_of(p.w, "c0").poll_naps; };
	auto set = [&](uint32_t flags) {
		int err = 0;

		p.w.call([&] { err = core.desc_set_flags(p.file.get(), flags); });
		return err;
	};
	auto transfer = [&] {
		for (int i = 0; i < 40; i++)
			EXPECT_EQ(p.file.pwrite(std::string(4096, 'x'), 0), 4096);
	};

	transfer();
	EXPECT_EQ(set(KDIRECT_OPEN_POLL | KDIRECT_OPEN_HYBRID), 0);
	transfer();
	EXPECT_GT(naps(), 0u);
	EXPECT_EQ(set(KDIRECT_OPEN_HYBRID | KDIRECT_OPEN_ADAPTIVE), KD_EINVAL);
	EXPECT_EQ(set(1U << 4), KD_EINVAL);
	EXPECT_EQ(core.desc_flags(p.file.get()), KDIRECT_OPEN_POLL | KDIRECT_OPEN_HYBRID);
	set_mode(p.w, KD_HAS_POLL_MODE, KDIRECT_POLL_HYBRID, 50, 0);
	EXPECT_EQ(set(KDIRECT_OPEN_POLL | KDIRECT_OPEN_BUSY), 0);
	uint64_t before = naps();
	transfer();
	EXPECT_EQ(naps(), before);
	EXPECT_EQ(p.near.set_flags(KDIRECT_OPEN_POLL | KDIRECT_OPEN_HYBRID), 0);
	for (int i = 0; i < 40; i++)
		EXPECT_EQ(p.near.ping(64, KDIRECT_PING_POLL), 0);
	EXPECT_GT(naps(), before);
}

TEST(PollMode, NeedsAPollQueue)
{
	Pair p(1);

	ASSERT_TRUE(p.up());
	for (uint32_t flag : {KDIRECT_OPEN_POLL, KDIRECT_OPEN_HYBRID})
		EXPECT_EQ(p.near.set_flags(flag), KD_EOPNOTSUPP);
	EXPECT_EQ(p.near.set_flags(0), 0);
}

/* A ping that is never answered ends at its time, whatever the caller does meanwhile. */
TEST_P(EachMode, TimeoutsHold)
{
	Pair p(in_mode(GetParam()));

	ASSERT_TRUE(p.up());
	for (int i = 0; i < 20; i++)
		EXPECT_EQ(p.near.ping(64, KDIRECT_PING_POLL), 0);
	p.w.set_link(p.b, false);
	uint64_t begin = p.w.now();
	EXPECT_EQ(p.near.ping(64, KDIRECT_PING_POLL, 3 * ms), KD_ETIMEDOUT);
	EXPECT_GE(p.w.now() - begin, 3 * ms);
	EXPECT_LT(p.w.now() - begin, 30 * ms);
}

} // namespace
