// SPDX-License-Identifier: GPL-2.0-only
// What one open file of a mapping has been asked for, as far as only one thread asks: each
// descriptor must complete once, with a result that it may have.
#pragma once

#include "hostile_memory.h"

#include <kdirect.h>
#include <map>

class Thread;
struct Target;

// What may become of a descriptor.
struct Wish {
	uint8_t opcode;
	uint32_t length, index;
	bool may_work, must_fail, anything;
	Allowed errnos{};
};

struct Asked {
	std::map<uint64_t, Wish> wishes;      // by user_data, until their completions
	std::map<uint32_t, uint64_t> buffers; // their lengths, by index
	bool known = true;                    // nobody else has asked, and all was told
};

// The arrays of a call, whose end is the end of memory, and what it may have asked for.
class Arrays
{
public:
	static constexpr size_t most = 320;
	Arrays();
	~Arrays();
	Arrays(const Arrays &) = delete;
	Arrays &operator=(const Arrays &) = delete;

	kdirect_desc *descs(size_t n) const;
	kdirect_completion *completions(size_t n) const;

private:
	uint8_t *descs_, *completions_;
};

void map_control(Thread &t, Target &file); // the ioctls of a mapping
// A descriptor for a command of io_uring, and the errors that may come of it.
Allowed map_command(Thread &t, const Target &file, kdirect_desc &desc);
// All that was submitted completes, before a file is closed.
void finish_asked(Thread &t, Target &file);
// In a child that shares the files: submits, and may be killed in it.
void child_submit(Random &random, int fd);
