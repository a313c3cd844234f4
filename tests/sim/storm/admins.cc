// SPDX-License-Identifier: GPL-2.0-only
// Processes that administer, and what happens to the hardware.
#include <cstring>

#include "../../../uapi/kdirect_netlink.h"
#include "storm.h"

namespace sim
{

namespace
{

template <std::size_t N>
void set_name(char (&field)[N], const std::string &name)
{
	std::memset(field, 0, N);
	std::memcpy(field, name.data(), std::min(name.size(), N - 1));
}

} // namespace

std::string Schedule::some_channel(Machine &m, Rng &rng)
{
	const auto &all = m.node->last_state;

	if (all.empty())
		return {};
	auto at = all.begin();
	std::advance(at, rng.below(all.size()));
	return at->first;
}

void Schedule::add_listener(Machine &m, Rng &rng, const char *name, uint16_t at)
{
	w->listen(name, rng.chance(70) ? m.addr : "0.0.0.0", at, [&](kd_listener_params &p) {
		p.max_depth = static_cast<uint32_t>(rng.range(1, 8));
		p.eager_limit = static_cast<uint32_t>(rng.chance(70) ? 512 : rng.range(256, 4096));
		p.max_message = rng.chance(70) ? 8192 : 65536;
		if (faultless)
			return;
		p.max_channels = static_cast<uint32_t>(rng.chance(20) ? 1 : 16);
		p.max_queues = static_cast<uint32_t>(rng.chance(10) ? 1 : 16);
		if (rng.chance(5)) {
			p.nr_allow = 1;
			p.allow[0].addr = parse_addr(rng.chance(50) ? "10.0.0.0" : "10.1.0.0");
			p.allow[0].bits = 16;
		}
	});
}

void Schedule::add_channel(Machine &m, Rng &rng, const std::string &name)
{
	Machine *to = &other(m);

	if (nr_machines > 2 && rng.chance(m.node == machines[2].node ? 0 : 30))
		to = &machines[2];
	const char *addr = lies && rng.chance(30) ? "10.0.0.9" : to->addr;
	reach->connects++;
	w->connect(name, addr, storm_port, [&](kd_channel_params &p) {
		static constexpr uint32_t keep_alives[] = {100, 100, 300, 0};

		p.queues = static_cast<uint32_t>(rng.below(3));
		p.poll_queues = static_cast<uint32_t>(p.queues ? rng.below(2) : rng.range(1, 2));
		if (rng.chance(60))
			p.poll_queues = p.queues ? 0 : 1;
		p.depth = static_cast<uint32_t>(rng.chance(30) ? 1 : rng.range(1, many ? 16 : 5));
		p.eager_limit = static_cast<uint32_t>(rng.chance(50) ? 256 : rng.range(256, 2000));
		p.max_message = static_cast<uint32_t>(rng.chance(70) ? 8192 : 32768);
		p.keep_alive_ms = keep_alives[rng.below(std::size(keep_alives))];
		p.connect_timeout_ms = static_cast<uint32_t>(faultless        ? 3000
							     : rng.chance(50) ? 2000
									      : 200);
		p.drain_timeout_ms = static_cast<uint32_t>(faultless        ? 3000
							   : rng.chance(50) ? 300
									    : rng.range(10, 50));
		p.poll_mode = p.depth % 3;
		p.poll_cpu_percent = 1 + p.eager_limit % 100;
		static constexpr uint32_t losses[] = {0, 0, 300, 1000, longest_loss_ms};

		p.loss_timeout_ms =
			lasting ? longest_loss_ms : losses[rng.below(std::size(losses))];
		p.fast_io_fail_ms = rng.chance(15) ? 150 : 0;
		p.reconnect_delay_ms = 100;
		p.reconnect_max_delay_ms = rng.chance(50) ? 100 : 400;
	});
}

void Schedule::change_channel(Machine &m, Rng &rng, const std::string &name)
{
	kd_channel_params params{};
	kd_error error{};

	m.node->core->channel_defaults(&params);
	set_name(params.name, name);
	params.has = static_cast<uint32_t>(rng.below(128)) << 3;
	if (!lasting && rng.chance(30))
		params.has |= KD_HAS_LOSS_TIMEOUT;
	params.loss_timeout_ms = static_cast<uint32_t>(rng.chance(30) ? 0 : rng.range(100, 1000));
	params.eager_limit = static_cast<uint32_t>(rng.range(256, 600));
	params.keep_alive_ms = static_cast<uint32_t>(rng.chance(30) ? 0 : rng.range(100, 400));
	params.drain_timeout_ms = static_cast<uint32_t>(faultless ? 3000 : rng.range(10, 400));
	params.poll_mode = params.eager_limit % 3;
	params.poll_cpu_percent = 1 + params.eager_limit % 100;
	params.cq_count = static_cast<uint32_t>(rng.below(20));
	params.cq_period_us = static_cast<uint32_t>(rng.below(20));
	(void)m.node->core->channel_set(reinterpret_cast<kd_net *>(m.node->net), &params, &error);
}

void Schedule::mark_deleted(Machine &m, const std::string &name)
{
	for (const auto &devnode : w->devnodes)
		if (devnode->node == m.node && (name.empty() || devnode->name == name))
			streams[devnode->id].deleted = true;
}

void Schedule::delete_channel(Machine &m, const std::string &name)
{
	mark_deleted(m, name);
	w->del(name);
	/* its node may have come meanwhile */
	mark_deleted(m, name);
}

/* Everything that can be asked for. */
void Schedule::look(Machine &m, Rng &rng)
{
	const CoreApi &core = *m.node->core;
	auto *net = reinterpret_cast<kd_net *>(m.node->net);
	std::string name = some_channel(m, rng);
	uint64_t cursor = 0;

	if (!name.empty() && rng.chance(50)) {
		struct kd_channel_stats stats;
		struct kd_channel_info info;
		std::vector<kd_queue_stats> queues(KD_MAX_QUEUES);
		uint32_t count;

		if (!core.channel_stats(net, name.c_str(), &stats, queues.data(), &count)) {
			reach->replayed += stats.replayed;
			reach->io_replayed += stats.io_replayed;
		}
		(void)core.channel_info(net, name.c_str(), &info);
		return;
	}
	switch (rng.below(3)) {
	case 0:
		for (struct kd_channel_info info; !core.channel_next(net, &cursor, &info);)
			;
		break;
	case 1:
		for (struct kd_listener_info info; !core.listener_next(net, &cursor, &info);)
			;
		break;
	default:
		for (struct kd_device_info info; !core.device_next(&cursor, &info);)
			;
		break;
	}
}

/* Long enough, and every channel must have found out. */
void Schedule::link_down(Machine &m, Rng &rng)
{
	uint64_t dev = m.dev->id;
	bool longer = rng.chance(15);

	fault(longer ? Trouble::LinkDownLong : Trouble::LinkDown);
	w->set_link(*m.dev, false);
	std::map<std::string, uint64_t> live;
	for (const auto &[name, state] : m.node->last_state) {
		struct kd_channel_info info;

		if (longer && state == KDIRECT_STATE_LIVE &&
		    !m.node->core->channel_info(reinterpret_cast<kd_net *>(m.node->net),
						name.c_str(), &info) &&
		    info.params.mode != KDIRECT_MODE_RAW && info.params.keep_alive_ms &&
		    info.params.keep_alive_ms <= 300)
			live[name] = m.node->state_since[name];
	}
	w->run_for(longer ? 300 * 5 * ms + w->opts.retry_timeout : rng.below(3 * ms));
	Device *still = w->devices.find(dev);
	if (!still || still->removing)
		return;
	for (const auto &[name, since] : live) {
		auto state = m.node->last_state.find(name);

		if (!still->link_up && !changed && !jumped && state != m.node->last_state.end() &&
		    state->second == KDIRECT_STATE_LIVE && m.node->state_since[name] == since)
			fail("channel %s is still live: its keep-alive has not noticed",
			     name.c_str());
	}
	w->set_link(*still, true);
}

void Schedule::remove_device(Machine &m)
{
	Device *dev = std::exchange(m.dev, nullptr);

	if (!dev)
		return;
	fault(Trouble::DeviceRemoved);
	for (const auto &devnode : w->devnodes)
		if (devnode->node == m.node)
			streams[devnode->id].deleted = true;
	w->remove_device(*dev);
	if (plan.chance(50) && !winding_up) {
		fault(Trouble::DeviceAdded);
		m.dev = &w->add_device(m.addr, device, m.node);
	}
}

/* One QP stops. */
void Schedule::break_qp(Machine &m, Rng &rng)
{
	std::vector<Qp *> mine;

	for (const auto &qp : w->qps)
		if (qp->dev == m.dev && qp->core && qp->state == Qp::State::Rts)
			mine.push_back(qp.get());
	if (mine.empty())
		return;
	fault(Trouble::QpBreaks);
	qp_breaks(*w, mine[rng.below(mine.size())]);
}

/* The connection goes, and can come back. */
void Schedule::interrupt(Machine &m, Rng &rng)
{
	if (!m.dev)
		return;
	if (rng.chance(60)) {
		break_qp(m, rng);
		return;
	}
	uint64_t id = m.dev->id;

	fault(Trouble::LinkDown);
	w->set_link(*m.dev, false);
	w->run_for(rng.below(1 * sec));
	if (Device *dev = w->devices.find(id))
		w->set_link(*dev, true);
}

void Schedule::act_on_hardware(Machine &m, Rng &rng)
{
	if (!m.dev)
		return;
	switch (rng.below(7)) {
	case 0:
	case 1: link_down(m, rng); break;
	case 2: {
		uint64_t id = m.dev->id;

		fault(Trouble::Stuck);
		w->set_stuck(*m.dev, true);
		w->run_for(rng.below(rng.chance(70) ? 2 * ms : 500 * ms));
		if (Device *dev = w->devices.find(id))
			w->set_stuck(*dev, false);
		break;
	}
	case 3: break_qp(m, rng); break;
	case 4:
		fault(Trouble::ClockJump);
		jumped = true;
		w->sched.jump(rng.below(rng.chance(50) ? 300 * ms : 20 * sec));
		break;
	default: remove_device(m); break;
	}
}

void Schedule::act(Machine &m, Rng &rng)
{
	if (faultless) {
		std::string name = some_channel(m, rng);

		if (rng.chance(50))
			look(m, rng);
		else if (!name.empty())
			change_channel(m, rng, name);
		return;
	}
	if (lasting && rng.chance(75)) {
		interrupt(m, rng);
		return;
	}
	std::string name = some_channel(m, rng);
	switch (rng.below(16)) {
	case 0:
	case 1:
		if (name.empty())
			break;
		fault(Trouble::ChannelDeleted);
		delete_channel(m, name);
		break;
	case 2:
		fault(Trouble::ListenerDeleted);
		w->unlisten(rng.chance(80) ? "s" : "t");
		break;
	case 3:
	case 4: add_channel(m, rng, "c" + std::to_string(rng.below(3))); break;
	case 5: add_listener(m, rng, rng.chance(70) ? "s" : "t", storm_port); break;
	case 6:
		changed = true;
		if (!name.empty())
			change_channel(m, rng, name);
		break;
	case 7: look(m, rng); break;
	case 8:
		w->fail_nth(static_cast<Op>(rng.below(nr_ops)), rng.range(1, 8), rng.range(1, 3));
		break;
	case 9: w->fail_nth_any(rng.range(1, 40)); break;
	case 10:
		if (!users.empty()) {
			bool fatal = rng.chance(50);

			fault(fatal ? Trouble::FatalSignal : Trouble::Signal);
			w->signal(users[rng.below(users.size())], fatal);
		}
		break;
	default: act_on_hardware(m, rng); break;
	}
}

void Schedule::admin(Machine &m, Rng &rng, unsigned int actions)
{
	for (; actions; actions--) {
		w->run_for(rng.below(rng.chance(80)   ? 300 * us
				     : rng.chance(70) ? 3 * ms
						      : 150 * ms));
		act(m, rng);
	}
}

} // namespace sim
