#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# A channel connects to a program that is no kdirect, or lies: foreign
# rejections and replies, replies that were not asked for, handshakes that
# stop, malformed messages. Adding fails with a reason and leaves nothing.
#
#   c0  --->  listener store, channel store.0	(the bystander)
#   channel liar  --->  lying_peer, at another port
#
# timeout: 200
# shellcheck source-path=SCRIPTDIR disable=SC2119,SC2317
. "$(dirname "$0")/../lib.sh"

pair keep-alive off
lying_peer server "$PEER" $((port + 1)) /dev/kdirect/c0 || failures=1
is "the bystander is live" "$(state c0)" live
check "it is deleted" kdirect channel del c0
need "so is its other end" wait_for 15 no_channels
kdirect listener del store
no_leftovers
finish
