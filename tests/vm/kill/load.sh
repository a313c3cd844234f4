#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# The peer's machine loses its power under load: every call ends, with a cause,
# and nothing is left.
#
#   a: channel c0  --->  b: listener store, channel store.0
#
# machines: 2
# kills
# timeout: 120
# shellcheck source-path=SCRIPTDIR disable=SC2119,SC2317
. "$(dirname "$0")/../lib.sh"

if [ "$MACHINE" = b ]; then
	listen
	meet listening
	need "accepts" wait_for 30 test -c /dev/kdirect/store.0
	messages send /dev/kdirect/store.0 --count 0 --seed 2 &
	messages receive /dev/kdirect/store.0 --count 0 --seed 1
	sleep inf
fi
meet listening
need "connects" kdirect channel add c0 to "$PEER:$port" queues 1 poll-queues 1 \
	keep-alive "$(slow 500ms)" drain-timeout "$(slow 1s)"
start send messages send /dev/kdirect/c0 --count 0 --seed 1
start receive messages receive /dev/kdirect/c0 --count 0 --seed 2
need "both have begun" wait_for 20 opened c0 2
need "traffic flows" wait_for 30 reached c0 rx_messages 5
need "b is killed" machine kill b
begun=$(now_ms)
ends "the sender ends" send 20 0
ends "the receiver ends" receive 20 0
echo "# noticed after $(($(now_ms) - begun)) ms"
in_time "in time" "$begun" 10000
matches "the sender is told" "$(cat "$work/send")" 'then EPIPE'
matches "the receiver is told" "$(cat "$work/receive")" 'then E(TIMEDOUT|IO|CONNRESET)'
need "the channel is dead" wait_for 10 is_state c0 dead
# rxe of 6.1 does a REG_MR again when it repeats what was not acknowledged.
matches "the cause" "$(cause c0)" 'no sign of life|has not completed|(SEND|READ|REG_MR) failed|lost'
check "no object is left" wait_for 10 no_objects
check "the channel goes" kdirect channel del c0
expect_error 'no answer|RDMA|ETIMEDOUT|EHOSTUNREACH' kdirect channel add c0 to "$PEER:$port" \
	connect-timeout "$(slow 3s)"
no_leftovers
finish
