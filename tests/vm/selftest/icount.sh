#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# A figure under --icount repeats to the last digit.
# options: --icount
# repeat: 2
# status: 0
# output: t_avg

ib_send_lat -R -e -s 64 -n 500 >/dev/null 2>&1 & server=$!
until rdma resource show cm_id | grep -q LISTEN; do
	kill -0 "$server" || exit 1
done
ib_send_lat -R -e -s 64 -n 500 "$ADDR" | grep -A1 t_avg || exit
cat /proc/uptime
wait "$server"
