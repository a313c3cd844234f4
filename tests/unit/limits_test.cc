// SPDX-License-Identifier: GPL-2.0-only
// Every setting at, below and above its limits, with what a person gets to read.
#include "../../kmod/core/limits.hh"

#include <gtest/gtest.h>

#include <cstring>
#include <functional>
#include <string>

#include "../../uapi/kdirect_netlink.h"
#include "../sim/self/fake_core.h"

using namespace kd;

namespace
{

class Limits : public testing::Test
{
protected:
	sim::World world{{.core = &sim::fake_core()}};
};

int named(const std::string &name, std::size_t max = KD_NAME_MAX)
{
	kd_error error{};
	char text[KD_NAME_MAX + 1] = {};

	std::memcpy(text, name.data(), std::min<std::size_t>(name.size(), KD_NAME_MAX));
	Status st = limits::check_name(text, max, &error);
	EXPECT_EQ(st.err(), error.err);
	if (error.err) {
		EXPECT_EQ(error.attr, KDIRECT_A_NAME);
		for (const char *c = error.text; *c; c++)
			EXPECT_TRUE(*c >= ' ' && *c <= '~') << "byte " << int(*c);
	}
	return st.err();
}

TEST_F(Limits, Names)
{
	for (const char *good : {"a", "Z", "c0", "a-b_c", "abcdefghijklmnopqrstuvwxyz01234"})
		EXPECT_EQ(named(good), 0) << good;
	for (const char *bad : {"", "0c", "-a", "_a", ".a", "a.b", "a/b", "a b", "a\n", "a\x7f",
				"\xc3\xa9", "a\xff", "../x", "a%s"})
		EXPECT_EQ(named(bad), KD_EINVAL) << bad;
	EXPECT_EQ(named(std::string(31, 'a')), 0);
	EXPECT_EQ(named(std::string(26, 'a'), 26), 0);
	EXPECT_EQ(named(std::string(27, 'a'), 26), KD_EINVAL);
	for (int c = 1; c < 256; c++) {
		bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
		bool inside = letter || (c >= '0' && c <= '9') || c == '_' || c == '-';

		EXPECT_EQ(!named(std::string(1, static_cast<char>(c))), letter) << c;
		EXPECT_EQ(!named(std::string("a") + static_cast<char>(c)), inside) << c;
	}
}

kd_channel_params channel()
{
	kd_channel_params p{};

	kd_channel_defaults(&p);
	std::strcpy(p.name, "c0");
	p.peer = {sim::parse_addr("10.0.0.2"), 7471};
	return p;
}

kd_listener_params listener()
{
	kd_listener_params p{};

	kd_listener_defaults(&p);
	std::strcpy(p.name, "store");
	p.local = {sim::parse_addr("10.0.0.2"), 7471};
	return p;
}

int check(const kd_channel_params &p, uint16_t attr = 0)
{
	kd_error error{};
	Status st = limits::check_channel(p, &error);

	EXPECT_EQ(st.err(), error.err);
	if (st.err()) {
		EXPECT_EQ(error.attr, attr) << error.text;
		EXPECT_NE(error.text[0], '\0');
	}
	return st.err();
}

int check(const kd_listener_params &p, uint16_t attr = 0)
{
	kd_error error{};
	Status st = limits::check_listener(p, &error);

	EXPECT_EQ(st.err(), error.err);
	if (st.err()) {
		EXPECT_EQ(error.attr, attr) << error.text;
		EXPECT_NE(error.text[0], '\0');
	}
	return st.err();
}

TEST_F(Limits, DefaultsAreGood)
{
	EXPECT_EQ(check(channel()), 0);
	EXPECT_EQ(check(listener()), 0);
}

template <class Params>
struct Range {
	uint32_t Params::*field;
	uint16_t attr;
	uint32_t low, high;
};

template <class Params>
void try_range(const Range<Params> &range, const Params &base)
{
	for (uint32_t good : {range.low, range.low + 1, range.high - 1, range.high}) {
		Params p = base;
		p.*range.field = good;
		EXPECT_EQ(check(p), 0) << range.attr << ": " << good;
	}
	for (uint32_t bad : {range.low - 1, range.high + 1, UINT32_MAX, 0x80000000u}) {
		Params p = base;
		p.*range.field = bad;
		EXPECT_EQ(check(p, range.attr), KD_ERANGE) << range.attr << ": " << bad;
	}
}

TEST_F(Limits, ChannelRanges)
{
	using P = kd_channel_params;
	const Range<P> ranges[] = {
		{&P::queues, KDIRECT_A_QUEUES, 1, 64},
		{&P::depth, KDIRECT_A_DEPTH, 1, 1024},
		{&P::max_message, KDIRECT_A_MAX_MESSAGE, 4096, 1048576},
		{&P::eager_limit, KDIRECT_A_EAGER_LIMIT, 256, 65536},
		{&P::connect_timeout_ms, KDIRECT_A_CONNECT_TIMEOUT_MS, 100, 120000},
		{&P::drain_timeout_ms, KDIRECT_A_DRAIN_TIMEOUT_MS, 10, 60000},
		{&P::poll_cpu_percent, KDIRECT_A_POLL_CPU_PERCENT, 1, 100},
		{&P::cq_count, KDIRECT_A_CQ_COUNT, 0, 65535},
		{&P::cq_period_us, KDIRECT_A_CQ_PERIOD_US, 0, 65535},
	};

	for (const Range<P> &range : ranges)
		try_range(range, channel());
	P p = channel();
	for (uint32_t good : {0u, 100u, 60000u}) {
		p.keep_alive_ms = good;
		EXPECT_EQ(check(p), 0);
	}
	for (uint32_t bad : {1u, 99u, 60001u, UINT32_MAX}) {
		p.keep_alive_ms = bad;
		EXPECT_EQ(check(p, KDIRECT_A_KEEP_ALIVE_MS), KD_ERANGE);
	}
	p = channel();
	for (uint32_t mode : {0u, 1u, 2u, 3u, UINT32_MAX}) {
		p.poll_mode = mode;
		EXPECT_EQ(check(p, KDIRECT_A_POLL_MODE),
			  mode > KDIRECT_POLL_ADAPTIVE ? KD_ERANGE : 0);
	}
}

TEST_F(Limits, ChannelQueues)
{
	auto with = [](uint32_t queues, uint32_t poll, uint16_t attr = KDIRECT_A_QUEUES) {
		kd_channel_params p = channel();

		p.queues = queues;
		p.poll_queues = poll;
		return check(p, attr);
	};

	EXPECT_EQ(with(0, 1), 0);
	EXPECT_EQ(with(0, 64), 0);
	EXPECT_EQ(with(32, 32), 0);
	EXPECT_EQ(with(0, 0), KD_ERANGE);
	EXPECT_EQ(with(32, 33), KD_ERANGE);
	EXPECT_EQ(with(1, 65, KDIRECT_A_POLL_QUEUES), KD_ERANGE);
	EXPECT_EQ(with(UINT32_MAX, 1), KD_ERANGE) << "the sum must not wrap";
	EXPECT_EQ(with(1, UINT32_MAX, KDIRECT_A_POLL_QUEUES), KD_ERANGE);
}

TEST_F(Limits, ChannelAddresses)
{
	kd_channel_params p = channel();

	for (uint16_t port : {1, 65535}) {
		p.peer.port = port;
		EXPECT_EQ(check(p), 0);
	}
	p.peer.port = 0;
	EXPECT_EQ(check(p, KDIRECT_A_PORT), KD_ERANGE);
	for (uint8_t len : {0, 1, 3, 5, 15, 17, 255}) {
		p = channel();
		p.peer.addr.len = len;
		EXPECT_EQ(check(p, KDIRECT_A_ADDR), KD_EINVAL);
	}
	p = channel();
	p.peer.addr = sim::parse_addr("0.0.0.0");
	EXPECT_EQ(check(p, KDIRECT_A_ADDR), KD_EINVAL);
	p.peer.addr = sim::parse_addr("::");
	EXPECT_EQ(check(p, KDIRECT_A_ADDR), KD_EINVAL);
	p.peer.addr = sim::parse_addr("fd00::1");
	EXPECT_EQ(check(p), 0);
	p.source = sim::parse_addr("10.0.0.1");
	EXPECT_EQ(check(p, KDIRECT_A_SRC_ADDR), KD_EINVAL);
	p.source = sim::parse_addr("fd00::2");
	EXPECT_EQ(check(p), 0);
	p.source.len = 3;
	EXPECT_EQ(check(p, KDIRECT_A_SRC_ADDR), KD_EINVAL);
}

TEST_F(Limits, ListenerRanges)
{
	using P = kd_listener_params;
	const Range<P> ranges[] = {
		{&P::max_channels, KDIRECT_A_MAX_CHANNELS, 1, 1024},
		{&P::max_queues, KDIRECT_A_MAX_QUEUES, 1, 64},
		{&P::max_depth, KDIRECT_A_MAX_DEPTH, 1, 1024},
		{&P::max_message, KDIRECT_A_MAX_MESSAGE, 4096, 1048576},
		{&P::eager_limit, KDIRECT_A_EAGER_LIMIT, 256, 65536},
	};

	for (const Range<P> &range : ranges)
		try_range(range, listener());
	P p = listener();
	p.local.port = 0;
	EXPECT_EQ(check(p, KDIRECT_A_PORT), KD_ERANGE);
	p = listener();
	p.local.addr = sim::parse_addr("::");
	EXPECT_EQ(check(p), 0) << "any address is one to listen on";
	p.local.addr.len = 7;
	EXPECT_EQ(check(p, KDIRECT_A_ADDR), KD_EINVAL);
}

TEST_F(Limits, AllowLists)
{
	kd_listener_params p = listener();

	p.nr_allow = KD_MAX_PREFIXES;
	for (kd_prefix &prefix : p.allow)
		prefix = {sim::parse_addr("10.0.0.0"), 32};
	EXPECT_EQ(check(p), 0);
	p.allow[63].bits = 33;
	EXPECT_EQ(check(p, KDIRECT_A_PREFIX_LEN), KD_ERANGE);
	p.allow[63] = {sim::parse_addr("fd00::"), 128};
	EXPECT_EQ(check(p), 0);
	p.allow[63].bits = 129;
	EXPECT_EQ(check(p, KDIRECT_A_PREFIX_LEN), KD_ERANGE);
	p.allow[63].addr.len = 0;
	EXPECT_EQ(check(p, KDIRECT_A_ALLOW), KD_EINVAL);
}

TEST_F(Limits, Prefixes)
{
	struct Case {
		const char *prefix;
		uint8_t bits;
		const char *addr;
		bool match;
	};
	const Case cases[] = {
		{"10.0.0.0", 8, "10.255.1.2", true},   {"10.0.0.0", 8, "11.0.0.0", false},
		{"10.0.0.2", 32, "10.0.0.2", true},    {"10.0.0.2", 32, "10.0.0.3", false},
		{"10.0.0.2", 31, "10.0.0.3", true},    {"10.0.0.2", 31, "10.0.0.4", false},
		{"10.0.0.0", 0, "192.168.1.1", true},  {"10.0.0.0", 0, "fd00::1", false},
		{"128.0.0.0", 1, "255.0.0.1", true},   {"128.0.0.0", 1, "127.0.0.1", false},
		{"fd00::", 64, "fd00::1234", true},    {"fd00::", 64, "fd00:0:0:1::1", false},
		{"fd00::1", 128, "fd00::1", true},     {"fd00::1", 128, "fd00::2", false},
		{"fd00::", 127, "fd00::1", true},      {"::", 0, "fd00::1", true},
		{"::", 0, "10.0.0.1", false},          {"10.16.0.0", 12, "10.31.0.1", true},
		{"10.16.0.0", 12, "10.32.0.1", false},
	};

	for (const Case &c : cases)
		EXPECT_EQ(limits::matches({sim::parse_addr(c.prefix), c.bits},
					  sim::parse_addr(c.addr)),
			  c.match)
			<< c.prefix << "/" << int(c.bits) << " " << c.addr;
}

TEST_F(Limits, ListenerChange)
{
	kd_error error{};
	kd_listener_params p = listener();

	EXPECT_EQ(limits::check_listener_change(p, &error).err(), KD_EINVAL) << "nothing to set";
	p.has = KD_HAS_MAX_CHANNELS;
	EXPECT_EQ(limits::check_listener_change(p, &error).err(), 0);
	p.max_channels = 1025;
	EXPECT_EQ(limits::check_listener_change(p, &error).err(), KD_ERANGE);
	p.has = KD_HAS_ALLOW | KD_HAS_ALLOW_CLEAR;
	EXPECT_EQ(limits::check_listener_change(p, &error).err(), KD_EINVAL);
	p.has = KD_HAS_ALLOW_CLEAR;
	EXPECT_EQ(limits::check_listener_change(p, &error).err(), 0);
}

TEST_F(Limits, ShapesHoldWhatTheyMust)
{
	for (uint32_t depth : {1u, 2u, 8u, 9u, 1024u}) {
		limits::Terms terms{depth, 16384, 1048576};
		kd_qp_params shape = limits::queue_shape(terms);

		/* messages, a ping, a pong and a hello; REG_MR and LOCAL_INV of each offer;
		   copied I/O of mappings */
		EXPECT_GE(shape.max_send,
			  depth + 3 + 2 * limits::offers(depth) + limits::io_copies(depth));
		EXPECT_GE(shape.max_recv, depth + 2);
		EXPECT_EQ(shape.max_reads, limits::offers(depth) + limits::io_large(depth));
		EXPECT_EQ(shape.max_read_pages, 256u);
	}
	EXPECT_EQ(limits::offers(1), 1u);
	EXPECT_EQ(limits::offers(1024), 8u);
	EXPECT_EQ(limits::io_large(1), 1u);
	EXPECT_EQ(limits::io_large(1024), 16u);
	/* each control message, and the registrations of one that carries keys */
	EXPECT_GE(limits::control_shape().max_send,
		  wire::control_receives + wire::map_keys_at_once);
}

TEST_F(Limits, KeysCoverAPowerOfTwo)
{
	EXPECT_EQ(limits::key_bytes(512), 2u << 20);
	EXPECT_EQ(limits::key_bytes(511), 1u << 20);
	EXPECT_EQ(limits::key_bytes(256), 1u << 20);
	EXPECT_EQ(limits::key_bytes(65536), wire::max_key_bytes);
	EXPECT_EQ(limits::key_bytes(1), 4096u);
}

TEST_F(Limits, FitShrinksToTheDevice)
{
	struct Case {
		sim::DeviceOptions device;
		uint32_t asked_depth;
		int err;
	};
	const Case cases[] = {
		{{}, 1024, 0},
		{{.max_qp_wr = 128}, 1024, 0},
		{{.max_qp_wr = 8}, 1024, KD_EOPNOTSUPP},
		{{.max_cqe = 128}, 1024, 0},
		{{.max_cqe = 8}, 32, KD_EOPNOTSUPP},
		{{.max_mr_pages = 16}, 32, 0},
		{{.max_mr_pages = 0}, 32, KD_EOPNOTSUPP},
		{{.max_rd_atom = 0}, 32, 0},
	};

	world.call([&] {
		for (const Case &c : cases) {
			struct kd_device_attr attr {
			};
			kd_error error{};
			limits::Terms terms{c.asked_depth, 16384, 1048576};
			auto *dev = reinterpret_cast<Device *>(&attr);

			attr.max_qp_wr = c.device.max_qp_wr;
			attr.max_cqe = c.device.max_cqe;
			attr.max_mr_pages = c.device.max_mr_pages;
			attr.max_read_sge = attr.max_send_sge = 32;
			attr.max_rd_atom = attr.max_init_rd_atom = c.device.max_rd_atom;
			attr.transport = KDIRECT_TRANSPORT_ROCE;
			Status st = limits::fit(dev, terms, &error);
			EXPECT_EQ(st.err(), c.err);
			EXPECT_EQ(error.err, c.err);
			if (!st.ok())
				continue;
			kd_qp_params shape = limits::queue_shape(terms);
			EXPECT_LE(kd_qp_send_wrs(dev, &shape), attr.max_qp_wr);
			EXPECT_LE(limits::cq_entries(dev, shape), attr.max_cqe);
			EXPECT_LE(terms.max_message, attr.max_mr_pages * 4096);
			EXPECT_LE(terms.eager_limit, terms.max_message);
			EXPECT_GE(terms.depth, 1u);
			if (!attr.max_rd_atom) {
				EXPECT_LE(terms.max_message, terms.eager_limit);
			}
		}
	});
}

} // namespace
