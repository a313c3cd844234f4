// SPDX-License-Identifier: GPL-2.0-only
// Exports and mappings where something is unusual: paths that neither the storms nor
// the faults come along.
#include <algorithm>
#include <set>

#include "../../uapi/kdirect_netlink.h"
#include "cover.h"
#include "mapped.h"

using namespace sim;

namespace
{

kd_net *handle(Net &net)
{
	return reinterpret_cast<kd_net *>(&net);
}

PairOptions at_depth(uint32_t depth, uint64_t seed = 1)
{
	return {.world = {.seed = seed},
		.channel = [depth](kd_channel_params &c) { c.depth = depth; }};
}

PairOptions polled_only(uint32_t mode)
{
	return {.channel = [mode](kd_channel_params &c) {
		c.queues = 0;
		c.poll_queues = 1;
		c.depth = 2;
		c.poll_mode = mode;
		c.poll_cpu_percent = 1;
	}};
}

kd_queue_stats last_queue(World &w)
{
	struct kd_channel_stats stats;
	std::vector<kd_queue_stats> queues;

	EXPECT_TRUE(w.stats("c0", stats, &queues));
	return queues.back();
}

/* Both of the large slots of a channel of depth 2 are in use. */
struct Occupied : Mapped {
	explicit Occupied(const PairOptions &o = at_depth(2)) : Mapped(o)
	{
		w.set_stuck(b, true);
		for (std::size_t i = 0; i < std::size(ios); i++) {
			kd_iter iter = source_of(text);

			EXPECT_EQ(file.io(iter, i * 4096, true, KD_IO_NOWAIT, &ios[i]),
				  KD_IO_QUEUED);
		}
	}
	void free()
	{
		w.set_stuck(b, false);
		EXPECT_TRUE(w.run_until([&] { return ios[0].done && ios[1].done; }));
		EXPECT_EQ(ios[0].result, 4096);
		EXPECT_EQ(ios[1].result, 4096);
	}

