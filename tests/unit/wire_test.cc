// SPDX-License-Identifier: GPL-2.0-only
// Everything that a peer can say, at every length, with every field at and past
// its limits.
#include "../../kmod/core/wire.hh"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <functional>
#include <memory>
#include <string>
#include <vector>

using namespace kd::wire;

namespace
{

template <typename T>
std::vector<uint8_t> bytes_of(const T &object)
{
	auto *first = reinterpret_cast<const uint8_t *>(&object);

	return {first, first + sizeof(object)};
}

/* On the heap and exactly as long, so that a byte too far is seen. */
struct Exact {
	Exact(const std::vector<uint8_t> &from, std::size_t len)
		: data(std::make_unique<uint8_t[]>(len)), size(len)
	{
		std::memcpy(data.get(), from.data(), std::min(len, from.size()));
	}
	std::unique_ptr<uint8_t[]> data;
	std::size_t size;
};

constexpr RequestInfo good_request{0, 1, 1, 32, 16384, 1048576, 0x1122334455667788, 0, 0, 0};
constexpr RequestInfo later_request{2, 1, 1, 32, 16384, 1048576, 0x1122334455667788, 99, 0, 0};
constexpr RequestInfo resuming_request{0,  1, 1,   32, 16384, 1048576, 0x1122334455667788,
				       99, 3, 5000};

Verdict decode(const RequestInfo &info, RequestInfo *out = nullptr)
{
	Request request;
	RequestInfo decoded;
	Verdict verdict;

	encode_request(info, request);
	verdict = decode_request(&request, sizeof(request), decoded);
	if (out)
		*out = decoded;
	return verdict;
}

TEST(Wire, IntegersAreLittleEndianAtAnyAlignment)
{
	struct {
		uint8_t odd;
		Le16 a;
		Le32 b;
		Le64 c;
	} s{1, uint16_t{0x0102}, uint32_t{0x01020304}, uint64_t{0x0102030405060708}};
	const uint8_t expected[] = {1, 2, 1, 4, 3, 2, 1, 8, 7, 6, 5, 4, 3, 2, 1};

	ASSERT_EQ(sizeof(s), sizeof(expected));
	EXPECT_EQ(std::memcmp(&s, expected, sizeof(s)), 0);
	EXPECT_EQ(uint16_t(s.a), 0x0102);
	EXPECT_EQ(uint32_t(s.b), 0x01020304u);
	EXPECT_EQ(uint64_t(s.c), 0x0102030405060708u);
	for (uint64_t value : {uint64_t{0}, UINT64_MAX, uint64_t{1} << 63, uint64_t{0xff}})
		EXPECT_EQ(uint64_t(Le64(value)), value);
}

TEST(Wire, RequestThereAndBack)
{
	for (const RequestInfo &info : {good_request, later_request, resuming_request}) {
		RequestInfo out;

		ASSERT_FALSE(decode(info, &out));
		EXPECT_EQ(std::memcmp(&info, &out, sizeof(info)), 0);
	}
}

TEST(Wire, RequestOfEveryLength)
{
	Request request;

	encode_request(good_request, request);
	for (std::size_t len = 0; len <= 56; len++) {
		Exact cut(bytes_of(request), len);
		RequestInfo out;
		Verdict verdict = decode_request(cut.data.get(), len, out);

		EXPECT_EQ(bool(verdict), len < sizeof(Request)) << len;
		if (verdict) {
			EXPECT_EQ(verdict.reason, Refusal::Malformed);
		}
	}
	RequestInfo out;
	EXPECT_EQ(decode_request(nullptr, 0, out).reason, Refusal::Malformed);
}

/* Each byte of a request changed to each value: refused, or what it says. */
TEST(Wire, RequestWithEachByteChanged)
{
	Request request;

	encode_request(later_request, request);
	std::vector<uint8_t> bytes = bytes_of(request);
	for (std::size_t at = 0; at < bytes.size(); at++)
		for (int value = 0; value < 256; value++) {
			std::vector<uint8_t> changed = bytes;
			RequestInfo out;

			changed[at] = static_cast<uint8_t>(value);
			if (decode_request(changed.data(), changed.size(), out))
				continue;
			Request again;
			encode_request(out, again);
			EXPECT_TRUE(bytes_of(again) == changed) << "byte " << at << " " << value;
			EXPECT_LE(out.queues + out.poll_queues, max_queues);
			EXPECT_GE(out.queues + out.poll_queues, 1u);
			EXPECT_LE(out.queue, out.queues + out.poll_queues);
			EXPECT_TRUE(out.depth >= min_depth && out.depth <= max_depth);
			EXPECT_TRUE(out.eager_limit >= min_eager && out.eager_limit <= max_eager);
			EXPECT_TRUE(out.max_message >= min_message &&
				    out.max_message <= max_message);
		}
}

struct Limit {
	uint32_t RequestInfo::*field;
	Refusal reason;
	uint32_t low, high;
};

TEST(Wire, RequestLimits)
{
	const Limit limits[] = {
		{&RequestInfo::depth, Refusal::Depth, 1, 1024},
		{&RequestInfo::eager_limit, Refusal::EagerLimit, 256, 65536},
		{&RequestInfo::max_message, Refusal::MaxMessage, 4096, 1048576},
	};

	for (const Limit &limit : limits) {
		RequestInfo info = good_request;

		for (uint32_t good : {limit.low, limit.low + 1, limit.high - 1, limit.high}) {
			info.*limit.field = good;
			EXPECT_FALSE(decode(info)) << good;
		}
		for (uint32_t bad : {0u, limit.low - 1, limit.high + 1, UINT32_MAX}) {
			info.*limit.field = bad;
			Verdict verdict = decode(info);
			EXPECT_EQ(verdict.reason, limit.reason) << bad;
			EXPECT_EQ(verdict.value, bad < limit.low ? limit.low : limit.high);
		}
	}
}

TEST(Wire, RequestQueues)
{
	auto with = [](uint32_t queue, uint32_t queues, uint32_t poll) {
		RequestInfo info = queue ? later_request : good_request;

		info.queue = queue;
		info.queues = queues;
		info.poll_queues = poll;
		return decode(info).reason;
	};

	EXPECT_EQ(with(0, 0, 0), Refusal::Queues);
	EXPECT_EQ(with(0, 1, 0), Refusal::None);
	EXPECT_EQ(with(0, 0, 1), Refusal::None);
	EXPECT_EQ(with(0, 64, 0), Refusal::None);
	EXPECT_EQ(with(0, 0, 64), Refusal::None);
	EXPECT_EQ(with(0, 32, 32), Refusal::None);
	EXPECT_EQ(with(0, 32, 33), Refusal::Queues);
	EXPECT_EQ(with(0, 65, 0), Refusal::Queues);
	EXPECT_EQ(with(0, 65535, 65535), Refusal::Queues);
	EXPECT_EQ(with(0, 65535, 1), Refusal::Queues) << "the sum must not wrap";
	EXPECT_EQ(with(2, 1, 1), Refusal::None);
	EXPECT_EQ(with(3, 1, 1), Refusal::Queue);
	EXPECT_EQ(with(65535, 1, 1), Refusal::Queue);
}

TEST(Wire, RequestTokenBelongsToLaterQueues)
{
	RequestInfo info = good_request;

	info.token = 1;
	EXPECT_EQ(decode(info).reason, Refusal::NoChannel);
	info = later_request;
	info.token = 0;
	EXPECT_EQ(decode(info).reason, Refusal::NoChannel);
	info = resuming_request;
	info.token = 0;
	EXPECT_EQ(decode(info).reason, Refusal::NoChannel);
	info = resuming_request;
	info.attempt = 0;
	EXPECT_EQ(decode(info).reason, Refusal::NoChannel);
}

TEST(Wire, RequestVersionAndFeatures)
{
	Request request;
	RequestInfo out;

	for (uint16_t other : {0, 1, 3, 65535}) {
		encode_request(good_request, request);
		request.version = other;
		Verdict verdict = decode_request(&request, sizeof(request), out);
		EXPECT_EQ(verdict.reason, Refusal::Version);
		EXPECT_EQ(verdict.value, version);
	}
	for (int bit = 0; bit < 32; bit++) {
		encode_request(good_request, request);
		request.features = 1U << bit;
		Verdict verdict = decode_request(&request, sizeof(request), out);
		EXPECT_EQ(verdict.reason, Refusal::Features);
		EXPECT_EQ(verdict.value, 1U << bit);
	}
}

bool reply_ok(const ReplyInfo &info, const RequestInfo &asked = good_request)
{
	Reply reply;
	ReplyInfo out;

	encode_reply(info, reply);
	return decode_reply(&reply, sizeof(reply), asked, out);
}

TEST(Wire, ReplyNeverExceedsWhatWasAsked)
{
	const ReplyInfo good{0, 32, 16384, 1048576, 5};
	Reply reply;
	ReplyInfo out;

	encode_reply(good, reply);
	ASSERT_TRUE(decode_reply(&reply, sizeof(reply), good_request, out));
	EXPECT_EQ(std::memcmp(&good, &out, sizeof(good)), 0);
	EXPECT_TRUE(reply_ok({0, 1, 256, 4096, UINT64_MAX}));
	EXPECT_FALSE(reply_ok({1, 32, 16384, 1048576, 5})) << "queue";
	EXPECT_FALSE(reply_ok({0, 0, 16384, 1048576, 5})) << "depth";
	EXPECT_FALSE(reply_ok({0, 33, 16384, 1048576, 5})) << "depth";
	EXPECT_FALSE(reply_ok({0, 32, 255, 1048576, 5})) << "eager";
	EXPECT_FALSE(reply_ok({0, 32, 16385, 1048576, 5})) << "eager";
	EXPECT_FALSE(reply_ok({0, 32, 16384, 4095, 5})) << "message";
	EXPECT_FALSE(reply_ok({0, 32, 16384, 1048577, 5})) << "message";
	EXPECT_FALSE(reply_ok({0, 32, 16384, 1048576, 0})) << "token";
	EXPECT_TRUE(reply_ok({2, 32, 16384, 1048576, 99}, later_request));
	EXPECT_FALSE(reply_ok({2, 32, 16384, 1048576, 98}, later_request)) << "another token";
}

TEST(Wire, ReplyOfEveryLengthAndWithEachByteChanged)
{
	Reply reply;
	ReplyInfo out;

	encode_reply({0, 32, 16384, 1048576, 5}, reply);
	std::vector<uint8_t> bytes = bytes_of(reply);
	for (std::size_t len = 0; len <= 196; len++) {
		Exact cut(bytes, len);

		EXPECT_EQ(decode_reply(cut.data.get(), len, good_request, out),
			  len >= sizeof(Reply));
	}
	EXPECT_FALSE(decode_reply(nullptr, 0, good_request, out));
	for (std::size_t at = 0; at < bytes.size(); at++)
		for (int value = 0; value < 256; value++) {
			std::vector<uint8_t> changed = bytes;

			changed[at] = static_cast<uint8_t>(value);
			if (!decode_reply(changed.data(), changed.size(), good_request, out))
				continue;
			Reply again;
			encode_reply(out, again);
			EXPECT_TRUE(bytes_of(again) == changed) << "byte " << at << " " << value;
		}
}

TEST(Wire, Rejects)
{
	Reject reject;
	Verdict out;

	encode_reject({Refusal::Full, 128}, reject);
	std::vector<uint8_t> bytes = bytes_of(reject);
	for (std::size_t len = 0; len <= 148; len++) {
		Exact cut(bytes, len);

		EXPECT_EQ(decode_reject(cut.data.get(), len, out), len >= sizeof(Reject)) << len;
	}
	EXPECT_FALSE(decode_reject(nullptr, 0, out));
	ASSERT_TRUE(decode_reject(bytes.data(), bytes.size(), out));
	EXPECT_EQ(out.reason, Refusal::Full);
	EXPECT_EQ(out.value, 128u);
	bytes[0]++;
	EXPECT_FALSE(decode_reject(bytes.data(), bytes.size(), out));
	/* a text for every reason, also for those of a later version; at most one number */
	for (uint32_t reason = 0; reason <= 65535; reason++) {
		const char *text = refusal_format(Refusal(reason));
		std::string format = text;

		ASSERT_GT(format.size(), 5u);
		EXPECT_LE(std::count(format.begin(), format.end(), '%'), 1);
		EXPECT_EQ(format.find("%s"), std::string::npos);
	}
}

std::vector<uint8_t> data_message(const DataInfo &info, std::size_t payload)
{
	std::vector<uint8_t> out(sizeof(DataHeader) + payload, 0x5a);

	encode_data(info, out.data());
	return out;
}

bool data_ok(const DataInfo &info, std::size_t payload, DataInfo *result = nullptr)
{
	std::vector<uint8_t> message = data_message(info, payload);
	Exact exact(message, message.size());
	DataInfo out;
	bool ok = decode_data(exact.data.get(), exact.size, 4096, 65536, out);

	if (result)
		*result = out;
	return ok;
}

TEST(Wire, DataThereAndBack)
{
	const DataInfo infos[] = {
		{DataType::Hello, 0, 0, 0, 0, 0},
		{DataType::Eager, 10, 0x80000001, 0, 0x123456789abcdef0, 0},
		{DataType::Offer, 65536, 3, 0xdeadbeef, 7, 0xffff888812345678},
		{DataType::Ping, 4096, 0, 0, 9, 0},
		{DataType::Pong, 1, 0, 0, 10, 0},
	};

	for (const DataInfo &info : infos) {
		bool carries = info.type != DataType::Hello && info.type != DataType::Offer;
		DataInfo out;

		ASSERT_TRUE(data_ok(info, carries ? info.length : 0, &out));
		EXPECT_EQ(out.type, info.type);
		EXPECT_EQ(out.length, info.length);
		EXPECT_EQ(out.credits, info.credits);
		EXPECT_EQ(out.rkey, info.rkey);
		EXPECT_EQ(out.seq, info.seq);
		EXPECT_EQ(out.addr, info.addr);
	}
}

TEST(Wire, DataLengths)
{
	for (DataType type : {DataType::Eager, DataType::Ping, DataType::Pong}) {
		EXPECT_TRUE(data_ok({type, 1, 0, 0, 0, 0}, 1));
		EXPECT_TRUE(data_ok({type, 4096, 0, 0, 0, 0}, 4096));
		EXPECT_EQ(data_ok({type, 0, 0, 0, 0, 0}, 0), type == DataType::Eager);
		EXPECT_FALSE(data_ok({type, 0, 0, 0, 0, 0}, 1));
		EXPECT_FALSE(data_ok({type, 4097, 0, 0, 0, 0}, 4097));
		EXPECT_FALSE(data_ok({type, 10, 0, 0, 0, 0}, 9));
		EXPECT_FALSE(data_ok({type, 10, 0, 0, 0, 0}, 11));
		EXPECT_FALSE(data_ok({type, UINT32_MAX, 0, 0, 0, 0}, 10));
	}
	EXPECT_TRUE(data_ok({DataType::Offer, 1, 0, 0, 0, 0}, 0));
	EXPECT_TRUE(data_ok({DataType::Offer, 65536, 0, 0, 0, 0}, 0));
	EXPECT_FALSE(data_ok({DataType::Offer, 65537, 0, 0, 0, 0}, 0));
	EXPECT_FALSE(data_ok({DataType::Offer, 0, 0, 0, 0, 0}, 0));
	EXPECT_FALSE(data_ok({DataType::Offer, 10, 0, 0, 0, 0}, 10));
	EXPECT_FALSE(data_ok({DataType::Offer, 10, 0, 0, 0, UINT64_MAX - 5}, 0)) << "wraps";
	EXPECT_FALSE(data_ok({DataType::Hello, 1, 0, 0, 0, 0}, 0));
	EXPECT_FALSE(data_ok({DataType::Hello, 0, 0, 0, 0, 0}, 1));
	for (std::size_t len = 0; len < sizeof(DataHeader); len++) {
		Exact cut(data_message({DataType::Hello, 0, 0, 0, 0, 0}, 0), len);
		DataInfo out;

		EXPECT_FALSE(decode_data(cut.data.get(), len, 4096, 65536, out)) << len;
	}
}

TEST(Wire, DataTypesFlagsAndReserved)
{
	for (int type = 0; type < 256; type++)
		EXPECT_EQ(data_ok({DataType(type), 1, 0, 0, 0, 0}, 1),
			  type >= 2 && type <= 5 && type != 3)
			<< type;
	for (std::size_t at : {1u, 2u, 3u})
		for (int bit = 0; bit < 8; bit++) {
			std::vector<uint8_t> message =
				data_message({DataType::Hello, 0, 0, 0, 0, 0}, 0);
			DataInfo out;

			message[at] = static_cast<uint8_t>(1 << bit);
			EXPECT_FALSE(decode_data(message.data(), message.size(), 4096, 65536, out));
		}
}

ControlInfo full_control()
{
	ControlInfo info;

	info.flags = KeepAlive | Bye;
	info.credits = 17;
	info.last = 0x1234567890;
	info.nr_credits = max_credit_entries;
	info.nr_done = max_done_entries;
	for (uint32_t i = 0; i < max_credit_entries; i++)
		info.credit[i] = {static_cast<uint16_t>(i + 1), i * 1000};
	for (uint32_t i = 0; i < max_done_entries; i++)
		info.done[i] = {uint64_t{i} << 40, static_cast<uint16_t>(64 - i)};
	return info;
}

TEST(Wire, ControlThereAndBack)
{
	for (uint32_t credits = 0; credits <= max_credit_entries; credits++)
		for (uint32_t done = 0; done <= max_done_entries; done++) {
			ControlInfo info = full_control(), out;
			uint8_t buffer[control_size];

			info.nr_credits = credits;
			info.nr_done = done;
			uint32_t len = encode_control(info, buffer);
			ASSERT_LE(len, control_size);
			ASSERT_TRUE(decode_control(buffer, len, out));
			EXPECT_EQ(out.flags, info.flags);
			EXPECT_EQ(out.credits, info.credits);
			EXPECT_EQ(out.last, info.last);
			ASSERT_EQ(out.nr_credits, credits);
			ASSERT_EQ(out.nr_done, done);
			for (uint32_t i = 0; i < credits; i++) {
				EXPECT_EQ(out.credit[i].queue, info.credit[i].queue);
				EXPECT_EQ(out.credit[i].credits, info.credit[i].credits);
			}
			for (uint32_t i = 0; i < done; i++) {
				EXPECT_EQ(out.done[i].seq, info.done[i].seq);
				EXPECT_EQ(out.done[i].queue, info.done[i].queue);
			}
		}
}

TEST(Wire, ControlOfEveryLength)
{
	std::vector<uint8_t> buffer(control_size);
	ControlInfo out;

	ASSERT_EQ(encode_control(full_control(), buffer.data()), control_size);
	for (std::size_t len = 0; len <= control_size + 8; len++) {
		Exact cut(buffer, len);

		EXPECT_EQ(decode_control(cut.data.get(), len, out), len == control_size) << len;
	}
}

TEST(Wire, ControlWithEachByteChanged)
{
	std::vector<uint8_t> buffer(control_size);

	encode_control(full_control(), buffer.data());
	for (std::size_t at = 0; at < buffer.size(); at++)
		for (int value = 0; value < 256; value++) {
			std::vector<uint8_t> changed = buffer, again(control_size);
			ControlInfo out;

			changed[at] = static_cast<uint8_t>(value);
			Exact exact(changed, changed.size());
			if (!decode_control(exact.data.get(), exact.size, out))
				continue;
			EXPECT_EQ(encode_control(out, again.data()), control_size);
			EXPECT_TRUE(again == changed) << "byte " << at << " " << value;
			EXPECT_FALSE(out.flags & ~control_flags);
			for (uint32_t i = 0; i < out.nr_credits; i++)
				EXPECT_TRUE(out.credit[i].queue >= 1 && out.credit[i].queue <= 64);
			for (uint32_t i = 0; i < out.nr_done; i++)
				EXPECT_TRUE(out.done[i].queue >= 1 && out.done[i].queue <= 64);
		}
}

} // namespace
