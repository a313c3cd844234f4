// SPDX-License-Identifier: GPL-2.0-only
// os_desc.h: a program's memory, fixed buffers, chains of work requests.
#include <cstring>

#include "map.h"
#include "post.h"
#include "watch.h"

using namespace sim;

namespace
{

constexpr uint64_t huge_page = 1 << 21;

bool mapped(uint64_t addr, std::size_t len)
{
	const auto &user = world().user;
	const Thread *thread = world().sched.current()->thread;

	if (thread && !thread->adopted)
		die("a thread uses memory of a program that it has not adopted");
	auto after = user.upper_bound(addr);

	if (after == user.begin())
		return false;
	const auto &[base, size] = *--after;
	return addr - base <= size && len <= size - (addr - base);
}

uint64_t pages_of(uint64_t addr, uint64_t len)
{
	return (addr % page_size + len + page_size - 1) / page_size;
}

Fixed *to_fixed(const kd_fixed *fixed, const char *function)
{
	return world().fixed.check(fixed, function);
}

/* The end of the range that holds @offset. */
uint64_t range_end(const Fixed &fixed, uint64_t offset)
{
	uint64_t skew = reinterpret_cast<uint64_t>(fixed.user) % fixed.range;

	return std::min(fixed.len,
			(offset + skew) / fixed.range * fixed.range + fixed.range - skew);
}

uint8_t *place_at(const kd_place &place, uint32_t len, const char *function,
		  bool mapped_too = false)
{
	if (!place.pages == !place.fixed)
		die("%s: not one memory", function);
	Pages *pages = place.pages ? world().pages.check(place.pages, function) : nullptr;
	Fixed *fixed = place.fixed ? to_fixed(place.fixed, function) : nullptr;
	uint64_t size = pages ? pages->len : fixed->len;

	if (place.offset > size || len > size - place.offset)
		die("%s: %u bytes from %llu of %llu", function, len,
		    static_cast<unsigned long long>(place.offset),
		    static_cast<unsigned long long>(size));
	if (!mapped_too && (pages ? pages->mapped : fixed->dev != nullptr))
		fail("%s of memory that is mapped for the device", function);
	return (pages ? pages->data() : fixed->user) + place.offset;
}

SendWr wr_of(Qp *qp, const kd_io &io)
{
	SendWr wr;

	wr.cqe = io.cqe;
	wr.signalled = io.cqe;
	wr.cqe_kind = KD_CQE_IO;
	wr.remote_addr = io.addr;
	wr.rkey = io.rkey;
	wr.len = io.len;
	wr.operand = io.operand;
	wr.compare = io.compare;
	wr.kind = io.kind == KD_IO_CMP_SWAP    ? WrKind::CmpSwap
		  : io.kind == KD_IO_FETCH_ADD ? WrKind::FetchAdd
		  : io.write                   ? WrKind::Write
					       : WrKind::Read;
	if (wr.kind != WrKind::Write && qp->dev->iwarp())
		fail("kd_post_chain(): the sink of a READ or atomic operation without a key");
	if (io.kind == KD_IO_FIXED) {
		Fixed *fixed = to_fixed(io.fixed, "kd_post_chain");

		if (fixed->dev != qp->dev)
			die("kd_post_chain() of a buffer that is not mapped for the device");
		if (!io.len || io.offset > fixed->len || io.len > fixed->len - io.offset)
			die("kd_post_chain(): %u bytes from %llu of a buffer of %llu", io.len,
			    static_cast<unsigned long long>(io.offset),
			    static_cast<unsigned long long>(fixed->len));
		fixed->in_use++;
		wr.fixed = fixed;
		wr.offset = io.offset;
		return wr;
	}
	Dma &buffer = to_dma(io.dma, KD_DMA_BOTH, "kd_post_chain");
	if (!io.len || io.len > buffer.size)
		die("kd_post_chain(): %u bytes of a buffer of %u", io.len, buffer.size);
	if (buffer.in_use)
		fail("kd_post_chain() of a buffer that the device owns");
	buffer.in_use++;
	buffer.arrived.clear();
	wr.dma = buffer.addr;
	if (wr.kind == WrKind::Write)
		wr.payload.assign(reinterpret_cast<const char *>(buffer.mem), io.len);
	return wr;
}

} // namespace

