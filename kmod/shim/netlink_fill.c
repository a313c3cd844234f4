// SPDX-License-Identifier: GPL-2.0-only
/* Netlink answers: from the core's snapshots to attributes. */

#include <linux/sizes.h>

#include "netlink.h"

/* Attributes are written in one expression: the first that does not fit ends it. */

int kd_put_u64(struct sk_buff *skb, u16 attr, u64 value)
{
	return nla_put_u64_64bit(skb, attr, value, KDIRECT_A_PAD);
}

static int kd_put_addr(struct sk_buff *skb, u16 attr, const struct kd_addr *addr)
{
	return addr->len ? nla_put(skb, attr, addr->len, addr->bytes) : 0;
}

static int kd_put_text(struct sk_buff *skb, u16 attr, const char *text)
{
	return text && *text ? nla_put_string(skb, attr, text) : 0;
}

int kd_put_flag(struct sk_buff *skb, u16 attr, bool set)
{
	return set ? nla_put_flag(skb, attr) : 0;
}

int kd_put_error(struct sk_buff *skb, const struct kd_error *error)
{
	if (!error)
		return 0;
	return nla_put_u32(skb, KDIRECT_A_ERROR, error->err) ||
	       kd_put_text(skb, KDIRECT_A_CAUSE, error->text) ? -EMSGSIZE : 0;
}

int kd_fill_device(struct sk_buff *skb, const struct kd_device_info *info)
{
	const struct kd_device_attr *attr = &info->attr;
	/* a message is registered in one MR, and no longer than the protocol allows */
	u32 max_message = min_t(u64, (u64)attr->max_mr_pages * PAGE_SIZE, SZ_1M);

	return nla_put_u32(skb, KDIRECT_A_DEV_INDEX, attr->index) ||
	       nla_put_string(skb, KDIRECT_A_DEV_NAME, attr->name) ||
	       kd_put_u64(skb, KDIRECT_A_DEV_NODE_GUID, attr->node_guid) ||
	       nla_put_u32(skb, KDIRECT_A_DEV_TRANSPORT, attr->transport) ||
	       nla_put_u32(skb, KDIRECT_A_DEV_PORTS, attr->ports) ||
	       nla_put_u32(skb, KDIRECT_A_DEV_MAX_QP_WR, attr->max_qp_wr) ||
	       nla_put_u32(skb, KDIRECT_A_DEV_MAX_CQE, attr->max_cqe) ||
	       nla_put_u32(skb, KDIRECT_A_DEV_MAX_SGE, attr->max_send_sge) ||
	       nla_put_u32(skb, KDIRECT_A_DEV_MAX_MR_PAGES, attr->max_mr_pages) ||
	       nla_put_u32(skb, KDIRECT_A_DEV_MAX_RD_ATOM, attr->max_rd_atom) ||
	       nla_put_u32(skb, KDIRECT_A_DEV_CHANNELS, info->channels) ||
	       nla_put_u32(skb, KDIRECT_A_MAX_MESSAGE, max_message) ? -EMSGSIZE : 0;
}

static int kd_put_prefix(struct sk_buff *skb, const struct kd_prefix *prefix)
{
	struct nlattr *nest = nla_nest_start(skb, KDIRECT_A_ALLOW);

	if (!nest ||
	    nla_put(skb, KDIRECT_A_PREFIX_ADDR, prefix->addr.len, prefix->addr.bytes) ||
	    nla_put_u8(skb, KDIRECT_A_PREFIX_LEN, prefix->bits))
		return -EMSGSIZE;
	nla_nest_end(skb, nest);
	return 0;
}

static int kd_put_raw(struct sk_buff *skb, const struct kd_raw_params *raw)
{
	return (raw->data_len &&
		nla_put(skb, KDIRECT_A_PRIVATE_DATA, raw->data_len, raw->data)) ||
	       kd_put_flag(skb, KDIRECT_A_HOLD, raw->hold) ||
	       nla_put_u32(skb, KDIRECT_A_RETRY_COUNT, raw->retry_count) ||
	       nla_put_u32(skb, KDIRECT_A_RNR_RETRY_COUNT, raw->rnr_retry_count) ||
	       nla_put_u32(skb, KDIRECT_A_INITIATOR_DEPTH, raw->initiator_depth) ||
	       nla_put_u32(skb, KDIRECT_A_RESPONDER_RESOURCES, raw->responder_resources) ?
		       -EMSGSIZE : 0;
}

