// SPDX-License-Identifier: GPL-2.0-only
// The calls of each core, with a count of what came to a channel in which state.
#include <cstring>

#include "storm.h"

namespace sim
{

namespace
{

void count(std::size_t event, uint32_t state)
{
	if (state < nr_states)
		reach->event[event][state]++;
}

void count(Call call, uint32_t state)
{
	count(first_call + static_cast<std::size_t>(call), state);
}

CoreApi plain(const InstanceTable &table)
{
	CoreApi api;
	auto *to = reinterpret_cast<unsigned char *>(&api);

	static_assert(sizeof(CoreApi) % sizeof(*table.calls) == 0);
	if (table.count != sizeof(CoreApi) / sizeof(*table.calls))
		die("the table of a core is not as long as it should be");
	std::memcpy(to, table.calls, sizeof(CoreApi));
	return api;
}

template <unsigned int N>
struct Counted {
	inline static const InstanceTable *table;
	inline static CoreApi real;

	template <auto CoreApi::*Field, std::size_t Kind>
	static void completion(kd_cqe *cqe, const kd_wc *wc)
	{
		count(first_wc + Kind * 3 +
			      (wc->flushed ? 1
			       : wc->err   ? 2
					   : 0),
		      table->cqe_state(cqe, Kind));
		(real.*Field)(cqe, wc);
	}
	static uint32_t named(kd_net *net, const char *name)
	{
		struct kd_channel_info info;

		return real.channel_info(net, name, &info) ? nr_states : info.state;
	}

	static CoreApi make(const InstanceTable &of)
	{
		table = &of;
		real = plain(of);
		CoreApi api = real;

		api.queue_cm_event = [](kd_queue *queue, const kd_cm_event *event) {
			count(event->type, table->queue_state(queue));
			real.queue_cm_event(queue, event);
		};
		api.queue_fatal = [](kd_queue *queue, const char *what) {
			count(Call::Fatal, table->queue_state(queue));
			real.queue_fatal(queue, what);
		};
		api.queue_cq_event = [](kd_queue *queue) {
			count(Call::CqEvent, table->queue_state(queue));
			real.queue_cq_event(queue);
		};
		api.recv_done = completion<&CoreApi::recv_done, KD_CQE_RECV>;
		api.send_done = completion<&CoreApi::send_done, KD_CQE_SEND>;
		api.offer_done = completion<&CoreApi::offer_done, KD_CQE_OFFER>;
		api.inv_done = completion<&CoreApi::inv_done, KD_CQE_INV>;
		api.read_done = [](kd_cqe *cqe, const kd_wc *wc) {
			reach->large += !wc->err;
			completion<&CoreApi::read_done, KD_CQE_READ>(cqe, wc);
		};
		api.raw_registered = [](kd_cqe *cqe, const kd_wc *wc) {
			reach->registered += !wc->err;
			real.raw_registered(cqe, wc);
		};
		api.file_open = [](kd_channel *channel, bool read, bool write, kd_desc_file **out) {
			int err = real.file_open(channel, read, write, out);

			if (!err)
				count(Call::Open, table->file_state(*out));
			return err;
		};
		api.desc_release = [](kd_desc_file *file) {
			count(Call::Close, table->file_state(file));
			real.desc_release(file);
		};
		api.file_write = [](kd_desc_file *file, kd_iter *iter, size_t len, uint32_t flags) {
			count(Call::Write, table->file_state(file));
			return real.file_write(file, iter, len, flags);
		};
		api.file_read = [](kd_desc_file *file, kd_iter *iter, size_t len, uint32_t flags) {
			count(Call::Read, table->file_state(file));
			return real.file_read(file, iter, len, flags);
		};
		api.file_poll = [](kd_desc_file *file) {
			count(Call::Poll, table->file_state(file));
			return real.file_poll(file);
		};
		api.file_ping = [](kd_desc_file *file, kdirect_ping *ping) {
			count(Call::Ping, table->file_state(file));
			return real.file_ping(file, ping);
		};
		api.desc_set_flags = [](kd_desc_file *file, uint32_t flags) {
			count(Call::Flags, table->file_state(file));
			return real.desc_set_flags(file, flags);
		};
		api.file_info = [](kd_desc_file *file, kdirect_info *out) {
			count(Call::Info, table->file_state(file));
			real.file_info(file, out);
		};
		api.channel_set = [](kd_net *net, const kd_channel_params *params,
				     kd_error *error) {
			count(Call::Set, named(net, params->name));
			return real.channel_set(net, params, error);
		};
		api.channel_del = [](kd_net *net, const char *name, kd_error *error) {
			count(Call::Delete, named(net, name));
			return real.channel_del(net, name, error);
		};
		return api;
	}
};

} // namespace

const InstanceTable &instance(unsigned int n)
{
	return n == 0 ? kd_a_table : n == 1 ? kd_b_table : kd_v_table;
}

const CoreApi &counted_core(unsigned int n)
{
	static const CoreApi all[] = {
		Counted<0>::make(instance(0)),
		Counted<1>::make(instance(1)),
		Counted<2>::make(instance(2)),
	};

	return all[n];
}

/* A world is made with one machine. */
const CoreApi &linked_core()
{
	return counted_core(0);
}

} // namespace sim
