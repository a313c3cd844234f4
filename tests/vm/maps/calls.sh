#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# A mapping as a file: every call, dd, cat, cmp and fio, from a machine to itself.
#
#   c0, mapping m0  --->  listener store, export mem0 of 16M
#
# timeout: 240
# shellcheck source-path=SCRIPTDIR disable=SC2119,SC2317
. "$(dirname "$0")/../lib.sh"

pair queues 2 poll-queues 1
need "an export" kdirect export add mem0 listener store size 16M
need "a mapping of it" kdirect map add m0 channel c0 export mem0
matches "it is shown" "$(kdirect map)" '^map m0 state live channel c0 export mem0 size 16M rights rw'
matches "so is the export" "$(kdirect export)" '^export mem0 listener store size 16M rights rw maps 1'
m=/dev/kdirect/m0

gtests calls map_test $m $((16 << 20))

head -c 16M /dev/urandom >"$work/data"
check "dd writes it" dd if="$work/data" of=$m bs=1M status=none
check "cmp finds no difference" cmp "$work/data" $m
check "cat reads it to its end" sh -c "cat $m | cmp - $work/data"
check "dd reads with odd lengths" sh -c "dd if=$m bs=12345 status=none | cmp - $work/data"
refute "dd does not write past the end" dd if=/dev/zero of=$m bs=1M seek=16 count=1
is "as long as it was" "$(blockdev --getsize64 $m 2>/dev/null || wc -c <$m)" $((16 << 20))

verify="--filename=$m --size=16M --allow_file_create=0 --verify=crc32c --randrepeat=1
	--rw=randwrite --do_verify=1 --verify_fatal=1 --minimal"
# shellcheck disable=SC2086 # words
for how in "psync --bs=4k --io_size=1M" "psync --bs=64k --io_size=8M" \
	"pvsync2 --hipri --bs=4k --io_size=1M" "libaio --iodepth=16 --bs=4k --io_size=2M" \
	"libaio --iodepth=8 --bs=256k" "io_uring --iodepth=16 --bs=4k --io_size=2M" \
	"io_uring --iodepth=4 --bs=1M" "io_uring --fixedbufs --iodepth=4 --bs=16k --io_size=2M"; do
	check "fio verifies with $how" fio --name=v --ioengine=$how $verify
done
matches "stats count it" "$(kdirect -d stats c0)" 'map-reads [1-9][0-9]* map-read [1-9]'
is "the channel is still live" "$(state c0)" live

check "the mapping is deleted" kdirect map del m0
refute "its node is gone" test -e $m
check "the export is deleted" kdirect export del mem0
check "the channel is deleted" kdirect channel del c0
need "so is its other end" wait_for 10 no_channels
kdirect listener del store
no_leftovers
finish
