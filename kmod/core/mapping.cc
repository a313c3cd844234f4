// SPDX-License-Identifier: GPL-2.0-only
// The life of a mapping. step() is called by the channel's run(), and is the only one
// that changes its state.
#include "mapping.hh"

#include "channel.hh"
#include "registry.hh"

#include "../../uapi/kdirect_netlink.h"

using namespace kd;
using wire::MapInfo;
using wire::MapOp;

static_assert(uint32_t(MapState::Asking) == KDIRECT_MAP_ASKING);
static_assert(uint32_t(MapState::Live) == KDIRECT_MAP_LIVE);
static_assert(uint32_t(MapState::Leaving) == KDIRECT_MAP_LEAVING);
static_assert(uint32_t(MapState::Dead) == KDIRECT_MAP_DEAD);

kd_mapping *kd_mapping::create(Sleepable s, Channel &channel, const kd_map_params &params)
{
	auto *m = kd::create<kd_mapping>(s);
	if (!m)
		return nullptr;
	copy_bytes(m->name, params.name, sizeof(m->name));
	m->params = params;
	m->net = kd_net_get(channel.net);
	channel.get();
	m->channel = &channel;
	registry().mapping_created();
	return m;
}

void kd_mapping::put(Sleepable s)
{
	if (!refs.put())
		return;
	kd_free(keys);
	kd_net_put(net);
	channel->put(s);
	destroy(s, this);
	registry().mapping_gone();
}

void kd_mapping::request_delete()
{
	delete_requested.store(true, std::memory_order_release);
	channel->kick();
}

int kd_mapping::refusal() const
{
	if (current() == MapState::Live && channel->current() >= State::Live && !channel->ended())
		return channel->fails_fast ? KD_ETIMEDOUT : 0;
	if (delete_requested)
		return KD_ENODEV;
	return revoked || channel->forgotten ? KD_ESTALE : KD_EPIPE;
}

// siw answers a READ of so few bytes that cross the end of a page with others
// (Documentation/testing.md): it is cut there.
uint32_t kd_mapping::part(uint64_t pos, uint64_t most, bool write) const
{
	constexpr uint32_t few = 64;
	uint32_t rest = rest_of_key(pos);
	uint32_t len = most < rest ? uint32_t(most) : rest;
	if (write || !channel->iwarp || len > few)
		return len;
	rest = limits::page_size - uint32_t(pos % limits::page_size); // keys begin with a page
	return len < rest ? len : rest;
}

// --- messages; ctrl_lock ----------------------------------------------------------------

// Making and destroying many keys takes its time.
uint64_t kd_mapping::patience_from_now() const
{
	return kd_now_ns() + uint64_t(channel->params.connect_timeout_ms) * 1000000;
}

void kd_mapping::say(MapInfo &info)
{
	deadline_ns = patience_from_now();
	switch (talk) {
	case MapTalk::Ask:
		info.op = MapOp::Map;
		info.read_only = params.read_only;
		copy_bytes(info.name, params.export_name, sizeof(info.name));
		talk = MapTalk::Asked;
		break;
	case MapTalk::Ready:
		info.op = MapOp::Ready;
		talk = MapTalk::Keys;
		break;
	default:
		info.op = MapOp::Unmap;
		talk = MapTalk::Unmapping;
		break;
	}
	// run() looks at the deadline
	channel->kick();
}

void kd_mapping::ask_again()
{
	if (talk == MapTalk::Gone)
		return;
	if (current() == MapState::Live)
		away.store(true, std::memory_order_release);
	// Who leaves need not say so: the peer forgets it, too.
	talk = current() == MapState::Leaving ? MapTalk::Gone : MapTalk::Ask;
	told = 0;
	deadline_ns = 0;
}

void kd_mapping::hear_mapped(const MapInfo &info)
{
	// What it was before is what it has to be after an outage.
	if (away && (info.instance != instance || info.size != size ||
		     info.key_bytes != key_bytes || (info.read_only && !read_only)))
		revoked.store(true, std::memory_order_release);
	if (!away) {
		size = info.size;
		instance = info.instance;
		read_only = info.read_only || params.read_only;
		key_bytes = info.key_bytes;
	}
	atomics = info.atomics && channel->atomics && !channel->iwarp;
	sole = info.sole;
	talk = MapTalk::Answered;
}

