// SPDX-License-Identifier: GPL-2.0-only
// Submitting descriptors of a mapping: each becomes a request, each of its parts takes a
// slot, and what has its slot is posted with one doorbell. Nobody holds such slots while he
// waits, for other slots or for his own memory: before that everything is posted. Commands of
// io_uring that a program issues with one call may share a doorbell, too: what they leave in
// the batch is posted by whoever submits next, at the latest when io_uring says that this was
// all, or that the program sleeps.
#include "desc_source.hh"

using namespace kd;

namespace
{

// --- posting ---------------------------------------------------------------------------

// Not now: they are posted once the mapping can be used again; tx_lock.
void hold(Queue &queue, MapBatch &batch)
{
	for (uint32_t i = 0; i < batch.nr; i++) {
		IoSlot *slot = batch.slots[i];
		if (slot->large)
			kd_rw_release(queue.qp, &slot->rw, slot->pages, slot->write);
		(void)queue.hold(slot, 0);
	}
}

// Over iWARP they are WRITEs, and end with a READ behind them.
void end_with_read(MapBatch &batch)
{
	for (uint32_t i = 0; i < batch.nr; i++) {
		batch.ios[i].cqe = nullptr;
		batch.slots[i]->earlier = i ? batch.slots[i - 1] : nullptr;
	}
	uint32_t last = batch.nr - 1;
	batch.ios[batch.nr] = probe_of(batch.ios[last], &batch.slots[last]->cqe);
}

int hand_over(Queue &queue, kd_chain *chain, MapBatch &batch)
{
	for (uint32_t i = 0; i < batch.nr; i++)
		batch.slots[i]->phase = IoSlot::Phase::Posted;
	int err;
	bool iwarp = queue.channel.iwarp;
	if (IoSlot *first = batch.slots[0]; first->large) {
		err = kd_rw_post(queue.qp, &first->rw, &first->cqe, iwarp && first->write);
	} else {
		for (uint32_t i = 0; i < batch.nr; i++)
			batch.ios[i] = batch.slots[i]->io();
		if (iwarp)
			end_with_read(batch);
		err = kd_post_chain(queue.qp, chain, batch.ios, batch.nr + iwarp);
	}
	for (uint32_t i = 0; err && i < batch.nr; i++)
		batch.slots[i]->phase = IoSlot::Phase::Claimed;
	if (err)
		return KD_EIO;
	if (queue.io_posted == 0)
		queue.io_since_ns = kd_now_ns();
	queue.io_posted += batch.nr;
	queue.desc_posts.add();
	for (uint32_t i = 0; i < batch.nr; i++)
		batch.slots[i]->ran = true;
	return 0;
}

// 0, or why none of them is posted.
int post(const DescFile &file, MapBatch &batch)
{
	Queue &queue = *batch.queue;
	const Mapping &mapping = *file.mapping;
	SpinGuard guard(queue.tx_lock);
	if (int err = mapping.refusal())
		return err;
	for (uint32_t i = 0; i < batch.nr; i++)
		if (const FixedBuffer *used = batch.slots[i]->request->buffer; used && used->lost)
			return KD_ESTALE;
	bool held = !queue.carries || mapping.away;
	if (held)
		hold(queue, batch);
	else if (int err = hand_over(queue, file.chain, batch))
		return err;
	queue.descs.add(batch.nr);
	for (uint32_t i = 0; i < batch.nr; i++) {
		const IoSlot &slot = *batch.slots[i];
		if (slot.atomic) {
			queue.map_atomics.add();
			continue;
		}
		(slot.write ? queue.map_writes : queue.map_reads).add();
		(slot.write ? queue.map_write_bytes : queue.map_read_bytes).add(slot.length);
		if (slot.large)
			queue.map_pinned_bytes.add(slot.length);
		queue.claimed_io -= slot.large;
	}
	if (held)
		queue.channel.tx_waitq.wake(0); // who takes the connection down waits for claims
	return 0;
}

// It is not posted.
void give_back(IoSlot *slot, int err)
{
	Request *request = std::exchange(slot->request, nullptr);
	Queue &queue = *slot->queue;
	slot->atomic = false;
	slot->fixed = nullptr;
	slot->earlier = nullptr;
	if (slot->large) {
		kd_rw_release(queue.qp, &slot->rw, slot->pages, slot->write);
		kd_pages_free(std::exchange(slot->pages, nullptr));
	}
	queue.unclaim_io(slot);
	request->part_done(err, 0, 0);
}

// With one doorbell; submit_lock.
void flush_batch(const DescFile &file, MapBatch &batch)
{
	if (!batch.nr)
		return;
	if (int err = post(file, batch))
		for (uint32_t i = 0; i < batch.nr; i++)
			give_back(batch.slots[i], err);
	else if (batch.queue->kind == Queue::queue_poll && !batch.polls)
		batch.queue->arm();
	batch.nr = batch.sges = 0;
	batch.left.store(false, std::memory_order_release);
}

// --- one call ---------------------------------------------------------------------------

// One batch, on one queue; submit_lock.
class MapSubmission
{
public:
	MapSubmission(DescFile &f, bool poll, SubmitterMemory &m,
		      const kd_uring_call *command = nullptr)
		: file(f), mapping(*f.mapping), channel(*f.channel), polls(poll),
		  queue(channel.io_queue(poll)), batch(*f.batch), memory(m), call(command),
		  nowait(command && command->nowait)
	{
		if (batch.queue != &queue || batch.polls != polls)
			flush();
		batch.queue = &queue;
		batch.polls = polls;
	}
	Status begin(Sleepable s, Request &request, const kdirect_desc &d);
	Status run(Sleepable s, Request &request, const kdirect_desc &d);
	bool read_user(void *to, uint64_t from, uint32_t len);
	void flush() { flush_batch(file, batch); }

private:
	Status check(const kdirect_desc &d) const;
	Status transfer(Sleepable s, Request &request, const kdirect_desc &d);
	Status fixed_part(Sleepable s, Request &request, const kdirect_desc &d, uint32_t done,
			  uint32_t &len);
	Status copied_part(Sleepable s, Request &request, const kdirect_desc &d, uint32_t done,
			   uint32_t len);
	Status pinned_part(Sleepable s, Request &request, const kdirect_desc &d, uint32_t done,
			   uint32_t &len);
	Status atomic(Sleepable s, Request &request, const kdirect_desc &d);
	Status pin(Sleepable s, const Request &request, const kdirect_desc &d, uint64_t addr,
		   uint32_t len, kd_pages **pages);
	uint32_t max_pages() const { return limits::read_pages(channel.terms); }
	uint32_t max_parts() const { return KD_CHAIN_MAX - channel.iwarp; }
	Status make_room(uint32_t entries);
	IoSlot *claim(Sleepable s, bool large, Status &st);
	void add(IoSlot *slot, Request &request, uint64_t pos, uint32_t len);

