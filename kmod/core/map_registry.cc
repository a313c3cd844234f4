// SPDX-License-Identifier: GPL-2.0-only
// The registry's exports and mappings.
#include "registry.hh"

#include "../../uapi/kdirect_netlink.h"

namespace kd
{

Status Registry::add(Export &e, const kd_net *viewer, kd_error *error)
{
	if (stopping_)
		return KD_ERROR(error, KD_EBUSY, 0, "the module is being unloaded");
	Listener *owner = find_listener(viewer, e.params.listener);
	if (!owner)
		return KD_ERROR(error, KD_ENOENT, KDIRECT_A_LISTENER, "there is no listener \"%s\"",
				e.params.listener);
	bool taken = false;
	exports_.each([&](Export &other) { taken |= same_name(other.name, e.name); });
	if (taken)
		return KD_ERROR(error, KD_EEXIST, KDIRECT_A_NAME, "export \"%s\" exists already",
				e.name);
	if (nr_exports_ >= limits::max_exports)
		return KD_ERROR(error, KD_ENFILE, 0,
				"there are %u exports already, the most possible", nr_exports_);
	uint64_t rest = limits::max_export_bytes - export_bytes_;
	if (e.params.size > rest)
		return KD_ERROR(error, KD_ENOSPC, KDIRECT_A_SIZE,
				"size %llu is more than the %llu bytes that are left for exports",
				static_cast<unsigned long long>(e.params.size),
				static_cast<unsigned long long>(rest));
	// It belongs to whom the listener belongs to.
	kd_net_put(e.net);
	e.net = kd_net_get(owner->net);
	e.id = next_id_++;
	export_bytes_ += e.params.size;
	nr_exports_++;
	exports_.push_back(&e);
	return {};
}

void Registry::remove(Export &e)
{
	exports_.take([&](Export &other) { return &other == &e; });
	export_bytes_ -= e.params.size;
	nr_exports_--;
}

Export *Registry::find_export(const kd_net *net, const char *name)
{
	Export *found = nullptr;
	exports_.each([&](Export &e) {
		if (same_name(e.name, name) && visible(net, e.net))
			found = &e;
	});
	return found;
}

Export *Registry::find_export(const kd_net *net, const char *listener, const char *name)
{
	Export *found = nullptr;
	exports_.each([&](Export &e) {
		if (e.net == net && e.ready && !e.deleting && same_name(e.name, name) &&
		    same_name(e.params.listener, listener))
			found = &e;
	});
	return found;
}

Status Registry::add(Mapping &mapping, kd_error *error)
{
	if (stopping_)
		return KD_ERROR(error, KD_EBUSY, 0, "the module is being unloaded");
	bool taken = false;
	mappings_.each([&](Mapping &m) { taken |= same_name(m.name, mapping.name); });
	if (taken)
		return KD_ERROR(error, KD_EEXIST, KDIRECT_A_NAME, "mapping \"%s\" exists already",
				mapping.name);
	channels_.each([&](Channel &c) { taken |= same_name(c.name, mapping.name); });
	if (taken)
		return KD_ERROR(error, KD_EEXIST, KDIRECT_A_NAME,
				"channel \"%s\" exists already: their nodes are in one directory",
				mapping.name);
	if (nr_mappings_ >= limits::max_mappings)
		return KD_ERROR(error, KD_ENFILE, 0,
				"there are %u mappings already, the most possible", nr_mappings_);
	if (!mapping.channel->take_place(mapping))
		return KD_ERROR(error, KD_ENFILE, KDIRECT_A_CHANNEL,
				"channel \"%s\" has %u mappings already, the most possible",
				mapping.channel->name, wire::max_maps);
	mapping.id = next_id_++;
	mapping.registered = true;
	mappings_.push_back(&mapping);
	nr_mappings_++;
	kd_event event{};
	event.type = KDIRECT_EVENT_MAP_ADDED;
	event.name = mapping.name;
	event.net = mapping.net;
	kd_event_publish(&event);
	return {};
}

bool Registry::remove(Sleepable s, Mapping &mapping)
{
	MutexGuard guard(lock, s);
	if (!mapping.registered)
		return false;
	mapping.registered = false;
	mappings_.take([&](Mapping &m) { return &m == &mapping; });
	nr_mappings_--;
	kd_error why;
	{
		SpinGuard spin(mapping.channel->ctrl_lock);
		why = mapping.error;
	}
	kd_event event{};
	event.type = KDIRECT_EVENT_MAP_REMOVED;
	event.name = mapping.name;
	event.error = why.err ? &why : nullptr;
	event.net = mapping.net;
	kd_event_publish(&event);
	return true;
}

Mapping *Registry::find_mapping(const kd_net *net, const char *name)
{
	Mapping *found = nullptr;
	mappings_.each([&](Mapping &m) {
		if (same_name(m.name, name) && visible(net, m.net))
			found = &m;
	});
	return found;
}

// In stop(): nothing is added any more.
void Registry::stop_exports(Sleepable s)
{
	Registry &r = registry();
	for (;;) {
		Export *next = nullptr;
		bool last = false;
		{
			MutexGuard guard(r.lock, s);
			r.exports_.each([&](Export &e) {
				if (!next && !e.deleting)
					next = &e;
			});
			last = next && next->revoke();
		}
		if (last)
			next->end(s);
		if (!next)
			return;
	}
}

} // namespace kd
