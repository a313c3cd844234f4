#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# RDMA works between the machines, over IPv4 and IPv6.
# machines: 2
# status: 0
# output: a\| served 2
# output: b\| both done

if [ "$MACHINE" = a ]; then
	served=0
	for address in "$ADDR" "$ADDR6"; do
		rping -s -a "$address" -C 5 -S 4000 & server=$!
		until rdma resource show cm_id | grep -q LISTEN; do
			kill -0 "$server" || exit 1
		done
		barrier "listening-$served" || exit
		wait "$server" || exit
		served=$((served + 1))
	done
	echo "served $served"
else
	barrier listening-0 && rping -c -a "$PEER" -C 5 -S 4000 || exit
	barrier listening-1 && rping -c -a "$PEER6" -C 5 -S 4000 || exit
	echo "both done"
fi
barrier end