	DescFile &file;
	Mapping &mapping;
	Channel &channel;
	const bool polls;
	Queue &queue;
	MapBatch &batch;
	SubmitterMemory &memory;
	const kd_uring_call *call; // or it is one command of io_uring
	const bool nowait;         // which posts nothing if it cannot post all
};

// --- slots -----------------------------------------------------------------------------

IoSlot *MapSubmission::claim(Sleepable s, bool large, Status &st)
{
	IoSlot *slot = queue.claim_io(mapping, large);
	if (slot)
		return slot;
	if (nowait) {
		st = KD_EAGAIN;
		return nullptr;
	}
	flush();
	Waiting how(polls, file.flags.get());
	if (call)
		how.io_mode = KD_WAIT_INTERRUPTIBLE; // io_uring cancels what waits
	return queue.await_io(s, mapping, large, how, st);
}

// For one more WR, with so many entries of a fixed buffer.
Status MapSubmission::make_room(uint32_t entries)
{
	if (batch.nr < max_parts() && batch.sges + entries <= KD_CHAIN_SGES)
		return {};
	if (nowait)
		return KD_EAGAIN;
	flush();
	return {};
}

// There is room for it.
void MapSubmission::add(IoSlot *slot, Request &request, uint64_t pos, uint32_t len)
{
	slot->mapping = &mapping;
	slot->call = nullptr;
	slot->iocb = nullptr;
	slot->request = &request;
	slot->write = request.opcode == KDIRECT_OP_WRITE;
	slot->ran = slot->blamed = false;
	slot->pos = pos;
	slot->length = len;
	batch.slots[batch.nr++] = slot;
	SpinGuard guard(file.lock);
	request.left++;
}

// --- parts -----------------------------------------------------------------------------

bool MapSubmission::read_user(void *to, uint64_t from, uint32_t len)
{
	if (kd_user_read(to, from, len, false))
		return true;
	if (nowait)
		return false;
	flush();
	return kd_user_read(to, from, len, true);
}

Status MapSubmission::fixed_part(Sleepable s, Request &request, const kdirect_desc &d,
				 uint32_t done, uint32_t &len)
{
	uint32_t most = channel.io_sges;
	if (most > KD_CHAIN_SGES)
		most = KD_CHAIN_SGES;
	uint32_t used;
	uint64_t offset = d.addr + done;
	len = kd_fixed_fit(request.buffer->memory, offset, len, most, &used);
	Status st = make_room(used);
	IoSlot *slot = st.ok() ? claim(s, false, st) : nullptr;
	if (!slot)
		return st;
	slot->fixed = request.buffer->memory;
	slot->offset = offset;
	add(slot, request, d.remote + done, len);
	batch.sges += used;
	return {};
}

// A WRITE of what fits into the slot's buffer.
Status MapSubmission::copied_part(Sleepable s, Request &request, const kdirect_desc &d,
				  uint32_t done, uint32_t len)
{
	Status st = make_room(0);
	IoSlot *slot = st.ok() ? claim(s, false, st) : nullptr;
	if (!slot)
		return st;
	if (!read_user(slot->buf.mem, d.addr + done, len)) {
		queue.unclaim_io(slot);
		return nowait ? KD_EAGAIN : KD_EFAULT;
	}
	add(slot, request, d.remote + done, len);
	return {};
}

Status MapSubmission::pin(Sleepable, const Request &request, const kdirect_desc &d, uint64_t addr,
			  uint32_t len, kd_pages **pages)
{
	if (request.buffer)
		return kd_fixed_borrow(request.buffer->memory, addr, len, max_pages(), pages);
	bool to_memory = d.opcode == KDIRECT_OP_READ;
	if (call && call->registered)
		return kd_uring_pages(call, addr, len, to_memory, pages);
	Status st = kd_pages_pin_user(addr, len, to_memory, !nowait, pages);
	return nowait && st.err() == KD_EFAULT ? Status(KD_EAGAIN) : st;
}

Status MapSubmission::pinned_part(Sleepable s, Request &request, const kdirect_desc &d,
				  uint32_t done, uint32_t &len)
{
	bool write = d.opcode == KDIRECT_OP_WRITE;
	uint64_t addr = d.addr + done;
	len = request.buffer ? kd_fixed_room(request.buffer->memory, addr, len, max_pages())
			     : kd_user_fit(addr, len, max_pages());
	len = mapping.part(d.remote + done, len, write);
	if (nowait && (len < d.length || !queue.has_large_io(mapping)))
		return KD_EAGAIN;
	flush();
	kd_pages *pages;
	Status st = pin(s, request, d, addr, len, &pages);
	if (!st.ok())
		return st;
	IoSlot *slot = claim(s, true, st);
	if (!slot) {
		kd_pages_free(pages);
		return st;
	}
	const wire::RemoteKey key = mapping.at(d.remote + done);
	st = kd_rw_prepare(queue.qp, &slot->rw, pages, key.addr, key.rkey, write);
	if (!st.ok()) {
		kd_pages_free(pages);
		queue.unclaim_io(slot);
		return st;
	}
	add(slot, request, d.remote + done, len);
	slot->pages = pages;
	flush();
	return {};
}

Status MapSubmission::atomic(Sleepable s, Request &request, const kdirect_desc &d)
{
	Status st = make_room(0);
	IoSlot *slot = st.ok() ? claim(s, false, st) : nullptr;
	if (!slot)
		return st;
	slot->atomic = true;
	slot->swap = d.opcode == KDIRECT_OP_CMP_SWAP;
	slot->operand = d.operand;
	slot->compare = d.compare;
	add(slot, request, d.remote, d.length);
	return {};
}

// --- descriptors -----------------------------------------------------------------------

// What the program got wrong whatever the mapping is.
bool well_formed(const kdirect_desc &d)
{
	bool fixed = d.flags & KDIRECT_DESC_FIXED;
	if (d.opcode < KDIRECT_OP_READ || (d.flags & ~KDIRECT_DESC_FLAGS) || (d.buffer && !fixed) ||
	    d.rkey || d.imm || d.reserved || d.length > KDIRECT_DESC_LENGTH_MAX)
		return false;
	if (!is_atomic(d.opcode))
		return !d.operand && !d.compare;
	return !d.flags && !d.addr && d.length == 8 && d.remote % 8 == 0 &&
	       (d.opcode == KDIRECT_OP_CMP_SWAP || !d.compare);
}

// What only raw channels have.
bool is_raw(const kdirect_desc &d)
{
	return (d.opcode > KDIRECT_OP_FETCH_ADD && d.opcode <= KDIRECT_OP_LOCAL_INV) ||
	       (d.flags & (KDIRECT_DESC_FENCE | KDIRECT_DESC_SOLICITED));
}

Status MapSubmission::check(const kdirect_desc &d) const
{
	if (is_raw(d))
		return KD_EOPNOTSUPP;
	if (!well_formed(d) || d.opcode > KDIRECT_OP_FETCH_ADD)
		return KD_EINVAL;
	if (int err = mapping.refusal())
		return err;
	bool writes = d.opcode != KDIRECT_OP_READ;
	if (writes ? !file.can_write || mapping.read_only : !file.can_read)
		return KD_EACCES;
	if (d.remote > mapping.size || d.length > mapping.size - d.remote)
		return KD_ERANGE;
	if (is_atomic(d.opcode) && !mapping.atomics)
		return KD_EOPNOTSUPP;
	if ((d.flags & KDIRECT_DESC_FIXED) &&
	    (d.buffer >= KDIRECT_BUFFERS || !file.buffers[d.buffer]))
		return KD_ENOENT;
	return {};
}

Status MapSubmission::transfer(Sleepable s, Request &request, const kdirect_desc &d)
{
	if (d.flags & KDIRECT_DESC_FIXED) {
		request.buffer = file.buffers[d.buffer];
		request.buffer->get();
		uint64_t length = request.buffer->length;
		if (d.addr > length || d.length > length - d.addr)
			return KD_EFAULT;
	} else if (d.addr + d.length < d.addr || !memory.present()) {
		return KD_EFAULT;
	}
	bool copies = d.opcode == KDIRECT_OP_WRITE && d.length <= channel.copy_limit() &&
		      !(call && call->registered);
	// The sink of a READ needs a key there, which pages get.
	bool sinks = channel.iwarp && d.opcode == KDIRECT_OP_READ;
	Status st;
	for (uint32_t done = 0, len; done < d.length && st.ok(); done += len) {
		len = mapping.part(d.remote + done, d.length - done, d.opcode == KDIRECT_OP_WRITE);
		if (request.buffer && !sinks)
			st = fixed_part(s, request, d, done, len);
		else if (copies)
			st = copied_part(s, request, d, done, len);
		else
			st = pinned_part(s, request, d, done, len);
	}
	return st;
}

Status MapSubmission::begin(Sleepable s, Request &request, const kdirect_desc &d)
{
	if (Status st = check(d); !st.ok())
		return st;
	return is_atomic(d.opcode) ? atomic(s, request, d) : transfer(s, request, d);
}

Status MapSubmission::run(Sleepable s, Request &request, const kdirect_desc &d)
{
	constexpr uint32_t usual_parts = 2, usual_sges = 8;
	if (batch.nr + usual_parts > max_parts() || batch.sges + usual_sges > KD_CHAIN_SGES)
		flush();
	const uint32_t others = batch.nr, their_sges = batch.sges;
	request.events = queue.kind == Queue::queue_poll && !polls;
	if (request.events)
		channel.sleepers.fetch_add(1);
	Status st = begin(s, request, d);
	if (st.err() == KD_EAGAIN) {
		while (batch.nr > others)
			give_back(batch.slots[--batch.nr], KD_EAGAIN);
		batch.sges = batch.nr ? their_sges : 0;
		return mapping.refusal() ? Status(mapping.refusal()) : st;
	}
	if (nowait && batch.nr && kd_uring_plug(call))
		batch.left.store(true, std::memory_order_release);
	else
		flush();
	return st;
}

} // namespace

template <class Source>
Status kd_desc_file::submit_mapped(Sleepable s, Source &source, bool polls, SubmitterMemory &memory)
{
	MapSubmission submission(*this, polls, memory);
	return submit_all(s, *this, submission, source);
}

template Status kd_desc_file::submit_mapped(Sleepable, ArraySource &, bool, SubmitterMemory &);
template Status kd_desc_file::submit_mapped(Sleepable, RingSource &, bool, SubmitterMemory &);

Status kd_desc_file::run_mapped(Sleepable s, Request &request, const kdirect_desc &desc,
				const kd_uring_call &call)
{
	SubmitterMemory memory(nullptr);
	return MapSubmission(*this, call.polls, memory, &call).run(s, request, desc);
}

void kd_desc_file::post_mapped(Sleepable)
{
	flush_batch(*this, *batch);
}
