// SPDX-License-Identifier: GPL-2.0-only
// Raw channels, and programs that use them: each descriptor that was taken ends once, and
// what one end sends comes in its order.
#include <cstring>

#include "../../../uapi/kdirect_netlink.h"
#include "../plain.h"
#include "../uring.h"
#include "storm.h"

namespace sim
{

namespace
{

constexpr uint16_t plain_port = 7472;
constexpr uint32_t room = 40000;   /* of one work request */
constexpr uint32_t places = 20;    /* for work requests */
constexpr uint32_t buffer = 60000; /* the fixed buffer, behind them */

struct Header {
	uint32_t magic, sender, number;
};
constexpr uint32_t plain_magic = 0x504c4e21;

bool may_end_so(int result)
{
	for (int err :
	     {KD_EINVAL, KD_EFAULT, KD_ENOTCONN, KD_EPIPE, KD_ENODEV, KD_EOPNOTSUPP, KD_EMSGSIZE,
	      KD_ENOENT, KD_ENOMEM, KD_EPROTO, KD_ETIMEDOUT, KD_ECONNRESET, KD_EIO, KD_EINTR})
		if (result == -err)
			return true;
	return false;
}

} // namespace

/* A program with an open file. */
class Schedule::Talk
{
public:
	Talk(Schedule &s, Machine &m, PlainFile &f, Rng &r)
		: schedule(s), file(f), rng(r), mine(s.plain_keys[&m - s.machines.data()]),
		  theirs(s.plain_keys[&s.other(m) - s.machines.data()]),
		  memory(s.lend(places * room + buffer)), sender(s.next_sender++),
		  own(s.seed * 0x9e3779b97f4a7c15ULL + sender), by_uring(own.chance(40)),
		  polls(by_uring && own.chance(50) && f.info().poll_queues),
		  ring(*s.w, f.hold(),
		       {.polls = polls, .buffer = at(0), .buffer_len = memory.size()})
	{
		for (uint32_t i = 0; i < places; i++)
			idle.push_back(i);
	}
	void run();

private:
	uint64_t at(uint32_t place) const
	{
		return reinterpret_cast<uint64_t>(memory.data()) + uint64_t{place} * room;
	}
	void answer();
	kdirect_desc some();
	void post();
	void command(kdirect_desc d);
	void look();
	void leave();
	void reap(std::size_t most, uint64_t timeout);
	void ended(const kdirect_completion &c);
	void arrived(const kdirect_completion &c, uint32_t place);
	void turn_key();
	void finish();

