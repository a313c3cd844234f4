// SPDX-License-Identifier: GPL-2.0-only
#include "report.h"

#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <utility>

namespace sim
{

namespace
{

/* A broken invariant repeats at every step; the first ones tell the story. */
constexpr std::size_t max_failures = 20;

std::vector<std::string> failures;

void default_reporter(const std::string &text)
{
	std::fprintf(stderr, "simulation: %s\n", text.c_str());
	std::abort();
}

Reporter current_reporter = default_reporter;
Reporter current_witness;

std::string format(const char *fmt, va_list args)
{
	char text[512];

	std::vsnprintf(text, sizeof(text), fmt, args);
	return text;
}

} // namespace

void fail(const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	std::string text = format(fmt, args);
	va_end(args);
	if (std::getenv("KD_SIM_LOG"))
		std::fprintf(stderr, "FAIL: %s\n", text.c_str());
	if (current_witness)
		current_witness(text);
	if (failures.size() < max_failures)
		failures.push_back(std::move(text));
}

void die(const char *fmt, ...)
{
	va_list args;

	for (const std::string &text : failures)
		std::fprintf(stderr, "simulation: %s\n", text.c_str());
	va_start(args, fmt);
	std::fprintf(stderr, "simulation: fatal: %s\n", format(fmt, args).c_str());
	va_end(args);
	std::abort();
}

std::vector<std::string> take_failures()
{
	return std::exchange(failures, {});
}

void set_reporter(Reporter reporter)
{
	current_reporter = reporter;
}

void set_witness(Reporter witness)
{
	current_witness = witness;
}

void report(const std::string &text)
{
	current_reporter(text);
}

} // namespace sim
