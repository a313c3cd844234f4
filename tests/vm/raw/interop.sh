#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# Raw channels and unmodified programs of librdmacm, in both roles, over IPv4 and IPv6.
#
#   rdma_client, ucmatose  --->  raw listener raw
#   raw channel r0         --->  rdma_server, ucmatose
#
# timeout: 300
# shellcheck source-path=SCRIPTDIR disable=SC2119,SC2317
. "$(dirname "$0")/../lib.sh"

# at ADDRESS: as it is written before a port
at()
{
	case $1 in
	*:*)	echo "[$1]:$port" ;;
	*)	echo "$1:$port" ;;
	esac
}

listens()
{
	rdma resource show cm_id | grep -q "LISTEN.*comm $1"
}

no_raw()
{
	! compgen -G "/dev/kdirect/raw.*" >/dev/null && no_channels
}

for address in "$PEER" "$PEER6"; do
	echo "# $address"
	for hold in '' hold; do
		# shellcheck disable=SC2086 # a word or none
		need "a raw listener $hold" kdirect listener add raw addr "$address" \
			port "$port" mode raw $hold
		start talk raw_talk /dev/kdirect/raw.0 second 1 16 ${hold:+connect}
		start peer rdma_client -s "$address" -p "$port"
		ends "rdma_client is served" peer 30 0
		ends "by kdirect, $hold" talk 30 0
		matches "rdma_client says so" "$(cat "$work/peer")" 'rdma_client: end 0'
		need "the channel goes" wait_for 10 no_raw
		check "the listener is deleted" kdirect listener del raw
	done

	need "a raw listener that holds" kdirect listener add raw addr "$address" port "$port" \
		mode raw hold max-depth 64
	start talk raw_talk /dev/kdirect/raw.0 first 10 100 connect leave
	start peer ucmatose -s "$address" -p "$port"
	ends "ucmatose connects" peer 30 0
	ends "and kdirect talks to it" talk 30 0
	matches "ucmatose says so" "$(cat "$work/peer")" 'data transfers complete'
	need "the channel goes" wait_for 10 no_raw
	check "the listener is deleted" kdirect listener del raw

	for hold in '' hold; do
		start peer rdma_server -p "$port" ${address:+-s "$address"}
		need "rdma_server listens" wait_for 10 listens rdma_server
		# shellcheck disable=SC2086
		need "a raw channel to it $hold" kdirect channel add r0 to "$(at "$address")" \
			mode raw $hold
		start talk raw_talk /dev/kdirect/r0 first 1 16 ${hold:+connect}
		ends "rdma_server serves" peer 30 0
		ends "kdirect, $hold" talk 30 0
		matches "rdma_server says so" "$(cat "$work/peer")" 'rdma_server: end 0'
		check "the channel is deleted" kdirect channel del r0
	done

	start peer ucmatose -b "$address" -p "$port"
	need "ucmatose listens" wait_for 10 listens ucmatose
	need "a raw channel to it" kdirect channel add r0 to "$(at "$address")" mode raw hold
	start talk raw_talk /dev/kdirect/r0 second 10 100 connect
	ends "ucmatose accepts" peer 30 0
	ends "and kdirect talks to it" talk 30 0
	matches "ucmatose says so" "$(cat "$work/peer")" 'data transfers complete'
	check "the channel is deleted" kdirect channel del r0
done

# A session does not understand such peers, and they do not understand it.
need "a listener for sessions" kdirect listener add store addr "$PEER" port "$port"
start peer rdma_client -s "$PEER" -p "$port"
ends "which refuses rdma_client" peer 30 255
kdirect listener del store
no_leftovers
finish
