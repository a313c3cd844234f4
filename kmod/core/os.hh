// SPDX-License-Identifier: GPL-2.0-only
// The boundary (shim/os.h) in types: locks that release themselves, memory with
// an owner, and a token without which nothing that may sleep can be called.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <new>
#include <type_traits>
#include <utility>

#include "../shim/core.h"
#include "../shim/os.h"
#include "annotate.hh"

namespace kd
{

using Channel = ::kd_channel;
using Queue = ::kd_queue;
using Listener = ::kd_listener;
using Device = ::kd_device;
using Mapping = ::kd_mapping;
using DescFile = ::kd_desc_file;

// Proof that the caller runs in process context without a spin lock. Only the
// entry points that the shim calls in such a context make one (ShimEntry).
class Sleepable
{
	constexpr Sleepable() = default;
	friend struct ShimEntry;
};

// For the functions of core.h that are marked [sleep], and work functions.
struct ShimEntry {
	static Sleepable may_sleep() { return {}; }
};

// 0 or a positive KD_* value.
class [[nodiscard]] Status
{
public:
	constexpr Status() = default;
	constexpr Status(int err) : err_(err) {}
	constexpr bool ok() const { return err_ == 0; }
	constexpr int err() const { return err_; }

private:
	int err_ = 0;
};

template <kd_lock_class Class>
class KD_CAPABILITY("spin lock") SpinLock
{
public:
	SpinLock() { kd_spin_init(&lock_, Class); }
	SpinLock(const SpinLock &) = delete;
	SpinLock &operator=(const SpinLock &) = delete;
	void lock() KD_ACQUIRE() { kd_spin_lock(&lock_); }
	bool try_lock() KD_TRY_ACQUIRE(true) { return kd_spin_trylock(&lock_); }
	void unlock() KD_RELEASE() { kd_spin_unlock(&lock_); }

private:
	kd_spinlock lock_;
};

template <kd_lock_class Class>
class KD_CAPABILITY("mutex") Mutex
{
public:
	Mutex() { kd_mutex_init(&lock_, Class); }
	Mutex(const Mutex &) = delete;
	Mutex &operator=(const Mutex &) = delete;
	void lock(Sleepable) KD_ACQUIRE() { kd_mutex_lock(&lock_); }
	Status lock_interruptible(Sleepable) KD_NO_ANALYSIS
	{
		return kd_mutex_lock_interruptible(&lock_);
	}
	bool try_lock() KD_TRY_ACQUIRE(true) { return kd_mutex_trylock(&lock_); }
	void unlock() KD_RELEASE() { kd_mutex_unlock(&lock_); }

private:
	kd_mutex lock_;
};

template <class Lock>
class KD_SCOPED SpinGuard
{
public:
	explicit SpinGuard(Lock &lock) KD_ACQUIRE(lock) : lock_(lock) { lock_.lock(); }
	~SpinGuard() KD_RELEASE() { lock_.unlock(); }
	SpinGuard(const SpinGuard &) = delete;
	SpinGuard &operator=(const SpinGuard &) = delete;

private:
	Lock &lock_;
};

template <class Lock>
class KD_SCOPED MutexGuard
{
public:
	MutexGuard(Lock &lock, Sleepable s) KD_ACQUIRE(lock) : lock_(lock) { lock_.lock(s); }
	~MutexGuard() KD_RELEASE() { lock_.unlock(); }
	MutexGuard(const MutexGuard &) = delete;
	MutexGuard &operator=(const MutexGuard &) = delete;

private:
	Lock &lock_;
};

class WaitQueue
{
public:
	WaitQueue() { kd_waitq_init(&wq_); }
	WaitQueue(const WaitQueue &) = delete;
	WaitQueue &operator=(const WaitQueue &) = delete;

	void wake(unsigned key)
	{
		if (!kd_waitq_idle(&wq_))
			kd_wake(&wq_, key);
	}
	// Sleeps until done() is true.
	template <class Done>
	Status wait(Sleepable, kd_wait_mode mode, uint64_t timeout_ns, const Done &done)
	{
		auto call = [](void *arg) { return (*static_cast<const Done *>(arg))(); };
		return kd_wait(&wq_, call, const_cast<Done *>(&done), timeout_ns, mode);
	}
	kd_waitq *raw() { return &wq_; }

private:
	kd_waitq wq_;
};

// Objects are made of zeroed memory and constructors that cannot fail.
template <class T>
T *create(Sleepable)
{
	void *mem = kd_zalloc(sizeof(T));
	return mem ? new (mem) T{} : nullptr;
}

template <class T>
T *create_array(Sleepable, size_t count)
{
	auto *array = static_cast<T *>(kd_zalloc(sizeof(T) * count));
	for (size_t i = 0; array && i < count; i++)
		new (&array[i]) T{};
	return array;
}

template <class T>
void destroy(Sleepable, T *object)
{
	if (object)
		object->~T();
	kd_free(object);
}

template <class T>
void destroy_array(Sleepable, T *array)
{
	static_assert(std::is_trivially_destructible_v<T>);
	kd_free(array);
}

// Born at one. put() returns true to the holder of the last reference.
class Refs
{
public:
	void get() { count_.fetch_add(1, std::memory_order_relaxed); }
	bool put() { return count_.fetch_sub(1, std::memory_order_acq_rel) == 1; }

private:
	std::atomic<uint32_t> count_{1};
};

// A counter with one writer at a time, which anyone may read.
class Tally
{
public:
	void add(uint64_t n = 1)
	{
		value_.store(value_.load(std::memory_order_relaxed) + n, std::memory_order_relaxed);
	}
	uint64_t get() const { return value_.load(std::memory_order_relaxed); }

private:
	std::atomic<uint64_t> value_{0};
};

// The object of type T whose `member` this points to.
#define KD_CONTAINER(pointer, T, member)                                                           \
	reinterpret_cast<T *>(reinterpret_cast<char *>(pointer) - __builtin_offsetof(T, member))

// Fills in an error and returns its number.
#define KD_ERROR(error, number, attribute, ...)                                                    \
	((error)->err = (number), (error)->attr = (attribute),                                     \
	 kd_format((error)->text, sizeof((error)->text), __VA_ARGS__), ::kd::Status(number))

inline void copy_bytes(void *to, const void *from, size_t n)
{
	__builtin_memcpy(to, from, n);
}
inline bool same_bytes(const void *a, const void *b, size_t n)
{
	return !__builtin_memcmp(a, b, n);
}

} // namespace kd
