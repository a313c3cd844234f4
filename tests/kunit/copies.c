// SPDX-License-Identifier: GPL-2.0-only
/* The caller's memory: exactly all, or nothing and the iterator where it was. */

#include <linux/slab.h>

#include "kunit.h"

#define KDK_PAGES	4
#define KDK_BYTES	(KDK_PAGES * PAGE_SIZE)

/* Segments as writev() gives them: lengths, and their starts in the area. */
struct kdk_layout {
	const char	*name;
	unsigned int	nr;
	struct {
		u32	start, len;
	} seg[6];
};

static const struct kdk_layout layouts[] = {
	{ "one byte", 1, { { 0, 1 } } },
	{ "one page", 1, { { 0, 4096 } } },
	{ "from the middle of a page", 1, { { 4000, 200 } } },
	{ "all", 1, { { 0, 16384 } } },
	{ "two in order", 2, { { 0, 100 }, { 100, 4000 } } },
	{ "two, the second before the first", 2, { { 8192, 5000 }, { 3, 5000 } } },
	{ "some of them empty", 5, { { 0, 0 }, { 1, 3 }, { 5, 0 }, { 7, 4097 }, { 9, 0 } } },
	{ "six odd ones", 6, { { 1, 1 }, { 3, 3 }, { 4095, 2 }, { 8191, 4097 }, { 13000, 7 },
			       { 14001, 999 } } },
};

static void kdk_describe_layout(const struct kdk_layout *l, char *desc)
{
	strscpy(desc, l->name, KUNIT_PARAM_DESC_SIZE);
}

KUNIT_ARRAY_PARAM(layout, layouts, kdk_describe_layout);

static size_t kdk_iter(const struct kdk_user *user, const struct kdk_layout *l, int direction,
		       struct iovec *vec, struct iov_iter *iter)
{
	size_t len = 0;
	unsigned int i;

	for (i = 0; i < l->nr; i++) {
		vec[i].iov_base = kdk_user_at(user, l->seg[i].start);
		vec[i].iov_len = l->seg[i].len;
		len += l->seg[i].len;
	}
	iov_iter_init(iter, direction, vec, l->nr, len);
	return len;
}

/* Writes a pattern over the segments, or finds the first byte that differs from it. */
static size_t kdk_segments(const struct kdk_user *user, const struct kdk_layout *l, u8 *bytes,
			   bool store)
{
	unsigned long failed = 0;
	size_t at = 0;
	unsigned int i;

	for (i = 0; i < l->nr; at += l->seg[i++].len) {
		void __user *where = kdk_user_at(user, l->seg[i].start);

		failed |= store ? copy_to_user(where, bytes + at, l->seg[i].len) :
				  copy_from_user(bytes + at, where, l->seg[i].len);
	}
	return failed ? 0 : at;
}

static void from_segments(struct kunit *test)
{
	const struct kdk_layout *l = test->param_value;
	u8 *bytes = kunit_kzalloc(test, KDK_BYTES + 1, GFP_KERNEL);
	struct iovec vec[6];
	struct iov_iter iter;
	struct kdk_user user;
	size_t len, part;

	KUNIT_ASSERT_NOT_NULL(test, bytes);
	if (!kdk_user_begin(test, &user, KDK_PAGES))
		return;
	len = kdk_iter(&user, l, ITER_SOURCE, vec, &iter);
	kdk_fill(bytes, len, 7);
	KUNIT_EXPECT_EQ(test, kdk_segments(&user, l, bytes, true), len);

	/* in two parts, then none is left */
	part = len / 3;
	memset(bytes, 0, KDK_BYTES);
	KUNIT_EXPECT_TRUE(test, kd_copy_from(bytes, part, from_iter(&iter)));
	KUNIT_EXPECT_EQ(test, iov_iter_count(&iter), len - part);
	KUNIT_EXPECT_FALSE_MSG(test, kd_copy_from(bytes + part, len - part + 1, from_iter(&iter)),
			       "more than there is");
	KUNIT_EXPECT_EQ(test, iov_iter_count(&iter), len - part);
	KUNIT_EXPECT_TRUE(test, kd_copy_from(bytes + part, len - part, from_iter(&iter)));
	KUNIT_EXPECT_EQ(test, iov_iter_count(&iter), 0);
	KUNIT_EXPECT_EQ(test, kdk_differs(bytes, len, 7), len);
	KUNIT_EXPECT_EQ_MSG(test, bytes[len], 0, "written past the end");
	kdk_user_end(&user);
}

