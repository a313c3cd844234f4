#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# What a process sees that holds a node open when its channel ends: deleted at
# this end, closed by the peer, the device gone. The module stays until it closes.
#
#   c0  --->  listener store, channel store.0
#
# timeout: 150
# shellcheck source-path=SCRIPTDIR disable=SC2119,SC2317
. "$(dirname "$0")/../lib.sh"

# holders: one at each end, with one unread message at each
holders()
{
	mkfifo "$work/stop" 2>/dev/null
	exec 7<>"$work/stop"
	for node in c0 store.0; do
		hold "/dev/kdirect/$node" >"$work/hold-$node" 2>&1 <"$work/stop" 7<&- &
		job[hold-$node]=$!
		need "$node is open" wait_for 10 grep -q open "$work/hold-$node"
	done
	printf 'to store' >/dev/kdirect/c0
	printf 'to c0' >/dev/kdirect/store.0
	need "the messages have arrived" wait_for 10 arrived
}

arrived()
{
	[ "$(kdirect -j stats | grep -o '"rx_messages":1' | wc -l)" = 2 ]
}

# saw NODE WORD...: what its holder saw, in order
saw()
{
	local node=$1

	shift
	wait_for 20 grep -q sigpipe "$work/hold-$node" ||
		not_ok "the holder of $node sees the end" "$(cat "$work/hold-$node")"
	is "what the holder of $node saw" "$(tr '\n' ',' <"$work/hold-$node")" "$(printf '%s,' "$@")"
}

release()
{
	exec 7>&-
	ends "the holder of c0 ends" hold-c0 10 0
	ends "the holder of store.0 ends" hold-store.0 10 0
	rm -f "$work/stop"
}

pair
holders
check "c0 is deleted under its holder" kdirect channel del c0
saw c0 open "poll HUP ERR IN OUT" "read ENODEV" "read ENODEV" "write EPIPE" "write EPIPE" \
	"ping EPIPE" "info 0" "sigpipe 0"
# The peer closed in order: what had arrived comes first, then the end.
saw store.0 open "poll HUP IN OUT" "had 8" "read 0" "read 0" "write EPIPE" "write EPIPE" \
	"ping EPIPE" "info 0" "sigpipe 0"
need "no channel is left" wait_for 20 no_channels
only_listener()
{
	[ "$(rdma_objects | wc -l)" -le 1 ]
}
check "no object is left but the listener's" wait_for 10 only_listener
refute "the module is in use" rmmod kdirect
refute "the node is gone" test -e /dev/kdirect/c0
# The names are free, though the old ones are still open.
check "another channel of that name" kdirect channel add c0 to "$PEER:$port"
check "goes again" kdirect channel del c0
release
need "no channel is left" wait_for 20 no_channels
kdirect listener del store
check "the module can go" wait_for 10 rmmod kdirect
modprobe kdirect

pair
holders
check "the accepted end is deleted" kdirect channel del store.0
saw store.0 open "poll HUP ERR IN OUT" "read ENODEV" "read ENODEV" "write EPIPE" "write EPIPE" \
	"ping EPIPE" "info 0" "sigpipe 0"
saw c0 open "poll HUP IN OUT" "had 5" "read 0" "read 0" "write EPIPE" "write EPIPE" \
	"ping EPIPE" "info 0" "sigpipe 0"
release
is "what was added stays to be looked at" "$(state c0)" dead
check "and goes when it is told to" kdirect channel del c0
need "no channel is left" wait_for 20 no_channels

# Blocked calls end, too.
check "a channel" kdirect channel add c0 to "$PEER:$port" depth 4
need "its other end" wait_for 10 test -c /dev/kdirect/store.0
start reader messages receive /dev/kdirect/c0 --count 0 --min 1048576
need "the reader has begun" wait_for 20 opened c0 1
start large messages send /dev/kdirect/store.0 --count 0 --min 1048576
need "the large writer has begun" wait_for 20 opened store.0 1
start writer messages send /dev/kdirect/c0 --count 0 --max 100
start hipri messages receive /dev/kdirect/store.0 --count 1 --epoll
# One message of the writer is read; it blocks when the credits of the others are used up.
blocked() { kdirect -j stats c0 | grep -q '"credit_waits":[1-9]'; }
need "the writer is blocked" wait_for 20 blocked
check "the channel is deleted under blocked calls" kdirect channel del c0
ends "the reader ends" reader 20 0
ends "the writer ends" writer 20 0
ends "the large writer ends" large 20 0
matches "the reader's end" "$(cat "$work/reader")" 'then ENODEV'
matches "the writer's end" "$(cat "$work/writer")" 'then EPIPE'
matches "the large writer's end" "$(cat "$work/large")" 'then EPIPE'
kill "${job[hipri]}" 2>/dev/null
kdirect listener del store
need "no channel is left" wait_for 20 no_channels
no_leftovers
finish
