// SPDX-License-Identifier: GPL-2.0-only
// hostile_calls [--seed S] [--count N] [--threads T] [--user nobody] NODE...: system
// calls on the nodes of channels, or of mappings, that no sane program makes. Each result must be
// one that uapi/kdirect.h or the system call's manual documents, and each call must end. One
// thread's calls follow from the seed; what they meet depends on the others.
#include "hostile_files.h"

#include <climits>
#include <fstream>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/select.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

namespace
{

constexpr const char *usage =
	"usage: hostile_calls [--seed S] [--count N] [--threads T] [--only T] [--seconds S]\n"
	"                     [--user root|nobody] [--ending] [--patience S] [--trace] NODE...\n"
	"--ending: others end the channels or mappings meanwhile, and may bring them back\n"
	"SIGTERM ends it earlier, in order";

int flags_of(Thread &t)
{
	static const int flags[] = {0,         0,          0,
				    RWF_HIPRI, RWF_NOWAIT, RWF_DSYNC,
				    RWF_SYNC,  RWF_APPEND, RWF_HIPRI | RWF_NOWAIT};
	if (t.actor.one_in(8))
		return int(1U << t.actor.below(32));
	return t.actor.one_of(flags);
}

off_t offset_of(Thread &t, const Target &file)
{
	auto size = off_t(file.node->map.size);
	if (file.node->mapping && t.actor.one_in(2))
		return t.actor.one_in(3) ? t.actor.one_of({size - 1, size, size + 1, size - 5000})
					 : off_t(t.actor.below(uint64_t(size)));
	static const off_t offsets[] = {-1,   -1,      -1,        -1,        0, 1,
					4096, INT_MAX, LLONG_MAX, LLONG_MIN, -2};
	return t.actor.one_of(offsets);
}

void plain(Thread &t, bool out)
{
	Target &file = t.target();
	size_t len = length(t);
	Piece p =
		t.actor.one_in(3) ? t.memory.piece(t.actor, len, out) : t.memory.good(t.actor, len);
	Allowed allowed = transfer_errors(t, file, out, len, p.may_fail);
	t.actor.begin("%s(%d, %s %p, %zu)", out ? "write" : "read", file.fd, p.kind,
		      static_cast<void *>(p.start), len);
	ssize_t n = out ? write(file.fd, p.start, len) : read(file.fd, p.start, len);
	transferred(t, out ? "write" : "read", file, out, n, len, p.may_work, allowed);
}

void vectored(Thread &t, bool out)
{
	Target &file = t.target();
	Vector v = make_vector(t, out);
	Piece array = t.memory.structure(t.actor, v.vecs.data(), v.vecs.size() * sizeof(iovec));
	bool lost = array.may_fail; // its content is not what we wanted
	int flags = flags_of(t);
	off_t offset = offset_of(t, file);
	int count = t.actor.one_in(20) ? -1 : int(v.vecs.size());
	bool simple = t.actor.one_in(3);
	if (simple)
		flags = 0, offset = -1;

	Target as = file; // with these flags
	if (flags & RWF_NOWAIT)
		as.nonblocking = as.nowait = true;
	Allowed allowed = transfer_errors(t, as, out, v.total, v.may_fail || lost);
	allowed.add_if(v.overflows || count < 0 || lost || offset < -1, {EINVAL});
	allowed.add_if(offset != -1, {file.node->mapping ? EINVAL : ESPIPE});
	constexpr int known_flags = RWF_NOWAIT | RWF_DSYNC | RWF_SYNC | RWF_APPEND;
	allowed.add_if(flags & ~known_flags, {EOPNOTSUPP});
	allowed.add_if(flags, {EINVAL});
	allowed.add_if(file.node->mapping && out, {ENOSPC});
	// the sum is cut at what one call may transfer, but not below a message's length
	allowed.add_if(lost, {EMSGSIZE, EFAULT});

	auto *vecs = reinterpret_cast<const iovec *>(array.start);
	const char *kind = out ? "writev" : "readv";
	t.actor.begin("%s(%d, %zu x, of %zu bytes, %s, at %lld, flags %#x)", kind, file.fd,
		      v.vecs.size(), v.total, array.kind, static_cast<long long>(offset),
		      unsigned(flags));
	ssize_t n;
	if (simple)
		n = out ? writev(file.fd, vecs, count) : readv(file.fd, vecs, count);
	else
		n = out ? pwritev2(file.fd, vecs, count, offset, flags)
			: preadv2(file.fd, vecs, count, offset, flags);
	if (lost && n >= 0) {
		t.actor.expect(kind, n, {});
		return;
	}
	transferred(t, kind, file, out, n, v.total, v.may_work, allowed);
}

void placed(Thread &t, Target &file, bool out)
{
	size_t len = length(t);
	Piece p =
		t.actor.one_in(3) ? t.memory.piece(t.actor, len, out) : t.memory.good(t.actor, len);
	off_t at = offset_of(t, file);
	Allowed allowed = transfer_errors(t, file, out, len, p.may_fail);
	auto size = off_t(file.node->map.size);
	bool past = at < 0 || len > size_t(LLONG_MAX - at);
	allowed.add_if(past, {EINVAL});
	const char *kind = out ? "pwrite" : "pread";
	t.actor.begin("%s(%d, %s %p, %zu at %lld)", kind, file.fd, p.kind,
		      static_cast<void *>(p.start), len, static_cast<long long>(at));
	ssize_t n = out ? pwrite(file.fd, p.start, len, at) : pread(file.fd, p.start, len, at);
	if (n > 0 && (past || at >= size || n > size - at))
		t.actor.wrong("%zd bytes past the end", n);
	transferred(t, kind, file, out, n, len, p.may_work, allowed);
}

void positioned(Thread &t, bool out)
{
	Target &file = t.target();
	if (file.node->mapping) {
		placed(t, file, out);
		return;
	}
	Piece p = t.memory.good(t.actor, 4096);
	off_t offset = t.actor.one_of({off_t(0), off_t(1), off_t(-1), off_t(LLONG_MAX)});
	t.actor.begin("%s(%d, at %lld)", out ? "pwrite" : "pread", file.fd,
		      static_cast<long long>(offset));
	ssize_t n = out ? pwrite(file.fd, p.start, 4096, offset)
			: pread(file.fd, p.start, 4096, offset);
	t.actor.expect(out ? "pwrite" : "pread", n < 0 ? -errno : n, {ESPIPE, EINVAL, EBADF});
	if (n >= 0)
		t.actor.wrong("worked at a position");
}

} // namespace

