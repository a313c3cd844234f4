// SPDX-License-Identifier: GPL-2.0-only
/*
 * One MR over memory in more pieces than a work request has entries for. It is for the
 * work requests of one slot, one at a time, and registered anew for each. Between them it
 * stays registered: but for the sink of an iWARP READ, which the READ invalidates, no peer
 * has any right in it.
 */

#include <linux/scatterlist.h>
#include <linux/slab.h>
#include <rdma/ib_verbs.h>

#include "shim.h"

int kd_frwr_create(struct kd_pd *pd, uint32_t max_pages, struct kd_frwr **out)
{
	struct kd_frwr *frwr;
	int ret;

	might_sleep();
	frwr = kzalloc(sizeof(*frwr), KD_GFP);
	if (!frwr)
		return KD_ENOMEM;
	frwr->mr = ib_alloc_mr(to_pd(pd), IB_MR_TYPE_MEM_REG, max_pages);
	if (IS_ERR(frwr->mr)) {
		ret = PTR_ERR(frwr->mr);
		kfree(frwr);
		return kd_from_errno(ret);
	}
	*out = frwr;
	return 0;
}

void kd_frwr_destroy(struct kd_frwr *frwr)
{
	might_sleep();
	ib_dereg_mr(frwr->mr);
	kfree(frwr);
}

uint32_t kd_raw_pages(const struct kd_raw_wr *wr)
{
	return wr->fixed ? kd_fixed_span(wr->fixed, wr->offset, wr->len) : wr->pages->nr;
}

int kd_frwr_map(struct kd_frwr *frwr, const struct kd_raw_wr *wr)
{
	struct sg_table part;
	int ret;

	might_sleep();
	if (wr->pages)
		return kd_mr_describe(frwr->mr, wr->pages->table.sgl, wr->pages->table.nents,
				      wr->len);
	ret = kd_fixed_table(wr->fixed, wr->offset, wr->len, &part);
	if (ret)
		return kd_from_errno(ret);
	ret = kd_mr_describe(frwr->mr, part.sgl, part.nents, wr->len);
	sg_free_table(&part);
	return ret;
}

/* --- posting ---------------------------------------------------------------------------- */

struct ib_send_wr **kd_frwr_chain(struct kd_frwr *frwr, struct kd_cqe *cqe, int access,
				  struct ib_send_wr **link)
{
	if (frwr->valid) {
		frwr->inv = (struct ib_send_wr){
			.wr_cqe			= to_cqe(cqe),
			.opcode			= IB_WR_LOCAL_INV,
			.ex.invalidate_rkey	= frwr->key,
		};
		*link = &frwr->inv;
		link = &frwr->inv.next;
	}
	frwr->reg = (struct ib_reg_wr){
		.wr = {
			.wr_cqe	= to_cqe(cqe),
			.opcode	= IB_WR_REG_MR,
		},
		.mr	= frwr->mr,
		.key	= frwr->mr->rkey,
		.access	= access,
	};
	*link = &frwr->reg.wr;
	return &frwr->reg.wr.next;
}

void kd_frwr_posted(struct kd_frwr *frwr, bool stays)
{
	frwr->valid = stays;
	frwr->key = frwr->mr->rkey;
}

int kd_post_frwr(struct kd_qp *qp, struct kd_cqe *cqe, struct kd_frwr *frwr)
{
	struct ib_send_wr *first;
	int ret;

	kd_frwr_chain(frwr, cqe, IB_ACCESS_LOCAL_WRITE, &first);
	frwr->reg.wr.send_flags = IB_SEND_SIGNALED;
	ret = kd_post_wrs(qp, first);
	if (!ret)
		kd_frwr_posted(frwr, true);
	return ret;
}
