// SPDX-License-Identifier: GPL-2.0-only
/*
 * A whole core on the simulated fabric, and a peer that says what the input says:
 * private data, messages, offers, READs, disconnects and CM events, in its order.
 * The simulation checks every step; at the end everything must end.
 */
#include <deque>

#include "../../kmod/core/wire_map.hh"
#include "../sim/fabric.h"
#include "../sim/liars.h"
#include "../sim/map.h"
#include "input.h"

using namespace sim;

namespace
{

constexpr int max_steps = 64;

struct Offer {
	uint64_t addr = 0x100000000, seq = 0;
	uint32_t rkey = 0x101, length = 5000;
};

class Peer
{
public:
	Peer(Input &in, uint8_t seed) : in(in), w({.seed = seed}) {}
	virtual ~Peer() = default;
	void run();

protected:
	virtual void handshake() = 0;
	virtual void connection(RawConnection **out) = 0;
	virtual const char *channel() const = 0;
	/* One step that only one role has. */
	virtual void own_step() = 0;

	RawConnection *some()
	{
		RawConnection *out = nullptr;

		connection(&out);
		return out;
	}
	void watch(RawConnection &queue);
	void say(RawConnection &on, const wire::DataInfo &info, const Bytes &payload)
	{
		Bytes text(sizeof(wire::DataHeader), '\0');

		wire::encode_data(info, text.data());
		on.send(text + payload);
	}
	wire::RequestInfo take_request(wire::RequestInfo base);

	Input &in;
	std::deque<std::string> buffers; /* outlives what the devices do */
	World w;
	uint64_t seq = 0;
	Offer offer; /* the core's last */

private:
	void step();
	void data_message(RawConnection &on);
	void control_message(RawConnection &on);
	void map_message(RawConnection &on);
	void local_map();
	void event();
	void local();

