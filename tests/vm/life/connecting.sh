#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# Connecting is broken off: by SIGKILL of the tool, by deleting the channel, by
# deleting the listener, by unloading the module, at moments that wander through
# the handshake. Nothing is left of any of them.
# timeout: 400
# shellcheck source-path=SCRIPTDIR disable=SC2119,SC2317
. "$(dirname "$0")/../lib.sh"

rounds=$(few 50)
[ "$KD_FULL" = 0 ] || rounds=$(few 1000)

need "a listener" kdirect listener add store addr "$PEER" port "$port"
before=$(rdma resource show)
for round in $(seq "$rounds"); do
	kdirect channel add c0 to "$PEER:$port" queues 4 >/dev/null 2>&1 &
	pid=$!
	# From before the request until after the channel is live.
	case $((round % 5)) in
	0) ;;
	1) wander 10 ;;
	2) wait_for 1 kdirect channel show c0 ;;
	3) wander $((round % 9 * 10 + 10)) ;;
	4) wander $((round % 3 * 100 + 100)) ;;
	esac
	kill -KILL "$pid" 2>/dev/null
	wait "$pid" 2>/dev/null
	# Once it is live it stays, by contract.
	kdirect channel del c0 >/dev/null 2>&1
	wait_for 20 no_channels || give_up "round $round: a channel is left"
done
ok "$rounds tools were killed while connecting"
unchanged()
{
	[ "$(rdma resource show)" = "$before" ]
}
check "the RDMA objects are the same" wait_for 10 unchanged

# To a peer that does not answer: nobody has that address.
for round in 1 2 3; do
	kdirect channel add c0 to "${ADDR%.*}.88:$port" >/dev/null 2>&1 &
	pid=$!
	wait_for 2 is_state c0 connecting
	kill -KILL "$pid" 2>/dev/null
	wait "$pid" 2>/dev/null
	check "a killed tool takes its channel with it" wait_for 10 gone c0
	delete_connecting "a connecting channel is deleted" to "${ADDR%.*}.88:$port"
	timeout -s TERM 1 kdirect channel add c0 to "${ADDR%.*}.88:$port" >/dev/null 2>&1
	check "SIGTERM does that, too" wait_for 10 gone c0
done
is "none is left" "$(kdirect channel)" ""

rounds=$(few 15)
[ "$rounds" -ge 6 ] || rounds=6 # twice each kind
[ "$KD_FULL" = 0 ] || rounds=$(few 100)
for round in $(seq "$rounds"); do
	kdirect channel add c0 to "$PEER:$port" queues 4 nowait || give_up "round $round: add"
	[ $((round % 3)) = 0 ] || wander $((round % 9 * 10 + 10))
	case $((round % 3)) in
	2) kdirect channel del store.0 nowait >/dev/null 2>&1 ;;
	esac
	kdirect channel del c0 >/dev/null 2>&1
	wait_for 20 no_channels || give_up "round $round: a channel is left"
done
ok "$rounds channels were deleted while connecting"

for round in $(seq $((rounds / 3))); do
	kdirect channel add c0 to "$PEER:$port" queues 4 nowait || give_up "round $round: add"
	[ $((round % 3)) = 0 ] || wander $((round % 9 * 10 + 10))
	kdirect listener del store || give_up "round $round: the listener stays"
	wait_for 20 is_state c0 live gone || give_up "round $round: c0 hangs"
	kdirect channel del c0 >/dev/null 2>&1
	wait_for 20 no_channels || give_up "round $round: a channel is left"
	kdirect listener add store addr "$PEER" port "$port" || give_up "round $round: listen again"
done
ok "listeners were deleted while a channel connected"

for round in $(seq $((rounds / 3))); do
	for n in 0 1 2; do
		kdirect channel add "c$n" to "$PEER:$port" queues 2 nowait || give_up "round $round: add"
	done
	[ $((round % 3)) = 0 ] || wander $((round % 9 * 10 + 10))
	rmmod kdirect || give_up "round $round: the module stays"
	no_objects || give_up "round $round: objects are left"
	modprobe kdirect
	kdirect listener add store addr "$PEER" port "$port" || give_up "round $round: listen again"
done
ok "the module was unloaded while channels connected"
kdirect listener del store
no_leftovers
finish
