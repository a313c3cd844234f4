// SPDX-License-Identifier: GPL-2.0-only
// Private data and messages into the decoders: whatever they accept is within the
// protocol's limits, and means the same when it is encoded again.
#include <algorithm>
#include <vector>

#include "../../kmod/core/wire_map.hh"
#include "input.h"

using namespace kd::wire;

namespace
{

bool within(uint64_t value, uint64_t low, uint64_t high)
{
	return value >= low && value <= high;
}

void request(const std::vector<uint8_t> &bytes)
{
	RequestInfo info{}, again{};
	Verdict verdict = decode_request(bytes.data(), bytes.size(), info);

	MUST(std::strlen(refusal_format(verdict.reason)) > 0);
	if (verdict)
		return;
	MUST(bytes.size() >= sizeof(Request));
	MUST(within(info.queues + info.poll_queues, 1, max_queues));
	MUST(info.queue <= info.queues + info.poll_queues);
	MUST(within(info.depth, min_depth, max_depth));
	MUST(within(info.eager_limit, min_eager, max_eager));
	MUST(within(info.max_message, min_message, max_message));
	MUST((info.queue == 0 && info.attempt == 0) == (info.token == 0));
	Request encoded;
	encode_request(info, encoded);
	MUST(!std::memcmp(&encoded, bytes.data(), sizeof(encoded)));
	MUST(!decode_request(&encoded, sizeof(encoded), again));
	MUST(!std::memcmp(&info, &again, sizeof(info)));
}

void reply(const std::vector<uint8_t> &bytes, const RequestInfo &asked)
{
	ReplyInfo info{};

	if (!decode_reply(bytes.data(), bytes.size(), asked, info))
		return;
	MUST(bytes.size() >= sizeof(Reply));
	MUST(info.queue == asked.queue && info.token != 0);
	MUST(asked.token == 0 || info.token == asked.token);
	MUST(within(info.depth, min_depth, asked.depth));
	MUST(within(info.eager_limit, min_eager, asked.eager_limit));
	MUST(within(info.max_message, min_message, asked.max_message));
	Reply encoded;
	encode_reply(info, encoded);
	MUST(!std::memcmp(&encoded, bytes.data(), sizeof(encoded)));
}

void reject(const std::vector<uint8_t> &bytes)
{
	Verdict verdict;
	char text[160];

	if (!decode_reject(bytes.data(), bytes.size(), verdict))
		return;
		/* as the core does: every format takes at most the one number */
#pragma clang diagnostic push
#pragma clang diagnostic ignored "-Wformat-security"
#pragma clang diagnostic ignored "-Wformat-nonliteral"
	MUST(std::snprintf(text, sizeof(text), refusal_format(verdict.reason), verdict.value) > 0);
#pragma clang diagnostic pop
}

void data(const std::vector<uint8_t> &bytes, uint32_t eager, uint32_t most)
{
	DataInfo info{};

	if (!decode_data(bytes.data(), bytes.size(), eager, most, info))
		return;
	std::size_t payload = bytes.size() - sizeof(DataHeader);
	switch (info.type) {
	case DataType::Hello: MUST(!payload && !info.length); break;
	case DataType::Eager:
		MUST(payload == info.length);
		MUST(within(info.length, 0, eager));
		break;
	case DataType::Ping:
	case DataType::Pong:
		MUST(payload == info.length);
		MUST(within(info.length, 1, eager));
		break;
	case DataType::Offer:
		MUST(!payload);
		MUST(within(info.length, 1, most));
		MUST(info.addr + info.length >= info.addr);
		break;
	default: MUST(!"a type that there is not");
	}
	uint8_t encoded[sizeof(DataHeader)];
	encode_data(info, encoded);
	MUST(!std::memcmp(encoded, bytes.data(), sizeof(encoded)));
}

void map(const std::vector<uint8_t> &bytes)
{
	MapInfo info{};
	std::vector<uint8_t> encoded(control_size);

	if (!decode_map(bytes.data(), bytes.size(), info))
		return;
	MUST(info.id < max_maps && info.nr_keys <= map_keys_at_once);
	if (info.op == MapOp::Mapped) {
		MUST(within(info.key_bytes, min_key_bytes, max_key_bytes));
		MUST(within(map_keys(info.size, info.key_bytes), 1, max_map_keys));
	}
	MUST(std::strlen(name(info.op)) > 0);
	MUST(encode_map(info, encoded.data()) == bytes.size());
	MUST(!std::memcmp(encoded.data(), bytes.data(), bytes.size()));
}

void control(const std::vector<uint8_t> &bytes)
{
	if (is_map_message(bytes.data(), bytes.size()))
		return map(bytes);
	ControlInfo info;
	/* exactly what the largest message takes, so that more of it shows */
	std::vector<uint8_t> encoded(control_size);

	if (!decode_control(bytes.data(), bytes.size(), info))
		return;
	MUST(!(info.flags & ~control_flags));
	MUST(info.nr_credits <= max_credit_entries && info.nr_done <= max_done_entries);
	for (uint32_t i = 0; i < info.nr_credits; i++)
		MUST(within(info.credit[i].queue, 1, max_queues));
	for (uint32_t i = 0; i < info.nr_done; i++)
		MUST(within(info.done[i].queue, 1, max_queues));
	MUST(encode_control(info, encoded.data()) == bytes.size());
	MUST(!std::memcmp(encoded.data(), bytes.data(), bytes.size()));
}

/* How the bytes behind it are to be read. */
struct How {
	uint8_t kind;
	uint8_t queue;
	uint16_t eager, depth;
	uint32_t most;
	uint8_t token;
} __attribute__((packed));

template <class Header>
Header header(const uint8_t *at)
{
	Header h;

	std::memcpy(&h, at, sizeof(h));
	return h;
}

/* The length that a message says it has, or 0: any. */
std::size_t proper_length(uint8_t kind, const uint8_t *at, std::size_t size)
{
	if (kind == 3 && size >= sizeof(DataHeader)) {
		auto h = header<DataHeader>(at);
		bool payload = h.type == 2 || h.type == 4 || h.type == 5;
		return sizeof(h) + (payload ? h.length & 1023 : 0);
	}
	if (kind == 4 && size >= sizeof(MapHeader) && is_map_message(at, size)) {
		auto h = header<MapHeader>(at);
		bool named = h.op == uint8_t(MapOp::Map);
		return sizeof(h) + (named ? map_name_size : h.keys * sizeof(MapKey));
	}
	if (kind == 4 && size >= sizeof(ControlHeader)) {
		auto h = header<ControlHeader>(at);
		return sizeof(h) + h.credit_entries * sizeof(CreditEntry) +
		       h.done_entries * sizeof(DoneEntry);
	}
	return 0;
}

} // namespace

