// SPDX-License-Identifier: GPL-2.0-only
// Credits: a SEND may be posted only towards a receive that the peer has
// posted. All counts are cumulative and wrap at 2^32, so that an update can be
// lost in a newer one, repeated, or overtaken, and never counts twice.
#pragma once

#include <cstdint>

namespace kd
{

// The sender's side: how many SENDs may still be posted.
class CreditWindow
{
public:
	// `taken`: of the peer's receives, before the first SEND.
	void open(uint32_t receives, uint32_t taken = 0)
	{
		receives_ = receives;
		granted_ = 0;
		sent_ = taken;
	}
	uint32_t available() const { return receives_ + granted_ - sent_; }
	void take() { sent_++; }
	void give_back() { sent_--; }
	enum class Update { Old, Grew, Lie };
	uint32_t granted() const { return granted_; }
	// The peer has posted `granted` receives anew, ever. Lie: more than were used.
	[[nodiscard]] Update update(uint32_t granted)
	{
		if (int32_t(granted - granted_) <= 0)
			return Update::Old;
		if (int32_t(sent_ - granted) < 0)
			return Update::Lie;
		granted_ = granted;
		return Update::Grew;
	}

private:
	uint32_t receives_ = 0; // posted by the peer at first
	uint32_t granted_ = 0;
	uint32_t sent_ = 0;
};

// The receiver's side: receives posted anew, and what the peer was told of them.
class CreditGrant
{
public:
	void reset() { granted_ = told_ = 0; }
	void posted() { granted_++; }
	uint32_t owed() const { return granted_ - told_; }
	// The value for a message that is about to go out.
	uint32_t tell() { return told_ = granted_; }

private:
	uint32_t granted_ = 0;
	uint32_t told_ = 0;
};

} // namespace kd
