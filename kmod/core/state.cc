// SPDX-License-Identifier: GPL-2.0-only
#include "state.hh"

#include "../../uapi/kdirect_netlink.h"

namespace kd
{

static_assert(uint32_t(State::New) == KDIRECT_STATE_NEW);
static_assert(uint32_t(State::Connecting) == KDIRECT_STATE_CONNECTING);
static_assert(uint32_t(State::Live) == KDIRECT_STATE_LIVE);
static_assert(uint32_t(State::Recovering) == KDIRECT_STATE_RECOVERING);
static_assert(uint32_t(State::Deleting) == KDIRECT_STATE_DELETING);
static_assert(uint32_t(State::Dead) == KDIRECT_STATE_DEAD);

bool transition(State from, State to)
{
	switch (from) {
	case State::New: return to == State::Connecting || to == State::Deleting;
	case State::Connecting:
		return to == State::Live || to == State::Recovering || to == State::Deleting;
	case State::Live: return to == State::Recovering || to == State::Deleting;
	case State::Recovering:
		return to == State::Live || to == State::Dead || to == State::Deleting;
	case State::Deleting: return to == State::Dead;
	case State::Dead: return false;
	}
	return false;
}

const char *name(State state)
{
	switch (state) {
	case State::New: return "new";
	case State::Connecting: return "connecting";
	case State::Live: return "live";
	case State::Recovering: return "recovering";
	case State::Deleting: return "deleting";
	case State::Dead: return "dead";
	}
	return "unknown";
}

} // namespace kd
