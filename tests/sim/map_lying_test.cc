// SPDX-License-Identifier: GPL-2.0-only
// Peers that lie about exports and mappings: each lie ends the channel with a reason,
// and gives nothing away.
#include "../../kmod/core/wire_map.hh"
#include "liars.h"
#include "map.h"

using namespace sim;
using wire::MapInfo;
using wire::MapOp;

namespace
{

Bytes map_bytes(const MapInfo &info)
{
	char text[wire::control_size];

	return Bytes(text, wire::encode_map(info, text));
}

MapInfo ask(const char *name, uint32_t id = 0)
{
	MapInfo info{.op = MapOp::Map, .id = id};

	std::strcpy(info.name, name);
	return info;
}

/* The messages about mappings that came, in order. */
std::vector<MapInfo> heard(const RawConnection &on)
{
	std::vector<MapInfo> list;

	for (const Bytes &text : on.received) {
		MapInfo info{};

		if (wire::is_map_message(text.data(), text.size()) &&
		    wire::decode_map(text.data(), text.size(), info))
			list.push_back(info);
	}
	return list;
}

bool hears(World &w, const RawConnection &on, MapOp op, MapInfo *out = nullptr)
{
	return w.run_until(
		[&] {
			for (const MapInfo &info : heard(on))
				if (info.op == op) {
					if (out)
						*out = info;
					return true;
				}
			return false;
		},
		10 * sec);
}

struct Initiator : RawInitiator {
	explicit Initiator(uint64_t seed) : RawInitiator(seed)
	{
		EXPECT_TRUE(live());
		EXPECT_EQ(add_export(w, "mem", "store", 100000), 0);
	}
	void tell(MapInfo info) { control.send(map_bytes(info)); }
	void tell(MapOp op, uint32_t id = 0) { tell({.op = op, .id = id}); }
	void map()
	{
		tell(ask("mem"));
		EXPECT_TRUE(hears(w, control, MapOp::Mapped));
	}
	void hold()
	{
		map();
		tell(MapOp::Ready);
		EXPECT_TRUE(hears(w, control, MapOp::Keys));
	}
	unsigned int keys() const
	{
		return static_cast<unsigned int>(std::count_if(
			w.mrs.begin(), w.mrs.end(), [](const auto &mr) { return mr->region; }));
	}
};

TEST(MapLying, AnHonestRawInitiatorIsServed)
{
	Initiator raw(1);
	MapInfo info{};

	raw.map();
	ASSERT_TRUE(hears(raw.w, raw.control, MapOp::Mapped, &info));
	EXPECT_EQ(info.size, 100000u);
	EXPECT_NE(info.instance, 0u);
	raw.tell(MapOp::Ready);
	ASSERT_TRUE(hears(raw.w, raw.control, MapOp::Keys, &info));
	ASSERT_EQ(info.nr_keys, 1u);
	memory_of(raw.w)->memory[99999] = 'z';
	raw.data.read(info.keys[0].addr + 99999, info.keys[0].rkey, 1);
	ASSERT_TRUE(raw.w.run_until([&] { return !raw.data.read_results.empty(); }, sec));
	EXPECT_EQ(raw.data.read_results[0].data, "z");
	raw.tell(MapOp::Unmap);
	EXPECT_TRUE(hears(raw.w, raw.control, MapOp::Unmapped));
	EXPECT_EQ(raw.keys(), 0u);
	raw.tell(ask("nothing"));
	EXPECT_TRUE(hears(raw.w, raw.control, MapOp::Refused, &info));
	EXPECT_EQ(info.error, KD_ENOENT);
	EXPECT_EQ(raw.w.state("store.0"), KDIRECT_STATE_LIVE);
}

/* Beyond the export there is nothing, and behind a key that was taken back. */
TEST(MapLying, KeysBoundWhatAPeerReaches)
{
	for (int kind = 0; kind < 3; kind++) {
		Initiator raw(2);
		MapInfo info{};

		raw.hold();
		ASSERT_TRUE(hears(raw.w, raw.control, MapOp::Keys, &info));
		uint64_t at = info.keys[0].addr;
		if (kind == 0)
			raw.data.read(at + 99999, info.keys[0].rkey, 2);
		if (kind == 1)
			raw.data.read(at - 1, info.keys[0].rkey, 2);
		if (kind == 2) {
			raw.tell(MapOp::Unmap);
			ASSERT_TRUE(hears(raw.w, raw.control, MapOp::Unmapped));
			raw.data.read(at, info.keys[0].rkey, 1);
		}
		ASSERT_TRUE(raw.w.run_until([&] { return !raw.data.read_results.empty(); }, sec));
		EXPECT_EQ(raw.data.read_results[0].status, uint32_t{WC_REM_ACCESS_ERR});
		raw.expect_end("a wrong access");
		EXPECT_EQ(raw.keys(), 0u);
	}
}

TEST(MapLying, InitiatorsOutOfTurn)
{
	using Lie = std::function<void(Initiator &)>;
	const std::pair<const char *, Lie> lies[] = {
		{"Ready of nothing", [](Initiator &r) { r.tell(MapOp::Ready); }},
		{"Unmap of nothing", [](Initiator &r) { r.tell(MapOp::Unmap); }},
		{"Map twice", [](Initiator &r) { r.tell(ask("mem")), r.tell(ask("mem")); }},
		{"Map of what is mapped", [](Initiator &r) { r.map(), r.tell(ask("mem")); }},
		{"Ready twice", [](Initiator &r) { r.hold(), r.tell(MapOp::Ready); }},
		{"Unmap twice",
		 [](Initiator &r) { r.hold(), r.tell(MapOp::Unmap), r.tell(MapOp::Unmap); }},
		{"Mapped",
		 [](Initiator &r) {
			 r.tell({.op = MapOp::Mapped, .key_bytes = 4096, .instance = 1, .size = 1});
		 }},
		{"Refused", [](Initiator &r) { r.tell({.op = MapOp::Refused, .error = 2}); }},
		{"Keys", [](Initiator &r) { r.hold(), r.tell({.op = MapOp::Keys, .nr_keys = 1}); }},
		{"Revoke", [](Initiator &r) { r.hold(), r.tell(MapOp::Revoke); }},
		{"Unmapped", [](Initiator &r) { r.hold(), r.tell(MapOp::Unmapped); }},
		{"an id too large", [](Initiator &r) { r.tell(MapOp::Ready, 64); }},
		{"credits",
		 [](Initiator &r) {
			 MapInfo info = ask("mem");
			 info.credits = 1000;
			 r.tell(info);
		 }},
		{"a malformed one", [](Initiator &r) { r.control.send(Bytes("\x11", 1)); }},
	};

	for (const auto &[what, lie] : lies) {
		Initiator raw(3);

		lie(raw);
		raw.expect_end(what);
		EXPECT_EQ(raw.keys(), 0u) << what;
		EXPECT_EQ(raw.w.last_error("store.0")->err, KD_EPROTO) << what;
		EXPECT_EQ(del_export(raw.w, "mem"), 0) << what;
		EXPECT_TRUE(run_until_unexported(raw.w, "mem")) << what;
	}
}

/* Whoever does not let go loses his QPs, and only then goes the memory. */
TEST(MapLying, InitiatorsThatKeepIt)
{
	for (uint64_t seed = 0; seed < 10; seed++) {
		Initiator raw(seed);

		seed % 2 ? raw.hold() : raw.map();
		uint64_t begin = raw.w.now();
		ASSERT_EQ(del_export(raw.w, "mem"), 0);
		EXPECT_TRUE(hears(raw.w, raw.control, MapOp::Revoke));
		EXPECT_EQ(raw.w.regions.size(), 1u);
		ASSERT_TRUE(run_until_unexported(raw.w, "mem"));
		EXPECT_GE(raw.w.now() - begin, 3 * sec);
		EXPECT_EQ(raw.keys(), 0u);
		raw.expect_end("no answer to Revoke");
		EXPECT_EQ(raw.w.last_error("store.0")->err, KD_ETIMEDOUT);
	}
}

TEST(MapLying, RevokeAndReadyCross)
{
	Initiator raw(5);

	raw.map();
	ASSERT_EQ(del_export(raw.w, "mem"), 0);
	EXPECT_TRUE(hears(raw.w, raw.control, MapOp::Revoke));
	raw.tell(MapOp::Ready);
	raw.tell(MapOp::Unmap);
	EXPECT_TRUE(hears(raw.w, raw.control, MapOp::Unmapped));
	EXPECT_TRUE(run_until_unexported(raw.w, "mem"));
	EXPECT_EQ(raw.w.state("store.0"), KDIRECT_STATE_LIVE);
	for (const MapInfo &info : heard(raw.control))
		EXPECT_NE(info.op, MapOp::Keys);
}

/* --- targets ------------------------------------------------------------------------ */

struct Target : RawTarget {
	explicit Target(uint64_t seed) : RawTarget(seed)
	{
		EXPECT_TRUE(live());
		EXPECT_EQ(add_map(w, "m", "c0", "mem"), 0);
		EXPECT_TRUE(hears(w, queue(0), MapOp::Map));
	}
	void tell(MapInfo info) { queue(0).send(map_bytes(info)); }
	void tell(MapOp op, uint32_t id = 0) { tell({.op = op, .id = id}); }
	void offer(uint64_t size = 3 * 4096)
	{
		tell({.op = MapOp::Mapped, .key_bytes = 4096, .instance = 9, .size = size});
		EXPECT_TRUE(hears(w, queue(0), MapOp::Ready));
	}
	void keys(uint32_t first, uint32_t count)
	{
		MapInfo info{.op = MapOp::Keys, .first = first, .nr_keys = count};

		for (uint32_t i = 0; i < count; i++) {
			RawConnection::Region region = queue(1).expose(Bytes(4096, 'k'));
			info.keys[i] = {region.addr, region.rkey};
		}
		tell(info);
	}
	void serve()
	{
		offer();
		keys(0, 3);
		EXPECT_TRUE(run_until_mapped(w, "m"));
	}
};

TEST(MapLying, AnHonestRawTargetIsRead)
{
	Target raw(1);

	raw.serve();
	MapFile file = open_map(raw.w, "m");
	EXPECT_EQ(file.size(), 3u * 4096);
	EXPECT_EQ(file.pread(5000, 4000), std::string(5000, 'k'));
	EXPECT_EQ(file.pwrite("abc", 4095), 3);
	EXPECT_EQ(file.pread(4, 4095), "abck");
	raw.tell(MapOp::Revoke);
	EXPECT_TRUE(hears(raw.w, raw.queue(0), MapOp::Unmap));
	EXPECT_EQ(file.pread(1, 0), "!" + std::to_string(KD_ESTALE));
	raw.tell(MapOp::Unmapped);
	EXPECT_TRUE(raw.w.run_until([&] { return map_state(raw.w, "m") == KDIRECT_MAP_DEAD; }));
	EXPECT_EQ(raw.w.state("c0"), KDIRECT_STATE_LIVE);
}

TEST(MapLying, TargetsOutOfTurn)
{
	using Lie = std::function<void(Target &)>;
	const std::pair<const char *, Lie> lies[] = {
		{"another id",
		 [](Target &r) { r.tell({.op = MapOp::Refused, .id = 1, .error = 2}); }},
		{"Keys first", [](Target &r) { r.keys(0, 1); }},
		{"Revoke first", [](Target &r) { r.tell(MapOp::Revoke); }},
		{"Unmapped first", [](Target &r) { r.tell(MapOp::Unmapped); }},
		{"Mapped twice",
		 [](Target &r) {
			 r.offer();
			 r.tell({.op = MapOp::Mapped, .key_bytes = 4096, .instance = 9, .size = 1});
		 }},
		{"Refused late",
		 [](Target &r) { r.offer(), r.tell({.op = MapOp::Refused, .error = 2}); }},
		{"Keys with a gap", [](Target &r) { r.offer(), r.keys(1, 1); }},
		{"Keys again", [](Target &r) { r.offer(), r.keys(0, 1), r.keys(0, 1); }},
		{"too many Keys", [](Target &r) { r.offer(), r.keys(0, 4); }},
		{"Keys after all", [](Target &r) { r.serve(), r.keys(3, 1); }},
		{"Revoke between Keys",
		 [](Target &r) { r.offer(), r.keys(0, 1), r.tell(MapOp::Revoke); }},
		{"Keys after Revoke",
		 [](Target &r) { r.offer(), r.tell(MapOp::Revoke), r.keys(0, 1); }},
		{"Revoke twice",
		 [](Target &r) { r.serve(), r.tell(MapOp::Revoke), r.tell(MapOp::Revoke); }},
		{"Unmapped unasked", [](Target &r) { r.serve(), r.tell(MapOp::Unmapped); }},
		{"Map", [](Target &r) { r.tell(ask("mem")); }},
		{"Ready", [](Target &r) { r.serve(), r.tell(MapOp::Ready); }},
		{"Unmap", [](Target &r) { r.serve(), r.tell(MapOp::Unmap); }},
	};

	for (const auto &[what, lie] : lies) {
		Target raw(2);

		lie(raw);
		EXPECT_TRUE(raw.w.run_until([&] {
			return raw.w.state("c0") == KDIRECT_STATE_DEAD;
		})) << what;
		EXPECT_EQ(raw.w.last_error("c0")->err, KD_EPROTO) << what;
		EXPECT_TRUE(raw.w.run_until([&] {
			int state = map_state(raw.w, "m");
			return state < 0 || state == KDIRECT_MAP_DEAD;
		})) << what;
	}
}

TEST(MapLying, TargetsThatDoNotAnswer)
{
	using Silence = std::function<void(Target &)>;
	const Silence silences[] = {
		[](Target &) {},
		[](Target &r) { r.offer(); },
		[](Target &r) { r.offer(), r.keys(0, 2); },
		[](Target &r) {
			r.serve();
			EXPECT_EQ(del_map(r.w, "m"), 0);
		},
	};

	for (const Silence &silence : silences) {
		Target raw(3);

		silence(raw);
		EXPECT_TRUE(
			raw.w.run_until([&] { return raw.w.state("c0") == KDIRECT_STATE_DEAD; }));
		EXPECT_EQ(raw.w.last_error("c0")->err, KD_ETIMEDOUT);
	}
}

/* Keys that are none: the wire refuses, and the channel is lost, with the reason. */
TEST(MapLying, TargetsWithWrongKeys)
{
	Target raw(4);
	MapInfo info{.op = MapOp::Keys, .nr_keys = 3};

	raw.offer();
	for (uint32_t i = 0; i < 3; i++)
		info.keys[i] = {0x1000, 0xdead00 + i};
	raw.tell(info);
	ASSERT_TRUE(run_until_mapped(raw.w, "m"));
	MapFile file = open_map(raw.w, "m");
	EXPECT_EQ(file.pread(10, 0), "!" + std::to_string(KD_EIO));
	EXPECT_TRUE(raw.w.run_until([&] { return map_state(raw.w, "m") == KDIRECT_MAP_DEAD; }));
	EXPECT_EQ(file.pread(10, 0), "!" + std::to_string(KD_EPIPE));
	EXPECT_NE(raw.w.last_error("c0")->text.find("RDMA READ failed"), std::string::npos);
}

} // namespace
