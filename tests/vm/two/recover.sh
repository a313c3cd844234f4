#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# A session outlives its connection, whatever breaks it: messages in both directions go on,
# each once and in order, and what fio writes to a mapping is what it reads. No program sees
# an error.
#
#   a: channel c0, mapping m0 of mem0  --->  b: listener store, channel store.0, export mem0
#
# machines: 2
# timeout: 420
# shellcheck source-path=SCRIPTDIR disable=SC2119,SC2317
. "$(dirname "$0")/../lib.sh"

node=/dev/kdirect/c0 out=1 in=2
if [ "$MACHINE" = b ]; then
	node=/dev/kdirect/store.0 out=2 in=1
	listen
	need "exports" kdirect export add mem0 listener store size 8M
fi
meet offered
delay=$(slow 1s)
[ "$MACHINE" = b ] || need "connects" add_channel c0 to "$PEER:$port" queues 2 \
	loss-timeout "$(slow 120s)" reconnect-delay "$delay" reconnect-max-delay "$(slow 2s)" \
	keep-alive "$(slow 500ms)" drain-timeout "$(slow 1s)" connect-timeout "$(slow 10s)"
need "both ends are there" wait_for 30 test -c "$node"
[ "$MACHINE" = a ] || kdirect channel set store.0 keep-alive "$(slow 500ms)" drain-timeout "$(slow 1s)"
start receive messages receive "$node" --count 0 --seed "$in" --max 100000
start send messages send "$node" --count 0 --seed "$out" --max 100000 --until "$work/stop"
if [ "$MACHINE" = a ]; then
	need "maps" kdirect map add m0 channel c0 export mem0
	start fio sh -c "until [ -e $work/stop ]; do fio --name=v --filename=/dev/kdirect/m0 \
		--size=4M --allow_file_create=0 --ioengine=libaio --iodepth=4 --bsrange=4k-128k \
		--rw=randwrite --verify=crc32c --do_verify=1 --verify_fatal=1 --minimal ||
		exit 1; done"
fi
need "traffic flows" wait_for 40 reached "${node##*/}" rx_messages 5
meet flows

outages()
{
	kdirect -j -d stats "${node##*/}" | grep -o '"outages":[0-9]*' | cut -d: -f2
}

broken()
{
	[ "$(outages)" -gt "$before" ]
}

# over NAME: the channel was broken, is live again at both ends, and messages move
over()
{
	need "$1: it breaks" wait_for 30 broken
	need "$1: it is live again" wait_for 60 is_state "${node##*/}" live
	need "$1: traffic flows" wait_for 60 reached "${node##*/}" rx_messages \
		$(($(counted "${node##*/}" rx_messages) + 3))
	before=$(outages)
	meet "${1// /-}.over" 120
}

# cut_for NAME TIME: the link, for so long
cut_for()
{
	meet "${1// /-}"
	if [ "$MACHINE" = a ]; then
		need "$1: the link is cut" link cut
		wander "$2"
		need "$1: the link is whole" link heal
	fi
	over "$1"
}

before=0
cut_for "cut for 3 s" 3000
cut_for "cut for 8 s" 8000

meet removal
if [ "$MACHINE" = b ]; then
	need "b's device goes" del_link
	wander 1000
	need "b's device comes back" add_link
fi
over "the target device removed"

meet removal2
if [ "$MACHINE" = a ]; then
	need "a's device goes" del_link
	wander 1000
	need "a's device comes back" add_link
fi
over "the initiator device removed"

meet listener
[ "$MACHINE" = a ] || need "the listener goes" kdirect listener del store
meet unlistened
[ "$MACHINE" = b ] || link cut
meet cut-off
need "without a listener: it breaks" wait_for 30 broken
meet noticed
[ "$MACHINE" = b ] || link heal
wander 2000
[ "$MACHINE" = a ] || need "the listener is back" kdirect listener add store addr "$ADDR" port "$port"
over "removal of the listener"

touch "$work/stop"
ends "sends to the end" send 60 0
if [ "$MACHINE" = a ]; then
	ends "fio has verified all" fio 120 0
	matches "the last cause is shown" "$(kdirect -d channel show c0)" 'last-cause'
	echo "# $(kdirect -d stats c0 | grep -o 'outages.*')"
fi
meet sent 120
if [ "$MACHINE" = a ]; then
	check "the mapping goes" kdirect map del m0
	check "the channel goes" kdirect channel del c0
fi
ends "receives to the end" receive 60 0
matches "all of it, in order" "$(cat "$work/receive")" 'then (the end|ENODEV)'
need "the channels go" wait_for 30 no_channels
if [ "$MACHINE" = b ]; then
	check "the export goes" kdirect export del mem0
	kdirect listener del store
fi
no_leftovers
finish
