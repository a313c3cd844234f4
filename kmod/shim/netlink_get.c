// SPDX-License-Identifier: GPL-2.0-only
/* Netlink GET: one object by name, or a dump of all. */

#include <linux/netlink.h>
#include <linux/sizes.h>
#include <linux/slab.h>
#include <linux/string.h>

#include "netlink.h"

/* One object, with up to KD_MAX_QUEUES queues of some 160 bytes each. */
#define KD_NL_REPLY_SIZE	(SZ_16K - SZ_1K)

struct kd_nl_stats {
	struct kd_channel_stats	channel;
	u32			nr_queues;
	struct kd_queue_stats	queues[KD_MAX_QUEUES];
};

/* What a GET reads, and room for the name of what to read. */
struct kd_nl_object {
	char				name[64];
	union {
		struct kd_device_info	device;
		struct kd_listener_info	listener;
		struct kd_channel_info	channel;
		struct kd_export_info	export;
		struct kd_map_info	map;
	};
	struct kd_nl_stats		stats;
};

/*
 * struct kd_nl_get - one kind of object that can be read
 * @attr: what names it
 * @read: by name
 * @next: by position
 * @fill: writes it
 */
struct kd_nl_get {
	u16	attr;
	size_t	name_size;
	int	(*read)(struct kd_net *net, struct kd_nl_object *object);
	int	(*next)(struct kd_net *net, u64 *cursor, struct kd_nl_object *object);
	int	(*fill)(struct sk_buff *skb, const struct kd_nl_object *object);
};

static int kd_nl_read_device(struct kd_net *net, struct kd_nl_object *object)
{
	return kd_device_info(object->name, &object->device);
}

static int kd_nl_next_device(struct kd_net *net, u64 *cursor, struct kd_nl_object *object)
{
	return kd_device_next(cursor, &object->device);
}

static int kd_nl_fill_device(struct sk_buff *skb, const struct kd_nl_object *object)
{
	return kd_fill_device(skb, &object->device);
}

static int kd_nl_read_listener(struct kd_net *net, struct kd_nl_object *object)
{
	return kd_listener_info(net, object->name, &object->listener);
}

static int kd_nl_next_listener(struct kd_net *net, u64 *cursor, struct kd_nl_object *object)
{
	return kd_listener_next(net, cursor, &object->listener);
}

static int kd_nl_fill_listener(struct sk_buff *skb, const struct kd_nl_object *object)
{
	return kd_fill_listener(skb, &object->listener);
}

static int kd_nl_read_channel(struct kd_net *net, struct kd_nl_object *object)
{
	return kd_channel_info(net, object->name, &object->channel);
}

static int kd_nl_next_channel(struct kd_net *net, u64 *cursor, struct kd_nl_object *object)
{
	return kd_channel_next(net, cursor, &object->channel);
}

static int kd_nl_fill_channel(struct sk_buff *skb, const struct kd_nl_object *object)
{
	return kd_fill_channel(skb, &object->channel);
}

static int kd_nl_read_export(struct kd_net *net, struct kd_nl_object *object)
{
	return kd_export_info(net, object->name, &object->export);
}

static int kd_nl_next_export(struct kd_net *net, u64 *cursor, struct kd_nl_object *object)
{
	return kd_export_next(net, cursor, &object->export);
}

static int kd_nl_fill_export(struct sk_buff *skb, const struct kd_nl_object *object)
{
	return kd_fill_export(skb, &object->export);
}

static int kd_nl_read_map(struct kd_net *net, struct kd_nl_object *object)
{
	return kd_map_info(net, object->name, &object->map);
}

static int kd_nl_next_map(struct kd_net *net, u64 *cursor, struct kd_nl_object *object)
{
	return kd_map_next(net, cursor, &object->map);
}

static int kd_nl_fill_map(struct sk_buff *skb, const struct kd_nl_object *object)
{
	return kd_fill_map(skb, &object->map);
}

static int kd_nl_read_stats(struct kd_net *net, struct kd_nl_object *object)
{
	struct kd_nl_stats *stats = &object->stats;

	return kd_channel_stats(net, object->name, &stats->channel, stats->queues,
				&stats->nr_queues);
}

/* A channel may be gone before its counters are read: then the next one is it. */
static int kd_nl_next_stats(struct kd_net *net, u64 *cursor, struct kd_nl_object *object)
{
	int err;

	while (!(err = kd_channel_next(net, cursor, &object->channel))) {
		strscpy(object->name, object->channel.params.name, sizeof(object->name));
		if (!kd_nl_read_stats(net, object))
			return 0;
	}
	return err;
}

static int kd_nl_fill_stats(struct sk_buff *skb, const struct kd_nl_object *object)
{
	const struct kd_nl_stats *stats = &object->stats;

	return kd_fill_stats(skb, object->name, &stats->channel, stats->queues, stats->nr_queues);
}

