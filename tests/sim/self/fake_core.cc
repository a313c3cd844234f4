// SPDX-License-Identifier: GPL-2.0-only
#include "fake_core.h"

namespace sim
{

FakeCore &hooks()
{
	static FakeCore instance;

	return instance;
}

namespace
{

void completion(kd_cqe *cqe, const kd_wc *wc)
{
	if (hooks().completion)
		hooks().completion(cqe, wc);
}

} // namespace

const CoreApi &fake_core()
{
	static const CoreApi api = [] {
		CoreApi fake{};

		fake.core_init = [] { return 0; };
		fake.core_stop = [] {};
		fake.core_exit = [] {};
		fake.device_add = [](const struct kd_device_attr *attr) {
			return reinterpret_cast<kd_device *>(
				const_cast<struct kd_device_attr *>(attr));
		};
		fake.device_remove = [](kd_device *) {};
		fake.device_attr = [](const kd_device *dev) {
			return reinterpret_cast<const struct kd_device_attr *>(dev);
		};
		fake.listener_cm_event = [](kd_listener *listener, const kd_cm_event *event) {
			return hooks().listener_event ? hooks().listener_event(listener, event) : 1;
		};
		fake.queue_cm_event = [](kd_queue *queue, const kd_cm_event *event) {
			if (hooks().queue_event)
				hooks().queue_event(queue, event);
		};
		fake.queue_fatal = [](kd_queue *queue, const char *) {
			if (hooks().fatal)
				hooks().fatal(queue);
		};
		fake.queue_cq_event = [](kd_queue *queue) {
			if (hooks().cq_event)
				hooks().cq_event(queue);
		};
		fake.recv_done = completion;
		fake.send_done = completion;
		fake.offer_done = completion;
		fake.inv_done = completion;
		fake.read_done = completion;
		return fake;
	}();

	hooks() = {};
	return api;
}

} // namespace sim

namespace sim
{

/* No core is linked here. */
const CoreApi &linked_core()
{
	return fake_core();
}

} // namespace sim
