// SPDX-License-Identifier: GPL-2.0-only
// hostile_netlink [--seed S] [--count N] [--threads T] [--user nobody] [PEER PORT]: generic
// netlink requests that are nearly right, from many sockets at a time. Each answer is
// success or a documented errno with a text; what was refused has changed nothing, and
// what was granted is there. As nobody, or as root of a namespace of its own, nothing
// is ever granted but looking.
//
// A thread's listeners and channels have names of its own, so that it knows which there
// are. PEER and PORT are where channels really connect.
#include "genl.h"
#include "hostile.h"

#include <arpa/inet.h>
#include <climits>
#include <map>
#include <memory>
#include <netinet/in.h>
#include <poll.h>
#include <set>
#include <unistd.h>

namespace
{

constexpr const char *usage =
	"usage: hostile_netlink [--seed S] [--count N] [--threads T] [--only T] [--seconds S]\n"
	"                       [--user root|nobody] [--patience S] [--trace] [PEER PORT]";

uint16_t family;
uint32_t group;
bool may_change; // root of the initial namespaces
uint8_t peer[4] = {192, 0, 2, 1};
uint16_t peer_port = 7471;

enum class Type { String, Address, U16, U32, Flag, Prefix };

struct Field {
	uint16_t attr;
	Type type;
	bool needed;
	uint32_t low, high; // of values that do not cost much
};

const Field name_field = {KDIRECT_A_NAME, Type::String, true, 0, 0};

const std::map<uint8_t, std::vector<Field>> requests = {
	{KDIRECT_CMD_DEVICE_GET, {{KDIRECT_A_DEV_NAME, Type::String, true, 0, 0}}},
	{KDIRECT_CMD_LISTENER_NEW,
	 {name_field,
	  {KDIRECT_A_ADDR, Type::Address, true, 0, 0},
	  {KDIRECT_A_PORT, Type::U16, true, 1, 65535},
	  {KDIRECT_A_ALLOW, Type::Prefix, false, 0, 0},
	  {KDIRECT_A_MAX_CHANNELS, Type::U32, false, 1, 1024},
	  {KDIRECT_A_MAX_QUEUES, Type::U16, false, 1, 64},
	  {KDIRECT_A_MAX_DEPTH, Type::U32, false, 1, 1024},
	  {KDIRECT_A_MAX_MESSAGE, Type::U32, false, 4096, 1048576},
	  {KDIRECT_A_EAGER_LIMIT, Type::U32, false, 256, 65536},
	  {KDIRECT_A_MODE, Type::U32, false, 0, 1},
	  {KDIRECT_A_HOLD, Type::Flag, false, 0, 0},
	  {KDIRECT_A_PRIVATE_DATA, Type::Address, false, 0, 0},
	  {KDIRECT_A_RETRY_COUNT, Type::U32, false, 0, 7},
	  {KDIRECT_A_RNR_RETRY_COUNT, Type::U32, false, 0, 7},
	  {KDIRECT_A_INITIATOR_DEPTH, Type::U32, false, 0, 255},
	  {KDIRECT_A_RESPONDER_RESOURCES, Type::U32, false, 0, 255}}},
	{KDIRECT_CMD_LISTENER_SET,
	 {name_field,
	  {KDIRECT_A_ALLOW, Type::Prefix, false, 0, 0},
	  {KDIRECT_A_ALLOW_CLEAR, Type::Flag, false, 0, 0},
	  {KDIRECT_A_MAX_CHANNELS, Type::U32, false, 1, 1024}}},
	{KDIRECT_CMD_LISTENER_DEL, {name_field}},
	{KDIRECT_CMD_LISTENER_GET, {name_field}},
	{KDIRECT_CMD_CHANNEL_NEW,
	 {name_field,
	  {KDIRECT_A_ADDR, Type::Address, true, 0, 0},
	  {KDIRECT_A_PORT, Type::U16, true, 1, 65535},
	  {KDIRECT_A_SRC_ADDR, Type::Address, false, 0, 0},
	  {KDIRECT_A_QUEUES, Type::U16, false, 0, 3},
	  {KDIRECT_A_POLL_QUEUES, Type::U16, false, 0, 2},
	  {KDIRECT_A_DEPTH, Type::U32, false, 1, 8},
	  {KDIRECT_A_MAX_MESSAGE, Type::U32, false, 4096, 1048576},
	  {KDIRECT_A_EAGER_LIMIT, Type::U32, false, 256, 16384},
	  {KDIRECT_A_KEEP_ALIVE_MS, Type::U32, false, 100, 60000},
	  {KDIRECT_A_CONNECT_TIMEOUT_MS, Type::U32, true, 100, 600},
	  {KDIRECT_A_DRAIN_TIMEOUT_MS, Type::U32, false, 10, 500},
	  {KDIRECT_A_SOCKET_OWNER, Type::Flag, false, 0, 0},
	  {KDIRECT_A_MODE, Type::U32, false, 0, 1},
	  {KDIRECT_A_HOLD, Type::Flag, false, 0, 0},
	  {KDIRECT_A_PRIVATE_DATA, Type::Address, false, 0, 0},
	  {KDIRECT_A_RETRY_COUNT, Type::U32, false, 0, 7},
	  {KDIRECT_A_RNR_RETRY_COUNT, Type::U32, false, 0, 7},
	  {KDIRECT_A_INITIATOR_DEPTH, Type::U32, false, 0, 255},
	  {KDIRECT_A_RESPONDER_RESOURCES, Type::U32, false, 0, 255}}},
	{KDIRECT_CMD_CHANNEL_SET,
	 {name_field,
	  {KDIRECT_A_EAGER_LIMIT, Type::U32, false, 256, 16384},
	  {KDIRECT_A_KEEP_ALIVE_MS, Type::U32, false, 100, 60000},
	  {KDIRECT_A_DRAIN_TIMEOUT_MS, Type::U32, false, 10, 500}}},
	{KDIRECT_CMD_CHANNEL_DEL, {name_field}},
	{KDIRECT_CMD_CHANNEL_GET, {name_field}},
	{KDIRECT_CMD_STATS_GET, {name_field}},
};

bool changes(uint8_t command)
{
	return command != KDIRECT_CMD_DEVICE_GET && command != KDIRECT_CMD_LISTENER_GET &&
	       command != KDIRECT_CMD_CHANNEL_GET && command != KDIRECT_CMD_STATS_GET;
}

class Hostile
{
public:
	explicit Hostile(Actor &actor) : actor_(actor) {}
	~Hostile() { give_back(); }

