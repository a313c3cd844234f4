// SPDX-License-Identifier: GPL-2.0-only
#include "arguments.h"

#include <string>

#include <gtest/gtest.h>

#include "failure.h"
#include "quantity.h"

namespace kdirect
{

namespace
{

using Words = std::vector<std::string>;

Arguments parse(const Object &object, std::string_view command, const Words &words)
{
	return Arguments(object, *find_command(object, command), words);
}

// What the user reads, or "accepted".
std::string refusal(const Object &object, std::string_view command, const Words &words)
{
	try {
		parse(object, command, words);
	} catch (const UsageError &error) {
		return error.what();
	}
	return "accepted";
}

TEST(Arguments, RawChannelAdd)
{
	const Arguments arguments =
		parse(channel_object, "add",
		      {"r0", "to", "[fd00::1]:7471", "mode", "raw", "private-data", "6869", "hold",
		       "rnr-retry-count", "0", "poll-queues", "1"});

	EXPECT_EQ(arguments.number("mode", 9), 1U);
	EXPECT_EQ(std::get<std::string>(arguments.find("private-data")->value), "hi");
	EXPECT_TRUE(arguments.has("hold"));
	EXPECT_EQ(arguments.number("rnr-retry-count", 9), 0U);
	EXPECT_EQ(refusal(channel_object, "add",
			  {"r0", "to", "10.0.0.2:1", "mode", "raw", "private-data", "123"}),
		  "private-data '123': two hexadecimal digits for each byte");
	EXPECT_EQ(refusal(listener_object, "add",
			  {"l", "addr", "10.0.0.2", "port", "1", "mode", "raw", "private-data",
			   std::string(2 * 196, '0')}),
		  "accepted");
	EXPECT_EQ(refusal(listener_object, "add",
			  {"l", "addr", "10.0.0.2", "port", "1", "mode", "raw", "private-data",
			   std::string(2 * 197, '0')}),
		  "private-data '" + std::string(2 * 197, '0') + "': more than 196 bytes");
}

TEST(Arguments, ChannelAdd)
{
	const Arguments arguments =
		parse(channel_object, "add",
		      {"c0", "to", "10.0.0.2:7471", "from", "10.0.0.1", "queues", "2",
		       "max-message", "64K", "keep-alive", "2.5s", "nowait"});

	EXPECT_EQ(arguments.name(), "c0");
	EXPECT_EQ(arguments.number("queues", 1), 2U);
	EXPECT_EQ(arguments.number("depth", 32), 32U) << "not given";
	EXPECT_EQ(arguments.number("max-message", 0), 64U << 10);
	EXPECT_EQ(arguments.number("keep-alive", 0), 2'500 * ns_per_ms);
	EXPECT_TRUE(arguments.has("nowait"));
	EXPECT_FALSE(arguments.has("depth"));
	EXPECT_EQ(std::get<Endpoint>(arguments.find("to")->value).port, 7471);
	EXPECT_EQ(arguments.settings().size(), 6U);
}

TEST(Arguments, WordInsteadOfAValue)
{
	const Arguments off = parse(channel_object, "set", {"c0", "keep-alive", "off"});
	const Arguments none = parse(listener_object, "set", {"store", "allow", "none"});

	EXPECT_TRUE(std::holds_alternative<std::monostate>(off.settings()[0].value));
	EXPECT_TRUE(std::holds_alternative<std::monostate>(none.settings()[0].value));
	EXPECT_EQ(refusal(channel_object, "set", {"c0", "drain-timeout", "off"}),
		  "drain-timeout 'off': not a time: a number with ns, us, ms or s");
}

TEST(Arguments, OnlyRepeatedKeysRepeat)
{
	const Arguments arguments = parse(listener_object, "add",
					  {"store", "addr", "10.0.0.2", "port", "1", "allow",
					   "10.0.0.0/8", "allow", "192.168.0.0/16"});

	EXPECT_EQ(arguments.settings().size(), 4U);
	EXPECT_EQ(refusal(channel_object, "set", {"c0", "keep-alive", "1s", "keep-alive", "2s"}),
		  "keep-alive is given twice");
}

TEST(Arguments, NamesWhatIsMissing)
{
	EXPECT_EQ(refusal(channel_object, "add", {}), "a name is missing");
	EXPECT_EQ(refusal(channel_object, "add", {"c0"}), "to is missing");
	EXPECT_EQ(refusal(channel_object, "add", {"c0", "to"}), "to needs a value");
	EXPECT_EQ(refusal(listener_object, "add", {"store", "addr", "::1"}), "port is missing");
	EXPECT_EQ(refusal(channel_object, "show", {}), "accepted");
}

TEST(Arguments, NamesTheValueAndWhatIsValid)
{
	const Words to{"c0", "to", "10.0.0.2:7471"};
	const auto add = [&](const std::string &key, const std::string &value) {
		Words words = to;

		words.insert(words.end(), {key, value});
		return refusal(channel_object, "add", words);
	};

	EXPECT_EQ(add("depth", "0"), "depth '0': must be 1 to 1024");
	EXPECT_EQ(add("depth", "1"), "accepted");
	EXPECT_EQ(add("depth", "1024"), "accepted");
	EXPECT_EQ(add("depth", "1025"), "depth '1025': must be 1 to 1024");
	EXPECT_EQ(add("depth", "x"), "depth 'x': not a whole number");
	EXPECT_EQ(add("queues", "0"), "accepted");
	EXPECT_EQ(add("queues", "65"), "queues '65': must be 0 to 64");
	EXPECT_EQ(add("max-message", "4095"), "max-message '4095': must be 4K to 1M");
	EXPECT_EQ(add("max-message", "1048577"), "max-message '1048577': must be 4K to 1M");
	EXPECT_EQ(add("eager-limit", "255"), "eager-limit '255': must be 256B to 64K");
	EXPECT_EQ(add("keep-alive", "99ms"), "keep-alive '99ms': must be 100ms to 60s, or off");
	EXPECT_EQ(add("keep-alive", "100500us"),
		  "keep-alive '100500us': must be whole milliseconds");
	EXPECT_EQ(add("connect-timeout", "121s"), "connect-timeout '121s': must be 100ms to 120s");
	EXPECT_EQ(add("drain-timeout", "9ms"), "drain-timeout '9ms': must be 10ms to 60s");
	EXPECT_EQ(add("loss-timeout", "off"), "accepted");
	EXPECT_EQ(add("loss-timeout", "forever"), "accepted");
	EXPECT_EQ(add("loss-timeout", "99ms"),
		  "loss-timeout '99ms': must be 100ms to 86400s, or off, or forever");
	EXPECT_EQ(add("fast-io-fail", "forever"),
		  "fast-io-fail 'forever': not a time: a number with ns, us, ms or s");
	EXPECT_EQ(add("deep", "1"),
		  "unknown key 'deep': use to, from, queues, poll-queues, depth, "
		  "max-message, eager-limit, keep-alive, connect-timeout, "
		  "drain-timeout, keep-alive-misses, request-timeout, loss-timeout, "
		  "fast-io-fail, reconnect-delay, "
		  "reconnect-max-delay, poll-mode, poll-cpu, cq-count, cq-period, "
		  "mode, private-data, hold, retry-count, rnr-retry-count, "
		  "initiator-depth, responder-resources or nowait");
	EXPECT_EQ(add("poll-mode", "often"), "poll-mode 'often': must be busy, hybrid or adaptive");
	EXPECT_EQ(add("poll-cpu", "0"), "poll-cpu '0': must be 1 to 100");
	EXPECT_EQ(add("cq-count", "65536"), "cq-count '65536': must be 0 to 65535");
	EXPECT_EQ(add("cq-period", "65536us"), "cq-period '65536us': must be 0ns to 65.535ms");
	EXPECT_EQ(add("cq-period", "1500ns"), "cq-period '1500ns': must be whole microseconds");
	EXPECT_EQ(add("de\x1bpth", "1").substr(0, 23), "unknown key 'de\\x1bpth'");
	EXPECT_EQ(refusal(channel_object, "show", {"c0", "c1"}), "unexpected 'c1'");
}

TEST(Arguments, NamesAreChecked)
{
	EXPECT_EQ(refusal(channel_object, "add", {"0c", "to", "10.0.0.2:1"}),
		  "name '0c': a name is 1 to 31 of A-Z a-z 0-9 _ -, and begins with a letter");
	EXPECT_NE(refusal(channel_object, "add", {"store.0", "to", "10.0.0.2:1"}), "accepted")
		<< "only listeners give such names";
	EXPECT_EQ(refusal(channel_object, "del", {"store.0"}), "accepted");
	EXPECT_NE(refusal(listener_object, "del", {"store.0"}), "accepted");
	EXPECT_NE(refusal(channel_object, "add", {"", "to", "10.0.0.2:1"}), "accepted");
}

} // namespace

} // namespace kdirect
