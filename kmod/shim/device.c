// SPDX-License-Identifier: GPL-2.0-only
/* RDMA devices that come and go. */

#include <linux/sizes.h>
#include <linux/slab.h>
#include <linux/string.h>
#include <rdma/ib_verbs.h>

#include "kdirect_netlink.h"

#include "shim.h"

static u32 kd_transport(struct ib_device *dev, u32 port)
{
	if (rdma_protocol_iwarp(dev, port))
		return KDIRECT_TRANSPORT_IWARP;
	if (rdma_protocol_roce(dev, port))
		return KDIRECT_TRANSPORT_ROCE;
	return KDIRECT_TRANSPORT_IB;
}

/* NULL if kdirect can use the device, otherwise what it lacks. */
static const char *kd_device_lacks(struct ib_device *dev)
{
	u32 port = rdma_start_port(dev);

	if (!rdma_cap_ib_cm(dev, port) && !rdma_cap_iw_cm(dev, port))
		return "a connection manager";
	if (!(dev->attrs.device_cap_flags & IB_DEVICE_MEM_MGT_EXTENSIONS))
		return "memory management extensions (fast registration)";
	if (!dev->attrs.max_fast_reg_page_list_len)
		return "pages in a fast registration";
	if (dev->attrs.max_send_sge < 1 || dev->attrs.max_recv_sge < 1 || dev->attrs.max_sge_rd < 1)
		return "scatter-gather entries";
	return NULL;
}

/* The ports of a device are alike. One that cannot be asked allows what all do. */
static u32 kd_device_max_length(struct ib_device *dev)
{
	struct ib_port_attr attr;

	if (ib_query_port(dev, rdma_start_port(dev), &attr) || !attr.max_msg_sz)
		return SZ_1M;
	return attr.max_msg_sz;
}

static void kd_device_describe(struct ib_device *dev, struct kd_device_attr *attr)
{
	const struct ib_device_attr *a = &dev->attrs;

	strscpy(attr->name, dev_name(&dev->dev), sizeof(attr->name));
	attr->index = dev->index;
	attr->node_guid = be64_to_cpu(dev->node_guid);
	attr->transport = kd_transport(dev, rdma_start_port(dev));
	attr->ports = rdma_end_port(dev) - rdma_start_port(dev) + 1;
	attr->max_qp_wr = a->max_qp_wr;
	attr->max_cqe = a->max_cqe;
	attr->max_send_sge = a->max_send_sge;
	attr->max_recv_sge = a->max_recv_sge;
	attr->max_read_sge = min(a->max_sge_rd, a->max_send_sge);
	attr->max_mr_pages = a->max_fast_reg_page_list_len;
	attr->max_rd_atom = a->max_qp_rd_atom;
	attr->max_init_rd_atom = a->max_qp_init_rd_atom;
	attr->max_length = kd_device_max_length(dev);
	attr->atomics = a->atomic_cap != IB_ATOMIC_NONE;
	attr->moderation = dev->ops.modify_cq && !dev->use_cq_dim;
}

static int kd_device_added(struct ib_device *dev)
{
	struct kd_device_attr attr = {};
	struct kd_device *device;
	const char *lacks;

	lacks = kd_device_lacks(dev);
	if (lacks) {
		kd_log(KD_LOG_INFO, "%s is not used: it lacks %s", dev_name(&dev->dev), lacks);
		return -EOPNOTSUPP;
	}
	kd_device_describe(dev, &attr);
	attr.ib = kzalloc(sizeof(*attr.ib), GFP_KERNEL);
	if (!attr.ib)
		return -ENOMEM;
	attr.ib->ib = dev;
	device = kd_device_add(&attr);
	if (!device) {
		kfree(attr.ib);
		return -ENOMEM;
	}
	/* from now on kd_cm_device() finds it */
	ib_set_client_data(dev, &kd_ib_client, device);
	return 0;
}

static void kd_device_removed(struct ib_device *dev, void *client_data)
{
	struct kd_device *device = client_data;
	struct kd_ib_device *ib;

	if (!device)
		return;
	ib = kd_device_attr(device)->ib;
	/*
	 * Who looks it up from now on finds nothing; who found it before has counted
	 * itself as a user, since kd_device_remove() takes the lock that was held.
	 */
	ib_set_client_data(dev, &kd_ib_client, NULL);
	kd_device_remove(device);
	kfree(ib);
}

struct ib_client kd_ib_client = {
	.name	= KBUILD_MODNAME,
	.add	= kd_device_added,
	.remove	= kd_device_removed,
};

int kd_devices_init(void)
{
	return ib_register_client(&kd_ib_client);
}

void kd_devices_exit(void)
{
	ib_unregister_client(&kd_ib_client);
}
