#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# What Documentation/vm.md promises to scripts is there.
# status: 0
# output: all there

failed=0
check()
{
	"$@" >/dev/null 2>&1 && return
	echo "not so: $*"
	failed=1
}

check [ "$(id -u)" = 0 ]
check [ "$(hostname)" = "$MACHINE" ]
check [ "$MACHINE:$MACHINES" = a:1 ]
check [ "$ADDR:$PEER" = "$ADDR_A:$ADDR_B" ]
check [ "$ADDR6:$PEER6" = "$ADDR6_A:$ADDR6_B" ]
check [ -f "$KDIRECT_TOP/scripts/vm" ]
check [ "${PATH%%:*}" = "$KDIRECT_TOP/build/bin" ]
check [ "$PWD" -ef "$KDIRECT_TOP" ]

for dir in /proc /sys /dev /dev/pts /dev/shm /run /tmp /sys/kernel/debug /sys/fs/cgroup; do
	check mountpoint "$dir"
done
for dir in /tmp /run /etc /usr/bin "$KDIRECT_TOP"; do
	check touch "$dir/vm-selftest"
done
check [ "$(stat -fc %T /sys/fs/cgroup)" = cgroup2fs ]
check [ -c /dev/infiniband/rdma_cm ]
check grep -q "netdev $NETDEV" <(rdma link show "$RXE/1")
check ibv_devinfo -d "$RXE"
check grep -q 'active_mtu:.*4096' <(ibv_devinfo -d "$RXE")
check modprobe nvme-rdma
check modprobe -r nvme-rdma
check ping -c 1 "$PEER"
check ping -c 1 "$PEER6"
check ping -c 1 127.0.0.1
check barrier alone
if [ -e "$KDIRECT_KO" ]; then
	check modprobe --show-depends kdirect
fi

[ "$failed" = 0 ] && echo "all there"
exit "$failed"
