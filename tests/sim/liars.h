/* SPDX-License-Identifier: GPL-2.0-only */
/* Raw peers that know the protocol, for tests in which they do not keep to it. */
#pragma once
#include <deque>

#include "../../kmod/core/wire.hh"
#include "pair.h"
#include "raw.h"

namespace sim
{

namespace wire = kd::wire;

template <typename T>
inline Bytes bytes_of(const T &object)
{
	return Bytes(reinterpret_cast<const char *>(&object), sizeof(object));
}

constexpr wire::RequestInfo plain_request{0, 1, 0, 4, 4096, 1 << 20, 0x1234, 0, 0, 0};

inline Bytes request_bytes(const wire::RequestInfo &info)
{
	wire::Request request;

	wire::encode_request(info, request);
	return bytes_of(request);
}

/* The peer's first message on a data queue, which is taken. */
inline bool hear_hello(World &w, RawConnection &queue)
{
	if (!w.run_until([&] { return !queue.received.empty(); }, 10 * sec) ||
	    queue.received.front().size() != sizeof(wire::DataHeader) ||
	    queue.received.front()[0] != static_cast<char>(wire::DataType::Hello))
		return false;
	queue.received.erase(queue.received.begin());
	return true;
}

/*
 * A raw initiator that shakes hands as it should, and then says what a test wants.
 *
 *	raw (10.0.0.9) ------ network ------ (10.0.0.2:7471, kdirect) store.0
 */
struct RawInitiator {
	explicit RawInitiator(uint64_t seed, uint32_t transport = 1,
			      const World::ListenerTweak &tweak = {})
		: w({.seed = seed}), dev(w.add_device("10.0.0.2", {.transport = transport})),
		  raw_dev(w.add_device("10.0.0.9", {.transport = transport, .raw = true})),
		  control(w, raw_dev), data(w, raw_dev)
	{
		EXPECT_EQ(w.listen("store", "10.0.0.2", port, tweak), 0);
		control.post_recvs(wire::control_receives, wire::control_size);
		data.post_recvs(16, 65536);
	}

	/* the control queue, or a data queue */
	void join(RawConnection &queue, const char *addr = "10.0.0.2", uint16_t at = port)
	{
		queue.connect(addr, at, request_bytes(request), terms);
	}
	bool connect_control()
	{
		wire::ReplyInfo reply;

		join(control);
		if (!w.run_until([&] { return control.established(); }, 10 * sec))
			return false;
		const Bytes &text = control.event(KD_CM_ESTABLISHED)->data;
		if (!wire::decode_reply(text.data(), text.size(), request, reply))
			return false;
		request.token = reply.token;
		request.depth = reply.depth;
		request.eager_limit = reply.eager_limit;
		request.max_message = reply.max_message;
		return true;
	}
	/* all queues connected, nothing said */
	bool connect()
	{
		if (!connect_control())
			return false;
		for (uint32_t i = 1; i <= request.queues + request.poll_queues; i++) {
			if (i > 1) {
				more.emplace_back(w, raw_dev);
				more.back().post_recvs(16, 65536);
			}
			RawConnection &queue = i > 1 ? more.back() : data;
			request.queue = i;
			join(queue);
			if (!w.run_until([&] { return queue.established(); }, 10 * sec))
				return false;
		}
		return true;
	}
	void say(RawConnection &on, const wire::DataInfo &info, const Bytes &payload = {})
	{
		Bytes text(sizeof(wire::DataHeader), '\0');

		wire::encode_data(info, text.data());
		on.send(text + payload);
	}
	void say_control(const wire::ControlInfo &info)
	{
		char text[wire::control_size];

		control.send(Bytes(text, wire::encode_control(info, text)));
	}
	bool live()
	{
		if (!connect())
			return false;
		say(data, {wire::DataType::Hello, 0, 0, 0, 0, 0});
		for (RawConnection &queue : more)
			say(queue, {wire::DataType::Hello, 0, 0, 0, 0, 0});
		wire::ControlInfo hello;
		hello.flags = wire::ControlHello;
		say_control(hello);
		if (!w.run_until_live("store.0") || !hear_hello(w, data))
			return false;
		for (RawConnection &queue : more)
			if (!hear_hello(w, queue))
				return false;
		file = w.open("store.0");
		return static_cast<bool>(file);
	}
	/* What a lie must lead to: an end with a reason. */
	void expect_end(const std::string &what)
	{
		EXPECT_TRUE(w.run_until_gone("store.0")) << what;
		const EventRecord *error = w.last_error("store.0");
		EXPECT_TRUE(error && error->err && !error->text.empty()) << what;
		if (file) {
			std::string text;

			while ((text = file.read(100)) == "x")
				; /* what had arrived before */
			EXPECT_EQ(text.substr(0, 1), "!") << what;
			EXPECT_EQ(file.write("x"), -KD_EPIPE) << what;
		}
	}

