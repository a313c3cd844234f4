// SPDX-License-Identifier: GPL-2.0-only
// A channel without a peer: nothing is posted, since its queues are sealed, and its
// work does only what the state asks for.
#pragma once

#include "channel.hh"
#include "check.h"

class LoneChannel
{
public:
	explicit LoneChannel(struct kunit *test);
	~LoneChannel();
	LoneChannel(const LoneChannel &) = delete;
	LoneChannel &operator=(const LoneChannel &) = delete;

	explicit operator bool() const { return channel_; }
	kd::Channel *operator->() const { return channel_; }
	kd::Channel &operator*() const { return *channel_; }
	kd::Queue &queue(unsigned index) const { return *channel_->queues[index]; }
	kd::Sleepable sleepable() const { return s_; }

	// As if it had come there; what was live before is not forgotten when dead.
	void set(kd::State state);
	// Lets its work run until the state is `state`.
	bool reaches(kd::State state) const;
	int error() const;

private:
	kd::Sleepable s_;
	kd::Channel *channel_ = nullptr;
};
