/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The system calls that the library makes. system.c makes them; the tests have a kernel of
 * their own behind the same functions. All return a negative errno.
 */
#ifndef KD_SYSTEM_H
#define KD_SYSTEM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#ifdef __cplusplus
extern "C" {
#endif

int kd_sys_open(const char *path, int flags);
void kd_sys_close(int fd);
int kd_sys_ioctl(int fd, unsigned long request, void *argument);
ssize_t kd_sys_read(int fd, void *buffer, size_t size, bool nowait);
ssize_t kd_sys_write(int fd, const void *buffer, size_t size, bool nowait);
/* More than 0: one of @events, or an end; 0: the time is over. Negative timeout: none. */
int kd_sys_poll(int fd, short events, int64_t timeout_ns);
/* Shared, for reading and writing; NULL and *err if it failed. */
void *kd_sys_map(int fd, size_t length, int *err);
void kd_sys_unmap(void *memory, size_t length);
/* CLOCK_MONOTONIC */
int64_t kd_sys_now(void);

#ifdef __cplusplus
}
#endif

#endif /* KD_SYSTEM_H */
