/* SPDX-License-Identifier: GPL-2.0-only */
/* clang-format off */
/*
 * product.h - put before the product's module.c: its beginning and its end are called
 * from ours, since the suites run in between. (KUnit would run them before the module is
 * initialized, on Linux 6.1, or after.)
 */
#include <linux/module.h>

#undef module_init
#define module_init(fn)					\
	int kdk_product_init(void);			\
	int __init kdk_product_init(void)		\
	{						\
		return fn();				\
	}
#undef module_exit
#define module_exit(fn)					\
	void kdk_product_exit(void);			\
	void __exit kdk_product_exit(void)		\
	{						\
		fn();					\
	}
