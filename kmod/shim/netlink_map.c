// SPDX-License-Identifier: GPL-2.0-only
/* Netlink for exports and mappings: requests and answers. */

#include <linux/netlink.h>
#include <linux/string.h>

#include "netlink.h"

const struct nla_policy kd_export_new_policy[KDIRECT_A_MAX + 1] = {
	[KDIRECT_A_NAME]		= { .type = NLA_NUL_STRING },
	[KDIRECT_A_LISTENER]		= { .type = NLA_NUL_STRING },
	[KDIRECT_A_SIZE]		= { .type = NLA_U64 },
	[KDIRECT_A_READ_ONLY]		= { .type = NLA_FLAG },
};

const struct nla_policy kd_map_new_policy[KDIRECT_A_MAX + 1] = {
	[KDIRECT_A_NAME]		= { .type = NLA_NUL_STRING },
	[KDIRECT_A_CHANNEL]		= { .type = NLA_NUL_STRING },
	[KDIRECT_A_EXPORT]		= { .type = NLA_NUL_STRING },
	[KDIRECT_A_READ_ONLY]		= { .type = NLA_FLAG },
};

/* --- requests ------------------------------------------------------------------------- */

static int kd_parse_export(struct genl_info *info, struct kd_export_params *out,
			   struct kd_error *error)
{
	int err;

	err = kd_parse_string(info, KDIRECT_A_NAME, out->name, sizeof(out->name), error);
	if (!err)
		err = kd_parse_string(info, KDIRECT_A_LISTENER, out->listener,
				      sizeof(out->listener), error);
	if (err)
		return err;
	if (!info->attrs[KDIRECT_A_SIZE])
		return kd_parse_missing(KDIRECT_A_SIZE, error);
	out->size = nla_get_u64(info->attrs[KDIRECT_A_SIZE]);
	out->read_only = info->attrs[KDIRECT_A_READ_ONLY];
	return 0;
}

static int kd_parse_map(struct genl_info *info, struct kd_map_params *out, struct kd_error *error)
{
	int err;

	err = kd_parse_string(info, KDIRECT_A_NAME, out->name, sizeof(out->name), error);
	if (!err)
		err = kd_parse_string(info, KDIRECT_A_CHANNEL, out->channel, sizeof(out->channel),
				      error);
	if (!err)
		err = kd_parse_string(info, KDIRECT_A_EXPORT, out->export_name,
				      sizeof(out->export_name), error);
	out->read_only = info->attrs[KDIRECT_A_READ_ONLY];
	return err;
}

int kd_nl_export_new(struct sk_buff *skb, struct genl_info *info)
{
	struct kd_export_params params = {};
	struct kd_error error = {};

	if (!kd_parse_export(info, &params, &error))
		kd_export_new(from_net(genl_info_net(info)), &params, &error);
	return kd_nl_end(skb, info, &error);
}

int kd_nl_export_del(struct sk_buff *skb, struct genl_info *info)
{
	char name[KD_NAME_MAX + 1];
	struct kd_error error = {};

	if (!kd_parse_string(info, KDIRECT_A_NAME, name, sizeof(name), &error))
		kd_export_del(from_net(genl_info_net(info)), name, &error);
	return kd_nl_end(skb, info, &error);
}

int kd_nl_map_new(struct sk_buff *skb, struct genl_info *info)
{
	struct kd_map_params params = {};
	struct kd_error error = {};

	if (!kd_parse_map(info, &params, &error))
		kd_map_new(from_net(genl_info_net(info)), &params, &error);
	return kd_nl_end(skb, info, &error);
}

int kd_nl_map_del(struct sk_buff *skb, struct genl_info *info)
{
	char name[KD_NAME_MAX + 1];
	struct kd_error error = {};

	if (!kd_parse_string(info, KDIRECT_A_NAME, name, sizeof(name), &error))
		kd_map_del(from_net(genl_info_net(info)), name, &error);
	return kd_nl_end(skb, info, &error);
}

/* --- answers -------------------------------------------------------------------------- */

int kd_fill_export(struct sk_buff *skb, const struct kd_export_info *info)
{
	const struct kd_export_params *params = &info->params;

	return nla_put_string(skb, KDIRECT_A_NAME, params->name) ||
	       nla_put_string(skb, KDIRECT_A_LISTENER, params->listener) ||
	       kd_put_u64(skb, KDIRECT_A_SIZE, params->size) ||
	       kd_put_flag(skb, KDIRECT_A_READ_ONLY, params->read_only) ||
	       nla_put_u32(skb, KDIRECT_A_MAPS, info->maps) ||
	       kd_put_flag(skb, KDIRECT_A_DELETING, info->deleting) ||
	       kd_put_u64(skb, KDIRECT_A_INSTANCE, info->instance) ||
	       nla_put_u32(skb, KDIRECT_A_NETNS, info->netns) ? -EMSGSIZE : 0;
}

int kd_fill_map(struct sk_buff *skb, const struct kd_map_info *info)
{
	const struct kd_map_params *params = &info->params;

	if (nla_put_string(skb, KDIRECT_A_NAME, params->name) ||
	    nla_put_string(skb, KDIRECT_A_CHANNEL, params->channel) ||
	    nla_put_string(skb, KDIRECT_A_EXPORT, params->export_name) ||
	    nla_put_u32(skb, KDIRECT_A_MAP_STATE, info->state) ||
	    kd_put_flag(skb, KDIRECT_A_READ_ONLY, params->read_only) ||
	    nla_put_u32(skb, KDIRECT_A_OPENS, info->opens) ||
	    kd_put_error(skb, &info->error) ||
	    nla_put_u32(skb, KDIRECT_A_NETNS, info->netns))
		return -EMSGSIZE;
	if (!info->keys)
		return 0;
	return kd_put_u64(skb, KDIRECT_A_SIZE, info->size) ||
	       kd_put_u64(skb, KDIRECT_A_INSTANCE, info->instance) ||
	       nla_put_u32(skb, KDIRECT_A_KEYS, info->keys) ||
	       nla_put_u32(skb, KDIRECT_A_KEY_BYTES, info->key_bytes) ? -EMSGSIZE : 0;
}
