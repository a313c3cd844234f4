// SPDX-License-Identifier: GPL-2.0-only
// A channel without a peer: nothing is posted, since its queues are sealed, and its
// work does only what the state asks for.
#pragma once

#include "channel.hh"
#include "check.h"

class LoneChannel
{
public:
	explicit LoneChannel(struct kunit *test) : s_(kd::ShimEntry::may_sleep())
	{
		kd_channel_params p;
		kd_channel_defaults(&p);
		kd_format(p.name, sizeof(p.name), "kdk");
		p.peer.addr.len = 4;
		p.peer.port = 1;
		p.drain_timeout_ms = 100;
		channel_ = kd::Channel::create_initiator(s_, kdk_net(), p);
		if (!channel_)
			kdk_fail(test, __FILE__, __LINE__, "no memory for a channel");
	}
	~LoneChannel()
	{
		if (!channel_)
			return;
		set(kd::State::Dead);
		channel_->kick(); // what waits for a time has a reference, too
		kd_work_flush_all();
		channel_->put(s_);
	}
	LoneChannel(const LoneChannel &) = delete;
	LoneChannel &operator=(const LoneChannel &) = delete;

	explicit operator bool() const { return channel_; }
	kd::Channel *operator->() const { return channel_; }
	kd::Queue &queue(unsigned index) const { return *channel_->queues[index]; }
	kd::Sleepable sleepable() const { return s_; }

	// As if it had come there; what was live before is not forgotten when dead.
	void set(kd::State state)
	{
		channel_->state.store(state);
		channel_->ever_live = state >= kd::State::Live;
	}
	// Lets its work run until the state is `state`.
	bool reaches(kd::State state) const
	{
		for (int i = 0; i < 1000; i++) {
			kd_work_flush_all();
			if (channel_->current() == state)
				return true;
			kdk_sleep_ms(10);
		}
		return false;
	}
	int error() const
	{
		kd_work_flush_all();
		kd::SpinGuard guard(channel_->state_lock);
		return channel_->error.err;
	}

private:
	kd::Sleepable s_;
	kd::Channel *channel_ = nullptr;
};
