// SPDX-License-Identifier: GPL-2.0-only
// An open file with descriptors: its requests, and how their completions are reaped.
#include "channel.hh"
#include "desc_source.hh"
#include "raw.hh"
#include "uring.hh"

using namespace kd;

// --- life ------------------------------------------------------------------------------

kd_desc_file *kd_desc_file::create(Sleepable s, Channel &channel)
{
	auto *file = kd::create<kd_desc_file>(s);
	if (!file)
		return nullptr;
	kd_work_init(&file->end_work, [](kd_work *work) {
		KD_CONTAINER(work, kd_desc_file, end_work)->end(ShimEntry::may_sleep());
	});
	channel.get();
	file->channel = &channel;
	return file;
}

bool kd_desc_file::is_session() const
{
	return !mapping && !channel->raw;
}

int kd_desc_file::refusal() const
{
	if (mapping)
		return mapping->refusal();
	return channel->raw ? channel->raw->refusal() : channel->refusal();
}

// What a descriptor needs, once there is one.
Status kd_desc_file::prepare(Sleepable s)
{
	if (requests)
		return {};
	if (!buffers)
		buffers = create_array<FixedBuffer *>(s, KDIRECT_BUFFERS);
	bool session = is_session();
	if (mapping && !batch)
		batch = create_array<MapBatch>(s, 1);
	if (!mapping && channel->raw && !wrs)
		wrs = create_array<kd_raw_wr>(s, KD_CHAIN_MAX);
	if (session && !messages)
		messages = create_array<Message>(s, KDIRECT_DESC_ENTRIES);
	if (!session && !chain)
		if (Status st = kd_chain_create(&chain); !st.ok())
			return st;
	if (!buffers || (!batch && !wrs && !messages))
		return KD_ENOMEM;
	auto *made = create_array<Request>(s, KDIRECT_DESC_ENTRIES);
	if (!made)
		return KD_ENOMEM;
	SpinGuard guard(lock);
	for (uint32_t i = 0; i < KDIRECT_DESC_ENTRIES; i++) {
		made[i].file = this;
		made[i].message = messages ? &messages[i] : nullptr;
		free.push_back(&made[i]);
	}
	requests = made;
	return {};
}

void kd_desc_file::release(Sleepable s)
{
	if (mapping)
		mapping->closed(*this);
	else if (channel->raw)
		channel->raw->closed(s, *this);
	else
		channel->closed(s, *this);
	for (uint32_t i = 0; buffers && i < KDIRECT_BUFFERS; i++)
		replace_buffer(s, i, nullptr);
	if (refs.put())
		end(s);
}

void kd_desc_file::discard(Sleepable s)
{
	if (refs.put())
		end(s);
}

void kd_desc_file::put_later()
{
	if (refs.put())
		kd_work_queue(&end_work);
}

void kd_desc_file::end(Sleepable s)
{
	kd_free(buffers);
	kd_free(batch);
	kd_free(wrs);
	kd_chain_free(chain);
	kd_free(messages);
	kd_free(requests);
	if (commands)
		kd_free(commands->messages);
	kd_free(commands);
	if (mapping)
		mapping->put(s);
	channel->put(s);
	destroy(s, this);
}

void kd_desc_file::replace_buffer(Sleepable s, uint32_t index, FixedBuffer *buffer)
{
	if (FixedBuffer *old = std::exchange(buffers[index], buffer))
		old->put(s);
}

// --- requests --------------------------------------------------------------------------

Request *kd_desc_file::begin(const kdirect_desc &desc, uint32_t index)
{
	SpinGuard guard(lock);
	uint32_t &left = room[desc.opcode == KDIRECT_OP_RECV];
	Request *request = left ? free.pop() : nullptr;
	if (!request) {
		if (ring)
			ring->starved = true; // until one is given back
		return nullptr;
	}
	left--;
	refs.get();
	under_way.fetch_add(1, std::memory_order_relaxed);
	request->start(desc, index);
	return request;
}

