#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# plants.sh KO KIND...: plants each fault, and says whether this kernel saw it.

ko=$1
shift
failed=0

# seen KIND: what the kernel's log says of it
seen()
{
	case $1 in
	warn) echo "WARNING: .*plant_warn|WARNING: .*kdirect_plant" ;;
	uaf) echo "BUG: KASAN: (slab-)?use-after-free in plant_uaf" ;;
	atomic) echo "BUG: scheduling while atomic|BUG: sleeping function called from invalid context" ;;
	lock) echo "possible circular locking dependency detected" ;;
	leak) echo "kmemleak: .*new suspected memory leaks" ;;
	shift) echo "UBSAN: shift-out-of-bounds in .*kdirect_plant" ;;
	race) echo "BUG: KCSAN: data-race in racer" ;;
	esac
}

for kind; do
	dmesg --clear
	insmod "$ko" "kind=$kind" 2>/dev/null && { echo "not ok - $kind: loaded"; exit 1; }
	if [ "$kind" = leak ]; then
		# Objects younger than five seconds are none yet.
		for _ in 1 2 3; do
			sleep 6
			echo scan >/sys/kernel/debug/kmemleak
		done
	fi
	if dmesg | grep -E "$(seen "$kind")"; then
		echo "ok - $VM_KERNEL sees a planted fault: $kind"
	else
		echo "not ok - $VM_KERNEL sees a planted fault: $kind"
		dmesg | tail -n 20 | sed 's/^/# /'
		failed=1
	fi
done
exit "$failed"
