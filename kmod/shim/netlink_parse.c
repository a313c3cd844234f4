// SPDX-License-Identifier: GPL-2.0-only
/*
 * Netlink requests: from attributes to the core's parameters.
 *
 * The policies check types only. Lengths and ranges are checked where a text can
 * be given that names the attribute and its limit: here, and in the core.
 */

#include <linux/bitmap.h>
#include <linux/stdarg.h>
#include <linux/string.h>

#include "netlink.h"

static const struct nla_policy kd_prefix_policy[KDIRECT_A_PREFIX_LEN + 1] = {
	[KDIRECT_A_PREFIX_ADDR]		= { .type = NLA_BINARY },
	[KDIRECT_A_PREFIX_LEN]		= { .type = NLA_U8 },
};

const struct nla_policy kd_device_policy[KDIRECT_A_MAX + 1] = {
	[KDIRECT_A_DEV_NAME]		= { .type = NLA_NUL_STRING },
};

const struct nla_policy kd_name_policy[KDIRECT_A_MAX + 1] = {
	[KDIRECT_A_NAME]		= { .type = NLA_NUL_STRING },
};

const struct nla_policy kd_listener_new_policy[KDIRECT_A_MAX + 1] = {
	[KDIRECT_A_NAME]		= { .type = NLA_NUL_STRING },
	[KDIRECT_A_ADDR]		= { .type = NLA_BINARY },
	[KDIRECT_A_PORT]		= { .type = NLA_U16 },
	[KDIRECT_A_ALLOW]		= NLA_POLICY_NESTED(kd_prefix_policy),
	[KDIRECT_A_MAX_CHANNELS]	= { .type = NLA_U32 },
	[KDIRECT_A_MAX_QUEUES]		= { .type = NLA_U16 },
	[KDIRECT_A_MAX_DEPTH]		= { .type = NLA_U32 },
	[KDIRECT_A_MAX_MESSAGE]		= { .type = NLA_U32 },
	[KDIRECT_A_EAGER_LIMIT]		= { .type = NLA_U32 },
	[KDIRECT_A_MODE]		= { .type = NLA_U32 },
	[KDIRECT_A_PRIVATE_DATA]	= { .type = NLA_BINARY },
	[KDIRECT_A_HOLD]		= { .type = NLA_FLAG },
	[KDIRECT_A_RETRY_COUNT]		= { .type = NLA_U32 },
	[KDIRECT_A_RNR_RETRY_COUNT]	= { .type = NLA_U32 },
	[KDIRECT_A_INITIATOR_DEPTH]	= { .type = NLA_U32 },
	[KDIRECT_A_RESPONDER_RESOURCES]	= { .type = NLA_U32 },
};

const struct nla_policy kd_listener_set_policy[KDIRECT_A_MAX + 1] = {
	[KDIRECT_A_NAME]		= { .type = NLA_NUL_STRING },
	[KDIRECT_A_ALLOW]		= NLA_POLICY_NESTED(kd_prefix_policy),
	[KDIRECT_A_ALLOW_CLEAR]		= { .type = NLA_FLAG },
	[KDIRECT_A_MAX_CHANNELS]	= { .type = NLA_U32 },
};

