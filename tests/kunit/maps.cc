// SPDX-License-Identifier: GPL-2.0-only
// Remote memory over a real device: an export of one end, a mapping of the other, and the
// memory of a process that is read and written through it.
#include "core_cases.h"
#include "pair.hh"

using namespace kd;

namespace
{

constexpr uint32_t buffer_bytes = 5 << 20;

class Mapped
{
public:
	Mapped(struct kunit *t, uint64_t bytes, bool read_only = false) : test(t), pair(t)
	{
		if (!pair)
			return;
		range = kdk_range_create(buffer_bytes);
		kd_export_params e{};
		kd_format(e.name, sizeof(e.name), "kdke");
		kd_format(e.listener, sizeof(e.listener), "kdkp");
		e.size = bytes;
		e.read_only = read_only;
		kd_map_params m{};
		kd_format(m.name, sizeof(m.name), "kdkm");
		kd_format(m.channel, sizeof(m.channel), "kdkc");
		kd_format(m.export_name, sizeof(m.export_name), "kdke");
		int err = range ? kd_export_new(kdk_net(), &e, &pair.error) : KD_ENOMEM;
		if (!err)
			err = kd_map_new(kdk_net(), &m, &pair.error);
		if (err) {
			kdk_fail(test, __FILE__, __LINE__, "error %d: %s", err, pair.error.text);
			return;
		}
		MutexGuard guard(registry().lock, pair.s);
		mapping = registry().find_mapping(kdk_net(), "kdkm");
		if (mapping)
			mapping->get();
	}
	// What was live stays to be looked at until it is deleted.
	~Mapped()
	{
		if (!pair)
			return;
		if (file)
			kd_desc_release(file);
		(void)kd_map_del(kdk_net(), "kdkm", &pair.error);
		(void)kd_export_del(kdk_net(), "kdke", &pair.error);
		if (mapping)
			EXPECT(pair.eventually([&] { return mapping->removed; }));
		EXPECT(exports_gone());
		if (mapping)
			mapping->put(pair.s);
		kdk_range_destroy(range);
	}
	Mapped(const Mapped &) = delete;
	Mapped &operator=(const Mapped &) = delete;
	// With an open file.
	[[nodiscard]] bool live()
	{
		return mapping && EXPECT(pair.eventually([&] {
			       return mapping->current() == MapState::Live;
		       })) &&
		       EXPECT_EQ(kd_map_open(mapping, true, !mapping->read_only, &file), 0);
	}
	[[nodiscard]] bool dead()
	{
		return EXPECT(
			pair.eventually([&] { return mapping->current() == MapState::Dead; }));
	}
	bool exports_gone()
	{
		return pair.eventually([] {
			struct kd_export_info info;
			return kd_export_info(kdk_net(), "kdke", &info) == KD_ENOENT;
		});
	}
	int64_t read(uint64_t pos, uint32_t offset, uint32_t len)
	{
		return kdk_range_io(range, offset, len, file, pos, false);
	}
	int64_t write(uint64_t pos, uint32_t offset, uint32_t len)
	{
		return kdk_range_io(range, offset, len, file, pos, true);
	}

	struct kunit *test;
	Pair pair;
	kdk_range *range = nullptr;
	kd_mapping *mapping = nullptr;
	kd_desc_file *file = nullptr;
};

} // namespace

