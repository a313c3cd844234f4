// SPDX-License-Identifier: GPL-2.0-only
#include "plain.h"

#include <cstring>

#include "watch.h"

namespace sim
{

PlainFile &PlainFile::operator=(PlainFile &&other) noexcept
{
	if (this != &other) {
		close();
		world = other.world;
		node = other.node;
		file = std::exchange(other.file, nullptr);
		open = std::move(other.open);
	}
	return *this;
}

void PlainFile::close()
{
	file = nullptr;
	open.reset();
}

template <typename Fn>
int PlainFile::call(const Fn &fn)
{
	int err = 0;

	world->call(
		[&] {
			Fiber *self = world->sched.current();

			self->pauses = 0;
			watch::acquire(&world->devnodes);
			err = fn(*node->core);
			if (file)
				watch::release(file);
			if (!self->held.empty())
				fail("an ioctl returned with a lock held");
		},
		"ioctl", node);
	return err;
}

int PlainFile::submit(kdirect_submit &batch)
{
	return call([&](const CoreApi &core) { return core.desc_submit(file, &batch); });
}

int PlainFile::set_buffer(uint32_t index, const void *addr, uint64_t length)
{
	kdirect_buffer buffer{};

	buffer.addr = reinterpret_cast<uint64_t>(addr);
	buffer.length = length;
	buffer.index = index;
	return call([&](const CoreApi &core) { return core.desc_buffer_set(file, &buffer); });
}

int PlainFile::del_buffer(uint32_t index)
{
	return call([&](const CoreApi &core) { return core.desc_buffer_del(file, index); });
}

int PlainFile::share(uint32_t index, uint32_t access, kdirect_share &out)
{
	out = {};
	out.index = index;
	out.access = access;
	return share(out);
}

int PlainFile::share(kdirect_share &args)
{
	return call([&](const CoreApi &core) { return core.raw_share(file, &args); });
}

int PlainFile::connect(const kdirect_raw_connect &terms, bool nowait)
{
	return call([&](const CoreApi &core) { return core.raw_connect(file, &terms, nowait); });
}

int PlainFile::reject(const std::string &data)
{
	kdirect_raw_connect terms{};

	std::memcpy(terms.data, data.data(), data.size());
	terms.length = static_cast<uint32_t>(data.size());
	return reject(terms);
}

int PlainFile::reject(const kdirect_raw_connect &terms)
{
	return call([&](const CoreApi &core) { return core.raw_reject(file, &terms); });
}

kdirect_raw_info PlainFile::info()
{
	kdirect_raw_info info{};

	call([&](const CoreApi &core) {
		core.raw_describe(file, &info);
		return 0;
	});
	return info;
}

uint32_t PlainFile::poll()
{
	return static_cast<uint32_t>(
		call([&](const CoreApi &core) { return static_cast<int>(core.raw_poll(file)); }));
}

uint32_t PlainFile::poll(uint32_t mask, uint64_t timeout)
{
	return static_cast<uint32_t>(call([&](const CoreApi &core) {
		return static_cast<int>(wait_for_events(*world, {core.desc_waitq(file)}, mask,
							timeout,
							[&] { return core.raw_poll(file); }));
	}));
}

int PlainFile::post(const std::vector<kdirect_desc> &descs)
{
	return post_descs(
		*world, [this](auto &batch) { return submit(batch); }, descs);
}

std::vector<kdirect_completion> PlainFile::await(std::size_t count, uint64_t timeout_ns)
{
	return await_descs(
		*world, [this](auto &batch) { return submit(batch); }, count, timeout_ns);
}

kdirect_completion PlainFile::one(const kdirect_desc &desc)
{
	kdirect_completion none{};

	none.result = -9999;
	if (post({desc}))
		return none;
	auto done = await(1);
	return done.empty() ? none : done[0];
}

PlainFile open_plain(World &w, const std::string &name, int *err)
{
	kd_desc_file *file = nullptr;
	int result = KD_ENOENT;
	Node *on = w.here();

	w.call(
		[&] {
			DevNode *found = nullptr;

			for (const auto &devnode : w.devnodes)
				if (devnode->name == name && devnode->node == on && devnode->raw &&
				    !devnode->going)
					found = devnode.get();
			if (!found)
				return;
			found->opening++;
			watch::acquire(found);
			result = on->core->raw_open(found->channel, &file);
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
	return result ? PlainFile() : PlainFile(&w, on, file);
}

kdirect_desc work(uint8_t opcode, uint64_t addr, uint32_t length, uint64_t user_data)
{
	kdirect_desc desc{};

	desc.opcode = opcode;
	desc.addr = addr;
	desc.length = length;
	desc.user_data = user_data;
	return desc;
}

kdirect_desc work_fixed(uint8_t opcode, uint16_t buffer, uint64_t offset, uint32_t length,
			uint64_t user_data)
{
	kdirect_desc desc = work(opcode, offset, length, user_data);

	desc.flags = KDIRECT_DESC_FIXED;
	desc.buffer = buffer;
	return desc;
}

kdirect_desc remote(kdirect_desc desc, uint64_t addr, uint32_t rkey)
{
	desc.remote = addr;
	desc.rkey = rkey;
	return desc;
}

kdirect_raw_connect raw_terms(const std::string &data, uint8_t rnr_retry)
{
	kdirect_raw_connect terms{};

	std::memcpy(terms.data, data.data(), data.size());
	terms.length = static_cast<uint32_t>(data.size());
	terms.initiator_depth = terms.responder_resources = 4;
	terms.retry_count = 6;
	terms.rnr_retry_count = rnr_retry;
	return terms;
}

} // namespace sim
