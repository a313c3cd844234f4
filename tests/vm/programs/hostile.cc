// SPDX-License-Identifier: GPL-2.0-only
#include "hostile.h"

#include <algorithm>
#include <csignal>
#include <ctime>
#include <dirent.h>
#include <fstream>
#include <getopt.h>
#include <grp.h>
#include <map>
#include <memory>
#include <mutex>
#include <sstream>
#include <sys/syscall.h>
#include <thread>
#include <ucontext.h>
#include <unistd.h>

namespace
{

// When a call is interrupted for the first time, and when the watch helps.
constexpr uint64_t interrupt_ms = 20, stuck_ms = 60;

std::mutex lock;
std::map<std::string, std::map<std::string, uint64_t>> outcomes;
std::atomic<unsigned> wrongs;
std::atomic<bool> over; // SIGTERM came

void print_stacks()
{
	DIR *dir = opendir("/proc/self/task");
	while (dirent *entry = dir ? readdir(dir) : nullptr) {
		if (entry->d_name[0] == '.')
			continue;
		std::string path = std::string("/proc/self/task/") + entry->d_name + "/stack";
		std::ifstream file(path);
		std::stringstream text;
		text << file.rdbuf();
		std::printf("# task %s\n%s", entry->d_name, text.str().c_str());
	}
	if (dir)
		closedir(dir);
}

} // namespace

Options parse_options(int argc, char **argv, const char *usage)
{
	static const option longs[] = {
		{"seed", 1, nullptr, 's'},     {"count", 1, nullptr, 'n'},
		{"threads", 1, nullptr, 't'},  {"only", 1, nullptr, 'o'},
		{"user", 1, nullptr, 'u'},     {"seconds", 1, nullptr, 'S'},
		{"ending", 0, nullptr, 'e'},   {"trace", 0, nullptr, 'v'},
		{"patience", 1, nullptr, 'p'}, {nullptr, 0, nullptr, 0},
	};
	Options o;
	for (int c; (c = getopt_long(argc, argv, "", longs, nullptr)) != -1;) {
		uint64_t value = optarg ? std::strtoull(optarg, nullptr, 0) : 0;
		switch (c) {
		case 's': o.seed = value; break;
		case 'n': o.count = value; break;
		case 't': o.threads = unsigned(value); break;
		case 'o': o.only = int(value); break;
		case 'S': o.seconds = unsigned(value); break;
		case 'p': o.patience = unsigned(value); break;
		case 'e': o.ending = true; break;
		case 'v': o.trace = true; break;
		case 'u': o.nobody = !std::strcmp(optarg, "nobody"); break;
		default: die("%s", usage);
		}
	}
	for (; optind < argc; optind++)
		o.rest.push_back(argv[optind]);
	return o;
}

void become_nobody(gid_t group)
{
	if (setgroups(1, &group) || setresgid(65534, 65534, 65534) ||
	    setresuid(65534, 65534, 65534))
		die("cannot become nobody: %s", errno_name(errno));
}

uint64_t now_ms()
{
	timespec now;
	clock_gettime(CLOCK_MONOTONIC, &now);
	return uint64_t(now.tv_sec) * 1000 + uint64_t(now.tv_nsec) / 1000000;
}

std::string Allowed::text() const
{
	std::string list;
	for (size_t err = 1; err < set_.size(); err++)
		if (set_[err])
			list += std::string(list.empty() ? "" : " ") + errno_name(int(err));
	return list;
}

Actor::Actor(const Options &o, unsigned n)
	// the generator adds to its state: seeds that are near each other would be one sequence
	: options(o), number(n), random(Random(o.seed).next() ^ Random(~uint64_t(n)).next())
{
}

void Actor::begin(const char *format, ...)
{
	va_list args;
	va_start(args, format);
	std::vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	if (options.trace) {
		std::printf("# %u.%llu %s\n", number, static_cast<unsigned long long>(index), text);
		std::fflush(stdout);
	}
	since_ms.store(now_ms());
}

void Actor::tell(const char *kind, ssize_t result)
{
	std::lock_guard guard(lock);
	outcomes[kind][result < 0 ? errno_name(int(-result)) : ""]++;
}

void Actor::wrong(const char *format, ...)
{
	char what[300];
	va_list args;
	va_start(args, format);
	std::vsnprintf(what, sizeof(what), format, args);
	va_end(args);
	// The whole list would hide the first, which is the one to look at.
	if (wrongs.fetch_add(1) >= 20)
		return;
	std::lock_guard guard(lock);
	std::printf("wrong: --seed %llu --only %u, call %llu: %s: %s\n",
		    static_cast<unsigned long long>(options.seed), number,
		    static_cast<unsigned long long>(index), text, what);
	std::fflush(stdout);
}

