// SPDX-License-Identifier: GPL-2.0-only
#include "registry.hh"

#include "../../uapi/kdirect_netlink.h"

namespace kd
{

namespace
{
Registry *the_registry;

void publish_device(uint32_t type, const Device &device)
{
	kd_event event{};
	event.type = type;
	event.name = device.attr.name;
	event.device = device.attr.name;
	kd_event_publish(&event);
}

void publish_channel(uint32_t type, const Channel &channel, const kd_error *why)
{
	kd_event event{};
	event.type = type;
	event.name = channel.name;
	event.listener = channel.listener[0] ? channel.listener : nullptr;
	event.error = why;
	event.net = channel.net;
	kd_event_publish(&event);
}
} // namespace

Registry &registry()
{
	return *the_registry;
}

bool visible(const kd_net *net, const kd_net *owner)
{
	return net == owner || kd_net_is_init(net);
}

bool same_name(const char *a, const char *b)
{
	while (*a && *a == *b)
		a++, b++;
	return *a == *b;
}

Status Registry::start(Sleepable s)
{
	the_registry = create<Registry>(s);
	return the_registry ? 0 : KD_ENOMEM;
}

void Registry::stop(Sleepable s)
{
	Registry &r = *the_registry;
	for (;;) {
		Listener *listener = nullptr;
		{
			MutexGuard guard(r.lock, s);
			r.stopping_ = true;
			listener = r.listeners_.front();
			if (listener)
				r.remove(*listener);
		}
		if (!listener)
			break;
		listener->close(s);
	}
	{
		MutexGuard guard(r.lock, s);
		r.mappings_.each([](Mapping &m) { m.request_delete(); });
		r.channels_.each([](Channel &c) { c.request_delete(); });
	}
	stop_exports(s);
	(void)r.idle_.wait(s, KD_WAIT_UNINTERRUPTIBLE, KD_FOREVER,
			   [&] { return r.alive_.load() == 0; });
	kd_work_flush_all();
}

void Registry::finish(Sleepable s)
{
	destroy(s, the_registry);
	the_registry = nullptr;
}

void Registry::channel_gone()
{
	// The waiter frees this object: whoever takes the count to zero only wakes.
	if (alive_.fetch_sub(1) == 1)
		kd_wake(idle_.raw(), 0);
}

Status Registry::add(Channel &channel, kd_error *error)
{
	if (stopping_)
		return KD_ERROR(error, KD_EBUSY, 0, "the module is being unloaded");
	bool taken = false;
	channels_.each([&](Channel &c) { taken |= same_name(c.name, channel.name); });
	if (taken)
		return KD_ERROR(error, KD_EEXIST, KDIRECT_A_NAME, "channel \"%s\" exists already",
				channel.name);
	mappings_.each([&](Mapping &m) { taken |= same_name(m.name, channel.name); });
	if (taken)
		return KD_ERROR(error, KD_EEXIST, KDIRECT_A_NAME,
				"mapping \"%s\" exists already: their nodes are in one directory",
				channel.name);
	if (nr_channels_ >= limits::max_channels)
		return KD_ERROR(error, KD_ENFILE, 0,
				"there are %u channels already, the most possible", nr_channels_);
	channel.id = next_id_++;
	channel.registered = true;
	channels_.push_back(&channel);
	nr_channels_++;
	publish_channel(KDIRECT_EVENT_CHANNEL_ADDED, channel, nullptr);
	return {};
}

bool Registry::remove(Sleepable s, Channel &channel, const kd_error &why)
{
	MutexGuard guard(lock, s);
	if (!channel.registered)
		return false;
	channel.registered = false;
	channels_.take([&](Channel &c) { return &c == &channel; });
	nr_channels_--;
	publish_channel(KDIRECT_EVENT_CHANNEL_REMOVED, channel, why.err ? &why : nullptr);
	return true;
}

Channel *Registry::find_channel(const kd_net *net, const char *name)
{
	Channel *found = nullptr;
	channels_.each([&](Channel &c) {
		if (same_name(c.name, name) && visible(net, c.net))
			found = &c;
	});
	return found;
}

Channel *Registry::find_token(uint64_t token)
{
	Channel *found = nullptr;
	channels_.each([&](Channel &c) {
		if (!c.initiator && c.token == token)
			found = &c;
	});
	return found;
}

uint32_t Registry::count_channels(const char *listener)
{
	uint32_t count = 0;
	channels_.each([&](Channel &c) { count += same_name(c.listener, listener); });
	return count;
}

uint64_t Registry::buffer_bytes(const char *listener)
{
	uint64_t bytes = 0;
	channels_.each([&](Channel &c) {
		if (same_name(c.listener, listener))
			bytes += c.buffer_bytes();
	});
	return bytes;
}

uint32_t Registry::accepted_number(const char *listener)
{
	uint64_t taken[limits::max_channels / 64] = {};
	channels_.each([&](Channel &c) {
		if (same_name(c.listener, listener))
			taken[c.number / 64] |= 1ULL << (c.number % 64);
	});
	uint32_t n = 0;
	while (n < limits::max_channels - 1 && (taken[n / 64] >> (n % 64) & 1))
		n++;
	return n;
}

Status Registry::add(Listener &listener, kd_error *error)
{
	if (stopping_)
		return KD_ERROR(error, KD_EBUSY, 0, "the module is being unloaded");
	bool taken = false;
	listeners_.each([&](Listener &l) { taken |= same_name(l.name, listener.name); });
	if (taken)
		return KD_ERROR(error, KD_EEXIST, KDIRECT_A_NAME, "listener \"%s\" exists already",
				listener.name);
	listener.id = next_id_++;
	listeners_.push_back(&listener);
	return {};
}

void Registry::remove(Listener &listener)
{
	listener.deleting = true;
	listeners_.take([&](Listener &l) { return &l == &listener; });
}

Listener *Registry::find_listener(const kd_net *net, const char *name)
{
	Listener *found = nullptr;
	listeners_.each([&](Listener &l) {
		if (same_name(l.name, name) && visible(net, l.net))
			found = &l;
	});
	return found;
}

void Registry::add(Sleepable s, Device &device)
{
	{
		MutexGuard guard(lock, s);
		device.id = next_id_++;
		devices_.push_back(&device);
	}
	publish_device(KDIRECT_EVENT_DEVICE_ADDED, device);
}

void Registry::remove(Sleepable s, Device &device)
{
	{
		MutexGuard guard(lock, s);
		device.removing = true;
		channels_.each([&](Channel &c) {
			if (c.device == &device)
				KD_FAIL(c, KD_ENODEV, "device %s was removed", device.attr.name);
		});
	}
	(void)idle_.wait(s, KD_WAIT_UNINTERRUPTIBLE, KD_FOREVER,
			 [&] { return __atomic_load_n(&device.channels, __ATOMIC_ACQUIRE) == 0; });
	{
		MutexGuard guard(lock, s);
		devices_.take([&](Device &d) { return &d == &device; });
	}
	publish_device(KDIRECT_EVENT_DEVICE_REMOVED, device);
}

Status Registry::attach(Sleepable s, Channel &channel, kd_cm *cm)
{
	MutexGuard guard(lock, s);
	// The id may name a device that is being freed: believe only our list.
	Device *behind = kd_cm_device(cm);
	Device *device = nullptr;
	devices_.each([&](Device &d) {
		if (&d == behind && !d.removing)
			device = &d;
	});
	if (!device)
		return KD_ENODEV;
	__atomic_add_fetch(&device->channels, 1, __ATOMIC_RELEASE);
	channel.device = device;
	kd_cm_local(cm, &channel.local);
	copy_bytes(channel.device_name, device->attr.name, sizeof(channel.device_name));
	return {};
}

void Registry::detach(Sleepable s, Channel &channel)
{
	MutexGuard guard(lock, s);
	if (!channel.device)
		return;
	bool last = __atomic_sub_fetch(&channel.device->channels, 1, __ATOMIC_RELEASE) == 0;
	channel.device = nullptr;
	if (last)
		kd_wake(idle_.raw(), 0);
}

} // namespace kd

using namespace kd;

int kd_core_init(void)
{
	return Registry::start(ShimEntry::may_sleep()).err();
}
void kd_core_stop(void)
{
	Registry::stop(ShimEntry::may_sleep());
}
void kd_core_exit(void)
{
	Registry::finish(ShimEntry::may_sleep());
}

struct kd_device *kd_device_add(const struct kd_device_attr *attr)
{
	Sleepable s = ShimEntry::may_sleep();
	auto *device = create<Device>(s);
	if (!device)
		return nullptr;
	device->attr = *attr;
	registry().add(s, *device);
	return device;
}

void kd_device_remove(struct kd_device *device)
{
	Sleepable s = ShimEntry::may_sleep();
	registry().remove(s, *device);
	destroy(s, device);
}

const struct kd_device_attr *kd_device_attr(const struct kd_device *device)
{
	return &device->attr;
}
