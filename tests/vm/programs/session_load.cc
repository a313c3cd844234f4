// SPDX-License-Identifier: GPL-2.0-only
// Keeps SENDs, or RECVs, under way on the node of a channel until that ends. Each must complete
// once; what is received is a sender's messages, in order.
//
//	session_load send|recv DEVICE [poll] [ring] [thread]
//
// Prints the error that ended it, and how many completed. SIGTERM ends a sender without one.
#include "rings.h"

#include <csignal>
#include <cstdio>
#include <fcntl.h>

namespace
{

constexpr size_t place = 32 << 10;
constexpr uint64_t at_once = 64;

volatile sig_atomic_t ending;

void end(int)
{
	ending = 1;
}

size_t length(uint64_t number)
{
	uint64_t x = number * 0x9e3779b97f4a7c15ULL;
	return 8 + (number % 7 == 3 ? 17000 + (x >> 50) % 4000 : (x >> 40) % 600);
}

// Its number, again and again.
void write_message(char *at, uint64_t number)
{
	for (size_t i = 0; i < length(number); i += 8)
		std::memcpy(at + i, &number, 8);
}

bool is_message(const char *at, size_t len, uint64_t number)
{
	if (len != length(number))
		return false;
	for (size_t i = 0; i + 8 <= len; i += 8)
		if (std::memcmp(at + i, &number, 8))
			return false;
	return true;
}

} // namespace

int main(int argc, char **argv)
{
	if (argc < 3) {
		std::fprintf(stderr,
			     "usage: session_load send|recv DEVICE [poll] [ring] [thread]\n");
		return 2;
	}
	auto asked = [&](const char *word) {
		for (int i = 3; i < argc; i++)
			if (!std::strcmp(argv[i], word))
				return true;
		return false;
	};
	bool sends = !std::strcmp(argv[1], "send");
	std::signal(SIGTERM, end);
	int fd = open(argv[2], O_RDWR);
	auto *memory = static_cast<char *>(mmap(nullptr, at_once * place, PROT_READ | PROT_WRITE,
						MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
	Ring ring;
	if (asked("ring"))
		ring = Ring(fd, 64, 64,
			    (asked("poll") ? uint32_t{KDIRECT_RING_POLL} : 0) |
				    (asked("thread") ? uint32_t{KDIRECT_RING_THREAD} : 0));
	if (fd < 0 || (asked("ring") && !ring) || set_buffer(fd, 0, memory, at_once * place)) {
		std::perror(argv[2]);
		return 1;
	}
	// A place is used again when its message has completed.
	std::vector<bool> busy(at_once);
	uint64_t begun = 0, ended = 0, next = 0;
	int cause = 0;
	while ((!ending && !cause) || ended < begun) {
		Descs batch;
		Completions out;
		for (uint64_t n = begun; !ending && !cause && !busy[n % at_once]; n++) {
			size_t at = n % at_once * place, len = sends ? length(n) : place;
			bool plain = n % 3 == 0 && !asked("thread");
			if (sends)
				write_message(memory + at, n);
			busy[n % at_once] = true;
			batch.push_back(plain ? message(sends, memory + at, len, n)
					      : fixed_message(sends, 0, at, len, n));
		}
		uint32_t flags = asked("poll") ? KDIRECT_SUBMIT_POLL : 0;
		int taken = ring ? by_ring(ring, batch, true, out)
				 : by_ioctl(fd, flags, batch, true, out);
		for (size_t i = taken < 0 ? 0 : size_t(taken); i < batch.size(); i++)
			busy[batch[i].user_data % at_once] = false;
		if (taken == -EINTR)
			continue;
		if (taken < 0) {
			std::printf("submit: %s\n", std::strerror(-taken));
			return 1;
		}
		begun += uint64_t(taken);
		for (const kdirect_completion &c : out) {
			if (c.user_data >= begun || !busy[c.user_data % at_once]) {
				std::printf("%llu completed twice, or was never submitted\n",
					    static_cast<unsigned long long>(c.user_data));
				return 1;
			}
			const char *at = memory + c.user_data % at_once * place;
			if (!sends && c.result >= 0 &&
			    (c.user_data != next || !is_message(at, size_t(c.result), next))) {
				std::printf("%llu is not message %llu\n",
					    static_cast<unsigned long long>(c.user_data),
					    static_cast<unsigned long long>(next));
				return 1;
			}
			next++;
			busy[c.user_data % at_once] = false;
			ended++;
			if (c.result < 0 && !cause)
				cause = -c.result;
		}
	}
	std::printf("%s after %llu\n", cause ? std::strerror(cause) : "ended",
		    static_cast<unsigned long long>(ended));
	return 0;
}
