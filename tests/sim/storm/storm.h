/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * One schedule: a small world, processes that use and administer it, and faults,
 * all as one seed says.
 *
 *	machine a (10.0.0.1, core a) --+-- machine b (10.0.0.2, core b)
 *	                               +-- machine v (10.0.0.3, a core of another version)
 *	                               +-- 10.0.0.9, a peer that lies
 */
#pragma once
#include <deque>
#include <memory>
#include <optional>
#include <set>
#include <span>

#include "../../../uapi/kdirect.h"
#include "../fabric.h"
#include "../map.h"
#include "../raw.h"
#include "../ring.h"
#include "probe.h"
#include "reach.h"

namespace sim
{

struct Machine {
	Node *node = nullptr;
	const char *addr = "";
	Device *dev = nullptr; /* nullptr: removed */
	const InstanceTable *core = nullptr;
	bool administered = true; /* requests may come; false: being unloaded */
};

/* The core's calls, counting what comes to which state. */
const CoreApi &counted_core(unsigned int instance); /* 0, 1, 2 = a, b, v */
const InstanceTable &instance(unsigned int instance);

/* What arrives at one open end. */
struct Stream {
	uint64_t peer = 0;    /* device node of the other end */
	bool taken = false;   /* by the one reader who reads parts */
	bool ended = false;   /* read() has returned 0, and the channel was not deleted here */
	bool deleted = false; /* at this end */
	std::string part;     /* of a message */
	struct Writer {
		uint32_t next = 0;     /* the number that comes now */
		uint32_t accepted = 0; /* written with success: at the sender's end */
	};
	std::map<uint32_t, Writer> from;       /* by writer: what arrived here */
	std::map<uint32_t, uint32_t> accepted; /* by writer: sent from this end */
};

class Schedule
{
public:
	explicit Schedule(uint64_t seed);
	~Schedule();
	void run();

	World &world() { return *w; }

private:
	/* --- storm.cc: setting up, running, ending --- */
	static Options options(uint64_t seed, Rng &plan, bool faultless);
	void make_machines();
	void spawn_all();
	void first_admin(Machine &a, Rng &rng);
	void arm_failures(Rng &rng);
	bool await(const std::function<bool()> &cond, uint64_t timeout);
	void wind_up();
	Task process(const char *name, Machine &m, std::function<void(Rng &)> body);
	void fault(Trouble trouble);
	std::size_t phase() const;

	/* --- admins.cc --- */
	void admin(Machine &m, Rng &rng, unsigned int actions);
	void act(Machine &m, Rng &rng);
	void act_on_hardware(Machine &m, Rng &rng);
	void add_channel(Machine &m, Rng &rng, const std::string &name);
	void add_listener(Machine &m, Rng &rng, const char *name, uint16_t at);
	void change_channel(Machine &m, Rng &rng, const std::string &name);
	void delete_channel(Machine &m, const std::string &name);
	void look(Machine &m, Rng &rng);
	void link_down(Machine &m, Rng &rng);
	void remove_device(Machine &m);
	void break_qp(Machine &m, Rng &rng);
	void interrupt(Machine &m, Rng &rng);
	std::string some_channel(Machine &m, Rng &rng);
	void mark_deleted(Machine &m, const std::string &name);
	Machine &other(Machine &m) { return &m == &machines[0] ? machines[1] : machines[0]; }

	/* --- users.cc --- */
	void user(Machine &m, Rng &rng);
	File open(Machine &m, const std::string &name, uint64_t &end);
	void write(File &file, uint64_t end, Rng &rng);
	bool write_one(File &file, uint64_t end, uint32_t writer, uint32_t number, Rng &rng);
	void read(File &file, uint64_t end, Rng &rng);
	void mixed(File &file, uint64_t end, Rng &rng);
	void arrived(Stream &stream, std::string_view message);

	/* --- messages.cc --- */
	int64_t one_desc(File &file, const kdirect_desc &desc, uint32_t flags);
	int64_t send(File &file, std::string_view text, uint32_t flags);
	int64_t receive(File &file, std::string &buffer, std::size_t room, uint32_t flags);

	/* --- maps.cc --- */
	void spawn_maps(bool both);
	void exporter(Machine &m, Rng &rng);
	void mapper(Machine &m, Rng &rng, uint32_t number);
	bool transfer(MapFile &file, uint64_t base, std::string &model, bool &known, Rng &rng);
	std::span<char> lend(std::size_t size);
	bool batch(MapFile &file, uint64_t base, std::string &model, bool &known, Rng &rng);
	struct Batch;
	bool by_call(Batch &batch, Rng &rng);
	bool by_ring(Batch &batch, Rng &rng);
	bool by_uring(Batch &batch, Rng &rng);
	Ring make_ring(MapFile &file, Rng &rng, int *err);
	void scribble(MapFile &file, uint64_t base, Rng &rng);

	/* --- plains.cc --- */
	class Talk;
	void plan_plains();
	void spawn_plains();
	void plain_user(Machine &m, Rng &rng);
	void plain_listener(Machine &m, Rng &rng);
	void plain_connecter(Machine &m, Rng &rng);
	static void plain_arrived();

	/* --- checks.cc --- */
	void quiet();
	void check_credits();
	void check_waits();
	void check_cqs();
	void check_states();
	void check_ends();

	/* --- liar.cc --- */
	class Liar;
	void lie(Rng &rng);

	uint64_t seed;
	Rng plan;
	std::deque<std::string> kept;           /* memory of writers that a signal took away */
	std::deque<std::shared_ptr<void>> lent; /* likewise, of transfers and descriptors */
	std::map<uint64_t, Stream> streams;     /* by device node */
	std::vector<Task> admins, users;
	uint32_t next_writer = 1, next_sender = 1;
	std::array<kdirect_share, 3> plain_keys{}; /* the last of each machine */
	bool plains = false;                       /* there are raw channels, too */
	unsigned int troubles = 0;
	uint64_t checked_at = 0;
	bool lasting = false; /* channels outlive their connections, which are interrupted */
	bool faultless = false, early = false, lies = false, winding_up = false;
	bool jumped = false, changed = false; /* the clock; a keep-alive */
	uint16_t many = 0;                    /* bigger messages, more of them */
	DeviceOptions device;
	std::array<Machine, 3> machines;
	unsigned int nr_machines = 2;
	std::unique_ptr<World> w;
	std::shared_ptr<Liar> liar;
};

constexpr uint16_t storm_port = 7471;
constexpr uint32_t longest_loss_ms = 3000;

} // namespace sim
