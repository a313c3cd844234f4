// SPDX-License-Identifier: GPL-2.0-only
// os_map.h: memory of exports, and reads and writes of such memory.
#include <cstring>

#include "map.h"
#include "post.h"
#include "watch.h"

using namespace sim;

namespace
{

Qp *to_qp(const kd_qp *qp, const char *function)
{
	return world().qps.check(qp, function);
}

Mr *to_key(const kd_key *key, const char *function)
{
	Mr *mr = world().mrs.check(key, function);

	if (!mr->region)
		die("%s: not a key", function);
	return mr;
}

} // namespace

namespace sim
{

void post_probe(World &w, Qp *qp, kd_cqe *cqe, uint64_t addr, uint32_t rkey)
{
	SendWr wr;
	wr.kind = WrKind::Read;
	wr.cqe = cqe;
	wr.cqe_kind = KD_CQE_IO;
	wr.remote_addr = addr;
	wr.rkey = rkey;
	wr.len = 1;
	qp_post_send(w, qp, std::move(wr));
}

} // namespace sim

namespace
{

/* What ends a WRITE that was posted. */
void post_end(World &w, Qp *qp, kd_cqe *cqe, uint64_t addr, uint32_t rkey)
{
	if (w.inject(Op::PartialPost)) {
		qp->cq->node->core->queue_fatal(qp->cq->queue, "post failed");
		qp->out_send.push_back({qp->next_wr++, cqe, 0, false});
		return;
	}
	post_probe(w, qp, cqe, addr, rkey);
}

} // namespace

