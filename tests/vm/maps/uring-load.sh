#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# Commands of io_uring for a long time, in each kind of ring, beside the other ways in.
#
#   c0, mapping m0  --->  listener store, export mem0
#
# full
# timeout: 600
# shellcheck source-path=SCRIPTDIR disable=SC2119,SC2317
. "$(dirname "$0")/../lib.sh"

pair queues 2 poll-queues 1
m=/dev/kdirect/m0
size=$((1200 << 10))
need "an export" kdirect export add mem0 listener store size $size
need "a mapping of it" kdirect map add m0 channel c0 export mem0

gtests commands uring_test $m $size

ways=('uring' 'uring poll' 'uring thread' 'uring poll thread' '' 'poll' 'ring thread')
for round in 1 2 3; do
	for i in "${!ways[@]}"; do
		# shellcheck disable=SC2086 # words
		load "way $i" c0 descs desc_load $m $size ${ways[i]}
	done
	wander 20000
	for i in "${!ways[@]}"; do
		kill -TERM "${job["way $i"]}"
	done
	for i in "${!ways[@]}"; do
		ends "round $round: \"${ways[i]}\" ends" "way $i" 30 0
		matches "round $round: each of \"${ways[i]}\" once" "$(cat "$work/way $i")" \
			'ended after [1-9]'
	done
	check "no buffer is left" wait_for 10 no_fixed c0
done
is "the channel lives" "$(state c0)" live

check "the mapping is deleted" kdirect map del m0
check "the export is deleted" kdirect export del mem0
check "the channel is deleted" kdirect channel del c0
need "no channel is left" wait_for 10 no_channels
kdirect listener del store
no_leftovers
finish
