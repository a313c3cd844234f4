// SPDX-License-Identifier: GPL-2.0-only
/* Work requests that share a doorbell: what a QP gets of a chain. */

#include <linux/bottom_half.h>
#include <linux/slab.h>
#include <rdma/ib_verbs.h>

#include "kunit.h"

#define KDK_PAGES	40
#define KDK_BYTES	(KDK_PAGES * PAGE_SIZE)
#define KDK_LKEY	0x1234
#define KDK_SINK_KEY	0x5678
#define KDK_SINK	0xdef000
#define KDK_SGES	(KD_CHAIN_SGES + KD_CHAIN_MAX)

/* A WR as it was posted; chain and entries are used up by the return. */
struct kdk_posted {
	struct ib_send_wr	wr;
	u64			addr, compare_add, swap;
	u32			rkey;
	u32			first;	/* of kdk_wire.sges */
};

/* A QP whose device only looks, with addresses that are the kernel's. */
struct kdk_wire {
	struct ib_device	dev;
	struct ib_pd		pd;
	struct ib_qp		ib_qp;
	struct kd_qp		qp;
	struct ib_mr		sink_mr;
	struct kd_sink		sink;
	struct kd_chain		*chain;
	struct kd_io		ios[KD_CHAIN_MAX];
	struct kd_cqe		cqes[KD_CHAIN_MAX];
	struct kd_dma		dmas[KD_CHAIN_MAX];
	struct kdk_posted	posted[KD_CHAIN_MAX + 1];
	struct ib_sge		sges[KDK_SGES];
	u32			nr, nr_sges, doorbells;
	bool			too_many, above_bh;
	int			error;
};

static void kdk_keep_key(struct kdk_posted *p, const struct ib_send_wr *wr)
{
	if (wr->opcode == IB_WR_ATOMIC_CMP_AND_SWP || wr->opcode == IB_WR_ATOMIC_FETCH_AND_ADD) {
		const struct ib_atomic_wr *atomic = atomic_wr(wr);

		p->addr = atomic->remote_addr;
		p->rkey = atomic->rkey;
		p->compare_add = atomic->compare_add;
		p->swap = atomic->swap;
	} else {
		p->addr = rdma_wr(wr)->remote_addr;
		p->rkey = rdma_wr(wr)->rkey;
	}
}

static int kdk_post_send(struct ib_qp *ib_qp, const struct ib_send_wr *wr,
			 const struct ib_send_wr **bad)
{
	struct kdk_wire *w = container_of(ib_qp, struct kdk_wire, ib_qp);

	w->doorbells++;
	w->above_bh |= !in_softirq();
	if (w->error) {
		*bad = wr;
		return w->error;
	}
	for (; wr; wr = wr->next) {
		struct kdk_posted *p = &w->posted[w->nr];

		if (w->nr == KD_CHAIN_MAX || w->nr_sges + wr->num_sge > KDK_SGES) {
			w->too_many = true;
			return 0;
		}
		p->wr = *wr;
		p->first = w->nr_sges;
		kdk_keep_key(p, wr);
		memcpy(&w->sges[w->nr_sges], wr->sg_list, wr->num_sge * sizeof(*wr->sg_list));
		w->nr_sges += wr->num_sge;
		w->nr++;
	}
	return 0;
}

static struct kdk_wire *kdk_wire_create(struct kunit *test)
{
	struct kdk_wire *w = kunit_kzalloc(test, sizeof(*w), GFP_KERNEL);

	if (!w || kd_chain_create(&w->chain))
		return NULL;
	w->dev.ops.post_send = kdk_post_send;
	w->pd.device = &w->dev;
	w->pd.local_dma_lkey = KDK_LKEY;
	w->ib_qp.device = &w->dev;
	w->ib_qp.pd = &w->pd;
	w->qp.qp = &w->ib_qp;
	w->sink_mr.lkey = KDK_SINK_KEY;
	w->sink_mr.iova = KDK_SINK;
	w->sink.mr = &w->sink_mr;
	w->sink.reg.wr.opcode = IB_WR_REG_MR;
	w->sink.registered = true;
	w->qp.sink = &w->sink;
	return w;
}

/* The one number @i, with values of its own everywhere. */
static struct kd_io *kdk_io(struct kdk_wire *w, u32 i, enum kd_io_kind kind, bool write, u32 len)
{
	w->dmas[i].addr = 0x10000 * (i + 1);
	w->ios[i] = (struct kd_io){
		.kind = kind,
		.write = write,
		.len = len,
		.rkey = 1000 + i,
		.addr = 0xabc000000ULL + i,
		.cqe = &w->cqes[i],
		.dma = &w->dmas[i],
		.operand = 2000 + i,
		.compare = 3000 + i,
	};
	return &w->ios[i];
}