extern "C" {

int kd_region_alloc(uint64_t size, struct kd_region **out)
{
	World &w = world();

	w.enter(__func__, true);
	if (w.sched.current()->signal_ends(true))
		return KD_EINTR;
	if (w.inject(Op::RegionAlloc))
		return KD_ENOMEM;
	Region *region = w.regions.add();
	region->node = w.here();
	region->memory = Zeroes(size);
	*out = reinterpret_cast<kd_region *>(region);
	return 0;
}

void kd_region_free(struct kd_region *region)
{
	World &w = world();

	w.enter(__func__, true);
	Region *self = w.regions.check(region, __func__);
	if (self->keys)
		fail("kd_region_free() with %u keys over it", self->keys);
	w.regions.remove(self);
}

int kd_key_create(struct kd_pd *pd, struct kd_region *region, uint64_t offset, uint32_t len,
		  bool writable, struct kd_key **out)
{
	World &w = world();

	w.enter(__func__, true);
	Pd *self = w.pds.check(pd, __func__);
	Region *memory = w.regions.check(region, __func__);
	if (!len || offset % page_size || offset > memory->memory.size() ||
	    len > memory->memory.size() - offset)
		die("kd_key_create(): %u bytes at %llu of %zu", len,
		    static_cast<unsigned long long>(offset), memory->memory.size());
	if ((len + page_size - 1) / page_size > self->dev->attr.max_mr_pages)
		return KD_EINVAL;
	if (w.inject(Op::KeyCreate))
		return KD_ENOMEM;
	Mr *mr = w.mrs.add();
	mr->pd = self;
	mr->rkey = static_cast<uint32_t>(mr->id << 8 | w.sched.rng.below(256));
	mr->addr = (mr->id << 32) | (w.sched.rng.below(page_size) & ~uint64_t{7});
	mr->len = len;
	mr->region = memory;
	mr->offset = offset;
	mr->writable = writable;
	memory->keys++;
	*out = reinterpret_cast<kd_key *>(mr);
	return 0;
}

void kd_key_destroy(struct kd_key *key)
{
	World &w = world();

	w.enter(__func__, true);
	Mr *self = to_key(key, __func__);
	if (self->state == Mr::State::Posted)
		for (const auto &qp : w.qps)
			if (qp->pd == self->pd && qp->state == Qp::State::Rts)
				fail("kd_key_destroy() while its REG_MR is outstanding");
	self->region->keys--;
	w.mrs.remove(self);
}

uint32_t kd_key_rkey(const struct kd_key *key)
{
	return to_key(key, __func__)->rkey;
}

uint64_t kd_key_address(const struct kd_key *key)
{
	return to_key(key, __func__)->addr;
}

int kd_post_keys(struct kd_qp *qp, struct kd_cqe *reg, struct kd_key *const *keys, uint32_t nr,
		 struct kd_cqe *cqe, struct kd_dma *dma, uint32_t len)
{
	World &w = world();

	w.enter(__func__, false);
	Qp *self = to_qp(qp, __func__);
	if (int err = check_state(self, true, __func__))
		return err;
	if (w.inject(Op::PostKeys))
		return KD_ENOMEM;
	check_send_room(self, nr + 1, __func__);
	if (cqe_kind(reg, __func__) != KD_CQE_KEY)
		fail("kd_post_keys(): a cqe of another kind");
	mark_posted(cqe, self, KD_CQE_SEND, __func__);
	for (uint32_t i = 0; i < nr; i++) {
		Mr *mr = to_key(keys[i], __func__);

		if (mr->pd != self->pd)
			fail("kd_post_keys(): an MR of another PD");
		if (mr->state != Mr::State::Free)
			fail("kd_post_keys(): an MR that is registered already");
		mr->state = Mr::State::Posted;
		SendWr wr;
		wr.kind = WrKind::Reg;
		wr.cqe = reg;
		wr.cqe_kind = KD_CQE_KEY;
		wr.signalled = false;
		wr.mr = mr;
		qp_post_send(w, self, std::move(wr));
	}
	if (w.inject(Op::PartialPost)) {
		self->cq->node->core->queue_fatal(self->cq->queue, "post failed");
		self->out_send.push_back({self->next_wr++, cqe, 0, false});
		return 0;
	}
	qp_post_send(w, self, send_wr(dma, len, true, cqe, __func__));
	return 0;
}

int kd_post_io(struct kd_qp *qp, struct kd_cqe *cqe, struct kd_dma *dma, uint32_t len,
	       uint64_t addr, uint32_t rkey, bool write, bool placed)
{
	World &w = world();

	w.enter(__func__, false);
	Qp *self = to_qp(qp, __func__);
	Dma &buffer = to_dma(dma, KD_DMA_BOTH, __func__);
	if (!len || len > buffer.size)
		die("kd_post_io(): %u bytes of a buffer of %u", len, buffer.size);
	if (int err = check_state(self, true, __func__))
		return err;
	if (w.inject(Op::PostIo))
		return KD_ENOMEM;
	check_send_room(self, 1 + placed, __func__);
	if (!write && self->dev->iwarp())
		fail("kd_post_io(): the sink of a READ without a key");
	if (placed && (!write || !self->dev->iwarp()))
		fail("kd_post_io(): a READ behind nothing");
	if (buffer.in_use)
		fail("kd_post_io() of a buffer that the device owns");
	mark_posted(cqe, self, KD_CQE_IO, __func__);
	buffer.in_use++;
	buffer.arrived.clear();
	SendWr wr;
	wr.kind = write ? WrKind::Write : WrKind::Read;
	wr.cqe = placed ? nullptr : cqe;
	wr.signalled = !placed;
	wr.cqe_kind = KD_CQE_IO;
	wr.dma = buffer.addr;
	if (write)
		wr.payload.assign(reinterpret_cast<const char *>(buffer.mem), len);
	wr.remote_addr = addr;
	wr.rkey = rkey;
	wr.len = len;
	qp_post_send(w, self, std::move(wr));
	if (placed)
		post_end(w, self, cqe, addr, rkey);
	return 0;
}

int kd_rw_prepare(struct kd_qp *qp, struct kd_read *rw, struct kd_pages *pages, uint64_t addr,
		  uint32_t rkey, bool write)
{
	World &w = world();

	w.enter(__func__, true);
	Qp *self = to_qp(qp, __func__);
	Pages *memory = w.pages.check(pages, __func__);
	if (memory->count > self->max_read_pages)
		fail("kd_rw_prepare(): more than %u pages", self->max_read_pages);
	if (w.inject(Op::RwPrepare))
		return KD_ENOMEM;
	if (w.reads.contains(rw))
		die("kd_rw_prepare(): the context is in use");
	check_contexts(self, __func__);
	memory->mapped++;
	w.reads[rw] = {self, memory, nullptr, 0, true, write, addr, rkey};
	return 0;
}

int kd_rw_post(struct kd_qp *qp, struct kd_read *rw, struct kd_cqe *cqe, bool placed)
{
	World &w = world();

	w.enter(__func__, false);
	Qp *self = to_qp(qp, __func__);
	auto found = w.reads.find(rw);
	if (found == w.reads.end() || found->second.qp != self || found->second.wr)
		die("kd_rw_post() of a context that was not prepared");
	ReadContext &context = found->second;
	if (int err = check_state(self, true, __func__))
		return err;
	if (w.inject(Op::RwPost))
		return KD_ENOMEM;
	check_send_room(self, placed, __func__);
	if (placed && (!context.write || !self->dev->iwarp()))
		fail("kd_rw_post(): a READ behind nothing");
	mark_posted(cqe, self, KD_CQE_IO, __func__);
	SendWr wr;
	wr.kind = context.write ? WrKind::Write : WrKind::Read;
	wr.cqe = placed ? nullptr : cqe;
	wr.signalled = !placed;
	wr.cqe_kind = KD_CQE_IO;
	wr.remote_addr = context.addr;
	wr.rkey = context.rkey;
	wr.len = context.pages->len;
	wr.pages = context.pages;
	context.cqe = cqe;
	context.wr = self->next_wr;
	context.done = false;
	uint64_t addr = context.addr;
	uint32_t rkey = context.rkey;
	qp_post_send(w, self, std::move(wr));
	if (placed)
		post_end(w, self, cqe, addr, rkey);
	return 0;
}

void kd_rw_release(struct kd_qp *qp, struct kd_read *rw, struct kd_pages *pages, bool write)
{
	auto found = world().reads.find(rw);

	if (found != world().reads.end() && found->second.write != write)
		fail("kd_rw_release() of the other direction");
	kd_read_release(qp, rw, pages);
}

size_t kd_iter_pinnable(const struct kd_iter *iter, uint32_t max_pages)
{
	std::size_t skip = iter->pos;

	world().enter(__func__, false);
	if (!iter->user)
		return 0;
	for (const kd_iter::Segment &segment : iter->segments) {
		if (skip >= segment.len) {
			skip -= segment.len;
			continue;
		}
		auto start = reinterpret_cast<uintptr_t>(segment.base + skip);
		std::size_t most = std::size_t{max_pages} * page_size - start % page_size;

		return std::min(segment.len - skip, most);
	}
	return 0;
}

int kd_pages_pin_io(struct kd_iter *iter, uint32_t len, uint32_t max_pages, bool to_memory,
		    struct kd_pages **out)
{
	World &w = world();

	(void)to_memory;
	w.enter(__func__, true);
	if (len > kd_iter_pinnable(iter, max_pages))
		die("kd_pages_pin_io() of %u bytes, more than can be", len);
	if (iter->pos + len > iter->fault_at)
		return KD_EFAULT;
	if (w.inject(Op::PagesPinIo))
		return KD_ENOMEM;
	Pages *pages = w.pages.add();
	pages->node = w.here();
	std::size_t skip = iter->pos;
	for (const kd_iter::Segment &segment : iter->segments) {
		if (skip < segment.len) {
			pages->user = segment.base + skip;
			break;
		}
		skip -= segment.len;
	}
	auto first = reinterpret_cast<uintptr_t>(pages->user) / page_size;
	pages->count = static_cast<uint32_t>(
		(reinterpret_cast<uintptr_t>(pages->user) + len - 1) / page_size - first + 1);
	pages->len = len;
	iter->pos += len;
	*out = reinterpret_cast<kd_pages *>(pages);
	return 0;
}

void kd_iocb_complete(struct kd_iocb *iocb, int64_t result)
{
	World &w = world();

	w.enter(__func__, false);
	auto *self = reinterpret_cast<AsyncIo *>(iocb);
	if (self->done)
		fail("kd_iocb_complete() twice");
	self->result = result;
	self->done = true;
}

bool kd_killed(void)
{
	world().enter(__func__, true);
	return world().sched.current()->signal_ends(true);
}

} /* extern "C" */
