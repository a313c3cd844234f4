// SPDX-License-Identifier: GPL-2.0-only
// os_raw.h: work requests of raw channels, and keys of fixed buffers.
#include <algorithm>
#include <cstring>

#include "../../uapi/kdirect.h"
#include "map.h"
#include "post.h"

using namespace sim;

namespace
{

constexpr uint32_t pages_of_piece = 16;

Pages *to_pages(const kd_pages *pages, const char *function)
{
	return world().pages.check(pages, function);
}

/* What a WR keeps until it is reaped. */
struct Source {
	uint64_t dma = 0;
	Fixed *fixed = nullptr;
	Pages *pages = nullptr;
	const uint8_t *bytes = nullptr;
	Mr *mr = nullptr;
};

/* The MR that describes it, if there is one: then it is one entry. */
void use_mr(Source &source, const kd_raw_wr &wr, Mr *mr, uint32_t &max_sges, const char *function)
{
	if (!wr.frwr)
		return;
	source.mr = mr;
	max_sges = UINT32_MAX;
	if (mr->len != wr.len || mr->offset != wr.offset ||
	    reinterpret_cast<kd_pages *>(mr->pages) != wr.pages ||
	    reinterpret_cast<kd_fixed *>(mr->fixed) != wr.fixed)
		die("%s: an MR of other memory", function);
}

Source use_memory(const Qp *qp, const kd_raw_wr &wr, Mr *mr, uint32_t max_sges,
		  const char *function)
{
	Source source;

	use_mr(source, wr, mr, max_sges, function);
	if (!wr.len && (wr.fixed || wr.pages))
		die("%s: memory for nothing", function);
	if (wr.fixed) {
		uint32_t used;

		source.fixed = world().fixed.check(wr.fixed, function);
		if (source.fixed->dev != qp->dev)
			die("%s: a buffer that is not mapped for the device", function);
		if (kd_fixed_fit(wr.fixed, wr.offset, wr.len, max_sges, &used) != wr.len)
			fail("%s: more than %u entries in one WR", function, max_sges);
		source.fixed->in_use++;
		source.bytes = source.fixed->user + wr.offset;
	} else if (wr.pages) {
		source.pages = to_pages(wr.pages, function);
		if (!source.pages->mapped || source.pages->len != wr.len)
			die("%s: pages of another length, or not mapped", function);
		if (kd_pages_sges(wr.pages) > max_sges)
			fail("%s: more than %u entries in one WR", function, max_sges);
		source.pages->in_use++;
		source.bytes = source.pages->data();
	} else if (wr.dma) {
		Dma &buffer = to_dma(wr.dma, KD_DMA_BOTH, function);

		if (wr.len > buffer.size)
			die("%s: %u bytes of a buffer of %u", function, wr.len, buffer.size);
		if (buffer.in_use)
			fail("%s of a buffer that the device owns", function);
		buffer.in_use++;
		buffer.arrived.clear();
		source.dma = buffer.addr;
		source.bytes = buffer.mem;
	} else if (wr.len) {
		die("%s: %u bytes of nothing", function, wr.len);
	}
	return source;
}

WrKind kind_of(kd_raw_op op)
{
	switch (op) {
	case KD_RAW_SEND:
	case KD_RAW_SEND_IMM:
	case KD_RAW_SEND_INV: return WrKind::Send;
	case KD_RAW_WRITE:
	case KD_RAW_WRITE_IMM: return WrKind::Write;
	case KD_RAW_READ: return WrKind::Read;
	case KD_RAW_CMP_SWAP: return WrKind::CmpSwap;
	case KD_RAW_FETCH_ADD: return WrKind::FetchAdd;
	case KD_RAW_LOCAL_INV: break;
	}
	return WrKind::Invalidate;
}

SendWr wr_of(World &w, const Qp *qp, const kd_raw_wr &raw, Mr *mr)
{
	const struct kd_device_attr &attr = qp->dev->attr;
	SendWr wr;

	wr.kind = kind_of(raw.op);
	wr.cqe = raw.cqe;
	wr.cqe_kind = KD_CQE_RAW_SEND;
	wr.remote_addr = raw.addr;
	wr.rkey = raw.rkey;
	wr.len = raw.len;
	wr.operand = raw.operand;
	wr.compare = raw.compare;
	wr.with_imm = raw.op == KD_RAW_SEND_IMM || raw.op == KD_RAW_WRITE_IMM;
	wr.imm = raw.imm;
	wr.invalidates = raw.op == KD_RAW_SEND_INV;
	if (wr.with_imm && attr.transport == KDIRECT_TRANSPORT_IWARP)
		fail("kd_post_raw(): immediate data on iWARP");
	if (wr.kind == WrKind::Invalidate) {
		for (const auto &mr : w.mrs)
			if (mr->rkey == raw.rkey && mr->pd == qp->pd)
				wr.mr = mr.get();
		if (!wr.mr)
			die("kd_post_raw(): LOCAL_INV of no key");
		return wr;
	}
	if (raw.sink != (wr.kind == WrKind::Read && qp->dev->iwarp()) || (raw.sink && !mr))
		fail("kd_post_raw(): over iWARP, and only there, a peer writes what a READ brings");
	Source source = use_memory(qp, raw, mr,
				   wr.kind == WrKind::Read ? attr.max_read_sge : attr.max_send_sge,
				   "kd_post_raw");
	wr.local = mr;
	wr.lkey = mr ? mr->rkey : 0;
	wr.sink = raw.sink;
	wr.dma = source.dma;
	wr.fixed = source.fixed;
	wr.offset = raw.offset;
	wr.pages = source.pages;
	wr.own_pages = source.pages;
	if (wr.kind == WrKind::Send || (wr.kind == WrKind::Write && source.dma))
		wr.payload.assign(reinterpret_cast<const char *>(source.bytes), raw.len);
	return wr;
}

} // namespace

