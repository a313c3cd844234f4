// SPDX-License-Identifier: GPL-2.0-only
#include "raw.h"

namespace sim
{

RawConnection::RawConnection(World &w, Device &dev) : world(w)
{
	Cm *fresh = w.cms.add();

	fresh->dev = &dev;
	cm_id = fresh->id;
	fresh->raw = [this](CmEventRecord &event) { handle(event); };
}

RawConnection::RawConnection(World &w, Cm *incoming) : world(w), cm_id(incoming->id)
{
	incoming->announced = true;
	incoming->raw = [this](CmEventRecord &event) { handle(event); };
	make_queue();
}

RawConnection::~RawConnection()
{
	Cm *own = cm();

	if (qp) {
		qp_reset(world, qp);
		world.qps.remove(qp);
	}
	if (own) {
		own->qp = nullptr;
		cm_destroy(world, own);
	}
	for (Mr *mr : regions)
		world.mrs.remove(mr);
	for (Pages *pages : memory)
		world.pages.remove(pages);
	if (cq)
		world.cqs.remove(cq);
	if (pd)
		world.pds.remove(pd);
}

Cm *RawConnection::cm() const
{
	return world.cms.find(cm_id);
}

void RawConnection::make_queue()
{
	pd = world.pds.add();
	pd->dev = cm()->dev;
	cq = world.cqs.add();
	cq->dev = pd->dev;
	cq->raw = [this](CqEntry &entry) { completed(entry); };
	qp = world.qps.add();
	qp->dev = pd->dev;
	qp->pd = pd;
	qp->cq = cq;
	qp->cm = cm();
	cm()->qp = qp;
}

void RawConnection::connect(const char *addr, uint16_t port, Bytes private_data, Terms terms)
{
	kd_endpoint peer{parse_addr(addr), port};

	request = std::move(private_data);
	request_terms = terms;
	cm_resolve_addr(world, cm(), nullptr, &peer, 2 * sec);
}

void RawConnection::handle(CmEventRecord &event)
{
	history.push_back(event);
	switch (event.type) {
	case KD_CM_ADDR_RESOLVED: cm_resolve_route(world, cm()); break;
	case KD_CM_ROUTE_RESOLVED:
		if (!qp)
			make_queue();
		cm_connect(world, cm(),
			   {request.data(), static_cast<uint32_t>(request.size()),
			    request_terms.responder_resources, request_terms.initiator_depth, 6,
			    7});
		break;
	case KD_CM_ESTABLISHED: is_established = true; break;
	case KD_CM_OTHER: break;
	default: is_ended = true; break;
	}
}

void RawConnection::accept(const Bytes &private_data, Terms terms)
{
	cm_accept(world, cm(),
		  {private_data.data(), static_cast<uint32_t>(private_data.size()),
		   terms.responder_resources, terms.initiator_depth, 6, 7});
}

void RawConnection::reject(const Bytes &private_data)
{
	cm_reject(world, cm(), private_data.data(), static_cast<uint32_t>(private_data.size()));
}

void RawConnection::disconnect()
{
	cm_disconnect(world, cm());
}

void RawConnection::vanish()
{
	if (qp)
		qp_reset(world, qp);
	if (Cm *own = cm()) {
		own->state = Cm::State::Closed;
		own->remote = 0;
	}
}

void RawConnection::post_recvs(unsigned int count, uint32_t size)
{
	if (!qp)
		make_queue();
	recv_size = size;
	while (count--)
		qp_post_recv(world, qp, {.len = size});
}

void RawConnection::send(const Bytes &data)
{
	SendWr wr;

	wr.payload = data;
	qp_post_send(world, qp, std::move(wr));
}

void RawConnection::send_invalidating(const Bytes &data, uint32_t rkey)
{
	SendWr wr;

	wr.payload = data;
	wr.invalidates = true;
	wr.rkey = rkey;
	qp_post_send(world, qp, std::move(wr));
}

void RawConnection::read(uint64_t addr, uint32_t rkey, uint32_t len)
{
	Pages *pages = world.pages.add();
	SendWr wr;

	pages->own.resize(len);
	pages->len = len;
	memory.push_back(pages);
	wr.kind = WrKind::Read;
	wr.remote_addr = addr;
	wr.rkey = rkey;
	wr.len = len;
	wr.pages = pages;
	pending_reads[qp->next_wr] = pages;
	qp_post_send(world, qp, std::move(wr));
}

RawConnection::Region RawConnection::expose(const Bytes &data)
{
	Pages *pages = world.pages.add();
	Mr *mr = world.mrs.add();

	pages->own.assign(data.begin(), data.end());
	pages->len = static_cast<uint32_t>(data.size());
	memory.push_back(pages);
	mr->pd = pd;
	mr->rkey = static_cast<uint32_t>(mr->id << 8 | 1);
	mr->addr = mr->id << 32;
	mr->len = pages->len;
	mr->pages = pages;
	mr->writable = true;
	mr->state = Mr::State::Valid;
	regions.push_back(mr);
	return {mr->addr, mr->rkey};
}

const CmEventRecord *RawConnection::event(kd_cm_event_type type) const
{
	for (const CmEventRecord &event : history)
		if (event.type == type)
			return &event;
	return nullptr;
}

void RawConnection::completed(CqEntry &entry)
{
	qp_reaped(world, qp, entry);
	if (!entry.send) {
		if (entry.status != WC_SUCCESS)
			return;
		received.push_back(entry.data);
		if (repost && qp->state == Qp::State::Rts)
			qp_post_recv(world, qp, {.len = recv_size});
		if (on_message)
			on_message(received.back());
		return;
	}
	auto read = pending_reads.find(entry.wr);
	if (read == pending_reads.end()) {
		send_status.push_back(entry.status);
		return;
	}
	read_results.push_back(
		{entry.status, Bytes(read->second->own.begin(), read->second->own.end())});
	pending_reads.erase(read);
}

RawListener::RawListener(World &w, Device &dev, uint16_t port) : world(w)
{
	Cm *cm = w.cms.add();

	cm->dev = &dev;
	cm->local = {dev.addrs[0], port};
	cm->state = Cm::State::Listening;
	cm_id = cm->id;
	cm->raw = [this](CmEventRecord &event) {
		if (event.type != KD_CM_CONNECT_REQUEST)
			return;
		incoming.push_back(
			{event.data, std::make_unique<RawConnection>(world, event.new_cm)});
		if (on_request)
			on_request(incoming.back());
	};
}

RawListener::~RawListener()
{
	incoming.clear();
	if (Cm *cm = world.cms.find(cm_id))
		cm_destroy(world, cm);
}

} // namespace sim
