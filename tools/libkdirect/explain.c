// SPDX-License-Identifier: GPL-2.0-only
// Errors in words.
#include "libkdirect_raw.h"

#include <errno.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>

#define ENDED "the channel has ended"
#define DELETED "the mapping was deleted here"
#define REVOKED "the peer deleted the export"
#define NO_POLL_QUEUE "the channel has no poll queue"
#define SIGNAL "a signal came first"
#define TIME "nothing came in time"
#define NOT_OURS "the file is not of the right kind of kdirect node"
#define RESERVED "a flag is unknown or a field that must be zero is not"
#define LOST "the connection failed while this was under way: it may or may not have been done"

struct sentence {
	int err;
	const char *text;
};

static const struct sentence open_texts[] = {
	{EINVAL, "not a path, and not a name either: 1 to 31 of A-Z a-z 0-9 _ - ., a letter first"},
	{ENOENT, "there is no channel or mapping of that name; is the module loaded?"},
	{ENOTTY, "this is not a node of kdirect"},
	{EACCES, "the node is for root and the group kdirect; or a read-only mapping was to be "
		 "written"},
	{ENODEV, "the channel or mapping was deleted"},
	{ENXIO, "there is nothing behind this node any more"},
	{ESTALE, REVOKED},
	{EPIPE, ENDED},
	{0, NULL},
};

static const struct sentence info_texts[] = {
	{ENOTTY, NOT_OURS},
	{0, NULL},
};

static const struct sentence flags_texts[] = {
	{EINVAL, "a flag is unknown, or there are two poll modes"},
	{EOPNOTSUPP, NO_POLL_QUEUE},
	{ENOTTY, NOT_OURS},
	{0, NULL},
};

static const struct sentence ping_texts[] = {
	{EINVAL, "the size is 0, the time limit above 60 s, or " RESERVED},
	{EMSGSIZE, "the size is above the channel's eager limit"},
	{EOPNOTSUPP, NO_POLL_QUEUE},
	{ETIMEDOUT, "the peer did not answer in time"},
	{EBADMSG, "the answer differs from what was sent"},
	{EINTR, SIGNAL},
	{EPIPE, ENDED},
	{EPERM, "the file is not open for both reading and writing"},
	{ENOTTY, "only channels can be pinged"},
	{0, NULL},
};

static const struct sentence send_texts[] = {
	{EINVAL, "a message has at least one byte"},
	{EMSGSIZE, "the message is longer than the channel allows"},
	{EAGAIN, "there was no room for a message in time"},
	{EINTR, "a signal came before the message was sent"},
	{EFAULT, "the message's memory cannot be read"},
	{EOPNOTSUPP, NO_POLL_QUEUE},
	{ENOMEM, "there is no memory for a copy of a message above the eager limit"},
	{EPIPE, ENDED},
	{ENOTCONN, "the channel was never live"},
	{EBADF, "the file is not open for writing"},
	{0, NULL},
};

static const struct sentence recv_texts[] = {
	{EMSGSIZE, "the buffer is smaller than the channel's longest message"},
	{EAGAIN, "there was no message in time"},
	{ETIMEDOUT, "the connection failed: the peer did not answer in time"},
	{EINTR, "a signal came before a message"},
	{EFAULT, "the buffer's memory cannot be written"},
	{EOPNOTSUPP, NO_POLL_QUEUE},
	{ENODEV, "the channel was deleted here, or its RDMA device removed"},
	{ECONNRESET, "the connection was broken"},
	{ENOTCONN, "the channel was never live"},
	{ENOTTY, "this is not a channel"},
	{EBADF, "the file is not open for reading"},
	{0, NULL},
};

static const struct sentence io_texts[] = {
	{ENOSPC, "this is at or past the end of the export"},
	{EACCES, "the mapping or the export is read-only"},
	{EAGAIN, "this cannot be done without blocking"},
	{EINTR, SIGNAL},
	{EFAULT, "the memory cannot be accessed"},
	{EOPNOTSUPP, NO_POLL_QUEUE},
	{ESTALE, REVOKED},
	{ENODEV, DELETED},
	{EPIPE, ENDED},
	{EIO, LOST},
	{EBADF, "the file is not open for this"},
	{0, NULL},
};

