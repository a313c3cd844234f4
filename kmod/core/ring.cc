// SPDX-License-Identifier: GPL-2.0-only
// Rings: making them, entering, and the thread that makes entering needless.
#include "ring.hh"

#include "channel.hh"

using namespace kd;

namespace
{

constexpr uint64_t page_size = limits::page_size;
constexpr uint32_t desc_words = sizeof(kdirect_desc) / sizeof(uint64_t);

bool is_size(uint32_t entries)
{
	return entries && entries <= KDIRECT_RING_ENTRIES && !(entries & (entries - 1));
}

bool is_valid(const kdirect_ring_setup &setup)
{
	bool threaded = setup.flags & KDIRECT_RING_THREAD;
	return is_size(setup.sq_entries) && is_size(setup.cq_entries) &&
	       !(setup.flags & ~KDIRECT_RING_FLAGS) && setup.idle_ns <= KDIRECT_RING_IDLE_MAX &&
	       (threaded ? setup.thread_cpu >= -1 : !setup.thread_cpu && !setup.idle_ns) &&
	       !setup.reserved[0] && !setup.reserved[1] && !setup.reserved[2];
}

void lay_out(kdirect_ring_setup &setup)
{
	setup.sq_head = offsetof(RingWords, sq_head);
	setup.sq_tail = offsetof(RingWords, sq_tail);
	setup.cq_head = offsetof(RingWords, cq_head);
	setup.cq_tail = offsetof(RingWords, cq_tail);
	setup.state = offsetof(RingWords, state);
	setup.descs = sizeof(RingWords);
	setup.completions = uint32_t(setup.descs + setup.sq_entries * sizeof(kdirect_desc));
	uint64_t end = setup.completions + setup.cq_entries * sizeof(kdirect_completion);
	setup.length = (end + page_size - 1) & ~(page_size - 1);
}

} // namespace

// --- life ------------------------------------------------------------------------------

Status kd_ring::make(Sleepable, kdirect_ring_setup &setup)
{
	Channel &channel = *file->channel;
	sq_entries = setup.sq_entries;
	cq_entries = setup.cq_entries;
	polls = setup.flags & KDIRECT_RING_POLL;
	idle_ns = setup.idle_ns;
	lay_out(setup);
	if (Status st = kd_shared_create(setup.length, &shared); !st.ok())
		return st;
	auto *memory = static_cast<char *>(kd_shared_memory(shared));
	words = reinterpret_cast<RingWords *>(memory);
	descs = reinterpret_cast<const uint64_t *>(memory + setup.descs);
	completions = reinterpret_cast<kdirect_completion *>(memory + setup.completions);
	if (!(setup.flags & KDIRECT_RING_THREAD))
		return {};
	Status st = KD_EAGAIN;
	if (channel.ring_threads.fetch_add(1) < KDIRECT_RING_THREADS)
		st = kd_thread_start(this, setup.thread_cpu, &thread);
	if (!st.ok())
		channel.ring_threads.fetch_sub(1);
	return st;
}

Status kd_ring::create(Sleepable s, DescFile &file, kdirect_ring_setup &setup,
		       kd_ring **out) KD_NO_ANALYSIS
{
	{
		SpinGuard guard(file.lock);
		if (file.ring)
			return KD_EBUSY; // attach() has the last word
	}
	auto *ring = kd::create<kd_ring>(s);
	if (!ring)
		return KD_ENOMEM;
	ring->file = &file;
	Status st = ring->make(s, setup);
	if (st.ok())
		st = file.submit_lock.lock_interruptible(s);
	if (st.ok()) {
		st = file.prepare(s);
		if (st.ok())
			st = file.attach(*ring);
		file.submit_lock.unlock();
	}
	if (st.ok())
		*out = ring;
	else
		ring->release(s);
	return st;
}

// Nobody enters any more.
void kd_ring::release(Sleepable s)
{
	if (thread) {
		kd_thread_stop(thread);
		file->channel->ring_threads.fetch_sub(1);
	}
	file->detach(s, *this);
	if (shared)
		kd_shared_free(shared);
	destroy(s, this);
}

// --- the submission ring -----------------------------------------------------------------

void kd_ring::tell(uint32_t bit, bool on)
{
	if (on)
		words->state.fetch_or(bit);
	else
		words->state.fetch_and(~bit);
}

uint32_t kd_ring::submitted(Status &st)
{
	uint32_t count = words->sq_tail.load() - sq_head.load(std::memory_order_relaxed);
	bool bad = count > sq_entries;
	if (bad != sq_bad) {
		sq_bad = bad;
		tell(KDIRECT_RING_SQ_BAD, bad);
	}
	if (!bad)
		return count;
	st = KD_EBADMSG;
	return 0;
}

kdirect_desc kd_ring::desc(uint32_t ahead) const
{
	uint32_t at = (sq_head.load(std::memory_order_relaxed) + ahead) & (sq_entries - 1);
	uint64_t copy[desc_words];
	for (uint32_t i = 0; i < desc_words; i++)
		copy[i] = __atomic_load_n(&descs[at * desc_words + i], __ATOMIC_RELAXED);
	kdirect_desc out;
	copy_bytes(&out, copy, sizeof(out));
	return out;
}

void kd_ring::take()
{
	uint32_t next = sq_head.load(std::memory_order_relaxed) + 1;
	sq_head.store(next, std::memory_order_relaxed);
	words->sq_head.store(next, std::memory_order_release);
}

bool kd_ring::is_watched()
{
	SpinGuard guard(file->lock);
	return file->watched;
}

