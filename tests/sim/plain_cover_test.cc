// SPDX-License-Identifier: GPL-2.0-only
// Work requests of raw channels where something is unusual: paths that neither the storms
// nor the faults come along.
#include <set>

#include "cover.h"
#include "fabric.h"
#include "plain_pair.h"
#include "ring.h"

using namespace sim;

namespace
{

constexpr uint16_t flushed = 5, length_error = 1;

/* What had to be in one piece is in one piece for each page. */
void scatter(World &w)
{
	for (const auto &fixed : w.fixed)
		fixed->range = page_size;
}

Options quick(uint64_t seed)
{
	return {.seed = seed, .min_delay = 100, .max_delay = 1 * us};
}

kdirect_desc with_imm(kdirect_desc desc, uint32_t imm)
{
	desc.imm = imm;
	return desc;
}

/* The QP of the core on @dev. */
Qp *qp_on(World &w, const Device &dev)
{
	for (const auto &qp : w.qps)
		if (qp->dev == &dev)
			return qp.get();
	return nullptr;
}

/* --- what is wrong with a descriptor ------------------------------------------------------- */

/* Every field that an opcode has no use for, each beside one that is right. */
TEST(PlainCover, AnInvalidOneFailsAlone)
{
	struct Case {
		uint8_t op;
		std::function<void(kdirect_desc &)> spoil;
	};
	const Case cases[] = {
		{KDIRECT_OP_SEND, [](auto &d) { d.opcode = 0; }},
		{KDIRECT_OP_SEND, [](auto &d) { d.opcode = KDIRECT_OP_LOCAL_INV + 1; }},
		{KDIRECT_OP_SEND, [](auto &d) { d.opcode = UINT8_MAX; }},
		{KDIRECT_OP_SEND, [](auto &d) { d.flags = KDIRECT_DESC_FLAGS + 1; }},
		{KDIRECT_OP_SEND, [](auto &d) { d.reserved = 1; }},
		{KDIRECT_OP_SEND, [](auto &d) { d.length = KDIRECT_DESC_LENGTH_MAX + 1; }},
		{KDIRECT_OP_SEND, [](auto &d) { d.buffer = 1; }},
		{KDIRECT_OP_SEND, [](auto &d) { d.remote = 8; }},
		{KDIRECT_OP_SEND, [](auto &d) { d.rkey = 1; }},
		{KDIRECT_OP_SEND, [](auto &d) { d.imm = 1; }},
		{KDIRECT_OP_SEND, [](auto &d) { d.operand = 1; }},
		{KDIRECT_OP_SEND, [](auto &d) { d.compare = 1; }},
		{KDIRECT_OP_SEND_INV, [](auto &d) { d.remote = 8; }},
		{KDIRECT_OP_SEND_IMM, [](auto &d) { d.rkey = 1; }},
		{KDIRECT_OP_RECV, [](auto &d) { d.flags = KDIRECT_DESC_FENCE; }},
		{KDIRECT_OP_RECV, [](auto &d) { d.flags = KDIRECT_DESC_SOLICITED; }},
		{KDIRECT_OP_RECV, [](auto &d) { d.rkey = 1; }},
		{KDIRECT_OP_READ, [](auto &d) { d.flags = KDIRECT_DESC_SOLICITED; }},
		{KDIRECT_OP_READ, [](auto &d) { d.imm = 1; }},
		{KDIRECT_OP_WRITE, [](auto &d) { d.imm = 1; }},
		{KDIRECT_OP_WRITE, [](auto &d) { d.operand = 1; }},
		{KDIRECT_OP_LOCAL_INV, [](auto &d) { d.length = 8; }},
		{KDIRECT_OP_LOCAL_INV, [](auto &d) { d.addr = 8; }},
		{KDIRECT_OP_LOCAL_INV, [](auto &d) { d.flags = KDIRECT_DESC_FIXED; }},
		{KDIRECT_OP_FETCH_ADD, [](auto &d) { d.length = 4; }},
		{KDIRECT_OP_FETCH_ADD, [](auto &d) { d.remote = 4; }},
		{KDIRECT_OP_FETCH_ADD, [](auto &d) { d.compare = 1; }},
		{KDIRECT_OP_FETCH_ADD, [](auto &d) { d.addr = 8; }},
		{KDIRECT_OP_CMP_SWAP, [](auto &d) { d.flags = KDIRECT_DESC_FIXED; }},
		{KDIRECT_OP_CMP_SWAP, [](auto &d) { d.length = 16; }},
	};
	Plain p({.seed = 1});
	ASSERT_TRUE(p.up());
	for (const Case &c : cases) {
		kdirect_desc bad{}, good = work(KDIRECT_OP_SEND, p.near_memory.at(), 8, 2);

		bad.opcode = c.op;
		bad.user_data = 1;
		if (c.op == KDIRECT_OP_FETCH_ADD || c.op == KDIRECT_OP_CMP_SWAP)
			bad.length = 8;
		c.spoil(bad);
		ASSERT_EQ(p.far.post({work(KDIRECT_OP_RECV, p.far_memory.at(), 8)}), 0);
		ASSERT_EQ(p.near.post({bad, good}), 0);
		auto done = p.near.await(2);
		ASSERT_EQ(done.size(), 2u);
		for (const auto &d : done) {
			EXPECT_EQ(d.result, d.user_data == 1 ? -KD_EINVAL : 8) << (&c - cases);
			EXPECT_EQ(d.status, 0u);
		}
		ASSERT_EQ(p.far.await(1).size(), 1u);
	}
	EXPECT_EQ(p.w.state("r0"), KDIRECT_STATE_LIVE);
}

/* What one device, or both, cannot do. */
TEST(PlainCover, NotOnThisDevice)
{
	kdirect_desc add = remote(work(KDIRECT_OP_FETCH_ADD, 0, 8), 0, 1);
	{
		Plain p({.seed = 1}, 0, 32, {.atomics = false});
		kdirect_share key;
		ASSERT_TRUE(p.up());
		EXPECT_EQ(p.near.one(add).result, -KD_EOPNOTSUPP);
		ASSERT_EQ(p.far.set_buffer(0, p.far_memory.data(), 4096), 0);
		EXPECT_EQ(p.far.share(0, KDIRECT_ACCESS_ATOMIC, key), KD_EOPNOTSUPP);
		EXPECT_EQ(p.share(p.far, KDIRECT_ACCESS_READ, key), 0);
		EXPECT_FALSE(p.far.info().flags & KDIRECT_RAW_ATOMICS);
	}
	{
		Plain p({.seed = 1}, 0, 32, {.transport = 2 /* KDIRECT_TRANSPORT_IWARP */});
		ASSERT_TRUE(p.up());
		EXPECT_FALSE(p.near.info().flags & KDIRECT_RAW_IMM);
		for (uint8_t op : {KDIRECT_OP_SEND_IMM, KDIRECT_OP_WRITE_IMM})
			EXPECT_EQ(p.near.one(work(op, p.near_memory.at(), 8)).result,
				  -KD_EOPNOTSUPP);
		EXPECT_EQ(p.w.state("r0"), KDIRECT_STATE_LIVE);
	}
	{
		Plain p({.seed = 1}, 0, 32, {.max_length = 5000});
		ASSERT_TRUE(p.up());
		EXPECT_EQ(p.near.info().max_length, 5000u);
		for (uint8_t op : {KDIRECT_OP_SEND, KDIRECT_OP_RECV})
			EXPECT_EQ(p.near.one(work(op, p.near_memory.at(), 5001)).result,
				  -KD_EMSGSIZE);
		ASSERT_EQ(p.far.post({work(KDIRECT_OP_RECV, p.far_memory.at(), 5000)}), 0);
		EXPECT_EQ(p.near.one(work(KDIRECT_OP_SEND, p.near_memory.at(), 5000)).result, 5000);
	}
	/* the peer agreed on none */
	Plain p({.seed = 1});
	kdirect_raw_connect terms = raw_terms();
	terms.initiator_depth = 0;
	ASSERT_TRUE(p.begin());
	ASSERT_EQ(p.near.connect(terms, true), 0);
	ASSERT_TRUE(p.far = p.open_soon("raw.0"));
	ASSERT_EQ(p.far.connect(raw_terms()), 0);
	ASSERT_TRUE(p.w.run_until_live("r0"));
	EXPECT_EQ(p.near.one(add).result, -KD_EOPNOTSUPP);
	EXPECT_EQ(p.near.one(work(KDIRECT_OP_READ, p.near_memory.at(), 8)).result, -KD_EOPNOTSUPP);
}

/* --- memory ------------------------------------------------------------------------------- */

TEST(PlainCover, MemoryThatIsNotThere)
{
	Plain p({.seed = 1});
	ASSERT_TRUE(p.up());
	ASSERT_EQ(p.near.set_buffer(0, p.near_memory.data(), 5000), 0);
	const kdirect_desc bad[] = {
		work(KDIRECT_OP_SEND, 64, 8),
		work(KDIRECT_OP_SEND, 64, 100000),
		work(KDIRECT_OP_SEND, p.near_memory.at(4 * mib - 7), 8),
		work(KDIRECT_OP_SEND, UINT64_MAX - 3, 8),
		work(KDIRECT_OP_RECV, 64, 8),
		work(KDIRECT_OP_RECV, UINT64_MAX - 50000, 100000),
		work_fixed(KDIRECT_OP_SEND, 0, 4999, 2),
		work_fixed(KDIRECT_OP_SEND, 0, 5001, 0),
		work_fixed(KDIRECT_OP_RECV, 0, UINT64_MAX, 8),
	};
	/* more often than there are slots, or requests */
	for (int i = 0; i < 40; i++)
		for (const kdirect_desc &desc : bad)
			EXPECT_EQ(p.near.one(desc).result, -KD_EFAULT) << (&desc - bad);
	EXPECT_EQ(p.near.one(work_fixed(KDIRECT_OP_SEND, 1, 0, 8)).result, -KD_ENOENT);
	EXPECT_EQ(p.near.one(work_fixed(KDIRECT_OP_SEND, UINT16_MAX, 0, 8)).result, -KD_ENOENT);
	EXPECT_EQ(p.w.pages.size(), 0u);
	EXPECT_EQ(p.w.node().memlock, 2u * page_size);
	/* and what is there goes on: to the very end */
	ASSERT_EQ(p.far.post({work(KDIRECT_OP_RECV, p.far_memory.at(), 8),
			      work(KDIRECT_OP_RECV, p.far_memory.at(), 8)}),
		  0);
	EXPECT_EQ(p.near.one(work_fixed(KDIRECT_OP_SEND, 0, 4992, 8)).result, 8);
	EXPECT_EQ(p.near.one(work_fixed(KDIRECT_OP_SEND, 0, 5000, 0)).result, 0);
}

/* In more pieces than a work request has, and in more pages than an MR. */
TEST(PlainCover, MemoryInTooManyPieces)
{
	Plain p({.seed = 1}, 0, 32, {.max_sge = 2, .max_read_sge = 2, .max_mr_pages = 4});
	ASSERT_TRUE(p.up());
	ASSERT_EQ(p.near.set_buffer(0, p.near_memory.data(), mib), 0);
	scatter(p.w);
	for (uint32_t len : {10 * page_size, 33 * page_size, uint32_t{mib}}) {
		EXPECT_EQ(p.near.one(work(KDIRECT_OP_SEND, p.near_memory.at(), len)).result,
			  -KD_EMSGSIZE);
		EXPECT_EQ(p.near.one(work(KDIRECT_OP_RECV, p.near_memory.at(), len)).result,
			  -KD_EMSGSIZE);
		EXPECT_EQ(p.near.one(work_fixed(KDIRECT_OP_SEND, 0, 0, len)).result, -KD_EMSGSIZE);
		EXPECT_EQ(p.near.one(work_fixed(KDIRECT_OP_RECV, 0, 0, len)).result, -KD_EMSGSIZE);
	}
	EXPECT_EQ(p.w.pages.size(), 0u);
	EXPECT_EQ(p.w.node().memlock, mib);
	EXPECT_EQ(p.w.state("r0"), KDIRECT_STATE_LIVE);
	ASSERT_EQ(p.far.post({work(KDIRECT_OP_RECV, p.far_memory.at(), 2 * page_size)}), 0);
	EXPECT_EQ(p.near.one(work_fixed(KDIRECT_OP_SEND, 0, 0, 2 * page_size)).result,
		  static_cast<int>(2 * page_size));
}

/* A batch with more entries than one doorbell takes stays in order. */
TEST(PlainCover, ManyPiecesInOneBatch)
{
	for (uint64_t seed = 0; seed < 5; seed++) {
		constexpr uint32_t count = 12, len = 9 * page_size;
		Plain p({.seed = seed});
		std::vector<kdirect_desc> sends, recvs;
		ASSERT_TRUE(p.up());
		ASSERT_EQ(p.near.set_buffer(0, p.near_memory.data(), mib), 0);
		scatter(p.w);
		for (uint32_t i = 0; i < count; i++) {
			p.near_memory.put(i * len, pattern(i, len));
			sends.push_back(work_fixed(KDIRECT_OP_SEND, 0, i * len, len, i));
			recvs.push_back(work(KDIRECT_OP_RECV, p.far_memory.at(i * len), len, i));
		}
		ASSERT_EQ(p.far.post(recvs), 0);
		ASSERT_EQ(p.near.post(sends), 0);
		auto done = p.near.await(count);
		ASSERT_EQ(done.size(), count);
		for (uint32_t i = 0; i < count; i++)
			EXPECT_EQ(done[i].user_data, i);
		ASSERT_EQ(p.far.await(count).size(), count);
		for (uint32_t i = 0; i < count; i++)
			EXPECT_TRUE(p.far_memory.text(i * len, len) == pattern(i, len)) << i;
	}
}

/* Wherever in them. */
TEST(PlainCover, FixedBuffersAndRemoteMemory)
{
	Plain p({.seed = 1});
	kdirect_share key;
	ASSERT_TRUE(p.up());
	ASSERT_EQ(p.near.set_buffer(1, p.near_memory.data(), mib), 0);
	ASSERT_EQ(p.far.set_buffer(0, p.far_memory.data(), 65536), 0);
	ASSERT_EQ(p.share(p.far, KDIRECT_ACCESS_READ | KDIRECT_ACCESS_WRITE, key), 0);
	for (uint32_t len : {1u, 5000u, 65000u})
		for (uint8_t op : {KDIRECT_OP_READ, KDIRECT_OP_WRITE}) {
			std::string text = pattern(op, len);

			(op == KDIRECT_OP_READ ? p.far_memory : p.near_memory)
				.put(op == KDIRECT_OP_READ ? 100 : 77, text);
			EXPECT_EQ(p.near.one(remote(work_fixed(op, 1, 77, len), key.addr + 100,
						    key.rkey))
					  .result,
				  static_cast<int>(len));
			EXPECT_TRUE(p.near_memory.text(77, len) == text);
			EXPECT_TRUE(p.far_memory.text(100, len) == text);
		}
}

TEST(PlainCover, ImmediateData)
{
	Plain p({.seed = 1});
	ASSERT_TRUE(p.up());
	for (uint32_t imm : {0u, 0x12345678u, UINT32_MAX}) {
		p.near_memory.put(0, "hello");
		ASSERT_EQ(p.far.post({work(KDIRECT_OP_RECV, p.far_memory.at(), 100)}), 0);
		EXPECT_EQ(
			p.near.one(with_imm(work(KDIRECT_OP_SEND_IMM, p.near_memory.at(), 5), imm))
				.result,
			5);
		auto got = p.far.await(1);
		ASSERT_EQ(got.size(), 1u);
		EXPECT_EQ(got[0].result, 5);
		EXPECT_EQ(got[0].flags, KDIRECT_COMPLETION_IMM);
		EXPECT_EQ(got[0].data, imm);
		EXPECT_EQ(p.far_memory.text(0, 5), "hello");
	}
}

/* --- ends --------------------------------------------------------------------------------- */

/*
 * The channel goes while a receive is on its way to the device: it completes once, in an
 * error, and its memory is given back.
 */
TEST(PlainCover, EndsBeforeAReceiveIsPosted)
{
	for (const char *call : {"kd_pages_pin_user", "kd_pages_map"}) {
		std::set<int> results;

		for (uint64_t seed = 0; seed < 10; seed++) {
			Plain p(quick(seed));
			int err = -1;
			ASSERT_TRUE(p.up());
			Task task = p.w.spawn("poster", [&] {
				err = p.far.post({work(KDIRECT_OP_RECV, p.far_memory.at(), 60000)});
			});
			stay_in(p.w, task, call);
			EXPECT_EQ(p.w.del("raw.0"), 0);
			ASSERT_TRUE(p.w.finish({task}, 1 * sec));
			ASSERT_EQ(err, 0);
			auto done = p.far.await(2, 1 * ms);
			ASSERT_EQ(done.size(), 1u);
			results.insert(-done[0].result);
			EXPECT_EQ(done[0].status, done[0].result == -KD_ECONNRESET ? flushed : 0);
			EXPECT_TRUE(p.w.run_until_gone("raw.0"));
			EXPECT_EQ(p.w.pages.size(), 0u);
			EXPECT_EQ(p.w.node().memlock, 0u);
		}
		EXPECT_TRUE(results.contains(KD_ENODEV)) << call;
		results.erase(KD_ENODEV);
		results.erase(KD_ECONNRESET);
		EXPECT_TRUE(results.empty()) << call;
	}
}

TEST(PlainCover, AMessageThatIsTooLong)
{
	Plain p({.seed = 1});
	ASSERT_TRUE(p.up());
	ASSERT_EQ(p.far.post({work(KDIRECT_OP_RECV, p.far_memory.at(), 8, 1),
			      work(KDIRECT_OP_RECV, p.far_memory.at(), 8, 2)}),
		  0);
	EXPECT_LT(p.near.one(work(KDIRECT_OP_SEND, p.near_memory.at(), 9)).result, 0);
	auto got = p.far.await(2);
	ASSERT_EQ(got.size(), 2u);
	EXPECT_EQ(got[0].user_data, 1u);
	EXPECT_EQ(got[0].status, length_error);
	EXPECT_LT(got[0].result, 0);
	EXPECT_EQ(got[1].user_data, 2u);
	EXPECT_EQ(got[1].status, flushed);
	EXPECT_EQ(got[1].result, -KD_ECONNRESET);
	EXPECT_TRUE(p.w.run_until_gone("raw.0"));
	EXPECT_TRUE(contains(error_text(p.w, "raw.0"), "a receive failed: local length error") ||
		    contains(error_text(p.w, "raw.0"), "QP access error"))
		<< error_text(p.w, "raw.0");
}

/* A device that says what cannot be. */
TEST(PlainCover, ALyingDevice)
{
	for (bool invalidates : {false, true}) {
		Plain p({.seed = 1});
		ASSERT_TRUE(p.up());
		ASSERT_EQ(p.far.post({work(KDIRECT_OP_RECV, p.far_memory.at(), 8)}), 0);
		Qp *qp = qp_on(p.w, p.b);
		ASSERT_TRUE(qp && qp->rq.size() == 1);
		RecvWr wr = qp->rq.front();
		qp->rq.pop_front();
		cq_push(p.w, qp->cq,
			{.qp = qp->id,
			 .kind = KD_CQE_RAW_RECV,
			 .cqe = wr.cqe,
			 .wr = wr.id,
			 .byte_len = 1 << 20,
			 .invalidated = invalidates,
			 .rkey = invalidates ? 0x4711U : 0});
		auto got = p.far.await(1);
		ASSERT_EQ(got.size(), 1u);
		EXPECT_EQ(got[0].result, invalidates ? -KD_EPROTO : 8);
		EXPECT_EQ(got[0].data, 0u);
		if (!invalidates)
			continue;
		EXPECT_TRUE(p.w.run_until_gone("raw.0"));
		EXPECT_TRUE(contains(error_text(p.w, "raw.0"), "0x4711, which is none of ours"));
		EXPECT_EQ(p.w.pages.size(), 0u);
	}
}

/* --- rings -------------------------------------------------------------------------------- */

/* Keeps going until so many have ended; results by user_data. */
std::map<uint64_t, int> results(World &w, Ring &ring, std::size_t count)
{
	std::map<uint64_t, int> out;
	bool threaded = ring.setup.flags & KDIRECT_RING_THREAD;
	bool polls = ring.setup.flags & KDIRECT_RING_POLL;

	w.call([&] {
		for (uint64_t end = w.now() + 10 * sec; out.size() < count && w.now() < end;) {
			kdirect_completion c;

			if (threaded)
				ring.nudge();
			else
				ring.enter(ring.setup.sq_entries - ring.room(), 0,
					   polls ? KDIRECT_ENTER_POLL : 0);
			w.run_for(1 * us);
			while (ring.pop(c))
				if (!out.emplace(c.user_data, c.result).second)
					fail("a work request completed twice");
		}
	});
	return out;
}

TEST(PlainCover, Rings)
{
	for (uint64_t seed = 0; seed < 4; seed++)
		for (uint32_t flags : {0U, KDIRECT_RING_THREAD, KDIRECT_RING_POLL,
				       KDIRECT_RING_THREAD | KDIRECT_RING_POLL}) {
			bool threaded = flags & KDIRECT_RING_THREAD;
			Plain p({.seed = seed}, flags & KDIRECT_RING_POLL ? 1 : 0);
			ASSERT_TRUE(p.up());
			Ring ring = make_ring(p.near.hold(), {.sq_entries = 16,
							      .cq_entries = 16,
							      .flags = flags,
							      .thread_cpu = threaded ? -1 : 0,
							      .idle_ns = threaded ? 50 * us : 0});
			ASSERT_TRUE(static_cast<bool>(ring));
			EXPECT_EQ(p.near.post({work(KDIRECT_OP_SEND, p.near_memory.at(), 8)}),
				  KD_EBUSY);
			std::vector<kdirect_desc> recvs;
			for (uint32_t i = 0; i < 10; i++) {
				p.near_memory.put(i * 100, pattern(i, 100));
				recvs.push_back(
					work(KDIRECT_OP_RECV, p.far_memory.at(i * 100), 100, i));
			}
			ASSERT_EQ(p.far.post(recvs), 0);
			for (uint32_t i = 0; i < 10; i++)
				ASSERT_TRUE(ring.push(
					work(KDIRECT_OP_SEND, p.near_memory.at(i * 100), 100, i)));
			ASSERT_TRUE(ring.push(work(KDIRECT_OP_SEND, 64, 8, 10)));
			/* what it would pin is charged to nobody */
			ASSERT_TRUE(ring.push(work(KDIRECT_OP_RECV, p.near_memory.at(), 8, 11)));
			auto done = results(p.w, ring, threaded ? 12 : 11);
			for (uint32_t i = 0; i < 10; i++)
				EXPECT_EQ(done[i], 100);
			EXPECT_EQ(done[10], -KD_EFAULT);
			EXPECT_EQ(done.contains(11), threaded);
			EXPECT_EQ(done[11], threaded ? -KD_EOPNOTSUPP : 0);
			ASSERT_EQ(p.far.await(10).size(), 10u);
			for (uint32_t i = 0; i < 10; i++)
				EXPECT_TRUE(p.far_memory.text(i * 100, 100) == pattern(i, 100));
			if (threaded) { /* and without its process nothing is there */
				ring.orphan();
				ASSERT_TRUE(ring.push(
					work(KDIRECT_OP_SEND, p.near_memory.at(), 8, 12)));
				EXPECT_EQ(results(p.w, ring, 1)[12], -KD_EFAULT);
			}
			p.near.close();
			EXPECT_EQ(p.w.state("r0"), KDIRECT_STATE_LIVE) << "its rings are open";
			ring.close();
			EXPECT_TRUE(p.w.run_until(
				[&] { return p.w.state("r0") != KDIRECT_STATE_LIVE; }));
		}
}

} // namespace
