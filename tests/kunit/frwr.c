// SPDX-License-Identifier: GPL-2.0-only
/* Memory of a work request as one MR: what it describes, and what a QP gets to register it. */

#include <linux/bottom_half.h>
#include <linux/slab.h>

#include "mapped.h"

#define KDK_LKEY	0x4321
#define KDK_SEEN	8

/* A WR as it was posted. */
struct kdk_seen {
	struct ib_send_wr	wr;
	struct ib_sge		sge;
	struct ib_mr		*mr;
	u32			key;
	int			access;
};

/* A buffer of a real device, an MR of that, and a QP whose device only looks. */
struct kdk_bench {
	struct kdk_mapped	m;
	struct kd_frwr		*frwr;
	struct kd_chain		*chain;
	struct ib_device	dev;
	struct ib_pd		pd;
	struct ib_qp		ib_qp;
	struct kd_qp		qp;
	struct kd_cqe		cqe, reg_cqe;
	struct kdk_seen		seen[KDK_SEEN];
	struct ib_recv_wr	recv;
	struct ib_sge		recv_sge;
	u32			nr, nr_recvs;
	bool			above_bh;
	int			error;
};

static int kdk_look_at_send(struct ib_qp *ib_qp, const struct ib_send_wr *wr,
			    const struct ib_send_wr **bad)
{
	struct kdk_bench *b = container_of(ib_qp, struct kdk_bench, ib_qp);

	b->above_bh |= !in_softirq();
	b->nr = 0;
	if (b->error) {
		*bad = wr;
		return b->error;
	}
	for (; wr && b->nr < KDK_SEEN; wr = wr->next) {
		struct kdk_seen *seen = &b->seen[b->nr++];

		memset(seen, 0, sizeof(*seen));
		seen->wr = *wr;
		if (wr->num_sge)
			seen->sge = *wr->sg_list;
		if (wr->opcode == IB_WR_REG_MR) {
			seen->mr = reg_wr(wr)->mr;
			seen->key = reg_wr(wr)->key;
			seen->access = reg_wr(wr)->access;
		}
	}
	return 0;
}

static int kdk_look_at_recv(struct ib_qp *ib_qp, const struct ib_recv_wr *wr,
			    const struct ib_recv_wr **bad)
{
	struct kdk_bench *b = container_of(ib_qp, struct kdk_bench, ib_qp);

	b->nr_recvs++;
	b->recv = *wr;
	b->recv_sge = *wr->sg_list;
	return 0;
}

static void kdk_bench_end(struct kdk_bench *b)
{
	if (b->frwr)
		kd_frwr_destroy(b->frwr);
	kd_chain_free(b->chain);
	kdk_mapped_end(&b->m);
}

/* NULL: told. As kdk_user_begin(). */
static struct kdk_bench *kdk_bench_begin(struct kunit *test, u32 pages)
{
	struct kdk_bench *b = kunit_kzalloc(test, sizeof(*b), GFP_KERNEL);

	if (!b) {
		KUNIT_FAIL(test, "no memory");
		return NULL;
	}
	if (!kdk_mapped_begin(test, &b->m))
		return NULL;
	b->dev.ops.post_send = kdk_look_at_send;
	b->dev.ops.post_recv = kdk_look_at_recv;
	b->pd.device = &b->dev;
	b->pd.local_dma_lkey = KDK_LKEY;
	b->ib_qp.device = &b->dev;
	b->ib_qp.pd = &b->pd;
	b->qp.qp = &b->ib_qp;
	if (!kd_frwr_create((struct kd_pd *)b->m.pd, pages, &b->frwr) &&
	    !kd_chain_create(&b->chain))
		return b;
	KUNIT_FAIL(test, "no MR");
	kdk_bench_end(b);
	return NULL;
}

/* One of the buffer's bytes, as the work request of a slot. */
static struct kd_raw_wr kdk_work(struct kdk_bench *b, enum kd_raw_op op, u64 offset, u32 len)
{
	return (struct kd_raw_wr){
		.op = op,
		.len = len,
		.rkey = 77,
		.addr = 0xabc000,
		.cqe = &b->cqe,
		.fixed = b->m.fixed,
		.offset = offset,
		.frwr = b->frwr,
		.reg_cqe = &b->reg_cqe,
	};
}

/* --- what it describes ---------------------------------------------------------------------- */

static const struct {
	u32	offset, len, pages;
} spans[] = {
	{ 0, 1, 1 }, { 0, 3996, 1 }, { 0, 3997, 2 }, { 3995, 1, 1 }, { 3995, 2, 2 },
	{ 3996, 4096, 1 }, { 3996, 4097, 2 }, { 100, 20000, 5 },
	{ 0, KDK_BYTES - KDK_SKEW - 50, KDK_PAGES },
};

