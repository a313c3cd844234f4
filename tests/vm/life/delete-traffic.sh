#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# Channels are deleted, at either end or with their module, at many moments
# under traffic of all kinds. Each time every process ends, and soon.
#
#   c0  --->  listener store, channel store.0
#
# timeout: 200
# shellcheck source-path=SCRIPTDIR disable=SC2119,SC2317
. "$(dirname "$0")/../lib.sh"

traffic()
{
	start send1 messages send /dev/kdirect/c0 --count 0 --seed 1
	start recv1 messages receive /dev/kdirect/store.0 --count 0 --seed 1
	start send2 messages send /dev/kdirect/store.0 --count 0 --seed 2 "$@"
	start recv2 messages receive /dev/kdirect/c0 --count 0 --seed 2 "$@"
	need "all have begun" wait_for 20 opened c0 2
	need "at the other end, too" wait_for 20 opened store.0 2
	start ping kdirect ping c0 count 100000 # which may end before
}

# all_end TEXT: and none of them with a message out of order or torn
all_end()
{
	local name bad='' status

	for name in send1 recv1 send2 recv2 ping; do
		if ! timeout $((20 * patience)) tail --pid="${job[$name]}" -f /dev/null; then
			bad="$bad
$name does not end: $(cat "/proc/${job[$name]}/stack")"
			kill -KILL "${job[$name]}"
			continue
		fi
		status=0
		wait "${job[$name]}" || status=$?
		[ "$name" = ping ] || [ "$status" = 0 ] || bad="$bad
$name: status $status: $(cat "$work/$name")"
	done
	if [ -z "$bad" ]; then
		ok "$1"
	else
		not_ok "$1" "$bad"
	fi
}

need "a listener" kdirect listener add store addr "$PEER" port "$port"
rounds=6
[ "$KD_FULL" = 0 ] || rounds=$(few 40)
for round in $(seq "$rounds"); do
	words=(queues 2 drain-timeout "$(slow 2s)")
	waits=()
	case $((round % 3)) in
	1) words=(queues 1 poll-queues 1 drain-timeout "$(slow 2s)"); waits=(--poll) ;;
	2) words=(queues 1 depth 1 drain-timeout "$(slow 2s)"); waits=(--nowait) ;;
	esac
	need "round $round: a channel" add_channel c0 to "$PEER:$port" "${words[@]}"
	need "its other end" wait_for 10 test -c /dev/kdirect/store.0
	traffic "${waits[@]}"
	need "traffic flows" wait_for 20 reached c0 rx_messages $((round % 7 * 3 + 1))
	case $((round % 4)) in
	0) victim="c0" ;;
	1) victim="store.0" ;;
	2) victim="both" ;;
	3) victim="listener" ;;
	esac
	begun=$(now_ms)
	case $victim in
	both)
		kdirect channel del store.0 nowait
		check "round $round: both ends are deleted" kdirect channel del c0 ;;
	listener)
		kdirect listener del store
		check "round $round: c0 is deleted, its listener being gone" kdirect channel del c0
		kdirect listener add store addr "$PEER" port "$port" ;;
	*)
		check "round $round: $victim is deleted" kdirect channel del "$victim" ;;
	esac
	in_time "within the drain timeout" "$begun" 15000
	all_end "round $round: all processes end"
	kdirect channel del c0 2>/dev/null
	need "round $round: no channel is left" wait_for 20 no_channels
done
only_listener()
{
	[ "$(rdma_objects | wc -l)" -le 1 ]
}
check "no object is left but the listener's" wait_for 10 only_listener
kdirect listener del store

# The module goes with live channels whose nodes nobody holds.
need "a listener" kdirect listener add store addr "$PEER" port "$port"
for n in 0 1 2; do
	need "channel c$n" add_channel "c$n" to "$PEER:$port"
done
need "the other ends" wait_for 10 test -c /dev/kdirect/store.2
for n in 0 1 2; do
	printf 'unread' >"/dev/kdirect/c$n"
done
check "the module goes with live channels" rmmod kdirect
no_leftovers
finish