void kd_desc_file::give_back(Request *request)
{
	if (!request->command || channel->raw)
		room[request->opcode == KDIRECT_OP_RECV]++;
	(commands && request->command ? commands->free : free).push_front(request);
	if (commands && commands->waiters)
		waitq.wake(0);
	if (ring && std::exchange(ring->starved, false)) {
		ring->woken = true;
		thread_waitq.wake(0);
	}
}

void Request::start(const kdirect_desc &desc, uint32_t number)
{
	buffer = nullptr;
	user_data = desc.user_data;
	old = 0;
	index = number;
	length = desc.length;
	left = 1;
	err = 0;
	status = 0;
	opcode = desc.opcode;
	flags = 0;
	data = 0;
}

void Request::add_part()
{
	SpinGuard guard(file->lock);
	left++;
}

bool Request::last_part(int error, uint16_t wc_status, uint64_t before)
{
	if (error && !err) {
		err = error;
		status = wc_status;
	}
	old |= before;
	return --left == 0;
}

kdirect_completion Request::completion() const
{
	return {
		.user_data = user_data,
		.old = err ? 0 : old,
		.result = err ? -err : int32_t(length),
		.index = index,
		.status = status,
		.opcode = opcode,
		.flags = flags,
		.data = data,
	};
}

void Request::part_done(int error, uint16_t wc_status, uint64_t before)
{
	if (command) {
		if (command_part_done(error, wc_status, before))
			complete_command();
		return;
	}
	DescFile &owner = *file;
	FixedBuffer *used;
	bool wake, over, watched = false;
	{
		SpinGuard guard(owner.lock);
		if (!last_part(error, wc_status, before))
			return;
		used = std::exchange(buffer, nullptr);
		owner.done.push_back(this);
		uint32_t ready = owner.nr_done.fetch_add(1) + 1;
		over = owner.under_way.fetch_sub(1) == 1 && owner.refusal();
		if (owner.ring) {
			owner.follow();
			ready = owner.nr_done.load(std::memory_order_relaxed) + owner.ring->ready();
		}
		watched = owner.watched;
		wake = owner.waiters && (ready >= owner.wake_at || over);
	}
	if (used)
		used->put_later();
	if (wake)
		owner.waitq.wake(0);
	if (watched)
		owner.poll_waitq.wake(over ? KD_WAKE_END : KD_WAKE_IN);
	if (watched && owner.messages)
		owner.channel->rx_waitq.WaitQueue::wake(KD_WAKE_PRI);
	owner.put_later();
}

// --- submitting --------------------------------------------------------------------------

template <class Source>
Status kd_desc_file::submit_from(Sleepable s, Source &source, bool polls, SubmitterMemory &memory)
{
	if (mapping)
		return submit_mapped(s, source, polls, memory);
	return channel->raw ? submit_raw(s, source, polls, memory)
			    : submit_messages(s, source, polls, memory);
}

Status kd_desc_file::submit(Sleepable s, kdirect_submit &batch) KD_NO_ANALYSIS
{
	Status st = submit_lock.lock_interruptible(s);
	if (!st.ok())
		return st;
	st = ring ? KD_EBUSY : prepare(s);
	if (st.ok()) {
		SubmitterMemory memory(nullptr);
		ArraySource source(batch);
		st = submit_from(s, source, batch.flags & KDIRECT_SUBMIT_POLL, memory);
	}
	submit_lock.unlock();
	return st;
}

Status kd_desc_file::submit(Sleepable s, kd_ring &from, uint32_t most,
			    uint32_t &taken) KD_NO_ANALYSIS
{
	// A program that keeps writing more does not keep us here.
	RingSource source(from, most < from.sq_entries ? most : from.sq_entries, taken);
	SubmitterMemory memory(from.thread);
	Status st = submit_lock.lock_interruptible(s);
	if (!st.ok())
		return st;
	st = submit_from(s, source, from.polls, memory);
	submit_lock.unlock();
	if (taken && from.is_watched())
		poll_waitq.wake(KD_WAKE_OUT);
	return st;
}

