/* SPDX-License-Identifier: GPL-2.0-only */
/* netlink.h - what the netlink files share */
#ifndef KDIRECT_SHIM_NETLINK_H
#define KDIRECT_SHIM_NETLINK_H

#include <linux/printk.h>
#include <net/genetlink.h>

#include "kdirect_netlink.h"

#include "shim.h"

/* --- netlink.c ---------------------------------------------------------------------------- */

extern struct genl_family kd_genl_family;

/* acknowledges a failed request with its text; what the handler returns */
int kd_nl_end(struct sk_buff *skb, struct genl_info *info, const struct kd_error *error);

/* --- netlink_get.c -------------------------------------------------------------------------- */

int kd_nl_get_doit(struct sk_buff *skb, struct genl_info *info);
int kd_nl_dump_start(struct netlink_callback *cb);
int kd_nl_dumpit(struct sk_buff *skb, struct netlink_callback *cb);

/* --- netlink_map.c: exports and mappings ---------------------------------------------------- */

extern const struct nla_policy kd_export_new_policy[KDIRECT_A_MAX + 1];
extern const struct nla_policy kd_map_new_policy[KDIRECT_A_MAX + 1];

int kd_nl_export_new(struct sk_buff *skb, struct genl_info *info);
int kd_nl_export_del(struct sk_buff *skb, struct genl_info *info);
int kd_nl_map_new(struct sk_buff *skb, struct genl_info *info);
int kd_nl_map_del(struct sk_buff *skb, struct genl_info *info);
int kd_fill_export(struct sk_buff *skb, const struct kd_export_info *info);
int kd_fill_map(struct sk_buff *skb, const struct kd_map_info *info);

/* --- netlink_parse.c: requests ---------------------------------------------------------- */

extern const struct nla_policy kd_device_policy[KDIRECT_A_MAX + 1];
extern const struct nla_policy kd_name_policy[KDIRECT_A_MAX + 1];
extern const struct nla_policy kd_listener_new_policy[KDIRECT_A_MAX + 1];
extern const struct nla_policy kd_listener_set_policy[KDIRECT_A_MAX + 1];
extern const struct nla_policy kd_channel_new_policy[KDIRECT_A_MAX + 1];
extern const struct nla_policy kd_channel_set_policy[KDIRECT_A_MAX + 1];

/* Each returns error->err, which is 0 or KD_*. */
int kd_fail(struct kd_error *error, int err, u16 attr, const char *fmt, ...) __printf(4, 5);
int kd_parse_no_duplicates(struct genl_info *info, struct kd_error *error);
int kd_parse_missing(u16 attr, struct kd_error *error);
int kd_parse_string(struct genl_info *info, u16 attr, char *out, size_t size,
		    struct kd_error *error);
int kd_parse_listener(struct genl_info *info, bool new, struct kd_listener_params *out,
		      struct kd_error *error);
int kd_parse_channel(struct genl_info *info, bool new, struct kd_channel_params *out,
		     struct kd_error *error);
u64 kd_netlink_owner(const struct net *net, u32 portid);

/* --- netlink_fill.c: answers; 0 or -EMSGSIZE -------------------------------------------- */

int kd_put_u64(struct sk_buff *skb, u16 attr, u64 value);
int kd_put_flag(struct sk_buff *skb, u16 attr, bool set);
int kd_put_error(struct sk_buff *skb, const struct kd_error *error);
int kd_fill_device(struct sk_buff *skb, const struct kd_device_info *info);
int kd_fill_listener(struct sk_buff *skb, const struct kd_listener_info *info);
int kd_fill_channel(struct sk_buff *skb, const struct kd_channel_info *info);
int kd_fill_stats(struct sk_buff *skb, const char *name, const struct kd_channel_stats *stats,
		  const struct kd_queue_stats *queues, u32 nr_queues);
int kd_fill_event(struct sk_buff *skb, const struct kd_event *event);

#endif /* KDIRECT_SHIM_NETLINK_H */
