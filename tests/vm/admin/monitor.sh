#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# What an administrator sees: events in their order, counters that add up, pings
# both ways, ownership of nodes.
# timeout: 100
# shellcheck source-path=SCRIPTDIR disable=SC2119,SC2317
. "$(dirname "$0")/../lib.sh"

start monitor kdirect -d monitor
need "the monitor is ready" wait_for 10 grep -q monitoring "$work/monitor"
pair queues 1 poll-queues 1

# 40 small messages of 100 bytes, 3 large ones of 50,000, read with one more.
start receive messages receive /dev/kdirect/store.0 --count 40 --min 100 --max 100
check "40 messages" messages send /dev/kdirect/c0 --count 40 --min 100 --max 100
ends "they arrive" receive 20 0
start receive messages receive /dev/kdirect/store.0 --count 3 --min 50000 --max 50000
check "3 large ones" messages send /dev/kdirect/c0 --count 3 --min 50000 --max 50000
ends "they arrive" receive 20 0
is "messages sent" "$(counted c0 tx_messages)" 43
is "messages received" "$(counted store.0 rx_messages)" 43
is "bytes sent" "$(counted c0 tx_bytes)" 154000
is "bytes received" "$(counted store.0 rx_bytes)" 154000
is "by rendezvous" "$(counted c0 tx_rendezvous)/$(counted store.0 rx_rendezvous)" 3/3
is "from the program's own pages" "$(counted c0 tx_pinned_bytes)" 150000
is "nothing the other way" "$(counted c0 rx_messages)/$(counted store.0 tx_messages)" 0/0

check "pings" kdirect ping c0 count 50
check "polled pings" kdirect ping c0 count 50 poll
check "pings from the accepted end" kdirect ping store.0 count 20 size 16K
is "pings are counted" "$(counted store.0 pings)/$(counted c0 pings)" 100/20
matches "polled completions" "$(kdirect -d stats c0)" 'kind poll .*cqe-polled [1-9]'
expect_error 'EMSGSIZE|size' kdirect ping c0 count 1 size 16385
expect_error 'size' kdirect ping c0 count 1 size 0
expect_error 'no channel|ENOENT|No such' kdirect ping nothing count 1
matches "mode of the node" "$(stat -c %a /dev/kdirect/c0)" '^(600|660)$'

# The shipped rule, as udev reads it.
if command -v udevadm >/dev/null; then
	mkdir -p /etc/udev/rules.d
	cp "$KDIRECT_TOP/scripts/60-kdirect.rules" /etc/udev/rules.d/
	getent group kdirect >/dev/null || echo 'kdirect:x:987:' >>/etc/group
	path=$(readlink -f "/sys/dev/char/$(stat -c '%Hr:%Lr' /dev/kdirect/c0)" 2>/dev/null ||
		find /sys/devices -name c0 -path '*kdirect*' | head -n 1)
	output=$(udevadm test --action=add "$path" 2>&1)
	matches "udev gives the node to the group" "$output" 'GROUP[ =]+987|gid 987|0660|mode=0?660'
fi

check "the channel goes" kdirect channel del c0
need "both ends go" wait_for 10 no_channels
kdirect listener del store
seen()
{
	grep -q 'listener store removed' "$work/monitor"
}
need "the monitor saw all" wait_for 10 seen
kill -TERM "${job[monitor]}"
ends "the monitor ends" monitor 10 143
sed 's/^/# /' "$work/monitor"
for event in 'listener store added' 'channel c0 added' 'channel c0 new -> connecting' \
	'channel c0 connecting -> live' 'channel store.0 connecting -> live' \
	'channel c0 live -> deleting' 'channel c0 deleting -> dead' 'channel c0 removed' \
	'channel store.0 removed' 'listener store removed'; do
	matches "event: $event" "$(cat "$work/monitor")" "$event"
done
states=$(grep -o 'channel c0 .*' "$work/monitor" | sed 's/ error.*//' | tr '\n' ',')
is "in this order" "$states" "channel c0 added,channel c0 new -> connecting,channel c0 connecting -> live,channel c0 live -> deleting,channel c0 deleting -> dead,channel c0 removed,"
no_leftovers
finish
