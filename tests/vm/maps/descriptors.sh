#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# Descriptors and fixed buffers: what they promise, and what ends under them.
#
#   c0, mapping m0  --->  listener store, export mem0 of 16M
#
# timeout: 400
# shellcheck source-path=SCRIPTDIR disable=SC2119,SC2317
. "$(dirname "$0")/../lib.sh"

pair queues 2 poll-queues 1
m=/dev/kdirect/m0
size=$((16 << 20))
need "an export" kdirect export add mem0 listener store size 16M
need "a mapping of it" kdirect map add m0 channel c0 export mem0

gtests descriptors desc_test $m $size
some='[1-9]'
[ "$KD_RDMA" != siw ] || some=0
matches "stats count them" "$(kdirect -d stats c0)" "map-atomics $some.* descs [1-9].* desc-posts [1-9]"

check "no buffer is left" wait_for 10 no_fixed c0

start load desc_load $m $size
start polled desc_load $m $size poll
wander 300
is "there are their buffers" "$(fixed_now c0)" 2
check "the export is deleted under load" kdirect export del mem0
ends "the load hears of it" load 30 0
ends "so does the polled one" polled 30 0
matches "so it was the export" "$(cat "$work/load")" 'Stale file handle after [1-9]'
matches "for both" "$(cat "$work/polled")" 'Stale file handle after [1-9]'
check "no buffer is left" wait_for 10 no_fixed c0
check "the mapping is deleted" kdirect map del m0

need "an export" kdirect export add mem0 listener store size 16M
need "a mapping" kdirect map add m0 channel c0 export mem0
start load desc_load $m $size
start killed desc_load $m $size
wander 200
kill -9 "$(pgrep -n desc_load)"
wander 100
check "the mapping is deleted under load" kdirect map del m0
ends "the load hears of it" load 30 0
matches "so it was the mapping" "$(cat "$work/load")" 'No such device after [1-9]'
check "no buffer is left" wait_for 10 no_fixed c0

need "it is mapped again" kdirect map add m0 channel c0 export mem0
start load desc_load $m $size
start polled desc_load $m $size poll
wander 200
check "the channel is deleted under load" kdirect channel del c0
ends "the load hears of it" load 30 0
ends "so does the polled one" polled 30 0
matches "it tells" "$(cat "$work/load")" '(Broken pipe|Input/output error|No such device) after [1-9]'
check "the mapping is deleted" kdirect map del m0
check "the export is deleted" kdirect export del mem0
need "no channel is left" wait_for 10 no_channels
kdirect listener del store
no_leftovers
finish
