// SPDX-License-Identifier: GPL-2.0-only
// The slots of reads and writes of mappings: who has them, and how they complete.
#include "channel.hh"

using namespace kd;

namespace
{

constexpr uint16_t flushed = 5; // IB_WC_WR_FLUSH_ERR

// Is it the connection that has failed, rather than this work request?
bool lost_connection(const kd_wc &wc)
{
	constexpr uint16_t retries = 12, rnr_retries = 13, fatal = 19, no_response = 20;
	return wc.flushed || wc.status == retries || wc.status == rnr_retries ||
	       wc.status == fatal || wc.status == no_response;
}

} // namespace

kd_io IoSlot::io() const
{
	const wire::RemoteKey key = mapping->at(pos);
	kd_io out{};
	out.kind = atomic  ? (swap ? KD_IO_CMP_SWAP : KD_IO_FETCH_ADD)
		   : fixed ? KD_IO_FIXED
			   : KD_IO_BUFFER;
	out.write = write;
	out.len = length;
	out.rkey = key.rkey;
	out.addr = key.addr;
	out.cqe = const_cast<kd_cqe *>(&cqe);
	out.dma = const_cast<kd_dma *>(&buf);
	out.fixed = fixed;
	out.offset = offset;
	out.operand = operand;
	out.compare = compare;
	return out;
}

kd_io kd::probe_of(const kd_io &last, kd_cqe *cqe)
{
	kd_io read{};
	read.kind = KD_IO_PROBE;
	read.rkey = last.rkey;
	read.addr = last.addr;
	read.cqe = cqe;
	return read;
}

// --- slots ----------------------------------------------------------------------------

Status kd_queue::make_io_slots(Sleepable s)
{
	if (nr_io_large)
		return {};
	const limits::Terms &terms = channel.terms;
	uint32_t copies = limits::io_copies(terms.depth), large = limits::io_large(terms.depth);
	if (!io_copies)
		io_copies = create_array<IoSlot>(s, copies);
	if (!io_large)
		io_large = create_array<IoSlot>(s, large);
	if (!io_copies || !io_large)
		return KD_ENOMEM;
	auto init = [&](IoSlot &slot, bool is_large) {
		slot.queue = this;
		slot.large = is_large;
		kd_cqe_init(&slot.cqe, KD_CQE_IO);
	};
	// What an earlier attempt has made is there already.
	while (nr_io_copies < copies) {
		IoSlot &slot = io_copies[nr_io_copies];
		init(slot, false);
		if (Status st =
			    kd_dma_create(channel.pd, terms.eager_limit, KD_DMA_BOTH, &slot.buf);
		    !st.ok())
			return st;
		SpinGuard guard(tx_lock);
		nr_io_copies++;
		free_io_copies.push_back(&slot);
	}
	for (uint32_t i = 0; i < large; i++)
		init(io_large[i], true);
	SpinGuard guard(tx_lock);
	for (uint32_t i = 0; i < large; i++)
		free_io_large.push_back(&io_large[i]);
	nr_io_large = large;
	return {};
}

Status kd_channel::prepare_io(Sleepable s)
{
	for (uint32_t i = 1; i < nr_queues && !io_ready; i++)
		if (Status st = queues[i]->make_io_slots(s); !st.ok())
			return st;
	io_ready = true;
	return {};
}

// nullptr: there is none now.
IoSlot *kd_queue::claim_io(const Mapping &mapping, bool large)
{
	if (IoSlot *spare = large ? nullptr : spare_io.exchange(nullptr, std::memory_order_acquire))
		return spare;
	SpinGuard guard(tx_lock);
	if (!carries || mapping.away)
		return nullptr;
	IoSlot *slot = large ? free_io_large.pop() : free_io_copies.pop();
	if (slot)
		slot->phase = IoSlot::Phase::Claimed;
	claimed_io += slot && large;
	return slot;
}

bool kd_queue::has_large_io(const Mapping &mapping)
{
	SpinGuard guard(tx_lock);
	return carries && !mapping.away && !free_io_large.empty();
}

