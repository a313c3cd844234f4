#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# Connections that cannot be: no listener, no RDMA device, no route, not
# allowed, full. And some that can: IPv6, a chosen source, the channel of a
# machine to itself on one address.
# timeout: 150
# shellcheck source-path=SCRIPTDIR disable=SC2119,SC2317
. "$(dirname "$0")/../lib.sh"

add()
{
	kdirect channel add c0 to "$@" connect-timeout "$(slow 5s)"
}

works()
{
	local text=$1

	shift
	check "$text: connects" kdirect channel add "$@" || return
	need "$text: other end" wait_for 10 test -c /dev/kdirect/store.0
	echo "hello over there" >"/dev/kdirect/$1"
	is "$text: carries" "$(head -n 1 /dev/kdirect/store.0)" "hello over there"
	check "$text: goes" kdirect channel del "$1"
	need "$text: the other end goes" wait_for 10 gone store.0
}

expect_error 'nothing listens' add "$PEER:$port"
expect_error 'nothing listens' add "[$PEER6]:$port"
expect_error 'ECONNREFUSED|refused' add "$ADDR:$port"
# Addresses without an RDMA device, here or there.
ip link add plain0 type dummy && ip addr add 10.99.0.1/24 dev plain0 && ip link set plain0 up
expect_error 'RDMA|EHOSTUNREACH|ENODEV|ETIMEDOUT' add "10.99.0.1:$port"
expect_error 'RDMA|EHOSTUNREACH|ENODEV|ETIMEDOUT' add "10.99.0.2:$port"
expect_error 'RDMA|ENODEV|EADDRNOTAVAIL|EHOSTUNREACH' add "127.0.0.1:$port"
expect_error 'RDMA|ENETUNREACH|EHOSTUNREACH|ENODEV' add "192.0.2.1:$port"
expect_error 'RDMA|ENETUNREACH|EHOSTUNREACH|ENODEV|ETIMEDOUT' add "[2001:db8::1]:$port"
expect_error 'addr' add "0.0.0.0:$port"
expect_error 'addr|RDMA|ENODEV' add "224.0.0.1:$port"
expect_error 'RDMA|ENETUNREACH|EHOSTUNREACH|ENODEV|addr' add "255.255.255.255:$port"
expect_error 'from|source|addr|RDMA|EADDRNOTAVAIL' add "$PEER:$port" from 192.0.2.7
expect_error 'source|bytes|IPv6' add "$PEER:$port" from "$ADDR6"
# The neighbour does not answer: an address of the subnet that nobody has.
expect_error 'RDMA|EHOSTUNREACH|ETIMEDOUT|no answer' add "${ADDR%.*}.77:$port"
for address in 10.99.0.1 192.0.2.1 2001:db8::1; do
	expect_error 'RDMA|EADDRNOTAVAIL|not of this host|ENODEV' \
		kdirect listener add store addr "$address" port "$port"
done
is "none of them is left" "$(kdirect channel; kdirect listener)" ""

listen
works "a machine to itself, one address" c0 to "$ADDR:$port"
works "a chosen source" c0 to "$ADDR:$port" from "$PEER"
# The port has a listener at another address of that host: rdma_cm itself refuses.
expect_error 'nothing listens|without a kdirect reason' add "$PEER:$port"
kdirect listener del store
check "listens on IPv6" kdirect listener add store addr "$PEER6" port "$port"
works "IPv6" c0 to "[$PEER6]:$port"
works "IPv6 with a source" c0 to "[$PEER6]:$port" from "$ADDR6"
expect_error 'nothing listens|without a kdirect reason' add "$PEER:$port"
kdirect listener del store
check "listens on all addresses" kdirect listener add store addr 0.0.0.0 port "$port"
works "any address" c0 to "$PEER:$port"
kdirect listener del store

# allow lists
check "allows one prefix" kdirect listener add store addr "$PEER" port "$port" allow 192.0.2.0/24
expect_error 'allow list' add "$PEER:$port"
check "another list" kdirect listener set store allow 192.0.2.1 allow "${ADDR%.*}.0/24"
works "an allowed address" c0 to "$PEER:$port"
check "a list of the other family" kdirect listener set store allow fd00::/8
expect_error 'allow list' add "$PEER:$port"
check "no list" kdirect listener set store allow none
works "everyone" c0 to "$PEER:$port"
check "one address only" kdirect listener set store allow "$ADDR"
works "that address" c0 to "$PEER:$port" from "$ADDR"
expect_error 'allow list' add "$PEER:$port" from "$PEER"
check "no list again" kdirect listener set store allow none

# max-channels
check "at most two channels" kdirect listener set store max-channels 2
check "the first" kdirect channel add m0 to "$PEER:$port"
check "the second" kdirect channel add m1 to "$PEER:$port"
expect_error 'maximum of 2 channels' add "$PEER:$port"
check "one goes" kdirect channel del m0
need "at both ends" wait_for 10 gone store.0
check "the lowest number is given again" kdirect channel add m2 to "$PEER:$port"
need "as store.0" wait_for 10 test -c /dev/kdirect/store.0
matches "the listener has counted" "$(kdirect -d listener show store)" 'rejected [1-9]'
# Deleting the listener leaves its channels.
check "the listener goes" kdirect listener del store
is "its channels stay" "$(state store.0)$(state m2)" "livelive"
expect_error 'nothing listens' add "$PEER:$port"
for name in m1 m2; do
	check "$name goes" kdirect channel del "$name"
done
need "all ends go" wait_for 10 no_channels
no_leftovers
finish
