// SPDX-License-Identifier: GPL-2.0-only
#include "limits.hh"

#include "../../uapi/kdirect_netlink.h"

namespace kd::limits
{

namespace
{

bool is_letter(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}
bool is_name_char(char c)
{
	return is_letter(c) || (c >= '0' && c <= '9') || c == '_' || c == '-';
}

struct Range {
	const char *what;
	const char *unit;
	uint16_t attr;
	uint32_t low, high;
};
constexpr Range queues{"queues", "", KDIRECT_A_QUEUES, 0, wire::max_queues};
constexpr Range poll_queues{"poll-queues", "", KDIRECT_A_POLL_QUEUES, 0, wire::max_queues};
constexpr Range depth{"depth", "", KDIRECT_A_DEPTH, wire::min_depth, wire::max_depth};
constexpr Range max_depth{"max-depth", "", KDIRECT_A_MAX_DEPTH, wire::min_depth, wire::max_depth};
constexpr Range max_queues{"max-queues", "", KDIRECT_A_MAX_QUEUES, 1, wire::max_queues};
constexpr Range channels{"max-channels", "", KDIRECT_A_MAX_CHANNELS, 1, limits::max_channels};
constexpr Range message{"max-message", " bytes", KDIRECT_A_MAX_MESSAGE, wire::min_message,
			wire::max_message};
constexpr Range eager{"eager-limit", " bytes", KDIRECT_A_EAGER_LIMIT, wire::min_eager,
		      wire::max_eager};
constexpr Range keep_alive{"keep-alive", " ms", KDIRECT_A_KEEP_ALIVE_MS, 100, 60000};
constexpr Range keep_alive_misses{"keep-alive-misses", "", KDIRECT_A_KEEP_ALIVE_MISSES, 1, 100};
constexpr Range request_timeout{"request-timeout", " ms", KDIRECT_A_REQUEST_TIMEOUT_MS, 1000,
				600000};
constexpr Range connect_timeout{"connect-timeout", " ms", KDIRECT_A_CONNECT_TIMEOUT_MS, 100,
				120000};
constexpr Range drain_timeout{"drain-timeout", " ms", KDIRECT_A_DRAIN_TIMEOUT_MS, 10, 60000};
constexpr uint32_t day_ms = 86400000;
constexpr Range loss_timeout{"loss-timeout", " ms", KDIRECT_A_LOSS_TIMEOUT_MS, 100, day_ms};
constexpr Range fast_io_fail{"fast-io-fail", " ms", KDIRECT_A_FAST_IO_FAIL_MS, 100, day_ms};
constexpr Range reconnect_delay{"reconnect-delay", " ms", KDIRECT_A_RECONNECT_DELAY_MS, 100,
				600000};
constexpr Range reconnect_max_delay{"reconnect-max-delay", " ms", KDIRECT_A_RECONNECT_MAX_DELAY_MS,
				    100, 600000};
constexpr Range poll_cpu{"poll-cpu", " percent", KDIRECT_A_POLL_CPU_PERCENT, 1, 100};
constexpr Range cq_count{"cq-count", "", KDIRECT_A_CQ_COUNT, 0, 65535};
constexpr Range cq_period{"cq-period", " us", KDIRECT_A_CQ_PERIOD_US, 0, 65535};
constexpr Range retry_count{"retry-count", "", KDIRECT_A_RETRY_COUNT, 0, limits::max_retry_count};
constexpr Range rnr_retry_count{"rnr-retry-count", "", KDIRECT_A_RNR_RETRY_COUNT, 0,
				limits::max_retry_count};
constexpr Range initiator_depth{"initiator-depth", "", KDIRECT_A_INITIATOR_DEPTH, 0, 255};
constexpr Range responder_resources{"responder-resources", "", KDIRECT_A_RESPONDER_RESOURCES, 0,
				    255};
constexpr Range port{"port", "", KDIRECT_A_PORT, 1, 65535};

Status check(const Range &r, uint32_t value, kd_error *error)
{
	if (value >= r.low && value <= r.high)
		return {};
	return KD_ERROR(error, KD_ERANGE, r.attr, "%s %u%s is out of range %u..%u%s", r.what, value,
			r.unit, r.low, r.high, r.unit);
}

Status check_addr(const kd_addr &addr, uint16_t attr, const char *what, kd_error *error)
{
	if (addr.len == 4 || addr.len == 16)
		return {};
	return KD_ERROR(error, KD_EINVAL, attr, "%s has %u bytes; 4 (IPv4) or 16 (IPv6) are needed",
			what, addr.len);
}

bool unspecified(const kd_addr &addr)
{
	for (uint32_t i = 0; i < addr.len; i++)
		if (addr.bytes[i])
			return false;
	return true;
}

Status check_allow(const kd_listener_params &p, kd_error *error)
{
	for (uint32_t i = 0; i < p.nr_allow; i++) {
		const kd_prefix &prefix = p.allow[i];
		if (Status st = check_addr(prefix.addr, KDIRECT_A_ALLOW, "allow prefix", error);
		    !st.ok())
			return st;
		if (prefix.bits > prefix.addr.len * 8)
			return KD_ERROR(error, KD_ERANGE, KDIRECT_A_PREFIX_LEN,
					"prefix length %u is out of range 0..%u", prefix.bits,
					prefix.addr.len * 8);
	}
	return {};
}

// The first check that fails, or success.
template <class... Checks>
Status first_failure(const Checks &...checks)
{
	Status st;
	(void)((st = checks(), st.ok()) && ...);
	return st;
}

// What only raw channels have.
Status check_raw(uint32_t mode, const kd_raw_params &p, uint32_t has, uint32_t most_data,
		 kd_error *error)
{
	if (mode > KDIRECT_MODE_RAW)
		return KD_ERROR(error, KD_ERANGE, KDIRECT_A_MODE,
				"mode %u is out of range %u..%u (session, raw)", mode,
				KDIRECT_MODE_SESSION, KDIRECT_MODE_RAW);
	if (p.data_len > most_data)
		return KD_ERROR(error, KD_ERANGE, KDIRECT_A_PRIVATE_DATA,
				"private-data has %u bytes, out of range 0..%u", p.data_len,
				most_data);
	Status st = first_failure(
		[&] { return check(retry_count, p.retry_count, error); },
		[&] { return check(rnr_retry_count, p.rnr_retry_count, error); },
		[&] { return check(initiator_depth, p.initiator_depth, error); },
		[&] { return check(responder_resources, p.responder_resources, error); });
	if (st.ok() && mode != KDIRECT_MODE_RAW && (has & KD_HAS_RAW))
		st = KD_ERROR(
			error, KD_EINVAL, KDIRECT_A_MODE,
			"private-data, hold, retry-count, rnr-retry-count, initiator-depth and "
			"responder-resources are of mode raw only");
	return st;
}

} // namespace

Status check_name(const char *name, size_t max, kd_error *error)
{
	size_t len = 0;
	for (; name[len] && len <= KD_NAME_MAX; len++) {
		char c = name[len];
		if (len == 0 ? is_letter(c) : is_name_char(c))
			continue;
		return KD_ERROR(error, KD_EINVAL, KDIRECT_A_NAME,
				"name has the byte 0x%02x at %u; a letter, then letters, digits, "
				"'_' and '-' are allowed",
				uint8_t(c), unsigned(len));
	}
	if (len == 0)
		return KD_ERROR(error, KD_EINVAL, KDIRECT_A_NAME, "name is empty; 1..%u bytes",
				unsigned(max));
	if (len > max)
		return KD_ERROR(error, KD_EINVAL, KDIRECT_A_NAME,
				"name \"%s\" is too long; 1..%u bytes", name, unsigned(max));
	return {};
}

Status check_listener(const kd_listener_params &p, kd_error *error)
{
	return first_failure(
		[&] { return check_name(p.name, max_listener_name, error); },
		[&] { return check_addr(p.local.addr, KDIRECT_A_ADDR, "addr", error); },
		[&] { return check(port, p.local.port, error); },
		[&] { return check_allow(p, error); },
		[&] { return check(channels, p.max_channels, error); },
		[&] { return check(max_queues, p.max_queues, error); },
		[&] { return check(max_depth, p.max_depth, error); },
		[&] { return check(message, p.max_message, error); },
		[&] { return check(eager, p.eager_limit, error); },
		[&] { return check_raw(p.mode, p.raw, p.has, KD_ACCEPT_MAX, error); });
}

Status check_listener_change(const kd_listener_params &p, kd_error *error)
{
	if (!p.has)
		return KD_ERROR(error, KD_EINVAL, 0, "nothing to set: allow, max-channels");
	if ((p.has & KD_HAS_ALLOW) && (p.has & KD_HAS_ALLOW_CLEAR))
		return KD_ERROR(error, KD_EINVAL, KDIRECT_A_ALLOW_CLEAR,
				"allow cannot be given and cleared at once");
	if (p.has & KD_HAS_MAX_CHANNELS)
		if (Status st = check(channels, p.max_channels, error); !st.ok())
			return st;
	return check_allow(p, error);
}

Status check_channel(const kd_channel_params &p, kd_error *error)
{
	Status st = first_failure(
		[&] { return check_name(p.name, KD_NAME_MAX, error); },
		[&] { return check_addr(p.peer.addr, KDIRECT_A_ADDR, "addr", error); },
		[&] { return check(port, p.peer.port, error); },
		[&] { return check(queues, p.queues, error); },
		[&] { return check(poll_queues, p.poll_queues, error); },
		[&] { return check(depth, p.depth, error); },
		[&] { return check(message, p.max_message, error); },
		[&] { return check(connect_timeout, p.connect_timeout_ms, error); },
		[&] { return check_raw(p.mode, p.raw, p.has, KD_PRIVATE_MAX, error); },
		[&] { return check_channel_change(p, error); });
	if (!st.ok())
		return st;
	if (p.mode == KDIRECT_MODE_RAW && (p.queues > 1 || p.poll_queues > 1))
		return KD_ERROR(error, KD_EINVAL,
				p.queues > 1 ? KDIRECT_A_QUEUES : KDIRECT_A_POLL_QUEUES,
				"queues %u and poll-queues %u: a raw channel has one queue",
				p.queues, p.poll_queues);
	uint32_t sum = p.queues + p.poll_queues;
	if (sum < 1 || sum > wire::max_queues)
		return KD_ERROR(error, KD_ERANGE, KDIRECT_A_QUEUES,
				"queues %u and poll-queues %u are %u together, out of range 1..%u",
				p.queues, p.poll_queues, sum, wire::max_queues);
	if (unspecified(p.peer.addr))
		return KD_ERROR(error, KD_EINVAL, KDIRECT_A_ADDR,
				"addr is the unspecified address; a peer's is needed");
	if (p.source.len && p.source.len != p.peer.addr.len)
		return KD_ERROR(error, KD_EINVAL, KDIRECT_A_SRC_ADDR,
				"source address has %u bytes, the peer's has %u", p.source.len,
				p.peer.addr.len);
	return {};
}

Status check_channel_change(const kd_channel_params &p, kd_error *error)
{
	Status st = first_failure(
		[&] { return check(eager, p.eager_limit, error); },
		[&] { return check(drain_timeout, p.drain_timeout_ms, error); },
		[&] { return check(keep_alive_misses, p.keep_alive_misses, error); },
		[&] { return check(request_timeout, p.request_timeout_ms, error); },
		[&] { return check(reconnect_delay, p.reconnect_delay_ms, error); },
		[&] { return check(reconnect_max_delay, p.reconnect_max_delay_ms, error); },
		[&] { return check(poll_cpu, p.poll_cpu_percent, error); },
		[&] { return check(cq_count, p.cq_count, error); },
		[&] { return check(cq_period, p.cq_period_us, error); });
	if (st.ok() && p.keep_alive_ms)
		st = check(keep_alive, p.keep_alive_ms, error);
	if (st.ok() && p.loss_timeout_ms && p.loss_timeout_ms != never)
		st = check(loss_timeout, p.loss_timeout_ms, error);
	if (st.ok() && p.fast_io_fail_ms)
		st = check(fast_io_fail, p.fast_io_fail_ms, error);
	if (st.ok() && p.poll_mode > KDIRECT_POLL_ADAPTIVE)
		st = KD_ERROR(error, KD_ERANGE, KDIRECT_A_POLL_MODE,
			      "poll-mode %u is out of range %u..%u (busy, hybrid, adaptive)",
			      p.poll_mode, KDIRECT_POLL_BUSY, KDIRECT_POLL_ADAPTIVE);
	return st;
}

Status check_export(const kd_export_params &p, kd_error *error)
{
	Status st = first_failure([&] { return check_name(p.name, KD_NAME_MAX, error); },
				  [&] { return check_name(p.listener, max_listener_name, error); });
	if (!st.ok())
		return st;
	if (p.size >= 1 && p.size <= max_export_bytes)
		return {};
	return KD_ERROR(error, KD_ERANGE, KDIRECT_A_SIZE, "size %llu is out of range 1..%llu bytes",
			static_cast<unsigned long long>(p.size),
			static_cast<unsigned long long>(max_export_bytes));
}

// A channel's name may be of an accepted one: only what is asked of the peer is checked.
Status check_map(const kd_map_params &p, kd_error *error)
{
	return first_failure([&] { return check_name(p.name, KD_NAME_MAX, error); },
			     [&] { return check_name(p.export_name, KD_NAME_MAX, error); });
}

bool matches(const kd_prefix &prefix, const kd_addr &addr)
{
	if (prefix.addr.len != addr.len)
		return false;
	uint32_t whole = prefix.bits / 8, rest = prefix.bits % 8;
	if (!same_bytes(prefix.addr.bytes, addr.bytes, whole))
		return false;
	uint8_t mask = uint8_t(0xff00 >> rest);
	return !rest || !((prefix.addr.bytes[whole] ^ addr.bytes[whole]) & mask);
}

kd_qp_params queue_shape(const Terms &terms)
{
	kd_qp_params shape{};
	shape.max_send = send_slots(terms) + 2 * offers(terms.depth) + io_copies(terms.depth);
	shape.max_recv = terms.depth + extra_slots;
	shape.max_reads = offers(terms.depth) + io_large(terms.depth);
	shape.max_read_pages = read_pages(terms);
	shape.max_writes = io_copies(terms.depth);
	shape.max_rw = io_large(terms.depth);
	return shape;
}

uint32_t key_bytes(uint32_t mr_pages)
{
	uint32_t bytes = wire::max_key_bytes;
	while (bytes > wire::min_key_bytes && bytes / page_size > mr_pages)
		bytes /= 2;
	return bytes;
}

uint64_t buffer_bytes(const Terms &terms)
{
	return 2ULL * (terms.depth + extra_slots) * (sizeof(wire::DataHeader) + terms.eager_limit);
}

kd_qp_params control_shape()
{
	kd_qp_params shape{};
	shape.max_send = wire::control_receives + wire::map_keys_at_once;
	shape.max_recv = wire::control_receives;
	return shape;
}

uint32_t cq_entries(Device *dev, const kd_qp_params &shape)
{
	return kd_qp_send_wrs(dev, &shape) + shape.max_recv + 1; // + the drain's receive
}

Status fit_without_reads(Terms &terms, kd_error *error)
{
	if (terms.max_message > terms.eager_limit)
		terms.max_message = terms.eager_limit;
	if (terms.max_message >= wire::min_message)
		return {};
	return KD_ERROR(error, KD_EOPNOTSUPP, KDIRECT_A_EAGER_LIMIT,
			"eager-limit %u bytes is below %u, and a device allows no RDMA READ",
			terms.eager_limit, wire::min_message);
}

Status can_moderate(Device *dev, kd_error *error)
{
	const struct kd_device_attr *attr = kd_device_attr(dev);
	if (attr->moderation)
		return {};
	return KD_ERROR(error, KD_EOPNOTSUPP, KDIRECT_A_CQ_COUNT,
			"device %s moderates no interrupts, or by itself: cq-count and cq-period "
			"cannot be set",
			attr->name);
}

Status fit(Device *dev, Terms &terms, kd_error *error)
{
	const struct kd_device_attr *attr = kd_device_attr(dev);
	uint64_t longest = uint64_t(attr->max_mr_pages) * page_size;
	if (terms.max_message > longest)
		terms.max_message = uint32_t(longest);
	if (terms.max_message < wire::min_message)
		return KD_ERROR(error, KD_EOPNOTSUPP, KDIRECT_A_MAX_MESSAGE,
				"device %s registers only %u pages at once", attr->name,
				attr->max_mr_pages);
	if (terms.eager_limit > terms.max_message)
		terms.eager_limit = terms.max_message;
	if (!attr->max_rd_atom || !attr->max_init_rd_atom)
		if (Status st = fit_without_reads(terms, error); !st.ok())
			return st;
	for (;; terms.depth /= 2) {
		kd_qp_params shape = queue_shape(terms);
		if (kd_qp_send_wrs(dev, &shape) <= attr->max_qp_wr &&
		    shape.max_recv + 1 <= attr->max_qp_wr &&
		    cq_entries(dev, shape) <= attr->max_cqe)
			return {};
		if (terms.depth == 1)
			return KD_ERROR(
				error, KD_EOPNOTSUPP, KDIRECT_A_DEPTH,
				"device %s allows %u WRs per QP and %u CQEs per CQ: too few "
				"for a depth of 1",
				attr->name, attr->max_qp_wr, attr->max_cqe);
	}
}

} // namespace kd::limits

