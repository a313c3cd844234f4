// SPDX-License-Identifier: GPL-2.0-only
// The nodes under attack, and the files that a thread holds of them.
#pragma once

#include "hostile_map.h"

#include <fcntl.h>
#include <kdirect.h>

struct Node {
	std::string path;
	bool mapping = false; // then `info` has only what one can ask of both
	kdirect_info info{};
	kdirect_map_info map{};
};

// File numbers that all threads close, replace and use. Far away from the numbers
// that open() gives, so that what is closed is a node's file and nothing else.
constexpr int first_shared = 500, nr_shared = 8;

// A file as far as we know it; for a shared one that is nothing.
struct Target {
	int fd;
	const Node *node;
	bool reads, writes;
	bool nonblocking;
	bool known; // nobody else changes or closes it
	bool open;
	bool exposed = false; // others have a duplicate, and may change its flags
	bool nowait = false;  // in this call
	std::shared_ptr<Asked> asked{};

	bool may_block() const { return !known || exposed || !nonblocking; }
	bool may_not_block() const { return !known || exposed || nonblocking; }
};

struct Attack {
	const Options &options;
	std::vector<Node> nodes;
	Shifting &shifting;
};

// What one thread has.
class Thread
{
public:
	Thread(Attack &attack, Actor &actor);
	~Thread();
	Thread(const Thread &) = delete;
	Thread &operator=(const Thread &) = delete;

	void call(); // one, whichever
	Target &target(bool own = false);

	Attack &attack;
	Actor &actor;
	Memory memory;
	Arrays arrays;
	uint64_t descs = 0; // submitted so far

private:
	void reopen();
	void replace_shared();

	Target own_[6];
	Target shared_{};
};

// iovecs of a readv or writev, and what is to be expected of them.
struct Vector {
	std::vector<iovec> vecs;
	size_t total = 0;
	bool may_work = true, may_fail = false;
	bool overflows = false;
};
Vector make_vector(Thread &t, bool out);
size_t length(Thread &t);

// Which errnos a read or write of such memory may give.
Allowed transfer_errors(const Thread &t, const Target &file, bool out, size_t len, bool may_fail);
// Checks a transfer's result as well.
void transferred(Thread &t, const char *kind, const Target &file, bool out, ssize_t n, size_t len,
		 bool may_work, const Allowed &allowed);

// The groups of calls.
void transfer(Thread &t);  // read, write and their kin
void control(Thread &t);   // ioctl, fcntl
void elsewhere(Thread &t); // what a node cannot do: mmap, splice, …, and lseek
void wait_for(Thread &t);  // poll, select, epoll
void ring(Thread &t);      // io_uring
void aio(Thread &t);
void process(Thread &t); // fork, exec, kill, files in messages
void collect_sockets();  // frees files in messages that nobody can receive any more
