#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# Raw channels with both ends in one machine: every opcode, keys, what is refused, and ends.
#
#   raw channel r0  --->  raw listener raw, that holds
#
# timeout: 400
# shellcheck source-path=SCRIPTDIR disable=SC2119,SC2317
. "$(dirname "$0")/../lib.sh"

need "a raw listener" kdirect listener add raw addr "$PEER" port "$port" mode raw hold
matches "it is shown" "$(kdirect -d listener show raw)" 'mode raw hold yes'
gtests raw raw_test "$PEER" "$port"

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
