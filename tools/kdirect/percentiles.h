// SPDX-License-Identifier: GPL-2.0-only
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

namespace kdirect
{

// Each percentile is a value that was measured (nearest rank): the smallest such that at
// least that share of all values is not greater. The mean is rounded down.
struct Summary {
	uint64_t min;
	uint64_t mean;
	uint64_t p50;
	uint64_t p90;
	uint64_t p99;
	uint64_t p99_9;
	uint64_t max;

	bool operator==(const Summary &) const = default;
};

// Nothing, if there are no values.
std::optional<Summary> summarize(std::vector<uint64_t> values);

} // namespace kdirect