static const struct sentence submit_texts[] = {
	{EINVAL, "it waits for more completions than there is room or entries for, or " RESERVED},
	{EAGAIN, "no entry is free: completions must be reaped first"},
	{EBUSY, "the file has rings: descriptors go through them until they end"},
	{EINTR, SIGNAL},
	{ETIMEDOUT, TIME},
	{EFAULT, "the arrays' memory cannot be accessed"},
	{EOPNOTSUPP, NO_POLL_QUEUE},
	{ENOMEM, "there is no memory for the file's entries"},
	{ENOTTY, "only channels and mappings take descriptors"},
	{ESTALE, "nothing is under way, and " REVOKED},
	{ENODEV, "nothing is under way, and " DELETED},
	{EPIPE, "nothing is under way, and " ENDED},
	{0, NULL},
};

static const struct sentence desc_texts[] = {
	{EINVAL, "a field of the descriptor is invalid"},
	{ERANGE, "it reaches past the end of the export"},
	{EACCES, "the file is not open for this, or the mapping is read-only"},
	{EOPNOTSUPP, "the devices have no atomic operations"},
	{ENOENT, "there is no such fixed buffer"},
	{EFAULT, "the local memory cannot be accessed, or it reaches past the end of the fixed "
		 "buffer"},
	{ENOMEM, "there is no memory for the description of the pages"},
	{EINTR, "a fatal signal came before it was sent"},
	{ESTALE, REVOKED},
	{ENODEV, DELETED},
	{EPIPE, ENDED},
	{EIO, LOST},
	{0, NULL},
};

static const struct sentence buffer_texts[] = {
	{EINVAL, "the index, the length or the address is out of range"},
	{ENOENT, "there is no fixed buffer of that index"},
	{EFAULT, "the memory is not writable, or of a kind that cannot stay pinned"},
	{ENOMEM, "the memory is over RLIMIT_MEMLOCK (ulimit -l), or there is none left"},
	{EINTR, SIGNAL},
	{ENOTTY, "only channels and mappings have fixed buffers"},
	{ESTALE, REVOKED},
	{ENODEV, DELETED},
	{EPIPE, ENDED},
	{0, NULL},
};

static const struct sentence ring_setup_texts[] = {
	{EINVAL, "a size is no power of two from 1 to 4096, the CPU or the idle time cannot be, "
		 "or " RESERVED},
	{EOPNOTSUPP, NO_POLL_QUEUE},
	{EBUSY, "the file has rings already, or somebody submits to it without"},
	{EAGAIN, "the channel has no thread left for another ring"},
	{ENOMEM, "there is no memory for the rings"},
	{EMFILE, "the process has too many open files"},
	{ENFILE, "the system has too many open files"},
	{EINTR, SIGNAL},
	{ENOTTY, "only channels and mappings have rings"},
	{ESTALE, REVOKED},
	{ENODEV, DELETED},
	{EPIPE, ENDED},
	{0, NULL},
};

static const struct sentence ring_enter_texts[] = {
	{EINVAL, "there are not so many completions, or they would not fit into the ring"},
	{EAGAIN, "no entry is free: completions must be reaped first"},
	{EBADMSG, "somebody else has overwritten the ring's sq_tail"},
	{EINTR, SIGNAL},
	{ETIMEDOUT, TIME},
	{ESTALE, "nothing is under way, and " REVOKED},
	{ENODEV, "nothing is under way, and " DELETED},
	{EPIPE, "nothing is under way, and " ENDED},
	{0, NULL},
};

static const struct sentence connect_texts[] = {
	{EINVAL, "a limit or the length of the private data is out of range, or " RESERVED},
	{EBUSY, "the channel is not held, or not any more"},
	{ECONNREFUSED, "the peer refused the connection"},
	{ECONNRESET, "the connection was broken"},
	{EHOSTUNREACH, "the peer cannot be reached"},
	{ETIMEDOUT, "the peer did not answer in time"},
	{EINTR, "a signal came first: the channel goes on connecting"},
	{ENOTTY, "only raw channels are connected by programs"},
	{EPIPE, ENDED},
	{0, NULL},
};

