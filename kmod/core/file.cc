// SPDX-License-Identifier: GPL-2.0-only
// An open file of a channel's node: what write(), read(), poll() and ioctl() do.
// The user-visible semantics are in uapi/kdirect.h.
#include "channel.hh"

#include "../../uapi/kdirect.h"

using namespace kd;

namespace
{

WaitStyle style_of(const DescFile &file, uint32_t io_flags)
{
	bool nowait = io_flags & KD_IO_NOWAIT;
	uint32_t flags = file.flags.get();
	bool poll = (io_flags & KD_IO_POLL) || (flags & KDIRECT_OPEN_POLL);
	return {nowait, poll, flags};
}

Status write_small(Sleepable s, Channel &channel, kd_iter *iter, uint32_t len, WaitStyle style)
{
	Claim claim;
	if (Status st = channel.claim(s, style, false, claim); !st.ok())
		return st;
	auto *payload = static_cast<uint8_t *>(claim.slot->buf.mem) + sizeof(wire::DataHeader);
	if (!kd_copy_from(payload, len, iter)) {
		channel.unclaim(claim);
		return KD_EFAULT;
	}
	return channel.post_eager(claim, len);
}

// Whoever may wait offers his own pages, if they can be pinned; the others get a copy.
Status prepare_pages(Channel &channel, kd_iter *iter, uint32_t len, WaitStyle style, kd_pages **out)
{
	if (!style.nowait) {
		Status st = kd_pages_pin(iter, len, channel.max_offer_pages(), out);
		if (st.ok() || st.err() == KD_EFAULT)
			return st;
	}
	if (Status st = kd_pages_alloc(len, style.nowait ? KD_PAGES_NOWAIT : KD_PAGES_WRITER, out);
	    !st.ok())
		return st;
	if (kd_pages_copy_from(*out, iter, len))
		return {};
	kd_pages_free(*out);
	return KD_EFAULT;
}

Status write_large(Sleepable s, Channel &channel, kd_iter *iter, uint32_t len, WaitStyle style)
{
	kd_pages *pages;
	if (style.nowait && !channel.may_claim(style, true)) {
		int err = channel.send_refusal();
		return err ? err : KD_EAGAIN;
	}
	if (Status st = prepare_pages(channel, iter, len, style, &pages); !st.ok())
		return st;
	bool pinned = kd_pages_pinned(pages);
	OfferWait waiter;
	Claim claim;
	Status st = channel.claim(s, style, true, claim);
	if (st.ok())
		st = channel.post_offer(claim, pages, len, pinned ? &waiter : nullptr);
	if (!st.ok()) {
		kd_pages_free(pages);
		return st;
	}
	return pinned ? channel.await_offer(s, claim, waiter) : Status();
}

// Copies what is left of a message, as far as `len` goes.
int64_t read_some(Channel &channel, RxSlot *slot, kd_iter *iter, size_t len)
{
	uint32_t offset = channel.read_offset;
	uint32_t n = slot->length - offset;
	if (len < n)
		n = uint32_t(len);
	auto *payload = static_cast<const uint8_t *>(slot->buf.mem) + sizeof(wire::DataHeader);
	bool copied = slot->pages ? kd_pages_copy_to(slot->pages, offset, n, iter)
				  : kd_copy_to(payload + offset, n, iter);
	if (!copied)
		return -KD_EFAULT;
	channel.read_on(slot, n);
	return n;
}

// Reads from the first message, one reader at a time. False: there is none.
bool read_front(Sleepable s, Channel &channel, kd_iter *iter, size_t len, bool nowait,
		int64_t &result) KD_NO_ANALYSIS
{
	if (nowait) {
		result = -KD_EAGAIN;
		if (!channel.reader.try_lock())
			return true;
	} else {
		result = -KD_EINTR;
		if (!channel.reader.lock_interruptible(s).ok())
			return true;
	}
	RxSlot *slot = channel.take_front(true);
	if (slot) {
		result = read_some(channel, slot, iter, len);
		channel.leave_front(true);
	}
	channel.reader.unlock();
	return slot;
}

} // namespace

