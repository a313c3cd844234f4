// SPDX-License-Identifier: GPL-2.0-only
// os.h: device nodes and events.
#include <cstring>

#include "watch.h"
#include "world.h"

using namespace sim;

namespace
{

bool legal(uint32_t from, uint32_t to)
{
	switch (from) {
	case KDIRECT_STATE_NEW:
		return to == KDIRECT_STATE_CONNECTING || to == KDIRECT_STATE_DELETING;
	case KDIRECT_STATE_CONNECTING:
		return to == KDIRECT_STATE_LIVE || to == KDIRECT_STATE_RECOVERING ||
		       to == KDIRECT_STATE_DELETING;
	case KDIRECT_STATE_LIVE:
		return to == KDIRECT_STATE_RECOVERING || to == KDIRECT_STATE_DELETING;
	case KDIRECT_STATE_RECOVERING:
		return to == KDIRECT_STATE_LIVE || to == KDIRECT_STATE_DELETING ||
		       to == KDIRECT_STATE_DEAD;
	case KDIRECT_STATE_DELETING: return to == KDIRECT_STATE_DEAD;
	default: return false;
	}
}

std::string text(const char *value)
{
	return value ? value : "";
}

} // namespace

namespace sim
{

void World::publish(Node *on, const kd_event &event)
{
	std::string name = text(event.name);

	on->events.push_back({now(), event.type, name, text(event.listener), text(event.device),
			      event.state, event.old_state, event.error ? event.error->err : 0,
			      event.error ? event.error->text : ""});
	switch (event.type) {
	case KDIRECT_EVENT_CHANNEL_ADDED:
		if (on->last_state.contains(name))
			fail("channel %s added twice", name.c_str());
		on->last_state[name] = KDIRECT_STATE_NEW;
		on->state_since[name] = now();
		on->phase = KDIRECT_STATE_NEW;
		break;
	case KDIRECT_EVENT_CHANNEL_STATE:
		if (event.held && event.state == KDIRECT_STATE_CONNECTING)
			break;
		if (!on->last_state.contains(name))
			fail("state of channel %s, which was not added", name.c_str());
		else if (on->last_state[name] != event.old_state)
			fail("channel %s leaves state %u, but was in %u", name.c_str(),
			     event.old_state, on->last_state[name]);
		if (!legal(event.old_state, event.state))
			fail("channel %s goes from state %u to %u", name.c_str(), event.old_state,
			     event.state);
		on->last_state[name] = event.state;
		on->state_since[name] = now();
		on->phase = event.state;
		if (on_state)
			on_state(*on, on->events.back());
		break;
	case KDIRECT_EVENT_CHANNEL_REMOVED:
		if (!on->last_state.erase(name))
			fail("channel %s removed, but was not there", name.c_str());
		if (on->last_state.empty())
			on->phase = 6;
		break;
	default: break;
	}
}

} // namespace sim

namespace
{

int add_node(kd_channel *channel, kd_mapping *mapping, bool raw, const char *name, kd_node **out)
{
	World &w = world();

	w.enter("kd_node_create", true);
	Node *node = w.here();
	if (w.devnodes.size() >= node->max_nodes)
		return KD_ENFILE;
	if (w.inject(Op::NodeCreate))
		return KD_ENOMEM;
	if (w.has_node(name, node))
		fail("two device nodes named %s", name);
	DevNode *devnode = w.devnodes.add();
	devnode->node = node;
	devnode->channel = channel;
	devnode->mapping = mapping;
	devnode->raw = raw;
	devnode->name = name;
	watch::release(devnode);
	*out = reinterpret_cast<kd_node *>(devnode);
	return 0;
}

} // namespace

extern "C" {

int kd_node_create(struct kd_channel *channel, const char *name, struct kd_node **out)
{
	return add_node(channel, nullptr, false, name, out);
}

int kd_raw_node_create(struct kd_channel *channel, const char *name, struct kd_node **out)
{
	return add_node(channel, nullptr, true, name, out);
}

int kd_map_node_create(struct kd_mapping *mapping, const char *name, struct kd_node **out)
{
	return add_node(nullptr, mapping, false, name, out);
}

void kd_node_destroy(struct kd_node *node)
{
	World &w = world();

	w.enter(__func__, true);
	DevNode *self = w.devnodes.check(node, __func__);
	self->going = true;
	while (self->opening)
		w.sched.block(__func__);
	watch::acquire(self);
	w.devnodes.remove(self);
}

void kd_event_publish(const struct kd_event *event)
{
	World &w = world();

	w.enter(__func__, true);
	if (!event->net && event->type != KDIRECT_EVENT_DEVICE_ADDED &&
	    event->type != KDIRECT_EVENT_DEVICE_REMOVED)
		fail("an event without a namespace");
	w.publish(w.here(), *event);
}

} /* extern "C" */
