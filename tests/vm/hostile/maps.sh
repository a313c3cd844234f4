#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# System calls on the node of a mapping that no sane program makes, from many threads, as
# root and as a member of the node's group: descriptors, fixed buffers, transfers at any
# place, with memory that comes and goes, and processes that are killed in it. Nothing
# they do may end the mapping, or leave anything.
#
#   c0, mapping m0  --->  listener store, export mem0
#
# KD_SEED changes what is drawn; a mistake names the seed and thread to repeat it.
# timeout: 600
# shellcheck source-path=SCRIPTDIR disable=SC2119,SC2154,SC2317
. "$(dirname "$0")/../lib.sh"
. "$(dirname "$0")/../hostile.sh"

count=$(size 400 1200)
seed=${KD_SEED:-1}

# attack LABEL "CHANNEL'S WORDS" "MAPPING'S WORDS" USER...
attack()
{
	local label=$1 before pinned user

	pinned=$(pages_pinned)
	# shellcheck disable=SC2086 # words
	pair $2 depth 8 keep-alive 500ms
	need "$label: an export" kdirect export add mem0 listener store size "$export_size"
	# shellcheck disable=SC2086 # words
	need "$label: a mapping" kdirect map add m0 channel c0 export mem0 $3
	shift 3
	before=$(object_counts)
	for user; do
		check "$label: $user: nothing wrong, seed $seed" hostile_calls \
			--seed "$seed" --count "$count" --user "$user" \
			--patience $((30 * KD_SLOW)) /dev/kdirect/m0
		seed=$((seed + 1))
	done
	check "$label: no fixed buffer is left" wait_for 10 no_fixed c0
	matches "$label: the mapping is live" "$(kdirect map)" '^map m0 state live'
	map_use "$label: afterwards"
	honest_use "$label: afterwards"
	is "$label: the same RDMA objects" "$(object_counts)" "$before"
	need "$label: no file is left open" wait_for 20 no_opens
	check "$label: the mapping is deleted" kdirect map del m0
	check "$label: and the export" kdirect export del mem0
	check "$label: the channel is deleted" kdirect channel del c0
	need "$label: and its other end" wait_for 20 no_channels
	kdirect listener del store
	no_leftovers "$label: nothing is left"
	check "$label: no page is pinned" wait_for 10 pinned_are "$pinned"
}

attack "mixed queues" "queues 1 poll-queues 1" "" root nobody
if [ "${KD_FULL:-0}" = 1 ]; then
	attack "interrupt queues" "queues 2" "" root nobody
	attack "poll queues" "queues 0 poll-queues 2" "" root nobody
fi
finish
