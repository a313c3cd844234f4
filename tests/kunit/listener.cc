// SPDX-License-Identifier: GPL-2.0-only
// A listener: what it says to a connection request, by its own state and settings.
#include "listener.hh"

#include "core_cases.h"
#include "registry.hh"

using namespace kd;
using wire::Refusal;

namespace
{

// With a connection id behind the request that has no connection.
struct Scene {
	explicit Scene(struct kunit *test) : s(ShimEntry::may_sleep())
	{
		kd_listener_params p;
		kd_listener_defaults(&p);
		kd_format(p.name, sizeof(p.name), "kdkl");
		listener = kd_listener::create(s, kdk_net(), p);
		EXPECT(listener && !kd_cm_create(kdk_net(), nullptr, &cm));
		info = {0, 1, 1, 32, 16384, 1048576, 0x1234, 0};
	}
	~Scene()
	{
		if (cm)
			kd_cm_destroy(cm);
		if (listener)
			listener->put(s);
	}
	explicit operator bool() const { return listener && cm; }
	kd_cm_event event()
	{
		kd_cm_event e{};
		wire::encode_request(info, request);
		e.type = KD_CM_CONNECT_REQUEST;
		e.name = "connect request";
		e.data = reinterpret_cast<const uint8_t *>(&request);
		e.data_len = sizeof(request);
		e.reads_in = e.reads_out = 1;
		e.new_cm = cm;
		return e;
	}

	Sleepable s;
	kd_listener *listener = nullptr;
	kd_cm *cm = nullptr;
	wire::RequestInfo info;
	wire::Request request;
};

Channel *accepted(Sleepable s)
{
	MutexGuard guard(registry().lock, s);
	return registry().find_channel(kdk_net(), "kdkl.0");
}

} // namespace

void kdk_case_request_by_state(struct kunit *test)
{
	enum { Accept, Deleting, NotAllowed, Malformed, Version, Queues, Full, NoChannel, Depth };
	uint32_t what = kdk_param(test)->a;
	Scene scene(test);
	if (!scene)
		return;
	kd_listener &l = *scene.listener;
	Refusal wanted = Refusal::None;
	uint32_t value = 0;
	switch (what) {
	case Deleting:
		l.deleting = true;
		wanted = Refusal::ShuttingDown;
		break;
	case NotAllowed:
		l.params.nr_allow = 1;
		l.params.allow[0].addr.len = 4;
		l.params.allow[0].bits = 32;
		wanted = Refusal::NotAllowed;
		break;
	case Malformed: wanted = Refusal::Malformed; break;
	case Version:
		wanted = Refusal::Version;
		value = wire::version;
		break;
	case Queues:
		scene.info.queues = value = l.params.max_queues = 3;
		wanted = Refusal::Queues;
		break;
	case Full:
		l.params.max_channels = 0;
		wanted = Refusal::Full;
		break;
	case NoChannel:
		scene.info.queue = 1;
		scene.info.token = 0x5678;
		wanted = Refusal::NoChannel;
		break;
	case Depth:
		scene.info.depth = wire::max_depth + 1;
		wanted = Refusal::Depth;
		value = wire::max_depth;
		break;
	}
	kd_cm_event event = scene.event();
	if (what == Malformed)
		event.data_len--;
	if (what == Version)
		scene.request.version = uint16_t(wire::version + 1);
	wire::Verdict verdict = l.request(scene.s, event);
	EXPECT_EQ(verdict.reason, wanted);
	EXPECT_EQ(verdict.value, value);
	EXPECT_EQ(l.accepted, what == Accept);
	EXPECT_EQ(l.rejected, what != Accept);
	if (verdict)
		return;
	// The id is the channel's, which finds no device behind it and goes.
	scene.cm = nullptr;
	for (int i = 0; i < 1000 && accepted(scene.s); i++)
		kdk_sleep_ms(10);
	EXPECT(!accepted(scene.s));
}

// Refusals reach the shim as such; what is no request changes nothing.
void kdk_case_other_events(struct kunit *test)
{
	Scene scene(test);
	if (!scene)
		return;
	kd_listener &l = *scene.listener;
	kd_cm_event event = scene.event();
	for (auto type : {KD_CM_ADDR_RESOLVED, KD_CM_ROUTE_RESOLVED, KD_CM_ESTABLISHED,
			  KD_CM_ADDR_ERROR, KD_CM_ROUTE_ERROR, KD_CM_UNREACHABLE,
			  KD_CM_CONNECT_ERROR, KD_CM_REJECTED, KD_CM_DISCONNECTED, KD_CM_OTHER}) {
		event.type = type;
		EXPECT_EQ(kd_listener_cm_event(&l, &event), 0);
	}
	EXPECT_EQ(l.accepted + l.rejected, 0U);
	l.deleting = true;
	event.type = KD_CM_CONNECT_REQUEST;
	EXPECT_EQ(kd_listener_cm_event(&l, &event), KD_ECONNREFUSED);
	EXPECT_EQ(l.rejected, 1U);
	// A device that goes while it is being deleted: close() has the last word.
	event.type = KD_CM_DEVICE_REMOVAL;
	EXPECT_EQ(kd_listener_cm_event(&l, &event), 0);
	scene.listener = nullptr;
	l.close(scene.s);
}
