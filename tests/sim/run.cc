// SPDX-License-Identifier: GPL-2.0-only
// World: running it, and what an administrator does.
#include <cstring>

#include "watch.h"
#include "world.h"

namespace sim
{

namespace
{

template <std::size_t N>
void set_name(char (&field)[N], const std::string &name)
{
	std::memset(field, 0, N);
	std::memcpy(field, name.data(), std::min(name.size(), N - 1));
}

} // namespace

Task World::spawn(std::string name, std::function<void()> fn, Node *on)
{
	return sched.spawn(std::move(name), Context::Process, on ? on : &node(), std::move(fn))->id;
}

void World::call(const std::function<void()> &fn, const char *what, Node *on)
{
	if (sched.current()) {
		fn();
		return;
	}
	if (!finish({spawn(what, fn, on)}))
		die("%s does not return", what);
}

bool World::run_until(const std::function<bool()> &cond, uint64_t timeout)
{
	uint64_t end = now() + timeout;

	if (sched.current()) {
		while (!cond() && now() < end)
			sched.sleep(1 * us);
		return cond();
	}
	while (!cond()) {
		if (now() >= end || !sched.busy(end) || !sched.step())
			return cond();
	}
	return true;
}

void World::run_for(uint64_t time)
{
	bool over = false;

	if (sched.current()) {
		sched.sleep(time);
		return;
	}
	sched.after(time, [&] { over = true; });
	while (!over)
		sched.step();
}

bool World::finish(const std::vector<Task> &tasks, uint64_t timeout)
{
	bool done = run_until(
		[&] {
			return std::none_of(tasks.begin(), tasks.end(),
					    [&](Task task) { return sched.alive(task); });
		},
		timeout);
	for (Task task : tasks)
		watch::acquire(reinterpret_cast<const void *>(task));
	return done;
}

void World::signal(Task task, bool fatal)
{
	Fiber *fiber = sched.find(task);

	if (!fiber)
		return;
	fiber->signalled = true;
	fiber->fatal_signal |= fatal;
	if ((fiber->interruptible || (fiber->killable && fatal)) &&
	    (fiber->waitq || fiber->mutex)) {
		fiber->woken = true;
		sched.wake(fiber);
	}
}

int World::listen(const std::string &name, const char *addr, uint16_t port,
		  const ListenerTweak &tweak, kd_error *error)
{
	kd_listener_params params{};
	kd_error own{};
	int err = 0;

	call(
		[&] {
			Node *on = here();

			on->core->listener_defaults(&params);
			set_name(params.name, name);
			params.local.addr = parse_addr(addr);
			params.local.port = port;
			if (tweak)
				tweak(params);
			err = on->core->listener_new(reinterpret_cast<kd_net *>(on->net), &params,
						     error ? error : &own);
			if (err != (error ? error : &own)->err)
				fail("kd_listener_new() returns %d and fills in %d", err,
				     (error ? error : &own)->err);
		},
		"listener new");
	return err;
}

int World::connect(const std::string &name, const char *addr, uint16_t port,
		   const ChannelTweak &tweak, kd_error *error)
{
	kd_channel_params params{};
	kd_error own{};
	int err = 0;

	call(
		[&] {
			Node *on = here();

			on->core->channel_defaults(&params);
			set_name(params.name, name);
			params.peer.addr = parse_addr(addr);
			params.peer.port = port;
			if (tweak)
				tweak(params);
			err = on->core->channel_new(reinterpret_cast<kd_net *>(on->net), &params,
						    error ? error : &own);
			if (err != (error ? error : &own)->err)
				fail("kd_channel_new() returns %d and fills in %d", err,
				     (error ? error : &own)->err);
		},
		"channel new");
	return err;
}

int World::del(const std::string &channel)
{
	kd_error error{};
	int err = 0;

	call(
		[&] {
			Node *on = here();

			err = on->core->channel_del(reinterpret_cast<kd_net *>(on->net),
						    channel.c_str(), &error);
		},
		"channel del");
	return err;
}

int World::unlisten(const std::string &listener)
{
	kd_error error{};
	int err = 0;

	call(
		[&] {
			Node *on = here();

			err = on->core->listener_del(reinterpret_cast<kd_net *>(on->net),
						     listener.c_str(), &error);
		},
		"listener del");
	return err;
}

bool World::info(const std::string &channel, struct kd_channel_info &out)
{
	int err = 0;

	call([&] {
		Node *on = here();

		err = on->core->channel_info(reinterpret_cast<kd_net *>(on->net), channel.c_str(),
					     &out);
	});
	return !err;
}

bool World::stats(const std::string &channel, struct kd_channel_stats &out,
		  std::vector<kd_queue_stats> *queues)
{
	std::vector<kd_queue_stats> room(KD_MAX_QUEUES);
	uint32_t count = 0;
	int err = 0;

	call([&] {
		Node *on = here();

		err = on->core->channel_stats(reinterpret_cast<kd_net *>(on->net), channel.c_str(),
					      &out, room.data(), &count);
	});
	room.resize(count);
	if (queues)
		*queues = std::move(room);
	return !err;
}

int World::state(const std::string &channel)
{
	struct kd_channel_info out {
	};

	return info(channel, out) ? static_cast<int>(out.state) : -1;
}

bool World::run_until_live(const std::string &channel, uint64_t timeout)
{
	for (uint64_t end = now() + timeout; now() < end;) {
		if (state(channel) == KDIRECT_STATE_LIVE)
			return true;
		run_for(20 * us);
	}
	return false;
}

bool World::run_until_gone(const std::string &channel, uint64_t timeout)
{
	for (uint64_t end = now() + timeout; now() < end;) {
		if (state(channel) < 0)
			return true;
		run_for(1 * ms);
	}
	return false;
}

bool World::has_node(const std::string &name, Node *on)
{
	return std::any_of(devnodes.begin(), devnodes.end(), [&](const auto &devnode) {
		return devnode->name == name && devnode->node == (on ? on : here());
	});
}

File World::open(const std::string &name, int *err, Node *on, bool read, bool write)
{
	kd_desc_file *file = nullptr;
	int result = KD_ENOENT;

	on = on ? on : here();
	call(
		[&] {
			DevNode *found = nullptr;

			for (const auto &devnode : devnodes)
				if (devnode->name == name && devnode->node == on &&
				    devnode->channel && !devnode->going)
					found = devnode.get();
			if (!found)
				return;
			found->opening++;
			watch::acquire(found);
			result = on->core->file_open(found->channel, read, write, &file);
			watch::release(found);
			watch::release(&devnodes);
			found->opening--;
			for (const auto &fiber : sched.all())
				if (!std::strcmp(fiber->blocked_in, "kd_node_destroy"))
					sched.wake(fiber.get());
		},
		"open");
	if (err)
		*err = result;
	return result ? File() : File(this, on, file);
}

const EventRecord *World::last_error(const std::string &channel, Node *on)
{
	const EventRecord *last = nullptr;

	for (const EventRecord &event : (on ? on : here())->events)
		if (event.name == channel && event.err)
			last = &event;
	return last;
}

} // namespace sim