	void act()
	{
		switch (actor_.below(20)) {
		case 0: dump(); return;
		case 1: interrupted_dump(); return;
		case 2: membership(); return;
		case 3: flood(); return;
		case 4: owner(); return;
		case 5: bad_header(); return;
		case 6:
		case 7: other_family(); return;
		case 8: check_listeners(); return;
		default: request(); return;
		}
	}

private:
	// Two mutations do not make another thread's name of it.
	std::string name(char kind, uint64_t which) const
	{
		return kind + std::string(4, char('a' + actor_.number)) + char('0' + which);
	}
	std::string listener_name() { return name('l', actor_.below(3)); }
	std::string channel_name() { return name('h', actor_.below(2)); }

	void value(Bytes &out, const Field &field, const std::string &name);
	Bytes attributes(uint8_t command, const std::string &name);
	void mutate(Bytes &attributes);
	void judge(const char *kind, uint8_t command, const Answer &answer, bool reaches_us);
	void request();
	void dump();
	void interrupted_dump();
	void membership();
	void flood();
	void owner();
	void bad_header();
	void other_family();
	void check_listeners();
	void give_back();
	Answer listener_get(const std::string &name);
	Answer named(uint8_t command, const std::string &name);

	GenlSocket &socket()
	{
		if (!socket_ || actor_.one_in(20))
			socket_ = std::make_unique<GenlSocket>();
		return *socket_;
	}

