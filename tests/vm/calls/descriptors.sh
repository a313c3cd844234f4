#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# Descriptors of a channel's node: what they promise, and what ends under them.
#
#   c0  --->  listener store, channel store.0
#
# timeout: 400
# shellcheck source-path=SCRIPTDIR disable=SC2119,SC2317
. "$(dirname "$0")/../lib.sh"

pair queues 2 poll-queues 1 depth 8
gtests descriptors session_test /dev/kdirect/c0 /dev/kdirect/store.0
check "no buffer is left" wait_for 10 no_fixed c0
is "still live" "$(state c0)$(state store.0)" livelive
check "the channel is deleted" kdirect channel del c0
need "both ends go" wait_for 20 no_channels

no_opens()
{
	! kdirect -j channel | grep -o '"opens":[0-9]*' | grep -qv ':0$'
}

# under LABEL WORD...: a channel, and a load of that kind on it
under()
{
	local label=$1

	need "$label: a channel" add_channel c0 to "$PEER:$port" queues 2 poll-queues 1 depth 8
	need "$label: its other end" wait_for 10 test -c /dev/kdirect/store.0
	start recv session_load recv /dev/kdirect/store.0 "${@:2}"
	load send c0 tx_messages session_load send /dev/kdirect/c0 "${@:2}"
	wander 200
}

for kind in '' poll ring 'ring poll' 'ring thread' 'ring poll thread'; do
	# shellcheck disable=SC2086 # words
	under "${kind:-ioctl}" $kind
	kill -TERM "${job[send]}"
	ends "${kind:-ioctl}: all SENDs complete" send 60 0
	matches "${kind:-ioctl}: in order" "$(cat "$work/send")" 'ended after [1-9]'
	check "${kind:-ioctl}: the channel is deleted" kdirect channel del c0
	ends "${kind:-ioctl}: RECVs hear of it" recv 30 0
	matches "${kind:-ioctl}: as the end" "$(cat "$work/recv")" 'Broken pipe after [1-9]'
	need "${kind:-ioctl}: both ends go" wait_for 20 no_channels
done

under "deleted under load" ring
check "the channel is deleted under load" kdirect channel del c0
ends "the sender hears of it" send 30 0
ends "so does the receiver" recv 30 0
matches "it is the end" "$(cat "$work/send")" 'Broken pipe after [1-9]'
matches "for both" "$(cat "$work/recv")" '(Broken pipe|Connection reset by peer) after [1-9]'
need "both ends go" wait_for 20 no_channels

for kind in '' 'ring thread'; do
	# shellcheck disable=SC2086 # words
	under "killed" $kind
	kill -9 "${job[send]}"
	wait "${job[send]}" 2>/dev/null
	wander 50
	kill -9 "${job[recv]}"
	wait "${job[recv]}" 2>/dev/null
	check "no buffer of killed programs is left" wait_for 10 no_fixed c0
	is "the channel lives" "$(state c0)$(state store.0)" livelive
	check "no file is left open" wait_for 10 no_opens
	check "it is deleted" kdirect channel del c0
	need "both ends go" wait_for 20 no_channels
done
kdirect listener del store
no_leftovers
finish
