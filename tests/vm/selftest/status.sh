#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# The script's exit status, arguments and both outputs come through.
# arguments: one two\ words
# status: 3
# output: out: 2 two words
# output: err: MARK
# output: no newline

echo "out: $# $2"
echo "err: MARK" >&2
echo "through /dev/stderr" >/dev/stderr
read -r line && echo "stdin is not empty: $line" && exit 1
printf 'no newline'
exit 3
