// SPDX-License-Identifier: GPL-2.0-only
#include "export.hh"

#include "registry.hh"

#include "../../uapi/kdirect_netlink.h"

namespace kd
{

Status Export::create(Sleepable s, kd_net *net, const kd_export_params &params, kd_error *error,
		      Export **out)
{
	auto *e = kd::create<Export>(s);
	if (!e)
		return KD_ERROR(error, KD_ENOMEM, 0, "no memory for an export");
	copy_bytes(e->name, params.name, sizeof(e->name));
	e->params = params;
	e->net = kd_net_get(net);
	while (!e->instance)
		e->instance = kd_random();
	registry().export_created();
	*out = e;
	return {};
}

void Export::destroy(Sleepable s)
{
	kd_net_put(net);
	kd::destroy(s, this);
	registry().export_gone();
}

bool Export::revoke()
{
	deleting = true;
	grants.each([](Grant &grant) {
		Channel &channel = *grant.channel;
		{
			SpinGuard guard(channel.ctrl_lock);
			grant.revoke = true;
			grant.deadline_ns =
				kd_now_ns() + uint64_t(channel.drain_timeout_ms.load()) * 1000000;
			channel.map_look |= 1ULL << grant.id;
		}
		channel.control_pump();
		channel.kick();
	});
	return !nr_grants;
}

bool Export::drop(Grant &grant)
{
	grants.take([&](Grant &g) { return &g == &grant; });
	nr_grants--;
	return !nr_grants && deleting;
}

void Export::add_writer(Grant &grant)
{
	grant.alone = true;
	grants.each([&](Grant &other) {
		if (&other == &grant || other.read_only)
			return;
		other.alone = grant.alone = false;
	});
}

// It is gone when its memory is.
void Export::end(Sleepable s)
{
	kd_region_free(region);
	{
		MutexGuard guard(registry().lock, s);
		registry().remove(*this);
		kd_event event{};
		event.type = KDIRECT_EVENT_EXPORT_REMOVED;
		event.name = name;
		event.listener = params.listener;
		event.net = net;
		kd_event_publish(&event);
	}
	destroy(s);
}

} // namespace kd
