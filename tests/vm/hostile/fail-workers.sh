#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# Adding, accepting and deleting a channel, and fetching a large message, with each
# allocation that workers make for it failing in turn, at either end. Whatever fails, the
# channel is live in the end or both ends are gone, and the next one works.
#
# Device drivers make splats of their own when an allocation fails: rxe_create_qp() stops
# timers that it has not set up, which debug objects report, and vmalloc() prints a call
# trace. So this runs with
#   --append no_debug_objects --allow 'Call Trace:'
#
# KD_STRIDE is how many allocations lie between those that fail.
# timeout: 150
# shellcheck source-path=SCRIPTDIR disable=SC2119,SC2154
. "$(dirname "$0")/../lib.sh"
. "$(dirname "$0")/../hostile.sh"

if [ ! -e /proc/self/fail-nth ]; then
	echo "# this kernel has no fault injection"
	finish
fi
if ! grep -q no_debug_objects /proc/cmdline; then
	echo "# not without no_debug_objects: see above"
	finish
fi
pair queues 1 depth 4
before=$(object_counts)
stride=${KD_STRIDE:-13}
[ "$KD_FULL" = 0 ] || stride=${KD_STRIDE:-6}
taps "fails" fail_nth workers fetch,fetch:page,connect,connect-poll,connect:page \
	/dev/kdirect/c0 /dev/kdirect/store.0 "$PEER" "$port" "$stride"
honest_use "afterwards"
is "the same RDMA objects" "$(object_counts)" "$before"
finish_pair
