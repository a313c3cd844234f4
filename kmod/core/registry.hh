// SPDX-License-Identifier: GPL-2.0-only
// What there is: channels, listeners and devices, by name, under one mutex that
// is never taken on a data path.
#pragma once

#include "channel.hh"
#include "listener.hh"

struct kd_device {
	struct kd_device_attr attr;
	kd::Link<kd_device> link;
	uint64_t id = 0;
	uint32_t channels = 0;
	bool removing = false;
};

namespace kd
{

class Registry
{
public:
	static Status start(Sleepable s);
	static void stop(Sleepable s);   // deletes everything and waits for it
	static void finish(Sleepable s); // afterwards

	// --- channels ---------------------------------------------------------------
	// Takes over the caller's reference. KD_EEXIST, KD_EBUSY (stopping), KD_ENFILE.
	Status add(Channel &channel, kd_error *error) KD_REQUIRES(lock);
	// False: it was not there.
	bool remove(Sleepable s, Channel &channel, const kd_error &why);
	Channel *find_channel(const kd_net *net, const char *name) KD_REQUIRES(lock);
	Channel *find_token(uint64_t token) KD_REQUIRES(lock);
	uint32_t count_channels(const char *listener) KD_REQUIRES(lock);
	uint64_t buffer_bytes(const char *listener) KD_REQUIRES(lock);
	// The lowest free N of LISTENER.N
	uint32_t accepted_number(const char *listener) KD_REQUIRES(lock);
	template <class Visit>
	void each_channel(const Visit &visit) KD_REQUIRES(lock)
	{
		channels_.each(visit);
	}
	void channel_created() { alive_.fetch_add(1); }
	void channel_gone();

	// --- listeners ---------------------------------------------------------------
	Status add(Listener &listener, kd_error *error) KD_REQUIRES(lock);
	void remove(Listener &listener) KD_REQUIRES(lock);
	Listener *find_listener(const kd_net *net, const char *name) KD_REQUIRES(lock);
	template <class Visit>
	void each_listener(const Visit &visit) KD_REQUIRES(lock)
	{
		listeners_.each(visit);
	}
	void listener_created() { alive_.fetch_add(1); }
	void listener_gone() { channel_gone(); }

	// --- exports ------------------------------------------------------------------
	// KD_EEXIST, KD_EBUSY (stopping), KD_ENFILE, KD_ENOSPC, KD_ENOENT (no such listener)
	Status add(Export &e, const kd_net *viewer, kd_error *error) KD_REQUIRES(lock);
	void remove(Export &e) KD_REQUIRES(lock);
	Export *find_export(const kd_net *net, const char *name) KD_REQUIRES(lock);
	// What that listener of `net` offers.
	Export *find_export(const kd_net *net, const char *listener, const char *name)
		KD_REQUIRES(lock);
	template <class Visit>
	void each_export(const Visit &visit) KD_REQUIRES(lock)
	{
		exports_.each(visit);
	}
	void export_created() { alive_.fetch_add(1); }
	void export_gone() { channel_gone(); }

	// --- mappings -----------------------------------------------------------------
	// Takes over the caller's reference.
	Status add(Mapping &mapping, kd_error *error) KD_REQUIRES(lock);
	// False: it was not there.
	bool remove(Sleepable s, Mapping &mapping);
	Mapping *find_mapping(const kd_net *net, const char *name) KD_REQUIRES(lock);
	template <class Visit>
	void each_mapping(const Visit &visit) KD_REQUIRES(lock)
	{
		mappings_.each(visit);
	}
	void mapping_created() { alive_.fetch_add(1); }
	void mapping_gone() { channel_gone(); }

	// --- devices -----------------------------------------------------------------
	void add(Sleepable s, Device &device);
	void remove(Sleepable s, Device &device);
	// Finds the device behind `cm` and counts the channel as its user.
	Status attach(Sleepable s, Channel &channel, kd_cm *cm);
	void detach(Sleepable s, Channel &channel);
	template <class Visit>
	void each_device(const Visit &visit) KD_REQUIRES(lock)
	{
		devices_.each(visit);
	}

	Mutex<KD_LOCK_REGISTRY> lock;

private:
	static void stop_exports(Sleepable s);

	Fifo<Channel, &Channel::link> channels_ KD_GUARDED_BY(lock);
	Fifo<Listener, &Listener::link> listeners_ KD_GUARDED_BY(lock);
	Fifo<Device, &Device::link> devices_ KD_GUARDED_BY(lock);
	Fifo<Export, &Export::link> exports_ KD_GUARDED_BY(lock);
	Fifo<Mapping, &Mapping::link> mappings_ KD_GUARDED_BY(lock);
	uint64_t export_bytes_ KD_GUARDED_BY(lock) = 0;
	uint32_t nr_exports_ KD_GUARDED_BY(lock) = 0;
	uint32_t nr_mappings_ KD_GUARDED_BY(lock) = 0;
	uint64_t next_id_ KD_GUARDED_BY(lock) = 1;
	uint32_t nr_channels_ KD_GUARDED_BY(lock) = 0;
	bool stopping_ KD_GUARDED_BY(lock) = false;
	std::atomic<uint32_t> alive_{0}; // channels and listeners not yet freed
	WaitQueue idle_;                 // a device lost its last channel, or alive_ is 0
};

Registry &registry();

// Does somebody in `net` see an object of `owner`?
bool visible(const kd_net *net, const kd_net *owner);

bool same_name(const char *a, const char *b);

} // namespace kd
