// SPDX-License-Identifier: GPL-2.0-only
#include "event.h"

#include <cerrno>

#include <gtest/gtest.h>

#include "builder.h"
#include "kdirect_netlink.h"

namespace kdirect
{

namespace
{

Event event(kdirect_event type, const std::string &name, std::optional<uint64_t> state = {})
{
	Event event;

	event.type = type;
	event.name = name;
	event.state = state;
	return event;
}

TEST(ParseEvent, Channel)
{
	const Event event = parse_event(
		Builder()
			.number<uint32_t>(KDIRECT_A_EVENT_TYPE, KDIRECT_EVENT_CHANNEL_STATE)
			.string(KDIRECT_A_NAME, "store.0")
			.string(KDIRECT_A_LISTENER, "store")
			.number<uint32_t>(KDIRECT_A_OLD_STATE, KDIRECT_STATE_LIVE)
			.number<uint32_t>(KDIRECT_A_STATE, KDIRECT_STATE_RECOVERING)
			.number<uint32_t>(KDIRECT_A_ERROR, ETIMEDOUT)
			.string(KDIRECT_A_CAUSE, "no sign of life")
			.attributes());

	EXPECT_EQ(event.type, KDIRECT_EVENT_CHANNEL_STATE);
	EXPECT_EQ(event.name, "store.0");
	EXPECT_EQ(event.listener, "store");
	EXPECT_EQ(event.old_state, KDIRECT_STATE_LIVE);
	EXPECT_EQ(event.state, KDIRECT_STATE_RECOVERING);
	EXPECT_EQ(event.error, ETIMEDOUT);
	EXPECT_EQ(event.cause, "no sign of life");
}

TEST(ParseEvent, DeviceHasItsOwnName)
{
	const Event event = parse_event(
		Builder()
			.number<uint32_t>(KDIRECT_A_EVENT_TYPE, KDIRECT_EVENT_DEVICE_ADDED)
			.string(KDIRECT_A_DEV_NAME, "rxe0")
			.attributes());

	EXPECT_EQ(event.name, "rxe0");
	EXPECT_EQ(event.state, std::nullopt);
}

TEST(ParseEvent, EmptyMessageIsNoKnownEvent)
{
	EXPECT_EQ(parse_event(Attributes()).type, UINT64_MAX);
}

Event failing()
{
	Event failing = event(KDIRECT_EVENT_CHANNEL_STATE, "store.0", KDIRECT_STATE_RECOVERING);

	failing.old_state = KDIRECT_STATE_LIVE;
	failing.listener = "store";
	failing.error = ETIMEDOUT;
	failing.cause = "no sign\nof life";
	return failing;
}

TEST(Describe, ChangeOfState)
{
	EXPECT_EQ(describe(failing()), "channel store.0 live -> recovering listener store "
				       "error ETIMEDOUT cause no sign\\x0aof life");
}

TEST(Describe, StatesBelongToTheirOwnEvent)
{
	Event removed = failing();

	removed.type = KDIRECT_EVENT_CHANNEL_REMOVED;
	removed.error = 0;
	removed.cause.clear();
	EXPECT_EQ(describe(removed), "channel store.0 removed listener store");
	EXPECT_EQ(to_json(removed).dump(),
		  R"({"event":"channel-removed","name":"store.0","listener":"store"})");
}

TEST(Describe, Json)
{
	EXPECT_EQ(to_json(failing()).dump(),
		  R"({"event":"channel-state","name":"store.0","old_state":"live",)"
		  R"("state":"recovering","listener":"store","errno":110,"error":"ETIMEDOUT",)"
		  R"("cause":"no sign\nof life"})");
}

TEST(Describe, UnknownEvent)
{
	Event unknown;

	unknown.type = 99;
	unknown.name = "x";
	EXPECT_EQ(describe(unknown), "event 99 x");
}

TEST(Judge, Live)
{
	EXPECT_EQ(judge(event(KDIRECT_EVENT_CHANNEL_ADDED, "c0"), "c0"), Verdict::waiting);
	EXPECT_EQ(judge(event(KDIRECT_EVENT_CHANNEL_STATE, "c0", KDIRECT_STATE_CONNECTING), "c0"),
		  Verdict::waiting);
	EXPECT_EQ(judge(event(KDIRECT_EVENT_CHANNEL_STATE, "c0", KDIRECT_STATE_LIVE), "c0"),
		  Verdict::live);
	EXPECT_EQ(judge(event(KDIRECT_EVENT_CHANNEL_STATE, "c0"), "c0"), Verdict::waiting);
}

TEST(Judge, Removed)
{
	EXPECT_EQ(judge(event(KDIRECT_EVENT_CHANNEL_STATE, "c0", KDIRECT_STATE_DELETING), "c0"),
		  Verdict::waiting)
		<< "the cause comes with the end";
	EXPECT_EQ(judge(event(KDIRECT_EVENT_CHANNEL_REMOVED, "c0"), "c0"), Verdict::removed);
}

TEST(Judge, OthersDoNotMatter)
{
	EXPECT_EQ(judge(event(KDIRECT_EVENT_CHANNEL_STATE, "c1", KDIRECT_STATE_LIVE), "c0"),
		  Verdict::waiting);
	EXPECT_EQ(judge(event(KDIRECT_EVENT_CHANNEL_REMOVED, "c1"), "c0"), Verdict::waiting);
	EXPECT_EQ(judge(event(KDIRECT_EVENT_LISTENER_REMOVED, "c0"), "c0"), Verdict::waiting);
}

TEST(ParseEvent, Mapping)
{
	const Event event =
		parse_event(Builder()
				    .number<uint32_t>(KDIRECT_A_EVENT_TYPE, KDIRECT_EVENT_MAP_STATE)
				    .string(KDIRECT_A_NAME, "m0")
				    .number<uint32_t>(KDIRECT_A_OLD_MAP_STATE, KDIRECT_MAP_LIVE)
				    .number<uint32_t>(KDIRECT_A_MAP_STATE, KDIRECT_MAP_LEAVING)
				    .number<uint32_t>(KDIRECT_A_ERROR, ESTALE)
				    .string(KDIRECT_A_CAUSE, "the peer deleted the export")
				    .attributes());

	EXPECT_EQ(event.state, uint64_t{KDIRECT_MAP_LEAVING});
	EXPECT_EQ(describe(event), "map m0 live -> leaving error ESTALE cause the peer deleted the "
				   "export");
	const Json json = to_json(event);
	EXPECT_EQ(json["event"], "map-state");
	EXPECT_EQ(json["old_state"], "live");
	EXPECT_EQ(json["state"], "leaving");
}

TEST(Names, KnownAndUnknown)
{
	EXPECT_EQ(map_state_name(KDIRECT_MAP_ASKING), "asking");
	EXPECT_EQ(map_state_name(KDIRECT_MAP_DEAD + 1), "state 4");
	EXPECT_EQ(event_name(KDIRECT_EVENT_EXPORT_REMOVED), "export-removed");
	EXPECT_EQ(event_name(KDIRECT_EVENT_MAP_REMOVED), "map-removed");
	EXPECT_EQ(state_name(KDIRECT_STATE_DEAD), "dead");
	EXPECT_EQ(state_name(KDIRECT_STATE_DEAD + 1), "state 6");
	EXPECT_EQ(event_name(KDIRECT_EVENT_CHANNEL_REMOVED), "channel-removed");
	EXPECT_EQ(event_name(99), "event 99");
	EXPECT_EQ(transport_name(KDIRECT_TRANSPORT_IWARP), "iwarp");
	EXPECT_EQ(queue_kind_name(KDIRECT_QUEUE_POLL), "poll");
	EXPECT_EQ(queue_kind_name(UINT64_MAX), "kind 18446744073709551615");
}

} // namespace

} // namespace kdirect