const struct nla_policy kd_channel_new_policy[KDIRECT_A_MAX + 1] = {
	[KDIRECT_A_NAME]		= { .type = NLA_NUL_STRING },
	[KDIRECT_A_ADDR]		= { .type = NLA_BINARY },
	[KDIRECT_A_PORT]		= { .type = NLA_U16 },
	[KDIRECT_A_SRC_ADDR]		= { .type = NLA_BINARY },
	[KDIRECT_A_QUEUES]		= { .type = NLA_U16 },
	[KDIRECT_A_POLL_QUEUES]		= { .type = NLA_U16 },
	[KDIRECT_A_DEPTH]		= { .type = NLA_U32 },
	[KDIRECT_A_MAX_MESSAGE]		= { .type = NLA_U32 },
	[KDIRECT_A_EAGER_LIMIT]		= { .type = NLA_U32 },
	[KDIRECT_A_KEEP_ALIVE_MS]	= { .type = NLA_U32 },
	[KDIRECT_A_CONNECT_TIMEOUT_MS]	= { .type = NLA_U32 },
	[KDIRECT_A_DRAIN_TIMEOUT_MS]	= { .type = NLA_U32 },
	[KDIRECT_A_LOSS_TIMEOUT_MS]	= { .type = NLA_U32 },
	[KDIRECT_A_KEEP_ALIVE_MISSES]	= { .type = NLA_U32 },
	[KDIRECT_A_REQUEST_TIMEOUT_MS]	= { .type = NLA_U32 },
	[KDIRECT_A_FAST_IO_FAIL_MS]	= { .type = NLA_U32 },
	[KDIRECT_A_RECONNECT_DELAY_MS]	= { .type = NLA_U32 },
	[KDIRECT_A_RECONNECT_MAX_DELAY_MS] = { .type = NLA_U32 },
	[KDIRECT_A_POLL_MODE]		= { .type = NLA_U32 },
	[KDIRECT_A_POLL_CPU_PERCENT]	= { .type = NLA_U32 },
	[KDIRECT_A_CQ_COUNT]		= { .type = NLA_U32 },
	[KDIRECT_A_CQ_PERIOD_US]	= { .type = NLA_U32 },
	[KDIRECT_A_SOCKET_OWNER]	= { .type = NLA_FLAG },
	[KDIRECT_A_MODE]		= { .type = NLA_U32 },
	[KDIRECT_A_PRIVATE_DATA]	= { .type = NLA_BINARY },
	[KDIRECT_A_HOLD]		= { .type = NLA_FLAG },
	[KDIRECT_A_RETRY_COUNT]		= { .type = NLA_U32 },
	[KDIRECT_A_RNR_RETRY_COUNT]	= { .type = NLA_U32 },
	[KDIRECT_A_INITIATOR_DEPTH]	= { .type = NLA_U32 },
	[KDIRECT_A_RESPONDER_RESOURCES]	= { .type = NLA_U32 },
};

const struct nla_policy kd_channel_set_policy[KDIRECT_A_MAX + 1] = {
	[KDIRECT_A_NAME]		= { .type = NLA_NUL_STRING },
	[KDIRECT_A_EAGER_LIMIT]		= { .type = NLA_U32 },
	[KDIRECT_A_KEEP_ALIVE_MS]	= { .type = NLA_U32 },
	[KDIRECT_A_DRAIN_TIMEOUT_MS]	= { .type = NLA_U32 },
	[KDIRECT_A_LOSS_TIMEOUT_MS]	= { .type = NLA_U32 },
	[KDIRECT_A_KEEP_ALIVE_MISSES]	= { .type = NLA_U32 },
	[KDIRECT_A_REQUEST_TIMEOUT_MS]	= { .type = NLA_U32 },
	[KDIRECT_A_FAST_IO_FAIL_MS]	= { .type = NLA_U32 },
	[KDIRECT_A_RECONNECT_DELAY_MS]	= { .type = NLA_U32 },
	[KDIRECT_A_RECONNECT_MAX_DELAY_MS] = { .type = NLA_U32 },
	[KDIRECT_A_POLL_MODE]		= { .type = NLA_U32 },
	[KDIRECT_A_POLL_CPU_PERCENT]	= { .type = NLA_U32 },
	[KDIRECT_A_CQ_COUNT]		= { .type = NLA_U32 },
	[KDIRECT_A_CQ_PERIOD_US]	= { .type = NLA_U32 },
};