	Actor &actor_;
	std::unique_ptr<GenlSocket> socket_;
	std::set<std::string> listeners_; // that must exist
};

void Hostile::value(Bytes &out, const Field &field, const std::string &name)
{
	uint64_t number = field.low + actor_.below(uint64_t(field.high) - field.low + 1);
	// one of the limits, or just beyond; but not what would take memory for ever
	if (actor_.one_in(12)) {
		static const uint32_t wild[] = {0,      0x7fffffff, 0x80000000, 0xffffffff,
						0xffff, 65537,      1048577,    120001};
		number = actor_.one_of(wild);
	}
	switch (field.type) {
	case Type::String: put_string(out, field.attr, name.c_str()); return;
	case Type::Flag: put(out, field.attr, nullptr, 0); return;
	case Type::U16:
		if (field.attr == KDIRECT_A_PORT)
			number = name[0] == 'h' && actor_.below(3)
					 ? peer_port
					 : 20000 + 100 * actor_.number + actor_.below(4);
		put_number(out, field.attr, uint16_t(number));
		return;
	case Type::U32: put_number(out, field.attr, uint32_t(number)); return;
	case Type::Address: {
		static const uint8_t strange[][4] = {{0, 0, 0, 0},
						     {127, 0, 0, 1},
						     {224, 0, 0, 1},
						     {255, 255, 255, 255},
						     {192, 0, 2, 1}};
		uint8_t six[16] = {0xfe, 0x80};
		if (actor_.below(3))
			put(out, field.attr, peer, 4);
		else if (actor_.below(3))
			put(out, field.attr, strange[actor_.below(std::size(strange))], 4);
		else
			put(out, field.attr, six, 16);
		return;
	}
	case Type::Prefix: {
		Bytes nest;
		put(nest, KDIRECT_A_PREFIX_ADDR, peer, 4);
		put_number(nest, KDIRECT_A_PREFIX_LEN, uint8_t(actor_.below(34)));
		for (unsigned n = actor_.one_in(6) ? 70 : 1 + unsigned(actor_.below(3)); n; n--)
			put(out, NLA_F_NESTED | field.attr, nest.data(), nest.size());
		return;
	}
	}
}

Bytes Hostile::attributes(uint8_t command, const std::string &name)
{
	Bytes out;
	for (const Field &field : requests.at(command))
		if (field.needed || actor_.one_in(3))
			value(out, field, name);
	return out;
}

// One thing that is wrong with a list of attributes.
void Hostile::mutate(Bytes &list)
{
	Bytes junk(actor_.one_of({0, 1, 2, 3, 4, 5, 8, 16, 31, 32, 33, 255, 4096, 60000}));
	fill(junk.data(), junk.size(), actor_.random.next());
	// the start of one of the attributes
	std::vector<size_t> starts;
	for (size_t p = 0; p + 4 <= list.size();) {
		uint16_t len;
		std::memcpy(&len, &list[p], 2);
		starts.push_back(p);
		if (len < 4)
			break;
		p += NLA_ALIGN(len);
	}
	size_t at = starts.empty() ? 0 : starts[actor_.below(starts.size())];
	uint16_t type = uint16_t(actor_.one_of({actor_.below(__KDIRECT_A_MAX + 3), uint64_t(0),
						uint64_t(0x3fff), uint64_t(KDIRECT_A_NAME)}));
	switch (actor_.below(12)) {
	case 0: // another length than it has
		if (!list.empty()) {
			auto len = uint16_t(actor_.one_of({0, 1, 3, 4, 5, 7, 400, 0xffff}));
			std::memcpy(&list[at], &len, 2);
		}
		return;
	case 1: // another type
		if (!list.empty())
			std::memcpy(&list[at + 2], &type, 2);
		return;
	case 2: // marked as a nest, or in network order
		if (!list.empty())
			list[at + 3] ^= uint8_t(actor_.one_of({0x80, 0x40, 0xc0}));
		return;
	case 3: // cut off
		list.resize(actor_.below(list.size() + 1));
		return;
	case 4: // missing
		if (!list.empty()) {
			uint16_t len;
			std::memcpy(&len, &list[at], 2);
			size_t end =
				std::min(list.size(), at + NLA_ALIGN(std::max<uint16_t>(len, 4)));
			list.erase(list.begin() + ssize_t(at), list.begin() + ssize_t(end));
		}
		return;
	case 5: put(list, type, junk.data(), junk.size()); return;
	case 6: put(list, uint16_t(type | NLA_F_NESTED), junk.data(), junk.size()); return;
	case 7: // a text that does not end
		std::replace(junk.begin(), junk.end(), uint8_t(0), uint8_t('a'));
		put(list, KDIRECT_A_NAME, junk.data(), junk.size());
		return;
	case 8: { // deep nests
		Bytes nest = junk;
		for (unsigned n = unsigned(actor_.below(40)); n; n--) {
			Bytes outer;
			put(outer, uint16_t(type | NLA_F_NESTED), nest.data(),
			    std::min<size_t>(nest.size(), 60000));
			nest = outer;
		}
		list.insert(list.end(), nest.begin(), nest.end());
		return;
	}
	case 9: { // twice
		Bytes copy = list;
		list.insert(list.end(), copy.begin(), copy.end());
		return;
	}
	case 10: // bytes behind the end
		list.insert(list.end(), {1, 2, 3});
		return;
	case 11: // a bit
		if (!list.empty())
			list[actor_.below(list.size())] ^= uint8_t(1 << actor_.below(8));
		return;
	}
}

// What the header documents, and what the kernel's own checks give.
void Hostile::judge(const char *kind, uint8_t command, const Answer &answer, bool reaches_us)
{
	actor_.end();
	if (answer.err < 0) {
		actor_.tell(kind, -ETIME);
		actor_.wrong("no answer");
		return;
	}
	Allowed allowed{EINVAL,     ERANGE, EEXIST, ENOENT,     ENODEV, EADDRNOTAVAIL,
			EADDRINUSE, EPERM,  ENFILE, EOPNOTSUPP, EBUSY};
	actor_.expect(kind, -answer.err, allowed);
	if (!reaches_us || !answer.err)
		return;
	if (answer.text.empty())
		actor_.wrong("%s without a text", errno_name(answer.err));
	else if ((answer.err == ERANGE || answer.err == EEXIST || answer.err == ENOENT) &&
		 !answer.names && answer.text.find("prefix") == std::string::npos)
		actor_.wrong("%s does not say which attribute: %s", errno_name(answer.err),
			     answer.text.c_str());
	if (!may_change && changes(command) && answer.err == EEXIST)
		actor_.wrong("EEXIST tells about others' names");
}

Answer Hostile::named(uint8_t command, const std::string &name)
{
	Bytes list;
	put_string(list, KDIRECT_A_NAME, name.c_str());
	return GenlSocket().ask(genl_message(family, command, NLM_F_REQUEST | NLM_F_ACK, list));
}

void Hostile::request()
{
	auto it = requests.begin();
	std::advance(it, ssize_t(actor_.below(requests.size())));
	uint8_t command = it->first;
	bool listener = command == KDIRECT_CMD_LISTENER_NEW ||
			command == KDIRECT_CMD_LISTENER_SET ||
			command == KDIRECT_CMD_LISTENER_DEL || command == KDIRECT_CMD_LISTENER_GET;
	std::string target = listener ? listener_name() : channel_name();
	if (!may_change && actor_.one_in(2)) // what is not ours to touch
		target = listener ? "store" : actor_.one_in(2) ? "c0" : "store.0";
	Bytes list = attributes(command, target);
	unsigned mutations = unsigned(actor_.below(3));
	for (unsigned n = mutations; n; n--)
		mutate(list);
	uint16_t flags = NLM_F_REQUEST | NLM_F_ACK;
	uint8_t version = 1;
	uint16_t reserved = 0;
	if (actor_.one_in(10)) {
		flags |= uint16_t(actor_.next_bits(16)) & ~(NLM_F_DUMP | NLM_F_MULTI);
		version = uint8_t(actor_.next_bits(8));
		reserved = uint16_t(actor_.next_bits(1) * actor_.next_bits(16));
	}
	actor_.begin("request %u for %s, %zu bytes, %u mutations", command, target.c_str(),
		     list.size(), mutations);
	Answer answer = socket().ask(genl_message(family, command, flags, list, version, reserved));
	char kind[32];
	std::snprintf(kind, sizeof(kind), "request %2u", command);
	judge(kind, command, answer, true);
	if (!may_change && changes(command) && answer.err == 0) {
		actor_.wrong("was granted");
		return;
	}
	// A mutation can make it another request, of which we know only what we see.
	if (listener && changes(command) && may_change) {
		std::string asked = target;
		const uint8_t *data;
		size_t len;
		if (mutations && find_attribute(list, KDIRECT_A_NAME, data, len))
			asked.assign(reinterpret_cast<const char *>(data),
				     strnlen(reinterpret_cast<const char *>(data), len));
		bool existed = listeners_.count(asked);
		if (command == KDIRECT_CMD_LISTENER_NEW) {
			if (!answer.err && existed)
				actor_.wrong("%s was added twice", asked.c_str());
			if (answer.err == EEXIST && !existed && asked == target)
				actor_.wrong("%s is said to exist", asked.c_str());
			if (!answer.err)
				listeners_.insert(asked);
		}
		if (command == KDIRECT_CMD_LISTENER_DEL) {
			if (!answer.err && !existed && asked == target)
				actor_.wrong("%s was not there", asked.c_str());
			if (answer.err == ENOENT && existed)
				actor_.wrong("%s has gone", asked.c_str());
			if (!answer.err)
				listeners_.erase(asked);
		}
		int found = named(KDIRECT_CMD_LISTENER_GET, asked).err;
		if (asked == target && (found == 0) != (listeners_.count(asked) == 1))
			actor_.wrong("then getting %s gives %s", asked.c_str(), errno_name(found));
	}
}

void Hostile::check_listeners()
{
	for (const std::string &name : listeners_) {
		actor_.begin("get %s", name.c_str());
		Answer answer = named(KDIRECT_CMD_LISTENER_GET, name);
		actor_.end();
		if (answer.err || answer.objects != 1)
			actor_.wrong("is not there any more: %s", errno_name(answer.err));
	}
}

void Hostile::dump()
{
	static const uint8_t commands[] = {KDIRECT_CMD_DEVICE_GET,  KDIRECT_CMD_LISTENER_GET,
					   KDIRECT_CMD_CHANNEL_GET, KDIRECT_CMD_STATS_GET,
					   KDIRECT_CMD_CHANNEL_NEW, KDIRECT_CMD_LISTENER_DEL};
	uint8_t command = actor_.one_of(commands);
	Bytes list;
	if (actor_.one_in(3)) {
		list = attributes(command, channel_name());
		mutate(list);
	}
	bool plain = list.empty() && !changes(command);
	actor_.begin("dump of %u with %zu bytes", command, list.size());
	Answer answer =
		socket().ask(genl_message(family, command, NLM_F_REQUEST | NLM_F_DUMP, list));
	actor_.expect("dump", -std::abs(answer.err), {EINVAL, EOPNOTSUPP});
	if (answer.err < 0)
		actor_.wrong("no answer");
	if (plain && answer.err)
		actor_.wrong("fails with %s", errno_name(answer.err));
	if (!plain && !answer.err)
		actor_.wrong("is answered");
}

// Nobody reads the answer; or one message of it, and then the socket goes.
void Hostile::interrupted_dump()
{
	actor_.begin("a dump that nobody reads");
	GenlSocket one;
	int small = 2304;
	if (actor_.one_in(2))
		setsockopt(one.fd, SOL_SOCKET, SO_RCVBUF, &small, sizeof(small));
	for (unsigned n = unsigned(actor_.below(4)) + 1; n; n--)
		one.send(genl_message(
			family,
			uint8_t(actor_.one_of({KDIRECT_CMD_CHANNEL_GET, KDIRECT_CMD_STATS_GET})),
			NLM_F_REQUEST | NLM_F_DUMP, {}));
	if (actor_.one_in(2)) {
		char byte;
		recv(one.fd, &byte, 1, MSG_DONTWAIT);
	}
	actor_.end();
	actor_.tell("interrupted dump", 0);
}

// Events that are read, not read, and left.
void Hostile::membership()
{
	actor_.begin("membership");
	GenlSocket one;
	int small = 2304;
	setsockopt(one.fd, SOL_SOCKET, SO_RCVBUF, &small, sizeof(small));
	int ret = setsockopt(one.fd, SOL_NETLINK, NETLINK_ADD_MEMBERSHIP, &group, sizeof(group));
	int err = ret ? errno : 0;
	uint32_t none = group + uint32_t(actor_.below(3)) + 1;
	setsockopt(one.fd, SOL_NETLINK, NETLINK_ADD_MEMBERSHIP, &none, sizeof(none));
	// to the group, as if they were events; who listens must not be able to be lied to
	sockaddr_nl all{AF_NETLINK, 0, 0, 1U << (group & 31)};
	Bytes event = genl_message(family, KDIRECT_CMD_EVENT, 0, {});
	sendto(one.fd, event.data(), event.size(), 0, reinterpret_cast<sockaddr *>(&all),
	       sizeof(all));
	if (may_change && actor_.one_in(2))
		for (int i = 0; i < 10; i++)
			named(KDIRECT_CMD_CHANNEL_DEL, channel_name());
	char buffer[512];
	while (recv(one.fd, buffer, sizeof(buffer), MSG_DONTWAIT) > 0)
		;
	if (actor_.one_in(2))
		setsockopt(one.fd, SOL_NETLINK, NETLINK_DROP_MEMBERSHIP, &group, sizeof(group));
	actor_.end();
	actor_.expect("membership", -err, {EPERM});
}

// Many requests in one datagram, and no time for an answer.
void Hostile::flood()
{
	Bytes all;
	for (unsigned n = unsigned(actor_.below(30)) + 1; n; n--) {
		uint8_t command =
			uint8_t(actor_.one_of({KDIRECT_CMD_CHANNEL_DEL, KDIRECT_CMD_CHANNEL_GET,
					       KDIRECT_CMD_STATS_GET, KDIRECT_CMD_CHANNEL_SET}));
		Bytes list = attributes(command, channel_name());
		if (actor_.one_in(3))
			mutate(list);
		Bytes one = genl_message(family, command, NLM_F_REQUEST | NLM_F_ACK, list);
		all.insert(all.end(), one.begin(), one.end());
		all.resize(NLMSG_ALIGN(all.size()));
	}
	actor_.begin("a flood of %zu bytes", all.size());
	GenlSocket one;
	bool sent = one.send(all);
	actor_.expect("flood", sent ? 0 : -errno, {EMSGSIZE, ENOBUFS});
}

// A channel that belongs to a socket, which closes at once, or when it is connecting.
void Hostile::owner()
{
	Bytes list = attributes(KDIRECT_CMD_CHANNEL_NEW, channel_name());
	put(list, KDIRECT_A_SOCKET_OWNER, nullptr, 0);
	actor_.begin("a socket that owns a channel");
	{
		GenlSocket one;
		Bytes message = genl_message(family, KDIRECT_CMD_CHANNEL_NEW,
					     NLM_F_REQUEST | NLM_F_ACK, list);
		one.send(message);
		if (actor_.one_in(2))
			one.receive();
		usleep(useconds_t(actor_.below(3) * 2000));
	}
	actor_.end();
	actor_.tell("owner", 0);
}

void Hostile::bad_header()
{
	Bytes message = genl_message(family, KDIRECT_CMD_CHANNEL_GET, NLM_F_REQUEST | NLM_F_ACK,
				     attributes(KDIRECT_CMD_CHANNEL_GET, channel_name()));
	uint32_t length = uint32_t(actor_.one_of({0, 1, 15, 16, 17, 19, 20, 21, 23, 24, 1000, -1}));
	actor_.begin("a header that says %u bytes", length);
	if (actor_.one_in(2))
		std::memcpy(message.data(), &length, sizeof(length));
	else
		message.resize(actor_.below(message.size()) + 1);
	GenlSocket one;
	bool sent = one.send(message);
	int err = errno;
	char buffer[512];
	recv(one.fd, buffer, sizeof(buffer), MSG_DONTWAIT);
	actor_.expect("bad header", sent ? 0 : -err, {});
}

// Commands that are none, with anything.
void Hostile::other_family()
{
	uint8_t command =
		uint8_t(actor_.one_of({uint64_t(0), uint64_t(KDIRECT_CMD_EVENT),
				       uint64_t(__KDIRECT_CMD_MAX), actor_.next_bits(8)}));
	if (requests.count(command))
		return;
	Bytes list;
	mutate(list);
	actor_.begin("command %u", command);
	Answer answer =
		socket().ask(genl_message(family, command, NLM_F_REQUEST | NLM_F_ACK, list));
	judge("no command", command, answer, false);
	if (!answer.err)
		actor_.wrong("was granted");
}

void Hostile::give_back()
{
	if (!may_change)
		return;
	for (uint64_t i = 0; i < 3; i++)
		named(KDIRECT_CMD_LISTENER_DEL, name('l', i));
	for (uint64_t i = 0; i < 2; i++)
		named(KDIRECT_CMD_CHANNEL_DEL, name('h', i));
}

} // namespace

