// SPDX-License-Identifier: GPL-2.0-only
// The context token: what cannot be called without one, what it permits, and what needs
// none and therefore must work with a lock held.
#include "core_cases.h"
#include "registry.hh"

using namespace kd;

namespace
{

using AMutex = Mutex<KD_LOCK_READER>;
using ASpinLock = SpinLock<KD_LOCK_TX>;

struct Thing {
	uint32_t number = 7;
	uint32_t *gone = nullptr;
	~Thing()
	{
		if (gone)
			++*gone;
	}
};

// Templates, since otherwise what cannot be compiled would be an error.
template <class M>
constexpr bool locks_bare = requires(M &m)
{
	m.lock();
};
template <class M>
constexpr bool locks_with_token = requires(M &m, Sleepable s)
{
	m.lock(s);
};
template <class M>
constexpr bool interruptible_bare = requires(M &m)
{
	m.lock_interruptible();
};
template <class W>
constexpr bool waits_bare = requires(W &w)
{
	w.wait(KD_WAIT_KILLABLE, uint64_t(0), [] { return true; });
};
template <class W>
constexpr bool waits_with_token = requires(W &w, Sleepable s)
{
	w.wait(s, KD_WAIT_KILLABLE, uint64_t(0), [] { return true; });
};
template <class T>
constexpr bool creates_bare = requires
{
	create<T>();
};
template <class T>
constexpr bool creates_with_token = requires(Sleepable s)
{
	create<T>(s);
};
template <class T>
constexpr bool arrays_bare = requires
{
	create_array<T>(size_t(1));
};
template <class T>
constexpr bool destroys_bare = requires(T *t)
{
	destroy(t);
};
template <class C>
constexpr bool puts_bare = requires(C &c)
{
	c.put();
};
template <class C>
constexpr bool claims_bare = requires(C &c, Claim &claim)
{
	c.claim(WaitStyle{}, false, claim);
};
template <class C>
constexpr bool fetches_bare = requires(C &c)
{
	c.fetch();
};
template <class Q>
constexpr bool drains_bare = requires(Q &q)
{
	q.drain(uint64_t(0));
};
template <class Q>
constexpr bool stops_bare = requires(Q &q)
{
	q.stop();
};
template <class R>
constexpr bool attaches_bare = requires(R &r, Channel &c, kd_cm *cm)
{
	r.attach(c, cm);
};

} // namespace

void kdk_case_token_is_needed(struct kunit *test)
{
	// nobody makes one but the shim's entry points, and it costs nothing
	EXPECT(!std::is_default_constructible_v<Sleepable>);
	EXPECT(!std::is_aggregate_v<Sleepable>);
	EXPECT(std::is_empty_v<Sleepable>);
	EXPECT(!(std::is_constructible_v<Sleepable, int>));
	EXPECT(std::is_copy_constructible_v<Sleepable>);

	EXPECT(!locks_bare<AMutex> && locks_with_token<AMutex>);
	EXPECT(!interruptible_bare<AMutex>);
	EXPECT(locks_bare<ASpinLock>);
	EXPECT(!(std::is_constructible_v<MutexGuard<AMutex>, AMutex &>));
	EXPECT((std::is_constructible_v<MutexGuard<AMutex>, AMutex &, Sleepable>));
	EXPECT((std::is_constructible_v<SpinGuard<ASpinLock>, ASpinLock &>));
	EXPECT(!waits_bare<WaitQueue> && waits_with_token<WaitQueue>);
	EXPECT(!creates_bare<Thing> && creates_with_token<Thing>);
	EXPECT(!arrays_bare<uint8_t>);
	EXPECT(!destroys_bare<Thing>);
	EXPECT(!puts_bare<Channel> && !puts_bare<Listener>);
	EXPECT(!claims_bare<Channel> && !fetches_bare<Channel>);
	EXPECT(!drains_bare<Queue> && !stops_bare<Queue>);
	EXPECT(!attaches_bare<Registry>);

	// a lock held in two places would be released twice
	EXPECT(!std::is_copy_constructible_v<SpinGuard<ASpinLock>>);
	EXPECT(!std::is_copy_constructible_v<MutexGuard<AMutex>>);
	EXPECT(!std::is_copy_constructible_v<ASpinLock> && !std::is_copy_constructible_v<AMutex>);
	EXPECT(!std::is_copy_constructible_v<WaitQueue>);
}

