#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# Hostile system calls on both nodes while the channel is deleted, is there again, its
# listener goes, and the module is to be unloaded. Calls may now find the end of the
# channel, with a documented errno; deleting takes its usual time, whatever they do.
#
#   c0  --->  listener store, channel store.0
#
# timeout: 300
# shellcheck source-path=SCRIPTDIR disable=SC2119,SC2154
. "$(dirname "$0")/../lib.sh"
. "$(dirname "$0")/../hostile.sh"

seconds=$(($(size 12 60) * KD_SLOW * KD_FEW))
seed=${KD_SEED:-1}

connected()
{
	[ -e /sys/module/kdirect ] || modprobe kdirect || return
	kdirect listener show store >/dev/null 2>&1 ||
		kdirect listener add store addr "$PEER" port "$port" || return
	kdirect channel add c0 to "$PEER:$port" queues 1 poll-queues 1 depth 8 \
		drain-timeout 500ms && wait_for 10 test -c /dev/kdirect/store.0
}

rounds=0 unloaded=0 slowest=0
need "a channel" connected
# The limit of the attack is a safety net: it ends after that time and two rounds.
start attacker hostile_calls --ending --seed "$seed" --count 1000000 --seconds $((200 * KD_SLOW)) \
	--patience $((30 * KD_SLOW)) /dev/kdirect/c0 /dev/kdirect/store.0
need "the attack has begun" wait_for 20 grep -q attacking "$work/attacker"
deadline=$(($(now_ms) + seconds * 1000))
while [ "$rounds" -lt 2 ] || [ "$(now_ms)" -lt "$deadline" ]; do
	begun=$(now_ms)
	kdirect channel del c0 2>/dev/null
	took=$(($(now_ms) - begun))
	[ "$took" -le "$slowest" ] || slowest=$took
	wait_for 20 no_channels || give_up "both ends go"
	# open files keep it; with none at this moment it goes, and comes again
	! rmmod kdirect 2>/dev/null || unloaded=$((unloaded + 1))
	connected >"$work/connecting" 2>&1 || give_up "the channel can be added again" \
		"$(cat "$work/connecting")"
	kill -0 "${job[attacker]}" 2>/dev/null || break
	rounds=$((rounds + 1))
done
kill -TERM "${job[attacker]}" 2>/dev/null
ends "nothing wrong, seed $seed" attacker 60 0
echo "# $rounds rounds, $unloaded unloads; the slowest deletion took $slowest ms"
check "there was more than one round under attack" [ "$rounds" -ge 2 ]
check "deleting takes no longer than the drain" [ "$slowest" -lt $((5000 * KD_SLOW)) ]
honest_use "afterwards"
finish_pair
