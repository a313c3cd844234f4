#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# Cutting, healing and shaping the link, seen by ping.
# machines: 2
# status: 0
# output: a\| all seen

barrier start || exit
if [ "$MACHINE" = b ]; then
	barrier end
	exit
fi

fail()
{
	echo "FAIL: $*"
	exit 1
}

reach()
{
	ping -q -n -c 1 -w 10 "$PEER"
}

# The mean round trip in whole milliseconds; the first one also resolves.
rtt()
{
	ping -q -n -c 1 "$PEER" >/dev/null
	ping -q -n -c 5 -i 0.2 "$PEER" | sed -n 's/^rtt.* = [^/]*\/\([0-9]*\).*/\1/p'
}

# Percent lost of 50.
lost()
{
	ping -q -n -c 50 -i 0.02 -W 1 "$PEER" | sed -n 's/.* \([0-9.]*\)% packet loss.*/\1/p'
}

reach >/dev/null || fail "the link does not work"
link cut || fail "link cut"
ping -q -n -c 3 -i 0.2 -W 1 "$PEER" && fail "reached over a cut link"
[ "$(cat "/sys/class/net/$NETDEV/carrier")" = 1 ] || fail "a cut link lost its carrier"
link heal || fail "link heal"
reach >/dev/null || fail "not reached over a healed link"

link shape delay 100 || fail "link shape"
value=$(rtt)
[ "$value" -ge 200 ] || fail "round trip of $value ms with a delay of 100 ms"
link shape loss 50
value=$(lost)
awk -v v="$value" 'BEGIN { exit !(v > 20 && v < 99) }' || fail "$value % lost"
link shape dup 100
ping -n -c 2 -i 0.2 "$PEER" | grep DUP || fail "nothing doubled"
link shape rate 1
# Two ways of 1000 bytes and headers at 1 Mbit/s take 16 ms.
value=$(ping -q -n -s 1000 -c 3 "$PEER" | sed -n 's/^rtt[^=]* = \([0-9]*\).*/\1/p')
[ "$value" -ge 16 ] || fail "round trip of $value ms at 1 Mbit/s"
link shape loss 101 && fail "took a loss of 101 %"
link shape speed 1 && fail "took a speed"
link clear || fail "link clear"
value=$(lost)
[ "${value%%.*}" = 0 ] || fail "$value % lost on a clear link"

link down || fail "link down"
[ "$(cat "/sys/class/net/$NETDEV/carrier")" = 0 ] || fail "a carrier on a link that is down"
link up || fail "link up"
[ "$(cat "/sys/class/net/$NETDEV/carrier")" = 1 ] || fail "no carrier on a link that is up"
reach >/dev/null || fail "not reached over a link that is up again"
link sideways 2>/dev/null && fail "took a nonsense verb"
echo "all seen"
barrier end