void kdk_case_token_permits(struct kunit *test)
{
	Sleepable s = ShimEntry::may_sleep();
	uint32_t gone = 0;
	auto *thing = create<Thing>(s);
	ASSERT(thing != nullptr);
	EXPECT_EQ(thing->number, 7U);
	thing->gone = &gone;
	destroy(s, thing);
	EXPECT_EQ(gone, 1U);
	destroy(s, static_cast<Thing *>(nullptr));
	auto *array = create_array<uint64_t>(s, 1000);
	ASSERT(array != nullptr);
	uint64_t all = 0;
	for (int i = 0; i < 1000; i++)
		all |= array[i];
	EXPECT_EQ(all, 0U);
	destroy_array(s, array);

	AMutex mutex;
	{
		MutexGuard guard(mutex, s);
		kdk_sleep_ms(1);
	}
	EXPECT(mutex.try_lock()); // the guard let go of it
	mutex.unlock();
	EXPECT(mutex.lock_interruptible(s).ok());
	mutex.unlock();
	WaitQueue wq;
	EXPECT_EQ(wq.wait(s, KD_WAIT_KILLABLE, 1000000, [] { return false; }).err(), KD_ETIMEDOUT);
	EXPECT(wq.wait(s, KD_WAIT_KILLABLE, 0, [] { return true; }).ok());
}

// No message may be told while a lock is held, since that sleeps: tell afterwards.
void kdk_case_without_token(struct kunit *test)
{
	ASpinLock outer;
	SpinLock<KD_LOCK_STATE> inner;
	WaitQueue wq;
	Refs refs;
	Tally tally;
	char text[32];
	bool nested, again, last, not_last;
	int len;
	static kd_work work; // not on the stack
	static uint32_t runs;
	runs = 0;
	kd_work_init(&work, [](kd_work *) { runs++; });
	kd_pages *pages = nullptr;
	int alloc;
	{
		SpinGuard guard(outer);
		nested = inner.try_lock();
		if (nested)
			inner.unlock();
		{
			SpinGuard second(inner);
			wq.wake(KD_WAKE_IN | KD_WAKE_OUT);
			kd_wake(wq.raw(), KD_WAKE_END);
		}
		again = inner.try_lock();
		if (again)
			inner.unlock();
		refs.get();
		not_last = !refs.put();
		last = refs.put();
		tally.add(3);
		tally.add();
		len = kd_format(text, sizeof(text), "%u at %llu", kd_cpu() ? 1U : 0U,
				static_cast<unsigned long long>(kd_random() & 1));
		(void)kd_now_ns();
		kd_work_queue_after(&work, 1000000);
		kd_work_queue(&work);
		alloc = kd_pages_alloc(20000, KD_PAGES_NOWAIT, &pages);
		kd_pages_free(pages);
	}
	kd_work_flush_all();
	kd_work_cancel(&work);
	EXPECT(nested && again && not_last && last);
	EXPECT_EQ(tally.get(), 4U);
	EXPECT_EQ(len, 6);
	EXPECT_EQ(runs, 1U);
	EXPECT(alloc == 0 || alloc == KD_ENOMEM);
}

// The last reference is dropped once, whoever comes first.
void kdk_case_refs(struct kunit *test)
{
	struct Shared {
		Refs refs;
		std::atomic<uint32_t> last{0};
		uint32_t rounds;
	};
	Sleepable s = ShimEntry::may_sleep();
	auto *shared = create<Shared>(s);
	ASSERT(shared != nullptr);
	shared->rounds = kdk_param(test)->a * 10;
	constexpr uint32_t threads = 4;
	for (uint32_t i = 0; i < threads; i++)
		shared->refs.get();
	int err = kdk_threads(
		threads,
		[](void *arg) {
			auto *sh = static_cast<Shared *>(arg);
			for (uint32_t i = 0; i < sh->rounds; i++) {
				sh->refs.get();
				if (sh->refs.put())
					sh->last.fetch_add(1);
			}
			if (sh->refs.put())
				sh->last.fetch_add(1);
		},
		shared);
	EXPECT_EQ(err, 0);
	EXPECT_EQ(shared->last.load(), 0U); // ours is left
	EXPECT(shared->refs.put());
	destroy(s, shared);
}
