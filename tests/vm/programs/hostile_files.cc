// SPDX-License-Identifier: GPL-2.0-only
#include "hostile_files.h"

#include <climits>
#include <sys/uio.h>
#include <unistd.h>

Thread::Thread(Attack &a, Actor &who) : attack(a), actor(who), memory(a.shifting)
{
	for (Target &target : own_)
		target = {-1, &a.nodes[0], false, false, false, true, false, false, false, {}};
	for (unsigned i = 0; i < std::size(own_); i++)
		reopen();
	replace_shared();
}

Thread::~Thread()
{
	for (Target &target : own_)
		if (target.fd >= 0)
			close(target.fd);
	for (int i = 0; i < nr_shared; i++)
		close(first_shared + i);
}

void Thread::reopen()
{
	static const int modes[] = {O_RDWR, O_RDWR, O_RDWR, O_RDWR, O_RDONLY, O_WRONLY, 3};
	static const int odd[] = {O_APPEND,  O_SYNC,      O_DSYNC,   O_DIRECT,    O_ASYNC,
				  O_PATH,    O_TRUNC,     O_CREAT,   O_EXCL,      O_NOCTTY,
				  O_NOATIME, O_DIRECTORY, O_TMPFILE, O_LARGEFILE, O_NOFOLLOW};
	Target &target = own_[actor.below(std::size(own_))];
	const Node &node = attack.nodes[actor.below(attack.nodes.size())];
	int mode = actor.one_of(modes);
	int flags = mode | O_CLOEXEC | (actor.below(4) ? O_NONBLOCK : 0);
	for (unsigned n = unsigned(actor.below(3)); n; n--)
		flags |= actor.one_in(2) ? actor.one_of(odd) : 0;
	if (attack.options.ending)
		flags &= ~O_CREAT; // no file where the node is gone
	if (target.asked && target.asked->known && !target.exposed && target.fd >= 0 &&
	    actor.one_in(2))
		finish_asked(*this, target);
	if (target.fd >= 0) {
		actor.begin("close(%d)", target.fd);
		actor.expect("close", close(target.fd) ? -errno : 0, {});
	}
	actor.begin("open(%s, %#o)", node.path.c_str(), flags);
	int fd = open(node.path.c_str(), flags, 0);
	Allowed allowed{};
	allowed.add_if(flags & O_DIRECT, {EINVAL});
	allowed.add_if(flags & O_DIRECTORY, {ENOTDIR, EINVAL});
	allowed.add_if(flags & O_EXCL, {EEXIST});
	allowed.add_if(flags & O_NOATIME, {EPERM});
	// the sticky directory of another user: protected_regular
	allowed.add_if(flags & O_CREAT, {EACCES});
	allowed.add_if(attack.options.ending, {ENOENT, ENXIO, ENODEV, EACCES});
	allowed.add_if(attack.options.ending && node.mapping, {ESTALE, EPIPE});
	actor.expect("open", fd < 0 ? -errno : fd, allowed);
	bool path = flags & O_PATH;
	target = {fd,
		  &node,
		  fd >= 0 && !path && (mode == O_RDWR || mode == O_RDONLY),
		  fd >= 0 && !path && (mode == O_RDWR || mode == O_WRONLY),
		  bool(flags & O_NONBLOCK),
		  true,
		  fd >= 0 && !path,
		  false,
		  false,
		  {}};
	if (node.mapping && target.open)
		target.asked = std::make_shared<Asked>();
}

void Thread::replace_shared()
{
	int fd = first_shared + int(actor.below(nr_shared));
	Target &own = own_[actor.below(std::size(own_))];
	bool close_it = actor.one_in(3) || own.fd < 0;
	actor.begin("%s %d", close_it ? "close" : "dup over", fd);
	own.exposed |= !close_it;
	int ret = close_it ? close(fd) : dup3(own.fd, fd, O_CLOEXEC);
	actor.expect("dup", ret < 0 ? -errno : 0, {EBADF, EBUSY});
}

Target &Thread::target(bool own)
{
	if (!own && actor.one_in(5)) {
		shared_ = {first_shared + int(actor.below(nr_shared)),
			   &attack.nodes[0],
			   true,
			   true,
			   false,
			   false,
			   true,
			   false,
			   false,
			   {}};
		return shared_;
	}
	return own_[actor.below(std::size(own_))];
}

void Thread::call()
{
	uint64_t which = actor.below(100);
	if (which < 40)
		transfer(*this);
	else if (which < 60)
		control(*this);
	else if (which < 68)
		elsewhere(*this);
	else if (which < 76)
		wait_for(*this);
	else if (which < 84)
		ring(*this);
	else if (which < 88)
		aio(*this);
	else if (which < 90)
		process(*this);
	else if (which < 95)
		reopen();
	else
		replace_shared();
}

