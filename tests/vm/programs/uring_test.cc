// SPDX-License-Identifier: GPL-2.0-only
// What commands of io_uring promise.
//
//	uring_test DEVICE SIZE
//
// DEVICE is a mapping, writable, of SIZE bytes; its channel has interrupt and poll queues.
#include "commands.h"
#include "common.h"
#include "user_memory.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <functional>
#include <map>
#include <set>
#include <string>
#include <thread>

#include <gtest/gtest.h>

namespace
{

constexpr size_t page = 4096, kib = 1 << 10, mib = 1 << 20;
constexpr unsigned usual = CommandRing::usual;
std::string device;
uint64_t size;

bool full()
{
	const char *text = std::getenv("KD_FULL");
	return text && *text == '1';
}

// Pages that are not present, at first.
class Uring : public testing::Test
{
protected:
	void SetUp() override
	{
		alarm(120 * slow());
		fd = open(device.c_str(), O_RDWR);
		ASSERT_GE(fd, 0) << device << ": " << std::strerror(errno);
	}
	void TearDown() override
	{
		close(fd);
		alarm(0);
	}
	CommandRing::Result one(CommandRing &ring, const kdirect_desc &desc,
				int registered = CommandRing::none)
	{
		CommandRing::Result result{0, -9999, 0};
		ring.push(fd, desc, 1, registered);
		EXPECT_TRUE(ring.wait(result));
		EXPECT_EQ(result.user_data, 1u);
		return result;
	}
	int code(CommandRing &ring, const kdirect_desc &desc, int registered = CommandRing::none)
	{
		return one(ring, desc, registered).res;
	}
	int fd = -1;
};

// --- what each kind of ring does ---------------------------------------------------------

struct Kind {
	const char *name;
	unsigned flags;
	bool async; // each begins in a worker
};

class Kinds : public Uring, public testing::WithParamInterface<Kind>
{
};

INSTANTIATE_TEST_SUITE_P(
	All, Kinds,
	testing::Values(
		Kind{"Plain", usual, false}, Kind{"Polled", usual | IORING_SETUP_IOPOLL, false},
		Kind{"Served", usual | IORING_SETUP_SQPOLL, false},
		Kind{"PolledAndServed", usual | IORING_SETUP_IOPOLL | IORING_SETUP_SQPOLL, false},
		Kind{"Deferred", usual | IORING_SETUP_SINGLE_ISSUER | IORING_SETUP_DEFER_TASKRUN,
		     false},
		Kind{"Narrow", IORING_SETUP_SQE128, false}, Kind{"InWorkers", usual, true},
		Kind{"PolledInWorkers", usual | IORING_SETUP_IOPOLL, true}),
	[](const auto &info) { return std::string(info.param.name); });

TEST_P(Kinds, EachOperation)
{
	CommandRing ring(8, GetParam().flags);
	ASSERT_TRUE(ring) << std::strerror(-ring.err);
	Memory memory(mib);
	ASSERT_EQ(ring.add_buffer(memory.at(), mib), 0);
	ASSERT_EQ(set_buffer(fd, 3, memory.at(), mib), 0);
	auto result = [&](const kdirect_desc &desc, int registered = CommandRing::none) {
		CommandRing::Result out{0, -9999, 0};
		io_uring_sqe *sqe = ring.push(fd, desc, 1, registered);
		sqe->flags = GetParam().async ? IOSQE_ASYNC : 0;
		EXPECT_TRUE(ring.wait(out));
		return out;
	};
	// 0: plain memory, 1: a fixed buffer, 2: a registered one
	for (size_t len : {size_t(0), size_t(1), page, 17 * kib + 1, 700 * kib})
		for (int kind = 0; kind < 3; kind++) {
			kdirect_desc desc = kind == 1 ? fixed(true, 3, 13, len, 4099)
						      : transfer(true, memory.at(13), len, 4099);
			int registered = kind == 2 ? 0 : CommandRing::none;
			fill(memory.bytes(13), len, len + unsigned(kind));
			EXPECT_EQ(result(desc, registered).res, int(len)) << len << " " << kind;
			std::vector<uint8_t> there(len);
			EXPECT_EQ(pread(fd, there.data(), len, 4099), ssize_t(len));
			EXPECT_EQ(there, content(len, len + unsigned(kind))) << len << " " << kind;
			std::memset(memory.at(), 0, mib);
			desc.opcode = KDIRECT_OP_READ;
			EXPECT_EQ(result(desc, registered).res, int(len)) << len << " " << kind;
			EXPECT_FALSE(std::memcmp(memory.at(13), there.data(), len))
				<< len << " " << kind;
			EXPECT_EQ(memory.at()[12], 0);
			EXPECT_EQ(memory.at()[13 + len], 0);
		}
	uint64_t zero = 0;
	EXPECT_EQ(pwrite(fd, &zero, 8, 512), 8);
	if (!atomics() || !(GetParam().flags & IORING_SETUP_CQE32)) {
		EXPECT_EQ(result(fetch_add(512, 7)).res, -EOPNOTSUPP);
		return;
	}
	EXPECT_EQ(result(fetch_add(512, 7)).res, 8);
	CommandRing::Result r = result(cmp_swap(512, 7, UINT64_MAX));
	EXPECT_EQ(r.res, 8);
	EXPECT_EQ(r.extra, 7u);
	EXPECT_EQ(result(fetch_add(512, 3)).extra, UINT64_MAX);
	EXPECT_EQ(result(fetch_add(512, 0)).extra, 2u);
	EXPECT_EQ(result(transfer(true, memory.at(), 4096, 0)).extra, 0u);
}

// Many under way, each in a place of its own, all kinds among each other; what is read is
// what was written there last.
TEST_P(Kinds, ManyCommands)
{
	constexpr unsigned places = 64;
	const size_t room = 16 * kib;
	ASSERT_GE(size, places * room);
	CommandRing ring(places, GetParam().flags);
	ASSERT_TRUE(ring) << std::strerror(-ring.err);
	Memory memory(places * room);
	ASSERT_EQ(ring.add_buffer(memory.at(), memory.length), 0);
	ASSERT_EQ(set_buffer(fd, 0, memory.at(), memory.length), 0);
	Random random(1);
	struct Place {
		bool writing, busy;
		size_t len;
		uint64_t seed;
	} state[places] = {};
	unsigned busy = 0, verified = 0;
	const unsigned count = (full() ? 6000 : 1200) / few();
	for (unsigned begun = 0; begun < count || busy;) {
		for (unsigned i = 0; i < places && begun < count; i++) {
			Place &p = state[i];
			if (p.busy)
				continue;
			if (!io_uring_sq_space_left(&ring.ring))
				break; // the kernel's thread has not come to them
			p.writing = !p.writing;
			if (p.writing) {
				p.len = random.between(1, room);
				p.seed = random.next();
				fill(memory.bytes(i * room), p.len, p.seed);
			} else {
				std::memset(memory.at(i * room), 0, p.len);
			}
			unsigned kind = unsigned(random.between(0, 2));
			kdirect_desc desc =
				kind == 1
					? fixed(p.writing, 0, i * room, p.len, i * room)
					: transfer(p.writing, memory.at(i * room), p.len, i * room);
			io_uring_sqe *sqe =
				ring.push(fd, desc, i, kind == 2 ? 0 : CommandRing::none);
			sqe->flags = GetParam().async ? IOSQE_ASYNC : 0;
			p.busy = true;
			busy++;
			begun++;
		}
		ASSERT_EQ(ring.go(busy != 0), 0);
		for (CommandRing::Result r; ring.pop(r); busy--) {
			ASSERT_LT(r.user_data, places);
			Place &p = state[r.user_data];
			ASSERT_TRUE(p.busy);
			ASSERT_EQ(r.res, int(p.len));
			p.busy = false;
			if (p.writing)
				continue;
			ASSERT_EQ(content(p.len, p.seed),
				  std::vector<uint8_t>(memory.at(r.user_data * room),
						       memory.at(r.user_data * room) + p.len));
			verified++;
		}
	}
	EXPECT_GE(verified, count / 2 - places);
}

// More than there are requests and slots: all end, and each sees a number of its own.
TEST_P(Kinds, MoreThanThereIsRoomFor)
{
	if (!(GetParam().flags & IORING_SETUP_CQE32) || !atomics())
		return;
	constexpr unsigned count = 3 * KDIRECT_DESC_ENTRIES;
	CommandRing ring(1024, GetParam().flags);
	ASSERT_TRUE(ring) << std::strerror(-ring.err);
	uint64_t zero = 0;
	ASSERT_EQ(pwrite(fd, &zero, 8, 0), 8);
	for (unsigned i = 0; i < count; i++)
		ring.push(fd, fetch_add(0, 1), i)->flags = GetParam().async ? IOSQE_ASYNC : 0;
	std::set<uint64_t> seen, named;
	ASSERT_EQ(ring.go(), 0);
	for (unsigned i = 0; i < count; i++) {
		CommandRing::Result r;
		ASSERT_TRUE(ring.wait(r));
		ASSERT_EQ(r.res, 8);
		seen.insert(r.extra);
		named.insert(r.user_data);
	}
	EXPECT_EQ(seen.size(), count);
	EXPECT_EQ(*seen.rbegin(), count - 1);
	EXPECT_EQ(named.size(), count);
}

// The ring is closed, and its memory goes, with everything under way.
TEST_P(Kinds, ClosedUnderWay)
{
	for (unsigned round = 0; round < (full() ? 30U : 8U) / few(); round++) {
		Memory memory(4 * mib);
		CommandRing ring(128, GetParam().flags);
		ASSERT_TRUE(ring) << std::strerror(-ring.err);
		ASSERT_EQ(ring.add_buffer(memory.at(), memory.length), 0);
		for (unsigned i = 0; i < 100; i++)
			ring.push(fd,
				  transfer(i % 2, memory.at(i * 1000), 1 + i % 7 * 60000, i * 1000),
				  i, i % 3 ? CommandRing::none : 0)
				->flags = GetParam().async ? IOSQE_ASYNC : 0;
		EXPECT_EQ(ring.go(round % 3), 0);
		ring.end();
	}
	// they end in their own time, and disturb nobody
	CommandRing ring(8);
	Memory memory(page);
	EXPECT_EQ(code(ring, transfer(false, memory.at(), page, 0)), int(page));
}

TEST_P(Kinds, KilledUnderWay)
{
	for (unsigned round = 0; round < (full() ? 8U : 2U) / few() + 1; round++) {
		pid_t child = fork();
		if (!child) {
			Memory memory(4 * mib);
			CommandRing ring(128, GetParam().flags);
			if (!ring || ring.add_buffer(memory.at(), memory.length) ||
			    set_buffer(fd, 0, memory.at(), memory.length))
				_exit(1);
			for (unsigned i = 0; !ring.go();) {
				while (ring.push(fd,
						 transfer(i % 2, memory.at(i % 100 * 1000),
							  1 + i % 7 * 60000, i % 100 * 1000),
						 i, i % 3 ? CommandRing::none : 0))
					i++;
				for (CommandRing::Result r; ring.pop(r);)
					if (r.res < 0)
						_exit(2);
			}
			_exit(3);
		}
		usleep((30000 + 17000 * round) * slow());
		kill(child, SIGKILL);
		int status = 0;
		waitpid(child, &status, 0);
		EXPECT_TRUE(WIFSIGNALED(status)) << WEXITSTATUS(status);
	}
}

// --- what is refused ---------------------------------------------------------------------

TEST_F(Uring, EachAlone)
{
	CommandRing ring(8);
	Memory memory(mib), outside(page);
	ASSERT_EQ(ring.add_buffer(memory.at(), mib), 0);
	ASSERT_EQ(set_buffer(fd, 1, memory.at(), mib), 0);
	const struct {
		int err, registered;
		std::function<void(kdirect_desc &)> spoil;
	} cases[] = {
		{-EINVAL, -1, [](auto &d) { d.opcode = 0; }},
		{-EINVAL, -1, [](auto &d) { d.opcode = 11; }},
		{-EOPNOTSUPP, -1, [](auto &d) { d.opcode = KDIRECT_OP_SEND; }},
		{-EINVAL, -1, [](auto &d) { d.rkey = 1; }},
		{-EINVAL, -1, [](auto &d) { d.flags = 0x80; }},
		{-EINVAL, -1, [](auto &d) { d.buffer = 1; }},
		{-EINVAL, -1, [](auto &d) { d.user_data = 1; }},
		{-EINVAL, -1, [](auto &d) { d.reserved = 1; }},
		{-EINVAL, -1, [](auto &d) { d.compare = 1; }},
		{-EINVAL, -1, [](auto &d) { d.length = KDIRECT_DESC_LENGTH_MAX + 1; }},
		{-EINVAL, 0, [](auto &d) { d = fixed(false, 1, 0, 100, 0); }},
		{-EINVAL, 0, [](auto &d) { d = fetch_add(0, 1); }},
		{-EINVAL, -1, [](auto &d) { d = fetch_add(4, 1); }},
		{-ERANGE, -1, [](auto &d) { d.remote = size - 99; }},
		{-ERANGE, 0, [](auto &d) { d.remote = UINT64_MAX; }},
		{-ERANGE, -1, [](auto &d) { d = fetch_add(size, 1); }},
		{-ENOENT, -1, [](auto &d) { d = fixed(false, 2, 0, 100, 0); }},
		{-EFAULT, -1, [](auto &d) { d = fixed(false, 1, mib - 99, 100, 0); }},
		{-EFAULT, -1, [](auto &d) { d.addr = 8; }},
		{-EFAULT, -1, [](auto &d) { d.addr = UINT64_MAX - 4; }},
		{-EFAULT, -1, [](auto &d) { d.addr = 1ULL << 63; }},
		{-EFAULT, 0, [&](auto &d) { d.addr = address(memory.at()) - 1; }},
		{-EFAULT, 0, [&](auto &d) { d.addr = address(memory.at(mib - 99)); }},
		{-EFAULT, 0, [&](auto &d) { d.addr = address(outside.at()); }},
		{-EFAULT, 0, [](auto &d) { d.addr = UINT64_MAX - 4; }},
		{-EFAULT, 1, [](auto &) {}},
	};
	for (const auto &c : cases)
		for (bool write : {false, true}) {
			kdirect_desc good = transfer(write, memory.at(), 100, 0), bad = good;
			c.spoil(bad);
			if (bad.opcode == KDIRECT_OP_READ && write)
				bad.opcode = KDIRECT_OP_WRITE;
			ring.push(fd, good, 0);
			ring.push(fd, bad, 1, c.registered);
			ring.push(fd, good, 2, 0);
			std::map<uint64_t, int> got;
			for (int i = 0; i < 3; i++) {
				CommandRing::Result r;
				ASSERT_TRUE(ring.wait(r));
				got[r.user_data] = r.res;
				EXPECT_EQ(r.extra, 0u);
			}
			EXPECT_EQ(got[0], 100);
			EXPECT_EQ(got[1], c.err) << (&c - cases) << (write ? " write" : " read");
			EXPECT_EQ(got[2], 100);
		}
	auto spoilt = [&](const std::function<void(io_uring_sqe *)> &spoil) {
		CommandRing::Result r{0, 0, 0};
		spoil(ring.push(fd, transfer(false, memory.at(), 100, 0), 0));
		EXPECT_TRUE(ring.wait(r));
		return r.res;
	};
	EXPECT_EQ(spoilt([](auto *sqe) { sqe->cmd_op = 0; }), -ENOTTY);
	EXPECT_EQ(spoilt([](auto *sqe) { sqe->cmd_op++; }), -ENOTTY);
	EXPECT_EQ(spoilt([](auto *sqe) { sqe->cmd[64] = 1; }), -EINVAL);
	EXPECT_EQ(spoilt([](auto *sqe) { sqe->cmd[79] = 1; }), -EINVAL);
	EXPECT_EQ(spoilt([](auto *sqe) { sqe->uring_cmd_flags = 1U << 29; }), -EINVAL);
}

TEST_F(Uring, WithoutWideEntries)
{
	CommandRing ring(8, 0);
	Memory memory(page);
	ASSERT_TRUE(ring);
	EXPECT_EQ(code(ring, transfer(false, memory.at(), 100, 0)), -EINVAL);
}

TEST_F(Uring, Rights)
{
	Memory memory(page);
	CommandRing ring(8);
	int whole = fd;
	for (int mode : {O_RDONLY, O_WRONLY}) {
		fd = open(device.c_str(), mode);
		EXPECT_EQ(code(ring, transfer(false, memory.at(), 100, 0)),
			  mode == O_RDONLY ? 100 : -EACCES);
		EXPECT_EQ(code(ring, transfer(true, memory.at(), 100, 0)),
			  mode == O_WRONLY ? 100 : -EACCES);
		EXPECT_EQ(code(ring, fetch_add(0, 1)), mode != O_WRONLY ? -EACCES
						       : atomics()      ? 8
									: -EOPNOTSUPP);
		close(fd);
	}
	fd = whole;
}

// Memory that may only be read, and that goes while it is used.
TEST_F(Uring, MemoryThatIsNotThere)
{
	CommandRing ring(8);
	Memory memory(4 * mib);
	mprotect(memory.at(mib), mib, PROT_READ);
	munmap(memory.at(3 * mib), mib);
	for (size_t len : {size_t(100), 100 * kib}) {
		EXPECT_EQ(code(ring, transfer(false, memory.at(mib), len, 0)), -EFAULT);
		EXPECT_EQ(code(ring, transfer(true, memory.at(mib), len, 0)), int(len));
		EXPECT_EQ(code(ring, transfer(true, memory.at(3 * mib - 50), len, 0)), -EFAULT);
		EXPECT_EQ(code(ring, transfer(false, memory.at(3 * mib - 50), len, 0)), -EFAULT);
		EXPECT_EQ(code(ring, transfer(false, memory.at(), len, 0)), int(len));
	}
}

// Bytes of no sense in what is the command's.
TEST_F(Uring, AnyBytes)
{
	Memory memory(mib);
	CommandRing ring(16);
	ASSERT_EQ(ring.add_buffer(memory.at(), mib), 0);
	const std::set<int> ends = {-EINVAL, -ERANGE, -EACCES, -ENOENT,
				    -EFAULT, -ENOMEM, -ENOTTY, -EOPNOTSUPP};
	Random random(7);
	for (unsigned i = 0; i < 3000 / few(); i++) {
		kdirect_desc d = transfer(random.next() % 2, memory.at(random.next() % 8000),
					  random.next() % 3000, random.next() % mib);
		auto *bytes = reinterpret_cast<uint8_t *>(&d);
		for (uint64_t n = random.next() % 3; n; n--) {
			size_t at = random.next() % sizeof(d);
			// what an address reaches by chance is not ours
			if (at < offsetof(kdirect_desc, addr) ||
			    at >= offsetof(kdirect_desc, remote))
				bytes[at] = uint8_t(random.next());
		}
		if (d.length > 100000)
			d.length = 100000;
		io_uring_sqe *sqe = ring.push(fd, d, i, random.next() % 2 ? 0 : CommandRing::none);
		if (random.next() % 16 == 0)
			sqe->cmd[64 + random.next() % 16] = 1;
		if (random.next() % 32 == 0)
			sqe->cmd_op = uint32_t(random.next());
		CommandRing::Result r;
		ASSERT_TRUE(ring.wait(r));
		EXPECT_EQ(r.user_data, i);
		EXPECT_TRUE(r.res >= 0 || ends.count(r.res)) << r.res;
	}
}

// With one call for 32 at a time, of a file that is prepared; uring.sh counts the doorbells.
TEST_F(Uring, OneCallForMany)
{
	constexpr unsigned batch = 32;
	CommandRing ring(batch);
	Memory memory(batch * page);
	ASSERT_EQ(set_buffer(fd, 0, memory.at(), memory.length), 0);
	ASSERT_EQ(one(ring, fixed(false, 0, 0, page, 0)).res, int(page));
	for (unsigned round = 0; round < 20; round++) {
		bool write = round % 2 == 0;
		if (write)
			fill(memory.bytes(0), memory.length, round);
		else
			std::memset(memory.at(), 0, memory.length);
		for (unsigned i = 0; i < batch; i++)
			ring.push(fd, fixed(write, 0, i * page, page, i * page), i);
		ASSERT_EQ(ring.go(), 0);
		for (unsigned i = 0; i < batch; i++) {
			CommandRing::Result r;
			ASSERT_TRUE(ring.wait(r));
			EXPECT_EQ(r.res, int(page));
		}
		if (!write) {
			EXPECT_EQ(content(memory.length, round - 1),
				  std::vector<uint8_t>(memory.at(), memory.at() + memory.length));
		}
	}
}

// --- beside others -----------------------------------------------------------------------

// Completions that nobody reaps by ioctl hinder no command, and none comes there.
TEST_F(Uring, BesideSubmit)
{
	CommandRing ring(512);
	Memory memory(mib);
	Descs held(KDIRECT_DESC_ENTRIES, transfer(false, memory.at(), 8, 0, 99));
	kdirect_submit batch{};
	batch.descs = address(held.data());
	batch.nr_descs = uint32_t(held.size());
	ASSERT_EQ(submit(fd, batch), 0);
	ASSERT_EQ(batch.submitted, held.size());
	for (unsigned i = 0; i < 300; i++)
		ring.push(fd, transfer(i % 2, memory.at(1000 * i), 900, 1000 * i), i);
	ASSERT_EQ(ring.go(), 0);
	for (unsigned i = 0; i < 300; i++) {
		CommandRing::Result r;
		ASSERT_TRUE(ring.wait(r));
		EXPECT_EQ(r.res, 900);
	}
	Completions out;
	ASSERT_EQ(reap(fd, out, KDIRECT_DESC_ENTRIES), 0);
	for (const kdirect_completion &c : out)
		EXPECT_EQ(c.user_data, 99u);
	EXPECT_EQ(out.size(), held.size());
	EXPECT_EQ(reap(fd, out, 0), 0);
	EXPECT_TRUE(out.empty());
}

TEST_F(Uring, ThreadsShareAFile)
{
	if (!atomics())
		GTEST_SKIP();
	uint64_t zero = 0;
	ASSERT_EQ(pwrite(fd, &zero, 8, 0), 8);
	constexpr unsigned threads = 4;
	const unsigned each = 800 / few();
	std::vector<std::thread> list;
	std::vector<std::set<uint64_t>> seen(threads);
	for (unsigned t = 0; t < threads; t++)
		list.emplace_back([&, t] {
			CommandRing ring(32, usual | (t % 2 ? unsigned(IORING_SETUP_IOPOLL) : 0U));
			unsigned begun = 0, ended = 0;
			while (ended < each) {
				while (begun < each && begun - ended < 32 &&
				       ring.push(fd, fetch_add(0, 1), begun))
					begun++;
				if (ring.go(1))
					return;
				for (CommandRing::Result r; ring.pop(r); ended++)
					if (r.res == 8)
						seen[t].insert(r.extra);
			}
		});
	std::set<uint64_t> all;
	for (unsigned t = 0; t < threads; t++) {
		list[t].join();
		all.insert(seen[t].begin(), seen[t].end());
	}
	EXPECT_EQ(all.size(), threads * each);
}

// Asked to cancel everything: each command ends once, and says how.
TEST_F(Uring, Cancelled)
{
	unsigned cancelled = 0;
	for (unsigned round = 0; round < 20 / few() + 1; round++) {
		Memory memory(8 * mib);
		CommandRing ring(256);
		for (unsigned i = 0; i < 60; i++)
			ring.push(fd,
				  transfer(false, memory.at(), size < 4 * mib ? size : 4 * mib, 0),
				  i);
		ASSERT_EQ(ring.go(), 0);
		for (unsigned i = 0; i < 60; i++) {
			io_uring_sqe *sqe = io_uring_get_sqe(&ring.ring);
			std::memset(static_cast<void *>(sqe), 0, 128);
			io_uring_prep_cancel64(sqe, i, 0);
			sqe->user_data = 1000 + i;
		}
		ASSERT_EQ(ring.go(), 0);
		std::set<uint64_t> ended;
		for (unsigned i = 0; i < 120; i++) {
			CommandRing::Result r;
			ASSERT_TRUE(ring.wait(r));
			EXPECT_TRUE(ended.insert(r.user_data).second) << r.user_data;
			if (r.user_data < 1000) {
				EXPECT_TRUE(r.res > 0 || r.res == -ECANCELED || r.res == -EINTR)
					<< r.res;
			}
			cancelled += r.user_data < 1000 && r.res < 0;
		}
	}
	EXPECT_GT(cancelled, 0u);
}

} // namespace

int main(int argc, char **argv)
{
	testing::InitGoogleTest(&argc, argv);
	if (argc != 3) {
		std::fprintf(stderr, "usage: uring_test DEVICE SIZE\n");
		return 2;
	}
	device = argv[1];
	size = std::stoull(argv[2]);
	return RUN_ALL_TESTS();
}
