// SPDX-License-Identifier: GPL-2.0-only
// ioctl and fcntl, and calls that a channel does not have.
#include "hostile_files.h"

#include <climits>
#include <csignal>
#include <dirent.h>
#include <linux/fs.h>
#include <sys/file.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/uio.h>
#include <termios.h>
#include <unistd.h>

namespace
{

// --- ioctl ----------------------------------------------------------------------------

template <class T>
T mutated(Actor &actor, T value)
{
	auto *bytes = reinterpret_cast<uint8_t *>(&value);
	for (unsigned n = unsigned(actor.below(3)); n; n--)
		bytes[actor.below(sizeof(value))] = uint8_t(actor.next_bits(8));
	return value;
}

void ping(Thread &t, Target &file)
{
	const kdirect_info &info = file.node->info;
	kdirect_ping ping{};
	ping.size =
		t.actor.one_of({0u, 1u, 1u, 64u, info.eager_limit, info.eager_limit + 1, UINT_MAX});
	ping.flags = t.actor.one_of({0u, 0u, 0u, KDIRECT_PING_POLL, 2u, 0x80000000u});
	ping.timeout_ns =
		t.actor.one_of({uint64_t(0), uint64_t(1), uint64_t(1000000), uint64_t(60000000000),
				uint64_t(60000000001), uint64_t(LLONG_MAX), uint64_t(ULLONG_MAX)});
	if (t.actor.one_in(10))
		ping.reserved[t.actor.below(3)] = 1U << t.actor.below(32);
	if (t.actor.one_in(10))
		ping = mutated(t.actor, ping);
	bool reserved = ping.reserved[0] || ping.reserved[1] || ping.reserved[2];
	bool wrong = reserved || ping.size == 0 || (ping.flags & ~KDIRECT_PING_FLAGS) ||
		     ping.timeout_ns > 60000000000;
	Piece p = t.memory.structure(t.actor, &ping, sizeof(ping));
	bool sure = !p.may_fail && file.known;
	t.actor.begin("ioctl(%d, PING size %u flags %#x timeout %llu, %s)", file.fd, ping.size,
		      ping.flags, static_cast<unsigned long long>(ping.timeout_ns), p.kind);
	int ret = ioctl(file.fd, KDIRECT_IOC_PING, p.start);
	int err = ret ? errno : 0;
	Allowed allowed{ETIMEDOUT, EINTR};
	allowed.add_if(!file.open || !file.known, {EBADF});
	allowed.add_if(!(file.reads && file.writes) || !file.known, {EPERM});
	allowed.add_if(wrong || p.may_fail, {EINVAL});
	allowed.add_if(ping.size > info.eager_limit || p.may_fail, {EMSGSIZE});
	allowed.add_if((ping.flags & KDIRECT_PING_POLL) || p.may_fail, {EOPNOTSUPP});
	allowed.add_if(p.may_fail, {EFAULT});
	allowed.add_if(t.attack.options.ending, {EPIPE});
	t.actor.expect("ping", -err, allowed);
	if (!err && sure && (wrong || ping.size > info.eager_limit))
		t.actor.wrong("a ping that is not allowed was answered");
	if (!err && !(file.reads && file.writes) && file.known)
		t.actor.wrong("a file that is not open for both sent a ping");
}

void flags(Thread &t, Target &file)
{
	uint32_t value = t.actor.one_of(
		{0u, 0u, KDIRECT_OPEN_POLL, KDIRECT_OPEN_HYBRID, 0x80000000u, UINT_MAX});
	Piece p = t.memory.structure(t.actor, &value, sizeof(value));
	bool set = t.actor.one_in(2);
	t.actor.begin("ioctl(%d, %s_FLAGS %#x, %s)", file.fd, set ? "SET" : "GET", value, p.kind);
	int ret = ioctl(file.fd, set ? KDIRECT_IOC_SET_FLAGS : KDIRECT_IOC_GET_FLAGS, p.start);
	int err = ret ? errno : 0;
	Allowed allowed{};
	allowed.add_if(!file.open || !file.known, {EBADF});
	allowed.add_if(p.may_fail, {EFAULT});
	bool unknown = value & ~KDIRECT_OPEN_FLAGS;
	allowed.add_if(set && (unknown || p.may_fail), {EINVAL});
	allowed.add_if(set && ((value & KDIRECT_OPEN_FLAGS) || p.may_fail), {EOPNOTSUPP});
	t.actor.expect("flags", -err, allowed);
	if (!err && set && unknown && !p.may_fail)
		t.actor.wrong("unknown flags were taken");
	uint32_t got = 0;
	if (!err && !set && !p.may_fail) {
		std::memcpy(&got, p.start, sizeof(got));
		if (got & ~KDIRECT_OPEN_FLAGS)
			t.actor.wrong("the flags are %#x", got);
	}
}

void info(Thread &t, Target &file)
{
	kdirect_info found{};
	Piece p = t.memory.structure(t.actor, &found, sizeof(found));
	t.actor.begin("ioctl(%d, INFO, %s)", file.fd, p.kind);
	int ret = ioctl(file.fd, KDIRECT_IOC_INFO, p.start);
	int err = ret ? errno : 0;
	Allowed allowed{};
	allowed.add_if(!file.open || !file.known, {EBADF});
	allowed.add_if(p.may_fail, {EFAULT});
	t.actor.expect("info", -err, allowed);
	if (err || p.may_fail || !file.known)
		return;
	std::memcpy(&found, p.start, sizeof(found));
	if (!t.attack.options.ending && std::memcmp(&found, &file.node->info, sizeof(found)))
		t.actor.wrong("the channel's description has changed");
}

// All that is none of the commands, most of it nearly: another size, direction,
// number or type. Bit 63..32 of a command do not count.
void no_command(Thread &t, Target &file)
{
	static const uint32_t ours[] = {KDIRECT_IOC_SET_FLAGS,  KDIRECT_IOC_GET_FLAGS,
					KDIRECT_IOC_INFO,       KDIRECT_IOC_PING,
					KDIRECT_IOC_SUBMIT,     KDIRECT_IOC_BUFFER_SET,
					KDIRECT_IOC_BUFFER_DEL, KDIRECT_IOC_MAP_INFO,
					KDIRECT_IOC_RING_SETUP, KDIRECT_IOC_RING_ENTER};
	static const uint32_t common[] = {TCGETS, TIOCGWINSZ, FIGETBSZ, BLKGETSIZE, 0, 0xffffffff};
	uint32_t command;
	switch (t.actor.below(6)) {
	case 0: command = uint32_t(t.actor.next_bits(32)); break;
	case 1: command = t.actor.one_of(common); break;
	case 2: // our type, any number
		command = uint32_t(_IOC(t.actor.below(4), KDIRECT_IOC_MAGIC, t.actor.below(256),
					t.actor.below(1 << 14)));
		break;
	default: command = t.actor.one_of(ours) ^ (1U << t.actor.below(32)); break;
	}
	for (uint32_t own : ours)
		if (command == own)
			return;
	// What these do is the file system's; freezing it is not for a test.
	if (_IOC_TYPE(command) == 'X' || _IOC_TYPE(command) == 'f' || _IOC_TYPE(command) == 0x94 ||
	    (_IOC_TYPE(command) == 'T' && _IOC_NR(command) >= 0x50))
		return;
	Piece p = t.memory.piece(t.actor, 256, t.actor.one_in(2));
	t.actor.begin("ioctl(%d, %#x, %s)", file.fd, command, p.kind);
	int ret = ioctl(file.fd, command, p.start);
	Allowed allowed{ENOTTY};
	allowed.add_if(!file.open || !file.known, {EBADF});
	// FIGETBSZ, FIBMAP and their like are answered before they reach the module
	allowed.add_if(_IOC_TYPE(command) == 0, {EFAULT, EINVAL, EPERM, EBADF});
	t.actor.expect("ioctl", ret < 0 ? -errno : ret, allowed);
	if (ret >= 0 && _IOC_TYPE(command) == KDIRECT_IOC_MAGIC)
		t.actor.wrong("an unknown command succeeded");
}

// --- fcntl ----------------------------------------------------------------------------

void fcntl_one(Thread &t, Target &file)
{
	static const int commands[] = {
		F_GETFD,      F_GETFL,     F_SETOWN,    F_GETOWN,   F_SETSIG,
		F_GETSIG,     F_SETLEASE,  F_GETLEASE,  F_NOTIFY,   F_SETPIPE_SZ,
		F_GETPIPE_SZ, F_ADD_SEALS, F_GET_SEALS, 1030 + 999, -1};
	int command = t.actor.one_of(commands);
	long value = t.actor.one_of({0L, 1L, 2L, -1L, 4096L, 1L << 20, 1L << 31});
	if (command == F_SETOWN)
		value = 0;
	if (command == F_SETSIG && value > 0)
		value = SIGIO;
	t.actor.begin("fcntl(%d, %d, %ld)", file.fd, command, value);
	int ret = fcntl(file.fd, command, value);
	t.actor.expect("fcntl", ret < 0 ? -errno : ret,
		       {EBADF, EINVAL, EACCES, EPERM, ENOTDIR, EBUSY, EAGAIN});
}

// Which of the flags hold afterwards is what the kernel says.
void set_flags(Thread &t, Target &file)
{
	int flags = t.actor.one_of({O_NONBLOCK, O_NONBLOCK, O_NONBLOCK, 0, O_NONBLOCK | O_APPEND,
				    O_NONBLOCK | O_ASYNC, O_DIRECT, O_NOATIME, -1});
	t.actor.begin("fcntl(%d, F_SETFL, %#x)", file.fd, flags);
	int ret = fcntl(file.fd, F_SETFL, flags);
	Allowed allowed{EBADF, EPERM};
	allowed.add_if(flags & O_DIRECT, {EINVAL});
	t.actor.expect("setfl", ret < 0 ? -errno : 0, allowed);
	int now = fcntl(file.fd, F_GETFL);
	if (file.known && now >= 0)
		file.nonblocking = now & O_NONBLOCK;
	if (now >= 0 && (now & O_DIRECT) && file.known && !file.node->mapping)
		t.actor.wrong("O_DIRECT is set");
}

void lock_one(Thread &t, Target &file)
{
	struct flock lock {
	};
	lock.l_type = short(t.actor.one_of({F_RDLCK, F_WRLCK, F_UNLCK, 99}));
	lock.l_whence = short(t.actor.one_of({SEEK_SET, SEEK_CUR, SEEK_END, 9}));
	lock.l_start = off_t(t.actor.below(10));
	lock.l_len = off_t(t.actor.below(10));
	int command = t.actor.one_of({F_SETLK, F_SETLKW, F_GETLK, F_OFD_SETLK});
	if (t.actor.one_in(3)) {
		t.actor.begin("flock(%d)", file.fd);
		int ret = flock(file.fd,
				t.actor.one_of({LOCK_SH, LOCK_EX, LOCK_UN, LOCK_EX | LOCK_NB, 77}));
		t.actor.expect("flock", ret < 0 ? -errno : 0, {EBADF, EINTR, EINVAL, EWOULDBLOCK});
		return;
	}
	t.actor.begin("fcntl(%d, lock %d)", file.fd, command);
	int ret = fcntl(file.fd, command, &lock);
	t.actor.expect("lock", ret < 0 ? -errno : 0,
		       {EBADF, EINTR, EINVAL, EAGAIN, EACCES, EDEADLK, EOVERFLOW});
}

// --- what there is not ------------------------------------------------------------------

void map(Thread &t, Target &file)
{
	int prot = int(t.actor.next_bits(4));
	static const int flags[] = {MAP_SHARED,
				    MAP_PRIVATE,
				    MAP_SHARED_VALIDATE,
				    MAP_SHARED_VALIDATE | MAP_SYNC,
				    MAP_SHARED | MAP_POPULATE,
				    MAP_PRIVATE | MAP_LOCKED,
				    MAP_SHARED | MAP_HUGETLB,
				    MAP_PRIVATE | MAP_NORESERVE,
				    MAP_PRIVATE | MAP_32BIT,
				    0};
	int flag = t.actor.one_of(flags);
	size_t len =
		t.actor.one_of({size_t(1), size_t(4096), size_t(1) << 20, size_t(0), SIZE_MAX});
	off_t at = t.actor.one_of({off_t(0), off_t(4096), off_t(1), off_t(LLONG_MAX) & ~4095});
	t.actor.begin("mmap(%d, %zu at %lld, %#x, %#x)", file.fd, len, static_cast<long long>(at),
		      unsigned(prot), unsigned(flag));
	void *mem = mmap(nullptr, len, prot, flag, file.fd, at);
	bool ok = mem != MAP_FAILED;
	t.actor.expect(
		"mmap", ok ? 0 : -errno,
		{ENODEV, EACCES, EINVAL, ENOMEM, EPERM, EBADF, EOVERFLOW, EOPNOTSUPP, EAGAIN});
	// nothing else is wrong with it
	bool proper = file.known && file.reads && file.writes && len && len < SIZE_MAX && at >= 0 &&
		      at <= 4096 && at % 4096 == 0 && !(prot & PROT_EXEC) &&
		      (flag == MAP_SHARED || flag == MAP_PRIVATE);
	if (ok) {
		t.actor.wrong("was mapped");
		munmap(mem, len);
	} else if (proper && errno != ENODEV) {
		t.actor.wrong("gave %s", errno_name(errno));
	}
}

void between_files(Thread &t, Target &file)
{
	int pipe[2];
	if (pipe2(pipe, O_CLOEXEC | O_NONBLOCK))
		return;
	char byte = 'x';
	(void)!write(pipe[1], &byte, 1);
	Target &other = t.target();
	iovec vec{&byte, 1};
	unsigned flags = unsigned(t.actor.next_bits(5));
	const char *kind;
	ssize_t n;
	switch (t.actor.below(6)) {
	case 0:
		t.actor.begin("%s(%d)", kind = "sendfile out of", file.fd);
		n = sendfile(pipe[1], file.fd, nullptr, 4096);
		break;
	case 1:
		t.actor.begin("%s(%d, %d)", kind = "sendfile", file.fd, other.fd);
		n = sendfile(file.fd, other.fd, nullptr, 4096);
		break;
	case 2:
		t.actor.begin("%s(%d)", kind = "splice into", file.fd);
		n = splice(pipe[0], nullptr, file.fd, nullptr, 4096, flags);
		break;
	case 3:
		t.actor.begin("%s(%d)", kind = "splice out of", file.fd);
		n = splice(file.fd, nullptr, pipe[1], nullptr, 4096, flags);
		break;
	case 4:
		t.actor.begin("%s(%d)", kind = "tee", file.fd);
		n = tee(file.fd, other.fd, 4096, flags);
		break;
	default:
		t.actor.begin("%s(%d)", kind = "vmsplice", file.fd);
		n = vmsplice(file.fd, &vec, 1, flags);
		break;
	}
	t.actor.expect(kind, n < 0 ? -errno : n, {EINVAL, EBADF, EAGAIN, ESPIPE});
	if (n >= 0)
		t.actor.wrong("moved %zd bytes", n);
	close(pipe[0]);
	close(pipe[1]);
}

void no_regular_file(Thread &t, Target &file)
{
	Target &other = t.target();
	const char *kind;
	off_t ret;
	switch (t.actor.below(8)) {
	case 0:
		t.actor.begin("%s(%d)", kind = "lseek", file.fd);
		ret = lseek(file.fd,
			    t.actor.one_in(2) ? off_t(t.actor.below(file.node->map.size + 2))
					      : off_t(t.actor.next_bits(64 - 1)),
			    int(t.actor.below(7)));
		break;
	case 1:
		t.actor.begin("%s(%d)", kind = "ftruncate", file.fd);
		ret = ftruncate(file.fd, off_t(t.actor.below(2)));
		break;
	case 2:
		t.actor.begin("%s(%d)", kind = "fallocate", file.fd);
		ret = fallocate(file.fd, int(t.actor.below(4)), 0, 1);
		break;
	case 3:
		t.actor.begin("%s(%d)", kind = "fsync", file.fd);
		ret = t.actor.one_in(2) ? fsync(file.fd) : fdatasync(file.fd);
		break;
	case 4:
		t.actor.begin("%s(%d)", kind = "sync_file_range", file.fd);
		ret = sync_file_range(file.fd, 0, 0, 7);
		break;
	case 5:
		t.actor.begin("%s(%d)", kind = "readahead", file.fd);
		ret = readahead(file.fd, 0, 4096);
		break;
	case 6:
		t.actor.begin("%s(%d)", kind = "copy_file_range", file.fd);
		ret = copy_file_range(file.fd, nullptr, other.fd, nullptr, 4096, 0);
		break;
	default: {
		char entries[256];
		t.actor.begin("%s(%d)", kind = "getdents", file.fd);
		ret = getdents64(file.fd, entries, sizeof(entries));
		break;
	}
	}
	t.actor.expect(kind, ret < 0 ? -errno : ret,
		       {ESPIPE, EINVAL, EBADF, ENODEV, EOPNOTSUPP, ENOTDIR, EXDEV, EPERM});
	bool seeks = file.node->mapping && !std::strcmp(kind, "lseek");
	if (ret >= 0 && (!seeks || uint64_t(ret) > file.node->map.size))
		t.actor.wrong("succeeded with %lld", static_cast<long long>(ret));
}

} // namespace

void control(Thread &t)
{
	Target &file = t.target();
	unsigned which = unsigned(t.actor.below(10));
	if (file.node->mapping && which < 4) {
		map_control(t, file);
		return;
	}
	switch (which) {
	case 0:
	case 1: ping(t, file); return;
	case 2: flags(t, file); return;
	case 3: info(t, file); return;
	case 4:
	case 5:
	case 6: no_command(t, file); return;
	case 7: set_flags(t, file); return;
	case 8: fcntl_one(t, file); return;
	default: lock_one(t, file); return;
	}
}

void elsewhere(Thread &t)
{
	Target &file = t.target();
	switch (t.actor.below(3)) {
	case 0: map(t, file); return;
	case 1: between_files(t, file); return;
	default: no_regular_file(t, file); return;
	}
}
