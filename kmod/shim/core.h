/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * core.h - what the core offers to the shim. Implemented in kmod/core.
 *
 * Contexts as in os.h: [any] or [sleep]. Errors are positive KD_* values.
 */
#ifndef KDIRECT_SHIM_CORE_H
#define KDIRECT_SHIM_CORE_H

#include "types.h"

#ifdef __cplusplus
extern "C" {
#endif

/* --- module ------------------------------------------------------------------- */

/* [sleep] once, before anything else; KD_* on failure */
int kd_core_init(void);
/* [sleep] deletes every channel and listener and waits for them; no file is open,
 * no netlink request and no device callback can come any more but for
 * kd_device_remove()
 */
void kd_core_stop(void);
/* [sleep] after the last device is gone */
void kd_core_exit(void);

/* --- devices --------------------------------------------------------------- */

/* [sleep] NULL: no memory */
struct kd_device *kd_device_add(const struct kd_device_attr *attr);
/* [sleep] returns once nothing of the core uses the device; frees @dev */
void kd_device_remove(struct kd_device *dev);
const struct kd_device_attr *kd_device_attr(const struct kd_device *dev);	/* [any] */

/* --- administration (netlink) ------------------------------------------------- */

/* [sleep] All of these fill @error and return its err. None waits for a peer. @net is the
 * requester's namespace: it sees and changes what belongs to it, the initial one
 * everything.
 */
void kd_listener_defaults(struct kd_listener_params *params);
void kd_channel_defaults(struct kd_channel_params *params);
int kd_listener_new(struct kd_net *net, const struct kd_listener_params *params,
		    struct kd_error *error);
int kd_listener_set(struct kd_net *net, const struct kd_listener_params *params,
		    struct kd_error *error);
int kd_listener_del(struct kd_net *net, const char *name, struct kd_error *error);
int kd_channel_new(struct kd_net *net, const struct kd_channel_params *params,
		   struct kd_error *error);
int kd_channel_set(struct kd_net *net, const struct kd_channel_params *params,
		   struct kd_error *error);
/* begins the deletion; its end is an event */
int kd_channel_del(struct kd_net *net, const char *name, struct kd_error *error);
/* a netlink socket closed: deletes the channels it owns that were never live */
void kd_owner_gone(uint64_t owner);

/* [sleep] Snapshots. By name: KD_ENOENT if there is none. By position, for dumps:
 * *@cursor is 0 at first and is advanced; KD_ENOENT at the end. Objects that come or
 * go between two calls may be missed, but none is shown twice.
 */
int kd_device_info(const char *name, struct kd_device_info *out);
int kd_device_next(uint64_t *cursor, struct kd_device_info *out);
int kd_listener_info(struct kd_net *net, const char *name, struct kd_listener_info *out);
int kd_listener_next(struct kd_net *net, uint64_t *cursor, struct kd_listener_info *out);
int kd_channel_info(struct kd_net *net, const char *name, struct kd_channel_info *out);
int kd_channel_next(struct kd_net *net, uint64_t *cursor, struct kd_channel_info *out);
/* @queues has room for KD_MAX_QUEUES; *@nr_queues is set */
int kd_channel_stats(struct kd_net *net, const char *name, struct kd_channel_stats *out,
		     struct kd_queue_stats *queues, uint32_t *nr_queues);

/* --- exports and mappings (netlink) --------------------------------------------------- */

/* [sleep] As above. DEL begins the deletion, MAP_NEW begins to ask the peer; the end of
 * both is an event. KD_EINTR: a fatal signal.
 */
int kd_export_new(struct kd_net *net, const struct kd_export_params *params,
		  struct kd_error *error);
int kd_export_del(struct kd_net *net, const char *name, struct kd_error *error);
int kd_map_new(struct kd_net *net, const struct kd_map_params *params, struct kd_error *error);
int kd_map_del(struct kd_net *net, const char *name, struct kd_error *error);
int kd_export_info(struct kd_net *net, const char *name, struct kd_export_info *out);
int kd_export_next(struct kd_net *net, uint64_t *cursor, struct kd_export_info *out);
int kd_map_info(struct kd_net *net, const char *name, struct kd_map_info *out);
int kd_map_next(struct kd_net *net, uint64_t *cursor, struct kd_map_info *out);

/* --- connection events --------------------------------------------------------- */

/* [sleep] Nonzero only for CONNECT_REQUEST: destroy the new id. */
int kd_listener_cm_event(struct kd_listener *listener, const struct kd_cm_event *event);
void kd_queue_cm_event(struct kd_queue *queue, const struct kd_cm_event *event);
/* [any] an asynchronous fatal event of the QP or CQ, with its name */
void kd_queue_fatal(struct kd_queue *queue, const char *what);
/* [any] an armed poll CQ has completions */
void kd_queue_cq_event(struct kd_queue *queue);

/* --- completions --------------------------------------------------------------- */

/* [any] (softirq for interrupt CQs, the poller's context with bottom halves disabled
 * for poll CQs). One at a time for one CQ.
 */
void kd_recv_done(struct kd_cqe *cqe, const struct kd_wc *wc);
void kd_send_done(struct kd_cqe *cqe, const struct kd_wc *wc);
void kd_offer_done(struct kd_cqe *cqe, const struct kd_wc *wc);
void kd_inv_done(struct kd_cqe *cqe, const struct kd_wc *wc);
void kd_read_done(struct kd_cqe *cqe, const struct kd_wc *wc);
void kd_io_done(struct kd_cqe *cqe, const struct kd_wc *wc);
void kd_key_done(struct kd_cqe *cqe, const struct kd_wc *wc);
void kd_raw_sent(struct kd_cqe *cqe, const struct kd_wc *wc);
void kd_raw_received(struct kd_cqe *cqe, const struct kd_wc *wc);
void kd_raw_control(struct kd_cqe *cqe, const struct kd_wc *wc);
void kd_raw_registered(struct kd_cqe *cqe, const struct kd_wc *wc);

/* --- open files ----------------------------------------------------------------- */

enum {
	KD_IO_NOWAIT	= 1U << 0,	/* O_NONBLOCK, RWF_NOWAIT: never sleep */
	KD_IO_POLL	= 1U << 1,	/* RWF_HIPRI */
};

/* [sleep] the node still exists during the call; a file holds its channel */
int kd_file_open(struct kd_channel *channel, bool read, bool write, struct kd_desc_file **out);
/* [sleep unless KD_IO_NOWAIT] Bytes, or a negative KD_* value. @len is what @iter
 * holds. KD_EINTR lets the shim restart the call.
 */
int64_t kd_file_write(struct kd_desc_file *file, struct kd_iter *iter, size_t len, uint32_t flags);
int64_t kd_file_read(struct kd_desc_file *file, struct kd_iter *iter, size_t len, uint32_t flags);
/* [sleep] poll(): KD_POLL_* that hold now; the shim registered with both wait queues before
 * (io_uring knows no more than two). PRI: there are completions of descriptors
 */
enum { KD_POLL_IN = 1, KD_POLL_OUT = 2, KD_POLL_HUP = 4, KD_POLL_ERR = 8, KD_POLL_PRI = 16 };
uint32_t kd_file_poll(struct kd_desc_file *file);
/* [any] woken when a read, or a write, may go on; both at the end of the channel; the
 * reader's for PRI, too
 */
struct kd_waitq *kd_file_read_waitq(struct kd_desc_file *file);
struct kd_waitq *kd_file_write_waitq(struct kd_desc_file *file);

struct kdirect_info;
struct kdirect_ping;
void kd_file_info(struct kd_desc_file *file, struct kdirect_info *out);	/* [any] */
int kd_file_ping(struct kd_desc_file *file, struct kdirect_ping *ping);	/* [sleep] */

/* --- open files of mappings --------------------------------------------------------- */

/* [sleep] the node still exists during the call; a file holds its mapping. KD_EACCES:
 * @write, and it is read-only
 */
int kd_map_open(struct kd_mapping *mapping, bool read, bool write, struct kd_desc_file **out);
uint64_t kd_map_size(const struct kd_desc_file *file);			/* [any] */
/* [sleep] Reads or writes what @iter holds, @len bytes, at @pos. Returns bytes, which are
 * fewer at the end of the export and after an error behind the first; or a negative KD_*
 * value. @iocb is not NULL: the transfer may go on after the return, if that is
 * KD_IO_QUEUED; it ends in kd_iocb_complete(), which may have been called already.
 * KD_IO_NOWAIT: waits for nothing that others hold, and for no completion.
 */
#define KD_IO_QUEUED	(-529)
int64_t kd_map_io(struct kd_desc_file *file, struct kd_iter *iter, size_t len, uint64_t pos,
		  bool write, uint32_t flags, struct kd_iocb *iocb);

struct kdirect_map_info;
void kd_map_describe(struct kd_desc_file *file, struct kdirect_map_info *out);	/* [any] */

/* --- open files with descriptors --------------------------------------------------- */

/* [sleep] waits for nothing that is under way */
void kd_desc_release(struct kd_desc_file *file);
struct kdirect_buffer;
struct kdirect_submit;
/* [any] of a raw channel: woken when there are completions, and at the end */
struct kd_waitq *kd_desc_waitq(struct kd_desc_file *file);
/* [sleep] what kdirect.h says of the ioctls */
int kd_desc_set_flags(struct kd_desc_file *file, uint32_t flags);
uint32_t kd_desc_flags(const struct kd_desc_file *file);
int kd_desc_submit(struct kd_desc_file *file, struct kdirect_submit *submit);
int kd_desc_buffer_set(struct kd_desc_file *file, const struct kdirect_buffer *buffer);
int kd_desc_buffer_del(struct kd_desc_file *file, uint32_t index);

/* --- commands of io_uring ------------------------------------------------------------- */

struct kdirect_desc;
/* [sleep] True: it has ended, *@end says how; with @call->nowait -KD_EAGAIN: nothing was
 * done. False: it ends in kd_uring_done(), which may have been called already.
 */
bool kd_desc_command(struct kd_desc_file *file, const struct kdirect_desc *desc,
		     const struct kd_uring_call *call, struct kd_uring_end *end);
/* [sleep] but waits for nobody: what kd_uring_plug() said that it would be called for. False:
 * not now, since somebody submits; once more, soon
 */
bool kd_desc_unplug(struct kd_desc_file *file);
/* [any] looks for completions of commands that are polled for; how many there were */
uint32_t kd_desc_command_poll(struct kd_desc_file *file);

/* --- open files of raw channels ------------------------------------------------------ */

struct kdirect_raw_connect;
struct kdirect_raw_info;
struct kdirect_share;
/* [sleep] the node still exists during the call; a file holds its channel. KD_EBUSY:
 * another file has it open; KD_EPIPE: the connection has ended
 */
int kd_raw_open(struct kd_channel *channel, struct kd_desc_file **out);
/* [sleep] what kdirect.h says of the ioctls; @nowait: does not wait for the connection */
int kd_raw_connect(struct kd_desc_file *file, const struct kdirect_raw_connect *call, bool nowait);
int kd_raw_reject(struct kd_desc_file *file, const struct kdirect_raw_connect *call);
int kd_raw_share(struct kd_desc_file *file, struct kdirect_share *call);
void kd_raw_describe(struct kd_desc_file *file, struct kdirect_raw_info *out);	/* [any] */
/* [sleep] as kd_file_poll(); the shim registered with the wait queue before */
uint32_t kd_raw_poll(struct kd_desc_file *file);

/* --- rings ---------------------------------------------------------------------------- */

struct kdirect_ring_setup;
struct kdirect_ring_enter;
/* [sleep] what kdirect.h says; @file is released after the ring */
int kd_ring_create(struct kd_desc_file *file, struct kdirect_ring_setup *setup,
		   struct kd_ring **out);
/* [sleep] waits for nothing that is under way */
void kd_ring_release(struct kd_ring *ring);
int kd_ring_enter(struct kd_ring *ring, struct kdirect_ring_enter *enter);	/* [sleep] */
/* [sleep] as kd_file_poll(); the shim registered with the wait queue before */
uint32_t kd_ring_poll(struct kd_ring *ring);
struct kd_waitq *kd_ring_waitq(struct kd_ring *ring);				/* [any] */
struct kd_shared *kd_ring_memory(struct kd_ring *ring);				/* [any] */
/* [sleep] what the thread of the ring does, until kd_thread_stopping() */
void kd_ring_thread(struct kd_ring *ring);

#ifdef __cplusplus
}
#endif
#endif
