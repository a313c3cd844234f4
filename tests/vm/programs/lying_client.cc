// SPDX-License-Identifier: GPL-2.0-only
// Connections to a kdirect listener called store by peers that lie, or stop.
#include "lying.h"

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

using wire::DataType;
using wire::Refusal;
using wire::Verdict;

namespace
{

// The bystander's other end is the only channel that stays.
std::string leftovers()
{
	if (!eventually([] { return channels("store.") == 1; }, 15))
		return "channels are left:\n" + run({"kdirect", "-d", "channel"}).text;
	return bystander_complaint();
}

// --- requests that must be refused ------------------------------------------------------

// What comes back for a request with this private data.
struct Answer {
	bool accepted = false, kdirect = false;
	bool empty = false; // refused, and no word with it
	Verdict verdict;
	std::string text;
};

Answer ask(const Bytes &data)
{
	Address address(place.address, place.port);
	auto link = make_link(resolved(address), Shape{}, 0);
	rdma_conn_param param = parameters(data.data(), data.size());
	Answer answer;
	if (rdma_connect(link->cm->id, &param)) {
		answer.text = std::string("rdma_connect: ") + errno_name(errno);
		return answer;
	}
	std::optional<Event> event = link->cm->event(20000 * int(slow()));
	if (!event) {
		answer.text = "no answer";
		return answer;
	}
	answer.text = rdma_event_str(event->type);
	answer.accepted = event->type == RDMA_CM_EVENT_ESTABLISHED;
	answer.empty = event->type == RDMA_CM_EVENT_REJECTED && event->data.empty();
	answer.kdirect =
		event->type == RDMA_CM_EVENT_REJECTED &&
		wire::decode_reject(event->data.data(), event->data.size(), answer.verdict);
	return answer;
}

// kdirect's own decoder says what must become of these bytes, which all but iWARP pad
// with zeros.
void request(const std::string &name, const Bytes &data, std::optional<Verdict> other = {})
{
	if (!wanted(name))
		return;
	Bytes padded = data;
	if (!iwarp())
		padded.resize(56);
	wire::RequestInfo info;
	Verdict want = other ? *other : wire::decode_request(padded.data(), padded.size(), info);
	Answer got = ask(data);
	// siw may lose what is refused with (Documentation/testing.md).
	for (int tries = 1; iwarp() && got.empty && tries < 3; tries++)
		got = ask(data);
	std::string complaint;
	if (!want && !got.accepted)
		complaint = "not accepted: " + got.text;
	else if (want && (!got.kdirect || got.verdict.reason != want.reason ||
			  got.verdict.value != want.value))
		complaint = "wanted refusal " + std::to_string(int(want.reason)) + " with " +
			    std::to_string(want.value) + ", got " + got.text + " " +
			    std::to_string(int(got.verdict.reason)) + " with " +
			    std::to_string(got.verdict.value);
	if (complaint.empty())
		complaint = want ? bystander_complaint() : leftovers();
	result(name, complaint);
}

Bytes bytes_of(const wire::Request &r)
{
	auto *start = reinterpret_cast<const uint8_t *>(&r);
	return Bytes(start, start + sizeof(r));
}

wire::Request good()
{
	wire::Request r;
	wire::encode_request(request_of({}), r);
	return r;
}

void requests()
{
	for (size_t len = 0; len <= 56; len += few())
		request("foreign private data of " + std::to_string(len) + " bytes",
			content(len, len + 1));
	Bytes whole = bytes_of(good());
	for (size_t len = 1; len <= whole.size(); len += 3 * few() - few() / 2)
		request("the first " + std::to_string(len) + " bytes of a request",
			Bytes(whole.begin(), whole.begin() + ptrdiff_t(len)));

	auto field = [](const std::string &name, auto change, std::optional<Verdict> other = {}) {
		wire::Request r = good();
		change(r);
		request("request with " + name, bytes_of(r), other);
	};
	using R = wire::Request;
	field("a wrong magic", [](R &r) { r.magic = wire::magic ^ 1; });
	for (uint16_t version : {0, 1, 3, 256, 65535})
		field("version " + std::to_string(version), [&](R &r) { r.version = version; });
	for (uint16_t queue : {1, 2, 64, 65535})
		field("queue index " + std::to_string(queue), [&](R &r) { r.queue = queue; });
	for (auto [queues, polled] : {std::pair<uint16_t, uint16_t>{0, 0},
				      {65, 0},
				      {0, 65},
				      {64, 64},
				      {65535, 65535},
				      {65535, 1},
				      {1, 65535}})
		field(std::to_string(queues) + " and " + std::to_string(polled) + " queues",
		      [&](R &r) {
			      r.queues = queues;
			      r.poll_queues = polled;
		      });
	field(
		"more queues than the listener allows", [](R &r) { r.queues = 17; },
		Verdict{Refusal::Queues, 16});
	for (uint32_t depth : {0U, 1025U, 0x80000000U, UINT32_MAX})
		field("depth " + std::to_string(depth), [&](R &r) { r.depth = depth; });
	for (uint32_t limit : {0U, 255U, 65537U, UINT32_MAX})
		field("eager limit " + std::to_string(limit), [&](R &r) { r.eager_limit = limit; });
	for (uint32_t size : {0U, 4095U, 1048577U, UINT32_MAX})
		field("maximum message " + std::to_string(size),
		      [&](R &r) { r.max_message = size; });
	for (uint32_t bits : {1U, 0x80000000U, UINT32_MAX})
		field("features " + std::to_string(bits), [&](R &r) { r.features = bits; });
	field(
		"a token on the control queue", [](R &r) { r.token = 1; },
		Verdict{Refusal::NoChannel});
	field(
		"an attempt without a token", [](R &r) { r.attempt = 1; },
		Verdict{Refusal::NoChannel});
	field(
		"an attempt for a session that nobody knows",
		[](R &r) {
			r.attempt = 1;
			r.token = 0xdeadbeef;
		},
		Verdict{Refusal::NoChannel});
	field(
		"a token of no channel",
		[](R &r) {
			r.queue = 1;
			r.token = 0xdeadbeef;
		},
		Verdict{Refusal::NoChannel});
}

// --- the second connection of a channel ---------------------------------------------------

void second(const std::string &name, Verdict want, const std::function<void(Session &)> &change,
	    uint32_t queue = 1)
{
	if (!wanted(name))
		return;
	std::string complaint;
	{
		Session session({});
		session.connect(0);
		change(session);
		Verdict got;
		if (session.connect(queue, &got))
			complaint = "was accepted";
		else if (got.reason != want.reason || got.value != want.value)
			complaint = "refusal " + std::to_string(int(got.reason)) + " with " +
				    std::to_string(got.value);
	}
	result(name, complaint.empty() ? leftovers() : complaint);
}

void seconds()
{
	second("queue 1 with another nonce", {Refusal::NoChannel},
	       [](Session &s) { s.request.nonce++; });
	second("queue 1 with another token", {Refusal::NoChannel},
	       [](Session &s) { s.token ^= 1; });
	second("queue 1 with other queues", {Refusal::Queues, 1},
	       [](Session &s) { s.request.queues = 2; });
	second("queue 1 with another depth", {Refusal::Malformed},
	       [](Session &s) { s.request.depth = 4; });
	second("queue 1 with another eager limit", {Refusal::Malformed},
	       [](Session &s) { s.request.eager_limit = 512; });
	second("queue 1 with another maximum", {Refusal::Malformed},
	       [](Session &s) { s.request.max_message = 4096; });
	second("queue 1 twice", {Refusal::Queue, 1}, [](Session &s) { s.connect(1); });
	second(
		"queue 2 of 1", {Refusal::Queue, 2}, [](Session &) {}, 2);
	second(
		"queue 65535 of 1", {Refusal::Queue, 65535}, [](Session &) {}, 65535);
}

// --- handshakes that stop -------------------------------------------------------------------

// Closed by this end, in order or by the end of the process, after each step.
void stops()
{
	struct Step {
		const char *name;
		std::function<void(Session &)> go;
	};
	const Step steps[] = {
		{"the control queue's connection", [](Session &s) { s.connect(0); }},
		{"all connections", [](Session &s) { s.connect_all(); }},
		{"hello on a data queue only",
		 [](Session &s) {
			 s.connect_all();
			 s.send_data({DataType::Hello, 0, 0, 0, 0, 0});
		 }},
		{"both hellos",
		 [](Session &s) {
			 s.connect_all();
			 s.say_hello();
		 }},
		{"the start",
		 [](Session &s) {
			 Log log;
			 s.establish(log);
		 }},
	};
	for (const Step &step : steps) {
		for (bool dies : {false, true}) {
			std::string name =
				std::string(dies ? "dies after " : "closes after ") + step.name;
			if (!wanted(name))
				continue;
			if (dies) {
				pid_t child = fork();
				if (child == 0) {
					Session session({});
					step.go(session);
					kill(getpid(), SIGKILL);
				}
				waitpid(child, nullptr, 0);
			} else {
				Session session({});
				step.go(session);
			}
			result(name, leftovers());
		}
	}

	// Those that wait for ever meet the target's own time limit, all at once.
	if (!wanted("never goes on"))
		return;
	Log log;
	std::vector<std::unique_ptr<Session>> silent;
	for (const Step &step : steps) {
		if (&step - steps > 2)
			break;
		silent.push_back(std::make_unique<Session>(Shape{}));
		step.go(*silent.back());
	}
	std::string complaint;
	for (auto &session : silent)
		if (!session->closed(30000 * int(slow())))
			complaint = "a connection stays";
	if (log.find("not connected within", 5000).empty())
		complaint += " no cause in the log: " + log.seen;
	silent.clear();
	result("never goes on", complaint.empty() ? leftovers() : complaint);
}

// --- lies in a live session ---------------------------------------------------------------

struct Lie {
	const char *name;
	const char *cause; // in the log
	std::function<void(Session &)> tell;
};

Bytes raw(uint8_t type, size_t payload, const std::function<void(wire::DataHeader &)> &change)
{
	wire::DataHeader header;
	wire::encode_data({DataType::Eager, uint32_t(payload), 0, 0, 0, 0}, &header);
	header.type = type;
	change(header);
	Bytes bytes(sizeof(header) + payload);
	memcpy(bytes.data(), &header, sizeof(header));
	return bytes;
}

Bytes raw_control(size_t extra, const std::function<void(wire::ControlHeader &)> &change)
{
	wire::ControlHeader header{};
	header.type = 16;
	change(header);
	Bytes bytes(sizeof(header) + extra);
	memcpy(bytes.data(), &header, sizeof(header));
	return bytes;
}

using D = wire::DataHeader;
using C = wire::ControlHeader;
using S = Session;

wire::ControlInfo flags(uint16_t bits)
{
	wire::ControlInfo info;
	info.flags = bits;
	return info;
}

// Offers all of our memory but for what is changed.
wire::DataInfo offer(S &s, uint32_t length)
{
	return {DataType::Offer, length, 0, s.data().memory_key(), 0, s.data().memory_address()};
}

// kdirect offers a message of its own; its key.
uint32_t their_offer(S &s)
{
	std::string node;
	for (int i = 1; i < 100 && node.empty(); i++) {
		std::string name = "/dev/kdirect/store." + std::to_string(i);
		if (access(name.c_str(), F_OK) == 0)
			node = name;
	}
	int fd = open(node.c_str(), O_WRONLY | O_NONBLOCK | O_CLOEXEC);
	Bytes bytes(100000);
	ssize_t n = write(fd, bytes.data(), bytes.size());
	close(fd);
	Bytes got = s.data().receive(10000);
	if (n != ssize_t(bytes.size()) || got.size() < sizeof(D))
		die("no offer came over %s", node.c_str());
	D header;
	memcpy(&header, got.data(), sizeof(header));
	return header.rkey;
}

const Lie lies[] = {
	{"an empty message", "queue 1: malformed message of 0 bytes",
	 [](S &s) { s.data().send(Bytes()); }},
	{"a message of 1 byte", "queue 1: malformed message of 1 bytes",
	 [](S &s) { s.data().send(Bytes(1)); }},
	{"a message of half a header", "malformed message of 31 bytes",
	 [](S &s) { s.data().send(Bytes(31)); }},
	{"type 0", "malformed", [](S &s) { s.data().send(raw(0, 8, [](D &) {})); }},
	{"type 6", "malformed", [](S &s) { s.data().send(raw(6, 8, [](D &) {})); }},
	{"type 255", "malformed", [](S &s) { s.data().send(raw(255, 8, [](D &) {})); }},
	{"flags", "malformed", [](S &s) { s.data().send(raw(2, 8, [](D &h) { h.flags = 1; })); }},
	{"reserved bits", "malformed",
	 [](S &s) { s.data().send(raw(2, 8, [](D &h) { h.reserved = 0x8000; })); }},
	{"a length of 0, and a byte", "malformed",
	 [](S &s) { s.data().send(raw(2, 1, [](D &h) { h.length = 0; })); }},
	{"a length that is too short", "malformed",
	 [](S &s) { s.data().send(raw(2, 8, [](D &h) { h.length = 7; })); }},
	{"a length that is too long", "malformed",
	 [](S &s) { s.data().send(raw(2, 8, [](D &h) { h.length = 9; })); }},
	{"a length of 4 GiB", "malformed",
	 [](S &s) { s.data().send(raw(2, 8, [](D &h) { h.length = UINT32_MAX; })); }},
	{"more than the eager limit", "queue 1: (receive failed|the connection was lost)",
	 [](S &s) { s.data().send(raw(2, s.shape.eager + 1, [](D &) {})); }},
	{"much more than fits", "queue 1: (receive failed|the connection was lost)",
	 [](S &s) { s.data().send(raw(2, s.shape.eager + 100000, [](D &) {})); }},
	{"a second hello", "queue 1: unexpected hello",
	 [](S &s) {
		 s.send_data({DataType::Hello, 0, 0, 0, 0, 0});
	 }},
	{"a hello with payload", "malformed", [](S &s) { s.data().send(raw(1, 8, [](D &) {})); }},
	{"a message twice", "message 0 is a repetition",
	 [](S &s) {
		 s.send_data({DataType::Eager, 8, 0, 0, 0, 0}, 8);
		 s.send_data({DataType::Eager, 8, 0, 0, 0, 0}, 8);
	 }},
	{"a message far ahead", "out of the window",
	 [](S &s) {
		 s.send_data({DataType::Eager, 8, 0, 0, 4096, 0}, 8);
	 }},
	{"a message at the end of numbers", "out of the window",
	 [](S &s) {
		 s.send_data({DataType::Eager, 8, 0, 0, UINT64_MAX, 0}, 8);
	 }},
	{"one credit too many", "queue 1: the peer granted 1 credits",
	 [](S &s) {
		 s.send_data({DataType::Eager, 8, 1, 0, 0, 0}, 8);
	 }},
	{"very many credits", "granted 2147483647 credits",
	 [](S &s) {
		 s.send_data({DataType::Eager, 8, INT32_MAX, 0, 0, 0}, 8);
	 }},
	{"an offer with a bad key", "queue 1: RDMA READ failed",
	 [](S &s) {
		 wire::DataInfo info = offer(s, 100000);
		 info.rkey ^= 0x5500;
		 s.send_data(info);
	 }},
	{"an offer with key 0", "queue 1: RDMA READ failed",
	 [](S &s) {
		 wire::DataInfo info = offer(s, 1);
		 info.rkey = 0;
		 s.send_data(info);
	 }},
	{"an offer past the memory", "queue 1: RDMA READ failed",
	 [](S &s) {
		 wire::DataInfo info = offer(s, 1 << 20);
		 info.addr += 4096;
		 s.send_data(info);
	 }},
	{"an offer of address 0", "queue 1: RDMA READ failed",
	 [](S &s) {
		 wire::DataInfo info = offer(s, 4096);
		 info.addr = 0;
		 s.send_data(info);
	 }},
	{"an offer that wraps around", "malformed",
	 [](S &s) {
		 wire::DataInfo info = offer(s, 1 << 20);
		 info.addr = UINT64_MAX - 10;
		 s.send_data(info);
	 }},
	{"an offer of nothing", "malformed", [](S &s) { s.send_data(offer(s, 0)); }},
	{"an offer above the maximum", "malformed",
	 [](S &s) { s.send_data(offer(s, (1 << 20) + 1)); }},
	{"an offer of 4 GiB", "malformed", [](S &s) { s.send_data(offer(s, UINT32_MAX)); }},
	{"an offer with payload", "malformed", [](S &s) { s.send_data(offer(s, 4096), 16); }},
	{"an empty ping", "malformed",
	 [](S &s) { s.data().send(raw(4, 0, [](D &h) { h.length = 0; })); }},
	{"the answer to no ping", "answered a ping that was not sent",
	 [](S &s) {
		 s.send_data({DataType::Pong, 8, 0, 0, 1, 0}, 8);
	 }},
	{"the invalidation of a key that is none", "queue 1: ",
	 [](S &s) {
		 Bytes message = raw(2, 8, [](D &) {});
		 s.data().send(message.data(), message.size(), 0x123456);
	 }},
	{"the invalidation of an offered key", "queue 1: ",
	 [](S &s) {
		 uint32_t key = their_offer(s);
		 Bytes message = raw(2, 8, [](D &) {});
		 s.data().send(message.data(), message.size(), key);
	 }},

	{"an empty control message", "control queue: malformed message of 0 bytes",
	 [](S &s) { s.control().send(Bytes()); }},
	{"half a control header", "control queue: malformed",
	 [](S &s) { s.control().send(raw_control(0, [](C &) {}).data(), 23); }},
	{"a control message of another type", "control queue: malformed",
	 [](S &s) { s.control().send(raw_control(0, [](C &h) { h.type = 2; })); }},
	{"unknown control flags", "control queue: malformed",
	 [](S &s) { s.control().send(raw_control(0, [](C &h) { h.flags = 1 << 6; })); }},
	{"reserved control bits", "control queue: malformed",
	 [](S &s) { s.control().send(raw_control(0, [](C &h) { h.reserved3 = 1; })); }},
	{"credit entries that are not there", "control queue: malformed",
	 [](S &s) { s.control().send(raw_control(0, [](C &h) { h.credit_entries = 1; })); }},
	{"done entries that are not there", "control queue: malformed",
	 [](S &s) { s.control().send(raw_control(11, [](C &h) { h.done_entries = 1; })); }},
	{"17 credit entries", "control queue: malformed",
	 [](S &s) { s.control().send(raw_control(17 * 8, [](C &h) { h.credit_entries = 17; })); }},
	{"255 entries of each kind", "control queue: malformed",
	 [](S &s) {
		 s.control().send(raw_control(100, [](C &h) {
			 h.credit_entries = 255;
			 h.done_entries = 255;
		 }));
	 }},
	{"trailing bytes", "control queue: malformed",
	 [](S &s) { s.control().send(raw_control(4, [](C &) {})); }},
	{"too long a control message",
	 "(control queue|queue 0): (malformed|receive failed|the connection)",
	 [](S &s) { s.control().send(raw_control(4000, [](C &) {})); }},
	{"credits for queue 0", "control queue: malformed",
	 [](S &s) {
		 wire::ControlInfo info;
		 info.nr_credits = 1;
		 info.credit[0] = {0, 0};
		 s.send_control(info);
	 }},
	{"credits for queue 2 of 1", "credits for queue 2 of 1",
	 [](S &s) {
		 wire::ControlInfo info;
		 info.nr_credits = 1;
		 info.credit[0] = {2, 0};
		 s.send_control(info);
	 }},
	{"credits for queue 65", "control queue: malformed",
	 [](S &s) {
		 wire::ControlInfo info;
		 info.nr_credits = 1;
		 info.credit[0] = {65, 0};
		 s.send_control(info);
	 }},
	{"too many credits by control message", "queue 1: the peer granted 5 credits",
	 [](S &s) {
		 wire::ControlInfo info;
		 info.nr_credits = 1;
		 info.credit[0] = {1, 5};
		 s.send_control(info);
	 }},
	{"too many control credits", "control queue: the peer granted 1000 credits",
	 [](S &s) {
		 wire::ControlInfo info;
		 info.credits = 1000;
		 s.send_control(info);
	 }},
	{"done for what was not offered", "fetched message 77, which was not offered",
	 [](S &s) {
		 wire::ControlInfo info;
		 info.nr_done = 1;
		 info.done[0] = {77, 1};
		 s.send_control(info);
	 }},
	{"done for queue 2 of 1", "fetched a message from queue 2 of 1",
	 [](S &s) {
		 wire::ControlInfo info;
		 info.nr_done = 1;
		 info.done[0] = {0, 2};
		 s.send_control(info);
	 }},
	{"done twice", "which was not offered",
	 [](S &s) {
		 their_offer(s);
		 wire::ControlInfo info;
		 info.nr_done = 2;
		 info.done[0] = info.done[1] = {0, 1};
		 s.send_control(info);
	 }},
	{"a second control hello", "control queue: unexpected hello",
	 [](S &s) { s.send_control(flags(wire::ControlHello)); }},
	{"a start from the initiator", "control queue: unexpected start",
	 [](S &s) { s.send_control(flags(wire::Start)); }},
	{"all flags at once", "control queue: unexpected",
	 [](S &s) { s.send_control(flags(wire::control_flags)); }},
	{"a goodbye that forgets messages", "unexpected goodbye",
	 [](S &s) {
		 s.send_data({DataType::Eager, 8, 0, 0, 0, 0}, 8);
		 s.send_control(flags(wire::Bye));
	 }},
	{"a message after goodbye", "is a repetition, or out of the window",
	 [](S &s) {
		 s.send_control(flags(wire::Bye));
		 s.send_data({DataType::Eager, 8, 0, 0, 0, 0}, 8);
	 }},
	{"two goodbyes", "unexpected goodbye",
	 [](S &s) {
		 s.send_control(flags(wire::Bye));
		 s.send_control(flags(wire::Bye));
	 }},
	{"silence after a goodbye", "the peer closed|no sign of life|queue [01]: ",
	 [](S &s) {
		 wire::ControlInfo info = flags(wire::Bye);
		 info.last = 1000;
		 s.send_control(info);
		 for (auto &link : s.links)
			 rdma_disconnect(link->cm->id);
	 }},
	{"more messages than receives", "the peer closed|queue 1: ",
	 [](S &s) {
		 for (uint64_t i = 0; i < s.shape.depth + 8; i++)
			 if (!s.send_data({DataType::Eager, 8, 0, 0, i, 0}, 8).ok)
				 break;
		 for (auto &link : s.links)
			 rdma_disconnect(link->cm->id);
	 }},
};

// Where the device notices, and not kdirect, iWARP closes the connection and tells
// its user no more than that.
std::string cause_of(const Lie &lie)
{
	std::string cause = lie.cause;
	bool device = cause.find("READ failed") != cause.npos ||
		      cause.find("receive failed") != cause.npos;
	if (iwarp() && device)
		cause += "|queue [01]: QP fatal error|queue [01]: the connection was lost|"
			 "the peer closed the connection";
	return cause;
}

void tell(const Lie &lie)
{
	std::string name = std::string("in a live session, ") + lie.name;
	if (!wanted(name))
		return;
	std::string complaint;
	Log log;
	{
		Session session({});
		if (!session.establish(log)) {
			result(name, "the session did not start: " + log.seen);
			return;
		}
		lie.tell(session);
		std::string cause = cause_of(lie);
		if (log.find("channel store\\.[0-9]+: .*(" + cause + ")", 10000).empty())
			complaint = "no cause '" + cause + "' in the log:\n" + log.seen;
		if (!session.closed())
			complaint += "\na connection stays";
	}
	std::string left = leftovers();
	result(name, complaint + left);
}

} // namespace

void run_client()
{
	requests();
	seconds();
	stops();
	for (const Lie &lie : lies)
		tell(lie);
}
