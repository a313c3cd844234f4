// SPDX-License-Identifier: GPL-2.0-only
#pragma once

#include <optional>
#include <string>

#include "arguments.h"
#include "fields.h"
#include "netlink.h"

namespace kdirect
{

// The name and every setting that has an attribute.
void put(Message &message, const Arguments &arguments);

// Sends the arguments as they are and waits for the kernel's answer.
int execute(Client &client, uint8_t command, const Arguments &arguments, int flags = 0);

// Shows the named object, or all.
int show(uint8_t command, const View &view, const Arguments &arguments, const Output &output);

// Nothing if there is no such object.
std::optional<Attributes> find(Client &client, uint8_t command, const std::string &name);

} // namespace kdirect
