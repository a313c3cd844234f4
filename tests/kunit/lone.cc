// SPDX-License-Identifier: GPL-2.0-only
#include "lone.hh"

using namespace kd;

LoneChannel::LoneChannel(struct kunit *test) : s_(ShimEntry::may_sleep())
{
	kd_channel_params p;
	kd_channel_defaults(&p);
	kd_format(p.name, sizeof(p.name), "kdk");
	p.peer.addr.len = 4;
	p.peer.port = 1;
	p.drain_timeout_ms = 100;
	channel_ = Channel::create_initiator(s_, kdk_net(), p);
	if (!channel_)
		kdk_fail(test, __FILE__, __LINE__, "no memory for a channel");
}

LoneChannel::~LoneChannel()
{
	if (!channel_)
		return;
	set(State::Dead);
	channel_->kick(); // what waits for a time has a reference, too
	kd_work_flush_all();
	channel_->put(s_);
}

void LoneChannel::set(State state)
{
	channel_->state.store(state);
	channel_->ever_live = state >= State::Live;
}

bool LoneChannel::reaches(State state) const
{
	for (int i = 0; i < 1000; i++) {
		kd_work_flush_all();
		if (channel_->current() == state)
			return true;
		kdk_sleep_ms(10);
	}
	return false;
}

int LoneChannel::error() const
{
	kd_work_flush_all();
	SpinGuard guard(channel_->state_lock);
	return channel_->error.err;
}
