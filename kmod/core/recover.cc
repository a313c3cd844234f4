// SPDX-License-Identifier: GPL-2.0-only
// Recovery: what a session does when its connection fails. The connection is taken down to
// the last QP; what users have under way stays. The initiator connects again, with growing
// delays; the target waits for it. Then both carry on (replay.cc, map_control.cc), or the
// loss timeout ends the channel. Everything here is called by run(), but adopt_again().
//
//   Down ------> Waiting ------> Trying ------> State::Live
//    ^              |               |
//    |   (over: then it is the end) |
//    +--------------+---------------+
#include "channel.hh"
#include "registry.hh"

using namespace kd;
using wire::Refusal;
using wire::Verdict;

namespace
{

constexpr uint64_t ms = 1000000;
constexpr uint64_t min_attempt_ns = 1000 * ms;
constexpr uint64_t never = UINT64_MAX;

uint64_t deadline(uint64_t since_ns, uint32_t timeout_ms)
{
	return timeout_ms == limits::never ? never : since_ns + timeout_ms * ms;
}

uint64_t least(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

} // namespace

uint64_t kd_channel::loss_deadline() const
{
	return deadline(outage_since_ns, loss_timeout_ms);
}

uint64_t kd_channel::fast_deadline() const
{
	bool off = fails_fast || !fast_io_fail_ms;
	return off ? never : deadline(outage_since_ns, fast_io_fail_ms);
}

uint64_t kd_channel::outage_wakeup() const
{
	uint64_t at = least(loss_deadline(), fast_deadline());
	if (outage == Outage::Trying)
		at = least(at, attempt_end_ns);
	else if (initiator)
		at = least(at, next_attempt_ns);
	return at == never ? 0 : at;
}

// The connection has failed, before it was live or afterwards.
void kd_channel::break_down(Sleepable s)
{
	bool back = !raw && current() == State::Live && loss_timeout_ms && !hopeless &&
		    !peer_closing && !delete_requested;
	outage = Outage::Down;
	outage_since_ns = kd_now_ns();
	next_attempt_ns = 0;
	tries = 0;
	if (back)
		outages.add();
	resumes.store(back, std::memory_order_release);
	enter(s, State::Recovering);
}

bool kd_channel::recover(Sleepable s)
{
	if (outage == Outage::Down) {
		if (!resumes) {
			teardown(s);
			enter(s, State::Dead);
			return true;
		}
		take_down(s);
		forget_unfinished(s);
		outage = Outage::Waiting;
		return true;
	}
	if (outage_over(s)) {
		outage = Outage::Down;
		return true;
	}
	if (kd_now_ns() >= fast_deadline())
		fail_fast(s);
	if (outage == Outage::Waiting) {
		let_device_go(s);
		return begin_attempt(s);
	}
	if (!broken && kd_now_ns() >= attempt_end_ns)
		KD_FAIL(*this, KD_ETIMEDOUT, "not connected again in attempt %u", tries);
	if (!broken)
		return progress(s);
	outage = Outage::Down;
	return true;
}

// What was waited for does not come any more.
bool kd_channel::outage_over(Sleepable)
{
	bool late = kd_now_ns() >= loss_deadline();
	if (!hopeless && !late)
		return false;
	{
		SpinGuard guard(state_lock);
		if (hopeless && attempt_error.err) {
			error = attempt_error;
		} else if (late) {
			char why[sizeof(error.text)];
			copy_bytes(why, error.text, sizeof(why));
			kd_format(error.text, sizeof(error.text), "no connection for %u ms; %s",
				  loss_timeout_ms.load(), why);
		}
	}
	resumes.store(false, std::memory_order_release);
	wake_users();
	return true;
}

// --- attempts --------------------------------------------------------------------------

// True: there may be something to do at once.
bool kd_channel::begin_attempt(Sleepable s)
{
	uint64_t now = kd_now_ns();
	if (initiator ? now < next_attempt_ns : !take_pending(s))
		return false;
	tries++;
	attempts.add();
	forget_attempt();
	if (initiator) {
		attempt.fetch_add(1);
		back_off();
	} else {
		attempt_end_ns = now + params.connect_timeout_ms * ms;
	}
	outage = Outage::Trying;
	return true;
}

void kd_channel::forget_attempt()
{
	hello_sent = false;
	started = false;
	broken = false;
	{
		SpinGuard guard(state_lock);
		attempt_error = {};
	}
	SpinGuard guard(ctrl_lock);
	ctrl_flags = 0;
}

// An attempt that hangs is given up when the next one is due: as soon as there is a path
// again, it takes no longer than the delay in force.
void kd_channel::back_off()
{
	uint64_t most = reconnect_max_delay_ms * ms, delay = reconnect_delay_ms * ms;
	for (uint32_t i = 1; i < tries && delay < most; i++)
		delay *= 2;
	delay = least(delay, most);
	uint64_t now = kd_now_ns();
	uint64_t limit = delay < min_attempt_ns ? min_attempt_ns : delay;
	attempt_end_ns = now + limit;
	// Many channels of one machine do not all come at once.
	next_attempt_ns = now + delay - kd_random() % (delay / 5 + 1);
}

bool kd_channel::take_pending(Sleepable s)
{
	Queue &control = *queues[0];
	MutexGuard guard(registry().lock, s);
	if (!pending_cm)
		return false;
	control.cm = std::exchange(pending_cm, nullptr);
	control.reads_in = pending_reads_in;
	control.reads_out = pending_reads_out;
	control.step = Step::Requested;
	trying = true;
	return true;
}

void kd_channel::drop_pending(Sleepable s)
{
	kd_cm *cm;
	{
		MutexGuard guard(registry().lock, s);
		cm = std::exchange(pending_cm, nullptr);
	}
	if (cm)
		kd_cm_destroy(cm);
}

// With the registry lock, in the event of a listener.
Verdict kd_channel::adopt_again(Sleepable, const kd_cm_event &event,
				const wire::RequestInfo &request)
{
	if (request.nonce != nonce || current() < State::Live || ended() || delete_requested ||
	    peer_closing || hopeless || !loss_timeout_ms)
		return {Refusal::NoChannel};
	if (request.queues != nr_interrupt_queues || request.poll_queues != nr_poll_queues ||
	    agreed() != limits::Terms{request.depth, request.eager_limit, request.max_message})
		return {Refusal::Malformed};
	if (int32_t(request.attempt - attempt) <= 0 || pending_cm)
		return {Refusal::Again};
	attempt = request.attempt;
	if (request.keep_ms)
		loss_timeout_ms = uint32_t(least(request.keep_ms, limits::max_keep_ms));
	pending_cm = event.new_cm;
	pending_reads_in = event.reads_in;
	pending_reads_out = event.reads_out;
	kd_cm_set_queue(event.new_cm, queues[0]);
	if (current() == State::Live || trying)
		KD_FAIL(*this, KD_ECONNRESET, "the peer connects anew");
	kick();
	return {};
}

// --- what stays, and what does not ---------------------------------------------------------

// Messages that have not arrived whole and in order come again.
void kd_channel::forget_unfinished(Sleepable)
{
	{
		SpinGuard guard(ctrl_lock);
		done = {};
		done_waits = false;
		keys_sending = nullptr;
		owing = 0;
	}
	SpinGuard guard(rx_lock);
	order.forget_rest([&](RxSlot *slot) {
		bool counted = slot->pages || (!slot->ready && !slot->wants_fetch);
		if (counted)
			fetched_bytes -= slot->length;
		kd_pages_free(std::exchange(slot->pages, nullptr));
		slot->held = false;
	});
	arrived_before = fetch_cursor = order.received();
}

void kd_channel::fail_fast(Sleepable)
{
	auto any = [](const IoSlot &, const Mapping *) { return true; };
	fails_fast.store(true, std::memory_order_release);
	for (uint32_t i = 1; i < nr_queues; i++)
		queues[i]->end_io(any, nullptr, KD_ETIMEDOUT);
	wake_users();
}

// A device that is about to go waits for its channels. Buffers that are mapped for it are lost.
void kd_channel::let_device_go(Sleepable s)
{
	bool going;
	{
		MutexGuard guard(registry().lock, s);
		going = device && device->removing;
	}
	if (going)
		leave_device(s);
}

void kd_channel::leave_device(Sleepable s)
{
	auto fixed_one = [](const IoSlot &slot, const Mapping *) { return slot.fixed != nullptr; };
	lose_fixed(s);
	for (uint32_t i = 1; i < nr_queues; i++)
		queues[i]->end_io(fixed_one, nullptr, KD_ESTALE);
	unmap_fixed(s);
	registry().detach(s, *this);
}

// --- carrying on ---------------------------------------------------------------------------

// Every queue is connected, and both ends have said what has arrived.
bool kd_channel::carry_on(Sleepable s)
{
	for (uint32_t i = 1; i < nr_queues && !broken; i++)
		queues[i]->carry_on(s);
	return !broken;
}

// The first error is that of the outage, and is over.
void kd_channel::back_again()
{
	uint64_t took_ms = (kd_now_ns() - outage_since_ns) / ms;
	outage_ms.add(took_ms);
	fails_fast = false;
	await_grants();
	SpinGuard guard(state_lock);
	last_error = error;
	error = attempt_error = {};
	kd_log(KD_LOG_INFO, "channel %s: live again after %llu ms and %u attempts", name,
	       static_cast<unsigned long long>(took_ms), tries);
}
