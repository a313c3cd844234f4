// SPDX-License-Identifier: GPL-2.0-only
/* The connection manager: rdma_cm ids, their events, and addresses. */

#include <linux/in.h>
#include <linux/in6.h>
#include <linux/kthread.h>
#include <linux/mutex.h>
#include <linux/sched/signal.h>
#include <linux/sched/task.h>
#include <linux/slab.h>
#include <rdma/ib_cm.h>
#include <rdma/rdma_cm.h>

#include "shim.h"

#define KD_BACKLOG	128

/*
 * How long the device waits for an answer before it repeats: 4.096 us << 17, 537 ms.
 * Together with the retries an unreachable peer is noticed after about 4 s; a
 * lower value would break connections to a machine that is merely slow.
 */
#define KD_ACK_TIMEOUT	17

/* --- addresses ------------------------------------------------------------------- */

static struct sockaddr *kd_to_sockaddr(struct sockaddr_storage *out, const struct kd_addr *addr,
				       u16 port)
{
	memset(out, 0, sizeof(*out));
	if (addr->len == sizeof(struct in6_addr)) {
		struct sockaddr_in6 *sin6 = (struct sockaddr_in6 *)out;

		sin6->sin6_family = AF_INET6;
		sin6->sin6_port = htons(port);
		sin6->sin6_scope_id = addr->scope;
		memcpy(&sin6->sin6_addr, addr->bytes, sizeof(sin6->sin6_addr));
	} else {
		struct sockaddr_in *sin = (struct sockaddr_in *)out;

		sin->sin_family = AF_INET;
		sin->sin_port = htons(port);
		memcpy(&sin->sin_addr, addr->bytes, sizeof(sin->sin_addr));
	}
	return (struct sockaddr *)out;
}

static void kd_from_sockaddr(struct kd_endpoint *out, const struct sockaddr_storage *in)
{
	memset(out, 0, sizeof(*out));
	if (in->ss_family == AF_INET6) {
		const struct sockaddr_in6 *sin6 = (const struct sockaddr_in6 *)in;

		out->addr.len = sizeof(sin6->sin6_addr);
		out->addr.scope = sin6->sin6_scope_id;
		memcpy(out->addr.bytes, &sin6->sin6_addr, sizeof(sin6->sin6_addr));
		out->port = ntohs(sin6->sin6_port);
	} else if (in->ss_family == AF_INET) {
		const struct sockaddr_in *sin = (const struct sockaddr_in *)in;

		out->addr.len = sizeof(sin->sin_addr);
		memcpy(out->addr.bytes, &sin->sin_addr, sizeof(sin->sin_addr));
		out->port = ntohs(sin->sin_port);
	}
}

void kd_cm_local(const struct kd_cm *cm, struct kd_endpoint *out)
{
	kd_from_sockaddr(out, &cm->id->route.addr.src_addr);
}

void kd_cm_peer(const struct kd_cm *cm, struct kd_endpoint *out)
{
	kd_from_sockaddr(out, &cm->id->route.addr.dst_addr);
}

struct kd_device *kd_cm_device(const struct kd_cm *cm)
{
	return cm->id->device ? ib_get_client_data(cm->id->device, &kd_ib_client) : NULL;
}

/* --- events ------------------------------------------------------------------------ */

