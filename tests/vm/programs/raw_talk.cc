// SPDX-License-Identifier: GPL-2.0-only
// One end of a conversation with a program that uses librdmacm, over a raw channel.
//
//	raw_talk DEVICE first|second COUNT SIZE [connect] [leave]
//
// first: sends COUNT messages of SIZE bytes, then receives as many; second: the other way
// round. connect: the channel is held. leave: ends the connection; else the peer does.
#include "common.h"
#include "raw.h"

int main(int argc, char **argv)
{
	if (argc < 5)
		die("usage: raw_talk DEVICE first|second COUNT SIZE [connect] [leave]");
	const bool first = std::string(argv[2]) == "first";
	const size_t count = std::strtoul(argv[3], nullptr, 0);
	const size_t size = std::strtoul(argv[4], nullptr, 0);
	bool connect = false, leave = false;
	for (int i = 5; i < argc; i++) {
		connect |= std::string(argv[i]) == "connect";
		leave |= std::string(argv[i]) == "leave";
	}
	int fd = open_soon(argv[1]);
	if (fd < 0)
		die("%s: %s", argv[1], std::strerror(-fd));

	std::vector<char> in(count * size), out(count * size, 'k');
	Descs recvs, sends;
	for (size_t i = 0; i < count; i++) {
		recvs.push_back(work(KDIRECT_OP_RECV, in.data() + i * size, size, i));
		sends.push_back(work(KDIRECT_OP_SEND, out.data() + i * size, size, count + i));
	}
	if (int err = post(fd, recvs))
		die("posting receives: %s", std::strerror(-err));
	if (connect)
		if (int err = raw_connect(fd, raw_terms()))
			die("connecting: %s", std::strerror(-err));
	size_t received = 0, sent = 0;
	auto take = [&](size_t n) {
		Completions done = await(fd, n);
		if (done.size() != n)
			die("%zu of %zu completions", done.size(), n);
		for (const kdirect_completion &c : done) {
			if (c.result != int(size))
				die("opcode %u, number %llu: %d, status %u", c.opcode,
				    static_cast<unsigned long long>(c.user_data), c.result,
				    c.status);
			(c.opcode == KDIRECT_OP_RECV ? received : sent)++;
		}
	};
	if (!first)
		take(count);
	if (int err = post(fd, sends))
		die("posting sends: %s", std::strerror(-err));
	take(first ? 2 * count : count);
	if (received != count || sent != count)
		die("%zu received, %zu sent, of %zu", received, sent, count);
	if (!leave && !(happens(fd, 0, 20000) & POLLHUP))
		die("the peer does not disconnect");
	std::printf("talked: %zu messages of %zu bytes each way\n", count, size);
	return 0;
}
