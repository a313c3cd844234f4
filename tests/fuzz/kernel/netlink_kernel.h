/* SPDX-License-Identifier: GPL-2.0-only */
/* Netlink, as include/net/netlink.h and genetlink.h of the kernel have it. */
#ifndef KD_FUZZ_NETLINK_H
#define KD_FUZZ_NETLINK_H

#include <linux/genetlink.h>
#include <linux/netlink.h>

#undef GENL_HDRLEN
#define GENL_HDRLEN NLMSG_ALIGN(sizeof(struct genlmsghdr))
#undef NLA_HDRLEN
#define NLA_HDRLEN ((int)NLA_ALIGN(sizeof(struct nlattr)))

struct user_namespace {
	int unused;
};
/* the head of the simulation's: its number comes after its id */
struct net {
	u64 id;
	struct {
		unsigned int inum;
	} ns;
	struct user_namespace user_ns[];
};
struct sock {
	struct net *net;
};
/* [@data, @data + @len) of @size bytes */
struct sk_buff {
	u8 *data;
	u32 len, size;
	u32 portid;
	struct sock *sk;
};
struct netlink_skb_parms {
	u32 portid;
};
#define NETLINK_CB(skb) (*(struct netlink_skb_parms *)&(skb)->portid)

extern struct net *kernel_init_net;
#define init_net (*kernel_init_net)
static inline bool net_eq(const struct net *a, const struct net *b)
{
	return a == b;
}
static inline struct net *sock_net(const struct sock *sk)
{
	return sk->net;
}

struct netlink_ext_ack {
	const char *_msg;
	const struct nlattr *bad_attr;
};
#define NL_SET_ERR_MSG(extack, text) ((extack)->_msg = (text))
#define NL_SET_ERR_MSG_ATTR(extack, attr, text)                                                    \
	((extack)->_msg = (text), (extack)->bad_attr = (attr))

/* --- attributes --- */

enum {
	NLA_UNSPEC,
	NLA_U8,
	NLA_U16,
	NLA_U32,
	NLA_U64,
	NLA_STRING,
	NLA_FLAG,
	NLA_MSECS,
	NLA_NESTED,
	NLA_NESTED_ARRAY,
	NLA_NUL_STRING,
	NLA_BINARY,
};

struct nla_policy {
	u8 type;
	u16 len;
	const struct nla_policy *nested_policy;
};
#define NLA_POLICY_NESTED(policy)                                                                  \
	{                                                                                          \
		.type = NLA_NESTED, .len = ARRAY_SIZE(policy) - 1, .nested_policy = (policy)       \
	}

static inline int nla_type(const struct nlattr *nla)
{
	return nla->nla_type & NLA_TYPE_MASK;
}
static inline void *nla_data(const struct nlattr *nla)
{
	return (char *)nla + NLA_HDRLEN;
}
static inline int nla_len(const struct nlattr *nla)
{
	return nla->nla_len - NLA_HDRLEN;
}
static inline int nla_ok(const struct nlattr *nla, int rem)
{
	return rem >= (int)sizeof(*nla) && nla->nla_len >= sizeof(*nla) && nla->nla_len <= rem;
}

static inline struct nlattr *nla_next(const struct nlattr *nla, int *rem)
{
	unsigned int total = NLA_ALIGN(nla->nla_len);

	*rem -= total;
	return (struct nlattr *)((char *)nla + total);
}

#define nla_for_each_attr(pos, head, len, rem)                                                     \
	for (pos = (head), rem = (len); nla_ok(pos, rem); pos = nla_next(pos, &(rem)))

static inline u8 nla_get_u8(const struct nlattr *nla)
{
	return *(u8 *)nla_data(nla);
}
static inline u16 nla_get_u16(const struct nlattr *nla)
{
	return *(u16 *)nla_data(nla);
}
static inline u32 nla_get_u32(const struct nlattr *nla)
{
	return *(u32 *)nla_data(nla);
}
static inline u64 nla_get_u64(const struct nlattr *nla)
{
	u64 value;

	memcpy(&value, nla_data(nla), sizeof(value));
	return value;
}

/* strict, as generic netlink is for families that do not ask for less */
int kernel_nla_parse(struct nlattr **tb, int maxtype, const struct nlattr *head, int len,
		     const struct nla_policy *policy, struct netlink_ext_ack *extack,
		     unsigned int depth);
static inline int nla_parse_nested(struct nlattr **tb, int maxtype, const struct nlattr *nla,
				   const struct nla_policy *policy, struct netlink_ext_ack *extack)
{
	if (!(nla->nla_type & NLA_F_NESTED)) {
		NL_SET_ERR_MSG_ATTR(extack, nla, "NLA_F_NESTED is missing");
		return -EINVAL;
	}
	return kernel_nla_parse(tb, maxtype, (const struct nlattr *)nla_data(nla), nla_len(nla),
				policy, extack, 0);
}

