// SPDX-License-Identifier: GPL-2.0-only
/* The caller's memory, and network namespaces. */

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