using namespace kd;

namespace
{
// The peer waits for our receives as long as it takes: an RNR says that we are alive.
constexpr kd_raw_params default_raw = {
	.hold = false,
	.retry_count = limits::default_retry_count,
	.rnr_retry_count = limits::max_retry_count,
	.initiator_depth = limits::default_reads,
	.responder_resources = limits::default_reads,
	.data_len = 0,
	.data = {},
};
} // namespace

void kd_listener_defaults(kd_listener_params *p)
{
	*p = {};
	p->max_channels = limits::default_max_channels;
	p->max_queues = limits::default_max_queues;
	p->max_depth = limits::default_max_depth;
	p->max_message = wire::max_message;
	p->eager_limit = wire::max_eager;
	p->raw = default_raw;
}

void kd_channel_defaults(kd_channel_params *p)
{
	*p = {};
	p->queues = 1;
	p->depth = limits::default_depth;
	p->max_message = wire::max_message;
	p->eager_limit = limits::default_eager;
	p->keep_alive_ms = limits::default_keep_alive_ms;
	p->keep_alive_misses = limits::default_keep_alive_misses;
	p->request_timeout_ms = limits::default_request_timeout_ms;
	p->connect_timeout_ms = limits::default_connect_timeout_ms;
	p->drain_timeout_ms = limits::default_drain_timeout_ms;
	p->loss_timeout_ms = limits::default_loss_timeout_ms;
	p->reconnect_delay_ms = limits::default_reconnect_delay_ms;
	p->reconnect_max_delay_ms = limits::default_reconnect_max_delay_ms;
	p->poll_cpu_percent = limits::default_poll_cpu_percent;
	p->raw = default_raw;
}