static void to_segments(struct kunit *test)
{
	const struct kdk_layout *l = test->param_value;
	u8 *bytes = kunit_kzalloc(test, KDK_BYTES + 1, GFP_KERNEL);
	struct iovec vec[6];
	struct iov_iter iter;
	struct kdk_user user;
	size_t len, part;

	KUNIT_ASSERT_NOT_NULL(test, bytes);
	if (!kdk_user_begin(test, &user, KDK_PAGES))
		return;
	len = kdk_iter(&user, l, ITER_DEST, vec, &iter);
	kdk_fill(bytes, len, 9);
	part = len / 2;
	KUNIT_EXPECT_TRUE(test, kd_copy_to(bytes, part, from_iter(&iter)));
	KUNIT_EXPECT_EQ(test, iov_iter_count(&iter), len - part);
	KUNIT_EXPECT_FALSE(test, kd_copy_to(bytes + part, len - part + 1, from_iter(&iter)));
	KUNIT_EXPECT_EQ(test, iov_iter_count(&iter), len - part);
	KUNIT_EXPECT_TRUE(test, kd_copy_to(bytes + part, len - part, from_iter(&iter)));
	KUNIT_EXPECT_EQ(test, iov_iter_count(&iter), 0);
	memset(bytes, 0, KDK_BYTES);
	KUNIT_EXPECT_EQ(test, kdk_segments(&user, l, bytes, false), len);
	KUNIT_EXPECT_EQ(test, kdk_differs(bytes, len, 9), len);
	kdk_user_end(&user);
}

/* Where the third page of the area is missing. */
static const struct kdk_layout holes[] = {
	{ "first byte", 1, { { 8192, 1 } } },
	{ "last byte", 1, { { 0, 8193 } } },
	{ "in the middle", 1, { { 5000, 10000 } } },
	{ "second segment", 2, { { 0, 5000 }, { 8000, 500 } } },
	{ "last segment", 3, { { 0, 10 }, { 4096, 10 }, { 9000, 10 } } },
	{ "all but the first byte", 2, { { 0, 1 }, { 8192, 4096 } } },
};

KUNIT_ARRAY_PARAM(hole, holes, kdk_describe_layout);

/*
 * Fails as a whole; the iterator stands where it stood, so that the same bytes can be
 * had in smaller pieces up to the fault.
 */
static void faults(struct kunit *test)
{
	const struct kdk_layout *l = test->param_value;
	u8 *bytes = kunit_kzalloc(test, KDK_BYTES, GFP_KERNEL);
	u8 *area = kunit_kzalloc(test, KDK_BYTES, GFP_KERNEL);
	struct iovec vec[6];
	struct iov_iter iter;
	struct kdk_user user;
	size_t len, at, good = 0;
	unsigned int i;
	u8 byte;

	KUNIT_ASSERT_NOT_NULL(test, bytes);
	KUNIT_ASSERT_NOT_NULL(test, area);
	if (!kdk_user_begin(test, &user, KDK_PAGES))
		return;
	for (i = 0; i < l->nr; i++) {
		good += min(l->seg[i].len, max(8192, (int)l->seg[i].start) - l->seg[i].start);
		if (l->seg[i].start + l->seg[i].len > 8192)
			break;
	}
	kdk_fill(area, KDK_BYTES, 3);
	if (copy_to_user(kdk_user_at(&user, 0), area, KDK_BYTES))
		KUNIT_FAIL(test, "the area cannot be written");
	kdk_user_hole(&user, 2);

	len = kdk_iter(&user, l, ITER_SOURCE, vec, &iter);
	KUNIT_EXPECT_FALSE(test, kd_copy_from(bytes, len, from_iter(&iter)));
	KUNIT_EXPECT_EQ(test, iov_iter_count(&iter), len);
	for (at = 0; kd_copy_from(&byte, 1, from_iter(&iter)); at++) {
		size_t where = at;

		for (i = 0; where >= l->seg[i].len; i++)
			where -= l->seg[i].len;
		KUNIT_EXPECT_EQ(test, byte, area[l->seg[i].start + where]);
	}
	KUNIT_EXPECT_EQ_MSG(test, at, good, "bytes before the fault");
	KUNIT_EXPECT_EQ(test, iov_iter_count(&iter), len - good);

	len = kdk_iter(&user, l, ITER_DEST, vec, &iter);
	KUNIT_EXPECT_FALSE(test, kd_copy_to(bytes, len, from_iter(&iter)));
	KUNIT_EXPECT_EQ(test, iov_iter_count(&iter), len);
	for (at = 0; kd_copy_to("!", 1, from_iter(&iter)); at++)
		;
	KUNIT_EXPECT_EQ(test, at, good);
	if (good && l->seg[0].len && !copy_from_user(&byte, kdk_user_at(&user, l->seg[0].start), 1))
		KUNIT_EXPECT_EQ_MSG(test, byte, '!', "the first byte went elsewhere");
	kdk_user_end(&user);
}

