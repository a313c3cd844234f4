// SPDX-License-Identifier: GPL-2.0-only
// Fixed buffers. A channel knows those that are mapped for its device, since the device
// may go before their open files do.
#include "channel.hh"

using namespace kd;

Status FixedBuffer::create(Sleepable s, Channel &channel, bool for_device, uint64_t addr,
			   uint64_t length, FixedBuffer **out)
{
	auto *buffer = kd::create<FixedBuffer>(s);
	if (!buffer)
		return KD_ENOMEM;
	kd_work_init(&buffer->end_work, [](kd_work *work) {
		KD_CONTAINER(work, FixedBuffer, end_work)->end(ShimEntry::may_sleep());
	});
	buffer->length = length;
	buffer->channel = &channel;
	Status st = kd_fixed_pin(addr, length, &buffer->memory);
	if (st.ok()) {
		st = channel.add_fixed(s, *buffer, for_device);
		if (!st.ok())
			kd_fixed_free(buffer->memory);
	}
	if (!st.ok()) {
		destroy(s, buffer);
		return st;
	}
	channel.get();
	*out = buffer;
	return {};
}

void FixedBuffer::put(Sleepable s)
{
	if (refs.put())
		end(s);
}

void FixedBuffer::put_later()
{
	if (refs.put())
		kd_work_queue(&end_work);
}

// Nothing uses it any more.
void FixedBuffer::end(Sleepable s)
{
	channel->drop_fixed(s, *this);
	kd_fixed_free(memory);
	channel->put(s);
	destroy(s, this);
}

void FixedBuffer::unmap()
{
	if (mr)
		kd_mr_destroy(mr);
	mr = nullptr;
	kd_fixed_unmap(memory);
}

Status kd_channel::add_fixed(Sleepable s, FixedBuffer &buffer, bool for_device)
{
	MutexGuard guard(fixed_lock, s);
	if (fixed_ended)
		return KD_EPIPE;
	buffer.for_device = for_device;
	if (for_device && !pd)
		return KD_EAGAIN; // it recovers
	if (Status st = for_device ? kd_fixed_map(pd, buffer.memory) : 0; !st.ok())
		return st;
	fixed.add(&buffer);
	nr_fixed.add();
	fixed_length.add(buffer.length);
	return {};
}

void kd_channel::drop_fixed(Sleepable s, FixedBuffer &buffer)
{
	MutexGuard guard(fixed_lock, s);
	buffer.unmap();
	fixed.remove(&buffer);
	nr_fixed.add(uint64_t(-1));
	fixed_length.add(-buffer.length);
}

void kd_channel::lose_fixed(Sleepable s)
{
	MutexGuard guard(fixed_lock, s);
	fixed.each([](FixedBuffer &buffer) { buffer.lost = buffer.for_device; });
}

// No QP is left that could use them.
void kd_channel::unmap_fixed(Sleepable s)
{
	MutexGuard guard(fixed_lock, s);
	fixed.each([](FixedBuffer &buffer) { buffer.unmap(); });
}

void kd_channel::end_fixed(Sleepable s)
{
	MutexGuard guard(fixed_lock, s);
	fixed_ended = true;
	fixed.each([](FixedBuffer &buffer) { buffer.unmap(); });
}