static const struct sentence share_texts[] = {
	{EINVAL, "the index or the access is out of range, or " RESERVED},
	{ENOENT, "there is no fixed buffer of that index, or it has no key to be taken back"},
	{EBUSY, "the buffer has a key already, or is about to lose one"},
	{EFBIG, "the buffer is longer than the device registers at once"},
	{EOPNOTSUPP, "the device has no atomic operations, or does not reach the memory itself"},
	{ENOTCONN, "the channel is not connected yet"},
	{ENOMEM, "there is no memory for the registration"},
	{EINTR, SIGNAL},
	{ENOTTY, "only raw channels have keys"},
	{ENODEV, "the channel was deleted here"},
	{EPIPE, ENDED},
	{0, NULL},
};

static const struct sentence work_texts[] = {
	{EINVAL, "a field or a flag is not for this, or out of range"},
	{ENOTCONN, "the channel is not connected yet: only RECVs may be posted"},
	{EOPNOTSUPP, "the device, the transport or the peer does not have it; or it has memory "
		     "to be pinned, and is of a ring's thread"},
	{EMSGSIZE, "it is longer than the device can or a RECV has room for, or in too many pieces "
		   "of memory"},
	{ENOENT, "there is no such fixed buffer, or key"},
	{EFAULT, "the local memory cannot be accessed, or it reaches past the end of the fixed "
		 "buffer"},
	{ENOMEM, "the memory is over RLIMIT_MEMLOCK (ulimit -l), or there is none left"},
	{EINTR, SIGNAL},
	{ETIMEDOUT, "the peer did not answer in time"},
	{EPROTO, "the peer refused it: the key, what it may do, or it had no receive"},
	{ECONNRESET, "the connection ended: it was not done, or nobody knows"},
	{ENODEV, "the channel was deleted here"},
	{EPIPE, ENDED},
	{EIO, LOST},
	{0, NULL},
};

static const struct sentence *const calls[] = {
	[KDIRECT_CALL_OPEN] = open_texts,
	[KDIRECT_CALL_INFO] = info_texts,
	[KDIRECT_CALL_FLAGS] = flags_texts,
	[KDIRECT_CALL_PING] = ping_texts,
	[KDIRECT_CALL_SEND] = send_texts,
	[KDIRECT_CALL_RECV] = recv_texts,
	[KDIRECT_CALL_IO] = io_texts,
	[KDIRECT_CALL_SUBMIT] = submit_texts,
	[KDIRECT_CALL_DESC] = desc_texts,
	[KDIRECT_CALL_BUFFER] = buffer_texts,
	[KDIRECT_CALL_RING_SETUP] = ring_setup_texts,
	[KDIRECT_CALL_RING_ENTER] = ring_enter_texts,
	[KDIRECT_CALL_CONNECT] = connect_texts,
	[KDIRECT_CALL_SHARE] = share_texts,
	[KDIRECT_CALL_WORK] = work_texts,
};

const char *kdirect_explain(enum kdirect_call call, int err)
{
	const char *text;

	if (err < 0 && err > INT32_MIN)
		err = -err;
	if (!err)
		return "there is no error";
	if ((unsigned int)call < sizeof(calls) / sizeof(calls[0]) && calls[call])
		for (const struct sentence *s = calls[call]; s->err; s++)
			if (s->err == err)
				return s->text;
	text = strerrordesc_np(err);
	return text ? text : "this is not an error's number";
}

/* --- descriptors ----------------------------------------------------------------------- */

struct text {
	char *at;
	size_t left;
};

__attribute__((format(printf, 2, 3))) static void add(struct text *text, const char *format, ...)
{
	va_list args;
	int length;

	va_start(args, format);
	length = vsnprintf(text->at, text->left, format, args);
	va_end(args);
	if (length < 0)
		return;
	if ((size_t)length >= text->left)
		length = (int)text->left - 1;
	text->at += length;
	text->left -= (size_t)length;
}

