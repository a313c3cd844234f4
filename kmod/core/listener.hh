// SPDX-License-Identifier: GPL-2.0-only
// A listener: an address and port that accepts channels.
#pragma once

#include "channel.hh"

struct kd_listener {
	static kd_listener *create(kd::Sleepable s, kd_net *net, const kd_listener_params &params);
	// Listens. KD_* as of kd_cm_listen().
	kd::Status open(kd::Sleepable s);
	// Takes no new connection and drops the registry's reference; it must be out
	// of the registry. Channels that it accepted stay.
	void close(kd::Sleepable s);
	void put(kd::Sleepable s);
	kd::wire::Verdict request(kd::Sleepable s, const kd_cm_event &event);

	char name[KD_NAME_MAX + 1];
	kd_net *net = nullptr;
	uint64_t id = 0;
	kd::Link<kd_listener> link;
	kd_listener_params params{}; // registry lock
	uint64_t accepted = 0;       // registry lock
	uint64_t rejected = 0;       // registry lock
	bool opened = false;         // registry lock: kd_listener_new() has let go of it
	bool deleting = false;       // registry lock
	kd_cm *cm = nullptr;         // of open(), then of reopen() or close()

	// Listens again once the address is back.
	void device_removed();

private:
	static void reopen_fn(kd_work *work);
	void reopen(kd::Sleepable s);
	// With the registry lock held.
	kd::wire::Verdict request_locked(kd::Sleepable s, const kd_cm_event &event) KD_NO_ANALYSIS;
	kd::wire::Verdict accept_channel(kd::Sleepable s, const kd_cm_event &event,
					 const kd::wire::RequestInfo &request) KD_NO_ANALYSIS;
	kd::wire::Verdict accept_raw(kd::Sleepable s, const kd_cm_event &event,
				     const kd_endpoint &peer) KD_NO_ANALYSIS;
	void queue_reopen(uint64_t delay_ns);

	kd::Refs refs;
	kd_work reopen_work;
};
