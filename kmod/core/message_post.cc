// SPDX-License-Identifier: GPL-2.0-only
// Submitting descriptors of a session: SENDs and RECVs of messages. What can be done at once
// is; the rest waits, with memory of its own or pinned, and nobody waits for it here.
#include "desc_source.hh"
#include "uring.hh"

using namespace kd;

namespace
{

// One batch; submit_lock.
class MessageSubmission
{
public:
	MessageSubmission(DescFile &f, bool poll, SubmitterMemory &m,
			  const kd_uring_call *command = nullptr)
		: file(f), channel(*f.channel), polls(poll), memory(m), call(command),
		  nowait(command && command->nowait), registered(command && command->registered)
	{
	}
	Status begin(Sleepable s, Request &request, const kdirect_desc &d);
	bool read_user(void *to, uint64_t from, uint32_t len)
	{
		return kd_user_read(to, from, len, true);
	}
	void flush() {}

private:
	Status check(const kdirect_desc &d) const;
	Status use_memory(Request &request, const kdirect_desc &d);
	Status send(Sleepable s, Request &request, const kdirect_desc &d);
	Status send_now(Message &m, const kdirect_desc &d);
	Status copy(const Message &m, const kdirect_desc &d, kd_pages **out);
	Status take_pages(Message &m, const kdirect_desc &d);
	Status recv(Sleepable s, Request &request, const kdirect_desc &d);
	Status recv_now(Message &m, const kdirect_desc &d);
	bool is_plain(const kdirect_desc &d) const
	{
		return d.length && !registered && !(d.flags & KDIRECT_DESC_FIXED);
	}