static const char *opcode_name(uint8_t opcode)
{
	switch (opcode) {
	case KDIRECT_OP_READ: return "READ";
	case KDIRECT_OP_WRITE: return "WRITE";
	case KDIRECT_OP_CMP_SWAP: return "CMP_SWAP";
	case KDIRECT_OP_FETCH_ADD: return "FETCH_ADD";
	case KDIRECT_OP_SEND: return "SEND";
	case KDIRECT_OP_RECV: return "RECV";
	}
	return NULL;
}

/* Those that only a raw channel has. */
static const char *raw_opcode_name(uint8_t opcode)
{
	switch (opcode) {
	case KDIRECT_OP_SEND_IMM: return "SEND_IMM";
	case KDIRECT_OP_SEND_INV: return "SEND_INV";
	case KDIRECT_OP_WRITE_IMM: return "WRITE_IMM";
	case KDIRECT_OP_LOCAL_INV: return "LOCAL_INV";
	}
	return NULL;
}

static bool is_atomic(const struct kdirect_desc *d)
{
	return d->opcode == KDIRECT_OP_CMP_SWAP || d->opcode == KDIRECT_OP_FETCH_ADD;
}

/* It is about a message of a channel. */
static bool is_message(const struct kdirect_desc *d)
{
	return d->opcode == KDIRECT_OP_SEND || d->opcode == KDIRECT_OP_RECV;
}

static bool is_fenced(const struct kdirect_desc *d)
{
	return d->flags & (KDIRECT_DESC_FENCE | KDIRECT_DESC_SOLICITED);
}

/* It asks for what a mapping does not have. */
static bool is_raw(const struct kdirect_desc *d)
{
	return (d->opcode > KDIRECT_OP_FETCH_ADD && d->opcode <= KDIRECT_OP_LOCAL_INV) ||
	       is_fenced(d);
}

/* The field that makes it invalid, in the order in which a program should look at them. */
static void add_invalid(struct text *text, const struct kdirect_desc *d)
{
	if (d->flags & ~KDIRECT_DESC_FLAGS)
		add(text, " has unknown flags 0x%x", d->flags & ~KDIRECT_DESC_FLAGS);
	else if (d->reserved)
		add(text, " has a reserved field that is not zero");
	else if (d->rkey || d->imm)
		add(text, " has an rkey or imm, which are for raw channels");
	else if (is_atomic(d) && d->flags)
		add(text, " cannot use a fixed buffer");
	else if (d->buffer && !(d->flags & KDIRECT_DESC_FIXED))
		add(text, " names buffer %u without KDIRECT_DESC_FIXED", d->buffer);
	else if (is_atomic(d) && d->length != 8)
		add(text, " must have a length of 8, not %u", d->length);
	else if (is_atomic(d) && d->addr)
		add(text, " has an addr, which must be zero");
	else if (is_atomic(d) && d->remote % 8)
		add(text, " must be at a multiple of 8");
	else if (!is_atomic(d) && d->length > KDIRECT_DESC_LENGTH_MAX)
		add(text, " is longer than %u bytes", KDIRECT_DESC_LENGTH_MAX);
	else if (is_message(d) && d->remote)
		add(text, " has a remote, which must be zero");
	else if (!is_atomic(d) && d->operand)
		add(text, " has an operand, which must be zero");
	else if (d->opcode != KDIRECT_OP_CMP_SWAP && d->compare)
		add(text, " has a compare, which must be zero");
	else
		add(text, " is invalid");
}

