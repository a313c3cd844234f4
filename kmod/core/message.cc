// SPDX-License-Identifier: GPL-2.0-only
// SENDs and RECVs that wait: of all open files of a session's node in the order in which
// they were submitted. Whatever wakes callers who wait for the same has a worker look.
#include "channel.hh"

using namespace kd;

namespace
{

constexpr uint32_t at_once = 64; // then a worker goes on

// A command of io_uring may wait in a worker for it to begin: `change` says that it has.
template <class Change>
void begin_and_tell(Message &message, const Change &change)
{
	DescFile &file = *message.request->file;
	bool command = message.request->command;
	if (command)
		file.refs.get();
	message.waits.store(false, std::memory_order_release);
	change();
	if (!command)
		return;
	file.waitq.wake(0);
	file.put_later();
}

void end(Sleepable, Message &message, int err)
{
	begin_and_tell(message, [&] {
		kd_pages_free(std::exchange(message.pages, nullptr));
		message.request->part_done(err, 0, 0);
	});
}

// Those of `file`, in their order; their number.
uint32_t sort_out(Messages &from, const DescFile &file, Messages &out)
{
	Messages kept;
	uint32_t nr = 0;
	while (Message *message = from.pop()) {
		bool its = message->request->file == &file;
		(its ? out : kept).push_back(message);
		nr += its;
	}
	from = kept;
	return nr;
}

} // namespace

kd_place Message::place() const
{
	kd_place at{};
	at.pages = pages;
	if (!pages && length) {
		at.fixed = request->buffer->memory;
		at.offset = offset;
	}
	return at;
}

// --- open files ---------------------------------------------------------------------------

void kd_channel::opened(DescFile &file)
{
	opens.fetch_add(1);
	SpinGuard guard(message_lock);
	files.add(&file);
}

void kd_channel::closed(Sleepable s, DescFile &file)
{
	opens.fetch_sub(1);
	Messages given_up;
	uint32_t nr;
	// All at once: what is left of them must not go on without those before it.
	{
		SpinGuard guard(message_lock);
		files.remove(&file);
		nr = sort_out(sends, file, given_up);
	}
	tx_waitq.descs.fetch_sub(nr);
	{
		SpinGuard guard(rx_lock);
		nr = sort_out(recvs, file, given_up);
	}
	rx_waitq.descs.fetch_sub(nr);
	if (given_up.empty())
		return;
	while (Message *message = given_up.pop())
		end(s, *message, KD_EPIPE);
	// They may have been in the way of others.
	queue_work(&message_work);
	wake_readers();
}

int kd_channel::refusal() const
{
	if (!ended())
		return 0;
	return delete_requested ? KD_ENODEV : KD_EPIPE;
}

void MessageWaitQueue::tell(unsigned key, bool any)
{
	channel_.woken(key, any);
}

void kd_channel::woken(unsigned key, bool descs)
{
	if (descs)
		queue_work(&message_work);
	if (!(key & KD_WAKE_END))
		return;
	SpinGuard guard(message_lock);
	files.each([](DescFile &file) {
		file.waitq.wake(0);
		file.poll_waitq.wake(KD_WAKE_END);
	});
}

void kd_channel::message_work_fn(kd_work *work)
{
	Sleepable s = ShimEntry::may_sleep();
	auto *c = KD_CONTAINER(work, kd_channel, message_work);
	c->send_waiting(s);
	c->serve_recvs(s);
	c->put(s);
}

// --- waiting ------------------------------------------------------------------------------

void kd_channel::enqueue(Sleepable s, Message &message)
{
	bool send = message.request->opcode == KDIRECT_OP_SEND;
	bool polls = message.polls;
	message.request->add_part();
	message.waits.store(true, std::memory_order_relaxed);
	if (send) {
		SpinGuard guard(message_lock);
		sends.push_back(&message);
		tx_waitq.descs.fetch_add(1);
	} else {
		SpinGuard guard(rx_lock);
		recvs.push_back(&message);
		rx_waitq.descs.fetch_add(1);
	}
	if (has_poll_queues() && !polls)
		arm_all();
	if (send)
		send_waiting(s);
	else
		serve_recvs(s);
}

// Ends the first of `from` that `match` accepts, if there is one.
template <class Match>
bool kd_channel::cancel_first(Sleepable s, Messages &from, const Match &match, int err)
{
	Message *found;
	if (&from == &sends) {
		SpinGuard guard(message_lock);
		found = sends.take(match);
		tx_waitq.descs.fetch_sub(found != nullptr);
	} else {
		SpinGuard guard(rx_lock);
		found = recvs.take(match);
		rx_waitq.descs.fetch_sub(found != nullptr);
	}
	if (!found)
		return false;
	end(s, *found, err);
	// It may have been in the way of others.
	if (&from == &sends)
		queue_work(&message_work);
	else
		wake_readers();
	return true;
}

bool kd_channel::cancel(Sleepable s, Message &message, int err)
{
	auto same = [&](const Message &other) { return &other == &message; };
	bool send = message.request->opcode == KDIRECT_OP_SEND;
	return cancel_first(s, send ? sends : recvs, same, err);
}

// --- sending ------------------------------------------------------------------------------

