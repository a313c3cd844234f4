// SPDX-License-Identifier: GPL-2.0-only
// Listeners that are no kdirect, or lie: what `kdirect channel add` meets there.
#include "lying.h"

#include <fcntl.h>
#include <future>
#include <memory>
#include <regex>
#include <unistd.h>

using wire::DataType;
using wire::Refusal;

namespace
{

constexpr const char *name_of_channel = "liar";

bool missed_hello; // of the last Target that accepted all connections

// Accepts one connection after the other.
class Server
{
public:
	Server()
	{
		Address address(place.address, place.port);
		if (rdma_bind_addr(listener_.id, address.get()) || rdma_listen(listener_.id, 16))
			die("cannot listen: %s", errno_name(errno));
	}

	// A connection request, and what it asked for.
	std::unique_ptr<Id> request(wire::RequestInfo &asked, int timeout_ms = 20000)
	{
		std::optional<Event> event = listener_.event(timeout_ms);
		if (!event || event->type != RDMA_CM_EVENT_CONNECT_REQUEST)
			return nullptr;
		auto id = std::make_unique<Id>(event->id);
		if (wire::decode_request(event->data.data(), event->data.size(), asked))
			die("kdirect sent a bad request");
		return id;
	}

private:
	Id listener_;
};

struct Target : Session {
	Target() : Session({}) {}

