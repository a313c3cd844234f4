// SPDX-License-Identifier: GPL-2.0-only
/* Open files with descriptors: the calls that all of them have. */

#include <linux/fs.h>
#include <linux/uaccess.h>

#include "kdirect.h"

#include "shim.h"

static long kd_desc_do_submit(struct kd_desc_file *file, struct kdirect_submit __user *arg)
{
	struct kdirect_submit submit;
	int err;

	if (copy_from_user(&submit, arg, sizeof(submit)))
		return -EFAULT;
	err = kd_desc_submit(file, &submit);
	if (err)
		return kd_to_errno(err);
	return copy_to_user(arg, &submit, sizeof(submit)) ? -EFAULT : 0;
}

static long kd_desc_set_buffer(struct kd_desc_file *file,
			       struct kdirect_buffer __user *arg)
{
	struct kdirect_buffer buffer;

	if (copy_from_user(&buffer, arg, sizeof(buffer)))
		return -EFAULT;
	return kd_to_errno(kd_desc_buffer_set(file, &buffer));
}

static long kd_desc_del_buffer(struct kd_desc_file *file, u32 __user *arg)
{
	u32 index;

	if (get_user(index, arg))
		return -EFAULT;
	return kd_to_errno(kd_desc_buffer_del(file, index));
}

static long kd_desc_change_flags(struct kd_desc_file *file, u32 __user *arg)
{
	u32 flags;

	if (get_user(flags, arg))
		return -EFAULT;
	return kd_to_errno(kd_desc_set_flags(file, flags));
}

long kd_desc_ioctl(struct file *file, unsigned int cmd, void __user *arg)
{
	struct kd_desc_file *desc_file = file->private_data;

	switch (cmd) {
	case KDIRECT_IOC_SET_FLAGS:
		return kd_desc_change_flags(desc_file, arg);
	case KDIRECT_IOC_GET_FLAGS:
		return put_user(kd_desc_flags(desc_file), (u32 __user *)arg);
	case KDIRECT_IOC_SUBMIT:
		return kd_desc_do_submit(desc_file, arg);
	case KDIRECT_IOC_BUFFER_SET:
		return kd_desc_set_buffer(desc_file, arg);
	case KDIRECT_IOC_BUFFER_DEL:
		return kd_desc_del_buffer(desc_file, arg);
	case KDIRECT_IOC_RING_SETUP:
		return kd_ring_setup(file, arg);
	default:
		return -ENOTTY;
	}
}
