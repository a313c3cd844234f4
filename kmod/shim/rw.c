// SPDX-License-Identifier: GPL-2.0-only
/* Large messages on the wire: memory offered to the peer, and RDMA READs from it. */

#include <rdma/ib_verbs.h>
#include <rdma/rw.h>

#include "shim.h"

static_assert(sizeof(struct rdma_rw_ctx) <= sizeof(struct kd_read));

static struct rdma_rw_ctx *to_rw_ctx(struct kd_read *read)
{
	return (struct rdma_rw_ctx *)read;
}

/* --- offering ---------------------------------------------------------------------- */

int kd_mr_create(struct kd_pd *pd, uint32_t max_pages, struct kd_mr **out)
{
	struct ib_mr *mr = ib_alloc_mr(to_pd(pd), IB_MR_TYPE_MEM_REG, max_pages);

	if (IS_ERR(mr))
		return kd_from_errno(PTR_ERR(mr));
	*out = (struct kd_mr *)mr;
	return 0;
}

void kd_mr_destroy(struct kd_mr *mr)
{
	ib_dereg_mr(to_mr(mr));
}

int kd_mr_map(struct kd_mr *mr, struct kd_pages *pages)
{
	struct ib_mr *ib_mr = to_mr(mr);
	int ret;

	ret = ib_dma_map_sgtable_attrs(ib_mr->device, &pages->table, DMA_TO_DEVICE, 0);
	if (ret)
		return kd_from_errno(ret);
	ret = kd_mr_describe(ib_mr, pages->table.sgl, pages->table.nents, pages->len);
	if (ret)
		kd_mr_unmap(mr, pages);
	return ret;
}

void kd_mr_unmap(struct kd_mr *mr, struct kd_pages *pages)
{
	ib_dma_unmap_sgtable_attrs(to_mr(mr)->device, &pages->table, DMA_TO_DEVICE, 0);
}

uint32_t kd_mr_rkey(const struct kd_mr *mr)
{
	return to_mr(mr)->rkey;
}

uint64_t kd_mr_address(const struct kd_mr *mr)
{
	return to_mr(mr)->iova;
}

/* --- fetching ---------------------------------------------------------------------- */

int kd_post_read(struct kd_qp *qp, struct kd_read *read, struct kd_cqe *cqe,
		 struct kd_pages *pages, uint32_t len, uint64_t remote_addr, uint32_t rkey)
{
	struct rdma_rw_ctx *ctx = to_rw_ctx(read);
	struct ib_send_wr *first;
	int ret;

	if (len != pages->len)
		return KD_EINVAL;

	memset(ctx, 0, sizeof(*ctx));
	ret = rdma_rw_ctx_init(ctx, qp->qp, qp->cm->id->port_num, pages->table.sgl,
			       pages->table.orig_nents, 0, remote_addr, rkey, DMA_FROM_DEVICE);
	if (ret < 0)
		return kd_from_errno(ret);

	first = rdma_rw_ctx_wrs(ctx, qp->qp, qp->cm->id->port_num, to_cqe(cqe), NULL);
	ret = kd_post_wrs(qp, first);
	if (ret)
		kd_read_release(qp, read, pages);
	return ret;
}

void kd_read_release(struct kd_qp *qp, struct kd_read *read, struct kd_pages *pages)
{
	rdma_rw_ctx_destroy(to_rw_ctx(read), qp->qp, qp->cm->id->port_num, pages->table.sgl,
			    pages->table.orig_nents, DMA_FROM_DEVICE);
}
