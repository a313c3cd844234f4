// SPDX-License-Identifier: GPL-2.0-only
// The initiator's side: a remote export made local. Channel::run() drives it; messages
// only leave word.
#pragma once

#include "desc.hh"
#include "wire_map.hh"

namespace kd
{

// The values are those of enum kdirect_map_state.
enum class MapState : uint32_t {
	Asking,  // for the export and its keys
	Live,    // may be read and written
	Leaving, // no I/O begins; what is in flight ends, and the peer is told
	Dead     // nothing is left but the name
};

// What was said and heard last.
enum class MapTalk : uint8_t {
	Ask,       // Map is to be said
	Asked,     //
	Answered,  // Mapped came: run() makes the table
	Ready,     // Ready is to be said
	Keys,      // keys come
	Held,      // all came
	Unmap,     // Unmap is to be said
	Unmapping, //
	Gone       // Refused or Unmapped came, or there is nobody to talk to
};

} // namespace kd

struct kd_mapping {
	static kd_mapping *create(kd::Sleepable s, kd::Channel &channel,
				  const kd_map_params &params);
	void get() { refs.get(); }
	void put(kd::Sleepable s);
	void request_delete();
	void opened(kd::DescFile &file);
	void closed(kd::DescFile &file);

	kd::MapState current() const { return state.load(std::memory_order_acquire); }
	// Why no I/O may begin; 0: it may.
	int refusal() const;
	// Of run(), until it returns false. The channel is live, or dead.
	bool step(kd::Sleepable s);

	// --- ctrl_lock ------------------------------------------------------------------
	bool due() const
	{
		return talk == kd::MapTalk::Ask || talk == kd::MapTalk::Ready ||
		       talk == kd::MapTalk::Unmap;
	}
	// The connection is gone, and with it the peer's keys: it is asked anew.
	void ask_again();
	// The message that is due.
	void say(kd::wire::MapInfo &info);
	// False: it cannot come now.
	[[nodiscard]] bool hear(const kd::wire::MapInfo &info);

	// Where the byte at `pos` is at the peer; the mapping is, or was, live.
	kd::wire::RemoteKey at(uint64_t pos) const
	{
		kd::wire::RemoteKey key = keys[pos >> key_shift];
		key.addr += pos & (key_bytes - 1);
		return key;
	}
	// Bytes from `pos` on that its key covers.
	uint32_t rest_of_key(uint64_t pos) const
	{
		return key_bytes - (uint32_t(pos) & (key_bytes - 1));
	}

	// Bytes of so many from `pos` on that may be read or written together.
	uint32_t part(uint64_t pos, uint64_t most, bool write) const;

	// --- constant -------------------------------------------------------------------
	char name[KD_NAME_MAX + 1];
	kd_map_params params{};
	kd_net *net = nullptr;
	uint64_t id = 0;
	kd::Channel *channel = nullptr;
	uint32_t number = 0; // at the channel

	kd::Refs refs;
	kd::Link<kd_mapping> link; // registry
	bool registered = false;   // registry lock
	kd_node *node = nullptr;   // run()
	std::atomic<uint32_t> opens{0};
	std::atomic<bool> delete_requested{false};
	std::atomic<kd::MapState> state{kd::MapState::Asking}; // written by run()
	bool ever_live = false;                                // run()
	bool removed = false;                                  // run()
	std::atomic<bool> revoked{false};
	// Live, but without valid keys. Set while no queue posts; cleared by run() before the
	// queues are looked through for what was held meanwhile.
	std::atomic<bool> away{false};
	kd_error error{}; // ctrl_lock

	// What the peer told; constant once live.
	uint64_t size = 0, instance = 0;
	bool read_only = false;
	std::atomic<bool> atomics{false}; // both devices have them
	bool sole = false;                // ctrl_lock: nobody else could write while it was away
	uint32_t key_bytes = 0, key_shift = 0, nr_keys = 0;
	kd::wire::RemoteKey *keys = nullptr; // ctrl_lock until live
	uint32_t told = 0;                   // ctrl_lock: keys that came
	kd::DescFiles files;                 // ctrl_lock

	kd::MapTalk talk = kd::MapTalk::Ask; // ctrl_lock
	uint16_t refused = 0;                // ctrl_lock
	uint64_t deadline_ns = 0;            // ctrl_lock: of the peer's answer

private:
	void enter(kd::Sleepable s, kd::MapState next);
	void fail(int err, const char *text);
	bool step_asking(kd::Sleepable s);
	bool step_live(kd::Sleepable s);
	bool come_back(kd::Sleepable s);
	bool cut_off() const;
	int fate() const;
	void hear_mapped(const kd::wire::MapInfo &info);
	bool step_leaving(kd::Sleepable s);
	void make_table(kd::Sleepable s);
	kd::MapTalk talking() const;
	[[nodiscard]] bool talk_on(kd::MapTalk from, kd::MapTalk next);
	uint64_t patience_from_now() const;
	void remove(kd::Sleepable s);
};
