// SPDX-License-Identifier: GPL-2.0-only
// fail_nth calls NODE_A NODE_B PEER PORT MAPPING [NAME]: each operation on a node, on one of
// a mapping of NODE_A's channel, or over netlink with the 1st, 2nd, 3rd ... allocation or user copy
// in it failing (/proc/PID/fail-nth), until it gets through without one. After each, what it was to
// do is done or is not, and a further try without failures succeeds.
//
// fail_nth workers KIND,... NODE_A NODE_B PEER PORT [STRIDE]: the same for what workers do:
// "connect" and "connect-poll", both ends of a channel that is added and deleted, and
// "fetch", a large message. KIND is followed by ":page" for pages instead of slab objects.
// Once in a boot, since it reckons that nobody made failslab count before.
#include "fail_nth.h"

#include <algorithm>
#include <csignal>
#include <dirent.h>
#include <fcntl.h>
#include <fstream>
#include <map>
#include <poll.h>
#include <sstream>
#include <thread>
#include <unistd.h>

namespace
{

const std::string debugfs = "/sys/kernel/debug/";

void put_file(const std::string &path, const std::string &text)
{
	std::ofstream file(path);
	file << text << std::flush;
	if (!file)
		die("cannot write %s to %s", text.c_str(), path.c_str());
}

std::string get_file(const std::string &path)
{
	std::ifstream file(path);
	std::string text;
	std::getline(file, text);
	return text;
}

// Allocations that may sleep, of any size, count; none of them is a fault of its own.
void configure()
{
	put_file(debugfs + "failslab/ignore-gfp-wait", "N");
	put_file(debugfs + "fail_page_alloc/ignore-gfp-wait", "N");
	put_file(debugfs + "fail_page_alloc/ignore-gfp-highmem", "N");
	put_file(debugfs + "fail_page_alloc/min-order", "0");
	for (const char *what : {"failslab", "fail_page_alloc", "fail_usercopy"})
		if (access((debugfs + what).c_str(), F_OK) == 0) // uml has no user copies that fail
			put_file(debugfs + what + "/verbose", "0");
}

const char *doing = "";
volatile unsigned at;

void hangs(int)
{
	std::printf("not ok - %s with failure %u ends\n", doing, at);
	std::fflush(stdout);
	_exit(1);
}

// --- of this thread ---------------------------------------------------------------------

// Reading and writing it may itself fail, which uses the failure up.
class Nth
{
public:
	Nth() : fd_(open("/proc/thread-self/fail-nth", O_RDWR | O_CLOEXEC))
	{
		if (fd_ < 0)
			die("/proc/thread-self/fail-nth: %s", errno_name(errno));
	}
	void set(unsigned n) const
	{
		std::string text = std::to_string(n);
		while (pwrite(fd_, text.data(), text.size(), 0) < 0)
			;
	}
	// Whether the failure came.
	bool clear() const
	{
		char text[16] = "";
		bool came = pread(fd_, text, sizeof(text) - 1, 0) > 0 && std::atoi(text) == 0;
		set(0);
		return came;
	}

private:
	int fd_;
};

bool sweep(const Operation &op, const Nth &nth)
{
	std::map<int, unsigned> errs;
	std::string wrong;
	doing = op.name.c_str();
	for (unsigned n = 1; wrong.empty(); n++) {
		at = n;
		alarm(120);
		op.prepare();
		nth.set(n);
		int err = op.run();
		bool came = nth.clear();
		wrong = op.after(err);
		errs[err]++;
		if (err && err != ENOMEM && err != EFAULT &&
		    std::find(op.errnos.begin(), op.errnos.end(), err) == op.errnos.end())
			wrong = std::string("gives ") + (err < 0 ? "no answer" : errno_name(err));
		if (!came && err && wrong.empty())
			wrong = std::string("gives ") + errno_name(err) + " though nothing failed";
		if (!wrong.empty()) {
			wrong = "with failure " + std::to_string(n) + ": " + wrong;
			break;
		}
		if (!came)
			break;
		op.prepare();
		err = op.run();
		wrong = op.after(err);
		if (err || !wrong.empty())
			wrong = "after failure " + std::to_string(n) + ": " + errno_name(err) +
				" " + wrong;
	}
	alarm(0);
	std::printf("%s - %s\n#  ", wrong.empty() ? "ok" : "not ok", op.name.c_str());
	if (!wrong.empty())
		std::printf(" %s;", wrong.c_str());
	for (auto [err, count] : errs)
		std::printf(" %s %u",
			    err < 0 ? "no answer"
			    : err   ? errno_name(err)
				    : "done",
			    count);
	std::printf("\n");
	std::fflush(stdout);
	return wrong.empty();
}

int calls(const Target &target, const char *only)
{
	bool good = true;
	Nth nth;
	for (const auto &list :
	     {file_operations(target), map_operations(target), netlink_operations(target)})
		for (const Operation &op : list)
			if (!only || op.name == only)
				good &= sweep(op, nth);
	return !good;
}

// --- of workers -----------------------------------------------------------------------------

// Fails the nth allocation that any worker makes from now on. The kernel counts those
// that it asks about: after a failure the count is known, since none is counted any
// more, and the next interval can be chosen to end where the next failure shall be.
class Counter
{
public:
	explicit Counter(const std::string &kind) : dir_(debugfs + kind + "/")
	{
		put_file(dir_ + "probability", "0");
		put_file(dir_ + "task-filter", "Y");
		put_file(dir_ + "space", "0");
	}
	~Counter()
	{
		put_file(dir_ + "probability", "0");
		put_file(dir_ + "interval", "1");
		mark(false);
	}
	Counter(const Counter &) = delete;
	Counter &operator=(const Counter &) = delete;

