#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# The RDMA device goes away, and comes back, while a program has both ends of a raw
# connection open and uses them. It does not wait for the program to close them.
# timeout: 150
# shellcheck source-path=SCRIPTDIR disable=SC2119,SC2317
. "$(dirname "$0")/../lib.sh"

no_device()
{
	[ -z "$(kdirect device)" ]
}

device()
{
	kdirect device | grep -q "$RXE"
}

says()
{
	grep -q "^$1" "$work/load"
}

need "a raw listener" kdirect listener add raw addr "$PEER" port "$port" mode raw hold
rounds=3
[ "$KD_FULL" = 0 ] || rounds=$(few 15)
for round in $(seq "$rounds"); do
	more=
	[ $((round % 3)) != 2 ] || more="poll-queues 1"
	# shellcheck disable=SC2086 # words
	need "round $round: a raw channel $more" kdirect channel add r0 to "$PEER:$port" mode raw hold $more
	start load raw_load /dev/kdirect/r0 /dev/kdirect/raw.0
	need "both ends work" wait_for 30 says begun
	begun=$(now_ms)
	need "round $round: the device goes" timeout $((60 * KD_SLOW)) rdma link del "$RXE"
	in_time "in time" "$begun" 20000
	need "it is gone from kdirect, too" wait_for 10 no_device
	need "all that was posted ends" wait_for 20 says ended
	matches "an end sees why" "$(cat "$work/load")" '(E(NODEV|CONNRESET|PIPE|IO|TIMEDOUT)), then E'
	matches "the cause is told" "$(cause r0)" \
		'device .* was removed|the peer closed|the connection was lost|failed: (local QP|transport)'
	need "the device comes back under open files" add_link
	need "and is there" wait_for 20 device
	kill "${job[load]}"
	ends "round $round: the program ends" load 20 0
	kdirect channel del r0 >/dev/null 2>&1
	need "no channel is left" wait_for 20 no_channels
done
check "the listener is deleted" kdirect listener del raw
no_leftovers
finish
