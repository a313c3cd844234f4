/* SPDX-License-Identifier: GPL-2.0-only */
/* clang-format off */
/*
 * ring_thread.h - put before the product's ring.c: what a ring's thread runs goes through
 * rings.c, which has rings that are none.
 */
#define kd_ring_thread kdk_ring_thread