static enum ib_wr_opcode kdk_opcode(const struct kd_io *io)
{
	switch (io->kind) {
	case KD_IO_CMP_SWAP:
		return IB_WR_ATOMIC_CMP_AND_SWP;
	case KD_IO_FETCH_ADD:
		return IB_WR_ATOMIC_FETCH_AND_ADD;
	case KD_IO_PROBE:
		return IB_WR_RDMA_READ;
	default:
		return io->write ? IB_WR_RDMA_WRITE : IB_WR_RDMA_READ;
	}
}

/* All of them came, with one doorbell, in order, each as it was asked for. */
static void kdk_expect_posted(struct kunit *test, const struct kdk_wire *w, u32 nr)
{
	u32 i, sges = 0;

	KUNIT_EXPECT_EQ(test, w->doorbells, 1);
	KUNIT_EXPECT_FALSE(test, w->too_many);
	KUNIT_EXPECT_FALSE_MSG(test, w->above_bh, "posted with bottom halves enabled");
	KUNIT_EXPECT_EQ(test, w->nr, nr);
	for (i = 0; i < min(nr, w->nr); i++) {
		const struct kdk_posted *p = &w->posted[i];
		const struct kd_io *io = &w->ios[i];
		u32 len = 0, j;

		KUNIT_EXPECT_EQ(test, p->wr.opcode, kdk_opcode(io));
		KUNIT_EXPECT_EQ(test, p->wr.send_flags, io->cqe ? IB_SEND_SIGNALED : 0);
		KUNIT_EXPECT_PTR_EQ(test, p->wr.wr_cqe, to_cqe(io->cqe));
		KUNIT_EXPECT_EQ(test, p->wr.next == NULL, i == nr - 1);
		KUNIT_EXPECT_EQ(test, p->addr, io->addr);
		KUNIT_EXPECT_EQ(test, p->rkey, io->rkey);
		KUNIT_EXPECT_EQ(test, p->first, sges);
		sges += p->wr.num_sge;
		for (j = 0; j < p->wr.num_sge; j++) {
			len += w->sges[p->first + j].length;
			KUNIT_EXPECT_EQ(test, w->sges[p->first + j].lkey,
					io->kind == KD_IO_PROBE ? KDK_SINK_KEY : KDK_LKEY);
		}
		KUNIT_EXPECT_EQ(test, len, io->len);
		if (io->kind == KD_IO_FIXED)
			continue;
		KUNIT_EXPECT_EQ(test, p->wr.num_sge, 1);
		if (io->kind == KD_IO_PROBE) {
			KUNIT_EXPECT_EQ(test, w->sges[p->first].addr, KDK_SINK);
			continue;
		}
		KUNIT_EXPECT_EQ(test, w->sges[p->first].addr, io->dma->addr);
	}
}

struct kdk_one {
	enum kd_io_kind	kind;
	bool		write;
	u32		len;
};

static const struct kdk_one ones[] = {
	{ KD_IO_BUFFER, false, 1 }, { KD_IO_BUFFER, true, 4096 }, { KD_IO_BUFFER, false, 65536 },
	{ KD_IO_CMP_SWAP, false, 8 }, { KD_IO_FETCH_ADD, false, 8 },
};

static void kdk_describe_one(const struct kdk_one *one, char *desc)
{
	static const char * const names[] = { "buffer", "fixed", "swap", "add" };

	snprintf(desc, KUNIT_PARAM_DESC_SIZE, "%s %s %u", names[one->kind],
		 one->write ? "write" : "read", one->len);
}

KUNIT_ARRAY_PARAM(one, ones, kdk_describe_one);

static void chain_of_one(struct kunit *test)
{
	const struct kdk_one *one = test->param_value;
	struct kdk_wire *w = kdk_wire_create(test);

	KUNIT_ASSERT_NOT_NULL(test, w);
	kdk_io(w, 0, one->kind, one->write, one->len);
	KUNIT_EXPECT_EQ(test, kd_post_chain(&w->qp, w->chain, w->ios, 1), 0);
	kdk_expect_posted(test, w, 1);
	if (one->kind == KD_IO_CMP_SWAP) {
		KUNIT_EXPECT_EQ(test, w->posted[0].compare_add, 3000);
		KUNIT_EXPECT_EQ(test, w->posted[0].swap, 2000);
	} else if (one->kind == KD_IO_FETCH_ADD) {
		KUNIT_EXPECT_EQ(test, w->posted[0].compare_add, 2000);
		KUNIT_EXPECT_EQ(test, w->posted[0].swap, 0);
	}
	kd_chain_free(w->chain);
}

static const u32 counts[] = { 2, 3, KD_CHAIN_MAX - 1, KD_CHAIN_MAX };

