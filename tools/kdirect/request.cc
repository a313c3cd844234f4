// SPDX-License-Identifier: GPL-2.0-only
#include "request.h"

#include <cerrno>
#include <span>

#include "kdirect_netlink.h"
#include "quantity.h"

namespace kdirect
{

namespace
{

uint64_t number(const Value &value)
{
	const auto *number = std::get_if<uint64_t>(&value);

	return number ? *number : 0; // the word of the parameter, which is "off"
}

void put_prefix(Message &message, const Value &value)
{
	const auto *prefix = std::get_if<Prefix>(&value);

	if (!prefix)
		return message.put_flag(KDIRECT_A_ALLOW_CLEAR); // "allow none"
	message.nest(KDIRECT_A_ALLOW, [&] {
		message.put_bytes(KDIRECT_A_PREFIX_ADDR, prefix->address.bytes());
		message.put_u8(KDIRECT_A_PREFIX_LEN, prefix->length);
	});
}

void put(Message &message, const Setting &setting)
{
	const uint16_t attr = setting.parameter->attr;

	switch (setting.parameter->type) {
	case Type::flag: return message.put_flag(attr);
	case Type::count16:
	case Type::port: return message.put_u16(attr, static_cast<uint16_t>(number(setting.value)));
	case Type::count32:
	case Type::choice:
	case Type::size: return message.put_u32(attr, static_cast<uint32_t>(number(setting.value)));
	case Type::bytes: {
		const auto &text = std::get<std::string>(setting.value);

		return message.put_bytes(attr, std::as_bytes(std::span(text)));
	}
	case Type::size64: return message.put_u64(attr, number(setting.value));
	case Type::name:
	case Type::listener:
	case Type::channel: return message.put_string(attr, std::get<std::string>(setting.value));
	case Type::time_us:
		return message.put_u32(attr,
				       static_cast<uint32_t>(number(setting.value) / ns_per_us));
	case Type::time_ms:
		return message.put_u32(attr,
				       static_cast<uint32_t>(number(setting.value) / ns_per_ms));
	case Type::time_ns: throw std::logic_error("no attribute counts in ns");
	case Type::address:
		return message.put_bytes(attr, std::get<Address>(setting.value).bytes());
	case Type::endpoint: {
		const auto &endpoint = std::get<Endpoint>(setting.value);

		message.put_bytes(attr, endpoint.address.bytes());
		return message.put_u16(KDIRECT_A_PORT, endpoint.port);
	}
	case Type::prefix: return put_prefix(message, setting.value);
	}
}

} // namespace

void put(Message &message, const Arguments &arguments)
{
	message.put_string(KDIRECT_A_NAME, arguments.name());
	for (const Setting &setting : arguments.settings())
		if (setting.parameter->attr)
			put(message, setting);
}

int execute(Client &client, uint8_t command, const Arguments &arguments, int flags)
{
	Message message = client.message(command, flags);

	put(message, arguments);
	client.execute(message);
	return exit_ok;
}

int show(uint8_t command, const View &view, const Arguments &arguments, const Output &output)
{
	Client client;

	show(view,
	     arguments.name().empty() ? client.dump(command)
				      : client.get(command, view.name_attr, arguments.name()),
	     output);
	return exit_ok;
}

std::optional<Attributes> find(Client &client, uint8_t command, const std::string &name)
{
	try {
		auto found = client.get(command, KDIRECT_A_NAME, name);

		return found.empty() ? std::nullopt : std::optional(std::move(found[0]));
	} catch (const KernelError &error) {
		if (error.error != ENOENT)
			throw;
		return std::nullopt;
	}
}

} // namespace kdirect
