#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# libkdirect: its test program, its examples, and what programs hear of the end through it.
#
#   c0, mappings m0 and r0 (read-only)  --->  listener store, exports mem0 and mem1
#
# The exports have no full key, so that this runs on debug-6.1, too (Documentation/testing.md).
#
# timeout: 400
# shellcheck source-path=SCRIPTDIR disable=SC2119,SC2317
. "$(dirname "$0")/../lib.sh"

examples=$(dirname "$0")/../../../build/tools/libkdirect/examples
size=$((1200 << 10))

pair queues 2 poll-queues 1
need "an export" kdirect export add mem0 listener store size $size
need "a mapping of it" kdirect map add m0 channel c0 export mem0
need "another export" kdirect export add mem1 listener store size 64K
need "a read-only mapping of it" kdirect map add r0 channel c0 export mem1 ro

gtests library library_test c0 store.0 m0 r0

# --- the examples

start echo "$examples/pingpong" store.0 echo
for length in 1 5000 1048576; do
	count=$(few $((length > 10000 ? 3 : 100)))
	matches "pingpong with $length bytes" "$("$examples/pingpong" c0 "$count" "$length" 2>&1)" \
		"^$count round trips of $length bytes, [0-9.]+ us each$"
done
expect_error 'no channel or mapping of that name' "$examples/pingpong" c9 1 1
expect_error 'not of the right kind' "$examples/pingpong" m0 1 1

head -c $((size - 1000)) /dev/urandom >"$work/data"
is "copy copies to the mapping" "$("$examples/copy" to m0 "$work/data" 2>&1)" "$((size - 1000)) bytes"
check "it is there" cmp -n $((size - 1000)) "$work/data" /dev/kdirect/m0
is "and back" "$("$examples/copy" from m0 "$work/back" $((size - 1000)) 2>&1)" "$((size - 1000)) bytes"
check "without a change" cmp "$work/data" "$work/back"
head -c 1001 /dev/zero >>"$work/data"
expect_error 'reaches past the end of the export' "$examples/copy" to m0 "$work/data"
expect_error 'read-only' "$examples/copy" to r0 "$work/data"

for kind in '' poll thread 'poll thread'; do
	# shellcheck disable=SC2086 # words
	matches "randread ${kind:-by itself}" \
		"$("$examples/randread" m0 "$(few 1000)" 32 4096 $kind 2>&1)" \
		"^$(few 1000) READs of 4096 bytes, 32 at a time: [1-9][0-9]* IOPS$"
done

[ "$KD_RDMA" = siw ] || matches "three processes share a lock and a counter" \
	"$("$examples/lock" m0 3 "$(few 60)" 2>&1)" "^counter $((3 * $(few 60))) of $((3 * $(few 60)))$"
expect_error 'read-only' "$examples/lock" r0 1 1

# --- the end

# loads: through each way
loads()
{
	load batch c0 descs library_test --until-end m0
	load polled c0 descs library_test --until-end m0 poll
	load ring c0 descs library_test --until-end m0 ring
	load served c0 descs library_test --until-end m0 ring poll thread
	wander 200
}

# hear TEXT: all of them, by that
hear()
{
	local name

	for name in batch polled ring served; do
		ends "the $name load hears of it" $name 30 0
		matches "as what it was" "$(cat "$work/$name")" "^$1 after [1-9]"
	done
}

loads
check "the export is deleted under load" kdirect export del mem0
hear 'the peer deleted the export'
check "the mapping is deleted" kdirect map del m0
expect_error 'no channel or mapping of that name' library_test --until-end m0

need "an export" kdirect export add mem0 listener store size $size
need "a mapping" kdirect map add m0 channel c0 export mem0
loads
check "the mapping is deleted under load" kdirect map del m0
hear 'the mapping was deleted here'

check "the other mapping is deleted" kdirect map del r0
check "the exports are deleted" kdirect export del mem0
check "both" kdirect export del mem1
check "the channel is deleted" kdirect channel del c0
ends "the echo sees its end" echo 10 0
need "no channel is left" wait_for 10 no_channels
kdirect listener del store
no_leftovers
finish
