#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# System calls on both nodes of a channel that no sane program makes, from many
# threads: as root, and as a member of the node's group. Nothing they do may end the
# channel, or be felt by who uses it afterwards.
#
#   c0  --->  listener store, channel store.0
#
# KD_SEED changes what is drawn; a mistake names the seed and thread to repeat it.
# timeout: 600
# shellcheck source-path=SCRIPTDIR disable=SC2119,SC2154,SC2317
. "$(dirname "$0")/../lib.sh"
. "$(dirname "$0")/../hostile.sh"

nodes=(/dev/kdirect/c0 /dev/kdirect/store.0)
count=$(size 400 1200)
seed=${KD_SEED:-1}

# attack LABEL "CHANNEL'S WORDS" USER...
attack()
{
	local label=$1 before user

	# shellcheck disable=SC2086 # words
	pair $2 depth 8 keep-alive 500ms
	shift 2
	before=$(object_counts)
	for user; do
		check "$label: $user: nothing wrong, seed $seed" hostile_calls \
			--seed "$seed" --count "$count" --user "$user" \
			--patience $((30 * KD_SLOW)) "${nodes[@]}"
		seed=$((seed + 1))
	done
	honest_use "$label: afterwards"
	is "$label: the same RDMA objects" "$(object_counts)" "$before"
	need "$label: no file is left open" wait_for 20 no_opens
	check "$label: the channel is deleted" kdirect channel del c0
	need "$label: and its other end" wait_for 20 no_channels
	kdirect listener del store
	no_leftovers "$label: nothing is left"
}

if [ "${KD_FULL:-0}" = 1 ]; then
	attack "interrupt queues" "queues 2" root nobody
	attack "mixed queues" "queues 1 poll-queues 1" root nobody
	attack "poll queues" "queues 0 poll-queues 2" root nobody
else
	attack "mixed queues" "queues 1 poll-queues 1" root nobody
fi
finish