// The message has its claim, or the channel has ended.
void kd_channel::send_claimed(Sleepable s, Message &message, const Claim &claim)
{
	if (!claim.slot) {
		int err = send_refusal();
		end(s, message, err ? err : KD_EPIPE);
		return;
	}
	if (!message.large) {
		auto *payload =
			static_cast<uint8_t *>(claim.slot->buf.mem) + sizeof(wire::DataHeader);
		kd_place from = message.place();
		kd_place_read(&from, payload, message.length);
		Status st = post_eager(claim, message.length);
		end(s, message, st.err());
		return;
	}
	begin_and_tell(message, [&] {
		Request &request = *message.request;
		kd_pages *pages = std::exchange(message.pages, nullptr);
		OfferWait *waiter = request.command ? nullptr : &message.offered;
		message.offered.finished.store(false, std::memory_order_relaxed);
		message.offered.delivered = false;
		message.offered.request = &request;
		Status st = post_offer(claim, pages, message.length, waiter);
		if (st.ok() && waiter)
			return; // and it may be gone
		if (!st.ok())
			kd_pages_free(pages);
		request.part_done(st.err(), 0, 0);
	});
}

// The first that waits. False: none does, or there is no room for it.
bool kd_channel::send_next(Sleepable s)
{
	WaitStyle style;
	bool large;
	{
		SpinGuard guard(message_lock);
		const Message *first = sends.front();
		if (!first)
			return false;
		style.poll = first->polls;
		large = first->large;
	}
	Claim claim;
	if (!send_refusal() && !try_claim(style, large, claim))
		return false;
	Message *message;
	{
		SpinGuard guard(message_lock);
		message = sends.front();
		// It may be another by now, or it was closed.
		if (message && message->polls == style.poll && message->large == large)
			(void)sends.pop();
		else
			message = nullptr;
	}
	if (message) {
		send_claimed(s, *message, claim);
		tx_waitq.descs.fetch_sub(1);
	} else if (claim.slot) {
		unclaim(claim);
	}
	return true;
}

void kd_channel::send_waiting(Sleepable s)
{
	uint32_t left = at_once;
	for (bool more = true; more;) {
		{
			SpinGuard guard(message_lock);
			send_again = sending;
			if (sending)
				return;
			sending = true;
		}
		while (left && send_next(s))
			left--;
		SpinGuard guard(message_lock);
		sending = false;
		more = send_again && left;
	}
	if (!left)
		queue_work(&message_work);
}

// --- receiving ----------------------------------------------------------------------------

RxSlot *kd_channel::take_front(bool by_read)
{
	if (deleted_here())
		return nullptr;
	SpinGuard guard(rx_lock);
	if (recvs_first() || (!by_read && reading))
		return nullptr;
	RxSlot *slot = order.front();
	(by_read ? reading : serving) = slot;
	return slot;
}

void kd_channel::leave_front(bool by_read)
{
	bool more;
	{
		SpinGuard guard(rx_lock);
		(by_read ? reading : serving) = false;
		more = !recvs.empty();
	}
	if (more)
		queue_work(&message_work);
	else if (!by_read)
		wake_readers();
}

void kd_channel::read_on(RxSlot *slot, uint32_t n)
{
	read_offset += n;
	if (read_offset < slot->length)
		return;
	read_offset = 0;
	consume(slot);
}

// As much of the first message as fits.
void kd_channel::take_message(Message &message, RxSlot *slot)
{
	Request &request = *message.request;
	uint32_t rest = slot->length - read_offset;
	uint32_t n = message.length < rest ? message.length : rest;
	kd_place to = message.place();
	auto *payload = static_cast<const uint8_t *>(slot->buf.mem) + sizeof(wire::DataHeader);
	if (n && slot->pages)
		kd_place_copy(&to, slot->pages, read_offset, n);
	else if (n)
		kd_place_write(&to, payload + read_offset, n);
	received(request, slot, n);
}

void kd_channel::received(Request &request, RxSlot *slot, uint32_t n)
{
	uint32_t rest = slot->length - read_offset;
	request.length = n;
	request.flags = n < rest ? KDIRECT_COMPLETION_MORE : 0;
	request.data = rest - n;
	read_on(slot, n);
}

// The first RECV that waits. False: none does, or there is nothing for it.
bool kd_channel::serve_recv(Sleepable s)
{
	int over = read_end(); // before we look
	bool lost = deleted_here();
	Message *message;
	RxSlot *slot;
	{
		SpinGuard guard(rx_lock);
		if (reading || serving || recvs.empty())
			return false;
		slot = lost ? nullptr : order.front();
		if (!slot && over < 0)
			return false;
		message = recvs.pop();
		rx_waitq.descs.fetch_sub(1);
		serving = true;
	}
	if (slot)
		take_message(*message, slot);
	// The end is no message, of no bytes.
	end(s, *message, slot ? 0 : over ? over : KD_EPIPE);
	SpinGuard guard(rx_lock);
	serving = false;
	return true;
}

void kd_channel::serve_recvs(Sleepable s)
{
	uint32_t done = 0;
	while (done < at_once && serve_recv(s))
		done++;
	if (done == at_once)
		queue_work(&message_work);
	if (done)
		wake_readers();
}

// What no RECV waits for is theirs.
void kd_channel::wake_readers()
{
	bool any;
	{
		SpinGuard guard(rx_lock);
		any = recvs.empty();
	}
	if (any)
		rx_waitq.wake(KD_WAKE_IN);
}
