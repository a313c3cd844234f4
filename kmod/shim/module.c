// SPDX-License-Identifier: GPL-2.0-only
/* The module: what comes first, and what goes last. */

#include <linux/module.h>

#include "shim.h"

#define KD_SAME(name) static_assert(KD_##name == (name))
KD_SAME(EPERM);
KD_SAME(ENOENT);
KD_SAME(EINTR);
KD_SAME(EIO);
KD_SAME(EAGAIN);
KD_SAME(ENOMEM);
KD_SAME(EFAULT);
KD_SAME(EBUSY);
KD_SAME(EEXIST);
KD_SAME(ENODEV);
KD_SAME(EINVAL);
KD_SAME(ENFILE);
KD_SAME(EPIPE);
KD_SAME(ERANGE);
KD_SAME(EPROTO);
KD_SAME(EBADMSG);
KD_SAME(EMSGSIZE);
KD_SAME(EPROTONOSUPPORT);
KD_SAME(EOPNOTSUPP);
KD_SAME(EADDRINUSE);
KD_SAME(EADDRNOTAVAIL);
KD_SAME(ENETUNREACH);
KD_SAME(ECONNRESET);
KD_SAME(ENOTCONN);
KD_SAME(ETIMEDOUT);
KD_SAME(ECONNREFUSED);
KD_SAME(EHOSTUNREACH);

static int __init kd_module_init(void)
{
	int ret;

	ret = kd_to_errno(kd_core_init());
	if (ret)
		return ret;
	ret = kd_workqueues_init();
	if (ret)
		goto err_core;
	ret = kd_nodes_init();
	if (ret)
		goto err_workqueues;
	ret = kd_netlink_init();
	if (ret)
		goto err_nodes;
	ret = kd_devices_init();
	if (ret)
		goto err_netlink;
	return 0;

err_netlink:
	/* requests could come since kd_netlink_init() */
	kd_netlink_close();
	kd_core_stop();
	kd_netlink_exit();
err_nodes:
	kd_nodes_exit();
err_workqueues:
	kd_workqueues_exit();
err_core:
	kd_core_exit();
	return ret;
}

/*
 * Nobody holds a node open, or the module would be in use. First no new work
 * may come (requests, then connections), then the devices go, and what listens
 * to events hears of all of it.
 */
static void __exit kd_module_exit(void)
{
	kd_netlink_close();
	kd_core_stop();
	kd_devices_exit();
	kd_netlink_exit();
	kd_nodes_exit();
	kd_workqueues_exit();
	kd_core_exit();
}

module_init(kd_module_init);
module_exit(kd_module_exit);

MODULE_DESCRIPTION("RDMA data path through the kernel");
MODULE_AUTHOR("The kdirect authors");
MODULE_LICENSE("GPL");
MODULE_VERSION("0.1");
