// SPDX-License-Identifier: GPL-2.0-only
// What the test programs share: failing with a reason, and messages whose
// size and content follow from a seed.
#pragma once

#include <cerrno>
#include <cstdarg>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

[[noreturn, gnu::format(printf, 1, 2)]] inline void die(const char *format, ...)
{
	va_list args;
	va_start(args, format);
	std::vfprintf(stderr, format, args);
	va_end(args);
	std::fputc('\n', stderr);
	std::exit(1);
}

inline unsigned setting(const char *name)
{
	const char *text = std::getenv(name);
	return text && std::atoi(text) > 1 ? unsigned(std::atoi(text)) : 1;
}

// How many times slower this kernel is, and how many times less often is enough;
// tests/vm/all says why.
inline unsigned slow()
{
	return setting("KD_SLOW");
}

inline unsigned few()
{
	return setting("KD_FEW");
}

inline const char *errno_name(int err)
{
	const char *name = strerrorname_np(err);
	return name ? name : "E?";
}

// KiB that are charged as pinned to this process.
inline unsigned pinned()
{
	FILE *file = std::fopen("/proc/self/status", "r");
	char line[256];
	unsigned value = 0;
	while (file && std::fgets(line, sizeof(line), file))
		if (std::sscanf(line, "VmPin: %u", &value) == 1)
			break;
	if (file)
		std::fclose(file);
	return value;
}

// splitmix64
class Random
{
public:
	explicit Random(uint64_t seed) : state_(seed) {}
	uint64_t next()
	{
		uint64_t z = state_ += 0x9e3779b97f4a7c15;
		z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
		z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
		return z ^ (z >> 31);
	}
	uint64_t between(uint64_t low, uint64_t high) { return low + next() % (high - low + 1); }

private:
	uint64_t state_;
};

inline void fill(uint8_t *bytes, size_t len, uint64_t seed)
{
	Random random(seed);
	for (size_t i = 0; i < len; i += 8) {
		uint64_t word = random.next();
		std::memcpy(bytes + i, &word, len - i < 8 ? len - i : 8);
	}
}

inline std::vector<uint8_t> content(size_t len, uint64_t seed)
{
	std::vector<uint8_t> bytes(len);
	fill(bytes.data(), len, seed);
	return bytes;
}

inline uint64_t checksum(const uint8_t *bytes, size_t len, uint64_t sum = 0)
{
	for (size_t i = 0; i < len; i += 8) {
		uint64_t word = 0;
		std::memcpy(&word, bytes + i, len - i < 8 ? len - i : 8);
		sum = (sum ^ word) * 0x100000001b3 + len;
		sum = (sum << 13) | (sum >> 51);
	}
	return sum;
}
