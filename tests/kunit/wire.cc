// SPDX-License-Identifier: GPL-2.0-only
// What two ends say to each other: there and back, each field to its bounds and past
// them, each length, padded and exact.
#include "wire.hh"

#include "core_cases.h"
#include "exact.hh"

using namespace kd;
using namespace kd::wire;

namespace
{

constexpr uint32_t eager_limit = 4096, message_limit = 65536;
constexpr RequestInfo first_request{0, 3, 2, 32, 16384, 1048576, 0x1122334455667788, 0, 0, 0};
constexpr RequestInfo later_request{5, 3, 2, 32, 16384, 1048576, 0x1122334455667788, 99, 0, 0};

// The messages by number, as in core_suites.c.
enum Kind : uint32_t { KRequest, KReply, KReject, KHello, KEager, KOffer, KPing, KControl };

constexpr bool is_private(uint32_t kind)
{
	return kind <= KReject;
}

// One good message of a kind, at its full length.
size_t make(uint32_t kind, uint8_t *out)
{
	auto data = [&](DataType type, uint32_t payload) {
		uint32_t length = type == DataType::Offer ? message_limit : payload;
		encode_data({type, length, 0x10203040, 0x50607080, 0x0102030405060708, 0x8000},
			    out);
		for (uint32_t i = 0; i < payload; i++)
			out[sizeof(DataHeader) + i] = uint8_t(i);
		return sizeof(DataHeader) + payload;
	};
	switch (kind) {
	case KRequest:
		encode_request(later_request, *reinterpret_cast<Request *>(out));
		return sizeof(Request);
	case KReply:
		encode_reply({5, 32, 16384, 1048576, 99}, *reinterpret_cast<Reply *>(out));
		return sizeof(Reply);
	case KReject:
		encode_reject({Refusal::Full, 7}, *reinterpret_cast<Reject *>(out));
		return sizeof(Reject);
	case KHello: return data(DataType::Hello, 0);
	case KEager: return data(DataType::Eager, 100);
	case KOffer: return data(DataType::Offer, 0);
	case KPing: return data(DataType::Ping, 64);
	case KControl: {
		ControlInfo info;
		info.flags = KeepAlive | Bye;
		info.nr_credits = 2;
		info.nr_done = 3;
		for (uint32_t i = 0; i < 3; i++) {
			info.credit[i] = {uint16_t(i + 1), i};
			info.done[i] = {i, uint16_t(i + 1)};
		}
		return encode_control(info, out);
	}
	}
	return 0;
}

bool good(uint32_t kind, const void *data, size_t len)
{
	RequestInfo request;
	ReplyInfo reply;
	Verdict verdict;
	DataInfo info;
	ControlInfo control;
	switch (kind) {
	case KRequest: return !decode_request(data, len, request);
	case KReply: return decode_reply(data, len, later_request, reply);
	case KReject: return decode_reject(data, len, verdict);
	case KControl: return decode_control(data, len, control);
	}
	return decode_data(data, len, eager_limit, message_limit, info);
}

Verdict judge(const RequestInfo &info)
{
	Request request;
	RequestInfo out;
	encode_request(info, request);
	return decode_request(&request, sizeof(request), out);
}

} // namespace

void kdk_case_request_round_trip(struct kunit *test)
{
	for (const RequestInfo &info : {first_request, later_request}) {
		Request request;
		RequestInfo out;
		encode_request(info, request);
		EXPECT(!decode_request(&request, sizeof(request), out));
		EXPECT(same_bytes(&info, &out, sizeof(info)));
		// little-endian, whatever the machine
		auto *bytes = reinterpret_cast<const uint8_t *>(&request);
		EXPECT(same_bytes(bytes, "KDIR\2\0", 6));
		EXPECT_EQ(bytes[6], info.queue);
		EXPECT_EQ(bytes[28], 0x88);
		EXPECT_EQ(bytes[35], 0x11);
	}
}

