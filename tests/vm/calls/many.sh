#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# Many writers and readers at once at both ends of a channel, with small messages: what
# they share is used as often and as close together as can be.
#
#   c0  --->  listener store, channel store.0
#
# timeout: 120
# fast
# shellcheck source-path=SCRIPTDIR disable=SC2119,SC2317
. "$(dirname "$0")/../lib.sh"

count=$(few 2000)
need "a listener" kdirect listener add store addr "$PEER" port "$port"

# shape WORD... [-- OPTION...]: of the channel, and of those who use it
shape()
{
	local label=$* words=() name

	while [ $# != 0 ] && [ "$1" != -- ]; do
		words+=("$1")
		shift
	done
	set -- "${@:2}" --threads 4 --min 8 --max 64 --count "$count"
	need "$label: connects" add_channel c0 to "$PEER:$port" "${words[@]}"
	need "$label: other end" wait_for 20 test -c /dev/kdirect/store.0
	start recv1 messages receive /dev/kdirect/store.0 --seed 1 --readers "$@"
	start recv2 messages receive /dev/kdirect/c0 --seed 2 --readers "$@"
	start send1 messages send /dev/kdirect/c0 --seed 1 "$@"
	start send2 messages send /dev/kdirect/store.0 --seed 2 "$@"
	for name in send1 send2 recv1 recv2; do
		ends "$label: $name" "$name" 60 0 || give_up "cannot go on"
	done
	is "$label: still live" "$(state c0)$(state store.0)" "livelive"
	check "$label: goes" kdirect channel del c0
	need "$label: both ends go" wait_for 20 no_channels
}

shape queues 2 depth 32
shape queues 4 depth 2
shape queues 0 poll-queues 2 depth 8
shape queues 1 poll-queues 1 depth 8 -- --poll
kdirect listener del store
no_leftovers
finish