	File file;
	std::vector<Task> tasks;
};

/* Remembers what the core offers, and does nothing about it. */
void Peer::watch(RawConnection &queue)
{
	queue.on_message = [this](const Bytes &text) {
		wire::DataInfo info;

		if (wire::decode_data(text.data(), text.size(), wire::max_eager, wire::max_message,
				      info) &&
		    info.type == wire::DataType::Offer)
			offer = {info.addr, info.seq, info.rkey, info.length};
	};
}

/* @base with some fields changed. */
wire::RequestInfo Peer::take_request(wire::RequestInfo base)
{
	uint8_t change = in.take<uint8_t>();

	if (change & 1)
		base.queue = static_cast<uint32_t>(in.number());
	if (change & 2) {
		base.queues = in.take<uint8_t>();
		base.poll_queues = in.take<uint8_t>();
	}
	if (change & 4)
		base.depth = static_cast<uint32_t>(in.number());
	if (change & 8)
		base.eager_limit = static_cast<uint32_t>(in.number());
	if (change & 16)
		base.max_message = static_cast<uint32_t>(in.number());
	if (change & 32)
		base.nonce = in.number();
	if (change & 64)
		base.token = in.number();
	if (change & 128) {
		base.attempt = in.take<uint8_t>();
		base.keep_ms = static_cast<uint32_t>(in.number());
	}
	return base;
}

void Peer::data_message(RawConnection &on)
{
	uint8_t how = in.take<uint8_t>();
	wire::DataInfo info{wire::DataType(how & 7), 0, 0, 0, seq, 0};
	Bytes payload;

	if (how & 8)
		info.seq = in.number();
	if (how & 16)
		info.credits = static_cast<uint32_t>(in.number());
	if (info.type == wire::DataType::Offer) {
		Bytes text(static_cast<std::size_t>(1 + in.take<uint16_t>() % 20000), 'o');
		RawConnection::Region region = on.expose(text);

		info.length = static_cast<uint32_t>(text.size());
		info.rkey = region.rkey;
		info.addr = region.addr;
		if (how & 32)
			info.addr += in.number();
		if (how & 64)
			info.rkey = static_cast<uint32_t>(in.number());
	} else if (info.type != wire::DataType::Hello) {
		payload = in.bytes(255);
		info.length = static_cast<uint32_t>(payload.size());
	}
	if (how & 128)
		info.length = static_cast<uint32_t>(in.number());
	if (info.type == wire::DataType::Eager || info.type == wire::DataType::Offer)
		seq = info.seq + 1;
	say(on, info, payload);
}

void Peer::control_message(RawConnection &on)
{
	wire::ControlInfo info;
	char text[wire::control_size];
	uint8_t how = in.take<uint8_t>();

	if (how & 128)
		return map_message(on);
	info.flags = in.take<uint8_t>();
	info.credits = static_cast<uint32_t>(how & 1 ? in.number() : on.received.size());
	info.last = how & 2 ? in.number() : seq;
	info.nr_credits = how & 4 ? in.below(wire::max_credit_entries + 1) : 0;
	for (uint32_t i = 0; i < info.nr_credits; i++)
		info.credit[i] = {static_cast<uint16_t>(in.below(how & 64 ? 256 : 6)),
				  static_cast<uint32_t>(in.number())};
	info.nr_done = how & 8 ? in.below(wire::max_done_entries + 1) : 0;
	for (uint32_t i = 0; i < info.nr_done; i++)
		info.done[i] = {how & 16 ? in.number() : offer.seq,
				static_cast<uint16_t>(how & 32 ? in.below(how & 64 ? 256 : 6) : 1)};
	on.send(Bytes(text, wire::encode_control(info, text)));
}

/* About exports and mappings: as it should be, but for what the input changes. */
void Peer::map_message(RawConnection &on)
{
	char text[wire::control_size];
	uint8_t how = in.take<uint8_t>();
	wire::MapInfo info{.op = static_cast<wire::MapOp>(how & 15),
			   .id = how & 16 ? in.below(70) : 0};

	info.credits = static_cast<uint32_t>(how & 32 ? in.number() : 0);
	info.read_only = how & 64;
	switch (info.op) {
	case wire::MapOp::Map: info.name[0] = how & 128 ? 'x' : 'e'; break;
	case wire::MapOp::Mapped:
		info.instance = 1;
		info.size = how & 128 ? in.number() : 3 * 4096;
		info.key_bytes = 4096U << in.below(how & 128 ? 20 : 10);
		break;
	case wire::MapOp::Refused: info.error = how & 128 ? in.take<uint8_t>() : 2; break;
	case wire::MapOp::Keys:
		info.nr_keys = how & 128 ? in.below(wire::map_keys_at_once + 1) : 3;
		info.first = how & 128 ? in.take<uint8_t>() : 0;
		for (uint32_t i = 0; i < info.nr_keys; i++)
			info.keys[i] = {in.number(), static_cast<uint32_t>(in.number())};
		break;
	default: break;
	}
	on.send(Bytes(text, wire::encode_map(info, text)));
}

/* What this end does with exports and mappings. */
void Peer::local_map()
{
	switch (in.below(6)) {
	case 0: (void)add_export(w, "e", "store", 1 + in.take<uint16_t>(), in.flag()); return;
	case 1: (void)del_export(w, "e"); return;
	case 2: (void)add_map(w, "m", channel(), "e", in.flag()); return;
	case 3: (void)del_map(w, "m"); return;
	default: {
		buffers.emplace_back(1 + in.take<uint16_t>(), 'm');
		std::string &buffer = buffers.back();
		uint64_t pos = in.take<uint16_t>();
		bool write = in.flag();

		tasks.push_back(w.spawn("transfer", [this, &buffer, pos, write] {
			MapFile file = open_map(w, "m");
			kd_iter iter = target_in(buffer);

			if (file)
				file.io(iter, pos, write);
		}));
	}
	}
}

/* An event that the core's id has not deserved. */
void Peer::event()
{
	std::vector<Cm *> ids;

	for (const auto &cm : w.cms)
		if (!cm->raw && (cm->queue || cm->listener))
			ids.push_back(cm.get());
	auto type = static_cast<kd_cm_event_type>(in.below(KD_CM_OTHER + 1));
	int status = static_cast<int>(in.take<uint8_t>());
	Bytes data = in.bytes(196);

	if (ids.empty() || type == KD_CM_CONNECT_REQUEST)
		return;
	Cm *to = ids[in.below(static_cast<uint32_t>(ids.size()))];
	cm_push(w, to,
		{.type = type,
		 .status = status,
		 .data = data,
		 .has_data = !data.empty(),
		 .reads_in = in.take<uint8_t>(),
		 .reads_out = in.take<uint8_t>()});
}

/* What happens at the core's own end meanwhile. */
void Peer::local()
{
	uint8_t what = in.take<uint8_t>();
	uint32_t flags = what & 16 ? 0 : KD_IO_NOWAIT;

	if (what & 128)
		return local_map();
	if (what & 32)
		flags |= KD_IO_POLL;
	switch (what & 7) {
	case 0:
		if (!file)
			file = w.open(channel());
		return;
	case 1:
	case 2: {
		std::size_t len = (what & 7) == 1 ? in.take<uint8_t>() : in.take<uint16_t>();
		buffers.emplace_back(len, 'w');
		if (file)
			tasks.push_back(w.spawn("writer", [this, &text = buffers.back(), flags] {
				(void)file.write(text, flags);
			}));
		return;
	}
	case 3:
		buffers.emplace_back(in.take<uint16_t>(), '\0');
		if (file)
			tasks.push_back(w.spawn("reader", [this, &text = buffers.back(), flags] {
				kd_iter into = target_in(text);
				(void)file.read(into, flags);
			}));
		return;
	case 4: {
		uint32_t size = in.take<uint16_t>(), poll = what & 32 ? KDIRECT_PING_POLL : 0;
		if (file)
			tasks.push_back(w.spawn("ping", [this, size, poll] {
				(void)file.ping(size, poll, 50 * ms);
			}));
		return;
	}
	case 5: w.del(channel()); return;
	case 6: w.unlisten("store"); return;
	case 7:
		for (Task task : tasks)
			w.signal(task, what & 16);
		return;
	}
}

void Peer::step()
{
	uint8_t op = in.take<uint8_t>();
	RawConnection *on = some();

	switch (op % 14) {
	case 0: own_step(); return;
	case 1:
		if (on)
			on->send(in.bytes(255));
		return;
	case 2:
	case 3:
		if (on)
			data_message(*on);
		return;
	case 4:
	case 5:
		if (on)
			control_message(*on);
		return;
	case 6: {
		uint64_t rkey = in.flag() ? in.number() : offer.rkey;
		if (on)
			on->send_invalidating(in.bytes(64), static_cast<uint32_t>(rkey));
		return;
	}
	case 7: {
		uint64_t addr = offer.addr + in.number(), len = offer.length;
		if (in.flag())
			len = 1 + in.take<uint16_t>();
		if (on)
			on->read(addr, offer.rkey, static_cast<uint32_t>(len));
		return;
	}
	case 8:
		if (on)
			in.flag() ? on->disconnect() : on->vanish();
		return;
	case 9: w.run_for(in.take<uint8_t>() * 4 * us); return;
	case 10: w.run_for(in.take<uint8_t>() * 10 * ms); return;
	case 11:
	case 12: local(); return;
	case 13: event(); return;
	}
}

void Peer::run()
{
	if (in.flag())
		handshake();
	if (in.flag())
		file = w.open(channel());
	for (int i = 0; i < max_steps && !in.empty(); i++)
		step();
	/* within a keep-alive, a drain and what the transport takes, all is over */
	w.del(channel());
	MUST(w.run_until([&] { return !w.node().last_state.contains(channel()); }, 120 * sec));
	MUST(w.finish(tasks));
	if (file) {
		std::string rest;
		int64_t ret;

		while ((ret = file.read(rest, 1 << 20)) > 0)
			;
		MUST(ret != -KD_EAGAIN && file.write("x") == -KD_EPIPE);
	}
	file.close();
}

/* raw (10.0.0.9) --- network --- (10.0.0.2:7471, kdirect) store.0 */
class Initiator : public Peer
{
public:
	Initiator(Input &input, uint8_t seed, uint32_t transport)
		: Peer(input, seed), request(plain_request)
	{
		w.add_device("10.0.0.2", {.transport = transport});
		raw_dev = &w.add_device("10.0.0.9", {.transport = transport, .raw = true});
		MUST(!w.listen("store", "10.0.0.2", port));
	}

private:
	const char *channel() const override { return "store.0"; }
	RawConnection &add()
	{
		queues.emplace_back(w, *raw_dev);
		queues.back().post_recvs(wire::control_receives, wire::max_eager + 32);
		watch(queues.back());
		return queues.back();
	}
	void connection(RawConnection **out) override
	{
		if (!queues.empty())
			*out = &queues[in.below(static_cast<uint32_t>(queues.size()))];
	}
	void join(const wire::RequestInfo &info)
	{
		RawConnection &queue = add();

		queue.connect("10.0.0.2", port, request_bytes(info), terms);
		w.run_until([&] { return queue.established() || queue.ended(); }, 1 * sec);
		wire::ReplyInfo reply;
		const CmEventRecord *event = queue.event(KD_CM_ESTABLISHED);
		if (!event || info.queue ||
		    !wire::decode_reply(event->data.data(), event->data.size(), info, reply))
			return;
		request = info;
		request.token = reply.token;
		request.depth = reply.depth;
		request.eager_limit = reply.eager_limit;
		request.max_message = reply.max_message;
	}
	void handshake() override
	{
		uint8_t kinds = in.take<uint8_t>();

		request.queues = kinds & 3;
		request.poll_queues = kinds >> 2 & 3;
		if (!(kinds & 15))
			request.queues = 1;
		request.depth = 1 + (kinds >> 4);
		wire::RequestInfo info = request;
		for (uint32_t i = 0; i <= info.queues + info.poll_queues; i++) {
			info = request;
			info.queue = i;
			join(info);
		}
		for (std::size_t i = 1; i < queues.size(); i++)
			say(queues[i], {wire::DataType::Hello, 0, 0, 0, 0, 0}, "");
		wire::ControlInfo hello;
		char text[wire::control_size];
		hello.flags = wire::ControlHello;
		queues[0].send(Bytes(text, wire::encode_control(hello, text)));
		w.run_for(2 * ms);
	}
	/* a connection request: bytes, or fields of which some are changed */
	void own_step() override
	{
		if (queues.size() >= 8)
			return;
		uint8_t how = in.take<uint8_t>();
		if (how & 2)
			terms = {in.take<uint8_t>(), in.take<uint8_t>()};
		if (how & 1) {
			add().connect("10.0.0.2", port, in.bytes(KD_PRIVATE_MAX), terms);
			w.run_for(in.take<uint8_t>() * us);
			return;
		}
		request.queue = request.token ? static_cast<uint32_t>(queues.size()) : 0;
		join(take_request(request));
	}

