/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * check.h - what the suites in C++ use of KUnit, whose headers are C; and what all
 * suites share.
 *
 * A case in C++ is a function kdk_case_NAME(), listed in core_cases.h. It says what
 * it expects with EXPECT(), EXPECT_EQ() and their ASSERT_ forms, which return; they take
 * the case's parameter by its name, test.
 */
#ifndef KDIRECT_KUNIT_CHECK_H
#define KDIRECT_KUNIT_CHECK_H

#include "os.h"

#ifdef __cplusplus
extern "C" {
#endif

struct kunit;

void kdk_fail(struct kunit *test, const char *file, int line, const char *fmt, ...)
	__attribute__((format(printf, 4, 5)));
void kdk_skip(struct kunit *test, const char *why);
/* of a case with parameters: its two numbers */
struct kdk_pair {
	uint32_t a, b;
};
const struct kdk_pair *kdk_param(const struct kunit *test);

void kdk_sleep_ms(unsigned int ms);
/* @fn(@arg) in @count threads at once; returns when all have ended. 0 or KD_* */
int kdk_threads(unsigned int count, void (*fn)(void *arg), void *arg);
struct kd_net *kdk_net(void);
/* the address that the RDMA device answers on, and the other one; false: there is none */
bool kdk_address(struct kd_addr *own, struct kd_addr *peer);

/* One range of the memory of the process that loaded the module, for kd_pages_pin(). */
struct kdk_range;
struct kdk_range *kdk_range_create(uint32_t bytes); /* filled by kdk_fill() */
void kdk_range_destroy(struct kdk_range *range);
int kdk_range_pin(struct kdk_range *range, uint32_t offset, uint32_t len, struct kd_pages **out);
bool kdk_range_fill(struct kdk_range *range, uint32_t offset, uint32_t len, uint8_t seed);
/* as kdk_differs() */
size_t kdk_range_differs(struct kdk_range *range, uint32_t offset, uint32_t len, uint8_t seed);
bool kdk_range_get(struct kdk_range *range, uint32_t offset, uint32_t len, uint8_t *out);
/* kd_map_io() to or from it */
int64_t kdk_range_io(struct kdk_range *range, uint32_t offset, uint32_t len,
		     struct kd_desc_file *file, uint64_t pos, bool write);
int64_t kdk_range_pinned(const struct kdk_range *range); /* pages charged to it */

void kdk_fill(uint8_t *bytes, size_t len, uint8_t seed);
/* the position of the first byte that kdk_fill() would not have written, or @len */
size_t kdk_differs(const uint8_t *bytes, size_t len, uint8_t seed);
/* the same for what @pages hold */
bool kdk_pages_fill(struct kd_pages *pages, uint32_t len, uint8_t seed);
size_t kdk_pages_differ(struct kd_pages *pages, uint32_t len, uint8_t seed);

#ifdef __cplusplus
}

template <class T>
constexpr long long kdk_number(T value)
{
	return static_cast<long long>(value);
}

#define EXPECT(condition)                                                                          \
	((condition) ? true : (kdk_fail(test, __FILE__, __LINE__, "%s", #condition), false))
#define EXPECT_EQ(got, wanted)                                                                     \
	[&](auto kdk_got, auto kdk_wanted) {                                                       \
		if (kdk_number(kdk_got) == kdk_number(kdk_wanted))                                 \
			return true;                                                               \
		kdk_fail(test, __FILE__, __LINE__, "%s is %lld, not %s (%lld)", #got,              \
			 kdk_number(kdk_got), #wanted, kdk_number(kdk_wanted));                    \
		return false;                                                                      \
	}(got, wanted)
#define ASSERT(condition)                                                                          \
	do {                                                                                       \
		if (!EXPECT(condition))                                                            \
			return;                                                                    \
	} while (0)
#define ASSERT_EQ(got, wanted)                                                                     \
	do {                                                                                       \
		if (!EXPECT_EQ(got, wanted))                                                       \
			return;                                                                    \
	} while (0)
#endif

#endif