extern "C" size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t most);

/* Messages mostly have the length that they say; what is added are entries of queue 1. */
extern "C" size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t most,
					  unsigned int seed)
{
	size = LLVMFuzzerMutate(data, size, most);
	if (size <= sizeof(How) || seed % 4 == 0)
		return size;
	uint8_t *at = data + sizeof(How);
	std::size_t had = size - sizeof(How), room = most - sizeof(How);
	std::size_t wanted = proper_length(data[0] % 5, at, had);
	if (!wanted || wanted > room)
		return size;
	if (wanted > had)
		std::memset(at + had, 0, wanted - had);
	if (data[0] % 5 == 4 && seed % 4 == 1 && !is_map_message(at, wanted)) {
		auto h = header<ControlHeader>(at);
		uint8_t *entry = at + sizeof(h);
		for (int i = 0; i < h.credit_entries; i++, entry += sizeof(CreditEntry)) {
			CreditEntry one;
			one.queue = 1;
			std::memcpy(entry, &one, sizeof(one));
		}
		for (int i = 0; i < h.done_entries; i++, entry += sizeof(DoneEntry)) {
			DoneEntry one;
			one.queue = 1;
			std::memcpy(entry, &one, sizeof(one));
		}
	}
	return sizeof(How) + wanted;
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *input, size_t size)
{
	Input in(input, size);
	How how = in.take<How>();
	uint32_t eager = std::min(min_eager + how.eager, max_eager);
	uint32_t most = min_message + how.most % (max_message - min_message + 1);
	RequestInfo asked{how.queue % 3u,
			  2,
			  0,
			  min_depth + how.depth % max_depth,
			  eager,
			  most,
			  1,
			  how.queue % 3u ? how.token + 1ULL : 0,
			  0,
			  0};
	/* a copy of its exact length, so that reading past it shows */
	std::vector<uint8_t> bytes(in.data(), in.data() + in.size());

	bytes.shrink_to_fit();
	switch (how.kind % 5) {
	case 0: request(bytes); break;
	case 1: reply(bytes, asked); break;
	case 2: reject(bytes); break;
	case 3: data(bytes, eager, most); break;
	case 4: control(bytes); break;
	}
	return 0;
}
