// SPDX-License-Identifier: GPL-2.0-only
// The control queue's messages about exports and mappings. As with the others, what is to
// be said follows from the state of things.
#include "channel.hh"
#include "registry.hh"

using namespace kd;
using wire::MapInfo;
using wire::MapOp;

// The answers of a grant; ctrl_lock.
bool kd_channel::collect_grant(Grant &grant, MapInfo &info, kd_key *const *&keys)
{
	if (!grant.due() || (grant.phase == Grant::Phase::Keying && keys_sending))
		return false;
	switch (grant.phase) {
	case Grant::Phase::Answering:
		if (grant.error) {
			info.op = MapOp::Refused;
			info.error = grant.error;
			grant.phase = Grant::Phase::Free;
			return true;
		}
		info.op = MapOp::Mapped;
		info.read_only = grant.read_only;
		info.atomics = atomics;
		info.sole = grant.sole;
		info.instance = grant.from->instance;
		info.size = grant.from->params.size;
		info.key_bytes = grant.key_bytes;
		grant.phase = Grant::Phase::Offered;
		return true;
	case Grant::Phase::Keying:
		info.op = MapOp::Keys;
		info.first = grant.told;
		keys = grant.keys + grant.told;
		while (info.nr_keys < wire::map_keys_at_once && grant.told < grant.nr_keys) {
			const kd_key *key = grant.keys[grant.told++];
			info.keys[info.nr_keys++] = {kd_key_address(key), kd_key_rkey(key)};
		}
		if (grant.told == grant.nr_keys)
			grant.phase = Grant::Phase::Given;
		return true;
	case Grant::Phase::Offered:
	case Grant::Phase::Given:
		info.op = MapOp::Revoke;
		grant.revoke_said = true;
		return true;
	case Grant::Phase::Departing:
		info.op = MapOp::Unmapped;
		grant.phase = Grant::Phase::Free;
		return true;
	case Grant::Phase::Free:
	case Grant::Phase::Asked:
	case Grant::Phase::Away:
	case Grant::Phase::Returned: break;
	}
	return false;
}

// The next message, if there is one; ctrl_lock.
bool kd_channel::map_collect(MapInfo &info, kd_key *const *&keys)
{
	for (uint64_t left = map_look; left; left &= left - 1) {
		uint32_t id = uint32_t(__builtin_ctzll(left));
		bool found, more;
		if (grants) {
			found = collect_grant(grants[id], info, keys);
			more = grants[id].due();
		} else {
			found = maps[id] && maps[id]->due();
			if (found)
				maps[id]->say(info);
			more = false;
		}
		if (!more)
			map_look &= ~(1ULL << id);
		info.id = id;
		if (found)
			return true;
	}
	return false;
}

// Sends it; false: there is nothing, or it cannot be sent.
bool kd_channel::map_send_one()
{
	Queue &control = *queues[0];
	MapInfo info{};
	kd_key *const *keys = nullptr;
	if (!map_look || current() != State::Live || !map_collect(info, keys))
		return false;
	{
		SpinGuard guard(control.tx_lock);
		info.credits = control.grant.tell();
	}
	TxSlot *slot = control.sends.free.pop();
	uint32_t len = wire::encode_map(info, slot->buf.mem);
	control.sends.post(slot, true);
	ctrl_window.take();
	ctrl_tx.add();
	if (keys)
		keys_sending = slot;
	int err = keys ? kd_post_keys(control.qp, &key_cqe, keys, info.nr_keys, &slot->cqe,
				      &slot->buf, len)
		       : kd_post_send(control.qp, &slot->cqe, &slot->buf, len, true);
	if (err)
		KD_FAIL(*this, err, "control queue: cannot post a SEND (error %d)", err);
	return !err;
}

// The initiator speaks of a mapping; ctrl_lock.
bool kd_channel::grant_hear(Grant &grant, const MapInfo &info)
{
	switch (info.op) {
	case MapOp::Map:
		if (grant.phase != Grant::Phase::Free && grant.phase != Grant::Phase::Away)
			return false;
		if (grant.phase == Grant::Phase::Free)
			grant.revoke = false;
		grant.phase = Grant::Phase::Asked;
		grant.revoke_said = false;
		grant.read_only = info.read_only;
		grant.told = 0;
		grant.error = 0;
		copy_bytes(grant.name, info.name, sizeof(grant.name));
		return true;
	case MapOp::Ready:
		if (grant.phase != Grant::Phase::Offered)
			return false;
		if (!grant.revoke_said) // else the two crossed
			grant.phase = Grant::Phase::Keying;
		return true;
	case MapOp::Unmap:
		if (grant.phase != Grant::Phase::Offered && grant.phase != Grant::Phase::Given)
			return false;
		grant.phase = Grant::Phase::Returned;
		return true;
	case MapOp::Mapped:
	case MapOp::Refused:
	case MapOp::Keys:
	case MapOp::Revoke:
	case MapOp::Unmapped: break;
	}
	return false;
}

