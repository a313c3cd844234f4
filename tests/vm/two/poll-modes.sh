#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# What those who poll do in each poll mode, changed while the channel lives.
#
#   a: channel c0, polls  --->  b: listener store
#
# machines: 2
# timeout: 240
# shellcheck source-path=SCRIPTDIR disable=SC2119,SC2317
. "$(dirname "$0")/../lib.sh"

if [ "$MACHINE" = b ]; then
	listen
	meet listens
	meet end 300
	need "no channel is left" wait_for 20 no_channels
	kdirect listener del store
	no_leftovers
	finish
fi

meet listens
need "connects" kdirect channel add c0 to "$ADDR_B:$port" poll-queues 1 poll-mode hybrid
count=$(few 100)

# of COUNTER: of c0's poll queue
of()
{
	kdirect -j -d stats c0 | grep -o '"kind":"poll"[^}]*' | grep -o "\"$1\":[0-9]*" | cut -d: -f2
}

# pings MODE: the counters' growth by them, in $naps, $sleeps and $cpu (ns)
pings()
{
	naps=$(of poll_naps) sleeps=$(of poll_sleeps) cpu=$(of poll_cpu_ns)
	check "$1: pings" kdirect ping c0 count "$count" poll
	naps=$(($(of poll_naps) - naps)) sleeps=$(($(of poll_sleeps) - sleeps))
	cpu=$(($(of poll_cpu_ns) - cpu))
	echo "# $1: $naps naps, $sleeps sleeps, $cpu ns of CPU time"
}

matches "shown" "$(kdirect -d channel show c0)" 'poll-mode hybrid poll-cpu 50'
pings hybrid
check "hybrid: callers sleep first" [ "$naps" -ge $((count / 2)) ]
is "hybrid: they wait for no event" "$sleeps" 0

check "busy" kdirect channel set c0 poll-mode busy
pings busy
is "busy: nobody sleeps" "$naps/$sleeps" 0/0
check "busy: it costs CPU time" [ "$cpu" -gt 0 ]

check "adaptive, of 1 percent" kdirect channel set c0 poll-mode adaptive poll-cpu 1
before=$(now_ms)
pings adaptive
took=$(($(now_ms) - before))
is "adaptive: no naps" "$naps" 0
check "adaptive: callers sleep when it is used up" [ "$sleeps" -ge $((count / 2)) ]
# 1 % of the time, what was saved up, and the look that each caller takes in any case
check "adaptive: the share is kept" \
	[ "$cpu" -le $(((took + 20) * 10000 + count * 200000 * KD_SLOW)) ]

matches "shown" "$(kdirect -d channel show c0)" 'poll-mode adaptive poll-cpu 1'
expect_error 'busy, hybrid or adaptive' kdirect channel set c0 poll-mode often
expect_error '1 to 100' kdirect channel set c0 poll-cpu 0
expect_error '1 to 100' kdirect channel set c0 poll-cpu 101
expect_error 'moderates no interrupts' kdirect channel set c0 cq-count 5
expect_error '0ns to 65.535ms' kdirect channel set c0 cq-period 65536us
expect_error 'whole microseconds' kdirect channel set c0 cq-period 1500ns
expect_error 'moderates no interrupts' kdirect channel add c1 to "$ADDR_B:$port" cq-period 10us

check "the channel goes" kdirect channel del c0
meet end
no_leftovers
finish
