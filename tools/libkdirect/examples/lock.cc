// SPDX-License-Identifier: GPL-2.0-only
//
// Atomic operations: processes share a lock and a counter in a mapping.
//
//	lock MAPPING PROCESSES COUNT
//
// Each of the processes takes the lock COUNT times, and then reads the counter and writes it
// back, greater by one. Nobody is at the peer: it is memory only.
#include <libkdirect.hh>

#include <array>
#include <iostream>
#include <stdexcept>
#include <sys/wait.h>
#include <vector>

namespace
{

constexpr uint64_t lock_at = 0, counter_at = 8;

class Shared
{
public:
	explicit Shared(const std::string &mapping) : mapping_(mapping) {}

	void clear()
	{
		uint64_t zeros[2] = {};
		mapping_.write(std::as_bytes(std::span(zeros)), lock_at);
	}
	// Returns how often somebody else had it.
	uint64_t lock(uint64_t owner)
	{
		uint64_t tries = 0;
		while (cmp_swap(lock_at, 0, owner) != 0)
			tries++;
		return tries;
	}
	void unlock(uint64_t owner)
	{
		if (cmp_swap(lock_at, owner, 0) != owner)
			throw std::runtime_error("somebody else had the lock");
	}
	void count()
	{
		uint64_t value = counter();
		value++;
		mapping_.write(std::as_bytes(std::span(&value, 1)), counter_at);
	}
	uint64_t counter() const
	{
		uint64_t value;
		mapping_.read(std::as_writable_bytes(std::span(&value, 1)), counter_at);
		return value;
	}

private:
	uint64_t cmp_swap(uint64_t at, uint64_t compare, uint64_t swap)
	{
		std::array<kdirect_completion, 1> done;
		batch_.cmp_swap(at, compare, swap);
		batch_.run(mapping_, done);
		if (done[0].result < 0)
			throw std::runtime_error(
				kdirect_explain(KDIRECT_CALL_DESC, done[0].result));
		return done[0].old;
	}

	kdirect::Mapping mapping_;
	kdirect::Batch batch_{1};
};

// A process of its own, with its own open file.
int work(const std::string &name, uint64_t owner, unsigned long count)
{
	try {
		Shared shared(name);
		uint64_t tries = 0;
		for (unsigned long i = 0; i < count; i++) {
			tries += shared.lock(owner);
			shared.count();
			shared.unlock(owner);
		}
		std::cout << "process " << owner << " found the lock taken " << tries << " times\n"
			  << std::flush;
		return 0;
	} catch (const std::exception &e) {
		std::cerr << "lock: " << name << ": " << e.what() << '\n';
		return 1;
	}
}

int all(const std::string &name, unsigned long processes, unsigned long count)
{
	Shared shared(name);
	std::vector<pid_t> children;
	int status = 0;
	shared.clear();
	for (unsigned long i = 0; i < processes; i++) {
		pid_t child = fork();
		if (!child)
			_exit(work(name, i + 1, count));
		if (child < 0)
			throw std::system_error(errno, std::generic_category(), "fork");
		children.push_back(child);
	}
	for (pid_t child : children) {
		int how = -1;
		waitpid(child, &how, 0);
		status |= how;
	}
	std::cout << "counter " << shared.counter() << " of " << processes * count << '\n';
	return status || shared.counter() != processes * count;
}

} // namespace

int main(int argc, char **argv)
{
	unsigned long processes = argc == 4 ? std::strtoul(argv[2], nullptr, 10) : 0;
	unsigned long count = argc == 4 ? std::strtoul(argv[3], nullptr, 10) : 0;
	if (!processes || processes > 64 || !count) {
		std::cerr << "usage: lock MAPPING PROCESSES COUNT\n";
		return 2;
	}
	try {
		return all(argv[1], processes, count);
	} catch (const std::exception &e) {
		std::cerr << "lock: " << argv[1] << ": " << e.what() << '\n';
		return 1;
	}
}
