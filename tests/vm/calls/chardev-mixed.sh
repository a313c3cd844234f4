#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# What uapi/kdirect.h promises of the character device, on a channel with
# queues 1 poll-queues 1, from a machine to itself.
#
#   c0  --->  listener store, channel store.0
#
# timeout: 150
# shellcheck source-path=SCRIPTDIR disable=SC2119,SC2317
. "$(dirname "$0")/../lib.sh"

pair queues 1 poll-queues 1 depth 8
gtests mixed chardev_test /dev/kdirect/c0 /dev/kdirect/store.0
is "the channel is still live" "$(state c0)" live
check "it is deleted" kdirect channel del c0
need "so is its other end" wait_for 10 no_channels
kdirect listener del store
no_leftovers
finish
