// SPDX-License-Identifier: GPL-2.0-only
// os_raw.h: local memory as one MR.
#include "../../uapi/kdirect.h"
#include "map.h"
#include "post.h"

using namespace sim;

namespace
{

Mr *to_frwr(const kd_frwr *frwr, const char *function)
{
	Mr *mr = world().mrs.check(frwr, function);

	if (!mr->local)
		die("%s: an MR for a peer", function);
	return mr;
}

SendWr local_wr(WrKind kind, kd_cqe *cqe, Mr *mr, uint32_t key, bool signalled)
{
	SendWr wr;

	wr.kind = kind;
	wr.cqe = cqe;
	wr.cqe_kind = KD_CQE_RAW_REG;
	wr.signalled = signalled;
	wr.mr = mr;
	wr.rkey = key;
	return wr;
}

} // namespace

namespace sim
{

Mr *post_frwr(World &w, Qp *qp, kd_cqe *cqe, kd_frwr *frwr, bool sink, bool signalled)
{
	Mr *mr = to_frwr(frwr, "kd_post_frwr");

	if (mr->pd != qp->pd || (!mr->pages && !mr->fixed))
		die("kd_post_frwr(): an MR of another PD, or of nothing");
	if (mr->in_use)
		fail("kd_post_frwr() of an MR that is in use");
	check_send_room(qp, mr->state == Mr::State::Free ? 1 : 2, "kd_post_frwr");
	mark_posted(cqe, qp, KD_CQE_RAW_REG, "kd_post_frwr");
	if (mr->state != Mr::State::Free)
		qp_post_send(w, qp, local_wr(WrKind::Invalidate, cqe, mr, mr->key, false));
	mr->writable = sink;
	qp_post_send(w, qp, local_wr(WrKind::Reg, cqe, mr, mr->rkey, signalled));
	return mr;
}

bool usable(const Mr *mr, uint32_t lkey)
{
	return !mr || (mr->state == Mr::State::Valid && mr->key == lkey);
}

} // namespace sim

extern "C" {

int kd_frwr_create(struct kd_pd *pd, uint32_t max_pages, struct kd_frwr **out)
{
	kd_mr *made;

	if (int err = kd_mr_create(pd, max_pages, &made))
		return err;
	Mr *mr = world().mrs.check(made, __func__);
	mr->local = true;
	mr->readable = mr->atomics = false;
	*out = reinterpret_cast<kd_frwr *>(mr);
	return 0;
}

void kd_frwr_destroy(struct kd_frwr *frwr)
{
	World &w = world();

	w.enter(__func__, true);
	Mr *self = to_frwr(frwr, __func__);
	if (self->in_use)
		fail("kd_frwr_destroy() of an MR that is in use");
	w.mrs.remove(self);
}

uint32_t kd_raw_pages(const struct kd_raw_wr *wr)
{
	World &w = world();

	if (wr->pages)
		return w.pages.check(wr->pages, __func__)->count;
	auto begin = reinterpret_cast<uint64_t>(w.fixed.check(wr->fixed, __func__)->user);
	return static_cast<uint32_t>(((begin + wr->offset) % page_size + wr->len + page_size - 1) /
				     page_size);
}

int kd_frwr_map(struct kd_frwr *frwr, const struct kd_raw_wr *wr)
{
	World &w = world();

	w.enter(__func__, true);
	Mr *self = to_frwr(frwr, __func__);
	if (self->in_use)
		fail("kd_frwr_map() of an MR that is in use");
	Pages *pages = wr->pages ? w.pages.check(wr->pages, __func__) : nullptr;
	Fixed *fixed = wr->fixed ? w.fixed.check(wr->fixed, __func__) : nullptr;
	if (!wr->len || (pages ? !pages->mapped : !fixed || !fixed->dev))
		die("kd_frwr_map() of what is not mapped");
	if (kd_raw_pages(wr) > self->max_pages || w.inject(Op::MrMap))
		return KD_EFBIG;
	self->pages = pages;
	self->fixed = fixed;
	self->offset = wr->offset;
	self->len = wr->len;
	self->rkey = (self->rkey & ~0xffU) | ((self->rkey + 1) & 0xff);
	return 0;
}

int kd_post_frwr(struct kd_qp *qp, struct kd_cqe *cqe, struct kd_frwr *frwr)
{
	World &w = world();

	w.enter(__func__, false);
	Qp *self = w.qps.check(qp, __func__);
	if (int err = check_state(self, true, __func__))
		return err;
	if (w.inject(Op::PostOffer))
		return KD_ENOMEM;
	post_frwr(w, self, cqe, frwr, false, true);
	return 0;
}

} /* extern "C" */
