#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# Every operation on the nodes of a channel and of a mapping, and every netlink command, with each of its allocations and
# user copies failing in turn. Needs a kernel that can do that: debug-6.1.
#
#   c0, mapping m0  --->  listener store, export mem0
#
# timeout: 300
# shellcheck source-path=SCRIPTDIR disable=SC2119,SC2154
. "$(dirname "$0")/../lib.sh"
. "$(dirname "$0")/../hostile.sh"

if [ ! -e /proc/self/fail-nth ]; then
	echo "# this kernel has no fault injection"
	finish
fi
pair queues 1 poll-queues 1 depth 4
need "an export" kdirect export add mem0 listener store size "$export_size"
need "a mapping" kdirect map add m0 channel c0 export mem0
pinned=$(pages_pinned)
before=$(object_counts)
taps "fails" fail_nth calls /dev/kdirect/c0 /dev/kdirect/store.0 "$PEER" "$port" /dev/kdirect/m0
honest_use "afterwards"
is "the same RDMA objects" "$(object_counts)" "$before"
check "no fixed buffer is left" wait_for 10 no_fixed c0
check "no page is pinned" wait_for 10 pinned_are "$pinned"
map_use "afterwards"
check "the mapping is deleted" kdirect map del m0
check "and the export" kdirect export del mem0
finish_pair
