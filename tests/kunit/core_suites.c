// SPDX-License-Identifier: GPL-2.0-only
/* The suites whose cases are in C++, and their parameters. */

#include "kdirect_netlink.h"

#include "kunit.h"

#include "core_cases.h"

#define once_gen_params	NULL

static void kdk_describe(const struct kdk_pair *p, char *desc)
{
	snprintf(desc, KUNIT_PARAM_DESC_SIZE, "%u, %u", p->a, p->b);
}

#define KDK_6(a)	{ a, 0 }, { a, 1 }, { a, 2 }, { a, 3 }, { a, 4 }, { a, 5 }
#define KDK_8(a)	{ a, 1 }, { a, 2 }, { a, 3 }, { a, 4 }, { a, 5 }, { a, 6 }, { a, 7 }, { a, 8 }
#define KDK_12(a)	KDK_6(a), { a, 6 }, { a, 7 }, { a, 8 }, { a, 9 }, { a, 10 }, { a, 11 }

/* --- states --------------------------------------------------------------------------- */

static const char * const kdk_states[] = {
	"new", "connecting", "live", "recovering", "deleting", "dead",
};

static void kdk_describe_pair(const struct kdk_pair *p, char *desc)
{
	snprintf(desc, KUNIT_PARAM_DESC_SIZE, "%s -> %s", kdk_states[p->a], kdk_states[p->b]);
}

static const struct kdk_pair state_pairs[] = {
	KDK_6(0), KDK_6(1), KDK_6(2), KDK_6(3), KDK_6(4), KDK_6(5),
};
KUNIT_ARRAY_PARAM(state_pairs, state_pairs, kdk_describe_pair);

static void kdk_describe_event(const struct kdk_pair *p, char *desc)
{
	static const char * const events[] = {
		"failure", "deletion", "failure and deletion", "peer left in order",
		"peer left too early", "time is up",
	};

	snprintf(desc, KUNIT_PARAM_DESC_SIZE, "%s: %s", kdk_states[p->a], events[p->b]);
}

/* A channel that is not yet connected would go on connecting after some of them. */
static const struct kdk_pair state_events[] = {
	{ 0, 0 }, { 0, 1 }, { 0, 2 },
	{ 1, 0 }, { 1, 1 }, { 1, 2 }, { 1, 5 },
	KDK_6(2), KDK_6(3), KDK_6(4), KDK_6(5),
};
KUNIT_ARRAY_PARAM(state_events, state_events, kdk_describe_event);

static void kdk_describe_step(const struct kdk_pair *p, char *desc)
{
	static const char * const steps[] = {
		"idle", "resolving", "resolved", "routing", "routed", "connecting", "connected",
		"requested", "accepted",
	};
	static const char * const events[] = {
		[KD_CM_ADDR_RESOLVED]	= "address resolved",
		[KD_CM_ROUTE_RESOLVED]	= "route resolved",
		[KD_CM_CONNECT_REQUEST]	= "connect request",
		[KD_CM_ESTABLISHED]	= "established",
		[KD_CM_ADDR_ERROR]	= "address error",
		[KD_CM_ROUTE_ERROR]	= "route error",
		[KD_CM_UNREACHABLE]	= "unreachable",
		[KD_CM_CONNECT_ERROR]	= "connect error",
		[KD_CM_REJECTED]	= "rejected",
		[KD_CM_DISCONNECTED]	= "disconnected",
		[KD_CM_DEVICE_REMOVAL]	= "device removal",
		[KD_CM_OTHER]		= "other",
	};

	snprintf(desc, KUNIT_PARAM_DESC_SIZE, "%s: %s", steps[p->a], events[p->b]);
}

static const struct kdk_pair step_events[] = {
	KDK_12(0), KDK_12(1), KDK_12(2), KDK_12(3), KDK_12(4), KDK_12(5), KDK_12(6), KDK_12(7),
	KDK_12(8),
};
KUNIT_ARRAY_PARAM(step_events, step_events, kdk_describe_step);

/* queue, and what is wrong with the reply */
static const struct kdk_pair replies[] = { KDK_12(0), { 0, 12 }, { 0, 13 }, KDK_12(1), { 1, 12 },
					   { 1, 13 }, { 1, 14 }, { 1, 15 }, { 1, 16 }, { 1, 17 } };
KUNIT_ARRAY_PARAM(replies, replies, kdk_describe);

