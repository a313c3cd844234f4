// SPDX-License-Identifier: GPL-2.0-only
// Keys of fixed buffers, for the peer of a raw channel. A buffer has one MR of its own, made
// when it is shared for the first time; each key is good until somebody invalidates it:
// this end, or the peer. As long as it is, it holds the buffer.
#include "raw.hh"

#include "channel.hh"

using namespace kd;

using Share = FixedBuffer::Share;

FixedBuffer *Raw::find(uint32_t rkey)
{
	FixedBuffer *found = nullptr;
	shared_as(rkey).each([&](FixedBuffer &buffer) {
		if (buffer.rkey == rkey)
			found = &buffer;
	});
	return found;
}

// Completions call these two. The buffer may end with them.
void Raw::taken_back(uint32_t rkey)
{
	FixedBuffer *buffer;
	{
		SpinGuard guard(channel.queues[0]->tx_lock);
		buffer = find(rkey);
		if (!buffer)
			return;
		shared_as(rkey).remove(buffer);
		buffer->share = Share::None;
	}
	waitq.wake(0);
	buffer->put_later();
}

// What a LOCAL_INV is under way for keeps its MR as it is until that is done.
bool Raw::invalidated_by_peer(uint32_t rkey)
{
	{
		SpinGuard guard(channel.queues[0]->tx_lock);
		FixedBuffer *buffer = find(rkey);
		if (!buffer || buffer->share == Share::Gone)
			return false;
		if (buffer->share == Share::Leaving) {
			buffer->share = Share::Gone;
			return true;
		}
	}
	taken_back(rkey);
	return true;
}

void Raw::control_done(const kd_wc &wc)
{
	uint32_t gone;
	{
		SpinGuard guard(channel.queues[0]->tx_lock);
		control_busy = false;
		gone = std::exchange(leaving_rkey, 0);
	}
	if (wc.err && !wc.flushed)
		KD_FAIL(channel, wc.err, "a key cannot be made or taken back: %s", wc.status_name);
	if (!wc.err && gone)
		taken_back(gone);
	waitq.wake(0);
}

// The QP is gone, and with it all keys.
void Raw::end_shares(Sleepable s)
{
	for (SharedBag &bag : shared)
		for (;;) {
			FixedBuffer *buffer;
			{
				SpinGuard guard(channel.queues[0]->tx_lock);
				buffer = bag.front();
				if (buffer) {
					bag.remove(buffer);
					buffer->share = Share::None;
				}
				control_busy = false;
			}
			if (!buffer)
				break;
			buffer->put(s);
		}
	waitq.wake(0);
}

// --- making and taking back -----------------------------------------------------------------

// The MR is there, and describes the buffer under a new key.
Status Raw::describe_memory(Sleepable s, FixedBuffer &buffer)
{
	MutexGuard guard(channel.fixed_lock, s);
	if (channel.fixed_ended)
		return KD_EPIPE;
	uint64_t pages = kd_fixed_pages(buffer.memory);
	if (pages > channel.mr_pages)
		return KD_EFBIG;
	if (!buffer.mr)
		if (Status st = kd_mr_create(channel.pd, uint32_t(pages), &buffer.mr); !st.ok())
			return st;
	return kd_mr_map_fixed(buffer.mr, buffer.memory);
}

Status Raw::share_now(Sleepable s, FixedBuffer &buffer, kdirect_share &call)
{
	if (Status st = describe_memory(s, buffer); !st.ok())
		return st;
	Queue &queue = *channel.queues[0];
	SpinGuard guard(queue.tx_lock);
	if (queue.sealed || channel.current() != State::Live)
		return refusal() ? refusal() : KD_EPIPE;
	if (kd_post_share(queue.qp, &control_cqe, buffer.mr, call.access))
		return KD_EIO;
	control_busy = true;
	buffer.share = Share::Valid;
	buffer.rkey = kd_mr_rkey(buffer.mr);
	buffer.get();
	shared_as(buffer.rkey).add(&buffer);
	call.rkey = buffer.rkey;
	call.addr = kd_mr_address(buffer.mr);
	call.length = buffer.length;
	return {};
}

