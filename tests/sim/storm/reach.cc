// SPDX-License-Identifier: GPL-2.0-only
#include "reach.h"

#include <cinttypes>

namespace sim
{

Reach *reach;

namespace
{

constexpr const char *states[] = {"new",      "connecting", "live", "recovering",
				  "deleting", "dead",       "none"};
constexpr const char *troubles[] = {
	"LinkDown",     "LinkDownLong",   "Stuck",           "DeviceRemoved",
	"DeviceAdded",  "QpBreaks",       "Signal",          "FatalSignal",
	"ClockJump",    "ChannelDeleted", "ListenerDeleted", "Unloaded",
	"SlowReader",   "BadMemory",      "MemlockLimit",    "Lie",
	"PeerVanishes", "OtherVersion",
};
static_assert(std::size(troubles) == nr_troubles);

constexpr const char *cm_events[] = {
	"addr resolved", "route resolved", "connect request", "established",
	"addr error",    "route error",    "unreachable",     "connect error",
	"rejected",      "disconnected",   "device removal",  "other",
};
static_assert(std::size(cm_events) == nr_cm_events);
constexpr const char *wcs[] = {"receive", "send", "reg", "invalidate", "read"};
constexpr const char *results[] = {"done", "flushed", "failed"};
constexpr const char *calls[] = {"fatal", "cq event", "open",  "close", "write", "read",
				 "poll",  "ping",     "flags", "info",  "set",   "delete"};
static_assert(std::size(calls) == static_cast<std::size_t>(Call::Count));

std::string event_name(std::size_t event)
{
	if (event < first_wc)
		return cm_events[event];
	if (event < first_call)
		return std::string(wcs[(event - first_wc) / 3]) + " " +
		       results[(event - first_wc) % 3];
	return calls[event - first_call];
}

const char *fault_name(std::size_t fault)
{
	return fault < nr_ops ? op_name(static_cast<Op>(fault)) : troubles[fault - nr_ops];
}

bool legal(std::size_t from, std::size_t to)
{
	constexpr bool table[nr_states][nr_states] = {
		{0, 1, 0, 0, 1, 0}, {0, 0, 1, 1, 1, 0}, {0, 0, 0, 1, 1, 0},
		{0, 0, 1, 0, 1, 1}, {0, 0, 0, 0, 0, 1}, {0, 0, 0, 0, 0, 0},
	};

	return table[from][to];
}

/*
 * What an event can meet. A channel is new until its first turn, and no id of its
 * own exists before that; a dead one has no id, no QP and no CQ.
 */
bool possible(std::size_t event, std::size_t state)
{
	bool in_life = state >= KDIRECT_STATE_CONNECTING && state <= KDIRECT_STATE_DELETING;

	if (event < first_wc) {
		switch (event) {
		case KD_CM_CONNECT_REQUEST: /* comes to a listener */
		case KD_CM_OTHER: return false;
		case KD_CM_DISCONNECTED:
		case KD_CM_DEVICE_REMOVAL: return in_life;
		default:
			return state == KDIRECT_STATE_CONNECTING ||
			       state == KDIRECT_STATE_RECOVERING;
		}
	}
	if (event < first_call) {
		std::size_t kind = (event - first_wc) / 3, result = (event - first_wc) % 3;

		if (!in_life)
			return false;
		if (kind == KD_CQE_OFFER) /* asks for no completion */
			return result == 1 && state >= KDIRECT_STATE_RECOVERING;
		if (kind >= KD_CQE_INV)
			return state != KDIRECT_STATE_CONNECTING && result != 2;
		if (result == 2)
			return kind == KD_CQE_SEND;
		return true;
	}
	switch (static_cast<Call>(event - first_call)) {
	case Call::Fatal:
	case Call::CqEvent: return in_life;
	/* a node comes when the channel is live */
	case Call::Set:
	case Call::Delete: return state != KDIRECT_STATE_NEW;
	default: return state >= KDIRECT_STATE_LIVE;
	}
}

} // namespace

void add(Reach &to, const Reach &from)
{
	auto *sum = reinterpret_cast<uint64_t *>(&to);
	auto *more = reinterpret_cast<const uint64_t *>(&from);
	uint64_t longest = std::max(to.steps_longest, from.steps_longest);

	for (std::size_t i = 0; i < sizeof(Reach) / sizeof(uint64_t); i++)
		sum[i] += more[i];
	to.steps_longest = longest;
}

void print(const Reach &r, std::FILE *to)
{
	double n = static_cast<double>(r.schedules ? r.schedules : 1);
	auto each = [n](uint64_t count) { return static_cast<double>(count) / n; };
	auto table = [&](const char *title, std::size_t rows, const auto &name, const auto &cell,
			 std::size_t columns) {
		std::fprintf(to, "\n%-16s", title);
		for (std::size_t i = 0; i < columns; i++)
			std::fprintf(to, " %11s", states[i]);
		for (std::size_t row = 0; row < rows; row++) {
			std::fprintf(to, "\n%-16s", name(row).c_str());
			for (std::size_t i = 0; i < columns; i++)
				std::fprintf(to, " %11" PRIu64, cell(row, i));
		}
		std::fprintf(to, "\n");
	};

	std::fprintf(to,
		     "%" PRIu64 " schedules; each, on average: %.0f turns (the longest %" PRIu64
		     "), %.2f connection attempts, %.2f ends of channels live, %.2f messages (%.2f "
		     "by rendezvous, %.0f bytes), %.2f pings, %.2f clean ends\n",
		     r.schedules, each(r.turns), r.steps_longest, each(r.connects), each(r.live),
		     each(r.messages), each(r.large), each(r.bytes), each(r.pings), each(r.ends));
	std::fprintf(to,
		     "mappings: %.2f exports, %.2f open files, %.0f bytes moved, %.2f asynchronous "
		     "transfers, %.2f commands of io_uring, %.3f times some shared a doorbell\n",
		     each(r.exports), each(r.mapped), each(r.map_bytes), each(r.map_async),
		     each(r.commands), each(r.plugged));
	std::fprintf(to,
		     "raw channels: %.2f open files, %.2f work requests done, %.2f messages told "
		     "apart, %.2f commands of io_uring, memory of %.2f receives registered\n",
		     each(r.plain_files), each(r.plain_descs), each(r.plain_messages),
		     each(r.plain_commands), each(r.registered));
	std::fprintf(to,
		     "%" PRIu64 " without a fault, faults in the others: 0 %" PRIu64 ", 1 %" PRIu64
		     ", 2 %" PRIu64 ", 3 %" PRIu64 ", 4 %" PRIu64 ", 5 %" PRIu64 ", 6 %" PRIu64
		     ", more %" PRIu64 "\n",
		     r.faultless, r.faults_of_schedule[0] - r.faultless, r.faults_of_schedule[1],
		     r.faults_of_schedule[2], r.faults_of_schedule[3], r.faults_of_schedule[4],
		     r.faults_of_schedule[5], r.faults_of_schedule[6], r.faults_of_schedule[7]);
	std::fprintf(to,
		     "quiet moments: %.2f each, credits of %.2f queues compared, %.2f waits "
		     "tested; %" PRIu64 " schedules watched for races\n",
		     each(r.quiet), each(r.credits_checked), each(r.waits_checked), r.watched);
	table(
		"event, state", nr_events, event_name,
		[&](std::size_t row, std::size_t i) { return r.event[row][i]; }, nr_states);
	table(
		"fault, phase", nr_ops + nr_troubles,
		[](std::size_t row) { return std::string(fault_name(row)); },
		[&](std::size_t row, std::size_t i) { return r.fault[row][i]; }, nr_states + 1);
	table(
		"from, to", nr_states, [](std::size_t row) { return std::string(states[row]); },
		[&](std::size_t row, std::size_t i) { return r.transition[row][i]; }, nr_states);
}

std::vector<std::string> missing(const Reach &r)
{
	std::vector<std::string> out;

	for (std::size_t e = 0; e < nr_events; e++)
		for (std::size_t s = 0; s < nr_states; s++)
			if (!r.event[e][s] && possible(e, s))
				out.push_back("event " + event_name(e) + " in state " + states[s]);
	for (std::size_t f = 0; f < nr_ops + nr_troubles; f++) {
		uint64_t sum = 0;

		for (uint64_t count : r.fault[f])
			sum += count;
		if (!sum)
			out.push_back(std::string("fault ") + fault_name(f));
	}
	for (std::size_t a = 0; a < nr_states; a++)
		for (std::size_t b = 0; b < nr_states; b++)
			if (!r.transition[a][b] && legal(a, b))
				out.push_back(std::string("transition ") + states[a] + " to " +
					      states[b]);
	for (const auto &[count, what] :
	     {std::pair{r.faultless, "a schedule without a fault"},
	      std::pair{r.large, "a message by rendezvous"},
	      std::pair{r.pings, "a ping"},
	      std::pair{r.ends, "a clean end"},
	      std::pair{r.refused, "a peer of another version"},
	      std::pair{r.exports, "an export"},
	      std::pair{r.mapped, "a mapping"},
	      std::pair{r.map_bytes, "a transfer of a mapping"},
	      std::pair{r.map_async, "an asynchronous one"},
	      std::pair{r.map_descs, "a descriptor"},
	      std::pair{r.ring_descs, "a descriptor of a ring"},
	      std::pair{r.message_descs, "a message by a descriptor"},
	      std::pair{r.replayed, "a message that is sent again"},
	      std::pair{r.io_replayed, "a READ or WRITE that is posted again"},
	      std::pair{r.unreaped, "completions that cannot be written"},
	      std::pair{r.commands, "a command of io_uring"},
	      std::pair{r.plugged, "commands of io_uring of one call"},
	      std::pair{r.plain_files, "an open raw channel"},
	      std::pair{r.plain_descs, "a work request of one"},
	      std::pair{r.plain_messages, "a message of one"},
	      std::pair{r.plain_commands, "a command of io_uring of one"},
	      std::pair{r.registered, "a receive whose memory is registered"},
	      std::pair{r.credits_checked, "credits compared"},
	      std::pair{r.waits_checked, "waits tested"}})
		if (!count)
			out.push_back(what);
	return out;
}

} // namespace sim
