// SPDX-License-Identifier: GPL-2.0-only
#include "hostile_memory.h"

#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace
{

constexpr size_t page = 4096;
constexpr size_t guarded_size = 16 * page;
constexpr size_t structures_size = 8 * page;

// What a call may run into behind the end: no other mapping, whatever happens.
constexpr size_t gap = 2 << 20;

uint8_t *map(size_t size, int prot, int flags = MAP_PRIVATE | MAP_ANONYMOUS, int fd = -1)
{
	void *space = mmap(nullptr, size + gap, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (space == MAP_FAILED || mmap(space, size, prot, flags | MAP_FIXED, fd, 0) != space)
		die("mmap: %s", errno_name(errno));
	return static_cast<uint8_t *>(space);
}

} // namespace

Shifting::Shifting()
{
	flipping = map(size, PROT_READ | PROT_WRITE);
	file_ = memfd_create("hostile", MFD_CLOEXEC);
	if (file_ < 0 || ftruncate(file_, size))
		die("memfd: %s", errno_name(errno));
	shrinking = map(size, PROT_READ | PROT_WRITE, MAP_SHARED, file_);

	uffdio_api api{UFFD_API, 0, 0};
	faults_ = int(syscall(SYS_userfaultfd, O_CLOEXEC | O_NONBLOCK));
	// Who may only have faults of its own sees that the kernel's give EFAULT.
	if (faults_ < 0)
		faults_ = int(syscall(SYS_userfaultfd, O_CLOEXEC | O_NONBLOCK | 1));
	if (faults_ >= 0 && ioctl(faults_, UFFDIO_API, &api) == 0) {
		slow = map(size, PROT_READ | PROT_WRITE);
		uffdio_register where{
			{reinterpret_cast<uintptr_t>(slow), size}, UFFDIO_REGISTER_MODE_MISSING, 0};
		if (ioctl(faults_, UFFDIO_REGISTER, &where))
			die("userfaultfd: %s", errno_name(errno));
		bringer_ = std::thread([this] { bring(); });
	}
	flipper_ = std::thread([this] { flip(); });
}

Shifting::~Shifting()
{
	stop_ = true;
	flipper_.join();
	if (bringer_.joinable())
		bringer_.join();
	if (faults_ >= 0)
		close(faults_);
	close(file_);
	for (uint8_t *mem : {flipping, shrinking, slow})
		if (mem)
			munmap(mem, size + gap);
}

void Shifting::flip()
{
	Random random(3);
	const int prots[] = {PROT_NONE, PROT_READ, PROT_READ | PROT_WRITE};
	while (!stop_) {
		size_t at = random.between(0, size / page - 1) * page;
		size_t len = random.between(1, 8) * page;
		len = std::min(len, size - at);
		switch (random.next() % 6) {
		case 0: mprotect(flipping + at, len, prots[random.next() % 3]); break;
		case 1: // as good as unmapped, and nothing else comes to lie there
			mmap(flipping + at, len, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED,
			     -1, 0);
			break;
		case 2: madvise(flipping + at, len, MADV_DONTNEED); break;
		case 3:
		case 4:
			mmap(flipping + at, len, PROT_READ | PROT_WRITE,
			     MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
			break;
		case 5:
			if (ftruncate(file_, off_t(random.next() % 2 ? size : at)))
				die("ftruncate: %s", errno_name(errno));
			break;
		}
		usleep(500);
	}
	// What is left of the file's mapping must not be touched any more.
	(void)!ftruncate(file_, size);
}

void Shifting::bring()
{
	Random random(4);
	while (!stop_) {
		pollfd ready{faults_, POLLIN, 0};
		uffd_msg message;
		if (poll(&ready, 1, 20) != 1 || read(faults_, &message, sizeof(message)) < 0)
			continue;
		if (message.event != UFFD_EVENT_PAGEFAULT)
			continue;
		usleep(useconds_t(random.between(0, 10000)));
		uffdio_zeropage zero{{message.arg.pagefault.address & ~(page - 1), page}, 0, 0};
		ioctl(faults_, UFFDIO_ZEROPAGE, &zero);
	}
	// Nobody waits any more, but pages must not be missing for ever either.
	uffdio_range all{reinterpret_cast<uintptr_t>(slow), size};
	ioctl(faults_, UFFDIO_UNREGISTER, &all);
}

Memory::Memory(Shifting &shifting) : shifting_(shifting)
{
	good_ = map(good_size, PROT_READ | PROT_WRITE);
	read_only_ = map(good_size, PROT_READ);
	none_ = map(guarded_size, PROT_NONE);
	guarded_ = map(guarded_size, PROT_READ | PROT_WRITE);
	structures_ = map(structures_size, PROT_READ | PROT_WRITE);
}

Memory::~Memory()
{
	munmap(good_, good_size + gap);
	munmap(read_only_, good_size + gap);
	munmap(none_, guarded_size + gap);
	munmap(guarded_, guarded_size + gap);
	munmap(structures_, structures_size + gap);
}

Piece Memory::good(Actor &actor, size_t len)
{
	static const size_t offsets[] = {0, 0, 0, 1, 7, 64, 4095, 4096, 4097};
	size_t at = actor.one_of(offsets);
	bool fits = len <= good_size - at;
	return {"good memory", good_ + at, fits, !fits};
}

Piece Memory::piece(Actor &actor, size_t len, bool out)
{
	static const uint64_t nowhere[] = {
		0,
		1,
		0xfff,
		0x00007fffffffe000, // the last page of a process
		0x00007ffffffff000,
		0x00007ffffffffff8,
		0x0000800000000000, // not canonical
		0x8000000000000000,
		0xffff888000000000, // the kernel's memory, code, and the vsyscall page
		0xffffffff81000000,
		0xffffffffff600000,
		0xffffffffffffffff,
		0xfffffffffffff000,
	};
	bool none = len == 0;
	switch (actor.below(16)) {
	case 0:
	case 1: {
		uint64_t address = actor.one_of(nowhere);
		return {"no memory", reinterpret_cast<uint8_t *>(address), none, true};
	}
	case 2:
		return {"read-only memory", read_only_, none || (out && len <= good_size),
			!out || len > good_size};
	case 3: {
		// ends where its last bytes, or just it, are not there any more
		size_t inside = std::min<size_t>(len, guarded_size);
		size_t missing = actor.below(3) ? std::min<size_t>(actor.below(5000), inside) : 0;
		uint8_t *start = guarded_ + guarded_size - (inside - missing);
		bool whole = missing == 0 && len <= guarded_size;
		return {"memory that ends", start, whole || none, !whole};
	}
	case 4: return {"memory without access", none_, none, true};
	case 5:
	case 6:
		return {"memory that comes and goes", shifting_.flipping + actor.below(page), true,
			true};
	case 7: return {"a file that shrinks", shifting_.shrinking + actor.below(page), true, true};
	case 8:
		if (!shifting_.slow)
			break;
		madvise(shifting_.slow, Shifting::size, MADV_DONTNEED);
		return {"slow memory", shifting_.slow + actor.below(page), true, true};
	default: break;
	}
	return good(actor, len);
}

Piece Memory::structure(Actor &actor, const void *content, size_t len)
{
	if (actor.one_in(4)) {
		Piece p = piece(actor, len, false);
		if (p.may_fail)
			return p;
	}
	// Where no transfer, not even one that a ring still has, writes over it.
	size_t left = structures_size - len;
	size_t at = actor.one_in(3) ? left : actor.below(64);
	std::memcpy(structures_ + at, content, len);
	return {at == left ? "memory's end" : "good memory", structures_ + at, true, false};
}
