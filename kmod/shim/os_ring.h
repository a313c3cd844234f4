/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * os_ring.h - the part of os.h that serves rings: memory shared with a program, and a
 * thread that works in the program's memory.
 */
#ifndef KDIRECT_SHIM_OS_RING_H
#define KDIRECT_SHIM_OS_RING_H

#include "types.h"

#ifdef __cplusplus
extern "C" {
#endif

/* [sleep] zeroed pages that a program may map, charged to the caller's memory cgroup */
int kd_shared_create(uint64_t size, struct kd_shared **out);
/* [sleep] no program maps it any more */
void kd_shared_free(struct kd_shared *shared);
void *kd_shared_memory(struct kd_shared *shared);			/* [any] */

/* [sleep] a thread that runs kd_ring_thread(), for the calling process, where @cpu says:
 * KD_EINVAL. *@out is set before it runs. It does not keep the process's memory.
 */
int kd_thread_start(struct kd_ring *ring, int32_t cpu, struct kd_thread **out);
/* [sleep] ends what it waits for, as a fatal signal does, and waits for its end */
void kd_thread_stop(struct kd_thread *thread);
/* Of the thread itself: */
bool kd_thread_stopping(void);						/* [any] */
/* [sleep] the process's memory is the caller's now, for functions that take an address.
 * False: the process has ended.
 */
bool kd_thread_adopt(struct kd_thread *thread);
void kd_thread_leave(struct kd_thread *thread);				/* [sleep] */

#ifdef __cplusplus
}
#endif
#endif
