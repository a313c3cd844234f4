/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What the schedules have reached: a storm in which nothing happens must not look
 * like one in which nothing goes wrong. In memory that all workers share.
 */
#pragma once
#include <cstdint>
#include <cstdio>

#include "../world.h"

namespace sim
{

/* Faults besides those that World::inject() knows. */
enum class Trouble : unsigned int {
	LinkDown,
	LinkDownLong, /* until the keep-alive has to notice */
	Stuck,
	DeviceRemoved,
	DeviceAdded,
	QpBreaks,
	Signal,
	FatalSignal,
	ClockJump,
	ChannelDeleted,
	ListenerDeleted,
	Unloaded, /* with channels alive */
	SlowReader,
	BadMemory,
	MemlockLimit,
	Lie,
	PeerVanishes,
	OtherVersion,
	Count,
};
constexpr auto nr_troubles = static_cast<std::size_t>(Trouble::Count);

/* What comes to a channel from outside; the rest is by type of event and kind of WR. */
enum class Call : unsigned int {
	Fatal,
	CqEvent,
	Open,
	Close,
	Write,
	Read,
	Poll,
	Ping,
	Flags,
	Info,
	Set,
	Delete,
	Count,
};
constexpr std::size_t nr_cm_events = KD_CM_OTHER + 1;
constexpr std::size_t nr_wcs = 5 * 3; /* kind, then success, flushed, error */
constexpr std::size_t first_wc = nr_cm_events;
constexpr std::size_t first_call = first_wc + nr_wcs;
constexpr std::size_t nr_events = first_call + static_cast<std::size_t>(Call::Count);
constexpr std::size_t nr_states = 6;
constexpr std::size_t no_channel = nr_states; /* a phase */

struct Reach {
	uint64_t schedules, turns, steps_longest, faultless;
	uint64_t connects, live, messages, large, bytes, ends, pings, refused;
	uint64_t exports, mapped, map_bytes, map_async, map_descs, ring_descs, unreaped, commands,
		plugged;
	uint64_t plain_files, plain_descs, plain_messages, plain_commands, registered;
	uint64_t message_descs;
	uint64_t replayed, io_replayed;
	uint64_t quiet, credits_checked, waits_checked, watched, races;
	uint64_t faults_of_schedule[8]; /* schedules with so many, 7 = more */
	uint64_t event[nr_events][nr_states];
	uint64_t fault[nr_ops + nr_troubles][nr_states + 1];
	uint64_t transition[nr_states][nr_states];
};

extern Reach *reach;

void add(Reach &to, const Reach &from);
void print(const Reach &r, std::FILE *to);
/* What did not happen at all although it can. */
std::vector<std::string> missing(const Reach &r);

} // namespace sim
