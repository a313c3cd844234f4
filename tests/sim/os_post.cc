// SPDX-License-Identifier: GPL-2.0-only
// os.h: buffers and work requests.
#include <cstdlib>
#include <cstring>

#include "post.h"
#include "watch.h"

#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define SIM_ASAN 1
#endif
#endif
#if defined(__SANITIZE_ADDRESS__)
#define SIM_ASAN 1
#endif
#ifdef SIM_ASAN
#include <sanitizer/asan_interface.h>
#else
#define ASAN_POISON_MEMORY_REGION(addr, size) ((void)(addr), (void)(size))
#define ASAN_UNPOISON_MEMORY_REGION(addr, size) ((void)(addr), (void)(size))
#endif

using namespace sim;

namespace
{

constexpr unsigned long cqe_magic = 0x43514500;

Qp *to_qp(const kd_qp *qp, const char *function)
{
	return world().qps.check(qp, function);
}

} // namespace

namespace sim
{

kd_cqe_kind cqe_kind(const kd_cqe *cqe, const char *function)
{
	if ((cqe->opaque[0] & ~0xffUL) != cqe_magic)
		die("%s: cqe %p is not initialised", function, static_cast<const void *>(cqe));
	return static_cast<kd_cqe_kind>(cqe->opaque[0] & 0xff);
}

void mark_posted(kd_cqe *cqe, Qp *qp, kd_cqe_kind kind, const char *function)
{
	World &w = world();

	if (cqe_kind(cqe, function) != kind)
		fail("%s: a cqe of kind %d", function, cqe_kind(cqe, function));
	if (w.posted.contains(cqe))
		die("%s: this cqe is posted already", function);
	w.posted[cqe] = qp->id;
}

Dma &to_dma(const kd_dma *dma, kd_dma_dir dir, const char *function)
{
	auto found = world().dmas.find(dma->addr);

	if (!dma->mapped || found == world().dmas.end() || found->second.mem != dma->mem)
		die("%s: the buffer is not mapped", function);
	if (found->second.dir != dir)
		fail("%s: a buffer of the wrong direction", function);
	return found->second;
}

/* May the send side take @count more WRs of the kinds that max_send counts? */
void check_send_room(const Qp *qp, std::size_t count, const char *function)
{
	auto used = std::count_if(qp->out_send.begin(), qp->out_send.end(),
				  [](const Outstanding &wr) { return !wr.context; });

	if (static_cast<std::size_t>(used) + count > qp->max_send)
		fail("%s: %zu WRs outstanding on a send queue of %u", function,
		     static_cast<std::size_t>(used) + count, qp->max_send);
}

/* 0, or why nothing can be posted. */
int check_state(const Qp *qp, bool send, const char *function)
{
	watch::release(qp);
	if (qp->draining)
		fail("%s after kd_qp_stop()", function);
	if (qp->state == Qp::State::Reset)
		return KD_EINVAL;
	if (send && qp->state == Qp::State::Init) {
		fail("%s before the connection stands", function);
		return KD_EINVAL;
	}
	return 0;
}

SendWr send_wr(const kd_dma *dma, uint32_t len, bool signalled, kd_cqe *cqe, const char *function)
{
	Dma &buffer = to_dma(dma, KD_DMA_SEND, function);

	if (len > buffer.size)
		die("%s: %u bytes of a buffer of %u", function, len, buffer.size);
	if (world().now() < buffer.sent_until)
		fail("%s: the buffer of an unsignalled SEND, which TCP may still send again",
		     function);
	buffer.in_use++;
	SendWr wr;
	wr.kind = WrKind::Send;
	wr.cqe = cqe;
	wr.signalled = signalled;
	wr.payload.assign(reinterpret_cast<const char *>(buffer.mem), len);
	wr.dma = buffer.addr;
	return wr;
}

void check_contexts(const Qp *qp, const char *function)
{
	const auto &reads = world().reads;
	auto used = std::count_if(reads.begin(), reads.end(),
				  [&](const auto &entry) { return entry.second.qp == qp; });

	if (static_cast<uint32_t>(used) >= qp->max_reads)
		fail("%s: more than %u contexts", function, qp->max_reads);
}

/* A number of its own for each mapping. */
void map_buffer(World &w, Pd *pd, kd_dma *buf)
{
	Dma dma;

	dma.addr = w.next_dma++ << 20;
	dma.pd = pd;
	dma.mem = static_cast<uint8_t *>(buf->mem);
	dma.size = buf->size;
	dma.dir = buf->dir;
	pd->mappings++;
	buf->addr = dma.addr;
	buf->mapped = true;
	w.dmas.emplace(dma.addr, std::move(dma));
}

} // namespace sim