void kdk_case_request_bounds(struct kunit *test)
{
	struct {
		uint32_t RequestInfo::*field;
		uint32_t low, high, most;
		Refusal reason;
	} const fields[] = {
		{&RequestInfo::depth, min_depth, max_depth, ~0U, Refusal::Depth},
		{&RequestInfo::eager_limit, min_eager, max_eager, ~0U, Refusal::EagerLimit},
		{&RequestInfo::max_message, min_message, wire::max_message, ~0U,
		 Refusal::MaxMessage},
		// with the other kind's two queues, and from the fifth queue on
		{&RequestInfo::queues, 3, max_queues - 2, 0xffff, Refusal::Queues},
		{&RequestInfo::poll_queues, 2, max_queues - 3, 0xffff, Refusal::Queues},
		{&RequestInfo::queue, 1, 5, 0xffff, Refusal::Queue},
	};
	const auto &f = fields[kdk_param(test)->a];
	bool ranged = f.reason != Refusal::Queue && f.reason != Refusal::Queues;
	RequestInfo info = later_request;
	for (uint32_t value : {f.low, f.low + 1, f.high - 1, f.high}) {
		info.*f.field = value;
		EXPECT(!judge(info));
	}
	for (uint32_t value : {f.high + 1, f.most - 1, f.most}) {
		info.*f.field = value;
		Verdict v = judge(info);
		EXPECT_EQ(v.reason, f.reason);
		EXPECT_EQ(v.value, ranged                        ? f.high
				   : f.reason == Refusal::Queues ? max_queues
								 : value);
	}
	if (ranged)
		for (uint32_t value : {0U, f.low - 1}) {
			info.*f.field = value;
			Verdict v = judge(info);
			EXPECT_EQ(v.reason, f.reason);
			EXPECT_EQ(v.value, f.low);
		}
	if (f.reason == Refusal::Queues) {
		info = later_request;
		info.queues = info.poll_queues = 0;
		Verdict v = judge(info);
		EXPECT_EQ(v.reason, Refusal::Queues);
		EXPECT_EQ(v.value, 1U);
	}
	if (f.reason == Refusal::Queue) { // a token with queue 0, or none with another
		info = first_request;
		info.token = 1;
		EXPECT_EQ(judge(info).reason, Refusal::NoChannel);
		info = later_request;
		info.token = 0;
		EXPECT_EQ(judge(info).reason, Refusal::NoChannel);
	}
}

void kdk_case_reply_round_trip(struct kunit *test)
{
	const ReplyInfo info{5, 31, 16383, 65536, 99};
	ReplyInfo out;
	Reply reply;
	encode_reply(info, reply);
	EXPECT(decode_reply(&reply, sizeof(reply), later_request, out));
	EXPECT(same_bytes(&info, &out, sizeof(info)));
	// the first queue brings the token, whatever it is
	reply.queue = uint16_t(0);
	EXPECT(decode_reply(&reply, sizeof(reply), first_request, out));
	EXPECT_EQ(out.token, 99U);
}

// Never more than was asked for, never less than the protocol's least.
void kdk_case_reply_bounds(struct kunit *test)
{
	struct {
		uint32_t ReplyInfo::*field;
		uint32_t low, high;
	} const fields[] = {
		{&ReplyInfo::depth, min_depth, later_request.depth},
		{&ReplyInfo::eager_limit, min_eager, later_request.eager_limit},
		{&ReplyInfo::max_message, min_message, later_request.max_message},
		{&ReplyInfo::queue, later_request.queue, later_request.queue},
	};
	auto accepts = [](const ReplyInfo &info) {
		Reply reply;
		ReplyInfo out;
		encode_reply(info, reply);
		return decode_reply(&reply, sizeof(reply), later_request, out);
	};
	const ReplyInfo good_reply{5, 32, 16384, 1048576, 99};
	for (const auto &f : fields) {
		ReplyInfo info = good_reply;
		for (uint32_t value : {f.low, f.high}) {
			info.*f.field = value;
			EXPECT(accepts(info));
		}
		for (uint32_t value : {0U, f.low - 1, f.high + 1, ~0U}) {
			info.*f.field = value;
			EXPECT(!accepts(info));
		}
	}
	for (uint64_t token : {0UL, 98UL, ~0UL}) {
		ReplyInfo info = good_reply;
		info.token = token;
		EXPECT(!accepts(info));
	}
}