static enum kd_cm_event_type kd_cm_event_type(enum rdma_cm_event_type type)
{
	switch (type) {
	case RDMA_CM_EVENT_ADDR_RESOLVED:
		return KD_CM_ADDR_RESOLVED;
	case RDMA_CM_EVENT_ROUTE_RESOLVED:
		return KD_CM_ROUTE_RESOLVED;
	case RDMA_CM_EVENT_CONNECT_REQUEST:
		return KD_CM_CONNECT_REQUEST;
	case RDMA_CM_EVENT_ESTABLISHED:
		return KD_CM_ESTABLISHED;
	case RDMA_CM_EVENT_ADDR_ERROR:
		return KD_CM_ADDR_ERROR;
	case RDMA_CM_EVENT_ROUTE_ERROR:
		return KD_CM_ROUTE_ERROR;
	case RDMA_CM_EVENT_UNREACHABLE:
		return KD_CM_UNREACHABLE;
	case RDMA_CM_EVENT_CONNECT_ERROR:
		return KD_CM_CONNECT_ERROR;
	case RDMA_CM_EVENT_REJECTED:
		return KD_CM_REJECTED;
	case RDMA_CM_EVENT_DISCONNECTED:
		return KD_CM_DISCONNECTED;
	case RDMA_CM_EVENT_DEVICE_REMOVAL:
		return KD_CM_DEVICE_REMOVAL;
	default:
		/* also what later kernels add: never fatal */
		return KD_CM_OTHER;
	}
}

static void kd_cm_describe_reject(struct rdma_cm_id *id, struct rdma_cm_event *event,
				  struct kd_cm_event *out)
{
	u8 len;

	out->name = rdma_reject_msg(id, event->status);
	out->status = abs(event->status);
	if (rdma_protocol_iwarp(id->device, id->port_num)) {
		/*
		 * Only a consumer sends data with it. rdma_consumer_reject_data() wants
		 * "connection refused", siw says "connection reset".
		 */
		out->data = event->param.conn.private_data;
		out->data_len = out->data ? event->param.conn.private_data_len : 0;
		out->no_listener = event->status == -ECONNREFUSED && !out->data_len;
		return;
	}
	out->data = rdma_consumer_reject_data(id, event, &len);
	out->data_len = len;
	out->no_listener = event->status == IB_CM_REJ_INVALID_SERVICE_ID;
}

static void kd_cm_describe(struct rdma_cm_id *id, struct rdma_cm_event *event,
			   struct kd_cm_event *out)
{
	*out = (struct kd_cm_event){
		.type	= kd_cm_event_type(event->event),
		.name	= rdma_event_msg(event->event),
	};
	switch (out->type) {
	case KD_CM_REJECTED:
		kd_cm_describe_reject(id, event, out);
		break;
	case KD_CM_CONNECT_REQUEST:
	case KD_CM_ESTABLISHED:
		out->data = event->param.conn.private_data;
		out->data_len = out->data ? event->param.conn.private_data_len : 0;
		out->reads_in = event->param.conn.responder_resources;
		out->reads_out = event->param.conn.initiator_depth;
		break;
	default:
		out->status = kd_from_errno(event->status);
		break;
	}
}

/* Returning nonzero makes rdma_cm destroy @id. */
static int kd_cm_connect_request(struct kd_listener *listener, struct rdma_cm_id *id,
				 struct kd_cm_event *event)
{
	struct kd_cm *cm;

	cm = kzalloc(sizeof(*cm), GFP_KERNEL);
	if (!cm)
		return -ENOMEM;
	cm->id = id;
	/* was the listener's */
	id->context = cm;
	rdma_set_ack_timeout(id, KD_ACK_TIMEOUT);
	event->new_cm = cm;
	if (kd_listener_cm_event(listener, event)) {
		kfree(cm);
		return -ECONNABORTED;
	}
	return 0;
}

static int kd_cm_handler(struct rdma_cm_id *id, struct rdma_cm_event *rdma_event)
{
	struct kd_cm *cm = id->context;
	struct kd_cm_event event;

	kd_cm_describe(id, rdma_event, &event);
	if (event.type == KD_CM_CONNECT_REQUEST)
		return kd_cm_connect_request(cm->listener, id, &event);
	if (cm->queue)
		kd_queue_cm_event(cm->queue, &event);
	else if (cm->listener)
		kd_listener_cm_event(cm->listener, &event);
	return 0;
}

/* --- ids --------------------------------------------------------------------------- */

