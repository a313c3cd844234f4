// SPDX-License-Identifier: GPL-2.0-only
// os.h: the connection manager's functions.
#include "fabric.h"
#include "watch.h"

using namespace sim;

namespace
{

Cm *to_cm(const kd_cm *cm, const char *function)
{
	return world().cms.check(cm, function);
}

Net *to_net(kd_net *net, const char *function)
{
	return world().nets.check(net, function);
}

kd_cm *handle(Cm *cm)
{
	return reinterpret_cast<kd_cm *>(cm);
}

/* rdma_cm holds the id's handler lock during an event. */
void not_from_own_event(const Cm *cm, const char *function)
{
	Fiber *self = world().sched.current();

	if (self->event_of == cm || self->event_new == cm)
		fail("%s of %s inside its own event", function, cm->label().c_str());
}

} // namespace

namespace sim
{

std::string Cm::label() const
{
	return "cm id " + std::to_string(id) + " in state " +
	       std::to_string(static_cast<int>(state));
}

bool Device::iwarp() const
{
	return attr.transport == KDIRECT_TRANSPORT_IWARP;
}

} // namespace sim

extern "C" {

int kd_cm_create(struct kd_net *net, struct kd_queue *queue, struct kd_cm **out)
{
	World &w = world();

	w.enter(__func__, true);
	if (w.inject(Op::CmCreate))
		return KD_ENOMEM;
	Cm *cm = w.cms.add();
	cm->node = w.here();
	cm->net = to_net(net, __func__);
	cm->net->refs++;
	cm->queue = queue;
	watch::release(cm);
	*out = handle(cm);
	return 0;
}

int kd_cm_listen(struct kd_net *net, const struct kd_endpoint *local, struct kd_listener *listener,
		 struct kd_cm **out)
{
	World &w = world();

	w.enter(__func__, true);
	Node *node = w.here();
	Device *dev = nullptr;

	if (w.inject(Op::CmListen))
		return KD_ENOMEM;
	for (const auto &device : w.devices)
		for (const kd_addr &addr : device->addrs)
			if (device->node == node && !device->removing &&
			    same_addr(addr, local->addr))
				dev = device.get();
	if (!dev && !any_addr(local->addr))
		return KD_EADDRNOTAVAIL;
	for (const auto &cm : w.cms)
		if (cm->state == Cm::State::Listening && cm->node == node &&
		    cm->local.port == local->port &&
		    (any_addr(local->addr) || any_addr(cm->local.addr) ||
		     same_addr(cm->local.addr, local->addr)))
			return KD_EADDRINUSE;
	Cm *cm = w.cms.add();
	cm->node = node;
	cm->net = to_net(net, __func__);
	cm->net->refs++;
	cm->dev = dev;
	cm->local = *local;
	cm->listener = listener;
	cm->state = Cm::State::Listening;
	watch::release(cm);
	*out = handle(cm);
	return 0;
}

void kd_cm_set_queue(struct kd_cm *cm, struct kd_queue *queue)
{
	World &w = world();

	w.enter(__func__, true);
	Cm *self = to_cm(cm, __func__);

	if (w.sched.current()->event_new != self)
		fail("kd_cm_set_queue() outside of the id's CONNECT_REQUEST");
	self->queue = queue;
	watch::release(self);
}

int kd_cm_resolve_addr(struct kd_cm *cm, const struct kd_addr *source,
		       const struct kd_endpoint *peer, uint32_t timeout_ms)
{
	World &w = world();

	w.enter(__func__, true);
	Cm *self = to_cm(cm, __func__);
	not_from_own_event(self, __func__);
	watch::release(self);
	if (w.inject(Op::ResolveAddr))
		return KD_ENOMEM;
	return cm_resolve_addr(w, self, source, peer, timeout_ms * ms);
}

int kd_cm_resolve_route(struct kd_cm *cm, uint32_t timeout_ms)
{
	World &w = world();

	(void)timeout_ms;
	w.enter(__func__, true);
	Cm *self = to_cm(cm, __func__);
	not_from_own_event(self, __func__);
	watch::release(self);
	if (w.inject(Op::ResolveRoute))
		return KD_ENOMEM;
	return cm_resolve_route(w, self);
}

int kd_cm_connect(struct kd_cm *cm, const struct kd_cm_params *params)
{
	World &w = world();

	w.enter(__func__, true);
	Cm *self = to_cm(cm, __func__);
	not_from_own_event(self, __func__);
	if (params->data_len > KD_PRIVATE_MAX)
		fail("private data of %u bytes in a request", params->data_len);
	if (!self->qp)
		fail("kd_cm_connect() without a QP");
	watch::release(self);
	if (w.inject(Op::Connect))
		return KD_ENOMEM;
	return cm_connect(w, self, *params);
}

int kd_cm_accept(struct kd_cm *cm, const struct kd_cm_params *params)
{
	World &w = world();

	w.enter(__func__, true);
	Cm *self = to_cm(cm, __func__);
	not_from_own_event(self, __func__);
	if (params->data_len > reply_data)
		fail("private data of %u bytes in a reply", params->data_len);
	watch::release(self);
	int err = w.inject(Op::Accept) ? KD_ENOMEM : cm_accept(w, self, *params);
	if (err)
		cm_reject(w, self, "", 0);
	return err;
}

int kd_cm_reject(struct kd_cm *cm, const void *data, uint32_t len)
{
	World &w = world();

	w.enter(__func__, true);
	Cm *self = to_cm(cm, __func__);
	if (len > reject_data)
		fail("private data of %u bytes in a reject", len);
	if (w.inject(Op::Reject))
		return KD_ENOMEM;
	return cm_reject(w, self, data, len);
}

void kd_cm_disconnect(struct kd_cm *cm)
{
	World &w = world();

	w.enter(__func__, true);
	Cm *self = to_cm(cm, __func__);
	not_from_own_event(self, __func__);
	cm_disconnect(w, self);
}

void kd_cm_destroy(struct kd_cm *cm)
{
	World &w = world();

	w.enter(__func__, true);
	Cm *self = to_cm(cm, __func__);
	Fiber *fiber = w.sched.current();

	if (self->handler == fiber || fiber->event_new == self)
		die("kd_cm_destroy() of %s inside its own event", self->label().c_str());
	if (self->qp)
		fail("kd_cm_destroy() while its QP exists");
	/* no new event, and the end of the running one */
	for (CmEventRecord &event : self->events)
		if (event.new_cm)
			cm_destroy(w, event.new_cm);
	self->events.clear();
	while (self->handler) {
		w.sched.block(__func__);
		for (CmEventRecord &event : self->events)
			if (event.new_cm)
				cm_destroy(w, event.new_cm);
		self->events.clear();
	}
	watch::acquire(self);
	cm_destroy(w, self);
}

struct kd_device *kd_cm_device(const struct kd_cm *cm)
{
	Cm *self = to_cm(cm, __func__);

	return self->dev && !self->dev->removing ? self->dev->core : nullptr;
}

void kd_cm_local(const struct kd_cm *cm, struct kd_endpoint *out)
{
	*out = to_cm(cm, __func__)->local;
}

void kd_cm_peer(const struct kd_cm *cm, struct kd_endpoint *out)
{
	*out = to_cm(cm, __func__)->peer;
}

} /* extern "C" */
