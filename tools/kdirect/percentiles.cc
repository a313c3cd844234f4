// SPDX-License-Identifier: GPL-2.0-only
#include "percentiles.h"

#include <algorithm>
#include <cstddef>

namespace kdirect
{

namespace
{

// In integers, since 0.999 * 1000 is not 999 in floating point.
uint64_t nearest_rank(const std::vector<uint64_t> &sorted, uint64_t per_mille)
{
	const uint64_t rank = (sorted.size() * per_mille + 999) / 1000;

	return sorted[static_cast<size_t>(rank) - 1];
}

// Without a sum, which could overflow: quotients and remainders apart.
uint64_t mean(const std::vector<uint64_t> &values)
{
	const uint64_t n = values.size();
	uint64_t whole = 0, rest = 0;

	for (uint64_t value : values) {
		whole += value / n;
		rest += value % n;
		whole += rest / n;
		rest %= n;
	}
	return whole;
}

} // namespace

std::optional<Summary> summarize(std::vector<uint64_t> values)
{
	if (values.empty())
		return std::nullopt;
	std::ranges::sort(values);
	return Summary{
		.min = values.front(),
		.mean = mean(values),
		.p50 = nearest_rank(values, 500),
		.p90 = nearest_rank(values, 900),
		.p99 = nearest_rank(values, 990),
		.p99_9 = nearest_rank(values, 999),
		.max = values.back(),
	};
}

} // namespace kdirect