static int kd_cm_new(struct kd_net *net, struct kd_cm **out)
{
	struct kd_cm *cm;
	int ret;

	cm = kzalloc(sizeof(*cm), GFP_KERNEL);
	if (!cm)
		return KD_ENOMEM;
	cm->id = rdma_create_id(to_net(net), kd_cm_handler, cm, RDMA_PS_TCP, IB_QPT_RC);
	if (IS_ERR(cm->id)) {
		ret = PTR_ERR(cm->id);
		kfree(cm);
		return kd_from_errno(ret);
	}
	*out = cm;
	return 0;
}

int kd_cm_create(struct kd_net *net, struct kd_queue *queue, struct kd_cm **out)
{
	int err = kd_cm_new(net, out);

	if (!err)
		(*out)->queue = queue;
	return err;
}

int kd_cm_listen(struct kd_net *net, const struct kd_endpoint *local,
		 struct kd_listener *listener, struct kd_cm **out)
{
	struct sockaddr_storage addr;
	struct kd_cm *cm;
	int ret;

	ret = kd_cm_new(net, &cm);
	if (ret)
		return ret;
	cm->listener = listener;
	/* a port whose old connections linger can be listened on again, as with TCP */
	ret = rdma_set_reuseaddr(cm->id, 1);
	/* :: and 0.0.0.0 are two listeners */
	if (!ret && local->addr.len == sizeof(struct in6_addr))
		ret = rdma_set_afonly(cm->id, 1);
	if (!ret)
		ret = rdma_bind_addr(cm->id, kd_to_sockaddr(&addr, &local->addr, local->port));
	if (!ret)
		ret = rdma_listen(cm->id, KD_BACKLOG);
	if (ret) {
		kd_cm_destroy(cm);
		return kd_from_errno(ret);
	}
	*out = cm;
	return 0;
}

void kd_cm_set_queue(struct kd_cm *cm, struct kd_queue *queue)
{
	cm->queue = queue;
}

int kd_cm_resolve_addr(struct kd_cm *cm, const struct kd_addr *source,
		       const struct kd_endpoint *peer, uint32_t timeout_ms)
{
	struct sockaddr_storage src, dst;
	struct sockaddr *from = source->len ? kd_to_sockaddr(&src, source, 0) : NULL;
	struct sockaddr *to = kd_to_sockaddr(&dst, &peer->addr, peer->port);

	return kd_from_errno(rdma_resolve_addr(cm->id, from, to, timeout_ms));
}

int kd_cm_resolve_route(struct kd_cm *cm, uint32_t timeout_ms)
{
	int ret;

	/* resolving the route of RoCE turns this into the path's packet lifetime */
	ret = rdma_set_ack_timeout(cm->id, KD_ACK_TIMEOUT);
	if (!ret)
		ret = rdma_resolve_route(cm->id, timeout_ms);
	return kd_from_errno(ret);
}

static struct rdma_conn_param kd_cm_conn_param(const struct kd_cm_params *params)
{
	return (struct rdma_conn_param){
		.private_data		= params->data,
		.private_data_len	= params->data_len,
		.responder_resources	= params->responder_resources,
		.initiator_depth	= params->initiator_depth,
		.retry_count		= params->retry_count,
		.rnr_retry_count	= params->rnr_retry_count,
	};
}

/*
 * siw connects its TCP socket inside rdma_connect(), which takes minutes where nobody
 * answers, and holds a lock that destroying the id needs. Only a signal ends it: hence
 * a thread of its own, which can get one.
 */
