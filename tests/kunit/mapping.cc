// SPDX-License-Identifier: GPL-2.0-only
// A mapping and what is granted to one: every state with everything that can be said, and
// with what ends it.
#include "core_cases.h"
#include "lone.hh"

using namespace kd;
using wire::MapInfo;
using wire::MapOp;
using Phase = Grant::Phase;

namespace
{

// A mapping that its channel does not know of: nothing drives it but the case.
class Lone
{
public:
	explicit Lone(struct kunit *test) : channel(test)
	{
		if (!channel)
			return;
		kd_map_params params{};
		kd_format(params.name, sizeof(params.name), "kdkm");
		mapping = kd_mapping::create(channel.sleepable(), *channel, params);
		if (!mapping)
			kdk_fail(test, __FILE__, __LINE__, "no memory for a mapping");
	}
	~Lone()
	{
		if (mapping)
			mapping->put(channel.sleepable());
	}
	Lone(const Lone &) = delete;
	Lone &operator=(const Lone &) = delete;
	explicit operator bool() const { return mapping; }

	// As if the peer had said what leads there: an export with one key, which is not told.
	void set(MapTalk talk) const
	{
		SpinGuard guard(channel->ctrl_lock);
		mapping->talk = talk;
		mapping->size = 4096;
		mapping->key_bytes = 4096;
	}
	[[nodiscard]] bool make_keys(uint32_t count) const
	{
		mapping->keys = create_array<wire::RemoteKey>(channel.sleepable(), count);
		mapping->nr_keys = count;
		return mapping->keys;
	}
	bool hear(const MapInfo &info) const
	{
		SpinGuard guard(channel->ctrl_lock);
		return mapping->hear(info);
	}
	void step() const
	{
		while (mapping->step(channel.sleepable()))
			;
	}

	LoneChannel channel;
	kd_mapping *mapping = nullptr;
};

MapInfo message(MapOp op)
{
	MapInfo info{};
	info.op = op;
	if (op == MapOp::Mapped) {
		info.instance = 7;
		info.size = info.key_bytes = 4096;
	}
	if (op == MapOp::Refused)
		info.error = KD_ENOENT;
	if (op == MapOp::Keys) {
		info.nr_keys = 1;
		info.keys[0] = {4096, 17};
	}
	return info;
}

// Where it leads, or `from` if it must not come.
struct Heard {
	bool good;
	MapTalk next;
};

Heard heard(MapTalk from, MapOp op)
{
	switch (op) {
	case MapOp::Mapped:
		if (from == MapTalk::Asked)
			return {true, MapTalk::Answered};
		break;
	case MapOp::Refused:
		if (from == MapTalk::Asked)
			return {true, MapTalk::Gone};
		break;
	case MapOp::Keys:
		if (from == MapTalk::Keys)
			return {true, MapTalk::Held};
		break;
	case MapOp::Revoke:
		return {from != MapTalk::Ask && from != MapTalk::Asked && from != MapTalk::Gone,
			from};
	case MapOp::Unmapped:
		if (from == MapTalk::Unmapping)
			return {true, MapTalk::Gone};
		break;
	case MapOp::Map:
	case MapOp::Ready:
	case MapOp::Unmap: break;
	}
	return {false, from};
}

// While the mapping is being made: where a step leads that is to end it.
MapTalk ended(MapTalk from, bool revoked)
{
	switch (from) {
	case MapTalk::Ask: return MapTalk::Gone;
	case MapTalk::Answered:
	case MapTalk::Ready:
	case MapTalk::Held: return MapTalk::Unmap;
	case MapTalk::Keys: return revoked ? MapTalk::Unmap : from; // what comes is waited for
	case MapTalk::Asked:
	case MapTalk::Unmap:
	case MapTalk::Unmapping:
	case MapTalk::Gone: break;
	}
	return from;
}

MapState ended_state(MapTalk next)
{
	switch (next) {
	case MapTalk::Gone: return MapState::Dead;
	case MapTalk::Unmap:
	case MapTalk::Unmapping: return MapState::Leaving;
	default: return MapState::Asking;
	}
}

// Takes the grant to `next`; false: the peer must not say that now.
bool granted(Phase from, MapOp op, bool revoke_said, Phase &next)
{
	next = from;
	bool open = from == Phase::Offered || from == Phase::Given;
	if (op == MapOp::Map && from == Phase::Free)
		next = Phase::Asked;
	else if (op == MapOp::Ready && from == Phase::Offered)
		next = revoke_said ? from : Phase::Keying; // the two crossed
	else if (op == MapOp::Unmap && open)
		next = Phase::Returned;
	else
		return false;
	return true;
}

} // namespace

void kdk_case_map_message(struct kunit *test)
{
	auto talk = MapTalk(kdk_param(test)->a);
	auto op = MapOp(kdk_param(test)->b);
	Lone lone(test);
	if (!lone)
		return;
	ASSERT(lone.make_keys(1));
	lone.set(talk);
	Heard wanted = heard(talk, op);
	EXPECT_EQ(lone.hear(message(op)), wanted.good);
	EXPECT_EQ(lone.mapping->talk, wanted.next);
	EXPECT_EQ(lone.mapping->revoked.load(), op == MapOp::Revoke && wanted.good);
	EXPECT_EQ(lone.mapping->told, talk == MapTalk::Keys && op == MapOp::Keys);
}