int main(int argc, char **argv)
{
	Options options = parse_options(argc, argv, usage);
	if (options.rest.size() == 2) {
		if (inet_pton(AF_INET, options.rest[0], peer) != 1)
			die("%s is no IPv4 address", options.rest[0]);
		peer_port = uint16_t(std::atoi(options.rest[1]));
	}
	family = kdirect_family(&group);
	if (options.nobody)
		become_nobody(65534);
	// Root of a user namespace has another map than this.
	FILE *map = std::fopen("/proc/self/uid_map", "r");
	unsigned first = 1, outside = 1, count = 0;
	if (!map || std::fscanf(map, "%u %u %u", &first, &outside, &count) != 3)
		die("/proc/self/uid_map: %s", errno_name(errno));
	std::fclose(map);
	may_change = geteuid() == 0 && outside == 0 && count == UINT_MAX;
	std::printf("# may change: %s\n", may_change ? "yes" : "no");
	int status = run(
		options,
		[&](Actor &actor) -> std::function<void(Actor &)> {
			auto hostile = std::make_shared<Hostile>(actor);
			return [hostile](Actor &) { hostile->act(); };
		},
		[] {});
	print_outcomes();
	std::printf("hostile_netlink: %s\n", status ? "something was wrong" : "nothing was wrong");
	return status;
}