// Bytes come back as they were written, wherever they lie, and nothing beside them changes.
void kdk_case_map_transfer(struct kunit *test)
{
	uint32_t len = kdk_param(test)->a, pos = kdk_param(test)->b;
	Mapped m(test, 6 << 20);
	if (!m.pair || !m.live())
		return;
	ASSERT(kdk_range_fill(m.range, 0, len + 200, 0x55));
	ASSERT(kdk_range_fill(m.range, 100, len, 7));
	ASSERT_EQ(m.write(pos, 100, len), len);
	ASSERT(kdk_range_fill(m.range, 0, len + 200, 0x55));
	ASSERT_EQ(m.read(pos, 100, len), len);
	EXPECT_EQ(kdk_range_differs(m.range, 100, len, 7), len);
	// what was there before is zero
	uint8_t beside[2] = {1, 1};
	if (pos)
		EXPECT_EQ(m.read(pos - 1, 0, 1), 1);
	EXPECT_EQ(m.read(pos + len, 1, 1), 1);
	ASSERT(kdk_range_get(m.range, 0, 2, beside));
	EXPECT(pos == 0 || beside[0] == 0);
	EXPECT_EQ(beside[1], 0);
	EXPECT_EQ(kdk_range_pinned(m.range), 0);
}

void kdk_case_map_ends_of_export(struct kunit *test)
{
	constexpr uint32_t size = 3 * 4096 + 5;
	Mapped m(test, size);
	if (!m.pair || !m.live())
		return;
	EXPECT_EQ(kd_map_size(m.file), size);
	EXPECT_EQ(m.write(size - 3, 0, 10), 3);
	EXPECT_EQ(m.read(size - 3, 0, 10), 3);
	EXPECT_EQ(m.read(size, 0, 1), 0);
	EXPECT_EQ(m.write(size, 0, 1), -KD_ENOSPC);
	EXPECT_EQ(m.read(UINT64_MAX, 0, 1), 0);
	EXPECT_EQ(m.write(UINT64_MAX, 0, 1), -KD_ENOSPC);
	EXPECT_EQ(m.read(0, 0, 0), 0);
}

void kdk_case_map_read_only(struct kunit *test)
{
	Mapped m(test, 65536, true);
	if (!m.pair || !m.live())
		return;
	kd_desc_file *another = nullptr;
	EXPECT_EQ(kd_map_open(m.mapping, true, true, &another), KD_EACCES);
	EXPECT(!another);
	EXPECT_EQ(m.write(0, 0, 1), -KD_EACCES);
	EXPECT_EQ(m.read(0, 0, 65536), 65536);
}

// Deleting the export takes back what was granted, and then its memory is free.
void kdk_case_map_revoked(struct kunit *test)
{
	Mapped m(test, 4 << 20);
	if (!m.pair || !m.live())
		return;
	ASSERT_EQ(m.write(0, 0, 1 << 20), 1 << 20);
	ASSERT_EQ(kd_export_del(kdk_net(), "kdke", &m.pair.error), 0);
	EXPECT(m.exports_gone());
	EXPECT_EQ(m.read(0, 0, 1), -KD_ESTALE);
	ASSERT(m.dead());
	EXPECT_EQ(m.mapping->error.err, KD_ESTALE);
	EXPECT(m.pair.from->current() == State::Live && m.pair.to->current() == State::Live);
}

// Deleting the mapping gives the keys back; the export stays, and can be mapped anew.
void kdk_case_map_deleted(struct kunit *test)
{
	Mapped m(test, 4 << 20);
	if (!m.pair || !m.live())
		return;
	ASSERT_EQ(kd_map_del(kdk_net(), "kdkm", &m.pair.error), 0);
	ASSERT(m.dead());
	EXPECT_EQ(m.read(0, 0, 1), -KD_ENODEV);
	struct kd_export_info info {
	};
	ASSERT_EQ(kd_export_info(kdk_net(), "kdke", &info), 0);
	EXPECT_EQ(info.maps, 0);
}

void kdk_case_map_channel_ends(struct kunit *test)
{
	Mapped m(test, 4 << 20);
	if (!m.pair || !m.live())
		return;
	m.pair.end();
	ASSERT(m.dead());
	EXPECT_EQ(m.read(0, 0, 1), -KD_EPIPE);
	struct kd_export_info info {
	};
	ASSERT_EQ(kd_export_info(kdk_net(), "kdke", &info), 0);
	EXPECT_EQ(info.maps, 0);
}