// --- the completion ring -----------------------------------------------------------------

uint32_t kd_ring::ready() const
{
	uint32_t used = cq_tail.load(std::memory_order_relaxed) - words->cq_head.load();
	return used < cq_entries ? used : cq_entries;
}

bool kd_ring::put(const kdirect_completion &completion)
{
	if (ready() == cq_entries)
		return false;
	uint32_t tail = cq_tail.load(std::memory_order_relaxed);
	completions[tail & (cq_entries - 1)] = completion;
	cq_tail.store(tail + 1, std::memory_order_relaxed);
	words->cq_tail.store(tail + 1, std::memory_order_release);
	return true;
}

bool kd_ring::behind(bool is)
{
	if (is == is_behind)
		return false;
	tell(KDIRECT_RING_CQ_BEHIND, is);
	is_behind = is;
	return true;
}

// --- entering ----------------------------------------------------------------------------

uint32_t kd_ring::ready_in_all()
{
	file->catch_up();
	SpinGuard guard(file->lock);
	return ready() + file->nr_done.load(std::memory_order_relaxed);
}

Status kd_ring::enter(Sleepable s, kdirect_ring_enter &call)
{
	if ((call.flags & ~KDIRECT_ENTER_FLAGS) || call.reserved[0] || call.reserved[1] ||
	    call.reserved[2] || call.min_completions > cq_entries || (call.to_submit && thread) ||
	    ((call.flags & KDIRECT_ENTER_POLL) && !polls))
		return KD_EINVAL;
	bool spin = call.flags & KDIRECT_ENTER_POLL;
	call.submitted = call.ready = 0;
	file->catch_up();
	if (thread_needed()) {
		woken = true;
		file->thread_waitq.wake(0);
	}
	Status st;
	if (call.to_submit)
		st = file->submit(s, *this, call.to_submit, call.submitted);
	bool all = st.ok() || st.err() == KD_EAGAIN;
	Status waited;
	if (all && call.min_completions)
		waited = file->await(s, call.min_completions, spin, call.timeout_ns, this);
	else if (spin)
		file->channel->poll_once(true);
	call.ready = ready_in_all();
	if (call.submitted || (all && call.ready))
		return {};
	return st.ok() ? waited : st;
}

// KD_POLL_* that hold now.
uint32_t kd_ring::poll()
{
	{
		SpinGuard guard(file->lock);
		file->watched = true;
	}
	if (polls)
		file->channel->arm_all();
	uint32_t events = ready_in_all() ? KD_POLL_IN : 0;
	if (words->sq_tail.load() - sq_head.load() < sq_entries)
		events |= KD_POLL_OUT;
	if (!file->under_way.load() && file->refusal())
		events |= KD_POLL_HUP;
	return events;
}

// --- the thread --------------------------------------------------------------------------

// Something was done.
bool kd_ring::pass(Sleepable s)
{
	bool any = file->catch_up();
	uint32_t taken = 0;
	if (thread_needed())
		(void)file->submit(s, *this, UINT32_MAX, taken);
	uint32_t before = file->under_way.load();
	if (polls && before) {
		file->channel->poll_once(true);
		any |= file->under_way.load() != before;
	}
	return any || taken;
}

// Until somebody enters, or a request becomes free that was waited for.
void kd_ring::sleep(Sleepable s)
{
	tell(KDIRECT_RING_NEED_WAKEUP, true);
	bool more = file->catch_up();
	{
		uint32_t count = pending();
		SpinGuard guard(file->lock);
		more |= count && !starved;
	}
	if (!more && polls && file->under_way.load())
		file->channel->arm_all();
	if (!more)
		(void)file->thread_waitq.wait(s, KD_WAIT_KILLABLE, KD_FOREVER,
					      [&] { return woken.load() || kd_thread_stopping(); });
	woken = false;
	tell(KDIRECT_RING_NEED_WAKEUP, false);
}

void kd_ring::serve(Sleepable s)
{
	uint64_t since = kd_now_ns();
	while (!kd_thread_stopping()) {
		if (pass(s)) {
			since = kd_now_ns();
		} else if (kd_now_ns() - since >= idle_ns) {
			sleep(s);
			since = kd_now_ns();
		}
		kd_poll_pause();
	}
}

// --- the shim's calls --------------------------------------------------------------------

int kd_ring_create(struct kd_desc_file *file, struct kdirect_ring_setup *setup,
		   struct kd_ring **out)
{
	if (!is_valid(*setup))
		return KD_EINVAL;
	if ((setup->flags & KDIRECT_RING_POLL) && !file->channel->has_poll_queues())
		return KD_EOPNOTSUPP;
	if (int err = file->refusal())
		return err;
	return kd_ring::create(ShimEntry::may_sleep(), *file, *setup, out).err();
}

void kd_ring_release(struct kd_ring *ring)
{
	ring->release(ShimEntry::may_sleep());
}

int kd_ring_enter(struct kd_ring *ring, struct kdirect_ring_enter *call)
{
	return ring->enter(ShimEntry::may_sleep(), *call).err();
}

uint32_t kd_ring_poll(struct kd_ring *ring)
{
	return ring->poll();
}

struct kd_waitq *kd_ring_waitq(struct kd_ring *ring)
{
	return ring->file->poll_waitq.raw();
}

struct kd_shared *kd_ring_memory(struct kd_ring *ring)
{
	return ring->shared;
}

void kd_ring_thread(struct kd_ring *ring)
{
	ring->serve(ShimEntry::may_sleep());
}
