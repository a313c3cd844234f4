// SPDX-License-Identifier: GPL-2.0-only
// Descriptors and fixed buffers that no sane program asks for, on the node of a mapping.
#include "hostile_files.h"

#include <climits>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <unistd.h>

namespace
{

constexpr size_t page = 4096;

constexpr size_t whole_pages(size_t bytes)
{
	return (bytes + page - 1) / page * page;
}

uint8_t *before_the_end(size_t size)
{
	void *mem = mmap(nullptr, size + page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (mem == MAP_FAILED || mprotect(mem, size, PROT_READ | PROT_WRITE))
		die("mmap: %s", errno_name(errno));
	return static_cast<uint8_t *>(mem);
}

constexpr size_t descs_size = whole_pages(Arrays::most * sizeof(kdirect_desc));
constexpr size_t completions_size = whole_pages(Arrays::most * sizeof(kdirect_completion));

// What ends a mapping, where somebody does that.
const Allowed ended{ESTALE, ENODEV, EPIPE};

bool atomic(uint8_t opcode)
{
	return opcode == KDIRECT_OP_CMP_SWAP || opcode == KDIRECT_OP_FETCH_ADD;
}

} // namespace

Arrays::Arrays()
	: descs_(before_the_end(descs_size)), completions_(before_the_end(completions_size))
{
}

Arrays::~Arrays()
{
	munmap(descs_, descs_size + page);
	munmap(completions_, completions_size + page);
}

kdirect_desc *Arrays::descs(size_t n) const
{
	return reinterpret_cast<kdirect_desc *>(descs_ + descs_size) - n;
}

kdirect_completion *Arrays::completions(size_t n) const
{
	return reinterpret_cast<kdirect_completion *>(completions_ + completions_size) - n;
}

namespace
{

// --- descriptors ------------------------------------------------------------------------

uint64_t place(Thread &t, uint64_t size, uint64_t len)
{
	const uint64_t odd[] = {size - 1,   size,       size + 1,       size - len, size - len + 1,
				1ULL << 32, 1ULL << 63, UINT64_MAX - 7, UINT64_MAX, 0};
	return t.actor.one_in(5) ? t.actor.one_of(odd) : t.actor.below(size);
}

uint32_t desc_length(Thread &t, const kdirect_map_info &map)
{
	const uint32_t lengths[] = {0,
				    1,
				    8,
				    4096,
				    map.eager_limit,
				    map.eager_limit + 1,
				    uint32_t(map.size),
				    KDIRECT_DESC_LENGTH_MAX,
				    KDIRECT_DESC_LENGTH_MAX + 1,
				    UINT_MAX};
	switch (t.actor.below(8)) {
	case 0: return t.actor.one_of(lengths);
	case 1: return uint32_t(1 + t.actor.below(700000));
	default: return uint32_t(1 + t.actor.below(2 * map.eager_limit));
	}
}

// The local memory of a transfer, and what comes of it if all else is right.
void local(Thread &t, const Asked &asked, kdirect_desc &d, Wish &wish)
{
	if (t.actor.one_in(3)) {
		static const uint32_t indexes[] = {0, 0, 1, 1, 2, 3, 255, 256, 65535};
		d.flags = KDIRECT_DESC_FIXED;
		d.buffer = uint16_t(t.actor.one_of(indexes));
		auto found = asked.buffers.find(d.buffer);
		uint64_t length = found == asked.buffers.end() ? 0 : found->second;
		d.addr = t.actor.one_in(8) ? t.actor.one_of({length, length - 1, uint64_t(-1)})
					   : t.actor.below(length + 1) / 2;
		wish.errnos.add_if(!length, {ENOENT});
		bool outside = d.addr > length || d.length > length - d.addr;
		wish.errnos.add_if(length && outside, {EFAULT});
		wish.must_fail |= !length || outside;
		return;
	}
	bool out = d.opcode == KDIRECT_OP_WRITE;
	Piece p = t.actor.one_in(3) ? t.memory.piece(t.actor, d.length, out)
				    : t.memory.good(t.actor, d.length);
	d.addr = uint64_t(uintptr_t(p.start));
	wish.may_work &= p.may_work;
	wish.errnos.add_if(p.may_fail || d.addr + d.length < d.addr, {EFAULT});
}

kdirect_desc make_desc(Thread &t, const Target &file, const Asked &asked, Wish &wish)
{
	const kdirect_map_info &map = file.node->map;
	kdirect_desc d{};
	wish = {0, 0, 0, true, false, false, {}};
	if (t.actor.one_in(12))
		wish.errnos.add({EINVAL, EOPNOTSUPP}),
			wish.must_fail = true, d.opcode = uint8_t(t.actor.one_of({0, 5, 128, 255}));
	else
		d.opcode = uint8_t(t.actor.one_of({1, 1, 1, 2, 2, 2, 3, 4}));
	bool whole = atomic(d.opcode);
	d.length = whole ? 8 : desc_length(t, map);
	d.remote = place(t, map.size, d.length);
	if (whole) {
		d.remote &= t.actor.one_in(8) ? ~0ULL : ~7ULL;
		d.operand = t.actor.next_bits(60);
		d.compare = d.opcode == KDIRECT_OP_CMP_SWAP ? t.actor.below(3) : 0;
		bool wrong = d.remote % 8;
		bool none = !(map.flags & KDIRECT_MAP_ATOMICS);
		wish.errnos.add_if(wrong, {EINVAL}).add_if(none, {EOPNOTSUPP});
		wish.must_fail |= wrong || none;
	} else {
		local(t, asked, d, wish);
	}
	bool writes = d.opcode != KDIRECT_OP_READ;
	bool refused = writes ? !file.writes || (map.flags & KDIRECT_MAP_READ_ONLY) : !file.reads;
	bool past = d.remote > map.size || d.length > map.size - d.remote;
	bool large = d.length > KDIRECT_DESC_LENGTH_MAX;
	wish.errnos.add_if(refused, {EACCES}).add_if(past, {ERANGE}).add_if(large, {EINVAL});
	wish.must_fail |= refused || past || large;
	if (t.actor.one_in(15)) {
		auto *bytes = reinterpret_cast<uint8_t *>(&d);
		bytes[t.actor.below(sizeof(d))] ^= uint8_t(1 << t.actor.below(8));
		wish.anything = true;
	}
	if (t.attack.options.ending)
		wish.errnos.add({ESTALE, ENODEV, EPIPE, EIO, EINTR});
	wish.opcode = d.opcode;
	wish.length = d.length;
	return d;
}

void completed(Thread &t, Asked &asked, const kdirect_completion &c)
{
	auto found = asked.wishes.find(c.user_data);
	if (found == asked.wishes.end()) {
		t.actor.wrong("%#llx completed twice, or was never submitted",
			      static_cast<unsigned long long>(c.user_data));
		return;
	}
	Wish wish = found->second;
	asked.wishes.erase(found);
	t.actor.tell("descriptor", c.result);
	bool failed = c.result < 0;
	if (c.opcode != wish.opcode || c.index != wish.index || (failed && c.old) ||
	    (c.status && c.result != -EIO))
		t.actor.wrong("descriptor %u, opcode %u completes as %u, opcode %u: %d", wish.index,
			      wish.opcode, c.index, c.opcode, c.result);
	if (c.flags || c.data)
		t.actor.wrong("a completion of a mapping says something of a raw channel's");
	if (!failed && c.result != int(wish.length))
		t.actor.wrong("%d of %u bytes are done", c.result, wish.length);
	if (wish.anything)
		return;
	if (failed && !wish.errnos.has(-c.result))
		t.actor.wrong("opcode %u, %u bytes: %s, allowed are: %s", wish.opcode, wish.length,
			      errno_name(-c.result), wish.errnos.text().c_str());
	if (!failed && (wish.must_fail || (!wish.may_work && wish.length)))
		t.actor.wrong("opcode %u, %u bytes, is done, and cannot be: %s", wish.opcode,
			      wish.length, wish.errnos.text().c_str());
}

// An array where it should be, or where memory comes and goes: then only the kernel knows
// what it has read.
uint64_t array(Thread &t, const void *good, size_t bytes, bool out, bool &sure)
{
	if (!t.actor.one_in(10))
		return uint64_t(uintptr_t(good));
	Piece p = t.memory.piece(t.actor, bytes, out);
	sure = false;
	if (out) {
		iovec from{const_cast<void *>(good), bytes}, to{p.start, bytes};
		(void)!process_vm_writev(getpid(), &from, 1, &to, 1, 0);
	}
	return uint64_t(uintptr_t(p.start));
}

// --- calls ------------------------------------------------------------------------------

void submit(Thread &t, Target &file)
{
	static const uint32_t counts[] = {0, 1, 1, 2, 3, 8, 9, 17, 40, 256, 300};
	Asked none;
	Asked &asked = file.asked && file.known && !file.exposed ? *file.asked : none;
	bool tracked = &asked != &none && asked.known;
	uint32_t n = t.actor.one_of(counts), room = t.actor.one_of(counts);
	kdirect_desc *descs = t.arrays.descs(n);
	std::vector<Wish> wishes(n);
	for (uint32_t i = 0; i < n; i++) {
		descs[i] = make_desc(t, file, asked, wishes[i]);
		descs[i].user_data = (uint64_t(t.actor.number) << 56) + ++t.descs;
		wishes[i].index = i;
	}
	bool sure = true;
	kdirect_submit batch{};
	batch.descs = array(t, descs, n * sizeof(*descs), true, sure);
	batch.completions = array(t, t.arrays.completions(room), room * sizeof(kdirect_completion),
				  false, sure);
	batch.nr_descs = n;
	batch.nr_completions = room;
	batch.min_completions = t.actor.one_in(2) ? 0 : uint32_t(t.actor.below(room + 1));
	batch.timeout_ns = t.actor.one_of({0, 1, 1000, 3000000});
	batch.flags = t.actor.one_in(3) ? KDIRECT_SUBMIT_POLL : 0;
	if (t.actor.one_in(12))
		batch.flags |= 1U << t.actor.below(32);
	if (t.actor.one_in(20))
		batch.reserved[t.actor.below(2)] = 1ULL << t.actor.below(64);
	if (t.actor.one_in(20))
		batch.min_completions = t.actor.one_of({room + 1, 257u, UINT_MAX});
	bool wrong = (batch.flags & ~KDIRECT_SUBMIT_FLAGS) || batch.reserved[0] ||
		     batch.reserved[1] || batch.min_completions > room ||
		     batch.min_completions > KDIRECT_DESC_ENTRIES;
	Piece p = t.memory.structure(t.actor, &batch, sizeof(batch));
	sure &= !p.may_fail;
	t.actor.begin("ioctl(%d, SUBMIT %u, room %u, %u at least, %#x, %s%s)", file.fd, n, room,
		      batch.min_completions, batch.flags, p.kind, sure ? "" : ", not sure");
	int err = ioctl(file.fd, KDIRECT_IOC_SUBMIT, p.start) ? errno : 0;
	Allowed allowed{EINTR, EAGAIN};
	allowed.add_if(!file.open || !file.known, {EBADF});
	allowed.add_if(!sure, {EFAULT, EINVAL, EOPNOTSUPP, ETIMEDOUT});
	allowed.add_if(wrong, {EINVAL});
	allowed.add_if(batch.timeout_ns, {ETIMEDOUT});
	allowed.add_if((batch.flags & KDIRECT_SUBMIT_POLL) && !file.node->map.poll_queues,
		       {EOPNOTSUPP});
	allowed.add_if(t.attack.options.ending, {ESTALE, ENODEV, EPIPE});
	t.actor.expect("submit", -err, allowed);
	if (!err && sure && wrong)
		t.actor.wrong("a batch that is malformed was taken");
	if (!tracked)
		return;
	asked.known = sure;
	if (err || !sure)
		return;
	std::memcpy(&batch, p.start, sizeof(batch));
	if (batch.submitted > n || batch.completed > room) {
		t.actor.wrong("%u submitted, %u completed", batch.submitted, batch.completed);
		return;
	}
	for (uint32_t i = 0; i < batch.submitted; i++)
		asked.wishes[descs[i].user_data] = wishes[i];
	if (asked.wishes.size() > KDIRECT_DESC_ENTRIES + batch.completed)
		t.actor.wrong("%zu descriptors are under way", asked.wishes.size());
	for (uint32_t i = 0; i < batch.completed; i++)
		completed(t, asked, t.arrays.completions(room)[i]);
}

} // namespace

Allowed map_command(Thread &t, const Target &file, kdirect_desc &desc)
{
	const Asked none;
	Wish wish;
	desc = make_desc(t, file, file.asked ? *file.asked : none, wish);
	// a worker may come to it when the buffer has changed, or the file has rights of others
	Allowed allowed = wish.errnos;
	allowed.add_if(desc.flags & KDIRECT_DESC_FIXED, {ENOENT, EFAULT, EINVAL});
	if (wish.anything || !file.known || file.exposed)
		allowed.all();
	if (t.actor.one_in(20)) {
		desc.user_data = t.actor.next_bits(64);
		allowed.add({EINVAL});
	}
	return allowed;
}

namespace
{

const uint32_t buffer_indexes[] = {0, 0, 1, 1, 2, 3, 255, 256, 0x80000000, UINT_MAX};

void set_buffer(Thread &t, Target &file)
{
	static const uint64_t lengths[] = {0,          1,         4096,       4097,
					   1 << 20,    2 << 20,   1ULL << 30, (1ULL << 30) + 1,
					   1ULL << 32, UINT64_MAX};
	kdirect_buffer b{};
	b.length = t.actor.one_in(2) ? t.actor.one_of(lengths) : 1 + t.actor.below(600000);
	Piece memory = t.actor.one_in(2) ? t.memory.piece(t.actor, b.length, false)
					 : t.memory.good(t.actor, b.length);
	b.addr = uint64_t(uintptr_t(memory.start));
	b.index = t.actor.one_of(buffer_indexes);
	if (t.actor.one_in(12))
		b.reserved[t.actor.below(3)] = 1U << t.actor.below(32);
	bool wrong = b.reserved[0] || b.reserved[1] || b.reserved[2] ||
		     b.index >= KDIRECT_BUFFERS || !b.length || b.length > KDIRECT_BUFFER_MAX ||
		     b.addr + b.length < b.addr;
	Piece p = t.memory.structure(t.actor, &b, sizeof(b));
	t.actor.begin("ioctl(%d, BUFFER_SET %u, %llu bytes of %s, %s)", file.fd, b.index,
		      static_cast<unsigned long long>(b.length), memory.kind, p.kind);
	int err = ioctl(file.fd, KDIRECT_IOC_BUFFER_SET, p.start) ? errno : 0;
	Allowed allowed{EINTR};
	allowed.add_if(!file.open || !file.known, {EBADF});
	allowed.add_if(wrong || p.may_fail, {EINVAL});
	allowed.add_if(memory.may_fail || p.may_fail, {EFAULT});
	allowed.add_if(t.attack.options.nobody, {ENOMEM}); // RLIMIT_MEMLOCK
	allowed.add_if(t.attack.options.ending, {ESTALE, ENODEV, EPIPE});
	t.actor.expect("buffer set", -err, allowed);
	if (!err && !p.may_fail && (wrong || !memory.may_work))
		t.actor.wrong("a buffer was taken that is none");
	if (!file.asked)
		return;
	if (p.may_fail)
		file.asked->known = false;
	else if (!err)
		file.asked->buffers[b.index] = b.length;
}

void del_buffer(Thread &t, Target &file)
{
	uint32_t index = t.actor.one_of(buffer_indexes);
	bool there = file.asked && file.asked->buffers.count(index);
	bool known = file.asked && file.asked->known && file.known && !file.exposed;
	Piece p = t.memory.structure(t.actor, &index, sizeof(index));
	t.actor.begin("ioctl(%d, BUFFER_DEL %u, %s)", file.fd, index, p.kind);
	int err = ioctl(file.fd, KDIRECT_IOC_BUFFER_DEL, p.start) ? errno : 0;
	Allowed allowed{EINTR};
	allowed.add_if(!file.open || !file.known, {EBADF});
	allowed.add_if(index >= KDIRECT_BUFFERS || p.may_fail, {EINVAL});
	allowed.add_if(p.may_fail, {EFAULT});
	allowed.add_if(!known || !there || p.may_fail, {ENOENT});
	t.actor.expect("buffer del", -err, allowed);
	if (!err && known && !there && !p.may_fail)
		t.actor.wrong("a buffer was removed that is none");
	if (!file.asked)
		return;
	if (p.may_fail)
		file.asked->known = false;
	else if (!err)
		file.asked->buffers.erase(index);
}

void describe(Thread &t, Target &file)
{
	kdirect_map_info found{};
	Piece p = t.memory.structure(t.actor, &found, sizeof(found));
	t.actor.begin("ioctl(%d, MAP_INFO, %s)", file.fd, p.kind);
	int err = ioctl(file.fd, KDIRECT_IOC_MAP_INFO, p.start) ? errno : 0;
	Allowed allowed{};
	allowed.add_if(!file.open || !file.known, {EBADF});
	allowed.add_if(p.may_fail, {EFAULT});
	t.actor.expect("map info", -err, allowed);
	if (err || p.may_fail || !file.known)
		return;
	std::memcpy(&found, p.start, sizeof(found));
	if (!t.attack.options.ending && std::memcmp(&found, &file.node->map, sizeof(found)))
		t.actor.wrong("the mapping's description has changed");
}

// A command of channels or rings; no mapping has it.
void foreign(Thread &t, Target &file)
{
	unsigned long command =
		t.actor.one_of({KDIRECT_IOC_INFO, KDIRECT_IOC_PING, KDIRECT_IOC_RING_ENTER});
	Piece p = t.memory.piece(t.actor, 256, false);
	t.actor.begin("ioctl(%d, %#lx of others, %s)", file.fd, command, p.kind);
	int err = ioctl(file.fd, command, p.start) ? errno : 0;
	Allowed allowed{ENOTTY};
	allowed.add_if(!file.open || !file.known, {EBADF});
	t.actor.expect("foreign ioctl", -err, allowed);
	if (!err)
		t.actor.wrong("a mapping took a channel's command");
}

} // namespace

void map_control(Thread &t, Target &file)
{
	switch (t.actor.below(20)) {
	case 0: describe(t, file); return;
	case 1: foreign(t, file); return;
	case 2:
	case 3: del_buffer(t, file); return;
	case 4:
	case 5:
	case 6:
	case 7: set_buffer(t, file); return;
	default: submit(t, file); return;
	}
}

void finish_asked(Thread &t, Target &file)
{
	Asked &asked = *file.asked;
	kdirect_completion *out = t.arrays.completions(KDIRECT_DESC_ENTRIES);
	t.actor.begin("reaping the %zu that are left of %d", asked.wishes.size(), file.fd);
	while (!asked.wishes.empty()) {
		kdirect_submit batch{};
		batch.completions = uint64_t(uintptr_t(out));
		batch.nr_completions = KDIRECT_DESC_ENTRIES;
		batch.min_completions =
			std::min(uint32_t(asked.wishes.size()), uint32_t(KDIRECT_DESC_ENTRIES));
		int err = ioctl(file.fd, KDIRECT_IOC_SUBMIT, &batch) ? errno : 0;
		if (err == EINTR)
			continue;
		for (uint32_t i = 0; !err && i < batch.completed; i++)
			completed(t, asked, out[i]);
		if (err) {
			t.actor.wrong("%zu descriptors have no completion: %s", asked.wishes.size(),
				      errno_name(err));
			break;
		}
	}
	t.actor.end();
}

void child_submit(Random &random, int fd)
{
	static uint8_t memory[1 << 20];
	static kdirect_desc descs[64];
	static kdirect_completion out[64];
	kdirect_buffer buffer{};
	buffer.addr = uint64_t(uintptr_t(memory));
	buffer.length = sizeof(memory);
	buffer.index = uint32_t(random.next() % 4);
	ioctl(fd, KDIRECT_IOC_BUFFER_SET, &buffer);
	for (kdirect_desc &d : descs) {
		bool fixed = random.next() % 2;
		d = {};
		d.opcode = uint8_t(1 + random.next() % 4);
		d.length = d.opcode > KDIRECT_OP_WRITE ? 8 : uint32_t(random.next() % 100000);
		d.remote = random.next() % 900000 & ~7ULL;
		d.flags = fixed && d.opcode <= KDIRECT_OP_WRITE ? KDIRECT_DESC_FIXED : 0;
		d.buffer = d.flags ? uint16_t(buffer.index) : 0;
		if (d.opcode <= KDIRECT_OP_WRITE)
			d.addr = (d.flags ? 0 : uint64_t(uintptr_t(memory))) +
				 random.next() % 900000;
	}
	kdirect_submit batch{};
	batch.descs = uint64_t(uintptr_t(descs));
	batch.completions = uint64_t(uintptr_t(out));
	batch.nr_descs = batch.nr_completions = std::size(descs);
	batch.min_completions = uint32_t(random.next() % (std::size(descs) + 1));
	batch.timeout_ns = 20000000;
	batch.flags = random.next() % 3 ? 0 : KDIRECT_SUBMIT_POLL;
	ioctl(fd, KDIRECT_IOC_SUBMIT, &batch);
}
