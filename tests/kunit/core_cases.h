/* SPDX-License-Identifier: GPL-2.0-only */
/* core_cases.h - the cases in C++: X(suite, case, parameters); "once" has none */
#ifndef KDIRECT_KUNIT_CORE_CASES_H
#define KDIRECT_KUNIT_CORE_CASES_H

#include "check.h"

/* clang-format off */
#define KDK_STATE_CASES(X) \
	X(transition, state_pairs) X(names_differ, once) X(event_in_state, state_events)

#define KDK_STEPS_CASES(X) \
	X(cm_event_at_step, step_events) X(reply_is_checked, replies) X(fatal_event, once) \
	X(fetched_in_phase, phases) X(claim_in_phase, phases)

#define KDK_LISTENER_CASES(X) \
	X(request_by_state, verdicts) X(other_events, once)

#define KDK_CREDIT_CASES(X) \
	X(window, depths) X(window_updates, update_points) X(grant, once) \
	X(send_ring, depths) X(fifo, depths)

#define KDK_ORDER_CASES(X) \
	X(permutations, orders) X(refuses, depths) X(fetch_in_order, depths)

#define KDK_WIRE_CASES(X) \
	X(request_round_trip, once) X(request_bounds, request_fields) \
	X(reply_round_trip, once) X(reply_bounds, once) X(reject_round_trip, refusals) \
	X(data_round_trip, once) X(data_bounds, once) X(control_round_trip, entries) \
	X(control_bounds, once) X(lengths, messages) X(padded_and_exact, messages) \
	X(reserved_bytes, messages)

#define KDK_TOKEN_CASES(X) \
	X(token_is_needed, once) X(token_permits, once) X(without_token, once) X(refs, depths)

#define KDK_PAIR_CASES(X) \
	X(connects, once) X(eager, eager_sizes) X(offers, offer_sizes) X(keys_change, once) \
	X(exhaustion, once) X(unclaimed, once) X(stale_key, stale_keys) X(gone_with_offers, once) \
	X(pinned_offer, once)

#define KDK_WIRE_MAP_CASES(X) \
	X(map_round_trip, map_ops) X(map_lengths, map_ops) X(map_unused, map_ops) \
	X(map_bounds, once) X(map_names, once)

#define KDK_MAPPING_CASES(X) \
	X(map_message, map_messages) X(map_keys, once) X(map_ends, map_endings) \
	X(map_lives, map_causes) X(grant_message, grant_messages)

#define KDK_MAPS_CASES(X) \
	X(map_transfer, map_transfers) X(map_ends_of_export, once) X(map_read_only, once) \
	X(map_revoked, once) X(map_deleted, once) X(map_channel_ends, once)
/* clang-format on */

#ifdef __cplusplus
extern "C" {
#endif
#define KDK_DECLARE_CASE(id, params) void kdk_case_##id(struct kunit *test);
KDK_STATE_CASES(KDK_DECLARE_CASE)
KDK_STEPS_CASES(KDK_DECLARE_CASE)
KDK_LISTENER_CASES(KDK_DECLARE_CASE)
KDK_CREDIT_CASES(KDK_DECLARE_CASE)
KDK_ORDER_CASES(KDK_DECLARE_CASE)
KDK_WIRE_CASES(KDK_DECLARE_CASE)
KDK_TOKEN_CASES(KDK_DECLARE_CASE)
KDK_PAIR_CASES(KDK_DECLARE_CASE)
KDK_WIRE_MAP_CASES(KDK_DECLARE_CASE)
KDK_MAPPING_CASES(KDK_DECLARE_CASE)
KDK_MAPS_CASES(KDK_DECLARE_CASE)
#ifdef __cplusplus
}
#endif

#endif
