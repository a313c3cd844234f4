// SPDX-License-Identifier: GPL-2.0-only
/* Copying to and from memory of descriptors, whose pages stay, from any context. */

#include <linux/highmem.h>
#include <linux/mm.h>

#include "shim.h"

/* The page that holds the byte at @offset from the beginning of a place; where in it. */
static struct page *kd_place_page(const struct kd_place *place, u32 offset, u32 *at)
{
	struct page *const *pages;
	u64 from = place->offset + offset;

	if (place->pages) {
		pages = place->pages->pages;
		from += place->pages->offset;
	} else {
		pages = kd_fixed_page_array(place->fixed, &from);
	}
	*at = offset_in_page(from);
	return pages[from >> PAGE_SHIFT];
}

void kd_place_read(const struct kd_place *from, void *to, uint32_t len)
{
	u32 done, n, at;

	for (done = 0; done < len; done += n) {
		struct page *page = kd_place_page(from, done, &at);

		n = min_t(u32, len - done, PAGE_SIZE - at);
		memcpy_from_page(to + done, page, at, n);
	}
}

void kd_place_write(const struct kd_place *to, const void *from, uint32_t len)
{
	u32 done, n, at;

	for (done = 0; done < len; done += n) {
		struct page *page = kd_place_page(to, done, &at);

		n = min_t(u32, len - done, PAGE_SIZE - at);
		memcpy_to_page(page, at, from + done, n);
	}
}

void kd_place_copy(const struct kd_place *to, struct kd_pages *from, uint32_t offset,
		   uint32_t len)
{
	const struct kd_place source = { .pages = from, .offset = offset };
	u32 done, n, at;

	for (done = 0; done < len; done += n) {
		struct page *page = kd_place_page(&source, done, &at);
		const struct kd_place rest = {
			.pages	= to->pages,
			.fixed	= to->fixed,
			.offset	= to->offset + done,
		};
		void *mem = kmap_local_page(page);

		n = min_t(u32, len - done, PAGE_SIZE - at);
		kd_place_write(&rest, mem + at, n);
		kunmap_local(mem);
	}
}

int kd_fixed_borrow(struct kd_fixed *fixed, uint64_t offset, uint32_t len, uint32_t max_pages,
		    struct kd_pages **out)
{
	struct page *const *pages;
	u64 from = offset;

	might_sleep();
	pages = kd_fixed_page_array(fixed, &from);
	if (DIV_ROUND_UP(offset_in_page(from) + (u64)len, PAGE_SIZE) > max_pages)
		return KD_EOPNOTSUPP;
	return kd_pages_borrow_array(pages + (from >> PAGE_SHIFT), offset_in_page(from), len, out);
}
