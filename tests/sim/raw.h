/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A peer without the core behind it: it speaks to the connection manager and
 * posts whatever bytes the test gives it. Needs a device added with raw = true.
 * Nothing here blocks; the test runs the world until what it waits for is there.
 */
#pragma once
#include <memory>

#include "fabric.h"

namespace sim
{

class RawConnection
{
public:
	/* An initiator's end, unconnected; a listener makes the other kind. */
	RawConnection(World &w, Device &dev);
	RawConnection(World &w, Cm *incoming);
	~RawConnection();
	RawConnection(const RawConnection &) = delete;
	RawConnection &operator=(const RawConnection &) = delete;

	struct Terms {
		uint8_t responder_resources = 16;
		uint8_t initiator_depth = 16;
	};

	/* resolves, and sends the request as soon as there is a route */
	void connect(const char *addr, uint16_t port, Bytes private_data, Terms terms);
	void connect(const char *addr, uint16_t port, Bytes private_data)
	{
		connect(addr, port, std::move(private_data), Terms());
	}
	void accept(const Bytes &private_data, Terms terms);
	void accept(const Bytes &private_data) { accept(private_data, Terms()); }
	void reject(const Bytes &private_data);
	void disconnect();
	/* is gone without a word: a killed machine */
	void vanish();
	void no_confirmation() { cm()->no_rtu = true; }

	void post_recvs(unsigned int count, uint32_t size = 1 << 20);
	void send(const Bytes &data);
	void send_invalidating(const Bytes &data, uint32_t rkey);
	/* the result is in reads() when done */
	void read(uint64_t addr, uint32_t rkey, uint32_t len);
	/* offers memory to the peer's READs */
	struct Region {
		uint64_t addr;
		uint32_t rkey;
	};
	Region expose(const Bytes &data);

	bool established() const { return is_established; }
	bool ended() const { return is_ended; } /* rejected, disconnected, unreachable */
	bool broken() const { return qp && qp->state == Qp::State::Error; }
	const std::vector<CmEventRecord> &events() const { return history; }
	const CmEventRecord *event(kd_cm_event_type type) const;

	struct ReadResult {
		uint32_t status;
		Bytes data;
	};
	std::vector<Bytes> received;
	std::vector<uint32_t> send_status;
	std::vector<ReadResult> read_results;
	/* called for each message as it comes */
	std::function<void(const Bytes &)> on_message;
	/* post a receive again for each that completes */
	bool repost = true;

private:
	Cm *cm() const;
	void make_queue();
	void handle(CmEventRecord &event);
	void completed(CqEntry &entry);

	World &world;
	uint64_t cm_id;
	Pd *pd = nullptr;
	Cq *cq = nullptr;
	Qp *qp = nullptr;
	Bytes request;
	Terms request_terms;
	uint32_t recv_size = 0;
	bool is_established = false, is_ended = false;
	std::vector<CmEventRecord> history;
	std::map<uint64_t, Pages *> pending_reads;
	std::vector<Pages *> memory;
	std::vector<Mr *> regions;
};

class RawListener
{
public:
	RawListener(World &w, Device &dev, uint16_t port);
	~RawListener();
	RawListener(const RawListener &) = delete;
	RawListener &operator=(const RawListener &) = delete;

	struct Incoming {
		Bytes private_data;
		std::unique_ptr<RawConnection> connection;
	};
	std::vector<Incoming> incoming;
	/* called for each; it may accept or reject at once */
	std::function<void(Incoming &)> on_request;

private:
	World &world;
	uint64_t cm_id;
};

} // namespace sim