int kd_file_open(struct kd_channel *channel, bool read, bool write, struct kd_desc_file **out)
{
	DescFile *file = DescFile::create(ShimEntry::may_sleep(), *channel);
	if (!file)
		return KD_ENOMEM;
	file->can_read = read;
	file->can_write = write;
	channel->opened(*file);
	*out = file;
	return 0;
}

int64_t kd_file_write(struct kd_desc_file *file, struct kd_iter *iter, size_t len, uint32_t flags)
{
	Sleepable s = ShimEntry::may_sleep();
	Channel &channel = *file->channel;
	WaitStyle style = style_of(*file, flags);
	if (len == 0)
		return 0;
	if (len > channel.terms.max_message)
		return -KD_EMSGSIZE;
	if (style.poll && !channel.has_poll_queues())
		return -KD_EOPNOTSUPP;
	auto n = uint32_t(len);
	Status st = n <= channel.copy_limit() ? write_small(s, channel, iter, n, style)
					      : write_large(s, channel, iter, n, style);
	return st.ok() ? int64_t(n) : -st.err();
}

int64_t kd_file_read(struct kd_desc_file *file, struct kd_iter *iter, size_t len, uint32_t flags)
{
	Sleepable s = ShimEntry::may_sleep();
	Channel &channel = *file->channel;
	WaitStyle style = style_of(*file, flags);
	if (len == 0)
		return 0;
	if (style.poll && !channel.has_poll_queues())
		return -KD_EOPNOTSUPP;
	for (;;) {
		int64_t n;
		if (read_front(s, channel, iter, len, style.nowait, n))
			return n;
		bool polled = channel.has_poll_queues() && (!style.poll || style.nowait);
		if (polled)
			channel.poll_once(style.poll);
		int end = channel.read_end();
		if ((polled || end >= 0) && channel.readable_now())
			continue;
		if (end >= 0 && !channel.readable())
			return -end;
		if (style.nowait)
			return -KD_EAGAIN;
		Status st =
			channel.wait(s, channel.rx_waitq, style.waiting(), KD_WAIT_INTERRUPTIBLE,
				     KD_FOREVER, [&] { return channel.may_read(); });
		if (!st.ok())
			return -st.err();
	}
}

uint32_t kd_file_poll(struct kd_desc_file *file)
{
	Channel &channel = *file->channel;
	if (channel.has_poll_queues())
		channel.arm_all();
	{
		SpinGuard guard(file->lock);
		file->watched = true;
	}
	uint32_t ready = file->nr_done.load() ? KD_POLL_PRI : 0;
	if (channel.may_read())
		ready |= KD_POLL_IN;
	bool ended = channel.read_end() >= 0;
	if (ended)
		ready |= KD_POLL_HUP;
	// A write to a channel that has ended does not block either: it fails.
	if (channel.send_refusal() || channel.may_claim({}, true))
		ready |= KD_POLL_OUT;
	if (ended && channel.read_end() > 0)
		ready |= KD_POLL_ERR;
	return ready;
}

struct kd_waitq *kd_file_read_waitq(struct kd_desc_file *file)
{
	return file->channel->rx_waitq.raw();
}
struct kd_waitq *kd_file_write_waitq(struct kd_desc_file *file)
{
	return file->channel->tx_waitq.raw();
}

void kd_file_info(struct kd_desc_file *file, struct kdirect_info *out)
{
	const Channel &channel = *file->channel;
	*out = {};
	kd_format(out->name, sizeof(out->name), "%s", channel.name);
	out->max_message = channel.terms.max_message;
	out->eager_limit = channel.copy_limit();
	out->depth = channel.terms.depth;
	out->queues = uint16_t(channel.nr_interrupt_queues);
	out->poll_queues = uint16_t(channel.nr_poll_queues);
	out->state = uint32_t(channel.current());
}

int kd_file_ping(struct kd_desc_file *file, struct kdirect_ping *ping)
{
	return file->channel->ping(ShimEntry::may_sleep(), *ping, file->flags.get()).err();
}
