// SPDX-License-Identifier: GPL-2.0-only
// Runs a program between two markers (count.cc), and prints how long it took, in ns.
//
//   measured PROGRAM ARGUMENT...
#include "marker.h"

#include <chrono>
#include <cstdio>
#include <cstring>
#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#define KD_BYTES_(...) #__VA_ARGS__
#define KD_BYTES(...) KD_BYTES_(__VA_ARGS__)

namespace
{

std::chrono::steady_clock::time_point mark()
{
	asm volatile(".byte " KD_BYTES(KD_MARKER));
	return std::chrono::steady_clock::now();
}

[[noreturn]] void become(char **words)
{
	int null = open("/dev/null", O_WRONLY | O_CLOEXEC);
	dup2(null, STDOUT_FILENO);
	execvp(words[0], words);
	fprintf(stderr, "measured: %s: %s\n", words[0], strerror(errno));
	_exit(127);
}

} // namespace

int main(int argc, char **argv)
{
	if (argc < 2) {
		fprintf(stderr, "usage: measured PROGRAM ARGUMENT...\n");
		return 2;
	}
	auto start = mark();
	pid_t child = fork();
	if (child == 0)
		become(argv + 1);
	int status = 0;
	waitpid(child, &status, 0);
	auto end = mark();
	if (child < 0 || status) {
		fprintf(stderr, "measured: %s failed, status %d\n", argv[1], status);
		return 1;
	}
	printf("%lld\n", static_cast<long long>(std::chrono::nanoseconds(end - start).count()));
}
