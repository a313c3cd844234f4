// SPDX-License-Identifier: GPL-2.0-only
// Fetching large messages with RDMA READ into kernel memory, in the order of the
// stream and ahead of the reader as far as the budget goes. The first message
// in order is always fetched, whatever the budget, so that nothing can lock up.
#include "channel.hh"

using namespace kd;

namespace
{
constexpr uint64_t read_ahead_bytes = 4 << 20;
constexpr uint64_t retry_ns = 10000000; // after an allocation failed
} // namespace

// Starts the work if there is something that it could do.
void kd_channel::consider_fetching()
{
	bool any;
	{
		SpinGuard guard(rx_lock);
		any = order.to_fetch(fetch_cursor) != nullptr;
	}
	if (any && !queues[0]->sealed)
		queue_work(&fetch_work);
}

void kd_channel::fetch_work_fn(kd_work *work)
{
	Sleepable s = ShimEntry::may_sleep();
	auto *c = KD_CONTAINER(work, kd_channel, fetch_work);
	c->fetch(s);
	c->put(s);
}

void kd_channel::fetch(Sleepable)
{
	for (;;) {
		FetchSlot *fetch = nullptr;
		{
			SpinGuard guard(rx_lock);
			RxSlot *rx = order.to_fetch(fetch_cursor);
			bool fits = rx && (fetch_cursor == order.read() ||
					   fetched_bytes + rx->length <= read_ahead_bytes);
			fetch = fits ? rx->queue->free_fetches.pop() : nullptr;
			if (!fetch)
				return; // consume() or control_pump() comes back
			fetch->rx = rx;
			fetch->seq = fetch_cursor;
			rx->wants_fetch = false;
			fetched_bytes += rx->length;
		}
		RxSlot *rx = fetch->rx;
		Queue &queue = *rx->queue;
		bool sealed;
		{
			SpinGuard guard(queue.tx_lock);
			sealed = queue.sealed;
		}
		Status st = sealed ? KD_EPIPE
				   : kd_pages_alloc(rx->length, KD_PAGES_FETCH, &fetch->pages);
		if (st.ok()) {
			fetch->posted_ns = kd_now_ns();
			st = kd_post_read(queue.qp, &fetch->read, &fetch->cqe, fetch->pages,
					  rx->length, rx->addr, rx->rkey);
			if (st.ok())
				continue;
			fetch->posted_ns = 0;
			kd_pages_free(fetch->pages);
		}
		{
			SpinGuard guard(rx_lock);
			rx->wants_fetch = true;
			// Others have moved it on past a message that did not want to be fetched.
			if (fetch->seq < fetch_cursor)
				fetch_cursor = fetch->seq;
			fetched_bytes -= rx->length;
			queue.free_fetches.push_back(fetch);
		}
		if (sealed)
			return;
		if (st.err() == KD_ENOMEM) {
			get();
			if (!kd_work_queue_after(&fetch_work, retry_ns))
				(void)refs.put();
			return;
		}
		KD_FAIL(*this, st.err(), "queue %u: cannot post an RDMA READ (error %d)",
			queue.index, st.err());
		return;
	}
}

void kd_channel::fetched(FetchSlot *fetch, const kd_wc &wc)
{
	Queue &queue = *fetch->queue;
	RxSlot *rx = fetch->rx;
	if (wc.err && !fetch->posted_ns)
		return; // siw may flush a READ twice (Documentation/testing.md)
	kd_read_release(queue.qp, &fetch->read, fetch->pages);
	fetch->posted_ns = 0;
	if (wc.err) {
		kd_pages_free(fetch->pages);
		if (!wc.flushed)
			KD_FAIL(*this, KD_EIO, "queue %u: RDMA READ failed: %s", queue.index,
				wc.status_name);
		return;
	}
	rx->pages = fetch->pages;
	// Before it counts as received, so that the answer to a goodbye comes after it.
	{
		SpinGuard guard(ctrl_lock);
		done.push_back(fetch);
	}
	bool in_order;
	{
		SpinGuard guard(rx_lock);
		uint64_t before = order.received();
		rx->ready = true;
		order.advance();
		in_order = order.received() != before;
	}
	if (in_order)
		message_complete();
	control_pump();
}
