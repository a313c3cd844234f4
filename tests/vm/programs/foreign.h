// SPDX-License-Identifier: GPL-2.0-only
// An rdma_cm program's end of a connection: what a peer of kdirect can do that
// is not kdirect. Nothing here checks what kdirect promises.
#pragma once

#include "common.h"

#include <memory>
#include <optional>
#include <poll.h>
#include <rdma/rdma_cma.h>
#include <string>
#include <sys/socket.h>

using Bytes = std::vector<uint8_t>;

// The address of a program's argument, IPv4 or IPv6.
struct Address {
	sockaddr_storage storage{};
	Address(const char *text, unsigned port);
	sockaddr *get() { return reinterpret_cast<sockaddr *>(&storage); }
};

struct Event {
	rdma_cm_event_type type;
	int status = 0;
	Bytes data;               // private data
	rdma_cm_id *id = nullptr; // of a connection request
};

// A connection id with its own event channel.
class Id
{
public:
	Id();
	explicit Id(rdma_cm_id *requested); // from a connection request; moved to our channel
	~Id();
	Id(const Id &) = delete;
	Id &operator=(const Id &) = delete;

	// Nothing within the time: no value.
	std::optional<Event> event(int timeout_ms);
	// The next event must be this one.
	Event expect(rdma_cm_event_type type, int timeout_ms = 20000 * int(slow()));
	// Skips others.
	bool wait_event(rdma_cm_event_type type, int timeout_ms);
	void drop() { dropped_ = true; } // leaves the id to the end of the process

	rdma_cm_id *id = nullptr;

private:
	rdma_event_channel *channel_;
	bool dropped_ = false;
};

// A connection: QP, CQ, receives, one send at a time.
class Link
{
public:
	static constexpr uint32_t send_size = 1 << 18;
	Link(std::unique_ptr<Id> of, uint32_t receives, uint32_t receive_size);
	~Link();

	struct Sent {
		bool ok;
		int status; // ibv_wc_status
	};
	// SEND, or with `key` SEND with invalidate; waits for the completion.
	Sent send(const void *bytes, size_t len, std::optional<uint32_t> key = {});
	Sent send(const Bytes &bytes) { return send(bytes.data(), bytes.size()); }
	// The next message, whose receive is posted again; empty: none came.
	Bytes receive(int timeout_ms);
	// Memory that the peer may read.
	uint64_t memory_address() const { return reinterpret_cast<uint64_t>(memory_.data()); }
	uint32_t memory_key() const { return memory_mr_->rkey; }
	Bytes &memory() { return memory_; }

	std::unique_ptr<Id> cm;

private:
	void post_receive(uint32_t slot);
	std::optional<ibv_wc> completion(ibv_cq *cq, int timeout_ms);

	uint32_t receive_size_;
	ibv_pd *pd_ = nullptr;
	ibv_cq *send_cq_ = nullptr, *receive_cq_ = nullptr;
	Bytes send_buffer_, receives_, memory_;
	ibv_mr *send_mr_ = nullptr, *receive_mr_ = nullptr, *memory_mr_ = nullptr;
};

// An id whose route is resolved.
std::unique_ptr<Id> resolved(Address &to);
rdma_conn_param parameters(const void *data, size_t len);
