// SPDX-License-Identifier: GPL-2.0-only
// Nodes and messages.
#include "fake.h"

#include <array>
#include <cerrno>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>

namespace
{

class Nodes : public testing::Test
{
protected:
	fake::Kernel kernel;
};

TEST_F(Nodes, OpenByNameOrPath)
{
	int fd = kdirect_open("c0", O_RDWR);
	ASSERT_EQ(fd, fake::Kernel::channel);
	EXPECT_EQ(kernel.last_path, "/dev/kdirect/c0");
	EXPECT_EQ(kernel.last_flags, O_RDWR | O_CLOEXEC);
	EXPECT_EQ(kdirect_kind_of(fd), KDIRECT_NODE_CHANNEL);
	EXPECT_EQ(kdirect_open("/dev/kdirect/m0", O_RDONLY | O_DIRECT), fake::Kernel::mapping);
	EXPECT_EQ(kernel.last_flags, O_RDONLY | O_DIRECT | O_CLOEXEC);
	EXPECT_EQ(kdirect_kind_of(fake::Kernel::mapping), KDIRECT_NODE_MAPPING);
	EXPECT_EQ(kdirect_kind_of(kdirect_open("r0", O_RDWR)), KDIRECT_NODE_RAW);
	EXPECT_EQ(kdirect_open("store.0", O_RDWR), -ENOTTY);
	EXPECT_EQ(kernel.last_path, "/dev/kdirect/store.0");
	EXPECT_FALSE(kernel.opened.contains(fake::Kernel::other));
	EXPECT_EQ(kdirect_open("/dev/null", O_RDWR), -ENOTTY);
	EXPECT_FALSE(kernel.opened.contains(fake::Kernel::other));
	EXPECT_EQ(kdirect_kind_of(77), -EBADF);
	kernel.open_result = -ENOENT;
	EXPECT_EQ(kdirect_open("c0", O_RDWR), -ENOENT);
	std::string longest = "a" + std::string(KDIRECT_NAME_MAX - 1, '9');
	EXPECT_EQ(kdirect_open(longest.c_str(), O_RDWR), -ENOENT);
	EXPECT_EQ(kernel.last_path, "/dev/kdirect/" + longest);
	kernel.last_path.clear();
	for (std::string name : {"", ".", "..", "0", "a b", "a\n", "-a", "ä"})
		EXPECT_EQ(kdirect_open(name.c_str(), O_RDWR), -EINVAL) << name;
	EXPECT_EQ(kdirect_open((longest + "9").c_str(), O_RDWR), -EINVAL);
	EXPECT_EQ(kdirect_open(nullptr, O_RDWR), -EINVAL);
	EXPECT_EQ(kernel.last_path, "");
}

TEST_F(Nodes, InfoFlagsPing)
{
	int c = kdirect_open("c0", O_RDWR), m = kdirect_open("m0", O_RDWR);
	kdirect_info info;
	kdirect_map_info map_info;
	uint32_t flags = 7;
	EXPECT_EQ(kdirect_channel_info(c, &info), 0);
	EXPECT_EQ(info.max_message, 1000u);
	EXPECT_EQ(kdirect_channel_info(m, &info), -ENOTTY);
	EXPECT_EQ(kdirect_mapping_info(m, &map_info), 0);
	EXPECT_EQ(map_info.size, fake::Kernel::size);
	EXPECT_EQ(kdirect_mapping_info(c, &map_info), -ENOTTY);
	EXPECT_EQ(kdirect_set_flags(c, KDIRECT_OPEN_POLL), 0);
	EXPECT_EQ(kdirect_get_flags(m, &flags), 0);
	EXPECT_EQ(flags, uint32_t{KDIRECT_OPEN_POLL});
	kernel.results = {-EOPNOTSUPP};
	EXPECT_EQ(kdirect_set_flags(c, KDIRECT_OPEN_POLL), -EOPNOTSUPP);
	kdirect_ping ping{};
	ping.size = 64;
	EXPECT_EQ(kdirect_ping_peer(c, &ping), 0);
	EXPECT_EQ(ping.rtt_ns, 64u);
	EXPECT_EQ(kdirect_ping_peer(m, &ping), -ENOTTY);
}

class Messages : public Nodes
{
protected:
	int fd = kdirect_open("c0", O_RDWR);
	std::array<char, 1000> buffer{};
};

TEST_F(Messages, Send)
{
	EXPECT_EQ(kdirect_send(fd, "hello", 5, -1), 0);
	EXPECT_EQ(kdirect_send(fd, "hello", 5, 0), 0);
	EXPECT_EQ(kdirect_send(fd, "hello", 5, 1000), 0);
	EXPECT_EQ(kernel.sent.size(), 3u);
	EXPECT_EQ(std::string(kernel.sent[2].begin(), kernel.sent[2].end()), "hello");
	EXPECT_EQ(kernel.nowait, (std::vector<bool>{false, true, true}));
	EXPECT_EQ(kdirect_send(fd, "hello", 0, -1), -EINVAL);
	kernel.room = 0;
	int64_t begun = kernel.now;
	EXPECT_EQ(kdirect_send(fd, "hello", 5, 0), -EAGAIN);
	EXPECT_EQ(kernel.now, begun);
	EXPECT_EQ(kdirect_send(fd, "hello", 5, 1000), -EAGAIN);
	EXPECT_EQ(kernel.now, begun + 1000);
	// somebody else is faster, twice
	auto nothing = [](fake::Kernel &) {};
	auto room = [](fake::Kernel &k) { k.room++; };
	kernel.events = {{POLLOUT, nothing}, {POLLOUT, nothing}, {POLLOUT, room}};
	EXPECT_EQ(kdirect_send(fd, "hello", 5, 1000), 0);
	// O_NONBLOCK makes no difference
	kernel.events = {{POLLOUT, room}};
	EXPECT_EQ(kdirect_send(fd, "hello", 5, -1), 0);
	// the time is for all of it
	kernel.events.assign(200, {POLLOUT, nothing});
	EXPECT_EQ(kdirect_send(fd, "hello", 5, 1000), -EAGAIN);
	EXPECT_EQ(kernel.events.size(), 100u);
	kernel.write_error = -EPIPE;
	EXPECT_EQ(kdirect_send(fd, "hello", 5, 1000), -EPIPE);
}

TEST_F(Messages, Receive)
{
	kernel.arrived = {{'a', 'b'}, {'c'}, fake::Bytes(1000, 'd')};
	for (int64_t timeout : {-1, 0, 1000}) {
		ssize_t wanted = timeout < 0 ? 2 : timeout ? 1000 : 1;
		EXPECT_EQ(kdirect_recv(fd, buffer.data(), buffer.size(), timeout), wanted);
	}
	EXPECT_EQ(kernel.nowait, (std::vector<bool>{false, true, true}));
	EXPECT_EQ(kdirect_recv(fd, buffer.data(), buffer.size(), 0), -EAGAIN);
	int64_t begun = kernel.now;
	EXPECT_EQ(kdirect_recv(fd, buffer.data(), buffer.size(), INT64_MAX), -EAGAIN);
	EXPECT_EQ(kernel.now, INT64_MAX);
	kernel.now = begun;
	kernel.events = {{POLLIN, [](fake::Kernel &k) { k.arrived = {{'e'}}; }}};
	EXPECT_EQ(kdirect_recv(fd, buffer.data(), buffer.size(), -1), 1);
	EXPECT_EQ(buffer[0], 'e');
	kernel.read_error = 0;
	EXPECT_EQ(kdirect_recv(fd, buffer.data(), buffer.size(), 1000), 0);
	kernel.read_error = -ETIMEDOUT;
	EXPECT_EQ(kdirect_recv(fd, buffer.data(), buffer.size(), -1), -ETIMEDOUT);
}

// A buffer that could cut a message is refused before anything is read.
TEST_F(Messages, ASmallBufferLosesNothing)
{
	kernel.arrived = {{'a', 'b'}};
	EXPECT_EQ(kdirect_recv(fd, buffer.data(), 999, 0), -EMSGSIZE);
	EXPECT_EQ(kernel.arrived.size(), 1u);
	kernel.max_message = 999;
	EXPECT_EQ(kdirect_recv(fd, buffer.data(), 999, 0), 2);
	// not even asked where no channel can have longer ones
	std::vector<char> large(1 << 20);
	kernel.results = {-EFAULT};
	kernel.arrived = {{'a', 'b'}};
	EXPECT_EQ(kdirect_recv(fd, large.data(), large.size(), 0), 2);
	EXPECT_EQ(kdirect_recv(fd, large.data(), large.size() - 1, 0), -EFAULT);
	EXPECT_EQ(kdirect_recv(kdirect_open("m0", O_RDWR), large.data(), 1, 0), -ENOTTY);
}

} // namespace
