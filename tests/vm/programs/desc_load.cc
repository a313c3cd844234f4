// SPDX-License-Identifier: GPL-2.0-only
// Keeps descriptors of all kinds under way on a mapping until it ends, and counts: each
// must complete exactly once.
//
//	desc_load DEVICE SIZE [poll]
//
// Prints the error that ended it, and how many completed. SIGTERM ends it without one.
#include "desc.h"

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

namespace
{

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
	case 0: return fetch_add(remote & ~7ULL, 0, number);
	case 1: return transfer(false, memory + (number % 16) * 65536, len, remote, number);
	case 2: return transfer(true, memory + (number % 16) * 65536, len % 8000, remote, number);
	default: return fixed(number % 5 == 3, 0, (number % 16) * 65536, len, remote, number);
	}
}

} // namespace

int main(int argc, char **argv)
{
	if (argc < 3) {
		std::fprintf(stderr, "usage: desc_load DEVICE SIZE [poll]\n");
		return 2;
	}
	std::signal(SIGTERM, end);
	int fd = open(argv[1], O_RDWR);
	uint64_t size = std::strtoull(argv[2], nullptr, 10), begun = 0, ended = 0;
	uint32_t flags = argc > 3 ? KDIRECT_SUBMIT_POLL : 0;
	auto *memory = static_cast<char *>(
		mmap(nullptr, 1 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
	if (fd < 0 || set_buffer(fd, 0, memory, 1 << 20)) {
		std::perror(argv[1]);
		return 1;
	}
	std::vector<bool> seen;
	int cause = 0;
	while ((!ending && !cause) || ended < begun) {
		Descs batch;
		for (uint64_t i = begun; !ending && !cause && i < begun + 40; i++)
			batch.push_back(make(memory, i, size));
		Completions out(64);
		kdirect_submit call{};
		call.descs = address(batch.data());
		call.nr_descs = uint32_t(batch.size());
		call.completions = address(out.data());
		call.nr_completions = uint32_t(out.size());
		call.min_completions = begun > ended + 100 || batch.empty() ? 1 : 0;
		call.flags = flags;
		int err = submit(fd, call);
		if (err == -EINTR)
			continue;
		if (err) {
			std::printf("submit: %s\n", std::strerror(-err));
			return 1;
		}
		begun += call.submitted;
		seen.resize(begun);
		for (uint32_t i = 0; i < call.completed; i++) {
			const kdirect_completion &c = out[i];
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