static int kd_put_mode(struct sk_buff *skb, u32 mode, const struct kd_raw_params *raw)
{
	return nla_put_u32(skb, KDIRECT_A_MODE, mode) ||
	       (mode == KDIRECT_MODE_RAW && kd_put_raw(skb, raw)) ? -EMSGSIZE : 0;
}

int kd_fill_listener(struct sk_buff *skb, const struct kd_listener_info *info)
{
	const struct kd_listener_params *params = &info->params;
	u32 i;

	for (i = 0; i < params->nr_allow; i++)
		if (kd_put_prefix(skb, &params->allow[i]))
			return -EMSGSIZE;
	return nla_put_string(skb, KDIRECT_A_NAME, params->name) ||
	       kd_put_addr(skb, KDIRECT_A_ADDR, &params->local.addr) ||
	       nla_put_u16(skb, KDIRECT_A_PORT, params->local.port) ||
	       nla_put_u32(skb, KDIRECT_A_MAX_CHANNELS, params->max_channels) ||
	       nla_put_u16(skb, KDIRECT_A_MAX_QUEUES, params->max_queues) ||
	       nla_put_u32(skb, KDIRECT_A_MAX_DEPTH, params->max_depth) ||
	       nla_put_u32(skb, KDIRECT_A_MAX_MESSAGE, params->max_message) ||
	       nla_put_u32(skb, KDIRECT_A_EAGER_LIMIT, params->eager_limit) ||
	       kd_put_mode(skb, params->mode, &params->raw) ||
	       nla_put_u32(skb, KDIRECT_A_CHANNELS, info->channels) ||
	       kd_put_u64(skb, KDIRECT_A_ACCEPTED, info->accepted) ||
	       kd_put_u64(skb, KDIRECT_A_REJECTED, info->rejected) ||
	       nla_put_u32(skb, KDIRECT_A_NETNS, info->netns) ? -EMSGSIZE : 0;
}

int kd_fill_channel(struct sk_buff *skb, const struct kd_channel_info *info)
{
	const struct kd_channel_params *params = &info->params;

	return nla_put_string(skb, KDIRECT_A_NAME, params->name) ||
	       kd_put_addr(skb, KDIRECT_A_ADDR, &params->peer.addr) ||
	       nla_put_u16(skb, KDIRECT_A_PORT, params->peer.port) ||
	       kd_put_addr(skb, KDIRECT_A_SRC_ADDR, &params->source) ||
	       nla_put_u16(skb, KDIRECT_A_QUEUES, params->queues) ||
	       nla_put_u16(skb, KDIRECT_A_POLL_QUEUES, params->poll_queues) ||
	       nla_put_u32(skb, KDIRECT_A_DEPTH, params->depth) ||
	       nla_put_u32(skb, KDIRECT_A_MAX_MESSAGE, params->max_message) ||
	       nla_put_u32(skb, KDIRECT_A_EAGER_LIMIT, params->eager_limit) ||
	       nla_put_u32(skb, KDIRECT_A_KEEP_ALIVE_MS, params->keep_alive_ms) ||
	       nla_put_u32(skb, KDIRECT_A_CONNECT_TIMEOUT_MS, params->connect_timeout_ms) ||
	       nla_put_u32(skb, KDIRECT_A_DRAIN_TIMEOUT_MS, params->drain_timeout_ms) ||
	       nla_put_u32(skb, KDIRECT_A_KEEP_ALIVE_MISSES, params->keep_alive_misses) ||
	       nla_put_u32(skb, KDIRECT_A_REQUEST_TIMEOUT_MS, params->request_timeout_ms) ||
	       nla_put_u32(skb, KDIRECT_A_LOSS_TIMEOUT_MS, params->loss_timeout_ms) ||
	       nla_put_u32(skb, KDIRECT_A_FAST_IO_FAIL_MS, params->fast_io_fail_ms) ||
	       nla_put_u32(skb, KDIRECT_A_RECONNECT_DELAY_MS, params->reconnect_delay_ms) ||
	       nla_put_u32(skb, KDIRECT_A_RECONNECT_MAX_DELAY_MS,
			   params->reconnect_max_delay_ms) ||
	       nla_put_u32(skb, KDIRECT_A_POLL_MODE, params->poll_mode) ||
	       nla_put_u32(skb, KDIRECT_A_POLL_CPU_PERCENT, params->poll_cpu_percent) ||
	       nla_put_u32(skb, KDIRECT_A_CQ_COUNT, params->cq_count) ||
	       nla_put_u32(skb, KDIRECT_A_CQ_PERIOD_US, params->cq_period_us) ||
	       kd_put_flag(skb, KDIRECT_A_SOCKET_OWNER, params->owner) ||
	       kd_put_mode(skb, params->mode, &params->raw) ||
	       kd_put_flag(skb, KDIRECT_A_HELD, info->held) ||
	       (info->peer_len &&
		nla_put(skb, KDIRECT_A_PEER_DATA, info->peer_len, info->peer_data)) ||
	       kd_put_text(skb, KDIRECT_A_LISTENER, info->listener) ||
	       nla_put_u32(skb, KDIRECT_A_STATE, info->state) ||
	       kd_put_u64(skb, KDIRECT_A_STATE_AGE_MS, info->state_age_ms) ||
	       kd_put_error(skb, &info->error) ||
	       kd_put_text(skb, KDIRECT_A_LAST_CAUSE, info->last_error.text) ||
	       kd_put_text(skb, KDIRECT_A_ATTEMPT_CAUSE, info->attempt_error.text) ||
	       kd_put_addr(skb, KDIRECT_A_LOCAL_ADDR, &info->local.addr) ||
	       nla_put_u16(skb, KDIRECT_A_LOCAL_PORT, info->local.port) ||
	       kd_put_text(skb, KDIRECT_A_DEV_NAME, info->device) ||
	       nla_put_u32(skb, KDIRECT_A_OPENS, info->opens) ||
	       nla_put_u32(skb, KDIRECT_A_NETNS, info->netns) ? -EMSGSIZE : 0;
}

