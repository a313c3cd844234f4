#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# What the kernel tells of a program's memory under userfaultfd does not.
# status: 0

echo "FAULT_FLAG_ALLOW_RETRY missing 801" >/dev/kmsg
echo "Call Trace:" >/dev/kmsg
echo " </TASK>" >/dev/kmsg
