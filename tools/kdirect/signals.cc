// SPDX-License-Identifier: GPL-2.0-only
#include "signals.h"

#include <cerrno>
#include <poll.h>

#include "failure.h"
#include "quantity.h"
#include "text.h"

namespace kdirect
{

namespace
{

volatile sig_atomic_t caught_signal;

void remember(int signal)
{
	caught_signal = signal;
}

} // namespace

Signals::Signals()
{
	struct sigaction action {
	};
	sigset_t both;

	caught_signal = 0;
	sigemptyset(&both);
	sigaddset(&both, SIGINT);
	sigaddset(&both, SIGTERM);
	sigprocmask(SIG_BLOCK, &both, &_before);
	action.sa_handler = remember; // no SA_RESTART: what was interrupted must return
	sigaction(SIGINT, &action, &_int_before);
	sigaction(SIGTERM, &action, &_term_before);
}

Signals::~Signals()
{
	sigaction(SIGINT, &_int_before, nullptr);
	sigaction(SIGTERM, &_term_before, nullptr);
	sigprocmask(SIG_SETMASK, &_before, nullptr);
}

int Signals::caught() const
{
	return caught_signal;
}

bool Signals::wait(int fd, std::optional<uint64_t> timeout_ns)
{
	pollfd poll{.fd = fd, .events = POLLIN, .revents = 0};
	timespec timeout{};

	if (caught())
		return false;
	if (timeout_ns) {
		timeout.tv_sec = static_cast<time_t>(*timeout_ns / ns_per_s);
		timeout.tv_nsec = static_cast<long>(*timeout_ns % ns_per_s);
	}

	const int ready = ppoll(&poll, 1, timeout_ns ? &timeout : nullptr, &_before);

	if (ready < 0 && errno != EINTR)
		throw Failure("cannot wait: " + describe_errno(errno));
	return ready > 0;
}

Signals::Open::Open(const Signals &signals)
{
	sigprocmask(SIG_SETMASK, &signals._before, &_blocked);
}

Signals::Open::~Open()
{
	sigprocmask(SIG_SETMASK, &_blocked, nullptr);
}

} // namespace kdirect
