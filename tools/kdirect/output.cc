// SPDX-License-Identifier: GPL-2.0-only
#include "output.h"

#include <cerrno>
#include <cstdio>

#include "failure.h"
#include "text.h"

namespace kdirect
{

void Output::line(std::string_view text) const
{
	std::fwrite(text.data(), 1, text.size(), stdout);
	std::fputc('\n', stdout);
}

void Output::value(const Json &json) const
{
	// Bytes that are not UTF-8 become U+FFFD; the default would throw.
	line(_pretty ? json.dump(4, ' ', false, Json::error_handler_t::replace)
		     : json.dump(-1, ' ', false, Json::error_handler_t::replace));
}

void Output::flush()
{
	if (std::fflush(stdout) != 0 || std::ferror(stdout))
		throw Failure("cannot write the output: " + describe_errno(errno));
}

} // namespace kdirect
