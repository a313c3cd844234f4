// SPDX-License-Identifier: GPL-2.0-only
/* Open files of mappings: /dev/kdirect/MAPPING is read and written at any place. */

#include <linux/fs.h>
#include <linux/uio.h>

#include "shim.h"

static int kd_map_file_release(struct inode *inode, struct file *file)
{
	kd_map_release(file->private_data);
	return 0;
}

static loff_t kd_map_file_llseek(struct file *file, loff_t offset, int whence)
{
	return fixed_size_llseek(file, offset, whence, kd_map_size(file->private_data));
}

static ssize_t kd_map_file_io(struct kiocb *iocb, struct iov_iter *iter, bool write)
{
	struct kd_iocb *async = is_sync_kiocb(iocb) ? NULL : (struct kd_iocb *)iocb;
	u32 flags = 0;
	s64 ret;

	if (iocb->ki_flags & IOCB_NOWAIT)
		flags |= KD_IO_NOWAIT;
	if (iocb->ki_flags & IOCB_HIPRI)
		flags |= KD_IO_POLL;
	ret = kd_map_io(iocb->ki_filp->private_data, from_iter(iter), iov_iter_count(iter),
			iocb->ki_pos, write, flags, async);
	/* with EIOCBQUEUED it may be completed and gone already */
	static_assert(KD_IO_QUEUED == -EIOCBQUEUED);
	if (ret > 0)
		iocb->ki_pos += ret;
	return ret;
}

static ssize_t kd_map_file_read_iter(struct kiocb *iocb, struct iov_iter *to)
{
	return kd_map_file_io(iocb, to, false);
}

static ssize_t kd_map_file_write_iter(struct kiocb *iocb, struct iov_iter *from)
{
	return kd_map_file_io(iocb, from, true);
}

/* No mmap: ENODEV says so. */
static const struct file_operations kd_map_fops = {
	.owner		= THIS_MODULE,
	.llseek		= kd_map_file_llseek,
	.read_iter	= kd_map_file_read_iter,
	.write_iter	= kd_map_file_write_iter,
	.release	= kd_map_file_release,
};

int kd_map_file_open(struct file *file, struct kd_mapping *mapping)
{
	int err = kd_map_open(mapping, !!(file->f_mode & FMODE_WRITE));

	if (err)
		return kd_to_errno(err);
	file->private_data = mapping;
	file->f_mode |= FMODE_NOWAIT | FMODE_CAN_ODIRECT;
	file->f_op = &kd_map_fops; /* of the same module: its reference stays */
	return 0;
}
