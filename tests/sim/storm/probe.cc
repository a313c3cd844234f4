// SPDX-License-Identifier: GPL-2.0-only
#include "probe.h"

#include "../../../kmod/core/channel.hh"
#include "../../../kmod/core/raw.hh"
#include "../core_api.h"

#ifndef KD_INSTANCE_TABLE
#define KD_INSTANCE_TABLE kd_a_table
#endif

using namespace kd;

namespace
{

void (*const calls[])() = {
#define SIM_CALL(name) reinterpret_cast<void (*)()>(&::kd_##name),
	SIM_CORE_CALLS(SIM_CALL)
#undef SIM_CALL
};

uint32_t state_of(const Channel &channel)
{
	return static_cast<uint32_t>(channel.state.load(std::memory_order_relaxed));
}

uint32_t queue_state(const void *queue)
{
	return state_of(static_cast<const Queue *>(queue)->channel);
}

uint32_t file_state(const void *file)
{
	return state_of(*static_cast<const DescFile *>(file)->channel);
}

uint32_t cqe_state(const void *cqe, uint32_t kind)
{
	auto *at = const_cast<kd_cqe *>(static_cast<const kd_cqe *>(cqe));

	switch (kind) {
	case KD_CQE_RECV: return queue_state(KD_CONTAINER(at, RxSlot, cqe)->queue);
	case KD_CQE_SEND: return queue_state(KD_CONTAINER(at, TxSlot, cqe)->queue);
	case KD_CQE_OFFER: return queue_state(KD_CONTAINER(at, OfferSlot, reg_cqe)->queue);
	case KD_CQE_INV: return queue_state(KD_CONTAINER(at, OfferSlot, inv_cqe)->queue);
	case KD_CQE_RAW_SEND:
	case KD_CQE_RAW_RECV: return queue_state(KD_CONTAINER(at, RawSlot, cqe)->queue);
	case KD_CQE_RAW_REG: return queue_state(KD_CONTAINER(at, RawSlot, reg_cqe)->queue);
	default: return queue_state(KD_CONTAINER(at, FetchSlot, cqe)->queue);
	}
}

void snap(const void *pointer, sim::QueueSnap &out)
{
	const Queue &queue = *static_cast<const Queue *>(pointer);
	const Channel &channel = queue.channel;
	uint32_t due = queue.index ? channel.terms.depth / 2 : wire::control_receives / 2;

	out = {};
	out.index = queue.index;
	out.state = state_of(channel);
	out.depth = queue.index ? channel.terms.depth : wire::control_receives;
	out.due = due ? due : 1;
	out.settled = channel.state.load() == State::Live && !channel.broken.load() &&
		      !channel.delete_requested.load() && !channel.peer_closing.load() &&
		      !channel.peer_gone.load() && !queue.sealed.load();
	out.available = queue.index ? queue.window.available() : channel.ctrl_window.available();
	out.owed = queue.grant.owed();
	out.free_offers = queue.nr_free_offers;
	out.large = queue.nr_large;
	out.claimed = queue.claimed_offers;
	out.awaited = queue.sends.awaited;
	out.pong_waits = queue.pong.next;
	out.channel = &channel;
	out.arrived = channel.order.received();
	out.read = channel.order.read();
}

} // namespace

extern "C" const sim::InstanceTable KD_INSTANCE_TABLE = {
	calls, std::size(calls), queue_state, file_state, cqe_state, snap,
};