/* 0 or -EMSGSIZE */
int nla_put(struct sk_buff *skb, int type, int len, const void *data);
static inline int nla_put_u8(struct sk_buff *skb, int type, u8 value)
{
	return nla_put(skb, type, sizeof(value), &value);
}

static inline int nla_put_u16(struct sk_buff *skb, int type, u16 value)
{
	return nla_put(skb, type, sizeof(value), &value);
}

static inline int nla_put_u32(struct sk_buff *skb, int type, u32 value)
{
	return nla_put(skb, type, sizeof(value), &value);
}

static inline int nla_put_u64_64bit(struct sk_buff *skb, int type, u64 value, int pad)
{
	return nla_put(skb, type, sizeof(value), &value);
}

static inline int nla_put_string(struct sk_buff *skb, int type, const char *text)
{
	return nla_put(skb, type, strlen(text) + 1, text);
}

static inline int nla_put_flag(struct sk_buff *skb, int type)
{
	return nla_put(skb, type, 0, NULL);
}

struct nlattr *nla_nest_start(struct sk_buff *skb, int type);
void nla_nest_end(struct sk_buff *skb, struct nlattr *nest);

/* --- messages --- */

static inline struct nlmsghdr *nlmsg_hdr(const struct sk_buff *skb)
{
	return (struct nlmsghdr *)skb->data;
}

static inline void *nlmsg_data(const struct nlmsghdr *nlh)
{
	return (char *)nlh + NLMSG_HDRLEN;
}

static inline int nlmsg_attrlen(const struct nlmsghdr *nlh, int hdrlen)
{
	return nlh->nlmsg_len - NLMSG_HDRLEN - NLMSG_ALIGN(hdrlen);
}

#define nlmsg_for_each_attr(pos, nlh, hdrlen, rem)                                                 \
	nla_for_each_attr(pos, (struct nlattr *)((char *)nlmsg_data(nlh) + NLMSG_ALIGN(hdrlen)),   \
			  nlmsg_attrlen(nlh, hdrlen), rem)

struct genl_family;
struct netlink_callback {
	struct sk_buff *skb;
	const struct nlmsghdr *nlh;
	struct netlink_ext_ack *extack;
	u32 min_dump_alloc;
	u8 ctx[48] __attribute__((aligned(8)));
};

struct genl_info {
	u32 snd_seq, snd_portid;
	struct nlmsghdr *nlhdr;
	struct genlmsghdr *genlhdr;
	struct nlattr **attrs;
	struct net *net;
	struct netlink_ext_ack *extack;
};
static inline struct net *genl_info_net(const struct genl_info *info)
{
	return info->net;
}

#define genl_split_ops genl_ops
struct genl_ops {
	int (*doit)(struct sk_buff *skb, struct genl_info *info);
	int (*start)(struct netlink_callback *cb);
	int (*dumpit)(struct sk_buff *skb, struct netlink_callback *cb);
	const struct nla_policy *policy;
	unsigned int maxattr;
	u8 cmd, internal_flags;
};
struct genl_multicast_group {
	char name[16];
};
struct genl_family {
	char name[16];
	unsigned int version;
	bool netnsok, parallel_ops;
	void *module;
	const struct genl_ops *ops;
	unsigned int n_ops;
	const struct genl_multicast_group *mcgrps;
	unsigned int n_mcgrps;
	int (*pre_doit)(const struct genl_ops *ops, struct sk_buff *skb, struct genl_info *info);
	void (*post_doit)(const struct genl_ops *ops, struct sk_buff *skb, struct genl_info *info);
};

int genl_register_family(struct genl_family *family);
int genl_unregister_family(struct genl_family *family);
int genl_has_listeners(const struct genl_family *family, struct net *net, unsigned int group);
int genlmsg_multicast_netns(const struct genl_family *family, struct net *net, struct sk_buff *skb,
			    u32 portid, unsigned int group, gfp_t flags);
int genlmsg_reply(struct sk_buff *skb, struct genl_info *info);
struct sk_buff *genlmsg_new(size_t payload, gfp_t flags);
void nlmsg_free(struct sk_buff *skb);
void *genlmsg_put(struct sk_buff *skb, u32 portid, u32 seq, const struct genl_family *family,
		  int flags, u8 cmd);
void genlmsg_end(struct sk_buff *skb, void *head);
void genlmsg_cancel(struct sk_buff *skb, void *head);
void netlink_ack(struct sk_buff *in, struct nlmsghdr *nlh, int err,
		 const struct netlink_ext_ack *extack);

#define CAP_NET_ADMIN 12
bool netlink_ns_capable(const struct sk_buff *skb, struct user_namespace *ns, int cap);
bool netlink_capable(const struct sk_buff *skb, int cap);

#define NETLINK_URELEASE 1
#define NOTIFY_DONE 0
struct netlink_notify {
	struct net *net;
	u32 portid;
	int protocol;
};
struct notifier_block {
	int (*notifier_call)(struct notifier_block *nb, unsigned long state, void *data);
};
int netlink_register_notifier(struct notifier_block *nb);
int netlink_unregister_notifier(struct notifier_block *nb);

#endif
