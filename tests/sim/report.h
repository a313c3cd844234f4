/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What the simulation finds wrong. fail() records and goes on, so that one run
 * shows everything; die() is for states that nothing can go on from.
 */
#pragma once
#include <string>
#include <vector>

namespace sim
{

[[gnu::format(printf, 1, 2)]] void fail(const char *fmt, ...);
[[noreturn, gnu::format(printf, 1, 2)]] void die(const char *fmt, ...);

/* What was recorded since the last call. The World's end takes and reports the rest. */
std::vector<std::string> take_failures();

/* Where the World's end reports; the default prints and aborts. */
using Reporter = void (*)(const std::string &text);
void set_reporter(Reporter reporter);
void report(const std::string &text);
/* Is told of each failure at once. */
void set_witness(Reporter witness);

} // namespace sim
