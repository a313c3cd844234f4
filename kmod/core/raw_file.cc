// SPDX-License-Identifier: GPL-2.0-only
// The open file of a raw channel's node: there is one at a time, and the channel ends with it.
#include "raw.hh"

#include "channel.hh"
#include "uring.hh"

using namespace kd;

// Why nothing can be done with it any more.
int Raw::refusal() const
{
	if (channel.current() <= State::Live && !channel.broken)
		return 0;
	return channel.delete_requested ? KD_ENODEV : KD_EPIPE;
}

bool Raw::is_held() const
{
	return held && answer == RawAnswer::None && channel.current() == State::Connecting;
}

bool Raw::may_read() const
{
	return depth.load(std::memory_order_relaxed);
}

// The peer is told, and it is no error.
void Raw::end_in_order()
{
	channel.end_of_stream = true;
	channel.peer_gone.store(true, std::memory_order_release);
	channel.kick();
}

void Raw::closed(Sleepable s, DescFile &)
{
	{
		SpinGuard guard(channel.state_lock);
		file = nullptr;
		file_closed = true;
	}
	channel.opens.fetch_sub(1);
	if (kd_work_cancel(&watch_work))
		channel.put(s);
	end_in_order();
}

Status Raw::open(DescFile &by)
{
	SpinGuard guard(channel.state_lock);
	if (file)
		return KD_EBUSY;
	if (file_closed || refusal())
		return KD_EPIPE;
	file = &by;
	channel.opens.fetch_add(1);
	return {};
}

// --- commands whose program is gone ----------------------------------------------------------

// io_uring keeps the file until they have ended, and a receive may wait for ever. So somebody
// looks whether their process ends.
void Raw::watch_commands()
{
	constexpr uint64_t look_ns = 1000000000;
	channel.get();
	if (!kd_work_queue_after(&watch_work, look_ns))
		(void)channel.refs.put(); // it holds one already
}

void Raw::look_at_commands()
{
	bool any = false, orphan = false;
	{
		SpinGuard state(channel.state_lock);
		if (!file)
			return;
		SpinGuard guard(file->lock);
		for (Request &request : file->commands->requests) {
			any |= request.left != 0;
			orphan |= request.left && kd_uring_orphan(request.command);
		}
	}
	if (orphan) {
		file_closed = true; // as soon as it can be
		end_in_order();
	} else if (any) {
		watch_commands();
	}
}

// --- what it is ------------------------------------------------------------------------------

void Raw::describe(kdirect_raw_info &out)
{
	out = {};
	kd_format(out.name, sizeof(out.name), "%s", channel.name);
	out.depth = channel.terms.depth;
	out.send_sges = send_sges;
	out.recv_sges = recv_sges;
	out.read_sges = read_sges;
	out.eager_limit = channel.copy_limit();
	out.max_length = max_length;
	out.mr_pages = channel.mr_pages;
	out.poll_queues = channel.nr_poll_queues;
	out.flags = (is_held() ? KDIRECT_RAW_HELD : 0) |
		    (channel.initiator ? 0 : KDIRECT_RAW_ACCEPTS) |
		    (channel.atomics ? KDIRECT_RAW_ATOMICS : 0) | (iwarp ? 0 : KDIRECT_RAW_IMM) |
		    KDIRECT_RAW_READS;
	SpinGuard guard(channel.state_lock);
	out.state = uint32_t(channel.current());
	out.error = uint32_t(channel.error.err);
	out.initiator_depth = depth;
	out.responder_resources = resources;
	out.data_length = uint16_t(peer_length);
	copy_bytes(out.data, peer_data, sizeof(out.data));
}

namespace
{

// Nothing but the private data matters to a refusal.
bool is_valid(const kdirect_raw_connect &call, RawAnswer what, bool initiator)
{
	uint32_t most = what == RawAnswer::Reject ? KDIRECT_RAW_REJECT_MAX
			: initiator               ? KDIRECT_RAW_CONNECT_MAX
						  : KDIRECT_RAW_ACCEPT_MAX;
	for (uint32_t word : call.reserved)
		if (word)
			return false;
	if (call.length > most)
		return false;
	if (what == RawAnswer::Reject)
		return !call.initiator_depth && !call.responder_resources && !call.retry_count &&
		       !call.rnr_retry_count;
	return call.retry_count <= limits::max_retry_count &&
	       call.rnr_retry_count <= limits::max_retry_count;
}

} // namespace

Status Raw::answer_with(Sleepable s, const kdirect_raw_connect &call, RawAnswer what, bool waits)
{
	if (!is_valid(call, what, channel.initiator))
		return KD_EINVAL;
	{
		SpinGuard guard(channel.state_lock);
		if (!is_held())
			return KD_EBUSY;
		params.data_len = call.length;
		copy_bytes(params.data, call.data, call.length);
		params.initiator_depth = call.initiator_depth;
		params.responder_resources = call.responder_resources;
		params.retry_count = call.retry_count;
		params.rnr_retry_count = call.rnr_retry_count;
		answer.store(what, std::memory_order_release);
	}
	channel.kick();
	if (what == RawAnswer::Reject || !waits)
		return {};
	Status st = waitq.wait(s, KD_WAIT_INTERRUPTIBLE, KD_FOREVER,
			       [&] { return channel.current() != State::Connecting; });
	if (!st.ok() || channel.current() == State::Live)
		return st;
	SpinGuard guard(channel.state_lock);
	return channel.error.err ? channel.error.err : KD_EPIPE;
}

// --- the shim's calls ----------------------------------------------------------------------

int kd_raw_open(struct kd_channel *channel, struct kd_desc_file **out)
{
	Sleepable s = ShimEntry::may_sleep();
	DescFile *file = DescFile::create(s, *channel);
	if (!file)
		return KD_ENOMEM;
	if (Status st = channel->raw->open(*file); !st.ok()) {
		file->discard(s);
		return st.err();
	}
	file->room[0] = file->room[1] = channel->terms.depth;
	file->can_read = file->can_write = true;
	*out = file;
	return 0;
}

int kd_raw_connect(struct kd_desc_file *file, const struct kdirect_raw_connect *call, bool nowait)
{
	return file->channel->raw
		->answer_with(ShimEntry::may_sleep(), *call, RawAnswer::Connect, !nowait)
		.err();
}

int kd_raw_reject(struct kd_desc_file *file, const struct kdirect_raw_connect *call)
{
	return file->channel->raw
		->answer_with(ShimEntry::may_sleep(), *call, RawAnswer::Reject, false)
		.err();
}

void kd_raw_describe(struct kd_desc_file *file, struct kdirect_raw_info *out)
{
	file->channel->raw->describe(*out);
}

uint32_t kd_raw_poll(struct kd_desc_file *file)
{
	Channel &channel = *file->channel;
	{
		SpinGuard guard(file->lock);
		file->watched = true;
	}
	if (channel.has_poll_queues())
		channel.arm_all();
	bool over = channel.raw->refusal();
	uint32_t events = file->nr_done.load() ? KD_POLL_IN : 0;
	if (channel.current() == State::Live)
		events |= KD_POLL_OUT;
	if (over && !file->under_way.load())
		events |= KD_POLL_HUP;
	return events;
}