void transfer(Thread &t)
{
	// more reading than writing, so that there is always room for a message
	bool out = t.actor.below(5) < 2;
	unsigned which = unsigned(t.actor.below(10));
	if (which >= 7 && t.attack.nodes[0].mapping)
		which = 0;
	switch (which) {
	case 0: positioned(t, out); return;
	case 1:
	case 2:
	case 3:
	case 4: vectored(t, out); return;
	default: plain(t, out); return;
	}
}

// --- waiting --------------------------------------------------------------------------

namespace
{

void poll_one(Thread &t)
{
	pollfd fds[3];
	for (pollfd &p : fds)
		p = {t.target().fd, short(t.actor.next_bits(16)), 0};
	Piece p = t.memory.structure(t.actor, fds, sizeof(fds));
	timespec times[] = {{0, 0}, {0, 1000000}, {-1, 0}, {0, 1000000000}};
	unsigned count = t.actor.one_of({0u, 1u, 2u, 3u, 3u, 70000u, UINT_MAX});
	const timespec &time = times[t.actor.below(std::size(times))];
	t.actor.begin("ppoll(%s, %u)", p.kind, count);
	int n = ppoll(reinterpret_cast<pollfd *>(p.start), count, &time, nullptr);
	Allowed allowed{EINTR};
	allowed.add_if(p.may_fail || count > 3, {EFAULT});
	allowed.add_if(count > 3 || time.tv_sec < 0 || time.tv_nsec > 999999999, {EINVAL, ENOMEM});
	t.actor.expect("poll", n < 0 ? -errno : n, allowed);
}

void select_one(Thread &t)
{
	Target &file = t.target(true);
	fd_set in, out, except;
	FD_ZERO(&in);
	FD_ZERO(&out);
	FD_ZERO(&except);
	if (file.fd >= 0) {
		FD_SET(file.fd, &in);
		FD_SET(file.fd, &out);
		FD_SET(file.fd, &except);
	}
	timeval time{0, suseconds_t(t.actor.below(2000))};
	t.actor.begin("select(%d)", file.fd);
	int n = select(file.fd + 1, &in, &out, &except, &time);
	t.actor.expect("select", n < 0 ? -errno : n, {EINTR, EBADF});
	if (n < 0 && errno == EBADF && file.reads)
		t.actor.wrong("an open file is none");
}

void epoll_one(Thread &t)
{
	int set = epoll_create1(EPOLL_CLOEXEC);
	if (set < 0)
		return;
	for (unsigned i = unsigned(t.actor.below(5)) + 1; i; i--) {
		Target &file = t.target();
		int op = t.actor.one_of({EPOLL_CTL_ADD, EPOLL_CTL_ADD, EPOLL_CTL_ADD, EPOLL_CTL_MOD,
					 EPOLL_CTL_DEL, 0, 99});
		epoll_event event{uint32_t(t.actor.next_bits(32)), {}};
		if (t.actor.one_in(2))
			event.events &= EPOLLIN | EPOLLOUT | EPOLLET | EPOLLONESHOT;
		Piece p = t.memory.structure(t.actor, &event, sizeof(event));
		t.actor.begin("epoll_ctl(%d, %d, %s)", op, file.fd, p.kind);
		int ret = epoll_ctl(set, op, file.fd, reinterpret_cast<epoll_event *>(p.start));
		Allowed allowed{EEXIST, ENOENT, EBADF, EINVAL, EPERM};
		allowed.add_if(p.may_fail, {EFAULT});
		t.actor.expect("epoll_ctl", ret < 0 ? -errno : 0, allowed);
	}
	epoll_event events[4];
	Piece p = t.memory.structure(t.actor, events, sizeof(events));
	t.actor.begin("epoll_wait(%s)", p.kind);
	int n = epoll_wait(set, reinterpret_cast<epoll_event *>(p.start),
			   t.actor.one_of({0, -1, 1, 4, 4, INT_MAX}), int(t.actor.below(3)));
	t.actor.expect("epoll_wait", n < 0 ? -errno : n, {EINTR, EFAULT, EINVAL});
	close(set);
}

} // namespace

