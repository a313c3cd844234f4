// SPDX-License-Identifier: GPL-2.0-only
/*
 * Attributes against their policy, as __nla_validate_parse() of the kernel's
 * lib/nlattr.c does with NL_VALIDATE_STRICT, for the types that the shim uses.
 */
#include "kernel.h"

#define MAX_DEPTH	10

static int exact_length(u8 type)
{
	switch (type) {
	case NLA_U8:
		return sizeof(u8);
	case NLA_U16:
		return sizeof(u16);
	case NLA_U32:
		return sizeof(u32);
	case NLA_U64:
		return sizeof(u64);
	default:
		return 0;
	}
}

static int refuse(const struct nlattr *nla, const char *text, int err,
		  struct netlink_ext_ack *extack)
{
	NL_SET_ERR_MSG_ATTR(extack, nla, text);
	return err;
}

static int validate(const struct nlattr *nla, const struct nla_policy *policy,
		    struct netlink_ext_ack *extack, unsigned int depth)
{
	static const char failed[] = "Attribute failed policy validation";
	const struct nla_policy *pt = &policy[nla_type(nla)];
	int len = nla_len(nla);

	if (exact_length(pt->type) && len != exact_length(pt->type))
		return refuse(nla, "invalid attribute length", -EINVAL, extack);
	if (pt->type == NLA_NESTED && !(nla->nla_type & NLA_F_NESTED))
		return refuse(nla, "NLA_F_NESTED is missing", -EINVAL, extack);
	if (pt->type != NLA_NESTED && pt->type != NLA_UNSPEC && (nla->nla_type & NLA_F_NESTED))
		return refuse(nla, "NLA_F_NESTED not expected", -EINVAL, extack);
	switch (pt->type) {
	case NLA_FLAG:
		return len > 0 ? refuse(nla, failed, -ERANGE, extack) : 0;
	case NLA_NUL_STRING: {
		int room = pt->len && pt->len + 1 < len ? pt->len + 1 : len;

		if (!room || !memchr(nla_data(nla), '\0', room))
			return refuse(nla, failed, -EINVAL, extack);
		if (pt->len && ((char *)nla_data(nla))[len - 1] == '\0')
			len--;
		return pt->len && len > pt->len ? refuse(nla, failed, -ERANGE, extack) : 0;
	}
	case NLA_BINARY:
		return pt->len && len > pt->len ? refuse(nla, failed, -ERANGE, extack) : 0;
	case NLA_NESTED:
		if (!len)
			return 0;
		if (len < NLA_HDRLEN)
			return refuse(nla, failed, -ERANGE, extack);
		return pt->nested_policy ? kernel_nla_parse(NULL, pt->len, nla_data(nla), len,
							    pt->nested_policy, extack,
							    depth + 1) : 0;
	case NLA_UNSPEC:
		return refuse(nla, "Unsupported attribute", -EINVAL, extack);
	case NLA_U8:
	case NLA_U16:
	case NLA_U32:
	case NLA_U64:
		return 0;
	default: /* add it when the shim uses it */
		abort();
	}
}

int kernel_nla_parse(struct nlattr **tb, int maxtype, const struct nlattr *head, int len,
		     const struct nla_policy *policy, struct netlink_ext_ack *extack,
		     unsigned int depth)
{
	const struct nlattr *nla;
	int rem;

	if (depth >= MAX_DEPTH) {
		NL_SET_ERR_MSG(extack, "allowed policy recursion depth exceeded");
		return -EINVAL;
	}
	if (tb)
		memset(tb, 0, sizeof(*tb) * (maxtype + 1));
	nla_for_each_attr(nla, head, len, rem) {
		int type = nla_type(nla), err;

		if (type == 0 || type > maxtype)
			return refuse(nla, "Unknown attribute type", -EINVAL, extack);
		err = validate(nla, policy, extack, depth);
		if (err)
			return err;
		if (tb)
			tb[type] = (struct nlattr *)nla;
	}
	if (rem > 0) {
		NL_SET_ERR_MSG(extack, "bytes leftover after parsing attributes");
		return -EINVAL;
	}
	return 0;
}
