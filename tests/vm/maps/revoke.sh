#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# Who has let go of an export cannot touch it any more, and what was refused says why.
#
#   c0  --->  listener store
#
# timeout: 120
# shellcheck source-path=SCRIPTDIR disable=SC2119,SC2317
. "$(dirname "$0")/../lib.sh"

pair queues 2
m=/dev/kdirect/m0
writes="while dd if=/dev/zero of=$m bs=64k count=64 conv=notrunc,nocreat status=none; do :; done"
reads="while cat $m >/dev/null; do :; done"

for round in 1 2 3; do
	need "an export" kdirect export add mem0 listener store size 4M
	need "a mapping" kdirect map add m0 channel c0 export mem0
	load writer c0 map_writes sh -c "$writes"
	load reader c0 map_reads sh -c "$reads"
	wander $((round * 150))
	check "the export is deleted under load" kdirect export del mem0
	ends "the writer hears of it" writer 20 0
	ends "the reader hears of it" reader 20 0
	matches "so it was the export" "$(cat "$work/writer")" 'Stale file handle'
	matches "the mapping tells" "$(kdirect -d map)" 'state dead.*error ESTALE'
	refute "it cannot be opened" dd if=$m of=/dev/null count=1
	is "the channel lives on" "$(state c0)" live
	check "it is deleted" kdirect map del m0
done

need "an export" kdirect export add mem0 listener store size 4M
need "a mapping" kdirect map add m0 channel c0 export mem0
load writer c0 map_writes sh -c "$writes"
wander 200
check "the mapping is deleted under load" kdirect map del m0
ends "the writer hears of it" writer 20 0
is "nobody maps it" "$(kdirect -j export show mem0 | grep -o '"maps":[0-9]*')" '"maps":0'
refute "there is no node" test -e $m

need "it can be mapped again" kdirect map add m0 channel c0 export mem0 ro
refute "but not written" dd if=/dev/zero of=$m bs=4k count=1 conv=notrunc,nocreat
check "only read" sh -c "cat $m | cmp -n 4M - /dev/zero"
expect_error 'EBUSY' kdirect map add m1 channel c0 export mem0
expect_error 'no such export.*ENOENT' kdirect map add m1 channel c0 export nothing
expect_error 'there is no channel "c9"' kdirect map add m1 channel c9 export mem0
expect_error 'accepted by a listener' kdirect map add m1 channel store.0 export mem0
expect_error 'mapping "m0" exists already' kdirect map add m0 channel c0 export mem0
expect_error 'there is no listener "nobody"' kdirect export add mem1 listener nobody size 4M
expect_error 'bytes that are left' kdirect export add mem1 listener store size 16G
expect_error 'must be 1B to 16G' kdirect export add mem1 listener store size 17G
expect_error 'there is no export "mem9"' kdirect export del mem9
is "refusals leave nothing" "$(kdirect map | wc -l) $(kdirect export | wc -l)" "1 1"

load reader c0 map_reads sh -c "$reads"
wander 200
check "the channel is deleted under load" kdirect channel del c0
ends "the reader hears of it" reader 20 0
matches "the mapping tells" "$(kdirect -d map)" 'state dead'
check "it is deleted" kdirect map del m0
check "the export is deleted" kdirect export del mem0
need "no channel is left" wait_for 10 no_channels
kdirect listener del store
no_leftovers
finish
