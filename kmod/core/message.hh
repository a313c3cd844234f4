// SPDX-License-Identifier: GPL-2.0-only
// SENDs and RECVs of the open files of a session's node, as far as they have to wait.
#pragma once

#include "queue.hh"

namespace kd
{

// A SEND, or a RECV, that is under way. Its request owns it.
struct Message {
	// Where its memory is, unless the program has to be there.
	kd_place place() const;

	Link<Message> link; // of those that wait
	Request *request;
	kd_pages *pages; // the memory, unless it is the request's fixed buffer, from `offset`
	uint64_t offset;
	uint32_t length;
	bool polls;
	bool large;              // SEND: it is offered
	std::atomic<bool> waits; // it has not begun
	OfferWait offered;
};

using Messages = Fifo<Message, &Message::link>;

// Where callers wait for room or for messages. Descriptors do so, too.
class MessageWaitQueue : public WaitQueue
{
public:
	explicit MessageWaitQueue(Channel &owner) : channel_(owner) {}
	void wake(unsigned key)
	{
		WaitQueue::wake(key);
		bool any = descs.load() != 0;
		if (any || (key & KD_WAKE_END))
			tell(key, any);
	}
	std::atomic<uint32_t> descs{0}; // that wait

private:
	void tell(unsigned key, bool any);

	Channel &channel_;
};

} // namespace kd
