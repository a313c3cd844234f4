// SPDX-License-Identifier: GPL-2.0-only
#include "map.h"

#include <cstring>

#include "watch.h"

namespace sim
{

MapFile &MapFile::operator=(MapFile &&other) noexcept
{
	if (this == &other)
		return *this;
	close();
	world = other.world;
	node = other.node;
	file = std::exchange(other.file, nullptr);
	open = std::move(other.open);
	return *this;
}

void MapFile::close()
{
	file = nullptr;
	open.reset();
}

OpenMap::~OpenMap()
{
	world->call(
		[&] {
			watch::acquire(file);
			node->core->desc_release(file);
		},
		"close", node);
}

uint64_t MapFile::size()
{
	uint64_t size = 0;

	world->call(
		[&] {
			watch::acquire(&world->devnodes);
			size = node->core->map_size(file);
			watch::release(file);
		},
		"size", node);
	return size;
}

int64_t MapFile::io(kd_iter &iter, uint64_t pos, bool write, uint32_t flags, AsyncIo *async)
{
	int64_t ret = 0;

	world->call(
		[&] {
			Fiber *self = world->sched.current();
			std::size_t before = iter.pos, len = iter.total() - iter.pos;

			self->pauses = 0;
			watch::acquire(&world->devnodes);
			ret = node->core->map_io(file, &iter, len, pos, write, flags,
						 reinterpret_cast<kd_iocb *>(async));
			watch::release(file);
			if (!self->held.empty())
				fail("a transfer returned with a lock held");
			if (ret > 0 && iter.pos - before < static_cast<std::size_t>(ret))
				fail("a transfer returned %lld and moved the iterator by %zu",
				     static_cast<long long>(ret), iter.pos - before);
			if (ret == KD_IO_QUEUED && !async)
				fail("a transfer that nobody will hear of");
			if (ret != KD_IO_QUEUED && async && async->done)
				fail("a transfer was completed and returned %lld",
				     static_cast<long long>(ret));
		},
		write ? "pwrite" : "pread", node);
	return ret;
}

int64_t MapFile::pwrite(std::string_view data, uint64_t pos, uint32_t flags)
{
	kd_iter iter = source_of(data);

	return io(iter, pos, true, flags);
}

int64_t MapFile::pread(std::string &out, std::size_t len, uint64_t pos, uint32_t flags)
{
	out.assign(len, '\0');
	kd_iter iter = target_in(out);
	int64_t ret = io(iter, pos, false, flags);

	out.resize(ret > 0 ? static_cast<std::size_t>(ret) : 0);
	return ret;
}

std::string MapFile::pread(std::size_t len, uint64_t pos, uint32_t flags)
{
	std::string out;
	int64_t ret = pread(out, len, pos, flags);

	return ret < 0 ? "!" + std::to_string(-ret) : out;
}

MapFile open_map(World &w, const std::string &name, bool write, int *err, Node *on)
{
	kd_desc_file *file = nullptr;
	int result = KD_ENOENT;

	on = on ? on : w.here();
	w.call(
		[&] {
			DevNode *found = nullptr;

			for (const auto &devnode : w.devnodes)
				if (devnode->name == name && devnode->node == on &&
				    devnode->mapping && !devnode->going)
					found = devnode.get();
			if (!found)
				return;
			found->opening++;
			watch::acquire(found);
			result = on->core->map_open(found->mapping, true, write, &file);
			watch::release(found);
			watch::release(&w.devnodes);
			found->opening--;
			for (const auto &fiber : w.sched.all())
				if (!std::strcmp(fiber->blocked_in, "kd_node_destroy"))
					w.sched.wake(fiber.get());
		},
		"open", on);
	if (err)
		*err = result;
	return result ? MapFile() : MapFile(&w, on, file);
}

namespace
{

template <std::size_t Size>
void put(char (&to)[Size], const std::string &from)
{
	std::memset(to, 0, Size);
	std::memcpy(to, from.data(), std::min(Size - 1, from.size()));
}

/* Runs one request of the administrator's; every error has a text. */
template <typename Fn>
int request(World &w, kd_error *error, const Fn &fn)
{
	kd_error own{};
	kd_error *out = error ? error : &own;
	int err = 0;

	w.call(
		[&] {
			err = fn(*w.here()->core, reinterpret_cast<kd_net *>(w.here()->net), out);
			if (err != out->err)
				fail("a request returned %d and says %d", err, out->err);
			if (err && !out->text[0])
				fail("error %d without a text", err);
		},
		"request");
	return err;
}

} // namespace

int add_export(World &w, const std::string &name, const std::string &listener, uint64_t size,
	       bool read_only, kd_error *error)
{
	kd_export_params params{};

	put(params.name, name);
	put(params.listener, listener);
	params.size = size;
	params.read_only = read_only;
	return request(w, error, [&](const CoreApi &core, kd_net *net, kd_error *out) {
		return core.export_new(net, &params, out);
	});
}

int del_export(World &w, const std::string &name, kd_error *error)
{
	return request(w, error, [&](const CoreApi &core, kd_net *net, kd_error *out) {
		return core.export_del(net, name.c_str(), out);
	});
}

int add_map(World &w, const std::string &name, const std::string &channel, const std::string &from,
	    bool read_only, kd_error *error)
{
	kd_map_params params{};

	put(params.name, name);
	put(params.channel, channel);
	put(params.export_name, from);
	params.read_only = read_only;
	return request(w, error, [&](const CoreApi &core, kd_net *net, kd_error *out) {
		return core.map_new(net, &params, out);
	});
}

int del_map(World &w, const std::string &name, kd_error *error)
{
	return request(w, error, [&](const CoreApi &core, kd_net *net, kd_error *out) {
		return core.map_del(net, name.c_str(), out);
	});
}

bool map_info(World &w, const std::string &name, struct kd_map_info &out)
{
	int err = 0;

	w.call([&] {
		err = w.here()->core->map_info(reinterpret_cast<kd_net *>(w.here()->net),
					       name.c_str(), &out);
	});
	return !err;
}

bool export_info(World &w, const std::string &name, struct kd_export_info &out)
{
	int err = 0;

	w.call([&] {
		err = w.here()->core->export_info(reinterpret_cast<kd_net *>(w.here()->net),
						  name.c_str(), &out);
	});
	return !err;
}

int map_state(World &w, const std::string &name)
{
	struct kd_map_info info;

	return map_info(w, name, info) ? static_cast<int>(info.state) : -1;
}

bool run_until_mapped(World &w, const std::string &name)
{
	return w.run_until([&] { return map_state(w, name) != KDIRECT_MAP_ASKING; }) &&
	       map_state(w, name) == KDIRECT_MAP_LIVE;
}

bool run_until_unmapped(World &w, const std::string &name)
{
	return w.run_until([&] { return map_state(w, name) < 0; });
}

bool run_until_unexported(World &w, const std::string &name)
{
	struct kd_export_info info;

	return w.run_until([&] { return !export_info(w, name, info); });
}

Region *memory_of(World &w, uint64_t size)
{
	for (const auto &region : w.regions)
		if (!size || region->memory.size() == size)
			return region.get();
	return nullptr;
}

} // namespace sim
