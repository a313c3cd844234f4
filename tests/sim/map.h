/* SPDX-License-Identifier: GPL-2.0-only */
/* Programs that use exports and mappings. */
#pragma once
#include <memory>

#include "world.h"

namespace sim
{

/* A struct kiocb. */
struct AsyncIo {
	int64_t result = 0;
	bool done = false;
};

/* An open file with descriptors, while anybody holds it. */
struct OpenMap {
	OpenMap(World *w, Node *n, kd_desc_file *f) : world(w), node(n), file(f) {}
	~OpenMap();
	OpenMap(const OpenMap &) = delete;
	OpenMap &operator=(const OpenMap &) = delete;

	World *world;
	Node *node;
	kd_desc_file *file;
};

class Ring;

/* An open file of a mapping's node. */
class MapFile
{
public:
	MapFile() = default;
	MapFile(World *w, Node *n, kd_desc_file *f)
		: world(w), node(n), file(f), open(std::make_shared<OpenMap>(w, n, f))
	{
	}
	MapFile(MapFile &&other) noexcept { *this = std::move(other); }
	MapFile &operator=(MapFile &&other) noexcept;
	~MapFile() { close(); }

	explicit operator bool() const { return file; }
	void close();
	uint64_t size();
	/* As kd_map_io(). */
	int64_t io(kd_iter &iter, uint64_t pos, bool write, uint32_t flags = 0,
		   AsyncIo *async = nullptr);
	int64_t pwrite(std::string_view data, uint64_t pos, uint32_t flags = 0);
	int64_t pread(std::string &out, std::size_t len, uint64_t pos, uint32_t flags = 0);
	/* What is there, or what pread() said instead (as text "!errno"). */
	std::string pread(std::size_t len, uint64_t pos, uint32_t flags = 0);

	/* As the ioctls: 0 or a KD_* value. */
	int submit(kdirect_submit &batch);
	int set_buffer(uint32_t index, const void *addr, uint64_t length);
	int set_buffer(const kdirect_buffer &buffer);
	int del_buffer(uint32_t index);
	kdirect_map_info info();
	kd_desc_file *get() const { return file; }
	std::shared_ptr<OpenMap> hold() const { return open; }
	Ring make_ring(const kdirect_ring_setup &setup, int *err = nullptr);
	/* Submits all of @descs and waits for as many completions. */
	std::vector<kdirect_completion> run(const std::vector<kdirect_desc> &descs,
					    uint32_t flags = 0);

	/* Submits all of @descs; 0 or a KD_* value. */
	int post(const std::vector<kdirect_desc> &descs, uint32_t flags = 0);
	/* So many completions, or as many as there are until an error or the timeout. */
	std::vector<kdirect_completion> await(std::size_t count, uint64_t timeout_ns = 60 * sec,
					      uint32_t flags = 0);

private:
	World *world = nullptr;
	Node *node = nullptr;
	kd_desc_file *file = nullptr;
	std::shared_ptr<OpenMap> open;
};

/* The same with any open file, whose ioctl @submit is. */
using SubmitCall = std::function<int(kdirect_submit &batch)>;
int post_descs(World &w, const SubmitCall &submit, const std::vector<kdirect_desc> &descs,
	       uint32_t flags = 0);
std::vector<kdirect_completion> await_descs(World &w, const SubmitCall &submit, std::size_t count,
					    uint64_t timeout_ns, uint32_t flags = 0);

/* Memory of a program that the core may reach by its address, page-aligned. */
class Memory
{
public:
	Memory(World &w, std::size_t size);
	~Memory();
	Memory(const Memory &) = delete;
	Memory &operator=(const Memory &) = delete;
	char *data() const { return base; }
	uint64_t at(std::size_t offset = 0) const
	{
		return reinterpret_cast<uint64_t>(base) + offset;
	}
	std::size_t size() const { return length; }
	std::string_view text(std::size_t from, std::size_t len) const
	{
		return {base + from, len};
	}
	void put(std::size_t at, std::string_view text) { text.copy(base + at, text.size()); }

private:
	World &world;
	Zeroes own;
	char *base;
	std::size_t length;
};

kdirect_desc read_desc(uint64_t addr, uint32_t length, uint64_t remote, uint64_t user_data = 0);
kdirect_desc write_desc(uint64_t addr, uint32_t length, uint64_t remote, uint64_t user_data = 0);
/* the same with a fixed buffer */
kdirect_desc fixed_desc(bool write, uint16_t buffer, uint64_t offset, uint32_t length,
			uint64_t remote, uint64_t user_data = 0);
kdirect_desc swap_desc(uint64_t remote, uint64_t compare, uint64_t swap, uint64_t user_data = 0);
kdirect_desc add_desc(uint64_t remote, uint64_t operand, uint64_t user_data = 0);

/* What an open file of a session's node does with descriptors. */
MapFile open_session(World &w, const std::string &name, bool read = true, bool write = true);

MapFile open_map(World &w, const std::string &name, bool write = true, int *err = nullptr,
		 Node *on = nullptr);
int add_export(World &w, const std::string &name, const std::string &listener, uint64_t size,
	       bool read_only = false, kd_error *error = nullptr);
int del_export(World &w, const std::string &name, kd_error *error = nullptr);
int add_map(World &w, const std::string &name, const std::string &channel, const std::string &from,
	    bool read_only = false, kd_error *error = nullptr);
int del_map(World &w, const std::string &name, kd_error *error = nullptr);
bool map_info(World &w, const std::string &name, struct kd_map_info &out);
bool export_info(World &w, const std::string &name, struct kd_export_info &out);
/* KDIRECT_MAP_*, or -1 if there is none of this name */
int map_state(World &w, const std::string &name);
bool run_until_mapped(World &w, const std::string &name);
bool run_until_unmapped(World &w, const std::string &name);
bool run_until_unexported(World &w, const std::string &name);
/* The memory of the only export there is, or of one of that size. */
Region *memory_of(World &w, uint64_t size = 0);

} // namespace sim
