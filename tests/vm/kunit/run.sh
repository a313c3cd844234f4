#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# Loads the KUnit suites, which run meanwhile. scripts/vm reads their results in the
# kernel log.
#
#   make kunit-vm KERNEL=NAME
#   scripts/vm run --kernel NAME tests/vm/kunit/run.sh [PARAMETER=VALUE…]

set -u
module=$KDIRECT_TOP/build/kunit/$VM_KERNEL/kdirect_kunit.ko

fail()
{
	echo "not ok - kunit: $*"
	exit 1
}

[ -e "$module" ] || fail "there is no $module: make kunit-vm KERNEL=$VM_KERNEL"
modprobe -a ib_core rdma_cm || fail "no RDMA"

# Where allocations can be made to fail: those that may sleep as well, and quietly.
for faults in failslab fail_page_alloc fail_usercopy; do
	dir=/sys/kernel/debug/$faults
	[ -d "$dir" ] || continue
	echo 0 >"$dir/verbose"
	for knob in ignore-gfp-wait ignore-gfp-highmem; do
		[ ! -e "$dir/$knob" ] || echo N >"$dir/$knob"
	done
	[ ! -e "$dir/min-order" ] || echo 0 >"$dir/min-order"
done

begun=$(dmesg | grep -c 'KTAP version')
if ! insmod "$module" "device=$RXE" "address=$ADDR" "peer=$PEER" "$@"; then
	fail "insmod $module"
fi
[ "$(dmesg | grep -c 'KTAP version')" -gt "$begun" ] || fail "no suite has run"
rmmod kdirect_kunit || fail "rmmod kdirect_kunit"
