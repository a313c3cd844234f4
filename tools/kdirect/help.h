// SPDX-License-Identifier: GPL-2.0-only
#pragma once

#include <string>

#include "command.h"

namespace kdirect
{

std::string help();
std::string help(const Object &object);
std::string help(const Object &object, const Command &command);

// "channel add"; only "ping" where the command is not written.
std::string command_path(const Object &object, const Command &command);

} // namespace kdirect