void kdk_case_reject_round_trip(struct kunit *test)
{
	auto reason = Refusal(kdk_param(test)->b);
	for (uint32_t value : {0U, 1U, 0x80000000U, ~0U}) {
		Reject reject;
		Verdict out;
		char text[KD_TEXT_MAX];
		encode_reject({reason, value}, reject);
		EXPECT(decode_reject(&reject, sizeof(reject), out));
		EXPECT_EQ(out.reason, reason);
		EXPECT_EQ(out.value, value);
		// its text takes the number, and no more than that
		int len = kd_format(text, sizeof(text), refusal_format(out.reason), out.value);
		EXPECT(len > 5 && len < int(sizeof(text)) - 1);
	}
	// what a later version may say
	Reject reject;
	Verdict out;
	encode_reject({Refusal(0xffff), 1}, reject);
	EXPECT(decode_reject(&reject, sizeof(reject), out));
	EXPECT(refusal_format(out.reason)[0] != 0);
}

void kdk_case_data_round_trip(struct kunit *test)
{
	for (auto type :
	     {DataType::Hello, DataType::Eager, DataType::Offer, DataType::Ping, DataType::Pong}) {
		bool payload =
			type == DataType::Eager || type == DataType::Ping || type == DataType::Pong;
		uint32_t length = type == DataType::Hello ? 0 : 1;
		const DataInfo info{type,       length,    0xfffffffe,
				    0x80000001, ~0ULL - 1, 0x123456789abcdef0};
		uint8_t bytes[sizeof(DataHeader) + 1];
		DataInfo out;
		encode_data(info, bytes);
		EXPECT(decode_data(bytes, sizeof(DataHeader) + payload, eager_limit, message_limit,
				   out));
		EXPECT_EQ(out.type, info.type);
		EXPECT_EQ(out.length, info.length);
		EXPECT_EQ(out.credits, info.credits);
		EXPECT_EQ(out.rkey, info.rkey);
		EXPECT(out.seq == info.seq && out.addr == info.addr);
	}
}

void kdk_case_data_bounds(struct kunit *test)
{
	constexpr size_t room = sizeof(DataHeader) + eager_limit + 2;
	Sleepable s = ShimEntry::may_sleep();
	auto *bytes = create_array<uint8_t>(s, room);
	ASSERT(bytes != nullptr);
	DataInfo out;
	auto accepts = [&](DataType type, uint32_t length, size_t payload, uint64_t addr = 0) {
		encode_data({type, length, 0, 0, 0, addr}, bytes);
		return decode_data(bytes, sizeof(DataHeader) + payload, eager_limit, message_limit,
				   out);
	};
	for (auto type : {DataType::Eager, DataType::Ping, DataType::Pong}) {
		EXPECT(accepts(type, 1, 1));
		EXPECT(accepts(type, eager_limit, eager_limit));
		EXPECT_EQ(accepts(type, 0, 0), type == DataType::Eager);
		EXPECT(!accepts(type, 0, 1));
		EXPECT(!accepts(type, eager_limit + 1, eager_limit + 1));
		EXPECT(!accepts(type, 10, 9));
		EXPECT(!accepts(type, 10, 11));
		EXPECT(!accepts(type, ~0U, eager_limit));
	}
	EXPECT(accepts(DataType::Offer, 1, 0));
	EXPECT(accepts(DataType::Offer, message_limit, 0));
	EXPECT(!accepts(DataType::Offer, 0, 0));
	EXPECT(!accepts(DataType::Offer, message_limit + 1, 0));
	EXPECT(!accepts(DataType::Offer, 1, 1));
	EXPECT(accepts(DataType::Offer, 16, 0, ~0ULL - 16)); // up to the last address
	EXPECT(!accepts(DataType::Offer, 16, 0, ~0ULL - 14));
	EXPECT(!accepts(DataType::Hello, 1, 0));
	EXPECT(!accepts(DataType::Hello, 0, 1));
	EXPECT(!accepts(DataType(0), 0, 0));
	EXPECT(!accepts(DataType(6), 1, 1));
	EXPECT(!accepts(DataType(255), 1, 1));
	destroy_array(s, bytes);
}

