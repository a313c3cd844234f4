// SPDX-License-Identifier: GPL-2.0-only
// What an administrator may ask for of exports and mappings, and what netlink shows of
// them. Nothing here waits for a peer.
#include "registry.hh"

#include "../../uapi/kdirect_netlink.h"

using namespace kd;

namespace
{

Status no_such(const char *kind, const char *name, kd_error *error)
{
	return KD_ERROR(error, KD_ENOENT, KDIRECT_A_NAME, "there is no %s \"%s\"", kind, name);
}

// Its place is taken already.
Status fill_region(Sleepable s, Export &e, kd_error *error)
{
	kd_region *region = nullptr;
	Status st = kd_region_alloc(e.params.size, &region);
	MutexGuard guard(registry().lock, s);
	if (st.ok()) {
		e.region = region;
		e.ready = true;
		kd_event event{};
		event.type = KDIRECT_EVENT_EXPORT_ADDED;
		event.name = e.name;
		event.listener = e.params.listener;
		event.net = e.net;
		kd_event_publish(&event);
		return {};
	}
	registry().remove(e);
	if (st.err() == KD_EINTR)
		return KD_ERROR(error, KD_EINTR, 0, "interrupted");
	return KD_ERROR(error, st.err(), KDIRECT_A_SIZE, "no memory for an export of %llu bytes",
			static_cast<unsigned long long>(e.params.size));
}

Status can_map(const Channel &channel, kd_error *error)
{
	if (channel.raw)
		return KD_ERROR(error, KD_EOPNOTSUPP, KDIRECT_A_CHANNEL,
				"channel \"%s\" is raw: only a session can map", channel.name);
	if (!channel.initiator)
		return KD_ERROR(error, KD_EINVAL, KDIRECT_A_CHANNEL,
				"channel \"%s\" was accepted by a listener: only who connects "
				"can map",
				channel.name);
	if (channel.current() != State::Live)
		return KD_ERROR(error, KD_ENOTCONN, KDIRECT_A_CHANNEL,
				"channel \"%s\" is not live but %s", channel.name,
				name(channel.current()));
	if (!channel.needs_reads())
		return KD_ERROR(error, KD_EOPNOTSUPP, KDIRECT_A_CHANNEL,
				"channel \"%s\" goes without RDMA READ: a device or its "
				"max-message allows none",
				channel.name);
	return {};
}

void fill(const Export &e, struct kd_export_info *out)
{
	out->params = e.params;
	out->instance = e.instance;
	out->maps = e.nr_grants;
	out->deleting = e.deleting;
	out->netns = kd_net_inode(e.net);
}

void fill(Mapping &m, struct kd_map_info *out)
{
	*out = {};
	out->params = m.params;
	out->opens = m.opens;
	out->netns = kd_net_inode(m.net);
	SpinGuard guard(m.channel->ctrl_lock);
	out->state = uint32_t(m.current());
	out->error = m.error;
	if (m.nr_keys) {
		out->params.read_only = m.read_only;
		out->size = m.size;
		out->instance = m.instance;
		out->key_bytes = m.key_bytes;
		out->keys = m.nr_keys;
	}
}

template <class Object, class Info>
bool take_next(Object &object, uint64_t *cursor, const kd_net *net, bool found, Info *out)
{
	if (found || object.id <= *cursor || !visible(net, object.net))
		return found;
	*cursor = object.id;
	fill(object, out);
	return true;
}

} // namespace

int kd_export_new(struct kd_net *net, const struct kd_export_params *params, struct kd_error *error)
{
	Sleepable s = ShimEntry::may_sleep();
	if (Status st = limits::check_export(*params, error); !st.ok())
		return st.err();
	Export *e;
	if (Status st = Export::create(s, net, *params, error, &e); !st.ok())
		return st.err();
	Status st;
	{
		MutexGuard guard(registry().lock, s);
		st = registry().add(*e, net, error);
	}
	if (st.ok())
		st = fill_region(s, *e, error);
	if (!st.ok())
		e->destroy(s);
	return st.err();
}

int kd_export_del(struct kd_net *net, const char *name, struct kd_error *error)
{
	Sleepable s = ShimEntry::may_sleep();
	Export *e;
	bool last = false;
	{
		MutexGuard guard(registry().lock, s);
		e = registry().find_export(net, name);
		if (!e)
			return no_such("export", name, error).err();
		if (!e->ready)
			return KD_ERROR(error, KD_EBUSY, KDIRECT_A_NAME,
					"export \"%s\" is being added", name)
				.err();
		if (!e->deleting)
			last = e->revoke();
	}
	if (last)
		e->end(s);
	return 0;
}

int kd_map_new(struct kd_net *net, const struct kd_map_params *params, struct kd_error *error)
{
	Sleepable s = ShimEntry::may_sleep();
	if (Status st = limits::check_map(*params, error); !st.ok())
		return st.err();
	Channel *channel;
	Mapping *mapping;
	Status st;
	{
		MutexGuard guard(registry().lock, s);
		channel = registry().find_channel(net, params->channel);
		if (!channel)
			return KD_ERROR(error, KD_ENOENT, KDIRECT_A_CHANNEL,
					"there is no channel \"%s\"", params->channel)
				.err();
		if (st = can_map(*channel, error); !st.ok())
			return st.err();
		mapping = Mapping::create(s, *channel, *params);
		if (!mapping)
			return KD_ERROR(error, KD_ENOMEM, 0, "no memory for a mapping").err();
		channel->get();
		st = registry().add(*mapping, error);
	}
	if (st.ok()) {
		channel->control_pump();
		channel->kick();
	} else {
		mapping->put(s);
	}
	channel->put(s);
	return st.err();
}

int kd_map_del(struct kd_net *net, const char *name, struct kd_error *error)
{
	MutexGuard guard(registry().lock, ShimEntry::may_sleep());
	Mapping *mapping = registry().find_mapping(net, name);
	if (!mapping)
		return no_such("mapping", name, error).err();
	mapping->request_delete();
	return 0;
}

int kd_export_info(struct kd_net *net, const char *name, struct kd_export_info *out)
{
	MutexGuard guard(registry().lock, ShimEntry::may_sleep());
	Export *e = registry().find_export(net, name);
	if (!e)
		return KD_ENOENT;
	fill(*e, out);
	return 0;
}

int kd_export_next(struct kd_net *net, uint64_t *cursor, struct kd_export_info *out)
{
	MutexGuard guard(registry().lock, ShimEntry::may_sleep());
	bool found = false;
	registry().each_export([&](Export &e) { found = take_next(e, cursor, net, found, out); });
	return found ? 0 : KD_ENOENT;
}

int kd_map_info(struct kd_net *net, const char *name, struct kd_map_info *out)
{
	MutexGuard guard(registry().lock, ShimEntry::may_sleep());
	Mapping *m = registry().find_mapping(net, name);
	if (!m)
		return KD_ENOENT;
	fill(*m, out);
	return 0;
}

int kd_map_next(struct kd_net *net, uint64_t *cursor, struct kd_map_info *out)
{
	MutexGuard guard(registry().lock, ShimEntry::may_sleep());
	bool found = false;
	registry().each_mapping([&](Mapping &m) { found = take_next(m, cursor, net, found, out); });
	return found ? 0 : KD_ENOENT;
}
