// SPDX-License-Identifier: GPL-2.0-only
// Keeps descriptors of all kinds under way on a mapping until it ends, and counts: each
// must complete exactly once.
//
//	desc_load DEVICE SIZE [poll] [ring | uring] [thread]
//
// By ioctl, or through a ring, which a thread may serve, or as commands of io_uring. Prints the
// error that ended it, and how many completed. SIGTERM ends it without one.
#include "commands.h"
#include "rings.h"

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <fcntl.h>
#include <memory>

namespace
{

constexpr uint32_t at_once = 40;

volatile sig_atomic_t ending;

void end(int)
{
	ending = 1;
}

kdirect_desc make(char *memory, uint64_t number, uint64_t size)
{
	uint64_t x = number * 0x9e3779b97f4a7c15ULL;
	size_t len = 1 + (x >> 40) % 50000;
	uint64_t remote = (x >> 8) % (size - 60000);

	switch (number % 5) {
	case 0: return touch(remote & ~7ULL, number);
	case 1: return transfer(false, memory + (number % 16) * 65536, len, remote, number);
	case 2: return transfer(true, memory + (number % 16) * 65536, len % 8000, remote, number);
	default: return fixed(number % 5 == 3, 0, (number % 16) * 65536, len, remote, number);
	}
}

// Where the others use a fixed buffer, half of these use a registered one.
int by_uring(CommandRing &ring, int fd, char *memory, const Descs &batch, bool wait,
	     Completions &out)
{
	CommandRing::Result r;
	int taken = 0;
	out.clear();
	for (kdirect_desc desc : batch) {
		uint64_t number = std::exchange(desc.user_data, 0);
		bool registered = number % 5 == 4;
		if (registered)
			desc = transfer(desc.opcode == KDIRECT_OP_WRITE, memory + desc.addr,
					desc.length, desc.remote);
		if (!ring.push(fd, desc, number, registered ? 0 : CommandRing::none))
			break;
		taken++;
	}
	int err = ring.go(wait);
	while (ring.pop(r)) {
		kdirect_completion c{};
		c.user_data = r.user_data;
		c.result = r.res;
		out.push_back(c);
	}
	return err && err != -EBUSY ? err : taken;
}

} // namespace

int main(int argc, char **argv)
{
	if (argc < 3) {
		std::fprintf(stderr,
			     "usage: desc_load DEVICE SIZE [poll] [ring | uring] [thread]\n");
		return 2;
	}
	auto asked = [&](const char *word) {
		for (int i = 3; i < argc; i++)
			if (!std::strcmp(argv[i], word))
				return true;
		return false;
	};
	std::signal(SIGTERM, end);
	int fd = open(argv[1], O_RDWR);
	uint64_t size = std::strtoull(argv[2], nullptr, 10), begun = 0, ended = 0;
	auto *memory = static_cast<char *>(
		mmap(nullptr, 1 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
	Ring ring;
	if (asked("ring"))
		ring = Ring(fd, 64, 64,
			    (asked("poll") ? uint32_t{KDIRECT_RING_POLL} : 0) |
				    (asked("thread") ? uint32_t{KDIRECT_RING_THREAD} : 0));
	std::unique_ptr<CommandRing> commands;
	if (asked("uring"))
		commands = std::make_unique<CommandRing>(
			256, CommandRing::usual |
				     (asked("poll") ? unsigned(IORING_SETUP_IOPOLL) : 0U) |
				     (asked("thread") ? unsigned(IORING_SETUP_SQPOLL) : 0U));
	if (commands && (!*commands || commands->add_buffer(memory, 1 << 20))) {
		std::perror("io_uring");
		return 1;
	}
	if (fd < 0 || (asked("ring") && !ring) || set_buffer(fd, 0, memory, 1 << 20)) {
		std::perror(argv[1]);
		return 1;
	}
	std::vector<bool> seen;
	int cause = 0;
	while ((!ending && !cause) || ended < begun) {
		Descs batch;
		Completions out;
		for (uint64_t i = begun; !ending && !cause && i < begun + at_once; i++)
			batch.push_back(make(memory, i, size));
		bool wait = begun > ended + 100 || batch.empty();
		uint32_t flags = asked("poll") ? KDIRECT_SUBMIT_POLL : 0;
		int taken = commands ? by_uring(*commands, fd, memory, batch, wait, out)
			    : ring   ? by_ring(ring, batch, wait, out)
				     : by_ioctl(fd, flags, batch, wait, out);
		if (taken == -EINTR)
			continue;
		if (taken < 0) {
			std::printf("submit: %s\n", std::strerror(-taken));
			return 1;
		}
		begun += uint64_t(taken);
		seen.resize(begun);
		for (const kdirect_completion &c : out) {
			if (c.user_data >= begun || seen[c.user_data]) {
				std::printf("%llu completed twice, or was never submitted\n",
					    static_cast<unsigned long long>(c.user_data));
				return 1;
			}
			seen[c.user_data] = true;
			ended++;
			if (c.result < 0 && !cause)
				cause = -c.result;
		}
	}
	std::printf("%s after %llu\n", cause ? std::strerror(cause) : "ended",
		    static_cast<unsigned long long>(ended));
	return 0;
}
