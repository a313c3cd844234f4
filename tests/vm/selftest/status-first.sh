#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# With a fault in the log too, the exit status is still the script's.
# status: 4
# output: vm: a: kernel log: .*BUG: selftest

echo "BUG: selftest" >/dev/kmsg
exit 4
