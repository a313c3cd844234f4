// SPDX-License-Identifier: GPL-2.0-only
/* Open files of raw channels. */

#include <linux/compat.h>
#include <linux/fs.h>
#include <linux/poll.h>
#include <linux/slab.h>
#include <linux/string.h>
#include <linux/uaccess.h>

#include "kdirect.h"

#include "shim.h"

static int kd_raw_file_release(struct inode *inode, struct file *file)
{
	kd_desc_release(file->private_data);
	return 0;
}

static __poll_t kd_raw_file_poll(struct file *file, poll_table *wait)
{
	struct kd_desc_file *desc_file = file->private_data;

	poll_wait(file, to_waitq(kd_desc_waitq(desc_file)), wait);
	return kd_poll_events(kd_raw_poll(desc_file));
}

static long kd_raw_file_answer(struct file *file, struct kdirect_raw_connect __user *arg,
			       bool connect)
{
	struct kdirect_raw_connect *call;
	int err;

	call = memdup_user(arg, sizeof(*call));
	if (IS_ERR(call))
		return PTR_ERR(call);
	if (connect)
		err = kd_raw_connect(file->private_data, call, file->f_flags & O_NONBLOCK);
	else
		err = kd_raw_reject(file->private_data, call);
	kfree(call);
	return kd_to_errno(err);
}

static long kd_raw_file_share(struct kd_desc_file *file, struct kdirect_share __user *arg)
{
	struct kdirect_share share;
	int err;

	if (copy_from_user(&share, arg, sizeof(share)))
		return -EFAULT;
	err = kd_raw_share(file, &share);
	if (err)
		return kd_to_errno(err);
	return copy_to_user(arg, &share, sizeof(share)) ? -EFAULT : 0;
}

static long kd_raw_file_info(struct kd_desc_file *file, struct kdirect_raw_info __user *arg)
{
	struct kdirect_raw_info info = {};

	kd_raw_describe(file, &info);
	return copy_to_user(arg, &info, sizeof(info)) ? -EFAULT : 0;
}

static long kd_raw_file_ioctl(struct file *file, unsigned int cmd, unsigned long arg)
{
	void __user *ptr = (void __user *)arg;

	switch (cmd) {
	case KDIRECT_IOC_RAW_INFO:
		return kd_raw_file_info(file->private_data, ptr);
	case KDIRECT_IOC_RAW_CONNECT:
		return kd_raw_file_answer(file, ptr, true);
	case KDIRECT_IOC_RAW_REJECT:
		return kd_raw_file_answer(file, ptr, false);
	case KDIRECT_IOC_BUFFER_SHARE:
		return kd_raw_file_share(file->private_data, ptr);
	default:
		return kd_desc_ioctl(file, cmd, ptr);
	}
}

static const struct file_operations kd_raw_fops = {
	.owner		= THIS_MODULE,
	.poll		= kd_raw_file_poll,
	.unlocked_ioctl	= kd_raw_file_ioctl,
	.compat_ioctl	= compat_ptr_ioctl,
	.uring_cmd	= kd_desc_uring_cmd,
	.uring_cmd_iopoll = kd_desc_uring_iopoll,
	.release	= kd_raw_file_release,
};

int kd_raw_file_open(struct file *file, struct kd_channel *channel)
{
	const fmode_t both = FMODE_READ | FMODE_WRITE;
	struct kd_desc_file *desc_file;
	int err;

	if ((file->f_mode & both) != both)
		return -EACCES;
	err = kd_raw_open(channel, &desc_file);
	if (err)
		return kd_to_errno(err);
	file->private_data = desc_file;
	file->f_op = &kd_raw_fops; /* of the same module: its reference stays */
	return 0;
}
