#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# Under --icount: round trips of 64 bytes, through kdirect and, for comparison,
# through libibverbs, on the same device. Two runs print the same.
set -eu

modprobe kdirect
kdirect listener add store addr "$ADDR" port 7471
kdirect channel add c0 to "$ADDR:7471"
kdirect ping c0 count 500 warmup 50 size 64
kdirect channel del c0
kdirect listener del store
rmmod kdirect

ib_send_lat -R -e -s 64 -n 500 >/dev/null 2>&1 & server=$!
until rdma resource show cm_id | grep -q LISTEN; do
	kill -0 "$server"
done
ib_send_lat -R -e -s 64 -n 500 "$ADDR" | grep -A1 t_avg
wait "$server"
