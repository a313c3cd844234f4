// SPDX-License-Identifier: GPL-2.0-only
#include "world.h"

#include <arpa/inet.h>

#include <cstdlib>
#include <cstring>

#include "fabric.h"
#include "watch.h"

namespace sim
{

namespace
{

World *the_world;

} // namespace

const char *op_name(Op op)
{
	static constexpr const char *names[] = {
		"Alloc",          "CmCreate",       "CmListen",     "ResolveAddr",  "ResolveRoute",
		"Connect",        "Accept",         "Reject",       "PdCreate",     "CqCreate",
		"QpCreate",       "DmaCreate",      "PostRecv",     "PostSend",     "PostOffer",
		"PostInvalidate", "PostRead",       "PagesPin",     "PagesAlloc",   "MrCreate",
		"MrMap",          "NodeCreate",     "RegionAlloc",  "KeyCreate",    "PostKeys",
		"PostIo",         "PagesPinIo",     "RwPrepare",    "RwPost",       "FixedPin",
		"FixedMap",       "ChainCreate",    "PostChain",    "SharedCreate", "ThreadStart",
		"PartialPost",    "WrError",        "RequestLost",  "ReplyLost",    "ConfirmLost",
		"RejectLost",     "DisconnectLost", "ConnectError", "EventTwice",   "EventStale",
	};
	static_assert(std::size(names) == nr_ops);

	return names[static_cast<std::size_t>(op)];
}

World &world()
{
	if (!the_world)
		die("a call of os.h without a world");
	return *the_world;
}

kd_addr parse_addr(const char *text)
{
	kd_addr addr{};

	if (inet_pton(AF_INET, text, addr.bytes) == 1)
		addr.len = 4;
	else if (inet_pton(AF_INET6, text, addr.bytes) == 1)
		addr.len = 16;
	else
		die("not an address: %s", text);
	return addr;
}

bool same_addr(const kd_addr &a, const kd_addr &b)
{
	return a.len == b.len && !std::memcmp(a.bytes, b.bytes, a.len);
}

bool any_addr(const kd_addr &a)
{
	return std::all_of(a.bytes, a.bytes + a.len, [](uint8_t byte) { return byte == 0; });
}

World::World(const Options &options) : opts(options), sched(options.seed)
{
	if (the_world)
		die("two worlds at once");
	the_world = this;
	take_failures();
	add_node(opts.core ? *opts.core : linked_core(), "local");
}

World::~World()
{
	stop();
	leak_check();
	report_all();
	the_world = nullptr;
}

Node &World::add_node(const CoreApi &core, std::string name)
{
	Node *fresh = nodes.add();

	fresh->name = std::move(name);
	fresh->core = &core;
	fresh->net = nets.add();
	fresh->net->inode = static_cast<uint32_t>(4026531840U + fresh->id);
	fresh->net->init = true;
	fresh->net->refs = 1;
	int err = 0;
	finish({spawn(
		"init", [&] { err = core.core_init(); }, fresh)});
	if (err)
		die("kd_core_init(): error %d", err);
	fresh->started = true;
	return *fresh;
}

Net &World::add_net()
{
	Net *net = nets.add();

	net->inode = static_cast<uint32_t>(4026532000U + net->id);
	net->refs = 1;
	return *net;
}

Device &World::add_device(const char *addr, const DeviceOptions &options, Node *on)
{
	Device *dev = devices.add();
	struct kd_device_attr &attr = dev->attr;

	dev->node = options.raw ? nullptr : on ? on : &node();
	dev->addrs.push_back(parse_addr(addr));
	std::snprintf(attr.name, sizeof(attr.name), "sim%u", static_cast<unsigned int>(dev->id));
	attr.index = static_cast<uint32_t>(dev->id);
	attr.node_guid = 0x0200000000000000ULL + dev->id;
	attr.transport = options.transport;
	attr.ports = 1;
	attr.max_qp_wr = options.max_qp_wr;
	attr.max_cqe = options.max_cqe;
	attr.max_send_sge = options.max_sge;
	attr.max_recv_sge = options.max_sge;
	attr.max_read_sge = options.max_read_sge;
	attr.max_mr_pages = options.max_mr_pages;
	attr.max_length = options.max_length;
	attr.max_rd_atom = options.max_rd_atom;
	attr.max_init_rd_atom = options.max_rd_atom;
	attr.atomics = options.atomics && options.transport != 2 /* KDIRECT_TRANSPORT_IWARP */;
	attr.moderation = options.moderation;
	if (dev->node) {
		call([&] { dev->core = dev->node->core->device_add(&dev->attr); }, "device add",
		     dev->node);
		if (!dev->core)
			dev->removing = true;
	}
	return *dev;
}

void World::remove_device(Device &dev)
{
	call(
		[&] {
			bool events_first = sched.rng.chance(50);
			auto tell_ids = [&] {
				for (const auto &cm : cms)
					if (cm->dev == &dev && cm->announced)
						cm_push(*this, cm.get(),
							{.type = KD_CM_DEVICE_REMOVAL});
			};

			if (events_first)
				tell_ids();
			dev.removing = true;
			if (dev.core)
				dev.node->core->device_remove(dev.core);
			dev.core = nullptr;
			for (const auto &qp : qps)
				if (qp->dev == &dev)
					fail("a QP is left after kd_device_remove()");
			for (const auto &cq : cqs)
				if (cq->dev == &dev)
					fail("a CQ is left after kd_device_remove()");
			for (const auto &pd : pds)
				if (pd->dev == &dev)
					fail("a PD is left after kd_device_remove()");
			if (!events_first)
				tell_ids();
			auto used = [&] {
				return std::any_of(cms.begin(), cms.end(), [&](const auto &cm) {
					return cm->dev == &dev && !cm->raw;
				});
			};
			for (uint64_t end = now() + 60 * sec; used() && now() < end;)
				sched.sleep(1 * ms);
			for (const auto &cm : cms)
				if (cm->dev == &dev && !cm->raw)
					fail("%s is left on a removed device", cm->label().c_str());
		},
		"device removal", dev.node);
	for (const auto &memory : fixed)
		if (memory->dev == &dev)
			fail("a device goes while a buffer is mapped for it");
	devices.remove(&dev);
}

void World::set_link(Device &dev, bool up)
{
	dev.link_up = up;
}

void World::set_stuck(Device &dev, bool stuck)
{
	dev.stuck = stuck;
	if (stuck)
		return;
	for (const auto &qp : qps)
		if (qp->dev == &dev)
			qp_release_flush(*this, qp.get());
}

bool World::connected(const Device *a, const Device *b) const
{
	if (!a || !b || a->removing || b->removing)
		return false;
	return a == b || (a->link_up && b->link_up);
}

void World::stop()
{
	if (stopped)
		return;
	stopped = true;
	for (const auto &on : nodes) {
		if (!on->started)
			continue;
		Task task = spawn(
			"stop", [core = on->core] { core->core_stop(); }, on.get());
		if (!finish({task}))
			die("kd_core_stop() does not return");
		for (const auto &devnode : devnodes)
			if (devnode->node == on.get())
				fail("device node %s is left after kd_core_stop()",
				     devnode->name.c_str());
	}
	while (devices.size())
		remove_device(**devices.begin());
	for (const auto &on : nodes) {
		if (!on->started)
			continue;
		Task task = spawn(
			"exit", [core = on->core] { core->core_exit(); }, on.get());
		if (!finish({task}))
			die("kd_core_exit() does not return");
		on->started = false;
		if (!works.empty())
			fail("%zu works are pending or running after kd_core_exit()", works.size());
	}
}

void World::leak_check()
{
	run_for(1 * sec);
	for (const auto &fiber : sched.all())
		fail("%s is still there, in %s", fiber->name.c_str(), fiber->blocked_in);
	for (const auto &[mem, what] : allocations) {
		fail("leak: %zu bytes, allocation %llu", what.first,
		     static_cast<unsigned long long>(what.second));
		free_memory(const_cast<void *>(mem), what.first);
	}
	for (const auto &[kind, count] :
	     {std::pair{cms.name(),
			static_cast<std::size_t>(std::count_if(
				cms.begin(), cms.end(), [](const auto &cm) { return !cm->raw; }))},
	      std::pair{pds.name(), pds.size()}, std::pair{cqs.name(), cqs.size()},
	      std::pair{qps.name(), qps.size()}, std::pair{mrs.name(), mrs.size()},
	      std::pair{regions.name(), regions.size()}, std::pair{fixed.name(), fixed.size()},
	      std::pair{shared.name(), shared.size()}, std::pair{threads.name(), threads.size()},
	      std::pair{pages.name(), pages.size()}, std::pair{devnodes.name(), devnodes.size()},
	      std::pair{"DMA mapping", dmas.size()}, std::pair{"RDMA READ", reads.size()},
	      std::pair{"posted cqe", posted.size()}})
		if (count)
			fail("leak: %zu of kind %s", count, kind);
	for (const auto &net : nets)
		if (net->refs != 1)
			fail("leak: namespace %u with %u references", net->inode, net->refs);
	for (const auto &on : nodes)
		if (on->memlock)
			fail("leak: %llu bytes of locked memory",
			     static_cast<unsigned long long>(on->memlock));
}

void World::report_all()
{
	for (const std::string &text : take_failures())
		report("seed " + std::to_string(opts.seed) + ": " + text);
}

std::vector<std::string> World::failures()
{
	return take_failures();
}

void World::fail_nth(Op op, uint64_t nth, uint64_t times)
{
	auto index = static_cast<std::size_t>(op);

	fail_from[index] = counts[index] + nth;
	fail_to[index] = fail_from[index] + times;
	fired = false;
}

void World::fail_nth_any(uint64_t nth)
{
	any_fail = nth ? any_count + nth : 0;
	fired = false;
}

bool World::inject(Op op)
{
	auto index = static_cast<std::size_t>(op);
	uint64_t count = ++counts[index];
	bool hit = count >= fail_from[index] && count < fail_to[index];

	if (op < Op::PartialPost && ++any_count == any_fail)
		hit = true;
	fired |= hit;
	if (hit && on_fault)
		on_fault(op);
	return hit;
}

uint64_t World::delay()
{
	uint64_t delay = sched.rng.range(opts.min_delay, opts.max_delay);

	/* once in a while something is late */
	return sched.rng.chance(2) ? delay * 50 : delay;
}

void World::enter(const char *function, bool may_sleep)
{
	Fiber *self = sched.current();

	if (!self)
		die("%s outside of any fiber", function);
	for (int i = 3; i; i--)
		self->last_calls[i] = self->last_calls[i - 1];
	self->last_calls[0] = function;
	if (trace)
		trace("call", function);
	if (may_sleep) {
		if (self->context != Context::Process)
			fail("%s may sleep, called from a softirq", function);
		else if (self->holds_spin())
			fail("%s may sleep, called with a spin lock held", function);
		else if (self->atomic_depth)
			fail("%s may sleep, called where nothing may", function);
	}
	if (may_sleep && !self->nowait && self->context == Context::Process)
		sched.doze();
	sched.preempt();
}

Node *World::here()
{
	Fiber *self = sched.current();

	return self && self->node ? self->node : &node();
}

} // namespace sim
