// SPDX-License-Identifier: GPL-2.0-only
// What a program does with descriptors: map.h.
#include <algorithm>
#include <cstring>

#include "map.h"
#include "watch.h"

namespace sim
{

Memory::Memory(World &w, std::size_t size) : world(w), own(size + page_size), length(size)
{
	auto start = reinterpret_cast<uint64_t>(own.data());

	base = own.data() + (page_size - start % page_size) % page_size;
	world.user[at()] = size;
}

/* What is pinned stays where it is. */
Memory::~Memory()
{
	auto pins = [this](const auto &held) {
		auto address = reinterpret_cast<uint64_t>(held->user);

		return address >= at() && address < at(length);
	};

	world.user.erase(at());
	if (std::any_of(world.pages.begin(), world.pages.end(), pins) ||
	    std::any_of(world.fixed.begin(), world.fixed.end(), pins))
		world.unmapped.push_back(std::move(own));
}

namespace
{

/* Runs one ioctl, with what the shim promises for it. */
template <typename Fn>
int ioctl(World &w, Node *node, const kd_desc_file *file, const Fn &fn)
{
	int err = 0;

	w.call(
		[&] {
			Fiber *self = w.sched.current();

			self->pauses = 0;
			watch::acquire(&w.devnodes);
			err = fn(*node->core);
			watch::release(file);
			if (!self->held.empty())
				fail("an ioctl returned with a lock held");
		},
		"ioctl", node);
	return err;
}

} // namespace

int MapFile::submit(kdirect_submit &batch)
{
	return ioctl(*world, node, file,
		     [&](const CoreApi &core) { return core.desc_submit(file, &batch); });
}

int MapFile::set_buffer(const kdirect_buffer &buffer)
{
	return ioctl(*world, node, file,
		     [&](const CoreApi &core) { return core.desc_buffer_set(file, &buffer); });
}

int MapFile::set_buffer(uint32_t index, const void *addr, uint64_t length)
{
	return set_buffer(
		{.addr = reinterpret_cast<uint64_t>(addr), .length = length, .index = index});
}

int MapFile::del_buffer(uint32_t index)
{
	return ioctl(*world, node, file,
		     [&](const CoreApi &core) { return core.desc_buffer_del(file, index); });
}

kdirect_map_info MapFile::info()
{
	kdirect_map_info out;

	std::memset(&out, 0xa5, sizeof(out));
	ioctl(*world, node, file, [&](const CoreApi &core) {
		core.map_describe(file, &out);
		return 0;
	});
	return out;
}

std::vector<kdirect_completion> MapFile::run(const std::vector<kdirect_desc> &descs, uint32_t flags)
{
	Memory in(*world, descs.size() * sizeof(kdirect_desc));
	Memory out(*world, descs.size() * sizeof(kdirect_completion));
	std::vector<kdirect_completion> list(descs.size());
	std::size_t submitted = 0, completed = 0;

	std::memcpy(in.data(), descs.data(), in.size());
	while (completed < descs.size()) {
		kdirect_submit batch{
			.descs = in.at(submitted * sizeof(kdirect_desc)),
			.completions = out.at(completed * sizeof(kdirect_completion)),
			.nr_descs = static_cast<uint32_t>(descs.size() - submitted),
			.nr_completions = static_cast<uint32_t>(descs.size() - completed),
			.min_completions = 1,
			.flags = flags,
		};
		int err = submit(batch);

		if (err) {
			fail("a batch of %zu ended in error %d", descs.size(), err);
			break;
		}
		submitted += batch.submitted;
		completed += batch.completed;
	}
	std::memcpy(static_cast<void *>(list.data()), out.data(), out.size());
	return list;
}

MapFile open_session(World &w, const std::string &name, bool read, bool write)
{
	File file = w.open(name, nullptr, nullptr, read, write);

	return file ? MapFile(&w, w.here(), file.take()) : MapFile();
}

int post_descs(World &w, const SubmitCall &submit, const std::vector<kdirect_desc> &descs,
	       uint32_t flags)
{
	kdirect_submit batch{};
	auto at = reinterpret_cast<uint64_t>(descs.data());

	w.user[at] = descs.size() * sizeof(descs[0]);
	batch.descs = at;
	batch.nr_descs = static_cast<uint32_t>(descs.size());
	batch.flags = flags;
	int err = submit(batch);
	w.user.erase(at);
	return err ? err : batch.submitted == descs.size() ? 0 : KD_EAGAIN;
}

std::vector<kdirect_completion> await_descs(World &w, const SubmitCall &submit, std::size_t count,
					    uint64_t timeout_ns, uint32_t flags)
{
	std::vector<kdirect_completion> done(count);
	auto base = reinterpret_cast<uint64_t>(done.data());
	std::size_t have = 0;

	w.user[base] = count * sizeof(done[0]);
	while (have < count) {
		kdirect_submit batch{};

		batch.completions = base + have * sizeof(done[0]);
		batch.nr_completions = static_cast<uint32_t>(count - have);
		batch.min_completions = 1;
		batch.flags = flags;
		batch.timeout_ns = timeout_ns;
		if (submit(batch))
			break;
		have += batch.completed;
	}
	w.user.erase(base);
	done.resize(have);
	return done;
}

int MapFile::post(const std::vector<kdirect_desc> &descs, uint32_t flags)
{
	return post_descs(
		*world, [this](auto &batch) { return submit(batch); }, descs, flags);
}

std::vector<kdirect_completion> MapFile::await(std::size_t count, uint64_t timeout_ns,
					       uint32_t flags)
{
	return await_descs(
		*world, [this](auto &batch) { return submit(batch); }, count, timeout_ns, flags);
}

kdirect_desc read_desc(uint64_t addr, uint32_t length, uint64_t remote, uint64_t user_data)
{
	return {.opcode = KDIRECT_OP_READ,
		.length = length,
		.addr = addr,
		.remote = remote,
		.user_data = user_data};
}

kdirect_desc write_desc(uint64_t addr, uint32_t length, uint64_t remote, uint64_t user_data)
{
	kdirect_desc desc = read_desc(addr, length, remote, user_data);

	desc.opcode = KDIRECT_OP_WRITE;
	return desc;
}

kdirect_desc fixed_desc(bool write, uint16_t buffer, uint64_t offset, uint32_t length,
			uint64_t remote, uint64_t user_data)
{
	kdirect_desc desc = read_desc(offset, length, remote, user_data);

	if (write)
		desc.opcode = KDIRECT_OP_WRITE;
	desc.flags = KDIRECT_DESC_FIXED;
	desc.buffer = buffer;
	return desc;
}

kdirect_desc swap_desc(uint64_t remote, uint64_t compare, uint64_t swap, uint64_t user_data)
{
	return {.opcode = KDIRECT_OP_CMP_SWAP,
		.length = 8,
		.remote = remote,
		.operand = swap,
		.compare = compare,
		.user_data = user_data};
}

kdirect_desc add_desc(uint64_t remote, uint64_t operand, uint64_t user_data)
{
	return {.opcode = KDIRECT_OP_FETCH_ADD,
		.length = 8,
		.remote = remote,
		.operand = operand,
		.user_data = user_data};
}

} // namespace sim
