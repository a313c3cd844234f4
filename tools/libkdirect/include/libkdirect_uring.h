/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * libkdirect_uring.h - descriptors as io_uring commands
 *
 * Plain reads and writes of mappings need nothing of this: io_uring_prep_read() and so on
 * work. C11 or C++. Since version 0.1.
 */
#ifndef LIBKDIRECT_URING_H
#define LIBKDIRECT_URING_H

#include <kdirect.h>
#include <linux/io_uring.h>
#include <stddef.h>
#include <string.h>

/**
 * kdirect_uring_prep() - a descriptor as IORING_OP_URING_CMD
 * @sqe: of a ring with IORING_SETUP_SQE128; all 128 bytes are written
 * @fd: of a mapping or a channel
 * @desc: copied; @user_data of it comes back in the CQE
 */
static inline void kdirect_uring_prep(struct io_uring_sqe *sqe, int fd,
				      const struct kdirect_desc *desc)
{
	struct kdirect_desc *cmd =
		(struct kdirect_desc *)((char *)sqe + offsetof(struct io_uring_sqe, cmd));

	memset((void *)sqe, 0, 128);
	sqe->opcode = IORING_OP_URING_CMD;
	sqe->fd = fd;
	sqe->cmd_op = KDIRECT_URING_CMD_DESC;
	sqe->user_data = desc->user_data;
	*cmd = *desc;
	cmd->user_data = 0;
}

#endif /* LIBKDIRECT_URING_H */
