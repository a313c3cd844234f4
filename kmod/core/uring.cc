// SPDX-License-Identifier: GPL-2.0-only
// Commands of io_uring: each is one descriptor. Where it would have to wait when it is issued
// first, it is refused as a whole, and io_uring issues it again in a worker, which waits.
#include "uring.hh"

#include "channel.hh"
#include "raw.hh"

using namespace kd;

// --- requests ----------------------------------------------------------------------------

bool Request::command_part_done(int error, uint16_t wc_status, uint64_t before)
{
	SpinGuard guard(file->lock);
	return last_part(error, wc_status, before);
}

kd_uring_end Request::end_command()
{
	DescFile &owner = *file;
	kd_uring_end end{
		.result = err ? -err : int32_t(length),
		.extra = err ? status : old | uint64_t(flags) << 32 | data,
	};
	if (events)
		owner.channel->sleepers.fetch_sub(1);
	if (FixedBuffer *used = std::exchange(buffer, nullptr))
		used->put_later();
	SpinGuard guard(owner.lock);
	owner.give_back(this);
	return end;
}

void Request::complete_command()
{
	kd_uring *to = command;
	kd_uring_end end = end_command();
	kd_uring_done(to, &end); // io_uring holds the file until then
}

namespace
{

// On first use, which takes its time.
Status prepare(Sleepable s, DescFile &file, bool nowait)
{
	if (file.commands)
		return {};
	if (nowait)
		return KD_EAGAIN;
	if (Status st = file.prepare(s); !st.ok())
		return st;
	auto *made = create<Commands>(s);
	if (!made)
		return KD_ENOMEM;
	if (file.messages) {
		made->messages = create_array<Message>(s, Commands::most);
		if (!made->messages) {
			destroy(s, made);
			return KD_ENOMEM;
		}
	}
	for (uint32_t i = 0; i < Commands::most; i++) {
		Request &request = made->requests[i];
		request.file = &file;
		request.message = made->messages ? &made->messages[i] : nullptr;
		made->free.push_back(&request);
	}
	SpinGuard guard(file.lock);
	file.commands = made;
	return {};
}

// lock: on a raw channel a command takes the place of another descriptor.
bool has_room(const DescFile &file, const kdirect_desc &desc)
{
	return !file.commands->free.empty() &&
	       (!file.channel->raw || file.room[desc.opcode == KDIRECT_OP_RECV]);
}

// nullptr: none is free.
Request *take(DescFile &file, const kdirect_desc &desc, const kd_uring_call &call)
{
	SpinGuard guard(file.lock);
	if (!has_room(file, desc))
		return nullptr;
	Request *request = file.commands->free.pop();
	if (file.channel->raw)
		file.room[desc.opcode == KDIRECT_OP_RECV]--;
	request->start(desc, 0);
	request->command = call.cmd;
	request->events = false;
	return request;
}

// Until one is given back.
Status await_free(Sleepable s, DescFile &file, const kdirect_desc &desc)
{
	auto count = [&](uint32_t by) {
		SpinGuard guard(file.lock);
		file.commands->waiters += by;
	};
	auto any = [&] {
		SpinGuard guard(file.lock);
		return has_room(file, desc);
	};
	count(1);
	Status st = file.waitq.wait(s, KD_WAIT_INTERRUPTIBLE, KD_FOREVER,
				    [&] { return any() || file.refusal(); });
	count(uint32_t(-1));
	return st.ok() ? Status(file.refusal()) : st;
}

// --- issuing -----------------------------------------------------------------------------

// What is wrong with it because it is a command.
Status check(const DescFile &file, const kdirect_desc &desc, const kd_uring_call &call)
{
	if (call.polls && !file.channel->has_poll_queues())
		return KD_EOPNOTSUPP;
	if (desc.user_data ||
	    (call.registered && (is_atomic(desc.opcode) || (desc.flags & KDIRECT_DESC_FIXED))))
		return KD_EINVAL;
	return is_atomic(desc.opcode) && !call.wide ? KD_EOPNOTSUPP : 0;
}

// With a request, or why there is none.
Status issue(Sleepable s, DescFile &file, const kdirect_desc &desc, const kd_uring_call &call,
	     Request *&request) KD_NO_ANALYSIS
{
	for (;;) {
		Status st;
		if (!call.nowait)
			st = file.submit_lock.lock_interruptible(s);
		else if (!file.submit_lock.try_lock())
			st = KD_EAGAIN;
		if (!st.ok())
			return st;
		st = prepare(s, file, call.nowait);
		if (st.ok())
			request = take(file, desc, call);
		if (request)
			st = file.submit(s, *request, desc, call);
		file.submit_lock.unlock();
		if (request && st.ok() && file.messages && !call.nowait)
			file.await_message(s, *request);
		if (request || !st.ok())
			return st;
		st = call.nowait ? Status(KD_EAGAIN) : await_free(s, file, desc);
		if (!st.ok())
			return st;
	}
}

} // namespace

bool kd_desc_command(struct kd_desc_file *file, const struct kdirect_desc *desc,
		     const struct kd_uring_call *call, struct kd_uring_end *end)
{
	Sleepable s = ShimEntry::may_sleep();
	Request *request = nullptr;
	file->refs.get(); // in a worker the command, and with it the file, may go before us
	Status st = check(*file, *desc, *call);
	if (st.ok())
		st = issue(s, *file, *desc, *call, request);
	if (st.ok() && request && file->channel->raw)
		file->channel->raw->watch_commands();
	bool over = !request || request->command_part_done(st.err(), 0, 0);
	if (over && request)
		*end = request->end_command();
	else if (over)
		*end = {.result = -st.err(), .extra = 0};
	file->put_later();
	return over;
}

bool kd_desc_unplug(struct kd_desc_file *file) KD_NO_ANALYSIS
{
	Sleepable s = ShimEntry::may_sleep();
	if (!file->batch->left.load(std::memory_order_acquire))
		return true;
	if (!file->submit_lock.try_lock())
		return false;
	file->post_mapped(s);
	file->submit_lock.unlock();
	return true;
}

uint32_t kd_desc_command_poll(struct kd_desc_file *file)
{
	return file->channel->poll_once(true);
}
