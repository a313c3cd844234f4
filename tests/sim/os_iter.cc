// SPDX-License-Identifier: GPL-2.0-only
// os.h: the caller's memory, the pages of large messages, namespaces.
#include <cstring>

#include "world.h"

using namespace sim;

std::size_t kd_iter::total() const
{
	std::size_t sum = 0;

	for (const Segment &segment : segments)
		sum += segment.len;
	return sum;
}

namespace
{

bool copy(kd_iter *iter, uint8_t *mem, std::size_t len, bool to_iter)
{
	std::size_t skip = iter->pos;
	std::size_t left = len;

	if (iter->pos + len > iter->total())
		fail("copy of %zu bytes past the end of the caller's memory", len);
	if (len && iter->pos + len > iter->fault_at)
		return false;
	for (const kd_iter::Segment &segment : iter->segments) {
		if (skip >= segment.len) {
			skip -= segment.len;
			continue;
		}
		std::size_t now = std::min(left, segment.len - skip);
		if (!now)
			break;
		if (to_iter)
			std::memcpy(segment.base + skip, mem, now);
		else
			std::memcpy(mem, segment.base + skip, now);
		mem += now;
		left -= now;
		skip = 0;
	}
	iter->pos += len - left;
	return left == 0;
}

Pages *to_pages(const kd_pages *pages, const char *function)
{
	return world().pages.check(pages, function);
}

kd_pages *handle(Pages *pages)
{
	return reinterpret_cast<kd_pages *>(pages);
}

} // namespace

extern "C" {

bool kd_copy_from(void *dst, size_t len, struct kd_iter *from)
{
	world().enter(__func__, true);
	return copy(from, static_cast<uint8_t *>(dst), len, false);
}

bool kd_copy_to(const void *src, size_t len, struct kd_iter *to)
{
	world().enter(__func__, true);
	return copy(to, static_cast<uint8_t *>(const_cast<void *>(src)), len, true);
}

int kd_pages_pin(struct kd_iter *iter, uint32_t len, uint32_t max_pages, struct kd_pages **out)
{
	World &w = world();

	w.enter(__func__, true);
	if (w.sched.current()->nowait)
		fail("kd_pages_pin() for a caller that must not block");
	Node *node = w.here();

	if (!iter->user || iter->segments.size() != 1 || iter->pos + len > iter->segments[0].len)
		return KD_EOPNOTSUPP;
	uint8_t *start = iter->segments[0].base + iter->pos;
	auto first = reinterpret_cast<uintptr_t>(start) / page_size;
	auto last = (reinterpret_cast<uintptr_t>(start) + len - 1) / page_size;
	uint64_t count = last - first + 1;
	if (count > max_pages)
		return KD_EOPNOTSUPP;
	if (iter->pos + len > iter->fault_at)
		return KD_EFAULT;
	if (w.inject(Op::PagesPin) || node->memlock + count * page_size > node->memlock_limit)
		return KD_ENOMEM;
	Pages *pages = w.pages.add();
	pages->node = node;
	pages->user = start;
	pages->len = len;
	pages->charged = count * page_size;
	node->memlock += pages->charged;
	iter->pos += len;
	*out = handle(pages);
	return 0;
}

int kd_pages_alloc(uint32_t len, enum kd_pages_for whom, struct kd_pages **out)
{
	World &w = world();

	bool may_block = whom != KD_PAGES_NOWAIT;
	w.enter(__func__, may_block);
	if (may_block && w.sched.current()->nowait)
		fail("kd_pages_alloc() may block a caller that must not block");
	if (w.inject(Op::PagesAlloc))
		return KD_ENOMEM;
	Pages *pages = w.pages.add();
	pages->node = w.here();
	pages->own.resize(len, 0xa5);
	pages->len = len;
	*out = handle(pages);
	return 0;
}

bool kd_pages_copy_from(struct kd_pages *pages, struct kd_iter *from, uint32_t len)
{
	world().enter(__func__, true);
	Pages *self = to_pages(pages, __func__);

	if (len > self->len || self->user)
		die("kd_pages_copy_from(): %u bytes into %u", len, self->len);
	return copy(from, self->data(), len, false);
}

bool kd_pages_copy_to(struct kd_pages *pages, uint32_t offset, uint32_t len, struct kd_iter *to)
{
	world().enter(__func__, true);
	Pages *self = to_pages(pages, __func__);

	if (self->mapped)
		fail("kd_pages_copy_to() from pages that the device owns");
	if (offset > self->len || len > self->len - offset)
		die("kd_pages_copy_to(): %u bytes at %u of %u", len, offset, self->len);
	return copy(to, self->data() + offset, len, true);
}

void kd_pages_free(struct kd_pages *pages)
{
	World &w = world();

	w.enter(__func__, false);
	if (!pages)
		return;
	Pages *self = to_pages(pages, __func__);

	if (self->mapped)
		fail("freed pages that are mapped for the device");
	self->node->memlock -= self->charged;
	w.pages.remove(self);
}

bool kd_pages_pinned(const struct kd_pages *pages)
{
	return to_pages(pages, __func__)->user;
}

uint32_t kd_net_inode(const struct kd_net *net)
{
	return world().nets.check(net, __func__)->inode;
}

bool kd_net_is_init(const struct kd_net *net)
{
	return world().nets.check(net, __func__)->init;
}

struct kd_net *kd_net_get(struct kd_net *net)
{
	world().nets.check(net, __func__)->refs++;
	return net;
}

void kd_net_put(struct kd_net *net)
{
	Net *self = world().nets.check(net, __func__);

	if (self->refs <= 1)
		fail("kd_net_put() of a reference that was not taken");
	else
		self->refs--;
}

} /* extern "C" */
