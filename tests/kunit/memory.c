// SPDX-License-Identifier: GPL-2.0-only
/* kd_zalloc() and buffers of a size. */

#include <linux/limits.h>

#include "kunit.h"

static void kdk_describe_size(const size_t *size, char *desc)
{
	snprintf(desc, KUNIT_PARAM_DESC_SIZE, "%zu bytes", *size);
}

static const size_t sizes[] = {
	1, 8, 4095, 4096, 4097, SZ_64K, SZ_64K + 1, SZ_1M, SZ_4M,
};
KUNIT_ARRAY_PARAM(size, sizes, kdk_describe_size);

/* Memory that was used before is zero, too, and each byte of it is ours. */
static void zeroed(struct kunit *test)
{
	size_t size = *(const size_t *)test->param_value;
	int round;

	for (round = 0; round < 3; round++) {
		void *mem = kd_zalloc(size);

		if (!mem) {
			KUNIT_FAIL(test, "no memory");
			return;
		}
		KUNIT_EXPECT_PTR_EQ(test, memchr_inv(mem, 0, size), NULL);
		memset(mem, 0xa5, size);
		kd_free(mem);
	}
}

static const size_t too_many[] = { SIZE_MAX, SIZE_MAX / 2, 1UL << 46, (size_t)INT_MAX + 1 };
KUNIT_ARRAY_PARAM(too_much, too_many, kdk_describe_size);

/* Refused: without a warning in the log, which would be a fault of the run. */
static void refused(struct kunit *test)
{
	void *mem = kd_zalloc(*(const size_t *)test->param_value);

	KUNIT_EXPECT_PTR_EQ(test, mem, NULL);
	kd_free(mem);
}

/* More than the machine has, a size that nothing else forbids. */
static void more_than_there_is(struct kunit *test)
{
	size_t size = (totalram_pages() + 1) * PAGE_SIZE;
	void *mem;

	if (size > INT_MAX)
		kunit_skip(test, "this machine has too much memory for that");
	mem = kd_zalloc(size);
	KUNIT_EXPECT_PTR_EQ(test, mem, NULL);
	kd_free(mem);
}

static void free_nothing(struct kunit *test)
{
	kd_free(NULL);
}

static int kdk_zalloc_op(void *arg)
{
	void *mem = kd_zalloc(*(size_t *)arg);

	kd_free(mem);
	return mem ? 0 : KD_ENOMEM;
}

static void each_allocation_fails(struct kunit *test)
{
	size_t size = 100;

	kdk_each_allocation_fails(test, kdk_zalloc_op, &size);
}

static struct kunit_case kdk_memory_cases[] = {
	KUNIT_CASE_PARAM(zeroed, size_gen_params),
	KUNIT_CASE_PARAM(refused, too_much_gen_params),
	KUNIT_CASE(more_than_there_is),
	KUNIT_CASE(free_nothing),
	KUNIT_CASE(each_allocation_fails),
	{}
};

KDK_SUITE(memory, kdk_memory_cases);
