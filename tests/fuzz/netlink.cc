// SPDX-License-Identifier: GPL-2.0-only
/*
 * Generic netlink messages through the policies and the whole of the shim's
 * netlink files into the core, which connects and listens on the simulated fabric.
 */
#include <algorithm>

#include "input.h"
#include "kernel/kernel.hh"

extern "C" {
int kd_netlink_init(void);
void kd_netlink_close(void);
void kd_netlink_exit(void);
}

using namespace sim;

namespace
{

constexpr int max_steps = 24;

class Builder
{
public:
	explicit Builder(Input &in) : in(in) {}

	std::vector<uint8_t> message()
	{
		uint8_t cmd = in.take<uint8_t>() % (KDIRECT_CMD_MAX + 2);
		uint8_t how = in.take<uint8_t>();
		unsigned int count = how & 7;

		out.resize(NLMSG_HDRLEN + GENL_HDRLEN);
		auto *nlh = reinterpret_cast<nlmsghdr *>(out.data());
		nlh->nlmsg_flags = how & 8 ? NLM_F_REQUEST | NLM_F_DUMP : NLM_F_REQUEST;
		static_cast<genlmsghdr *>(nlmsg_data(nlh))->cmd = cmd;
		/* what most requests need, unless told otherwise */
		if (!(how & 16))
			name();
		if (!(how & 32)) {
			bytes(KDIRECT_A_ADDR, {10, 0, 0, static_cast<uint8_t>(1 + in.below(3))});
			number(KDIRECT_A_PORT, 2, 7471 + in.below(2));
		}
		for (unsigned int i = 0; i < count; i++)
			attribute(0);
		if (how & 64)
			raw(in.bytes(255));
		return out;
	}

private:
	void raw(std::string_view text) { out.insert(out.end(), text.begin(), text.end()); }
	void bytes(unsigned int type, std::string_view value)
	{
		nlattr nla{static_cast<uint16_t>(NLA_HDRLEN + value.size()),
			   static_cast<uint16_t>(type)};

		raw({reinterpret_cast<const char *>(&nla), sizeof(nla)});
		raw(value);
		out.resize(NLMSG_ALIGN(out.size()));
	}
	void bytes(unsigned int type, std::initializer_list<uint8_t> value)
	{
		bytes(type, std::string(value.begin(), value.end()));
	}
	void number(unsigned int type, std::size_t size, uint64_t value)
	{
		bytes(type, {reinterpret_cast<const char *>(&value), size});
	}
	void name()
	{
		static const char *const names[] = {"c0", "c1", "store", "store.0", "a-b_9"};
		uint8_t which = in.take<uint8_t>();

		if (which < 250)
			bytes(KDIRECT_A_NAME, std::string(names[which % 5]) + '\0');
		else
			bytes(KDIRECT_A_NAME, in.bytes(70));
	}
	/* one that fits its type, as a rule */
	void attribute(int depth)
	{
		unsigned int type = in.below(KDIRECT_A_SOCKET_OWNER + 4);
		uint8_t how = in.take<uint8_t>();

		if ((how & 15) == 15) /* anything */
			return bytes(in.take<uint16_t>(), in.bytes(80));
		if ((how & 15) == 14) /* of another length than its type's */
			return bytes(type, in.bytes(8));
		switch (type) {
		case KDIRECT_A_NAME: return name();
		case KDIRECT_A_ADDR:
		case KDIRECT_A_SRC_ADDR:
		case KDIRECT_A_PREFIX_ADDR: {
			std::string addr = in.bytes(how & 1 ? 16 : 4);
			addr.resize(how & 1 ? 16 : 4);
			return bytes(type, addr);
		}
		case KDIRECT_A_ALLOW: {
			std::size_t at = out.size();
			uint32_t count = how & 64 ? 70 : 1;
			for (uint32_t i = 0; i < count; i++) {
				at = out.size();
				bytes(type | NLA_F_NESTED, "");
				if (!(how & 16))
					bytes(KDIRECT_A_PREFIX_ADDR, {10, 0, 0, 0});
				if (!(how & 32))
					number(KDIRECT_A_PREFIX_LEN, 1, in.below(40));
				if (depth < 3 && how & 128)
					attribute(depth + 1);
				reinterpret_cast<nlattr *>(out.data() + at)->nla_len =
					static_cast<uint16_t>(out.size() - at);
			}
			return;
		}
		case KDIRECT_A_PREFIX_LEN: return number(type, 1, in.number());
		case KDIRECT_A_PORT:
		case KDIRECT_A_MAX_QUEUES:
		case KDIRECT_A_QUEUES:
		case KDIRECT_A_POLL_QUEUES: return number(type, 2, in.number());
		case KDIRECT_A_ALLOW_CLEAR:
		case KDIRECT_A_SOCKET_OWNER: return bytes(type, "");
		default: return number(type, 4, in.number());
		}
	}

	Input &in;
	std::vector<uint8_t> out;
};

void run(Input &in)
{
	World w({.seed = in.take<uint8_t>()});
	kernel::State &kernel = kernel::state();
	auto *init = reinterpret_cast<net *>(w.node().net);
	auto *other = reinterpret_cast<net *>(&w.add_net());
	Device *second = nullptr;

	kernel_init_net = init;
	w.call([] { MUST(!kd_netlink_init()); });
	w.add_device("10.0.0.1");
	second = &w.add_device("10.0.0.2");
	for (int i = 0; i < max_steps && !in.empty(); i++) {
		uint8_t op = in.take<uint8_t>();
		uint32_t portid = 1 + (op >> 4 & 1);
		net *from = op & 32 ? other : init;

		switch (op & 15) {
		default: {
			std::vector<uint8_t> message = Builder(in).message();
			w.call([&] { kernel::genl_receive(std::move(message), portid, from); });
			break;
		}
		case 9: {
			/* any bytes behind the headers */
			std::string text = in.bytes(255);
			std::vector<uint8_t> message(NLMSG_HDRLEN, 0);
			message.insert(message.end(), text.begin(), text.end());
			w.call([&] { kernel::genl_receive(std::move(message), portid, from); });
			break;
		}
		case 10: w.run_for(in.take<uint8_t>() * 10 * us); break;
		case 11: w.run_for(in.take<uint8_t>() * 10 * ms); break;
		case 12: {
			netlink_notify notify{from, portid, NETLINK_GENERIC};
			w.call([&] {
				kernel.notifier->notifier_call(kernel.notifier, NETLINK_URELEASE,
							       &notify);
			});
			break;
		}
		case 13:
			kernel.admin = in.flag();
			kernel.host = in.flag();
			break;
		case 14: kernel.fail_alloc = kernel.allocs + 1 + in.below(4); break;
		case 15:
			if (second) {
				w.remove_device(*second);
				second = nullptr;
			} else {
				second = &w.add_device("10.0.0.2");
			}
			break;
		}
	}
	w.call([] { kd_netlink_close(); });
	w.stop();
	w.call([] { kd_netlink_exit(); });
	kernel::must_be_idle();
	/* what the module said: complete messages, each as long as it says */
	for (const auto &message : kernel.sent)
		for (std::size_t at = 0; at < message.size();) {
			const auto *nlh = reinterpret_cast<const nlmsghdr *>(message.data() + at);
			MUST(nlh->nlmsg_len >= NLMSG_HDRLEN + GENL_HDRLEN &&
			     nlh->nlmsg_len <= message.size() - at);
			at += nlh->nlmsg_len;
		}
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	Input in(data, size);

	kernel::reset();
	run(in);
	kernel::reset();
	return 0;
}
