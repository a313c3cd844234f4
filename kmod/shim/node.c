// SPDX-License-Identifier: GPL-2.0-only
/* Character devices: /dev/kdirect/CHANNEL, and the nodes of mappings beside them. */

#include <linux/cdev.h>
#include <linux/compat.h>
#include <linux/device.h>
#include <linux/fs.h>
#include <linux/idr.h>
#include <linux/mutex.h>
#include <linux/poll.h>
#include <linux/slab.h>
#include <linux/string.h>
#include <linux/uaccess.h>

#include "kdirect.h"

#include "shim.h"

#define KD_MINORS	2048	/* channels and mappings */

struct kd_node {
	struct kd_channel	*channel;
	struct kd_mapping	*mapping;	/* or this */
	bool			raw;		/* the channel is */
	struct device		*device;
	int			minor;
	unsigned int		opening;	/* kd_file_open() calls; kd_node_lock */
	struct completion	idle;		/* no open runs, and none can begin */
};

static dev_t kd_node_base;
static struct cdev kd_node_cdev;
static struct class *kd_node_class;
static DEFINE_MUTEX(kd_node_lock);
static DEFINE_IDR(kd_node_idr);

/* --- open files -------------------------------------------------------------------- */

static struct kd_node *kd_node_get(int minor)
{
	struct kd_node *node;

	mutex_lock(&kd_node_lock);
	node = idr_find(&kd_node_idr, minor);
	if (node)
		node->opening++;
	mutex_unlock(&kd_node_lock);
	return node;
}

/* The last open that ran while the node was destroyed lets that go on. */
static void kd_node_put(struct kd_node *node)
{
	mutex_lock(&kd_node_lock);
	/* the minor may be another node's by now */
	if (!--node->opening && idr_find(&kd_node_idr, node->minor) != node)
		complete(&node->idle);
	mutex_unlock(&kd_node_lock);
}

static int kd_node_open(struct inode *inode, struct file *file)
{
	struct kd_node *node = kd_node_get(iminor(inode) - MINOR(kd_node_base));
	struct kd_desc_file *desc_file;
	int err;

	if (!node)
		return -ENODEV;
	if (node->mapping || node->raw) {
		if (node->raw)
			err = kd_raw_file_open(file, node->channel);
		else
			err = kd_map_file_open(file, node->mapping);
		kd_node_put(node);
		return err;
	}
	err = kd_file_open(node->channel, !!(file->f_mode & FMODE_READ),
			   !!(file->f_mode & FMODE_WRITE), &desc_file);
	kd_node_put(node);
	if (err)
		return kd_to_errno(err);
	file->private_data = desc_file;
	file->f_mode |= FMODE_NOWAIT;
	return stream_open(inode, file);
}

static int kd_node_release(struct inode *inode, struct file *file)
{
	kd_desc_release(file->private_data);
	return 0;
}

static u32 kd_node_io_flags(const struct kiocb *iocb)
{
	u32 flags = 0;

	if ((iocb->ki_flags & IOCB_NOWAIT) || (iocb->ki_filp->f_flags & O_NONBLOCK))
		flags |= KD_IO_NOWAIT;
	if (iocb->ki_flags & IOCB_HIPRI)
		flags |= KD_IO_POLL;
	return flags;
}

/* Nothing was sent or read when a signal came first, so that the call can be repeated. */
static ssize_t kd_node_io_result(s64 ret)
{
	return ret == -KD_EINTR ? -ERESTARTSYS : ret;
}

static ssize_t kd_node_read_iter(struct kiocb *iocb, struct iov_iter *to)
{
	return kd_node_io_result(kd_file_read(iocb->ki_filp->private_data, from_iter(to),
					      iov_iter_count(to), kd_node_io_flags(iocb)));
}

static ssize_t kd_node_write_iter(struct kiocb *iocb, struct iov_iter *from)
{
	return kd_node_io_result(kd_file_write(iocb->ki_filp->private_data, from_iter(from),
					       iov_iter_count(from), kd_node_io_flags(iocb)));
}

__poll_t kd_poll_events(u32 now)
{
	__poll_t events = 0;

	if (now & KD_POLL_IN)
		events |= EPOLLIN | EPOLLRDNORM;
	if (now & KD_POLL_OUT)
		events |= EPOLLOUT | EPOLLWRNORM;
	if (now & KD_POLL_HUP)
		events |= EPOLLHUP | EPOLLRDHUP;
	if (now & KD_POLL_ERR)
		events |= EPOLLERR;
	if (now & KD_POLL_PRI)
		events |= EPOLLPRI;
	return events;
}

static __poll_t kd_node_poll(struct file *file, poll_table *wait)
{
	struct kd_desc_file *desc_file = file->private_data;

	poll_wait(file, to_waitq(kd_file_read_waitq(desc_file)), wait);
	poll_wait(file, to_waitq(kd_file_write_waitq(desc_file)), wait);
	return kd_poll_events(kd_file_poll(desc_file));
}

static long kd_node_info(struct kd_desc_file *file, struct kdirect_info __user *arg)
{
	struct kdirect_info info = {};

	kd_file_info(file, &info);
	return copy_to_user(arg, &info, sizeof(info)) ? -EFAULT : 0;
}

