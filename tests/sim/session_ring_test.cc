// SPDX-License-Identifier: GPL-2.0-only
// Descriptors of a session's node that come by a shared ring, or as commands of io_uring.
#include "session.h"
#include "uring.h"

using namespace sim;

namespace
{

/* The same through rings. */
TEST(Session, Rings)
{
	for (uint64_t seed = 0; seed < 8; seed++) {
		uint32_t flags =
			(seed & 1 ? KDIRECT_RING_POLL : 0) | (seed & 2 ? KDIRECT_RING_THREAD : 0);
		bool threaded = flags & KDIRECT_RING_THREAD;
		Session p(seed, 4, 1);
		kdirect_ring_setup setup{.sq_entries = 8,
					 .cq_entries = 8,
					 .flags = flags,
					 .thread_cpu = threaded ? -1 : 0,
					 .idle_ns = threaded ? 20 * us : 0};
		Ring out = p.sender.make_ring(setup), in = p.receiver.make_ring(setup);
		std::vector<Task> tasks;
		unsigned int count = 80;

		SCOPED_TRACE(testing::Message() << "seed " << seed);
		ASSERT_TRUE(out && in);
		ASSERT_EQ(p.sender.set_buffer(0, p.out.data(), 4 * mib), 0);
		ASSERT_EQ(p.receiver.set_buffer(0, p.in.data(), 4 * mib), 0);
		EXPECT_EQ(p.sender.post({send(p.out.at(), 1)}), KD_EBUSY);
		auto drive = [&](Ring &ring, bool sends) {
			tasks.push_back(p.w.spawn("ring", [&, sends] {
				unsigned int begun = 0, ended = 0;

				while (ended < count) {
					kdirect_completion c;
					uint32_t len = sends ? length_of(begun) : 30000;
					uint8_t op = sends ? KDIRECT_OP_SEND : KDIRECT_OP_RECV;
					uint64_t at = begun * 30000ULL;

					if (begun < count && sends)
						p.out.put(at, pattern(begun, len));
					if (begun < count &&
					    ring.push(work_fixed(op, 0, at, len, begun)))
						begun++;
					while (ring.pop(c)) {
						auto expected = static_cast<unsigned>(length_of(
							static_cast<unsigned>(c.user_data)));

						EXPECT_EQ(c.result, static_cast<int>(expected));
						ended++;
					}
					if (threaded)
						ring.nudge();
					else
						ring.enter(8 - ring.room(), ended < begun ? 1 : 0,
							   seed & 1 ? KDIRECT_ENTER_POLL : 0,
							   20 * us);
					p.w.run_for(1 * us);
				}
			}));
		};
		drive(out, true);
		drive(in, false);
		ASSERT_TRUE(p.w.finish(tasks, 20 * sec));
		for (unsigned int i = 0; i < count; i++)
			EXPECT_TRUE(p.in.text(i * 30000ULL, length_of(i)) ==
				    pattern(i, length_of(i)));
	}
}

/* Nobody could be charged for what a thread would pin. */
TEST(Session, AThreadPinsNothing)
{
	Session p(1);
	Ring ring = p.receiver.make_ring({.sq_entries = 4,
					  .cq_entries = 4,
					  .flags = KDIRECT_RING_THREAD,
					  .thread_cpu = -1,
					  .idle_ns = 10 * us});
	kdirect_completion c;
	std::map<uint64_t, int> results;

	ASSERT_TRUE(ring);
	ring.push(recv(p.in.at(), 10, 1));
	ring.push(send(p.in.at(), 100000, 2));
	ring.push(send(p.in.at(), 10, 3));
	ring.push(recv(0, 0, 4));
	ring.nudge();
	p.write("x");
	p.w.run_for(5 * ms);
	while (ring.pop(c))
		results[c.user_data] = c.result;
	EXPECT_EQ(results, (std::map<uint64_t, int>{
				   {1, -KD_EOPNOTSUPP}, {2, -KD_EOPNOTSUPP}, {3, 10}, {4, 0}}));
	ring.close();
}

/* Commands of io_uring: what can be done at once is; what waits can be cancelled. */
TEST(Session, Commands)
{
	for (uint64_t seed = 0; seed < 20; seed++)
		for (bool registered : {false, true}) {
			Session p(seed, 2, 1);
			UringSetup about{.polls = seed % 2 != 0,
					 .buffer = p.out.at(),
					 .buffer_len = p.out.size()};
			Uring sends(p.w, p.sender, about);
			about.buffer = p.in.at();
			Uring recvs(p.w, p.receiver, about);

			for (uint32_t len : lengths) {
				std::string text = pattern(len, len);

				p.out.put(11, text);
				Command &got =
					recvs.submit(recv(p.in.at(17), len), registered && len);
				if (seed % 4 < 2)
					p.w.run_for(1 * ms);
				Command &sent =
					sends.submit(send(p.out.at(11), len), registered && len);
				ASSERT_TRUE(sends.finish());
				ASSERT_TRUE(recvs.finish());
				EXPECT_EQ(sent.result.result, static_cast<int>(len));
				EXPECT_EQ(got.result.result, static_cast<int>(len));
				EXPECT_TRUE(p.in.text(17, len) == text);
			}
			/* there is a message: at once */
			p.write("hello");
			p.w.run_for(1 * ms);
			Command &at_once = recvs.submit(recv(p.in.at(), 9), registered);
			ASSERT_TRUE(recvs.finish());
			EXPECT_EQ(at_once.result.result, 5);
			/* there is none */
			Command &waits = recvs.submit(recv(p.in.at(), 9), registered);
			p.w.run_for(1 * ms);
			EXPECT_FALSE(waits.ended());
			EXPECT_TRUE(waits.in_worker);
			recvs.cancel(waits);
			ASSERT_TRUE(recvs.finish());
			EXPECT_EQ(waits.result.result, -KD_EINTR);
			/* it took no message with it */
			p.write("there");
			kd_uring_end part = recvs.run(recv(p.in.at(), 2), registered);
			EXPECT_EQ(part.result, 2);
			EXPECT_EQ(part.extra, uint64_t{KDIRECT_COMPLETION_MORE} << 32 | 3);
			part = recvs.run(recv(p.in.at(), 9), registered);
			EXPECT_EQ(part.result, 3);
			EXPECT_EQ(part.extra, 0u);
		}
}

/* More than a peer that does not read fetches ahead: the ring can be closed all the same. */
TEST(Session, CommandsDoNotWaitForThePeer)
{
	for (bool registered : {false, true}) {
		Session p(1);
		Uring sends(p.w, p.sender, {.buffer = p.out.at(), .buffer_len = p.out.size()});

		p.out.put(0, pattern(1, mib));
		for (int i = 0; i < 6; i++)
			EXPECT_EQ(sends.run(send(p.out.at(), mib), registered).result,
				  static_cast<int>(mib));
		p.out.put(0, pattern(2, mib));
		for (int i = 0; i < 6; i++) {
			ASSERT_EQ(p.receiver.run({recv(p.in.at(), mib)})[0].result,
				  static_cast<int>(mib));
			EXPECT_TRUE(p.in.text(0, mib) == pattern(1, mib));
		}
	}
}

TEST(Session, CommandsAreSessionsOwn)
{
	Session p(1);
	Uring ring(p.w, p.sender);

	EXPECT_EQ(ring.run(add_desc(8, 1)).result, -KD_EOPNOTSUPP);
	EXPECT_EQ(ring.run(read_desc(p.out.at(), 8, 0)).result, -KD_EOPNOTSUPP);
	EXPECT_EQ(ring.run(send(p.out.at(), mib + 1)).result, -KD_EMSGSIZE);
	EXPECT_EQ(ring.run(send(p.out.at(), 1, 5)).result, -KD_EINVAL); /* user_data */
	/* what waits when the channel ends */
	Command &waits = ring.submit(recv(p.in.at(), 9));
	p.w.run_for(1 * ms);
	EXPECT_EQ(p.w.del("c0"), 0);
	ASSERT_TRUE(ring.finish());
	EXPECT_EQ(waits.result.result, -KD_ENODEV);
}

} // namespace