// KD_EAGAIN: another key is being made or taken back.
Status Raw::try_share(Sleepable s, DescFile &file, kdirect_share &call)
{
	FixedBuffer *buffer = file.buffers ? file.buffers[call.index] : nullptr;
	if (!buffer)
		return KD_ENOENT;
	{
		Queue &queue = *channel.queues[0];
		SpinGuard guard(queue.tx_lock);
		// Then what share says of the MR is not so: end_shares() invalidates nothing.
		if (queue.sealed)
			return refusal() ? refusal() : KD_EPIPE;
		if (buffer->share != Share::None)
			return KD_EBUSY;
		if (control_busy)
			return KD_EAGAIN;
	}
	return share_now(s, *buffer, call);
}

Status Raw::share(Sleepable s, DescFile &file, kdirect_share &call) KD_NO_ANALYSIS
{
	Queue &queue = *channel.queues[0];
	for (;;) {
		if (int err = refusal())
			return err;
		if (channel.current() != State::Live)
			return KD_ENOTCONN;
		Status st = file.submit_lock.lock_interruptible(s);
		if (!st.ok())
			return st;
		st = try_share(s, file, call);
		file.submit_lock.unlock();
		bool shared_now = st.ok();
		if (!shared_now && st.err() != KD_EAGAIN)
			return st;
		// The peer may hear of the key in whatever way: it is good when it is told.
		st = waitq.wait(s, shared_now ? KD_WAIT_KILLABLE : KD_WAIT_INTERRUPTIBLE,
				KD_FOREVER, [&] {
					SpinGuard guard(queue.tx_lock);
					return !control_busy;
				});
		if (shared_now || !st.ok())
			return st.ok() ? Status(refusal()) : st;
	}
}

// Posts a LOCAL_INV if it can be now.
bool Raw::take_back(FixedBuffer &buffer)
{
	Queue &queue = *channel.queues[0];
	SpinGuard guard(queue.tx_lock);
	if (buffer.share != Share::Valid || control_busy || queue.sealed)
		return true;
	if (kd_post_invalidate(queue.qp, &control_cqe, buffer.mr))
		return false;
	buffer.share = Share::Leaving;
	control_busy = true;
	leaving_rkey = buffer.rkey;
	return true;
}

Status Raw::unshare(Sleepable s, FixedBuffer &buffer)
{
	Queue &queue = *channel.queues[0];
	Share now = Share::Valid;
	auto gone = [&] {
		SpinGuard guard(queue.tx_lock);
		now = buffer.share;
		return now == Share::None ||
		       (now == Share::Valid && !control_busy && !queue.sealed);
	};
	for (;;) {
		if (!take_back(buffer)) {
			KD_FAIL(channel, KD_EIO, "a key cannot be taken back");
			return KD_EIO;
		}
		Status st = waitq.wait(s, KD_WAIT_INTERRUPTIBLE, KD_FOREVER, gone);
		if (!st.ok() || now == Share::None)
			return st;
	}
}

// --- the shim's calls ----------------------------------------------------------------------

Status kd_desc_file::take_key_back(Sleepable s, uint32_t index, bool must) KD_NO_ANALYSIS
{
	Status st = submit_lock.lock_interruptible(s);
	if (!st.ok())
		return st;
	FixedBuffer *buffer = buffers ? buffers[index] : nullptr;
	if (buffer)
		buffer->get();
	submit_lock.unlock();
	if (!buffer)
		return must ? KD_ENOENT : 0;
	bool any;
	{
		SpinGuard guard(channel->queues[0]->tx_lock);
		any = buffer->share != Share::None;
	}
	if (any)
		st = channel->raw->unshare(s, *buffer);
	else if (must)
		st = KD_ENOENT;
	buffer->put(s);
	return st;
}

int kd_raw_share(struct kd_desc_file *file, struct kdirect_share *call)
{
	Sleepable s = ShimEntry::may_sleep();
	if ((call->access & ~KDIRECT_ACCESS_FLAGS) || call->pad || call->reserved[0] ||
	    call->reserved[1] || call->index >= KDIRECT_BUFFERS)
		return KD_EINVAL;
	call->rkey = 0;
	call->addr = call->length = 0;
	if (!call->access)
		return file->take_key_back(s, call->index, true).err();
	if ((call->access & KDIRECT_ACCESS_ATOMIC) && !file->channel->atomics)
		return KD_EOPNOTSUPP;
	return file->channel->raw->share(s, *file, *call).err();
}
