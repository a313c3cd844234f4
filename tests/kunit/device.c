// SPDX-License-Identifier: GPL-2.0-only
/* Buffers and memory regions on a real RDMA device. */

#include <linux/slab.h>
#include <rdma/ib_verbs.h>

#include "kunit.h"

struct kdk_device {
	struct ib_device	*dev;
	struct kd_pd		*pd;
};

/* A PD, or false: told. */
static bool kdk_open(struct kunit *test, struct kdk_device *d)
{
	struct ib_pd *pd;

	d->dev = kdk_device_get();
	if (!d->dev) {
		kunit_mark_skipped(test, "no RDMA device");
		return false;
	}
	pd = ib_alloc_pd(d->dev, 0);
	if (IS_ERR(pd)) {
		ib_device_put(d->dev);
		KUNIT_FAIL(test, "no protection domain: %ld", PTR_ERR(pd));
		return false;
	}
	d->pd = (struct kd_pd *)pd;
	return true;
}

static void kdk_close(struct kdk_device *d)
{
	ib_dealloc_pd((struct ib_pd *)d->pd);
	ib_device_put(d->dev);
}

/* What the core has been told of it. */
static void described(struct kunit *test)
{
	struct kd_device_info *info = kunit_kzalloc(test, sizeof(*info), GFP_KERNEL);
	struct kdk_device d;

	KUNIT_ASSERT_NOT_NULL(test, info);
	if (!kdk_open(test, &d))
		return;
	KUNIT_EXPECT_EQ(test, kd_device_info(dev_name(&d.dev->dev), info), 0);
	KUNIT_EXPECT_STREQ(test, info->attr.name, dev_name(&d.dev->dev));
	KUNIT_EXPECT_EQ(test, info->attr.index, d.dev->index);
	KUNIT_EXPECT_EQ(test, info->attr.max_qp_wr, (u32)d.dev->attrs.max_qp_wr);
	KUNIT_EXPECT_EQ(test, info->attr.max_mr_pages, d.dev->attrs.max_fast_reg_page_list_len);
	KUNIT_EXPECT_GT(test, info->attr.max_mr_pages, 0);
	KUNIT_EXPECT_EQ(test, kd_device_info("no such device", info), KD_ENOENT);
	kdk_close(&d);
}

/* --- buffers ------------------------------------------------------------------------------ */

static const u32 sizes[] = { 1, 64, 4095, 4096, 4097, 16416, 65568 };

static void kdk_describe_size(const u32 *size, char *desc)
{
	snprintf(desc, KUNIT_PARAM_DESC_SIZE, "%u bytes", *size);
}

KUNIT_ARRAY_PARAM(size, sizes, kdk_describe_size);

static void buffer(struct kunit *test)
{
	u32 size = *(const u32 *)test->param_value;
	struct kdk_device d;
	int to_device;

	if (!kdk_open(test, &d))
		return;
	for (to_device = 0; to_device < 2; to_device++) {
		struct kd_dma dma;
		void *mem;

		if (kd_dma_create(d.pd, size, to_device, &dma)) {
			KUNIT_FAIL(test, "no memory");
			break;
		}
		mem = dma.mem;
		KUNIT_EXPECT_TRUE(test, dma.mapped);
		KUNIT_EXPECT_EQ(test, dma.size, size);
		KUNIT_EXPECT_PTR_EQ(test, memchr_inv(mem, 0, size), NULL);
		kd_dma_sync_cpu(d.pd, &dma, size);
		memset(mem, 0xa5, size);
		kd_dma_unmap(d.pd, &dma);
		KUNIT_EXPECT_FALSE(test, dma.mapped);
		KUNIT_EXPECT_PTR_EQ_MSG(test, dma.mem, mem, "the memory outlives the mapping");
		KUNIT_EXPECT_PTR_EQ(test, memchr_inv(mem, 0xa5, size), NULL);
		kd_dma_unmap(d.pd, &dma);
		kd_dma_free(&dma);
		KUNIT_EXPECT_PTR_EQ(test, dma.mem, NULL);
		kd_dma_free(&dma);
	}
	kdk_close(&d);
}

static int kdk_dma_op(void *arg)
{
	struct kd_pd *pd = arg;
	struct kd_dma dma = {};
	int err = kd_dma_create(pd, 100, true, &dma);

	if (err && (dma.mapped || dma.mem))
		err = -1;
	kd_dma_unmap(pd, &dma);
	kd_dma_free(&dma);
	return err;
}

static void buffer_without_memory(struct kunit *test)
{
	struct kdk_device d;

	if (!kdk_open(test, &d))
		return;
	kdk_each_allocation_fails(test, kdk_dma_op, d.pd);
	kdk_close(&d);
}

/* --- memory regions ------------------------------------------------------------------------ */

static const u32 lengths[] = { 1, 4096, 4097, 65536, 65537, SZ_1M - 1, SZ_1M };
KUNIT_ARRAY_PARAM(length, lengths, kdk_describe_size);

