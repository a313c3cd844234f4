#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# Shapes of channels: many queues, many poll queues, depth 1, limits that the
# listener lowers; and what saturated queues do to keep-alive.
#
#   c0  --->  listener store, channel store.0
#
# timeout: 200
# shellcheck source-path=SCRIPTDIR disable=SC2119,SC2317
. "$(dirname "$0")/../lib.sh"

# both_ways COUNT WORD...: messages in each direction at once
both_ways()
{
	local count=$1

	shift
	start recv1 messages receive /dev/kdirect/store.0 --count "$count" --seed 1 "$@"
	start recv2 messages receive /dev/kdirect/c0 --count "$count" --seed 2 "$@"
	start send1 messages send /dev/kdirect/c0 --count "$count" --seed 1 "$@"
	start send2 messages send /dev/kdirect/store.0 --count "$count" --seed 2 "$@"
	for name in send1 send2 recv1 recv2; do
		ends "$label: $name" "$name" 60 0 || return
	done
}

channel()
{
	label=$*
	need "$label: connects" add_channel c0 to "$PEER:$port" "$@"
	need "$label: other end" wait_for 20 test -c /dev/kdirect/store.0
}

done_with()
{
	is "$label: still live" "$(state c0)$(state store.0)" "livelive"
	check "$label: goes" kdirect channel del c0
	need "$label: both ends go" wait_for 20 no_channels
}

value()
{
	kdirect -j channel show "$1" | grep -o "\"$2\":[0-9]*" | cut -d: -f2
}

need "a listener" kdirect listener add store addr "$PEER" port "$port" max-queues 64

channel depth 1
both_ways "$(few 60)" --max 40000
both_ways "$(few 60)" --min 1 --max 100 --nowait
done_with
channel depth 1 queues 0 poll-queues 1
both_ways "$(few 40)" --max 40000 --epoll
both_ways "$(few 40)" --max 40000 --poll
done_with
channel depth 1 queues 3 poll-queues 2
both_ways "$(few 60)" --max 40000 --threads 3
done_with
channel queues 16 depth 4 max-message 64K
both_ways "$(few 200)" --max 65536 --threads 4
done_with
channel queues 8 poll-queues 8 depth 4 max-message 64K
both_ways "$(few 60)" --max 65536 --threads 2 --poll
both_ways "$(few 60)" --max 65536 --threads 2 --epoll
done_with
channel queues 32 poll-queues 32 depth 2 max-message 4K eager-limit 256
is "all 64 queues" "$(kdirect -d stats c0 | grep -c 'queue index')" 65
both_ways "$(few 100)" --max 4096 --threads 3
done_with
channel eager-limit 256
both_ways "$(few 100)" --max 3000
done_with
channel eager-limit 64K
both_ways "$(few 100)" --max 70000 --chunk 5000
done_with
channel queues 2
both_ways "$(few 100)" --max 100000 --threads 4 --readers
done_with
kdirect listener del store

need "a listener with low limits" kdirect listener add store addr "$PEER" port "$port" \
	max-depth 3 max-message 8K eager-limit 1K max-queues 2
channel queues 2 depth 100 eager-limit 64K max-message 1M
is "the smaller of both counts" "$(value c0 depth)/$(value c0 max_message_bytes)/$(value c0 eager_limit_bytes)" \
	"3/8192/1024"
both_ways "$(few 50)" --max 8192
done_with
expect_error 'limit of data queues is 2|queues' kdirect channel add c0 to "$PEER:$port" queues 3
kdirect listener del store

# Every queue full all the time, at ten intervals and more: neither end gives up.
need "a listener" kdirect listener add store addr "$PEER" port "$port"
channel queues 2 keep-alive "$(slow 200ms)"
check "the accepted end has the short interval too" kdirect channel set store.0 keep-alive "$(slow 200ms)"
start recv1 messages receive /dev/kdirect/store.0 --count 0 --seed 1
start recv2 messages receive /dev/kdirect/c0 --count 0 --seed 2
start send1 messages send /dev/kdirect/c0 --count 0 --seed 1
start send2 messages send /dev/kdirect/store.0 --count 0 --seed 2
need "all have begun" wait_for 20 opened c0 2
need "at the other end, too" wait_for 20 opened store.0 2
alive=$(counted c0 keep_alives)
need "15 times keep-alive is answered under load" wait_for 60 reached c0 keep_alives $((alive + 15))
# And with receivers that do not read.
kill -STOP "${job[recv1]}" "${job[recv2]}"
alive=$(counted c0 keep_alives)
need "15 more while nobody reads" wait_for 60 reached c0 keep_alives $((alive + 15))
kill -CONT "${job[recv1]}" "${job[recv2]}"
done_with
for name in send1 send2 recv1 recv2; do
	ends "$name ends" "$name" 20 0
done
kdirect listener del store
no_leftovers
finish