/* Wherever it lies: all of it, under a key that it did not have. */
static void frwr_describes(struct kunit *test)
{
	struct kdk_bench *b = kdk_bench_begin(test, KDK_PAGES);
	u32 i;

	if (!b)
		return;
	for (i = 0; i < ARRAY_SIZE(spans); i++) {
		struct kd_raw_wr wr = kdk_work(b, KD_RAW_SEND, spans[i].offset, spans[i].len);
		struct ib_mr *mr = b->frwr->mr;
		u32 before = mr->rkey;

		KUNIT_EXPECT_EQ(test, kd_raw_pages(&wr), spans[i].pages);
		KUNIT_EXPECT_EQ(test, kd_frwr_map(b->frwr, &wr), 0);
		KUNIT_EXPECT_EQ(test, mr->length, spans[i].len);
		KUNIT_EXPECT_EQ(test, offset_in_page(mr->iova),
				offset_in_page(KDK_SKEW + spans[i].offset));
		KUNIT_EXPECT_NE(test, mr->rkey, before);
		KUNIT_EXPECT_EQ(test, mr->rkey >> 8, before >> 8);
	}
	kdk_bench_end(b);
}

/* The same of pages that were pinned for one work request. */
static void frwr_describes_pages(struct kunit *test)
{
	struct kdk_bench *b = kdk_bench_begin(test, KDK_PAGES);
	struct kd_pd *pd;
	u32 i;

	if (!b)
		return;
	pd = (struct kd_pd *)b->m.pd;
	for (i = 0; i < ARRAY_SIZE(spans); i++) {
		struct kd_raw_wr wr = { .len = spans[i].len };
		u64 addr = b->m.user.start + KDK_SKEW + spans[i].offset;

		if (kd_pages_pin_stay(addr, wr.len, true, &wr.pages)) {
			KUNIT_FAIL(test, "they cannot be pinned");
			break;
		}
		KUNIT_EXPECT_EQ(test, kd_pages_map(pd, wr.pages, true), 0);
		KUNIT_EXPECT_EQ(test, kd_raw_pages(&wr), spans[i].pages);
		KUNIT_EXPECT_EQ(test, kd_frwr_map(b->frwr, &wr), 0);
		KUNIT_EXPECT_EQ(test, b->frwr->mr->length, wr.len);
		kd_pages_unmap(pd, wr.pages, true);
		kd_pages_free(wr.pages);
	}
	kdk_bench_end(b);
}

#define KDK_ORDER	3

/* More pages than it has entries for, whether they are neighbours or not. */
static void frwr_too_much(struct kunit *test)
{
	struct kdk_bench *b = kdk_bench_begin(test, 2);
	struct page *block, *pages[1 << KDK_ORDER];
	struct kd_raw_wr wr;
	u32 i;

	if (!b)
		return;
	wr = kdk_work(b, KD_RAW_SEND, 0, 2 * PAGE_SIZE - KDK_SKEW);
	KUNIT_EXPECT_EQ(test, kd_frwr_map(b->frwr, &wr), 0);
	wr.len++;
	KUNIT_EXPECT_EQ(test, kd_frwr_map(b->frwr, &wr), KD_EFBIG);
	block = alloc_pages(GFP_KERNEL, KDK_ORDER);
	if (!block) {
		KUNIT_FAIL(test, "no memory");
		goto out;
	}
	for (i = 0; i < ARRAY_SIZE(pages); i++)
		pages[i] = block + i;
	wr = (struct kd_raw_wr){ .len = sizeof(pages) / sizeof(*pages) * PAGE_SIZE };
	if (kd_pages_borrow_array(pages, 0, wr.len, &wr.pages)) {
		KUNIT_FAIL(test, "no memory");
	} else {
		KUNIT_EXPECT_EQ(test, kd_pages_map((struct kd_pd *)b->m.pd, wr.pages, true), 0);
		KUNIT_EXPECT_EQ(test, kd_pages_sges(wr.pages), 1);
		KUNIT_EXPECT_EQ(test, kd_frwr_map(b->frwr, &wr), KD_EFBIG);
		kd_pages_unmap((struct kd_pd *)b->m.pd, wr.pages, true);
		kd_pages_free(wr.pages);
	}
	__free_pages(block, KDK_ORDER);
out:
	kdk_bench_end(b);
}

/* --- registering ---------------------------------------------------------------------------- */

