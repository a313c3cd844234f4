// SPDX-License-Identifier: GPL-2.0-only
#include "netlink.h"

#include <cerrno>

#include <gtest/gtest.h>
#include <linux/netlink.h>

#include "builder.h"
#include "kdirect_netlink.h"

namespace kdirect
{

namespace
{

using Bytes = std::vector<std::byte>;

Bytes message(uint16_t type, uint16_t flags, std::initializer_list<Bytes> parts)
{
	Bytes bytes(NLMSG_HDRLEN);

	for (const Bytes &part : parts)
		bytes.insert(bytes.end(), part.begin(), part.end());

	const nlmsghdr head{static_cast<uint32_t>(bytes.size()), type, flags, 1, 0};

	std::memcpy(bytes.data(), &head, sizeof(head));
	return bytes;
}

template <typename T>
Bytes as_bytes(const T &value)
{
	const auto view = std::as_bytes(std::span(&value, 1));

	return {view.begin(), view.end()};
}

const nlmsghdr *header(const Bytes &bytes)
{
	return reinterpret_cast<const nlmsghdr *>(bytes.data());
}

// A request as the tool sends it: generic netlink header, then NAME and DEPTH.
Bytes request()
{
	return message(GENL_ID_CTRL, NLM_F_REQUEST,
		       {Bytes(4), Builder()
					  .string(KDIRECT_A_NAME, "c0")
					  .number<uint32_t>(KDIRECT_A_DEPTH, 0)
					  .take()});
}

constexpr uint32_t depth_offset = NLMSG_HDRLEN + 4 + 8; // behind NAME, which takes 8

Bytes error(int number, const Bytes &tlvs, uint16_t flags = NLM_F_CAPPED | NLM_F_ACK_TLVS)
{
	nlmsgerr head{-number, *header(request())};
	Bytes rest;

	if (!(flags & NLM_F_CAPPED)) { // then the whole request comes back
		const Bytes whole = request();

		rest.assign(whole.begin() + NLMSG_HDRLEN, whole.end());
	}
	return message(NLMSG_ERROR, flags, {as_bytes(head), rest, tlvs});
}

std::string text(const Bytes &reply)
{
	const Bytes sent = request();

	return kernel_error(header(reply), header(sent)).what();
}

TEST(KernelErrorText, WithoutExtendedAck)
{
	const Bytes reply = error(EEXIST, {}, NLM_F_CAPPED);

	EXPECT_EQ(text(reply), "File exists (EEXIST)");
	EXPECT_EQ(kernel_error(header(reply), nullptr).error, EEXIST);
	EXPECT_EQ(kernel_error(header(reply), nullptr).status, exit_failed);
}

TEST(KernelErrorText, TextOfTheModule)
{
	EXPECT_EQ(
		text(error(ERANGE, Builder().string(NLMSGERR_ATTR_MSG, "depth: 1 to 1024").take())),
		"depth: 1 to 1024 (ERANGE)");
}

TEST(KernelErrorText, UncappedRequestIsSkipped)
{
	EXPECT_EQ(text(error(ERANGE, Builder().string(NLMSGERR_ATTR_MSG, "no").take(),
			     NLM_F_ACK_TLVS)),
		  "no (ERANGE)");
}

TEST(KernelErrorText, OffsetNamesTheAttribute)
{
	Builder tlvs;

	tlvs.string(NLMSGERR_ATTR_MSG, "integer out of range");
	tlvs.number<uint32_t>(NLMSGERR_ATTR_OFFS, depth_offset);
	EXPECT_EQ(text(error(ERANGE, tlvs.take())), "depth: integer out of range (ERANGE)");
}

TEST(KernelErrorText, NamedOnlyOnce)
{
	Builder tlvs;

	tlvs.string(NLMSGERR_ATTR_MSG, "depth must be 1 to 1024");
	tlvs.number<uint32_t>(NLMSGERR_ATTR_OFFS, depth_offset);
	EXPECT_EQ(text(error(ERANGE, tlvs.take())), "depth must be 1 to 1024 (ERANGE)");
}

TEST(KernelErrorText, TheObjectIsNotNamedAgain)
{
	Builder tlvs;

	tlvs.string(NLMSGERR_ATTR_MSG, "there is no such channel");
	tlvs.number<uint32_t>(NLMSGERR_ATTR_OFFS, NLMSG_HDRLEN + 4);
	EXPECT_EQ(text(error(ENOENT, tlvs.take())), "there is no such channel (ENOENT)");
}

TEST(KernelErrorText, WildOffsetsAreIgnored)
{
	for (uint32_t offset : {UINT32_MAX, UINT32_MAX - 3, depth_offset + 8, 0U}) {
		Builder tlvs;

		tlvs.string(NLMSGERR_ATTR_MSG, "bad");
		tlvs.number<uint32_t>(NLMSGERR_ATTR_OFFS, offset);
		EXPECT_EQ(text(error(EINVAL, tlvs.take())), "bad (EINVAL)") << offset;
	}
}

TEST(KernelErrorText, MissingAttribute)
{
	Builder tlvs;

	tlvs.number<uint32_t>(NLMSGERR_ATTR_MISS_TYPE, KDIRECT_A_PORT);
	EXPECT_EQ(text(error(EINVAL, tlvs.take())), "the kernel needs 'port' (EINVAL)");
}

TEST(KernelErrorText, IsEscaped)
{
	EXPECT_EQ(text(error(EIO, Builder().string(NLMSGERR_ATTR_MSG, "a\x1b[2J").take())),
		  "a\\x1b[2J (EIO)");
}

TEST(KernelErrorText, EndOfADump)
{
	const int number = -EMSGSIZE;
	const Bytes done =
		message(NLMSG_DONE, NLM_F_MULTI | NLM_F_ACK_TLVS,
			{as_bytes(number), Builder().string(NLMSGERR_ATTR_MSG, "too long").take()});

	EXPECT_EQ(text(done), "too long (EMSGSIZE)");
}

TEST(KernelErrorText, TruncatedMessages)
{
	EXPECT_EQ(kernel_error(header(message(NLMSG_ERROR, NLM_F_ACK_TLVS, {})), nullptr).error, 0);
	EXPECT_EQ(kernel_error(header(message(NLMSG_ERROR, NLM_F_ACK_TLVS, {as_bytes(-EIO)})),
			       nullptr)
			  .error,
		  EIO);
}

} // namespace

} // namespace kdirect