IoSlot *kd_queue::await_io(Sleepable s, const Mapping &mapping, bool large, Waiting how, Status &st)
{
	IoSlot *slot = claim_io(mapping, large);
	if (slot)
		return slot;
	{
		SpinGuard guard(tx_lock);
		map_waits.add();
	}
	st = channel.wait_io(s, *this, io_waitq, how, [&] {
		return mapping.refusal() || (slot = claim_io(mapping, large));
	});
	if (!slot && st.ok())
		st = mapping.refusal() ? mapping.refusal() : KD_EPIPE;
	return slot;
}

// Not, or not any more, posted.
void kd_queue::unclaim_io(IoSlot *slot)
{
	IoSlot *none = nullptr;
	if (slot->large ||
	    !spare_io.compare_exchange_strong(none, slot, std::memory_order_release)) {
		SpinGuard guard(tx_lock);
		claimed_io -= slot->large && slot->phase == IoSlot::Phase::Claimed;
		slot->phase = IoSlot::Phase::Free;
		(slot->large ? free_io_large : free_io_copies).push_front(slot);
	}
	io_waitq.wake(0);
	if (slot->large)
		channel.tx_waitq.wake(0); // teardown waits for the claimed ones
}

bool kd_channel::has_io(const Mapping &mapping)
{
	bool any = false;
	for (uint32_t i = 1; i < nr_queues; i++) {
		Queue &queue = *queues[i];
		SpinGuard guard(queue.tx_lock);
		auto look = [&](const IoSlot *slots, uint32_t count) {
			for (uint32_t j = 0; j < count; j++)
				any |= (slots[j].phase == IoSlot::Phase::Posted ||
					slots[j].phase == IoSlot::Phase::Held) &&
				       slots[j].mapping == &mapping;
		};
		look(queue.io_copies, queue.nr_io_copies);
		look(queue.io_large, queue.nr_io_large);
	}
	return any;
}

// --- completions ---------------------------------------------------------------------

void kd_queue::io_done(IoSlot *slot, const kd_wc &wc)
{
	// siw may flush a READ twice (Documentation/testing.md); what was flushed is held.
	if (wc.err) {
		SpinGuard guard(tx_lock);
		if (slot->phase != IoSlot::Phase::Posted)
			return;
	}
	if (slot->large)
		kd_rw_release(qp, &slot->rw, slot->pages, slot->write);
	else if (!wc.err && !slot->write && slot->fixed)
		kd_fixed_sync_cpu(slot->fixed, slot->offset, slot->length);
	else if (!wc.err && !slot->write)
		kd_dma_sync_cpu(channel.pd, &slot->buf, slot->length);
	if (wc.err && !wc.flushed)
		KD_FAIL(channel, KD_EIO, "queue %u: RDMA %s failed: %s", index,
			slot->atomic  ? "atomic operation"
			: slot->write ? "WRITE"
				      : "READ",
			wc.status_name);
	// What failed by itself has one more try.
	bool again = wc.err && (lost_connection(wc) || !std::exchange(slot->blamed, true));
	while (slot && !again)
		slot = finish_io(slot, wc.err, wc.status);
	SpinGuard guard(tx_lock);
	while (slot)
		slot = hold(slot, wc.status);
}

// Whether it fails is seen when the connection is back, or is not; tx_lock. Returns the one
// that ended with it.
IoSlot *kd_queue::hold(IoSlot *slot, uint16_t status)
{
	io_posted -= slot->phase == IoSlot::Phase::Posted;
	slot->phase = IoSlot::Phase::Held;
	slot->status = status;
	return std::exchange(slot->earlier, nullptr);
}