static const struct kdk_pair phases[] = { { 0 }, { 1 }, { 2 }, { 3 } };
KUNIT_ARRAY_PARAM(phases, phases, kdk_describe);

static const struct kdk_pair verdicts[] = { { 0 }, { 1 }, { 2 }, { 3 }, { 4 }, { 5 }, { 6 },
					    { 7 }, { 8 } };
KUNIT_ARRAY_PARAM(verdicts, verdicts, kdk_describe);

/* --- credits, slots, order ---------------------------------------------------------------- */

static const struct kdk_pair depths[] = { { 1 }, { 2 }, { 3 }, { 8 }, { 32 }, { 1024 } };
KUNIT_ARRAY_PARAM(depths, depths, kdk_describe);

/* sent, and what the peer says it has posted anew */
static const struct kdk_pair update_points[] = {
	{ 0, 0 }, { 0, 1 }, { 0, 0x7fffffff }, { 0, 0x80000001 }, { 0, 0xffffffff },
	{ 1, 0 }, { 1, 1 }, { 1, 2 }, { 5, 4 }, { 5, 5 }, { 5, 6 }, { 8, 8 }, { 8, 9 },
	{ 8, 0x80000008 }, { 8, 0x80000009 },
};
KUNIT_ARRAY_PARAM(update_points, update_points, kdk_describe);

/* messages in the window, and the stride in which they arrive */
static const struct kdk_pair orders[] = {
	{ 1, 1 }, { 2, 1 }, { 4, 3 }, { 8, 5 }, { 16, 7 }, { 16, 15 }, { 64, 37 }, { 128, 127 },
};
KUNIT_ARRAY_PARAM(orders, orders, kdk_describe);

/* --- on the wire ---------------------------------------------------------------------------- */

static const struct kdk_pair request_fields[] = { { 0 }, { 1 }, { 2 }, { 3 }, { 4 }, { 5 } };
KUNIT_ARRAY_PARAM(request_fields, request_fields, kdk_describe);

static const struct kdk_pair refusals[] = { KDK_12(0), { 0, 12 }, { 0, 13 } };
KUNIT_ARRAY_PARAM(refusals, refusals, kdk_describe);

static const struct kdk_pair entries[] = {
	{ 0, 0 }, { 1, 0 }, { 0, 1 }, { 3, 5 }, { 16, 0 }, { 0, 16 }, { 16, 16 },
};
KUNIT_ARRAY_PARAM(entries, entries, kdk_describe);

static void kdk_describe_message(const struct kdk_pair *p, char *desc)
{
	static const char * const names[] = {
		"request", "reply", "reject", "hello", "eager", "offer", "ping", "control",
	};

	strscpy(desc, names[p->a], KUNIT_PARAM_DESC_SIZE);
}

static const struct kdk_pair messages[] = { { 0 }, { 1 }, { 2 }, { 3 }, { 4 }, { 5 }, { 6 },
					    { 7 } };
KUNIT_ARRAY_PARAM(messages, messages, kdk_describe_message);

/* --- a channel ------------------------------------------------------------------------------- */

/* bytes, and how many messages of them */
static const struct kdk_pair eager_sizes[] = { { 1, 200 }, { 4096, 100 }, { 16384, 40 } };
KUNIT_ARRAY_PARAM(eager_sizes, eager_sizes, kdk_describe);

static const struct kdk_pair offer_sizes[] = {
	{ 16385, 20 }, { 65536, 20 }, { 1048575, 4 }, { 1048576, 4 },
};
KUNIT_ARRAY_PARAM(offer_sizes, offer_sizes, kdk_describe);

static void kdk_describe_key(const struct kdk_pair *p, char *desc)
{
	static const char * const names[] = {
		"taken back", "of the use before", "never registered",
	};

	strscpy(desc, names[p->a], KUNIT_PARAM_DESC_SIZE);
}

static const struct kdk_pair stale_keys[] = { { 0 }, { 1 }, { 2 } };
KUNIT_ARRAY_PARAM(stale_keys, stale_keys, kdk_describe_key);

/* --- exports and mappings ---------------------------------------------------------------------- */

static const char * const kdk_map_ops[] = {
	"", "map", "mapped", "refused", "ready", "keys", "revoke", "unmap", "unmapped",
};
static const char * const kdk_talks[] = {
	"ask", "asked", "answered", "ready", "keys", "held", "unmap", "unmapping", "gone",
};

static void kdk_describe_map_op(const struct kdk_pair *p, char *desc)
{
	strscpy(desc, kdk_map_ops[p->a], KUNIT_PARAM_DESC_SIZE);
}

