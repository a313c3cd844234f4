/* SPDX-License-Identifier: GPL-2.0-only */
/* Programs that use rings. */
#pragma once
#include <atomic>

#include "map.h"

namespace sim
{

/* The open file of a pair of rings, and its memory. */
class Ring
{
public:
	Ring() = default;
	Ring(std::shared_ptr<OpenMap> holds, kd_ring *r, const kdirect_ring_setup &s);
	Ring(Ring &&other) noexcept { *this = std::move(other); }
	Ring &operator=(Ring &&other) noexcept;
	~Ring() { close(); }

	explicit operator bool() const { return ring; }
	void close();
	/* As the ioctl: 0 or a KD_* value. */
	int enter(kdirect_ring_enter &call);
	int enter(uint32_t to_submit, uint32_t min_completions = 0, uint32_t flags = 0,
		  uint64_t timeout_ns = 0);
	uint32_t poll(uint32_t mask, uint64_t timeout);

	/* --- what a program does by itself --- */
	using Word = std::atomic_ref<uint32_t>;
	Word sq_head() const { return word(setup.sq_head); }
	Word sq_tail() const { return word(setup.sq_tail); }
	Word cq_head() const { return word(setup.cq_head); }
	Word cq_tail() const { return word(setup.cq_tail); }
	uint32_t state() const { return word(setup.state).load(); }
	char *memory() const { return base; }
	uint32_t room() const { return setup.sq_entries - (sq_tail() - sq_head()); }
	/* False: no room. */
	bool push(const kdirect_desc &desc);
	bool pop(kdirect_completion &out);
	/* Enters if the thread sleeps. */
	void nudge();

	/* The process that made it has ended. */
	void orphan();

	kdirect_ring_setup setup{};

private:
	Word word(uint32_t at) const { return Word(*reinterpret_cast<uint32_t *>(base + at)); }

	std::shared_ptr<OpenMap> open;
	kd_ring *ring = nullptr;
	char *base = nullptr;
};

/* Of the open file of a mapping, or of a raw channel. */
Ring make_ring(const std::shared_ptr<OpenMap> &open, const kdirect_ring_setup &setup,
	       int *err = nullptr);

} // namespace sim