	DescFile &file;
	Channel &channel;
	const bool polls;
	SubmitterMemory &memory;
	const kd_uring_call *call; // or it is one command of io_uring
	const bool nowait;         // which must not wait
	const bool registered;     // and whose memory is io_uring's
};

// --- SENDs ---------------------------------------------------------------------------------

// KD_EAGAIN: something has to be waited for.
Status MessageSubmission::send_now(Message &m, const kdirect_desc &d)
{
	Claim claim;
	WaitStyle style;
	style.poll = polls;
	if (m.large || channel.sends_wait() || !channel.try_claim(style, false, claim))
		return KD_EAGAIN;
	auto *payload = static_cast<uint8_t *>(claim.slot->buf.mem) + sizeof(wire::DataHeader);
	bool copied = true;
	if (is_plain(d)) {
		copied = kd_user_read(payload, d.addr, d.length, false);
	} else if (d.length) {
		kd_place from = m.place();
		kd_place_read(&from, payload, d.length);
	}
	if (!copied) {
		channel.unclaim(claim);
		return KD_EAGAIN;
	}
	return channel.post_eager(claim, d.length);
}

// Into pages of the kernel's.
Status MessageSubmission::copy(const Message &m, const kdirect_desc &d, kd_pages **out)
{
	kd_place from{}, to{};
	if (!is_plain(d))
		from = m.place();
	if (Status st = kd_pages_alloc(d.length, KD_PAGES_WRITER, &to.pages); !st.ok())
		return st;
	uint8_t some[256];
	for (uint32_t done = 0, n; done < d.length; done += n) {
		n = d.length - done < sizeof(some) ? d.length - done : uint32_t(sizeof(some));
		if (!is_plain(d)) {
			kd_place_read(&from, some, n);
		} else if (!read_user(some, d.addr + done, n)) {
			kd_pages_free(to.pages);
			return KD_EFAULT;
		}
		kd_place_write(&to, some, n);
		from.offset += n;
		to.offset += n;
	}
	*out = to.pages;
	return {};
}

// For a SEND that waits, or is offered.
Status MessageSubmission::take_pages(Message &m, const kdirect_desc &d)
{
	bool fixed = d.flags & KDIRECT_DESC_FIXED;
	bool lent = m.large && !call; // a command must not have to wait for the peer
	if (!d.length || (!m.large && !is_plain(d)))
		return {};
	uint32_t most = channel.max_offer_pages();
	Status st = KD_EOPNOTSUPP; // also more than one MR holds: it is copied
	if (lent && fixed)
		st = kd_fixed_borrow(m.request->buffer->memory, d.addr, d.length, most, &m.pages);
	else if (lent && memory.thread)
		return KD_EOPNOTSUPP; // what it pins would be charged to nobody
	else if (lent && kd_user_fit(d.addr, d.length, most) == d.length)
		st = kd_pages_pin_stay(d.addr, d.length, false, &m.pages);
	if (st.err() != KD_EOPNOTSUPP)
		return st;
	kd_pages *copied;
	st = copy(m, d, &copied);
	if (st.ok())
		kd_pages_free(std::exchange(m.pages, copied));
	return st;
}

Status MessageSubmission::send(Sleepable s, Request &request, const kdirect_desc &d)
{
	Message &m = *request.message;
	m.large = d.length > channel.copy_limit();
	m.length = d.length;
	Status st;
	if (registered && d.length)
		st = kd_uring_pages(call, d.addr, d.length, false, &m.pages);
	if (st.ok())
		st = send_now(m, d);
	if (st.err() == KD_EAGAIN && !nowait) {
		st = take_pages(m, d);
		if (st.ok()) {
			channel.enqueue(s, m);
			return {}; // and it may be gone
		}
	}
	kd_pages_free(std::exchange(m.pages, nullptr));
	return st;
}

// --- RECVs ---------------------------------------------------------------------------------

// KD_EAGAIN: there is none yet, or its memory has to be pinned.
Status MessageSubmission::recv_now(Message &m, const kdirect_desc &d)
{
	RxSlot *slot = channel.take_front(false);
	if (!slot)
		return KD_EAGAIN;
	Status st;
	if (!m.length || m.pages || !is_plain(d)) {
		channel.take_message(m, slot);
	} else if (slot->pages) {
		st = KD_EAGAIN;
	} else {
		uint32_t rest = slot->length - channel.read_offset;
		uint32_t n = m.length < rest ? m.length : rest;
		auto *payload = static_cast<const uint8_t *>(slot->buf.mem) +
				sizeof(wire::DataHeader) + channel.read_offset;
		if (!n || kd_user_write(d.addr, payload, n))
			channel.received(*m.request, slot, n);
		else
			st = KD_EFAULT;
	}
	channel.leave_front(false);
	return st;
}

Status MessageSubmission::recv(Sleepable s, Request &request, const kdirect_desc &d)
{
	Message &m = *request.message;
	uint32_t most = channel.terms.max_message;
	m.length = d.length < most ? d.length : most;
	Status st;
	if (registered && d.length)
		st = kd_uring_pages(call, d.addr, m.length, true, &m.pages);
	else if (is_plain(d) && memory.thread)
		st = KD_EOPNOTSUPP; // as above
	else if (is_plain(d) && nowait &&
		 kd_pages_pin_user(d.addr, m.length, true, false, &m.pages))
		st = KD_EAGAIN;
	if (st.ok())
		st = recv_now(m, d);
	if (st.err() == KD_EAGAIN && !nowait) {
		st = is_plain(d) ? kd_pages_pin_stay(d.addr, m.length, true, &m.pages) : 0;
		if (st.ok()) {
			channel.enqueue(s, m);
			return {}; // and it may be gone
		}
	}
	kd_pages_free(std::exchange(m.pages, nullptr));
	return st;
}

// --- descriptors ---------------------------------------------------------------------------

Status MessageSubmission::check(const kdirect_desc &d) const
{
	bool send = d.opcode == KDIRECT_OP_SEND;
	bool fixed = d.flags & KDIRECT_DESC_FIXED;
	bool known = d.opcode >= KDIRECT_OP_READ && d.opcode <= KDIRECT_OP_LOCAL_INV;
	if ((known && !send && d.opcode != KDIRECT_OP_RECV) ||
	    (d.flags & (KDIRECT_DESC_FENCE | KDIRECT_DESC_SOLICITED)))
		return KD_EOPNOTSUPP;
	if (!known || (d.flags & ~KDIRECT_DESC_FLAGS) || (d.buffer && !fixed) || d.remote ||
	    d.operand || d.compare || d.rkey || d.imm || d.reserved ||
	    d.length > KDIRECT_DESC_LENGTH_MAX)
		return KD_EINVAL;
	if (send ? !file.can_write : !file.can_read)
		return KD_EACCES;
	if (send && d.length > channel.terms.max_message)
		return KD_EMSGSIZE;
	if (send)
		if (int err = channel.send_refusal())
			return err;
	if (fixed && (d.buffer >= KDIRECT_BUFFERS || !file.buffers[d.buffer]))
		return KD_ENOENT;
	return {};
}

Status MessageSubmission::use_memory(Request &request, const kdirect_desc &d)
{
	if (!(d.flags & KDIRECT_DESC_FIXED)) {
		bool bad = d.length && (d.addr + d.length < d.addr || !memory.present());
		return bad ? KD_EFAULT : 0;
	}
	request.buffer = file.buffers[d.buffer];
	request.buffer->get();
	uint64_t length = request.buffer->length;
	return d.addr > length || d.length > length - d.addr ? KD_EFAULT : 0;
}

Status MessageSubmission::begin(Sleepable s, Request &request, const kdirect_desc &d)
{
	Message &m = *request.message;
	m.request = &request;
	m.pages = nullptr;
	m.offset = d.addr;
	m.polls = polls;
	m.waits.store(false, std::memory_order_relaxed);
	Status st = check(d);
	if (st.ok())
		st = use_memory(request, d);
	if (!st.ok())
		return st;
	return d.opcode == KDIRECT_OP_SEND ? send(s, request, d) : recv(s, request, d);
}

} // namespace

template <class Source>
Status kd_desc_file::submit_messages(Sleepable s, Source &source, bool polls,
				     SubmitterMemory &memory)
{
	MessageSubmission submission(*this, polls, memory);
	return submit_all(s, *this, submission, source);
}

template Status kd_desc_file::submit_messages(Sleepable, ArraySource &, bool, SubmitterMemory &);
template Status kd_desc_file::submit_messages(Sleepable, RingSource &, bool, SubmitterMemory &);

Status kd_desc_file::run_message(Sleepable s, Request &request, const kdirect_desc &desc,
				 const kd_uring_call &call)
{
	SubmitterMemory memory(nullptr);
	return MessageSubmission(*this, call.polls, memory, &call).begin(s, request, desc);
}

// In a worker of io_uring, which is interrupted to cancel it.
void kd_desc_file::await_message(Sleepable s, Request &request)
{
	Message &m = *request.message;
	auto begun = [&] { return !m.waits.load(std::memory_order_acquire); };
	if (begun())
		return;
	Status st = channel->wait_event(s, waitq, KD_WAIT_INTERRUPTIBLE, KD_FOREVER, begun);
	if (!st.ok())
		(void)channel->cancel(s, m, KD_EINTR);
}