	// Accepts the next connection with this data, or with an honest reply.
	bool accept(Server &server, const std::function<void(wire::Reply &)> &change = {},
		    const Bytes *other = nullptr)
	{
		wire::RequestInfo asked;
		auto id = server.request(asked);
		if (!id)
			return false;
		shape.depth = asked.depth;
		shape.eager = asked.eager_limit;
		auto link = make_link(std::move(id), shape, asked.queue);
		wire::Reply reply;
		wire::encode_reply(
			{asked.queue, asked.depth, asked.eager_limit, asked.max_message, 77},
			reply);
		if (change)
			change(reply);
		rdma_conn_param param = other ? parameters(other->data(), other->size())
					      : parameters(&reply, sizeof(reply));
		if (rdma_accept(link->cm->id, &param))
			die("rdma_accept: %s", errno_name(errno));
		links.push_back(std::move(link));
		return true;
	}
	bool accept_all(Server &server)
	{
		bool all = accept(server) && accept(server);
		bool heard = all && wait_control(wire::ControlHello) && hear_hello();
		missed_hello = all && !heard;
		return heard;
	}
	void start()
	{
		wire::ControlInfo info;
		info.flags = wire::Start;
		send_control(info);
	}
	void greet()
	{
		send_data({DataType::Hello, 0, 0, 0, 0, 0});
		start();
	}
};

using Words = std::vector<std::string>;

Output add_channel(const Words &more)
{
	Words command{"kdirect",
		      "channel",
		      "add",
		      name_of_channel,
		      "to",
		      std::string(place.address) + ":" + std::to_string(place.port),
		      "depth",
		      "8",
		      "eager-limit",
		      "4K",
		      "drain-timeout",
		      "500ms"};
	command.insert(command.end(), more.begin(), more.end());
	return run(command);
}

// `kdirect channel add` against what `serve` does must fail, and say this.
void attempt(const std::string &name, const std::string &regex,
	     const std::function<void(Server &)> &serve, const Words &more = {})
{
	if (!wanted(name))
		return;
	Output got;
	unsigned tries = 0;
	do {
		Server server;
		missed_hello = false;
		auto output = std::async(std::launch::async, [&] { return add_channel(more); });
		serve(server);
		got = output.get();
	} while (missed_hello && lost_hello(got.text, tries));
	std::string complaint;
	if (got.status == 0)
		complaint = "the channel was added: " + run({"kdirect", "-d", "channel"}).text;
	else if (!std::regex_search(got.text, std::regex(regex)))
		complaint = "wanted: " + regex + "\ngot:    " + got.text;
	if (got.status == 0)
		run({"kdirect", "channel", "del", name_of_channel});
	if (channels(name_of_channel))
		complaint += "\nthe channel is left";
	complaint += bystander_complaint();
	result(name, complaint);
}

Bytes reject_data(Refusal reason, uint32_t value)
{
	wire::Reject reject;
	wire::encode_reject({reason, value}, reject);
	auto *start = reinterpret_cast<const uint8_t *>(&reject);
	return Bytes(start, start + sizeof(reject));
}

void rejects(const std::string &name, const std::string &regex, const Bytes &data)
{
	attempt(name, regex, [&](Server &server) {
		wire::RequestInfo asked;
		auto id = server.request(asked);
		if (id)
			rdma_reject(id->id, data.data(), uint8_t(data.size()));
		usleep(100000); // destroying the id at once would reject once more
	});
}

void rejections()
{
	for (size_t len : {0, 1, 15, 16, 40, 148})
		rejects("rejects with " + std::to_string(len) + " foreign bytes",
			"without a kdirect reason", content(len, len + 1));
	for (unsigned reason = 1; reason <= unsigned(Refusal::ShuttingDown); reason++) {
		std::string format = wire::refusal_format(Refusal(reason));
		std::string text = std::regex_replace(format, std::regex("%#?[ux]"), ".*");
		text = std::regex_replace(text, std::regex("[()]"), ".");
		rejects("rejects with reason " + std::to_string(reason), text,
			reject_data(Refusal(reason), 42));
	}
	for (unsigned reason : {0U, 14U, 999U, 65535U})
		rejects("rejects with reason " + std::to_string(reason), "refused queue 0",
			reject_data(Refusal(reason), UINT32_MAX));
}

void replies()
{
	const char *foreign = "is no kdirect listener";
	for (size_t len : {0, 1, 4, 39, 40, 100, 196}) {
		Bytes data = content(len, len + 1);
		attempt("accepts with " + std::to_string(len) + " foreign bytes", foreign,
			[&](Server &server) {
				Target target;
				target.accept(server, {}, &data);
				target.closed();
			});
	}
	auto field = [&](const std::string &name,
			 const std::function<void(wire::Reply &)> &change) {
		attempt("accepts with " + name, foreign, [&](Server &server) {
			Target target;
			target.accept(server, change);
			target.closed();
		});
	};
	using R = wire::Reply;
	field("a wrong magic", [](R &r) { r.magic = 0; });
	field("another version", [](R &r) { r.version = uint16_t(wire::version + 1); });
	field("another queue", [](R &r) { r.queue = 1; });
	field("depth 0", [](R &r) { r.depth = 0; });
	field("a depth above what was asked", [](R &r) { r.depth = 9; });
	field("a depth of 4 G", [](R &r) { r.depth = UINT32_MAX; });
	field("an eager limit above what was asked", [](R &r) { r.eager_limit = 4097; });
	field("too small an eager limit", [](R &r) { r.eager_limit = 255; });
	field("a maximum above what was asked", [](R &r) { r.max_message = (1 << 20) + 1; });
	field("too small a maximum", [](R &r) { r.max_message = 4095; });
	field("features", [](R &r) { r.features = 1; });
	field("reserved bytes", [](R &r) { r.reserved[7] = 1; });
	field("token 0", [](R &r) { r.token = 0; });

	auto second = [&](const std::string &name, const std::string &regex,
			  const std::function<void(wire::Reply &)> &change) {
		attempt("accepts queue 1 with " + name, regex, [&](Server &server) {
			Target target;
			if (target.accept(server))
				target.accept(server, change);
			target.closed();
		});
	};
	second("another token", foreign, [](R &r) { r.token = 78; });
	second("queue 0", foreign, [](R &r) { r.queue = 0; });
	second("a smaller depth", "changed its terms", [](R &r) { r.depth = 4; });
	second("a smaller eager limit", "changed its terms", [](R &r) { r.eager_limit = 256; });
}

void stops()
{
	const Words brief{"connect-timeout", "2s"};
	const char *late = "not connected within 2000 ms|no answer";
	attempt(
		"never answers", late,
		[](Server &server) {
			wire::RequestInfo asked;
			auto id = server.request(asked);
			sleep(3);
		},
		brief);
	attempt(
		"never answers queue 1", late,
		[](Server &server) {
			Target target;
			target.accept(server);
			wire::RequestInfo asked;
			auto id = server.request(asked);
			target.closed();
		},
		brief);
	attempt(
		"never starts", late,
		[](Server &server) {
			Target target;
			target.accept_all(server);
			target.closed();
		},
		brief);
	attempt("closes after the control queue", "the peer closed|refused|reject",
		[](Server &server) {
			Target target;
			target.accept(server);
			target.control().cm->wait_event(RDMA_CM_EVENT_ESTABLISHED, 5000);
		});
	attempt("closes after all queues", "the peer closed|was lost", [](Server &server) {
		Target target;
		target.accept_all(server);
	});
	attempt("goes away at once", "nothing listens|without a kdirect reason|refused",
		[](Server &server) {
			wire::RequestInfo asked;
			server.request(asked);
		});
}

// A channel that is being added, to a target that has let it start.
struct Begun {
	Server server;
	std::future<Output> added;
	Target target;
};

std::unique_ptr<Begun> begin(const Words &more, std::string &complaint)
{
	for (unsigned tries = 0;;) {
		auto begun = std::make_unique<Begun>();
		begun->added = std::async(std::launch::async, [more] { return add_channel(more); });
		if (begun->target.accept_all(begun->server)) {
			begun->target.greet();
			return begun;
		}
		std::string told = begun->added.get().text;
		if (lost_hello(told, tries))
			continue;
		complaint = "no hello came: " + told;
		return nullptr;
	}
}

// The channel is live for a moment, so that adding it succeeds.
void live(const std::string &name, const std::string &cause,
	  const std::function<void(Target &)> &tell, const Words &more = {})
{
	if (!wanted(name))
		return;
	Log log;
	std::string complaint;
	if (std::unique_ptr<Begun> begun = begin(more, complaint)) {
		tell(begun->target);
		begun->added.get(); // it may have seen the channel live, or not any more
		if (log.find(std::string("channel ") + name_of_channel + ": .*(" + cause + ")",
			     10000)
			    .empty())
			complaint = "no cause '" + cause + "' in the log:\n" + log.seen;
		if (!begun->target.closed())
			complaint += "\na connection stays";
	}
	run({"kdirect", "channel", "del", name_of_channel});
	if (channels(name_of_channel))
		complaint += "\nthe channel is left";
	complaint += bystander_complaint();
	result(name, complaint);
}

void lies()
{
	live("starts twice", "unexpected start", [](Target &t) { t.start(); });
	live("says hello", "queue 1: unexpected hello", [](Target &t) {
		t.send_data({DataType::Hello, 0, 0, 0, 0, 0});
	});
	live("says control hello", "control queue: unexpected hello", [](Target &t) {
		wire::ControlInfo info;
		info.flags = wire::ControlHello;
		t.send_control(info);
	});
	live("sends garbage", "queue 1: malformed",
	     [](Target &t) { t.data().send(content(100, 1)); });
	live("sends control garbage", "control queue: malformed",
	     [](Target &t) { t.control().send(content(100, 1)); });
	live("never answers a keep-alive", "no sign of life", [](Target &) {},
	     {"keep-alive", "200ms"});
	live("grants too much", "granted", [](Target &t) {
		t.send_data({DataType::Eager, 8, 100, 0, 0, 0}, 8);
	});
}

// Deleting waits for the answer to the goodbye no longer than it should.
void silent_delete()
{
	std::string name = "never answers the goodbye";
	if (!wanted(name))
		return;
	std::string complaint;
	std::unique_ptr<Begun> begun = begin({"keep-alive", "off"}, complaint);
	if (!begun) {
		result(name, complaint);
		return;
	}
	Output add = begun->added.get();
	timespec from, to;
	clock_gettime(CLOCK_MONOTONIC, &from);
	Output del = run({"kdirect", "channel", "del", name_of_channel});
	clock_gettime(CLOCK_MONOTONIC, &to);
	if (add.status || del.status)
		complaint = add.text + del.text;
	if (to.tv_sec - from.tv_sec > 5 * time_t(slow()))
		complaint += "\ntook " + std::to_string(to.tv_sec - from.tv_sec) + " s";
	if (channels(name_of_channel))
		complaint += "\nthe channel is left";
	result(name, complaint + bystander_complaint());
}

} // namespace

void run_server()
{
	rejections();
	replies();
	stops();
	lies();
	silent_delete();
}
