#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# A script without an end is ended, and the kernel tells what waits.
# options: --timeout 20
# status: 124
# output: vm: timeout after 20 s
# output: vm: a: console: .*Show Blocked State

sleep inf
