#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# The RDMA device goes away under load and comes back, by `rdma link del` and by
# removing the network device below it. Channels end with a cause, listeners
# wait for their address.
# timeout: 150
# shellcheck source-path=SCRIPTDIR disable=SC2119,SC2317
. "$(dirname "$0")/../lib.sh"

connected()
{
	kdirect channel add c0 to "$PEER:$port" queues 1 poll-queues 1
}

no_device()
{
	[ -z "$(kdirect device)" ]
}

device()
{
	kdirect device | grep -q "$RXE"
}

del_netdev()
{
	ip link del "$NETDEV"
}

add_netdev()
{
	ip link add "$NETDEV" address 52:54:00:77:00:01 type dummy
	ip link set "$NETDEV" mtu 9000 up
	for address in "$ADDR/24" "$PEER/24"; do
		ip addr add "$address" dev "$NETDEV"
	done
	add_link
}

# The first cause counts, and which one comes first is a race: the removal, the other
# end, which the removal ended a moment before; and where the network device goes
# first, the RDMA device that can no longer send.
declare -A causes
causes[link]='device .* was removed|the peer closed|the connection was lost'
causes[netdev]="${causes[link]}|(SEND|READ) failed: (local QP operation|transport retry)"

need "a listener" kdirect listener add store addr "$PEER" port "$port"
rounds=2
[ "$KD_FULL" = 0 ] || rounds=$(few 15)
for round in $(seq "$rounds"); do
	what="link"
	[ $((round % 2)) != 0 ] || what="netdev"
	need "round $round: connects" wait_for 20 connected
	need "its other end" wait_for 10 test -c /dev/kdirect/store.0
	start send1 messages send /dev/kdirect/c0 --count 0 --seed 1
	start recv1 messages receive /dev/kdirect/store.0 --count 0 --seed 1
	start send2 messages send /dev/kdirect/store.0 --count 0 --seed 2
	start recv2 messages receive /dev/kdirect/c0 --count 0 --seed 2
	need "all have begun" wait_for 20 opened c0 2
	need "at the other end, too" wait_for 20 opened store.0 2
	need "traffic flows" wait_for 20 reached c0 rx_messages 3
	# Another one that is only connecting.
	kdirect channel add late to "${ADDR%.*}.88:$port" nowait
	begun=$(now_ms)
	need "round $round: the $what goes" timeout $((60 * KD_SLOW)) bash -c "$(declare -f); del_$what"
	in_time "in time" "$begun" 20000
	need "the device is gone from kdirect, too" wait_for 10 no_device
	for name in send1 recv1 send2 recv2; do
		ends "round $round: $name ends" "$name" 20 0
	done
	matches "the cause is told" "$(cause c0)" "${causes[$what]}"
	matches "an end sees it" "$(cat "$work/recv2")" 'then E(NODEV|CONNRESET|IO)'
	check "no object is left" wait_for 10 no_objects
	kdirect channel del c0 >/dev/null 2>&1
	need "no channel is left" wait_for 20 no_channels
	is "the listener is still there" "$(kdirect listener | wc -l)" 1
	need "round $round: the $what comes back" "add_$what"
	need "so does the device" wait_for 20 device
done
need "the listener listens again" wait_for 20 connected
check "the channel goes" kdirect channel del c0
need "both ends go" wait_for 10 no_channels
# Without a device nothing can be added, and everything can go.
del_link
need "no device" wait_for 10 no_device
expect_error 'RDMA|ENODEV|EHOSTUNREACH' kdirect channel add c0 to "$PEER:$port"
check "the waiting listener goes" kdirect listener del store
expect_error 'RDMA|ENODEV|EADDRNOTAVAIL' kdirect listener add store addr "$PEER" port "$port"
add_link
need "a device" wait_for 10 device
no_leftovers
finish