static const struct kd_nl_get *kd_nl_get(u8 cmd)
{
	static const struct kd_nl_get device = {
		KDIRECT_A_DEV_NAME, sizeof_field(struct kd_device_attr, name),
		kd_nl_read_device, kd_nl_next_device, kd_nl_fill_device,
	};
	static const struct kd_nl_get listener = {
		KDIRECT_A_NAME, KD_NAME_MAX + 1,
		kd_nl_read_listener, kd_nl_next_listener, kd_nl_fill_listener,
	};
	static const struct kd_nl_get channel = {
		KDIRECT_A_NAME, KD_NAME_MAX + 1,
		kd_nl_read_channel, kd_nl_next_channel, kd_nl_fill_channel,
	};
	static const struct kd_nl_get stats = {
		KDIRECT_A_NAME, KD_NAME_MAX + 1,
		kd_nl_read_stats, kd_nl_next_stats, kd_nl_fill_stats,
	};

	static const struct kd_nl_get export = {
		KDIRECT_A_NAME, KD_NAME_MAX + 1,
		kd_nl_read_export, kd_nl_next_export, kd_nl_fill_export,
	};
	static const struct kd_nl_get map = {
		KDIRECT_A_NAME, KD_NAME_MAX + 1,
		kd_nl_read_map, kd_nl_next_map, kd_nl_fill_map,
	};

	switch (cmd) {
	case KDIRECT_CMD_EXPORT_GET:
		return &export;
	case KDIRECT_CMD_MAP_GET:
		return &map;
	case KDIRECT_CMD_DEVICE_GET:
		return &device;
	case KDIRECT_CMD_LISTENER_GET:
		return &listener;
	case KDIRECT_CMD_CHANNEL_GET:
		return &channel;
	default:
		return &stats;
	}
}

static int kd_nl_put_object(struct sk_buff *skb, const struct kd_nl_get *get, u32 portid, u32 seq,
			    int flags, u8 cmd, const struct kd_nl_object *object)
{
	void *head = genlmsg_put(skb, portid, seq, &kd_genl_family, flags, cmd);

	if (!head)
		return -EMSGSIZE;
	if (get->fill(skb, object)) {
		genlmsg_cancel(skb, head);
		return -EMSGSIZE;
	}
	genlmsg_end(skb, head);
	return 0;
}

static int kd_nl_reply(struct genl_info *info, const struct kd_nl_get *get,
		       const struct kd_nl_object *object)
{
	struct sk_buff *skb = genlmsg_new(KD_NL_REPLY_SIZE, GFP_KERNEL);
	int ret;

	if (!skb)
		return -ENOMEM;
	ret = kd_nl_put_object(skb, get, info->snd_portid, info->snd_seq, 0, info->genlhdr->cmd,
			       object);
	if (ret) {
		nlmsg_free(skb);
		return ret;
	}
	return genlmsg_reply(skb, info);
}

int kd_nl_get_doit(struct sk_buff *skb, struct genl_info *info)
{
	const struct kd_nl_get *get = kd_nl_get(info->genlhdr->cmd);
	struct kd_error error = {};
	struct kd_nl_object *object;
	int ret = 0;

	object = kzalloc(sizeof(*object), GFP_KERNEL);
	if (!object)
		return -ENOMEM;
	if (!kd_parse_string(info, get->attr, object->name, get->name_size, &error)) {
		int err = get->read(from_net(genl_info_net(info)), object);

		if (err)
			kd_fail(&error, err, get->attr, "%s: there is none of this name",
				get->attr == KDIRECT_A_DEV_NAME ? "dev-name" : "name");
		else
			ret = kd_nl_reply(info, get, object);
	}
	kfree(object);
	return error.err ? kd_nl_end(skb, info, &error) : ret;
}

struct kd_nl_dump {
	u64	cursor;
};

int kd_nl_dump_start(struct netlink_callback *cb)
{
	static_assert(sizeof(struct kd_nl_dump) <= sizeof(cb->ctx));

	if (nlmsg_attrlen(cb->nlh, GENL_HDRLEN)) {
		NL_SET_ERR_MSG(cb->extack, "a dump takes no attributes");
		return -EINVAL;
	}
	/* one object must fit, whatever the reader asked for before */
	cb->min_dump_alloc = KD_NL_REPLY_SIZE;
	return 0;
}

int kd_nl_dumpit(struct sk_buff *skb, struct netlink_callback *cb)
{
	u8 cmd = ((struct genlmsghdr *)nlmsg_data(cb->nlh))->cmd;
	struct kd_net *net = from_net(sock_net(skb->sk));
	struct kd_nl_dump *dump = (void *)cb->ctx;
	const struct kd_nl_get *get = kd_nl_get(cmd);
	struct kd_nl_object *object;
	u64 cursor = dump->cursor;

	object = kzalloc(sizeof(*object), GFP_KERNEL);
	if (!object)
		return -ENOMEM;
	/* what does not fit is read again for the next message */
	while (!get->next(net, &cursor, object) &&
	       !kd_nl_put_object(skb, get, NETLINK_CB(cb->skb).portid, cb->nlh->nlmsg_seq,
				 NLM_F_MULTI, cmd, object))
		dump->cursor = cursor;
	kfree(object);
	return skb->len;
}