	World w;
	Device &dev;
	Device &raw_dev;
	/* what is asked for; the token once there is one */
	wire::RequestInfo request = plain_request;
	RawConnection::Terms terms;
	RawConnection control, data;
	std::deque<RawConnection> more; /* data queues 2 and up */
	File file;
};

/* kdirect connects to a liar: c0 (10.0.0.1, kdirect) --- network --- raw (10.0.0.9:7471) */
struct RawTarget {
	explicit RawTarget(uint64_t seed, uint32_t transport = 1)
		: w({.seed = seed}), dev(w.add_device("10.0.0.1", {.transport = transport})),
		  raw_dev(w.add_device("10.0.0.9", {.transport = transport, .raw = true})),
		  listener(w, raw_dev, port)
	{
	}
	void expect_refused(const std::string &what)
	{
		ASSERT_EQ(w.connect("c0", "10.0.0.9", port), 0) << what;
		EXPECT_TRUE(w.run_until_gone("c0")) << what;
		const EventRecord *error = w.last_error("c0");
		EXPECT_TRUE(error && error->err && !error->text.empty()) << what;
	}
	/* what was asked for, unless @change does something to it */
	static Bytes reply_to(const Bytes &private_data,
			      const std::function<void(wire::ReplyInfo &)> &change = {})
	{
		wire::RequestInfo asked;
		wire::Reply reply;

		EXPECT_FALSE(wire::decode_request(private_data.data(), private_data.size(), asked));
		wire::ReplyInfo info{asked.queue, asked.depth, asked.eager_limit, asked.max_message,
				     7};
		if (change)
			change(info);
		wire::encode_reply(info, reply);
		return bytes_of(reply);
	}
	RawConnection &queue(std::size_t index) { return *listener.incoming.at(index).connection; }
	void say_control(const wire::ControlInfo &info)
	{
		char text[wire::control_size];

		queue(0).send(Bytes(text, wire::encode_control(info, text)));
	}
	/* as it should be, up to the Start */
	bool live(const World::ChannelTweak &tweak = {})
	{
		listener.on_request = [](RawListener::Incoming &in) {
			in.connection->post_recvs(wire::control_receives);
			in.connection->accept(reply_to(in.private_data));
		};
		if (w.connect("c0", "10.0.0.9", port, tweak) ||
		    !w.run_until(
			    [&] {
				    return !listener.incoming.empty() && !queue(0).received.empty();
			    },
			    10 * sec))
			return false;
		for (std::size_t i = 1; i < listener.incoming.size(); i++) {
			Bytes hello(sizeof(wire::DataHeader), '\0');

			wire::encode_data({wire::DataType::Hello, 0, 0, 0, 0, 0}, hello.data());
			if (!hear_hello(w, queue(i)))
				return false;
			queue(i).send(hello);
		}
		wire::ControlInfo start;
		start.flags = wire::Start;
		say_control(start);
		if (!w.run_until_live("c0"))
			return false;
		file = w.open("c0");
		return static_cast<bool>(file);
	}
	World w;
	Device &dev;
	Device &raw_dev;
	RawListener listener;
	File file;
};

} // namespace sim
