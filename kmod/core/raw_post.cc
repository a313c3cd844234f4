// SPDX-License-Identifier: GPL-2.0-only
// Descriptors of a raw channel: each is one work request, and they are posted in the order
// in which they come. Those of the send side are gathered, and share a doorbell; before
// whoever submits waits for anything, what he has gathered is posted.
#include "channel.hh"
#include "desc_source.hh"
#include "raw.hh"

using namespace kd;

namespace
{

bool is_send(uint8_t op)
{
	return op == KDIRECT_OP_SEND || op == KDIRECT_OP_SEND_IMM || op == KDIRECT_OP_SEND_INV;
}

bool has_imm(uint8_t op)
{
	return op == KDIRECT_OP_SEND_IMM || op == KDIRECT_OP_WRITE_IMM;
}

// Works on the peer's memory.
bool has_remote(uint8_t op)
{
	return is_atomic(op) || op == KDIRECT_OP_READ || op == KDIRECT_OP_WRITE ||
	       op == KDIRECT_OP_WRITE_IMM;
}

// What the program got wrong whatever the channel is.
bool well_formed(const kdirect_desc &d)
{
	uint8_t op = d.opcode;
	bool fixed = d.flags & KDIRECT_DESC_FIXED;
	bool memory = !is_atomic(op) && op != KDIRECT_OP_LOCAL_INV;
	bool keyed = has_remote(op) || op == KDIRECT_OP_SEND_INV || op == KDIRECT_OP_LOCAL_INV;
	bool solicits = is_send(op) || op == KDIRECT_OP_WRITE_IMM;
	if (op < KDIRECT_OP_READ || op > KDIRECT_OP_LOCAL_INV || (d.flags & ~KDIRECT_DESC_FLAGS) ||
	    d.reserved || d.length > KDIRECT_DESC_LENGTH_MAX)
		return false;
	if ((d.buffer && !fixed) || (!memory && (fixed || d.addr)) ||
	    (!has_remote(op) && d.remote) || (!keyed && d.rkey) || (!has_imm(op) && d.imm))
		return false;
	if (((d.flags & KDIRECT_DESC_FENCE) && op == KDIRECT_OP_RECV) ||
	    ((d.flags & KDIRECT_DESC_SOLICITED) && !solicits))
		return false;
	if (!is_atomic(op))
		return !d.operand && !d.compare && (memory || !d.length);
	return d.length == 8 && d.remote % 8 == 0 && (op == KDIRECT_OP_CMP_SWAP || !d.compare);
}

kd_raw_op op_of(uint8_t opcode)
{
	switch (opcode) {
	case KDIRECT_OP_READ: return KD_RAW_READ;
	case KDIRECT_OP_WRITE: return KD_RAW_WRITE;
	case KDIRECT_OP_CMP_SWAP: return KD_RAW_CMP_SWAP;
	case KDIRECT_OP_FETCH_ADD: return KD_RAW_FETCH_ADD;
	case KDIRECT_OP_SEND_IMM: return KD_RAW_SEND_IMM;
	case KDIRECT_OP_SEND_INV: return KD_RAW_SEND_INV;
	case KDIRECT_OP_WRITE_IMM: return KD_RAW_WRITE_IMM;
	case KDIRECT_OP_LOCAL_INV: return KD_RAW_LOCAL_INV;
	default: return KD_RAW_SEND;
	}
}

// One batch; submit_lock.
class Submission
{
public:
	Submission(Sleepable s, DescFile &f, bool poll, SubmitterMemory &m,
		   const kd_uring_call *command = nullptr)
		: sleepable(s), file(f), channel(*f.channel), raw(*channel.raw),
		  queue(*channel.queues[0]), polls(poll), memory(m), call(command),
		  nowait(command && command->nowait), registered(command && command->registered)
	{
	}
	Status begin(Sleepable s, Request &request, const kdirect_desc &d);
	Status run(Sleepable s, Request &request, const kdirect_desc &d);
	bool read_user(void *to, uint64_t from, uint32_t len);
	void flush();

private:
	Status check(const kdirect_desc &d);
	Status take_key(const kdirect_desc &d);
	void give_key_back(const RawSlot &slot);
	Status use_fixed(Request &request, const kdirect_desc &d, kd_raw_wr &wr, bool &one_mr);
	Status pin(const kdirect_desc &d, kd_raw_wr &wr);
	Status map(RawSlot *slot, const kdirect_desc &d, kd_raw_wr &wr, bool one_mr);
	Status describe(RawSlot *slot, kd_raw_wr &wr);
	Status post(Request &request, const kdirect_desc &d, kd_raw_wr &wr, RawSlot *slot);
	RawSlot *claim(const kdirect_desc &d, bool counts);
	void unmap(RawSlot *slot);
	void give_back(RawSlot *slot);
	// Its memory must be one MR: the peer writes there with a key.
	bool is_sink(uint8_t op) const { return raw.iwarp && op == KDIRECT_OP_READ; }
	uint32_t most_sges(uint8_t op) const
	{
		return op == KDIRECT_OP_RECV   ? raw.recv_sges
		       : op == KDIRECT_OP_READ ? raw.read_sges
					       : raw.send_sges;
	}
	Status settle();
	int post_sends();
	int post_recv(RawSlot *slot, const kd_raw_wr &wr);
	void posted(RawSide &side, RawSlot *slot);

