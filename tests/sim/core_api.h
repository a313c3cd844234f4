/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The calls of core.h as a table, so that a world can hold several instances of
 * the core (each loaded on its own), or a stand-in to test the simulation with.
 */
#pragma once
#include "../../kmod/shim/core.h"

#define SIM_CORE_CALLS(X)                                                                          \
	X(core_init)                                                                               \
	X(core_stop)                                                                               \
	X(core_exit)                                                                               \
	X(device_add)                                                                              \
	X(device_remove)                                                                           \
	X(device_attr)                                                                             \
	X(listener_defaults)                                                                       \
	X(channel_defaults)                                                                        \
	X(listener_new)                                                                            \
	X(listener_set)                                                                            \
	X(listener_del)                                                                            \
	X(channel_new)                                                                             \
	X(channel_set)                                                                             \
	X(channel_del)                                                                             \
	X(owner_gone)                                                                              \
	X(device_info)                                                                             \
	X(device_next)                                                                             \
	X(listener_info)                                                                           \
	X(listener_next)                                                                           \
	X(channel_info)                                                                            \
	X(channel_next)                                                                            \
	X(channel_stats)                                                                           \
	X(export_new)                                                                              \
	X(export_del)                                                                              \
	X(map_new)                                                                                 \
	X(map_del)                                                                                 \
	X(export_info)                                                                             \
	X(export_next)                                                                             \
	X(map_info)                                                                                \
	X(map_next)                                                                                \
	X(listener_cm_event)                                                                       \
	X(queue_cm_event)                                                                          \
	X(queue_fatal)                                                                             \
	X(queue_cq_event)                                                                          \
	X(recv_done)                                                                               \
	X(send_done)                                                                               \
	X(offer_done)                                                                              \
	X(inv_done)                                                                                \
	X(read_done)                                                                               \
	X(io_done)                                                                                 \
	X(key_done)                                                                                \
	X(file_open)                                                                               \
	X(file_write)                                                                              \
	X(file_read)                                                                               \
	X(file_poll)                                                                               \
	X(file_read_waitq)                                                                         \
	X(file_write_waitq)                                                                        \
	X(file_info)                                                                               \
	X(file_ping)                                                                               \
	X(map_open)                                                                                \
	X(desc_release)                                                                            \
	X(map_size)                                                                                \
	X(map_io)                                                                                  \
	X(desc_waitq)                                                                              \
	X(desc_set_flags)                                                                          \
	X(desc_flags)                                                                              \
	X(desc_submit)                                                                             \
	X(desc_buffer_set)                                                                         \
	X(desc_buffer_del)                                                                         \
	X(map_describe)                                                                            \
	X(desc_command)                                                                            \
	X(desc_command_poll)                                                                       \
	X(desc_unplug)                                                                             \
	X(raw_sent)                                                                                \
	X(raw_received)                                                                            \
	X(raw_control)                                                                             \
	X(raw_registered)                                                                          \
	X(raw_open)                                                                                \
	X(raw_connect)                                                                             \
	X(raw_reject)                                                                              \
	X(raw_share)                                                                               \
	X(raw_describe)                                                                            \
	X(raw_poll)                                                                                \
	X(ring_create)                                                                             \
	X(ring_release)                                                                            \
	X(ring_enter)                                                                              \
	X(ring_poll)                                                                               \
	X(ring_waitq)                                                                              \
	X(ring_memory)                                                                             \
	X(ring_thread)

namespace sim
{

struct CoreApi {
#define SIM_FIELD(name) decltype(&::kd_##name) name;
	SIM_CORE_CALLS(SIM_FIELD)
#undef SIM_FIELD
};

/* The core that is linked into the program; defined in core_linked.cc. */
const CoreApi &linked_core();

} // namespace sim
