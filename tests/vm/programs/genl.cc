// SPDX-License-Identifier: GPL-2.0-only
#include "genl.h"

#include <sys/time.h>
#include <unistd.h>

namespace
{

template <class T>
T at(const uint8_t *bytes)
{
	T value;
	std::memcpy(&value, bytes, sizeof(value));
	return value;
}

void parse_error(const uint8_t *message, const nlmsghdr &header, Answer &answer)
{
	answer.err = -at<int>(message + NLMSG_HDRLEN);
	if (!(header.nlmsg_flags & NLM_F_ACK_TLVS))
		return;
	size_t start = NLMSG_HDRLEN + sizeof(nlmsgerr);
	if (!(header.nlmsg_flags & NLM_F_CAPPED))
		start += NLMSG_ALIGN(at<nlmsghdr>(message + NLMSG_HDRLEN + 4).nlmsg_len) -
			 NLMSG_HDRLEN;
	if (start > header.nlmsg_len)
		return;
	Bytes list(message + start, message + header.nlmsg_len);
	const uint8_t *data;
	size_t len;
	if (find_attribute(list, NLMSGERR_ATTR_MSG, data, len))
		answer.text.assign(reinterpret_cast<const char *>(data),
				   strnlen(reinterpret_cast<const char *>(data), len));
	answer.names = find_attribute(list, NLMSGERR_ATTR_OFFS, data, len) ||
		       find_attribute(list, NLMSGERR_ATTR_MISS_TYPE, data, len);
}

} // namespace

void put(Bytes &out, uint16_t type, const void *data, size_t len, int said)
{
	nlattr head{uint16_t(said < 0 ? NLA_HDRLEN + len : size_t(said)), type};
	auto *bytes = reinterpret_cast<const uint8_t *>(&head);
	out.insert(out.end(), bytes, bytes + sizeof(head));
	bytes = static_cast<const uint8_t *>(data);
	out.insert(out.end(), bytes, bytes + len);
	out.resize(NLA_ALIGN(out.size()));
}

void put_string(Bytes &out, uint16_t type, const char *text)
{
	put(out, type, text, std::strlen(text) + 1);
}

Bytes genl_message(uint16_t family, uint8_t command, uint16_t flags, const Bytes &attributes,
		   uint8_t version, uint16_t reserved, uint32_t sequence)
{
	nlmsghdr header{uint32_t(NLMSG_HDRLEN + GENL_HDRLEN + attributes.size()), family, flags,
			sequence, 0};
	genlmsghdr genl{command, version, reserved};
	Bytes out(NLMSG_HDRLEN + GENL_HDRLEN);
	std::memcpy(out.data(), &header, sizeof(header));
	std::memcpy(out.data() + NLMSG_HDRLEN, &genl, sizeof(genl));
	out.insert(out.end(), attributes.begin(), attributes.end());
	return out;
}

GenlSocket::GenlSocket() : fd(socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_GENERIC))
{
	sockaddr_nl self{AF_NETLINK, 0, 0, 0};
	if (fd < 0 || bind(fd, reinterpret_cast<sockaddr *>(&self), sizeof(self)))
		die("netlink socket: %s", errno_name(errno));
	int one = 1;
	setsockopt(fd, SOL_NETLINK, NETLINK_EXT_ACK, &one, sizeof(one));
	setsockopt(fd, SOL_NETLINK, NETLINK_CAP_ACK, &one, sizeof(one));
	timeval time{20, 0};
	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &time, sizeof(time));
}

GenlSocket::~GenlSocket()
{
	close(fd);
}

bool GenlSocket::send(const Bytes &message) const
{
	return ::send(fd, message.data(), message.size(), 0) == ssize_t(message.size());
}

Answer GenlSocket::receive() const
{
	static thread_local Bytes buffer(1 << 17);
	Answer answer;
	for (;;) {
		ssize_t n = recv(fd, buffer.data(), buffer.size(), 0);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0) {
			answer.err = errno == EAGAIN ? -1 : errno;
			answer.names = true;
			return answer;
		}
		for (const uint8_t *p = buffer.data(); n >= ssize_t(NLMSG_HDRLEN);) {
			auto header = at<nlmsghdr>(p);
			if (header.nlmsg_len < NLMSG_HDRLEN || header.nlmsg_len > size_t(n))
				break;
			if (header.nlmsg_type == NLMSG_ERROR) {
				parse_error(p, header, answer);
				return answer;
			}
			if (header.nlmsg_type == NLMSG_DONE) {
				answer.err = -at<int>(p + NLMSG_HDRLEN);
				return answer;
			}
			answer.objects++;
			answer.object.assign(p + NLMSG_HDRLEN + GENL_HDRLEN, p + header.nlmsg_len);
			size_t len = NLMSG_ALIGN(header.nlmsg_len);
			p += len;
			n -= ssize_t(len);
		}
	}
}

bool find_attribute(const Bytes &attributes, uint16_t type, const uint8_t *&data, size_t &len)
{
	for (size_t p = 0; p + NLA_HDRLEN <= attributes.size();) {
		auto head = at<nlattr>(&attributes[p]);
		if (head.nla_len < NLA_HDRLEN || p + head.nla_len > attributes.size())
			return false;
		if ((head.nla_type & NLA_TYPE_MASK) == type) {
			data = &attributes[p] + NLA_HDRLEN;
			len = head.nla_len - NLA_HDRLEN;
			return true;
		}
		p += NLA_ALIGN(head.nla_len);
	}
	return false;
}

uint16_t kdirect_family(uint32_t *group)
{
	GenlSocket socket;
	Bytes name;
	put_string(name, CTRL_ATTR_FAMILY_NAME, KDIRECT_GENL_NAME);
	Answer answer = socket.ask(
		genl_message(GENL_ID_CTRL, CTRL_CMD_GETFAMILY, NLM_F_REQUEST | NLM_F_ACK, name, 1));
	const uint8_t *data;
	size_t len;
	if (!find_attribute(answer.object, CTRL_ATTR_FAMILY_ID, data, len) || len != 2)
		die("there is no netlink family %s: %s", KDIRECT_GENL_NAME, errno_name(answer.err));
	auto family = at<uint16_t>(data);
	if (group && find_attribute(answer.object, CTRL_ATTR_MCAST_GROUPS, data, len)) {
		Bytes groups(data, data + len);
		if (find_attribute(groups, 1, data, len)) {
			Bytes one(data, data + len);
			if (find_attribute(one, CTRL_ATTR_MCAST_GRP_ID, data, len))
				*group = at<uint32_t>(data);
		}
	}
	return family;
}
