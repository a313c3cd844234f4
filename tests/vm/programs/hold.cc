// SPDX-License-Identifier: GPL-2.0-only
// hold NODE: keeps a channel's node open past the channel's end, and tells what
// each call gives then. Ends when its standard input does.
#include "common.h"

#include <csignal>
#include <fcntl.h>
#include <kdirect.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <unistd.h>

namespace
{

volatile sig_atomic_t pipes;

void tell(const char *call, ssize_t n)
{
	int err = errno;
	if (n < 0)
		std::printf("%s %s\n", call, errno_name(err));
	else
		std::printf("%s %zd\n", call, n);
	std::fflush(stdout);
}

} // namespace

int main(int argc, char **argv)
{
	if (argc != 2)
		die("usage: hold NODE");
	signal(SIGPIPE, [](int) { pipes = 1; });
	int fd = open(argv[1], O_RDWR);
	if (fd < 0)
		die("%s: %s", argv[1], errno_name(errno));
	std::printf("open\n");
	std::fflush(stdout);

	pollfd p{fd, 0, 0}; // POLLHUP and POLLERR always count
	if (poll(&p, 1, 60000) != 1)
		die("no end within 60 s");
	p.events = POLLIN | POLLOUT;
	poll(&p, 1, 0);
	std::printf("poll%s%s%s%s\n", p.revents & POLLHUP ? " HUP" : "",
		    p.revents & POLLERR ? " ERR" : "", p.revents & POLLIN ? " IN" : "",
		    p.revents & POLLOUT ? " OUT" : "");
	static char buffer[1 << 20];
	ssize_t n;
	while ((n = read(fd, buffer, sizeof(buffer))) > 0)
		tell("had", n);
	tell("read", n);
	tell("read", read(fd, buffer, sizeof(buffer)));
	tell("write", write(fd, buffer, 1));
	tell("write", write(fd, buffer, sizeof(buffer)));
	kdirect_ping ping{};
	ping.size = 1;
	tell("ping", ioctl(fd, KDIRECT_IOC_PING, &ping));
	kdirect_info info{};
	tell("info", ioctl(fd, KDIRECT_IOC_INFO, &info));
	std::printf("sigpipe %d\n", int(pipes));
	std::fflush(stdout);
	while (read(0, buffer, sizeof(buffer)) > 0)
		;
	close(fd);
	return 0;
}
