// SPDX-License-Identifier: GPL-2.0-only
#include "storm.h"

#include "../watch.h"

namespace sim
{

namespace
{

constexpr const char *addrs[] = {"10.0.0.1", "10.0.0.2", "10.0.0.3"};
constexpr const char *names[] = {"a", "b", "v"};

/* Every fourth schedule: what the compiler makes of the core must not move the others. */
bool watched(uint64_t seed)
{
	return watch::on && seed % 4 == 0;
}

} // namespace

Options Schedule::options(uint64_t seed, Rng &plan, bool faultless)
{
	static constexpr std::pair<uint64_t, uint64_t> delays[] = {
		{1 * us, 20 * us}, {1 * us, 4 * us},   {1 * us, 300 * us},
		{100, 1 * us},     {20 * us, 60 * us},
	};
	static constexpr uint64_t retries[] = {20 * ms, 300 * ms, 1 * sec};
	static constexpr uint64_t timeouts[] = {300 * ms, 2 * sec, 10 * sec};
	auto [min, max] = delays[plan.below(std::size(delays))];
	Options options;

	options.seed = seed;
	options.core = &counted_core(0);
	options.min_delay = min;
	options.max_delay = max;
	options.retry_timeout = retries[plan.below(std::size(retries))];
	options.cm_timeout = timeouts[plan.below(std::size(timeouts))];
	/* some QPs may then be slower than a keep-alive has patience */
	options.uneven = !faultless && plan.chance(30);
	return options;
}

Schedule::Schedule(uint64_t number) : seed(number), plan(number * 0x2545f4914f6cdd1dULL + 1)
{
	static constexpr unsigned int permille[] = {0, 2, 10, 40};
	bool watch_it = watched(seed);

	watch::reset(watch_it, watch_it ? permille[plan.below(std::size(permille))] : 0);
	reach->watched += watch_it;
	faultless = plan.chance(8);
	lies = !faultless && plan.chance(12);
	many = plan.chance(4);
	lasting = !faultless && !lies && seed % 4 == 1;
	w = std::make_unique<World>(options(seed, plan, faultless));
	w->sched.doze_percent = plan.chance(40) ? static_cast<unsigned int>(plan.range(1, 5)) : 0;
	w->on_fault = [this](Op op) {
		troubles++;
		reach->fault[static_cast<std::size_t>(op)][phase()]++;
		if (w->trace)
			w->trace("fault", op_name(op));
	};
	w->on_state = [this](Node &node, const EventRecord &event) {
		reach->transition[event.old_state][event.state]++;
		reach->live += event.state == KDIRECT_STATE_LIVE;
		if (w->trace)
			w->trace("state", event.name + ": " + std::to_string(event.old_state) +
						  " to " + std::to_string(event.state) + " " +
						  event.text);
		/* a program that uses a raw channel may be wrong */
		bool raw = event.name[0] == 'p' || event.name[0] == 'q';
		if (event.err == KD_EPROTO && !lies && !raw)
			fail("channel %s: honest peers find that the other lies: %s",
			     event.name.c_str(), event.text.c_str());
		if (event.err && faultless)
			fail("channel %s fails, and nothing was done to it: %s", event.name.c_str(),
			     event.text.c_str());
		if (machines[2].node != &node)
			return;
		if (event.state == KDIRECT_STATE_LIVE)
			fail("a channel to a peer of another version is live");
		reach->refused += event.text.find("version") != std::string::npos;
	};
	w->sched.on_quiet = [this] { quiet(); };
}

Schedule::~Schedule() = default;

std::size_t Schedule::phase() const
{
	Fiber *self = w->sched.current();
	const Node *node = self && self->node ? self->node : machines[0].node;

	return node ? node->phase : no_channel;
}

void Schedule::fault(Trouble trouble)
{
	auto index = static_cast<std::size_t>(trouble);

	troubles++;
	reach->fault[nr_ops + index][phase()]++;
	if (w->trace)
		w->trace("trouble", std::to_string(index));
}

Task Schedule::process(const char *name, Machine &m, std::function<void(Rng &)> body)
{
	uint64_t own = plan.next();

	return w->spawn(
		name,
		[own, body = std::move(body)] {
			Rng rng(own);

			body(rng);
		},
		m.node);
}

void Schedule::make_machines()
{
	if (!faultless && plan.chance(6))
		nr_machines = 3;
	device.transport = static_cast<uint32_t>(plan.below(3));
	device.max_qp_wr = plan.chance(10) ? 128 : 16384;
	device.max_mr_pages = plan.chance(20) ? 4 : 512;
	device.max_read_sge = plan.chance(20) ? 1 : 32;
	device.max_rd_atom = !faultless && plan.chance(5) ? 0 : plan.chance(20) ? 1 : 128;
	plan_plains();
	for (unsigned int i = 0; i < nr_machines; i++) {
		Machine &m = machines[i];

		m.node = i ? &w->add_node(counted_core(i), names[i]) : &w->node();
		m.addr = addrs[i];
		m.core = &instance(i);
		if (!faultless && plan.chance(4)) {
			m.node->memlock_limit = plan.below(4) * page_size;
			fault(Trouble::MemlockLimit);
		}
	}
	for (unsigned int i = 0; i < nr_machines; i++)
		machines[i].dev = &w->add_device(addrs[i], device, machines[i].node);
}

/* In a process: until @cond holds, looking less and less often. */
bool Schedule::await(const std::function<bool()> &cond, uint64_t timeout)
{
	uint64_t pause = 10 * us;

	for (uint64_t end = w->now() + timeout; !cond(); pause += pause / 4) {
		if (w->now() >= end)
			return false;
		w->run_for(pause);
	}
	return true;
}

void Schedule::arm_failures(Rng &rng)
{
	if (rng.chance(30))
		w->fail_nth_any(rng.range(1, rng.chance(50) ? 30 : 200));
	for (uint64_t i = rng.below(3); i; i--) {
		uint64_t first =
			static_cast<uint64_t>(rng.chance(40) ? Op::PartialPost : Op::Alloc);

		w->fail_nth(static_cast<Op>(rng.range(first, nr_ops - 1)),
			    rng.range(1, rng.chance(60) ? 4 : 30), rng.range(1, 2));
	}
}

/* The first channel, and what is done to it once it is there. */
void Schedule::first_admin(Machine &a, Rng &rng)
{
	w->run_for(rng.below(30 * us));
	add_channel(a, rng, "c0");
	if (faultless || !early) {
		uint64_t live = reach->live;

		await(
			[&] {
				return reach->live > live + 1 || a.node->last_state.empty() ||
				       a.node->phase > KDIRECT_STATE_LIVE;
			},
			3 * sec);
		w->run_for(rng.below(200 * us));
		if (!faultless)
			arm_failures(rng);
	}
	admin(a, rng, static_cast<unsigned int>(rng.below(4) + (lasting ? 3 : 0)));
	if (lasting)
		look(a, rng);
}

void Schedule::spawn_all()
{
	Machine &a = machines[0], &b = machines[1];
	bool both = plan.chance(20);

	early = !faultless && plan.chance(40);
	admins.push_back(process("admin b", b, [&](Rng &rng) {
		add_listener(b, rng, "s", storm_port);
		if (!early)
			await([&] { return b.node->phase == KDIRECT_STATE_LIVE; }, 100 * ms);
		admin(b, rng, static_cast<unsigned int>(rng.below(4) + (lasting ? 3 : 0)));
	}));
	admins.push_back(process("admin a", a, [&, both](Rng &rng) {
		if (both)
			add_listener(a, rng, "r", storm_port);
		if (faultless)
			await(
				[&] { /* nobody calls before b listens */
				      return std::any_of(
					      w->cms.begin(), w->cms.end(), [&](const auto &cm) {
						      return cm->node == b.node &&
							     cm->state == Cm::State::Listening;
					      });
				},
				1 * sec);
		first_admin(a, rng);
	}));
	if (nr_machines > 2) {
		Machine &v = machines[2];

		fault(Trouble::OtherVersion);
		admins.push_back(process("admin v", v, [&](Rng &rng) {
			add_listener(v, rng, "o", storm_port);
			add_channel(v, rng, "c0");
			if (rng.chance(50))
				admin(v, rng, 2);
		}));
	}
	if (!faultless && plan.chance(30)) {
		Machine &m = plan.chance(50) ? a : b;

		admins.push_back(process("second admin", m, [&](Rng &rng) {
			w->run_for(rng.below(early ? 500 * us : 5 * ms));
			admin(m, rng, static_cast<unsigned int>(rng.range(1, 4)));
		}));
	}
	if (lies) {
		fault(Trouble::Lie);
		admins.push_back(process("liar", a, [&](Rng &rng) { lie(rng); }));
	}
	if (early)
		arm_failures(plan);
	if (plan.chance(40))
		spawn_maps(both);
	for (uint64_t i = plan.range(2, 6); i; i--) {
		Machine &m = plan.chance(50) ? a : b;

		users.push_back(process("user", m, [&](Rng &rng) { user(m, rng); }));
	}
	spawn_plains();
}

void Schedule::wind_up()
{
	if (!w->finish(admins, 200 * sec))
		for (const auto &fiber : w->sched.all())
			if (std::find(admins.begin(), admins.end(), fiber->id) != admins.end())
				fail("%s is stuck in %s, %s", fiber->name.c_str(),
				     fiber->last_calls[0], fiber->last_calls[1]);
	/* readers may wait for what nobody sends */
	w->finish(users, lasting           ? plan.below(2 * sec)
			 : faultless       ? 200 * ms
			 : plan.chance(30) ? plan.below(300 * us)
					   : plan.below(20 * ms));
	if (plan.chance(50))
		liar.reset();
	winding_up = true;
	for (unsigned int i = 0; i < nr_machines && plan.chance(60); i++)
		if (machines[i].dev)
			w->set_link(*machines[i].dev, true);
	for (unsigned int i = 0; i < nr_machines && plan.chance(60); i++)
		if (machines[i].dev)
			w->set_stuck(*machines[i].dev, false);

	if (!faultless && plan.chance(25)) {
		/* unloaded: no file is open then, but channels may be in any state */
		fault(Trouble::Unloaded);
		for (Task task : users)
			w->signal(task, true);
		for (auto &[end, stream] : streams)
			stream.deleted = true;
	} else {
		std::vector<Task> tasks;
		unsigned int first = static_cast<unsigned int>(plan.below(2));

		for (unsigned int i = 0; i < nr_machines; i++) {
			Machine &m = machines[(first + i) % nr_machines];

			tasks.push_back(process("last admin", m, [&](Rng &) {
				std::vector<std::string> all;

				for (const auto &entry : m.node->last_state)
					all.push_back(entry.first);
				for (const std::string &name : all)
					delete_channel(m, name);
			}));
			/* the other end sees the end */
			if (faultless || plan.chance(50))
				w->run_until([&] { return m.node->last_state.empty(); }, 3 * sec);
		}
		w->finish(tasks, 10 * sec);
		for (unsigned int i = 0; i < nr_machines; i++) {
			Node *node = machines[i].node;

			/* a new one may have come after the last look: the unload deletes it */
			w->run_until([&] { return node->last_state.empty(); }, 10 * sec);
		}
	}
	if (!w->finish(users, 60 * sec))
		for (const auto &fiber : w->sched.all())
			if (std::find(users.begin(), users.end(), fiber->id) != users.end())
				fail("a user is stuck in %s, %s, %s", fiber->blocked_in,
				     fiber->last_calls[0], fiber->last_calls[1]);
	liar.reset();
	check_ends();
}

void Schedule::run()
{
	make_machines();
	spawn_all();
	wind_up();
	reach->schedules++;
	reach->turns += w->sched.turns;
	reach->steps_longest = std::max(reach->steps_longest, w->sched.turns);
	reach->faultless += faultless;
	reach->faults_of_schedule[std::min(troubles, 7U)]++;
	w->sched.on_quiet = nullptr;
	w->stop(); /* which the hooks still see */
	w.reset();
}

} // namespace sim
