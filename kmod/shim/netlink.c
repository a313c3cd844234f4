// SPDX-License-Identifier: GPL-2.0-only
/*
 * The generic netlink family: who may ask, changes, and events.
 *
 * Requests run in parallel. Nothing here waits for a peer.
 */

#include <linux/netlink.h>
#include <linux/notifier.h>
#include <linux/rwsem.h>
#include <linux/sizes.h>
#include <linux/slab.h>
#include <net/netlink.h>

#include "netlink.h"

/* genl_ops.internal_flags */
#define KD_NL_ADMIN	BIT(0)	/* CAP_NET_ADMIN in the socket's network namespace */
#define KD_NL_HOST	BIT(1)	/* and in the initial user namespace: creates nodes */

#define KD_NL_EVENT_SIZE	SZ_1K

/* Requests hold it for reading; closed for writing before the module stops. */
static DECLARE_RWSEM(kd_nl_gate);
static bool kd_nl_open;

/* --- requests ------------------------------------------------------------------------ */

/*
 * Ends a request. A text that is made for the occasion must live until the
 * acknowledgment is built, which is after the handler returned. So it is built
 * here; -EINTR tells netlink_rcv_skb() that this was done.
 */
int kd_nl_end(struct sk_buff *skb, struct genl_info *info, const struct kd_error *error)
{
	struct netlink_ext_ack *extack = info->extack;

	if (!error->err)
		return 0;
	if (!error->text[0])
		return kd_to_errno(error->err);
	extack->_msg = error->text;
	if (error->attr && error->attr <= KDIRECT_A_MAX)
		extack->bad_attr = info->attrs[error->attr];
	netlink_ack(skb, nlmsg_hdr(skb), kd_to_errno(error->err), extack);
	extack->_msg = NULL;
	return -EINTR;
}

static int kd_nl_permitted(struct sk_buff *skb, struct genl_info *info, u8 flags)
{
	if ((flags & KD_NL_ADMIN) &&
	    !netlink_ns_capable(skb, genl_info_net(info)->user_ns, CAP_NET_ADMIN)) {
		NL_SET_ERR_MSG(info->extack, "CAP_NET_ADMIN in the network namespace is needed");
		return -EPERM;
	}
	if ((flags & KD_NL_HOST) && !netlink_capable(skb, CAP_NET_ADMIN)) {
		NL_SET_ERR_MSG(info->extack,
			       "CAP_NET_ADMIN in the initial user namespace is needed: this creates device nodes or exports");
		return -EPERM;
	}
	return 0;
}

static int kd_nl_pre_doit(const struct kd_genl_doit_ops *ops, struct sk_buff *skb,
			  struct genl_info *info)
{
	struct kd_error error = {};
	int ret;

	ret = kd_nl_permitted(skb, info, ops->internal_flags);
	if (ret)
		return ret;
	if (kd_parse_no_duplicates(info, &error))
		return kd_nl_end(skb, info, &error);
	down_read(&kd_nl_gate);
	if (!kd_nl_open) {
		up_read(&kd_nl_gate);
		NL_SET_ERR_MSG(info->extack, "the module is being unloaded");
		return -ENODEV;
	}
	return 0;
}

static void kd_nl_post_doit(const struct kd_genl_doit_ops *ops, struct sk_buff *skb,
			    struct genl_info *info)
{
	up_read(&kd_nl_gate);
}

static int kd_nl_set_listener(struct sk_buff *skb, struct genl_info *info, bool new)
{
	struct kd_net *net = from_net(genl_info_net(info));
	struct kd_listener_params *params;
	struct kd_error error = {};

	params = kzalloc(sizeof(*params), GFP_KERNEL);
	if (!params)
		return -ENOMEM;
	if (!kd_parse_listener(info, new, params, &error)) {
		if (new)
			kd_listener_new(net, params, &error);
		else
			kd_listener_set(net, params, &error);
	}
	kfree(params);
	return kd_nl_end(skb, info, &error);
}

static int kd_nl_listener_new(struct sk_buff *skb, struct genl_info *info)
{
	return kd_nl_set_listener(skb, info, true);
}

