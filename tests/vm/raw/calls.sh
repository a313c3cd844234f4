#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# Raw channels with both ends in one machine: every opcode, keys, what is refused, and ends.
#
#   raw channel r0  --->  raw listener raw, that holds
#
# timeout: 400
# shellcheck source-path=SCRIPTDIR disable=SC2119,SC2317
. "$(dirname "$0")/../lib.sh"

rawput=$(dirname "$0")/../../../build/tools/libkdirect/examples/rawput

need "a raw listener" kdirect listener add raw addr "$PEER" port "$port" mode raw hold
matches "it is shown" "$(kdirect -d listener show raw)" 'mode raw hold yes'
gtests raw raw_test "$PEER" "$port"

need "no channel is left" wait_for 10 no_channels
need "a channel for an example" kdirect channel add r0 to "$PEER:$port" mode raw hold
start put "$rawput" r0 put "hello there"
need "its peer" wait_for 10 test -c /dev/kdirect/raw.0
is "what one end writes is in the other's memory" "$("$rawput" raw.0 take 2>&1)" "hello there"
ends "and it hears of that" put 20 0
expect_error 'no channel or mapping of that name' "$rawput" raw.7 take
kdirect channel del r0 >/dev/null 2>&1

need "no channel is left" wait_for 10 no_channels
start held kdirect channel add r1 to "$PEER:$port" mode raw private-data 6869
need "a request is held" wait_for 10 test -c /dev/kdirect/raw.0
matches "with what the peer said" "$(kdirect -d channel show raw.0)" 'peer-data 68690000'
matches "it waits for its program" "$(kdirect channel show raw.0)" 'state connecting .*held yes'
check "an administrator refuses it" kdirect channel del raw.0
ends "so the peer hears" held 20 1
expect_error 'raw' kdirect map add m0 channel raw.0 export e
expect_error 'needs mode raw' kdirect channel add r2 to "$PEER:$port" hold
expect_error 'one queue' kdirect channel add r2 to "$PEER:$port" mode raw queues 2
expect_error 'more than 56 bytes' kdirect channel add r2 to "$PEER:$port" mode raw \
	private-data "$(printf '%0114d' 0)"
expect_error 'ECONNREFUSED' kdirect channel add r2 to "$PEER:$((port + 1))" mode raw
check "the listener is deleted" kdirect listener del raw
need "no channel is left" wait_for 10 no_channels
no_leftovers
finish
