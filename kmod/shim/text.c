// SPDX-License-Identifier: GPL-2.0-only
/* Time, chance and text. */

#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/ktime.h>
#include <linux/printk.h>
#include <linux/random.h>
#include <linux/ratelimit.h>
#include <linux/smp.h>

#include "shim.h"

uint64_t kd_now_ns(void)
{
	return ktime_get_ns();
}

uint64_t kd_random(void)
{
	return get_random_u64();
}

uint32_t kd_cpu(void)
{
	return raw_smp_processor_id();
}

int kd_format(char *buf, size_t size, const char *fmt, ...)
{
	va_list args;
	int ret;

	va_start(args, fmt);
	ret = vscnprintf(buf, size, fmt, args);
	va_end(args);
	return ret;
}

void kd_log(enum kd_log_level level, const char *fmt, ...)
{
	/* one for each level: many small notes must not hide an error */
	static DEFINE_RATELIMIT_STATE(err_limit, 5 * HZ, 20);
	static DEFINE_RATELIMIT_STATE(warn_limit, 5 * HZ, 20);
	static DEFINE_RATELIMIT_STATE(info_limit, 5 * HZ, 50);
	struct va_format vaf = { .fmt = fmt };
	va_list args;

	va_start(args, fmt);
	vaf.va = &args;
	switch (level) {
	case KD_LOG_ERR:
		if (__ratelimit(&err_limit))
			pr_err("%pV\n", &vaf);
		break;
	case KD_LOG_WARN:
		if (__ratelimit(&warn_limit))
			pr_warn("%pV\n", &vaf);
		break;
	case KD_LOG_INFO:
		if (__ratelimit(&info_limit))
			pr_info("%pV\n", &vaf);
		break;
	case KD_LOG_DEBUG:
		pr_debug("%pV\n", &vaf);
		break;
	}
	va_end(args);
}
