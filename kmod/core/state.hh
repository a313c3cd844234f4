// SPDX-License-Identifier: GPL-2.0-only
// The states of a channel; their meaning is in uapi/kdirect_netlink.h.
#pragma once

#include <cstdint>

namespace kd
{

enum class State : uint32_t { New, Connecting, Live, Recovering, Deleting, Dead };

// May a channel go from one state to the other?
bool transition(State from, State to);
const char *name(State state);

} // namespace kd
