// SPDX-License-Identifier: GPL-2.0-only
// lying_peer client|server ADDRESS PORT BYSTANDER [PART-OF-A-NAME]
//
// client: connects to a kdirect listener and does not keep to the protocol.
// server: lets `kdirect channel add` connect to it and does not, either.
// Each case must end its own channel, with a cause that can be read, leave no
// resource, and not disturb the channel BYSTANDER. Prints a line for each case.
#include "lying.h"

#include <chrono>
#include <fcntl.h>
#include <kdirect.h>
#include <regex>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

Place place;
unsigned failures;

bool iwarp()
{
	static const bool is = [] {
		Address address(place.address, place.port);
		return resolved(address)->id->verbs->device->transport_type == IBV_TRANSPORT_IWARP;
	}();
	return is;
}

bool lost_hello(const std::string &told, unsigned &tries)
{
	return iwarp() && ++tries < 3 && told.find("not connected within") != told.npos;
}

void result(const std::string &name, const std::string &complaint)
{
	std::printf("%s - lying_peer: %s\n", complaint.empty() ? "ok" : "not ok", name.c_str());
	if (!complaint.empty()) {
		failures++;
		std::printf("# %s\n",
			    std::regex_replace(complaint, std::regex("\n"), "\n# ").c_str());
	}
	std::fflush(stdout);
}

bool wanted(const std::string &name)
{
	return !place.only || name.find(place.only) != std::string::npos;
}

// The module logs 50 lines in 5 s at most, and each lie causes two or three: what is
// suppressed cannot be found.
static void spare_the_log()
{
	static std::chrono::steady_clock::time_point next;

	std::this_thread::sleep_until(next);
	next = std::chrono::steady_clock::now() + std::chrono::milliseconds(400);
}

Log::Log() : fd_(open("/dev/kmsg", O_RDONLY | O_NONBLOCK | O_CLOEXEC))
{
	spare_the_log();
	lseek(fd_, 0, SEEK_END);
}

Log::~Log()
{
	close(fd_);
}

void Log::skip()
{
	lseek(fd_, 0, SEEK_END);
	seen.clear();
}

std::string Log::find(const std::string &regex, int timeout_ms)
{
	std::regex wanted(regex);
	std::string found;
	auto look = [&] {
		char line[1024];
		for (ssize_t n; (n = read(fd_, line, sizeof(line) - 1)) > 0;) {
			line[n] = 0;
			const char *text = strchr(line, ';');
			if (!text || !strstr(text, "kdirect"))
				continue;
			seen += text + 1;
			if (std::regex_search(text, wanted))
				found = text;
		}
		return !found.empty();
	};
	eventually(look, timeout_ms / 1000);
	return found;
}

std::string bystander_complaint()
{
	int fd = open(place.bystander, O_RDWR | O_CLOEXEC);
	kdirect_ping ping{};
	ping.size = 64;
	ping.timeout_ns = 10000000000 * slow(); // 60 s at most
	int err = fd < 0 || ioctl(fd, KDIRECT_IOC_PING, &ping) ? errno : 0;
	close(fd);
	return err ? std::string("the bystander does not answer: ") + errno_name(err) : "";
}

Output run(const std::vector<std::string> &words)
{
	std::vector<char *> argv;
	for (const std::string &word : words)
		argv.push_back(const_cast<char *>(word.c_str()));
	argv.push_back(nullptr);
	int ends[2];
	if (pipe(ends))
		die("pipe");
	pid_t child = fork();
	if (child == 0) {
		dup2(ends[1], 1);
		dup2(ends[1], 2);
		close(ends[0]);
		close(ends[1]);
		execvp(argv[0], argv.data());
		_exit(127);
	}
	close(ends[1]);
	Output out;
	char buffer[4096];
	for (ssize_t n; (n = read(ends[0], buffer, sizeof(buffer))) > 0;)
		out.text.append(buffer, size_t(n));
	close(ends[0]);
	int status = 0;
	waitpid(child, &status, 0);
	out.status = WIFEXITED(status) ? WEXITSTATUS(status) : 128;
	return out;
}

bool eventually(const std::function<bool()> &holds, int seconds)
{
	for (int i = 0; i <= seconds * 100; i++) {
		if (holds())
			return true;
		usleep(10000);
	}
	return false;
}

unsigned channels(const std::string &prefix)
{
	std::string list = run({"kdirect", "channel"}).text;
	unsigned count = 0;
	std::string word = "channel " + prefix;
	for (size_t at = 0; (at = list.find(word, at)) != std::string::npos; at++)
		count += at == 0 || list[at - 1] == '\n';
	return count;
}

// --- sessions ----------------------------------------------------------------------------

