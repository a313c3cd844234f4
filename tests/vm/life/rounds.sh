#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# Load, connect, transfer, delete, unload: again and again. Memory and RDMA
# objects stay where they were.
# timeout: 500
# shellcheck source-path=SCRIPTDIR disable=SC2119,SC2317
. "$(dirname "$0")/../lib.sh"

rounds=$(few 12)
[ "$rounds" -ge 6 ] || rounds=6
[ "$KD_FULL" = 0 ] || rounds=$(few 100)

round()
{
	modprobe kdirect || return
	kdirect listener add store addr "$PEER" port "$port" || return
	add_channel c0 to "$PEER:$port" queues 1 poll-queues 1 || return
	wait_for 10 test -c /dev/kdirect/store.0 || return
	messages receive /dev/kdirect/store.0 --count 10 --seed "$1" >"$work/in" &
	messages send /dev/kdirect/c0 --count 10 --seed "$1" >"$work/out" || return
	wait "$!" || return
	kdirect channel del c0 || return
	wait_for 10 no_channels || return
	kdirect listener del store || return
	rmmod kdirect
}

rmmod kdirect
clean=$(rdma resource show)
first=0
for n in $(seq "$rounds"); do
	output=$(round "$n" 2>&1) || give_up "round $n" "$output"
	now=$(rdma resource show)
	[ "$now" = "$clean" ] || give_up "round $n leaves RDMA objects" "before: $clean
after:  $now"
	# The first rounds fill caches of others.
	[ "$n" != $((rounds / 3)) ] || first=$(memory_in_use)
done
last=$(memory_in_use)
ok "$rounds rounds"
counted=$((rounds - rounds / 3))
echo "# slab in use: $first KiB after round $((rounds / 3)), $last KiB after round $rounds"
# A channel has 100 KiB at least: one that is left in each round would show. KASAN keeps what
# is freed for a while; such a kernel has kmemleak, which tests/vm/all asks.
[ -e /sys/kernel/debug/kmemleak ] ||
	check "the slab is flat" [ $((last - first)) -lt $((counted * 4 + 128)) ]
finish
