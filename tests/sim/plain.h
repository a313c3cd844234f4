/* SPDX-License-Identifier: GPL-2.0-only */
/* Programs that use raw channels. */
#pragma once
#include "../../uapi/kdirect.h"
#include "map.h"

namespace sim
{

/* An open file of a raw channel's node. */
class PlainFile
{
public:
	PlainFile() = default;
	PlainFile(World *w, Node *n, kd_desc_file *f)
		: world(w), node(n), file(f), open(std::make_shared<OpenMap>(w, n, f))
	{
	}
	PlainFile(PlainFile &&other) noexcept { *this = std::move(other); }
	PlainFile &operator=(PlainFile &&other) noexcept;
	~PlainFile() { close(); }

	explicit operator bool() const { return file; }
	void close();
	kd_desc_file *get() const { return file; }
	std::shared_ptr<OpenMap> hold() const { return open; }

	/* As the ioctls: 0 or a KD_* value. */
	int submit(kdirect_submit &batch);
	int set_buffer(uint32_t index, const void *addr, uint64_t length);
	int del_buffer(uint32_t index);
	int share(uint32_t index, uint32_t access, kdirect_share &out);
	int share(kdirect_share &call);
	int connect(const kdirect_raw_connect &call, bool nowait = false);
	int reject(const std::string &data);
	int reject(const kdirect_raw_connect &call);
	kdirect_raw_info info();
	uint32_t poll();
	/* What of @mask holds; waits for it up to @timeout. */
	uint32_t poll(uint32_t mask, uint64_t timeout);

	/* Submits all of @descs; 0 or a KD_* value. */
	int post(const std::vector<kdirect_desc> &descs);
	/* So many completions, or as many as there are until an error or the timeout. */
	std::vector<kdirect_completion> await(std::size_t count, uint64_t timeout_ns = 60 * sec);
	/* The result of one. */
	kdirect_completion one(const kdirect_desc &desc);

private:
	template <typename Fn>
	int call(const Fn &fn);

	World *world = nullptr;
	Node *node = nullptr;
	kd_desc_file *file = nullptr;
	std::shared_ptr<OpenMap> open;
};

PlainFile open_plain(World &w, const std::string &name, int *err = nullptr);

kdirect_desc work(uint8_t opcode, uint64_t addr, uint32_t length, uint64_t user_data = 0);
kdirect_desc work_fixed(uint8_t opcode, uint16_t buffer, uint64_t offset, uint32_t length,
			uint64_t user_data = 0);
kdirect_desc remote(kdirect_desc desc, uint64_t addr, uint32_t rkey);
kdirect_raw_connect raw_terms(const std::string &data = {}, uint8_t rnr_retry = 7);

} // namespace sim
