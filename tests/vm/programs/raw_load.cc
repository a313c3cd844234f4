// SPDX-License-Identifier: GPL-2.0-only
// Uses both ends of a raw connection, with memory of every kind and keys, until it ends.
//
//	raw_load HERE THERE
//
// HERE is a raw channel that is held, THERE what its listener, which holds, will make of it.
// Says "begun" when each end has done some work, then "ended" when all has been reaped that
// was posted, and keeps both open until it is told to end.
#include "raw.h"
#include "scattered.h"

#include <atomic>
#include <csignal>
#include <thread>

namespace
{

constexpr size_t window = 8, enough = 20;
std::atomic<int> ready{0};
// Nothing is sent without a RECV for it: rxe of 6.1 does not survive an RNR NAK when a
// REG_MR is behind the SEND (Documentation/testing.md).
std::atomic<size_t> receives{0};
std::atomic<bool> over{false};

void say(const char *what)
{
	std::printf("%s\n", what);
	std::fflush(stdout);
}

struct End {
	int fd;
	const char *name;
	uint8_t opcode;
	Scattered many{128};
	std::vector<char> plain = std::vector<char>(1 << 17);
	size_t posted = 0, done = 0;
	int err = 0;

	kdirect_desc next() const
	{
		size_t length = 100000; // of RECV and SEND alike
		switch (posted % 4) {
		case 0: return work(opcode, many.at(7), length);
		case 1: return work(opcode, plain.data(), length);
		case 2: return work_fixed(opcode, 0, 0, length);
		default: return work(opcode, plain.data(), opcode == KDIRECT_OP_RECV ? length : 64);
		}
	}
	// A key comes and goes, in between.
	void turn_key()
	{
		kdirect_share k;
		if (posted % 32 == 16)
			(void)share(fd, 0, KDIRECT_ACCESS_FLAGS, k);
		if (posted % 32 == 0)
			(void)share(fd, 0, 0, k);
	}
	void reap(size_t count)
	{
		for (const kdirect_completion &c : await(fd, count)) {
			done++;
			if (c.result < 0 && !err)
				err = c.result;
		}
	}
	void run()
	{
		if (set_buffer(fd, 0, many.at(), many.length()))
			die("%s: no fixed buffer", name);
		const bool sends = opcode == KDIRECT_OP_SEND;
		while (!err) {
			if (posted - done == window) {
				reap(1);
				continue;
			}
			if (sends && posted == receives && !over) {
				usleep(100);
				continue;
			}
			err = post(fd, {next()});
			if (err)
				break;
			posted++;
			receives += !sends;
			turn_key();
			if (posted == enough * window)
				ready++;
		}
		over = true;
		reap(posted - done);
		pollfd p{fd, 0, 0};
		if (posted != done)
			die("%s: %zu of %zu ended", name, done, posted);
		if (poll(&p, 1, 20000 * slow()) != 1 || !(p.revents & POLLHUP))
			die("%s: no POLLHUP", name);
		kdirect_completion none;
		kdirect_submit batch{};
		batch.completions = address(&none);
		batch.nr_completions = batch.min_completions = 1;
		int over = submit(fd, batch);
		std::printf("%s %s, then %s\n", name, errno_name(-err), errno_name(-over));
	}
};

} // namespace

int main(int argc, char **argv)
{
	if (argc != 3)
		die("usage: raw_load HERE THERE");
	sigset_t term;
	sigemptyset(&term);
	sigaddset(&term, SIGTERM);
	sigprocmask(SIG_BLOCK, &term, nullptr);
	End here{.fd = open_soon(argv[1]), .name = "here", .opcode = KDIRECT_OP_SEND};
	if (here.fd < 0)
		die("%s: %s", argv[1], errno_name(-here.fd));
	std::thread answers([&] {
		int fd = open_soon(argv[2]);
		End there{.fd = fd, .name = "there", .opcode = KDIRECT_OP_RECV};
		if (fd < 0 || raw_connect(fd, raw_terms()))
			die("%s: cannot accept", argv[2]);
		there.run();
	});
	if (raw_connect(here.fd, raw_terms()))
		die("%s: %s", argv[1], errno_name(errno));
	std::thread tells([] {
		while (ready < 2)
			usleep(1000);
		say("begun");
	});
	here.run();
	answers.join();
	tells.join();
	say("ended");
	int which;
	sigwait(&term, &which);
	return 0;
}
