// SPDX-License-Identifier: GPL-2.0-only
// The states of a channel: every pair of them, and what each event makes of each.
#include "state.hh"

#include "core_cases.h"
#include "lone.hh"

using kd::State;

namespace
{

constexpr State states[] = {State::New,        State::Connecting, State::Live,
			    State::Recovering, State::Deleting,   State::Dead};

// As DESIGN has it, one row for each state, one bit for each that may follow.
constexpr uint32_t bit(State state)
{
	return 1U << uint32_t(state);
}
constexpr uint32_t follows[] = {
	bit(State::Connecting) | bit(State::Deleting),
	bit(State::Live) | bit(State::Recovering) | bit(State::Deleting),
	bit(State::Recovering) | bit(State::Deleting),
	bit(State::Live) | bit(State::Deleting) | bit(State::Dead),
	bit(State::Dead),
	0,
};

} // namespace

void kdk_case_transition(struct kunit *test)
{
	State from = states[kdk_param(test)->a], to = states[kdk_param(test)->b];
	EXPECT_EQ(kd::transition(from, to), (follows[uint32_t(from)] & bit(to)) != 0);
}

void kdk_case_names_differ(struct kunit *test)
{
	for (State a : states)
		for (State b : states) {
			const char *x = kd::name(a), *y = kd::name(b);
			while (*x && *x == *y)
				x++, y++;
			EXPECT_EQ(*x == *y, a == b);
		}
}

// Every channel ends up dead, by itself, with the first cause; and what a reader gets
// then is that cause, or the end of the stream.
void kdk_case_event_in_state(struct kunit *test)
{
	State from = states[kdk_param(test)->a];
	enum { Fail, Delete, FailAndDelete, LeftInOrder, LeftEarly, TimeIsUp };
	uint32_t event = kdk_param(test)->b;
	bool fails = event == Fail || event == FailAndDelete;
	bool deletes = event == Delete || event == FailAndDelete;
	LoneChannel channel(test);
	if (!channel)
		return;
	channel.set(from);
	kd_error first{}, second{};
	first.err = KD_EIO;
	second.err = KD_ENODEV;
	if (fails) {
		channel->fail(first);
		channel->fail(second);
	}
	if (deletes)
		channel->request_delete();
	channel->end_of_stream = event == LeftInOrder;
	channel->peer_gone = event == LeftInOrder || event == LeftEarly;
	channel->kick();
	// Alone it would stay as it is, live and keeping alive.
	if (from == State::Live && event == TimeIsUp) {
		kd_work_flush_all();
		EXPECT(channel->current() == State::Live);
		return;
	}
	ASSERT(channel.reaches(State::Dead));

	int wanted = fails                                            ? KD_EIO
		     : event == LeftEarly && from == State::Live      ? KD_ECONNRESET
		     : event == TimeIsUp && from == State::Connecting ? KD_ETIMEDOUT
								      : 0;
	EXPECT_EQ(channel.error(), wanted);
	int end = event == LeftInOrder ? 0 : wanted ? wanted : deletes ? KD_ENODEV : 0;
	EXPECT_EQ(channel->read_end(), end);
	EXPECT(channel->send_ended());
	for (unsigned i = 0; i < channel->nr_queues; i++)
		EXPECT(channel.queue(i).sealed.load());
	// Whatever comes now changes nothing any more.
	channel->fail(second);
	channel->request_delete();
	kd_work_flush_all();
	EXPECT(channel->current() == State::Dead);
	EXPECT_EQ(channel.error(), wanted ? wanted : KD_ENODEV);
}
