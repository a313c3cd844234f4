// SPDX-License-Identifier: GPL-2.0-only
// Snapshots for netlink.
#include "raw.hh"
#include "registry.hh"

using namespace kd;

namespace
{

void fill(const Device &device, struct kd_device_info *out)
{
	out->attr = device.attr;
	out->channels = device.channels;
}

// The registry lock is held by whoever visits.
void fill(Listener &listener, struct kd_listener_info *out) KD_NO_ANALYSIS
{
	out->params = listener.params;
	out->channels = registry().count_channels(listener.name);
	out->accepted = listener.accepted;
	out->rejected = listener.rejected;
	out->netns = kd_net_inode(listener.net);
}

void fill(Channel &channel, struct kd_channel_info *out)
{
	out->params = channel.params;
	out->params.keep_alive_ms = channel.keep_alive_ms;
	out->params.drain_timeout_ms = channel.drain_timeout_ms;
	out->params.keep_alive_misses = channel.keep_alive_misses;
	out->params.request_timeout_ms = channel.request_timeout_ms;
	out->params.loss_timeout_ms = channel.loss_timeout_ms;
	out->params.fast_io_fail_ms = channel.fast_io_fail_ms;
	out->params.reconnect_delay_ms = channel.reconnect_delay_ms;
	out->params.reconnect_max_delay_ms = channel.reconnect_max_delay_ms;
	out->params.poll_mode = uint32_t(channel.poll_mode.load());
	out->params.poll_cpu_percent = channel.poll_cpu_percent;
	out->params.cq_count = channel.cq_count;
	out->params.cq_period_us = channel.cq_period_us;
	copy_bytes(out->listener, channel.listener, sizeof(out->listener));
	copy_bytes(out->device, channel.device_name, sizeof(out->device));
	out->local = channel.local;
	out->opens = channel.opens;
	out->netns = kd_net_inode(channel.net);
	SpinGuard guard(channel.state_lock);
	out->params.depth = channel.terms.depth;
	out->params.max_message = channel.terms.max_message;
	out->params.eager_limit = channel.copy_limit();
	out->state = uint32_t(channel.state.load());
	out->state_age_ms = (kd_now_ns() - channel.state_since_ns) / 1000000;
	out->error = channel.error;
	out->last_error = channel.last_error;
	out->attempt_error = channel.attempt_error;
	out->held = false;
	out->peer_len = 0;
	if (!channel.raw)
		return;
	const Raw &raw = *channel.raw;
	out->held = raw.is_held();
	out->params.raw = raw.params;
	if (channel.state.load() >= State::Live) {
		out->params.raw.initiator_depth = raw.depth;
		out->params.raw.responder_resources = raw.resources;
	}
	out->peer_len = raw.peer_length;
	copy_bytes(out->peer_data, raw.peer_data, sizeof(out->peer_data));
}

// Copies the first object after the cursor, in order of creation.
template <class Info>
class Next
{
public:
	// `net` does not matter for objects without a namespace.
	Next(uint64_t *where, Info *info, const kd_net *viewer)
		: cursor(where), out(info), net(viewer)
	{
	}
	template <class Object>
	void operator()(Object &object)
	{
		if (found || object.id <= *cursor)
			return;
		if constexpr (requires { object.net; })
			if (!visible(net, object.net))
				return;
		found = true;
		*cursor = object.id;
		fill(object, out);
	}
	int result() const { return found ? 0 : KD_ENOENT; }

private:
	uint64_t *cursor;
	Info *out;
	const kd_net *net;
	bool found = false;
};

} // namespace

int kd_device_info(const char *name, struct kd_device_info *out)
{
	MutexGuard guard(registry().lock, ShimEntry::may_sleep());
	int err = KD_ENOENT;
	registry().each_device([&](Device &d) {
		if (!same_name(d.attr.name, name))
			return;
		fill(d, out);
		err = 0;
	});
	return err;
}

int kd_device_next(uint64_t *cursor, struct kd_device_info *out)
{
	Registry &r = registry();
	MutexGuard guard(r.lock, ShimEntry::may_sleep());
	Next next(cursor, out, nullptr);
	r.each_device([&](auto &object) { next(object); });
	return next.result();
}

