// SPDX-License-Identifier: GPL-2.0-only
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <netlink/msg.h>
#include <netlink/netlink.h>
#include <netlink/socket.h>

#include "attributes.h"
#include "failure.h"

namespace kdirect
{

// A refusal by the kernel: an errno, the extended-ack text, and the attribute it is about.
class KernelError : public ObjectError
{
public:
	KernelError(int number, const std::string &text) : ObjectError(text), error(number) {}

	int error; // positive
};

// From an NLMSG_ERROR or NLMSG_DONE message that carries an error; request is needed to find
// the attribute that the kernel points at, and may be null.
KernelError kernel_error(const nlmsghdr *reply, const nlmsghdr *request);

class Message
{
public:
	Message(int family, uint8_t command, int flags);

	void put_flag(uint16_t attr) { put_bytes(attr, {}); }
	void put_u8(uint16_t attr, uint8_t value);
	void put_u16(uint16_t attr, uint16_t value);
	void put_u32(uint16_t attr, uint32_t value);
	void put_u64(uint16_t attr, uint64_t value);
	void put_string(uint16_t attr, const std::string &value);
	void put_bytes(uint16_t attr, std::span<const std::byte> value);

	// fill() puts the attributes inside the nest.
	template <typename Fill>
	void nest(uint16_t attr, Fill fill)
	{
		nlattr *const start = begin_nest(attr);

		fill();
		end_nest(start);
	}

	nl_msg *get() const { return _msg.get(); }
	const nlmsghdr *header() const;

private:
	nlattr *begin_nest(uint16_t attr);
	void end_nest(nlattr *start);

	std::unique_ptr<nl_msg, decltype(&nlmsg_free)> _msg;
};

// A connected generic netlink socket that reports extended acknowledgements. It reads with
// nl_recv() and not with nl_recvmsgs(), which turns errno into libnl's own, fewer, codes.
class Socket
{
public:
	Socket();

	nl_sock *get() const { return _sock.get(); }
	int fd() const;

	// One datagram; nothing if the socket's buffer overran and messages are lost.
	std::optional<std::vector<std::byte>> receive();

private:
	std::unique_ptr<nl_sock, decltype(&nl_socket_free)> _sock;
};

// Requests to the kernel module. Every function throws KernelError if the kernel refuses.
class Client
{
public:
	// Throws Failure if the module is not loaded.
	Client();

	Message message(uint8_t command, int flags = 0) const;
	void execute(const Message &message) { exchange(message); }
	std::vector<Attributes> dump(uint8_t command);
	std::vector<Attributes> get(uint8_t command, uint16_t name_attr, const std::string &name);

	// Multicast group of the family.
	int events_group() const;

private:
	std::vector<Attributes> exchange(const Message &message);

	Socket _socket;
	int _family;
};

} // namespace kdirect
