// SPDX-License-Identifier: GPL-2.0-only
#include "netlink.h"

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <sys/socket.h>
#include <utility>

#include <fmt/format.h>
#include <linux/netlink.h>
#include <netlink/attr.h>
#include <netlink/genl/ctrl.h>
#include <netlink/genl/genl.h>
#include <netlink/msg.h>
#include <netlink/socket.h>

#include "command.h"
#include "kdirect_netlink.h"
#include "text.h"

namespace kdirect
{

namespace
{

constexpr int dump_attempts = 10;

// A libnl call that fails only for want of memory or of a working network stack.
void require(int result, const char *what)
{
	if (result < 0)
		throw Failure(fmt::format("{}: {}", what, nl_geterror(result)));
}

std::span<const std::byte> payload(const nlmsghdr *header)
{
	return {static_cast<const std::byte *>(nlmsg_data(header)),
		static_cast<size_t>(nlmsg_datalen(header))};
}

std::span<const std::byte> skip(std::span<const std::byte> bytes, size_t count)
{
	return bytes.subspan(std::min(count, bytes.size()));
}

std::string_view attribute_name(uint16_t type)
{
	return type == KDIRECT_A_NAME ? "name" : parameter_key(type);
}

// The type of the attribute at this offset of the request; 0 if there is none.
uint16_t attribute_at(const nlmsghdr *request, uint64_t offset)
{
	nlattr attr;

	if (!request || offset < NLMSG_HDRLEN || offset + sizeof(attr) > request->nlmsg_len)
		return 0;
	std::memcpy(&attr, reinterpret_cast<const char *>(request) + offset, sizeof(attr));
	return attr.nla_type & NLA_TYPE_MASK;
}

int reported_error(const nlmsghdr *reply)
{
	int error = 0;

	if (payload(reply).size() >= sizeof(error))
		std::memcpy(&error, payload(reply).data(), sizeof(error));
	return -error;
}

// The extended-ack attributes behind an error: in NLMSG_ERROR the request, or its header
// alone, comes first.
Attributes extended_ack(const nlmsghdr *reply)
{
	const std::span<const std::byte> bytes = payload(reply);
	size_t before = sizeof(int);

	if (!(reply->nlmsg_flags & NLM_F_ACK_TLVS) && reply->nlmsg_type == NLMSG_ERROR)
		return {};
	if (reply->nlmsg_type == NLMSG_ERROR) {
		nlmsgerr error;

		if (bytes.size() < sizeof(error))
			return {};
		std::memcpy(&error, bytes.data(), sizeof(error));
		before = sizeof(error);
		if (!(reply->nlmsg_flags & NLM_F_CAPPED))
			before += NLMSG_ALIGN(error.msg.nlmsg_len) - NLMSG_HDRLEN;
	}
	return Attributes(skip(bytes, before));
}

} // namespace

KernelError kernel_error(const nlmsghdr *reply, const nlmsghdr *request)
{
	const int error = reported_error(reply);
	const Attributes ack = extended_ack(reply);
	const auto text = ack.string(NLMSGERR_ATTR_MSG);
	const auto missing = ack.number(NLMSGERR_ATTR_MISS_TYPE);
	const auto offset = ack.number(NLMSGERR_ATTR_OFFS);

	if (missing)
		return {error, fmt::format("the kernel needs '{}' ({})",
					   attribute_name(static_cast<uint16_t>(*missing)),
					   errno_name(error))};
	if (!text)
		return {error, describe_errno(error)};

	// The module's own texts name the attribute; those of the netlink core do not. The name
	// of the object is known already.
	const uint16_t type = attribute_at(request, offset.value_or(0));
	const std::string_view name = attribute_name(type);

	if (name.empty() || type == KDIRECT_A_NAME || text->find(name) != std::string_view::npos)
		return {error, fmt::format("{} ({})", escape(*text), errno_name(error))};
	return {error, fmt::format("{}: {} ({})", name, escape(*text), errno_name(error))};
}

Message::Message(int family, uint8_t command, int flags) : _msg(nlmsg_alloc(), nlmsg_free)
{
	if (!_msg || !genlmsg_put(_msg.get(), NL_AUTO_PORT, NL_AUTO_SEQ, family, 0, flags, command,
				  KDIRECT_GENL_VERSION))
		throw std::bad_alloc();
}

void Message::put_bytes(uint16_t attr, std::span<const std::byte> value)
{
	require(nla_put(get(), attr, static_cast<int>(value.size()), value.data()),
		"the request is too long");
}

void Message::put_u8(uint16_t attr, uint8_t value)
{
	put_bytes(attr, std::as_bytes(std::span(&value, 1)));
}

void Message::put_u16(uint16_t attr, uint16_t value)
{
	put_bytes(attr, std::as_bytes(std::span(&value, 1)));
}

void Message::put_u32(uint16_t attr, uint32_t value)
{
	put_bytes(attr, std::as_bytes(std::span(&value, 1)));
}

void Message::put_u64(uint16_t attr, uint64_t value)
{
	put_bytes(attr, std::as_bytes(std::span(&value, 1)));
}

void Message::put_string(uint16_t attr, const std::string &value)
{
	put_bytes(attr, std::as_bytes(std::span(value.c_str(), value.size() + 1)));
}

nlattr *Message::begin_nest(uint16_t attr)
{
	nlattr *const start = nla_nest_start(get(), attr | NLA_F_NESTED);

	if (!start)
		throw Failure("the request is too long");
	return start;
}

void Message::end_nest(nlattr *start)
{
	nla_nest_end(get(), start);
}

const nlmsghdr *Message::header() const
{
	return nlmsg_hdr(get());
}

Socket::Socket() : _sock(nl_socket_alloc(), nl_socket_free)
{
	const int on = 1;

	if (!_sock)
		throw std::bad_alloc();
	require(genl_connect(get()), "cannot open a netlink socket");
	// Older kernels than ours lack these; the texts are then only less good.
	setsockopt(fd(), SOL_NETLINK, NETLINK_EXT_ACK, &on, sizeof(on));
	setsockopt(fd(), SOL_NETLINK, NETLINK_CAP_ACK, &on, sizeof(on));
}

int Socket::fd() const
{
	return nl_socket_get_fd(get());
}

std::optional<std::vector<std::byte>> Socket::receive()
{
	sockaddr_nl sender{};
	unsigned char *buffer = nullptr;
	int length;

	do {
		std::free(std::exchange(buffer, nullptr));
		length = nl_recv(get(), &sender, &buffer, nullptr);
	} while (length > 0 && sender.nl_pid != 0); // only the kernel is believed

	const std::unique_ptr<unsigned char, decltype(&std::free)> owner(buffer, std::free);

	if (length == -NLE_NOMEM) // what libnl makes of ENOBUFS
		return std::nullopt;
	require(length, "cannot read from the netlink socket");

	const auto bytes = std::as_bytes(std::span(buffer, static_cast<size_t>(length)));

	return std::vector<std::byte>(bytes.begin(), bytes.end());
}

Client::Client()
{
	_family = genl_ctrl_resolve(_socket.get(), KDIRECT_GENL_NAME);
	if (_family == -NLE_OBJ_NOTFOUND)
		throw Failure("the kernel module kdirect is not loaded (modprobe kdirect)");
	require(_family, "cannot ask for the netlink family");
}

int Client::events_group() const
{
	const Socket socket;
	const int group =
		genl_ctrl_resolve_grp(socket.get(), KDIRECT_GENL_NAME, KDIRECT_GENL_EVENTS);

	require(group, "cannot find the netlink group " KDIRECT_GENL_EVENTS);
	return group;
}

Message Client::message(uint8_t command, int flags) const
{
	return Message(_family, command, flags);
}

std::vector<Attributes> Client::exchange(const Message &message)
{
	std::vector<Attributes> replies;

	require(nl_send_auto(_socket.get(), message.get()), "cannot send to the kernel");
	for (;;) {
		const auto datagram = _socket.receive();

		if (!datagram)
			throw Failure("the kernel's answer is lost: no buffer space (ENOBUFS)");

		const auto *header = reinterpret_cast<const nlmsghdr *>(datagram->data());
		int left = static_cast<int>(datagram->size());

		for (; nlmsg_ok(header, left);
		     header = nlmsg_next(const_cast<nlmsghdr *>(header), &left)) {
			if (header->nlmsg_seq != message.header()->nlmsg_seq)
				continue;
			if (header->nlmsg_flags & NLM_F_DUMP_INTR)
				throw KernelError(EAGAIN, "the list changed while it was read");
			switch (header->nlmsg_type) {
			case NLMSG_ERROR:
			case NLMSG_DONE:
				if (reported_error(header) != 0)
					throw kernel_error(header, message.header());
				return replies;
			default: replies.emplace_back(skip(payload(header), GENL_HDRLEN));
			}
		}
	}
}

std::vector<Attributes> Client::get(uint8_t command, uint16_t name_attr, const std::string &name)
{
	Message request = message(command);

	request.put_string(name_attr, name);
	return exchange(request);
}

std::vector<Attributes> Client::dump(uint8_t command)
{
	for (int attempt = 1;; attempt++) {
		try {
			return exchange(message(command, NLM_F_DUMP));
		} catch (const KernelError &error) {
			// A list that changed under the dump may lack objects: read it again.
			if (error.error != EAGAIN || attempt == dump_attempts)
				throw;
			_socket = Socket();
		}
	}
}

} // namespace kdirect
