#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# A machine that hangs is ended soon after the other one failed.
# machines: 2
# status: 5
# output: vm: b: stopped, since a failed

barrier start
[ "$MACHINE" = a ] && exit 5
sleep inf
