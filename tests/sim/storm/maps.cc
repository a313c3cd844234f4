// SPDX-License-Identifier: GPL-2.0-only
// Exports, and processes that map them: what they read is what they wrote, as long as it
// is the same export, and the fabric says when they reach memory that was taken away.
#include <cstring>

#include "../map.h"
#include "storm.h"

namespace sim
{

namespace
{

constexpr uint64_t slice = 24000; /* of each process */
constexpr uint32_t nr_mappers = 3;
constexpr const char *listeners[] = {"r", "s"};

} // namespace

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
		if (ret > 0 || ret == -KD_EIO || ret == -KD_ENOMEM)
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
std::string &Schedule::lend(std::size_t size)
{
	std::string &memory = *lent.emplace_back(std::make_unique<std::string>(size, '\0'));

	w->user[reinterpret_cast<uint64_t>(memory.data())] = size;
	return memory;
}

/* All of its slice in one batch, with what is invalid among it. False: no more. */
bool Schedule::batch(MapFile &file, uint64_t base, std::string &model, bool &known, Rng &rng)
{
	constexpr int unseen = 1;
	std::string &memory = lend(slice);
	auto addr = reinterpret_cast<uint64_t>(memory.data());
	bool write = !known || rng.chance(50), whole = true;
	bool fixed = !file.set_buffer(0, memory.data(), slice);
	std::vector<kdirect_desc> descs;
	std::vector<int> expected, results;

	for (char &byte : memory)
		byte = write ? static_cast<char>(rng.next()) : '\0';
	for (uint64_t from = 0; from < slice;) {
		auto len = static_cast<uint32_t>(std::min(rng.range(1, 6000), slice - from));

		if (fixed && rng.chance(50))
			descs.push_back(fixed_desc(write, 0, from, len, base + from));
		else if (write)
			descs.push_back(write_desc(addr + from, len, base + from));
		else
			descs.push_back(read_desc(addr + from, len, base + from));
		expected.push_back(static_cast<int>(len));
		from += len;
		if (rng.chance(20)) {
			descs.push_back(rng.chance(50) ? add_desc(base, 0)
						       : read_desc(0, 1, UINT64_MAX));
			expected.push_back(descs.back().length == 8 ? 8 : -KD_ERANGE);
		}
	}
	std::string &in = lend(descs.size() * sizeof(kdirect_desc)),
		    &out = lend(descs.size() * sizeof(kdirect_completion));
	for (std::size_t i = 0; i < descs.size(); i++)
		descs[i].user_data = i;
	std::memcpy(in.data(), descs.data(), in.size());
	results.assign(descs.size(), unseen);
	bool poll = file.info().poll_queues && rng.chance(30);
	for (std::size_t begun = 0, ended = 0; ended < descs.size();) {
		kdirect_submit call{
			.descs = reinterpret_cast<uint64_t>(in.data()) +
				 begun * sizeof(kdirect_desc),
			.completions = reinterpret_cast<uint64_t>(out.data()),
			.nr_descs = static_cast<uint32_t>(
				std::min<uint64_t>(descs.size() - begun, rng.range(1, 20))),
			.nr_completions = static_cast<uint32_t>(descs.size()),
			.min_completions = begun < descs.size() ? 0U : 1U,
			.flags = poll ? KDIRECT_SUBMIT_POLL : 0,
		};
		if (begun == descs.size())
			call.nr_descs = 0;
		int err = file.submit(call);
		if (err == KD_EINTR || err == KD_ENOMEM) {
			known = known && !write;
			return false; /* with what is under way */
		}
		if (err) {
			fail("a batch returned %d", err);
			return false;
		}
		begun += call.submitted;
		ended += call.completed;
		for (uint32_t i = 0; i < call.completed; i++) {
			kdirect_completion c;

			std::memcpy(&c, out.data() + i * sizeof(c), sizeof(c));
			if (c.user_data >= begun || results[c.user_data] != unseen)
				fail("descriptor %llu completed twice, or was not submitted",
				     static_cast<unsigned long long>(c.user_data));
			else
				results[c.user_data] = c.result;
		}
		if (begun && rng.chance(3)) {
			known = known && !write;
			return false;
		}
		if (rng.chance(5))
			(void)file.del_buffer(0);
		if (rng.chance(5))
			(void)file.set_buffer(0, memory.data(), slice);
	}
	reach->map_descs += descs.size();
	bool over = false;
	for (std::size_t i = 0; i < results.size(); i++) {
		int got = results[i];

		if (got == expected[i])
			continue;
		whole = false;
		over |= got != -KD_ENOENT;
		if (got >= 0)
			fail("a descriptor of %u bytes returned %d", descs[i].length, got);
		if (faultless && got != -KD_ENOENT && got != -KD_EPIPE && got != -KD_ENODEV &&
		    got != -KD_EINTR && got != -KD_EIO)
			fail("a descriptor of %u bytes returned %d", descs[i].length, got);
	}
	known = known && (whole || !write);
	if (!whole)
		return !over || !faultless;
	if (write)
		model = memory;
	else if (memory != model)
		fail("descriptors give other bytes than were written");
	known = true;
	return true;
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
				if (rng.chance(30)
					    ? !batch(file, number * slice, model, known, rng)
					    : !transfer(file, number * slice, model, known, rng))
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
