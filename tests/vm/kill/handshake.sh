#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# The peer's machine loses its power at moments that wander through the
# handshake. Adding ends in the time that was set, and leaves nothing.
#
#   a: channel c0  --->  b: listener store
#
# machines: 2
# full
# kills
# timeout: 400
# shellcheck source-path=SCRIPTDIR disable=SC2119,SC2317
. "$(dirname "$0")/../lib.sh"

if [ "$MACHINE" = b ]; then
	listen
	meet listening
	sleep inf
fi
rounds=8
for round in $(seq "$rounds"); do
	# A machine that was started again begins its script again.
	[ "$round" = 1 ] || barrier "$scenario.begin" 120 || give_up "b does not come back"
	meet listening
	start add kdirect channel add c0 to "$PEER:$port" queues 8 connect-timeout "$(slow 2s)" \
		keep-alive "$(slow 500ms)" drain-timeout "$(slow 500ms)"
	wander $((round * 50))
	if [ "$round" = "$rounds" ]; then
		need "round $round: b is killed" machine kill b
	else
		need "round $round: b is killed" machine restart b
	fi
	timeout $((15 * patience)) tail --pid="${job[add]}" -f /dev/null || not_ok "round $round: add ends"
	wait "${job[add]}" 2>/dev/null
	check "round $round: it is noticed" wait_for 15 is_state c0 gone dead
	kdirect channel del c0 >/dev/null 2>&1
	check "round $round: nothing is left" wait_for 10 no_channels
	echo "# round $round: $(cat "$work/add")"
done
no_leftovers
finish
