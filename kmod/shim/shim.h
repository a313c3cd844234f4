/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * shim.h - what the files of the shim share
 *
 * The core's opaque names stand for kernel objects. Where the shim has nothing to
 * add, the opaque pointer is the kernel's pointer and the helpers below convert;
 * otherwise the structure is here.
 */
#ifndef KDIRECT_SHIM_SHIM_H
#define KDIRECT_SHIM_SHIM_H

#include "compat/compat.h"

#include <linux/completion.h>
#include <linux/interrupt.h>
#include <linux/scatterlist.h>
#include <linux/spinlock.h>
#include <linux/workqueue.h>
#include <net/net_namespace.h>
#include <rdma/ib_verbs.h>
#include <rdma/rdma_cm.h>

#include "core.h"
#include "os.h"

/*
 * What a peer or an administrator can ask for without end is refused when memory is
 * short, and kills nobody.
 */
#define KD_GFP	(GFP_KERNEL | __GFP_RETRY_MAYFAIL | __GFP_NOWARN)

/* The core's errors are positive, the kernel's negative. Here is where the sign changes. */
static inline int kd_from_errno(long ret)
{
	return ret < 0 ? -ret : 0;
}

static inline int kd_to_errno(int err)
{
	return -err;
}

static inline struct net *to_net(const struct kd_net *net)
{
	return (struct net *)net;
}

static inline struct kd_net *from_net(struct net *net)
{
	return (struct kd_net *)net;
}

static inline struct iov_iter *to_iter(struct kd_iter *iter)
{
	return (struct iov_iter *)iter;
}

static inline struct kd_iter *from_iter(struct iov_iter *iter)
{
	return (struct kd_iter *)iter;
}

static inline struct ib_pd *to_pd(struct kd_pd *pd)
{
	return (struct ib_pd *)pd;
}

static inline struct ib_mr *to_mr(const struct kd_mr *mr)
{
	return (struct ib_mr *)mr;
}

static inline struct wait_queue_head *to_waitq(struct kd_waitq *wq)
{
	return (struct wait_queue_head *)wq;
}

static inline struct ib_cqe *to_cqe(struct kd_cqe *cqe)
{
	return (struct ib_cqe *)cqe;
}

/* Connection manager: one of @queue and @listener gets the events. */
struct kd_cm {
	struct rdma_cm_id	*id;
	struct kd_queue		*queue;
	struct kd_listener	*listener;
	/* iWARP only: */
	struct task_struct	*connecter;
	bool			stop;
	struct completion	stopped;
	struct rdma_conn_param	param;
	u8			data[64];
};

/* A marker WR that completes after everything posted before it. */
struct kd_marker {
	struct ib_cqe		cqe;
	struct completion	done;
};

/*
 * The markers of a drain live here and not in the QP, since a completion can be
 * found in the CQ after a drain that timed out and after the QP was destroyed.
 */
struct kd_cq {
	struct ib_cq		*cq;
	struct kd_queue		*queue;
	bool			poll;
	struct tasklet_struct	tasklet;	/* poll CQs: kd_queue_cq_event() */
	struct work_struct	fatal;		/* kd_queue_fatal() with @what */
	const char		*what;
	struct kd_marker	send_marker;
	struct kd_marker	recv_marker;
};

/* Where the bytes of probes go: one, with a key of the QP's own. */
struct kd_sink {
	struct ib_mr		*mr;
	struct kd_dma		dma;
	struct ib_reg_wr	reg;
	bool			registered;	/* or it is posted */
};

struct kd_probe {
	struct ib_rdma_wr	read;
	struct ib_sge		sge;
};

struct kd_qp {
	struct ib_qp		*qp;
	struct kd_cm		*cm;
	struct kd_cq		*cq;
	struct kd_sink		*sink;		/* of a QP with WRITEs over iWARP */
	bool			marked;		/* kd_qp_stop() posted the markers */
};

struct kd_pages {
	struct sg_table		table;
	u32			len;
	u32			nr;
	u32			offset;		/* of the first byte in the first page */
	bool			pinned;
	bool			transient;	/* pinned for one transfer: not charged */
	bool			written;	/* by the device: dirty when unpinned */
	bool			borrowed;	/* somebody else keeps them */
	struct mm_struct	*mm;		/* pinned: who is charged */
	struct work_struct	drop;		/* what can sleep when it is freed */
	struct scatterlist	few[2];		/* the table of so few pages */
	struct page		*pages[];
};

struct kd_frwr {
	struct ib_mr		*mr;
	bool			valid;		/* registered, under @key */
	u32			key;
	struct ib_send_wr	inv;
	struct ib_reg_wr	reg;
};

/* The WR itself is the first member of both. */
union kd_chain_wr {
	struct ib_rdma_wr	rdma;
	struct ib_atomic_wr	atomic;
};

