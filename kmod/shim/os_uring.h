/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * os_uring.h - the part of os.h that serves commands of io_uring.
 */
#ifndef KDIRECT_SHIM_OS_URING_H
#define KDIRECT_SHIM_OS_URING_H

#include "types.h"

#ifdef __cplusplus
extern "C" {
#endif

/* [sleep] inside kd_desc_command() only: @len bytes at @addr in the registered buffer of a
 * command, which stays until the command ends. KD_EFAULT: not all in it, KD_EOPNOTSUPP: not
 * one range of memory
 */
int kd_uring_pages(const struct kd_uring_call *call, uint64_t addr, uint32_t len, bool to_memory,
		   struct kd_pages **out);
/* [any] inside kd_desc_command() only. True: the program issues more with the same call, and
 * kd_desc_unplug() will be called for the command's file, after the last of them and before the
 * program sleeps. False: there is no more, or no memory.
 */
bool kd_uring_plug(const struct kd_uring_call *call);
/* [any] it is under way: its process is being killed, or ends */
bool kd_uring_orphan(struct kd_uring *cmd);
/* [any] a command that kd_desc_command() left under way has ended; it is gone with this */
void kd_uring_done(struct kd_uring *cmd, const struct kd_uring_end *end);

#ifdef __cplusplus
}
#endif
#endif