// A table of keys comes in order, without gaps, and no further than it goes.
void kdk_case_map_keys(struct kunit *test)
{
	Lone lone(test);
	if (!lone)
		return;
	constexpr uint32_t count = wire::map_keys_at_once + 3;
	ASSERT(lone.make_keys(count));
	lone.set(MapTalk::Keys);
	MapInfo info = message(MapOp::Keys);
	info.nr_keys = wire::map_keys_at_once;
	for (uint32_t i = 0; i < info.nr_keys; i++)
		info.keys[i] = {4096 * (i + 1), 100 + i};
	info.first = 1;
	EXPECT(!lone.hear(info));
	info.first = 0;
	EXPECT(lone.hear(info));
	EXPECT_EQ(lone.mapping->talk, MapTalk::Keys);
	EXPECT(!lone.hear(info)); // twice
	info.first = wire::map_keys_at_once;
	EXPECT(!lone.hear(info)); // more than are left
	// taking it back has to wait until they all came
	EXPECT(!lone.hear(message(MapOp::Revoke)));
	info.nr_keys = 3;
	EXPECT(lone.hear(info));
	EXPECT_EQ(lone.mapping->talk, MapTalk::Held);
	for (uint32_t i = 0; i < count; i++)
		EXPECT_EQ(lone.mapping->keys[i].rkey, 100 + i % wire::map_keys_at_once);
}

void kdk_case_map_ends(struct kunit *test)
{
	auto talk = MapTalk(kdk_param(test)->a);
	bool revoked = kdk_param(test)->b;
	Lone lone(test);
	if (!lone)
		return;
	lone.channel.set(State::Live);
	lone.set(talk);
	(revoked ? lone.mapping->revoked : lone.mapping->delete_requested).store(true);
	lone.step();
	MapTalk next = ended(talk, revoked);
	EXPECT_EQ(lone.mapping->talk, next);
	EXPECT_EQ(lone.mapping->current(), ended_state(next));
	EXPECT_EQ(lone.mapping->error.err, revoked ? KD_ESTALE : 0);
	// never live: nothing of it stays to be looked at
	EXPECT_EQ(lone.mapping->removed, next == MapTalk::Gone);
}

// Live until it is deleted, taken back, or its channel ends; then there is no I/O.
void kdk_case_map_lives(struct kunit *test)
{
	enum { Deleted, Revoked, ChannelEnds };
	uint32_t what = kdk_param(test)->a;
	Lone lone(test);
	if (!lone)
		return;
	lone.channel.set(State::Live);
	ASSERT(lone.make_keys(1));
	lone.set(MapTalk::Held);
	EXPECT_EQ(lone.mapping->refusal(), KD_EPIPE);
	lone.step();
	ASSERT_EQ(lone.mapping->current(), MapState::Live);
	EXPECT_EQ(lone.mapping->refusal(), 0);
	EXPECT(lone.mapping->node != nullptr);
	int refusal = KD_EPIPE;
	if (what == Deleted) {
		lone.mapping->delete_requested = true;
		refusal = KD_ENODEV;
	} else if (what == Revoked) {
		EXPECT(lone.hear(message(MapOp::Revoke)));
		refusal = KD_ESTALE;
	} else {
		lone.channel.set(State::Dead);
	}
	lone.step();
	EXPECT_EQ(lone.mapping->refusal(), refusal);
	EXPECT_EQ(lone.mapping->current(),
		  what == ChannelEnds ? MapState::Dead : MapState::Leaving);
	EXPECT_EQ(lone.mapping->talk, what == ChannelEnds ? MapTalk::Gone : MapTalk::Unmap);
	// it was said, and the peer has answered
	lone.set(MapTalk::Gone);
	lone.step();
	EXPECT_EQ(lone.mapping->current(), MapState::Dead);
	EXPECT_EQ(lone.mapping->removed, what == Deleted);
	lone.mapping->delete_requested = true;
	lone.step();
	EXPECT(lone.mapping->removed && !lone.mapping->node);
}

// The initiator's messages in each phase of a grant; what must not come ends the channel.
void kdk_case_grant_message(struct kunit *test)
{
	auto phase = Phase(kdk_param(test)->a);
	auto op = MapOp(kdk_param(test)->b);
	for (bool revoke_said : {false, true}) {
		LoneChannel channel(test);
		if (!channel)
			return;
		channel.set(State::Dead); // its work leaves it as it is
		channel->grants = create_array<Grant>(channel.sleepable(), wire::max_maps);
		ASSERT(channel->grants != nullptr);
		Grant &grant = channel->grants[0];
		grant.phase = phase;
		grant.revoke = grant.revoke_said = revoke_said;
		Phase wanted;
		bool good = granted(phase, op, revoke_said, wanted);
		channel->map_received(message(op));
		EXPECT_EQ(channel.error(), good ? 0 : KD_EPROTO);
		EXPECT_EQ(grant.phase, wanted);
	}
}
