// SPDX-License-Identifier: GPL-2.0-only
#pragma once

#include <stdexcept>
#include <string>

namespace kdirect
{

// The exit status of the program is part of its interface.
enum ExitStatus : int { exit_ok = 0, exit_failed = 1, exit_usage = 2, exit_signal = 128 };

// Ends the command; main() prints the text behind "kdirect: ".
class Failure : public std::runtime_error
{
public:
	explicit Failure(const std::string &text, int exit_status = exit_failed)
		: std::runtime_error(text), status(exit_status)
	{
	}

	int status;
};

// As above, about the object that the command line names; main() puts that before the text.
class ObjectError : public Failure
{
public:
	using Failure::Failure;
};

class UsageError : public Failure
{
public:
	explicit UsageError(const std::string &text) : Failure(text, exit_usage) {}
};

// Why a value is not acceptable. Whoever knows which parameter it was for adds that.
class BadValue : public std::runtime_error
{
public:
	using std::runtime_error::runtime_error;
};

} // namespace kdirect
