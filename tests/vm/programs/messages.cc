// SPDX-License-Identifier: GPL-2.0-only
// messages send|receive NODE: messages of random sizes and content through a
// channel. Both ends are given the same seed, so that the receiver knows what
// must come, and in which order.
//
// --count 0 goes on until the channel ends; the end is printed as an errno. A sender with
// --until FILE stops once there is that file.
// With --threads, several writers share the stream; each message then says
// whose it is, and is at least as long as that needs.
#include "common.h"

#include <atomic>
#include <cmath>
#include <fcntl.h>
#include <getopt.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/uio.h>
#include <thread>
#include <unistd.h>

namespace
{

enum class Wait { Block, Poll, Nowait, Epoll };

struct Options {
	bool send = false;
	const char *node = nullptr;
	uint64_t seed = 1, count = 1000, min = 1, max = 1 << 20, chunk = 0;
	unsigned threads = 1;
	Wait wait = Wait::Block;
	bool until_end = false;
	bool readers = false;
	const char *until = nullptr;
};

constexpr const char *usage =
	"usage: messages send|receive NODE [--seed S] [--count N] [--min BYTES] [--max BYTES]\n"
	"                [--poll|--nowait|--epoll] [--threads T] [--chunk BYTES] [--readers]\n"
	"                [--until FILE]\n"
	"--chunk: read each message in pieces of at most that size\n"
	"--readers: receive with as many threads as send";

struct Label { // of a message, where several threads send
	uint32_t thread, index;
};

Options parse(int argc, char **argv)
{
	static const option longs[] = {
		{"seed", 1, nullptr, 's'},  {"count", 1, nullptr, 'n'},
		{"min", 1, nullptr, 'a'},   {"max", 1, nullptr, 'b'},
		{"poll", 0, nullptr, 'p'},  {"nowait", 0, nullptr, 'w'},
		{"epoll", 0, nullptr, 'e'}, {"threads", 1, nullptr, 't'},
		{"chunk", 1, nullptr, 'c'}, {"readers", 0, nullptr, 'r'},
		{"until", 1, nullptr, 'u'}, {nullptr, 0, nullptr, 0},
	};
	Options o;
	for (int c; (c = getopt_long(argc, argv, "", longs, nullptr)) != -1;) {
		uint64_t value = optarg ? std::strtoull(optarg, nullptr, 0) : 0;
		switch (c) {
		case 's': o.seed = value; break;
		case 'n': o.count = value; break;
		case 'a': o.min = value; break;
		case 'b': o.max = value; break;
		case 't': o.threads = unsigned(value); break;
		case 'c': o.chunk = value; break;
		case 'r': o.readers = true; break;
		case 'u': o.until = optarg; break;
		case 'p': o.wait = Wait::Poll; break;
		case 'w': o.wait = Wait::Nowait; break;
		case 'e': o.wait = Wait::Epoll; break;
		default: die("%s", usage);
		}
	}
	if (argc - optind != 2)
		die("%s", usage);
	std::string verb = argv[optind];
	if ((verb != "send" && verb != "receive") || !o.threads || !o.min || o.max < o.min)
		die("%s", usage);
	o.send = verb == "send";
	o.node = argv[optind + 1];
	o.until_end = o.count == 0;
	if ((o.threads > 1 || o.readers) && o.min < sizeof(Label))
		o.min = sizeof(Label);
	return o;
}

uint64_t seed_of(const Options &o, uint64_t thread, uint64_t index)
{
	return Random(o.seed ^ (thread << 56) ^ (index * 0x2545f4914f6cdd1d)).next();
}

// The logarithm is uniform, and the bounds themselves are frequent.
uint64_t size_of(const Options &o, uint64_t seed)
{
	Random random(seed + 1);
	if (random.next() % 16 == 0)
		return random.next() % 2 ? o.min : o.max;
	double share = double(random.next() >> 11) / double(1ULL << 53);
	return uint64_t(double(o.min) * std::pow(double(o.max) / double(o.min), share));
}

std::vector<uint8_t> message(const Options &o, uint32_t thread, uint32_t index)
{
	uint64_t seed = seed_of(o, thread, index);
	std::vector<uint8_t> bytes = content(size_of(o, seed), seed);
	if (o.threads > 1) {
		Label label{thread, index};
		std::memcpy(bytes.data(), &label, sizeof(label));
	}
	return bytes;
}

// An open node, and how to wait for it.
class Node
{
public:
	explicit Node(const Options &o) : send_(o.send), wait_(o.wait)
	{
		int flags = o.send ? O_WRONLY : O_RDONLY;
		fd_ = open(o.node, flags | (wait_ == Wait::Epoll ? O_NONBLOCK : 0) | O_CLOEXEC);
		if (fd_ < 0)
			die("%s: %s", o.node, errno_name(errno));
		if (wait_ != Wait::Epoll)
			return;
		epoll_ = epoll_create1(EPOLL_CLOEXEC);
		epoll_event event{};
		event.events = (send_ ? EPOLLOUT : EPOLLIN) | EPOLLET;
		if (epoll_ctl(epoll_, EPOLL_CTL_ADD, fd_, &event))
			die("epoll_ctl: %s", errno_name(errno));
	}
	~Node()
	{
		close(fd_);
		if (epoll_ >= 0)
			close(epoll_);
	}
	Node(const Node &) = delete;
	Node &operator=(const Node &) = delete;