/* The WR number @i registers it, under the key that it has. */
static void kdk_expect_reg(struct kunit *test, const struct kdk_bench *b, u32 i, int access,
			   bool signalled)
{
	const struct kdk_seen *seen = &b->seen[i];

	KUNIT_EXPECT_EQ(test, seen->wr.opcode, IB_WR_REG_MR);
	KUNIT_EXPECT_PTR_EQ(test, seen->wr.wr_cqe, to_cqe((struct kd_cqe *)&b->reg_cqe));
	KUNIT_EXPECT_EQ(test, seen->wr.send_flags, signalled ? IB_SEND_SIGNALED : 0);
	KUNIT_EXPECT_PTR_EQ(test, seen->mr, b->frwr->mr);
	KUNIT_EXPECT_EQ(test, seen->key, b->frwr->mr->rkey);
	KUNIT_EXPECT_EQ(test, seen->access, access);
}

/* The WR number @i ends what it was registered as before. */
static void kdk_expect_inv(struct kunit *test, const struct kdk_bench *b, u32 i, u32 key)
{
	const struct ib_send_wr *wr = &b->seen[i].wr;

	KUNIT_EXPECT_EQ(test, wr->opcode, IB_WR_LOCAL_INV);
	KUNIT_EXPECT_EQ(test, wr->send_flags, 0);
	KUNIT_EXPECT_EQ(test, wr->ex.invalidate_rkey, key);
	KUNIT_EXPECT_PTR_EQ(test, wr->wr_cqe, to_cqe((struct kd_cqe *)&b->reg_cqe));
}

/* For a receive: what was posted is to be taken back, and nothing else. */
static void frwr_of_receives(struct kunit *test)
{
	struct kdk_bench *b = kdk_bench_begin(test, KDK_PAGES);
	struct kd_raw_wr wr;
	u32 before;

	if (!b)
		return;
	wr = kdk_work(b, KD_RAW_SEND, 0, 20000);
	KUNIT_EXPECT_EQ(test, kd_frwr_map(b->frwr, &wr), 0);
	b->error = -ENOMEM;
	KUNIT_EXPECT_EQ(test, kd_post_frwr(&b->qp, &b->reg_cqe, b->frwr), KD_ENOMEM);
	b->error = 0;
	KUNIT_EXPECT_EQ(test, kd_post_frwr(&b->qp, &b->reg_cqe, b->frwr), 0);
	KUNIT_EXPECT_EQ(test, b->nr, 1);
	kdk_expect_reg(test, b, 0, IB_ACCESS_LOCAL_WRITE, true);

	before = b->frwr->mr->rkey;
	KUNIT_EXPECT_EQ(test, kd_frwr_map(b->frwr, &wr), 0);
	KUNIT_EXPECT_EQ(test, kd_frwr_map(b->frwr, &wr), 0);
	b->error = -EINVAL;
	KUNIT_EXPECT_EQ(test, kd_post_frwr(&b->qp, &b->reg_cqe, b->frwr), KD_EINVAL);
	b->error = 0;
	KUNIT_EXPECT_EQ(test, kd_post_frwr(&b->qp, &b->reg_cqe, b->frwr), 0);
	KUNIT_EXPECT_EQ(test, b->nr, 2);
	kdk_expect_inv(test, b, 0, before);
	kdk_expect_reg(test, b, 1, IB_ACCESS_LOCAL_WRITE, true);

	KUNIT_EXPECT_EQ(test, kd_post_raw_recv(&b->qp, b->chain, &wr), 0);
	KUNIT_EXPECT_EQ(test, b->nr_recvs, 1);
	KUNIT_EXPECT_PTR_EQ(test, b->recv.wr_cqe, to_cqe(&b->cqe));
	KUNIT_EXPECT_EQ(test, b->recv.num_sge, 1);
	KUNIT_EXPECT_EQ(test, b->recv_sge.addr, b->frwr->mr->iova);
	KUNIT_EXPECT_EQ(test, b->recv_sge.lkey, b->frwr->mr->lkey);
	KUNIT_EXPECT_EQ(test, b->recv_sge.length, 20000);
	KUNIT_EXPECT_FALSE_MSG(test, b->above_bh, "posted with bottom halves enabled");
	kdk_bench_end(b);
}

struct kdk_use {
	const char		*name;
	enum kd_raw_op		op;
	bool			sink;
	enum ib_wr_opcode	opcode;
	int			access;
};

static const struct kdk_use uses[] = {
	{ "SEND", KD_RAW_SEND, false, IB_WR_SEND, 0 },
	{ "WRITE", KD_RAW_WRITE, false, IB_WR_RDMA_WRITE, 0 },
	{ "READ", KD_RAW_READ, false, IB_WR_RDMA_READ, IB_ACCESS_LOCAL_WRITE },
	{ "READ, of iWARP", KD_RAW_READ, true, IB_WR_RDMA_READ_WITH_INV,
	  IB_ACCESS_LOCAL_WRITE | IB_ACCESS_REMOTE_WRITE },
};