	void arm(unsigned n)
	{
		mark(true);
		interval_ = count_ + n;
		put_file(dir_ + "interval", std::to_string(interval_));
		put_file(dir_ + "times", "1");
		put_file(dir_ + "probability", "100");
	}
	// Whether it came. If not, it may still come, and arm() may not be called.
	bool disarm()
	{
		put_file(dir_ + "probability", "0");
		if (std::atoi(get_file(dir_ + "times").c_str()))
			return false;
		if (interval_ > 1) // below, nothing is counted
			count_ = interval_;
		return true;
	}
	void again() { put_file(dir_ + "probability", "100"); }

private:
	static void mark(bool on)
	{
		DIR *dir = opendir("/proc");
		while (dirent *entry = dir ? readdir(dir) : nullptr) {
			std::string base = std::string("/proc/") + entry->d_name;
			if (std::atoi(entry->d_name) <= 0 ||
			    get_file(base + "/comm").rfind("kworker", 0) != 0)
				continue;
			std::ofstream(base + "/make-it-fail") << (on ? "1" : "0");
		}
		if (dir)
			closedir(dir);
	}

	std::string dir_;
	unsigned long count_ = 0, interval_ = 0;
};

constexpr const char *channel = "nth";

// Adds a channel; its state when that is decided, -1: it went away.
int connect(const Target &target, bool poll_queue)
{
	GenlSocket().ask(channel_request(target, channel, poll_queue));
	int state;
	while ((state = channel_state(channel)) >= 0 && state < KDIRECT_STATE_LIVE)
		usleep(2000);
	return state;
}

// No channel but the two that were there: the target's end goes by itself.
bool settled()
{
	return GenlSocket().ask(named(KDIRECT_CMD_CHANNEL_GET, nullptr, NLM_F_DUMP)).objects <= 2;
}

std::string try_connect(const Target &target, bool poll_queue, Counter *counter, bool &live)
{
	int state = connect(target, poll_queue);
	live = state == KDIRECT_STATE_LIVE;
	if (counter)
		counter->disarm();
	if (state >= 0)
		channel_remove(channel);
	for (int i = 0; !settled(); i++, usleep(10000))
		if (i > 6000)
			return "one end stays";
	return "";
}

// A large message: read by the peer's worker, into memory that it allocates.
std::string try_fetch(int a, int b, Counter *counter, bool &live)
{
	static Bytes out(300000), in(300000);
	static uint64_t number;
	fill(out.data(), out.size(), ++number);
	ssize_t sent = 0;
	std::thread writer([&] { sent = write(a, out.data(), out.size()); });
	pollfd ready{b, POLLIN, 0};
	poll(&ready, 1, 60000);
	if (counter)
		counter->disarm();
	ssize_t n = read(b, in.data(), in.size());
	writer.join();
	live = n == ssize_t(out.size()) && sent == n;
	if (!live)
		return "sent " + std::to_string(sent) + ", read " + std::to_string(n);
	return in == out ? "" : "the content differs";
}

bool sweep_worker(const std::string &kind, Counter &counter, const Target &target, unsigned stride)
{
	std::string what = kind.substr(0, kind.find(':'));
	static const int a = open(target.node_a, O_RDWR | O_CLOEXEC);
	static const int b = open(target.node_b, O_RDWR | O_CLOEXEC | O_NONBLOCK);
	auto once = [&](Counter *with, bool &live) {
		if (what == "fetch")
			return try_fetch(a, b, with, live);
		return try_connect(target, what == "connect-poll", with, live);
	};

	unsigned failed = 0, handled = 0;
	std::string wrong;
	doing = kind.c_str();
	if (what == "fetch") // it has but a few
		stride = 1;
	for (unsigned n = 1; wrong.empty(); n += stride) {
		bool live;
		at = n;
		alarm(240);
		counter.arm(n);
		wrong = once(&counter, live);
		bool came = counter.disarm();
		if (!came && !live && wrong.empty())
			wrong = "did not work though nothing failed";
		if (came)
			(live ? handled : failed)++;
		if (came && !live && wrong.empty()) {
			wrong = once(nullptr, live);
			if (!live && wrong.empty())
				wrong = "does not work any more";
		}
		if (!wrong.empty())
			wrong = "failure " + std::to_string(n) + ": " + wrong;
		if (!came) {
			// what is left of the interval, so that the count is known again
			while (!counter.disarm() && wrong.empty()) {
				counter.again();
				once(nullptr, live);
			}
			break;
		}
	}
	alarm(0);
	if (!failed && !handled && wrong.empty())
		wrong = "no allocation failed: what was tested?";
	std::printf("%s - %s\n#  %s %u failures: refused %u, done all the same %u\n",
		    wrong.empty() ? "ok" : "not ok", kind.c_str(), wrong.c_str(), failed + handled,
		    failed, handled);
	std::fflush(stdout);
	return wrong.empty();
}

int workers(const std::string &kinds, const Target &target, unsigned stride)
{
	Counter slab("failslab"), page("fail_page_alloc");
	std::istringstream list(kinds);
	bool good = true;
	for (std::string kind; std::getline(list, kind, ',');)
		good &= sweep_worker(kind, kind.find(":page") == std::string::npos ? slab : page,
				     target, stride);
	return !good;
}

} // namespace

int main(int argc, char **argv)
{
	bool worker = argc > 1 && !std::strcmp(argv[1], "workers");
	int first = worker ? 3 : 2;
	if (argc < first + 4 + !worker || (!worker && std::strcmp(argv[1], "calls") != 0))
		die("usage: fail_nth calls NODE_A NODE_B PEER PORT MAPPING [NAME]\n"
		    "       fail_nth workers KIND[:page],... NODE_A NODE_B PEER PORT [STRIDE]");
	Target target{argv[first], argv[first + 1], argv[first + 2],
		      uint16_t(std::atoi(argv[first + 3])), worker ? nullptr : argv[first + 4]};
	int next = first + 4 + !worker;
	const char *more = argc > next ? argv[next] : nullptr;
	signal(SIGALRM, hangs);
	signal(SIGPIPE, SIG_IGN);
	configure();
	return worker ? workers(argv[2], target, more ? unsigned(std::atoi(more)) : 1)
		      : calls(target, more);
}
