// SPDX-License-Identifier: GPL-2.0-only
/* Memory of exports, and the MRs through which peers read and write it. */

#include <linux/mm.h>
#include <linux/sched/signal.h>
#include <linux/scatterlist.h>
#include <linux/slab.h>
#include <rdma/ib_verbs.h>

#include "shim.h"

struct kd_region {
	unsigned long	nr;
	struct page	*pages[];
};

struct kd_key {
	struct ib_mr	*mr;
	struct sg_table	table;
	int		access;
};

/* --- memory -------------------------------------------------------------------------- */

static void kd_region_release(struct kd_region *region, unsigned long nr)
{
	while (nr) {
		__free_page(region->pages[--nr]);
		if (!(nr % 1024))
			cond_resched();
	}
	kvfree(region);
}

int kd_region_alloc(uint64_t size, struct kd_region **out)
{
	unsigned long nr = DIV_ROUND_UP_ULL(size, PAGE_SIZE), done;
	const gfp_t gfp = KD_GFP | __GFP_ACCOUNT;
	struct kd_region *region;

	region = kvmalloc(struct_size(region, pages, nr), gfp);
	if (!region)
		return KD_ENOMEM;
	region->nr = nr;
	for (done = 0; done < nr; done++) {
		region->pages[done] = alloc_page(gfp | __GFP_ZERO);
		if (!region->pages[done] || fatal_signal_pending(current)) {
			int err = region->pages[done] ? KD_EINTR : KD_ENOMEM;

			kd_region_release(region, done + (err == KD_EINTR));
			return err;
		}
		cond_resched();
	}
	*out = region;
	return 0;
}

void kd_region_free(struct kd_region *region)
{
	might_sleep();
	kd_region_release(region, region->nr);
}

/* --- keys ----------------------------------------------------------------------------- */

static int kd_key_map(struct kd_key *key, struct ib_device *dev, struct page **pages, u32 len)
{
	int ret;

	ret = sg_alloc_table_from_pages_segment(&key->table, pages, DIV_ROUND_UP(len, PAGE_SIZE),
						0, len, ib_dma_max_seg_size(dev), KD_GFP);
	if (ret)
		return ret;
	ret = ib_dma_map_sgtable_attrs(dev, &key->table, DMA_BIDIRECTIONAL, 0);
	if (ret)
		goto err_table;
	ret = ib_map_mr_sg(key->mr, key->table.sgl, key->table.nents, NULL, PAGE_SIZE);
	if (ret == key->table.nents && key->mr->length == len)
		return 0;
	ret = ret < 0 ? ret : -EINVAL;
	ib_dma_unmap_sgtable_attrs(dev, &key->table, DMA_BIDIRECTIONAL, 0);
err_table:
	sg_free_table(&key->table);
	return ret;
}

static int kd_key_access(struct ib_device *dev, bool writable)
{
	int access = IB_ACCESS_REMOTE_READ;

	if (writable)
		access |= IB_ACCESS_REMOTE_WRITE | IB_ACCESS_LOCAL_WRITE;
	if (writable && dev->attrs.atomic_cap != IB_ATOMIC_NONE)
		access |= IB_ACCESS_REMOTE_ATOMIC;
	return access;
}

int kd_key_create(struct kd_pd *pd, struct kd_region *region, uint64_t offset, uint32_t len,
		  bool writable, struct kd_key **out)
{
	struct kd_key *key;
	int ret;

	key = kzalloc(sizeof(*key), KD_GFP);
	if (!key)
		return KD_ENOMEM;
	key->access = kd_key_access(to_pd(pd)->device, writable);
	key->mr = ib_alloc_mr(to_pd(pd), IB_MR_TYPE_MEM_REG, DIV_ROUND_UP(len, PAGE_SIZE));
	if (IS_ERR(key->mr)) {
		ret = PTR_ERR(key->mr);
		goto err_free;
	}
	ret = kd_key_map(key, to_pd(pd)->device, region->pages + (offset >> PAGE_SHIFT), len);
	if (ret)
		goto err_mr;
	*out = key;
	return 0;

err_mr:
	ib_dereg_mr(key->mr);
err_free:
	kfree(key);
	return kd_from_errno(ret);
}

void kd_key_destroy(struct kd_key *key)
{
	struct ib_device *dev = key->mr->device;

	might_sleep();
	ib_dereg_mr(key->mr);
	ib_dma_unmap_sgtable_attrs(dev, &key->table, DMA_BIDIRECTIONAL, 0);
	sg_free_table(&key->table);
	kfree(key);
	cond_resched();
}

uint32_t kd_key_rkey(const struct kd_key *key)
{
	return key->mr->rkey;
}

uint64_t kd_key_address(const struct kd_key *key)
{
	return key->mr->iova;
}

/* --- registering ---------------------------------------------------------------------- */

#define KD_MAX_KEYS_AT_ONCE	16

int kd_post_keys(struct kd_qp *qp, struct kd_cqe *reg, struct kd_key *const *keys, uint32_t nr,
		 struct kd_cqe *cqe, struct kd_dma *dma, uint32_t len)
{
	struct ib_reg_wr wrs[KD_MAX_KEYS_AT_ONCE];
	struct ib_sge sge = {
		.addr	= dma->addr,
		.length	= len,
		.lkey	= qp->qp->pd->local_dma_lkey,
	};
	struct ib_send_wr send = {
		.wr_cqe		= to_cqe(cqe),
		.sg_list	= &sge,
		.num_sge	= 1,
		.opcode		= IB_WR_SEND,
		.send_flags	= IB_SEND_SIGNALED,
	};
	u32 i;

	if (WARN_ON_ONCE(!nr || nr > KD_MAX_KEYS_AT_ONCE))
		return KD_EINVAL;
	for (i = 0; i < nr; i++) {
		wrs[i] = (struct ib_reg_wr){
			.wr = {
				.next	= i + 1 < nr ? &wrs[i + 1].wr : &send,
				.wr_cqe = to_cqe(reg),
				.opcode	= IB_WR_REG_MR,
			},
			.mr	= keys[i]->mr,
			.key	= keys[i]->mr->rkey,
			.access	= keys[i]->access,
		};
	}
	ib_dma_sync_single_for_device(kd_qp_device(qp), dma->addr, len, DMA_TO_DEVICE);
	return kd_post_wrs(qp, &wrs[0].wr);
}
