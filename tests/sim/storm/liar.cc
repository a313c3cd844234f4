// SPDX-License-Identifier: GPL-2.0-only
// A peer that is no kdirect, or one that lies: it shakes hands more or less as it
// should, and then says what comes to its mind.
#include "../../../kmod/core/wire_map.hh"
#include "storm.h"

namespace sim
{

namespace wire = kd::wire;

class Schedule::Liar
{
public:
	Liar(World &world, Device &own, Rng &chance)
		: w(world), dev(own), rng(chance.next()), control(w, dev), data(w, dev)
	{
		control.post_recvs(wire::control_receives, wire::control_size);
		data.post_recvs(8, 8192);
	}

	/* As an initiator. */
	void connect(const char *addr)
	{
		wire::RequestInfo info{0,          static_cast<uint32_t>(rng.range(1, 2)),
				       0,          static_cast<uint32_t>(rng.range(1, 8)),
				       512,        8192,
				       rng.next(), 0,
				       0,          0};
		wire::ReplyInfo reply{};

		control.connect(addr, storm_port, request(info));
		if (!settle(control))
			return;
		const CmEventRecord *event = control.event(KD_CM_ESTABLISHED);
		if (!wire::decode_reply(event->data.data(), event->data.size(), info, reply))
			return;
		info.queue = 1;
		info.token = reply.token;
		info.depth = reply.depth;
		info.eager_limit = reply.eager_limit;
		info.max_message = reply.max_message;
		data.connect(addr, storm_port, request(info));
		if (!settle(data))
			return;
		if (rng.chance(90))
			data.send(message(wire::DataType::Hello, 0));
		wire::ControlInfo hello;
		hello.flags = wire::ControlHello;
		if (rng.chance(90))
			control.send(told(hello));
		talk(control, data);
		leave();
	}
	/* As a target. */
	void listen()
	{
		listener = std::make_unique<RawListener>(w, dev, storm_port);
		listener->on_request = [this](RawListener::Incoming &in) {
			wire::RequestInfo info{};

			in.connection->post_recvs(16, 8192);
			(void)wire::decode_request(in.private_data.data(), in.private_data.size(),
						   info);
			if (rng.chance(10))
				return; /* never answers */
			if (rng.chance(15)) {
				in.connection->reject(noise(rng.below(149)));
				return;
			}
			wire::Reply reply;
			wire::encode_reply(
				{info.queue, info.depth, info.eager_limit, info.max_message, token},
				reply);
			in.connection->accept(mutated(bytes_of(reply), 15));
		};
		w.run_for(rng.below(20 * ms));
		/* more may come while it talks */
		for (std::size_t i = 0; i < listener->incoming.size(); i++) {
			RawConnection &one = *listener->incoming[i].connection;
			RawConnection &two = *listener->incoming.back().connection;

			if (!one.established())
				continue;
			wire::ControlInfo start;
			start.flags = wire::Start;
			if (i == 0 && rng.chance(90))
				for (std::size_t j = 1; j < listener->incoming.size(); j++)
					listener->incoming[j].connection->send(
						message(wire::DataType::Hello, 0));
			if (i == 0)
				one.send(told(start));
			talk(one, two);
		}
	}

private:
	template <typename T>
	static Bytes bytes_of(const T &object)
	{
		return Bytes(reinterpret_cast<const char *>(&object), sizeof(object));
	}
	Bytes noise(std::size_t size)
	{
		Bytes text(size, '\0');

		for (char &byte : text)
			byte = static_cast<char>(rng.next());
		return text;
	}
	Bytes mutated(Bytes text, unsigned int percent)
	{
		if (!rng.chance(percent) || text.empty())
			return text;
		switch (rng.below(3)) {
		case 0: text[rng.below(text.size())] ^= static_cast<char>(1 << rng.below(8)); break;
		case 1: text.resize(rng.below(text.size())); break;
		default: text[rng.below(text.size())] = static_cast<char>(rng.next()); break;
		}
		return text;
	}
	Bytes request(const wire::RequestInfo &info)
	{
		wire::Request out;

		wire::encode_request(info, out);
		return mutated(bytes_of(out), 20);
	}
	Bytes message(wire::DataType type, uint32_t length, uint32_t rkey = 0, uint64_t addr = 0,
		      bool payload = true)
	{
		Bytes text(sizeof(wire::DataHeader), '\0');
		uint64_t number = rng.chance(90) ? seq : seq + rng.below(20);

		wire::encode_data({type, length,
				   static_cast<uint32_t>(rng.chance(80) ? 0 : rng.below(6)), rkey,
				   number, addr},
				  text.data());
		if (type == wire::DataType::Eager || type == wire::DataType::Offer)
			seq++;
		return payload ? text + noise(length) : text;
	}
	Bytes told(const wire::ControlInfo &info)
	{
		char text[wire::control_size];

		return Bytes(text, wire::encode_control(info, text));
	}
	/* In some order: now and then it is the right one. */
	Bytes about_maps()
	{
		char text[wire::control_size];
		wire::MapInfo info{.op = static_cast<wire::MapOp>(rng.chance(60) ? next_op++ % 9
										 : rng.below(10)),
				   .id = static_cast<uint32_t>(rng.below(2))};

		switch (info.op) {
		case wire::MapOp::Map: info.name[0] = 'e'; break;
		case wire::MapOp::Mapped:
			info.instance = rng.next() | 1;
			info.size = rng.range(1, 100000);
			info.key_bytes = 4096U << rng.below(10);
			break;
		case wire::MapOp::Refused: info.error = rng.chance(50) ? 2 : 12; break;
		case wire::MapOp::Keys:
			info.nr_keys = static_cast<uint32_t>(rng.range(1, wire::map_keys_at_once));
			for (uint32_t i = 0; i < info.nr_keys; i++) {
				RawConnection::Region region = data.expose(noise(4096));
				info.keys[i] = {region.addr, region.rkey};
			}
			break;
		default: break;
		}
		return Bytes(text, wire::encode_map(info, text));
	}
	bool settle(RawConnection &on)
	{
		for (uint64_t pause = 10 * us; pause < 500 * ms; pause += pause / 4) {
			if (on.established() || on.ended())
				break;
			w.run_for(pause);
		}
		return on.established();
	}
	Bytes anything(RawConnection &on)
	{
		switch (rng.below(11)) {
		case 9:
		case 10: return about_maps();
		case 0:
		case 1:
		case 2:
			return message(wire::DataType::Eager,
				       static_cast<uint32_t>(rng.range(1, 300)));
		case 3: {
			Bytes text = noise(rng.range(600, 4000));
			auto length = static_cast<uint32_t>(text.size());
			RawConnection::Region region = on.expose(text);

			return message(wire::DataType::Offer, length + (rng.chance(10) ? 1 : 0),
				       region.rkey, region.addr, false);
		}
		case 4:
			return message(wire::DataType::Offer,
				       static_cast<uint32_t>(rng.range(1, 9000)),
				       static_cast<uint32_t>(rng.next()), rng.next(), false);
		case 5:
			return message(rng.chance(50) ? wire::DataType::Ping : wire::DataType::Pong,
				       static_cast<uint32_t>(rng.range(1, 100)));
		case 6: return noise(rng.below(700));
		default: {
			wire::ControlInfo info;

			info.flags = static_cast<uint16_t>(
				rng.chance(50) ? uint64_t{wire::KeepAlive} : rng.below(64));
			info.credits = static_cast<uint32_t>(rng.below(4));
			info.last = rng.chance(50) ? seq : rng.below(10);
			info.nr_credits = static_cast<uint32_t>(rng.below(3));
			for (uint32_t i = 0; i < info.nr_credits; i++)
				info.credit[i] = {static_cast<uint16_t>(rng.range(1, 3)),
						  static_cast<uint32_t>(rng.below(5))};
			info.nr_done = static_cast<uint32_t>(rng.below(2));
			for (uint32_t i = 0; i < info.nr_done; i++)
				info.done[i] = {rng.below(4),
						static_cast<uint16_t>(rng.range(1, 2))};
			return told(info);
		}
		}
	}
	void talk(RawConnection &one, RawConnection &two)
	{
		for (uint64_t i = rng.below(16); i; i--) {
			RawConnection &on = rng.chance(30) ? one : two;

			if (on.broken())
				return;
			Bytes text = mutated(anything(on), 10);
			if (rng.chance(4))
				on.send_invalidating(text,
						     static_cast<uint32_t>(rng.below(8) << 8));
			else
				on.send(text);
			if (rng.chance(5))
				on.read(rng.next(), static_cast<uint32_t>(rng.next()), 100);
			w.run_for(rng.below(50 * us));
		}
	}
	void leave()
	{
		switch (rng.below(4)) {
		case 0: control.disconnect(); break;
		case 1: data.disconnect(); break;
		case 2:
			control.vanish();
			data.vanish();
			break;
		default: break;
		}
	}

	World &w;
	Device &dev;
	Rng rng;
	RawConnection control, data;
	std::unique_ptr<RawListener> listener;
	uint64_t seq = 0;
	unsigned int next_op = 1;
	const uint64_t token = 0x1234;
};

void Schedule::lie(Rng &rng)
{
	DeviceOptions options = device;

	options.raw = true;
	Device &dev = w->add_device("10.0.0.9", options);
	liar = std::make_shared<Liar>(*w, dev, rng);
	w->run_for(rng.below(100 * us));
	if (rng.chance(60))
		liar->connect("10.0.0.2");
	else
		liar->listen();
	fault(Trouble::PeerVanishes);
}

} // namespace sim
