// SPDX-License-Identifier: GPL-2.0-only
// Reading and writing a mapping: one-sided RDMA READ and WRITE with the peer's keys.
//
// Up to the channel's eager limit bytes go through the buffer of a slot; what is longer,
// and what is asynchronous, goes to and from the caller's own pages. A slot belongs to
// the caller until the work request is posted, then to its completion: a caller who is
// killed only stops waiting, and his pages stay pinned until the device is done.
// Nobody who waits for a slot holds one, so that waiting always ends.
#include "channel.hh"

#include "../../uapi/kdirect.h"

using namespace kd;

namespace
{

// One call of a program: some bytes of a mapping, on one queue.
class Transfer
{
public:
	Transfer(Mapping &m, kd_iter *i, size_t length, uint64_t position, bool is_write, bool poll,
		 uint32_t open_flags)
		: mapping(m), channel(*m.channel), iter(i), left(length), begin(position),
		  pos(position), write(is_write),
		  how(poll, open_flags,
		      poll ? PollPolicy::class_of(length) : PollPolicy::any_class),
		  queue(channel.io_queue(poll))
	{
	}
	// Posts all of it and returns KD_IO_QUEUED, or leaves it to run() and returns 0; or an
	// error.
	int64_t queue_all(Sleepable s, kd_iocb *iocb, bool nowait);
	int64_t run(Sleepable s);

private:
	// What one key covers of the rest.
	uint32_t segment() const { return mapping.part(pos, left, write); }
	uint32_t max_pages() const { return limits::read_pages(channel.terms); }
	// Bytes of the next segment that can go to and from the caller's own pages.
	uint32_t pinnable() const
	{
		size_t most = kd_iter_pinnable(iter, max_pages());
		return mapping.part(pos, most < left ? most : left, write);
	}
	// What is longer goes to and from the caller's own pages, which have a key.
	uint32_t copied() const { return sinks() ? 0 : channel.copy_limit(); }
	// Over iWARP the peer writes what a READ brings.
	bool sinks() const { return channel.iwarp && !write; }
	void advance(uint32_t n)
	{
		pos += n;
		left -= n;
	}
	int refusal() const
	{
		int err = mapping.refusal();
		return err ? err : KD_EPIPE;
	}
	IoSlot *claim(Sleepable s, bool large, Status &st)
	{
		return queue.await_io(s, mapping, large, how, st);
	}
	Status post(IoSlot *slot, uint32_t len, uint64_t &at);
	Status copy(Sleepable s, uint32_t len);
	Status copy_through(Sleepable s, IoSlot *slot, uint32_t len, bool &released);
	Status read_pages(Sleepable s, uint32_t len);
	Status await(Sleepable s);
	Status start(Sleepable s, kd_pages *pages, uint32_t len, kd_iocb *iocb, IoSlot *slot);
	Status pipeline(Sleepable s);

