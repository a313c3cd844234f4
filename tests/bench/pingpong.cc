// SPDX-License-Identifier: GPL-2.0-only
// Messages there and back between two processes over two ends of a channel in
// one machine, one at a time. Prints nanoseconds and system calls per round trip.
//
//   pingpong NODE_A NODE_B SIZE COUNT [poll]
//
// The cost of starting cancels: the time of COUNT round trips is taken from the
// time of 3 * COUNT, and the rest divided by 2 * COUNT.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <stdexcept>
#include <string>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>
#include <vector>

namespace
{

class Node
{
public:
	Node(const char *path, bool poll)
		: fd_(open(path, O_RDWR | O_CLOEXEC)), flags_(poll ? RWF_HIPRI : 0)
	{
		if (fd_ < 0)
			throw std::runtime_error(std::string(path) + ": " + strerror(errno));
	}
	Node(const Node &) = delete;
	Node &operator=(const Node &) = delete;
	~Node() { close(fd_); }

	void send(const std::vector<char> &message)
	{
		iovec iov{const_cast<char *>(message.data()), message.size()};
		check(pwritev2(fd_, &iov, 1, -1, flags_), message.size());
	}
	void receive(std::vector<char> &message)
	{
		iovec iov{message.data(), message.size()};
		check(preadv2(fd_, &iov, 1, -1, flags_), message.size());
	}

private:
	static void check(ssize_t got, size_t wanted)
	{
		if (got < 0)
			throw std::runtime_error(strerror(errno));
		if (size_t(got) != wanted)
			throw std::runtime_error("a message was cut");
	}
	int fd_;
	int flags_;
};

std::chrono::nanoseconds run(Node &node, std::vector<char> &message, long count)
{
	auto start = std::chrono::steady_clock::now();
	for (long i = 0; i < count; i++) {
		node.send(message);
		node.receive(message);
	}
	return std::chrono::steady_clock::now() - start;
}

void echo(const char *path, size_t size, long count, bool poll)
{
	Node node(path, poll);
	std::vector<char> message(size);
	for (long i = 0; i < count; i++) {
		node.receive(message);
		node.send(message);
	}
}

} // namespace

int main(int argc, char **argv)
try {
	if (argc < 5)
		throw std::runtime_error("usage: pingpong NODE_A NODE_B SIZE COUNT [poll]");
	size_t size = strtoul(argv[3], nullptr, 10);
	long count = strtol(argv[4], nullptr, 10), warm_up = std::max(count / 10, 10L);
	bool poll = argc > 5 && !strcmp(argv[5], "poll");
	pid_t child = fork();
	if (child == 0) {
		echo(argv[2], size, warm_up + 4 * count, poll);
		_exit(0);
	}
	Node node(argv[1], poll);
	std::vector<char> message(size, 'k');
	run(node, message, warm_up);
	auto once = run(node, message, count);
	auto thrice = run(node, message, 3 * count);
	int status;
	waitpid(child, &status, 0);
	if (status)
		throw std::runtime_error("the other end failed");
	printf("%ld\n", long((thrice - once).count() / (2 * count)));
} catch (const std::exception &e) {
	fprintf(stderr, "pingpong: %s\n", e.what());
	return 1;
}
