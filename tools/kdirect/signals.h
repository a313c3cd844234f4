// SPDX-License-Identifier: GPL-2.0-only
#pragma once

#include <csignal>
#include <cstdint>
#include <optional>

namespace kdirect
{

// Turns SIGINT and SIGTERM into values for as long as it lives, so that a command can undo
// or sum up what it has begun. They are blocked except inside wait() and Open, which leaves
// no moment at which one could be missed. One object at a time.
class Signals
{
public:
	Signals();
	~Signals();
	Signals(const Signals &) = delete;
	Signals &operator=(const Signals &) = delete;

	// The signal that came, or 0.
	int caught() const;

	// Until fd is readable, the time is over, or a signal came; fd -1: none. True if fd is
	// readable.
	bool wait(int fd, std::optional<uint64_t> timeout_ns = std::nullopt);

	// Lets signals interrupt a system call (EINTR) while it lives.
	class Open
	{
	public:
		explicit Open(const Signals &signals);
		~Open();
		Open(const Open &) = delete;
		Open &operator=(const Open &) = delete;

	private:
		sigset_t _blocked;
	};

private:
	sigset_t _before;
	struct sigaction _int_before, _term_before;
};

} // namespace kdirect
