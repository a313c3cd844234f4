/* SPDX-License-Identifier: GPL-2.0-only */
/* What tests of descriptors of a session's node share: a channel, and an open file of each end. */
#pragma once
#include "pair.h"
#include "plain.h"
#include "ring.h"

namespace sim
{

constexpr uint64_t mib = 1 << 20;

class Session : public Pair
{
public:
	explicit Session(const PairOptions &o) : Pair(o), out(w, 4 * mib), in(w, 4 * mib)
	{
		EXPECT_TRUE(up());
		sender = open_session(w, "c0");
		receiver = open_session(w, "store.0");
		EXPECT_TRUE(sender && receiver);
		close();
	}
	explicit Session(uint64_t seed, uint32_t depth = 32, uint32_t poll_queues = 0)
		: Session(PairOptions{.world = {.seed = seed},
				      .channel = [=](kd_channel_params &c) {
					      c.depth = depth;
					      c.poll_queues = poll_queues;
				      }})
	{
	}
	/* Ends: nothing may be left. */
	~Session()
	{
		sender.close();
		receiver.close();
		w.run_for(1 * ms);
		EXPECT_EQ(w.node().memlock, 0u);
	}
	/* One message of another open file's. */
	void write(std::string_view text, const char *name = "c0")
	{
		File file = w.open(name);
		ASSERT_EQ(file.write(text), static_cast<int64_t>(text.size()));
	}

	Memory out, in;
	MapFile sender, receiver;
};

inline kdirect_desc send(uint64_t addr, uint32_t length, uint64_t user_data = 0)
{
	return work(KDIRECT_OP_SEND, addr, length, user_data);
}

inline kdirect_desc recv(uint64_t addr, uint32_t length, uint64_t user_data = 0)
{
	return work(KDIRECT_OP_RECV, addr, length, user_data);
}

inline constexpr uint32_t lengths[] = {0, 1, 100, 4096, 16384, 16385, 70000, 1 << 20};

inline uint32_t length_of(unsigned int i)
{
	return i % 7 == 3 ? 20000 + i : i * 37 % 600;
}

} // namespace sim
