// SPDX-License-Identifier: GPL-2.0-only
// Descriptors of a session's node: messages arrive once and in the order of submission, what
// has to wait blocks nobody, and whatever waits ends with its file or with the channel.
#include <set>

#include "session.h"

using namespace sim;

namespace
{

/* By copy and by rendezvous, from and to each kind of memory. */
TEST(Session, SendsOfEachLength)
{
	for (uint64_t seed = 0; seed < 4; seed++) {
		uint32_t flags = seed % 2 ? KDIRECT_SUBMIT_POLL : 0;
		Session p(seed, 32, seed % 2);

		ASSERT_EQ(p.sender.set_buffer(3, p.out.data() + 5, 2 * mib), 0);
		ASSERT_EQ(p.receiver.set_buffer(4, p.in.data() + 9, 2 * mib), 0);
		for (uint32_t len : lengths)
			for (int way = 0; way < 8; way++) {
				std::string text = pattern(seed, len);
				kdirect_desc to =
					way & 1 ? recv(p.in.at(9 + 7), len, 77)
						: work_fixed(KDIRECT_OP_RECV, 4, 7, len, 77);
				kdirect_desc from =
					way & 2 ? send(p.out.at(5 + 3), len, 66)
						: work_fixed(KDIRECT_OP_SEND, 3, 3, len, 66);

				SCOPED_TRACE(testing::Message() << "seed " << seed << " length "
								<< len << " way " << way);
				p.out.put(5 + 3, text);
				std::memset(p.in.data(), 0, 2 * mib);
				/* the RECV first, or last */
				if (way & 4) {
					ASSERT_EQ(p.receiver.post({to}, flags), 0);
				}
				ASSERT_EQ(p.sender.post({from}, flags), 0);
				if (!(way & 4)) {
					ASSERT_EQ(p.receiver.post({to}, flags), 0);
				}
				auto got = p.receiver.await(1, 60 * sec, flags);
				auto sent = p.sender.await(1, 60 * sec, flags);
				ASSERT_EQ(sent.size(), 1u);
				ASSERT_EQ(got.size(), 1u);
				EXPECT_EQ(sent[0].result, static_cast<int32_t>(len));
				EXPECT_EQ(sent[0].user_data, 66u);
				EXPECT_EQ(sent[0].opcode, KDIRECT_OP_SEND);
				EXPECT_EQ(sent[0].status | sent[0].flags | sent[0].data, 0u);
				EXPECT_EQ(got[0].result, static_cast<int32_t>(len));
				EXPECT_EQ(got[0].user_data, 77u);
				EXPECT_EQ(got[0].opcode, KDIRECT_OP_RECV);
				EXPECT_EQ(got[0].status | got[0].flags | got[0].data, 0u);
				EXPECT_TRUE(p.in.text(9 + 7, len) == text);
			}
	}
}

/* More than there is room for: the submitter goes on, and the order stays. */
TEST(Session, NobodyWaitsToSubmit)
{
	for (uint64_t seed = 0; seed < 10; seed++) {
		constexpr unsigned int count = 120;
		Session p(seed, 4, seed % 2);
		std::vector<kdirect_desc> sends, recvs;
		uint64_t at = 0;

		ASSERT_EQ(p.sender.set_buffer(0, p.out.data(), 4 * mib), 0);
		for (unsigned int i = 0; i < count; i++, at += 30000) {
			uint32_t len = length_of(i);

			p.out.put(at, pattern(i, len));
			sends.push_back(i % 2 ? send(p.out.at(at), len, i)
					      : work_fixed(KDIRECT_OP_SEND, 0, at, len, i));
			recvs.push_back(recv(p.in.at(at), 30000, i));
		}
		uint64_t before = p.w.now();
		ASSERT_EQ(p.sender.post(sends), 0);
		EXPECT_LT(p.w.now() - before, 50 * ms);
		p.w.run_for(100 * ms);
		EXPECT_FALSE(p.sender.await(1, 1).empty());
		if (seed % 3) {
			ASSERT_EQ(p.receiver.post(recvs), 0);
		} else {
			for (const kdirect_desc &one : recvs)
				ASSERT_EQ(p.receiver.post({one}), 0);
		}
		auto got = p.receiver.await(count);
		ASSERT_EQ(got.size(), count) << "seed " << seed;
		for (unsigned int i = 0; i < count; i++) {
			EXPECT_EQ(got[i].user_data, i);
			EXPECT_EQ(got[i].result, static_cast<int32_t>(length_of(i)));
			EXPECT_TRUE(p.in.text(i * 30000, length_of(i)) == pattern(i, length_of(i)))
				<< "message " << i;
		}
		EXPECT_EQ(p.sender.await(count - 1).size(), count - 1);
	}
}

/* What memory is too short for is lost as little as with read(). */
TEST(Session, ShortMemoryLosesNothing)
{
	for (uint32_t len : {1000u, 100000u}) {
		Session p(len);
		std::string text = pattern(1, len);
		File file = p.w.open("store.0");

		p.out.put(0, text);
		ASSERT_EQ(p.sender.post({send(p.out.at(), len), send(p.out.at(), 5)}), 0);
		ASSERT_EQ(p.receiver.post({recv(p.in.at(), 0), recv(p.in.at(), 300),
					   recv(p.in.at(300), 200)}),
			  0);
		auto got = p.receiver.await(3);
		ASSERT_EQ(got.size(), 3u);
		const uint32_t results[] = {0, 300, 200};
		uint32_t left = len;
		for (int i = 0; i < 3; i++) {
			left -= results[i];
			EXPECT_EQ(got[i].result, static_cast<int32_t>(results[i]));
			EXPECT_EQ(got[i].flags, KDIRECT_COMPLETION_MORE);
			EXPECT_EQ(got[i].data, left);
		}
		EXPECT_TRUE(p.in.text(0, 500) == text.substr(0, 500));
		/* in turn with read() */
		EXPECT_TRUE(file.read(100) == text.substr(500, 100));
		/* the rest; no more memory is needed than a message can be long */
		ASSERT_EQ(p.receiver.post({recv(p.in.at(), 1 << 30), recv(p.in.at(), 5)}), 0);
		got = p.receiver.await(2);
		ASSERT_EQ(got.size(), 2u);
		EXPECT_EQ(got[0].result, static_cast<int32_t>(len - 600));
		EXPECT_EQ(got[0].flags | got[0].data, 0u);
		EXPECT_EQ(got[1].result, 5);
	}
}

/* RECVs come before read(), and a SEND is in no order with write() until it has ended. */
TEST(Session, BesideReadAndWrite)
{
	for (uint64_t seed = 0; seed < 20; seed++) {
		Session p(seed, 4);
		File file = p.w.open("store.0");
		std::string text;
		int64_t read = 0;

		ASSERT_EQ(p.receiver.post({recv(p.in.at(), 100, 1), recv(p.in.at(100), 100, 2)}),
			  0);
		Task reader = p.w.spawn("reader", [&] { read = file.read(text, 100); });
		EXPECT_EQ(file.read(100, KD_IO_NOWAIT), "!" + std::to_string(KD_EAGAIN));
		p.w.run_for(1 * ms);
		for (const char *message : {"first", "second"}) {
			p.write(message);
			p.w.run_for(1 * ms);
			EXPECT_EQ(file.poll(KD_POLL_IN), 0u);
		}
		EXPECT_TRUE(p.w.running(reader));
		p.out.put(0, "third");
		ASSERT_EQ(p.sender.post({send(p.out.at(), 5)}), 0);
		ASSERT_EQ(p.sender.await(1).size(), 1u);
		p.write("fourth");
		ASSERT_TRUE(p.w.finish({reader}));
		EXPECT_EQ(text, "third");
		EXPECT_EQ(read, 5);
		EXPECT_EQ(p.receiver.await(2).size(), 2u);
		EXPECT_EQ(p.in.text(0, 5), "first");
		EXPECT_EQ(p.in.text(100, 6), "second");
		EXPECT_EQ(file.read(100), "fourth");
	}
}

/* A read() behind as many RECVs as are served in one go gets the next message. */
TEST(Session, AReadBehindManyRecvs)
{
	constexpr unsigned int count = 64;

	for (uint64_t seed = 0; seed < 4; seed++) {
		Session p(seed, 128);
		File file = p.w.open("store.0");
		std::string text;

		ASSERT_EQ(p.receiver.post(std::vector<kdirect_desc>(count, recv(p.in.at(), 30000))),
			  0);
		Task reader = p.w.spawn("reader", [&] { file.read(text, 100); });
		p.w.run_for(1 * ms);
		/* the first is fetched only when all the others are here */
		p.w.fail_nth(Op::PagesAlloc, 1, 1000);
		ASSERT_EQ(p.sender.set_buffer(0, p.out.data(), mib), 0);
		ASSERT_EQ(p.sender.post({work_fixed(KDIRECT_OP_SEND, 0, 0, 30000)}), 0);
		ASSERT_EQ(p.sender.post(std::vector<kdirect_desc>(
				  count, work_fixed(KDIRECT_OP_SEND, 0, 0, 5))),
			  0);
		p.w.run_for(50 * ms);
		ASSERT_TRUE(p.w.fault_fired());
		EXPECT_TRUE(p.receiver.await(1, 1).empty());
		p.w.fail_nth(Op::PagesAlloc, 1000);
		EXPECT_EQ(p.receiver.await(count).size(), count);
		EXPECT_TRUE(p.w.finish({reader}, 1 * sec)) << "seed " << seed;
		EXPECT_EQ(text.size(), 5u);
		EXPECT_EQ(p.sender.await(count + 1).size(), count + 1);
	}
}

/* Several of each, at both ends: nothing is lost, and each file's stay in order. */
TEST(Session, ManyAtOnce)
{
	constexpr unsigned int each = 60;

	for (uint64_t seed = 0; seed < 20; seed++) {
		Session p(seed, 4, seed % 2);
		MapFile more = open_session(p.w, "c0"), other = open_session(p.w, "store.0");
		File writer = p.w.open("c0"), reader = p.w.open("store.0");
		std::map<std::pair<int, int>, int> next; /* by who takes and who sent */
		unsigned int total = 0;
		std::vector<Task> tasks;

		auto note = [&](int taker, std::string_view text) {
			ASSERT_GE(text.size(), 2u);
			int from = text[0], number = text[1];

			total++;
			EXPECT_EQ(text.size(), 2 + length_of(static_cast<unsigned int>(number)));
			EXPECT_GE(number, (next[{taker, from}])) << "seed " << seed;
			next[{taker, from}] = number + 1;
		};
		auto by_descs = [&](MapFile &file, unsigned int from, uint64_t base) {
			tasks.push_back(p.w.spawn("sends", [&, from, base] {
				for (unsigned int i = 0; i < each; i++) {
					uint64_t at = base + i * 30000ULL;
					char head[2] = {static_cast<char>(from),
							static_cast<char>(i)};

					p.out.put(at, {head, 2});
					while (file.post({send(p.out.at(at), 2 + length_of(i))}))
						p.w.run_for(10 * us);
				}
				EXPECT_EQ(file.await(each).size(), each);
			}));
		};
		by_descs(p.sender, 1, 0);
		by_descs(more, 2, 2 * mib);
		tasks.push_back(p.w.spawn("writer", [&] {
			for (unsigned int i = 0; i < each; i++) {
				std::string text(2 + length_of(i), 'x');

				text[0] = 3;
				text[1] = static_cast<char>(i);
				EXPECT_EQ(writer.write(text), static_cast<int64_t>(text.size()));
			}
		}));
		auto take = [&](MapFile &file, int taker, uint64_t base) {
			tasks.push_back(p.w.spawn("recvs", [&, taker, base] {
				for (unsigned int i = 0; i < each; i++) {
					ASSERT_EQ(file.post({recv(p.in.at(base), 30000)}), 0);
					auto got = file.await(1);
					ASSERT_EQ(got.size(), 1u);
					note(taker,
					     p.in.text(base, static_cast<size_t>(got[0].result)));
				}
			}));
		};
		take(p.receiver, 1, 0);
		take(other, 2, mib);
		tasks.push_back(p.w.spawn("reader", [&] {
			for (unsigned int i = 0; i < each; i++)
				note(3, reader.read(30000));
		}));
		ASSERT_TRUE(p.w.finish(tasks)) << "seed " << seed;
		EXPECT_EQ(total, 3 * each);
	}
}

TEST(Session, AnInvalidOneFailsAlone)
{
	Session p(3);
	uint64_t addr = p.out.at();
	const kdirect_desc good = send(addr, 10), fixed = work_fixed(KDIRECT_OP_SEND, 2, 0, 10);
	const kdirect_desc get = recv(p.in.at(), 10);
	struct Case {
		const kdirect_desc &from;
		int err;
		std::function<void(kdirect_desc &)> spoil;
	};
	const std::vector<Case> cases = {
		{good, KD_EINVAL, [](auto &d) { d.opcode = 0; }},
		{good, KD_EINVAL, [](auto &d) { d.opcode = 11; }},
		{good, KD_EINVAL, [](auto &d) { d.opcode = 255; }},
		{good, KD_EOPNOTSUPP, [](auto &d) { d.opcode = KDIRECT_OP_READ; }},
		{good, KD_EOPNOTSUPP, [](auto &d) { d.opcode = KDIRECT_OP_WRITE; }},
		{good, KD_EOPNOTSUPP, [](auto &d) { d.opcode = KDIRECT_OP_CMP_SWAP; }},
		{good, KD_EOPNOTSUPP, [](auto &d) { d.opcode = KDIRECT_OP_FETCH_ADD; }},
		{good, KD_EOPNOTSUPP, [](auto &d) { d.opcode = KDIRECT_OP_SEND_IMM; }},
		{good, KD_EOPNOTSUPP, [](auto &d) { d.opcode = KDIRECT_OP_SEND_INV; }},
		{good, KD_EOPNOTSUPP, [](auto &d) { d.opcode = KDIRECT_OP_WRITE_IMM; }},
		{good, KD_EOPNOTSUPP, [](auto &d) { d.opcode = KDIRECT_OP_LOCAL_INV; }},
		{good, KD_EOPNOTSUPP, [](auto &d) { d.flags = KDIRECT_DESC_FENCE; }},
		{get, KD_EOPNOTSUPP, [](auto &d) { d.flags = KDIRECT_DESC_SOLICITED; }},
		{good, KD_EINVAL, [](auto &d) { d.flags = 0x80; }},
		{good, KD_EINVAL, [](auto &d) { d.buffer = 1; }},
		{good, KD_EINVAL, [](auto &d) { d.remote = 1; }},
		{get, KD_EINVAL, [](auto &d) { d.operand = 1; }},
		{good, KD_EINVAL, [](auto &d) { d.compare = 1; }},
		{get, KD_EINVAL, [](auto &d) { d.rkey = 1; }},
		{good, KD_EINVAL, [](auto &d) { d.imm = 1; }},
		{get, KD_EINVAL, [](auto &d) { d.reserved = 1ULL << 63; }},
		{get, KD_EINVAL, [](auto &d) { d.length = KDIRECT_DESC_LENGTH_MAX + 1; }},
		{good, KD_EMSGSIZE, [](auto &d) { d.length = mib + 1; }},
		{good, KD_EFAULT, [](auto &d) { d.addr = 0; }},
		{get, KD_EFAULT, [](auto &d) { d.addr = 0; }},
		{good, KD_EFAULT, [](auto &d) { d.addr = UINT64_MAX - 5; }},
		{get, KD_EFAULT, [](auto &d) { d.addr = UINT64_MAX - 5; }},
		{good, KD_EFAULT, [&](auto &d) { d.addr = p.out.at(4 * mib - 9); }},
		{good, KD_EFAULT,
		 [&](auto &d) {
			 d.addr = p.out.at(4 * mib - 9);
			 d.length = mib;
		 }},
		{fixed, KD_ENOENT, [](auto &d) { d.buffer = 0; }},
		{fixed, KD_ENOENT, [](auto &d) { d.buffer = KDIRECT_BUFFERS; }},
		{fixed, KD_ENOENT, [](auto &d) { d.buffer = UINT16_MAX; }},
		{fixed, KD_EFAULT, [](auto &d) { d.addr = 65536 - 9; }},
		{fixed, KD_EFAULT, [](auto &d) { d.addr = 65537; }},
		{fixed, KD_EFAULT, [](auto &d) { d.addr = UINT64_MAX; }},
	};
	std::vector<kdirect_desc> batch;
	std::map<uint64_t, int> expected;

	ASSERT_EQ(p.sender.set_buffer(2, p.out.data(), 65536), 0);
	for (const Case &one : cases) {
		kdirect_desc bad = one.from;

		one.spoil(bad);
		bad.user_data = batch.size();
		expected[batch.size()] = -one.err;
		batch.push_back(bad);
		batch.push_back(send(addr, 10, batch.size()));
		expected[batch.size() - 1] = 10;
	}
	Task reader = p.w.spawn("reader", [&] {
		File file = p.w.open("store.0");

		for (std::size_t i = 0; i < cases.size(); i++)
			EXPECT_EQ(file.read(100).size(), 10u);
	});
	for (const kdirect_completion &c : p.sender.run(batch)) {
		EXPECT_EQ(c.result, expected[c.user_data]) << "descriptor " << c.user_data;
		EXPECT_EQ(c.status, 0u);
	}
	ASSERT_TRUE(p.w.finish({reader}));
	/* a RECV without memory for a message that is there loses it as little */
	p.write("hello");
	p.w.run_for(1 * ms);
	ASSERT_EQ(p.receiver.post({recv(8, 10), recv(p.in.at(), 10)}), 0);
	auto got = p.receiver.await(2);
	EXPECT_EQ(got[0].result, -KD_EFAULT);
	EXPECT_EQ(got[1].result, 5);
}

/* What cannot be read ends the batch, and waiting makes no sense; the request stays as it is. */
TEST(Session, DescriptorsThatCannotBeRead)
{
	Session p(1);
	const kdirect_desc descs[] = {send(p.out.at(), 10), send(p.out.at(), 10)};
	kdirect_submit batch{.descs = reinterpret_cast<uint64_t>(descs),
			     .completions = p.in.at(),
			     .nr_descs = 2,
			     .nr_completions = 2,
			     .min_completions = 2};

	p.w.user[batch.descs] = sizeof(descs[0]);
	EXPECT_EQ(p.sender.submit(batch), 0);
	p.w.user.erase(reinterpret_cast<uint64_t>(descs));
	EXPECT_EQ(batch.submitted, 1u);
	EXPECT_EQ(batch.completed, 1u);
	EXPECT_EQ(batch.min_completions, 2u);
}

TEST(Session, RightsAndLimits)
{
	Session p(1);
	MapFile reads = open_session(p.w, "c0", true, false);
	MapFile writes = open_session(p.w, "store.0", false, true);

	EXPECT_EQ(reads.run({send(p.out.at(), 5)})[0].result, -KD_EACCES);
	EXPECT_EQ(writes.run({recv(p.in.at(), 5)})[0].result, -KD_EACCES);
	/* what is pinned is charged; what is copied is not, and fixed buffers are already */
	ASSERT_EQ(p.sender.set_buffer(0, p.out.data(), mib), 0);
	p.w.node().memlock_limit = p.w.node().memlock;
	EXPECT_EQ(p.receiver.run({recv(p.in.at(), 5)})[0].result, -KD_ENOMEM);
	EXPECT_EQ(p.sender.run({send(p.out.at(), 100000)})[0].result, -KD_ENOMEM);
	ASSERT_EQ(p.sender.post({send(p.out.at(), 100), work_fixed(KDIRECT_OP_SEND, 0, 0, 100000)}),
		  0);
	File file = p.w.open("store.0");
	EXPECT_EQ(file.read().size(), 100u);
	EXPECT_EQ(file.read().size(), 100000u);
	EXPECT_EQ(p.sender.await(2).size(), 2u);
}

TEST(Session, EntriesAreBounded)
{
	Session p(1);
	std::vector<kdirect_desc> recvs(KDIRECT_DESC_ENTRIES, recv(p.in.at(), 0));

	ASSERT_EQ(p.receiver.post(recvs), 0);
	EXPECT_EQ(p.receiver.post({recvs[0]}), KD_EAGAIN);
	p.write("a");
	EXPECT_EQ(p.receiver.await(KDIRECT_DESC_ENTRIES).size(), size_t{KDIRECT_DESC_ENTRIES});
	EXPECT_EQ(p.receiver.post({recvs[0]}), 0);
}

/* What has not begun ends with its file; the rest goes on. */
TEST(Session, ClosedWithSomeUnderWay)
{
	for (uint64_t seed = 0; seed < 20; seed++) {
		Session p(seed, 2, seed % 2);
		std::vector<kdirect_desc> sends, recvs;

		ASSERT_EQ(p.sender.set_buffer(0, p.out.data(), 4 * mib), 0);
		for (unsigned int i = 0; i < 40; i++) {
			uint32_t len = i % 4 ? 3 : 30000;

			p.out.put(i * 30000ULL, {reinterpret_cast<const char *>(&i), 1});
			sends.push_back(
				i % 3 ? send(p.out.at(i * 30000ULL), len, i)
				      : work_fixed(KDIRECT_OP_SEND, 0, i * 30000ULL, len, i));
			recvs.push_back(recv(p.in.at(i * 30000ULL), 30000, i));
		}
		ASSERT_EQ(p.sender.post(sends), 0);
		p.w.run_for(seed * 30 * us);
		p.sender.close();
		/* in order, and without a hole */
		File file = p.w.open("store.0");
		unsigned int n = 0;
		std::string text;
		for (; file.poll(KD_POLL_IN, 20 * ms); n++) {
			ASSERT_GT(file.read(text, 30000), 0);
			EXPECT_EQ(text[0], static_cast<char>(n));
		}
		EXPECT_GT(n, 0u);
		EXPECT_LT(n, 40u);
		p.w.run_for(1 * ms);
		EXPECT_EQ(p.w.node().memlock, 0u);
		/* a message that a closed RECV waited for is the next one's */
		ASSERT_EQ(p.receiver.post(recvs), 0);
		Task reader = p.w.spawn("reader", [&] { text = file.read(100); });
		p.w.run_for(1 * ms);
		if (seed % 2)
			p.receiver.close();
		p.write("hello");
		if (seed % 2) {
			EXPECT_TRUE(p.w.finish({reader}));
			EXPECT_EQ(text, "hello");
		} else {
			ASSERT_EQ(p.receiver.await(1).size(), 1u);
			p.receiver.close();
			p.write("there");
			EXPECT_TRUE(p.w.finish({reader}));
			EXPECT_EQ(text, "there");
		}
		EXPECT_EQ(p.w.state("c0"), KDIRECT_STATE_LIVE);
	}
}

/* All that waits ends with the channel, whichever way that goes. */
TEST(Session, TheChannelEnds)
{
	enum { here, there, lost, gone, ways };
	for (uint64_t seed = 0; seed < 5 * ways; seed++) {
		int way = seed % ways;
		Session p(seed, 2, seed / ways % 2);
		std::vector<kdirect_desc> sends, recvs;

		SCOPED_TRACE(testing::Message() << "seed " << seed);
		for (unsigned int i = 0; i < 30; i++) {
			sends.push_back(send(p.out.at(), i % 4 ? 3 : 30000, i));
			recvs.push_back(recv(p.in.at(), 30000, i));
		}
		ASSERT_EQ(p.sender.post(sends), 0);
		ASSERT_EQ(p.sender.post(recvs), 0);
		ASSERT_EQ(p.receiver.post({recvs[0]}), 0);
		ASSERT_EQ(p.receiver.await(1).size(), 1u);
		switch (way) {
		case here: EXPECT_EQ(p.w.del("c0"), 0); break;
		case there: EXPECT_EQ(p.w.del("store.0"), 0); break;
		case lost: p.w.set_link(p.b, false); break;
		default: p.w.remove_device(p.a); break;
		}
		auto done = p.sender.await(60, 300 * sec);
		ASSERT_EQ(done.size(), 60u);
		std::set<uint64_t> failed;
		for (const kdirect_completion &c : done) {
			if (c.opcode == KDIRECT_OP_SEND) {
				EXPECT_TRUE(c.result > 0 || c.result == -KD_EPIPE) << c.result;
			} else if (way == here || way == there) {
				EXPECT_EQ(c.result, way == here ? -KD_ENODEV : -KD_EPIPE);
			} else {
				EXPECT_LT(c.result, 0);
				EXPECT_NE(c.result, -KD_EPIPE);
			}
			EXPECT_EQ(c.status, 0u);
			if (c.opcode == KDIRECT_OP_SEND && c.result < 0)
				failed.insert(c.user_data);
		}
		EXPECT_FALSE(failed.empty());
		/* nothing begins any more, and nobody waits for what cannot come */
		EXPECT_EQ(p.sender.run({send(p.out.at(), 3)})[0].result, -KD_EPIPE);
		EXPECT_LT(p.sender.run({recv(p.in.at(), 3)})[0].result, 0);
		EXPECT_TRUE(p.sender.await(1, 300 * sec).empty());
		EXPECT_NE(p.sender.set_buffer(0, p.out.data(), 4096), 0);
		EXPECT_EQ(p.w.run_until_gone("store.0"), true);
	}
}

/* What had arrived is there for RECVs after the end, too. */
TEST(Session, TheEndComesLast)
{
	for (uint32_t len : {5u, 30000u}) {
		Session p(len);

		p.out.put(0, pattern(len, len));
		ASSERT_EQ(p.sender.post({send(p.out.at(), len), send(p.out.at(), 0)}), 0);
		File file = p.w.open("store.0");
		ASSERT_EQ(file.poll(KD_POLL_IN, 10 * ms), uint32_t{KD_POLL_IN});
		p.sender.await(2, 10 * ms);
		EXPECT_EQ(p.w.del("c0"), 0);
		ASSERT_TRUE(p.w.run_until_gone("store.0"));
		auto got = p.receiver.run(
			{recv(p.in.at(), len), recv(p.in.at(len), 9), recv(p.in.at(), len)});
		EXPECT_EQ(got[0].result, static_cast<int32_t>(len));
		EXPECT_TRUE(p.in.text(0, len) == pattern(len, len));
		EXPECT_EQ(got[1].result, 0); /* the empty message */
		EXPECT_EQ(got[2].result, -KD_EPIPE);
		EXPECT_EQ(file.read(10), "");
	}
}

TEST(Session, PollTells)
{
	Session p(1);
	File file = p.w.open("store.0");
	MapFile descs = open_session(p.w, "store.0");

	ASSERT_EQ(descs.post({recv(p.in.at(), 10), recv(p.in.at(), 10)}), 0);
	Task poller = p.w.spawn("poll", [&] {
		uint32_t ready = wait_for_events(
			p.w, {p.w.here()->core->file_read_waitq(descs.get())}, KD_POLL_PRI, 1 * sec,
			[&] { return p.w.here()->core->file_poll(descs.get()); });
		EXPECT_EQ(ready, uint32_t{KD_POLL_PRI});
	});
	p.w.run_for(1 * ms);
	p.write("hello");
	ASSERT_TRUE(p.w.finish({poller}, 100 * ms));
	EXPECT_EQ(file.poll(KD_POLL_IN | KD_POLL_PRI), 0u); /* of another open file */
	EXPECT_EQ(descs.await(1).size(), 1u);
}

/* Whatever fails: it is told, and nothing is left. */
TEST(Session, EveryFault)
{
	for (uint64_t nth = 1; nth < 60; nth++) {
		Session p(nth, 2);

		p.w.fail_nth_any(nth);
		(void)p.sender.set_buffer(0, p.out.data(), mib);
		(void)p.sender.post({send(p.out.at(), 10), send(p.out.at(), 50000),
				     work_fixed(KDIRECT_OP_SEND, 0, 0, 50000),
				     work_fixed(KDIRECT_OP_SEND, 0, 1, 10), send(p.out.at(), 7)});
		(void)p.receiver.post(
			{recv(p.in.at(), 50000), recv(p.in.at(), 50000), recv(p.in.at(), 50000)});
		auto got = p.receiver.await(3, 2 * sec);
		auto sent = p.sender.await(5, 1 * sec);
		for (const kdirect_completion &c : sent)
			EXPECT_TRUE(c.result > 0 || c.result == -KD_ENOMEM ||
				    c.result == -KD_ENOENT || c.result == -KD_EPIPE ||
				    c.result == -KD_EIO)
				<< c.result << " after fault " << nth;
	}
}

} // namespace
