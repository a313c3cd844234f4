// SPDX-License-Identifier: GPL-2.0-only
// The simulation must see what it is there to see: memory, locks, waiting, work.
#include <gtest/gtest.h>

#include "fake_core.h"

using namespace sim;

namespace
{

/* What a world with these calls in it finds wrong. */
std::vector<std::string> complaints(const std::function<void(World &)> &body)
{
	std::vector<std::string> found;

	{
		World w({.core = &fake_core()});

		w.call([&] { body(w); });
		found = w.failures();
	}
	return found;
}

bool complains(const std::string &about, const std::function<void(World &)> &body)
{
	for (const std::string &text : complaints(body))
		if (text.find(about) != std::string::npos)
			return true;
	return false;
}

template <kd_lock_class Class>
struct Spin : kd_spinlock {
	Spin() { kd_spin_init(this, Class); }
};

TEST(Checks, NothingWrongNothingSaid)
{
	EXPECT_TRUE(complaints([](World &) {
			    void *mem = kd_zalloc(16);
			    kd_mutex mutex;

			    kd_mutex_init(&mutex, KD_LOCK_REGISTRY);
			    kd_mutex_lock(&mutex);
			    Spin<KD_LOCK_TX> tx;
			    Spin<KD_LOCK_RX> rx;
			    kd_spin_lock(&tx);
			    kd_spin_lock(&rx);
			    kd_spin_unlock(&tx);
			    kd_spin_unlock(&rx);
			    kd_mutex_unlock(&mutex);
			    kd_free(mem);
		    }).empty());
}

TEST(Checks, LockOrder)
{
	EXPECT_TRUE(complains("inside one of class", [](World &) {
		Spin<KD_LOCK_TX> tx;
		Spin<KD_LOCK_RX> rx;

		kd_spin_lock(&rx);
		kd_spin_lock(&tx);
		kd_spin_unlock(&tx);
		kd_spin_unlock(&rx);
	}));
	EXPECT_TRUE(complains("inside one of class", [](World &) {
		Spin<KD_LOCK_TX> one, two;

		kd_spin_lock(&one);
		kd_spin_lock(&two);
		kd_spin_unlock(&two);
		kd_spin_unlock(&one);
	}));
}

TEST(Checks, SleepUnderSpinLock)
{
	EXPECT_TRUE(complains("spin lock held", [](World &) {
		Spin<KD_LOCK_TX> tx;

		kd_spin_lock(&tx);
		kd_free(kd_zalloc(1));
		kd_spin_unlock(&tx);
	}));
}

TEST(Checks, SleepInSoftirq)
{
	EXPECT_TRUE(complains("from a softirq", [](World &w) {
		w.sched.spawn("softirq", Context::Softirq, nullptr, [] { kd_free(kd_zalloc(1)); });
		w.run_for(1 * ms);
	}));
}

TEST(Checks, LockHeldAtTheEnd)
{
	static Spin<KD_LOCK_TX> *lock;

	EXPECT_TRUE(complains("ended with a lock", [](World &w) {
		Spin<KD_LOCK_TX> own;

		lock = &own;
		w.spawn("holder", [] { kd_spin_lock(lock); });
		w.run_for(1 * ms);
	}));
}

TEST(Checks, FreedInUse)
{
	EXPECT_TRUE(complains("freed pending work", [](World &) {
		auto *work = static_cast<kd_work *>(kd_zalloc(sizeof(kd_work)));

		kd_work_init(work, [](kd_work *) {});
		kd_work_queue_after(work, 1 * sec);
		kd_free(work);
	}));
	EXPECT_TRUE(complains("freed a lock", [](World &) {
		auto *lock = static_cast<kd_spinlock *>(kd_zalloc(sizeof(kd_spinlock)));
		static kd_spinlock copy;

		kd_spin_init(lock, KD_LOCK_TX);
		kd_spin_lock(lock);
		copy = *lock;
		kd_free(lock);
		(void)copy;
		world().sched.current()->held.clear();
	}));
}

TEST(Checks, NowaitThatWaits)
{
	EXPECT_TRUE(complains("must not block", [](World &w) {
		kd_waitq wq;

		kd_waitq_init(&wq);
		w.sched.current()->nowait = true;
		kd_wait(
			&wq, [](void *) { return false; }, nullptr, 1 * ms, KD_WAIT_KILLABLE);
	}));
}

TEST(Checks, Leaks)
{
	World *w = new World({.core = &fake_core()});
	std::vector<std::string> reported;
	static std::vector<std::string> *sink;

	sink = &reported;
	w->call([] { (void)kd_zalloc(24); });
	set_reporter([](const std::string &text) { sink->push_back(text); });
	delete w;
	set_reporter([](const std::string &text) { ADD_FAILURE() << text; });
	ASSERT_EQ(reported.size(), 1u);
	EXPECT_NE(reported[0].find("leak: 24 bytes"), std::string::npos);
}

TEST(Checks, WaitAndWake)
{
	for (uint64_t seed = 0; seed < 200; seed++) {
		World w({.seed = seed, .core = &fake_core()});
		static kd_waitq wq;
		static bool flag;
		int result = -1;

		flag = false;
		w.call([] { kd_waitq_init(&wq); });
		Task waiter = w.spawn("waiter", [&] {
			result = kd_wait(
				&wq, [](void *) { return flag; }, nullptr, KD_FOREVER,
				KD_WAIT_UNINTERRUPTIBLE);
		});
		Task waker = w.spawn("waker", [&] {
			flag = true;
			if (!kd_waitq_idle(&wq))
				kd_wake(&wq, KD_WAKE_IN);
		});
		EXPECT_TRUE(w.finish({waiter, waker}, 1 * sec));
		EXPECT_EQ(result, 0);
	}
}

TEST(Checks, WaitTimesOutAndIsInterrupted)
{
	World w({.core = &fake_core()});
	kd_waitq wq;
	int result = -1;
	auto never = [](void *) { return false; };

	w.call([&] {
		kd_waitq_init(&wq);
		uint64_t start = kd_now_ns();
		EXPECT_EQ(kd_wait(&wq, never, nullptr, 5 * ms, KD_WAIT_UNINTERRUPTIBLE),
			  KD_ETIMEDOUT);
		EXPECT_EQ(kd_now_ns() - start, 5 * ms);
	});
	Task waiter = w.spawn("waiter", [&] {
		result = kd_wait(&wq, never, nullptr, KD_FOREVER, KD_WAIT_KILLABLE);
	});
	w.run_for(1 * ms);
	w.signal(waiter, false);
	EXPECT_FALSE(w.finish({waiter}, 1 * sec)) << "not a fatal signal";
	w.signal(waiter, true);
	EXPECT_TRUE(w.finish({waiter}, 1 * sec));
	EXPECT_EQ(result, KD_EINTR);
}

struct CountedWork {
	kd_work work;
	int runs;
	int starts;
	bool running;
};

void count_run(kd_work *work)
{
	auto *self = reinterpret_cast<CountedWork *>(work);

	EXPECT_FALSE(self->running) << "twice at once";
	self->running = true;
	self->starts++;
	world().sched.sleep(10 * us);
	self->running = false;
	self->runs++;
}

TEST(Checks, Work)
{
	for (uint64_t seed = 0; seed < 50; seed++) {
		World w({.seed = seed, .core = &fake_core()});
		CountedWork counted{};

		w.call([&] {
			kd_work_init(&counted.work, count_run);
			EXPECT_TRUE(kd_work_queue_after(&counted.work, 1 * sec));
			EXPECT_FALSE(kd_work_queue_after(&counted.work, 1 * ms)) << "pending";
			EXPECT_FALSE(kd_work_queue(&counted.work)) << "only hastens";
			kd_work_flush_all();
			EXPECT_EQ(counted.runs, 1);
			kd_work_queue(&counted.work);
			while (counted.starts < 2)
				w.sched.sleep(100);
			kd_work_queue(&counted.work); /* it runs: again afterwards */
			kd_work_flush_all();
			EXPECT_EQ(counted.runs, 3);
			kd_work_queue_after(&counted.work, 1 * sec);
			EXPECT_TRUE(kd_work_cancel(&counted.work));
			EXPECT_FALSE(kd_work_cancel(&counted.work));
			kd_work_queue(&counted.work);
			while (counted.starts < 4)
				w.sched.sleep(100);
			kd_work_cancel(&counted.work); /* waits for the end */
			EXPECT_FALSE(counted.running);
		});
	}
}

TEST(Checks, SameSeedSameWorld)
{
	auto run = [](uint64_t seed) {
		World w({.seed = seed, .core = &fake_core()});
		std::string order;

		for (char name = 'a'; name < 'g'; name++)
			w.spawn("fiber", [&order, &w, name] {
				for (int i = 0; i < 4; i++) {
					order += name;
					w.sched.sleep(w.delay());
				}
			});
		w.run_for(10 * ms);
		return order;
	};

	EXPECT_EQ(run(7), run(7));
	EXPECT_NE(run(7), run(8));
}

TEST(Checks, FailNth)
{
	World w({.core = &fake_core()});

	w.call([&] {
		w.fail_nth(Op::Alloc, 2);
		void *first = kd_zalloc(8), *second = kd_zalloc(8), *third = kd_zalloc(8);

		EXPECT_TRUE(first);
		EXPECT_FALSE(second);
		EXPECT_TRUE(third);
		EXPECT_TRUE(w.fault_fired());
		kd_free(first);
		kd_free(third);
	});
}

} // namespace
