// SPDX-License-Identifier: GPL-2.0-only
// The C++ wrapper.
#include "fake.h"

#include <array>
#include <gtest/gtest.h>
#include <libkdirect.hh>
#include <type_traits>

namespace
{

using namespace std::chrono_literals;

static_assert(!std::is_copy_constructible_v<kdirect::Channel> &&
	      std::is_nothrow_move_constructible_v<kdirect::Channel>);
static_assert(!std::is_copy_constructible_v<kdirect::Mapping> &&
	      std::is_nothrow_move_assignable_v<kdirect::Mapping>);
static_assert(!std::is_copy_constructible_v<kdirect::Buffer> &&
	      std::is_nothrow_move_constructible_v<kdirect::Buffer>);
static_assert(!std::is_copy_constructible_v<kdirect::Batch> &&
	      std::is_nothrow_move_constructible_v<kdirect::Batch>);
static_assert(!std::is_copy_constructible_v<kdirect::Ring> &&
	      std::is_nothrow_move_constructible_v<kdirect::Ring>);

// Files of the fake kernel are closed by it; those numbers are nobody's here.
template <typename Body>
int thrown(Body body)
{
	try {
		body();
	} catch (const std::system_error &e) {
		EXPECT_EQ(e.code().category(), std::generic_category());
		return e.code().value();
	}
	return 0;
}

class Wrapper : public testing::Test
{
protected:
	fake::Kernel kernel;
};

TEST_F(Wrapper, Channels)
{
	kdirect::Channel channel("c0");
	EXPECT_EQ(channel.info().max_message, 1000u);
	channel.set_flags(KDIRECT_OPEN_POLL);
	EXPECT_EQ(channel.flags(), uint32_t{KDIRECT_OPEN_POLL});
	EXPECT_EQ(channel.ping(64), 64ns);
	std::array<std::byte, 1000> buffer{};
	std::array<std::byte, 2> message{std::byte{1}, std::byte{2}};
	channel.send(message);
	kernel.room = 0;
	EXPECT_FALSE(channel.try_send(message));
	EXPECT_FALSE(channel.try_send(message, 1us));
	EXPECT_EQ(thrown([&] { channel.send(message, 1us); }), EAGAIN);
	kernel.write_error = -EPIPE;
	EXPECT_EQ(thrown([&] { channel.send(message); }), EPIPE);
	EXPECT_EQ(thrown([&] { channel.try_send(message); }), EPIPE);
	EXPECT_FALSE(channel.try_recv(buffer).has_value());
	EXPECT_FALSE(channel.try_recv(buffer, 1us).has_value());
	kernel.arrived = {{'a'}, {'b', 'c'}};
	EXPECT_EQ(channel.recv(buffer).size(), 1u);
	auto got = channel.try_recv(buffer);
	ASSERT_TRUE(got.has_value());
	EXPECT_EQ(got->size(), 2u);
	EXPECT_EQ(got->data(), buffer.data());
	EXPECT_EQ(thrown([&] { channel.recv(std::span(buffer).first(10)); }), EMSGSIZE);
	kernel.read_error = -ETIMEDOUT;
	EXPECT_EQ(thrown([&] { channel.try_recv(buffer, 1us); }), ETIMEDOUT);
	kernel.read_error = 0;
	EXPECT_TRUE(channel.recv(buffer).empty());
	(void)channel.release();
}

TEST_F(Wrapper, ErrorsHaveTheSentence)
{
	kernel.open_result = -ENOENT;
	try {
		kdirect::Mapping mapping("m0");
		FAIL();
	} catch (const std::system_error &e) {
		EXPECT_EQ(e.code(), std::errc::no_such_file_or_directory);
		EXPECT_EQ(std::string(e.what()).find(kdirect_explain(KDIRECT_CALL_OPEN, ENOENT)),
			  0u);
	}
	kernel.open_result = 0;
	EXPECT_EQ(thrown([] { kdirect::Mapping mapping("/dev/null"); }), ENOTTY);
}

TEST_F(Wrapper, BuffersEndWithTheirObject)
{
	kdirect::Mapping mapping("m0");
	std::array<std::byte, 64> memory, other;
	{
		kdirect::Buffer first(mapping, 3, memory);
		EXPECT_EQ(kernel.remote.buffers.at(3).length, 64u);
		kdirect::Buffer second(std::move(first));
		EXPECT_EQ(second.index(), 3);
		second.set(std::span(other).first(5));
		EXPECT_EQ(kernel.remote.buffers.at(3).length, 5u);
		EXPECT_EQ(second.memory().data(), other.data());
	}
	EXPECT_TRUE(kernel.remote.buffers.empty());
	EXPECT_EQ(thrown([&] { kdirect::Buffer bad(mapping, 1000, memory); }), EINVAL);
	(void)mapping.release();
}

// The same through a batch and a ring.
template <typename Queue, typename Finish>
void fill(Queue &queue, kdirect::Buffer &buffer, Finish finish)
{
	uint64_t number = 40, back = 0;
	auto bytes = std::as_bytes(std::span(&number, 1));
	ASSERT_TRUE(queue.write(bytes, 8, 1));
	finish();
	ASSERT_TRUE(queue.fetch_add(8, 2, 2));
	finish();
	ASSERT_TRUE(queue.cmp_swap(8, 42, 50, 3));
	finish();
	ASSERT_TRUE(queue.read(std::as_writable_bytes(std::span(&back, 1)), 8, 4));
	finish();
	EXPECT_EQ(back, 50u);
	ASSERT_TRUE(queue.read(buffer, 16, 8, 8, 5));
	finish();
	EXPECT_EQ(std::memcmp(buffer.memory().data() + 16, &back, 8), 0);
	ASSERT_TRUE(queue.write(buffer, 16, 8, 24, 6));
	finish();
}

TEST_F(Wrapper, Batches)
{
	kdirect::Mapping mapping("m0");
	std::array<std::byte, 64> memory{};
	kdirect::Buffer buffer(mapping, 2, memory);
	kdirect::Batch batch(1);
	std::array<kdirect_completion, 4> done;
	uint64_t next = 1;
	fill(batch, buffer, [&] {
		EXPECT_FALSE(batch.fetch_add(0, 0));
		EXPECT_EQ(batch.size(), 1u);
		auto got = batch.run(mapping, done);
		ASSERT_EQ(got.size(), 1u);
		EXPECT_EQ(got[0].user_data, next++);
		EXPECT_GT(got[0].result, 0);
	});
	EXPECT_EQ(kernel.remote.bytes[24], 50);
	EXPECT_EQ(mapping.reap(done, 1, 1us), 0u);
	kernel.under_way = KDIRECT_DESC_ENTRIES;
	ASSERT_TRUE(batch.fetch_add(0, 0));
	EXPECT_EQ(batch.submit(mapping, done), 0u);
	EXPECT_EQ(batch.run(mapping, done, 1us).size(), 0u);
	EXPECT_EQ(batch.size(), 1u);
	EXPECT_EQ(thrown([&] { batch.run(mapping, {}); }), EINVAL);
	kernel.results = {-ESTALE, -EBUSY};
	EXPECT_EQ(thrown([&] { batch.submit(mapping, done); }), ESTALE);
	EXPECT_EQ(thrown([&] { mapping.reap(done); }), EBUSY);
	batch.clear();
	EXPECT_EQ(batch.size(), 0u);
	kdirect_desc *desc = batch.next();
	kdirect_prep_fetch_add(desc, kernel.size, 1, 0);
	kdirect_map_info info = mapping.info();
	kernel.under_way = 0;
	auto failed = batch.run(mapping, done);
	EXPECT_EQ(kdirect::explain(*desc, failed[0], &info),
		  "FETCH_ADD at 65536 reaches past the end of the export, which has 65536");
}

TEST_F(Wrapper, Rings)
{
	kdirect::Mapping mapping("m0");
	std::array<std::byte, 64> memory{};
	kdirect::Buffer buffer(mapping, 2, memory);
	for (uint32_t flags : {0u, uint32_t{KDIRECT_RING_THREAD}}) {
		kdirect::Ring ring(mapping, 1, 1, flags, 100ns);
		EXPECT_EQ(ring.layout().sq_entries, 1u);
		EXPECT_EQ(ring.layout().thread_cpu, flags ? -1 : 0);
		EXPECT_EQ(ring.layout().idle_ns, flags ? 100u : 0u);
		EXPECT_EQ(ring.fd(), fake::Kernel::ring_fd);
		uint64_t next = 1;
		fill(ring, buffer, [&] {
			ASSERT_EQ(ring.submit_and_wait(), 1u);
			EXPECT_EQ(ring.peek()->user_data, next);
			EXPECT_EQ(ring.reap([&](const kdirect_completion &c) {
				EXPECT_EQ(c.user_data, next++);
				EXPECT_GT(c.result, 0);
			}),
				  1u);
			EXPECT_EQ(ring.ready(), 0u);
			EXPECT_EQ(ring.unsubmitted(), 0u);
		});
		EXPECT_EQ(ring.wait(1, 1us), 0u);
		EXPECT_EQ(thrown([&] { ring.wait(2); }), EINVAL);
		EXPECT_EQ(thrown([&] { ring.advance(1); }), EINVAL);
		kdirect::Ring moved(std::move(ring));
		ASSERT_TRUE(moved.fetch_add(0, 0));
		EXPECT_EQ(moved.submit(), 1u);
		EXPECT_EQ(moved.wait(), 1u);
	}
	EXPECT_FALSE(kernel.opened.contains(fake::Kernel::ring_fd));
	kernel.results = {-EBUSY};
	EXPECT_EQ(thrown([&] { kdirect::Ring ring(mapping, 1, 1); }), EBUSY);
}

} // namespace
