// SPDX-License-Identifier: GPL-2.0-only
#include <cstring>

#include "watch.h"
#include "world.h"

namespace sim
{

kd_iter source_of(std::string_view data)
{
	kd_iter iter;

	iter.segments.push_back(
		{reinterpret_cast<uint8_t *>(const_cast<char *>(data.data())), data.size()});
	return iter;
}

kd_iter target_in(std::span<char> buffer)
{
	kd_iter iter;

	iter.segments.push_back({reinterpret_cast<uint8_t *>(buffer.data()), buffer.size()});
	return iter;
}

File &File::operator=(File &&other) noexcept
{
	if (this == &other)
		return *this;
	close();
	world = other.world;
	node = other.node;
	file = std::exchange(other.file, nullptr);
	return *this;
}

void File::close()
{
	kd_desc_file *old = std::exchange(file, nullptr);

	if (old)
		world->call(
			[&] {
				watch::acquire(old);
				node->core->desc_release(old);
			},
			"close", node);
}

namespace
{

/* Runs one call of a file, with what the shim promises for it. */
template <typename Fn>
int64_t io(World &w, const kd_desc_file *file, uint32_t flags, kd_iter &iter, const Fn &fn,
	   const char *what)
{
	int64_t ret = 0;

	w.call(
		[&] {
			Fiber *self = w.sched.current();
			std::size_t before = iter.pos;
			bool was = std::exchange(self->nowait, flags & KD_IO_NOWAIT);

			self->pauses = 0;
			watch::acquire(&w.devnodes);
			ret = fn();
			watch::release(file);
			self->nowait = was;
			if (!self->held.empty())
				fail("%s returned with a lock held", what);
			if (ret > 0 && iter.pos - before != static_cast<std::size_t>(ret))
				fail("%s returned %lld and moved the iterator by %zu", what,
				     static_cast<long long>(ret), iter.pos - before);
		},
		what);
	return ret;
}

} // namespace

int64_t File::write(kd_iter &iter, uint32_t flags)
{
	return io(
		*world, file, flags, iter,
		[&] { return node->core->file_write(file, &iter, iter.total() - iter.pos, flags); },
		"write");
}

int64_t File::write(std::string_view data, uint32_t flags)
{
	kd_iter iter = source_of(data);

	return write(iter, flags);
}

int64_t File::read(kd_iter &iter, uint32_t flags)
{
	return io(
		*world, file, flags, iter,
		[&] { return node->core->file_read(file, &iter, iter.total() - iter.pos, flags); },
		"read");
}

int64_t File::read(std::string &out, std::size_t size, uint32_t flags)
{
	Zeroes buffer(size);
	kd_iter iter = target_in(buffer);
	int64_t ret = read(iter, flags);

	out.assign(buffer.data(), ret > 0 ? static_cast<std::size_t>(ret) : 0);
	return ret;
}

std::string File::read(std::size_t size, uint32_t flags)
{
	std::string out;
	int64_t ret = read(out, size, flags);

	return ret < 0 ? "!" + std::to_string(-ret) : out;
}

int File::ping(uint32_t size, uint32_t flags, uint64_t timeout_ns, kdirect_ping *out)
{
	kdirect_ping own{};
	kdirect_ping *ping = out ? out : &own;
	int err = 0;

	ping->size = size;
	ping->flags = flags;
	ping->timeout_ns = timeout_ns;
	world->call(
		[&] {
			watch::acquire(&world->devnodes);
			err = node->core->file_ping(file, ping);
			watch::release(file);
		},
		"ping", node);
	return err;
}

int File::set_flags(uint32_t flags)
{
	int err = 0;

	world->call(
		[&] {
			watch::acquire(&world->devnodes);
			err = node->core->desc_set_flags(file, flags);
			watch::release(file);
		},
		"set flags", node);
	return err;
}

int File::submit(kdirect_submit &batch)
{
	int err = 0;

	world->call(
		[&] {
			watch::acquire(&world->devnodes);
			err = node->core->desc_submit(file, &batch);
			watch::release(file);
		},
		"submit", node);
	return err;
}

kdirect_info File::info()
{
	kdirect_info out;

	std::memset(&out, 0xa5, sizeof(out));
	world->call(
		[&] {
			watch::acquire(&world->devnodes);
			node->core->file_info(file, &out);
			watch::release(file);
		},
		"info", node);
	return out;
}

uint32_t wait_for_events(World &w, std::initializer_list<kd_waitq *> wait, uint32_t mask,
			 uint64_t timeout, const std::function<uint32_t()> &now)
{
	Fiber *self = w.sched.current();
	uint64_t end = w.now() + timeout;
	uint64_t id = self->id;
	uint32_t ready;
	/* what a poll() with this mask is woken by */
	unsigned int key = KD_WAKE_END;

	key |= mask & KD_POLL_IN ? KD_WAKE_IN : 0;
	key |= mask & KD_POLL_OUT ? KD_WAKE_OUT : 0;
	key |= mask & KD_POLL_PRI ? KD_WAKE_PRI : 0;
	for (kd_waitq *wq : wait)
		w.pollers.push_back({wq, key, self});
	Sched::Timer timer = w.sched.at(end, [&w, self, id] {
		if (w.sched.alive(id)) {
			self->woken = true;
			w.sched.wake(self);
		}
	});
	for (;;) {
		self->woken = false;
		ready = now() & (mask | KD_POLL_HUP | KD_POLL_ERR);
		if (ready && self->probing)
			fail("poll() waits although %#x holds: nobody woke it", ready);
		self->probing = false;
		if (ready || w.now() >= end)
			break;
		while (!self->woken && !self->probing)
			w.sched.block("poll");
	}
	w.sched.cancel(timer);
	std::erase_if(w.pollers, [&](const World::Poller &poller) { return poller.fiber == self; });
	return ready;
}

uint32_t File::poll(uint32_t mask, uint64_t timeout)
{
	uint32_t ready = 0;

	world->call(
		[&] {
			watch::acquire(&world->devnodes);
			ready = wait_for_events(*world,
						{node->core->file_read_waitq(file),
						 node->core->file_write_waitq(file)},
						mask, timeout,
						[&] { return node->core->file_poll(file); });
			watch::release(file);
		},
		"poll");
	return ready;
}

} // namespace sim