static void kdk_describe_count(const u32 *count, char *desc)
{
	snprintf(desc, KUNIT_PARAM_DESC_SIZE, "%u WRs", *count);
}

KUNIT_ARRAY_PARAM(count, counts, kdk_describe_count);

/* Kinds that use a WR of another length, in each place; what was there before does not show. */
static void chain_of_many(struct kunit *test)
{
	u32 nr = *(const u32 *)test->param_value, round, i;
	struct kdk_wire *w = kdk_wire_create(test);

	KUNIT_ASSERT_NOT_NULL(test, w);
	for (round = 0; round < 4; round++) {
		for (i = 0; i < nr; i++)
			if ((i + round) % 4 == 3)
				kdk_io(w, i, KD_IO_CMP_SWAP, false, 8);
			else if ((i + round) % 4 == 2)
				kdk_io(w, i, KD_IO_FETCH_ADD, false, 8);
			else
				kdk_io(w, i, KD_IO_BUFFER, (i + round) % 4, 100 + i);
		w->nr = 0;
		w->nr_sges = 0;
		w->doorbells = 0;
		KUNIT_EXPECT_EQ(test, kd_post_chain(&w->qp, w->chain, w->ios, nr), 0);
		kdk_expect_posted(test, w, nr);
	}
	/* a shorter one has no end of a longer one */
	w->nr = 0;
	w->nr_sges = 0;
	w->doorbells = 0;
	KUNIT_EXPECT_EQ(test, kd_post_chain(&w->qp, w->chain, w->ios, nr - 1), 0);
	kdk_expect_posted(test, w, nr - 1);
	kd_chain_free(w->chain);
}

/* WRITEs over iWARP: none completes by itself, but for the probe behind them. */
static void chain_with_a_probe(struct kunit *test)
{
	struct kdk_wire *w = kdk_wire_create(test);
	u32 i;

	KUNIT_ASSERT_NOT_NULL(test, w);
	for (i = 0; i < KD_CHAIN_MAX - 1; i++)
		kdk_io(w, i, KD_IO_BUFFER, true, 100 + i)->cqe = NULL;
	kdk_io(w, i, KD_IO_PROBE, false, 1);
	KUNIT_EXPECT_EQ(test, kd_post_chain(&w->qp, w->chain, w->ios, KD_CHAIN_MAX), 0);
	kdk_expect_posted(test, w, KD_CHAIN_MAX);
	kd_chain_free(w->chain);
}

/* One that has no chain, and is the first: its sink is registered before, if it is posted. */
static void write_with_a_probe(struct kunit *test)
{
	struct kdk_wire *w = kdk_wire_create(test);
	u32 round;

	KUNIT_ASSERT_NOT_NULL(test, w);
	kdk_io(w, 0, KD_IO_BUFFER, true, 100)->cqe = NULL;
	kdk_io(w, 1, KD_IO_PROBE, false, 1);
	w->ios[1].addr = w->ios[0].addr;
	w->ios[1].rkey = w->ios[0].rkey;
	w->sink.registered = false;
	for (round = 0; round < 3; round++) {
		w->error = round ? 0 : -ENOMEM;
		w->nr = 0;
		w->nr_sges = 0;
		w->doorbells = 0;
		KUNIT_EXPECT_EQ(test, kd_post_io(&w->qp, w->ios[1].cqe, &w->dmas[0], 100,
						 w->ios[0].addr, w->ios[0].rkey, true, true),
				round ? 0 : KD_ENOMEM);
		KUNIT_EXPECT_EQ(test, w->sink.registered, round > 0);
		if (round == 1) {
			KUNIT_EXPECT_EQ(test, w->nr, 3);
			KUNIT_EXPECT_EQ(test, w->posted[1].wr.opcode, IB_WR_REG_MR);
			KUNIT_EXPECT_EQ(test, w->posted[1].wr.send_flags, 0);
			KUNIT_EXPECT_EQ(test, w->posted[2].wr.opcode, IB_WR_RDMA_READ);
		}
	}
	kdk_expect_posted(test, w, 2);
	kd_chain_free(w->chain);
}

/* --- fixed buffers ------------------------------------------------------------------------ */

/* As many as fit into a chain, each with as many entries as may be. */
static u32 kdk_fill_chain(struct kdk_wire *w, struct kd_fixed *fixed, u32 most, u32 *sges)
{
	u64 offset = 0;
	u32 nr, used;

	*sges = 0;
	for (nr = 0; nr < KD_CHAIN_MAX; nr++) {
		u32 len = min_t(u64, 30000, KDK_BYTES - offset);

		len = len ? kd_fixed_fit(fixed, offset, len, most, &used) : 0;
		if (!len || *sges + used > KD_CHAIN_SGES)
			break;
		kdk_io(w, nr, KD_IO_FIXED, nr % 2, len);
		w->ios[nr].fixed = fixed;
		w->ios[nr].offset = offset;
		w->ios[nr].dma = NULL;
		offset += len;
		*sges += used;
	}
	return nr;
}