/* As in the specification and in the tool. */
static const char *kd_attr_name(u16 attr)
{
	static const char * const names[] = {
		[KDIRECT_A_NAME]		= "name",
		[KDIRECT_A_ADDR]		= "addr",
		[KDIRECT_A_PORT]		= "port",
		[KDIRECT_A_SRC_ADDR]		= "src-addr",
		[KDIRECT_A_ALLOW]		= "allow",
		[KDIRECT_A_PREFIX_ADDR]		= "prefix-addr",
		[KDIRECT_A_PREFIX_LEN]		= "prefix-len",
		[KDIRECT_A_ALLOW_CLEAR]		= "allow-clear",
		[KDIRECT_A_MAX_CHANNELS]	= "max-channels",
		[KDIRECT_A_MAX_QUEUES]		= "max-queues",
		[KDIRECT_A_MAX_DEPTH]		= "max-depth",
		[KDIRECT_A_QUEUES]		= "queues",
		[KDIRECT_A_POLL_QUEUES]		= "poll-queues",
		[KDIRECT_A_DEPTH]		= "depth",
		[KDIRECT_A_MAX_MESSAGE]		= "max-message",
		[KDIRECT_A_EAGER_LIMIT]		= "eager-limit",
		[KDIRECT_A_KEEP_ALIVE_MS]	= "keep-alive-ms",
		[KDIRECT_A_CONNECT_TIMEOUT_MS]	= "connect-timeout-ms",
		[KDIRECT_A_DRAIN_TIMEOUT_MS]	= "drain-timeout-ms",
		[KDIRECT_A_LOSS_TIMEOUT_MS]	= "loss-timeout-ms",
		[KDIRECT_A_KEEP_ALIVE_MISSES]	= "keep-alive-misses",
		[KDIRECT_A_REQUEST_TIMEOUT_MS]	= "request-timeout-ms",
		[KDIRECT_A_FAST_IO_FAIL_MS]	= "fast-io-fail-ms",
		[KDIRECT_A_RECONNECT_DELAY_MS]	= "reconnect-delay-ms",
		[KDIRECT_A_RECONNECT_MAX_DELAY_MS] = "reconnect-max-delay-ms",
		[KDIRECT_A_SOCKET_OWNER]	= "socket-owner",
		[KDIRECT_A_POLL_MODE]		= "poll-mode",
		[KDIRECT_A_POLL_CPU_PERCENT]	= "poll-cpu-percent",
		[KDIRECT_A_CQ_COUNT]		= "cq-count",
		[KDIRECT_A_CQ_PERIOD_US]	= "cq-period-us",
		[KDIRECT_A_DEV_NAME]		= "dev-name",
		[KDIRECT_A_MODE]		= "mode",
		[KDIRECT_A_PRIVATE_DATA]	= "private-data",
		[KDIRECT_A_HOLD]		= "hold",
		[KDIRECT_A_RETRY_COUNT]		= "retry-count",
		[KDIRECT_A_RNR_RETRY_COUNT]	= "rnr-retry-count",
		[KDIRECT_A_INITIATOR_DEPTH]	= "initiator-depth",
		[KDIRECT_A_RESPONDER_RESOURCES]	= "responder-resources",
		[KDIRECT_A_LISTENER]		= "listener",
		[KDIRECT_A_EXPORT]		= "export",
		[KDIRECT_A_CHANNEL]		= "channel",
		[KDIRECT_A_SIZE]		= "size",
		[KDIRECT_A_READ_ONLY]		= "read-only",
	};

	return attr < ARRAY_SIZE(names) && names[attr] ? names[attr] : "attribute";
}

int kd_fail(struct kd_error *error, int err, u16 attr, const char *fmt, ...)
{
	va_list args;

	error->err = err;
	error->attr = attr;
	va_start(args, fmt);
	vscnprintf(error->text, sizeof(error->text), fmt, args);
	va_end(args);
	return err;
}

/* The kernel's parser takes the last of several: here a second one is a mistake. */
int kd_parse_no_duplicates(struct genl_info *info, struct kd_error *error)
{
	DECLARE_BITMAP(seen, KDIRECT_A_MAX + 1);
	const struct nlattr *attr;
	int rem;

	bitmap_zero(seen, KDIRECT_A_MAX + 1);
	nlmsg_for_each_attr(attr, info->nlhdr, GENL_HDRLEN, rem) {
		u16 type = nla_type(attr);

		if (type > KDIRECT_A_MAX || type == KDIRECT_A_ALLOW)
			continue;
		if (__test_and_set_bit(type, seen))
			return kd_fail(error, KD_EINVAL, type, "%s: given more than once",
				       kd_attr_name(type));
	}
	return 0;
}

int kd_parse_missing(u16 attr, struct kd_error *error)
{
	return kd_fail(error, KD_EINVAL, attr, "%s: missing, and needed here", kd_attr_name(attr));
}

int kd_parse_string(struct genl_info *info, u16 attr, char *out, size_t size,
		    struct kd_error *error)
{
	const struct nlattr *nla = info->attrs[attr];
	size_t len;

	if (!nla)
		return kd_parse_missing(attr, error);
	len = strnlen(nla_data(nla), nla_len(nla));
	if (len >= size)
		return kd_fail(error, KD_EINVAL, attr,
			       "%s: %zu bytes long, at most %zu are allowed",
			       kd_attr_name(attr), len, size - 1);
	strscpy(out, nla_data(nla), size);
	return 0;
}

static int kd_parse_addr(const struct nlattr *nla, u16 attr, struct kd_addr *out,
			 struct kd_error *error)
{
	if (!nla)
		return kd_parse_missing(attr, error);
	if (nla_len(nla) != 4 && nla_len(nla) != 16)
		return kd_fail(error, KD_EINVAL, attr,
			       "%s: %d bytes long, must be 4 (IPv4) or 16 (IPv6)",
			       kd_attr_name(attr), nla_len(nla));
	memset(out, 0, sizeof(*out));
	out->len = nla_len(nla);
	memcpy(out->bytes, nla_data(nla), out->len);
	return 0;
}

static int kd_parse_endpoint(struct genl_info *info, struct kd_endpoint *out,
			     struct kd_error *error)
{
	int err;