static void add_cause(struct text *text, const struct kdirect_desc *d,
		      const struct kdirect_map_info *info, int err)
{
	bool fixed = d->flags & KDIRECT_DESC_FIXED;
	unsigned long long addr = d->addr;

	switch (err) {
	case EINVAL: add_invalid(text, d); break;
	case ERANGE:
		add(text, " reaches past the end of the export");
		if (info)
			add(text, ", which has %llu", (unsigned long long)info->size);
		break;
	case EACCES:
		if (d->opcode == KDIRECT_OP_READ || d->opcode == KDIRECT_OP_RECV)
			add(text, ": the file is not open for reading");
		else if (is_message(d))
			add(text, ": the file is not open for writing");
		else if (info && (info->flags & KDIRECT_MAP_READ_ONLY))
			add(text, ": the mapping is read-only");
		else
			add(text, ": the file is not open for writing%s",
			    info ? "" : ", or the mapping is read-only");
		break;
	case EOPNOTSUPP:
		if (is_message(d) && !is_fenced(d))
			add(text, info ? ": that is for channels"
				       : ": a ring's thread pins no memory, use a fixed buffer");
		else if (is_raw(d))
			add(text, ": that is for raw channels");
		else if (info && (info->flags & KDIRECT_MAP_ATOMICS))
			add(text, ": the peer's memory is not aligned for it");
		else
			add(text, ": one of the two devices has no atomic operations");
		break;
	case ENOENT: add(text, ": there is no fixed buffer %u", d->buffer); break;
	case EFAULT:
		if (fixed)
			add(text, ": it reaches past the end of fixed buffer %u from its byte %llu",
			    d->buffer, addr);
		else
			add(text, ": the memory at 0x%llx cannot be %s", addr,
			    d->opcode == KDIRECT_OP_READ || d->opcode == KDIRECT_OP_RECV ? "written"
											 : "read");
		break;
	case EMSGSIZE:
		if (d->opcode == KDIRECT_OP_SEND) {
			add(text, " is longer than the channel allows");
			break;
		}
		__attribute__((fallthrough));
	default: add(text, ": %s", kdirect_explain(KDIRECT_CALL_DESC, err));
	}
}

char *kdirect_explain_desc(char *buffer, size_t size, const struct kdirect_desc *d,
			   const struct kdirect_map_info *info, int32_t result, uint16_t status)
{
	struct text text = {buffer, size};
	const char *name = opcode_name(d->opcode);

	if (!name) {
		add(&text, "opcode %u is none of READ, WRITE, CMP_SWAP, FETCH_ADD, SEND and RECV",
		    d->opcode);
		return buffer;
	}
	if (is_atomic(d))
		add(&text, "%s at %llu", name, (unsigned long long)d->remote);
	else if (is_message(d))
		add(&text, "%s of %u bytes", name, d->length);
	else
		add(&text, "%s of %u bytes at %llu", name, d->length,
		    (unsigned long long)d->remote);
	if (result >= 0)
		add(&text, " was done");
	else
		add_cause(&text, d, info, -(int)result);
	if (status)
		add(&text, " (work completion: %s)", kdirect_status_text(status));
	return buffer;
}

char *kdirect_explain_work(char *buffer, size_t size, const struct kdirect_desc *d, int32_t result,
			   uint16_t status)
{
	struct text text = {buffer, size};
	const char *name = opcode_name(d->opcode);

	if (!name)
		name = raw_opcode_name(d->opcode);
	if (!name) {
		add(&text, "opcode %u is none of a raw channel's", d->opcode);
		return buffer;
	}
	add(&text, "%s", name);
	if (d->opcode != KDIRECT_OP_LOCAL_INV)
		add(&text, " of %u bytes", d->length);
	if (result >= 0)
		add(&text, " was done");
	else
		add(&text, ": %s", kdirect_explain(KDIRECT_CALL_WORK, result));
	if (status)
		add(&text, " (work completion: %s)", kdirect_status_text(status));
	return buffer;
}

const char *kdirect_status_text(uint16_t status)
{
	/* In the order of enum ibv_wc_status. */
	static const char *const names[] = {
		"success",
		"local length error",
		"local QP operation error",
		"local EE context operation error",
		"local protection error",
		"work request flushed",
		"memory window bind error",
		"bad response",
		"local access error",
		"remote invalid request",
		"remote access error",
		"remote operation error",
		"transport retries exceeded",
		"RNR retries exceeded",
		"local RDD violation",
		"remote invalid RD request",
		"remote aborted",
		"invalid EE context number",
		"invalid EE context state",
		"fatal error",
		"response timed out",
		"general error",
	};

	return status < sizeof(names) / sizeof(names[0]) ? names[status] : "unknown status";
}
