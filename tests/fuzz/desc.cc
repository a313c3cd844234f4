// SPDX-License-Identifier: GPL-2.0-only
/*
 * Descriptors and fixed buffers: arbitrary ones, in arbitrary batches, on a mapping that
 * may end meanwhile. Each descriptor that is taken completes once, with its own data and
 * an error that is documented, and costs the connection nothing.
 */
#include <map>
#include <memory>
#include <set>

#include "pairs.h"

using namespace sim;

namespace
{

constexpr int max_steps = 60;
constexpr std::size_t user_size = 200000;

const std::set<int> desc_errors = {KD_EINVAL,     KD_ERANGE, KD_EACCES, KD_ENOENT, KD_EFAULT,
				   KD_EOPNOTSUPP, KD_ESTALE, KD_ENODEV, KD_EPIPE,  KD_EIO};
const std::set<int> call_errors = {KD_EAGAIN, KD_ETIMEDOUT, KD_ESTALE, KD_ENODEV,
				   KD_EPIPE,  KD_EFAULT,    KD_EINVAL, KD_EOPNOTSUPP};
const std::set<int> buffer_errors = {KD_EINVAL, KD_EFAULT, KD_ENOMEM, KD_ENOENT,
				     KD_ESTALE, KD_ENODEV, KD_EPIPE};

class Descs
{
public:
	explicit Descs(Input &input)
		: in(input), p(options(in), 300001, in.flag()), memory(p.w, user_size)
	{
	}
	void run();

private:
	/* as a rule near something that decides */
	uint64_t place(uint64_t end)
	{
		uint8_t how = in.take<uint8_t>();

		if (how < 200)
			return how % 2 ? in.take<uint16_t>() % end : in.take<uint8_t>() * 8;
		if (how < 230)
			return end - in.take<uint8_t>();
		return how < 245 ? UINT64_MAX - in.take<uint8_t>() : in.take<uint64_t>();
	}
	kdirect_desc desc();
	void submit();
	void buffer();
	void step();

	Input &in;
	Mapped p;
	Memory memory;
	std::map<uint64_t, kdirect_desc> open;
	uint64_t next = 1;
};

kdirect_desc Descs::desc()
{
	kdirect_desc d{};
	uint8_t how = in.take<uint8_t>();

	d.opcode = 1 + how % 4;
	d.remote = place(300001);
	if (d.opcode >= KDIRECT_OP_CMP_SWAP) {
		d.length = 8;
		d.operand = in.take<uint8_t>();
	} else {
		d.length = how & 32 ? in.take<uint16_t>() * 3U : in.take<uint8_t>();
		d.flags = how & 16 ? KDIRECT_DESC_FIXED : 0;
		d.buffer = d.flags ? in.below(4) : 0;
		d.addr = d.flags ? place(user_size) : memory.at() + place(user_size);
	}
	if (how & 128) {
		std::size_t at = in.below(sizeof(d));
		uint8_t byte = in.take<uint8_t>();
		std::memcpy(reinterpret_cast<char *>(&d) + at, &byte, 1);
		d.length = std::min(d.length, 1U << 20);
	}
	d.user_data = next;
	return d;
}

void Descs::submit()
{
	uint8_t how = in.take<uint8_t>();
	std::vector<kdirect_desc> batch;
	std::map<uint64_t, kdirect_desc> fresh;

	for (uint32_t n = how % 24; n; n--) {
		batch.push_back(desc());
		fresh[next++] = batch.back();
	}
	Memory array(p.w, 24 * sizeof(kdirect_desc)), out(p.w, 24 * sizeof(kdirect_completion));
	if (!batch.empty())
		std::memcpy(array.data(), batch.data(), batch.size() * sizeof(kdirect_desc));
	kdirect_submit call{.descs = array.at(),
			    .completions = out.at(),
			    .nr_descs = static_cast<uint32_t>(batch.size()),
			    .nr_completions = 24U,
			    .min_completions = how & 32 ? in.below(24) : 0,
			    .flags = how & 64 ? uint32_t{KDIRECT_SUBMIT_POLL} : 0,
			    .timeout_ns = 1 + in.take<uint8_t>() * 100 * us};
	if (how & 128) {
		call.descs = place(UINT64_MAX);
		call.completions += in.take<uint8_t>();
		call.min_completions ^= in.take<uint8_t>();
	}
	int err = p.file.submit(call);
	MUST(!err || call_errors.contains(err));
	if (err)
		return;
	MUST(call.submitted <= batch.size() && call.completed <= 24);
	uint64_t first = next - batch.size();
	for (uint32_t i = 0; i < call.submitted; i++)
		open[first + i] = fresh[first + i];
	for (uint32_t i = 0; i < call.completed; i++) {
		kdirect_completion c;

		std::memcpy(&c, reinterpret_cast<void *>(call.completions + i * sizeof(c)),
			    sizeof(c));
		auto found = open.find(c.user_data);
		MUST(found != open.end() && c.opcode == found->second.opcode);
		MUST(c.result < 0 ? desc_errors.contains(-c.result)
				  : c.result == static_cast<int>(found->second.length));
		open.erase(found);
	}
}

void Descs::buffer()
{
	uint32_t index = in.below(5) == 4 ? in.take<uint32_t>() : in.below(4);
	int err;

	if (in.flag()) {
		err = p.file.del_buffer(index);
	} else {
		kdirect_buffer b{.addr = memory.at() + place(user_size),
				 .length = place(user_size),
				 .index = index};
		b.reserved[2] = in.take<uint8_t>() == 255;
		err = p.file.set_buffer(b);
	}
	MUST(!err || buffer_errors.contains(err));
}

void Descs::step()
{
	uint8_t op = in.take<uint8_t>();

	switch (op % 8) {
	case 0: buffer(); return;
	case 1: p.w.run_for(in.take<uint8_t>() * 5 * us); return;
	case 2:
		if (op < 240)
			return;
		switch (op & 3) {
		case 0: (void)del_map(p.w, "m"); return;
		case 1: (void)del_export(p.w, "mem"); return;
		case 2: p.w.del("c0"); return;
		default: p.w.del("store.0"); return;
		}
	default: submit(); return;
	}
}

void Descs::run()
{
	MUST(p.file);
	p.w.node().memlock_limit = 300000;
	for (int i = 0; i < max_steps && !in.empty(); i++)
		step();
	if (in.flag()) {
		p.file.close();
		MUST(p.w.run_until([&] { return !p.w.fixed.size() && !p.w.pages.size(); }));
		return;
	}
	Memory out(p.w, 256 * sizeof(kdirect_completion));
	while (!open.empty()) {
		kdirect_submit call{
			.completions = out.at(), .nr_completions = 256, .min_completions = 1};
		MUST(!p.file.submit(call) && call.completed);
		for (uint32_t i = 0; i < call.completed; i++) {
			kdirect_completion c;

			std::memcpy(&c, out.data() + i * sizeof(c), sizeof(c));
			MUST(open.erase(c.user_data) == 1);
		}
	}
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	Input in(data, size);

	Descs(in).run();
	return 0;
}
