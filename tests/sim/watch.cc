// SPDX-License-Identifier: GPL-2.0-only
#include "watch.h"

#ifdef KD_WATCH
#include <sys/mman.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstring>
#include <vector>

#include "report.h"
#include "world.h"

extern "C" char __executable_start;

namespace sim::watch
{

namespace
{

constexpr std::size_t arena_size = 64U << 20;
constexpr unsigned int granule = 8;
constexpr unsigned int slots = 64; /* fibers at once; slot 0 is the scheduler's */
constexpr unsigned int no_slot = slots;

/* When which bytes of a granule were accessed by whom. */
struct Access {
	uint32_t clock;
	uint8_t slot;
	uint8_t mask; /* bytes; 0 = none */
	uint32_t pc;  /* from the start of the program */
};
struct Cell {
	Access write;
	Access read[2];
};

struct Clock {
	uint32_t at[slots];
};

char *arena;
Cell *cells;
uint8_t *freed; /* by granule: 0 = never allocated, 1 = in use, 2 = freed */
std::size_t used;

bool races;
unsigned int preempt_permille;
unsigned int current; /* slot */
unsigned int highest; /* slot ever used */
Clock clocks[slots];
bool busy[slots];

/* What release() left behind, by object: an open hash. */
constexpr std::size_t sync_places = 1U << 14;
struct Sync {
	const void *object;
	uint32_t clock; /* index + 1 */
};
Sync syncs[sync_places];
std::vector<uint32_t> syncs_used;
std::vector<Clock> sync_clocks;
uint64_t reports;

void map()
{
	auto get = [](std::size_t size) {
		void *mem = mmap(nullptr, size, PROT_READ | PROT_WRITE,
				 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
		if (mem == MAP_FAILED)
			die("no memory to watch");
		return mem;
	};

	arena = static_cast<char *>(get(arena_size));
	cells = static_cast<Cell *>(get(arena_size / granule * sizeof(Cell)));
	freed = static_cast<uint8_t *>(get(arena_size / granule));
}

void join(Clock &to, const Clock &from)
{
	for (unsigned int i = 0; i <= highest; i++)
		to.at[i] = std::max(to.at[i], from.at[i]);
}

Clock *sync_clock(const void *object, bool make)
{
	auto hash = reinterpret_cast<uintptr_t>(object) * 0x9e3779b97f4a7c15ULL >> 50;

	for (std::size_t i = hash & (sync_places - 1);; i = (i + 1) & (sync_places - 1)) {
		if (syncs[i].object == object)
			return &sync_clocks[syncs[i].clock - 1];
		if (syncs[i].object)
			continue;
		if (!make || syncs_used.size() > sync_places / 2)
			return nullptr;
		sync_clocks.emplace_back();
		syncs[i] = {object, static_cast<uint32_t>(sync_clocks.size())};
		syncs_used.push_back(static_cast<uint32_t>(i));
		return &sync_clocks.back();
	}
}

bool after(const Access &access)
{
	return access.clock <= clocks[current].at[access.slot];
}

uint32_t offset_of(const void *pc)
{
	return static_cast<uint32_t>(static_cast<const char *>(pc) - &__executable_start);
}

void race(const Access &old, bool old_write, bool write, const void *pc)
{
	static std::vector<uint64_t> told;
	uint32_t now = offset_of(pc);
	uint64_t both = static_cast<uint64_t>(std::min(old.pc, now)) << 32 | std::max(old.pc, now);

	reports++;
	if (std::find(told.begin(), told.end(), both) != told.end())
		return;
	told.push_back(both);
	Fiber *self = world().sched.current();
	fail("data race: %s at %#x of %s, after a %s at %#x that nothing orders before it "
	     "(addr2line -Cfie PROGRAM)",
	     write ? "write" : "read", now - 1, self ? self->name.c_str() : "scheduler",
	     old_write ? "write" : "read", old.pc - 1);
}

void check(Cell &cell, uint8_t mask, bool write, const void *pc)
{
	uint32_t clock = clocks[current].at[current];

	if ((cell.write.mask & mask) && !after(cell.write))
		race(cell.write, true, write, pc);
	if (write) {
		for (Access &read : cell.read) {
			if ((read.mask & mask) && !after(read))
				race(read, false, true, pc);
			if (!(read.mask & ~mask))
				read.mask = 0;
		}
		cell.write = {clock, static_cast<uint8_t>(current), mask, offset_of(pc)};
		return;
	}
	for (Access &read : cell.read) {
		if (read.mask && !(read.slot == current && read.mask == mask) &&
		    !((read.mask & ~mask) == 0 && after(read)))
			continue;
		read = {clock, static_cast<uint8_t>(current), mask, offset_of(pc)};
		return;
	}
	cell.read[clock & 1] = {clock, static_cast<uint8_t>(current), mask, offset_of(pc)};
}

void access(const void *mem, std::size_t size, bool write, const void *pc, bool atomic)
{
	auto at = static_cast<std::size_t>(static_cast<const char *>(mem) - arena);

	if (at < used) {
		std::size_t last = (at + size - 1) / granule;

		if (freed[at / granule] != 1 || freed[last] != 1) {
			Fiber *self = world().sched.current();

			die("%s of %zu bytes %s at %#x of %s", write ? "write" : "read", size,
			    freed[last] == 2 ? "of freed memory" : "outside of any object",
			    offset_of(pc) - 1, self ? self->name.c_str() : "scheduler");
		}
		if (races && current && current != no_slot && !atomic) {
			for (std::size_t g = at / granule; g <= last; g++) {
				std::size_t low = std::max(at, g * granule) - g * granule;
				std::size_t high =
					std::min(at + size, (g + 1) * granule) - g * granule;

				check(cells[g], static_cast<uint8_t>((1U << high) - (1U << low)),
				      write, pc);
			}
		}
		if (preempt_permille)
			world().sched.preempt_at_access(preempt_permille);
	}
}

} // namespace

void reset(bool look_for_races, unsigned int permille)
{
	if (!arena)
		map();
	std::memset(freed, 0, used / granule);
	used = granule;
	races = look_for_races;
	preempt_permille = permille;
	for (uint32_t place : syncs_used)
		syncs[place] = {};
	syncs_used.clear();
	sync_clocks.clear();
	sync_clocks.reserve(sync_places);
	std::memset(busy, 0, sizeof(busy));
	std::memset(clocks, 0, sizeof(clocks));
	for (unsigned int i = 0; i < slots; i++)
		clocks[i].at[i] = 1;
	busy[0] = true;
	current = 0;
	highest = 0;
}

void *allocate(std::size_t size)
{
	/* a gap between two objects, so that running over shows */
	std::size_t room = (size + granule - 1) / granule * granule;
	std::size_t at = (used + 2 * granule - 1) / 16 * 16 + 16;

	if (at + room + granule > arena_size)
		die("the arena of %zu bytes is full", arena_size);
	used = at + room + granule;
	std::memset(arena + at, 0, room);
	std::memset(freed + at / granule, 1, room / granule);
	if (races)
		std::memset(cells + at / granule, 0, room / granule * sizeof(Cell));
	return arena + at;
}

bool deallocate(void *mem, std::size_t size)
{
	auto at = static_cast<std::size_t>(static_cast<char *>(mem) - arena);

	if (at >= used)
		return false;
	std::size_t count = (size + granule - 1) / granule;
	if (races && current && current != no_slot)
		for (std::size_t g = at / granule; g < at / granule + count; g++)
			check(cells[g], 0xff, true, __builtin_return_address(0));
	std::memset(freed + at / granule, 2, count);
	return true;
}

void acquire(const void *object)
{
	if (!races || current == no_slot)
		return;
	if (const Clock *clock = sync_clock(object, false))
		join(clocks[current], *clock);
}

void release(const void *object)
{
	if (!races || current == no_slot)
		return;
	if (Clock *clock = sync_clock(object, true))
		join(*clock, clocks[current]);
	clocks[current].at[current]++;
}

void begin(Fiber *fiber)
{
	fiber->slot = no_slot;
	if (!races)
		return;
	for (unsigned int i = 1; i < slots; i++) {
		if (busy[i])
			continue;
		uint32_t own = clocks[i].at[i] + 1;

		busy[i] = true;
		highest = std::max(highest, i);
		fiber->slot = i;
		clocks[i] = clocks[current == no_slot ? 0 : current];
		clocks[i].at[i] = own;
		if (current != no_slot)
			clocks[current].at[current]++;
		return;
	}
}

void end(Fiber *fiber)
{
	if (races && fiber->slot < slots)
		busy[fiber->slot] = false;
}

void run(const Fiber *fiber)
{
	current = fiber ? fiber->slot : 0;
}

uint64_t found()
{
	return reports;
}

} // namespace sim::watch

// --- what the compiler calls -------------------------------------------------------------

using sim::watch::access;

namespace
{

bool acquires(int order)
{
	return order == __ATOMIC_ACQUIRE || order == __ATOMIC_CONSUME ||
	       order == __ATOMIC_ACQ_REL || order == __ATOMIC_SEQ_CST;
}

bool releases(int order)
{
	return order == __ATOMIC_RELEASE || order == __ATOMIC_ACQ_REL || order == __ATOMIC_SEQ_CST;
}

template <typename T, typename Fn>
T update(volatile T *mem, int order, const void *pc, const Fn &fn)
{
	auto *at = const_cast<T *>(mem);

	access(at, sizeof(T), true, pc, true);
	T old = *at;
	*at = fn(old);
	if (acquires(order))
		sim::watch::acquire(at);
	if (releases(order))
		sim::watch::release(at);
	return old;
}

template <typename T>
bool exchange_if(volatile T *mem, T *expected, T desired, int order, const void *pc)
{
	bool same = false;

	update(mem, order, pc, [&](T old) {
		same = old == *expected;
		if (!same)
			*expected = old;
		return same ? desired : old;
	});
	return same;
}

} // namespace

#define PC __builtin_return_address(0)

extern "C" {

void __tsan_init() {}
void __tsan_func_entry(void *) {}
void __tsan_func_exit() {}
void __tsan_vptr_update(void **, void *) {}
void __tsan_vptr_read(void **) {}

#define WATCH_SIZE(size)                                                                           \
	void __tsan_read##size(void *mem)                                                          \
	{                                                                                          \
		access(mem, size, false, PC, false);                                               \
	}                                                                                          \
	void __tsan_write##size(void *mem)                                                         \
	{                                                                                          \
		access(mem, size, true, PC, false);                                                \
	}                                                                                          \
	void __tsan_unaligned_read##size(void *mem)                                                \
	{                                                                                          \
		access(mem, size, false, PC, false);                                               \
	}                                                                                          \
	void __tsan_unaligned_write##size(void *mem)                                               \
	{                                                                                          \
		access(mem, size, true, PC, false);                                                \
	}                                                                                          \
	void __tsan_volatile_read##size(void *mem)                                                 \
	{                                                                                          \
		access(mem, size, false, PC, true);                                                \
	}                                                                                          \
	void __tsan_volatile_write##size(void *mem)                                                \
	{                                                                                          \
		access(mem, size, true, PC, true);                                                 \
	}
WATCH_SIZE(1)
WATCH_SIZE(2)
WATCH_SIZE(4)
WATCH_SIZE(8)
WATCH_SIZE(16)

void __tsan_read_range(void *mem, std::size_t size)
{
	if (size)
		access(mem, size, false, PC, false);
}
void __tsan_write_range(void *mem, std::size_t size)
{
	if (size)
		access(mem, size, true, PC, false);
}

#define WATCH_RMW(bits, name, expression)                                                          \
	uint##bits##_t __tsan_atomic##bits##_##name(volatile uint##bits##_t *mem,                  \
						    uint##bits##_t value, int order)               \
	{                                                                                          \
		return update(mem, order, PC, [&]([[maybe_unused]] uint##bits##_t old) {           \
			return static_cast<uint##bits##_t>(expression);                            \
		});                                                                                \
	}
#define WATCH_ATOMIC(bits)                                                                         \
	uint##bits##_t __tsan_atomic##bits##_load(const volatile uint##bits##_t *mem, int order)   \
	{                                                                                          \
		access(const_cast<uint##bits##_t *>(mem), bits / 8, false, PC, true);              \
		if (acquires(order))                                                               \
			sim::watch::acquire(const_cast<uint##bits##_t *>(mem));                    \
		return *mem;                                                                       \
	}                                                                                          \
	void __tsan_atomic##bits##_store(volatile uint##bits##_t *mem, uint##bits##_t value,       \
					 int order)                                                \
	{                                                                                          \
		access(const_cast<uint##bits##_t *>(mem), bits / 8, true, PC, true);               \
		if (releases(order))                                                               \
			sim::watch::release(const_cast<uint##bits##_t *>(mem));                    \
		*mem = value;                                                                      \
	}                                                                                          \
	WATCH_RMW(bits, exchange, value)                                                           \
	WATCH_RMW(bits, fetch_add, old + value)                                                    \
	WATCH_RMW(bits, fetch_sub, old - value)                                                    \
	WATCH_RMW(bits, fetch_and, old &value)                                                     \
	WATCH_RMW(bits, fetch_or, old | value)                                                     \
	WATCH_RMW(bits, fetch_xor, old ^ value)                                                    \
	WATCH_RMW(bits, fetch_nand, ~(old & value))                                                \
	int __tsan_atomic##bits##_compare_exchange_strong(volatile uint##bits##_t *mem,            \
							  uint##bits##_t *expected,                \
							  uint##bits##_t desired, int order, int)  \
	{                                                                                          \
		return exchange_if(mem, expected, desired, order, PC);                             \
	}                                                                                          \
	int __tsan_atomic##bits##_compare_exchange_weak(volatile uint##bits##_t *mem,              \
							uint##bits##_t *expected,                  \
							uint##bits##_t desired, int order, int)    \
	{                                                                                          \
		return exchange_if(mem, expected, desired, order, PC);                             \
	}
WATCH_ATOMIC(8)
WATCH_ATOMIC(16)
WATCH_ATOMIC(32)
WATCH_ATOMIC(64)

void __tsan_atomic_thread_fence(int) {}
void __tsan_atomic_signal_fence(int) {}
}
#endif