	const Sleepable sleepable;
	DescFile &file;
	Channel &channel;
	Raw &raw;
	Queue &queue;
	const bool polls;
	SubmitterMemory &memory;
	const kd_uring_call *call;    // or it is one command of io_uring
	const bool nowait;            // which must not wait
	const bool registered;        // and whose memory is io_uring's
	RawSlot *slots[KD_CHAIN_MAX]; // with DescFile::wrs: to be posted
	uint32_t nr = 0, sges = 0;
	bool waits = false; // a receive did, for its memory
};

// --- posting -----------------------------------------------------------------------------

// Its completion waits for tx_lock.
void Submission::posted(RawSide &side, RawSlot *slot)
{
	side.posted.push_back(slot);
	raw.nr_claimed -= std::exchange(slot->claimed, false);
	queue.descs.add();
}

// Receives that were submitted before are there for the peer: what is sent, or said otherwise,
// may ask it for more.
Status Submission::settle()
{
	auto settled = [&] {
		SpinGuard guard(queue.tx_lock);
		return raw.waiting.empty() || raw.refusal() || channel.current() != State::Live;
	};
	if (nowait)
		return KD_EAGAIN;
	Waiting how(polls, file.flags.get());
	if (call)
		how.io_mode = KD_WAIT_INTERRUPTIBLE; // io_uring cancels what waits
	return channel.wait_io(sleepable, queue, raw.waitq, how, settled);
}

// 0, or why none of them is posted; KD_EAGAIN: not before settle().
int Submission::post_sends()
{
	SpinGuard guard(queue.tx_lock);
	if (queue.sealed || raw.refusal() || channel.current() != State::Live)
		return raw.refusal() ? raw.refusal() : KD_EPIPE;
	if (!raw.waiting.empty())
		return KD_EAGAIN;
	if (kd_post_raw(queue.qp, file.chain, file.wrs, nr))
		return KD_EIO;
	for (uint32_t i = 0; i < nr; i++)
		posted(raw.sends, slots[i]);
	queue.desc_posts.add();
	queue.tx.add(nr);
	return 0;
}

int Submission::post_recv(RawSlot *slot, const kd_raw_wr &wr)
{
	SpinGuard guard(queue.tx_lock);
	if (queue.sealed || raw.refusal())
		return raw.refusal() ? raw.refusal() : KD_EPIPE;
	if (slot->mr == RawSlot::Mr::None && raw.waiting.empty()) {
		if (kd_post_raw_recv(queue.qp, file.chain, &wr))
			return KD_EIO;
		posted(raw.recvs, slot);
		return 0;
	}
	posted(raw.recvs, slot);
	raw.waiting.push_back(slot);
	raw.post_waiting();
	waits = true;
	return 0;
}

void Submission::flush()
{
	Status st;
	if (std::exchange(waits, false))
		st = settle();
	if (!nr)
		return;
	int err = st.ok() ? post_sends() : st.err();
	if (err == KD_EAGAIN) {
		st = settle();
		err = st.ok() ? post_sends() : st.err();
	}
	if (err == KD_EIO)
		KD_FAIL(channel, KD_EIO, "work requests cannot be posted");
	for (uint32_t i = 0; err && i < nr; i++) {
		Request *request = slots[i]->request;
		give_key_back(*slots[i]);
		give_back(slots[i]);
		request->part_done(err, 0, 0);
	}
	if (!err && queue.kind == Queue::queue_poll && !polls)
		queue.arm();
	nr = sges = 0;
}

// --- slots -------------------------------------------------------------------------------

// nullptr: the connection ends. There is one for each request, so that one is free.
RawSlot *Submission::claim(const kdirect_desc &d, bool counts)
{
	SpinGuard guard(queue.tx_lock);
	RawSlot *slot = queue.sealed ? nullptr : raw.side(d.opcode).free.pop();
	if (!slot)
		return nullptr;
	slot->pages = nullptr;
	slot->fixed = nullptr;
	slot->mr = RawSlot::Mr::None;
	slot->opcode = d.opcode;
	slot->length = d.length;
	slot->rkey = d.rkey;
	slot->claimed = counts;
	raw.nr_claimed += counts;
	return slot;
}

// It is not posted.
void Submission::give_back(RawSlot *slot)
{
	if (kd_pages *pages = std::exchange(slot->pages, nullptr)) {
		kd_pages_unmap(channel.pd, pages, fills(slot->opcode));
		kd_pages_free(pages);
	}
	bool counted = std::exchange(slot->claimed, false);
	{
		SpinGuard guard(queue.tx_lock);
		raw.nr_claimed -= counted;
		raw.side(slot->opcode).free.push_front(slot);
	}
	if (counted)
		channel.tx_waitq.wake(0); // teardown waits for it
}

Status Submission::post(Request &request, const kdirect_desc &d, kd_raw_wr &wr, RawSlot *slot)
{
	slot->request = &request;
	wr.cqe = &slot->cqe;
	{
		SpinGuard guard(file.lock);
		request.left++;
	}
	if (d.opcode == KDIRECT_OP_RECV) {
		int err = post_recv(slot, wr);
		if (!err) {
			// What registers is looked after even if nobody polls.
			if (queue.kind == Queue::queue_poll && (!polls || waits))
				queue.arm();
			return {};
		}
		if (err == KD_EIO)
			KD_FAIL(channel, KD_EIO, "a receive cannot be posted");
		give_back(slot);
		request.part_done(err, 0, 0);
		return err;
	}
	file.wrs[nr] = wr;
	slots[nr++] = slot;
	if (nr == KD_CHAIN_MAX || slot->claimed)
		flush();
	return {};
}

// --- memory ------------------------------------------------------------------------------

bool Submission::read_user(void *to, uint64_t from, uint32_t len)
{
	if (kd_user_read(to, from, len, false))
		return true;
	if (nowait)
		return false;
	flush();
	return kd_user_read(to, from, len, true);
}

// `one_mr`: it has to be one.
Status Submission::use_fixed(Request &request, const kdirect_desc &d, kd_raw_wr &wr, bool &one_mr)
{
	request.buffer = file.buffers[d.buffer];
	request.buffer->get();
	uint64_t length = request.buffer->length;
	if (d.addr > length || d.length > length - d.addr)
		return KD_EFAULT;
	if (!d.length)
		return {};
	uint32_t used;
	one_mr = is_sink(d.opcode) || kd_fixed_fit(request.buffer->memory, d.addr, d.length,
						   most_sges(d.opcode), &used) < d.length;
	if (d.opcode != KDIRECT_OP_RECV && !one_mr) {
		if (sges + used > KD_CHAIN_SGES)
			flush();
		sges += used;
	}
	wr.fixed = request.buffer->memory;
	wr.offset = d.addr;
	return {};
}

// Of the program, for as long as the work request takes.
Status Submission::pin(const kdirect_desc &d, kd_raw_wr &wr)
{
	constexpr uint32_t pages_of_piece = 16;
	uint32_t most = is_sink(d.opcode) ? 0 : most_sges(d.opcode) * pages_of_piece;
	if (most < channel.mr_pages)
		most = channel.mr_pages;
	// What it pins is charged to a process, and to its limit: a thread has none.
	if (memory.thread)
		return KD_EOPNOTSUPP;
	if (kd_user_fit(d.addr, d.length, most) < d.length)
		return KD_EMSGSIZE;
	if (registered)
		return kd_uring_pages(call, d.addr, d.length, fills(d.opcode), &wr.pages);
	if (nowait)
		return KD_EAGAIN;
	flush();
	return kd_pages_pin_stay(d.addr, d.length, fills(d.opcode), &wr.pages);
}

// In one MR, which the slot keeps.
Status Submission::describe(RawSlot *slot, kd_raw_wr &wr)
{
	constexpr uint32_t least_pages = 64;
	uint32_t pages = kd_raw_pages(&wr), room = least_pages;
	if (pages > channel.mr_pages)
		return KD_EMSGSIZE;
	if (nowait)
		return KD_EAGAIN;
	flush();
	if (slot->frwr && slot->frwr_pages < pages)
		kd_frwr_destroy(std::exchange(slot->frwr, nullptr));
	if (!slot->frwr) {
		while (room < pages)
			room *= 2;
		if (room > channel.mr_pages)
			room = channel.mr_pages;
		if (Status st = kd_frwr_create(channel.pd, room, &slot->frwr); !st.ok())
			return st;
		slot->frwr_pages = room;
	}
	Status st = kd_frwr_map(slot->frwr, &wr);
	if (!st.ok())
		return st.err() == KD_EFBIG ? Status(KD_EMSGSIZE) : st;
	slot->mr = RawSlot::Mr::Described;
	wr.frwr = slot->frwr;
	wr.reg_cqe = &slot->reg_cqe;
	wr.sink = is_sink(slot->opcode);
	return {};
}

// For the device.
Status Submission::map(RawSlot *slot, const kdirect_desc &d, kd_raw_wr &wr, bool one_mr)
{
	if (wr.pages) {
		if (Status st = kd_pages_map(channel.pd, wr.pages, fills(d.opcode)); !st.ok()) {
			kd_pages_free(wr.pages);
			return st;
		}
		slot->pages = wr.pages;
		one_mr = is_sink(d.opcode) || kd_pages_sges(wr.pages) > most_sges(d.opcode);
	}
	return one_mr ? describe(slot, wr) : Status();
}

// --- keys --------------------------------------------------------------------------------

// From here on it is being taken back.
Status Submission::take_key(const kdirect_desc &d)
{
	SpinGuard guard(queue.tx_lock);
	FixedBuffer *buffer = raw.find(d.rkey);
	if (!buffer || buffer->share != FixedBuffer::Share::Valid)
		return KD_ENOENT;
	buffer->share = FixedBuffer::Share::Leaving;
	return {};
}

void Submission::give_key_back(const RawSlot &slot)
{
	if (slot.opcode != KDIRECT_OP_LOCAL_INV)
		return;
	{
		SpinGuard guard(queue.tx_lock);
		FixedBuffer *buffer = raw.find(slot.rkey);
		if (!buffer)
			return;
		if (buffer->share == FixedBuffer::Share::Leaving) {
			buffer->share = FixedBuffer::Share::Valid;
			return;
		}
	}
	raw.taken_back(slot.rkey);
}

// --- descriptors -------------------------------------------------------------------------

Status Submission::check(const kdirect_desc &d)
{
	if (!well_formed(d))
		return KD_EINVAL;
	if (int err = raw.refusal())
		return err;
	if (d.opcode != KDIRECT_OP_RECV && channel.current() != State::Live)
		return KD_ENOTCONN;
	bool reads = is_atomic(d.opcode) || d.opcode == KDIRECT_OP_READ;
	if ((is_atomic(d.opcode) && !channel.atomics) || (reads && !raw.may_read()) ||
	    (raw.iwarp && (has_imm(d.opcode) || (d.opcode == KDIRECT_OP_READ && !d.length))))
		return KD_EOPNOTSUPP;
	if (d.length > raw.max_length)
		return KD_EMSGSIZE;
	if ((d.flags & KDIRECT_DESC_FIXED) &&
	    (d.buffer >= KDIRECT_BUFFERS || !file.buffers[d.buffer]))
		return KD_ENOENT;
	return d.opcode == KDIRECT_OP_LOCAL_INV ? take_key(d) : Status();
}

Status Submission::begin(Sleepable, Request &request, const kdirect_desc &d)
{
	if (Status st = check(d); !st.ok())
		return st;
	kd_raw_wr wr{};
	wr.op = op_of(d.opcode);
	wr.fence = d.flags & KDIRECT_DESC_FENCE;
	wr.solicited = d.flags & KDIRECT_DESC_SOLICITED;
	wr.len = d.length;
	wr.rkey = d.rkey;
	wr.imm = d.imm;
	wr.addr = d.remote;
	wr.operand = d.operand;
	wr.compare = d.compare;
	bool fixed = d.flags & KDIRECT_DESC_FIXED;
	bool plain = !fixed && !is_atomic(d.opcode) && d.length;
	bool copies = plain && !registered && !fills(d.opcode) && d.length <= channel.copy_limit();
	bool one_mr = false;
	Status st;
	if (fixed)
		st = use_fixed(request, d, wr, one_mr);
	else if (plain && (d.addr + d.length < d.addr || !memory.present()))
		st = KD_EFAULT;
	else if (plain && !copies)
		st = pin(d, wr);
	if (!st.ok())
		return st;
	RawSlot *slot = claim(d, wr.pages || one_mr);
	if (!slot) {
		kd_pages_free(wr.pages);
		return raw.refusal() ? raw.refusal() : KD_EPIPE;
	}
	st = map(slot, d, wr, one_mr);
	if (copies && !read_user(slot->buf.mem, d.addr, d.length))
		st = nowait ? KD_EAGAIN : KD_EFAULT;
	if (!st.ok()) {
		give_back(slot);
		return st;
	}
	if (copies || is_atomic(d.opcode))
		wr.dma = &slot->buf;
	slot->fixed = wr.fixed;
	slot->offset = wr.offset;
	return post(request, d, wr, slot);
}

Status Submission::run(Sleepable s, Request &request, const kdirect_desc &d)
{
	request.events = queue.kind == Queue::queue_poll && !polls;
	if (request.events)
		channel.sleepers.fetch_add(1);
	Status st = begin(s, request, d);
	flush();
	return st;
}

} // namespace

template <class Source>
Status kd_desc_file::submit_raw(Sleepable s, Source &source, bool polls, SubmitterMemory &memory)
{
	Submission submission(s, *this, polls, memory);
	return submit_all(s, *this, submission, source);
}

template Status kd_desc_file::submit_raw(Sleepable, ArraySource &, bool, SubmitterMemory &);
template Status kd_desc_file::submit_raw(Sleepable, RingSource &, bool, SubmitterMemory &);

Status kd_desc_file::run_raw(Sleepable s, Request &request, const kdirect_desc &desc,
			     const kd_uring_call &call)
{
	SubmitterMemory memory(nullptr);
	return Submission(s, *this, call.polls, memory, &call).run(s, request, desc);
}