size_t length(Thread &t)
{
	const kdirect_info &info = t.attack.nodes[0].info;
	const size_t lengths[] = {
		0,
		1,
		2,
		4095,
		4096,
		4097,
		info.eager_limit - 1,
		info.eager_limit,
		info.eager_limit + 1,
		info.max_message - 1,
		info.max_message,
		info.max_message + 1,
		2 * size_t(info.max_message),
		INT_MAX,
		size_t(INT_MAX) + 1,
		UINT_MAX,
		size_t(1) << 32,
		SSIZE_MAX,
		size_t(SSIZE_MAX) + 1,
		SIZE_MAX,
	};
	switch (t.actor.below(4)) {
	case 0: return t.actor.one_of(lengths);
	case 1: return 1 + t.actor.below(info.max_message);
	default: return 1 + t.actor.below(3 * info.eager_limit);
	}
}

Vector make_vector(Thread &t, bool out)
{
	static const unsigned counts[] = {0, 1, 1, 2, 2, 3, 3, 8, 9, 64, 1024, 1025};
	Vector v;
	unsigned count = t.actor.one_of(counts);
	for (unsigned i = 0; i < count; i++) {
		size_t len = count > 64          ? t.actor.below(2000)
			     : t.actor.one_in(3) ? length(t)
						 : t.actor.below(9000);
		Piece p = t.actor.one_in(2 * count) ? t.memory.piece(t.actor, len, out)
						    : t.memory.good(t.actor, len);
		v.vecs.push_back({p.start, len});
		v.may_work &= p.may_work;
		v.may_fail |= p.may_fail;
		v.overflows |= len > SSIZE_MAX;
		v.total = v.total + len < v.total ? SIZE_MAX : v.total + len;
	}
	if (count > 1024)
		v.overflows = true;
	return v;
}

Allowed transfer_errors(const Thread &t, const Target &file, bool out, size_t len, bool may_fail)
{
	const kdirect_info &info = file.node->info;
	Allowed allowed{};
	allowed.add_if(!(out ? file.writes : file.reads) || !file.known, {EBADF});
	if (file.node->mapping) {
		allowed.add_if(file.nowait, {EAGAIN});
		allowed.add_if(out, {ENOSPC});
		allowed.add_if(may_fail || len > SSIZE_MAX, {EFAULT});
		// past the largest place that there is
		allowed.add_if(len > SSIZE_MAX / 2, {EINVAL});
		allowed.add_if(t.attack.options.ending, {ESTALE, ENODEV, EPIPE, EIO});
		return allowed;
	}
	allowed.add_if(file.may_not_block(), {EAGAIN});
	allowed.add_if(file.may_block(), {EINTR});
	allowed.add_if(may_fail || len > SSIZE_MAX, {EFAULT});
	allowed.add_if(len > SSIZE_MAX, {EINVAL});
	if (out) {
		allowed.add_if(len > info.max_message, {EMSGSIZE});
		// a large message from memory that cannot be pinned waits for a copy
		allowed.add_if(len > info.eager_limit && file.may_not_block(), {ENOMEM});
		allowed.add_if(t.attack.options.ending, {EPIPE});
	} else {
		allowed.add_if(t.attack.options.ending,
			       {ENODEV, ECONNRESET, ETIMEDOUT, EPROTO, EIO, ENOTCONN});
	}
	return allowed;
}

void transferred(Thread &t, const char *kind, const Target &file, bool out, ssize_t n, size_t len,
		 bool may_work, const Allowed &allowed)
{
	t.actor.expect(kind, n < 0 ? -errno : n, allowed);
	if (n < 0)
		return;
	bool dead = file.fd < 0 || !(out ? file.writes : file.reads);
	if (dead)
		t.actor.wrong("succeeded with %zd on a file that is not open for it", n);
	else if (file.node->mapping) {
		uint64_t most = std::min<uint64_t>(len, file.node->map.size);
		if (uint64_t(n) > most)
			t.actor.wrong("%zd bytes of %zu are done", n, len);
		else if (size_t(n) == len && len && !may_work)
			t.actor.wrong("memory that is not there was used");
	} else if (out && size_t(n) != len)
		t.actor.wrong("a message of %zu bytes was taken as one of %zd", len, n);
	else if (out && len > file.node->info.max_message && file.known)
		t.actor.wrong("a message of %zu bytes was sent", len);
	else if (!out && size_t(n) > len)
		t.actor.wrong("%zd bytes were read, of %zu", n, len);
	else if (!out && n == 0 && len && !t.attack.options.ending)
		t.actor.wrong("read the end of a channel that has not ended");
	else if (out && !may_work && len)
		t.actor.wrong("a message was sent from memory that is not there");
}