bool kd_mapping::hear(const MapInfo &info)
{
	switch (info.op) {
	case MapOp::Mapped:
		if (talk != MapTalk::Asked)
			return false;
		hear_mapped(info);
		break;
	case MapOp::Refused:
		if (talk != MapTalk::Asked)
			return false;
		refused = info.error;
		if (away)
			revoked.store(true, std::memory_order_release);
		talk = MapTalk::Gone;
		break;
	case MapOp::Keys:
		if (talk != MapTalk::Keys || revoked || info.first != told ||
		    info.nr_keys > nr_keys - told)
			return false;
		for (uint32_t i = 0; i < info.nr_keys; i++) {
			if (info.keys[i].addr % 8) // the peer chose where it begins
				atomics = false;
			keys[told++] = info.keys[i];
		}
		if (told != nr_keys) {
			deadline_ns = patience_from_now();
			return true;
		}
		talk = MapTalk::Held;
		break;
	case MapOp::Revoke:
		if (talk < MapTalk::Answered || talk == MapTalk::Gone || revoked ||
		    (talk == MapTalk::Keys && told))
			return false;
		revoked.store(true, std::memory_order_release);
		// an answer to Unmap is still to come
		return true;
	case MapOp::Unmapped:
		if (talk != MapTalk::Unmapping)
			return false;
		talk = MapTalk::Gone;
		break;
	case MapOp::Map:
	case MapOp::Ready:
	case MapOp::Unmap: return false;
	}
	deadline_ns = 0;
	return true;
}

// --- steps --------------------------------------------------------------------------------

MapTalk kd_mapping::talking() const
{
	SpinGuard guard(channel->ctrl_lock);
	return talk;
}

// False: more was said meanwhile.
bool kd_mapping::talk_on(MapTalk from, MapTalk next)
{
	{
		SpinGuard guard(channel->ctrl_lock);
		if (talk != from)
			return false;
		talk = next;
		deadline_ns = 0;
		channel->map_look |= 1ULL << number;
	}
	channel->control_pump();
	return true;
}

// The first error stays.
void kd_mapping::fail(int err, const char *text)
{
	SpinGuard guard(channel->ctrl_lock);
	if (error.err)
		return;
	error.err = err;
	kd_format(error.text, sizeof(error.text), "%s", text);
}

void kd_mapping::enter(Sleepable, MapState next)
{
	MapState from = current();
	state.store(next, std::memory_order_release);
	kd_error why;
	{
		SpinGuard guard(channel->ctrl_lock);
		why = error;
	}
	kd_event event{};
	event.type = KDIRECT_EVENT_MAP_STATE;
	event.name = name;
	event.state = uint32_t(next);
	event.old_state = uint32_t(from);
	event.error = why.err ? &why : nullptr;
	event.net = net;
	kd_event_publish(&event);
	// Who waits to begin need not.
	for (uint32_t i = 1; i < channel->nr_queues; i++)
		channel->queues[i]->io_waitq.wake(0);
	SpinGuard guard(channel->ctrl_lock);
	files.each([](DescFile &file) {
		file.waitq.wake(0);
		file.poll_waitq.wake(KD_WAKE_END);
	});
}

// The table of keys, and slots for I/O if the channel has none yet.
void kd_mapping::make_table(Sleepable s)
{
	uint32_t count = uint32_t(wire::map_keys(size, key_bytes));
	auto *table = create_array<wire::RemoteKey>(s, count);
	Status st = table ? channel->prepare_io(s) : Status(KD_ENOMEM);
	{
		SpinGuard guard(channel->ctrl_lock);
		std::swap(keys, table);
		nr_keys = count;
		key_shift = uint32_t(__builtin_ctz(key_bytes));
	}
	kd_free(table); // of an earlier connection, before it was live
	if (!st.ok())
		fail(st.err(), "no memory for the mapping's keys and buffers");
	if (!st.ok())
		enter(s, MapState::Leaving);
	(void)talk_on(MapTalk::Answered, st.ok() ? MapTalk::Ready : MapTalk::Unmap);
}

