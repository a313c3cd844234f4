#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# A machine that fails does not leave the other one waiting.
# machines: 2
# status: 5
# output: b\| barrier never: machine a has ended with status 5
# output: b\| noticed

[ "$MACHINE" = a ] && exit 5
barrier never && exit 1
echo noticed