static const u32 entries[] = { 1, 2, 7, 30 };

static void kdk_describe_entries(const u32 *most, char *desc)
{
	snprintf(desc, KUNIT_PARAM_DESC_SIZE, "%u entries a WR", *most);
}

KUNIT_ARRAY_PARAM(entries, entries, kdk_describe_entries);

/* The entries of a chain are the bytes of the buffer, from its first on. */
static void chain_of_fixed(struct kunit *test)
{
	u32 most = *(const u32 *)test->param_value, sges, nr, i;
	struct kdk_wire *w = kdk_wire_create(test);
	struct kd_fixed *fixed = NULL;
	struct kdk_user user;
	size_t at = 0;
	u8 *bytes;

	KUNIT_ASSERT_NOT_NULL(test, w);
	bytes = kunit_kzalloc(test, KDK_BYTES, GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, bytes);
	if (!ib_uses_virt_dma(&w->dev)) {
		kd_chain_free(w->chain);
		kunit_mark_skipped(test, "this kernel has no software RDMA devices");
		return;
	}
	if (!kdk_user_begin(test, &user, KDK_PAGES))
		return;
	kdk_fill(bytes, KDK_BYTES, 5);
	for (i = KDK_PAGES; i--;)
		if (copy_to_user(kdk_user_at(&user, i * PAGE_SIZE), bytes + i * PAGE_SIZE, PAGE_SIZE))
			KUNIT_FAIL(test, "the memory cannot be written");
	if (kd_fixed_pin(user.start, KDK_BYTES, &fixed) ||
	    kd_fixed_map((struct kd_pd *)&w->pd, fixed)) {
		KUNIT_FAIL(test, "it cannot be pinned and mapped");
		goto out;
	}
	nr = kdk_fill_chain(w, fixed, most, &sges);
	KUNIT_EXPECT_GT(test, nr, 1);
	KUNIT_EXPECT_EQ(test, kd_post_chain(&w->qp, w->chain, w->ios, nr), 0);
	kdk_expect_posted(test, w, nr);
	KUNIT_EXPECT_EQ(test, w->nr_sges, sges);
	for (i = 0; i < w->nr_sges; at += w->sges[i++].length)
		if (memcmp((void *)(uintptr_t)w->sges[i].addr, bytes + at, w->sges[i].length)) {
			KUNIT_FAIL(test, "entry %u is not the bytes at %zu", i, at);
			break;
		}
	for (i = 0; i < w->nr; i++)
		KUNIT_EXPECT_LE(test, w->posted[i].wr.num_sge, most);
out:
	if (fixed) {
		kd_fixed_unmap(fixed);
		kd_fixed_free(fixed);
	}
	kdk_user_end(&user);
	kd_chain_free(w->chain);
}

/* --- errors ------------------------------------------------------------------------------- */

static void chain_is_refused(struct kunit *test)
{
	struct kdk_wire *w = kdk_wire_create(test);

	KUNIT_ASSERT_NOT_NULL(test, w);
	kdk_io(w, 0, KD_IO_BUFFER, false, 1);
	kdk_io(w, 1, KD_IO_BUFFER, true, 1);
	w->error = -ENOMEM;
	KUNIT_EXPECT_EQ(test, kd_post_chain(&w->qp, w->chain, w->ios, 2), KD_ENOMEM);
	w->error = -EINVAL;
	KUNIT_EXPECT_EQ(test, kd_post_chain(&w->qp, w->chain, w->ios, 2), KD_EINVAL);
	KUNIT_EXPECT_EQ(test, w->nr, 0);
	KUNIT_EXPECT_EQ(test, w->doorbells, 2);
	kd_chain_free(w->chain);
	kd_chain_free(NULL);
}

static int kdk_create_op(void *arg)
{
	struct kd_chain *chain;
	int err = kd_chain_create(&chain);

	if (!err)
		kd_chain_free(chain);
	return err;
}

static void chain_without_memory(struct kunit *test)
{
	kdk_each_allocation_fails(test, kdk_create_op, NULL);
}

static struct kunit_case kdk_chain_cases[] = {
	KUNIT_CASE_PARAM(chain_of_one, one_gen_params),
	KUNIT_CASE_PARAM(chain_of_many, count_gen_params),
	KUNIT_CASE(chain_with_a_probe),
	KUNIT_CASE(write_with_a_probe),
	KUNIT_CASE_PARAM(chain_of_fixed, entries_gen_params),
	KUNIT_CASE(chain_is_refused),
	KUNIT_CASE(chain_without_memory),
	{}
};

KDK_SUITE(chain, kdk_chain_cases);
