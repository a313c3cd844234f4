// SPDX-License-Identifier: GPL-2.0-only
// Ranges and defaults of everything an administrator can set, and what a device
// makes of it.
#pragma once

#include "os.hh"
#include "wire_map.hh"

namespace kd::limits
{

constexpr uint32_t max_channels = 1024;
constexpr uint32_t default_max_channels = 128;
constexpr uint32_t default_max_queues = 16;
constexpr uint32_t default_max_depth = 128;
constexpr uint32_t default_depth = 32;
constexpr uint32_t default_reads = 16;      // in flight, of one QP and direction
constexpr uint32_t default_retry_count = 6; // rxe takes 7 for "for ever": a dead peer stays
constexpr uint32_t max_retry_count = 7;
constexpr uint32_t default_eager = 16384; // Documentation/performance.md: the crossover
constexpr uint32_t default_keep_alive_ms = 5000;
constexpr uint32_t default_connect_timeout_ms = 10000;
constexpr uint32_t default_drain_timeout_ms = 3000;
constexpr uint32_t never = UINT32_MAX; // for ever, of a timeout in ms
// A target keeps the session of a peer that does not come back no longer than that.
constexpr uint32_t max_keep_ms = 86400000;
constexpr uint32_t default_loss_timeout_ms = 0;
constexpr uint32_t default_reconnect_delay_ms = 1000;
constexpr uint32_t default_reconnect_max_delay_ms = 10000; // nvme-rdma's delay
constexpr uint32_t default_poll_cpu_percent = 50;
constexpr uint32_t default_keep_alive_misses = 3;
constexpr uint32_t default_request_timeout_ms = 15000; // of a work request
constexpr uint32_t page_size = 4096;

// Large messages in flight per queue and direction.
constexpr uint32_t max_offers = 8;
constexpr uint32_t offers(uint32_t depth)
{
	return depth < max_offers ? depth : max_offers;
}

// Reads and writes of mappings under way per queue: copied ones, and others.
constexpr uint32_t io_copies(uint32_t depth)
{
	return depth;
}
constexpr uint32_t max_io_large = 16;
constexpr uint32_t io_large(uint32_t depth)
{
	return depth < max_io_large ? depth : max_io_large;
}

// Memory of all exports together, and so of one.
constexpr uint64_t max_export_bytes = 16ULL << 30;
constexpr uint32_t max_exports = 1024;
constexpr uint32_t max_mappings = 1024;
// What one key covers on a device that registers so many pages at once: a power of two.
uint32_t key_bytes(uint32_t mr_pages);

// Receives and sends of a data queue besides those for messages: a ping and a pong.
constexpr uint32_t extra_slots = 2;

// Names of listeners and channels: a letter, then letters, digits, '_' and '-'.
Status check_name(const char *name, size_t max, kd_error *error);
constexpr size_t max_listener_name = KD_NAME_MAX - sizeof("1023");

Status check_listener(const kd_listener_params &p, kd_error *error);
Status check_listener_change(const kd_listener_params &p, kd_error *error);
Status check_channel(const kd_channel_params &p, kd_error *error);
Status check_export(const kd_export_params &p, kd_error *error);
Status check_map(const kd_map_params &p, kd_error *error);
Status check_channel_change(const kd_channel_params &p, kd_error *error);

bool matches(const kd_prefix &prefix, const kd_addr &addr);

// Of a raw listener's channels: what they copy.
constexpr uint32_t raw_eager(const kd_listener_params &p)
{
	bool given = p.has & KD_HAS_EAGER_LIMIT;
	return given || p.eager_limit < default_eager ? p.eager_limit : default_eager;
}

// Buffers of all channels that one listener has accepted: what peers can
// make this machine set aside.
constexpr uint64_t max_listener_bytes = 1ULL << 30;

// What two ends agree on.
struct Terms {
	uint32_t depth, eager_limit, max_message;
	bool operator==(const Terms &other) const = default;
};
// The QP that a data queue of these terms needs; the caller fills in PD and CQ.
kd_qp_params queue_shape(const Terms &terms);
// SENDs of a data queue that may be outstanding, its hello included
constexpr uint32_t send_slots(const Terms &terms)
{
	return terms.depth + extra_slots + 1;
}
kd_qp_params control_shape();
// Pages of the largest kd_read of such a queue
constexpr uint32_t read_pages(const Terms &terms)
{
	return (terms.max_message + page_size - 1) / page_size;
}
// Buffers of one data queue, sending and receiving.
uint64_t buffer_bytes(const Terms &terms);
uint32_t cq_entries(Device *dev, const kd_qp_params &shape);
// Without RDMA READ every message has to be an eager one.
Status fit_without_reads(Terms &terms, kd_error *error);
// Whether interrupts can be moderated by a setting.
Status can_moderate(Device *dev, kd_error *error);
// Shrinks `terms` to what the device can do.
Status fit(Device *dev, Terms &terms, kd_error *error);

} // namespace kd::limits
