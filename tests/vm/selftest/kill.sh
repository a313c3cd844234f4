#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# A killed machine is gone at once, and does not count.
# machines: 2
# status: 0
# output: a\| barrier after: machine b was killed
# output: a\| goes on

barrier start || exit
if [ "$MACHINE" = b ]; then
	sleep inf
	exit 1
fi
machine kill b || exit
barrier after && exit 1
ping -c 1 -W 1 "$PEER" && exit 1
echo "goes on"