	Device *raw_dev;
	RawConnection::Terms terms;
	wire::RequestInfo request;
	std::deque<RawConnection> queues;
};

/* c0 (10.0.0.1, kdirect) --- network --- raw (10.0.0.9:7471) */
class Target : public Peer
{
public:
	Target(Input &input, uint8_t seed, uint32_t transport)
		: Peer(input, seed), dev(w.add_device("10.0.0.1", {.transport = transport})),
		  raw_dev(w.add_device("10.0.0.9", {.transport = transport, .raw = true})),
		  listener(w, raw_dev, port)
	{
		uint8_t kinds = in.take<uint8_t>();

		listener.on_request = [this](RawListener::Incoming &incoming) { answer(incoming); };
		MUST(!w.connect("c0", "10.0.0.9", port, [&](kd_channel_params &p) {
			p.queues = kinds & 3;
			p.poll_queues = kinds >> 2 & 3;
			if (!(kinds & 15))
				p.queues = 1;
			p.depth = 1 + (kinds >> 4);
			p.keep_alive_ms = kinds & 16 ? 100 : 5000;
		}));
	}

private:
	const char *channel() const override { return "c0"; }
	void connection(RawConnection **out) override
	{
		if (!listener.incoming.empty())
			*out = listener.incoming[in.below(static_cast<uint32_t>(
							 listener.incoming.size()))]
				       .connection.get();
	}
	/* honest as long as nothing else is in the input */
	void answer(RawListener::Incoming &incoming)
	{
		RawConnection &queue = *incoming.connection;
		uint8_t how = honest ? 0 : in.take<uint8_t>();
		wire::RequestInfo asked;
		wire::Reply reply;

		watch(queue);
		queue.post_recvs(wire::control_receives, wire::max_eager + 32);
		if (wire::decode_request(incoming.private_data.data(), incoming.private_data.size(),
					 asked))
			MUST(!"the core's own request is malformed");
		RawConnection::Terms terms;
		if (how & 1)
			terms = {in.take<uint8_t>(), in.take<uint8_t>()};
		switch (how >> 1 & 7) {
		case 1: return queue.reject(in.bytes(148));
		case 2: {
			wire::Reject reject;
			wire::encode_reject({wire::Refusal(in.take<uint8_t>()),
					     static_cast<uint32_t>(in.number())},
					    reject);
			return queue.reject(bytes_of(reject));
		}
		case 3: return queue.accept(in.bytes(196), terms);
		case 4: return; /* says nothing */
		case 5: asked = take_request(asked); break;
		default: break;
		}
		wire::encode_reply({asked.queue, asked.depth, asked.eager_limit, asked.max_message,
				    asked.token ? asked.token : 7},
				   reply);
		queue.accept(bytes_of(reply), terms);
	}
	void handshake() override
	{
		wire::ControlInfo start;
		char text[wire::control_size];

		honest = true;
		w.run_until(
			[&] {
				return !listener.incoming.empty() &&
				       !listener.incoming[0].connection->received.empty();
			},
			1 * sec);
		honest = false;
		for (std::size_t i = 1; i < listener.incoming.size(); i++)
			say(*listener.incoming[i].connection,
			    {wire::DataType::Hello, 0, 0, 0, 0, 0}, "");
		start.flags = wire::Start;
		if (!listener.incoming.empty())
			listener.incoming[0].connection->send(
				Bytes(text, wire::encode_control(start, text)));
		w.run_for(2 * ms);
	}
	void own_step() override { w.run_for(in.take<uint8_t>() * us); }

	Device &dev;
	Device &raw_dev;
	RawListener listener;
	bool honest = false;
};

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	Input in(data, size);
	uint8_t how = in.take<uint8_t>(), seed = in.take<uint8_t>();
	uint32_t transport = how & 2 ? KDIRECT_TRANSPORT_IWARP : KDIRECT_TRANSPORT_ROCE;

	if (how & 1)
		Target(in, seed, transport).run();
	else
		Initiator(in, seed, transport).run();
	return 0;
}