	Schedule &schedule;
	PlainFile &file;
	Rng &rng;
	kdirect_share &mine, &theirs; /* the last key that was told */
	std::span<char> memory;
	const uint32_t sender;
	std::vector<uint32_t> idle;
	std::map<uint64_t, std::pair<uint32_t, kdirect_desc>> under_way;
	Rng own; /* of what others do without */
	const bool by_uring, polls;
	Uring ring;
	std::map<uint64_t, std::shared_ptr<Command>> commands; /* of those */
	uint64_t posted = 0;
	uint32_t number = 0; /* of the next SEND */
	Header last{};       /* that came */
	bool over = false;
};

/* Of what is held. */
void Schedule::Talk::answer()
{
	for (uint64_t i = rng.below(4); i; i--)
		post();
	if (rng.chance(90))
		(void)file.connect(raw_terms("hello", rng.chance(80) ? 7 : 0), rng.chance(50));
	else if (rng.chance(50))
		(void)file.reject("no");
}

kdirect_desc Schedule::Talk::some()
{
	static constexpr uint8_t opcodes[] = {
		KDIRECT_OP_SEND,      KDIRECT_OP_SEND,     KDIRECT_OP_SEND,
		KDIRECT_OP_RECV,      KDIRECT_OP_RECV,     KDIRECT_OP_RECV,
		KDIRECT_OP_RECV,      KDIRECT_OP_WRITE,    KDIRECT_OP_READ,
		KDIRECT_OP_WRITE_IMM, KDIRECT_OP_SEND_IMM, KDIRECT_OP_FETCH_ADD,
		KDIRECT_OP_LOCAL_INV, KDIRECT_OP_SEND_INV,
	};
	/* what is wrong with a key ends the connection */
	uint8_t opcode =
		opcodes[rng.below(rng.chance(theirs.rkey ? 85 : 98) ? 7 : std::size(opcodes))];
	bool receives = opcode == KDIRECT_OP_RECV, fixed = rng.chance(30);
	auto len = static_cast<uint32_t>(receives && rng.chance(97) ? room
					 : rng.chance(50)           ? rng.range(12, 600)
								    : rng.range(12, room));
	uint32_t place = idle.back();
	kdirect_desc d = fixed ? work_fixed(opcode, 0, rng.below(buffer - room), len)
			       : work(opcode, at(place), len);

	if (opcode == KDIRECT_OP_SEND_IMM || opcode == KDIRECT_OP_WRITE_IMM)
		d.imm = static_cast<uint32_t>(rng.next());
	if (opcode == KDIRECT_OP_SEND_INV)
		d.rkey = theirs.rkey;
	if (opcode == KDIRECT_OP_READ || opcode == KDIRECT_OP_WRITE ||
	    opcode == KDIRECT_OP_WRITE_IMM)
		d = remote(d, theirs.addr + rng.below(buffer - room), theirs.rkey);
	if (opcode == KDIRECT_OP_FETCH_ADD) {
		d = work(opcode, 0, 8);
		d.operand = 1;
		d = remote(d, (theirs.addr + 7) & ~uint64_t{7}, theirs.rkey);
	}
	if (opcode == KDIRECT_OP_LOCAL_INV) {
		d = work(opcode, 0, 0);
		d.rkey = mine.rkey;
	}
	if (!receives && rng.chance(10))
		d.flags |= KDIRECT_DESC_FENCE;
	if (rng.chance(2))
		d.opcode = static_cast<uint8_t>(rng.next());
	if (rng.chance(2))
		d.addr = rng.next();
	if (rng.chance(1))
		d.length = static_cast<uint32_t>(rng.next());
	return d;
}

void Schedule::Talk::post()
{
	if (idle.empty())
		return;
	kdirect_desc d = some();
	uint32_t place = idle.back();
	Header header{plain_magic, sender, number++};
	bool fixed = d.flags & KDIRECT_DESC_FIXED;
	uint64_t from = fixed ? at(places) + d.addr : d.addr;

	bool commanded = by_uring && own.chance(50);

	/* what may be sent from twice at once, or in any order, carries no numbers */
	if (commanded)
		header.magic = 0;
	if (d.opcode != KDIRECT_OP_RECV && !fixed && from == at(place))
		std::memcpy(memory.data() + uint64_t{place} * room, &header, sizeof(header));
	d.user_data = posted;
	if (commanded) {
		idle.pop_back();
		under_way[posted] = {place, d};
		command(d);
		posted++;
		return;
	}
	int err = file.post({d});
	if (err == KD_EAGAIN || err == KD_EINTR || err == KD_ENOMEM)
		return;
	if (err) {
		fail("descriptors of a raw channel are not taken: error %d", err);
		over = true;
		return;
	}
	idle.pop_back();
	under_way[posted++] = {place, d};
}

void Schedule::Talk::command(kdirect_desc d)
{
	bool registered = !(d.flags & KDIRECT_DESC_FIXED) && d.addr && own.chance(50);

	d.user_data = 0;
	ring.submit(d, registered);
	commands[posted] = ring.commands.back();
	if (own.chance(10))
		ring.cancel(*ring.commands[own.below(ring.commands.size())]);
}

/* What has ended of them. */
void Schedule::Talk::look()
{
	if (polls)
		(void)ring.poll();
	for (auto it = commands.begin(); it != commands.end();) {
		uint64_t number = it->first;
		std::shared_ptr<Command> command = it->second;

		++it;
		if (!command->done)
			continue;
		ended({.user_data = number,
		       .result = command->result.result,
		       .opcode = command->desc.opcode,
		       .flags = static_cast<uint8_t>(command->result.extra >> 32)});
		commands.erase(number);
		reach->plain_commands++;
	}
}

/* As a process that ends: its commands do, too, in a worker or posted, and with these the
 * channel.
 */
void Schedule::Talk::leave()
{
	for (const auto &[number, command] : commands) {
		command->orphan = true;
		ring.cancel(*command);
	}
	if (!commands.empty() && own.chance(50) && !ring.finish(60 * sec))
		fail("commands of io_uring outlive their process");
}

/* Whole, and behind those before. */
void Schedule::Talk::arrived(const kdirect_completion &c, uint32_t place)
{
	Header header;

	if (c.result < static_cast<int>(sizeof(header)))
		return;
	std::memcpy(&header, memory.data() + uint64_t{place} * room, sizeof(header));
	if (header.magic != plain_magic)
		return; /* of a fixed buffer */
	if (last.magic && last.sender != header.sender)
		fail("a message of another sender than before");
	if (last.magic && header.number <= last.number)
		fail("message %u came behind %u", header.number, last.number);
	last = header;
	schedule.plain_arrived();
}

void Schedule::Talk::ended(const kdirect_completion &c)
{
	auto found = under_way.find(c.user_data);

	if (found == under_way.end()) {
		fail("a work request ended twice, or was not submitted");
		return;
	}
	auto [place, d] = found->second;
	under_way.erase(found);
	idle.insert(idle.begin(), place);
	if (c.opcode != d.opcode)
		fail("a work request ended as another one");
	if (c.result < 0 && !may_end_so(c.result))
		fail("work request %u of %u bytes returned %d", d.opcode, d.length, c.result);
	over |= c.result == -KD_EPIPE || c.result == -KD_ENODEV || c.result == -KD_ECONNRESET;
	if (c.result < 0)
		return;
	reach->plain_descs++;
	if (d.opcode != KDIRECT_OP_RECV && c.result != static_cast<int>(d.length))
		fail("work request %u of %u bytes returned %d", d.opcode, d.length, c.result);
	bool fixed = d.flags & KDIRECT_DESC_FIXED;
	if (d.opcode == KDIRECT_OP_RECV && !(c.flags & KDIRECT_COMPLETION_WRITE)) {
		if (c.result > static_cast<int>(d.length))
			fail("%d bytes came into %u", c.result, d.length);
		else if (!fixed && !commands.contains(c.user_data))
			arrived(c, place);
	}
}

void Schedule::Talk::reap(std::size_t most, uint64_t timeout)
{
	for (const kdirect_completion &c : file.await(most, timeout))
		ended(c);
	look();
}

void Schedule::Talk::turn_key()
{
	kdirect_share key;
	char *fixed = memory.data() + places * uint64_t{room};

	switch (rng.below(6)) {
	case 0: (void)file.set_buffer(0, fixed, buffer); break;
	case 1: (void)file.del_buffer(0); break;
	case 2: (void)file.share(0, 0, key); break;
	default:
		if (!file.share(0, static_cast<uint32_t>(rng.range(1, KDIRECT_ACCESS_FLAGS)), key))
			mine = key;
	}
}

/* All that is under way ends when the connection does. */
void Schedule::Talk::finish()
{
	for (unsigned int tries = 0; !under_way.empty() && tries < 40; tries++) {
		std::size_t before = under_way.size();
		bool hup = file.poll() & KD_POLL_HUP;

		if (hup && !ring.finish(60 * sec))
			fail("commands of io_uring do not end with the connection");
		reap(before, 1 * sec);
		if (hup && under_way.size() == before) {
			fail("%zu work requests have not ended with the connection", before);
			return;
		}
	}
}

void Schedule::Talk::run()
{
	if (rng.chance(90))
		(void)file.set_buffer(0, memory.data() + places * uint64_t{room}, buffer);
	if (file.info().flags & KDIRECT_RAW_HELD)
		answer();
	for (uint64_t i = rng.range(5, 120); i && !over && !schedule.winding_up; i--)
		switch (rng.below(10)) {
		case 0: turn_key(); break;
		case 1: (void)file.poll(); break;
		case 2:
		case 3: reap(1, rng.range(1, 300 * us)); break;
		case 4: schedule.w->run_for(rng.below(20 * us)); break;
		default: post(); break;
		}
	if (over || rng.chance(20))
		finish();
	leave();
}

void Schedule::plain_arrived()
{
	reach->plain_messages++;
}

void Schedule::plain_user(Machine &m, Rng &rng)
{
	for (uint64_t rounds = rng.range(1, 4); rounds && !winding_up; rounds--) {
		PlainFile file;

		for (uint64_t wait = 20 * us; wait < 30 * ms && !file && !winding_up;) {
			std::vector<std::string> there;

			for (const auto &devnode : w->devnodes)
				if (devnode->node == m.node && devnode->raw && !devnode->going)
					there.push_back(devnode->name);
			if (!there.empty())
				file = open_plain(*w, there[rng.below(there.size())]);
			if (!file)
				w->run_for(wait += wait / 2);
		}
		if (!file)
			return;
		reach->plain_files++;
		Talk(*this, m, file, rng).run();
	}
}

void Schedule::plain_listener(Machine &m, Rng &rng)
{
	for (uint64_t i = rng.range(1, 3); i && !winding_up; i--) {
		w->listen("p", m.addr, plain_port, [&](kd_listener_params &p) {
			p.mode = KDIRECT_MODE_RAW;
			p.raw.hold = rng.chance(60);
			p.raw.rnr_retry_count = rng.chance(80) ? 7 : 0;
			p.max_depth = static_cast<uint32_t>(rng.range(1, 8));
			p.eager_limit = 512;
		});
		w->run_for(rng.below(rng.chance(50) ? 30 * ms : 1 * ms));
		if (rng.chance(40))
			return;
		w->unlisten("p");
	}
}

void Schedule::plain_connecter(Machine &m, Rng &rng)
{
	for (uint64_t i = rng.range(1, 5); i && !winding_up; i--) {
		std::string name = "q" + std::to_string(rng.below(2));

		reach->connects++;
		w->connect(name, other(m).addr, plain_port, [&](kd_channel_params &p) {
			p.mode = KDIRECT_MODE_RAW;
			p.raw.hold = rng.chance(50);
			p.raw.rnr_retry_count = rng.chance(80) ? 7 : 0;
			p.depth = static_cast<uint32_t>(rng.range(1, 8));
			p.eager_limit = 512;
			p.poll_queues = rng.chance(30);
			p.connect_timeout_ms = rng.chance(50) ? 2000 : 200;
			p.drain_timeout_ms = static_cast<uint32_t>(rng.range(10, 300));
		});
		w->run_for(rng.below(rng.chance(50) ? 10 * ms : 500 * us));
		if (rng.chance(30))
			delete_channel(m, name);
	}
}

/* In some schedules; the others are as they are without. */
void Schedule::plan_plains()
{
	Rng own(seed * 0x9e3779b97f4a7c15ULL + 5);

	plains = !faultless && own.chance(35);
	if (plains && own.chance(50))
		device.max_sge = static_cast<uint32_t>(own.range(1, 4));
}

void Schedule::spawn_plains()
{
	if (!plains)
		return;
	Machine &a = machines[0], &b = machines[1];

	admins.push_back(process("raw listener", b, [&](Rng &rng) { plain_listener(b, rng); }));
	admins.push_back(process("raw connecter", a, [&](Rng &rng) { plain_connecter(a, rng); }));
	for (Machine *m : {&a, &b, &a, &b})
		users.push_back(
			process("raw user", *m, [this, m](Rng &rng) { plain_user(*m, rng); }));
}

} // namespace sim
