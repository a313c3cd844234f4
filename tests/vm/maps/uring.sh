#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# Commands of io_uring: what they promise, and what ends under them.
#
#   c0, mapping m0  --->  listener store, export mem0
#
# The export has no full key, so that this runs on debug-6.1, too (Documentation/testing.md).
#
# timeout: 500
# shellcheck source-path=SCRIPTDIR disable=SC2119,SC2317
. "$(dirname "$0")/../lib.sh"

pair queues 2 poll-queues 1
m=/dev/kdirect/m0
size=$((1200 << 10))
need "an export" kdirect export add mem0 listener store size $size
need "a mapping of it" kdirect map add m0 channel c0 export mem0

gtests commands uring_test $m $size

# 641 commands, 32 with one call
descs=$(counted c0 descs)
posts=$(counted c0 desc_posts)
gtests doorbells uring_test $m $size --gtest_filter='*OneCallForMany'
descs=$(($(counted c0 descs) - descs))
posts=$(($(counted c0 desc_posts) - posts))
# over iWARP READs do not
[ "$KD_RDMA" != siw ] || posts=$((posts - descs / 2))
check "commands of one call share doorbells ($descs, $posts)" test "$descs" -ge 641 -a $((posts * 4)) -le "$descs"
check "no buffer is left" wait_for 10 no_fixed c0

# loads: in each kind of ring
loads()
{
	load plain c0 descs desc_load $m $size uring
	load polled c0 descs desc_load $m $size uring poll
	load served c0 descs desc_load $m $size uring thread
	load both c0 descs desc_load $m $size uring poll thread
	wander 200
}

# hear TEXT: all of them, by that
hear()
{
	local name

	for name in plain polled served both; do
		ends "the $name load hears of it" $name 30 0
		matches "as what it was" "$(cat "$work/$name")" "$1 after [1-9]"
	done
	check "no buffer is left" wait_for 10 no_fixed c0
}

loads
check "the export is deleted under load" kdirect export del mem0
hear 'Stale file handle'
check "the mapping is deleted" kdirect map del m0

need "an export" kdirect export add mem0 listener store size $size
need "a mapping" kdirect map add m0 channel c0 export mem0
loads
check "the mapping is deleted under load" kdirect map del m0
hear 'No such device'

need "it is mapped again" kdirect map add m0 channel c0 export mem0
for kind in '' poll thread 'poll thread'; do
	# shellcheck disable=SC2086 # words
	load killed c0 descs desc_load $m $size uring $kind
	kill -9 "${job[killed]}"
	wait "${job[killed]}" 2>/dev/null
	check "no buffer of a killed program is left" wait_for 10 no_fixed c0
done

loads
check "the channel is deleted under load" kdirect channel del c0
for name in plain polled served both; do
	ends "the $name load hears of it" $name 30 0
	matches "as what it was" "$(cat "$work/$name")" \
		'(Broken pipe|Input/output error|No such device) after [1-9]'
done
check "the mapping is deleted" kdirect map del m0
check "the export is deleted" kdirect export del mem0
need "no channel is left" wait_for 10 no_channels
kdirect listener del store
no_leftovers
finish
