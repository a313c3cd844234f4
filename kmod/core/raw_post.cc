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

// The device fills the local memory.
bool fills(uint8_t op)
{
	return op == KDIRECT_OP_RECV || op == KDIRECT_OP_READ;
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
	Submission(DescFile &f, bool poll, SubmitterMemory &m)
		: file(f), channel(*f.channel), raw(*channel.raw), queue(*channel.queues[0]),
		  polls(poll), memory(m)
	{
	}
	Status begin(Sleepable s, Request &request, const kdirect_desc &d);
	bool read_user(void *to, uint64_t from, uint32_t len);
	void flush();

private:
	Status check(const kdirect_desc &d);
	Status take_key(const kdirect_desc &d);
	void give_key_back(const RawSlot &slot);
	Status use_fixed(Request &request, const kdirect_desc &d, kd_raw_wr &wr);
	Status pin(const kdirect_desc &d, kd_raw_wr &wr);
	Status post(Request &request, const kdirect_desc &d, kd_raw_wr &wr, RawSlot *slot);
	RawSlot *claim(const kdirect_desc &d, bool pages);
	kd_pages *unmap(RawSlot *slot);
	void give_back(RawSlot *slot, kd_pages *pages);
	uint32_t most_sges(uint8_t op) const
	{
		return op == KDIRECT_OP_RECV   ? raw.recv_sges
		       : op == KDIRECT_OP_READ ? raw.read_sges
					       : raw.send_sges;
	}
	int post_sends();
	int post_recv(RawSlot *slot, const kd_raw_wr &wr);
	void posted(RawSide &side, RawSlot *slot);

	DescFile &file;
	Channel &channel;
	Raw &raw;
	Queue &queue;
	const bool polls;
	SubmitterMemory &memory;
	RawSlot *slots[KD_CHAIN_MAX]; // with DescFile::wrs: to be posted
	uint32_t nr = 0, sges = 0;
};

// --- posting -----------------------------------------------------------------------------

// Its completion waits for tx_lock.
void Submission::posted(RawSide &side, RawSlot *slot)
{
	side.post(slot);
	raw.nr_claimed -= slot->pages != nullptr;
	queue.descs.add();
}

// 0, or why none of them is posted.
int Submission::post_sends()
{
	SpinGuard guard(queue.tx_lock);
	if (queue.sealed || channel.current() != State::Live)
		return raw.refusal() ? raw.refusal() : KD_EPIPE;
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
	if (kd_post_raw_recv(queue.qp, file.chain, &wr))
		return KD_EIO;
	posted(raw.recvs, slot);
	return 0;
}

void Submission::flush()
{
	if (!nr)
		return;
	int err = post_sends();
	if (err == KD_EIO)
		KD_FAIL(channel, KD_EIO, "work requests cannot be posted");
	for (uint32_t i = 0; err && i < nr; i++) {
		Request *request = slots[i]->request;
		give_key_back(*slots[i]);
		give_back(slots[i], unmap(slots[i]));
		request->part_done(err, 0, 0);
	}
	if (!err && queue.kind == Queue::queue_poll && !polls)
		queue.arm();
	nr = sges = 0;
}

// --- slots -------------------------------------------------------------------------------

// nullptr: the connection ends. There is one for each request, so that one is free.
RawSlot *Submission::claim(const kdirect_desc &d, bool pages)
{
	SpinGuard guard(queue.tx_lock);
	RawSlot *slot = queue.sealed ? nullptr : raw.side(d.opcode).free.pop();
	if (!slot)
		return nullptr;
	slot->pages = nullptr;
	slot->fixed = nullptr;
	slot->opcode = d.opcode;
	slot->length = d.length;
	slot->rkey = d.rkey;
	raw.nr_claimed += pages;
	return slot;
}

kd_pages *Submission::unmap(RawSlot *slot)
{
	kd_pages *pages = std::exchange(slot->pages, nullptr);
	if (pages)
		kd_pages_unmap(channel.pd, pages, fills(slot->opcode));
	return pages;
}

// `pages`: for which it was claimed.
void Submission::give_back(RawSlot *slot, kd_pages *pages)
{
	kd_pages_free(pages);
	{
		SpinGuard guard(queue.tx_lock);
		raw.nr_claimed -= pages != nullptr;
		raw.side(slot->opcode).free.push_front(slot);
	}
	if (pages)
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
			if (queue.kind == Queue::queue_poll && !polls)
				queue.arm();
			return {};
		}
		if (err == KD_EIO)
			KD_FAIL(channel, KD_EIO, "a receive cannot be posted");
		give_back(slot, unmap(slot));
		request.part_done(err, 0, 0);
		return err;
	}
	file.wrs[nr] = wr;
	slots[nr++] = slot;
	if (nr == KD_CHAIN_MAX || slot->pages)
		flush();
	return {};
}

// --- memory ------------------------------------------------------------------------------

bool Submission::read_user(void *to, uint64_t from, uint32_t len)
{
	if (kd_user_read(to, from, len, false))
		return true;
	flush();
	return kd_user_read(to, from, len, true);
}