	err = kd_parse_addr(info->attrs[KDIRECT_A_ADDR], KDIRECT_A_ADDR, &out->addr, error);
	if (err)
		return err;
	if (!info->attrs[KDIRECT_A_PORT])
		return kd_parse_missing(KDIRECT_A_PORT, error);
	out->port = nla_get_u16(info->attrs[KDIRECT_A_PORT]);
	return 0;
}

/* Numbers that are not there keep their default. */
static bool kd_parse_u32(struct genl_info *info, u16 attr, u32 *out)
{
	if (!info->attrs[attr])
		return false;
	*out = nla_get_u32(info->attrs[attr]);
	return true;
}

static void kd_parse_u16(struct genl_info *info, u16 attr, u32 *out)
{
	if (info->attrs[attr])
		*out = nla_get_u16(info->attrs[attr]);
}

static int kd_parse_prefix(struct nlattr *nest, struct kd_prefix *out, struct genl_info *info,
			   struct kd_error *error)
{
	struct nlattr *tb[KDIRECT_A_PREFIX_LEN + 1];
	int err;

	/* its own text is more exact than one from here */
	err = nla_parse_nested(tb, KDIRECT_A_PREFIX_LEN, nest, kd_prefix_policy, info->extack);
	if (err) {
		error->err = kd_from_errno(err);
		return error->err;
	}
	err = kd_parse_addr(tb[KDIRECT_A_PREFIX_ADDR], KDIRECT_A_PREFIX_ADDR, &out->addr, error);
	if (err)
		return err;
	if (!tb[KDIRECT_A_PREFIX_LEN])
		return kd_parse_missing(KDIRECT_A_PREFIX_LEN, error);
	out->bits = nla_get_u8(tb[KDIRECT_A_PREFIX_LEN]);
	return 0;
}

static int kd_parse_allow(struct genl_info *info, struct kd_listener_params *out,
			  struct kd_error *error)
{
	struct nlattr *attr;
	int rem, err;

	nlmsg_for_each_attr(attr, info->nlhdr, GENL_HDRLEN, rem) {
		if (nla_type(attr) != KDIRECT_A_ALLOW)
			continue;
		if (out->nr_allow == ARRAY_SIZE(out->allow))
			return kd_fail(error, KD_EINVAL, KDIRECT_A_ALLOW,
				       "allow: more than %zu prefixes", ARRAY_SIZE(out->allow));
		err = kd_parse_prefix(attr, &out->allow[out->nr_allow], info, error);
		if (err)
			return err;
		out->nr_allow++;
		out->has |= KD_HAS_ALLOW;
	}
	return 0;
}

/* KD_HAS_RAW in *@has: one of them is there. */
static int kd_parse_raw(struct genl_info *info, u32 *mode, struct kd_raw_params *out, u32 *has,
			struct kd_error *error)
{
	const struct nlattr *data = info->attrs[KDIRECT_A_PRIVATE_DATA];
	bool any = false;

	kd_parse_u32(info, KDIRECT_A_MODE, mode);
	any |= kd_parse_u32(info, KDIRECT_A_RETRY_COUNT, &out->retry_count);
	any |= kd_parse_u32(info, KDIRECT_A_RNR_RETRY_COUNT, &out->rnr_retry_count);
	any |= kd_parse_u32(info, KDIRECT_A_INITIATOR_DEPTH, &out->initiator_depth);
	any |= kd_parse_u32(info, KDIRECT_A_RESPONDER_RESOURCES, &out->responder_resources);
	out->hold = info->attrs[KDIRECT_A_HOLD];
	any |= out->hold;
	if (data && nla_len(data) > sizeof(out->data))
		return kd_fail(error, KD_ERANGE, KDIRECT_A_PRIVATE_DATA,
			       "private-data: %d bytes long, at most %zu are allowed",
			       nla_len(data), sizeof(out->data));
	if (data) {
		out->data_len = nla_len(data);
		memcpy(out->data, nla_data(data), out->data_len);
		any = true;
	}
	if (any)
		*has |= KD_HAS_RAW;
	return 0;
}

int kd_parse_listener(struct genl_info *info, bool new, struct kd_listener_params *out,
		      struct kd_error *error)
{
	int err;

