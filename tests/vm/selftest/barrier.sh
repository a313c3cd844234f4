#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# Both machines meet, as often as they like, and nobody waits for ever.
# machines: 2
# status: 0
# output: a\| passed 20
# output: b\| passed 20
# output: a\| barrier lonely: the other machine did not come

passed=0
for _ in 1 2 3 4 5 6 7 8 9 10; do
	barrier again || exit
	passed=$((passed + 1))
	barrier "odd$passed" || exit
	passed=$((passed + 1))
done
# Several at once, and one whose caller is killed.
barrier left & left=$!
barrier right & right=$!
timeout -s KILL 1 barrier never
wait "$left" || exit
wait "$right" || exit
echo "passed $((passed / 1))"
if [ "$MACHINE" = a ]; then
	barrier lonely 1 && exit 1
fi
barrier end