	Mapping &mapping;
	Channel &channel;
	kd_iter *iter;
	size_t left;
	const uint64_t begin;
	uint64_t pos; // of what comes next
	const bool write;
	const Waiting how;
	Queue &queue;
	IoCall call;
	bool pins = true; // may be tried
};

// The slot's call or iocb is set. On failure the slot is still the caller's.
Status Transfer::post(IoSlot *slot, uint32_t len, uint64_t &at)
{
	SpinGuard guard(queue.tx_lock);
	if (mapping.refusal())
		return refusal();
	slot->mapping = &mapping;
	slot->write = write;
	slot->pos = at;
	slot->length = len;
	slot->ran = slot->blamed = false;
	bool held = !queue.carries || mapping.away;
	if (held) {
		if (slot->large)
			kd_rw_release(queue.qp, &slot->rw, slot->pages, write);
		(void)queue.hold(slot, 0);
	} else {
		const wire::RemoteKey key = mapping.at(at);
		slot->phase = IoSlot::Phase::Posted;
		bool placed = write && channel.iwarp;
		int err = slot->large ? kd_rw_post(queue.qp, &slot->rw, &slot->cqe, placed)
				      : kd_post_io(queue.qp, &slot->cqe, &slot->buf, len, key.addr,
						   key.rkey, write, placed);
		if (err) {
			slot->phase = IoSlot::Phase::Claimed;
			return KD_EIO;
		}
		slot->ran = true;
		if (queue.io_posted++ == 0)
			queue.io_since_ns = kd_now_ns();
	}
	queue.claimed_io -= slot->large;
	if (slot->call) {
		slot->call->left.fetch_add(1, std::memory_order_relaxed);
		if (!slot->call->waitq)
			slot->call->waitq = &slot->waitq;
	}
	(write ? queue.map_writes : queue.map_reads).add();
	(write ? queue.map_write_bytes : queue.map_read_bytes).add(len);
	if (slot->large)
		queue.map_pinned_bytes.add(len);
	if (held)
		channel.tx_waitq.wake(0); // who takes the connection down waits for the claim
	return {};
}

// Until everything posted has completed. KD_EINTR: a fatal signal; what is posted goes
// on without this call.
Status Transfer::await(Sleepable s)
{
	auto done = [&] { return call.left.load(std::memory_order_acquire) == 0; };
	if (!call.waitq || done())
		return {};
	Status st = channel.wait_io(s, queue, *call.waitq, how, done);
	if (st.ok())
		return st;
	SpinGuard guard(queue.tx_lock);
	if (done())
		return {};
	auto forget = [&](IoSlot *slots, uint32_t count) {
		for (uint32_t i = 0; i < count; i++)
			if ((slots[i].phase == IoSlot::Phase::Posted ||
			     slots[i].phase == IoSlot::Phase::Held) &&
			    slots[i].call == &call)
				slots[i].call = nullptr;
	};
	forget(queue.io_copies, queue.nr_io_copies);
	forget(queue.io_large, queue.nr_io_large);
	return st;
}

// `released`: the slot is not the caller's any more.
Status Transfer::copy_through(Sleepable s, IoSlot *slot, uint32_t len, bool &released)
{
	if (write && !kd_copy_from(slot->buf.mem, len, iter))
		return KD_EFAULT;
	slot->call = &call;
	if (Status st = post(slot, len, pos); !st.ok())
		return st;
	if (Status st = await(s); !st.ok()) {
		released = true;
		return st;
	}
	if (call.failed_at != UINT64_MAX)
		return call.err;
	if (write)
		return {};
	return kd_copy_to(slot->buf.mem, len, iter) ? 0 : KD_EFAULT;
}

Status Transfer::copy(Sleepable s, uint32_t len)
{
	Status st;
	if (sinks()) {
		st = read_pages(s, len);
		if (st.ok())
			advance(len);
		return st;
	}
	IoSlot *slot = claim(s, false, st);
	if (!slot)
		return st;
	bool released = false;
	st = copy_through(s, slot, len, released);
	if (!released)
		queue.unclaim_io(slot);
	if (st.ok())
		advance(len);
	return st;
}

// A READ to where the device cannot, through pages of the kernel.
Status Transfer::read_pages(Sleepable s, uint32_t len)
{
	kd_pages *pages;
	Status st = kd_pages_alloc(len, KD_PAGES_WRITER, &pages);
	if (!st.ok())
		return st;
	if (IoSlot *slot = claim(s, true, st)) {
		slot->keeps = true;
		st = start(s, pages, len, nullptr, slot);
	}
	if (!st.ok()) {
		kd_pages_free(pages);
		return st;
	}
	if (st = await(s); !st.ok())
		return st;
	if (call.failed_at != UINT64_MAX)
		st = call.err;
	else if (!kd_pages_copy_to(call.pages, 0, len, iter))
		st = KD_EFAULT;
	kd_pages_free(std::exchange(call.pages, nullptr));
	return st;
}

// Takes over `pages` on success, and the slot.
Status Transfer::start(Sleepable, kd_pages *pages, uint32_t len, kd_iocb *iocb, IoSlot *slot)
{
	const wire::RemoteKey key = mapping.at(pos);
	slot->pages = pages;
	slot->call = iocb ? nullptr : &call;
	slot->iocb = iocb;
	Status st = kd_rw_prepare(queue.qp, &slot->rw, pages, key.addr, key.rkey, write);
	if (st.ok()) {
		st = post(slot, len, pos);
		if (st.ok())
			return st;
		kd_rw_release(queue.qp, &slot->rw, pages, write);
	}
	slot->pages = nullptr;
	slot->iocb = nullptr;
	slot->keeps = false;
	queue.unclaim_io(slot);
	return st;
}

// As much as goes to and from the caller's own pages, several requests at a time.
Status Transfer::pipeline(Sleepable s)
{
	const uint64_t from = pos;
	Status st;
	while (left && pins && st.ok()) {
		uint32_t len = pinnable();
		if (len <= copied())
			break;
		kd_pages *pages;
		st = kd_pages_pin_io(iter, len, max_pages(), !write, &pages);
		if (!st.ok()) {
			pins = false;
			if (st.err() != KD_EFAULT)
				st = {};
			break;
		}
		IoSlot *slot = claim(s, true, st);
		if (slot)
			st = start(s, pages, len, nullptr, slot);
		if (st.ok())
			advance(len);
		else
			kd_pages_free(pages);
	}
	if (!call.waitq)
		return st;
	Status waited = await(s);
	call.waitq = nullptr;
	if (!waited.ok()) {
		pos = from; // nobody will know what of it is done
		return waited;
	}
	if (call.failed_at == UINT64_MAX)
		return st;
	pos = call.failed_at; // what came before it is done
	return call.err;
}

int64_t Transfer::run(Sleepable s)
{
	Status st;
	while (left && st.ok()) {
		uint32_t len = segment(), most = channel.copy_limit();
		if (pins && len > copied() && pinnable() > copied())
			st = pipeline(s);
		else
			st = copy(s, len < most ? len : most);
	}
	return pos > begin ? int64_t(pos - begin) : -st.err();
}

int64_t Transfer::queue_all(Sleepable s, kd_iocb *iocb, bool nowait)
{
	if (pinnable() < left)
		return nowait ? -KD_EAGAIN : 0;
	Status st;
	auto len = uint32_t(left);
	IoSlot *slot = nullptr;
	kd_pages *pages;
	if (nowait && !queue.has_large_io(mapping))
		return mapping.refusal() ? -refusal() : -KD_EAGAIN;
	if (st = kd_pages_pin_io(iter, len, max_pages(), !write, &pages); !st.ok())
		return st.err() == KD_EFAULT ? -KD_EFAULT : nowait ? -KD_EAGAIN : 0;
	if (nowait)
		slot = queue.claim_io(mapping, true);
	else
		slot = claim(s, true, st);
	if (!slot) {
		kd_pages_free(pages);
		return nowait && !mapping.refusal() ? -KD_EAGAIN
						    : -(st.ok() ? refusal() : st.err());
	}
	// A poll queue that nobody polls: completions bring events until this has ended.
	bool events = queue.kind == Queue::queue_poll;
	if (events)
		channel.sleepers.fetch_add(1);
	st = start(s, pages, len, iocb, slot);
	if (events && st.ok())
		queue.arm();
	if (st.ok())
		return KD_IO_QUEUED;
	if (events)
		channel.sleepers.fetch_sub(1);
	kd_pages_free(pages);
	return -st.err();
}

} // namespace

int64_t kd_map_io(struct kd_desc_file *file, struct kd_iter *iter, size_t len, uint64_t pos,
		  bool write, uint32_t flags, struct kd_iocb *iocb)
{
	Sleepable s = ShimEntry::may_sleep();
	Mapping *mapping = file->mapping;
	uint32_t open_flags = file->flags.get();
	bool nowait = flags & KD_IO_NOWAIT;
	bool poll = (flags & KD_IO_POLL) || (open_flags & KDIRECT_OPEN_POLL);
	if (poll && !mapping->channel->has_poll_queues())
		return -KD_EOPNOTSUPP;
	if (int err = mapping->refusal())
		return -err;
	if (write && mapping->read_only)
		return -KD_EACCES;
	if (len == 0)
		return 0;
	if (pos >= mapping->size)
		return write ? -KD_ENOSPC : 0;
	if (len > mapping->size - pos)
		len = size_t(mapping->size - pos);
	Transfer transfer(*mapping, iter, len, pos, write, poll, open_flags);
	if (iocb && !poll)
		if (int64_t ret = transfer.queue_all(s, iocb, nowait))
			return ret;
	return nowait ? -KD_EAGAIN : transfer.run(s);
}
