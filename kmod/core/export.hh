// SPDX-License-Identifier: GPL-2.0-only
// The target's side: exports, and what of them is granted to which channel.
#pragma once

#include "list.hh"
#include "os.hh"
#include "wire_map.hh"

namespace kd
{

struct Export;

// A mapping of the peer's, at the channel that it came over. Its keys are made and
// destroyed by Channel::run(); what is said about it follows from the phase.
struct Grant {
	enum class Phase : uint8_t {
		Free,
		Asked,     // run() has to look for the export
		Answering, // Mapped or Refused is to be said
		Offered,   // Mapped was said
		Keying,    // the peer is ready: keys are being told
		Given,     // all were
		Returned,  // the peer has let go of it: run() has to take the keys back
		Departing, // Unmapped is to be said
		Away,      // without a connection, and keys: the peer may ask for it again
	};
	Channel *channel = nullptr;
	uint32_t id = 0;
	Phase phase = Phase::Free; // ctrl_lock, as all up to deadline_ns
	bool revoke = false;       // it is to be taken back
	bool revoke_said = false;
	bool read_only = false;
	bool sole = false;  // told: while it was away nobody else could write
	uint16_t error = 0; // Answering: why not
	uint32_t told = 0;  // keys
	char name[wire::map_name_size] = {};
	uint64_t deadline_ns = 0; // of taking it back, or of asking again
	Export *from = nullptr;   // run()
	Link<Grant> link;         // of the export's list; registry lock
	bool alone = false;       // nobody else could write since it was asked for; registry lock
	kd_key **keys = nullptr;
	uint32_t nr_keys = 0, key_bytes = 0;

	// Is anything to be said? ctrl_lock
	bool due() const
	{
		bool open = phase == Phase::Offered || phase == Phase::Given;
		return phase == Phase::Answering || phase == Phase::Keying ||
		       phase == Phase::Departing || (open && revoke && !revoke_said);
	}
};

// Everything but what is constant is guarded by the registry lock.
struct Export {
	// KD_*, and `error` filled in.
	static Status create(Sleepable s, kd_net *net, const kd_export_params &params,
			     kd_error *error, Export **out);
	// Without memory, and not in any list.
	void destroy(Sleepable s);
	// Begins to take back what was granted. True: nothing was, and the caller ends it.
	bool revoke();
	// A grant is gone; as revoke().
	bool drop(Grant &grant);
	// It may be written by this one, too, from now on.
	void add_writer(Grant &grant);
	// Frees the memory, leaves the registry, and tells. Not with the registry lock.
	void end(Sleepable s);

	char name[KD_NAME_MAX + 1];
	kd_export_params params{};
	kd_net *net = nullptr;
	uint64_t id = 0;
	uint64_t instance = 0;
	Link<Export> link;
	kd_region *region = nullptr;
	Fifo<Grant, &Grant::link> grants;
	uint32_t nr_grants = 0;
	bool ready = false; // it has its memory
	bool deleting = false;
};

} // namespace kd
