/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * libkdirect_raw.h - raw channels: one QP towards any peer of the RDMA connection manager
 *
 * A raw channel is a file descriptor of kdirect_open(). Work requests are descriptors: those
 * of libkdirect.h and the ones here, in batches, rings or io_uring commands. kdirect.h says
 * what they do and how they end. C11 or C++. Since version 0.1.
 */
#ifndef LIBKDIRECT_RAW_H
#define LIBKDIRECT_RAW_H

#include <libkdirect.h>

#ifdef __cplusplus
extern "C" {
#endif

/* --- the connection -------------------------------------------------------------------- */

/**
 * kdirect_get_raw_info() - the state of a raw channel, what it can, what its peer said
 * @fd: of a raw channel
 * @info: all of it is written
 *
 * Return: 0, -ENOTTY (not a raw channel), -EBADF.
 */
int kdirect_get_raw_info(int fd, struct kdirect_raw_info *info);

/**
 * kdirect_connect() - connect a channel that is held, or accept its peer
 * @fd: of a raw channel
 * @terms: private data and limits
 *
 * Blocks until the end of that, unless @fd has O_NONBLOCK.
 *
 * Return: 0 or an error of struct kdirect_raw_connect.
 */
int kdirect_connect(int fd, const struct kdirect_raw_connect *terms);

/**
 * kdirect_reject() - refuse the peer of a channel that is held
 * @fd: of a raw channel
 * @data: private data for the peer, or NULL
 * @length: bytes, at most KDIRECT_RAW_REJECT_MAX
 *
 * Return: 0 or an error of struct kdirect_raw_connect.
 */
int kdirect_reject(int fd, const void *data, size_t length);

/* --- keys ------------------------------------------------------------------------------ */

/**
 * kdirect_buffer_share() - a key of a fixed buffer, for the peer
 * @fd: of a raw channel
 * @index: of the buffer, see kdirect_buffer_set()
 * @access: KDIRECT_ACCESS_*; 0 takes the key back
 * @key: all of it is written: @rkey, @addr and @length are for the peer; NULL if @access is 0
 *
 * Blocks for the device.
 *
 * Return: 0 or an error of struct kdirect_share.
 */
int kdirect_buffer_share(int fd, uint32_t index, uint32_t access, struct kdirect_share *key);

/* --- descriptors ----------------------------------------------------------------------- */

/**
 * kdirect_desc_set_key() - whose memory is at @remote
 * @desc: a READ, a WRITE or an atomic operation, where @remote is the peer's address
 * @rkey: the peer's key
 */
static inline void kdirect_desc_set_key(struct kdirect_desc *desc, uint32_t rkey)
{
	desc->rkey = rkey;
}

/**
 * kdirect_desc_add_flags() - fence or solicit
 * @desc: the descriptor
 * @flags: KDIRECT_DESC_FENCE, KDIRECT_DESC_SOLICITED
 */
static inline void kdirect_desc_add_flags(struct kdirect_desc *desc, uint8_t flags)
{
	desc->flags = (uint8_t)(desc->flags | flags);
}

/**
 * kdirect_prep_send_imm() - SEND with immediate data
 * @desc: all of it is written, as in the next three
 * @from: where from; it must not change until the completion
 * @length: bytes
 * @imm: comes in @data of the peer's completion
 * @user_data: comes back in the completion
 */
static inline void kdirect_prep_send_imm(struct kdirect_desc *desc, const void *from,
					 uint32_t length, uint32_t imm, uint64_t user_data)
{
	kdirect_prep_send(desc, from, length, user_data);
	desc->opcode = KDIRECT_OP_SEND_IMM;
	desc->imm = imm;
}

/**
 * kdirect_prep_send_inv() - SEND that invalidates a key of the peer
 * @desc: the descriptor
 * @from: where from; it must not change until the completion
 * @length: bytes
 * @rkey: the key
 * @user_data: comes back in the completion
 */
static inline void kdirect_prep_send_inv(struct kdirect_desc *desc, const void *from,
					 uint32_t length, uint32_t rkey, uint64_t user_data)
{
	kdirect_prep_send(desc, from, length, user_data);
	desc->opcode = KDIRECT_OP_SEND_INV;
	desc->rkey = rkey;
}

/**
 * kdirect_prep_write_imm() - RDMA WRITE with immediate data, for which the peer needs a RECV
 * @desc: the descriptor
 * @from: where from; it must not change until the completion
 * @length: bytes
 * @remote: the peer's address
 * @rkey: the peer's key
 * @imm: comes in @data of the peer's completion
 * @user_data: comes back in the completion
 */
static inline void kdirect_prep_write_imm(struct kdirect_desc *desc, const void *from,
					  uint32_t length, uint64_t remote, uint32_t rkey,
					  uint32_t imm, uint64_t user_data)
{
	kdirect_prep_write(desc, from, length, remote, user_data);
	desc->opcode = KDIRECT_OP_WRITE_IMM;
	desc->rkey = rkey;
	desc->imm = imm;
}

/**
 * kdirect_prep_local_inv() - take a key of ours back
 * @desc: the descriptor
 * @rkey: of kdirect_buffer_share()
 * @user_data: comes back in the completion
 */
static inline void kdirect_prep_local_inv(struct kdirect_desc *desc, uint32_t rkey,
					  uint64_t user_data)
{
	memset(desc, 0, sizeof(*desc));
	desc->opcode = KDIRECT_OP_LOCAL_INV;
	desc->rkey = rkey;
	desc->user_data = user_data;
}

/* --- errors in words ------------------------------------------------------------------- */

/**
 * kdirect_explain_work() - a sentence about a work request that failed
 * @text: where to, NUL-terminated, cut to @size
 * @size: bytes, at least 1
 * @desc: the descriptor
 * @result: of its completion
 * @status: of its completion
 *
 * For example "WRITE_IMM of 4096 bytes: the peer refused it: the key, what it may do, or it
 * had no receive (work completion: remote access error)".
 *
 * Return: @text.
 */
char *kdirect_explain_work(char *text, size_t size, const struct kdirect_desc *desc, int32_t result,
			   uint16_t status);

#ifdef __cplusplus
}
#endif

#endif /* LIBKDIRECT_RAW_H */
