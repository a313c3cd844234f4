// SPDX-License-Identifier: GPL-2.0-only
// Messages there and back between two processes over two ends of a channel in
// one machine, one at a time, COUNT times.
//
//   pingpong NODE_A NODE_B SIZE interrupt|poll COUNT
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

void echo(Node &node, std::vector<char> &message, long count)
{
	for (long i = 0; i < count; i++) {
		node.receive(message);
		node.send(message);
	}
}

void run(Node &node, std::vector<char> &message, long count)
{
	for (long i = 0; i < count; i++) {
		node.send(message);
		node.receive(message);
	}
}

} // namespace

int main(int argc, char **argv)
try {
	if (argc != 6)
		throw std::runtime_error("usage: pingpong NODE_A NODE_B SIZE interrupt|poll COUNT");
	std::vector<char> message(strtoul(argv[3], nullptr, 10), 'k');
	bool poll = !strcmp(argv[4], "poll");
	long count = strtol(argv[5], nullptr, 10);
	pid_t child = fork();
	if (child == 0) {
		Node node(argv[2], poll);
		echo(node, message, count);
		_exit(0);
	}
	Node node(argv[1], poll);
	run(node, message, count);
	int status;
	waitpid(child, &status, 0);
	if (status)
		throw std::runtime_error("the other end failed");
} catch (const std::exception &e) {
	fprintf(stderr, "pingpong: %s\n", e.what());
	return 1;
}
