// SPDX-License-Identifier: GPL-2.0-only
/* Open files of mappings: /dev/kdirect/MAPPING is read and written at any place. */

#include <linux/compat.h>
#include <linux/fs.h>
#include <linux/uaccess.h>
#include <linux/uio.h>

#include "kdirect.h"

#include "shim.h"

static int kd_map_file_release(struct inode *inode, struct file *file)
{
	kd_desc_release(file->private_data);
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

static long kd_map_file_info(struct kd_desc_file *file, struct kdirect_map_info __user *arg)
{
	struct kdirect_map_info info = {};

	kd_map_describe(file, &info);
	return copy_to_user(arg, &info, sizeof(info)) ? -EFAULT : 0;
}

static long kd_map_file_ioctl(struct file *file, unsigned int cmd, unsigned long arg)
{
	void __user *ptr = (void __user *)arg;

	if (cmd == KDIRECT_IOC_MAP_INFO)
		return kd_map_file_info(file->private_data, ptr);
	return kd_desc_ioctl(file, cmd, ptr);
}

/* No mmap: ENODEV says so. */
static const struct file_operations kd_map_fops = {
	.owner		= THIS_MODULE,
	.llseek		= kd_map_file_llseek,
	.read_iter	= kd_map_file_read_iter,
	.write_iter	= kd_map_file_write_iter,
	.unlocked_ioctl	= kd_map_file_ioctl,
	.compat_ioctl	= compat_ptr_ioctl,
	.uring_cmd	= kd_desc_uring_cmd,
	.uring_cmd_iopoll = kd_desc_uring_iopoll,
	.release	= kd_map_file_release,
};

int kd_map_file_open(struct file *file, struct kd_mapping *mapping)
{
	struct kd_desc_file *map_file;
	int err;

	err = kd_map_open(mapping, !!(file->f_mode & FMODE_READ), !!(file->f_mode & FMODE_WRITE),
			  &map_file);
	if (err)
		return kd_to_errno(err);
	file->private_data = map_file;
	file->f_mode |= FMODE_NOWAIT | FMODE_CAN_ODIRECT;
	file->f_op = &kd_map_fops; /* of the same module: its reference stays */
	return 0;
}