static int kd_put_queue(struct sk_buff *skb, const struct kd_queue_stats *queue)
{
	struct nlattr *nest = nla_nest_start(skb, KDIRECT_A_QUEUE);

	if (!nest ||
	    nla_put_u16(skb, KDIRECT_A_QUEUE_INDEX, queue->index) ||
	    nla_put_u32(skb, KDIRECT_A_QUEUE_KIND, queue->kind) ||
	    nla_put_u32(skb, KDIRECT_A_QUEUE_QPN, queue->qpn) ||
	    nla_put_u32(skb, KDIRECT_A_QUEUE_DEPTH, queue->depth) ||
	    nla_put_u32(skb, KDIRECT_A_QUEUE_CREDITS, queue->credits) ||
	    kd_put_u64(skb, KDIRECT_A_QUEUE_CQE_INTERRUPT, queue->cqe_interrupt) ||
	    kd_put_u64(skb, KDIRECT_A_QUEUE_CQE_POLLED, queue->cqe_polled) ||
	    kd_put_u64(skb, KDIRECT_A_QUEUE_POLLS, queue->polls) ||
	    kd_put_u64(skb, KDIRECT_A_QUEUE_POLL_CPU_NS, queue->poll_cpu_ns) ||
	    kd_put_u64(skb, KDIRECT_A_QUEUE_POLL_NAPS, queue->poll_naps) ||
	    kd_put_u64(skb, KDIRECT_A_QUEUE_POLL_SLEEPS, queue->poll_sleeps) ||
	    kd_put_u64(skb, KDIRECT_A_QUEUE_TX, queue->tx) ||
	    kd_put_u64(skb, KDIRECT_A_QUEUE_RX, queue->rx) ||
	    nla_put_u32(skb, KDIRECT_A_QUEUE_MR_TOTAL, queue->mr_total) ||
	    nla_put_u32(skb, KDIRECT_A_QUEUE_MR_USED, queue->mr_used))
		return -EMSGSIZE;
	nla_nest_end(skb, nest);
	return 0;
}