static const struct kdk_pair map_ops[] = { { 1 }, { 2 }, { 3 }, { 4 }, { 5 }, { 6 }, { 7 }, { 8 } };
KUNIT_ARRAY_PARAM(map_ops, map_ops, kdk_describe_map_op);

static void kdk_describe_map_message(const struct kdk_pair *p, char *desc)
{
	snprintf(desc, KUNIT_PARAM_DESC_SIZE, "%s: %s", kdk_talks[p->a], kdk_map_ops[p->b]);
}

static const struct kdk_pair map_messages[] = {
	KDK_8(0), KDK_8(1), KDK_8(2), KDK_8(3), KDK_8(4), KDK_8(5), KDK_8(6), KDK_8(7), KDK_8(8),
};
KUNIT_ARRAY_PARAM(map_messages, map_messages, kdk_describe_map_message);

static void kdk_describe_map_end(const struct kdk_pair *p, char *desc)
{
	snprintf(desc, KUNIT_PARAM_DESC_SIZE, "%s: %s", kdk_talks[p->a],
		 p->b ? "taken back" : "deleted");
}

static const struct kdk_pair map_endings[] = {
	{ 0, 0 }, { 1, 0 }, { 2, 0 }, { 3, 0 }, { 4, 0 }, { 5, 0 }, { 6, 0 }, { 7, 0 }, { 8, 0 },
	{ 0, 1 }, { 1, 1 }, { 2, 1 }, { 3, 1 }, { 4, 1 }, { 5, 1 }, { 6, 1 }, { 7, 1 }, { 8, 1 },
};
KUNIT_ARRAY_PARAM(map_endings, map_endings, kdk_describe_map_end);

static const struct kdk_pair map_causes[] = { { 0 }, { 1 }, { 2 } };
KUNIT_ARRAY_PARAM(map_causes, map_causes, kdk_describe);

static void kdk_describe_grant(const struct kdk_pair *p, char *desc)
{
	static const char * const phases[] = {
		"free", "asked", "answering", "offered", "keying", "given", "returned",
		"departing",
	};

	snprintf(desc, KUNIT_PARAM_DESC_SIZE, "%s: %s", phases[p->a], kdk_map_ops[p->b]);
}

static const struct kdk_pair grant_messages[] = {
	KDK_8(0), KDK_8(1), KDK_8(2), KDK_8(3), KDK_8(4), KDK_8(5), KDK_8(6), KDK_8(7),
};
KUNIT_ARRAY_PARAM(grant_messages, grant_messages, kdk_describe_grant);

/* bytes, and where: inside a key, over its end, from copies to several pinned requests */
static const struct kdk_pair map_transfers[] = {
	{ 1, 0 }, { 64, 4095 }, { 4096, 4096 }, { 16384, 1 }, { 16385, 2097151 },
	{ 65536, 2097152 - 32768 }, { 1048576, 12345 }, { 4194304, 2097152 - 1 },
};
KUNIT_ARRAY_PARAM(map_transfers, map_transfers, kdk_describe);

/* --- the suites -------------------------------------------------------------------------- */

#define KDK_CALL(id, params) \
	static void id(struct kunit *test) { kdk_case_##id(test); }
#define KDK_CASE(id, params) KUNIT_CASE_PARAM(id, params##_gen_params),

#define KDK_CORE_SUITE(id, list)				\
	list(KDK_CALL)						\
	static struct kunit_case kdk_##id##_cases[] = {		\
		list(KDK_CASE)					\
		{}						\
	};							\
	KDK_SUITE(id, kdk_##id##_cases)

KDK_CORE_SUITE(state, KDK_STATE_CASES);
KDK_CORE_SUITE(steps, KDK_STEPS_CASES);
KDK_CORE_SUITE(listener, KDK_LISTENER_CASES);
KDK_CORE_SUITE(credit, KDK_CREDIT_CASES);
KDK_CORE_SUITE(order, KDK_ORDER_CASES);
KDK_CORE_SUITE(wire, KDK_WIRE_CASES);
KDK_CORE_SUITE(token, KDK_TOKEN_CASES);
KDK_CORE_SUITE(pair, KDK_PAIR_CASES);
KDK_CORE_SUITE(wire_map, KDK_WIRE_MAP_CASES);
KDK_CORE_SUITE(mapping, KDK_MAPPING_CASES);
KDK_CORE_SUITE(maps, KDK_MAPS_CASES);
