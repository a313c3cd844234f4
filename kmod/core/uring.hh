// SPDX-License-Identifier: GPL-2.0-only
// Commands of io_uring of an open file. Their requests are no others': who does
// not reap what he has submitted otherwise does not stop them.
#pragma once

#include "desc.hh"

namespace kd
{

struct Commands {
	static constexpr uint32_t most = KDIRECT_DESC_ENTRIES;

	Request requests[most];
	Message *messages = nullptr;        // theirs, of a session
	Fifo<Request, &Request::link> free; // DescFile::lock, as this
	uint32_t waiters = 0;               // for one that is free
};

} // namespace kd
