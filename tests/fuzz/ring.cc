// SPDX-License-Identifier: GPL-2.0-only
/*
 * Rings: a program that writes anything into their memory, at any time, and enters with
 * anything. Each call ends with an error that is documented; the connection stays; and when
 * the program comes to its senses, so do the rings.
 */
#include <set>

#include "../sim/ring.h"
#include "pairs.h"

using namespace sim;

namespace
{

constexpr int max_steps = 80;
constexpr std::size_t user_size = 100000;
constexpr uint64_t size = 300001, last = UINT64_MAX - 1;

const std::set<int> enter_errors = {KD_EAGAIN, KD_ETIMEDOUT, KD_ESTALE, KD_ENODEV,
				    KD_EPIPE,  KD_EBADMSG,   KD_EINVAL};
const std::set<int> setup_errors = {KD_EINVAL, KD_EOPNOTSUPP, KD_EBUSY,
				    KD_ESTALE, KD_ENODEV,     KD_EPIPE};

class Rings
{
public:
	explicit Rings(Input &input) : in(input), p(options(in), size), memory(p.w, user_size) {}
	void run();

private:
	void setup();
	void enter();
	void write();
	kdirect_desc desc();
	void step();

	Input &in;
	Mapped p;
	Memory memory;
	Ring ring;
	bool ended = false, spoilt = false; /* the mapping; where the rings are */
};

void Rings::setup()
{
	uint8_t how = in.take<uint8_t>();
	kdirect_ring_setup setup{.sq_entries = 1U << how % 5,
				 .cq_entries = 1U << (how >> 3) % 5,
				 .flags = in.below(4)};
	int err;

	if (setup.flags & KDIRECT_RING_THREAD) {
		setup.thread_cpu = -1;
		setup.idle_ns = in.take<uint8_t>() * us;
	}
	if (how == 255) {
		std::size_t at = in.below(sizeof(setup));
		uint8_t byte = in.take<uint8_t>();
		std::memcpy(reinterpret_cast<char *>(&setup) + at, &byte, 1);
	}
	if (how & 64)
		ring.close();
	Ring made = p.file.make_ring(setup, &err);
	MUST(!err || setup_errors.contains(err));
	if (made)
		ring = std::move(made), spoilt = false;
}

kdirect_desc Rings::desc()
{
	uint8_t how = in.take<uint8_t>();
	uint32_t length = how & 16 ? in.take<uint16_t>() : in.take<uint8_t>();
	uint64_t remote = how & 32 ? in.take<uint16_t>() * 5U : in.take<uint8_t>() * 8U;

	switch (how % 4) {
	case 0: return add_desc(remote, 1);
	case 1: return fixed_desc(how & 64, 0, in.take<uint16_t>(), length, remote);
	case 2: return write_desc(memory.at(in.take<uint16_t>()), length, remote);
	default: return read_desc(memory.at(in.take<uint16_t>()), length, remote);
	}
}

void Rings::write()
{
	uint64_t value = in.number();
	uint32_t words = static_cast<uint32_t>(ring.setup.length / sizeof(uint32_t));

	switch (in.below(5)) {
	case 0: ring.sq_tail() += static_cast<uint32_t>(value); return;
	case 1: ring.cq_head() = static_cast<uint32_t>(value); return;
	case 2: {
		/* an address of ours, or none: not one of the fuzzer's own */
		uint32_t at = in.take<uint16_t>() % words * sizeof(uint32_t);
		auto word = static_cast<uint32_t>(value);
		std::memcpy(ring.memory() + at, &word, sizeof(word));
		spoilt |= at == ring.setup.sq_head || at == ring.setup.cq_tail;
		return;
	}
	default: (void)ring.push(desc()); return;
	}
}

void Rings::enter()
{
	uint8_t how = in.take<uint8_t>();
	kdirect_ring_enter call{
		.to_submit = ring.setup.flags & KDIRECT_RING_THREAD ? 0U : in.take<uint8_t>(),
		.min_completions = how & 1 ? in.below(ring.setup.cq_entries + 1) : 0,
		.flags = how & 2 ? ring.setup.flags & KDIRECT_RING_POLL : 0,
		.timeout_ns = 1 + in.take<uint8_t>() * 10 * us};

	if (how >= 250) {
		std::size_t at = in.below(offsetof(kdirect_ring_enter, timeout_ns));
		reinterpret_cast<char *>(&call)[at] ^= static_cast<char>(in.take<uint8_t>());
	}
	int err = ring.enter(call);
	MUST(!err || enter_errors.contains(err));
	kdirect_completion c;
	for (uint32_t n = how >> 2 & 15; n && ring.pop(c); n--)
		;
}

void Rings::step()
{
	uint8_t op = in.take<uint8_t>();

	if (!ring) {
		setup();
		return;
	}
	switch (op % 16) {
	case 0: setup(); return;
	case 1: p.w.run_for(in.take<uint8_t>() * 5 * us); return;
	case 2: (void)ring.poll(in.take<uint8_t>() & 7, in.take<uint8_t>() * us); return;
	case 3:
		if (in.flag())
			(void)p.file.set_buffer(0, memory.data(), 1 + in.take<uint16_t>());
		else
			(void)p.file.del_buffer(0);
		return;
	case 4: ring.nudge(); return;
	case 5:
		if (op < 200)
			return;
		ended = true;
		switch (in.below(5)) {
		case 0: (void)del_map(p.w, "m"); return;
		case 1: (void)del_export(p.w, "mem"); return;
		case 2: p.w.del("c0"); return;
		case 3: p.w.remove_device(p.a); return;
		default: p.w.del("store.0"); return;
		}
	case 6:
	case 7:
	case 8:
	case 9: enter(); return;
	default: write(); return;
	}
}

void Rings::run()
{
	MUST(p.file);
	for (int i = 0; i < max_steps && !in.empty(); i++)
		step();
	if (in.flag())
		p.file.close();
	p.w.run_for(50 * ms);
	if (ended || spoilt || !ring)
		return;
	MUST(p.w.state("c0") == KDIRECT_STATE_LIVE && p.w.state("store.0") == KDIRECT_STATE_LIVE);
	/* sane again: what waits comes, and then what is submitted */
	ring.sq_tail() = ring.sq_head().load();
	ring.cq_head() = ring.cq_tail().load();
	MUST(ring.push(read_desc(memory.at(), 0, 0, last)));
	bool threaded = ring.setup.flags & KDIRECT_RING_THREAD, found = false;
	for (int i = 0; i < 2000 && !found; i++) {
		kdirect_completion c;

		(void)ring.enter(threaded ? 0 : 1, 1, 0, 10 * ms);
		while (ring.pop(c))
			found |= c.user_data == last;
	}
	MUST(found);
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	Input in(data, size);

	Rings(in).run();
	return 0;
}
