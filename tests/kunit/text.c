// SPDX-License-Identifier: GPL-2.0-only
/* kd_format(): never past the end, always terminated, and it says how much it wrote. */

#include <linux/string.h>

#include "kunit.h"

#define KDK_GUARD	0x7e

static const size_t rooms[] = { 0, 1, 2, 3, 9, 10, 11, 12, 40 };

static void kdk_describe_room(const size_t *room, char *desc)
{
	snprintf(desc, KUNIT_PARAM_DESC_SIZE, "%zu bytes of room", *room);
}

KUNIT_ARRAY_PARAM(room, rooms, kdk_describe_room);

static void bounds(struct kunit *test)
{
	static const char whole[] = "0123456789";
	size_t room = *(const size_t *)test->param_value;
	char buf[64];
	size_t len;
	int ret;

	memset(buf, KDK_GUARD, sizeof(buf));
	ret = kd_format(buf, room, "%s%u", "012345678", 9);
	KUNIT_EXPECT_PTR_EQ_MSG(test, memchr_inv(buf + room, KDK_GUARD, sizeof(buf) - room), NULL,
				"written past the end");
	if (!room) {
		KUNIT_EXPECT_EQ(test, ret, 0);
		return;
	}
	len = min(room - 1, sizeof(whole) - 1);
	KUNIT_EXPECT_EQ(test, ret, (int)len);
	KUNIT_EXPECT_EQ(test, buf[len], 0);
	KUNIT_EXPECT_EQ(test, memcmp(buf, whole, len), 0);
}

/* As the core builds addresses: piece by piece, into what is left. */
static void appended(struct kunit *test)
{
	char buf[8];
	int at = 0, i;

	for (i = 0; i < 20; i++) {
		at += kd_format(buf + at, sizeof(buf) - at, i ? ":%x" : "%x", i);
		KUNIT_ASSERT_LT(test, at, (int)sizeof(buf));
		KUNIT_EXPECT_EQ(test, (int)strlen(buf), at);
	}
	KUNIT_EXPECT_STREQ(test, buf, "0:1:2:3");
}

static void conversions(struct kunit *test)
{
	char buf[64];

	kd_format(buf, sizeof(buf), "%u %d %x %#x %s %llu %%", 4294967295U, -1, 0xabcU, 0U, "",
		  18446744073709551615ULL);
	KUNIT_EXPECT_STREQ(test, buf, "4294967295 -1 abc 0x0  18446744073709551615 %");
}

static struct kunit_case kdk_text_cases[] = {
	KUNIT_CASE_PARAM(bounds, room_gen_params),
	KUNIT_CASE(appended),
	KUNIT_CASE(conversions),
	{}
};

KDK_SUITE(text, kdk_text_cases);