struct kd_chain {
	union kd_chain_wr	wrs[KD_CHAIN_MAX];
	struct ib_sge		sges[KD_CHAIN_SGES + KD_CHAIN_MAX];
};

struct kd_ib_device {
	struct ib_device	*ib;
};

extern struct workqueue_struct *kd_workqueue;
extern struct ib_client kd_ib_client;

static inline struct ib_device *kd_qp_device(const struct kd_qp *qp)
{
	return qp->qp->device;
}

/* pages.c: charges pages to the caller's mm, of which a reference is kept; -ENOMEM */
int kd_charge(unsigned long nr, struct mm_struct **out);
void kd_uncharge(unsigned long nr, struct mm_struct *mm);
/* pages.c: pins pages of user memory, all or none; a negative errno */
int kd_pin(struct page **pages, unsigned long nr, unsigned long start, unsigned int flags);
/* pages.c: all of @iter, kept by somebody else, from @offset in its first page; KD_* */
int kd_pages_borrow(const struct iov_iter *iter, u32 offset, struct kd_pages **out);
/* the same with an array of pages, @len bytes from @offset in the first */
int kd_pages_borrow_array(struct page *const *from, u32 offset, u32 len, struct kd_pages **out);
/* fixed.c: its pages; *@at, an offset in the buffer, becomes one in these */
struct page *const *kd_fixed_page_array(const struct kd_fixed *fixed, u64 *at);
/* fixed.c: SGEs of a range of a fixed buffer, handed over to the device; their number */
u32 kd_fixed_sges(struct kd_fixed *fixed, u64 offset, u32 len, u32 lkey, struct ib_sge *sge);
/* fixed.c: the same as a table, of its own; a negative errno */
int kd_fixed_table(struct kd_fixed *fixed, u64 offset, u32 len, struct sg_table *out);
/* fixed.c: pages that it lies in */
u32 kd_fixed_span(const struct kd_fixed *fixed, u64 offset, u32 len);
/* fixed.c: all of them, @len bytes, in @mr, under a new key; KD_* */
int kd_mr_describe(struct ib_mr *mr, struct scatterlist *sgl, u32 nents, u64 len);
/* frwr.c: links what registers @frwr at @link; where the next WR is to be linked */
struct ib_send_wr **kd_frwr_chain(struct kd_frwr *frwr, struct kd_cqe *cqe, int access,
				  struct ib_send_wr **link);
/* frwr.c: that was posted. @stays: nothing posted with it invalidates it */
void kd_frwr_posted(struct kd_frwr *frwr, bool stays);
/* brings the event of a poll CQ */
void kd_cq_kick(struct kd_cq *cq);
/* an asynchronous event of the CQ or its QP, in any context */
void kd_cq_fatal(struct kd_cq *cq, const char *what);
/* [any] posts a chain with bottom halves disabled; KD_* */
int kd_post_wrs(struct kd_qp *qp, const struct ib_send_wr *first);
/* probe.c: what probes need; KD_* */
int kd_sink_create(struct kd_qp *qp);
void kd_sink_destroy(struct kd_qp *qp);
/* probe.c: a READ of the byte at @addr, to be posted behind WRITEs; its first WR */
struct ib_send_wr *kd_probe_make(struct kd_probe *probe, struct kd_qp *qp, struct kd_cqe *cqe,
				 u64 addr, u32 rkey);
/* probe.c: as kd_post_wrs(), with a probe */
int kd_post_probed(struct kd_qp *qp, const struct ib_send_wr *first);

struct file;
/* map_node.c: the rest of opening a mapping's node; a negative errno */
int kd_map_file_open(struct file *file, struct kd_mapping *mapping);
/* raw_node.c: the same for a raw channel's */
int kd_raw_file_open(struct file *file, struct kd_channel *channel);
/* desc_node.c: the ioctls of every file with descriptors; -ENOTTY: it is another */
long kd_desc_ioctl(struct file *file, unsigned int cmd, void __user *arg);
struct kdirect_ring_setup;
/* ring.c: KDIRECT_IOC_RING_SETUP: a file descriptor, or a negative errno */
long kd_ring_setup(struct file *of, struct kdirect_ring_setup __user *arg);
struct io_uring_cmd;
struct io_comp_batch;
/* uring.c: file_operations of open files with descriptors */
int kd_desc_uring_cmd(struct io_uring_cmd *cmd, unsigned int issue_flags);
int kd_desc_uring_iopoll(struct io_uring_cmd *cmd, struct io_comp_batch *batch,
			 unsigned int flags);
/* node.c: what poll() reports of KD_POLL_* */
__poll_t kd_poll_events(u32 now);

int kd_workqueues_init(void);
void kd_workqueues_exit(void);
int kd_nodes_init(void);
void kd_nodes_exit(void);
int kd_netlink_init(void);
void kd_netlink_close(void);
void kd_netlink_exit(void);
int kd_devices_init(void);
void kd_devices_exit(void);

#endif /* KDIRECT_SHIM_SHIM_H */