Status Submission::use_fixed(Request &request, const kdirect_desc &d, kd_raw_wr &wr)
{
	request.buffer = file.buffers[d.buffer];
	request.buffer->get();
	uint64_t length = request.buffer->length;
	if (d.addr > length || d.length > length - d.addr)
		return KD_EFAULT;
	if (!d.length)
		return {};
	uint32_t used;
	if (kd_fixed_fit(request.buffer->memory, d.addr, d.length, most_sges(d.opcode), &used) <
	    d.length)
		return KD_EMSGSIZE;
	if (d.opcode != KDIRECT_OP_RECV) {
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
	uint32_t most = most_sges(d.opcode) * pages_of_piece;
	// What it pins is charged to a process, and to its limit: a thread has none.
	if (memory.thread)
		return KD_EOPNOTSUPP;
	if (kd_user_fit(d.addr, d.length, most) < d.length)
		return KD_EMSGSIZE;
	flush();
	return kd_pages_pin_stay(d.addr, d.length, fills(d.opcode), &wr.pages);
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
	SpinGuard guard(queue.tx_lock);
	if (FixedBuffer *buffer = raw.find(slot.rkey))
		buffer->share = FixedBuffer::Share::Valid;
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
	    (raw.iwarp && (has_imm(d.opcode) || d.opcode == KDIRECT_OP_READ)))
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
	bool copies = plain && !fills(d.opcode) && d.length <= channel.copy_limit();
	Status st;
	if (fixed)
		st = use_fixed(request, d, wr);
	else if (plain && (d.addr + d.length < d.addr || !memory.present()))
		st = KD_EFAULT;
	else if (plain && !copies)
		st = pin(d, wr);
	if (!st.ok())
		return st;
	RawSlot *slot = claim(d, wr.pages);
	if (!slot) {
		kd_pages_free(wr.pages);
		return raw.refusal() ? raw.refusal() : KD_EPIPE;
	}
	if (wr.pages) {
		st = kd_pages_map(channel.pd, wr.pages, fills(d.opcode));
		if (!st.ok()) {
			give_back(slot, wr.pages);
			return st;
		}
		slot->pages = wr.pages;
		if (kd_pages_sges(wr.pages) > most_sges(d.opcode))
			st = KD_EMSGSIZE;
	}
	if (copies && !read_user(slot->buf.mem, d.addr, d.length))
		st = KD_EFAULT;
	if (!st.ok()) {
		give_back(slot, unmap(slot));
		return st;
	}
	if (copies || is_atomic(d.opcode))
		wr.dma = &slot->buf;
	slot->fixed = wr.fixed;
	slot->offset = wr.offset;
	return post(request, d, wr, slot);
}

} // namespace

Status kd_desc_file::submit_raw(Sleepable s, kdirect_submit &batch)
{
	SubmitterMemory memory(nullptr);
	ArraySource source(batch);
	Submission submission(*this, batch.flags & KDIRECT_SUBMIT_POLL, memory);
	return submit_all(s, *this, submission, source);
}

Status kd_desc_file::submit_raw(Sleepable s, RingSource &source, bool polls,
				SubmitterMemory &memory)
{
	Submission submission(*this, polls, memory);
	return submit_all(s, *this, submission, source);
}

// --- completions -------------------------------------------------------------------------

RawSlot *RawSide::oldest() const
{
	RawSlot *first = nullptr;
	posted.each([&](RawSlot &slot) {
		if (!first || slot.number < first->number)
			first = &slot;
	});
	return first;
}

// The device is done with it.
void Raw::finish(RawSide &on, RawSlot *slot, int err, uint16_t status)
{
	Request *request;
	uint64_t old = 0;
	if (kd_pages *pages = std::exchange(slot->pages, nullptr)) {
		kd_pages_unmap(channel.pd, pages, fills(slot->opcode));
		kd_pages_free(pages);
	}
	if (is_atomic(slot->opcode) && !err)
		copy_bytes(&old, slot->buf.mem, sizeof(old));
	{
		SpinGuard guard(slot->queue->tx_lock);
		request = std::exchange(slot->request, nullptr);
		on.posted.remove(slot);
		on.free.push_front(slot);
	}
	request->part_done(err, status, old);
}

void Raw::sent(RawSlot *slot, const kd_wc &wc)
{
	if (wc.err && !wc.flushed)
		KD_FAIL(channel, wc.err, "a work request failed: %s", wc.status_name);
	if (!wc.err && slot->fixed && slot->opcode == KDIRECT_OP_READ)
		kd_fixed_sync_cpu(slot->fixed, slot->offset, slot->length);
	if (!wc.err && is_atomic(slot->opcode))
		kd_dma_sync_cpu(channel.pd, &slot->buf, slot->length);
	if (!wc.err && slot->opcode == KDIRECT_OP_LOCAL_INV)
		(void)invalidated(slot->rkey); // the peer may have been faster
	finish(sends, slot, wc.err, wc.status);
}

void Raw::received(RawSlot *slot, const kd_wc &wc)
{
	Request &request = *slot->request;
	int err = wc.err;
	uint32_t len = wc.byte_len;
	if (!wc.write && len > slot->length)
		len = slot->length;
	if (err && !wc.flushed)
		KD_FAIL(channel, err, "a receive failed: %s", wc.status_name);
	if (!err && wc.invalidated && !invalidated(wc.rkey)) {
		KD_FAIL(channel, KD_EPROTO, "the peer invalidated key 0x%x, which is none of ours",
			wc.rkey);
		err = KD_EPROTO;
	}
	if (!err) {
		request.length = len;
		request.flags = uint8_t((wc.with_imm ? KDIRECT_COMPLETION_IMM : 0) |
					(wc.invalidated ? KDIRECT_COMPLETION_INV : 0) |
					(wc.write ? KDIRECT_COMPLETION_WRITE : 0));
		request.data = wc.with_imm ? wc.imm : wc.invalidated ? wc.rkey : 0;
		if (slot->fixed && len && !wc.write)
			kd_fixed_sync_cpu(slot->fixed, slot->offset, len);
	}
	slot->queue->rx.add();
	finish(recvs, slot, err, wc.status);
}
