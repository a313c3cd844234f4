// SPDX-License-Identifier: GPL-2.0-only
#include "fields.h"

#include <algorithm>

#include <fmt/format.h>

#include "address.h"
#include "event.h"
#include "failure.h"
#include "kdirect_netlink.h"
#include "quantity.h"
#include "text.h"

namespace kdirect
{

namespace
{

using Bytes = std::span<const std::byte>;

Address to_address(std::optional<Bytes> bytes)
{
	// A module that sends a malformed address is shown, not obeyed: "?".
	try {
		return bytes ? address_from_bytes(*bytes) : Address();
	} catch (const BadValue &) {
		return Address();
	}
}

uint16_t port_of(uint16_t address_attr)
{
	return address_attr == KDIRECT_A_LOCAL_ADDR ? KDIRECT_A_LOCAL_PORT : KDIRECT_A_PORT;
}

Endpoint to_endpoint(uint16_t attr, const Attributes &attributes)
{
	return {to_address(attributes.find(attr)),
		static_cast<uint16_t>(attributes.number(port_of(attr)).value_or(0))};
}

std::vector<std::string> to_prefixes(uint16_t attr, const Attributes &attributes)
{
	std::vector<std::string> prefixes;

	for (Bytes bytes : attributes.all(attr)) {
		const Attributes nest(bytes);

		prefixes.push_back(format(Prefix{
			to_address(nest.find(KDIRECT_A_PREFIX_ADDR)),
			static_cast<uint8_t>(nest.number(KDIRECT_A_PREFIX_LEN).value_or(0))}));
	}
	return prefixes;
}

// As "rdma dev" shows it: the kernel sends it in host order.
std::string format_guid(uint64_t guid)
{
	return fmt::format("{:04x}:{:04x}:{:04x}:{:04x}", guid >> 48, guid >> 32 & 0xffff,
			   guid >> 16 & 0xffff, guid & 0xffff);
}

std::string to_hex(Bytes bytes)
{
	std::string text;

	for (const std::byte byte : bytes)
		text += fmt::format("{:02x}", std::to_integer<unsigned>(byte));
	return text;
}

std::string json_key(std::string_view key, std::string_view suffix)
{
	std::string name(key);

	std::ranges::replace(name, '-', '_');
	return name.append(suffix);
}

void add_json(Json &json, const Field &field, const Attributes &attributes)
{
	const auto number = attributes.number(field.attr);
	const auto key = [&](std::string_view suffix) { return json_key(field.key, suffix); };

	if (field.format == Format::prefixes) {
		json[key("")] = to_prefixes(field.attr, attributes);
		return;
	}
	if (field.format == Format::flag) {
		json[key("")] = attributes.has(field.attr);
		return;
	}
	if (!attributes.has(field.attr) && field.format != Format::rights)
		return;
	switch (field.format) {
	case Format::number: json[key("")] = number.value_or(0); break;
	case Format::size: json[key("_bytes")] = number.value_or(0); break;
	case Format::time_us: json[key("_us")] = number.value_or(0); break;
	case Format::time_ms:
	case Format::time_ms_or_off: json[key("_ms")] = number.value_or(0); break;
	case Format::time_ns: json[key("_ns")] = number.value_or(0); break;
	case Format::percent: json[key("_percent")] = number.value_or(0); break;
	case Format::endpoint: {
		const Endpoint endpoint = to_endpoint(field.attr, attributes);

		json[key("_addr")] = format(endpoint.address);
		json[key("_port")] = endpoint.port;
		break;
	}
	case Format::error:
		json["errno"] = number.value_or(0);
		json[key("")] = number.value_or(0) ? Json(*to_text(field, attributes)) : Json();
		break;
	case Format::text: json[key("")] = *attributes.string(field.attr); break;
	default: json[key("")] = *to_text(field, attributes);
	}
}

std::string head(const View &view, const Attributes &attributes)
{
	std::string text(view.object);

	if (const auto name = attributes.string(view.name_attr))
		text += fmt::format(" {}", escape(*name));
	else if (const auto number = attributes.number(view.name_attr))
		text += fmt::format(" {}", *number);
	return text;
}

std::vector<std::string> row(const View &view, const Attributes &attributes, unsigned line)
{
	std::vector<std::string> cells{line == 0 ? head(view, attributes) : std::string("   ")};

	for (const Field &field : view.fields) {
		if (field.line != line)
			continue;

		const auto text = to_text(field, attributes);

		cells.push_back(text && !text->empty() ? fmt::format("{} {}", field.key, *text)
						       : std::string());
	}
	return cells;
}

// Characters, not bytes; good enough for alignment.
size_t width(std::string_view text)
{
	return static_cast<size_t>(
		std::ranges::count_if(text, [](char c) { return (c & 0xc0) != 0x80; }));
}

std::string join(const std::vector<std::string> &cells, std::span<const size_t> widths)
{
	std::string text;

	for (size_t i = 0; i < cells.size(); i++) {
		if (widths[i] == 0)
			continue; // a column that no object fills
		text += cells[i];
		text.append(widths[i] - width(cells[i]) + 1, ' ');
	}
	text.erase(text.find_last_not_of(' ') + 1);
	return text;
}

// One line of every object, padded to common columns; empty where an object has nothing.
std::vector<std::string> aligned(const View &view, std::span<const Attributes> objects,
				 unsigned line)
{
	std::vector<std::vector<std::string>> rows;
	std::vector<std::string> lines;

	for (const Attributes &object : objects)
		rows.push_back(row(view, object, line));

	std::vector<size_t> widths(rows.empty() ? 0 : rows[0].size());

	for (const auto &cells : rows)
		for (size_t i = 0; i < cells.size(); i++)
			widths[i] = std::max(widths[i], width(cells[i]));
	for (const auto &cells : rows)
		lines.push_back(join(cells, widths));
	return lines;
}

std::vector<Attributes> nested(const View &view, const Attributes &attributes)
{
	std::vector<Attributes> nests;

	for (Bytes bytes : attributes.all(view.nest_attr))
		nests.emplace_back(bytes);
	return nests;
}

} // namespace

std::optional<std::string> to_text(const Field &field, const Attributes &attributes)
{
	const uint64_t number = attributes.number(field.attr).value_or(0);

	if (field.format == Format::rights)
		return attributes.has(field.attr) ? "ro" : "rw";
	if (!attributes.has(field.attr))
		return std::nullopt;
	switch (field.format) {
	case Format::text: return escape(*attributes.string(field.attr));
	case Format::number:
	case Format::percent: return fmt::format("{}", number);
	case Format::size: return format_size(number);
	case Format::time_us: return format_time(number * ns_per_us);
	case Format::time_ms: return format_time(ms_to_ns(number));
	case Format::time_ns: return format_time(number);
	case Format::time_ms_or_off:
		if (number == UINT32_MAX)
			return "forever";
		return number ? format_time(ms_to_ns(number)) : "off";
	case Format::guid: return format_guid(number);
	case Format::address: return format(to_address(attributes.find(field.attr)));
	case Format::endpoint: return format(to_endpoint(field.attr, attributes));
	case Format::prefixes:
		return fmt::format("{}", fmt::join(to_prefixes(field.attr, attributes), ","));
	case Format::error:
		// No error is not worth a word.
		return number ? errno_name(static_cast<int>(number)) : std::string();
	case Format::state: return state_name(number);
	case Format::transport: return transport_name(number);
	case Format::queue_kind: return queue_kind_name(number);
	case Format::poll_mode: return poll_mode_name(number);
	case Format::mode: return mode_name(number);
	case Format::bytes: return to_hex(*attributes.find(field.attr));
	case Format::map_state: return map_state_name(number);
	case Format::hex: return fmt::format("{:016x}", number);
	case Format::flag: return "yes";
	case Format::rights: break;
	}
	return std::nullopt;
}

Json to_json(const View &view, const Attributes &attributes)
{
	Json json = Json::object();

	if (const auto name = attributes.string(view.name_attr); name && !view.name_key.empty())
		json[std::string(view.name_key)] = *name;
	for (const Field &field : view.fields)
		add_json(json, field, attributes);
	if (view.nest) {
		Json &list = json[std::string(view.nest_key)] = Json::array();

		for (const Attributes &nest : nested(view, attributes))
			list.push_back(to_json(*view.nest, nest));
	}
	return json;
}

std::vector<std::string> to_lines(const View &view, std::span<const Attributes> objects,
				  bool details)
{
	unsigned last = 0;
	std::vector<std::vector<std::string>> columns;
	std::vector<std::string> lines;

	if (details)
		for (const Field &field : view.fields)
			last = std::max(last, field.line);
	for (unsigned line = 0; line <= last; line++)
		columns.push_back(aligned(view, objects, line));
	for (size_t i = 0; i < objects.size(); i++) {
		for (const auto &column : columns)
			if (!column[i].empty())
				lines.push_back(column[i]);
		if (!details || !view.nest)
			continue;
		for (const std::string &line :
		     to_lines(*view.nest, nested(view, objects[i]), details))
			lines.push_back("    " + line);
	}
	return lines;
}

void show(const View &view, std::span<const Attributes> objects, const Output &output)
{
	if (output.json()) {
		Json list = Json::array();

		for (const Attributes &object : objects)
			list.push_back(to_json(view, object));
		return output.value(list);
	}
	for (const std::string &line : to_lines(view, objects, output.details()))
		output.line(line);
}

} // namespace kdirect
