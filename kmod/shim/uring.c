// SPDX-License-Identifier: GPL-2.0-only
/*
 * Commands of io_uring to open files with descriptors.
 *
 * None is marked as cancelable: where one waits, it does so in a worker of io_uring, which
 * io_uring interrupts. What is posted cannot be recalled.
 */

#include <linux/blkdev.h>
#include <linux/file.h>
#include <linux/fs.h>
#include <linux/sched/signal.h>
#include <linux/uio.h>

#include "kdirect.h"

#include "shim.h"

#include "compat/uring.h"

static_assert(sizeof(struct kdirect_uring_cmd) == 80);

/* Kept with a command while it is under way. */
struct kd_uring_pdu {
	u64	extra;
	s32	result;
	bool	polls;
};

static_assert(sizeof(struct kd_uring_pdu) <= sizeof_field(struct io_uring_cmd, pdu));

static struct kd_uring_pdu *kd_uring_pdu(struct io_uring_cmd *cmd)
{
	return (struct kd_uring_pdu *)cmd->pdu;
}

static struct io_uring_cmd *to_uring(struct kd_uring *cmd)
{
	return (struct io_uring_cmd *)cmd;
}

static void kd_uring_end_in_task(struct io_uring_cmd *cmd, unsigned int issue_flags)
{
	struct kd_uring_pdu *pdu = kd_uring_pdu(cmd);

	io_uring_cmd_done32(cmd, pdu->result, pdu->extra, issue_flags);
}

KD_URING_TASK_WORK(kd_uring_task_work, kd_uring_end_in_task)

void kd_uring_done(struct kd_uring *kd_cmd, const struct kd_uring_end *end)
{
	struct io_uring_cmd *cmd = to_uring(kd_cmd);
	struct kd_uring_pdu *pdu = kd_uring_pdu(cmd);

	/* who polls takes it from the command; nobody here has his lock */
	if (pdu->polls) {
		io_uring_cmd_done32(cmd, end->result, end->extra, IO_URING_F_UNLOCKED);
		return;
	}
	pdu->result = end->result;
	pdu->extra = end->extra;
	io_uring_cmd_do_in_task_lazy(cmd, kd_uring_task_work);
}

bool kd_uring_orphan(struct kd_uring *cmd)
{
	return READ_ONCE(kd_uring_task(to_uring(cmd))->signal->flags) & SIGNAL_GROUP_EXIT;
}

int kd_uring_pages(const struct kd_uring_call *call, uint64_t addr, uint32_t len, bool to_memory,
		   struct kd_pages **out)
{
	struct iov_iter iter;
	int ret;

	ret = io_uring_cmd_import_fixed(addr, len, to_memory ? ITER_DEST : ITER_SOURCE, &iter,
					to_uring(call->cmd), call->issue);
	if (ret)
		return kd_from_errno(ret);
	return kd_pages_borrow(&iter, offset_in_page(addr), out);
}

/* --- commands that share a doorbell -------------------------------------------------------- */

/* io_uring plugs what it issues in one call; without a block layer there is no plug. */
#ifdef CONFIG_BLOCK
struct kd_plug {
	struct blk_plug_cb	cb;
	struct delayed_work	work;
	struct file		*file;
};

static void kd_plug_work(struct work_struct *work)
{
	struct kd_plug *plug = container_of(to_delayed_work(work), struct kd_plug, work);

	if (!kd_desc_unplug(plug->file->private_data)) {
		queue_delayed_work(kd_workqueue, &plug->work, 1);
		return;
	}
	fput(plug->file);
	kfree(plug);
}

static void kd_plug_done(struct blk_plug_cb *cb, bool from_schedule)
{
	struct kd_plug *plug = container_of(cb, struct kd_plug, cb);

	INIT_DELAYED_WORK(&plug->work, kd_plug_work);
	if (from_schedule)
		queue_delayed_work(kd_workqueue, &plug->work, 0);
	else
		kd_plug_work(&plug->work.work);
}

bool kd_uring_plug(const struct kd_uring_call *call)
{
	struct file *file = to_uring(call->cmd)->file;
	struct blk_plug_cb *cb = blk_check_plugged(kd_plug_done, file, sizeof(struct kd_plug));
	struct kd_plug *plug = container_of(cb, struct kd_plug, cb);

	if (!cb)
		return false;
	if (!plug->file)
		plug->file = get_file(file);
	return true;
}

#else
bool kd_uring_plug(const struct kd_uring_call *call)
{
	return false;
}
#endif

/* --- issuing --------------------------------------------------------------------------------- */

/* The program may still write to what is copied. */
static void kd_uring_copy(struct kdirect_uring_cmd *to, const struct io_uring_cmd *cmd)
{
	const u64 *from = kd_uring_sqe_cmd(cmd);
	u64 *words = (u64 *)to;
	size_t i;

	for (i = 0; i < sizeof(*to) / sizeof(*words); i++)
		words[i] = READ_ONCE(from[i]);
}

int kd_desc_uring_cmd(struct io_uring_cmd *cmd, unsigned int issue_flags)
{
	struct kd_uring_call call = {
		.cmd		= (struct kd_uring *)cmd,
		.issue		= issue_flags,
		.nowait		= issue_flags & IO_URING_F_NONBLOCK,
		.polls		= issue_flags & IO_URING_F_IOPOLL,
		.registered	= cmd->flags & IORING_URING_CMD_FIXED,
		.wide		= issue_flags & IO_URING_F_CQE32,
	};
	struct kdirect_uring_cmd copy;
	struct kd_uring_end end;

	if (cmd->cmd_op != KDIRECT_URING_CMD_DESC)
		return -ENOTTY;
	if (!(issue_flags & IO_URING_F_SQE128) ||
	    (cmd->flags & IORING_URING_CMD_MASK & ~IORING_URING_CMD_FIXED))
		return -EINVAL;
	kd_uring_copy(&copy, cmd);
	if (copy.reserved[0] || copy.reserved[1])
		return -EINVAL;
	kd_uring_pdu(cmd)->polls = call.polls;
	if (!kd_desc_command(cmd->file->private_data, &copy.desc, &call, &end))
		return -EIOCBQUEUED;
	if (call.nowait && end.result == -KD_EAGAIN) {
		kd_uring_keep_sqe(cmd);
		return -EAGAIN;
	}
	io_uring_cmd_done32(cmd, end.result, end.extra, issue_flags);
	return -EIOCBQUEUED;
}

int kd_desc_uring_iopoll(struct io_uring_cmd *cmd, struct io_comp_batch *batch,
			 unsigned int flags)
{
	return kd_desc_command_poll(cmd->file->private_data);
}