// The device is done with it. Returns the one that ends with it.
IoSlot *kd_queue::finish_io(IoSlot *slot, int err, uint16_t status)
{
	kd_iocb *iocb;
	Request *request;
	uint64_t old = 0;
	WaitQueue *waitq = nullptr;
	int64_t result = err ? -err : int64_t(slot->length);
	bool leaving, freed;
	kd_pages *pages = std::exchange(slot->pages, nullptr);
	if (!slot->keeps)
		kd_pages_free(std::exchange(pages, nullptr));
	IoSlot *earlier;
	{
		SpinGuard guard(tx_lock);
		if (std::exchange(slot->atomic, false) && !err)
			copy_bytes(&old, slot->buf.mem, sizeof(old));
		slot->fixed = nullptr;
		slot->keeps = false;
		earlier = std::exchange(slot->earlier, nullptr);
		io_posted -= slot->phase == IoSlot::Phase::Posted;
		leaving = slot->mapping->current() != MapState::Live;
		iocb = std::exchange(slot->iocb, nullptr);
		request = std::exchange(slot->request, nullptr);
		IoCall *call = slot->call;
		freed = slot->large || !call;
		slot->phase = freed ? IoSlot::Phase::Free : IoSlot::Phase::Done;
		if (freed)
			(slot->large ? free_io_large : free_io_copies).push_front(slot);
		if (call) {
			if (pages)
				call->pages = std::exchange(pages, nullptr);
			if (err && slot->pos < call->failed_at) {
				call->failed_at = slot->pos;
				call->err = err;
			}
			uint32_t left = call->left.load(std::memory_order_relaxed) - 1;
			if (!left)
				waitq = call->waitq;
			// With the last one the call may be gone.
			call->left.store(left, std::memory_order_release);
		}
	}
	kd_pages_free(pages);
	if (waitq)
		waitq->wake(0);
	if (iocb && kind == queue_poll)
		channel.sleepers.fetch_sub(1);
	if (iocb)
		kd_iocb_complete(iocb, result);
	if (request)
		request->part_done(err, status, old);
	if (freed)
		io_waitq.wake(0);
	if (leaving)
		channel.kick();
	return earlier;
}

// In teardown, when nothing is posted any more; callers may still give slots back.
void kd_queue::release_io()
{
	SpinGuard guard(tx_lock);
	for (uint32_t i = 0; i < nr_io_large; i++) {
		IoSlot &slot = io_large[i];
		if (slot.phase == IoSlot::Phase::Posted)
			kd_rw_release(qp, &slot.rw, slot.pages, slot.write);
	}
}

void kd_queue::hold_io()
{
	SpinGuard guard(tx_lock);
	each_io([this](IoSlot &slot) {
		if (slot.phase == IoSlot::Phase::Posted)
			(void)hold(&slot, flushed);
	});
}

void kd_queue::end_io(bool (*match)(const IoSlot &slot, const Mapping *mapping),
		      const Mapping *mapping, int err)
{
	each_io([&](IoSlot &slot) {
		bool ends;
		{
			SpinGuard guard(tx_lock);
			ends = slot.phase == IoSlot::Phase::Held && match(slot, mapping);
		}
		if (ends)
			(void)finish_io(&slot, err, slot.status);
	});
}

// tx_lock
int kd_queue::post_alone(const IoSlot &slot, const kd_io &io, kd_chain *chain)
{
	kd_io ios[2] = {io, {}};
	bool probed = slot.write && channel.iwarp;
	if (probed) {
		ios[1] = probe_of(io, ios[0].cqe);
		ios[0].cqe = nullptr;
	}
	return kd_post_chain(qp, chain, ios, 1 + probed);
}

// The mapping has its keys, and the queue a connection: what is new is posted at once.
Status kd_queue::repost_io(Sleepable, const Mapping &mapping, kd_chain *chain)
{
	Status st;
	each_io([&](IoSlot &slot) {
		{
			SpinGuard guard(tx_lock);
			if (!st.ok() || slot.phase != IoSlot::Phase::Held ||
			    slot.mapping != &mapping)
				return;
		}
		const kd_io io = slot.io();
		if (slot.large)
			st = kd_rw_prepare(qp, &slot.rw, slot.pages, io.addr, io.rkey, slot.write);
		if (!st.ok())
			return;
		SpinGuard guard(tx_lock);
		slot.phase = IoSlot::Phase::Posted;
		int err = slot.large
				  ? kd_rw_post(qp, &slot.rw, &slot.cqe, slot.write && channel.iwarp)
				  : post_alone(slot, io, chain);
		if (err) {
			if (slot.large)
				kd_rw_release(qp, &slot.rw, slot.pages, slot.write);
			slot.phase = IoSlot::Phase::Held;
			st = err;
			return;
		}
		slot.ran = true;
		if (io_posted++ == 0)
			io_since_ns = kd_now_ns();
		channel.io_replayed.fetch_add(1, std::memory_order_relaxed);
	});
	return st;
}
