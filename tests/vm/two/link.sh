#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# The link is cut: under load, while nothing moves, while a channel is deleted,
# and at moments that wander through the handshake. Everything ends in the time
# that was set, and works again when the link does.
#
#   a: channel c0  --->  b: listener store, channel store.0
#
# machines: 2
# timeout: 240
# shellcheck source-path=SCRIPTDIR disable=SC2119,SC2317
. "$(dirname "$0")/../lib.sh"

listener=store
connect()
{
	meet "connect.$1"
	if [ "$MACHINE" = a ]; then
		node=/dev/kdirect/c0 out=1 in=2
		need "$1: connects" kdirect channel add c0 to "$PEER:$port" queues 2 \
			keep-alive "$(slow 500ms)" drain-timeout "$(slow 1s)" connect-timeout "$(slow 5s)"
	else
		node=/dev/kdirect/$listener.0 out=2 in=1
		need "$1: accepts" wait_for 30 test -c "$node"
		check "$1: keep-alive" kdirect channel set "$listener.0" keep-alive "$(slow 500ms)" \
			drain-timeout "$(slow 1s)"
	fi
	meet "connected.$1"
}

# cut NAME, heal NAME: by a, seen by both
cut_link()
{
	meet "cut.$1"
	[ "$MACHINE" = b ] || need "$1: the link is cut" link cut
	meet "is-cut.$1"
}

heal_link()
{
	meet "heal.$1"
	[ "$MACHINE" = b ] || need "$1: the link is whole" link heal
	meet "is-whole.$1"
}

[ "$MACHINE" = a ] || listen

connect load
start receive messages receive "$node" --count 0 --seed "$in"
need "load: the receiver has begun" wait_for 20 opened "${node##*/}" 1
start send messages send "$node" --count 0 --seed "$out"
# On a slow and busy machine rxe of 6.1 may stop a QP before (Documentation/testing.md): the
# channel ends then, and all that follows is as true.
moves()
{
	reached "${node##*/}" rx_messages 3 ||
		{ [ "$KD_SLOW" != 1 ] && is_state "${node##*/}" gone dead; }
}
need "load: traffic flows" wait_for 30 moves
cut_link load
ends "load: the sender ends" send 20 0
ends "load: the receiver ends" receive 20 0
matches "load: the sender is told" "$(cat "$work/send")" 'then EPIPE'
matches "load: the receiver is told" "$(cat "$work/receive")" 'then E(TIMEDOUT|IO|CONNRESET)'
if [ "$MACHINE" = a ]; then
	# rxe of 6.1 does a REG_MR again when it repeats what was not acknowledged.
	matches "load: the cause" "$(cause c0)" \
		'no sign of life|has not completed|(SEND|READ|REG_MR) failed|lost'
	check "load: the channel goes over a cut link" timeout $((15 * KD_SLOW)) kdirect channel del c0
fi
need "load: nothing is left" wait_for 20 no_channels
heal_link load

connect idle
cut_link idle
if [ "$MACHINE" = a ]; then
	need "idle: the end is noticed" wait_for 15 is_state c0 dead
	matches "idle: the cause" "$(cause c0)" 'no sign of life|has not completed|SEND failed'
	check "idle: the channel goes" timeout $((15 * KD_SLOW)) kdirect channel del c0
fi
need "idle: nothing is left" wait_for 20 no_channels
heal_link idle

connect delete
cut_link delete
begun=$(now_ms)
if [ "$MACHINE" = a ]; then
	check "delete: over a cut link" timeout $((20 * KD_SLOW)) kdirect channel del c0
	in_time "delete: within the drain timeout" "$begun" 10000
fi
need "delete: nothing is left" wait_for 20 no_channels
heal_link delete

# The neighbour is known, and does not answer: with iWARP it is TCP that waits.
cut_link unanswered
if [ "$MACHINE" = a ]; then
	begun=$(now_ms)
	expect_error 'no answer|not connected within|RDMA path' kdirect channel add c0 to "$PEER:$port" \
		queues 4 connect-timeout "$(slow 2s)" drain-timeout "$(slow 500ms)"
	in_time "unanswered: adding ends" "$begun" 6000
	delete_connecting "unanswered: a connecting channel is deleted" to "$PEER:$port" \
		queues 4 connect-timeout 60s
	in_time "unanswered: within the drain timeout" "$begun" 5000
fi
heal_link unanswered

rounds=$(few 4)
[ "$KD_FULL" = 0 ] || rounds=$(few 20)
for round in $(seq "$rounds"); do
	meet "handshake.$round"
	if [ "$MACHINE" = a ]; then
		begun=$(now_ms)
		start add kdirect channel add c0 to "$PEER:$port" queues 4 connect-timeout "$(slow 2s)" \
			keep-alive "$(slow 500ms)" drain-timeout "$(slow 500ms)"
		wander $((round * 70 % 300 + 100))
		link cut
		timeout $((15 * patience)) tail --pid="${job[add]}" -f /dev/null || not_ok "handshake $round: add ends"
		wait "${job[add]}" 2>/dev/null
		wait_for 15 is_state c0 gone dead || not_ok "handshake $round: it is noticed" "$(state c0)"
		kdirect channel del c0 >/dev/null 2>&1
		echo "# round $round: $(cat "$work/add")"
	fi
	# The accepted end knows no interval of the initiator's: its own default counts.
	for name in $(kdirect channel | sed -n 's/^channel \(store[^ ]*\).*/\1/p'); do
		kdirect channel set "$name" keep-alive "$(slow 500ms)" drain-timeout "$(slow 500ms)" 2>/dev/null
	done
	need "handshake $round: nothing is left" wait_for 40 no_channels
	meet "handshake.$round.done" 60
	[ "$MACHINE" = b ] || link heal
done

# What was on its way when the link was cut may still bring up half a channel; its
# name must not be taken for that of the last one.
if [ "$MACHINE" = b ]; then
	kdirect listener del "$listener"
	listener=last
	kdirect listener add "$listener" addr "$ADDR" port "$port"
fi
connect last
if [ "$MACHINE" = a ]; then
	printf 'still works' >"$node"
	meet said
	check "last: the channel goes" kdirect channel del c0
else
	is "last: carries" "$(head -c 11 "$node")" 'still works'
	meet said
fi
need "last: nothing is left" wait_for 40 no_channels
[ "$MACHINE" = a ] || kdirect listener del "$listener"
no_leftovers
finish
