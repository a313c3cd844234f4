#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# A program that is no kdirect, or lies, connects to a listener: foreign private
# data of every length, wrong fields, handshakes that stop, malformed messages.
# Each ends its own channel with a cause, and no other.
#
#   c0  --->  listener store, channel store.0	(the bystander)
#   lying_peer  --->  listener store, channel store.1
#
# timeout: 200
# shellcheck source-path=SCRIPTDIR disable=SC2119,SC2317
. "$(dirname "$0")/../lib.sh"

pair keep-alive off
lying_peer client "$PEER" "$port" /dev/kdirect/c0 || failures=1
is "the bystander is live" "$(state c0)" live
check "it is deleted" kdirect channel del c0
need "so is its other end" wait_for 15 no_channels
kdirect listener del store
no_leftovers
finish