void kdk_case_control_round_trip(struct kunit *test)
{
	uint32_t credits = kdk_param(test)->a, done = kdk_param(test)->b;
	ControlInfo info, out;
	uint8_t bytes[control_size];
	info.flags = control_flags;
	info.credits = 0xfffffff0;
	info.last = ~0ULL;
	info.nr_credits = credits;
	info.nr_done = done;
	for (uint32_t i = 0; i < credits; i++)
		info.credit[i] = {uint16_t(max_queues - i), ~i};
	for (uint32_t i = 0; i < done; i++)
		info.done[i] = {~uint64_t(i), uint16_t(i + 1)};
	uint32_t len = encode_control(info, bytes);
	EXPECT_EQ(len,
		  sizeof(ControlHeader) + credits * sizeof(CreditEntry) + done * sizeof(DoneEntry));
	ASSERT(decode_control(bytes, len, out));
	EXPECT_EQ(out.flags, info.flags);
	EXPECT_EQ(out.credits, info.credits);
	EXPECT(out.last == info.last);
	EXPECT_EQ(out.nr_credits, credits);
	EXPECT_EQ(out.nr_done, done);
	for (uint32_t i = 0; i < credits; i++)
		EXPECT(out.credit[i].queue == info.credit[i].queue &&
		       out.credit[i].credits == info.credit[i].credits);
	for (uint32_t i = 0; i < done; i++)
		EXPECT(out.done[i].queue == info.done[i].queue &&
		       out.done[i].seq == info.done[i].seq);
}

void kdk_case_control_bounds(struct kunit *test)
{
	uint8_t bytes[control_size + 64] = {};
	ControlInfo out;
	auto *header = reinterpret_cast<ControlHeader *>(bytes);
	uint32_t len = uint32_t(make(KControl, bytes));
	EXPECT(decode_control(bytes, len, out));
	for (uint32_t type = 0; type < 256; type++) {
		header->type = uint8_t(type);
		EXPECT_EQ(decode_control(bytes, len, out), type == 16);
	}
	header->type = 16;
	for (uint32_t bits = 0; bits < 16; bits++) {
		header->flags = uint16_t(1U << bits);
		EXPECT_EQ(decode_control(bytes, len, out), (1U << bits & control_flags) != 0);
	}
	header->flags = uint16_t(0);
	// more entries than there may be, with the bytes for them there
	header->credit_entries = max_credit_entries + 1;
	header->done_entries = 0;
	EXPECT(!decode_control(bytes, sizeof(*header) + 17 * sizeof(CreditEntry), out));
	header->credit_entries = 0;
	header->done_entries = max_done_entries + 1;
	EXPECT(!decode_control(bytes, sizeof(*header) + 17 * sizeof(DoneEntry), out));
	// a queue that cannot be
	for (uint32_t queue : {0U, 1U, max_queues, max_queues + 1, 0xffffU}) {
		bool possible = queue >= 1 && queue <= max_queues;
		ControlInfo info;
		info.nr_credits = 1;
		info.credit[0] = {uint16_t(queue), 1};
		EXPECT_EQ(decode_control(bytes, encode_control(info, bytes), out), possible);
		info.nr_credits = 0;
		info.nr_done = 1;
		info.done[0] = {1, uint16_t(queue)};
		EXPECT_EQ(decode_control(bytes, encode_control(info, bytes), out), possible);
	}
}

// Every length up to the message's own is refused, and nothing is read past it. More
// is padding where the transport pads, and malformed everywhere else.
void kdk_case_lengths(struct kunit *test)
{
	uint32_t kind = kdk_param(test)->a;
	uint8_t bytes[256] = {};
	size_t whole = make(kind, bytes);
	EXPECT(!good(kind, nullptr, 0));
	for (size_t len = 0; len <= whole + 8; len++) {
		Exact cut(bytes, whole, len);
		ASSERT(cut.bytes != nullptr);
		bool wanted = is_private(kind) ? len >= whole : len == whole;
		if (good(kind, cut.bytes, len) != wanted)
			kdk_fail(test, __FILE__, __LINE__, "%zu of %zu bytes: %s", len, whole,
				 wanted ? "refused" : "taken");
	}
}