	std::string text = pattern(1, 4096);
	AsyncIo ios[2];
};

/* --- administration ------------------------------------------------------------------ */

TEST(MapCover, Dumps)
{
	Pair p(1);
	const CoreApi &core = linked_core();
	Net &other = p.w.add_net();
	std::multiset<std::string> exports, mappings;

	ASSERT_TRUE(p.up());
	for (unsigned int i = 0; i < 5; i++) {
		std::string number = std::to_string(i);

		ASSERT_EQ(add_export(p.w, "e" + number, "store", 4096 + i), 0);
		ASSERT_EQ(add_map(p.w, "m" + number, "c0", "e" + number), 0);
		ASSERT_TRUE(run_until_mapped(p.w, "m" + number));
	}
	p.w.call([&] {
		struct kd_export_info from;
		struct kd_map_info map;
		uint64_t cursor = 0;

		while (!core.export_next(handle(*p.w.node().net), &cursor, &from)) {
			exports.insert(from.params.name);
			EXPECT_EQ(from.params.size, 4096 + exports.size() - 1);
			EXPECT_EQ(from.maps, 1u);
		}
		cursor = 0;
		while (!core.map_next(handle(*p.w.node().net), &cursor, &map)) {
			mappings.insert(map.params.name);
			EXPECT_EQ(map.size, 4096 + mappings.size() - 1);
			EXPECT_EQ(map.state, static_cast<uint32_t>(KDIRECT_MAP_LIVE));
		}
		cursor = 0;
		EXPECT_EQ(core.export_next(handle(other), &cursor, &from), KD_ENOENT);
		EXPECT_EQ(core.map_next(handle(other), &cursor, &map), KD_ENOENT);
		EXPECT_EQ(cursor, 0u);
	});
	EXPECT_EQ(exports, (std::multiset<std::string>{"e0", "e1", "e2", "e3", "e4"}));
	EXPECT_EQ(mappings, (std::multiset<std::string>{"m0", "m1", "m2", "m3", "m4"}));
}

TEST(MapCover, NoMemoryForAnExport)
{
	Pair p(1);
	kd_error error{};

	p.w.fail_nth(Op::Alloc, 1);
	EXPECT_EQ(add_export(p.w, "mem", "store", mib, false, &error), KD_ENOMEM);
	EXPECT_STREQ(error.text, "no memory for an export");
	EXPECT_EQ(add_export(p.w, "mem", "store", mib), 0);
}

/* Clearing much memory takes its time: who adds it may be killed. */
TEST(MapCover, KilledWhileAddingAnExport)
{
	Pair p(1);
	kd_error error{};
	int err = 0;
	Task task = p.w.spawn(
		"add", [&] { err = add_export(p.w, "mem", "store", 16ULL << 20, false, &error); });

	p.w.signal(task, true);
	ASSERT_TRUE(p.w.finish({task}));
	EXPECT_EQ(err, KD_EINTR);
	EXPECT_STREQ(error.text, "interrupted");
	EXPECT_EQ(p.w.regions.size(), 0u);
	/* all of what there can be is left */
	p.w.fail_nth(Op::RegionAlloc, 1);
	EXPECT_EQ(add_export(p.w, "mem", "store", 16ULL << 30), KD_ENOMEM);
	EXPECT_EQ(add_export(p.w, "mem", "store", mib), 0);
}

/* Deleted while it is being added: not there yet, busy, or gone. */
TEST(MapCover, ExportDeletedWhileItIsAdded)
{
	bool busy = false;

	for (uint64_t seed = 0; seed < 200; seed++) {
		Pair p(seed);
		int added = -1, deleted = -1;

		disturb(p.w);
		Task add = p.w.spawn("add", [&] { added = add_export(p.w, "mem", "store", mib); });
		Task del = p.w.spawn("del", [&] {
			for (int i = 0; i < 100 && deleted; i++) {
				kd_error error{};

				deleted = del_export(p.w, "mem", &error);
				EXPECT_TRUE(!deleted || deleted == KD_EBUSY ||
					    deleted == KD_ENOENT);
				if (deleted == KD_EBUSY) {
					EXPECT_STREQ(error.text, "export \"mem\" is being added");
					busy = true;
				}
				p.w.run_for(1 * us);
			}
		});
		ASSERT_TRUE(p.w.finish({add, del}));
		EXPECT_EQ(added, 0);
		EXPECT_EQ(deleted, 0);
		EXPECT_EQ(p.w.regions.size(), 0u);
	}
	EXPECT_TRUE(busy);
}

TEST(MapCover, ChannelsThatCannotMap)
{
	{
		Pair p(1);
		kd_error error{};

		ASSERT_EQ(p.begin(), 0);
		EXPECT_EQ(add_map(p.w, "m", "c0", "mem", false, &error), KD_ENOTCONN);
		EXPECT_TRUE(contains(error.text, "\"c0\" is not live but ")) << error.text;
	}
	Pair p({.device = {.max_rd_atom = 0}});
	kd_error error{};

	ASSERT_TRUE(p.up());
	EXPECT_EQ(add_map(p.w, "m", "c0", "mem", false, &error), KD_EOPNOTSUPP);
	EXPECT_TRUE(contains(error.text, "\"c0\" goes without RDMA READ")) << error.text;
	EXPECT_EQ(map_state(p.w, "m"), -1);
}

TEST(MapCover, AddedWhileTheModuleStops)
{
	bool maps_refused = false;

	for (uint64_t seed = 0; seed < 60; seed++) {
		Pair p(seed);
		int mapped = 0;
		kd_error error{};

		ASSERT_TRUE(p.up());
		p.close();
		ASSERT_EQ(add_export(p.w, "mem", "store", mib), 0);
		disturb(p.w, 50);
		Task stop = p.w.spawn("stop", [] { linked_core().core_stop(); });
		Task map = p.w.spawn("map", [&] {
			for (int i = 0; !mapped; i++) {
				mapped = add_map(p.w, "m" + std::to_string(i), "c0", "mem", false,
						 &error);
				p.w.run_for(1 * us);
			}
		});
		ASSERT_TRUE(p.w.finish({stop, map}));
		if (mapped == KD_EBUSY) {
			EXPECT_STREQ(error.text, "the module is being unloaded");
			maps_refused = true;
		}
		EXPECT_EQ(add_export(p.w, "late", "store", mib, false, &error), KD_EBUSY);
		EXPECT_STREQ(error.text, "the module is being unloaded");
		EXPECT_EQ(p.w.regions.size(), 0u);
	}
	EXPECT_TRUE(maps_refused);
}

TEST(MapCover, AsManyExportsAsThereCanBe)
{
	Pair p(1);
	kd_error error{};

	for (unsigned int i = 0; i < 1024; i++)
		ASSERT_EQ(add_export(p.w, "e" + std::to_string(i), "store", 1), 0) << i;
	EXPECT_EQ(add_export(p.w, "more", "store", 1, false, &error), KD_ENFILE);
	EXPECT_TRUE(contains(error.text, "1024 exports")) << error.text;
	ASSERT_EQ(del_export(p.w, "e77"), 0);
	EXPECT_EQ(add_export(p.w, "more", "store", 1), 0);
}

TEST(MapCover, AsManyMappingsAsThereCanBe)
{
	Pair p(1);
	kd_error error{};

	for (unsigned int i = 0; i < 64; i++)
		ASSERT_EQ(add_export(p.w, "e" + std::to_string(i), "store", 1), 0);
	for (unsigned int c = 0; c < 17; c++) {
		std::string channel = "c" + std::to_string(c);

		ASSERT_EQ(p.w.connect(channel, p.target, port), 0);
		ASSERT_TRUE(p.w.run_until_live(channel));
		for (unsigned int i = 0; c < 16 && i < 64; i++) {
			std::string number = std::to_string(i);

			ASSERT_EQ(add_map(p.w, channel + "-" + number, channel, "e" + number), 0);
		}
	}
	EXPECT_EQ(add_map(p.w, "more", "c16", "e0", false, &error), KD_ENFILE);
	EXPECT_TRUE(contains(error.text, "1024 mappings")) << error.text;
	ASSERT_EQ(del_map(p.w, "c3-5"), 0);
	ASSERT_TRUE(run_until_unmapped(p.w, "c3-5"));
	ASSERT_EQ(add_map(p.w, "more", "c16", "e0"), 0);
	EXPECT_TRUE(run_until_mapped(p.w, "more"));
}

/* --- the life of a mapping -------------------------------------------------------------- */

/* More than the control queue says at once, deleted at every step. */
TEST(MapCover, ManyDeletedWhileTheyAsk)
{
	for (uint64_t seed = 0; seed < 40; seed++) {
		Pair p(seed);

		ASSERT_TRUE(p.up());
		for (unsigned int i = 0; i < 64; i++)
			ASSERT_EQ(add_export(p.w, "e" + std::to_string(i), "store", 1), 0);
		disturb(p.w, 50);
		p.w.call([&] {
			for (unsigned int i = 0; i < 64; i++)
				EXPECT_EQ(add_map(p.w, "m" + std::to_string(i), "c0",
						  "e" + std::to_string(i)),
					  0);
		});
		p.w.run_for(p.w.sched.rng.below(seed % 4 * 60 * us + 1));
		p.w.call([&] {
			for (unsigned int i = 64; i--;)
				EXPECT_EQ(del_map(p.w, "m" + std::to_string(i)), 0);
		});
		for (unsigned int i = 0; i < 64; i++)
			ASSERT_TRUE(run_until_unmapped(p.w, "m" + std::to_string(i)))
				<< i << " seed " << seed;
		EXPECT_EQ(p.w.state("c0"), KDIRECT_STATE_LIVE);
		struct kd_export_info from;
		for (unsigned int i = 0; i < 64; i++) {
			ASSERT_TRUE(export_info(p.w, "e" + std::to_string(i), from));
			EXPECT_EQ(from.maps, 0u);
		}
		ASSERT_EQ(add_map(p.w, "m", "c0", "e0"), 0);
		EXPECT_TRUE(run_until_mapped(p.w, "m"));
	}
}

/* What is there of the slots after a failure is used by the next mapping. */
TEST(MapCover, SlotsInTwoAttempts)
{
	unsigned int failed = 0;

	for (uint64_t nth = 1; nth < 20; nth++) {
		Pair p({.world = {.seed = nth}, .channel = [](kd_channel_params &c) {
				c.queues = 2;
				c.depth = 2;
			}});

		ASSERT_TRUE(p.up());
		ASSERT_EQ(add_export(p.w, "mem", "store", mib), 0);
		p.w.fail_nth(Op::DmaCreate, nth);
		ASSERT_EQ(add_map(p.w, "m", "c0", "mem"), 0);
		if (!run_until_mapped(p.w, "m")) {
			failed++;
			ASSERT_TRUE(run_until_unmapped(p.w, "m"));
			EXPECT_TRUE(contains(error_text(p.w, "m"), "no memory for the mapping's"))
				<< error_text(p.w, "m");
			ASSERT_EQ(add_map(p.w, "m", "c0", "mem"), 0);
			ASSERT_TRUE(run_until_mapped(p.w, "m"));
		}
		MapFile file = open_map(p.w, "m");
		for (uint64_t i = 0; i < 20; i++) {
			std::string text = pattern(i, i % 2 ? 100 : 50000);

			ASSERT_EQ(file.pwrite(text, i * 100), static_cast<int64_t>(text.size()));
			ASSERT_TRUE(file.pread(text.size(), i * 100) == text);
		}
	}
	EXPECT_GE(failed, 4u);
	EXPECT_LT(failed, 19u);
}

/* An export of more keys than a mapping can have, on a device of small ones. */
TEST(MapCover, MoreKeysThanAMappingHas)
{
	Pair p({.device = {.max_mr_pages = 2},
		.channel = [](kd_channel_params &c) { c.eager_limit = 1024; }});

	ASSERT_TRUE(p.up());
	ASSERT_EQ(add_export(p.w, "mem", "store", 16384 * 8192 + 1), 0);
	ASSERT_EQ(add_map(p.w, "m", "c0", "mem"), 0);
	ASSERT_TRUE(run_until_unmapped(p.w, "m"));
	EXPECT_TRUE(contains(error_text(p.w, "m"), "out of memory or of RDMA resources"))
		<< error_text(p.w, "m");
	struct kd_export_info from;
	ASSERT_TRUE(export_info(p.w, "mem", from));
	EXPECT_EQ(from.maps, 0u);
}

/* A device that cannot register the memory of an export. */
TEST(MapCover, KeysThatFail)
{
	unsigned int seen = 0;

	for (uint64_t nth = 1; nth < 10; nth++) {
		Pair p(1);

		ASSERT_TRUE(p.up());
		ASSERT_EQ(add_export(p.w, "mem", "store", 5 * mib), 0);
		p.w.fail_nth(Op::WrError, nth);
		ASSERT_EQ(add_map(p.w, "m", "c0", "mem"), 0);
		if (run_until_mapped(p.w, "m"))
			continue;
		if (!contains(error_text(p.w, "store.0"), "REG_MR failed"))
			continue;
		seen++;
		EXPECT_EQ(p.w.last_error("store.0")->err, KD_EIO);
		EXPECT_TRUE(contains(error_text(p.w, "store.0"), "control queue: REG_MR failed: "));
		EXPECT_TRUE(p.w.run_until_gone("store.0"));
		ASSERT_EQ(del_export(p.w, "mem"), 0);
		EXPECT_TRUE(run_until_unexported(p.w, "mem"));
	}
	EXPECT_GE(seen, 1u);
}

/* The transport is patient for ever, and the control queue works: only this one stands. */
TEST(MapCover, AStalledTransfer)
{
	Mapped p(1);
	int64_t ret = 0;
	Qp *last = nullptr;

	p.w.opts.retry_timeout = 1000 * sec;
	for (const auto &qp : p.w.qps)
		if (qp->core && qp->dev == &p.a)
			last = qp.get();
	ASSERT_TRUE(last);
	last->remote = 0;
	Task task = p.w.spawn("writer", [&] { ret = p.file.pwrite("hello", 0); });
	EXPECT_TRUE(p.w.run_until([&] { return p.w.last_error("c0"); }, 60 * sec));
	EXPECT_TRUE(contains(error_text(p.w, "c0"),
			     "queue 1: a read or write of a mapping has not completed"))
		<< error_text(p.w, "c0");
	ASSERT_TRUE(p.w.finish({task}));
	EXPECT_EQ(ret, -KD_EIO);
}

/* --- transfers ---------------------------------------------------------------------------- */

TEST(MapCover, AsyncThatCannotBePinned)
{
	Mapped p(1);
	std::string text = pattern(1, 4096);
	AsyncIo async;
	kd_iter bad = source_of(text), a = source_of(text), b = source_of(text);

	bad.fault_at = 100;
	EXPECT_EQ(p.file.io(bad, 0, true, 0, &async), -KD_EFAULT);
	p.w.fail_nth(Op::PagesPinIo, 1);
	EXPECT_EQ(p.file.io(a, 0, true, KD_IO_NOWAIT, &async), -KD_EAGAIN);
	EXPECT_EQ(p.bytes().substr(0, 4096), std::string(4096, '\0'));
	/* who may wait goes through a buffer */
	p.w.fail_nth(Op::PagesPinIo, 1);
	EXPECT_EQ(p.file.io(b, 0, true, 0, &async), 4096);
	EXPECT_FALSE(async.done);
	EXPECT_TRUE(p.bytes().substr(0, 4096) == text);
	EXPECT_EQ(p.w.pages.size(), 0u);
}

TEST(MapCover, AsyncWithoutASlot)
{
	for (bool killed : {true, false}) {
		Occupied p;
		kd_iter iter = source_of(p.text);
		AsyncIo async;
		int64_t ret = 0;
		Task task =
			p.w.spawn("writer", [&] { ret = p.file.io(iter, 9000, true, 0, &async); });

		p.w.run_for(1 * ms);
		ASSERT_TRUE(p.w.running(task));
		if (killed)
			p.w.signal(task, true);
		else
			EXPECT_EQ(del_map(p.w, "m"), 0);
		ASSERT_TRUE(p.w.finish({task}));
		EXPECT_EQ(ret, killed ? -KD_EINTR : -KD_ENODEV);
		EXPECT_FALSE(async.done);
		EXPECT_EQ(p.w.pages.size(), 2u) << "of those under way";
		p.free();
	}
}

/* Two take the last slot, neither of them waits: one has it. */
TEST(MapCover, AsyncForTheLastSlot)
{
	for (uint64_t seed = 0; seed < 100; seed++) {
		Mapped p(at_depth(1, seed));
		std::string text = pattern(1, 4096);
		int64_t ret[4]{};
		AsyncIo ios[4];
		std::vector<kd_iter> iters(4, source_of(text));
		std::vector<Task> tasks;

		p.w.set_stuck(p.b, true);
		disturb(p.w);
		for (std::size_t i = 0; i < 4; i++)
			tasks.push_back(p.w.spawn("writer", [&, i] {
				ret[i] = p.file.io(iters[i], 0, true, KD_IO_NOWAIT, &ios[i]);
			}));
		ASSERT_TRUE(p.w.finish(tasks));
		EXPECT_EQ(std::count(ret, ret + 4, KD_IO_QUEUED), 1);
		EXPECT_EQ(std::count(ret, ret + 4, -KD_EAGAIN), 3);
		EXPECT_EQ(p.w.pages.size(), 1u);
		p.w.set_stuck(p.b, false);
		EXPECT_TRUE(p.w.run_until([&] {
			return std::count_if(ios, ios + 4,
					     [](const AsyncIo &io) { return io.done; }) == 1;
		}));
	}
}

TEST(MapCover, AsyncThatCannotBePosted)
{
	for (bool poll : {false, true}) {
		Mapped p(poll ? polled_only(KDIRECT_POLL_BUSY) : at_depth(2));
		std::string text = pattern(1, 4096);

		for (auto [op, err] : {std::pair{Op::RwPrepare, KD_ENOMEM}, {Op::RwPost, KD_EIO}})
			for (int i = 0; i < 3; i++) {
				kd_iter iter = source_of(text);
				AsyncIo async;

				p.w.fail_nth(op, 1);
				EXPECT_EQ(p.file.io(iter, 0, true, 0, &async), -err);
				EXPECT_FALSE(async.done);
				EXPECT_EQ(p.w.pages.size(), 0u);
			}
		kd_iter iter = source_of(text);
		AsyncIo async;
		EXPECT_EQ(p.file.io(iter, 0, true, 0, &async), KD_IO_QUEUED);
		EXPECT_TRUE(p.w.run_until([&] { return async.done; }));
		EXPECT_EQ(async.result, 4096);
	}
}

/* Killed just when it ends: all of it, or nothing that counts. */
TEST(MapCover, KilledWhenItIsDone)
{
	unsigned int done = 0, ended = 0;

	for (uint64_t seed = 0; seed < 300; seed++) {
		Mapped p(seed);
		int64_t ret = 0;

		disturb(p.w, 50);
		Task task = p.w.spawn("writer", [&] { ret = p.file.pwrite("hello", 0); });
		p.w.run_until([&] { return p.w.calls(Op::PostIo) > 0; });
		p.w.run_for(p.w.sched.rng.below(40 * us));
		p.w.signal(task, true);
		ASSERT_TRUE(p.w.finish({task}));
		EXPECT_TRUE(ret == 5 || ret == -KD_EINTR) << ret;
		done += ret == 5;
		ended += ret == -KD_EINTR;
		EXPECT_EQ(p.file.pwrite("world", 100), 5);
		EXPECT_EQ(p.file.pread(5, 100), "world");
	}
	EXPECT_GT(done, 0u);
	EXPECT_GT(ended, 0u);
}

/* A transfer minds only a signal that kills. */
TEST(MapCover, APollerThatIsSignalled)
{
	for (bool fatal : {false, true}) {
		Mapped p(polled_only(KDIRECT_POLL_BUSY));
		int64_t ret = 0;

		p.w.set_stuck(p.b, true);
		Task task =
			p.w.spawn("writer", [&] { ret = p.file.pwrite("hello", 0, KD_IO_POLL); });
		p.w.run_for(1 * ms);
		p.w.signal(task, fatal);
		p.w.run_for(1 * ms);
		EXPECT_EQ(p.w.running(task), !fatal);
		p.w.set_stuck(p.b, false);
		ASSERT_TRUE(p.w.finish({task}));
		EXPECT_EQ(ret, fatal ? -KD_EINTR : 5);
	}
}

/* --- polling ------------------------------------------------------------------------------ */

TEST(MapCover, AFileThatPollsAdaptively)
{
	Mapped p(polled_only(KDIRECT_POLL_BUSY));
	auto transfer = [&] {
		for (int i = 0; i < 200; i++)
			EXPECT_EQ(p.file.pwrite(std::string(4096, 'x'), 0, KD_IO_POLL), 4096);
		return last_queue(p.w).poll_sleeps;
	};

	EXPECT_EQ(transfer(), 0u);
	p.w.call([&] {
		EXPECT_EQ(p.w.node().core->desc_set_flags(p.file.get(), KDIRECT_OPEN_ADAPTIVE), 0);
	});
	EXPECT_GT(transfer(), 0u) << "1 % of a CPU is not enough for all of them";
}

/* What several take at once is owed: nobody polls until it is paid. */
TEST(MapCover, NoAllowanceIsLeft)
{
	Mapped p(polled_only(KDIRECT_POLL_ADAPTIVE));
	std::vector<Task> tasks;

	/* only looking takes time here, and only if it is disturbed */
	disturb(p.w);
	for (int i = 0; i < 100; i++)
		tasks.push_back(p.w.spawn(
			"writer", [&] { EXPECT_EQ(p.file.pwrite("hello", 0, KD_IO_POLL), 5); }));
	ASSERT_TRUE(p.w.finish(tasks));
	p.w.sched.preempt_percent = 0;
	kd_queue_stats before = last_queue(p.w);
	for (int i = 0; i < 10; i++)
		EXPECT_EQ(p.file.pwrite("hello", 0, KD_IO_POLL), 5);
	EXPECT_EQ(last_queue(p.w).poll_sleeps - before.poll_sleeps, 10u);
	p.w.run_for(10 * sec);
	before = last_queue(p.w);
	for (int i = 0; i < 10; i++)
		EXPECT_EQ(p.file.pwrite("hello", 0, KD_IO_POLL), 5);
	EXPECT_LT(last_queue(p.w).poll_sleeps - before.poll_sleeps, 10u) << "it is paid";
}

} // namespace
