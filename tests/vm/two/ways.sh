#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# Messages between two machines, over IPv4 and IPv6, with every way to wait,
# several threads, and over a link that loses, doubles and reorders.
#
#   a: channel c0  --->  b: listener store, channel store.0
#
# machines: 2
# timeout: 240
# shellcheck source-path=SCRIPTDIR disable=SC2119,SC2317
. "$(dirname "$0")/../lib.sh"

step=0
# both COUNT WORD...: that many messages in each direction at once
both()
{
	local count=$1 node=/dev/kdirect/store.0 out=2 in=1

	shift
	step=$((step + 1))
	[ "$MACHINE" = b ] || { node=/dev/kdirect/c0; out=1; in=2; }
	meet "step$step"
	start receive messages receive "$node" --count "$count" --seed "$in" "$@"
	start send messages send "$node" --count "$count" --seed "$out" "$@"
	ends "$label: sends $count $*" send 60 0 || give_up "cannot go on"
	ends "$label: receives $count $*" receive 60 0 || give_up "cannot go on"
	meet "step$step.done" 120
}

# connect ADDRESS WORD...
connect()
{
	local address=$1

	shift
	label="$address $*"
	meet "connect$step"
	[ "$MACHINE" = b ] || need "$label: connects" kdirect channel add c0 to "$address:$port" "$@"
	[ "$MACHINE" = a ] || need "$label: accepts" wait_for 30 test -c /dev/kdirect/store.0
}

disconnect()
{
	meet "disconnect$step"
	[ "$MACHINE" = b ] || check "$label: goes" kdirect channel del c0
	need "$label: is gone" wait_for 20 no_channels
}

if [ "$MACHINE" = b ]; then
	listen max-queues 8
	need "listens on IPv6" kdirect listener add six addr "$ADDR6" port "$port"
fi
connect "$ADDR_B" queues 1 poll-queues 1
both "$(few 100)" --epoll
both "$(few 30)" --poll
both "$(few 60)" --nowait --max 100000
both "$(few 100)" --threads 4 --max 60000
disconnect
connect "$ADDR_B" queues 0 poll-queues 2
both "$(few 50)" --max 60000
both "$(few 50)" --max 60000 --epoll
disconnect
connect "$ADDR_B" depth 1
both "$(few 60)" --max 40000
disconnect

# A bad link costs time, and nothing else.
connect "$ADDR_B" queues 2 keep-alive "$(slow 2s)"
[ "$MACHINE" = b ] || need "the link is bad" link shape loss 2 dup 2 reorder 5 delay 1
both "$(few 100)" --max 4000
[ "$MACHINE" = b ] || link clear
disconnect

# With large messages rxe of 6.1 may stop a QP for good when a packet is lost while
# an MR is registered or a READ is under way (so does ib_read_bw, with reordering).
# Then the channel must end, in time and with a cause; a message is whole or absent.
connect "$ADDR_B" queues 2 keep-alive "$(slow 1s)" drain-timeout "$(slow 1s)"
node=/dev/kdirect/c0 out=1 in=2
if [ "$MACHINE" = b ]; then
	node=/dev/kdirect/store.0 out=2 in=1
	check "$label: keep-alive" kdirect channel set store.0 keep-alive "$(slow 1s)" drain-timeout "$(slow 1s)"
fi
start send messages send "$node" --count 0 --seed "$out" --max 60000
start receive messages receive "$node" --count 0 --seed "$in" --max 60000
need "$label: both have begun" wait_for 20 opened "${node##*/}" 2
meet lossy
if [ "$MACHINE" = a ]; then
	need "the link loses packets" link shape loss 2 delay 1
	before=$(counted c0 rx_messages)
	moved()
	{
		reached c0 rx_messages $((before + 100)) || is_state c0 dead recovering
	}
	need "$label: carries 100 messages, or ends" wait_for 60 moved
	echo "# state $(state c0): $(cause c0)"
	is_state c0 live || matches "$label: ends with a cause" "$(cause c0)" '...'
	link clear
	check "$label: goes" kdirect channel del c0
fi
ends "$label: the sender ends" send 60 0
ends "$label: the receiver ends" receive 60 0
need "$label: is gone" wait_for 30 no_channels
meet lossless

if [ "$MACHINE" = b ]; then
	kdirect listener del store
	kdirect listener del six
	need "listens on IPv6" kdirect listener add store addr "$ADDR6" port "$port"
fi
connect "[$ADDR6_B]"
both "$(few 60)"
disconnect
[ "$MACHINE" = a ] || kdirect listener del store
no_leftovers
finish
