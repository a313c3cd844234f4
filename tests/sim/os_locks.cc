// SPDX-License-Identifier: GPL-2.0-only
// os.h: locks. They check what lockdep checks: order, recursion, context, balance.
#include <cstring>

#include "watch.h"
#include "world.h"

using namespace sim;

namespace
{

constexpr uint32_t spin_magic = 0x5350494e;
constexpr uint32_t mutex_magic = 0x4d545558;

struct Lock {
	uint32_t magic;
	uint32_t cls;
	Fiber *owner;
	uint32_t spinners;
};
static_assert(sizeof(Lock) <= sizeof(kd_spinlock) && sizeof(Lock) <= sizeof(kd_mutex));

template <typename T>
Lock *impl(T *lock, uint32_t magic, const char *function)
{
	auto *ptr = reinterpret_cast<Lock *>(lock->opaque);

	if (ptr->magic != magic)
		die("%s: lock %p is not initialised", function, static_cast<void *>(lock));
	return ptr;
}

void check_order(const Lock *lock, const char *function)
{
	Fiber *self = world().sched.current();

	if (lock->owner == self)
		die("%s: lock of class %u taken twice by %s", function, lock->cls,
		    self->name.c_str());
	for (const HeldLock &held : self->held)
		if (held.cls >= lock->cls)
			fail("%s: lock of class %u inside one of class %u", function, lock->cls,
			     held.cls);
}

void taken(Lock *lock, const void *key, bool spin)
{
	Fiber *self = world().sched.current();

	watch::acquire(key);
	lock->owner = self;
	self->held.push_back({key, lock->cls, spin});
}

void released(Lock *lock, const void *key, const char *function)
{
	Fiber *self = world().sched.current();

	if (lock->owner != self)
		die("%s: lock of class %u is not held by %s", function, lock->cls,
		    self ? self->name.c_str() : "this");
	watch::release(key);
	lock->owner = nullptr;
	std::erase_if(self->held, [&](const HeldLock &held) { return held.lock == key; });
}

int lock_mutex(kd_mutex *lock, bool interruptible, const char *function)
{
	World &w = world();

	w.enter(function, true);
	Lock *self = impl(lock, mutex_magic, function);
	Fiber *fiber = w.sched.current();

	check_order(self, function);
	while (self->owner) {
		if (fiber->nowait)
			fail("%s blocks a caller that must not block", function);
		if (interruptible && fiber->signal_ends(false))
			return KD_EINTR;
		fiber->mutex = lock;
		fiber->interruptible = interruptible;
		w.sched.block(function);
		fiber->mutex = nullptr;
		fiber->interruptible = false;
	}
	taken(self, lock, false);
	return 0;
}

} // namespace

extern "C" {

void kd_spin_init(struct kd_spinlock *lock, enum kd_lock_class cls)
{
	std::memset(lock, 0, sizeof(*lock));
	*reinterpret_cast<Lock *>(lock->opaque) = {spin_magic, cls, nullptr, 0};
}

void kd_spin_lock(struct kd_spinlock *lock)
{
	World &w = world();

	w.enter(__func__, false);
	Lock *self = impl(lock, spin_magic, __func__);

	check_order(self, __func__);
	while (self->owner) {
		Fiber *fiber = w.sched.current();

		self->spinners++;
		fiber->spin = lock;
		w.sched.block(__func__);
		fiber->spin = nullptr;
		self->spinners--;
	}
	taken(self, lock, true);
}

bool kd_spin_trylock(struct kd_spinlock *lock)
{
	world().enter(__func__, false);
	Lock *self = impl(lock, spin_magic, __func__);

	if (self->owner)
		return false;
	taken(self, lock, true);
	return true;
}

void kd_spin_unlock(struct kd_spinlock *lock)
{
	World &w = world();
	Lock *self = impl(lock, spin_magic, __func__);

	released(self, lock, __func__);
	if (self->spinners)
		for (const auto &fiber : w.sched.all())
			if (fiber->spin == lock)
				w.sched.wake(fiber.get());
	w.sched.preempt();
}

void kd_mutex_init(struct kd_mutex *lock, enum kd_lock_class cls)
{
	std::memset(lock, 0, sizeof(*lock));
	*reinterpret_cast<Lock *>(lock->opaque) = {mutex_magic, cls, nullptr, 0};
}

void kd_mutex_lock(struct kd_mutex *lock)
{
	lock_mutex(lock, false, __func__);
}

int kd_mutex_lock_interruptible(struct kd_mutex *lock)
{
	return lock_mutex(lock, true, __func__);
}

bool kd_mutex_trylock(struct kd_mutex *lock)
{
	world().enter(__func__, true);
	Lock *self = impl(lock, mutex_magic, __func__);

	if (self->owner)
		return false;
	taken(self, lock, false);
	return true;
}

void kd_mutex_unlock(struct kd_mutex *lock)
{
	World &w = world();

	w.enter(__func__, true);
	released(impl(lock, mutex_magic, __func__), lock, __func__);
	for (const auto &fiber : w.sched.all())
		if (fiber->mutex == lock)
			w.sched.wake(fiber.get());
	w.sched.preempt();
}

} /* extern "C" */