	// Bytes, or -errno
	ssize_t transfer(void *bytes, size_t len)
	{
		for (;;) {
			ssize_t n = once(bytes, len);
			if (n >= 0)
				return n;
			if (errno == EINTR)
				continue;
			if (errno != EAGAIN || wait_ == Wait::Block || wait_ == Wait::Poll)
				return -errno;
			ready();
		}
	}

private:
	ssize_t once(void *bytes, size_t len)
	{
		iovec vec{bytes, len};
		int flags = wait_ == Wait::Poll     ? RWF_HIPRI
			    : wait_ == Wait::Nowait ? RWF_NOWAIT
						    : 0;
		if (flags)
			return send_ ? pwritev2(fd_, &vec, 1, -1, flags)
				     : preadv2(fd_, &vec, 1, -1, flags);
		return send_ ? write(fd_, bytes, len) : read(fd_, bytes, len);
	}

	void ready()
	{
		// POLLOUT promises room for a small message only: look again now and then.
		// An edge, though, must come for whatever ended the wait.
		if (wait_ == Wait::Epoll) {
			epoll_event event;
			int n = epoll_wait(epoll_, &event, 1, limit_ms);
			if (n == 0)
				die("no edge within %d ms", limit_ms);
			return;
		}
		pollfd p{fd_, short(send_ ? POLLOUT : POLLIN), 0};
		if (poll(&p, 1, limit_ms) == 0)
			die("not ready within %d ms", limit_ms);
		if (send_)
			usleep(1000);
	}

