// SPDX-License-Identifier: GPL-2.0-only
// What the hostile programs share: options, who they run as, threads whose calls
// follow from a seed, a watch that no call outlives, and the list of what was wrong.
#pragma once

#include "common.h"

#include <atomic>
#include <bitset>
#include <functional>
#include <initializer_list>
#include <string>
#include <sys/types.h>

struct Options {
	uint64_t seed = 1, count = 1000;
	unsigned threads = 4;
	int only = -1;          // just this thread
	unsigned seconds = 0;   // ends earlier
	unsigned patience = 30; // seconds that one call may take
	bool nobody = false;
	bool ending = false; // others end the channel meanwhile
	bool trace = false;
	std::vector<const char *> rest;
};

Options parse_options(int argc, char **argv, const char *usage);

// An ordinary user, who stays a member of `group`.
void become_nobody(gid_t group);

uint64_t now_ms();

// A set of errnos that a call may give.
class Allowed
{
public:
	Allowed(std::initializer_list<int> list) { add(list); }
	Allowed &add(std::initializer_list<int> list)
	{
		for (int err : list)
			set_.set(size_t(err));
		return *this;
	}
	Allowed &add_if(bool condition, std::initializer_list<int> list)
	{
		return condition ? add(list) : *this;
	}
	void all() { set_.set(); }
	bool has(int err) const
	{
		return err >= 0 && size_t(err) < set_.size() && set_[size_t(err)];
	}
	std::string text() const;

private:
	std::bitset<134> set_;
};

// One thread of a program, and what it is doing.
class Actor
{
public:
	Actor(const Options &options, unsigned number);

	// The next call; its text is for whoever looks at a hang or a mistake.
	[[gnu::format(printf, 2, 3)]] void begin(const char *format, ...);
	void end() { since_ms.store(0); }
	// Counts what a call gave: `result` below 0 is an errno.
	void tell(const char *kind, ssize_t result);
	[[gnu::format(printf, 2, 3)]] void wrong(const char *format, ...);
	// The usual end of a call.
	void expect(const char *kind, ssize_t result, const Allowed &allowed);

	bool one_in(unsigned n) { return random.next() % n == 0; }
	uint64_t below(uint64_t n) { return random.next() % n; }
	uint64_t next_bits(unsigned n) { return random.next() & ((1ULL << n) - 1); }
	template <class T, size_t n>
	T one_of(const T (&list)[n])
	{
		return list[below(n)];
	}

	const Options &options;
	const unsigned number;
	Random random;
	uint64_t index = 0;
	pid_t tid = 0;
	std::atomic<uint64_t> since_ms{0};
	char text[200] = "";
};

// Runs `act` for each call of each thread; `stuck` whenever one takes long. Returns
// the status of the program, and ends it where a call does not end.
int run(const Options &options, const std::function<std::function<void(Actor &)>(Actor &)> &make,
	const std::function<void()> &stuck);

// Whether an outcome was ever seen; "" is success.
bool seen(const char *kind, const char *outcome = "");
void print_outcomes();
unsigned mistakes();
