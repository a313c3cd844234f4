// SPDX-License-Identifier: GPL-2.0-only
#include "foreign.h"

#include <arpa/inet.h>
#include <ctime>
#include <unistd.h>

namespace
{

int64_t now_ms()
{
	timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return int64_t(t.tv_sec) * 1000 + t.tv_nsec / 1000000;
}

template <class T>
T *need(T *object, const char *what)
{
	if (!object)
		die("%s: %s", what, errno_name(errno));
	return object;
}

void need(int result, const char *what)
{
	if (result)
		die("%s: %s", what, errno_name(errno));
}

} // namespace

Address::Address(const char *text, unsigned port)
{
	auto *v4 = reinterpret_cast<sockaddr_in *>(&storage);
	auto *v6 = reinterpret_cast<sockaddr_in6 *>(&storage);
	if (inet_pton(AF_INET, text, &v4->sin_addr) == 1) {
		v4->sin_family = AF_INET;
		v4->sin_port = htons(uint16_t(port));
	} else if (inet_pton(AF_INET6, text, &v6->sin6_addr) == 1) {
		v6->sin6_family = AF_INET6;
		v6->sin6_port = htons(uint16_t(port));
	} else {
		die("no address: %s", text);
	}
}

Id::Id() : channel_(need(rdma_create_event_channel(), "rdma_create_event_channel"))
{
	need(rdma_create_id(channel_, &id, this, RDMA_PS_TCP), "rdma_create_id");
}

Id::Id(rdma_cm_id *requested)
	: id(requested), channel_(need(rdma_create_event_channel(), "rdma_create_event_channel"))
{
	need(rdma_migrate_id(id, channel_), "rdma_migrate_id");
}

Id::~Id()
{
	if (dropped_)
		return;
	rdma_destroy_id(id);
	rdma_destroy_event_channel(channel_);
}

std::optional<Event> Id::event(int timeout_ms)
{
	pollfd p{channel_->fd, POLLIN, 0};
	rdma_cm_event *got;
	if (poll(&p, 1, timeout_ms) != 1 || rdma_get_cm_event(channel_, &got))
		return {};
	Event event{got->event, got->status, {}, nullptr};
	if (got->event == RDMA_CM_EVENT_CONNECT_REQUEST)
		event.id = got->id;
	auto *data = static_cast<const uint8_t *>(got->param.conn.private_data);
	switch (got->event) {
	case RDMA_CM_EVENT_CONNECT_REQUEST:
	case RDMA_CM_EVENT_ESTABLISHED:
	case RDMA_CM_EVENT_REJECTED:
		if (data)
			event.data.assign(data, data + got->param.conn.private_data_len);
		break;
	default: break;
	}
	rdma_ack_cm_event(got);
	return event;
}

Event Id::expect(rdma_cm_event_type type, int timeout_ms)
{
	std::optional<Event> got = event(timeout_ms);
	if (!got)
		die("no %s within %d ms", rdma_event_str(type), timeout_ms);
	if (got->type != type)
		die("%s (%d), not %s", rdma_event_str(got->type), got->status,
		    rdma_event_str(type));
	return *got;
}

bool Id::wait_event(rdma_cm_event_type type, int timeout_ms)
{
	int64_t end = now_ms() + timeout_ms;
	while (std::optional<Event> got = event(int(std::max<int64_t>(0, end - now_ms()))))
		if (got->type == type)
			return true;
	return false;
}

std::unique_ptr<Id> resolved(Address &to)
{
	auto id = std::make_unique<Id>();
	need(rdma_resolve_addr(id->id, nullptr, to.get(), 5000), "rdma_resolve_addr");
	id->expect(RDMA_CM_EVENT_ADDR_RESOLVED);
	need(rdma_resolve_route(id->id, 5000), "rdma_resolve_route");
	id->expect(RDMA_CM_EVENT_ROUTE_RESOLVED);
	return id;
}

rdma_conn_param parameters(const void *data, size_t len)
{
	rdma_conn_param param{};
	param.private_data = data;
	param.private_data_len = uint8_t(len);
	param.responder_resources = 8;
	param.initiator_depth = 8;
	param.retry_count = 6;
	param.rnr_retry_count = 3;
	return param;
}

