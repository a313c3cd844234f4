#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# A panic ends the machine at once.
# status: 70
# output: last words
# output: vm: a: went off before its script ended
# output: vm: a: kernel log: .*Kernel panic

echo "last words"
# on their way to the host
sleep 1
echo c >/proc/sysrq-trigger
sleep inf
