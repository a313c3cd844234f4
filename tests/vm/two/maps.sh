#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# Memory of one machine, read and written by the other; taken back under load, and
# over a link that is cut.
#
#   a: channels c0, c1, mappings m0, m1 of mem0  --->  b: listener store, export mem0
#
# machines: 2
# timeout: 180
# shellcheck source-path=SCRIPTDIR disable=SC2119,SC2317
. "$(dirname "$0")/../lib.sh"

if [ "$MACHINE" = b ]; then
	listen
	need "exports" kdirect export add mem0 listener store size 8M
	meet offered
	meet verified 120
	check "takes it back under load" kdirect export del mem0
	meet revoked
	need "exports again" kdirect export add mem1 listener store size 8M
	meet again
	meet loaded
	need "the link is cut" link cut
	begun=$(now_ms)
	check "takes it back with the link cut" kdirect export del mem1
	in_time "that ends in time" "$begun" 20000
	need "the link is whole" link heal
	meet cut 120
	need "the channels go" wait_for 30 no_channels
	kdirect listener del store
	no_leftovers
	finish
fi

meet offered
need "connects" kdirect channel add c0 to "$PEER:$port" queues 2
need "connects once more" kdirect channel add c1 to "$PEER:$port" poll-queues 1
need "maps over the first" kdirect map add m0 channel c0 export mem0
need "maps over the second" kdirect map add m1 channel c1 export mem0 ro
head -c 8M /dev/urandom >"$work/data"
check "writes" dd if="$work/data" of=/dev/kdirect/m0 bs=1M status=none
check "reads the same over the other" cmp "$work/data" /dev/kdirect/m1
check "fio verifies" fio --name=v --filename=/dev/kdirect/m0 --size=8M --allow_file_create=0 \
	--ioengine=libaio --iodepth=8 --bs=64k --rw=randwrite --verify=crc32c --do_verify=1 \
	--verify_fatal=1 --minimal
check "fio polls" fio --name=v --filename=/dev/kdirect/m1 --size=8M --readonly --ioengine=pvsync2 \
	--hipri --bs=4k --io_size=1M --rw=randread --allow_file_create=0 --minimal
writes="while dd if=$work/data of=/dev/kdirect/m0 bs=256k conv=notrunc,nocreat status=none; do :; done"
load writer c0 map_writes sh -c "$writes"
meet verified 120
ends "the writer hears of the end" writer 30 0
meet revoked
matches "so does the mapping" "$(kdirect map show m0)" 'state dead.*error ESTALE'
check "they are deleted" sh -c "kdirect map del m0 && kdirect map del m1"
is "both channels live on" "$(state c0) $(state c1)" "live live"

meet again
need "maps again" kdirect map add m0 channel c0 export mem1
load writer c0 map_writes sh -c "$writes"
wander 300
meet loaded
ends "the writer hears of the cut" writer 60 0
meet cut 120
need "so does the mapping" wait_for 30 sh -c "kdirect map show m0 | grep -q 'state dead'"
check "it is deleted" kdirect map del m0
for channel in c0 c1; do
	kdirect channel del $channel
done
need "the channels go" wait_for 30 no_channels
no_leftovers
finish
