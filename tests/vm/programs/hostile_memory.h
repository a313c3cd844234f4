// SPDX-License-Identifier: GPL-2.0-only
// Memory that a call should not be given: nowhere, the kernel's, read-only, ending
// inside, vanishing while it is used, slow. Each piece says whether a call that
// reads or writes it may succeed, or may fail.
#pragma once

#include "hostile.h"

#include <memory>
#include <thread>

struct Piece {
	const char *kind;
	uint8_t *start;
	bool may_work; // with all of its bytes
	bool may_fail;
};

// Pages that come and go under the calls of all threads, and pages that take their time.
class Shifting
{
public:
	Shifting();
	~Shifting();
	Shifting(const Shifting &) = delete;
	Shifting &operator=(const Shifting &) = delete;

	static constexpr size_t size = 1 << 19;
	uint8_t *flipping = nullptr;  // unmapped, protected, dropped
	uint8_t *shrinking = nullptr; // a file that loses its end
	uint8_t *slow = nullptr;      // a thread brings each page; null where that is not allowed

private:
	void flip();
	void bring();

	std::atomic<bool> stop_{false};
	int file_ = -1, faults_ = -1;
	std::thread flipper_, bringer_;
};

// One thread's own.
class Memory
{
public:
	explicit Memory(Shifting &shifting);
	~Memory();
	Memory(const Memory &) = delete;
	Memory &operator=(const Memory &) = delete;

	// For a call that reads (`out`: the memory goes to the kernel) or fills `len` bytes.
	Piece piece(Actor &actor, size_t len, bool out);
	Piece good(Actor &actor, size_t len);
	// A structure of that content, mostly where it can be read and written.
	Piece structure(Actor &actor, const void *content, size_t len);

	static constexpr size_t good_size = (2 << 20) + (16 << 10);

private:
	Shifting &shifting_;
	uint8_t *good_, *read_only_, *guarded_, *none_, *structures_;
};
