// SPDX-License-Identifier: GPL-2.0-only
#include "fiber.h"

#include <sys/mman.h>

#include "report.h"

#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define SIM_ASAN 1
#endif
#if __has_feature(thread_sanitizer)
#define SIM_TSAN 1
#endif
#endif
#if defined(__SANITIZE_ADDRESS__)
#define SIM_ASAN 1
#endif
#if defined(__SANITIZE_THREAD__)
#define SIM_TSAN 1
#endif

#ifdef SIM_ASAN
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#endif
#ifdef SIM_TSAN
#include <sanitizer/tsan_interface.h>
#endif

#ifdef __x86_64__
/*
 * swapcontext() costs a system call, and AddressSanitizer's costs a mapping and
 * forgets what it knew about the stack: a switch of our own, where we know how.
 */
extern "C" void sim_switch_stack(void **save, void *load);
extern "C" void sim_first_switch();
extern "C" void sim_fiber_entry(sim::Fiber *fiber);

asm(R"(
	.text
	.globl sim_switch_stack
	.type sim_switch_stack, @function
sim_switch_stack:
	pushq %rbp
	pushq %rbx
	pushq %r12
	pushq %r13
	pushq %r14
	pushq %r15
	movq %rsp, (%rdi)
	movq %rsi, %rsp
	popq %r15
	popq %r14
	popq %r13
	popq %r12
	popq %rbx
	popq %rbp
	ret
	.size sim_switch_stack, .-sim_switch_stack

	.globl sim_first_switch
	.type sim_first_switch, @function
sim_first_switch:
	movq %rbp, %rdi
	xorl %ebp, %ebp
	call sim_fiber_entry
	ud2
	.size sim_first_switch, .-sim_first_switch
)");
#endif

namespace sim
{

namespace
{

constexpr std::size_t stack_size = 512 * 1024;
constexpr std::size_t guard_size = 4096;

/* Stacks are kept: mapping one costs more than a short fiber does. */
std::vector<void *> spare_stacks;

void *take_stack()
{
	if (!spare_stacks.empty()) {
		void *stack = spare_stacks.back();

		spare_stacks.pop_back();
		return stack;
	}
	void *mem = mmap(nullptr, stack_size + guard_size, PROT_READ | PROT_WRITE,
			 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (mem == MAP_FAILED)
		die("no memory for a stack");
	mprotect(mem, guard_size, PROT_NONE);
	return static_cast<char *>(mem) + guard_size;
}

void give_stack(void *stack)
{
#ifdef SIM_ASAN
	ASAN_UNPOISON_MEMORY_REGION(stack, stack_size);
#endif
	spare_stacks.push_back(stack);
}

} // namespace

Fiber::Fiber() : stack(take_stack())
{
#ifdef SIM_TSAN
	tsan = __tsan_create_fiber(0);
#endif
}

Fiber::~Fiber()
{
#ifdef SIM_TSAN
	__tsan_destroy_fiber(tsan);
#endif
	give_stack(stack);
}

bool Fiber::holds_spin() const
{
	for (const HeldLock &lock : held)
		if (lock.spin)
			return true;
	return false;
}

void Fiber::entry(unsigned int hi, unsigned int lo)
{
	auto ptr = (static_cast<uintptr_t>(hi) << 32) | lo;

	reinterpret_cast<Fiber *>(ptr)->start();
}

#ifdef __x86_64__
extern "C" void sim_fiber_entry(Fiber *fiber)
{
	auto ptr = reinterpret_cast<uintptr_t>(fiber);

	Fiber::entry(static_cast<unsigned int>(ptr >> 32), static_cast<unsigned int>(ptr));
}
#endif

void Fiber::start()
{
#ifdef SIM_ASAN
	__sanitizer_finish_switch_fiber(nullptr, &back_bottom, &back_size);
#endif
	body();
	state = State::Done;
#ifdef SIM_ASAN
	__sanitizer_start_switch_fiber(nullptr, back_bottom, back_size);
#endif
#ifdef SIM_TSAN
	__tsan_switch_to_fiber(back_tsan, 0);
#endif
	switch_out();
	die("a finished fiber ran");
}

#ifdef __x86_64__

void Fiber::switch_in()
{
	sim_switch_stack(&back_sp, self_sp);
}

void Fiber::switch_out()
{
	sim_switch_stack(&self_sp, back_sp);
}

#else

void Fiber::switch_in()
{
	swapcontext(&back, &self);
}

void Fiber::switch_out()
{
	swapcontext(&self, &back);
}

#endif

void Fiber::resume()
{
	if (!started) {
		auto ptr = reinterpret_cast<uintptr_t>(this);

		started = true;
#ifdef __x86_64__
		auto *top = reinterpret_cast<uintptr_t *>(static_cast<char *>(stack) + stack_size);

		*--top = 0; /* keeps the stack aligned at a call */
		*--top = 0; /* entry() returns to nowhere */
		*--top = reinterpret_cast<uintptr_t>(&sim_first_switch);
		*--top = ptr; /* rbp, rbx, r12 to r15 */
		for (int reg = 0; reg < 5; reg++)
			*--top = 0;
		self_sp = top;
#else
		getcontext(&self);
		self.uc_stack.ss_sp = stack;
		self.uc_stack.ss_size = stack_size;
		self.uc_link = nullptr;
		makecontext(&self, reinterpret_cast<void (*)()>(&Fiber::entry), 2,
			    static_cast<unsigned int>(ptr >> 32), static_cast<unsigned int>(ptr));
#endif
	}
#ifdef SIM_ASAN
	__sanitizer_start_switch_fiber(&back_fake_stack, stack, stack_size);
#endif
#ifdef SIM_TSAN
	back_tsan = __tsan_get_current_fiber();
	__tsan_switch_to_fiber(tsan, 0);
#endif
	switch_in();
#ifdef SIM_ASAN
	__sanitizer_finish_switch_fiber(back_fake_stack, nullptr, nullptr);
#endif
}

void Fiber::suspend()
{
#ifdef SIM_ASAN
	__sanitizer_start_switch_fiber(&fake_stack, back_bottom, back_size);
#endif
#ifdef SIM_TSAN
	__tsan_switch_to_fiber(back_tsan, 0);
#endif
	switch_out();
#ifdef SIM_ASAN
	__sanitizer_finish_switch_fiber(fake_stack, &back_bottom, &back_size);
#endif
}

} // namespace sim