void wait_for(Thread &t)
{
	switch (t.actor.below(3)) {
	case 0: poll_one(t); return;
	case 1: select_one(t); return;
	case 2: epoll_one(t); return;
	}
}

// --- the program ----------------------------------------------------------------------

namespace
{

// Where calls wait for each other: what lies in the channels goes.
void drain(const std::vector<Node> &nodes)
{
	static std::vector<uint8_t> buffer(2 << 20);
	for (const Node &node : nodes) {
		if (node.mapping)
			continue;
		int fd = open(node.path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC);
		if (fd < 0)
			continue;
		for (int i = 0; i < 64 && read(fd, buffer.data(), buffer.size()) > 0; i++)
			;
		close(fd);
	}
}

unsigned open_files()
{
	unsigned count = 0;
	for (int fd = 0; fd < 1024; fd++)
		count += fcntl(fd, F_GETFD) >= 0;
	return count;
}

unsigned long long pinned_kib()
{
	std::ifstream file("/proc/self/status");
	for (std::string line; std::getline(file, line);)
		if (line.rfind("VmPin:", 0) == 0)
			return std::strtoull(line.c_str() + 6, nullptr, 10);
	die("there is no VmPin");
}

// A worker does it, once the last descriptor of a closed file has ended.
bool unpinned()
{
	for (int i = 0; i < 1000 && pinned_kib(); i++)
		usleep(10000);
	return pinned_kib() == 0;
}

int expect_seen(const char *kind, const char *outcome)
{
	if (seen(kind, outcome))
		return 0;
	std::printf("wrong: not one %s gave %s\n", kind, *outcome ? outcome : "success");
	return 1;
}

} // namespace

int main(int argc, char **argv)
{
	Options options = parse_options(argc, argv, usage);
	if (options.rest.empty())
		die("%s", usage);
	rlimit files{1024, 1024};
	setrlimit(RLIMIT_NOFILE, &files);
	std::vector<Node> nodes;
	gid_t group = 0;
	for (const char *path : options.rest) {
		struct stat st;
		Node node{path, false, {}, {}};
		int fd = open(path, O_RDWR | O_CLOEXEC);
		if (fd < 0 || fstat(fd, &st))
			die("%s: %s", path, errno_name(errno));
		if (ioctl(fd, KDIRECT_IOC_MAP_INFO, &node.map) == 0) {
			node.mapping = true;
			node.info.eager_limit = node.map.eager_limit;
			node.info.max_message = 1 << 20;
		} else if (ioctl(fd, KDIRECT_IOC_INFO, &node.info)) {
			die("%s: %s", path, errno_name(errno));
		}
		close(fd);
		if (!nodes.empty() && node.mapping != nodes[0].mapping)
			die("channels, or mappings");
		group = st.st_gid;
		nodes.push_back(node);
	}
	std::printf("# attacking %zu nodes\n", nodes.size());
	std::fflush(stdout);
	if (options.nobody)
		become_nobody(group);
	unsigned files_before = open_files();
	int status;
	{
		Shifting shifting;
		Attack attack{options, nodes, shifting};
		status = run(
			options,
			[&](Actor &actor) -> std::function<void(Actor &)> {
				auto thread = std::make_shared<Thread>(attack, actor);
				return [thread](Actor &) { thread->call(); };
			},
			[&] { drain(nodes); });
	}
	collect_sockets();
	unsigned files_after = open_files();
	print_outcomes();
	if (files_after != files_before) {
		std::printf("wrong: %u files were open before, %u after\n", files_before,
			    files_after);
		status = 1;
	}
	// A generator that only ever fails at the door finds nothing.
	static const std::vector<const char *> of_channels{"read", "write", "readv", "writev",
							   "ping", "info",  "flags"};
	static const std::vector<const char *> of_mappings{
		"read",   "write",      "pread",  "pwrite",   "readv",
		"writev", "buffer set", "submit", "map info", "descriptor"};
	if (options.count * options.threads >= 4000 && !options.ending)
		for (const char *kind : nodes[0].mapping ? of_mappings : of_channels) {
			status |= expect_seen(kind, "");
			status |= expect_seen(kind, "EFAULT");
		}
	if (nodes[0].mapping && !unpinned()) {
		std::printf("wrong: memory stays pinned: %llu KiB\n", pinned_kib());
		status = 1;
	}
	std::printf("hostile_calls: %s\n", status ? "something was wrong" : "nothing was wrong");
	return status;
}
