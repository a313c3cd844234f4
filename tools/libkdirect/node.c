// SPDX-License-Identifier: GPL-2.0-only
// Nodes: opening, what they are, flags, ping.
#include "libkdirect.h"
#include "system.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>

#define DIRECTORY "/dev/kdirect/"

static bool is_letter(char c)
{
	return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z');
}

/* As in kdirect_netlink.h; accepted channels have a dot and a number behind it. */
static bool is_name(const char *name)
{
	size_t length = strlen(name);

	if (length > KDIRECT_NAME_MAX || !is_letter(name[0]))
		return false;
	for (size_t i = 1; i < length; i++) {
		char c = name[i];

		if (!is_letter(c) && !(c >= '0' && c <= '9') && c != '_' && c != '-' && c != '.')
			return false;
	}
	return true;
}

int kdirect_open(const char *node, int flags)
{
	char path[sizeof(DIRECTORY) + KDIRECT_NAME_MAX];
	int fd, kind;

	if (!node)
		return -EINVAL;
	if (!strchr(node, '/')) {
		if (!is_name(node))
			return -EINVAL;
		snprintf(path, sizeof(path), DIRECTORY "%s", node);
		node = path;
	}
	fd = kd_sys_open(node, flags | O_CLOEXEC);
	if (fd < 0)
		return fd;
	kind = kdirect_kind_of(fd);
	if (kind > 0)
		return fd;
	kd_sys_close(fd);
	return kind;
}

int kdirect_kind_of(int fd)
{
	struct kdirect_map_info mapping;
	struct kdirect_info channel;
	struct kdirect_raw_info raw;
	int err = kd_sys_ioctl(fd, KDIRECT_IOC_MAP_INFO, &mapping);

	if (!err)
		return KDIRECT_NODE_MAPPING;
	err = kd_sys_ioctl(fd, KDIRECT_IOC_INFO, &channel);
	if (!err)
		return KDIRECT_NODE_CHANNEL;
	err = kd_sys_ioctl(fd, KDIRECT_IOC_RAW_INFO, &raw);
	if (!err)
		return KDIRECT_NODE_RAW;
	return err == -EBADF ? err : -ENOTTY;
}

int kdirect_channel_info(int fd, struct kdirect_info *info)
{
	return kd_sys_ioctl(fd, KDIRECT_IOC_INFO, info);
}

int kdirect_mapping_info(int fd, struct kdirect_map_info *info)
{
	return kd_sys_ioctl(fd, KDIRECT_IOC_MAP_INFO, info);
}

int kdirect_get_flags(int fd, uint32_t *flags)
{
	return kd_sys_ioctl(fd, KDIRECT_IOC_GET_FLAGS, flags);
}

int kdirect_set_flags(int fd, uint32_t flags)
{
	return kd_sys_ioctl(fd, KDIRECT_IOC_SET_FLAGS, &flags);
}

int kdirect_ping_peer(int fd, struct kdirect_ping *ping)
{
	return kd_sys_ioctl(fd, KDIRECT_IOC_PING, ping);
}