/* Just as many pages as the message has, and one less. */
static void region(struct kunit *test)
{
	u32 len = *(const u32 *)test->param_value, nr = DIV_ROUND_UP(len, PAGE_SIZE), key;
	struct kd_mr *mr = NULL, *small = NULL;
	struct kd_pages *pages = NULL;
	struct kdk_device d;
	int err;

	if (!kdk_open(test, &d))
		return;
	if (kd_pages_alloc(len, KD_PAGES_FETCH, &pages) || kd_mr_create(d.pd, nr, &mr) ||
	    (nr > 1 && kd_mr_create(d.pd, nr - 1, &small))) {
		KUNIT_FAIL(test, "no memory");
		goto out;
	}
	key = kd_mr_rkey(mr);
	KUNIT_EXPECT_EQ(test, kd_mr_map(mr, pages), 0);
	KUNIT_EXPECT_NE_MSG(test, kd_mr_rkey(mr), key, "a key is good for one message");
	KUNIT_EXPECT_EQ_MSG(test, kd_mr_rkey(mr) >> 8, key >> 8, "the device's part of the key");
	KUNIT_EXPECT_EQ(test, to_mr(mr)->length, len);
	KUNIT_EXPECT_EQ(test, kd_mr_address(mr), (u64)sg_dma_address(pages->table.sgl));
	kd_mr_unmap(mr, pages);
	if (small) {
		key = kd_mr_rkey(small);
		/* a device that fits nothing, as pages happen to be neighbours, may say so itself */
		err = kd_mr_map(small, pages);
		KUNIT_EXPECT_TRUE(test, err == KD_EFBIG || err == KD_EINVAL ||
				  err == KD_ENOMEM);
		KUNIT_EXPECT_EQ_MSG(test, kd_mr_rkey(small), key, "nothing was described");
		/* what failed has given the mapping back */
		KUNIT_EXPECT_EQ(test, kd_mr_map(mr, pages), 0);
		kd_mr_unmap(mr, pages);
	}
out:
	if (small)
		kd_mr_destroy(small);
	if (mr)
		kd_mr_destroy(mr);
	kd_pages_free(pages);
	kdk_close(&d);
}

/* Each mapping has another key, as long as the device's eight bits for that last. */
static void keys(struct kunit *test)
{
	struct kd_pages *pages = NULL;
	struct kd_mr *mr = NULL;
	struct kdk_device d;
	DECLARE_BITMAP(seen, 256) = {};
	u32 first = 0, i;

	if (!kdk_open(test, &d))
		return;
	if (kd_pages_alloc(100, KD_PAGES_FETCH, &pages) || kd_mr_create(d.pd, 1, &mr)) {
		KUNIT_FAIL(test, "no memory");
		goto out;
	}
	for (i = 0; i < 257; i++) {
		u32 key;

		if (kd_mr_map(mr, pages)) {
			KUNIT_FAIL(test, "mapping %u failed", i);
			break;
		}
		key = kd_mr_rkey(mr);
		if (!i)
			first = key;
		KUNIT_EXPECT_EQ(test, key >> 8, first >> 8);
		KUNIT_EXPECT_EQ(test, test_and_set_bit(key & 0xff, seen), i == 256);
		kd_mr_unmap(mr, pages);
	}
	KUNIT_EXPECT_EQ(test, kd_mr_rkey(mr), first);
out:
	if (mr)
		kd_mr_destroy(mr);
	kd_pages_free(pages);
	kdk_close(&d);
}

/* As many as the device has room for; all of them can be had again. */
static void many_regions(struct kunit *test)
{
	enum { KDK_MANY = 64 };
	struct kd_mr *mrs[KDK_MANY];
	struct kdk_device d;
	u32 n, m, round;

	if (!kdk_open(test, &d))
		return;
	for (round = 0; round < 3; round++) {
		for (n = 0; n < KDK_MANY; n++) {
			if (kd_mr_create(d.pd, 257, &mrs[n])) {
				KUNIT_FAIL(test, "round %u: no region %u", round, n);
				break;
			}
			for (m = 0; m < n; m++)
				KUNIT_EXPECT_NE(test, kd_mr_rkey(mrs[n]) >> 8,
						kd_mr_rkey(mrs[m]) >> 8);
		}
		while (n--)
			kd_mr_destroy(mrs[n]);
	}
	kdk_close(&d);
}

static int kdk_mr_op(void *arg)
{
	struct kd_mr *mr = NULL;
	int err = kd_mr_create(arg, 16, &mr);

	if (err)
		return mr ? -1 : err;
	kd_mr_destroy(mr);
	return 0;
}

static void region_without_memory(struct kunit *test)
{
	struct kdk_device d;

	if (!kdk_open(test, &d))
		return;
	kdk_each_allocation_fails(test, kdk_mr_op, d.pd);
	kdk_close(&d);
}

static struct kunit_case kdk_device_cases[] = {
	KUNIT_CASE(described),
	KUNIT_CASE_PARAM(buffer, size_gen_params),
	KUNIT_CASE(buffer_without_memory),
	KUNIT_CASE_PARAM(region, length_gen_params),
	KUNIT_CASE(keys),
	KUNIT_CASE(many_regions),
	KUNIT_CASE(region_without_memory),
	{}
};

KDK_SUITE(device, kdk_device_cases);