	const int limit_ms = 20000 * int(slow());
	bool send_;
	Wait wait_;
	int fd_ = -1, epoll_ = -1;
};

std::atomic<uint64_t> messages_done, bytes_done, sum_done;
std::atomic<int> ended{-1};

void account(const std::vector<uint8_t> &bytes)
{
	messages_done++;
	bytes_done += bytes.size();
	sum_done += checksum(bytes.data(), bytes.size());
}

uint64_t share(const Options &o, uint32_t thread)
{
	return o.until_end ? UINT64_MAX : o.count / o.threads + (thread < o.count % o.threads);
}

void send_all(const Options &o, uint32_t thread)
{
	Node node(o);
	for (uint64_t i = 0; i < share(o, thread); i++) {
		if (o.until && access(o.until, F_OK) == 0)
			return;
		std::vector<uint8_t> bytes = message(o, thread, uint32_t(i));
		ssize_t n = node.transfer(bytes.data(), bytes.size());
		if (n < 0 && o.until_end) {
			ended = int(-n);
			return;
		}
		if (n < 0)
			die("message %llu: write: %s", static_cast<unsigned long long>(i),
			    errno_name(int(-n)));
		if (size_t(n) != bytes.size())
			die("message %llu: wrote %zd of %zu bytes",
			    static_cast<unsigned long long>(i), n, bytes.size());
		account(bytes);
	}
}

// One whole message; the buffer is larger, so that two merged would be seen.
// False: the channel ended.
bool receive_whole(const Options &o, Node &node, std::vector<uint8_t> &bytes)
{
	bytes.resize(o.max + 16);
	ssize_t n = node.transfer(bytes.data(), bytes.size());
	if (n <= 0) {
		ended = int(-n);
		return false;
	}
	bytes.resize(size_t(n));
	return true;
}

bool receive_pieces(const Options &o, Node &node, Random &random, size_t size,
		    std::vector<uint8_t> &bytes)
{
	bytes.resize(size + o.chunk);
	size_t at = 0;
	while (at < size) {
		size_t want = random.between(1, o.chunk);
		ssize_t n = node.transfer(bytes.data() + at, want);
		if (n <= 0) {
			ended = int(-n);
			return false;
		}
		if (size_t(n) != (want < size - at ? want : size - at))
			die("asked for %zu of the last %zu bytes, got %zd", want, size - at, n);
		at += size_t(n);
	}
	bytes.resize(size);
	return true;
}

void compare(const std::vector<uint8_t> &got, const std::vector<uint8_t> &wanted, uint32_t thread,
	     uint64_t index)
{
	if (got.size() != wanted.size())
		die("message %u/%llu: %zu bytes, not %zu", thread,
		    static_cast<unsigned long long>(index), got.size(), wanted.size());
	for (size_t i = 0; i < got.size(); i++)
		if (got[i] != wanted[i])
			die("message %u/%llu of %zu bytes: byte %zu is %#x, not %#x", thread,
			    static_cast<unsigned long long>(index), got.size(), i, got[i],
			    wanted[i]);
}

void receive_all(const Options &o)
{
	Node node(o);
	Random random(o.seed);
	std::vector<uint64_t> next(o.threads);
	uint64_t total = o.until_end ? UINT64_MAX : o.count;
	for (uint64_t i = 0; i < total; i++) {
		std::vector<uint8_t> bytes;
		uint32_t thread = 0;
		bool got = o.chunk && o.threads == 1
				   ? receive_pieces(o, node, random, size_of(o, seed_of(o, 0, i)),
						    bytes)
				   : receive_whole(o, node, bytes);
		if (!got) {
			if (o.until_end)
				return;
			die("message %llu: the channel ended: %s",
			    static_cast<unsigned long long>(i),
			    ended ? errno_name(ended) : "in order");
		}
		if (o.threads > 1) {
			Label label;
			if (bytes.size() < sizeof(label))
				die("a message of %zu bytes without a label", bytes.size());
			std::memcpy(&label, bytes.data(), sizeof(label));
			if (label.thread >= o.threads)
				die("a message of thread %u", label.thread);
			thread = label.thread;
			if (label.index != next[thread])
				die("thread %u: message %u came, not %llu", thread, label.index,
				    static_cast<unsigned long long>(next[thread]));
		}
		compare(bytes, message(o, thread, uint32_t(next[thread])), thread, next[thread]);
		next[thread]++;
		account(bytes);
	}
}

// Several readers: each message comes whole to one of them.
void receive_many(const Options &o)
{
	std::atomic<uint64_t> left{o.count};
	std::vector<std::vector<std::atomic<uint8_t>>> seen;
	for (uint32_t t = 0; t < o.threads; t++)
		seen.emplace_back(share(o, t));
	std::vector<std::thread> threads;
	for (uint32_t t = 0; t < o.threads; t++)
		threads.emplace_back([&] {
			Node node(o);
			for (;;) {
				uint64_t n = left.load();
				while (n && !left.compare_exchange_weak(n, n - 1))
					;
				if (!n)
					return;
				std::vector<uint8_t> bytes;
				Label label;
				if (!receive_whole(o, node, bytes) || bytes.size() < sizeof(label))
					die("a message is missing");
				std::memcpy(&label, bytes.data(), sizeof(label));
				if (label.thread >= o.threads ||
				    label.index >= seen[label.thread].size())
					die("message %u/%u is none of ours", label.thread,
					    label.index);
				if (seen[label.thread][label.index].exchange(1))
					die("message %u/%u came twice", label.thread, label.index);
				compare(bytes, message(o, label.thread, label.index), label.thread,
					label.index);
				account(bytes);
			}
		});
	for (std::thread &thread : threads)
		thread.join();
}

} // namespace

int main(int argc, char **argv)
{
	Options o = parse(argc, argv);
	if (o.send) {
		std::vector<std::thread> threads;
		for (uint32_t t = 1; t < o.threads; t++)
			threads.emplace_back([&o, t] { send_all(o, t); });
		send_all(o, 0);
		for (std::thread &thread : threads)
			thread.join();
	} else if (o.readers && !o.until_end) {
		receive_many(o);
	} else {
		receive_all(o);
	}
	std::printf("%s %llu messages, %llu bytes, checksum %016llx", o.send ? "sent" : "received",
		    static_cast<unsigned long long>(messages_done.load()),
		    static_cast<unsigned long long>(bytes_done.load()),
		    static_cast<unsigned long long>(sum_done.load()));
	if (ended >= 0)
		std::printf(", then %s", ended ? errno_name(ended) : "the end");
	std::printf("\n");
	return 0;
}
