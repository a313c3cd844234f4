/* SPDX-License-Identifier: GPL-2.0-only */
/* uring.h - compat.h's part for commands of io_uring */
#ifndef KDIRECT_COMPAT_URING_H
#define KDIRECT_COMPAT_URING_H

#include "compat.h"

#include <linux/io_uring_types.h>
#ifdef HAVE_IO_URING_CMD_H
#include <linux/io_uring/cmd.h>
#else
#include <linux/io_uring.h>
#endif

/* Whose command it is: he cannot be gone before it has ended. */
static inline struct task_struct *kd_uring_task(struct io_uring_cmd *ioucmd)
{
#ifdef HAVE_IO_KIOCB_TASK
	return cmd_to_io_kiocb(ioucmd)->task;
#else
	return io_uring_cmd_get_task(ioucmd);
#endif
}

#ifndef IORING_URING_CMD_MASK
#define IORING_URING_CMD_MASK	IORING_URING_CMD_FIXED
#endif

#ifndef ITER_DEST
#define ITER_SOURCE		WRITE
#define ITER_DEST		READ
#endif

/* The part of the SQE that is the driver's; not all of it is there without SQE128. */
#ifdef HAVE_IO_URING_CMD_SQE
#define kd_uring_sqe_cmd(ioucmd)	((const void *)(ioucmd)->sqe->cmd)
#else
#define kd_uring_sqe_cmd(ioucmd)	((ioucmd)->cmd)
#endif

/*
 * Called before a command is left to a worker, which is to find the SQE as it was. Since
 * 6.15 io_uring sees to that; some kernels before it (6.12.y) make a copy and go on to use the
 * place in the ring, which the program may have filled again.
 */
#if defined(HAVE_IO_URING_CMD_SQE) && !defined(HAVE_IMPORT_FIXED_ISSUE_FLAGS)
static inline void kd_uring_keep_sqe(struct io_uring_cmd *ioucmd)
{
	struct io_kiocb *req = cmd_to_io_kiocb(ioucmd);
#ifdef HAVE_IO_URING_CMD_DATA
	struct io_uring_sqe *copy = ((struct io_uring_cmd_data *)req->async_data)->sqes;
#else
	struct io_uring_sqe *copy = req->async_data;
#endif

	if (ioucmd->sqe == copy)
		return;
	memcpy(copy, ioucmd->sqe, 2 * sizeof(*copy));
	ioucmd->sqe = copy;
}
#else
static inline void kd_uring_keep_sqe(struct io_uring_cmd *ioucmd)
{
}
#endif

#ifndef HAVE_IMPORT_FIXED_ISSUE_FLAGS
#define io_uring_cmd_import_fixed(ubuf, len, rw, iter, ioucmd, issue_flags)	\
	io_uring_cmd_import_fixed(ubuf, len, rw, iter, ioucmd)
#endif

#ifndef HAVE_IO_URING_CMD_DONE32
static inline void io_uring_cmd_done32(struct io_uring_cmd *ioucmd, s32 ret, u64 res2,
				       unsigned int issue_flags)
{
	io_uring_cmd_done(ioucmd, ret, res2, issue_flags);
}
#endif

#ifndef HAVE_IO_URING_CMD_LAZY
#define io_uring_cmd_do_in_task_lazy(ioucmd, work)	io_uring_cmd_complete_in_task(ioucmd, work)
#endif

/* Defines the function @work, which io_uring runs in a command's task: it calls @fn. */
#ifdef HAVE_IO_TW_REQ
#define KD_URING_TASK_WORK(work, fn)						\
static void work(struct io_tw_req req, io_tw_token_t token)			\
{										\
	fn(io_uring_cmd_from_tw(req), IO_URING_CMD_TASK_WORK_ISSUE_FLAGS);	\
}
#else
#define KD_URING_TASK_WORK(work, fn)						\
static void work(struct io_uring_cmd *ioucmd, unsigned int issue_flags)	\
{										\
	fn(ioucmd, issue_flags);						\
}
#endif

#endif /* KDIRECT_COMPAT_URING_H */
