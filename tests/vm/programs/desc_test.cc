// SPDX-License-Identifier: GPL-2.0-only
// What descriptors and fixed buffers promise.
//
//	desc_test DEVICE SIZE
//
// DEVICE is a mapping, writable, of SIZE bytes; its channel has interrupt and poll queues.
#include "common.h"
#include "desc.h"
#include "user_memory.h"

#include <fcntl.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <cstddef>
#include <cstdio>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <thread>

#include <gtest/gtest.h>

namespace
{

constexpr size_t page = 4096;
constexpr size_t kib = 1 << 10, mib = 1 << 20;
std::string device;
uint64_t size;

// Pages of our own, in a mapping of their own.
// What the child returns, which must not fail in another way.
int in_child(const std::function<int()> &body)
{
	pid_t child = fork();
	if (!child)
		_exit(body());
	int status = -1;
	waitpid(child, &status, 0);
	return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

class Desc : public testing::Test
{
protected:
	void SetUp() override
	{
		alarm(120);
		fd = open(device.c_str(), O_RDWR);
		ASSERT_GE(fd, 0) << device << ": " << std::strerror(errno);
	}
	void TearDown() override
	{
		close(fd);
		for (int i = 0; pinned() && i < 500; i++)
			usleep(10000);
		EXPECT_EQ(pinned(), 0u) << "pages are charged to us for nothing";
		alarm(0);
	}
	int one(const kdirect_desc &desc, uint32_t flags = 0)
	{
		Completions done = run(fd, {desc}, flags);
		return done.size() == 1 ? done[0].result : -9999;
	}
	uint64_t number(uint64_t at)
	{
		uint64_t value = 0;
		EXPECT_EQ(pread(fd, &value, 8, off_t(at)), 8);
		return value;
	}
	int fd = -1;
};

TEST_F(Desc, LengthsAndPlaces)
{
	Memory out(3 * mib), in(3 * mib);
	out.fill(1);
	ASSERT_EQ(set_buffer(fd, 7, in.at(), in.length), 0);
	for (uint32_t flags : {0u, uint32_t{KDIRECT_SUBMIT_POLL}})
		for (size_t len : {1ul, 64ul, 4096ul, 16384ul, 16385ul, 100000ul, mib + 5, 2 * mib})
			for (uint64_t remote : {uint64_t{0}, 2 * mib - 3, size - 2 * mib}) {
				SCOPED_TRACE(testing::Message() << len << " at " << remote);
				std::memset(in.at(), 0, in.length);
				ASSERT_EQ(one(transfer(true, out.at(5), len, remote), flags),
					  int(len));
				ASSERT_EQ(one(transfer(false, in.at(9), len, remote), flags),
					  int(len));
				ASSERT_EQ(std::memcmp(in.at(9), out.at(5), len), 0);
				std::memset(in.at(), 0, in.length);
				ASSERT_EQ(one(fixed(false, 7, 4095, len, remote), flags), int(len));
				ASSERT_EQ(std::memcmp(in.at(4095), out.at(5), len), 0);
				ASSERT_EQ(one(fixed(true, 7, 4095 + len / 2, len - len / 2, remote),
					      flags),
					  int(len - len / 2));
				ASSERT_EQ(pread(fd, in.at(), len - len / 2, off_t(remote)),
					  ssize_t(len - len / 2));
				ASSERT_EQ(std::memcmp(in.at(), out.at(5 + len / 2), len - len / 2),
					  0);
			}
}

TEST_F(Desc, HugePages)
{
	Memory plain(8 * mib);
	char *start =
		reinterpret_cast<char *>((address(plain.at()) + 2 * mib - 1) & ~(2 * mib - 1));
	madvise(start, 4 * mib, MADV_HUGEPAGE);
	plain.fill(3);
	ASSERT_EQ(set_buffer(fd, 0, start, 4 * mib), 0);
	ASSERT_EQ(one(fixed(true, 0, 0, 4 * mib, 1000)), int(4 * mib));
	Memory back(4 * mib);
	ASSERT_EQ(pread(fd, back.at(), 4 * mib, 1000), ssize_t(4 * mib));
	EXPECT_EQ(std::memcmp(back.at(), start, 4 * mib), 0);
	std::memset(start, 0, 4 * mib);
	ASSERT_EQ(one(fixed(false, 0, 0, 4 * mib, 1000)), int(4 * mib));
	EXPECT_EQ(std::memcmp(back.at(), start, 4 * mib), 0);
}

TEST_F(Desc, Atomics)
{
	if (!atomics())
		GTEST_SKIP();
	ASSERT_EQ(pwrite(fd, "\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0", 16, 64), 16);
	Completions done = run(fd, {fetch_add(64, 41, 5)});
	ASSERT_EQ(done.size(), 1u);
	EXPECT_EQ(done[0].result, 8);
	EXPECT_EQ(done[0].old, 0u);
	EXPECT_EQ(done[0].user_data, 5u);
	EXPECT_EQ(number(64), 41u);
	EXPECT_EQ(run(fd, {cmp_swap(64, 40, 1)})[0].old, 41u);
	EXPECT_EQ(number(64), 41u);
	EXPECT_EQ(run(fd, {cmp_swap(64, 41, UINT64_MAX)})[0].old, 41u);
	EXPECT_EQ(number(64), UINT64_MAX);
	EXPECT_EQ(run(fd, {fetch_add(64, 2)})[0].old, UINT64_MAX);
	EXPECT_EQ(number(64), 1u);
}

TEST_F(Desc, AtomicsOfManyProcessesAddUp)
{
	if (!atomics())
		GTEST_SKIP();
	ASSERT_EQ(pwrite(fd, "\0\0\0\0\0\0\0\0", 8, 128), 8);
	constexpr int processes = 4, each = 100;
	std::vector<pid_t> children;
	auto work = [](bool poll) {
		int own = open(device.c_str(), O_RDWR);
		std::set<uint64_t> seen;
		for (const kdirect_completion &c :
		     run(own, Descs(each, fetch_add(128, 3)), poll ? KDIRECT_SUBMIT_POLL : 0))
			if (c.result == 8)
				seen.insert(c.old);
		return seen.size() == each;
	};
	for (int i = 0; i < processes; i++) {
		pid_t child = fork();
		if (!child)
			_exit(!work(i % 2));
		children.push_back(child);
	}
	for (pid_t child : children) {
		int status = -1;
		waitpid(child, &status, 0);
		EXPECT_EQ(status, 0);
	}
	EXPECT_EQ(number(128), uint64_t{3} * processes * each);
}

TEST_F(Desc, AnInvalidOneFailsAlone)
{
	Memory memory(mib), hole(page, PROT_NONE), constant(page, PROT_READ);
	ASSERT_EQ(set_buffer(fd, 2, memory.at(), 64 * kib), 0);
	const kdirect_desc read = transfer(false, memory.at(), 100, 0),
			   write = transfer(true, memory.at(), 100, 0),
			   slot = fixed(false, 2, 0, 100, 0), add = fetch_add(8, 0);
	struct Case {
		int err;
		kdirect_desc from;
		std::function<void(kdirect_desc &)> spoil;
	};
	const Case cases[] = {
		{EINVAL, read, [](auto &d) { d.opcode = 0; }},
		{EINVAL, read, [](auto &d) { d.opcode = 200; }},
		{EINVAL, read, [](auto &d) { d.flags = 0x40; }},
		{EINVAL, read, [](auto &d) { d.buffer = 2; }},
		{EINVAL, read, [](auto &d) { d.compare = 2; }},
		{EINVAL, write, [](auto &d) { d.operand = 2; }},
		{EINVAL, write, [](auto &d) { d.reserved = 2; }},
		{EINVAL, write, [](auto &d) { d.rkey = 2; }},
		{EOPNOTSUPP, write, [](auto &d) { d.opcode = KDIRECT_OP_SEND; }},
		{EOPNOTSUPP, write, [](auto &d) { d.flags = KDIRECT_DESC_FENCE; }},
		{EINVAL, write, [](auto &d) { d.length = UINT32_MAX; }},
		{ERANGE, read, [](auto &d) { d.remote = size - 99; }},
		{ERANGE, write, [](auto &d) { d.remote = UINT64_MAX - 99; }},
		{ERANGE, write, [](auto &d) { d.remote = UINT64_MAX; }},
		{EFAULT, read, [](auto &d) { d.addr = 0; }},
		{EFAULT, read, [](auto &d) { d.addr = UINT64_MAX - 99; }},
		{EFAULT, read, [](auto &d) { d.addr = 0xffff888000000000; }},
		{EFAULT, write, [](auto &d) { d.addr = 0xffff888000000000; }},
		{EFAULT, read, [&](auto &d) { d.addr = address(hole.at()); }},
		{EFAULT, write, [&](auto &d) { d.addr = address(hole.at()); }},
		{EFAULT, write, [&](auto &d) { d.addr = address(hole.at()), d.length = 70000; }},
		{EFAULT, read, [&](auto &d) { d.addr = address(constant.at()); }},
		{ENOENT, slot, [](auto &d) { d.buffer = 3; }},
		{ENOENT, slot, [](auto &d) { d.buffer = UINT16_MAX; }},
		{EFAULT, slot, [](auto &d) { d.addr = 64 * kib - 99; }},
		{EFAULT, slot, [](auto &d) { d.addr = UINT64_MAX - 50; }},
		{EINVAL, add, [](auto &d) { d.remote = 4; }},
		{EINVAL, add, [](auto &d) { d.length = 4; }},
		{EINVAL, add, [](auto &d) { d.addr = 8; }},
		{ERANGE, add, [](auto &d) { d.remote = size; }},
		{ERANGE, add, [](auto &d) { d.remote = UINT64_MAX - 7; }},
	};
	Descs batch;
	std::map<uint64_t, int> expected, got;
	for (const Case &c : cases)
		for (bool bad : {false, true}) {
			kdirect_desc desc = c.from;
			if (bad)
				c.spoil(desc);
			desc.user_data = batch.size();
			bool lacks = c.from.opcode == KDIRECT_OP_FETCH_ADD && !atomics();
			expected[batch.size()] = bad     ? -c.err
						 : lacks ? -EOPNOTSUPP
							 : int(desc.length);
			batch.push_back(desc);
		}
	for (const kdirect_completion &c : run(fd, batch)) {
		EXPECT_EQ(c.index, c.user_data);
		got[c.user_data] = c.result;
	}
	EXPECT_EQ(got, expected);
}

TEST_F(Desc, TheCallsArgumentsAreChecked)
{
	kdirect_submit batch{};
	EXPECT_EQ(submit(fd, batch), 0);
	batch.flags = 0x80;
	EXPECT_EQ(submit(fd, batch), -EINVAL);
	batch = {};
	batch.reserved[0] = 1;
	EXPECT_EQ(submit(fd, batch), -EINVAL);
	batch = {};
	batch.min_completions = 1;
	EXPECT_EQ(submit(fd, batch), -EINVAL);
	batch = {};
	batch.descs = 8;
	batch.nr_descs = UINT32_MAX;
	EXPECT_EQ(submit(fd, batch), -EFAULT);
	Completions out;
	EXPECT_EQ(reap(fd, out, 1, 0, 20000000), -ETIMEDOUT);
	EXPECT_EQ(reap(fd, out, 1, KDIRECT_SUBMIT_POLL, 20000000), -ETIMEDOUT);
	EXPECT_EQ(ioctl(fd, KDIRECT_IOC_SUBMIT, 0), -1);
	EXPECT_EQ(errno, EFAULT);
	EXPECT_EQ(ioctl(fd, _IO(KDIRECT_IOC_MAGIC, 99), 0), -1);
	EXPECT_EQ(errno, ENOTTY);
	kdirect_map_info info;
	ASSERT_EQ(ioctl(fd, KDIRECT_IOC_MAP_INFO, &info), 0);
	EXPECT_EQ(info.size, size);
	EXPECT_EQ(info.flags, atomics() ? uint32_t{KDIRECT_MAP_ATOMICS} : 0);
	EXPECT_EQ(device, std::string("/dev/kdirect/") + info.name);
	// completions that cannot be written are kept
	kdirect_desc add = touch(0);
	batch = {};
	batch.descs = address(&add);
	batch.nr_descs = 1;
	EXPECT_EQ(submit(fd, batch), 0);
	batch.nr_descs = 0;
	batch.completions = 16;
	batch.nr_completions = batch.min_completions = 1;
	EXPECT_EQ(submit(fd, batch), -EFAULT);
	EXPECT_EQ(reap(fd, out, 1), 0);
	EXPECT_EQ(out.size(), 1u);
}

TEST_F(Desc, RightsOfTheFile)
{
	Memory memory(page);
	for (int mode : {O_RDONLY, O_WRONLY}) {
		int own = open(device.c_str(), mode);
		ASSERT_GE(own, 0);
		Completions done = run(own, {transfer(false, memory.at(), 8, 0),
					     transfer(true, memory.at(), 8, 0), fetch_add(0, 0)});
		ASSERT_EQ(done.size(), 3u);
		for (const kdirect_completion &c : done) {
			bool lacks = c.opcode == KDIRECT_OP_FETCH_ADD && !atomics();
			bool allowed = (c.opcode == KDIRECT_OP_READ) == (mode == O_RDONLY);
			EXPECT_EQ(c.result, !allowed ? -EACCES : lacks ? -EOPNOTSUPP : 8);
		}
		close(own);
	}
}

TEST_F(Desc, Buffers)
{
	Memory memory(mib), hole(page, PROT_NONE), constant(page, PROT_READ);
	EXPECT_EQ(set_buffer(fd, KDIRECT_BUFFERS, memory.at(), page), -EINVAL);
	EXPECT_EQ(set_buffer(fd, 0, memory.at(), 0), -EINVAL);
	EXPECT_EQ(set_buffer(fd, 0, memory.at(), KDIRECT_BUFFER_MAX + 1), -EINVAL);
	EXPECT_EQ(set_buffer(fd, 0, reinterpret_cast<void *>(UINT64_MAX - page + 2), page),
		  -EINVAL);
	EXPECT_EQ(set_buffer(fd, 0, nullptr, page), -EFAULT);
	EXPECT_EQ(set_buffer(fd, 0, hole.at(), page), -EFAULT);
	EXPECT_EQ(set_buffer(fd, 0, constant.at(), page), -EFAULT);
	EXPECT_EQ(set_buffer(fd, 0, reinterpret_cast<void *>(0xffff888000000000), page), -EFAULT);
	EXPECT_EQ(pinned(), 0u);
	EXPECT_EQ(del_buffer(fd, 0), -ENOENT);
	EXPECT_EQ(del_buffer(fd, UINT32_MAX), -EINVAL);
	EXPECT_EQ(set_buffer(fd, 0, memory.at(100), 2 * page), 0);
	EXPECT_EQ(pinned(), 12u);
	EXPECT_EQ(set_buffer(fd, 0, memory.at(), page), 0);
	EXPECT_EQ(pinned(), 4u);
	EXPECT_EQ(set_buffer(fd, KDIRECT_BUFFERS - 1, memory.at(), mib), 0);
	EXPECT_EQ(pinned(), 1028u);
	EXPECT_EQ(one(fixed(false, 0, 0, page, 0)), int(page));
	EXPECT_EQ(del_buffer(fd, 0), 0);
	EXPECT_EQ(one(fixed(false, 0, 0, page, 0)), -ENOENT);
	EXPECT_EQ(pinned(), 1024u);
}

TEST_F(Desc, MemlockIsKept)
{
	Memory memory(mib);
	EXPECT_EQ(in_child([&] {
			  rlimit none{0, 0}, some{64 * kib, 64 * kib};
			  if (setrlimit(RLIMIT_MEMLOCK, &some) || setresuid(65534, 65534, 65534))
				  return 1;
			  if (set_buffer(fd, 0, memory.at(), 64 * kib + 1) != -ENOMEM)
				  return 2;
			  if (set_buffer(fd, 0, memory.at(), 64 * kib))
				  return 3;
			  if (set_buffer(fd, 1, memory.at(), 1) != -ENOMEM)
				  return 4;
			  if (del_buffer(fd, 0) || set_buffer(fd, 1, memory.at(), 1))
				  return 5;
			  if (setrlimit(RLIMIT_MEMLOCK, &none))
				  return 6;
			  if (set_buffer(fd, 2, memory.at(), 1) != -ENOMEM)
				  return 7;
			  // without fixed buffers nothing is charged
			  return one(transfer(true, memory.at(), 100000, 0)) == 100000 ? 0 : 8;
		  }),
		  0);
}

TEST_F(Desc, MemoryOutlivesItsUnmapping)
{
	auto memory = std::make_unique<Memory>(mib);
	memory->fill(9);
	Memory copy(mib);
	std::memcpy(copy.at(), memory->at(), mib);
	ASSERT_EQ(set_buffer(fd, 1, memory->at(), mib), 0);
	memory.reset();
	ASSERT_EQ(one(fixed(true, 1, 0, mib, 0)), int(mib));
	Memory back(mib);
	ASSERT_EQ(pread(fd, back.at(), mib, 0), ssize_t(mib));
	EXPECT_EQ(std::memcmp(back.at(), copy.at(), mib), 0);
	EXPECT_EQ(one(fixed(false, 1, 0, mib, 0)), int(mib));
}

// The buffer stays the memory of who registered it, on both sides of a fork.
TEST_F(Desc, Fork)
{
	Memory memory(64 * kib);
	memory.fill(1);
	ASSERT_EQ(set_buffer(fd, 0, memory.at(), memory.length), 0);
	Memory zero(64 * kib);
	ASSERT_EQ(pwrite(fd, zero.at(), zero.length, 0), ssize_t(zero.length));
	EXPECT_EQ(in_child([&] {
			  std::memset(memory.at(), 'c', memory.length);
			  return one(fixed(false, 0, 0, 32 * kib, 0)) != int(32 * kib) ||
				 memory.at()[0] != 'c';
		  }),
		  0);
	EXPECT_EQ(std::memcmp(memory.at(), zero.at(), 32 * kib), 0);
	EXPECT_NE(std::memcmp(memory.at(32 * kib), zero.at(), 32 * kib), 0);
	memory.at()[5] = 'p';
	ASSERT_EQ(one(fixed(true, 0, 0, 64, 0)), 64);
	char byte;
	ASSERT_EQ(pread(fd, &byte, 1, 5), 1);
	EXPECT_EQ(byte, 'p');
}

TEST_F(Desc, EntriesAreTheLimit)
{
	Descs batch(KDIRECT_DESC_ENTRIES + 50, touch(0));
	kdirect_submit call{};
	call.descs = address(batch.data());
	call.nr_descs = uint32_t(batch.size());
	EXPECT_EQ(submit(fd, call), 0);
	EXPECT_EQ(call.submitted, uint32_t{KDIRECT_DESC_ENTRIES});
	EXPECT_EQ(submit(fd, call), -EAGAIN);
	Completions out;
	EXPECT_EQ(reap(fd, out, KDIRECT_DESC_ENTRIES), 0);
	EXPECT_EQ(out.size(), size_t{KDIRECT_DESC_ENTRIES});
	EXPECT_EQ(submit(fd, call), 0);
}

void nothing(int) {}

TEST_F(Desc, ASignalEndsTheWait)
{
	struct sigaction action {
	};
	action.sa_handler = nothing;
	sigaction(SIGUSR1, &action, nullptr);
	for (uint32_t flags : {0u, uint32_t{KDIRECT_SUBMIT_POLL}}) {
		pthread_t self = pthread_self();
		std::thread other([&] {
			usleep(100000);
			pthread_kill(self, SIGUSR1);
		});
		Completions out;
		EXPECT_EQ(reap(fd, out, 1, flags), -EINTR);
		other.join();
	}
}

// The file goes while a thread waits in it: the wait still has its end.
TEST_F(Desc, CloseWhileReaping)
{
	for (uint32_t flags : {0u, uint32_t{KDIRECT_SUBMIT_POLL}}) {
		int own = open(device.c_str(), O_RDWR);
		Memory memory(mib);
		std::vector<int> results;
		ASSERT_EQ(set_buffer(own, 0, memory.at(), mib), 0);
		std::thread reaper([&] {
			Completions out;
			EXPECT_EQ(reap(own, out, 200, flags, 20000000000), 0);
			for (const kdirect_completion &c : out)
				results.push_back(c.result);
		});
		Descs batch(200, fixed(false, 0, 0, 30000, 0));
		kdirect_submit call{};
		call.descs = address(batch.data());
		call.nr_descs = 200;
		EXPECT_EQ(submit(own, call), 0);
		EXPECT_EQ(call.submitted, 200u);
		close(own);
		reaper.join();
		EXPECT_EQ(results, std::vector<int>(200, 30000));
	}
}

// Threads submit, reap, and replace what is in use.
TEST_F(Desc, ThreadsRace)
{
	Memory memory(mib);
	std::atomic<int> left{2000}, done{0};
	std::atomic<bool> stop{false};
	std::vector<std::thread> threads;
	for (unsigned t = 0; t < 4; t++)
		threads.emplace_back([&, t] {
			Completions out;
			while (done < 2000) {
				Descs batch;
				for (int i = 0; i < 8 && left.fetch_sub(1) > 0; i++)
					batch.push_back(i % 2 ? touch(256)
							      : fixed(false, 0, t * page, page, 0));
				size_t begun = 0;
				do {
					kdirect_submit call{};
					call.descs = address(batch.data() + begun);
					call.nr_descs = uint32_t(batch.size() - begun);
					int err = submit(fd, call);
					EXPECT_TRUE(!err || err == -EAGAIN) << err;
					begun += err ? 0 : call.submitted;
					err = reap(fd, out, 1, t % 2 ? KDIRECT_SUBMIT_POLL : 0,
						   1000000);
					EXPECT_TRUE(!err || err == -ETIMEDOUT) << err;
					for (const kdirect_completion &c : out)
						EXPECT_TRUE(c.result > 0 || c.result == -ENOENT)
							<< c.result;
					done += int(out.size());
				} while (begun < batch.size());
			}
		});
	threads.emplace_back([&] {
		while (!stop) {
			EXPECT_EQ(set_buffer(fd, 0, memory.at(), 4 * page), 0);
			sched_yield();
			EXPECT_EQ(del_buffer(fd, 0), 0);
		}
	});
	for (size_t i = 0; i < 4; i++)
		threads[i].join();
	stop = true;
	threads[4].join();
	EXPECT_EQ(done, 2000);
}

// Who dies with everything under way leaves nothing.
TEST_F(Desc, KilledUnderLoad)
{
	for (int round = 0; round < 5; round++) {
		int ready[2];
		ASSERT_EQ(pipe(ready), 0);
		pid_t child = fork();
		if (!child) {
			int own = open(device.c_str(), O_RDWR);
			Memory memory(4 * mib);
			memory.fill(1);
			set_buffer(own, 0, memory.at(), 4 * mib);
			Descs batch;
			for (unsigned i = 0; i < 250; i++)
				batch.push_back(
					i % 2 ? fixed(i % 4 == 1, 0, i * page, 30000, 0)
					      : transfer(false, memory.at(i * page), 20000, 0));
			(void)!write(ready[1], "x", 1);
			for (;;)
				run(own, batch);
		}
		char byte;
		EXPECT_EQ(read(ready[0], &byte, 1), 1);
		usleep(unsigned(round) * 7000);
		kill(child, SIGKILL);
		int status;
		EXPECT_EQ(waitpid(child, &status, 0), child);
		close(ready[0]);
		close(ready[1]);
	}
	EXPECT_EQ(one(touch(0)), 8);
}

// Bytes of no sense: each call ends, with an error that is documented. What a changed
// address reaches is ours, or nobody's.
TEST_F(Desc, AnyBytes)
{
	Memory reserve(64 * mib, PROT_NONE, MAP_NORESERVE);
	char *memory =
		reinterpret_cast<char *>((address(reserve.at()) + 16 * mib) & ~(16 * mib - 1));
	ASSERT_EQ(mprotect(memory, mib, PROT_READ | PROT_WRITE), 0);
	uint64_t x = 88172645463325252ULL;
	auto next = [&] { return x ^= x << 13, x ^= x >> 7, x ^= x << 17; };
	const std::set<int> calls = {0,          -EAGAIN, -EINVAL, -EFAULT,
				     -ETIMEDOUT, -ENOENT, -ENOMEM, -EINTR},
			    ends = {-EINVAL, -ERANGE, -EACCES,    -ENOENT,
				    -EFAULT, -ENOMEM, -EOPNOTSUPP};
	for (int i = 0; i < 3000; i++) {
		Descs batch(1 + next() % 6);
		for (kdirect_desc &d : batch) {
			d = transfer(next() % 2, memory + next() % 8000, next() % 3000,
				     next() % mib);
			auto *bytes = reinterpret_cast<unsigned char *>(&d);
			for (uint64_t n = next() % 3; n; n--) {
				size_t at = next() % sizeof(d),
				       in_addr = at - offsetof(kdirect_desc, addr);
				if (in_addr < 3 || in_addr > 6)
					bytes[at] = static_cast<unsigned char>(next());
			}
			if (d.length > 100000)
				d.length = 100000;
		}
		Completions out(8);
		kdirect_submit call{};
		call.descs = next() % 16 ? address(batch.data()) : next() % 4096;
		call.completions = next() % 16 ? address(out.data()) : next() % 4096;
		call.nr_descs = uint32_t(batch.size());
		call.nr_completions = 8;
		call.min_completions = uint32_t(next() % 9);
		call.timeout_ns = next() % 4000000;
		auto *bytes = reinterpret_cast<unsigned char *>(&call);
		if (next() % 4 == 0)
			bytes[offsetof(kdirect_submit, flags) + next() % 4] =
				static_cast<unsigned char>(next());
		if (next() % 16 == 0)
			bytes[offsetof(kdirect_submit, reserved) + next() % 16] = 1;
		int err = submit(fd, call);
		EXPECT_TRUE(calls.count(err)) << err;
		for (uint32_t j = 0; !err && j < call.completed; j++)
			EXPECT_TRUE(out[j].result >= 0 || ends.count(out[j].result))
				<< out[j].result;
		kdirect_buffer buffer{};
		buffer.addr = next() % 2 ? address(memory + next() % 1100000) : next() | 1ULL << 47;
		buffer.length = next() % 3 ? next() % 9000 : next();
		buffer.index = uint32_t(next() % 260);
		buffer.reserved[0] = next() % 8 == 0;
		err = ioctl(fd, KDIRECT_IOC_BUFFER_SET, &buffer) ? -errno : 0;
		EXPECT_TRUE(calls.count(err)) << err;
		EXPECT_TRUE(calls.count(del_buffer(fd, uint32_t(next() % 260))));
	}
}

} // namespace

int main(int argc, char **argv)
{
	testing::InitGoogleTest(&argc, argv);
	if (argc != 3) {
		std::fprintf(stderr, "usage: desc_test DEVICE SIZE\n");
		return 2;
	}
	device = argv[1];
	size = std::stoull(argv[2]);
	return RUN_ALL_TESTS();
}
