#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# With one machine its other address stands for the peer.
# status: 0
# output: done$

for address in "$PEER" "$PEER6"; do
	rping -s -a "$address" -C 5 & server=$!
	until rdma resource show cm_id | grep -q LISTEN; do
		kill -0 "$server" || exit 1
	done
	rping -c -a "$address" -C 5 || exit
	wait "$server" || exit
done
echo "done"