static long kd_node_ping(struct file *file, struct kdirect_ping __user *arg)
{
	const fmode_t both = FMODE_READ | FMODE_WRITE;
	struct kdirect_ping ping;
	int err;

	if ((file->f_mode & both) != both)
		return -EPERM;
	if (copy_from_user(&ping, arg, sizeof(ping)))
		return -EFAULT;
	err = kd_file_ping(file->private_data, &ping);
	if (err)
		return kd_node_io_result(kd_to_errno(err));
	return copy_to_user(arg, &ping, sizeof(ping)) ? -EFAULT : 0;
}

static long kd_node_ioctl(struct file *file, unsigned int cmd, unsigned long arg)
{
	void __user *ptr = (void __user *)arg;

	switch (cmd) {
	case KDIRECT_IOC_INFO:
		return kd_node_info(file->private_data, ptr);
	case KDIRECT_IOC_PING:
		return kd_node_ping(file, ptr);
	default:
		return kd_desc_ioctl(file, cmd, ptr);
	}
}

static const struct file_operations kd_node_fops = {
	.owner		= THIS_MODULE,
	.open		= kd_node_open,
	.release	= kd_node_release,
	.read_iter	= kd_node_read_iter,
	.write_iter	= kd_node_write_iter,
	.poll		= kd_node_poll,
	.unlocked_ioctl	= kd_node_ioctl,
	.compat_ioctl	= compat_ptr_ioctl,
	.uring_cmd	= kd_desc_uring_cmd,
	.uring_cmd_iopoll = kd_desc_uring_iopoll,
};

/* --- nodes --------------------------------------------------------------------------- */

static void kd_node_forget(struct kd_node *node)
{
	bool busy;

	mutex_lock(&kd_node_lock);
	idr_remove(&kd_node_idr, node->minor);
	busy = node->opening;
	mutex_unlock(&kd_node_lock);
	if (busy)
		wait_for_completion(&node->idle);
}

static int kd_node_add(struct kd_channel *channel, struct kd_mapping *mapping, bool raw,
		       const char *name, struct kd_node **out)
{
	struct kd_node *node;
	int ret;

	node = kzalloc(sizeof(*node), GFP_KERNEL);
	if (!node)
		return KD_ENOMEM;
	node->channel = channel;
	node->mapping = mapping;
	node->raw = raw;
	init_completion(&node->idle);

	mutex_lock(&kd_node_lock);
	ret = idr_alloc(&kd_node_idr, node, 0, KD_MINORS, GFP_KERNEL);
	node->minor = ret;
	mutex_unlock(&kd_node_lock);
	if (ret < 0) {
		kfree(node);
		return ret == -ENOSPC ? KD_ENFILE : kd_from_errno(ret);
	}

	node->device = device_create(kd_node_class, NULL, kd_node_base + node->minor, NULL,
				     "%s", name);
	if (IS_ERR(node->device)) {
		ret = PTR_ERR(node->device);
		kd_node_forget(node);
		kfree(node);
		return kd_from_errno(ret);
	}
	*out = node;
	return 0;
}

int kd_node_create(struct kd_channel *channel, const char *name, struct kd_node **out)
{
	return kd_node_add(channel, NULL, false, name, out);
}

int kd_raw_node_create(struct kd_channel *channel, const char *name, struct kd_node **out)
{
	return kd_node_add(channel, NULL, true, name, out);
}

int kd_map_node_create(struct kd_mapping *mapping, const char *name, struct kd_node **out)
{
	return kd_node_add(NULL, mapping, false, name, out);
}

void kd_node_destroy(struct kd_node *node)
{
	device_destroy(kd_node_class, kd_node_base + node->minor);
	kd_node_forget(node);
	kfree(node);
}

static char *kd_node_devnode(kd_devnode_device *dev, umode_t *mode)
{
	if (mode)
		*mode = 0660;
	return kasprintf(GFP_KERNEL, "kdirect/%s", dev_name(dev));
}

int kd_nodes_init(void)
{
	int ret;

	ret = alloc_chrdev_region(&kd_node_base, 0, KD_MINORS, KBUILD_MODNAME);
	if (ret)
		return ret;
	kd_node_class = class_create(KBUILD_MODNAME);
	if (IS_ERR(kd_node_class)) {
		ret = PTR_ERR(kd_node_class);
		goto err_region;
	}
	kd_node_class->devnode = kd_node_devnode;
	cdev_init(&kd_node_cdev, &kd_node_fops);
	kd_node_cdev.owner = THIS_MODULE;
	ret = cdev_add(&kd_node_cdev, kd_node_base, KD_MINORS);
	if (ret)
		goto err_class;
	return 0;

err_class:
	class_destroy(kd_node_class);
err_region:
	unregister_chrdev_region(kd_node_base, KD_MINORS);
	return ret;
}

void kd_nodes_exit(void)
{
	cdev_del(&kd_node_cdev);
	class_destroy(kd_node_class);
	unregister_chrdev_region(kd_node_base, KD_MINORS);
	idr_destroy(&kd_node_idr);
}
