/* SPDX-License-Identifier: GPL-2.0-only */
/* Programs that use exports and mappings. */
#pragma once
#include "world.h"

namespace sim
{

/* A struct kiocb. */
struct AsyncIo {
	int64_t result = 0;
	bool done = false;
};

/* An open file of a mapping's node. */
class MapFile
{
public:
	MapFile() = default;
	MapFile(World *w, Node *n, kd_mapping *m) : world(w), node(n), mapping(m) {}
	MapFile(MapFile &&other) noexcept { *this = std::move(other); }
	MapFile &operator=(MapFile &&other) noexcept;
	~MapFile() { close(); }

	explicit operator bool() const { return mapping; }
	void close();
	uint64_t size();
	/* As kd_map_io(). */
	int64_t io(kd_iter &iter, uint64_t pos, bool write, uint32_t flags = 0,
		   AsyncIo *async = nullptr);
	int64_t pwrite(std::string_view data, uint64_t pos, uint32_t flags = 0);
	int64_t pread(std::string &out, std::size_t len, uint64_t pos, uint32_t flags = 0);
	/* What is there, or what pread() said instead (as text "!errno"). */
	std::string pread(std::size_t len, uint64_t pos, uint32_t flags = 0);

private:
	World *world = nullptr;
	Node *node = nullptr;
	kd_mapping *mapping = nullptr;
};

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
