// SPDX-License-Identifier: GPL-2.0-only
// Messages by descriptors: each is as a write() or a read() would have been.
#include <algorithm>
#include <cstring>

#include "storm.h"

namespace sim
{

/* Until it has completed, or a signal comes: then it ends with its file at the latest. */
int64_t Schedule::one_desc(File &file, const kdirect_desc &desc, uint32_t flags)
{
	std::span<char> in = lend(sizeof(desc)), out = lend(sizeof(kdirect_completion));
	kdirect_submit call{.descs = reinterpret_cast<uint64_t>(in.data()),
			    .completions = reinterpret_cast<uint64_t>(out.data()),
			    .nr_descs = 1,
			    .nr_completions = 1,
			    .min_completions = 1,
			    .flags = flags & KD_IO_POLL ? uint32_t{KDIRECT_SUBMIT_POLL} : 0};
	kdirect_completion done;

	std::memcpy(in.data(), &desc, sizeof(desc));
	if (int err = file.submit(call); err)
		return -err;
	if (!call.submitted) {
		fail("one descriptor was not taken");
		return -KD_EINVAL;
	}
	while (!call.completed) {
		call.nr_descs = 0;
		if (int err = file.submit(call); err) {
			if (err != KD_EINTR)
				fail("waiting for a descriptor returned %d", err);
			return -err;
		}
	}
	std::memcpy(&done, out.data(), sizeof(done));
	reach->message_descs++;
	return done.result;
}

int64_t Schedule::send(File &file, std::string_view text, uint32_t flags)
{
	std::span<char> memory = lend(text.size());

	std::ranges::copy(text, memory.begin());
	return one_desc(file,
			{.opcode = KDIRECT_OP_SEND,
			 .length = static_cast<uint32_t>(text.size()),
			 .addr = reinterpret_cast<uint64_t>(memory.data())},
			flags);
}

int64_t Schedule::receive(File &file, std::string &buffer, std::size_t room, uint32_t flags)
{
	std::span<char> memory = lend(room);
	int64_t ret = one_desc(file,
			       {.opcode = KDIRECT_OP_RECV,
				.length = static_cast<uint32_t>(room),
				.addr = reinterpret_cast<uint64_t>(memory.data())},
			       flags);

	if (ret == -KD_EPIPE) /* the end in order */
		return 0;
	if (ret == -KD_ENOMEM) /* to be had again */
		return -KD_EAGAIN;
	buffer.assign(memory.data(), ret > 0 ? static_cast<std::size_t>(ret) : 0);
	return ret;
}

} // namespace sim
