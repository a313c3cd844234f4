// SPDX-License-Identifier: GPL-2.0-only
#include "percentiles.h"

#include <numeric>

#include <gtest/gtest.h>

namespace kdirect
{

namespace
{

std::vector<uint64_t> one_to(size_t n)
{
	std::vector<uint64_t> values(n);

	std::iota(values.rbegin(), values.rend(), 1); // descending: sorting must matter
	return values;
}

TEST(Percentiles, NothingOfNothing)
{
	EXPECT_FALSE(summarize({}).has_value());
}

TEST(Percentiles, OneValueIsAllOfThem)
{
	EXPECT_EQ(summarize({7}), (Summary{7, 7, 7, 7, 7, 7, 7}));
}

TEST(Percentiles, NearestRank)
{
	EXPECT_EQ(summarize(one_to(10)), (Summary{.min = 1,
						  .mean = 5,
						  .p50 = 5,
						  .p90 = 9,
						  .p99 = 10,
						  .p99_9 = 10,
						  .max = 10}));
	EXPECT_EQ(summarize(one_to(100)), (Summary{.min = 1,
						   .mean = 50,
						   .p50 = 50,
						   .p90 = 90,
						   .p99 = 99,
						   .p99_9 = 100,
						   .max = 100}));
	EXPECT_EQ(summarize(one_to(1000)), (Summary{.min = 1,
						    .mean = 500,
						    .p50 = 500,
						    .p90 = 900,
						    .p99 = 990,
						    .p99_9 = 999,
						    .max = 1000}));
	EXPECT_EQ(summarize(one_to(1001))->p99_9, 1000U);
	EXPECT_EQ(summarize({1, 2})->p50, 1U);
	EXPECT_EQ(summarize({1, 2, 3})->p50, 2U);
}

TEST(Percentiles, OneOutlierInAThousandIsOnlyTheMaximum)
{
	std::vector<uint64_t> values(999, 20);

	values.push_back(5000);
	const Summary summary = *summarize(values);

	EXPECT_EQ(summary.p99_9, 20U);
	EXPECT_EQ(summary.max, 5000U);
	EXPECT_EQ(summary.mean, 24U);
}

TEST(Percentiles, MeanDoesNotOverflow)
{
	EXPECT_EQ(summarize({UINT64_MAX, UINT64_MAX, UINT64_MAX})->mean, UINT64_MAX);
	EXPECT_EQ(summarize({UINT64_MAX, UINT64_MAX - 2})->mean, UINT64_MAX - 1);
}

} // namespace

} // namespace kdirect
