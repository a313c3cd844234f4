/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Virtual time and whose turn it is. Every fiber counts as a CPU of its own:
 * another may run at any call of os.h, also while this one holds a spin lock.
 * Events run off any fiber and never call the core.
 */
#pragma once
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "fiber.h"
#include "rng.h"

namespace sim
{

constexpr uint64_t us = 1000;
constexpr uint64_t ms = 1000 * us;
constexpr uint64_t sec = 1000 * ms;

class Sched
{
public:
	using Timer = std::pair<uint64_t, uint64_t>; /* when, number */

	explicit Sched(uint64_t seed);
	~Sched();

	Rng rng;
	unsigned int preempt_percent; /* chance of a switch at each call of os.h */
	unsigned int stall_percent;   /* that it is away for a while */
	unsigned int hurry_percent;   /* chance that time goes on while somebody could run */

	unsigned int doze_percent = 0; /* chance that a call that may sleep does, for long */
	/* At each turn; and when nobody runs, and nothing is due for a while. */
	std::function<void()> on_turn, on_quiet;
	uint64_t turns = 0;

	uint64_t now() const { return time; }
	/* The clock goes on by itself, as after a suspend: timers are late. */
	void jump(uint64_t delta) { time += delta; }
	Fiber *current() const { return running; }

	Fiber *spawn(std::string name, Context context, Node *node, std::function<void()> body);
	Timer at(uint64_t when, std::function<void()> fn);
	Timer after(uint64_t delay, std::function<void()> fn)
	{
		return at(time + delay, std::move(fn));
	}
	void cancel(const Timer &timer);

	/* One turn of one fiber, or one event. False: nobody can run and nothing is due. */
	bool step();
	/* Any runnable fiber, or any event up to @until? */
	bool busy(uint64_t until) const;

	/* Of the running fiber. */
	void block(const char *why);
	void yield();
	void sleep(uint64_t delay);
	void preempt();
	void doze();
	/* The same at an access to memory (watch.h). */
	void preempt_at_access(unsigned int permille);
	/* A sleep in the middle of something that others may depend on. */
	void stall(uint64_t delay);

	void wake(Fiber *fiber);
	/* By number: false if it is gone. */
	bool alive(uint64_t id) const { return find(id); }
	Fiber *find(uint64_t id) const;
	/* Lets a fiber that waits test its condition, while nobody else runs. */
	void probe(Fiber *fiber);
	const std::vector<std::unique_ptr<Fiber>> &all() const { return fibers; }

private:
	void run(Fiber *fiber);

	uint64_t time = 1 * sec;
	uint64_t next_fiber = 1;
	uint64_t next_event = 1;
	uint64_t turns_without_time = 0;
	unsigned int nr_stalled = 0;
	bool exclusive = false;
	Fiber *running = nullptr;
	std::vector<std::unique_ptr<Fiber>> fibers;
	std::vector<Fiber *> runnable;
	std::map<Timer, std::function<void()>> events;
};

} // namespace sim
