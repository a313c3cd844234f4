// SPDX-License-Identifier: GPL-2.0-only
// libkdirect over the module: what the tests of the tools have tried on a kernel of their own.
//
//	library_test CHANNEL PEER MAPPING READ_ONLY
//	library_test --until-end MAPPING [ring] [poll] [thread]
//
// PEER is the other end of CHANNEL, in this machine; the channel has interrupt and poll queues.
// --until-end keeps READs under way until one fails, and prints why.
#include "common.h"

#include <libkdirect.hh>

#include <array>
#include <atomic>
#include <csignal>
#include <set>
#include <sys/wait.h>
#include <thread>

#include <gtest/gtest.h>

namespace
{

using namespace std::chrono_literals;

constexpr uint32_t both = KDIRECT_RING_POLL | KDIRECT_RING_THREAD;
const uint32_t all_flags[] = {0, KDIRECT_RING_POLL, KDIRECT_RING_THREAD, both};
std::string channel_name, peer_name, mapping_name, read_only_name;

std::span<std::byte> bytes(std::vector<uint8_t> &memory)
{
	return std::as_writable_bytes(std::span(memory));
}

template <typename Body>
int thrown(Body body)
{
	try {
		body();
	} catch (const std::system_error &e) {
		return e.code().value();
	}
	return 0;
}

class Library : public testing::Test
{
protected:
	void SetUp() override { alarm(120 * slow()); }
	void TearDown() override { alarm(0); }
};

TEST_F(Library, Nodes)
{
	kdirect::Channel channel(channel_name);
	kdirect::Mapping mapping("/dev/kdirect/" + mapping_name);
	EXPECT_EQ(channel.info().name, channel_name);
	EXPECT_EQ(mapping.info().name, mapping_name);
	EXPECT_EQ(kdirect_kind_of(channel.fd()), KDIRECT_NODE_CHANNEL);
	EXPECT_EQ(kdirect_kind_of(mapping.fd()), KDIRECT_NODE_MAPPING);
	EXPECT_EQ(kdirect_open("nobody", O_RDWR), -ENOENT);
	EXPECT_EQ(kdirect_open("/dev/null", O_RDWR), -ENOTTY);
	EXPECT_EQ(thrown([] { kdirect::Mapping wrong(channel_name); }), ENOTTY);
	EXPECT_EQ(thrown([] { kdirect::Channel wrong(mapping_name); }), ENOTTY);
	for (auto *file :
	     {static_cast<kdirect::File *>(&channel), static_cast<kdirect::File *>(&mapping)}) {
		file->set_flags(KDIRECT_OPEN_POLL | KDIRECT_OPEN_BUSY);
		EXPECT_EQ(file->flags(), KDIRECT_OPEN_POLL | KDIRECT_OPEN_BUSY);
		EXPECT_EQ(thrown([&] { file->set_flags(1U << 31); }), EINVAL);
	}
	EXPECT_GT(channel.ping().count(), 0);
	EXPECT_GT(channel.ping(100, KDIRECT_PING_POLL, 5s).count(), 0);
	EXPECT_EQ(thrown([&] { channel.ping(1 << 20); }), EMSGSIZE);
	EXPECT_EQ(thrown([&] { channel.ping(64, 0, 61s); }), EINVAL);
}

TEST_F(Library, MessagesWithTimeLimits)
{
	kdirect::Channel here(channel_name), there(peer_name);
	const size_t longest = here.info().max_message;
	std::vector<uint8_t> buffer(longest);
	EXPECT_FALSE(there.try_recv(bytes(buffer)).has_value());
	auto begun = std::chrono::steady_clock::now();
	EXPECT_FALSE(there.try_recv(bytes(buffer), 30ms).has_value());
	EXPECT_GE(std::chrono::steady_clock::now() - begun, 30ms);
	for (size_t length : {size_t{1}, size_t{5000}, size_t{200000}, longest})
		for (kdirect::Nanoseconds limit : {kdirect::forever, kdirect::Nanoseconds(20s)}) {
			std::vector<uint8_t> message = content(length, length);
			std::thread sender([&] { here.send(bytes(message), limit); });
			auto got = there.recv(bytes(buffer), limit);
			sender.join();
			ASSERT_EQ(got.size(), length);
			EXPECT_EQ(std::memcmp(got.data(), message.data(), length), 0);
		}
	EXPECT_EQ(thrown([&] { there.recv(bytes(buffer).first(longest - 1)); }), EMSGSIZE);
	std::vector<uint8_t> too_long(longest + 1);
	EXPECT_EQ(thrown([&] { here.send(bytes(too_long)); }), EMSGSIZE);
	EXPECT_EQ(thrown([&] { here.try_send(bytes(too_long), 1s); }), EMSGSIZE);
	// full: nobody reads
	std::vector<uint8_t> small = content(16, 3);
	unsigned sent = 0;
	while (sent < 100000 && here.try_send(bytes(small)))
		sent++;
	ASSERT_LT(sent, 100000u);
	EXPECT_FALSE(here.try_send(bytes(small), 20ms));
	EXPECT_EQ(thrown([&] { here.send(bytes(small), 20ms); }), EAGAIN);
	std::thread reader([&] {
		for (unsigned i = 0; i < sent + 1; i++)
			EXPECT_EQ(there.recv(bytes(buffer)).size(), 16u);
	});
	here.send(bytes(small));
	reader.join();
	EXPECT_FALSE(there.try_recv(bytes(buffer)).has_value());
}

TEST_F(Library, BatchesLargerThanTheKernelTakes)
{
	kdirect::Mapping mapping(mapping_name);
	constexpr uint32_t count = 600, length = 1500;
	std::vector<uint8_t> out = content(count * length, 1), in(out.size());
	kdirect::Buffer buffer(mapping, 9, bytes(in));
	kdirect::Batch batch(count);
	std::vector<kdirect_completion> done(count);
	for (uint32_t flags : {0u, uint32_t{KDIRECT_SUBMIT_POLL}}) {
		mapping.write(bytes(in), 0);
		for (bool write : {true, false}) {
			std::set<uint64_t> seen;
			for (uint32_t i = 0; i < count; i++) {
				size_t at = i * length;
				auto part = bytes(out).subspan(at, length);
				ASSERT_TRUE(write ? batch.write(part, at, i)
						  : batch.read(buffer, at, length, at, i));
			}
			EXPECT_FALSE(batch.fetch_add(0, 0));
			for (const kdirect_completion &c :
			     batch.run(mapping, done, kdirect::forever, flags)) {
				EXPECT_EQ(c.result, int(length));
				seen.insert(c.user_data);
			}
			EXPECT_EQ(seen.size(), count);
			EXPECT_EQ(batch.size(), 0u);
		}
		EXPECT_TRUE(in == out);
		std::fill(in.begin(), in.end(), 0);
	}
	EXPECT_EQ(mapping.reap(done, 1, 10ms), 0u);
	EXPECT_EQ(mapping.reap(done, 1, 0ms), 0u);
}

TEST_F(Library, AtomicsAndWords)
{
	kdirect::Mapping mapping(mapping_name);
	kdirect_map_info info = mapping.info();
	if (!(info.flags & KDIRECT_MAP_ATOMICS))
		GTEST_SKIP();
	std::array<kdirect_completion, 8> done;
	kdirect::Batch batch(8);
	uint64_t zero = 0;
	mapping.write(std::as_bytes(std::span(&zero, 1)), 64);
	auto one = [&] {
		auto got = batch.run(mapping, done);
		EXPECT_EQ(got.size(), 1u);
		return got[0];
	};
	batch.fetch_add(64, 41);
	EXPECT_EQ(one().old, 0u);
	batch.cmp_swap(64, 41, 7);
	EXPECT_EQ(one().old, 41u);
	batch.cmp_swap(64, 41, 9);
	EXPECT_EQ(one().old, 7u);
	kdirect_desc *desc = batch.next();
	kdirect_prep_fetch_add(desc, info.size, 1, 0);
	EXPECT_EQ(kdirect::explain(*desc, one(), &info),
		  "FETCH_ADD at " + std::to_string(info.size) +
			  " reaches past the end of the export, which has " +
			  std::to_string(info.size));
	desc = batch.next();
	kdirect_prep_read_fixed(desc, 77, 0, 8, 0, 0);
	EXPECT_EQ(kdirect::explain(*desc, one(), &info),
		  "READ of 8 bytes at 0: there is no fixed buffer 77");
	desc = batch.next();
	kdirect_prep_read(desc, nullptr, 8, 0, 0);
	EXPECT_EQ(kdirect::explain(*desc, one(), &info),
		  "READ of 8 bytes at 0: the memory at 0x0 cannot be written");
	// each field that the sentences know is one that the kernel refuses
	const std::pair<const char *, void (*)(kdirect_desc &)> wrong[] = {
		{"opcode 99", [](kdirect_desc &d) { d.opcode = 99; }},
		{"unknown flags 0x80", [](kdirect_desc &d) { d.flags = 0x80; }},
		{"a reserved field", [](kdirect_desc &d) { d.reserved = 1; }},
		{"cannot use a fixed buffer",
		 [](kdirect_desc &d) { d.flags = KDIRECT_DESC_FIXED; }},
		{"names buffer 3", [](kdirect_desc &d) { d.buffer = 3; }},
		{"a length of 8, not 9", [](kdirect_desc &d) { d.length = 9; }},
		{"an addr", [](kdirect_desc &d) { d.addr = 1; }},
		{"at a multiple of 8", [](kdirect_desc &d) { d.remote = 9; }},
		{"a compare", [](kdirect_desc &d) { d.compare = 9; }},
		{"an operand", [](kdirect_desc &d) { d.opcode = KDIRECT_OP_READ; }},
		{"longer than",
		 [](kdirect_desc &d) {
			 kdirect_prep_read(&d, nullptr, KDIRECT_DESC_LENGTH_MAX + 1, 0, 0);
		 }},
	};
	for (const auto &[words, spoil] : wrong) {
		desc = batch.next();
		kdirect_prep_fetch_add(desc, 64, 1, 0);
		spoil(*desc);
		kdirect_completion c = one();
		EXPECT_EQ(c.result, -EINVAL) << words;
		EXPECT_NE(kdirect::explain(*desc, c, &info).find(words), std::string::npos)
			<< kdirect::explain(*desc, c, &info);
	}
}

TEST_F(Library, BuffersMayChangeWhileTheyAreUsed)
{
	kdirect::Mapping mapping(mapping_name);
	std::vector<uint8_t> first = content(65536, 1), second = content(65536, 2);
	std::array<kdirect_completion, 64> done;
	kdirect::Batch batch(64);
	{
		kdirect::Buffer buffer(mapping, 0, bytes(first));
		for (unsigned i = 0; i < 50; i++)
			batch.write(buffer, 0, 16384, 0, i);
		size_t got = batch.submit(mapping, done);
		buffer.set(bytes(second));
		batch.write(buffer, 16384, 16384, 16384, 50);
		while (got < 51)
			got += batch.submit(mapping, std::span(done).subspan(got), 1);
	}
	for (unsigned i = 0; i < 51; i++)
		EXPECT_EQ(done[i].result, 16384);
	std::vector<uint8_t> back(32768);
	EXPECT_EQ(mapping.read(bytes(back), 0), 32768u);
	EXPECT_EQ(std::memcmp(back.data(), first.data(), 16384), 0);
	EXPECT_EQ(std::memcmp(back.data() + 16384, second.data() + 16384, 16384), 0);
	EXPECT_EQ(kdirect_buffer_remove(mapping.fd(), 0), -ENOENT);
	EXPECT_EQ(kdirect_buffer_set(mapping.fd(), KDIRECT_BUFFERS, back.data(), 1), -EINVAL);
}

TEST_F(Library, ReadOnly)
{
	EXPECT_EQ(thrown([] { kdirect::Mapping mapping(read_only_name); }), EACCES);
	kdirect::Mapping mapping(read_only_name, O_RDONLY);
	kdirect_map_info info = mapping.info();
	EXPECT_TRUE(info.flags & KDIRECT_MAP_READ_ONLY);
	std::vector<uint8_t> memory(64);
	std::array<kdirect_completion, 3> done;
	kdirect::Batch batch(3);
	batch.read(bytes(memory), 0, 1);
	batch.write(bytes(memory), 0, 2);
	batch.fetch_add(0, 1, 3);
	for (const kdirect_completion &c : batch.run(mapping, done))
		EXPECT_EQ(c.result, c.user_data == 1 ? 64 : -EACCES);
	kdirect_desc desc;
	kdirect_prep_write(&desc, memory.data(), 64, 0, 0);
	done[0].result = -EACCES;
	done[0].status = 0;
	EXPECT_EQ(kdirect::explain(desc, done[0], &info),
		  "WRITE of 64 bytes at 0: the mapping is read-only");
}

// Each kind of ring; with room for few completions, and for many.
TEST_F(Library, Rings)
{
	constexpr uint32_t count = 400, length = 900;
	for (uint32_t flags : all_flags)
		for (uint32_t cq : {2u, 256u}) {
			SCOPED_TRACE(testing::Message() << flags << ", " << cq);
			kdirect::Mapping mapping(mapping_name);
			std::vector<uint8_t> out = content(count * length, flags + cq),
					     in(out.size());
			kdirect::Buffer buffer(mapping, 1, bytes(in));
			kdirect::Ring ring(mapping, 32, cq, flags, cq == 2 ? 0ns : 1ms);
			for (bool write : {true, false}) {
				std::vector<unsigned> seen(count);
				uint32_t begun = 0, ended = 0;
				while (ended < count) {
					while (begun < count) {
						size_t at = begun * length;
						auto part = bytes(out).subspan(at, length);
						if (!(write ? ring.write(part, at, begun)
							    : ring.read(buffer, at, length, at,
									begun)))
							break;
						begun++;
					}
					ASSERT_GT(ring.submit_and_wait(1, 20s), 0u);
					ended += ring.reap([&](const kdirect_completion &c) {
						EXPECT_EQ(c.result, int(length));
						seen.at(c.user_data)++;
					});
				}
				EXPECT_EQ(seen, std::vector<unsigned>(count, 1));
			}
			EXPECT_TRUE(in == out);
			EXPECT_EQ(ring.wait(1, 5ms), 0u);
		}
}

// Nobody waits in the kernel: a thread that is not woken would complete nothing.
TEST_F(Library, ASleepingThreadIsWoken)
{
	kdirect::Mapping mapping(mapping_name);
	kdirect::Ring ring(mapping, 8, 8, both, 0ns);
	for (uint64_t i = 0; i < 200 / few(); i++) {
		ASSERT_TRUE(ring.fetch_add(0, 0, i));
		ASSERT_EQ(ring.submit(), 1u);
		while (!ring.ready())
			usleep(50);
		EXPECT_EQ(ring.peek()->user_data, i);
		ring.advance(1);
		if (i % 3 == 0)
			usleep(1000);
	}
}

TEST_F(Library, OneThreadSubmitsAnotherReaps)
{
	for (uint32_t flags : all_flags) {
		kdirect::Mapping mapping(mapping_name);
		kdirect::Ring ring(mapping, 16, 4, flags);
		const uint64_t count = 1000 / few();
		// some devices have no atomic operations, and say so for each
		const int result = mapping.info().flags & KDIRECT_MAP_ATOMICS ? 8 : -EOPNOTSUPP;
		std::thread submitter([&] {
			for (uint64_t i = 0; i < count || ring.unsubmitted();) {
				if (i < count && ring.fetch_add(0, 0, i))
					i++;
				ring.submit();
				sched_yield();
			}
		});
		std::vector<unsigned> seen(count);
		for (uint64_t got = 0; got < count;) {
			ring.wait(1, 100ms);
			got += ring.reap([&](const kdirect_completion &c) {
				EXPECT_EQ(c.result, result);
				seen.at(c.user_data)++;
			});
		}
		submitter.join();
		EXPECT_EQ(seen, std::vector<unsigned>(count, 1));
	}
}

TEST_F(Library, ABatchOrARing)
{
	kdirect::Mapping mapping(mapping_name);
	std::array<kdirect_completion, 2> done;
	kdirect::Batch batch(2);
	{
		kdirect::Ring ring(mapping, 4, 4);
		EXPECT_EQ(thrown([&] { kdirect::Ring second(mapping, 4, 4); }), EBUSY);
		batch.fetch_add(0, 0, 5);
		EXPECT_EQ(thrown([&] { batch.submit(mapping, done); }), EBUSY);
		EXPECT_EQ(batch.size(), 1u);
		EXPECT_EQ(thrown([&] { mapping.reap(done); }), EBUSY);
		EXPECT_EQ(thrown([&] { ring.wait(5); }), EINVAL);
		ring.fetch_add(0, 0, 6);
		EXPECT_EQ(ring.submit(), 1u);
		EXPECT_EQ(ring.wait(), 1u);
	}
	EXPECT_EQ(batch.run(mapping, done).size(), 1u);
	EXPECT_EQ(thrown([&] { kdirect::Ring bad(mapping, 3, 4); }), EINVAL);
	EXPECT_EQ(thrown([&] { kdirect::Ring bad(mapping, 4, 8192); }), EINVAL);
	EXPECT_EQ(
		thrown([&] { kdirect::Ring bad(mapping, 4, 4, KDIRECT_RING_THREAD, 1ms, 100000); }),
		EINVAL);
}

// A child goes on with its parent's rings, by memory of its own.
TEST_F(Library, Fork)
{
	kdirect::Mapping mapping(mapping_name);
	kdirect::Ring ring(mapping, 4, 4);
	for (int round = 0; round < 3; round++) {
		ring.fetch_add(8, 0, 1);
		ASSERT_EQ(ring.submit_and_wait(), 1u);
		ring.advance(1);
	}
	pid_t child = fork();
	if (!child) {
		kdirect_ring *own;
		if (kdirect_ring_attach(dup(ring.fd()), &ring.layout(), &own))
			_exit(1);
		kdirect_prep_fetch_add(kdirect_ring_next(own), 8, 0, 2);
		if (kdirect_ring_submit_and_wait(own, 1, -1) != 1 ||
		    kdirect_ring_peek(own, 0)->user_data != 2 ||
		    kdirect_ring_peek(own, 0)->index != 3 || kdirect_ring_advance(own, 1))
			_exit(2);
		kdirect_ring_free(own);
		_exit(0);
	}
	int status = -1;
	waitpid(child, &status, 0);
	EXPECT_EQ(status, 0);
}

// --- until the end -----------------------------------------------------------------------

int tell(int result, uint64_t ended)
{
	std::printf("%s after %llu\n", kdirect_explain(KDIRECT_CALL_DESC, result),
		    static_cast<unsigned long long>(ended));
	return 0;
}

int by_batch(kdirect::Mapping &mapping, const kdirect::Buffer &buffer, uint32_t flags)
{
	kdirect::Batch batch(32);
	std::array<kdirect_completion, 32> done;
	for (uint64_t ended = 0;;) {
		for (uint64_t i = 0; batch.read(buffer, i * 2048, 2048, i * 2048, i); i++)
			;
		for (const kdirect_completion &c :
		     batch.run(mapping, done, kdirect::forever, flags)) {
			if (c.result < 0)
				return tell(c.result, ended);
			ended++;
		}
	}
}

int by_ring(kdirect::Mapping &mapping, const kdirect::Buffer &buffer, uint32_t flags)
{
	kdirect::Ring ring(mapping, 32, 32, flags);
	int failed = 0;
	for (uint64_t begun = 0, ended = 0; !failed || ended < begun;) {
		while (!failed && begun < ended + 32 &&
		       ring.read(buffer, begun % 32 * 2048, 2048, begun % 32 * 2048, begun))
			begun++;
		ring.submit_and_wait();
		ended += ring.reap([&](const kdirect_completion &c) {
			if (c.result < 0 && !failed)
				failed = c.result;
		});
		if (failed && ended == begun)
			return tell(failed, ended);
	}
	return 1;
}

int until_end(int argc, char **argv)
{
	uint32_t flags = 0;
	bool ring = false, poll = false;
	for (int i = 3; i < argc; i++) {
		ring |= !std::strcmp(argv[i], "ring");
		poll |= !std::strcmp(argv[i], "poll");
		flags |= std::strcmp(argv[i], "thread") ? 0 : KDIRECT_RING_THREAD;
	}
	kdirect::Mapping mapping(argv[2], O_RDONLY);
	std::vector<uint8_t> memory(65536);
	kdirect::Buffer buffer(mapping, 0, bytes(memory));
	return ring ? by_ring(mapping, buffer, flags | (poll ? uint32_t{KDIRECT_RING_POLL} : 0))
		    : by_batch(mapping, buffer, poll ? KDIRECT_SUBMIT_POLL : 0);
}

} // namespace

int main(int argc, char **argv)
{
	testing::InitGoogleTest(&argc, argv);
	if (argc >= 3 && !std::strcmp(argv[1], "--until-end")) {
		try {
			return until_end(argc, argv);
		} catch (const std::exception &e) {
			std::printf("%s\n", e.what());
			return 1;
		}
	}
	if (argc != 5)
		die("usage: library_test CHANNEL PEER MAPPING READ_ONLY | --until-end MAPPING ...");
	channel_name = argv[1];
	peer_name = argv[2];
	mapping_name = argv[3];
	read_only_name = argv[4];
	return RUN_ALL_TESTS();
}
