// SPDX-License-Identifier: GPL-2.0-only
#pragma once

#include "os.hh"

// Received bytes, exactly as long, so that KASAN sees a read of one too many.
class Exact
{
public:
	Exact(const void *from, size_t len, size_t padded) : s_(kd::ShimEntry::may_sleep())
	{
		bytes = kd::create_array<uint8_t>(s_, padded ? padded : 1);
		if (bytes)
			kd::copy_bytes(bytes, from, len < padded ? len : padded);
	}
	~Exact() { kd::destroy_array(s_, bytes); }
	Exact(const Exact &) = delete;
	Exact &operator=(const Exact &) = delete;
	uint8_t *bytes;

private:
	kd::Sleepable s_;
};
