/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A fuzzer's input as a list of steps, read from the front: what libFuzzer cuts,
 * moves and joins are then steps. Nothing is left: zeros.
 */
#pragma once
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <type_traits>

#define MUST(condition)                                                                            \
	do {                                                                                       \
		if (!(condition)) {                                                                \
			std::fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #condition);       \
			std::abort();                                                              \
		}                                                                                  \
	} while (0)

class Input
{
public:
	Input(const uint8_t *data, std::size_t size) : at(data), left(size) {}

	bool empty() const { return left == 0; }
	template <typename T>
	T take()
	{
		static_assert(std::is_trivially_copyable_v<T>);
		T value{};
		std::size_t n = left < sizeof(T) ? left : sizeof(T);

		std::memcpy(static_cast<void *>(&value), at, n);
		at += n;
		left -= n;
		return value;
	}
	/* 0 .. n - 1 */
	uint32_t below(uint32_t n) { return take<uint8_t>() % n; }
	bool flag() { return take<uint8_t>() & 1; }
	/* Mostly small, sometimes anything: one byte says how many follow. */
	uint64_t number()
	{
		uint8_t size = take<uint8_t>();

		if (size < 240)
			return size;
		if (size < 248)
			return take<uint16_t>();
		if (size < 252)
			return take<uint32_t>();
		return take<uint64_t>();
	}
	std::string bytes(std::size_t most)
	{
		std::size_t n = take<uint8_t>();

		n = n < most ? n : most;
		n = n < left ? n : left;
		std::string out(reinterpret_cast<const char *>(at), n);
		at += n;
		left -= n;
		out.shrink_to_fit();
		return out;
	}
	const uint8_t *data() const { return at; }
	std::size_t size() const { return left; }

private:
	const uint8_t *at;
	std::size_t left;
};