static int kd_cm_connecter(void *arg)
{
	struct kd_cm *cm = arg;
	struct kd_cm_event event = {
		.type	= KD_CM_CONNECT_ERROR,
		.name	= "no TCP connection",
	};
	int ret = 0;

	/* takes the lock of send_sig(), so that either the flag or the signal is seen */
	allow_signal(SIGKILL);
	if (!READ_ONCE(cm->stop))
		ret = rdma_connect(cm->id, &cm->param);
	if (ret && !READ_ONCE(cm->stop)) {
		/* what is an event elsewhere; TCP has no private data to tell who refused */
		if (ret == -ECONNREFUSED) {
			event.type = KD_CM_REJECTED;
			event.no_listener = true;
		} else if (ret == -ETIMEDOUT || ret == -EHOSTUNREACH) {
			event.type = KD_CM_UNREACHABLE;
		}
		event.status = kd_from_errno(ret);
		kd_queue_cm_event(cm->queue, &event);
	}
	kthread_complete_and_exit(&cm->stopped, 0);
}

static int kd_cm_start_connecting(struct kd_cm *cm)
{
	struct task_struct *task;

	task = kthread_create(kd_cm_connecter, cm, "kdirect-connect");
	if (IS_ERR(task))
		return kd_from_errno(PTR_ERR(task));
	init_completion(&cm->stopped);
	cm->connecter = get_task_struct(task);
	wake_up_process(task);
	return 0;
}

static void kd_cm_stop_connecting(struct kd_cm *cm)
{
	if (!cm->connecter)
		return;
	WRITE_ONCE(cm->stop, true);
	send_sig(SIGKILL, cm->connecter, 1);
	wait_for_completion(&cm->stopped);
	put_task_struct(cm->connecter);
	cm->connecter = NULL;
}

int kd_cm_connect(struct kd_cm *cm, const struct kd_cm_params *params)
{
	cm->param = kd_cm_conn_param(params);
	if (!rdma_protocol_iwarp(cm->id->device, cm->id->port_num))
		return kd_from_errno(rdma_connect(cm->id, &cm->param));

	if (params->data_len > sizeof(cm->data))
		return KD_EINVAL;
	memcpy(cm->data, params->data, params->data_len);
	cm->param.private_data = cm->data;
	return kd_cm_start_connecting(cm);
}

int kd_cm_accept(struct kd_cm *cm, const struct kd_cm_params *params)
{
	struct rdma_conn_param param = kd_cm_conn_param(params);
	int ret;

	rdma_lock_handler(cm->id);
	ret = rdma_accept(cm->id, &param);
	rdma_unlock_handler(cm->id);
	return kd_from_errno(ret);
}

int kd_cm_reject(struct kd_cm *cm, const void *data, uint32_t len)
{
	return kd_from_errno(rdma_reject(cm->id, data, len, IB_CM_REJ_CONSUMER_DEFINED));
}

/*
 * Whether what the connection manager sends by datagrams can leave. Where a network
 * device goes, its RDMA device has no port any more before it is removed.
 */
static bool kd_cm_is_cut_off(const struct rdma_cm_id *id)
{
	struct ib_port_attr attr;

	return id->device && rdma_cap_ib_cm(id->device, id->port_num) &&
	       (ib_query_port(id->device, id->port_num, &attr) || attr.state != IB_PORT_ACTIVE);
}

void kd_cm_disconnect(struct kd_cm *cm)
{
	kd_cm_stop_connecting(cm);
	/* fails where there is no connection (any more), and that is as good */
	if (!kd_cm_is_cut_off(cm->id))
		rdma_disconnect(cm->id);
}

/*
 * One id after the other says goodbye where nobody can hear it: rxe of 6.1 may never
 * complete a datagram that is posted after others were flushed, and ib_cm waits for it
 * for ever (Documentation/testing.md, "Faults of rxe").
 */
static DEFINE_MUTEX(kd_cm_farewell);

void kd_cm_destroy(struct kd_cm *cm)
{
	bool alone;

	kd_cm_stop_connecting(cm);
	alone = kd_cm_is_cut_off(cm->id);
	if (alone)
		mutex_lock(&kd_cm_farewell);
	rdma_destroy_id(cm->id);
	if (alone)
		mutex_unlock(&kd_cm_farewell);
	kfree(cm);
}
