/* SPDX-License-Identifier: GPL-2.0-only */
/* A time limit for several calls one after the other. */
#ifndef KD_DEADLINE_H
#define KD_DEADLINE_H

#include "system.h"

/* The end of @timeout_ns from now on; negative: there is none. */
static inline int64_t kd_deadline(int64_t timeout_ns)
{
	int64_t now;

	if (timeout_ns < 0)
		return -1;
	now = kd_sys_now();
	return timeout_ns < INT64_MAX - now ? now + timeout_ns : INT64_MAX;
}

/* What is left of it: negative: no limit, 0: it is over. */
static inline int64_t kd_left(int64_t deadline)
{
	int64_t now;

	if (deadline < 0)
		return -1;
	now = kd_sys_now();
	return now < deadline ? deadline - now : 0;
}

#endif /* KD_DEADLINE_H */