int kd_fill_stats(struct sk_buff *skb, const char *name, const struct kd_channel_stats *stats,
		  const struct kd_queue_stats *queues, u32 nr_queues)
{
	u32 i;

	if (nla_put_string(skb, KDIRECT_A_NAME, name) ||
	    kd_put_u64(skb, KDIRECT_A_STAT_TX_MESSAGES, stats->tx_messages) ||
	    kd_put_u64(skb, KDIRECT_A_STAT_TX_BYTES, stats->tx_bytes) ||
	    kd_put_u64(skb, KDIRECT_A_STAT_RX_MESSAGES, stats->rx_messages) ||
	    kd_put_u64(skb, KDIRECT_A_STAT_RX_BYTES, stats->rx_bytes) ||
	    kd_put_u64(skb, KDIRECT_A_STAT_TX_RENDEZVOUS, stats->tx_rendezvous) ||
	    kd_put_u64(skb, KDIRECT_A_STAT_RX_RENDEZVOUS, stats->rx_rendezvous) ||
	    kd_put_u64(skb, KDIRECT_A_STAT_TX_PINNED_BYTES, stats->tx_pinned_bytes) ||
	    kd_put_u64(skb, KDIRECT_A_STAT_CREDIT_WAITS, stats->credit_waits) ||
	    kd_put_u64(skb, KDIRECT_A_STAT_CTRL_TX, stats->ctrl_tx) ||
	    kd_put_u64(skb, KDIRECT_A_STAT_CTRL_RX, stats->ctrl_rx) ||
	    kd_put_u64(skb, KDIRECT_A_STAT_KEEP_ALIVES, stats->keep_alives) ||
	    kd_put_u64(skb, KDIRECT_A_STAT_PINGS, stats->pings) ||
	    kd_put_u64(skb, KDIRECT_A_STAT_MAP_READS, stats->map_reads) ||
	    kd_put_u64(skb, KDIRECT_A_STAT_MAP_READ_BYTES, stats->map_read_bytes) ||
	    kd_put_u64(skb, KDIRECT_A_STAT_MAP_WRITES, stats->map_writes) ||
	    kd_put_u64(skb, KDIRECT_A_STAT_MAP_WRITE_BYTES, stats->map_write_bytes) ||
	    kd_put_u64(skb, KDIRECT_A_STAT_MAP_PINNED_BYTES, stats->map_pinned_bytes) ||
	    kd_put_u64(skb, KDIRECT_A_STAT_MAP_WAITS, stats->map_waits) ||
	    kd_put_u64(skb, KDIRECT_A_STAT_MAP_ATOMICS, stats->map_atomics) ||
	    kd_put_u64(skb, KDIRECT_A_STAT_DESCS, stats->descs) ||
	    kd_put_u64(skb, KDIRECT_A_STAT_DESC_POSTS, stats->desc_posts) ||
	    kd_put_u64(skb, KDIRECT_A_STAT_FIXED_BUFFERS, stats->fixed_buffers) ||
	    kd_put_u64(skb, KDIRECT_A_STAT_FIXED_BYTES, stats->fixed_bytes) ||
	    kd_put_u64(skb, KDIRECT_A_STAT_OUTAGES, stats->outages) ||
	    kd_put_u64(skb, KDIRECT_A_STAT_OUTAGE_MS, stats->outage_ms) ||
	    kd_put_u64(skb, KDIRECT_A_STAT_ATTEMPTS, stats->attempts) ||
	    kd_put_u64(skb, KDIRECT_A_STAT_REPLAYED, stats->replayed) ||
	    kd_put_u64(skb, KDIRECT_A_STAT_IO_REPLAYED, stats->io_replayed))
		return -EMSGSIZE;
	for (i = 0; i < nr_queues; i++)
		if (kd_put_queue(skb, &queues[i]))
			return -EMSGSIZE;
	return 0;
}

static bool kd_event_is_channel(u32 type)
{
	return type == KDIRECT_EVENT_CHANNEL_ADDED || type == KDIRECT_EVENT_CHANNEL_STATE ||
	       type == KDIRECT_EVENT_CHANNEL_REMOVED;
}

int kd_fill_event(struct sk_buff *skb, const struct kd_event *event)
{
	bool channel = kd_event_is_channel(event->type);
	bool map = event->type == KDIRECT_EVENT_MAP_STATE;

	return nla_put_u32(skb, KDIRECT_A_EVENT_TYPE, event->type) ||
	       kd_put_text(skb, KDIRECT_A_NAME, event->name) ||
	       kd_put_text(skb, KDIRECT_A_LISTENER, event->listener) ||
	       kd_put_text(skb, KDIRECT_A_DEV_NAME, event->device) ||
	       (channel && nla_put_u32(skb, KDIRECT_A_STATE, event->state)) ||
	       (channel && nla_put_u32(skb, KDIRECT_A_OLD_STATE, event->old_state)) ||
	       kd_put_flag(skb, KDIRECT_A_HELD, event->held) ||
	       (map && nla_put_u32(skb, KDIRECT_A_MAP_STATE, event->state)) ||
	       (map && nla_put_u32(skb, KDIRECT_A_OLD_MAP_STATE, event->old_state)) ||
	       kd_put_error(skb, event->error) ? -EMSGSIZE : 0;
}