Link::Link(std::unique_ptr<Id> of, uint32_t receives, uint32_t receive_size)
	: cm(std::move(of)), receive_size_(receive_size), send_buffer_(send_size),
	  receives_(size_t(receives) * receive_size), memory_(1 << 20)
{
	ibv_context *verbs = cm->id->verbs;
	pd_ = need(ibv_alloc_pd(verbs), "ibv_alloc_pd");
	send_cq_ = need(ibv_create_cq(verbs, 16, nullptr, nullptr, 0), "ibv_create_cq");
	receive_cq_ =
		need(ibv_create_cq(verbs, int(receives) + 1, nullptr, nullptr, 0), "ibv_create_cq");
	ibv_qp_init_attr attr{};
	attr.send_cq = send_cq_;
	attr.recv_cq = receive_cq_;
	attr.cap.max_send_wr = 8;
	attr.cap.max_recv_wr = receives;
	attr.cap.max_send_sge = attr.cap.max_recv_sge = 1;
	attr.qp_type = IBV_QPT_RC;
	need(rdma_create_qp(cm->id, pd_, &attr), "rdma_create_qp");
	send_mr_ = need(ibv_reg_mr(pd_, send_buffer_.data(), send_buffer_.size(), 0), "ibv_reg_mr");
	receive_mr_ =
		need(ibv_reg_mr(pd_, receives_.data(), receives_.size(), IBV_ACCESS_LOCAL_WRITE),
		     "ibv_reg_mr");
	memory_mr_ = need(ibv_reg_mr(pd_, memory_.data(), memory_.size(), IBV_ACCESS_REMOTE_READ),
			  "ibv_reg_mr");
	for (uint32_t i = 0; i < receives; i++)
		post_receive(i);
}

Link::~Link()
{
	rdma_destroy_qp(cm->id);
	ibv_destroy_cq(send_cq_);
	ibv_destroy_cq(receive_cq_);
	for (ibv_mr *mr : {send_mr_, receive_mr_, memory_mr_})
		ibv_dereg_mr(mr);
	ibv_dealloc_pd(pd_);
}

void Link::post_receive(uint32_t slot)
{
	ibv_sge sge{reinterpret_cast<uint64_t>(receives_.data() + size_t(slot) * receive_size_),
		    receive_size_, receive_mr_->lkey};
	ibv_recv_wr wr{}, *bad;
	wr.wr_id = slot;
	wr.sg_list = &sge;
	wr.num_sge = 1;
	ibv_post_recv(cm->id->qp, &wr, &bad); // a QP in error takes none, which is seen elsewhere
}

std::optional<ibv_wc> Link::completion(ibv_cq *cq, int timeout_ms)
{
	int64_t end = now_ms() + timeout_ms;
	ibv_wc wc;
	do {
		if (ibv_poll_cq(cq, 1, &wc) == 1)
			return wc;
		usleep(200);
	} while (now_ms() < end);
	return {};
}

Link::Sent Link::send(const void *bytes, size_t len, std::optional<uint32_t> key)
{
	if (len)
		memcpy(send_buffer_.data(), bytes, len);
	ibv_sge sge{reinterpret_cast<uint64_t>(send_buffer_.data()), uint32_t(len), send_mr_->lkey};
	ibv_send_wr wr{}, *bad;
	wr.sg_list = &sge;
	wr.num_sge = len ? 1 : 0;
	wr.opcode = key ? IBV_WR_SEND_WITH_INV : IBV_WR_SEND;
	wr.invalidate_rkey = key.value_or(0);
	wr.send_flags = IBV_SEND_SIGNALED;
	if (ibv_post_send(cm->id->qp, &wr, &bad))
		return {false, -1};
	std::optional<ibv_wc> wc = completion(send_cq_, 10000 * int(slow()));
	return {wc && wc->status == IBV_WC_SUCCESS, wc ? int(wc->status) : -1};
}

Bytes Link::receive(int timeout_ms)
{
	std::optional<ibv_wc> wc = completion(receive_cq_, timeout_ms);
	if (!wc || wc->status != IBV_WC_SUCCESS)
		return {};
	uint8_t *start = receives_.data() + wc->wr_id * receive_size_;
	Bytes bytes(start, start + wc->byte_len);
	post_receive(uint32_t(wc->wr_id));
	return bytes;
}
