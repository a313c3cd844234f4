#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# A fault in the kernel log fails a script that succeeds.
# status: 70
# output: vm: a: kernel log: .*WARNING: selftest
# output: vm: a: console log:

echo "WARNING: selftest" >/dev/kmsg
