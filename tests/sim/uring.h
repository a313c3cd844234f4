/* SPDX-License-Identifier: GPL-2.0-only */
/* Programs that use io_uring, and what it does with their commands. */
#pragma once
#include "map.h"

namespace sim
{

/* What a ring of io_uring is like. */
struct UringSetup {
	bool polls = false;  /* IORING_SETUP_IOPOLL */
	bool wide = true;    /* IORING_SETUP_CQE32 */
	uint64_t buffer = 0; /* registered: its address */
	uint64_t buffer_len = 0;
};

/* A command. While it is under way it keeps itself, and the file. */
struct Command {
	void issue(bool nowait);
	void end(const kd_uring_end &how);
	bool ended() const { return !file && !(worker && world->running(worker)); }

	World *world = nullptr;
	UringSetup setup;
	kdirect_desc desc{};
	bool registered = false;
	bool done = false;
	bool in_worker = false; /* it was issued a second time */
	bool orphan = false;    /* its process is being killed */
	Task worker = 0;
	kd_uring_end result{};
	std::shared_ptr<OpenMap> file;
	std::shared_ptr<Command> self;
};

/* What io_uring issues in one call. */
struct Plug {
	std::vector<std::shared_ptr<OpenMap>> files; /* that are told at the end */
};

/* A ring, and one open file that it is used with. */
class Uring
{
public:
	Uring(World &w, std::shared_ptr<OpenMap> f, const UringSetup &s)
		: world(w), file(std::move(f)), setup(s)
	{
	}
	Uring(World &w, const MapFile &f, const UringSetup &s) : Uring(w, f.hold(), s) {}
	Uring(World &w, const MapFile &f) : Uring(w, f, UringSetup()) {}

	/* As io_uring_enter() of one SQE: never blocks. */
	Command &submit(const kdirect_desc &desc, bool registered = false);
	/* As io_uring_enter() of so many. True: some were left to share a doorbell. */
	bool submit_all(const std::vector<kdirect_desc> &descs, bool registered = false);
	/* Runs the world until all commands have ended, and polls, if they are polled for. */
	bool finish(uint64_t timeout = 60 * sec);
	/* submit() and finish() */
	kd_uring_end run(const kdirect_desc &desc, bool registered = false);
	/* What io_uring does with a command that waits in a worker. */
	void cancel(const Command &command);
	uint32_t poll();
	/* The program closes its file: what is under way keeps it. */
	void close() { file.reset(); }

	std::vector<std::shared_ptr<Command>> commands;

private:
	Command &add(const kdirect_desc &desc, bool registered);

	World &world;
	std::shared_ptr<OpenMap> file;
	UringSetup setup;
};

} // namespace sim