// IB and RoCE pad private data with zeros to 56, 196 or 148 bytes; iWARP does not.
void kdk_case_padded_and_exact(struct kunit *test)
{
	uint32_t kind = kdk_param(test)->a;
	constexpr size_t padded_sizes[] = {56, 196, 148};
	if (!is_private(kind))
		return kdk_skip(test, "no private data");
	uint8_t bytes[256] = {};
	size_t whole = make(kind, bytes);
	Exact exact(bytes, whole, whole), padded(bytes, whole, padded_sizes[kind]);
	ASSERT(exact.bytes && padded.bytes);
	struct Result {
		RequestInfo request{};
		ReplyInfo reply{};
		Verdict verdict{};
	};
	auto decode = [&](const uint8_t *from, size_t len, Result &out) {
		switch (kind) {
		case KRequest: return !decode_request(from, len, out.request);
		case KReply: return decode_reply(from, len, later_request, out.reply);
		default: return decode_reject(from, len, out.verdict);
		}
	};
	Result a, b;
	EXPECT(decode(exact.bytes, whole, a));
	EXPECT(decode(padded.bytes, padded_sizes[kind], b));
	EXPECT(same_bytes(&a.request, &b.request, sizeof(a.request)));
	EXPECT(same_bytes(&a.reply, &b.reply, sizeof(a.reply)));
	EXPECT(a.verdict.reason == b.verdict.reason && a.verdict.value == b.verdict.value);
	// nothing but zeros, as from a peer that sends none
	for (size_t i = 0; i < whole; i++)
		padded.bytes[i] = 0;
	EXPECT(!decode(padded.bytes, padded_sizes[kind], b));
}

// Each byte that is kept for later is zero, or the message is refused.
void kdk_case_reserved_bytes(struct kunit *test)
{
	struct {
		uint32_t kind;
		size_t from, to;
	} const ranges[] = {
		{KRequest, offsetof(Request, features), offsetof(Request, nonce)},
		{KReply, offsetof(Reply, features), offsetof(Reply, token)},
		{KReply, offsetof(Reply, reserved), sizeof(Reply)},
		{KControl, offsetof(ControlHeader, reserved), offsetof(ControlHeader, flags)},
		{KControl, offsetof(ControlHeader, reserved2), offsetof(ControlHeader, credits)},
		{KControl, offsetof(ControlHeader, reserved3), offsetof(ControlHeader, last)},
		{KControl, sizeof(ControlHeader) + offsetof(CreditEntry, reserved),
		 sizeof(ControlHeader) + offsetof(CreditEntry, credits)},
		{KControl,
		 sizeof(ControlHeader) + 2 * sizeof(CreditEntry) + offsetof(DoneEntry, reserved),
		 sizeof(ControlHeader) + 2 * sizeof(CreditEntry) + sizeof(DoneEntry)},
	};
	uint32_t kind = kdk_param(test)->a;
	uint8_t bytes[256] = {};
	size_t whole = make(kind, bytes);
	auto refused = [&](size_t at) {
		for (uint8_t bit = 1; bit; bit = uint8_t(bit << 1)) {
			bytes[at] ^= bit;
			if (good(kind, bytes, whole))
				kdk_fail(test, __FILE__, __LINE__, "bit %#x of byte %zu was taken",
					 bit, at);
			bytes[at] ^= bit;
		}
	};
	EXPECT(good(kind, bytes, whole));
	if (kind == KReject) // read by an older end: it shows the reason all the same
		return kdk_skip(test, "a reason is shown, whatever comes with it");
	if (!is_private(kind) && kind != KControl)
		for (size_t at = offsetof(DataHeader, flags); at < offsetof(DataHeader, length);
		     at++)
			refused(at);
	for (const auto &range : ranges)
		for (size_t at = range.from; range.kind == kind && at < range.to; at++)
			refused(at);
}
