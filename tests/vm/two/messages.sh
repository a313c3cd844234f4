#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# 1,000 messages of random sizes from 1 byte to 1 MiB in each direction at once;
# then the module is unloaded, and nothing is left.
#
#   a: channel c0  --->  b: listener store, channel store.0
#
# machines: 2
# timeout: 120
# shellcheck source-path=SCRIPTDIR disable=SC2119,SC2317
. "$(dirname "$0")/../lib.sh"

case $MACHINE in
a)	node=/dev/kdirect/c0 out=1 in=2
	meet listening
	need "connects" kdirect channel add c0 to "$PEER:$port" queues 2 ;;
b)	node=/dev/kdirect/store.0 out=2 in=1
	listen
	meet listening ;;
esac
need "has its node" wait_for 20 test -c "$node"
meet connected

start receive messages receive "$node" --seed "$in" --count "$(few 1000)"
start send messages send "$node" --seed "$out" --count "$(few 1000)"
ends "sends messages" send 60 0
ends "receives messages" receive 60 0
sed 's/^/# /' "$work/send" "$work/receive"
meet transferred 120

if [ "$MACHINE" = a ]; then
	check "deletes the channel" kdirect channel del c0
fi
need "the channel goes at both ends" wait_for 20 no_channels
if [ "$MACHINE" = b ]; then
	kdirect listener del store
fi
check "unloads" rmmod kdirect
no_leftovers
finish
