// SPDX-License-Identifier: GPL-2.0-only
// Exports and mappings: what is written is what is read, in order and at every length,
// and nothing can be touched any more once either end has let go.
#include "mapped.h"

using namespace sim;

namespace
{

TEST(Map, WhatIsWrittenIsRead)
{
	for (uint64_t seed = 0; seed < 20; seed++) {
		Mapped p(seed);

		EXPECT_EQ(p.file.size(), p.size);
		EXPECT_EQ(p.file.pread(100, 0), std::string(100, '\0'));
		EXPECT_EQ(p.file.pwrite("hello", 77), 5);
		EXPECT_EQ(p.bytes().substr(77, 5), "hello");
		EXPECT_EQ(p.file.pread(5, 77), "hello");
	}
}

/* Lengths and places around everything that splits a transfer. */
TEST(Map, EveryLengthAndPlace)
{
	for (bool poll : {false, true}) {
		Mapped p(polled());
		uint32_t flags = poll ? uint32_t{KD_IO_POLL} : 0;
		std::string model(p.size, '\0');
		uint64_t number = 0;

		for (std::size_t len : {1u, 4095u, 4096u, 4097u, 16383u, 16384u, 16385u, 65536u,
					1u << 20, (1u << 20) + 1, (2u << 20) + 5})
			for (uint64_t pos : {uint64_t{0}, uint64_t{1}, 2 * mib - 1, 2 * mib,
					     4 * mib - 16384, p.size - 1, p.size - 4096}) {
				std::string text = pattern(number++, len);
				std::size_t fits = std::min<std::size_t>(len, p.size - pos);

				ASSERT_EQ(p.file.pwrite(text, pos, flags),
					  static_cast<int64_t>(fits))
					<< len << " at " << pos;
				model.replace(pos, fits, text, 0, fits);
				ASSERT_TRUE(p.file.pread(len, pos, flags) == text.substr(0, fits))
					<< len << " at " << pos;
			}
		EXPECT_TRUE(p.bytes() == model);
		EXPECT_TRUE(p.file.pread(p.size + 10, 0, flags) == model);
	}
}

TEST(Map, EndsWhereTheExportEnds)
{
	Mapped p(1);

	EXPECT_EQ(p.file.pread(10, p.size), "");
	EXPECT_EQ(p.file.pread(10, UINT64_MAX), "");
	EXPECT_EQ(p.file.pwrite("x", p.size), -KD_ENOSPC);
	EXPECT_EQ(p.file.pwrite("x", UINT64_MAX), -KD_ENOSPC);
	EXPECT_EQ(p.file.pwrite("xyz", p.size - 2), 2);
	EXPECT_EQ(p.file.pread(3, p.size - 2), "xy");
	EXPECT_EQ(p.file.pwrite("", 0), 0);
	EXPECT_EQ(p.file.pread(0, p.size), "");
}

TEST(Map, CallersMemoryOfEveryKind)
{
	Mapped p(2);
	std::string text = pattern(1, 3 * mib);

	for (int kind = 0; kind < 3; kind++) {
		kd_iter from = source_of(text);

		if (kind == 1)
			from.user = false;
		if (kind == 2) {
			uint8_t *base = from.segments[0].base;

			from.segments = {{base, 5},
					 {base + 5, 40000},
					 {base + 40005, 0},
					 {base + 40005, text.size() - 40005}};
		}
		std::fill(p.memory->memory.begin(), p.memory->memory.end(), 0);
		ASSERT_EQ(p.file.io(from, 100, true), static_cast<int64_t>(text.size()));
		EXPECT_TRUE(p.bytes().substr(100, text.size()) == text);
		std::string back(text.size(), '\0');
		kd_iter into = target_in(back);
		into.user = kind != 1;
		if (kind == 2)
			into.segments = {{into.segments[0].base, 999999},
					 {into.segments[0].base + 999999, back.size() - 999999}};
		ASSERT_EQ(p.file.io(into, 100, false), static_cast<int64_t>(text.size()));
		EXPECT_TRUE(back == text);
	}
}

TEST(Map, BadMemoryIsAnErrorOrAShortTransfer)
{
	for (bool write : {true, false})
		for (std::size_t len : {std::size_t{100}, std::size_t{40000}, std::size_t{2 * mib}})
			for (std::size_t at : {std::size_t{0}, len / 2, len - 1}) {
				Mapped p(3);
				std::string buffer(len, 'x');
				kd_iter iter = target_in(buffer);

				iter.fault_at = at;
				int64_t ret = p.file.io(iter, 0, write);
				EXPECT_TRUE(ret == -KD_EFAULT ||
					    (ret > 0 && ret <= static_cast<int64_t>(at)))
					<< ret;
				EXPECT_EQ(p.file.pwrite("after", 10), 5);
			}
}

TEST(Map, Async)
{
	for (bool poll_only : {false, true}) {
		Mapped p(PairOptions{.channel = [&](kd_channel_params &c) {
			c.depth = 4;
			if (poll_only)
				c.queues = 0, c.poll_queues = 1;
		}});
		constexpr std::size_t count = 40;
		std::vector<std::string> out(count), in(count);
		std::vector<AsyncIo> writes(count), reads(count);
		auto all = [](const std::vector<AsyncIo> &list) {
			return std::all_of(list.begin(), list.end(),
					   [](const AsyncIo &io) { return io.done; });
		};
		for (std::size_t i = 0; i < count; i++) {
			out[i] = pattern(i, 4096);
			kd_iter from = source_of(out[i]);
			ASSERT_EQ(p.file.io(from, i * 4096, true, 0, &writes[i]), KD_IO_QUEUED);
		}
		ASSERT_TRUE(p.w.run_until([&] { return all(writes); }));
		for (std::size_t i = 0; i < count; i++) {
			EXPECT_EQ(writes[i].result, 4096);
			in[i].resize(4096);
			kd_iter into = target_in(in[i]);
			ASSERT_EQ(p.file.io(into, i * 4096, false, 0, &reads[i]), KD_IO_QUEUED);
		}
		ASSERT_TRUE(p.w.run_until([&] { return all(reads); }));
		for (std::size_t i = 0; i < count; i++) {
			EXPECT_EQ(reads[i].result, 4096);
			EXPECT_TRUE(in[i] == out[i]) << i;
		}
	}
}

TEST(Map, AsyncWithoutWaiting)
{
	Mapped p(PairOptions{.channel = [](kd_channel_params &c) { c.depth = 2; }});
	std::string text = pattern(1, 4096);
	AsyncIo first, second, third;
	kd_iter a = source_of(text), b = a, c = a;

	p.w.set_stuck(p.b, true);
	EXPECT_EQ(p.file.io(a, 0, true, KD_IO_NOWAIT, &first), KD_IO_QUEUED);
	EXPECT_EQ(p.file.io(b, 4096, true, KD_IO_NOWAIT, &second), KD_IO_QUEUED);
	EXPECT_EQ(p.file.io(c, 8192, true, KD_IO_NOWAIT, &third), -KD_EAGAIN);
	p.w.set_stuck(p.b, false);
	EXPECT_TRUE(p.w.run_until([&] { return first.done && second.done; }));
	EXPECT_EQ(first.result, 4096);
	/* what spans two keys, and what cannot be pinned, is not for this way */
	kd_iter across = source_of(text);
	EXPECT_EQ(p.file.io(across, 2 * mib - 5, true, KD_IO_NOWAIT, &third), -KD_EAGAIN);
	EXPECT_EQ(p.file.io(across, 2 * mib - 5, true, 0, &third), 4096);
	EXPECT_EQ(p.file.pwrite(text, 0, KD_IO_NOWAIT), -KD_EAGAIN);
	EXPECT_FALSE(third.done);
}

TEST(Map, PollingNeedsAPollQueue)
{
	Mapped p(1);

	EXPECT_EQ(p.file.pread(10, 0, KD_IO_POLL), "!" + std::to_string(KD_EOPNOTSUPP));
}

TEST(Map, ReadOnly)
{
	{
		Mapped p(PairOptions{}, mib, true);
		int err = 0;

		EXPECT_FALSE(static_cast<bool>(open_map(p.w, "m", true, &err)));
		EXPECT_EQ(err, KD_EACCES);
		EXPECT_EQ(p.file.pwrite("x", 0), -KD_EACCES);
		EXPECT_EQ(p.file.pread(3, 0), std::string(3, '\0'));
		for (const auto &mr : p.w.mrs)
			EXPECT_FALSE(mr->region && mr->writable);
	}
	Pair p(1);
	ASSERT_TRUE(p.up());
	ASSERT_EQ(add_export(p.w, "mem", "store", mib), 0);
	ASSERT_EQ(add_map(p.w, "m", "c0", "mem", true), 0);
	ASSERT_TRUE(run_until_mapped(p.w, "m"));
	int err = 0;
	EXPECT_FALSE(static_cast<bool>(open_map(p.w, "m", true, &err)));
	EXPECT_EQ(err, KD_EACCES);
	struct kd_map_info info;
	ASSERT_TRUE(map_info(p.w, "m", info));
	EXPECT_TRUE(info.params.read_only);
	for (const auto &mr : p.w.mrs)
		EXPECT_FALSE(mr->region && mr->writable);
}

TEST(Map, Info)
{
	Mapped p(4);
	struct kd_map_info map;
	struct kd_export_info from;

	ASSERT_TRUE(map_info(p.w, "m", map));
	ASSERT_TRUE(export_info(p.w, "mem", from));
	EXPECT_EQ(map.size, p.size);
	EXPECT_EQ(map.instance, from.instance);
	EXPECT_EQ(map.keys, 3u);
	EXPECT_EQ(map.key_bytes, 2 * mib);
	EXPECT_EQ(map.opens, 1u);
	EXPECT_EQ(from.maps, 1u);
	EXPECT_STREQ(from.params.listener, "store");
	struct kd_channel_stats stats;
	p.file.pread(10, 0);
	p.file.pwrite(std::string(mib, 'x'), 0);
	ASSERT_TRUE(p.w.stats("c0", stats));
	EXPECT_EQ(stats.map_reads, 1u);
	EXPECT_EQ(stats.map_read_bytes, 10u);
	/* a buffer that begins inside a page has one page more than one request takes */
	EXPECT_GE(stats.map_writes, 1u);
	EXPECT_LE(stats.map_writes, 2u);
	EXPECT_EQ(stats.map_write_bytes, mib);
	EXPECT_GT(stats.map_pinned_bytes, mib - 4096);
	EXPECT_LE(stats.map_pinned_bytes, mib);
	EXPECT_EQ(stats.map_waits, 0u);
}

TEST(Map, Refused)
{
	Pair p(5);
	kd_error error{};

	ASSERT_TRUE(p.up());
	ASSERT_EQ(add_export(p.w, "mem", "store", mib), 0);
	EXPECT_EQ(add_export(p.w, "mem", "store", mib, false, &error), KD_EEXIST);
	EXPECT_EQ(add_export(p.w, "other", "nobody", mib, false, &error), KD_ENOENT);
	EXPECT_EQ(add_export(p.w, "other", "store", 0, false, &error), KD_ERANGE);
	EXPECT_EQ(add_export(p.w, "other", "store", (16ULL << 30) + 1, false, &error), KD_ERANGE);
	EXPECT_EQ(add_export(p.w, "other", "store", 16ULL << 30, false, &error), KD_ENOSPC);
	EXPECT_NE(std::string(error.text).find("17178820608"), std::string::npos) << error.text;
	EXPECT_EQ(add_export(p.w, "0", "store", mib, false, &error), KD_EINVAL);
	EXPECT_EQ(del_export(p.w, "other"), KD_ENOENT);

	EXPECT_EQ(add_map(p.w, "m", "nobody", "mem"), KD_ENOENT);
	EXPECT_EQ(add_map(p.w, "m", "store.0", "mem"), KD_EINVAL);
	EXPECT_EQ(add_map(p.w, "c0", "c0", "mem"), KD_EEXIST);
	EXPECT_EQ(add_map(p.w, "m", "c0", "a b"), KD_EINVAL);
	EXPECT_EQ(del_map(p.w, "m"), KD_ENOENT);
	/* what the peer refuses removes itself */
	ASSERT_EQ(add_map(p.w, "m", "c0", "nothing"), 0);
	ASSERT_TRUE(run_until_unmapped(p.w, "m"));
	const EventRecord *last = p.w.last_error("m");
	ASSERT_TRUE(last);
	EXPECT_EQ(last->err, KD_ENOENT);
	ASSERT_EQ(add_map(p.w, "m", "c0", "mem"), 0);
	ASSERT_TRUE(run_until_mapped(p.w, "m"));
	EXPECT_EQ(add_map(p.w, "m", "c0", "mem"), KD_EEXIST);
	EXPECT_EQ(p.w.connect("m", "10.0.0.2", port), KD_EEXIST);
	ASSERT_EQ(add_map(p.w, "m2", "c0", "mem"), 0);
	ASSERT_TRUE(run_until_unmapped(p.w, "m2"));
	EXPECT_EQ(p.w.last_error("m2")->err, KD_EBUSY);
	ASSERT_EQ(p.w.del("c0"), 0);
	ASSERT_TRUE(p.w.run_until_gone("store.0"));
	EXPECT_EQ(map_state(p.w, "m"), KDIRECT_MAP_DEAD);
}

TEST(Map, SeveralChannelsShareAnExport)
{
	Pair p(6);

	ASSERT_TRUE(p.up());
	ASSERT_EQ(p.w.connect("c1", "10.0.0.2", port), 0);
	ASSERT_TRUE(p.w.run_until_live("c1"));
	ASSERT_EQ(add_export(p.w, "mem", "store", mib), 0);
	ASSERT_EQ(add_map(p.w, "m0", "c0", "mem"), 0);
	ASSERT_EQ(add_map(p.w, "m1", "c1", "mem"), 0);
	ASSERT_TRUE(run_until_mapped(p.w, "m0") && run_until_mapped(p.w, "m1"));
	MapFile a = open_map(p.w, "m0"), b = open_map(p.w, "m1");
	EXPECT_EQ(a.pwrite("hello", 9), 5);
	EXPECT_EQ(b.pread(5, 9), "hello");
	ASSERT_EQ(del_export(p.w, "mem"), 0);
	ASSERT_TRUE(run_until_unexported(p.w, "mem"));
	EXPECT_EQ(a.pread(5, 9), "!" + std::to_string(KD_ESTALE));
	EXPECT_EQ(b.pwrite("x", 0), -KD_ESTALE);
	EXPECT_TRUE(p.w.run_until([&] { return map_state(p.w, "m0") == KDIRECT_MAP_DEAD; }));
	/* a new export of the name is another one */
	ASSERT_EQ(add_export(p.w, "mem", "store", mib), 0);
	EXPECT_EQ(a.pread(5, 9), "!" + std::to_string(KD_ESTALE));
	ASSERT_EQ(del_map(p.w, "m0"), 0);
	ASSERT_TRUE(run_until_unmapped(p.w, "m0"));
}

TEST(Map, ManyMappingsOfOneChannel)
{
	Pair p(7);

	ASSERT_TRUE(p.up());
	for (int i = 0; i < 65; i++) {
		std::string name = "e" + std::to_string(i);
		kd_error error{};

		ASSERT_EQ(add_export(p.w, name, "store", 4096), 0);
		int err = add_map(p.w, "m" + std::to_string(i), "c0", name, false, &error);
		EXPECT_EQ(err, i < 64 ? 0 : KD_ENFILE) << error.text;
	}
	for (int i = 0; i < 64; i++)
		ASSERT_TRUE(run_until_mapped(p.w, "m" + std::to_string(i))) << i;
	ASSERT_EQ(del_map(p.w, "m5"), 0);
	ASSERT_TRUE(run_until_unmapped(p.w, "m5"));
	ASSERT_EQ(add_map(p.w, "m64", "c0", "e64"), 0);
	ASSERT_TRUE(run_until_mapped(p.w, "m64"));
}

/* More keys than one message holds. */
TEST(Map, LargeTables)
{
	Mapped p(PairOptions{.device = {.max_mr_pages = 16}}, 9 * mib + 1);
	struct kd_map_info info;
	std::string text = pattern(1, 3 * mib);

	ASSERT_TRUE(map_info(p.w, "m", info));
	EXPECT_EQ(info.keys, 145u);
	EXPECT_EQ(p.file.pwrite(text, 5 * mib + 17), static_cast<int64_t>(text.size()));
	EXPECT_TRUE(p.bytes().substr(5 * mib + 17, text.size()) == text);
	EXPECT_TRUE(p.file.pread(text.size(), 5 * mib + 17) == text);
	EXPECT_EQ(p.file.pwrite("z", 9 * mib), 1);
}

} // namespace
