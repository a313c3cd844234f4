// SPDX-License-Identifier: GPL-2.0-only
// RDMA READs with user-space verbs, as lean as they can be: the server sleeps (perftest's
// polls, on the same CPU).
//
//   verbs_read serve ADDRESS SIZE
//   verbs_read ADDRESS SIZE event|poll once|fresh COUNT
//
// once: the memory is registered once; fresh: for each READ, which goes to another buffer
// than the 1,023 before it.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <rdma/rdma_cma.h>
#include <rdma/rdma_verbs.h>
#include <stdexcept>
#include <string>
#include <sys/mman.h>

namespace
{

constexpr const char *port = "18600";
constexpr long fresh_buffers = 1024;

struct Offer {
	uint64_t address;
	uint32_t rkey;
};

void check(int ret, const char *what)
{
	if (ret)
		throw std::runtime_error(std::string(what) + ": " +
					 strerror(ret < 0 ? errno : ret));
}

template <class T>
T *check(T *pointer, const char *what)
{
	if (!pointer)
		throw std::runtime_error(std::string(what) + ": " + strerror(errno));
	return pointer;
}

char *memory(size_t size)
{
	void *mem = mmap(nullptr, size, PROT_READ | PROT_WRITE,
			 MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
	if (mem == MAP_FAILED)
		throw std::runtime_error(std::string("mmap: ") + strerror(errno));
	return static_cast<char *>(mem);
}

rdma_cm_id *endpoint(const char *address, int flags)
{
	rdma_addrinfo hints{}, *info;
	hints.ai_flags = flags;
	hints.ai_port_space = RDMA_PS_TCP;
	check(rdma_getaddrinfo(address, port, &hints, &info), "rdma_getaddrinfo");
	ibv_qp_init_attr attr{};
	attr.cap.max_send_wr = attr.cap.max_recv_wr = 4;
	attr.cap.max_send_sge = attr.cap.max_recv_sge = 1;
	attr.sq_sig_all = 1;
	rdma_cm_id *id;
	check(rdma_create_ep(&id, info, nullptr, &attr), "rdma_create_ep");
	rdma_freeaddrinfo(info);
	return id;
}

rdma_conn_param reads()
{
	rdma_conn_param param{};
	param.responder_resources = param.initiator_depth = 1;
	param.retry_count = 6;
	return param;
}

void await(rdma_cm_id *id, bool send, bool poll)
{
	ibv_wc wc{};
	int n = 0;
	if (poll)
		while ((n = ibv_poll_cq(send ? id->send_cq : id->recv_cq, 1, &wc)) == 0) {
		}
	else
		n = send ? rdma_get_send_comp(id, &wc) : rdma_get_recv_comp(id, &wc);
	if (n != 1)
		throw std::runtime_error("no completion");
	if (wc.status != IBV_WC_SUCCESS)
		throw std::runtime_error(ibv_wc_status_str(wc.status));
}

void serve(const char *address, size_t size)
{
	rdma_cm_id *listener = endpoint(address, RAI_PASSIVE), *id;
	check(rdma_listen(listener, 1), "rdma_listen");
	check(rdma_get_request(listener, &id), "rdma_get_request");
	char *mem = memory(size);
	memset(mem, 'k', size);
	ibv_mr *mr = check(ibv_reg_mr(id->pd, mem, size, IBV_ACCESS_REMOTE_READ), "ibv_reg_mr");
	check(rdma_post_recvv(id, nullptr, nullptr, 0), "rdma_post_recvv");
	Offer offer{reinterpret_cast<uint64_t>(mem), mr->rkey};
	rdma_conn_param param = reads();
	param.private_data = &offer;
	param.private_data_len = sizeof(offer);
	check(rdma_accept(id, &param), "rdma_accept");
	await(id, false, false); // an empty message: the client is done
	rdma_disconnect(id);
	ibv_dereg_mr(mr);
	rdma_destroy_ep(id);
	rdma_destroy_ep(listener);
}

// One READ into `buffer`, and a look at what came.
void read_once(rdma_cm_id *id, char *buffer, size_t size, ibv_mr *mr, const Offer &offer, bool poll)
{
	check(rdma_post_read(id, nullptr, buffer, size, mr, 0, offer.address, offer.rkey),
	      "rdma_post_read");
	await(id, true, poll);
	if (buffer[0] != 'k' || buffer[size - 1] != 'k')
		throw std::runtime_error("wrong data");
}

ibv_mr *registered(rdma_cm_id *id, char *buffer, size_t size)
{
	return check(ibv_reg_mr(id->pd, buffer, size, IBV_ACCESS_LOCAL_WRITE), "ibv_reg_mr");
}

void run(const char *address, size_t size, bool poll, bool fresh, long count)
{
	rdma_cm_id *id = endpoint(address, 0);
	rdma_conn_param param = reads();
	check(rdma_connect(id, &param), "rdma_connect");
	Offer offer;
	if (id->event->param.conn.private_data_len < sizeof(offer))
		throw std::runtime_error("no private data");
	memcpy(&offer, id->event->param.conn.private_data, sizeof(offer));

	char *mem = memory(size * fresh_buffers);
	ibv_mr *mr = fresh ? nullptr : registered(id, mem, size);
	for (long i = 0; i < count; i++) {
		if (!fresh) {
			read_once(id, mem, size, mr, offer, poll);
			continue;
		}
		char *buffer = mem + size_t(i % fresh_buffers) * size;
		mr = registered(id, buffer, size);
		read_once(id, buffer, size, mr, offer, poll);
		check(ibv_dereg_mr(mr), "ibv_dereg_mr");
	}
	check(rdma_post_sendv(id, nullptr, nullptr, 0, 0), "rdma_post_sendv");
	await(id, true, poll);
	rdma_disconnect(id);
	rdma_destroy_ep(id);
}

} // namespace

int main(int argc, char **argv)
try {
	std::string first = argc > 1 ? argv[1] : "";
	if (first == "serve" && argc == 4) {
		serve(argv[2], strtoul(argv[3], nullptr, 10));
	} else if (argc == 6) {
		run(argv[1], strtoul(argv[2], nullptr, 10), std::string(argv[3]) == "poll",
		    std::string(argv[4]) == "fresh", strtol(argv[5], nullptr, 10));
	} else {
		throw std::runtime_error("usage: verbs_read serve ADDRESS SIZE, or "
					 "verbs_read ADDRESS SIZE event|poll once|fresh COUNT");
	}
} catch (const std::exception &e) {
	fprintf(stderr, "verbs_read: %s\n", e.what());
	return 1;
}