wire::RequestInfo request_of(const Shape &shape)
{
	return {0, shape.queues, 0, shape.depth, shape.eager, shape.max_message, 0x1234567890, 0, 0,
		0};
}

std::unique_ptr<Link> make_link(std::unique_ptr<Id> id, const Shape &shape, uint32_t queue)
{
	return std::make_unique<Link>(
		std::move(id), queue ? shape.depth + 2 : wire::control_receives,
		queue ? uint32_t(sizeof(wire::DataHeader)) + shape.eager : wire::control_size);
}

bool Session::connect(uint32_t queue, wire::Verdict *refused)
{
	Address address(place.address, place.port);
	auto link = make_link(resolved(address), shape, queue);
	wire::RequestInfo info = request;
	info.queue = queue;
	info.token = queue ? token : 0;
	wire::Request data;
	wire::encode_request(info, data);
	rdma_conn_param param = parameters(&data, sizeof(data));
	if (rdma_connect(link->cm->id, &param))
		die("rdma_connect: %s", errno_name(errno));
	std::optional<Event> event = link->cm->event(20000 * int(slow()));
	if (event && event->type == RDMA_CM_EVENT_REJECTED && refused &&
	    wire::decode_reject(event->data.data(), event->data.size(), *refused))
		return false;
	if (!event || event->type != RDMA_CM_EVENT_ESTABLISHED)
		die("queue %u: %s", queue, event ? rdma_event_str(event->type) : "no answer");
	wire::Reply reply;
	memcpy(&reply, event->data.data(), sizeof(reply));
	if (queue == 0)
		token = reply.token;
	links.push_back(std::move(link));
	return true;
}

void Session::connect_all()
{
	for (uint32_t queue = 0; queue <= shape.queues; queue++)
		connect(queue);
}

void Session::say_hello()
{
	for (uint32_t queue = 1; queue <= shape.queues; queue++) {
		wire::DataHeader hello;
		wire::encode_data({wire::DataType::Hello, 0, 0, 0, 0, 0}, &hello);
		links[queue]->send(&hello, sizeof(hello));
	}
	wire::ControlInfo info;
	info.flags = wire::ControlHello;
	send_control(info);
}

bool Session::wait_control(uint16_t flag, int timeout_ms)
{
	for (;;) {
		Bytes bytes = control().receive(timeout_ms);
		if (bytes.size() < sizeof(wire::ControlHeader))
			return false;
		wire::ControlHeader header;
		memcpy(&header, bytes.data(), sizeof(header));
		if (header.flags & flag)
			return true;
	}
}

// The peer's, which comes before all else on a data queue.
bool Session::hear_hello()
{
	for (uint32_t queue = 1; queue <= shape.queues; queue++) {
		Bytes bytes = links[queue]->receive(10000);
		if (bytes.size() != sizeof(wire::DataHeader) ||
		    bytes[0] != uint8_t(wire::DataType::Hello))
			return false;
	}
	return true;
}

bool Session::wait_start()
{
	return wait_control(wire::Start);
}

bool Session::establish(Log &log)
{
	for (unsigned tries = 0;;) {
		connect_all();
		say_hello();
		if (wait_start() && hear_hello())
			return true;
		if (!lost_hello(log.find("not connected within", 5000), tries))
			return false;
		links.clear();
		// the bystander's other end
		eventually([] { return channels("store.") == 1; }, 15);
		log.skip();
	}
}

Link::Sent Session::send_data(const wire::DataInfo &info, size_t payload)
{
	Bytes bytes(sizeof(wire::DataHeader) + payload);
	wire::encode_data(info, bytes.data());
	return data().send(bytes);
}

Link::Sent Session::send_control(const wire::ControlInfo &info)
{
	uint8_t bytes[wire::control_size];
	uint32_t len = wire::encode_control(info, bytes);
	return control().send(bytes, len);
}

bool Session::closed(int timeout_ms)
{
	bool all = true;
	// rdma_cm sends its goodbye once, and on a busy machine it may be lost: then
	// the QP at the other end must be gone, and only an error status says so.
	for (auto &link : links)
		all &= link->cm->wait_event(RDMA_CM_EVENT_DISCONNECTED, timeout_ms) ||
		       link->send(Bytes(1)).status > 0;
	return all;
}

int main(int argc, char **argv)
{
	std::string role = argc > 1 ? argv[1] : "";
	if (argc < 5 || argc > 6 || (role != "client" && role != "server"))
		die("usage: lying_peer client|server ADDRESS PORT BYSTANDER [PART-OF-A-NAME]");
	place = {argv[2], unsigned(std::strtoul(argv[3], nullptr, 0)), argv[4],
		 argc > 5 ? argv[5] : nullptr};
	if (role == "client")
		run_client();
	else
		run_server();
	return failures != 0;
}
