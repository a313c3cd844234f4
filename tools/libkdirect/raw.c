// SPDX-License-Identifier: GPL-2.0-only
// Raw channels: their connection, and keys.
#include "libkdirect_raw.h"
#include "system.h"

#include <errno.h>

int kdirect_get_raw_info(int fd, struct kdirect_raw_info *info)
{
	return kd_sys_ioctl(fd, KDIRECT_IOC_RAW_INFO, info);
}

int kdirect_connect(int fd, const struct kdirect_raw_connect *terms)
{
	struct kdirect_raw_connect copy = *terms;

	return kd_sys_ioctl(fd, KDIRECT_IOC_RAW_CONNECT, &copy);
}

int kdirect_reject(int fd, const void *data, size_t length)
{
	struct kdirect_raw_connect terms = {.length = (uint32_t)length};

	if (length > KDIRECT_RAW_REJECT_MAX)
		return -EINVAL;
	if (length)
		memcpy(terms.data, data, length);
	return kd_sys_ioctl(fd, KDIRECT_IOC_RAW_REJECT, &terms);
}

int kdirect_buffer_share(int fd, uint32_t index, uint32_t access, struct kdirect_share *key)
{
	struct kdirect_share share = {.index = index, .access = access};
	int err;

	if (access && !key)
		return -EINVAL;
	err = kd_sys_ioctl(fd, KDIRECT_IOC_BUFFER_SHARE, &share);
	if (!err && key)
		*key = share;
	return err;
}
