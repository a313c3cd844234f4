// SPDX-License-Identifier: GPL-2.0-only
#include "fields.h"

#include <cerrno>

#include <gtest/gtest.h>

#include "builder.h"
#include "kdirect_netlink.h"

namespace kdirect
{

namespace
{

constexpr Field fields[] = {
	{KDIRECT_A_STATE, "state", Format::state},
	{KDIRECT_A_ADDR, "peer", Format::endpoint},
	{KDIRECT_A_LISTENER, "listener", Format::text},
	{KDIRECT_A_ERROR, "error", Format::error},
	{KDIRECT_A_MAX_MESSAGE, "max-message", Format::size, 1},
	{KDIRECT_A_KEEP_ALIVE_MS, "keep-alive", Format::time_ms_or_off, 1},
	{KDIRECT_A_STATE_AGE_MS, "state-age", Format::time_ms, 2},
};

constexpr Field queue_fields[] = {
	{KDIRECT_A_QUEUE_INDEX, "index", Format::number},
	{KDIRECT_A_QUEUE_KIND, "kind", Format::queue_kind},
};

constexpr View queue_view{"queue", 0, {}, queue_fields};

constexpr View view{
	.object = "channel",
	.name_attr = KDIRECT_A_NAME,
	.name_key = "name",
	.fields = fields,
	.nest_attr = KDIRECT_A_QUEUE,
	.nest_key = "queues",
	.nest = &queue_view,
};

Builder channel(const std::string &name)
{
	Builder builder;

	builder.string(KDIRECT_A_NAME, name)
		.number<uint32_t>(KDIRECT_A_STATE, KDIRECT_STATE_LIVE)
		.bytes(KDIRECT_A_ADDR, {10, 0, 0, 2})
		.number<uint16_t>(KDIRECT_A_PORT, 7471)
		.number<uint32_t>(KDIRECT_A_MAX_MESSAGE, 1 << 20)
		.number<uint32_t>(KDIRECT_A_KEEP_ALIVE_MS, 0)
		.number<uint64_t>(KDIRECT_A_STATE_AGE_MS, 1500)
		.number<uint32_t>(KDIRECT_A_ERROR, 0);
	return builder;
}

Builder queue(uint16_t index, uint32_t kind)
{
	Builder builder;

	builder.number(KDIRECT_A_QUEUE_INDEX, index).number(KDIRECT_A_QUEUE_KIND, kind);
	return builder;
}

std::vector<Attributes> list(std::initializer_list<Builder> builders)
{
	std::vector<Attributes> objects;

	for (const Builder &builder : builders)
		objects.push_back(builder.attributes());
	return objects;
}

using Lines = std::vector<std::string>;

TEST(Lines, OneEach)
{
	EXPECT_EQ(to_lines(view, list({channel("c0")}), false),
		  Lines{"channel c0 state live peer 10.0.0.2:7471"});
	EXPECT_EQ(to_lines(view, {}, false), Lines{});
}

TEST(Lines, ColumnsAreAligned)
{
	Builder accepted = channel("store.10");

	accepted.string(KDIRECT_A_LISTENER, "store");
	EXPECT_EQ(to_lines(view, list({channel("c0"), accepted}), false),
		  (Lines{"channel c0       state live peer 10.0.0.2:7471",
			 "channel store.10 state live peer 10.0.0.2:7471 listener store"}));
}

TEST(Lines, DetailsAndNests)
{
	Builder builder = channel("c0");

	builder.nest(KDIRECT_A_QUEUE, queue(0, KDIRECT_QUEUE_CONTROL));
	builder.nest(KDIRECT_A_QUEUE, queue(10, KDIRECT_QUEUE_POLL));
	EXPECT_EQ(to_lines(view, list({builder}), true),
		  (Lines{"channel c0 state live peer 10.0.0.2:7471",
			 "    max-message 1M keep-alive off", "    state-age 1.5s",
			 "    queue index 0  kind control", "    queue index 10 kind poll"}));
}

TEST(Lines, TextFromElsewhereIsEscaped)
{
	Builder builder;

	builder.string(KDIRECT_A_NAME, "a\nb").string(KDIRECT_A_LISTENER, "\xff");
	EXPECT_EQ(to_lines(view, list({builder}), false), Lines{"channel a\\x0ab listener \\xff"});
}

TEST(Lines, MalformedAddressIsShownAsUnknown)
{
	Builder builder;

	builder.string(KDIRECT_A_NAME, "c0").bytes(KDIRECT_A_ADDR, {1, 2, 3});
	EXPECT_EQ(to_lines(view, list({builder}), false), Lines{"channel c0 peer ?:0"});
}

TEST(JsonOf, KeysCarryUnits)
{
	Builder builder = channel("c0");

	builder.nest(KDIRECT_A_QUEUE, queue(0, KDIRECT_QUEUE_CONTROL));
	EXPECT_EQ(to_json(view, builder.attributes()).dump(),
		  R"({"name":"c0","state":"live","peer_addr":"10.0.0.2","peer_port":7471,)"
		  R"("errno":0,"error":null,"max_message_bytes":1048576,"keep_alive_ms":0,)"
		  R"("state_age_ms":1500,"queues":[{"index":0,"kind":"control"}]})");
}

TEST(JsonOf, Error)
{
	Builder builder;

	builder.number<uint32_t>(KDIRECT_A_ERROR, ECONNRESET);
	EXPECT_EQ(to_json(view, builder.attributes()).dump(),
		  R"({"errno":104,"error":"ECONNRESET","queues":[]})");
}

TEST(Field, Prefixes)
{
	const Field allow{KDIRECT_A_ALLOW, "allow", Format::prefixes};
	Builder first, second, builder;

	first.bytes(KDIRECT_A_PREFIX_ADDR, {10, 0, 0, 0}).number<uint8_t>(KDIRECT_A_PREFIX_LEN, 8);
	second.bytes(KDIRECT_A_PREFIX_ADDR, {192, 168, 0, 0})
		.number<uint8_t>(KDIRECT_A_PREFIX_LEN, 16);
	builder.nest(KDIRECT_A_ALLOW, first).nest(KDIRECT_A_ALLOW, second);
	EXPECT_EQ(to_text(allow, builder.attributes()), "10.0.0.0/8,192.168.0.0/16");
	EXPECT_EQ(to_text(allow, Attributes()), std::nullopt);
}

TEST(Field, GuidAsTheRdmaToolShowsIt)
{
	const Field guid{KDIRECT_A_DEV_NODE_GUID, "node-guid", Format::guid};
	Builder builder;

	builder.number<uint64_t>(KDIRECT_A_DEV_NODE_GUID, 0x505400fffe123456);
	EXPECT_EQ(to_text(guid, builder.attributes()), "5054:00ff:fe12:3456");
}

} // namespace

} // namespace kdirect