static int kd_nl_listener_set(struct sk_buff *skb, struct genl_info *info)
{
	return kd_nl_set_listener(skb, info, false);
}

static int kd_nl_listener_del(struct sk_buff *skb, struct genl_info *info)
{
	char name[KD_NAME_MAX + 1];
	struct kd_error error = {};

	if (!kd_parse_string(info, KDIRECT_A_NAME, name, sizeof(name), &error))
		kd_listener_del(from_net(genl_info_net(info)), name, &error);
	return kd_nl_end(skb, info, &error);
}

static int kd_nl_channel_new(struct sk_buff *skb, struct genl_info *info)
{
	struct kd_channel_params params = {};
	struct kd_error error = {};

	if (!kd_parse_channel(info, true, &params, &error))
		kd_channel_new(from_net(genl_info_net(info)), &params, &error);
	return kd_nl_end(skb, info, &error);
}

static int kd_nl_channel_set(struct sk_buff *skb, struct genl_info *info)
{
	struct kd_channel_params params = {};
	struct kd_error error = {};

	if (!kd_parse_channel(info, false, &params, &error))
		kd_channel_set(from_net(genl_info_net(info)), &params, &error);
	return kd_nl_end(skb, info, &error);
}

static int kd_nl_channel_del(struct sk_buff *skb, struct genl_info *info)
{
	char name[KD_NAME_MAX + 1];
	struct kd_error error = {};

	if (!kd_parse_string(info, KDIRECT_A_NAME, name, sizeof(name), &error))
		kd_channel_del(from_net(genl_info_net(info)), name, &error);
	return kd_nl_end(skb, info, &error);
}

/* --- events ---------------------------------------------------------------------------- */

static void kd_nl_multicast(struct net *net, const struct kd_event *event)
{
	struct sk_buff *skb;
	void *head;

	if (!genl_has_listeners(&kd_genl_family, net, 0))
		return;
	skb = genlmsg_new(KD_NL_EVENT_SIZE, GFP_KERNEL);
	if (!skb)
		return;
	head = genlmsg_put(skb, 0, 0, &kd_genl_family, 0, KDIRECT_CMD_EVENT);
	if (!head || kd_fill_event(skb, event)) {
		nlmsg_free(skb);
		return;
	}
	genlmsg_end(skb, head);
	genlmsg_multicast_netns(&kd_genl_family, net, skb, 0, 0, GFP_KERNEL);
}

/* The initial namespace sees everything; devices belong to it. */
void kd_event_publish(const struct kd_event *event)
{
	kd_nl_multicast(&init_net, event);
	if (event->net && !kd_net_is_init(event->net))
		kd_nl_multicast(to_net(event->net), event);
}

/* --- sockets that own channels ----------------------------------------------------------- */

u64 kd_netlink_owner(const struct net *net, u32 portid)
{
	return (u64)net->ns.inum << 32 | portid;
}

static int kd_nl_notify(struct notifier_block *nb, unsigned long state, void *data)
{
	const struct netlink_notify *notify = data;

	if (state == NETLINK_URELEASE && notify->protocol == NETLINK_GENERIC)
		kd_owner_gone(kd_netlink_owner(notify->net, notify->portid));
	return NOTIFY_DONE;
}

static struct notifier_block kd_nl_notifier = {
	.notifier_call = kd_nl_notify,
};

/* --- family ------------------------------------------------------------------------------ */

#define KD_NL_CHANGE(_cmd, _doit, _policy, _flags)	\
	{						\
		.cmd		= (_cmd),		\
		.doit		= (_doit),		\
		.policy		= (_policy),		\
		.maxattr	= KDIRECT_A_MAX,	\
		.internal_flags	= (_flags),		\
	}

#define KD_NL_GET(_cmd, _policy)			\
	{						\
		.cmd		= (_cmd),		\
		.doit		= kd_nl_get_doit,	\
		.start		= kd_nl_dump_start,	\
		.dumpit		= kd_nl_dumpit,		\
		.policy		= (_policy),		\
		.maxattr	= KDIRECT_A_MAX,	\
	}