int kd_listener_info(struct kd_net *net, const char *name, struct kd_listener_info *out)
{
	MutexGuard guard(registry().lock, ShimEntry::may_sleep());
	Listener *listener = registry().find_listener(net, name);
	if (!listener)
		return KD_ENOENT;
	fill(*listener, out);
	return 0;
}

int kd_listener_next(struct kd_net *net, uint64_t *cursor, struct kd_listener_info *out)
{
	Registry &r = registry();
	MutexGuard guard(r.lock, ShimEntry::may_sleep());
	Next next(cursor, out, net);
	r.each_listener([&](auto &object) { next(object); });
	return next.result();
}

int kd_channel_info(struct kd_net *net, const char *name, struct kd_channel_info *out)
{
	MutexGuard guard(registry().lock, ShimEntry::may_sleep());
	Channel *channel = registry().find_channel(net, name);
	if (!channel)
		return KD_ENOENT;
	fill(*channel, out);
	return 0;
}

int kd_channel_next(struct kd_net *net, uint64_t *cursor, struct kd_channel_info *out)
{
	Registry &r = registry();
	MutexGuard guard(r.lock, ShimEntry::may_sleep());
	Next next(cursor, out, net);
	r.each_channel([&](auto &object) { next(object); });
	return next.result();
}

int kd_channel_stats(struct kd_net *net, const char *name, struct kd_channel_stats *out,
		     struct kd_queue_stats *queues, uint32_t *nr_queues)
{
	MutexGuard guard(registry().lock, ShimEntry::may_sleep());
	Channel *channel = registry().find_channel(net, name);
	if (!channel)
		return KD_ENOENT;
	*out = {};
	out->ctrl_tx = channel->ctrl_tx.get();
	out->ctrl_rx = channel->ctrl_rx.get();
	out->keep_alives = channel->keep_alives.get();
	out->fixed_buffers = channel->nr_fixed.get();
	out->fixed_bytes = channel->fixed_length.get();
	out->outages = channel->outages.get();
	out->outage_ms = channel->outage_ms.get();
	out->attempts = channel->attempts.get();
	out->replayed = channel->replayed.get();
	out->io_replayed = channel->io_replayed;
	*nr_queues = channel->nr_queues;
	uint32_t depth = channel->agreed().depth;
	for (uint32_t i = 0; i < channel->nr_queues; i++) {
		Queue &q = *channel->queues[i];
		out->tx_messages += q.tx.get();
		out->tx_bytes += q.tx_bytes.get();
		out->rx_messages += q.rx_messages.get();
		out->rx_bytes += q.rx_bytes.get();
		out->tx_rendezvous += q.tx_rendezvous.get();
		out->rx_rendezvous += q.rx_rendezvous.get();
		out->tx_pinned_bytes += q.tx_pinned_bytes.get();
		out->credit_waits += q.credit_waits.get();
		out->pings += q.pings.get();
		out->map_reads += q.map_reads.get();
		out->map_read_bytes += q.map_read_bytes.get();
		out->map_writes += q.map_writes.get();
		out->map_write_bytes += q.map_write_bytes.get();
		out->map_pinned_bytes += q.map_pinned_bytes.get();
		out->map_waits += q.map_waits.get();
		out->map_atomics += q.map_atomics.get();
		out->descs += q.descs.get();
		out->desc_posts += q.desc_posts.get();
		queues[i] = {};
		queues[i].index = i;
		queues[i].kind = q.kind;
		bool control = i < channel->first_data_queue();
		queues[i].depth = control ? wire::control_receives : depth;
		queues[i].qpn = q.qpn;
		queues[i].cqe_interrupt = q.cqe_interrupt.get();
		queues[i].cqe_polled = q.cqe_polled.get();
		queues[i].polls = q.polls.get();
		queues[i].poll_cpu_ns = q.poll_cpu_ns;
		queues[i].poll_naps = q.naps;
		queues[i].poll_sleeps = q.poll_sleeps;
		queues[i].tx = control ? channel->ctrl_tx.get() : q.tx.get();
		queues[i].rx = q.rx.get();
		if (control) {
			SpinGuard guard(channel->ctrl_lock);
			queues[i].credits = channel->ctrl_window.available();
		} else {
			SpinGuard guard(q.tx_lock);
			queues[i].credits = q.window.available();
			queues[i].mr_total = q.nr_large;
			queues[i].mr_used = q.nr_large - q.nr_free_offers;
		}
	}
	return 0;
}
