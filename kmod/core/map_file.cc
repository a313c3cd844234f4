// SPDX-License-Identifier: GPL-2.0-only
// Open files of a mapping.
#include "channel.hh"

using namespace kd;

void kd_mapping::opened(DescFile &file)
{
	get();
	opens.fetch_add(1);
	file.mapping = this;
	SpinGuard guard(channel->ctrl_lock);
	files.add(&file);
}

void kd_mapping::closed(DescFile &file)
{
	opens.fetch_sub(1);
	SpinGuard guard(channel->ctrl_lock);
	files.remove(&file);
}

int kd_map_open(struct kd_mapping *mapping, bool read, bool write, struct kd_desc_file **out)
{
	if (int err = mapping->refusal())
		return err;
	if (write && mapping->read_only)
		return KD_EACCES;
	DescFile *file = DescFile::create(ShimEntry::may_sleep(), *mapping->channel);
	if (!file)
		return KD_ENOMEM;
	mapping->opened(*file);
	file->can_read = read;
	file->can_write = write;
	*out = file;
	return 0;
}

uint64_t kd_map_size(const struct kd_desc_file *file)
{
	return file->mapping->size;
}

void kd_map_describe(struct kd_desc_file *file, struct kdirect_map_info *out)
{
	const Mapping &mapping = *file->mapping;
	*out = {};
	kd_format(out->name, sizeof(out->name), "%s", mapping.name);
	out->size = mapping.size;
	if (mapping.read_only)
		out->flags |= KDIRECT_MAP_READ_ONLY;
	if (mapping.atomics)
		out->flags |= KDIRECT_MAP_ATOMICS;
	out->eager_limit = mapping.channel->copy_limit();
	out->poll_queues = mapping.channel->nr_poll_queues;
}