extern "C" {

int kd_dma_create(struct kd_pd *pd, uint32_t size, enum kd_dma_dir dir, struct kd_dma *out)
{
	World &w = world();

	w.enter(__func__, true);
	Pd *self = w.pds.check(pd, __func__);
	if (w.inject(Op::DmaCreate))
		return KD_ENOMEM;
	void *mem = w.dma_memory(size);
	w.allocations[mem] = {size, w.next_allocation++};
	*out = {mem, 0, size, dir, false};
	map_buffer(w, self, out);
	return 0;
}

int kd_dma_map(struct kd_pd *pd, struct kd_dma *dma)
{
	World &w = world();

	w.enter(__func__, true);
	if (!dma->mem || dma->mapped)
		fail("kd_dma_map() of what is %s", dma->mem ? "mapped" : "no buffer");
	if (w.inject(Op::DmaCreate))
		return KD_ENOMEM;
	map_buffer(w, w.pds.check(pd, __func__), dma);
	return 0;
}

void kd_dma_unmap(struct kd_pd *pd, struct kd_dma *dma)
{
	World &w = world();

	w.enter(__func__, true);
	if (!dma->mapped)
		return;
	Dma &self = to_dma(dma, dma->dir, __func__);
	if (self.pd != w.pds.check(pd, __func__))
		fail("kd_dma_unmap() with another PD");
	if (self.in_use)
		fail("kd_dma_unmap() of a buffer that the device owns");
	ASAN_UNPOISON_MEMORY_REGION(self.mem, self.size);
	self.pd->mappings--;
	w.dmas.erase(dma->addr);
	dma->addr = 0;
	dma->mapped = false;
}

void kd_dma_free(struct kd_dma *dma)
{
	World &w = world();

	w.enter(__func__, true);
	if (!dma->mem)
		return;
	if (dma->mapped)
		fail("kd_dma_free() of a buffer that is mapped");
	auto found = w.allocations.find(dma->mem);
	if (found == w.allocations.end())
		die("kd_dma_free(%p): not allocated", dma->mem);
	w.allocations.erase(found);
	w.free_memory(dma->mem, dma->size);
	dma->mem = nullptr;
}

void kd_cqe_init(struct kd_cqe *cqe, enum kd_cqe_kind kind)
{
	if (world().posted.contains(cqe))
		fail("kd_cqe_init() of a posted cqe");
	cqe->opaque[0] = cqe_magic | kind;
	cqe->opaque[1] = 0;
}

int kd_post_recv(struct kd_qp *qp, struct kd_cqe *cqe, struct kd_dma *dma, uint32_t len)
{
	World &w = world();

	w.enter(__func__, false);
	Qp *self = to_qp(qp, __func__);
	Dma &buffer = to_dma(dma, KD_DMA_RECV, __func__);
	if (len > buffer.size)
		die("kd_post_recv(): %u bytes of a buffer of %u", len, buffer.size);
	if (int err = check_state(self, false, __func__))
		return err;
	if (w.inject(Op::PostRecv))
		return KD_ENOMEM;
	if (buffer.in_use)
		fail("kd_post_recv() of a buffer that the device owns");
	if (self->out_recv.size() + 1 > self->max_recv)
		fail("kd_post_recv(): %zu WRs outstanding on a receive queue of %u",
		     self->out_recv.size() + 1, self->max_recv);
	mark_posted(cqe, self, KD_CQE_RECV, __func__);
	buffer.in_use++;
	buffer.arrived.clear();
	ASAN_POISON_MEMORY_REGION(buffer.mem, buffer.size);
	qp_post_recv(w, self, {.cqe = cqe, .dma = buffer.addr, .len = len});
	return 0;
}

int kd_post_send(struct kd_qp *qp, struct kd_cqe *cqe, struct kd_dma *dma, uint32_t len,
		 bool signalled)
{
	World &w = world();

	w.enter(__func__, false);
	Qp *self = to_qp(qp, __func__);
	if (int err = check_state(self, true, __func__))
		return err;
	if (w.inject(Op::PostSend))
		return KD_ENOMEM;
	check_send_room(self, 1, __func__);
	mark_posted(cqe, self, KD_CQE_SEND, __func__);
	qp_post_send(w, self, send_wr(dma, len, signalled, cqe, __func__));
	return 0;
}

int kd_post_offer(struct kd_qp *qp, struct kd_cqe *reg, struct kd_mr *mr, struct kd_cqe *cqe,
		  struct kd_dma *dma, uint32_t len)
{
	World &w = world();

	w.enter(__func__, false);
	Qp *self = to_qp(qp, __func__);
	Mr *region = w.mrs.check(mr, __func__);
	if (int err = check_state(self, true, __func__))
		return err;
	if (region->pd != self->pd)
		fail("kd_post_offer(): an MR of another PD");
	if (!region->pages)
		fail("kd_post_offer(): an MR without pages");
	if (region->state != Mr::State::Free)
		fail("kd_post_offer(): an MR that is registered already");
	if (w.inject(Op::PostOffer))
		return KD_ENOMEM;
	check_send_room(self, 2, __func__);
	mark_posted(reg, self, KD_CQE_OFFER, __func__);
	mark_posted(cqe, self, KD_CQE_SEND, __func__);
	region->state = Mr::State::Posted;
	SendWr wr;
	wr.kind = WrKind::Reg;
	wr.cqe = reg;
	wr.cqe_kind = KD_CQE_OFFER;
	wr.signalled = false;
	wr.mr = region;
	qp_post_send(w, self, std::move(wr));
	if (w.inject(Op::PartialPost)) {
		self->cq->node->core->queue_fatal(self->cq->queue, "post failed");
		self->out_send.push_back({self->next_wr++, cqe, 0, false});
		return 0;
	}
	SendWr send = send_wr(dma, len, true, cqe, __func__);
	qp_post_send(w, self, std::move(send));
	return 0;
}

int kd_post_invalidate(struct kd_qp *qp, struct kd_cqe *cqe, struct kd_mr *mr)
{
	World &w = world();

	w.enter(__func__, false);
	Qp *self = to_qp(qp, __func__);
	Mr *region = w.mrs.check(mr, __func__);
	if (int err = check_state(self, true, __func__))
		return err;
	if (region->state == Mr::State::Free && !region->remotely_invalidated)
		fail("kd_post_invalidate() of an MR that is not registered");
	if (w.inject(Op::PostInvalidate))
		return KD_ENOMEM;
	check_send_room(self, 1, __func__);
	kd_cqe_kind kind = self->plain ? KD_CQE_RAW_CONTROL : KD_CQE_INV;
	mark_posted(cqe, self, kind, __func__);
	SendWr wr;
	wr.kind = WrKind::Invalidate;
	wr.cqe = cqe;
	wr.cqe_kind = kind;
	wr.mr = region;
	qp_post_send(w, self, std::move(wr));
	return 0;
}

void kd_dma_sync_cpu(struct kd_pd *pd, const struct kd_dma *dma, uint32_t len)
{
	world().enter(__func__, false);
	Dma &self = to_dma(dma, dma->dir == KD_DMA_BOTH ? KD_DMA_BOTH : KD_DMA_RECV, __func__);

	world().pds.check(pd, __func__);
	if (self.in_use)
		fail("kd_dma_sync_cpu() of a buffer that the device owns");
	if (len > self.size)
		die("kd_dma_sync_cpu(): %u bytes of a buffer of %u", len, self.size);
	ASAN_UNPOISON_MEMORY_REGION(self.mem, len);
	std::memcpy(self.mem, self.arrived.data(), std::min<std::size_t>(len, self.arrived.size()));
}

int kd_post_read(struct kd_qp *qp, struct kd_read *read, struct kd_cqe *cqe, struct kd_pages *pages,
		 uint32_t len, uint64_t remote_addr, uint32_t rkey)
{
	World &w = world();

	w.enter(__func__, true);
	Qp *self = to_qp(qp, __func__);
	Pages *target = w.pages.check(pages, __func__);
	if (int err = check_state(self, true, __func__))
		return err;
	if (!len || len != target->len)
		die("kd_post_read(): %u bytes into %u", len, target->len);
	if ((len + page_size - 1) / page_size > self->max_read_pages)
		fail("kd_post_read(): more than %u pages", self->max_read_pages);
	if (w.inject(Op::PostRead))
		return KD_ENOMEM;
	if (w.reads.contains(read))
		die("kd_post_read(): the context is in use");
	check_contexts(self, __func__);
	mark_posted(cqe, self, KD_CQE_READ, __func__);
	target->mapped++;
	SendWr wr;
	wr.kind = WrKind::Read;
	wr.cqe = cqe;
	wr.cqe_kind = KD_CQE_READ;
	wr.remote_addr = remote_addr;
	wr.rkey = rkey;
	wr.len = len;
	wr.pages = target;
	/* before posting: a flush may end it at once */
	w.reads[read] = {self, target, cqe, self->next_wr, false};
	qp_post_send(w, self, std::move(wr));
	return 0;
}

void kd_read_release(struct kd_qp *qp, struct kd_read *read, struct kd_pages *pages)
{
	World &w = world();

	w.enter(__func__, false);
	Qp *self = to_qp(qp, __func__);
	auto found = w.reads.find(read);

	if (found == w.reads.end())
		die("kd_read_release() of a context that is not in use");
	if (found->second.qp != self || found->second.pages != w.pages.check(pages, __func__))
		fail("kd_read_release() with another QP or other pages");
	if (!found->second.done)
		fail("kd_read_release() before the READ has ended");
	found->second.pages->mapped--;
	w.reads.erase(found);
}

/* --- MRs --- */

int kd_mr_create(struct kd_pd *pd, uint32_t max_pages, struct kd_mr **out)
{
	World &w = world();

	w.enter(__func__, true);
	Pd *self = w.pds.check(pd, __func__);
	if (max_pages > self->dev->attr.max_mr_pages)
		return KD_EINVAL;
	if (w.inject(Op::MrCreate))
		return KD_ENOMEM;
	Mr *mr = w.mrs.add();
	mr->pd = self;
	mr->max_pages = max_pages;
	mr->rkey = static_cast<uint32_t>(mr->id << 8);
	*out = reinterpret_cast<kd_mr *>(mr);
	return 0;
}

void kd_mr_destroy(struct kd_mr *mr)
{
	World &w = world();

	w.enter(__func__, true);
	Mr *self = w.mrs.check(mr, __func__);
	if (self->pages)
		fail("kd_mr_destroy() of an MR with pages mapped");
	for (const auto &qp : w.qps)
		if (self->fixed && self->state != Mr::State::Free && qp->pd == self->pd &&
		    qp->state == Qp::State::Rts)
			fail("kd_mr_destroy() of an MR that the peer can use");
	w.mrs.remove(self);
}

int kd_mr_map(struct kd_mr *mr, struct kd_pages *pages)
{
	World &w = world();

	w.enter(__func__, true);
	Mr *self = w.mrs.check(mr, __func__);
	Pages *source = w.pages.check(pages, __func__);
	if (self->pages || self->state != Mr::State::Free)
		fail("kd_mr_map() of an MR in use");
	if ((source->len + page_size - 1) / page_size > self->max_pages)
		return KD_EINVAL;
	if (w.inject(Op::MrMap))
		return KD_EIO;
	self->pages = source;
	self->rkey = (self->rkey & ~0xffU) | ((self->rkey + 1) & 0xff);
	self->addr = (self->id << 32) | w.sched.rng.below(page_size);
	self->len = source->len;
	self->remotely_invalidated = false;
	source->mapped++;
	return 0;
}

void kd_mr_unmap(struct kd_mr *mr, struct kd_pages *pages)
{
	World &w = world();

	w.enter(__func__, false);
	Mr *self = w.mrs.check(mr, __func__);
	Pages *source = w.pages.check(pages, __func__);
	if (self->pages != source)
		die("kd_mr_unmap() of pages that are not mapped there");
	if (self->state != Mr::State::Free) {
		/* the peer can still read through any QP of the PD that works */
		for (const auto &qp : w.qps)
			if (qp->pd == self->pd && qp->state == Qp::State::Rts)
				fail("kd_mr_unmap() of an MR that the peer can read");
		self->state = Mr::State::Free;
	}
	self->pages = nullptr;
	source->mapped--;
}

uint32_t kd_mr_rkey(const struct kd_mr *mr)
{
	return world().mrs.check(mr, __func__)->rkey;
}

uint64_t kd_mr_address(const struct kd_mr *mr)
{
	return world().mrs.check(mr, __func__)->addr;
}

} /* extern "C" */
