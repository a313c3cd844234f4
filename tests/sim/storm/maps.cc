// SPDX-License-Identifier: GPL-2.0-only
// Exports, and processes that map them: what they read is what they wrote, as long as it
// is the same export, and the fabric says when they reach memory that was taken away.
#include <algorithm>
#include <cstring>

#include "../ring.h"
#include "../uring.h"
#include "storm.h"

namespace sim
{

namespace
{

constexpr uint64_t slice = 24000; /* of each process */
constexpr uint32_t nr_mappers = 3;
constexpr const char *listeners[] = {"r", "s"};
constexpr int unseen = 1; /* a descriptor's result that has not come */
constexpr uint64_t nobody = UINT64_MAX;

} // namespace

/* Descriptors that move all of @memory, and others. */
struct Schedule::Batch {
	MapFile &file;
	std::span<char> memory;
	std::vector<kdirect_desc> descs;
	std::vector<int> expected, results;
	std::size_t begun = 0, ended = 0;

	void add(const kdirect_desc &desc, int result)
	{
		descs.push_back(desc);
		descs.back().user_data = descs.size() - 1;
		expected.push_back(result);
		results.push_back(unseen);
	}
	void note(const kdirect_completion &c)
	{
		if (c.user_data == nobody)
			return; /* of rings before */
		if (c.user_data >= begun || results[c.user_data] != unseen)
			fail("descriptor %llu completed twice, or was not submitted",
			     static_cast<unsigned long long>(c.user_data));
		else
			results[c.user_data] = c.result;
		ended++;
	}
	/* The fixed buffer goes, and comes again, whatever is under way. */
	void spoil(Rng &rng)
	{
		if (rng.chance(5))
			(void)file.del_buffer(0);
		if (rng.chance(5))
			(void)file.set_buffer(0, memory.data(), memory.size());
	}
};

/* Offers memory, takes it back, and offers other memory. */
void Schedule::exporter(Machine &m, Rng &rng)
{
	const char *listener = listeners[&m == &machines[1]];

	for (uint64_t i = rng.range(1, 3); i && !winding_up; i--) {
		w->run_for(rng.below(100 * us));
		int err = add_export(*w, "e", listener, nr_mappers * slice, rng.chance(5));
		if (err && faultless && err != KD_ENOENT && err != KD_EEXIST)
			fail("no export: error %d", err);
		if (err) {
			w->run_for(rng.below(5 * ms));
			continue;
		}
		reach->exports++;
		if (faultless || rng.chance(40))
			return;
		w->run_for(rng.below(10 * ms));
		(void)del_export(*w, "e");
		struct kd_export_info info;
		for (uint64_t pause = 10 * us; pause < 2 * sec; pause *= 2) {
			w->run_for(pause);
			if (!export_info(*w, "e", info))
				break;
		}
	}
}

/* One call at its slice. False: no more. */
bool Schedule::transfer(MapFile &file, uint64_t base, std::string &model, bool &known, Rng &rng)
{
	bool write = !known || rng.chance(50), async = rng.chance(25);
	std::size_t len = rng.chance(50) ? rng.range(1, 700) : rng.range(1, slice);
	uint64_t at = rng.below(slice - len + 1);
	uint32_t flags = rng.chance(20) ? uint32_t{KD_IO_POLL} : 0;

	if (!known)
		at = 0, len = slice;
	auto own = std::make_unique<std::string>(len, '\0');
	std::string &buffer = *own;
	if (write)
		for (char &byte : buffer)
			byte = static_cast<char>(rng.next());
	kd_iter iter = target_in(buffer);
	if (rng.chance(20))
		iter.user = false;
	if (async && rng.chance(30))
		flags |= KD_IO_NOWAIT;
	auto io = std::make_shared<AsyncIo>();
	int64_t ret = file.io(iter, base + at, write, flags, async ? io.get() : nullptr);
	if (ret == KD_IO_QUEUED) {
		reach->map_async++;
		for (uint64_t pause = us; !io->done; pause = std::min(pause * 2, 1 * ms))
			w->run_for(pause);
		ret = io->result;
	}
	if (ret == -KD_EOPNOTSUPP && (flags & KD_IO_POLL))
		return true;
	if (ret == -KD_EAGAIN && (flags & KD_IO_NOWAIT))
		return true;
	if (ret != static_cast<int64_t>(len)) {
		lent.push_back(std::move(own)); /* it may still be under way */
		known = known && !write;
		if (ret > 0 || ret == -KD_EIO || ret == -KD_ENOMEM || ret == -KD_ECONNRESET ||
		    ret == -KD_ETIMEDOUT)
			return !faultless;
		if (faultless && ret != -KD_EPIPE && ret != -KD_ENODEV && ret != -KD_EINTR)
			fail("a transfer of %zu bytes returned %lld", len,
			     static_cast<long long>(ret));
		return false;
	}
	reach->map_bytes += len;
	if (write)
		model.replace(at, len, buffer);
	else if (buffer != std::string_view(model).substr(at, len))
		fail("a mapping gives other bytes than were written");
	known |= write;
	return true;
}

/* Memory of a program, which stays: the device may use it longer than the program. */
std::span<char> Schedule::lend(std::size_t size)
{
	auto memory = std::make_shared<Zeroes>(size);

	lent.push_back(memory);
	w->user[reinterpret_cast<uint64_t>(memory->data())] = size;
	return *memory;
}

/* All of its slice in one batch, with what is invalid among it. False: no more. */
bool Schedule::batch(MapFile &file, uint64_t base, std::string &model, bool &known, Rng &rng)
{
	Batch batch{
		.file = file, .memory = lend(slice), .descs = {}, .expected = {}, .results = {}};
	std::span<char> memory = batch.memory;
	auto addr = reinterpret_cast<uint64_t>(memory.data());
	bool write = !known || rng.chance(50), whole = true, over = false;
	bool fixed = !file.set_buffer(0, memory.data(), slice);

	for (char &byte : memory)
		byte = write ? static_cast<char>(rng.next()) : '\0';
	for (uint64_t from = 0; from < slice;) {
		auto len = static_cast<uint32_t>(std::min(rng.range(1, 6000), slice - from));
		int result = static_cast<int>(len);

		if (fixed && rng.chance(50))
			batch.add(fixed_desc(write, 0, from, len, base + from), result);
		else if (write)
			batch.add(write_desc(addr + from, len, base + from), result);
		else
			batch.add(read_desc(addr + from, len, base + from), result);
		from += len;
		if (rng.chance(10))
			batch.add(add_desc(base, 0),
				  device.transport == KDIRECT_TRANSPORT_IWARP ? -KD_EOPNOTSUPP : 8);
		if (rng.chance(10))
			batch.add(read_desc(0, 1, UINT64_MAX), -KD_ERANGE);
	}
	bool all = rng.chance(40)   ? by_ring(batch, rng)
		   : rng.chance(50) ? by_uring(batch, rng)
				    : by_call(batch, rng);
	if (!all) {
		known = known && !write;
		return false; /* with what is under way */
	}
	reach->map_descs += batch.descs.size();
	for (std::size_t i = 0; i < batch.descs.size(); i++) {
		int got = batch.results[i];

		if (got == batch.expected[i])
			continue;
		whole = false;
		over |= got != -KD_ENOENT;
		if (got >= 0)
			fail("a descriptor of %u bytes returned %d", batch.descs[i].length, got);
		if (faultless && got != -KD_ENOENT && got != -KD_EPIPE && got != -KD_ENODEV &&
		    got != -KD_EINTR && got != -KD_EIO)
			fail("a descriptor of %u bytes returned %d", batch.descs[i].length, got);
	}
	known = known && (whole || !write);
	if (!whole)
		return !over || !faultless;
	if (write)
		model.assign(memory.begin(), memory.end());
	else if (!std::ranges::equal(memory, model))
		fail("descriptors give other bytes than were written");
	known = true;
	return true;
}

/* All of them with the ioctl. False: not to the end. */
bool Schedule::by_call(Batch &batch, Rng &rng)
{
	const std::vector<kdirect_desc> &descs = batch.descs;
	std::span<char> in = lend(descs.size() * sizeof(kdirect_desc)),
			out = lend(descs.size() * sizeof(kdirect_completion));
	bool poll = batch.file.info().poll_queues && rng.chance(30);

	std::memcpy(in.data(), descs.data(), in.size());
	while (batch.ended < descs.size()) {
		std::size_t left = descs.size() - batch.begun;
		/* Behind the last of them is no memory. */
		std::size_t room = rng.chance(15) ? rng.below(descs.size()) : descs.size();
		char *to = out.data() + (descs.size() - room) * sizeof(kdirect_completion);
		kdirect_submit call{
			.descs = reinterpret_cast<uint64_t>(in.data()) +
				 batch.begun * sizeof(kdirect_desc),
			.completions = reinterpret_cast<uint64_t>(to),
			.nr_descs =
				static_cast<uint32_t>(std::min<uint64_t>(left, rng.range(1, 20))),
			.nr_completions = static_cast<uint32_t>(descs.size()),
			.min_completions = left ? 0U : 1U,
			.flags = poll ? KDIRECT_SUBMIT_POLL : 0,
		};
		int err = batch.file.submit(call);

		if (err == KD_EINTR || err == KD_ENOMEM)
			return false;
		if (err == KD_EFAULT && room < descs.size()) {
			reach->unreaped++;
			continue;
		}
		if (err) {
			fail("a batch returned %d", err);
			return false;
		}
		if (!call.submitted && call.completed < call.min_completions)
			fail("a call that waited for a completion returned without one");
		batch.begun += call.submitted;
		for (uint32_t i = 0; i < call.completed; i++) {
			kdirect_completion c;

			std::memcpy(&c, to + i * sizeof(c), sizeof(c));
			batch.note(c);
		}
		if (batch.begun && rng.chance(3))
			return false;
		batch.spoil(rng);
	}
	return true;
}

/* Each as a command of io_uring. False: not to the end. */
bool Schedule::by_uring(Batch &batch, Rng &rng)
{
	UringSetup setup{.polls = batch.file.info().poll_queues && rng.chance(50),
			 .buffer = reinterpret_cast<uint64_t>(batch.memory.data()),
			 .buffer_len = batch.memory.size()};
	Uring ring(*w, batch.file, setup);

	while (batch.begun < batch.descs.size()) {
		std::vector<kdirect_desc> some;
		bool registered = rng.chance(30);
		auto can_be = [](const kdirect_desc &desc) {
			return !(desc.flags & KDIRECT_DESC_FIXED) && desc.addr;
		};

		for (uint64_t n = rng.chance(30) ? 1 : rng.range(2, 20);
		     n && batch.begun < batch.descs.size(); n--) {
			kdirect_desc desc = batch.descs[batch.begun];

			if (registered && !can_be(desc) && !some.empty())
				break;
			registered = registered && can_be(desc);
			desc.user_data = 0;
			some.push_back(desc);
			batch.begun++;
		}
		if (some.size() == 1)
			ring.submit(some[0], registered);
		else
			reach->plugged += ring.submit_all(some, registered);
		/* a worker prepares the file for the first */
		if (rng.chance(60))
			(void)ring.finish(300 * sec);
		if (setup.polls && rng.chance(20))
			(void)ring.poll();
		if (rng.chance(10))
			ring.cancel(*ring.commands[rng.below(ring.commands.size())]);
		if (rng.chance(2))
			return false;
		batch.spoil(rng);
	}
	if (!ring.finish(300 * sec))
		fail("commands of io_uring do not end");
	for (std::size_t i = 0; i < ring.commands.size(); i++, reach->commands++)
		batch.note({.user_data = batch.descs[i].user_data,
			    .result = ring.commands[i]->result.result,
			    .index = static_cast<uint32_t>(i),
			    .opcode = batch.descs[i].opcode});
	return true;
}

Ring Schedule::make_ring(MapFile &file, Rng &rng, int *err)
{
	kdirect_ring_setup setup{.sq_entries = 1U << rng.below(7),
				 .cq_entries = 1U << rng.below(7)};

	if (rng.chance(50)) {
		setup.flags |= KDIRECT_RING_THREAD;
		setup.thread_cpu = rng.chance(50) ? -1 : static_cast<int32_t>(rng.below(8));
		setup.idle_ns = rng.below(4) * 20 * us;
	}
	if (file.info().poll_queues && rng.chance(50))
		setup.flags |= KDIRECT_RING_POLL;
	return file.make_ring(setup, err);
}

/* All of them through rings. False: not to the end. */
bool Schedule::by_ring(Batch &batch, Rng &rng)
{
	const std::vector<kdirect_desc> &descs = batch.descs;
	int err;
	Ring ring = make_ring(batch.file, rng, &err);
	bool threaded = ring.setup.flags & KDIRECT_RING_THREAD;
	bool poll = ring.setup.flags & KDIRECT_RING_POLL;

	if (err && err != KD_ENOMEM && err != KD_EINTR && err != KD_ESTALE && err != KD_ENODEV &&
	    err != KD_EPIPE && err != KD_ETIMEDOUT)
		fail("no rings: error %d", err);
	if (err)
		return false;
	while (batch.ended < descs.size()) {
		kdirect_completion c;

		for (uint64_t n = rng.range(1, 20); n && batch.begun < descs.size(); n--) {
			if (!ring.push(descs[batch.begun]))
				break;
			batch.begun++;
		}
		if (rng.chance(20))
			(void)ring.poll(rng.chance(50) ? KD_POLL_IN : KD_POLL_OUT,
					rng.below(100 * us));
		if (threaded && rng.chance(50)) {
			ring.nudge();
			w->run_for(rng.range(1, 5 * us));
		} else {
			kdirect_ring_enter call{
				.to_submit = threaded ? 0U : 64U,
				.min_completions = batch.begun == descs.size(),
				.flags = poll && rng.chance(50) ? KDIRECT_ENTER_POLL : 0,
				.timeout_ns = rng.chance(20) ? rng.range(1, 100 * us) : 0,
			};

			err = ring.enter(call);
			if (err == KD_EINTR)
				return false;
			if (err && err != KD_ETIMEDOUT && err != KD_EAGAIN)
				fail("entering rings returned %d", err);
			if (!err && !call.submitted && call.ready < call.min_completions)
				fail("a wait for a completion ended without one");
			if (!err && call.ready && ring.cq_head() == ring.cq_tail())
				fail("completions are ready, and the ring is empty");
		}
		for (; ring.pop(c); reach->ring_descs++)
			batch.note(c);
		if (batch.begun && rng.chance(3))
			return false;
		batch.spoil(rng);
	}
	return true;
}

/* A program that writes anything into its rings. What can come of it is harmless. */
void Schedule::scribble(MapFile &file, uint64_t base, Rng &rng)
{
	Ring ring = make_ring(file, rng, nullptr);
	std::span<char> memory = lend(slice);
	const kdirect_desc harmless = add_desc(base, 0, nobody);

	for (uint32_t i = 0; i < ring.setup.sq_entries; i++)
		std::memcpy(ring.memory() + ring.setup.descs + i * sizeof(harmless), &harmless,
			    sizeof(harmless));
	for (uint64_t i = ring ? rng.range(1, 60) : 0; i && !winding_up; i--) {
		auto value = static_cast<uint32_t>(rng.chance(70) ? rng.below(70) : rng.next());
		kdirect_desc read =
			read_desc(reinterpret_cast<uint64_t>(memory.data()), value, base, nobody);
		int err = 0;

		switch (rng.below(5)) {
		case 0: ring.sq_tail() += value; break;
		case 1: ring.cq_head() = value; break;
		case 2: {
			uint64_t words = ring.setup.descs / sizeof(value);
			std::memcpy(ring.memory() + rng.below(words) * sizeof(value), &value,
				    sizeof(value));
			break;
		}
		case 3: (void)ring.push(rng.chance(50) ? harmless : read); break;
		default:
			err = ring.enter(
				ring.setup.flags & KDIRECT_RING_THREAD ? 0 : value,
				static_cast<uint32_t>(rng.below(ring.setup.cq_entries + 1)), 0,
				rng.range(1, 20 * us));
			break;
		}
		if (err == KD_EINTR)
			return;
		if (err && err != KD_EAGAIN && err != KD_EBADMSG && err != KD_ETIMEDOUT &&
		    err != KD_ESTALE && err != KD_ENODEV && err != KD_EPIPE)
			fail("a ring of nonsense returned %d", err);
	}
}

/* Maps it, uses it, and lets go. */
void Schedule::mapper(Machine &m, Rng &rng, uint32_t number)
{
	std::string name = "m" + std::to_string(number);

	for (uint64_t rounds = rng.range(1, 3); rounds && !winding_up; rounds--) {
		std::string channel;
		await(
			[&] {
				channel = some_channel(m, rng);
				return winding_up || (!channel.empty() &&
						      w->state(channel) == KDIRECT_STATE_LIVE);
			},
			30 * ms);
		if (winding_up)
			return;
		if (add_map(*w, name, channel, "e", rng.chance(5))) {
			w->run_for(rng.below(2 * ms));
			continue;
		}
		if (rng.chance(80))
			await([&] { return map_state(*w, name) != 0; }, 20 * ms);
		{
			MapFile file = open_map(*w, name, true, nullptr, m.node);
			std::string model(slice, '\0');
			bool known = false;

			reach->mapped += static_cast<bool>(file);
			for (uint64_t i = rng.below(12); file && i && !winding_up; i--)
				if (rng.chance(5))
					scribble(file, number * slice, rng);
				else if (rng.chance(30)
						 ? !batch(file, number * slice, model, known, rng)
						 : !transfer(file, number * slice, model, known,
							     rng))
					break;
			if (!file && !winding_up)
				w->run_for(rng.below(3 * ms));
		}
		(void)del_map(*w, name);
		await([&] { return map_state(*w, name) < 0; }, 2 * sec);
	}
}

void Schedule::spawn_maps(bool both)
{
	Machine &a = machines[0], &b = machines[1];

	admins.push_back(process("exporter", b, [&](Rng &rng) { exporter(b, rng); }));
	if (both && plan.chance(50))
		admins.push_back(process("exporter", a, [&](Rng &rng) { exporter(a, rng); }));
	for (uint32_t i = 0; i < nr_mappers; i++) {
		Machine &m = both && plan.chance(30) ? b : a;

		users.push_back(process("mapper", m, [&, i](Rng &rng) { mapper(m, rng, i); }));
	}
}

} // namespace sim