static void kdk_describe_use(const struct kdk_use *use, char *desc)
{
	snprintf(desc, KUNIT_PARAM_DESC_SIZE, "%s", use->name);
}

KUNIT_ARRAY_PARAM(use, uses, kdk_describe_use);

/* Beside one that needs none: registered right before it, with no more rights than it needs. */
static void frwr_of_sends(struct kunit *test)
{
	const struct kdk_use *use = test->param_value;
	struct kdk_bench *b = kdk_bench_begin(test, KDK_PAGES);
	struct kd_raw_wr wrs[2];
	u32 round, before = 0;

	if (!b)
		return;
	wrs[0] = (struct kd_raw_wr){ .op = KD_RAW_SEND, .cqe = &b->cqe };
	wrs[1] = kdk_work(b, use->op, 50, 30000);
	wrs[1].sink = use->sink;
	for (round = 0; round < 3; round++) {
		/* the peer's READ has ended the right that it had */
		u32 inv = round && !use->sink, last = 2 + inv;
		const struct ib_send_wr *wr = &b->seen[last].wr;

		KUNIT_EXPECT_EQ(test, kd_frwr_map(b->frwr, &wrs[1]), 0);
		KUNIT_EXPECT_EQ(test, kd_post_raw(&b->qp, b->chain, wrs, 2), 0);
		KUNIT_EXPECT_EQ(test, b->nr, last + 1);
		KUNIT_EXPECT_EQ(test, b->seen[0].wr.opcode, IB_WR_SEND);
		KUNIT_EXPECT_EQ(test, b->seen[0].wr.num_sge, 0);
		if (inv)
			kdk_expect_inv(test, b, 1, before);
		kdk_expect_reg(test, b, 1 + inv, use->access, false);
		KUNIT_EXPECT_EQ(test, wr->opcode, use->opcode);
		KUNIT_EXPECT_EQ(test, wr->send_flags, IB_SEND_SIGNALED);
		KUNIT_EXPECT_PTR_EQ(test, wr->wr_cqe, to_cqe(&b->cqe));
		KUNIT_EXPECT_EQ(test, wr->num_sge, 1);
		KUNIT_EXPECT_PTR_EQ(test, wr->next, NULL);
		KUNIT_EXPECT_EQ(test, b->seen[last].sge.addr, b->frwr->mr->iova);
		KUNIT_EXPECT_EQ(test, b->seen[last].sge.lkey, b->frwr->mr->lkey);
		KUNIT_EXPECT_EQ(test, b->seen[last].sge.length, 30000);
		if (use->sink)
			KUNIT_EXPECT_EQ(test, wr->ex.invalidate_rkey, b->frwr->mr->lkey);
		before = b->frwr->mr->rkey;
	}
	/* what was refused is not registered */
	KUNIT_EXPECT_EQ(test, kd_frwr_map(b->frwr, &wrs[1]), 0);
	b->error = -ENOMEM;
	KUNIT_EXPECT_EQ(test, kd_post_raw(&b->qp, b->chain, wrs, 2), KD_ENOMEM);
	b->error = 0;
	KUNIT_EXPECT_EQ(test, kd_post_raw(&b->qp, b->chain, wrs, 2), 0);
	KUNIT_EXPECT_EQ(test, b->nr, use->sink ? 3 : 4);
	if (!use->sink)
		kdk_expect_inv(test, b, 1, before);
	kdk_bench_end(b);
}

/* --- errors --------------------------------------------------------------------------------- */

static int kdk_frwr_op(void *arg)
{
	struct kdk_bench *b = arg;
	struct kd_raw_wr wr = kdk_work(b, KD_RAW_SEND, 0, 50000);
	struct kd_frwr *frwr;
	int err = kd_frwr_create((struct kd_pd *)b->m.pd, KDK_PAGES, &frwr);

	if (err)
		return err;
	err = kd_frwr_map(frwr, &wr);
	kd_frwr_destroy(frwr);
	return err;
}

static void frwr_without_memory(struct kunit *test)
{
	struct kdk_bench *b = kdk_bench_begin(test, KDK_PAGES);

	if (!b)
		return;
	kdk_each_allocation_fails(test, kdk_frwr_op, b);
	kdk_bench_end(b);
}

static struct kunit_case kdk_frwr_cases[] = {
	KUNIT_CASE(frwr_describes),
	KUNIT_CASE(frwr_describes_pages),
	KUNIT_CASE(frwr_too_much),
	KUNIT_CASE(frwr_of_receives),
	KUNIT_CASE_PARAM(frwr_of_sends, use_gen_params),
	KUNIT_CASE(frwr_without_memory),
	{}
};

KDK_SUITE(frwr, kdk_frwr_cases);
