// SPDX-License-Identifier: GPL-2.0-only
/* The module: the product's beginning, all suites, the product's end. */

#include <linux/minmax.h>
#include <linux/module.h>
#include <linux/sched/mm.h>
#include <linux/string.h>
#include <linux/version.h>

#include "kunit.h"

int kdk_product_init(void);
void kdk_product_exit(void);

#define KDK_REFERENCE(id)	&kdk_suite_##id,
static struct kunit_suite *suites[] = { KDK_SUITES(KDK_REFERENCE) };

static int nr_suites = ARRAY_SIZE(suites);

static char *only = "";
module_param(only, charp, 0444);
MODULE_PARM_DESC(only, "the name of one suite; default: all");

static int __init kdk_module_init(void)
{
	unsigned int i;
	int ret;

	for (i = 0; *only && i < ARRAY_SIZE(suites); i++)
		if (!strcmp(suites[i]->name, only))
			swap(suites[0], suites[i]);
	if (*only)
		nr_suites = !strcmp(suites[0]->name, only);
	if (!nr_suites)
		return -ENOENT;
	ret = kdk_product_init();
	if (ret)
		return ret;
	/* KUnit gives a module's suites no plan: nobody would see that one did not run */
	pr_info("KTAP version 1\n");
	pr_info("1..%d\n", nr_suites);
	kdk_mm = current->mm;
#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 14, 0)
	__kunit_test_suites_init(suites, nr_suites);
#else
	__kunit_test_suites_init(suites, nr_suites, true);
#endif
	kdk_mm = NULL;
	return 0;
}

static void __exit kdk_module_exit(void)
{
	__kunit_test_suites_exit(suites, nr_suites);
	kdk_product_exit();
}

module_init(kdk_module_init);
module_exit(kdk_module_exit);