Status kd_desc_file::submit(Sleepable s, Request &request, const kdirect_desc &desc,
			    const kd_uring_call &call)
{
	if (mapping)
		return run_mapped(s, request, desc, call);
	return channel->raw ? run_raw(s, request, desc, call) : run_message(s, request, desc, call);
}

// --- rings -----------------------------------------------------------------------------

Status kd_desc_file::attach(kd_ring &to)
{
	SpinGuard guard(lock);
	if (ring || waiters || reapers)
		return KD_EBUSY;
	ring = &to;
	follow();
	return {};
}

void kd_desc_file::detach(Sleepable s, const kd_ring &from)
{
	MutexGuard submitting(submit_lock, s);
	SpinGuard guard(lock);
	if (ring == &from)
		ring = nullptr;
}

void kd_desc_file::follow()
{
	while (Request *request = done.front()) {
		if (!ring->put(request->completion())) {
			// Who reaps looks at this behind cq_head; we look at cq_head behind this.
			if (ring->behind(true))
				continue;
			break;
		}
		done.pop();
		nr_done.fetch_sub(1);
		give_back(request);
	}
	if (done.empty())
		(void)ring->behind(false);
}

bool kd_desc_file::catch_up()
{
	SpinGuard guard(lock);
	uint32_t before = nr_done.load(std::memory_order_relaxed);
	if (ring && before)
		follow();
	return nr_done.load(std::memory_order_relaxed) != before;
}

// --- reaping ---------------------------------------------------------------------------

Status kd_desc_file::await(Sleepable s, uint32_t wanted, bool polls, uint64_t timeout_ns,
			   const kd_ring *via)
{
	auto enough = [&] {
		if (!via)
			return nr_done.load() >= wanted;
		SpinGuard guard(lock);
		return nr_done.load(std::memory_order_relaxed) + via->ready() >= wanted;
	};
	auto over = [&] {
		return under_way.load() == 0 && refusal() &&
		       !(via && via->thread && via->pending());
	};
	if (enough())
		return {};
	{
		SpinGuard guard(lock);
		if (ring != via)
			return KD_EBUSY;
		waiters++;
		if (wanted < wake_at)
			wake_at = wanted;
	}
	Status st = channel->wait(s, waitq, {polls, flags.get()}, KD_WAIT_INTERRUPTIBLE,
				  timeout_ns ? timeout_ns : KD_FOREVER,
				  [&] { return enough() || over(); });
	{
		SpinGuard guard(lock);
		// What the others wait for is not known here.
		wake_at = --waiters ? 1 : UINT32_MAX;
	}
	return st.ok() && !enough() ? Status(refusal()) : st;
}

// Of what is there, not more than `most`.
Status kd_desc_file::reap_some(Sleepable, kdirect_submit &batch, uint32_t most)
{
	constexpr uint32_t at_once = 8;
	Request *reaped[at_once];
	kdirect_completion out[at_once];
	uint32_t n = 0;
	{
		SpinGuard guard(lock);
		if (ring)
			return KD_EBUSY;
		while (n < most && n < at_once && (reaped[n] = done.pop()))
			n++;
		nr_done.fetch_sub(n);
		reapers++;
	}
	for (uint32_t i = 0; i < n; i++)
		out[i] = reaped[i]->completion();
	uint64_t to = batch.completions + uint64_t(batch.completed) * sizeof(out[0]);
	bool written = n && kd_user_write(to, out, n * sizeof(out[0]));
	SpinGuard guard(lock);
	reapers--;
	if (written) {
		batch.completed += n;
		while (n)
			give_back(reaped[--n]);
		return {};
	}
	nr_done.fetch_add(n);
	bool any = n;
	while (n)
		done.push_front(reaped[--n]);
	return any ? KD_EFAULT : 0;
}