extern "C" {

int kd_pages_pin_stay(uint64_t addr, uint32_t len, bool to_memory, struct kd_pages **out)
{
	Node *node = world().here();
	uint64_t charge = (addr % page_size + len + page_size - 1) / page_size * page_size;

	if (node->memlock + charge > node->memlock_limit)
		return KD_ENOMEM;
	if (int err = kd_pages_pin_user(addr, len, to_memory, true, out))
		return err;
	to_pages(*out, __func__)->charged = charge;
	node->memlock += charge;
	return 0;
}

int kd_pages_map(struct kd_pd *pd, struct kd_pages *pages, bool to_memory)
{
	World &w = world();

	(void)to_memory;
	w.enter(__func__, false);
	Pd *self = w.pds.check(pd, __func__);
	if (w.inject(Op::MrMap))
		return KD_EIO;
	to_pages(pages, __func__)->mapped++;
	self->mappings++;
	return 0;
}

void kd_pages_unmap(struct kd_pd *pd, struct kd_pages *pages, bool to_memory)
{
	World &w = world();

	(void)to_memory;
	w.enter(__func__, false);
	Pages *self = to_pages(pages, __func__);
	if (!self->mapped)
		die("kd_pages_unmap() of pages that are not mapped");
	if (self->in_use)
		fail("kd_pages_unmap() of pages that the device owns");
	self->mapped--;
	w.pds.check(pd, __func__)->mappings--;
}

uint32_t kd_pages_sges(const struct kd_pages *pages)
{
	uint32_t count = to_pages(pages, __func__)->count;

	return count <= KDIRECT_RAW_SGES ? count : count / pages_of_piece + 2;
}

int kd_post_raw(struct kd_qp *qp, struct kd_chain *chain, const struct kd_raw_wr *wrs, uint32_t nr)
{
	World &w = world();

	w.enter(__func__, false);
	Qp *self = w.qps.check(qp, __func__);
	if (!w.allocations.contains(chain))
		die("kd_post_raw() without a chain");
	if (!nr || nr > KD_CHAIN_MAX)
		die("kd_post_raw() of %u", nr);
	if (int err = check_state(self, true, __func__))
		return err;
	if (w.inject(Op::PostChain))
		return KD_ENOMEM;
	for (uint32_t i = 0; i < nr; i++) {
		Mr *mr = nullptr;

		if (wrs[i].frwr)
			mr = post_frwr(w, self, wrs[i].reg_cqe, wrs[i].frwr, wrs[i].sink, false);
		check_send_room(self, 1, __func__);
		mark_posted(wrs[i].cqe, self, KD_CQE_RAW_SEND, __func__);
		qp_post_send(w, self, wr_of(w, self, wrs[i], mr));
	}
	return 0;
}

int kd_post_raw_recv(struct kd_qp *qp, struct kd_chain *chain, const struct kd_raw_wr *wr)
{
	World &w = world();

	w.enter(__func__, false);
	Qp *self = w.qps.check(qp, __func__);
	if (!w.allocations.contains(chain))
		die("kd_post_raw_recv() without a chain");
	if (int err = check_state(self, false, __func__))
		return err;
	if (w.inject(Op::PostRecv))
		return KD_ENOMEM;
	if (self->out_recv.size() + 1 > self->max_recv)
		fail("kd_post_raw_recv(): %zu WRs outstanding on a receive queue of %u",
		     self->out_recv.size() + 1, self->max_recv);
	mark_posted(wr->cqe, self, KD_CQE_RAW_RECV, __func__);
	Mr *mr = wr->frwr ? w.mrs.check(wr->frwr, __func__) : nullptr;
	if (mr && !usable(mr, mr->rkey) && self->state == Qp::State::Rts)
		fail("kd_post_raw_recv() with an MR that is not registered");
	Source source = use_memory(self, *wr, mr, self->dev->attr.max_recv_sge, __func__);
	qp_post_recv(w, self,
		     {.cqe = wr->cqe,
		      .dma = source.dma,
		      .len = wr->len,
		      .kind = KD_CQE_RAW_RECV,
		      .fixed = source.fixed,
		      .offset = wr->offset,
		      .pages = source.pages,
		      .local = mr,
		      .lkey = mr ? mr->rkey : 0});
	return 0;
}

/* --- keys --- */

uint64_t kd_fixed_pages(const struct kd_fixed *fixed)
{
	Fixed *self = world().fixed.check(fixed, __func__);

	return (reinterpret_cast<uint64_t>(self->user) % page_size + self->len + page_size - 1) /
	       page_size;
}

int kd_mr_map_fixed(struct kd_mr *mr, struct kd_fixed *fixed)
{
	World &w = world();

	w.enter(__func__, true);
	Mr *self = w.mrs.check(mr, __func__);
	Fixed *memory = w.fixed.check(fixed, __func__);
	if (!memory->dev)
		die("kd_mr_map_fixed() of a buffer that is not mapped");
	if (self->state != Mr::State::Free)
		fail("kd_mr_map_fixed() of an MR in use");
	if (kd_fixed_pages(fixed) > self->max_pages)
		return KD_EFBIG;
	if (w.inject(Op::MrMap))
		return KD_EIO;
	self->fixed = memory;
	self->rkey = (self->rkey & ~0xffU) | ((self->rkey + 1) & 0xff);
	self->addr = (self->id << 32) + reinterpret_cast<uint64_t>(memory->user) % page_size;
	self->len = static_cast<uint32_t>(memory->len);
	self->remotely_invalidated = false;
	return 0;
}

int kd_post_share(struct kd_qp *qp, struct kd_cqe *cqe, struct kd_mr *mr, uint32_t access)
{
	World &w = world();

	w.enter(__func__, false);
	Qp *self = w.qps.check(qp, __func__);
	Mr *region = w.mrs.check(mr, __func__);
	if (int err = check_state(self, true, __func__))
		return err;
	if (region->pd != self->pd || !region->fixed || region->state != Mr::State::Free)
		fail("kd_post_share(): an MR of another PD, without a buffer, or in use");
	if (w.inject(Op::PostOffer))
		return KD_ENOMEM;
	check_send_room(self, 1, __func__);
	mark_posted(cqe, self, KD_CQE_RAW_CONTROL, __func__);
	region->state = Mr::State::Posted;
	region->readable = access & KDIRECT_ACCESS_READ;
	region->writable = access & (KDIRECT_ACCESS_WRITE | KDIRECT_ACCESS_ATOMIC);
	region->atomics = access & KDIRECT_ACCESS_ATOMIC;
	SendWr wr;
	wr.kind = WrKind::Reg;
	wr.cqe = cqe;
	wr.cqe_kind = KD_CQE_RAW_CONTROL;
	wr.mr = region;
	qp_post_send(w, self, std::move(wr));
	return 0;
}

} /* extern "C" */
