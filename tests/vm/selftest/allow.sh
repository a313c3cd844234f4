#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# A fault that was expected does not.
# options: --allow WARNING:.selftest
# status: 0

echo "WARNING: selftest" >/dev/kmsg
