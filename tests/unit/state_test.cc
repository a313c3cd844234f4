// SPDX-License-Identifier: GPL-2.0-only
// Every pair of states, and the names that programs see.
#include <gtest/gtest.h>

#include <set>
#include <string>

#include "../../kmod/core/state.hh"
#include "../../uapi/kdirect_netlink.h"

using kd::State;

namespace
{

constexpr State states[] = {State::New,        State::Connecting, State::Live,
			    State::Recovering, State::Deleting,   State::Dead};

TEST(State, EveryPair)
{
	/* from, to; everything else is refused */
	const std::set<std::pair<State, State>> legal = {
		{State::New, State::Connecting},      {State::New, State::Deleting},
		{State::Connecting, State::Live},     {State::Connecting, State::Recovering},
		{State::Connecting, State::Deleting}, {State::Live, State::Recovering},
		{State::Live, State::Deleting},       {State::Recovering, State::Deleting},
		{State::Recovering, State::Dead},     {State::Deleting, State::Dead},
		{State::Recovering, State::Live},
	};

	for (State from : states)
		for (State to : states)
			EXPECT_EQ(kd::transition(from, to), legal.contains({from, to}))
				<< kd::name(from) << " -> " << kd::name(to);
}

TEST(State, DeadIsTheEnd)
{
	for (State to : states)
		EXPECT_FALSE(kd::transition(State::Dead, to));
}

TEST(State, ValuesAreTheInterfaces)
{
	EXPECT_EQ(static_cast<int>(State::New), KDIRECT_STATE_NEW);
	EXPECT_EQ(static_cast<int>(State::Connecting), KDIRECT_STATE_CONNECTING);
	EXPECT_EQ(static_cast<int>(State::Live), KDIRECT_STATE_LIVE);
	EXPECT_EQ(static_cast<int>(State::Recovering), KDIRECT_STATE_RECOVERING);
	EXPECT_EQ(static_cast<int>(State::Deleting), KDIRECT_STATE_DELETING);
	EXPECT_EQ(static_cast<int>(State::Dead), KDIRECT_STATE_DEAD);
}

TEST(State, NamesDiffer)
{
	std::set<std::string> names;

	for (State state : states)
		names.insert(kd::name(state));
	EXPECT_EQ(names.size(), std::size(states));
}

TEST(State, NoOtherStates)
{
	auto other = static_cast<State>(std::size(states));

	for (State state : states) {
		EXPECT_FALSE(kd::transition(other, state));
		EXPECT_FALSE(kd::transition(state, other));
	}
	EXPECT_STREQ(kd::name(other), "unknown");
}

} // namespace
