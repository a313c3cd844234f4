/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * os.h - what the core may ask of the kernel. Implemented by the shim in the
 * kernel, and by tests/sim on the host.
 *
 * Context of each function is one of:
 *   [any]    process, or softirq, with spin locks held; never hard interrupt
 *   [sleep]  process context only, no spin lock held: it may sleep
 * In the core a [sleep] function is reached only through a wrapper that takes a
 * Sleepable token (core/os.hh).
 */
#ifndef KDIRECT_SHIM_OS_H
#define KDIRECT_SHIM_OS_H

#include "types.h"

#ifdef __cplusplus
extern "C" {
#endif

/* --- memory ----------------------------------------------------------- */

/* [sleep] zeroed memory, physically contiguous or not; NULL if there is none */
void *kd_zalloc(size_t size);
/* [sleep] NULL is allowed */
void kd_free(void *mem);

/* --- locks -------------------------------------------------------------- */

/* Lock classes for lockdep, in locking order: a later one nests inside an
 * earlier one, never the other way round. Two locks of one class never nest.
 */
enum kd_lock_class {
	KD_LOCK_REGISTRY,	/* mutex: names, listeners, devices */
	KD_LOCK_READER,		/* mutex: the reading end of a channel */
	KD_LOCK_SUBMIT,		/* mutex: who submits descriptors of an open file */
	KD_LOCK_FIXED,		/* mutex: fixed buffers of a channel */
	KD_LOCK_POLL,		/* spin: one poller of a CQ */
	KD_LOCK_CTRL,		/* spin: control messages of a channel */
	KD_LOCK_TX,		/* spin: send slots and credits of a queue */
	KD_LOCK_RX,		/* spin: arrived messages of a channel */
	KD_LOCK_MESSAGE,	/* spin: SENDs that wait, and open files of a channel */
	KD_LOCK_STATE,		/* spin: state and first error of a channel */
	KD_LOCK_FILE,		/* spin: requests of an open file */
	KD_LOCK_CLASSES,
};

/* Spin locks disable bottom halves: usable from process and softirq context. */
void kd_spin_init(struct kd_spinlock *lock, enum kd_lock_class cls);	/* [any] */
void kd_spin_lock(struct kd_spinlock *lock);				/* [any] */
bool kd_spin_trylock(struct kd_spinlock *lock);				/* [any] */
void kd_spin_unlock(struct kd_spinlock *lock);				/* [any] */

void kd_mutex_init(struct kd_mutex *lock, enum kd_lock_class cls);	/* [any] */
void kd_mutex_lock(struct kd_mutex *lock);				/* [sleep] */
/* [sleep] 0, or KD_EINTR when a signal came first */
int kd_mutex_lock_interruptible(struct kd_mutex *lock);
/* [sleep] but does not block */
bool kd_mutex_trylock(struct kd_mutex *lock);
void kd_mutex_unlock(struct kd_mutex *lock);				/* [sleep] */

/* --- waiting -------------------------------------------------------------- */

enum kd_wait_mode {
	KD_WAIT_UNINTERRUPTIBLE,
	KD_WAIT_KILLABLE,	/* a fatal signal ends it */
	KD_WAIT_INTERRUPTIBLE,	/* any signal ends it */
};

#define KD_FOREVER	(~0ULL)

/* kd_wake()'s key: which poll() callers to wake. */
enum { KD_WAKE_IN = 1, KD_WAKE_OUT = 2, KD_WAKE_END = 4, KD_WAKE_PRI = 8 };

void kd_waitq_init(struct kd_waitq *wq);				/* [any] */
/* [any] wakes every waiter, and poll() callers that wait for one of @key.
 * Orders what the caller wrote before against the waiter's test.
 */
void kd_wake(struct kd_waitq *wq, unsigned int key);
/* [any] no waiter and no poll() caller; pairs with kd_wait()'s test. The caller
 * has written what the waiter tests before asking.
 */
bool kd_waitq_idle(struct kd_waitq *wq);
/* [sleep] returns 0 once @done(arg) is true, KD_EINTR, or KD_ETIMEDOUT. @done is
 * called in the caller's context, may be called often, and must not sleep.
 */
int kd_wait(struct kd_waitq *wq, bool (*done)(void *arg), void *arg, uint64_t timeout_ns,
	    enum kd_wait_mode mode);
/* [sleep] between two polls: gives the CPU away when somebody needs it. Returns
 * KD_EINTR when a signal is pending, else 0.
 */
int kd_poll_pause(void);
/* [sleep] so long, or until a signal of @mode: KD_EINTR */
int kd_nap(uint64_t ns, enum kd_wait_mode mode);
bool kd_killed(void);				/* [sleep] a fatal signal is pending */

/* --- deferred work ---------------------------------------------------------- */

/* Work: @fn runs in process context, never twice at once for one work; it may free
 * the memory that holds @work. Queueing pending work does nothing but, with
 * kd_work_queue(), hasten it.
 */
void kd_work_init(struct kd_work *work, void (*fn)(struct kd_work *work));	/* [any] */
bool kd_work_queue(struct kd_work *work);		/* [any] true: was not pending */
/* [any] run after @delay_ns unless something hastens it; pending work keeps its
 * earlier time. true: was not pending
 */
bool kd_work_queue_after(struct kd_work *work, uint64_t delay_ns);
/* [sleep] neither pending nor running afterwards; not from @work itself.
 * true: it was pending and did not run
 */
bool kd_work_cancel(struct kd_work *work);
/* [sleep] waits until all work queued before has run */
void kd_work_flush_all(void);

/* --- time, chance, text --------------------------------------------------- */

uint64_t kd_now_ns(void);				/* [any] monotonic */
uint64_t kd_random(void);				/* [any] */
uint32_t kd_cpu(void);					/* [any] a hint */
/* [any] kernel's scnprintf: always terminated; returns characters written */
int kd_format(char *buf, size_t size, const char *fmt, ...) __attribute__((format(printf, 3, 4)));

enum kd_log_level { KD_LOG_ERR, KD_LOG_WARN, KD_LOG_INFO, KD_LOG_DEBUG };
/* [any] one line without newline, rate-limited; never a peer's own text */
void kd_log(enum kd_log_level level, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* --- the caller's memory ------------------------------------------------------ */

/* [sleep] copy exactly @len bytes or nothing: false leaves the iterator where it was */
bool kd_copy_from(void *dst, size_t len, struct kd_iter *from);
bool kd_copy_to(const void *src, size_t len, struct kd_iter *to);

/* --- network namespaces --------------------------------------------------- */

uint32_t kd_net_inode(const struct kd_net *net);	/* [any] */
bool kd_net_is_init(const struct kd_net *net);		/* [any] */

/* --- connection manager ----------------------------------------------------- */

/* Events of an id come to kd_queue_cm_event() or kd_listener_cm_event(), one at
 * a time, until kd_cm_destroy() returns. None of these may be called from an
 * event of the same id but where it says so.
 */

/* [sleep] an id in @net whose events go to @queue. Holds a reference to @net. */
int kd_cm_create(struct kd_net *net, struct kd_queue *queue, struct kd_cm **out);
/* [sleep] an id that listens; its events go to @listener */
int kd_cm_listen(struct kd_net *net, const struct kd_endpoint *local,
		 struct kd_listener *listener, struct kd_cm **out);
/* [sleep] events of @cm (from a CONNECT_REQUEST) go to @queue from now on;
 * called inside that event only
 */
void kd_cm_set_queue(struct kd_cm *cm, struct kd_queue *queue);
/* [sleep] ends in ADDR_RESOLVED or ADDR_ERROR; @source->len may be 0 */
int kd_cm_resolve_addr(struct kd_cm *cm, const struct kd_addr *source,
		       const struct kd_endpoint *peer, uint32_t timeout_ms);
/* [sleep] ends in ROUTE_RESOLVED or ROUTE_ERROR. Also sets what must be set
 * before connecting: ACK timeout, retry counts.
 */
int kd_cm_resolve_route(struct kd_cm *cm, uint32_t timeout_ms);
/* [sleep] what an error is for one provider is an event for another */
int kd_cm_connect(struct kd_cm *cm, const struct kd_cm_params *params);
/* [sleep] rejects on error */
int kd_cm_accept(struct kd_cm *cm, const struct kd_cm_params *params);
/* [sleep] also allowed inside CONNECT_REQUEST */
int kd_cm_reject(struct kd_cm *cm, const void *data, uint32_t len);
/* [sleep] tells the peer, without waiting, if the port is up. The QP is to be stopped
 * by kd_qp_stop() in any case.
 */
void kd_cm_disconnect(struct kd_cm *cm);
/* [sleep] waits for a running event; its QP must be gone. Rejects a connection
 * request that was neither accepted nor rejected.
 */
void kd_cm_destroy(struct kd_cm *cm);
/* [any] the core's device behind a resolved or incoming id; NULL if it is not
 * (or no longer) ours. Before kd_device_remove() is called this returns NULL: hold the lock
 * that kd_device_remove() takes from here until the device is counted as used.
 */
struct kd_device *kd_cm_device(const struct kd_cm *cm);
void kd_cm_local(const struct kd_cm *cm, struct kd_endpoint *out);	/* [any] */
void kd_cm_peer(const struct kd_cm *cm, struct kd_endpoint *out);	/* [any] */

/* --- protection domain, CQ, QP ----------------------------------------------- */

int kd_pd_create(struct kd_cm *cm, struct kd_pd **out);			/* [sleep] */
void kd_pd_destroy(struct kd_pd *pd);					/* [sleep] */

/* [sleep] A CQ of @entries for @queue.
 * poll = false: an ib_alloc_cq() CQ in softirq context; handlers run by themselves.
 * poll = true:  nobody polls it but kd_cq_poll(). Once armed, the next completion
 *               brings one kd_queue_cq_event(), in softirq context.
 * @spread: a number that picks the completion vector.
 * @entries: the drain's two included.
 */
int kd_cq_create(struct kd_cm *cm, struct kd_queue *queue, uint32_t entries, bool poll,
		 uint32_t spread, struct kd_cq **out);
/* [sleep] no event and no handler runs afterwards; until then every kd_cqe that was
 * posted must stay, even after kd_qp_destroy(). Poll CQs: from here on
 * kd_queue_cq_event() may come once more, and must not touch the CQ.
 */
void kd_cq_destroy(struct kd_cq *cq);
/* [any] poll CQs: runs the handlers of up to @budget completions; returns how
 * many. The caller holds the queue's poll lock.
 */
uint32_t kd_cq_poll(struct kd_cq *cq, uint32_t budget);
/* [any] poll CQs: true if completions are there already, and no event will come for them */
bool kd_cq_arm(struct kd_cq *cq);
/* [sleep] an event after @count completions or @period_us, whichever comes first; both 0:
 * after each. KD_EOPNOTSUPP: the device cannot.
 */
int kd_cq_moderate(struct kd_cq *cq, uint32_t count, uint32_t period_us);

/* [sleep] creates the QP of @cm; receives may be posted at once. Fails with
 * KD_EINVAL if the device cannot hold @params.
 */
int kd_qp_create(struct kd_cm *cm, const struct kd_qp_params *params, struct kd_qp **out);
/* [any] WRs on the send side that @params need altogether, READs and drain included;
 * for clamping to the device before creating anything
 */
uint32_t kd_qp_send_wrs(struct kd_device *dev, const struct kd_qp_params *params);
uint32_t kd_qp_number(const struct kd_qp *qp);				/* [any] */
/* [sleep] Error state: everything outstanding is flushed. Nobody posts any more. */
void kd_qp_stop(struct kd_qp *qp);
/* [sleep] after kd_qp_stop(): wait until every WR posted before has completed, at
 * most @timeout_ns. Poll CQs: armed and served by kd_queue_cq_event(). KD_ETIMEDOUT:
 * the QP was reset, so that the device no longer touches memory. What is outstanding
 * need not complete, but what is in the CQ already still may.
 */
int kd_qp_drain(struct kd_qp *qp, uint64_t timeout_ns);
/* [sleep] every completion handler that runs now has returned afterwards */
void kd_handlers_synchronize(void);
void kd_qp_destroy(struct kd_qp *qp);					/* [sleep] */

/* --- buffers and work requests -------------------------------------------------- */

/* [sleep] zeroed buffer, mapped for the device of @pd */
int kd_dma_create(struct kd_pd *pd, uint32_t size, enum kd_dma_dir dir, struct kd_dma *out);
/* [sleep] maps what kd_dma_unmap() has unmapped */
int kd_dma_map(struct kd_pd *pd, struct kd_dma *dma);
/* [sleep] ends the mapping and keeps the memory; no effect if not mapped */
void kd_dma_unmap(struct kd_pd *pd, struct kd_dma *dma);
/* [sleep] must be unmapped; NULL memory is allowed */
void kd_dma_free(struct kd_dma *dma);

void kd_cqe_init(struct kd_cqe *cqe, enum kd_cqe_kind kind);		/* [any] */

/* Posting: [any]. 0 or an error after which nothing was posted. The first @len
 * bytes of @dma are handed over to the device (and synced for it). Should a
 * provider post only a part of a chain, kd_queue_fatal() is called and 0 returned:
 * such a WR does not complete, and may be released after kd_qp_drain().
 */
int kd_post_recv(struct kd_qp *qp, struct kd_cqe *cqe, struct kd_dma *dma, uint32_t len);
int kd_post_send(struct kd_qp *qp, struct kd_cqe *cqe, struct kd_dma *dma, uint32_t len,
		 bool signalled);
/* REG_MR of @mr (unsignalled, @reg) chained before a signalled SEND */
int kd_post_offer(struct kd_qp *qp, struct kd_cqe *reg, struct kd_mr *mr, struct kd_cqe *cqe,
		  struct kd_dma *dma, uint32_t len);
int kd_post_invalidate(struct kd_qp *qp, struct kd_cqe *cqe, struct kd_mr *mr);
/* [any] give received bytes back to the CPU, before reading them */
void kd_dma_sync_cpu(struct kd_pd *pd, const struct kd_dma *dma, uint32_t len);

/* --- large messages ------------------------------------------------------------ */

/* [sleep] Pin the next @len bytes of @iter, which must be one range of user memory
 * that spans at most @max_pages pages; charge them to RLIMIT_MEMLOCK. Advances
 * @iter. KD_EOPNOTSUPP: not of that form; KD_ENOMEM: over the limit; KD_EFAULT.
 * On error nothing is pinned, charged or advanced.
 */
int kd_pages_pin(struct kd_iter *iter, uint32_t len, uint32_t max_pages, struct kd_pages **out);
enum kd_pages_for {
	KD_PAGES_FETCH,		/* may sleep */
	KD_PAGES_WRITER,	/* may sleep; charged to the caller's memory cgroup */
	KD_PAGES_NOWAIT,	/* as KD_PAGES_WRITER, but never sleeps */
};

/* [sleep unless KD_PAGES_NOWAIT] kernel pages for @len bytes */
int kd_pages_alloc(uint32_t len, enum kd_pages_for whom, struct kd_pages **out);
/* [sleep] exactly @len bytes from @offset, or false and nothing advanced */
bool kd_pages_copy_from(struct kd_pages *pages, struct kd_iter *from, uint32_t len);
bool kd_pages_copy_to(struct kd_pages *pages, uint32_t offset, uint32_t len, struct kd_iter *to);
/* [any] unpins and uncharges, or frees; must not be mapped. NULL is allowed. */
void kd_pages_free(struct kd_pages *pages);
bool kd_pages_pinned(const struct kd_pages *pages);			/* [any] */

/* [sleep] an FRWR MR for up to @max_pages pages */
int kd_mr_create(struct kd_pd *pd, uint32_t max_pages, struct kd_mr **out);
void kd_mr_destroy(struct kd_mr *mr);					/* [sleep] */
/* [sleep] map @pages for the device and describe them in @mr, for remote READ
 * only, under a new key; nothing is posted
 */
int kd_mr_map(struct kd_mr *mr, struct kd_pages *pages);
void kd_mr_unmap(struct kd_mr *mr, struct kd_pages *pages);		/* [any] */
uint32_t kd_mr_rkey(const struct kd_mr *mr);				/* [any] */
uint64_t kd_mr_address(const struct kd_mr *mr);				/* [any] */

/* [sleep] RDMA READ of @len bytes, all that @pages hold, into @pages (rdma_rw);
 * ends in kd_read_done(). On error nothing was posted and nothing is held.
 */
int kd_post_read(struct kd_qp *qp, struct kd_read *read, struct kd_cqe *cqe,
		 struct kd_pages *pages, uint32_t len, uint64_t remote_addr, uint32_t rkey);
/* [any] after completion, or after kd_qp_drain(): unmap, release the context */
void kd_read_release(struct kd_qp *qp, struct kd_read *read, struct kd_pages *pages);

/* --- nodes and events ------------------------------------------------------------ */

/* [sleep] /dev/kdirect/@name; opens come to kd_file_open() until kd_node_destroy()
 * returns. KD_ENFILE: no minor number left.
 */
int kd_node_create(struct kd_channel *channel, const char *name, struct kd_node **out);
/* [sleep] waits for a running kd_file_open() of the node: hold no lock that it takes */
void kd_node_destroy(struct kd_node *node);

/* [sleep] the same for a mapping; opens come to kd_map_open() */
int kd_map_node_create(struct kd_mapping *mapping, const char *name, struct kd_node **out);

void kd_event_publish(const struct kd_event *event);			/* [sleep] */

/* [any] keep and drop a namespace for messages; each object holds its own */
struct kd_net *kd_net_get(struct kd_net *net);
void kd_net_put(struct kd_net *net);

#ifdef __cplusplus
}
#endif

#include "os_desc.h"
#include "os_map.h"
#include "os_raw.h"
#include "os_ring.h"
#include "os_uring.h"

#endif
