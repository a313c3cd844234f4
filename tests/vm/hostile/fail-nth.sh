#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# Every operation on a node and every netlink command, with each of its allocations and
# user copies failing in turn. Needs a kernel that can do that: debug-6.1.
#
#   c0  --->  listener store, channel store.0
#
# timeout: 150
# shellcheck source-path=SCRIPTDIR disable=SC2119,SC2154
. "$(dirname "$0")/../lib.sh"
. "$(dirname "$0")/../hostile.sh"

if [ ! -e /proc/self/fail-nth ]; then
	echo "# this kernel has no fault injection"
	finish
fi
pair queues 1 poll-queues 1 depth 4
before=$(object_counts)
taps "fails" fail_nth calls /dev/kdirect/c0 /dev/kdirect/store.0 "$PEER" "$port"
honest_use "afterwards"
is "the same RDMA objects" "$(object_counts)" "$before"
finish_pair