void Actor::expect(const char *kind, ssize_t result, const Allowed &allowed)
{
	end();
	tell(kind, result);
	if (result < 0 && !allowed.has(int(-result)))
		wrong("%s gave %s, allowed are: %s", kind, errno_name(int(-result)),
		      allowed.text().c_str());
}

namespace
{

thread_local Actor *here;

// Something wrote over this program's own memory: what this thread did last, and its stack.
void crashed(int, siginfo_t *info, void *context)
{
	const greg_t *regs = static_cast<ucontext_t *>(context)->uc_mcontext.gregs;
	auto *stack = reinterpret_cast<const uint64_t *>(regs[REG_RSP]);
	char text[400];
	int length = std::snprintf(text, sizeof(text),
				   "wrong: SIGSEGV at %p, ip %#llx, only %d, call %llu: %s\n",
				   info->si_addr, regs[REG_RIP], here ? int(here->number) : -1,
				   here ? static_cast<unsigned long long>(here->index) : 0,
				   here ? here->text : "no actor's");
	(void)!write(STDOUT_FILENO, text, size_t(std::min<int>(length, sizeof(text) - 1)));
	for (int i = -32; i < 96; i += 4) {
		length = std::snprintf(text, sizeof(text), "# %+5d: %016lx %016lx %016lx %016lx\n",
				       i * 8, stack[i], stack[i + 1], stack[i + 2], stack[i + 3]);
		(void)!write(STDOUT_FILENO, text, size_t(length));
	}
}

// A stack of its own, since the thread's may be what was written over.
void watch_crashes()
{
	thread_local char space[16384];
	stack_t stack{};
	stack.ss_sp = space;
	stack.ss_size = sizeof(space);
	sigaltstack(&stack, nullptr);
}

} // namespace

int run(const Options &options, const std::function<std::function<void(Actor &)>(Actor &)> &make,
	const std::function<void()> &stuck)
{
	struct sigaction crash {
	};
	crash.sa_sigaction = crashed;
	crash.sa_flags = SA_SIGINFO | SA_ONSTACK | static_cast<int>(SA_RESETHAND);
	sigaction(SIGSEGV, &crash, nullptr);
	struct sigaction action {
	};
	action.sa_handler = [](int) {}; // without SA_RESTART: calls end with EINTR
	sigaction(SIGALRM, &action, nullptr);
	sigaction(SIGIO, &action, nullptr);
	action.sa_handler = [](int) { over = true; };
	sigaction(SIGTERM, &action, nullptr);
	signal(SIGPIPE, SIG_IGN);

	uint64_t begun = now_ms();
	std::vector<std::unique_ptr<Actor>> actors;
	std::vector<std::thread> threads;
	std::atomic<unsigned> at_work{0};
	for (unsigned i = 0; i < options.threads; i++) {
		actors.push_back(std::make_unique<Actor>(options, i));
		if (options.only >= 0 && unsigned(options.only) != i)
			continue;
		at_work++;
		threads.emplace_back([&, actor = actors.back().get()] {
			actor->tid = pid_t(syscall(SYS_gettid));
			here = actor;
			watch_crashes();
			{
				auto act = make(*actor);
				for (; actor->index < options.count; actor->index++) {
					if (over || (options.seconds &&
						     now_ms() - begun >= options.seconds * 1000))
						break;
					act(*actor);
				}
				actor->begin("giving everything back");
			}
			actor->end();
			at_work--;
		});
	}

	while (at_work) {
		usleep(5000);
		bool any = false;
		for (const auto &actor : actors) {
			uint64_t since = actor->since_ms;
			uint64_t now = now_ms();
			if (!since || now < since + interrupt_ms)
				continue;
			if (now > since + options.patience * 1000) {
				std::printf(
					"not ok - a call ends\n# --seed %llu --only %u, call %llu: "
					"%s: still runs\n",
					static_cast<unsigned long long>(options.seed),
					actor->number,
					static_cast<unsigned long long>(actor->index), actor->text);
				print_stacks();
				std::fflush(stdout);
				_exit(1);
			}
			syscall(SYS_tgkill, getpid(), actor->tid, SIGALRM);
			any |= now >= since + stuck_ms;
		}
		if (any)
			stuck();
	}
	for (std::thread &thread : threads)
		thread.join();
	return mistakes() ? 1 : 0;
}

bool seen(const char *kind, const char *outcome)
{
	std::lock_guard guard(lock);
	return outcomes[kind][outcome] != 0;
}

void print_outcomes()
{
	std::lock_guard guard(lock);
	for (const auto &[kind, counts] : outcomes) {
		std::printf("# %s:", kind.c_str());
		for (const auto &[outcome, count] : counts)
			if (count)
				std::printf(" %s %llu", outcome.empty() ? "done" : outcome.c_str(),
					    static_cast<unsigned long long>(count));
		std::printf("\n");
	}
}

unsigned mistakes()
{
	return wrongs;
}
