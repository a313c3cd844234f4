// SPDX-License-Identifier: GPL-2.0-only
/*
 * storm [--first N] [--count N] [--jobs N] [--failures N] [--reach FILE] [--require]
 *	[--seeds FILE]
 *	runs so many schedules, each of its own seed, in so many processes
 * storm --seed N [--steps N] [--trace]
 *	runs one again
 * storm --twice [--first N] [--count N]
 *	each schedule two times, which must be the same
 */
#include <fcntl.h>
#include <malloc.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cinttypes>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <fstream>

#include "storm.h"

using namespace sim;

namespace
{

constexpr unsigned int max_jobs = 16;
constexpr itimerval time_of_one{{}, {60, 0}}; /* of a processor: more is a loop */

struct Worker {
	pid_t pid;
	uint64_t next; /* what it runs, or runs next: an index */
	uint64_t done; /* how many */
	bool broken;   /* the one it ran has failed */
	Reach reach;
};

struct Shared {
	Worker workers[max_jobs];
};

struct Arguments {
	uint64_t first = 1, count = 1000, steps = UINT64_MAX;
	uint64_t failures = 10; /* so many, and it stops */
	unsigned int jobs = 1;
	bool one = false, trace = false, require = false, twice = false;
	const char *reach_file = nullptr, *seeds_file = nullptr;
};

bool failed;

uint64_t number(const char *text)
{
	char *end;
	uint64_t value = std::strtoull(text, &end, 0);

	if (!*text || *end) {
		std::fprintf(stderr, "storm: not a number: %s\n", text);
		std::exit(2);
	}
	return value;
}

Arguments parse(int argc, char **argv)
{
	Arguments args;

	for (int i = 1; i < argc; i++) {
		std::string_view key = argv[i];
		auto value = [&] {
			if (i + 1 >= argc) {
				std::fprintf(stderr, "storm: %s needs a value\n", argv[i]);
				std::exit(2);
			}
			return argv[++i];
		};

		if (key == "--first")
			args.first = number(value());
		else if (key == "--count")
			args.count = number(value());
		else if (key == "--failures")
			args.failures = number(value());
		else if (key == "--jobs")
			args.jobs = static_cast<unsigned int>(
				std::min<uint64_t>(max_jobs, number(value())));
		else if (key == "--seed")
			args.first = number(value()), args.one = true;
		else if (key == "--steps")
			args.steps = number(value());
		else if (key == "--trace")
			args.trace = true;
		else if (key == "--require")
			args.require = true;
		else if (key == "--twice")
			args.twice = true;
		else if (key == "--reach")
			args.reach_file = value();
		else if (key == "--seeds")
			args.seeds_file = value();
		else {
			std::fprintf(stderr, "storm: what is %s?\n", argv[i]);
			std::exit(2);
		}
	}
	return args;
}

void *shared_memory(std::size_t size)
{
	void *mem = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	if (mem == MAP_FAILED)
		die("no shared memory");
	return mem;
}

/* A number that is another one if anything was scheduled otherwise. */
uint64_t digest;

void mix(uint64_t value)
{
	digest = (digest ^ value) * 0x100000001b3ULL;
}

void follow(World &w)
{
	w.sched.on_turn = [&w] {
		mix(w.now());
		mix(w.sched.turns);
	};
	w.trace = [&w](const char *, const std::string &text) {
		mix(std::hash<std::string>()(text));
		mix(w.sched.current() ? w.sched.current()->id : 0);
	};
}

void show(World &w, uint64_t steps, bool calls)
{
	w.trace = [&w, calls](const char *what, const std::string &text) {
		Fiber *self = w.sched.current();
		bool call = !std::strcmp(what, "call");

		if (call && !calls)
			return;
		std::printf("%8" PRIu64 " %12.6f %-3s %-12s %s%s%s\n", w.sched.turns,
			    static_cast<double>(w.now()) / 1e6,
			    self && self->node ? self->node->name.c_str() : "-",
			    self ? (self->name + "/" + std::to_string(self->id)).c_str() : "-",
			    call ? "" : what, call ? "" : ": ", text.c_str());
	};
	set_witness(
		[](const std::string &text) { std::printf("WRONG, here: %s\n", text.c_str()); });
	w.sched.on_turn = [&w, steps] {
		if (w.sched.turns <= steps)
			return;
		std::printf("stopped after %" PRIu64 " steps, at %.6f ms; what there is:\n", steps,
			    static_cast<double>(w.now()) / 1e6);
		for (const auto &fiber : w.sched.all())
			std::printf("  %s/%" PRIu64 ": %s %s, %s, %s, %s\n", fiber->name.c_str(),
				    fiber->id,
				    fiber->state == Fiber::State::Blocked ? "blocked in" : "runs",
				    fiber->blocked_in, fiber->last_calls[0], fiber->last_calls[1],
				    fiber->last_calls[2]);
		for (const auto &node : w.nodes)
			for (const auto &[name, state] : node->last_state)
				std::printf("  machine %s: channel %s in state %u\n",
					    node->name.c_str(), name.c_str(), state);
		for (const std::string &text : take_failures())
			std::printf("  wrong: %s\n", text.c_str());
		std::fflush(stdout);
		std::_Exit(0);
	};
}

void run_one(uint64_t seed)
{
	Schedule schedule(seed);

	schedule.run();
}

/* In a process of its own: every jobs-th, from where the last one stopped. */
[[noreturn]] void work(Worker &self, const std::vector<uint64_t> *seeds, const Arguments &args)
{
	uint64_t end = seeds ? seeds->size() : args.count;

	reach = &self.reach;
	set_reporter([](const std::string &text) {
		std::fprintf(stderr, "%s\n", text.c_str());
		failed = true;
	});
	for (; self.next < end; self.next += args.jobs) {
		uint64_t seed = seeds ? (*seeds)[self.next] : args.first + self.next;

		setitimer(ITIMER_PROF, &time_of_one, nullptr);
		run_one(seed);
		self.done++;
		/* what is left of it may disturb the next: a fresh process goes on */
		if (failed) {
			self.broken = true;
			self.next += args.jobs;
			std::_Exit(1);
		}
	}
	std::_Exit(0);
}

std::vector<uint64_t> read_seeds(const char *path)
{
	std::vector<uint64_t> seeds;
	std::ifstream file(path);

	if (!file) {
		std::fprintf(stderr, "storm: %s: %s\n", path, std::strerror(errno));
		std::exit(2);
	}
	for (std::string line; std::getline(file, line);)
		if (!line.empty() && line[0] != '#')
			seeds.push_back(number(line.substr(0, line.find_first_of(" \t")).c_str()));
	return seeds;
}

void start(Shared &shared, unsigned int i, const std::vector<uint64_t> *seeds,
	   const Arguments &args)
{
	std::fflush(nullptr);
	pid_t pid = fork();
	if (pid)
		shared.workers[i].pid = pid;
	else
		work(shared.workers[i], seeds, args);
}

int run_many(const char *program, const Arguments &args, const std::vector<uint64_t> *seeds)
{
	auto &shared = *static_cast<Shared *>(shared_memory(sizeof(Shared)));
	uint64_t bad = 0, done = 0;
	timespec begin{}, over{};

	clock_gettime(CLOCK_MONOTONIC, &begin);
	for (unsigned int i = 0; i < args.jobs; i++) {
		shared.workers[i].next = i;
		start(shared, i, seeds, args);
	}
	for (unsigned int left = args.jobs; left;) {
		int status;
		pid_t pid = wait(&status);

		for (unsigned int i = 0; i < args.jobs; i++) {
			Worker &w = shared.workers[i];

			if (w.pid != pid)
				continue;
			left--;
			if (WIFEXITED(status) && !WEXITSTATUS(status))
				break;
			uint64_t index = w.next - (w.broken ? args.jobs : 0);
			uint64_t seed = seeds ? (*seeds)[index] : args.first + index;
			const char *how =
				WIFSIGNALED(status) ? strsignal(WTERMSIG(status)) : "failed";
			bad++;
			std::printf("not ok - storm, seed %" PRIu64
				    ": %s; again: make sim SEED=%" PRIu64 ", or %s --seed %" PRIu64
				    " --trace\n",
				    seed, how, seed, program, seed);
			if (!w.broken) {
				w.next += args.jobs;
				w.done++;
			}
			w.broken = false;
			if (bad < args.failures) {
				start(shared, i, seeds, args);
				left++;
			}
		}
	}
	clock_gettime(CLOCK_MONOTONIC, &over);
	static Reach sum;
	for (unsigned int i = 0; i < args.jobs; i++) {
		add(sum, shared.workers[i].reach);
		done += shared.workers[i].done;
	}
	double time = static_cast<double>(over.tv_sec - begin.tv_sec) +
		      static_cast<double>(over.tv_nsec - begin.tv_nsec) / 1e9;
	std::printf("%s - storm, %s: %" PRIu64 " schedules, %" PRIu64
		    " failed, %.1f s, %.0f a second\n",
		    bad ? "not ok" : "ok",
		    seeds ? "seeds that found something"
			  : ("from seed " + std::to_string(args.first)).c_str(),
		    done, bad, time, static_cast<double>(done) / time);
	if (args.reach_file) {
		std::FILE *file = std::strcmp(args.reach_file, "-")
					  ? std::fopen(args.reach_file, "w")
					  : stdout;

		if (file)
			print(sum, file);
		if (file && file != stdout)
			std::fclose(file);
	}
	if (!args.require)
		return bad != 0;
	std::vector<std::string> never = missing(sum);
	for (const std::string &what : never)
		std::printf("# never: %s\n", what.c_str());
	std::printf("%s - storm, every fault, event and transition was there\n",
		    never.empty() ? "ok" : "not ok");
	return bad || !never.empty();
}

int run_twice(const Arguments &args)
{
	uint64_t differ = 0;

	for (uint64_t seed = args.first; seed < args.first + args.count; seed++) {
		uint64_t digests[2];

		for (uint64_t &one : digests) {
			Schedule schedule(seed);

			digest = 0xcbf29ce484222325ULL;
			follow(schedule.world());
			schedule.run();
			one = digest;
		}
		if (digests[0] != digests[1]) {
			std::printf("# seed %" PRIu64 " is not the same twice\n", seed);
			differ++;
		}
	}
	std::printf("%s - storm, %" PRIu64 " schedules are the same twice\n",
		    differ ? "not ok" : "ok", args.count);
	return differ != 0;
}

} // namespace

int main(int argc, char **argv)
{
	Arguments args = parse(argc, argv);
	std::setvbuf(stdout, nullptr, _IOLBF, 0);
	static Reach own;

	/* Large memory comes from the kernel, zeroed where it is used; what is freed stays. */
	mallopt(M_MMAP_THRESHOLD, 256 << 10);
	mallopt(M_TRIM_THRESHOLD, 256 << 20);
	reach = &own;
	if (!args.one && !args.twice) {
		std::vector<uint64_t> seeds;

		if (args.seeds_file)
			seeds = read_seeds(args.seeds_file);
		return run_many(argv[0], args, args.seeds_file ? &seeds : nullptr);
	}
	set_reporter([](const std::string &text) {
		std::printf("WRONG: %s\n", text.c_str());
		failed = true;
	});
	if (args.twice)
		return run_twice(args) || failed;
	{
		Schedule schedule(args.first);

		show(schedule.world(), args.steps, args.trace);
		schedule.run();
	}
	std::printf("%s - storm, seed %" PRIu64 ", %" PRIu64 " steps\n", failed ? "not ok" : "ok",
		    args.first, own.turns);
	return failed;
}