Status kd_desc_file::reap(Sleepable s, kdirect_submit &batch, uint32_t wanted)
{
	Status st;
	bool polls = batch.flags & KDIRECT_SUBMIT_POLL;
	if (wanted)
		st = await(s, wanted, polls, batch.timeout_ns, nullptr);
	else if (polls)
		channel->poll_once(true);
	for (uint32_t before = UINT32_MAX; before != batch.completed;) {
		before = batch.completed;
		if (Status some = reap_some(s, batch, batch.nr_completions - before); !some.ok())
			return some;
	}
	return st;
}

// --- the shim's calls --------------------------------------------------------------------

void kd_desc_release(struct kd_desc_file *file)
{
	file->release(ShimEntry::may_sleep());
}

struct kd_waitq *kd_desc_waitq(struct kd_desc_file *file)
{
	return file->poll_waitq.raw();
}

int kd_desc_set_flags(struct kd_desc_file *file, uint32_t flags)
{
	return file->flags.set(*file->channel, flags).err();
}

uint32_t kd_desc_flags(const struct kd_desc_file *file)
{
	return file->flags.get();
}

int kd_desc_submit(struct kd_desc_file *file, struct kdirect_submit *batch)
{
	Sleepable s = ShimEntry::may_sleep();
	if ((batch->flags & ~KDIRECT_SUBMIT_FLAGS) || batch->reserved[0] || batch->reserved[1] ||
	    batch->min_completions > batch->nr_completions ||
	    batch->min_completions > KDIRECT_DESC_ENTRIES)
		return KD_EINVAL;
	if ((batch->flags & KDIRECT_SUBMIT_POLL) && !file->channel->has_poll_queues())
		return KD_EOPNOTSUPP;
	batch->submitted = batch->completed = 0;
	Status st = batch->nr_descs ? file->submit(s, *batch) : Status();
	bool all = st.ok() || st.err() == KD_EAGAIN;
	if (!all && !batch->submitted)
		return st.err();
	Status reaped = file->reap(s, *batch, all ? batch->min_completions : 0);
	if (batch->submitted || batch->completed)
		return 0;
	return st.ok() ? reaped.err() : st.err();
}

int kd_desc_buffer_set(struct kd_desc_file *file, const struct kdirect_buffer *b) KD_NO_ANALYSIS
{
	Sleepable s = ShimEntry::may_sleep();
	if (b->reserved[0] || b->reserved[1] || b->reserved[2] || b->index >= KDIRECT_BUFFERS ||
	    !b->length || b->length > KDIRECT_BUFFER_MAX || b->addr + b->length < b->addr)
		return KD_EINVAL;
	if (int err = file->refusal())
		return err;
	FixedBuffer *buffer;
	Status st = FixedBuffer::create(s, *file->channel, !file->is_session(), b->addr, b->length,
					&buffer);
	if (!st.ok())
		return st.err();
	if (file->channel->raw)
		st = file->take_key_back(s, b->index, false);
	if (st.ok())
		st = file->submit_lock.lock_interruptible(s);
	if (!st.ok()) {
		buffer->put(s);
		return st.err();
	}
	st = file->prepare(s);
	if (st.ok())
		file->replace_buffer(s, b->index, buffer);
	file->submit_lock.unlock();
	if (!st.ok())
		buffer->put(s);
	return st.err();
}

int kd_desc_buffer_del(struct kd_desc_file *file, uint32_t index) KD_NO_ANALYSIS
{
	Sleepable s = ShimEntry::may_sleep();
	if (index >= KDIRECT_BUFFERS)
		return KD_EINVAL;
	Status st;
	if (file->channel->raw)
		st = file->take_key_back(s, index, false);
	if (st.ok())
		st = file->submit_lock.lock_interruptible(s);
	if (!st.ok())
		return st.err();
	FixedBuffer *old = file->buffers ? std::exchange(file->buffers[index], nullptr) : nullptr;
	file->submit_lock.unlock();
	if (!old)
		return KD_ENOENT;
	old->put(s);
	return 0;
}