static const struct genl_ops kd_genl_ops[] = {
	KD_NL_GET(KDIRECT_CMD_DEVICE_GET, kd_device_policy),
	KD_NL_CHANGE(KDIRECT_CMD_LISTENER_NEW, kd_nl_listener_new, kd_listener_new_policy,
		     KD_NL_ADMIN | KD_NL_HOST),
	KD_NL_CHANGE(KDIRECT_CMD_LISTENER_SET, kd_nl_listener_set, kd_listener_set_policy,
		     KD_NL_ADMIN),
	KD_NL_CHANGE(KDIRECT_CMD_LISTENER_DEL, kd_nl_listener_del, kd_name_policy, KD_NL_ADMIN),
	KD_NL_GET(KDIRECT_CMD_LISTENER_GET, kd_name_policy),
	KD_NL_CHANGE(KDIRECT_CMD_CHANNEL_NEW, kd_nl_channel_new, kd_channel_new_policy,
		     KD_NL_ADMIN | KD_NL_HOST),
	KD_NL_CHANGE(KDIRECT_CMD_CHANNEL_SET, kd_nl_channel_set, kd_channel_set_policy,
		     KD_NL_ADMIN),
	KD_NL_CHANGE(KDIRECT_CMD_CHANNEL_DEL, kd_nl_channel_del, kd_name_policy, KD_NL_ADMIN),
	KD_NL_GET(KDIRECT_CMD_CHANNEL_GET, kd_name_policy),
	KD_NL_GET(KDIRECT_CMD_STATS_GET, kd_name_policy),
	KD_NL_CHANGE(KDIRECT_CMD_EXPORT_NEW, kd_nl_export_new, kd_export_new_policy,
		     KD_NL_ADMIN | KD_NL_HOST),
	KD_NL_CHANGE(KDIRECT_CMD_EXPORT_DEL, kd_nl_export_del, kd_name_policy, KD_NL_ADMIN),
	KD_NL_GET(KDIRECT_CMD_EXPORT_GET, kd_name_policy),
	KD_NL_CHANGE(KDIRECT_CMD_MAP_NEW, kd_nl_map_new, kd_map_new_policy,
		     KD_NL_ADMIN | KD_NL_HOST),
	KD_NL_CHANGE(KDIRECT_CMD_MAP_DEL, kd_nl_map_del, kd_name_policy, KD_NL_ADMIN),
	KD_NL_GET(KDIRECT_CMD_MAP_GET, kd_name_policy),
};

static const struct genl_multicast_group kd_genl_groups[] = {
	{ .name = KDIRECT_GENL_EVENTS },
};

struct genl_family kd_genl_family __ro_after_init = {
	.name		= KDIRECT_GENL_NAME,
	.version	= KDIRECT_GENL_VERSION,
	.netnsok	= true,
	.parallel_ops	= true,
	.module		= THIS_MODULE,
	.ops		= kd_genl_ops,
	.n_ops		= ARRAY_SIZE(kd_genl_ops),
	.mcgrps		= kd_genl_groups,
	.n_mcgrps	= ARRAY_SIZE(kd_genl_groups),
	.pre_doit	= kd_nl_pre_doit,
	.post_doit	= kd_nl_post_doit,
};

int kd_netlink_init(void)
{
	int ret;

	ret = netlink_register_notifier(&kd_nl_notifier);
	if (ret)
		return ret;
	kd_nl_open = true;
	ret = genl_register_family(&kd_genl_family);
	if (ret)
		netlink_unregister_notifier(&kd_nl_notifier);
	return ret;
}

/*
 * No request runs or begins after this; events still go out. Dumps hold a
 * reference to the module: there are none.
 */
void kd_netlink_close(void)
{
	netlink_unregister_notifier(&kd_nl_notifier);
	down_write(&kd_nl_gate);
	kd_nl_open = false;
	up_write(&kd_nl_gate);
}

void kd_netlink_exit(void)
{
	genl_unregister_family(&kd_genl_family);
}