bool kd_mapping::step_asking(Sleepable s)
{
	bool stop = delete_requested || revoked;
	if (revoked)
		fail(KD_ESTALE, "the export was deleted while it was being mapped");
	switch (talking()) {
	case MapTalk::Ask:
		if (stop)
			(void)talk_on(MapTalk::Ask, MapTalk::Gone);
		return stop;
	case MapTalk::Asked: return false;
	case MapTalk::Answered:
		if (!stop) {
			make_table(s);
			return true;
		}
		break;
	case MapTalk::Ready:
		if (!stop)
			return false;
		if (!talk_on(MapTalk::Ready, MapTalk::Held))
			return true;
		break;
	case MapTalk::Keys:
		if (!revoked)
			return false;
		break;
	case MapTalk::Held:
		if (stop)
			break;
		if (Status st = kd_map_node_create(this, name, &node); !st.ok()) {
			fail(st.err(), "no device node for the mapping");
			break;
		}
		ever_live = true;
		enter(s, MapState::Live);
		return true;
	case MapTalk::Unmap:
	case MapTalk::Unmapping: break;
	case MapTalk::Gone:
		if (refused == KD_ENOENT)
			fail(KD_ENOENT, "the peer's listener has no such export");
		else if (refused == KD_EBUSY)
			fail(KD_EBUSY, "this channel maps the export already");
		else if (refused)
			fail(refused, "the peer is out of memory or of RDMA resources");
		enter(s, MapState::Dead);
		return true;
	}
	enter(s, MapState::Leaving);
	return true;
}

// Is there nobody to talk to, for the time being?
bool kd_mapping::cut_off() const
{
	return channel->current() == State::Recovering;
}

// Of what is held when it leaves.
int kd_mapping::fate() const
{
	return revoked || channel->forgotten ? KD_ESTALE : KD_ENODEV;
}

bool kd_mapping::step_live(Sleepable s)
{
	if (!delete_requested && !revoked)
		return away && !cut_off() && come_back(s);
	if (revoked && refused && refused != KD_ENOENT)
		fail(refused, "after an outage the peer is out of memory or of RDMA resources");
	else if (revoked)
		fail(KD_ESTALE, away ? "after an outage the peer has no such export any more"
				     : "the peer deleted the export");
	enter(s, MapState::Leaving);
	return true;
}

// After an outage: the keys are new, and what was held meanwhile is posted.
bool kd_mapping::come_back(Sleepable s)
{
	switch (talking()) {
	case MapTalk::Answered: (void)talk_on(MapTalk::Answered, MapTalk::Ready); return true;
	case MapTalk::Held: break;
	default: return false;
	}
	away.store(false, std::memory_order_release);
	channel->repost_io(s, *this, sole);
	return true;
}

bool kd_mapping::step_leaving(Sleepable s)
{
	MapTalk now = talking();
	channel->end_held(*this, fate());
	if (cut_off() && now != MapTalk::Gone) {
		(void)talk_on(now, MapTalk::Gone);
		return true;
	}
	if (now == MapTalk::Gone) {
		enter(s, MapState::Dead);
		return true;
	}
	if (now == MapTalk::Unmap || now == MapTalk::Unmapping || channel->has_io(*this))
		return false;
	// What the peer is about to say has to be heard first.
	if (now == MapTalk::Asked || (now == MapTalk::Keys && !revoked))
		return false;
	(void)talk_on(now, now == MapTalk::Ask ? MapTalk::Gone : MapTalk::Unmap);
	return now == MapTalk::Ask;
}

bool kd_mapping::step(Sleepable s)
{
	if (channel->current() == State::Dead && current() != MapState::Dead) {
		kd_error why;
		{
			SpinGuard guard(channel->state_lock);
			why = channel->error;
		}
		int err = channel->forgotten ? KD_ESTALE : why.err ? why.err : KD_EPIPE;
		fail(err, why.err ? why.text : "its channel has ended");
		{
			SpinGuard guard(channel->ctrl_lock);
			talk = MapTalk::Gone;
			deadline_ns = 0;
		}
		enter(s, MapState::Dead);
		return true;
	}
	switch (current()) {
	case MapState::Asking: return (!cut_off() || delete_requested) && step_asking(s);
	case MapState::Live: return step_live(s);
	case MapState::Leaving: return step_leaving(s);
	case MapState::Dead:
		// What an administrator added stays to be looked at, once it was live.
		if (delete_requested || !ever_live)
			remove(s);
		return false;
	}
	return false;
}

// The name is free again only when the node is gone.
void kd_mapping::remove(Sleepable s)
{
	if (node)
		kd_node_destroy(node);
	node = nullptr;
	removed = true;
	if (registry().remove(s, *this))
		put(s); // the registry's
}
