// SPDX-License-Identifier: GPL-2.0-only
#include "wire.hh"

namespace kd::wire
{

namespace
{

constexpr uint8_t control_type = 16;

bool all_zero(const uint8_t *bytes, size_t n)
{
	uint8_t sum = 0;
	for (size_t i = 0; i < n; i++)
		sum |= bytes[i];
	return sum == 0;
}

// Copies a structure out of received bytes; false if there are too few.
template <class T>
bool take(const void *data, size_t len, T &out)
{
	if (!data || len < sizeof(T))
		return false;
	__builtin_memcpy(&out, data, sizeof(T));
	return true;
}

Verdict outside(Refusal reason, uint32_t value, uint32_t low, uint32_t high)
{
	if (value < low)
		return {reason, low};
	if (value > high)
		return {reason, high};
	return {};
}

} // namespace

Verdict decode_request(const void *data, size_t len, RequestInfo &out)
{
	Request r;
	if (!take(data, len, r) || r.magic != magic)
		return {Refusal::Malformed};
	if (r.version != version)
		return {Refusal::Version, version};
	if (r.features != 0)
		return {Refusal::Features, r.features};
	out = {r.queue,       r.queues, r.poll_queues, r.depth,   r.eager_limit,
	       r.max_message, r.nonce,  r.token,       r.attempt, r.keep_ms};
	uint32_t queues = out.queues + out.poll_queues;
	if (Verdict v = outside(Refusal::Queues, queues, 1, max_queues))
		return v;
	if (out.queue > queues)
		return {Refusal::Queue, out.queue};
	if (Verdict v = outside(Refusal::Depth, out.depth, min_depth, max_depth))
		return v;
	if (Verdict v = outside(Refusal::EagerLimit, out.eager_limit, min_eager, max_eager))
		return v;
	if (Verdict v = outside(Refusal::MaxMessage, out.max_message, min_message, max_message))
		return v;
	// Only the first request of all knows no token.
	if ((out.queue == 0 && out.attempt == 0) != (out.token == 0))
		return {Refusal::NoChannel};
	return {};
}

void encode_request(const RequestInfo &info, Request &out)
{
	out = {};
	out.magic = magic;
	out.version = version;
	out.queue = uint16_t(info.queue);
	out.queues = uint16_t(info.queues);
	out.poll_queues = uint16_t(info.poll_queues);
	out.depth = info.depth;
	out.eager_limit = info.eager_limit;
	out.max_message = info.max_message;
	out.nonce = info.nonce;
	out.token = info.token;
	out.attempt = info.attempt;
	out.keep_ms = info.keep_ms;
}

bool decode_reply(const void *data, size_t len, const RequestInfo &asked, ReplyInfo &out)
{
	Reply r;
	if (!take(data, len, r) || r.magic != magic || r.version != version || r.features != 0 ||
	    !all_zero(r.reserved, sizeof(r.reserved)))
		return false;
	out = {r.queue, r.depth, r.eager_limit, r.max_message, r.token};
	if (out.queue != asked.queue || out.token == 0)
		return false;
	if (asked.token != 0 && out.token != asked.token)
		return false;
	return out.depth >= min_depth && out.depth <= asked.depth && out.eager_limit >= min_eager &&
	       out.eager_limit <= asked.eager_limit && out.max_message >= min_message &&
	       out.max_message <= asked.max_message;
}

void encode_reply(const ReplyInfo &info, Reply &out)
{
	out = {};
	out.magic = magic;
	out.version = version;
	out.queue = uint16_t(info.queue);
	out.depth = info.depth;
	out.eager_limit = info.eager_limit;
	out.max_message = info.max_message;
	out.token = info.token;
}

bool decode_reject(const void *data, size_t len, Verdict &out)
{
	Reject r;
	if (!take(data, len, r) || r.magic != magic)
		return false;
	out = {Refusal(uint16_t(r.reason)), r.value};
	return true;
}

void encode_reject(Verdict verdict, Reject &out)
{
	out = {};
	out.magic = magic;
	out.version = version;
	out.reason = uint16_t(verdict.reason);
	out.value = verdict.value;
}

const char *refusal_format(Refusal reason)
{
	switch (reason) {
	case Refusal::None: break;
	case Refusal::Malformed: return "the request is malformed";
	case Refusal::Version: return "it speaks protocol version %u only";
	case Refusal::Queue: return "queue index %u is wrong or taken";
	case Refusal::Queues: return "its limit of data queues is %u";
	case Refusal::Depth: return "its limit of depth is %u";
	case Refusal::EagerLimit: return "its bound of eager-limit is %u bytes";
	case Refusal::MaxMessage: return "its bound of max-message is %u bytes";
	case Refusal::Features: return "it does not know feature bits %#x";
	case Refusal::NoChannel: return "it knows no such channel";
	case Refusal::NotAllowed: return "its allow list excludes this address";
	case Refusal::Full: return "it has its maximum of %u channels";
	case Refusal::Resources: return "it is out of resources (errno %u)";
	case Refusal::ShuttingDown: return "its listener is being deleted";
	case Refusal::Again: return "another attempt to connect the channel is under way";
	}
	return "unknown reason";
}

bool decode_data(const void *data, size_t len, uint32_t eager_limit, uint32_t max_message,
		 DataInfo &out)
{
	DataHeader h;
	if (!take(data, len, h) || h.flags != 0 || h.reserved != 0)
		return false;
	out = {DataType(h.type), h.length, h.credits, h.rkey, h.seq, h.addr};
	size_t payload = len - sizeof(h);
	switch (out.type) {
	case DataType::Hello: return payload == 0 && out.length == 0;
	case DataType::Eager: return out.length <= eager_limit && payload == out.length;
	case DataType::Ping:
	case DataType::Pong:
		return out.length >= 1 && out.length <= eager_limit && payload == out.length;
	case DataType::Offer:
		return payload == 0 && out.length >= 1 && out.length <= max_message &&
		       out.addr + out.length >= out.addr;
	}
	return false;
}

void encode_data(const DataInfo &info, void *out)
{
	DataHeader h;
	h.type = uint8_t(info.type);
	h.flags = 0;
	h.length = info.length;
	h.seq = info.seq;
	h.credits = info.credits;
	h.rkey = info.rkey;
	h.addr = info.addr;
	__builtin_memcpy(out, &h, sizeof(h));
}

bool decode_control(const void *data, size_t len, ControlInfo &out)
{
	ControlHeader h;
	if (!take(data, len, h) || h.type != control_type || h.reserved != 0 || h.reserved2 != 0 ||
	    h.reserved3 != 0 || (h.flags & ~control_flags) ||
	    h.credit_entries > max_credit_entries || h.done_entries > max_done_entries)
		return false;
	out.flags = h.flags;
	out.credits = h.credits;
	out.last = h.last;
	out.nr_credits = h.credit_entries;
	out.nr_done = h.done_entries;
	if (len !=
	    sizeof(h) + out.nr_credits * sizeof(CreditEntry) + out.nr_done * sizeof(DoneEntry))
		return false;
	auto *at = static_cast<const uint8_t *>(data) + sizeof(h);
	for (uint32_t i = 0; i < out.nr_credits; i++, at += sizeof(CreditEntry)) {
		CreditEntry entry;
		__builtin_memcpy(&entry, at, sizeof(entry));
		if (entry.reserved != 0 || entry.queue == 0 || entry.queue > max_queues)
			return false;
		out.credit[i] = {entry.queue, entry.credits};
	}
	for (uint32_t i = 0; i < out.nr_done; i++, at += sizeof(DoneEntry)) {
		DoneEntry entry;
		__builtin_memcpy(&entry, at, sizeof(entry));
		if (entry.reserved != 0 || entry.queue == 0 || entry.queue > max_queues)
			return false;
		out.done[i] = {entry.seq, entry.queue};
	}
	return true;
}

uint32_t encode_control(const ControlInfo &info, void *out)
{
	ControlHeader h;
	h.type = control_type;
	h.credit_entries = uint8_t(info.nr_credits);
	h.done_entries = uint8_t(info.nr_done);
	h.reserved = 0;
	h.flags = info.flags;
	h.credits = info.credits;
	h.last = info.last;
	auto *at = static_cast<uint8_t *>(out);
	__builtin_memcpy(at, &h, sizeof(h));
	at += sizeof(h);
	for (uint32_t i = 0; i < info.nr_credits; i++, at += sizeof(CreditEntry)) {
		CreditEntry entry;
		entry.queue = info.credit[i].queue;
		entry.credits = info.credit[i].credits;
		__builtin_memcpy(at, &entry, sizeof(entry));
	}
	for (uint32_t i = 0; i < info.nr_done; i++, at += sizeof(DoneEntry)) {
		DoneEntry entry;
		entry.seq = info.done[i].seq;
		entry.queue = info.done[i].queue;
		__builtin_memcpy(at, &entry, sizeof(entry));
	}
	return uint32_t(at - static_cast<uint8_t *>(out));
}

} // namespace kd::wire