void kd_channel::map_received(const MapInfo &info)
{
	ctrl_rx.add();
	bool credits, valid = false;
	{
		SpinGuard guard(ctrl_lock);
		credits = ctrl_window.update(info.credits) != CreditWindow::Update::Lie;
		map_look |= 1ULL << info.id;
		if (grants)
			valid = grant_hear(grants[info.id], info);
		else if (Mapping *mapping = maps[info.id])
			valid = mapping->hear(info);
	}
	if (!credits) {
		KD_FAIL(*this, KD_EPROTO,
			"control queue: the peer granted %u credits, more than were used",
			info.credits);
		return;
	}
	// A target is live before it says so, an initiator asks only then.
	if (!valid || (grants && !ever_live)) {
		KD_FAIL(*this, KD_EPROTO, "control queue: unexpected \"%s\" for mapping %u",
			wire::name(info.op), info.id);
		return;
	}
	control_pump();
	kick();
}

// A REG_MR asks for no completion: this is an error.
void kd_channel::keys_failed(const kd_wc &wc)
{
	if (wc.err && !wc.flushed)
		KD_FAIL(*this, KD_EIO, "control queue: REG_MR failed: %s", wc.status_name);
}

// --- what run() does ----------------------------------------------------------------

// The number of a free place for a mapping, taken.
bool kd_channel::take_place(Mapping &mapping)
{
	SpinGuard guard(ctrl_lock);
	for (uint32_t i = 0; i < wire::max_maps; i++) {
		if (maps[i])
			continue;
		mapping.get();
		maps[i] = &mapping;
		mapping.number = i;
		map_look |= 1ULL << i;
		return true;
	}
	return false;
}

void kd_channel::serve_mappings(Sleepable s)
{
	for (uint32_t i = 0; i < wire::max_maps; i++) {
		Mapping *mapping;
		{
			SpinGuard guard(ctrl_lock);
			mapping = maps[i];
		}
		if (!mapping)
			continue;
		while (mapping->step(s))
			;
		if (!mapping->removed)
			continue;
		{
			SpinGuard guard(ctrl_lock);
			maps[i] = nullptr;
		}
		mapping->put(s);
	}
}

uint64_t kd_channel::mappings_deadline()
{
	uint64_t first = 0, now = kd_now_ns();
	char late[KD_NAME_MAX + 1] = {};
	for (uint32_t i = 0; i < wire::max_maps; i++) {
		SpinGuard guard(ctrl_lock);
		const Mapping *mapping = maps[i];
		if (!mapping || !mapping->deadline_ns)
			continue;
		if (now >= mapping->deadline_ns)
			copy_bytes(late, mapping->name, sizeof(late));
		if (!first || mapping->deadline_ns < first)
			first = mapping->deadline_ns;
	}
	if (late[0])
		KD_FAIL(*this, KD_ETIMEDOUT, "the peer did not answer in time about mapping %s",
			late);
	return late[0] ? 0 : first;
}

// Exports and mappings move on while the channel is live, and end with it; without a
// connection they only go.
void kd_channel::serve_maps(Sleepable s)
{
	State now = current();
	map_deadline_ns = 0;
	if (now < State::Live || now == State::Deleting)
		return;
	if (grants && now != State::Dead)
		serve_grants(s);
	else if (!grants)
		serve_mappings(s);
	if (now == State::Live)
		map_deadline_ns = grants ? grants_deadline() : mappings_deadline();
}

// The connection is gone.
void kd_channel::suspend_maps(Sleepable s)
{
	suspend_grants(s);
	SpinGuard guard(ctrl_lock);
	map_look = 0;
	for (uint32_t i = 0; i < wire::max_maps; i++) {
		if (!maps[i])
			continue;
		maps[i]->ask_again();
		map_look |= 1ULL << i;
	}
}

// --- I/O that is held ------------------------------------------------------------------

void kd_channel::end_held(const Mapping &mapping, int err)
{
	auto its = [](const IoSlot &slot, const Mapping *m) { return slot.mapping == m; };
	for (uint32_t i = 1; i < nr_queues; i++)
		queues[i]->end_io(its, &mapping, err);
}

// What may have been executed is executed again only where that changes nothing: a READ, and
// a WRITE if nobody else could write.
void kd_channel::repost_io(Sleepable s, const Mapping &mapping, bool sole)
{
	auto atomic_ran = [](const IoSlot &slot, const Mapping *m) {
		return slot.mapping == m && slot.ran && slot.atomic;
	};
	auto write_ran = [](const IoSlot &slot, const Mapping *m) {
		return slot.mapping == m && slot.ran && slot.write;
	};
	kd_chain *chain;
	Status st = kd_chain_create(&chain);
	if (!st.ok())
		chain = nullptr;
	for (uint32_t i = 1; i < nr_queues && st.ok(); i++) {
		queues[i]->end_io(atomic_ran, &mapping, KD_ECONNRESET);
		if (!sole)
			queues[i]->end_io(write_ran, &mapping, KD_ECONNRESET);
		st = queues[i]->repost_io(s, mapping, chain);
		queues[i]->io_waitq.wake(0);
	}
	kd_chain_free(chain);
	if (!st.ok())
		KD_FAIL(*this, st.err(),
			"mapping %s: cannot post again what an outage interrupted (error %d)",
			mapping.name, st.err());
}
