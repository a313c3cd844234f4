// SPDX-License-Identifier: GPL-2.0-only
#include "sched.h"

#include <algorithm>

#include "report.h"
#include "watch.h"

namespace sim
{

namespace
{

/* No virtual time passes while somebody can run: so many turns are a loop. */
constexpr uint64_t max_turns = 5'000'000;

/* How long a CPU may be away, as a virtual machine's is. */
constexpr uint64_t max_stall = 300 * us;

/* How long nothing happens when all is quiet. */
constexpr uint64_t quiet_gap = 200 * us;

/* How long a call that may sleep can take: memory is reclaimed, a lock is waited for. */
constexpr uint64_t max_doze = 3 * ms;

/* How much time may go by while somebody could run: a slow CPU, not a dead one. */
constexpr uint64_t max_hurry = 100 * us;

} // namespace

Sched::Sched(uint64_t seed) : rng(seed)
{
	static constexpr unsigned int preempt[] = {0, 2, 10, 40};
	static constexpr unsigned int hurry[] = {0, 1, 10};
	static constexpr unsigned int stall[] = {0, 0, 1, 10};

	preempt_percent = preempt[rng.below(std::size(preempt))];
	hurry_percent = hurry[rng.below(std::size(hurry))];
	stall_percent = stall[rng.below(std::size(stall))];
}

Sched::~Sched() = default;

Fiber *Sched::spawn(std::string name, Context context, Node *node, std::function<void()> body)
{
	auto fiber = std::make_unique<Fiber>();
	Fiber *ptr = fiber.get();

	ptr->id = next_fiber++;
	ptr->name = std::move(name);
	ptr->context = context;
	ptr->node = node;
	ptr->body = std::move(body);
	watch::begin(ptr);
	runnable.push_back(ptr);
	fibers.push_back(std::move(fiber));
	return ptr;
}

Sched::Timer Sched::at(uint64_t when, std::function<void()> fn)
{
	Timer timer{std::max(when, time), next_event++};

	events.emplace(timer, std::move(fn));
	return timer;
}

void Sched::cancel(const Timer &timer)
{
	events.erase(timer);
}

bool Sched::busy(uint64_t until) const
{
	return !runnable.empty() || (!events.empty() && events.begin()->first.first <= until);
}

bool Sched::step()
{
	bool due = !events.empty() && events.begin()->first.first <= time;
	bool take_event;

	if (runnable.empty() && events.empty())
		return false;
	if (runnable.empty())
		take_event = true;
	else if (due)
		take_event = rng.chance(50);
	else
		take_event = !events.empty() && events.begin()->first.first <= time + max_hurry &&
			     rng.chance(hurry_percent);

	turns++;
	if (on_turn)
		on_turn();
	if (take_event && on_quiet && runnable.empty() && !nr_stalled &&
	    events.begin()->first.first > time + quiet_gap) {
		on_quiet();
		if (!runnable.empty())
			return true;
	}
	if (take_event) {
		auto first = events.begin();
		std::function<void()> fn = std::move(first->second);

		if (first->first.first > time) {
			time = first->first.first;
			turns_without_time = 0;
		}
		events.erase(first);
		fn();
		return true;
	}
	if (++turns_without_time > max_turns)
		die("livelock: %zu fibers run and no time passes, the first is %s, last in %s, %s, "
		    "%s, %s",
		    runnable.size(), runnable.front()->name.c_str(),
		    runnable.front()->last_calls[0], runnable.front()->last_calls[1],
		    runnable.front()->last_calls[2], runnable.front()->last_calls[3]);
	std::size_t pick = rng.below(runnable.size());
	Fiber *fiber = runnable[pick];

	runnable.erase(runnable.begin() + static_cast<std::ptrdiff_t>(pick));
	run(fiber);
	return true;
}

void Sched::run(Fiber *fiber)
{
	running = fiber;
	watch::run(fiber);
	fiber->resume();
	watch::run(nullptr);
	running = nullptr;
	if (fiber->state != Fiber::State::Done)
		return;
	watch::run(fiber);
	watch::release(reinterpret_cast<const void *>(fiber->id));
	watch::run(nullptr);
	watch::end(fiber);
	if (!fiber->held.empty())
		fail("%s ended with a lock of class %u held", fiber->name.c_str(),
		     fiber->held.back().cls);
	std::erase_if(fibers, [&](const auto &entry) { return entry.get() == fiber; });
}

void Sched::block(const char *why)
{
	Fiber *self = running;

	if (!self)
		die("%s blocks outside of a fiber", why);
	self->state = Fiber::State::Blocked;
	self->blocked_in = why;
	self->suspend();
	self->blocked_in = "";
}

void Sched::yield()
{
	runnable.push_back(running);
	running->suspend();
}

void Sched::sleep(uint64_t delay)
{
	Fiber *self = running;
	uint64_t end = time + delay;
	Timer timer = after(delay, [this, self] { wake(self); });

	while (time < end)
		block("sleep");
	cancel(timer);
}

void Sched::preempt()
{
	if (!running || exclusive || !rng.chance(preempt_percent))
		return;
	if (rng.chance(stall_percent))
		stall(rng.range(1, max_stall));
	else
		yield();
}

void Sched::preempt_at_access(unsigned int permille)
{
	if (!running || exclusive || rng.below(1000) >= permille)
		return;
	if (rng.chance(20))
		stall(rng.range(1, 20 * us));
	else
		yield();
}

void Sched::doze()
{
	if (running && !exclusive && rng.chance(doze_percent))
		stall(rng.range(1 * us, max_doze));
}

void Sched::stall(uint64_t delay)
{
	nr_stalled++;
	sleep(delay);
	nr_stalled--;
}

void Sched::probe(Fiber *fiber)
{
	exclusive = true;
	fiber->probing = true;
	fiber->state = Fiber::State::Runnable;
	run(fiber);
	exclusive = false;
}

void Sched::wake(Fiber *fiber)
{
	if (fiber->state != Fiber::State::Blocked)
		return;
	fiber->state = Fiber::State::Runnable;
	runnable.push_back(fiber);
}

Fiber *Sched::find(uint64_t id) const
{
	for (const auto &fiber : fibers)
		if (fiber->id == id)
			return fiber.get();
	return nullptr;
}

} // namespace sim