/* An address of the kernel is no user memory, whatever is there. */
static void kernel_address(struct kunit *test)
{
	u8 *bytes = kunit_kzalloc(test, 256, GFP_KERNEL);
	struct iovec vec = { .iov_base = (void __user *)bytes, .iov_len = 128 };
	struct iov_iter iter;
	struct kdk_user user;

	KUNIT_ASSERT_NOT_NULL(test, bytes);
	if (IS_ENABLED(CONFIG_UML))
		kunit_skip(test, "kernel and programs have address spaces of their own");
	if (!kdk_user_begin(test, &user, 1))
		return;
	iov_iter_init(&iter, ITER_SOURCE, &vec, 1, 128);
	KUNIT_EXPECT_FALSE(test, kd_copy_from(bytes + 128, 128, from_iter(&iter)));
	iov_iter_init(&iter, ITER_DEST, &vec, 1, 128);
	KUNIT_EXPECT_FALSE(test, kd_copy_to(bytes + 128, 128, from_iter(&iter)));
	KUNIT_EXPECT_EQ(test, iov_iter_count(&iter), 128);
	kdk_user_end(&user);
}

/* Memory that may only be read. */
static void read_only(struct kunit *test)
{
	struct kdk_user user, locked;
	struct iovec vec;
	struct iov_iter iter;
	u8 bytes[32] = {};

	if (!kdk_user_begin(test, &user, 1))
		return;
	locked.pages = 1;
	locked.start = vm_mmap(NULL, 0, PAGE_SIZE, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, 0);
	if (IS_ERR_VALUE(locked.start)) {
		KUNIT_FAIL(test, "no memory");
		kdk_user_end(&user);
		return;
	}
	vec = (struct iovec){ .iov_base = kdk_user_at(&locked, 0), .iov_len = sizeof(bytes) };
	iov_iter_init(&iter, ITER_DEST, &vec, 1, sizeof(bytes));
	KUNIT_EXPECT_FALSE(test, kd_copy_to(bytes, sizeof(bytes), from_iter(&iter)));
	KUNIT_EXPECT_EQ(test, iov_iter_count(&iter), sizeof(bytes));
	iov_iter_init(&iter, ITER_SOURCE, &vec, 1, sizeof(bytes));
	KUNIT_EXPECT_TRUE(test, kd_copy_from(bytes, sizeof(bytes), from_iter(&iter)));
	vm_munmap(locked.start, PAGE_SIZE);
	kdk_user_end(&user);
}

/* Splice and kernel callers bring memory of the kernel. */
static void kernel_segments(struct kunit *test)
{
	u8 *bytes = kunit_kzalloc(test, 3 * 512, GFP_KERNEL);
	struct kvec vec[2];
	struct iov_iter iter;

	KUNIT_ASSERT_NOT_NULL(test, bytes);
	vec[0] = (struct kvec){ .iov_base = bytes, .iov_len = 200 };
	vec[1] = (struct kvec){ .iov_base = bytes + 200, .iov_len = 312 };
	kdk_fill(bytes, 512, 5);
	iov_iter_kvec(&iter, ITER_SOURCE, vec, 2, 512);
	KUNIT_EXPECT_TRUE(test, kd_copy_from(bytes + 512, 512, from_iter(&iter)));
	KUNIT_EXPECT_EQ(test, kdk_differs(bytes + 512, 512, 5), 512);
	vec[0].iov_base = bytes + 1024;
	vec[1].iov_base = bytes + 1224;
	iov_iter_kvec(&iter, ITER_DEST, vec, 2, 512);
	KUNIT_EXPECT_TRUE(test, kd_copy_to(bytes + 512, 512, from_iter(&iter)));
	KUNIT_EXPECT_EQ(test, kdk_differs(bytes + 1024, 512, 5), 512);
	KUNIT_EXPECT_FALSE(test, kd_copy_to(bytes, 1, from_iter(&iter)));
}

static struct kunit_case kdk_copies_cases[] = {
	KUNIT_CASE_PARAM(from_segments, layout_gen_params),
	KUNIT_CASE_PARAM(to_segments, layout_gen_params),
	KUNIT_CASE_PARAM(faults, hole_gen_params),
	KUNIT_CASE(kernel_address),
	KUNIT_CASE(read_only),
	KUNIT_CASE(kernel_segments),
	{}
};

KDK_SUITE(copies, kdk_copies_cases);
