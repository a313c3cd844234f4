#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# The module loads in this kernel, carries a message, and goes; `../kernels` runs it.

set -e
port=7471
trap 'echo "# failed: $BASH_COMMAND"; dmesg | tail -n 20 | sed "s/^/# /"' ERR

uname -r
modprobe kdirect
kdirect listener add store addr "$PEER" port "$port"
kdirect channel add c0 to "$PEER:$port"
until [ -c /dev/kdirect/c0 ] && [ -c /dev/kdirect/store.0 ]; do
	sleep 0.1
done
timeout 30 head -n 1 /dev/kdirect/store.0 >/tmp/got &
reader=$!
echo "hello from $VM_KERNEL" >/dev/kdirect/c0
wait "$reader"
cat /tmp/got
[ "$(cat /tmp/got)" = "hello from $VM_KERNEL" ]
kdirect channel del c0
kdirect listener del store
until rmmod kdirect 2>/dev/null; do
	sleep 0.1
done
echo "carried"
