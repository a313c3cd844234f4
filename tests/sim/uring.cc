// SPDX-License-Identifier: GPL-2.0-only
#include "uring.h"

#include <algorithm>

#include "watch.h"

namespace sim
{

namespace
{

Command *to_command(const kd_uring *cmd)
{
	return reinterpret_cast<Command *>(const_cast<kd_uring *>(cmd));
}

/* Until the core has posted what it left. */
void unplug_later(World &w, const std::shared_ptr<OpenMap> &held)
{
	w.spawn(
		"unplug",
		[&w, file = held]() mutable {
			for (bool done = false; !done;) {
				watch::acquire(&w.devnodes);
				done = file->node->core->desc_unplug(file->file);
				watch::release(file->file);
				if (!done)
					w.sched.sleep(1 * ms);
			}
			file.reset();
		},
		held->node);
}

/* `sleeps`: where the program does, nothing can be waited for. */
void unplug(World &w, Plug &plug, bool sleeps)
{
	for (const auto &held : std::exchange(plug.files, {})) {
		if (sleeps || !held->node->core->desc_unplug(held->file))
			unplug_later(w, held);
		if (!w.sched.current()->held.empty())
			fail("the end of a plug returned with a lock held");
	}
}

} // namespace

void Command::issue(bool nowait)
{
	Fiber *me = world->sched.current();
	kd_desc_file *map_file = file->file;
	kd_uring_call call{.cmd = reinterpret_cast<kd_uring *>(this),
			   .issue = 1,
			   .nowait = nowait,
			   .polls = setup.polls,
			   .registered = registered,
			   .wide = setup.wide};
	kd_uring_end how{.result = 12345, .extra = 12345};

	me->pauses = 0;
	watch::acquire(&world->devnodes);
	bool was = std::exchange(me->nowait, nowait);
	bool over = file->node->core->desc_command(map_file, &desc, &call, &how);
	me->nowait = was;
	watch::release(map_file);
	if (!me->held.empty())
		fail("a command returned with a lock held");
	if (!over)
		return;
	if (how.result != -KD_EAGAIN) {
		end(how);
		return;
	}
	if (!nowait)
		fail("a worker is told to try again");
	in_worker = true;
	worker = world->spawn(
		"io-wq", [command = self] { command->issue(false); }, file->node);
}

/* The file goes as soon as it may, whoever is still on his way out of the core. */
void Command::end(const kd_uring_end &how)
{
	if (done)
		fail("a command ended twice");
	result = how;
	done = true;
	world->spawn(
		"fput",
		[command = self] {
			watch::release(command->file->file);
			command->file.reset();
			command->self.reset();
		},
		file->node);
}

Command &Uring::add(const kdirect_desc &desc, bool registered)
{
	Command &command = *commands.emplace_back(std::make_shared<Command>());

	command.world = &world;
	command.setup = setup;
	command.desc = desc;
	command.registered = registered;
	command.file = file;
	command.self = commands.back();
	return command;
}

Command &Uring::submit(const kdirect_desc &desc, bool registered)
{
	Command &command = add(desc, registered);

	world.call([&] { command.issue(true); }, "uring_cmd", file->node);
	return command;
}

/* The program sleeps at some point between them, or does not. */
bool Uring::submit_all(const std::vector<kdirect_desc> &descs, bool registered)
{
	std::vector<Command *> made;
	bool any = false;

	made.reserve(descs.size());
	for (const kdirect_desc &desc : descs)
		made.push_back(&add(desc, registered));
	world.call(
		[&] {
			Plug plug;
			std::size_t sleeps = world.sched.rng.below(2 * made.size() + 1);

			for (std::size_t i = 0; i < made.size(); i++) {
				world.sched.current()->plug = &plug;
				made[i]->issue(true);
				world.sched.current()->plug = nullptr;
				any |= !plug.files.empty();
				if (i == sleeps)
					unplug(world, plug, true);
			}
			unplug(world, plug, false);
		},
		"uring_cmd", file->node);
	return any;
}

uint32_t Uring::poll()
{
	uint32_t found = 0;

	for (const auto &command : commands) {
		/* io_uring has the file of what it polls for */
		std::shared_ptr<OpenMap> held = command->file;

		if (!held || command->done)
			continue;
		world.call(
			[&] {
				watch::acquire(&world.devnodes);
				found = held->node->core->desc_command_poll(held->file);
				watch::release(held->file);
			},
			"uring_cmd_iopoll", held->node);
		break;
	}
	return found;
}

bool Uring::finish(uint64_t timeout)
{
	auto all = [this] {
		return std::all_of(commands.begin(), commands.end(),
				   [](const auto &command) { return command->ended(); });
	};
	uint64_t end = world.now() + timeout;

	for (uint64_t pause = 2 * us; !all() && world.now() < end;
	     pause = std::min(pause * 2, 1 * ms)) {
		if (setup.polls)
			poll();
		world.run_for(pause);
	}
	return all();
}

kd_uring_end Uring::run(const kdirect_desc &desc, bool registered)
{
	Command &command = submit(desc, registered);

	if (!finish())
		fail("a command does not end");
	return command.result;
}

void Uring::cancel(const Command &command)
{
	if (command.worker)
		world.signal(command.worker, false);
}

} // namespace sim

using namespace sim;

extern "C" {

int kd_uring_pages(const struct kd_uring_call *call, uint64_t addr, uint32_t len, bool to_memory,
		   struct kd_pages **out)
{
	World &w = world();
	const UringSetup &setup = to_command(call->cmd)->setup;

	w.enter(__func__, true);
	(void)to_memory;
	if (!call->registered || !len)
		die("kd_uring_pages() of nothing");
	if (addr < setup.buffer || addr - setup.buffer > setup.buffer_len ||
	    len > setup.buffer_len - (addr - setup.buffer))
		return KD_EFAULT;
	if (w.inject(Op::PagesPinIo))
		return KD_ENOMEM;
	Pages *pages = w.pages.add();
	pages->node = w.here();
	pages->user = reinterpret_cast<uint8_t *>(addr);
	pages->count = static_cast<uint32_t>((addr % page_size + len + page_size - 1) / page_size);
	pages->len = len;
	*out = reinterpret_cast<kd_pages *>(pages);
	return 0;
}

bool kd_uring_plug(const struct kd_uring_call *call)
{
	World &w = world();
	Plug *plug = w.sched.current()->plug;
	const std::shared_ptr<OpenMap> &file = to_command(call->cmd)->file;

	w.enter(__func__, false);
	if (!call->nowait)
		fail("kd_uring_plug() by a worker");
	if (!plug || w.inject(Op::Alloc))
		return false;
	if (std::ranges::find(plug->files, file) == plug->files.end())
		plug->files.push_back(file);
	return true;
}

bool kd_uring_orphan(struct kd_uring *cmd)
{
	Command *command = to_command(cmd);

	world().enter(__func__, false);
	if (command->done)
		fail("kd_uring_orphan() of a command that has ended");
	return command->orphan;
}

void kd_uring_done(struct kd_uring *cmd, const struct kd_uring_end *how)
{
	world().enter(__func__, false);
	to_command(cmd)->end(*how);
}

} /* extern "C" */
