// SPDX-License-Identifier: GPL-2.0-only
// What two ends of a session say to each other: Documentation/protocol.md.
// Everything is little-endian. Nothing that arrives is believed: decode_*()
// checks each field by itself; whoever uses the result checks it against its
// own state.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>

namespace kd::wire
{

// An integer as it stands on the wire, at any alignment.
template <class T>
class Le
{
public:
	constexpr Le() = default;
	constexpr Le(T value) : bytes_(std::bit_cast<Bytes>(swapped(value))) {}
	constexpr operator T() const { return swapped(std::bit_cast<T>(bytes_)); }

private:
	struct Bytes {
		uint8_t at[sizeof(T)];
	};
	static constexpr T swapped(T value)
	{
		if constexpr (std::endian::native == std::endian::little)
			return value;
		T out = 0;
		for (size_t i = 0; i < sizeof(T); i++)
			out = T(out << 8 | (value >> (8 * i) & 0xff));
		return out;
	}
	Bytes bytes_{};
};
using Le16 = Le<uint16_t>;
using Le32 = Le<uint32_t>;
using Le64 = Le<uint64_t>;

constexpr uint32_t magic = 0x5249444b; // "KDIR"
constexpr uint16_t version = 2;

// --- connection private data ---------------------------------------------------

// In a connection request: one per queue, queue 0 first.
struct Request {
	Le32 magic;
	Le16 version;
	Le16 queue;  // 0 = control queue
	Le16 queues; // interrupt queues
	Le16 poll_queues;
	Le32 depth;       // messages in flight per queue and direction
	Le32 eager_limit; // bytes
	Le32 max_message; // bytes
	Le32 features;    // none yet: must be zero
	Le64 nonce;       // of this channel, chosen by the initiator
	// Given by the target in its reply to the first request of a session, where it is zero.
	Le64 token;
	Le32 attempt; // the session's connections so far: 0, or this resumes it
	Le32 keep_ms; // how long the target is to keep the session without a connection
};
static_assert(sizeof(Request) == 52 && alignof(Request) == 1);

// In the reply: what was agreed, never more than was asked for.
struct Reply {
	Le32 magic;
	Le16 version;
	Le16 queue;
	Le32 depth;
	Le32 eager_limit;
	Le32 max_message;
	Le32 features;
	Le64 token;
	uint8_t reserved[8];
};
static_assert(sizeof(Reply) == 40);

enum class Refusal : uint16_t {
	None,
	Malformed,    // value: none
	Version,      // value: ours
	Queue,        // queue index wrong or taken; value: the index
	Queues,       // value: the most that is allowed
	Depth,        // value: the least or most that is allowed
	EagerLimit,   // value: likewise
	MaxMessage,   // value: likewise
	Features,     // value: the bits that are not known
	NoChannel,    // the token names no channel that is being set up
	NotAllowed,   // the allow list excludes the peer
	Full,         // value: max-channels
	Resources,    // out of memory or device resources; value: errno
	ShuttingDown, // the listener is being deleted
	Again,        // another attempt to connect the channel is under way
};

struct Reject {
	Le32 magic;
	Le16 version;
	Le16 reason; // Refusal
	Le32 value;
	Le32 reserved;
};
static_assert(sizeof(Reject) == 16);

// Limits of the protocol itself.
constexpr uint32_t max_queues = 64; // data queues
constexpr uint32_t min_depth = 1, max_depth = 1024;
constexpr uint32_t min_eager = 256, max_eager = 65536;
constexpr uint32_t min_message = 4096, max_message = 1048576;

struct Verdict {
	Refusal reason = Refusal::None;
	uint32_t value = 0;
	explicit operator bool() const { return reason != Refusal::None; }
};

// A request in host order, checked.
struct RequestInfo {
	uint32_t queue, queues, poll_queues, depth, eager_limit, max_message;
	uint64_t nonce, token;
	uint32_t attempt, keep_ms;
};
Verdict decode_request(const void *data, size_t len, RequestInfo &out);
void encode_request(const RequestInfo &info, Request &out);

struct ReplyInfo {
	uint32_t queue, depth, eager_limit, max_message;
	uint64_t token;
};
// `asked` is the request that this answers. False: not a kdirect peer, or one that lies.
[[nodiscard]] bool decode_reply(const void *data, size_t len, const RequestInfo &asked,
				ReplyInfo &out);
void encode_reply(const ReplyInfo &info, Reply &out);

// False: the private data is not kdirect's.
[[nodiscard]] bool decode_reject(const void *data, size_t len, Verdict &out);
void encode_reject(Verdict verdict, Reject &out);
// printf-like text with one %u for the value
const char *refusal_format(Refusal reason);

// --- messages on data queues ------------------------------------------------------

enum class DataType : uint8_t {
	Hello = 1, // first on each queue and connection, in both directions
	Eager,     // the message follows the header
	Offer,     // the message waits for an RDMA READ at addr
	Ping,      // to be sent back as Pong
	Pong
};

struct DataHeader {
	uint8_t type;
	uint8_t flags; // zero
	Le16 reserved;
	Le32 length; // bytes of the message or of the ping
	// Eager, Offer: from 0, over all queues of the channel; Ping, Pong: its number; Hello:
	// messages that have arrived, ever
	Le64 seq;
	// receives of this queue posted anew on this connection; Hello: those that hold a message
	Le32 credits;
	Le32 rkey; // Offer
	Le64 addr; // Offer
};
static_assert(sizeof(DataHeader) == 32 && alignof(DataHeader) == 1);

struct DataInfo {
	DataType type;
	uint32_t length, credits, rkey;
	uint64_t seq, addr;
};
// `len` bytes arrived. False: malformed, or above these limits.
[[nodiscard]] bool decode_data(const void *data, size_t len, uint32_t eager_limit,
			       uint32_t max_message, DataInfo &out);
void encode_data(const DataInfo &info, void *out);

// --- messages on the control queue --------------------------------------------------

enum ControlFlag : uint16_t {
	Start = 1U << 0,     // target: every queue has said hello; the channel is live
	KeepAlive = 1U << 1, // please answer
	KeepAliveReply = 1U << 2,
	Bye = 1U << 3,          // no message after `last` comes; please answer
	ByeReply = 1U << 4,     // every message before `last` has arrived
	ControlHello = 1U << 5, // initiator, first on the control queue
	control_flags = (1U << 6) - 1
};

constexpr uint32_t control_receives = 32; // posted by each side
constexpr uint32_t max_credit_entries = 16;
constexpr uint32_t max_done_entries = 16;

struct ControlHeader {
	uint8_t type; // 16
	uint8_t credit_entries;
	uint8_t done_entries;
	uint8_t reserved;
	Le16 flags;
	Le16 reserved2;
	Le32 credits; // control receives posted anew, ever
	Le32 reserved3;
	Le64 last; // Bye, ByeReply: messages sent, ever
};
static_assert(sizeof(ControlHeader) == 24 && alignof(ControlHeader) == 1);

struct CreditEntry {
	Le16 queue;
	Le16 reserved;
	Le32 credits;
};
struct DoneEntry {
	Le64 seq;   // of an offered message that has been fetched
	Le16 queue; // that carried the offer
	Le16 reserved;
};

// As it stands in a buffer: the header, credit entries, done entries.
constexpr uint32_t control_size = sizeof(ControlHeader) + max_credit_entries * sizeof(CreditEntry) +
				  max_done_entries * sizeof(DoneEntry);

struct ControlInfo {
	uint16_t flags = 0;
	uint32_t credits = 0;
	uint64_t last = 0;
	uint32_t nr_credits = 0, nr_done = 0;
	struct {
		uint16_t queue;
		uint32_t credits;
	} credit[max_credit_entries];
	struct {
		uint64_t seq;
		uint16_t queue;
	} done[max_done_entries];
};
[[nodiscard]] bool decode_control(const void *data, size_t len, ControlInfo &out);
// returns the length
uint32_t encode_control(const ControlInfo &info, void *out);

} // namespace kd::wire
