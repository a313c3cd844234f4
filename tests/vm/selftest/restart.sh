#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# A machine that is started again runs its script again.
# machines: 2
# status: 0
# output: a\| met again
# output: b\| restarted: 1

[ "$MACHINE" = b ] && echo "restarted: $RESTARTED"
if [ "$RESTARTED" = 0 ]; then
	barrier start || exit
	[ "$MACHINE" = b ] && sleep inf
	machine restart b || exit
fi
barrier again || exit
[ "$MACHINE" = a ] && { ping -c 1 -w 20 "$PEER" || exit; echo "met again"; }
barrier end