extern "C" {

bool kd_user_read(void *dst, uint64_t addr, size_t len, bool may_fault)
{
	World &w = world();

	w.enter(__func__, may_fault);
	if (!may_fault && w.sched.rng.chance(20))
		return false;
	if (!mapped(addr, len))
		return false;
	std::memcpy(dst, reinterpret_cast<const void *>(addr), len);
	return true;
}

bool kd_user_write(uint64_t addr, const void *src, size_t len)
{
	world().enter(__func__, true);
	if (!mapped(addr, len))
		return false;
	std::memcpy(reinterpret_cast<void *>(addr), src, len);
	return true;
}

uint32_t kd_user_fit(uint64_t addr, uint32_t len, uint32_t max_pages)
{
	return static_cast<uint32_t>(
		std::min<uint64_t>(len, uint64_t{max_pages} * page_size - addr % page_size));
}

int kd_pages_pin_user(uint64_t addr, uint32_t len, bool to_memory, bool may_fault,
		      struct kd_pages **out)
{
	World &w = world();

	(void)to_memory;
	w.enter(__func__, true);
	if (!len)
		die("kd_pages_pin_user() of nothing");
	if (!mapped(addr, len) || (!may_fault && w.sched.rng.chance(20)))
		return KD_EFAULT;
	if (w.inject(Op::PagesPinIo))
		return KD_ENOMEM;
	Pages *pages = w.pages.add();
	pages->node = w.here();
	pages->user = reinterpret_cast<uint8_t *>(addr);
	pages->count = static_cast<uint32_t>(pages_of(addr, len));
	pages->len = len;
	*out = reinterpret_cast<kd_pages *>(pages);
	return 0;
}

/* --- fixed buffers --- */

int kd_fixed_pin(uint64_t addr, uint64_t len, struct kd_fixed **out)
{
	World &w = world();
	Node *node = w.here();

	w.enter(__func__, true);
	if (!len)
		die("kd_fixed_pin() of nothing");
	if (!mapped(addr, len))
		return KD_EFAULT;
	uint64_t charge = pages_of(addr, len) * page_size;
	if (w.inject(Op::FixedPin) || node->memlock + charge > node->memlock_limit)
		return KD_ENOMEM;
	Fixed *fixed = w.fixed.add();
	fixed->node = node;
	fixed->user = reinterpret_cast<uint8_t *>(addr);
	fixed->len = len;
	fixed->charged = charge;
	fixed->range = w.sched.rng.chance(50) ? page_size : huge_page;
	node->memlock += charge;
	*out = reinterpret_cast<kd_fixed *>(fixed);
	return 0;
}

int kd_fixed_map(struct kd_pd *pd, struct kd_fixed *fixed)
{
	World &w = world();

	w.enter(__func__, true);
	Pd *self = w.pds.check(pd, __func__);
	Fixed *memory = to_fixed(fixed, __func__);
	if (memory->dev)
		die("kd_fixed_map() of a mapped buffer");
	if (w.inject(Op::FixedMap))
		return KD_ENOMEM;
	memory->dev = self->dev;
	memory->was_mapped = true;
	return 0;
}

void kd_fixed_unmap(struct kd_fixed *fixed)
{
	world().enter(__func__, true);
	Fixed *self = to_fixed(fixed, __func__);
	if (!self->dev)
		return;
	if (self->in_use)
		fail("kd_fixed_unmap() of a buffer that the device owns");
	for (const auto &mr : world().mrs) {
		if (mr->fixed == self && (!mr->local || mr->in_use))
			fail("kd_fixed_unmap() of a buffer with an MR");
		else if (mr->fixed == self)
			mr->fixed = nullptr;
	}
	self->dev = nullptr;
}

void kd_fixed_free(struct kd_fixed *fixed)
{
	World &w = world();

	w.enter(__func__, true);
	Fixed *self = to_fixed(fixed, __func__);
	if (self->dev)
		fail("kd_fixed_free() of a buffer that is mapped");
	if (self->in_use)
		fail("kd_fixed_free() of a buffer that the device owns");
	self->node->memlock -= self->charged;
	w.fixed.remove(self);
}

uint32_t kd_fixed_fit(const struct kd_fixed *fixed, uint64_t offset, uint32_t len,
		      uint32_t max_sges, uint32_t *sges)
{
	world().enter(__func__, false);
	Fixed *self = to_fixed(fixed, __func__);
	uint64_t end = offset;

	if (!self->was_mapped || !max_sges || !len || offset >= self->len ||
	    len > self->len - offset)
		die("kd_fixed_fit(): %u bytes from %llu of a buffer of %llu", len,
		    static_cast<unsigned long long>(offset),
		    static_cast<unsigned long long>(self->len));
	for (*sges = 0; *sges < max_sges && end < offset + len; ++*sges)
		end = range_end(*self, end);
	return static_cast<uint32_t>(std::min<uint64_t>(len, end - offset));
}

uint32_t kd_fixed_room(const struct kd_fixed *fixed, uint64_t offset, uint32_t len,
		       uint32_t max_pages)
{
	Fixed *self = to_fixed(fixed, __func__);

	return kd_user_fit(reinterpret_cast<uint64_t>(self->user) + offset, len, max_pages);
}

void kd_fixed_sync_cpu(struct kd_fixed *fixed, uint64_t offset, uint32_t len)
{
	world().enter(__func__, false);
	Fixed *self = to_fixed(fixed, __func__);
	auto found = std::find_if(self->arrived.begin(), self->arrived.end(), [&](const auto &a) {
		return a.offset == offset && a.bytes.size() == len;
	});

	if (!self->dev)
		fail("kd_fixed_sync_cpu() of a buffer that is not mapped");
	if (found == self->arrived.end()) {
		fail("kd_fixed_sync_cpu() of what did not arrive");
		return;
	}
	std::memcpy(self->user + offset, found->bytes.data(), len);
	self->arrived.erase(found);
}

/* --- copying --- */

void kd_place_read(const struct kd_place *from, void *to, uint32_t len)
{
	world().enter(__func__, false);
	if (len)
		std::memcpy(to, place_at(*from, len, __func__), len);
}

void kd_place_write(const struct kd_place *to, const void *from, uint32_t len)
{
	world().enter(__func__, false);
	if (len)
		std::memcpy(place_at(*to, len, __func__), from, len);
}

void kd_place_copy(const struct kd_place *to, struct kd_pages *from, uint32_t offset, uint32_t len)
{
	kd_place source{.pages = from, .offset = offset};

	world().enter(__func__, false);
	std::memcpy(place_at(*to, len, __func__), place_at(source, len, __func__), len);
}

int kd_fixed_borrow(struct kd_fixed *fixed, uint64_t offset, uint32_t len, uint32_t max_pages,
		    struct kd_pages **out)
{
	World &w = world();
	kd_place place{.fixed = fixed, .offset = offset};

	w.enter(__func__, true);
	uint8_t *start = place_at(place, len, __func__, true);
	if (pages_of(reinterpret_cast<uint64_t>(start), len) > max_pages)
		return KD_EOPNOTSUPP;
	if (w.inject(Op::PagesPinIo))
		return KD_ENOMEM;
	Pages *pages = w.pages.add();
	pages->node = w.here();
	pages->user = start;
	pages->count = static_cast<uint32_t>(pages_of(reinterpret_cast<uint64_t>(start), len));
	pages->len = len;
	*out = reinterpret_cast<kd_pages *>(pages);
	return 0;
}

/* --- chains --- */

int kd_chain_create(struct kd_chain **out)
{
	World &w = world();

	w.enter(__func__, true);
	if (w.inject(Op::ChainCreate))
		return KD_ENOMEM;
	*out = static_cast<kd_chain *>(kd_zalloc(1));
	return *out ? 0 : KD_ENOMEM;
}

void kd_chain_free(struct kd_chain *chain)
{
	kd_free(chain);
}

int kd_post_chain(struct kd_qp *qp, struct kd_chain *chain, const struct kd_io *ios, uint32_t nr)
{
	World &w = world();

	w.enter(__func__, false);
	Qp *self = w.qps.check(qp, __func__);
	if (!w.allocations.contains(chain))
		die("kd_post_chain() without a chain");
	if (!nr || nr > KD_CHAIN_MAX)
		die("kd_post_chain() of %u", nr);
	if (int err = check_state(self, true, __func__))
		return err;
	if (w.inject(Op::PostChain))
		return KD_ENOMEM;
	check_send_room(self, nr, __func__);
	uint32_t sges = 0, used;
	for (uint32_t i = 0; i < nr; i++) {
		if (ios[i].kind != KD_IO_FIXED)
			continue;
		uint32_t most = self->dev->iwarp() ? self->dev->attr.max_send_sge
						   : self->dev->attr.max_read_sge;
		if (kd_fixed_fit(ios[i].fixed, ios[i].offset, ios[i].len, most, &used) !=
		    ios[i].len)
			fail("kd_post_chain(): more than %u entries in one WR", most);
		sges += used;
	}
	if (sges > KD_CHAIN_SGES)
		fail("kd_post_chain(): %u entries", sges);
	auto mark = [&](const kd_io &io) {
		if (io.cqe)
			mark_posted(io.cqe, self, KD_CQE_IO, "kd_post_chain");
	};
	for (uint32_t i = 0; i < nr; i++) {
		mark(ios[i]);
		if (i && w.inject(Op::PartialPost)) {
			self->cq->node->core->queue_fatal(self->cq->queue, "post failed");
			self->out_send.push_back({self->next_wr++, ios[i].cqe, 0, false});
			while (++i < nr) {
				mark(ios[i]);
				self->out_send.push_back({self->next_wr++, ios[i].cqe, 0, false});
			}
			return 0;
		}
		if (ios[i].kind == KD_IO_PROBE)
			post_probe(w, self, ios[i].cqe, ios[i].addr, ios[i].rkey);
		else
			qp_post_send(w, self, wr_of(self, ios[i]));
	}
	return 0;
}

} /* extern "C" */