	kd_listener_defaults(out);
	err = kd_parse_string(info, KDIRECT_A_NAME, out->name, sizeof(out->name), error);
	if (!err && new)
		err = kd_parse_endpoint(info, &out->local, error);
	if (!err)
		err = kd_parse_allow(info, out, error);
	if (err)
		return err;
	if (info->attrs[KDIRECT_A_ALLOW_CLEAR])
		out->has |= KD_HAS_ALLOW_CLEAR;
	if (kd_parse_u32(info, KDIRECT_A_MAX_CHANNELS, &out->max_channels))
		out->has |= KD_HAS_MAX_CHANNELS;
	if (kd_parse_u32(info, KDIRECT_A_EAGER_LIMIT, &out->eager_limit))
		out->has |= KD_HAS_EAGER_LIMIT;
	kd_parse_u16(info, KDIRECT_A_MAX_QUEUES, &out->max_queues);
	kd_parse_u32(info, KDIRECT_A_MAX_DEPTH, &out->max_depth);
	kd_parse_u32(info, KDIRECT_A_MAX_MESSAGE, &out->max_message);
	return kd_parse_raw(info, &out->mode, &out->raw, &out->has, error);
}

int kd_parse_channel(struct genl_info *info, bool new, struct kd_channel_params *out,
		     struct kd_error *error)
{
	struct nlattr *source = info->attrs[KDIRECT_A_SRC_ADDR];
	int err;

	kd_channel_defaults(out);
	err = kd_parse_string(info, KDIRECT_A_NAME, out->name, sizeof(out->name), error);
	if (!err && new)
		err = kd_parse_endpoint(info, &out->peer, error);
	if (!err && source)
		err = kd_parse_addr(source, KDIRECT_A_SRC_ADDR, &out->source, error);
	if (err)
		return err;
	if (kd_parse_u32(info, KDIRECT_A_EAGER_LIMIT, &out->eager_limit))
		out->has |= KD_HAS_EAGER_LIMIT;
	if (kd_parse_u32(info, KDIRECT_A_KEEP_ALIVE_MS, &out->keep_alive_ms))
		out->has |= KD_HAS_KEEP_ALIVE;
	if (kd_parse_u32(info, KDIRECT_A_DRAIN_TIMEOUT_MS, &out->drain_timeout_ms))
		out->has |= KD_HAS_DRAIN_TIMEOUT;
	if (kd_parse_u32(info, KDIRECT_A_KEEP_ALIVE_MISSES, &out->keep_alive_misses))
		out->has |= KD_HAS_KEEP_ALIVE_MISSES;
	if (kd_parse_u32(info, KDIRECT_A_REQUEST_TIMEOUT_MS, &out->request_timeout_ms))
		out->has |= KD_HAS_REQUEST_TIMEOUT;
	if (kd_parse_u32(info, KDIRECT_A_LOSS_TIMEOUT_MS, &out->loss_timeout_ms))
		out->has |= KD_HAS_LOSS_TIMEOUT;
	if (kd_parse_u32(info, KDIRECT_A_FAST_IO_FAIL_MS, &out->fast_io_fail_ms))
		out->has |= KD_HAS_FAST_IO_FAIL;
	if (kd_parse_u32(info, KDIRECT_A_RECONNECT_DELAY_MS, &out->reconnect_delay_ms))
		out->has |= KD_HAS_RECONNECT_DELAY;
	if (kd_parse_u32(info, KDIRECT_A_RECONNECT_MAX_DELAY_MS, &out->reconnect_max_delay_ms))
		out->has |= KD_HAS_RECONNECT_MAX_DELAY;
	if (kd_parse_u32(info, KDIRECT_A_POLL_MODE, &out->poll_mode))
		out->has |= KD_HAS_POLL_MODE;
	if (kd_parse_u32(info, KDIRECT_A_POLL_CPU_PERCENT, &out->poll_cpu_percent))
		out->has |= KD_HAS_POLL_CPU;
	if (kd_parse_u32(info, KDIRECT_A_CQ_COUNT, &out->cq_count))
		out->has |= KD_HAS_CQ_COUNT;
	if (kd_parse_u32(info, KDIRECT_A_CQ_PERIOD_US, &out->cq_period_us))
		out->has |= KD_HAS_CQ_PERIOD;
	kd_parse_u16(info, KDIRECT_A_QUEUES, &out->queues);
	kd_parse_u16(info, KDIRECT_A_POLL_QUEUES, &out->poll_queues);
	kd_parse_u32(info, KDIRECT_A_DEPTH, &out->depth);
	kd_parse_u32(info, KDIRECT_A_MAX_MESSAGE, &out->max_message);
	kd_parse_u32(info, KDIRECT_A_CONNECT_TIMEOUT_MS, &out->connect_timeout_ms);
	if (info->attrs[KDIRECT_A_SOCKET_OWNER])
		out->owner = kd_netlink_owner(genl_info_net(info), info->snd_portid);
	return kd_parse_raw(info, &out->mode, &out->raw, &out->has, error);
}
