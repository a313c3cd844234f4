// SPDX-License-Identifier: GPL-2.0-only
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace kdirect
{

// Makes bytes that a peer or another user may have chosen safe for a terminal: control
// characters and what is not UTF-8 become \xNN.
std::string escape(std::string_view text);

// Throws BadValue unless text can name a new listener or channel.
void check_name(std::string_view text);

// As check_name(), and also LISTENER.N, the name of a channel that a listener accepted.
void check_channel_name(std::string_view text);

// Throws BadValue unless text can be the name of an RDMA device.
void check_device_name(std::string_view text);

// Candidates that word is equal to, or else those that begin with it.
std::vector<std::string_view> abbreviated(std::string_view word,
					  std::span<const std::string_view> candidates);

// "a, b or c"
std::string one_of(std::span<const std::string_view> words);

// "ECONNREFUSED", or "errno 4711" where libc has no name.
std::string errno_name(int error);

// "Connection refused (ECONNREFUSED)", never translated.
std::string describe_errno(int error);

} // namespace kdirect
