#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# Hostile system calls on a mapping while it, its export, and its channel are deleted and
# come again. Calls may now find the end of it, with a documented errno; each descriptor
# still has one completion, and deleting takes its usual time.
#
#   c0, mapping m0  --->  listener store, export mem0
#
# timeout: 300
# shellcheck source-path=SCRIPTDIR disable=SC2119,SC2154,SC2317
. "$(dirname "$0")/../lib.sh"
. "$(dirname "$0")/../hostile.sh"

seconds=$(($(size 12 60) * KD_SLOW * KD_FEW))
seed=${KD_SEED:-1}
pinned=$(pages_pinned)

# Whatever of it is not there
mapped()
{
	[ -n "$(state c0)" ] || add_channel c0 to "$PEER:$port" queues 1 poll-queues 1 depth 8 \
		drain-timeout 500ms || return
	kdirect export show mem0 >/dev/null 2>&1 ||
		kdirect export add mem0 listener store size "$export_size" || return
	kdirect map show m0 >/dev/null 2>&1 || kdirect map add m0 channel c0 export mem0
}

need "a listener" kdirect listener add store addr "$PEER" port "$port"
need "a mapping" mapped
slowest=0 rounds=0
# The limit of the attack is a safety net: it ends after that time and three rounds.
start attacker hostile_calls --ending --seed "$seed" --count 1000000 --seconds $((200 * KD_SLOW)) \
	--patience $((30 * KD_SLOW)) /dev/kdirect/m0
need "the attack has begun" wait_for 20 grep -q attacking "$work/attacker"
deadline=$(($(now_ms) + seconds * 1000))
while [ "$rounds" -lt 3 ] || [ "$(now_ms)" -lt "$deadline" ]; do
	wander $((rounds * 37 % 300))
	begun=$(now_ms)
	case $((rounds % 3)) in
	0)	kdirect map del m0 ;;
	1)	kdirect export del mem0 && kdirect map del m0 ;;
	2)	kdirect channel del c0 && kdirect map del m0 ;;
	esac >"$work/deleting" 2>&1 || give_up "it can be deleted" "$(cat "$work/deleting")"
	took=$(($(now_ms) - begun))
	[ "$took" -le "$slowest" ] || slowest=$took
	[ $((rounds % 3)) != 2 ] || wait_for 20 no_channels || give_up "both ends go"
	mapped >"$work/mapping" 2>&1 || give_up "it can be mapped again" "$(cat "$work/mapping")"
	kill -0 "${job[attacker]}" 2>/dev/null || break
	rounds=$((rounds + 1))
done
kill -TERM "${job[attacker]}" 2>/dev/null
ends "nothing wrong, seed $seed" attacker 60 0
echo "# $rounds rounds; the slowest deletion took $slowest ms"
check "there were rounds of each kind under attack" [ "$rounds" -ge 3 ]
check "deleting does not wait for the attack" [ "$slowest" -lt $((15000 * KD_SLOW)) ]
check "no fixed buffer is left" wait_for 10 no_fixed c0
map_use "afterwards"
check "the mapping is deleted" kdirect map del m0
check "and the export" kdirect export del mem0
check "no page is pinned" wait_for 10 pinned_are "$pinned"
finish_pair
