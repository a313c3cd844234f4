// SPDX-License-Identifier: GPL-2.0-only
#pragma once

#include "arguments.h"
#include "request.h"

namespace kdirect
{

// Deletes the object with the command `del`, and waits until the event `removed` comes or
// `get` finds it no more; with "nowait" not so long.
int del_and_wait(uint8_t del, uint8_t get, uint64_t removed, const Arguments &arguments);

} // namespace kdirect
