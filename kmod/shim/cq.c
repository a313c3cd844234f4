// SPDX-License-Identifier: GPL-2.0-only
/* Protection domains and completion queues. */

#include <linux/rcupdate.h>
#include <linux/slab.h>
#include <rdma/ib_verbs.h>

#include "shim.h"

int kd_pd_create(struct kd_cm *cm, struct kd_pd **out)
{
	struct ib_pd *pd = ib_alloc_pd(cm->id->device, 0);

	if (IS_ERR(pd))
		return kd_from_errno(PTR_ERR(pd));
	*out = (struct kd_pd *)pd;
	return 0;
}

void kd_pd_destroy(struct kd_pd *pd)
{
	ib_dealloc_pd(to_pd(pd));
}

/* The completion event may come in hard interrupt context: go on in softirq. */
static void kd_cq_softirq(struct tasklet_struct *tasklet)
{
	struct kd_cq *cq = container_of(tasklet, struct kd_cq, tasklet);

	kd_queue_cq_event(cq->queue);
}

void kd_cq_kick(struct kd_cq *cq)
{
	tasklet_schedule(&cq->tasklet);
}

static void kd_cq_completion(struct ib_cq *ib_cq, void *context)
{
	kd_cq_kick(context);
}

static void kd_cq_fatal_work(struct work_struct *work)
{
	struct kd_cq *cq = container_of(work, struct kd_cq, fatal);

	kd_queue_fatal(cq->queue, READ_ONCE(cq->what));
}

/* Devices report asynchronous events in hard interrupt context. */
void kd_cq_fatal(struct kd_cq *cq, const char *what)
{
	WRITE_ONCE(cq->what, what);
	queue_work(kd_workqueue, &cq->fatal);
}

static void kd_cq_async_event(struct ib_event *event, void *context)
{
	kd_cq_fatal(context, ib_event_msg(event->event));
}

/*
 * A CQ of ib_alloc_cq(IB_POLL_DIRECT) cannot be armed, and then nobody could sleep
 * on a poll queue. So poll CQs are plain ones that are armed when somebody asks.
 */
static struct ib_cq *kd_cq_create_poll(struct ib_device *dev, struct kd_cq *cq, u32 entries,
				       u32 vector)
{
	struct ib_cq_init_attr attr = { .cqe = entries, .comp_vector = vector };

	return ib_create_cq(dev, kd_cq_completion, kd_cq_async_event, cq, &attr);
}

int kd_cq_create(struct kd_cm *cm, struct kd_queue *queue, uint32_t entries, bool poll,
		 uint32_t spread, struct kd_cq **out)
{
	struct ib_device *dev = cm->id->device;
	u32 vector = spread % max(dev->num_comp_vectors, 1);
	struct kd_cq *cq;
	int ret;

	if (entries > dev->attrs.max_cqe)
		return KD_EINVAL;
	cq = kzalloc(sizeof(*cq), GFP_KERNEL);
	if (!cq)
		return KD_ENOMEM;
	cq->queue = queue;
	cq->poll = poll;
	tasklet_setup(&cq->tasklet, kd_cq_softirq);
	INIT_WORK(&cq->fatal, kd_cq_fatal_work);
	init_completion(&cq->send_marker.done);
	init_completion(&cq->recv_marker.done);

	if (poll)
		cq->cq = kd_cq_create_poll(dev, cq, entries, vector);
	else
		cq->cq = ib_alloc_cq(dev, cq, entries, vector, IB_POLL_SOFTIRQ);
	if (IS_ERR(cq->cq)) {
		ret = PTR_ERR(cq->cq);
		kfree(cq);
		return kd_from_errno(ret);
	}
	*out = cq;
	return 0;
}

/*
 * ib_free_cq() waits until the handler of the CQ has told irq_poll that it is done. After
 * that it still arms the CQ, as softirq and so as an RCU reader.
 */
static void kd_cq_quiesce(struct ib_cq *cq)
{
	irq_poll_disable(&cq->iop);
	synchronize_rcu_expedited();
	irq_poll_enable(&cq->iop);
}

/* The core ignores kd_queue_cq_event() by now: it touches no CQ. */
void kd_cq_destroy(struct kd_cq *cq)
{
	if (cq->poll) {
		ib_destroy_cq(cq->cq);
		tasklet_kill(&cq->tasklet);
	} else {
		kd_cq_quiesce(cq->cq);
		ib_free_cq(cq->cq);
	}
	cancel_work_sync(&cq->fatal);
	kfree(cq);
}

/* Handlers run in softirq context or with bottom halves disabled: RCU readers both. */
void kd_handlers_synchronize(void)
{
	synchronize_rcu();
}

uint32_t kd_cq_poll(struct kd_cq *cq, uint32_t budget)
{
	return ib_process_cq_direct(cq->cq, budget);
}

int kd_cq_moderate(struct kd_cq *cq, uint32_t count, uint32_t period_us)
{
	return kd_from_errno(rdma_set_cq_moderation(cq->cq, count, period_us));
}

bool kd_cq_arm(struct kd_cq *cq)
{
	return ib_req_notify_cq(cq->cq, IB_CQ_NEXT_COMP | IB_CQ_REPORT_MISSED_EVENTS) > 0;
}
