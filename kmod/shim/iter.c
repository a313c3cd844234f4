// SPDX-License-Identifier: GPL-2.0-only
/* The caller's memory, and network namespaces. */

#include <linux/uaccess.h>
#include <linux/uio.h>
#include <net/net_namespace.h>

#include "shim.h"

bool kd_copy_from(void *dst, size_t len, struct kd_iter *from)
{
	return copy_from_iter_full(dst, len, to_iter(from));
}

bool kd_copy_to(const void *src, size_t len, struct kd_iter *to)
{
	size_t copied = copy_to_iter(src, len, to_iter(to));

	if (copied == len)
		return true;
	iov_iter_revert(to_iter(to), copied);
	return false;
}

bool kd_user_read(void *dst, uint64_t addr, size_t len, bool may_fault)
{
	const void __user *from = u64_to_user_ptr(addr);
	unsigned long left;

	if ((uintptr_t)addr != addr)
		return false;
	if (may_fault)
		return !copy_from_user(dst, from, len);
	if (!access_ok(from, len))
		return false;
	pagefault_disable();
	left = __copy_from_user_inatomic(dst, from, len);
	pagefault_enable();
	return !left;
}

bool kd_user_write(uint64_t addr, const void *src, size_t len)
{
	return (uintptr_t)addr == addr && !copy_to_user(u64_to_user_ptr(addr), src, len);
}

uint32_t kd_net_inode(const struct kd_net *net)
{
	return to_net(net)->ns.inum;
}

bool kd_net_is_init(const struct kd_net *net)
{
	return net_eq(to_net(net), &init_net);
}

struct kd_net *kd_net_get(struct kd_net *net)
{
	return from_net(get_net(to_net(net)));
}

void kd_net_put(struct kd_net *net)
{
	put_net(to_net(net));
}
