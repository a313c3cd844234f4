# SPDX-License-Identifier: GPL-2.0-only
# shellcheck shell=bash disable=SC2317,SC2154 # functions that others call
#
# Sourced by the hostile scenarios, after lib.sh.

# size QUICK FULL: so many, and fewer where everything is slow
size()
{
	local count=$1

	[ "${KD_FULL:-0}" = 0 ] || count=$2
	echo $((count / ${KD_FEW:-1}))
}

# How many of each kind, since keys change.
object_counts()
{
	local kind

	for kind in qp cq pd mr cm_id; do
		echo "$kind $(rdma resource show "$kind" 2>/dev/null | grep -c '\[kdirect\]')"
	done
}

no_opens()
{
	! kdirect -j channel | grep -o '"opens":[0-9]*' | grep -qv ':0$'
}

# What others left in the channel, until nothing comes.
drained()
{
	local node

	for node in /dev/kdirect/*; do
		dd if="$node" of=/dev/null bs=2M iflag=nonblock 2>/dev/null
	done
	return 0
}

# honest_use TEXT: messages of all sizes go both ways over c0 and store.0
honest_use()
{
	local text=$1 from to

	is "$text: the channel is live" "$(state c0) $(state store.0)" "live live"
	drained
	for from in c0 store.0; do
		to=store.0
		[ "$from" = c0 ] || to=c0
		start receiver messages receive "/dev/kdirect/$to" --seed 7 --count 30
		check "$text: $from sends" timeout $((60 * KD_SLOW)) messages send "/dev/kdirect/$from" \
			--seed 7 --count 30
		ends "$text: $to receives what was sent" receiver 60 0
	done
	check "$text: ping" kdirect ping c0 count 3
}

export_size=$(((5 << 20) + 1)) # not whole pages, and several keys

# Pages of user memory that anybody has pinned.
pages_pinned()
{
	awk '/^nr_foll_pin_acquired/ { n += $2 } /^nr_foll_pin_released/ { n -= $2 }
		END { print n }' /proc/vmstat
}

pinned_are()
{
	[ "$(pages_pinned)" = "$1" ]
}

# map_use TEXT: all of m0 is written and read
map_use()
{
	head -c "$export_size" /dev/urandom >"$work/data"
	check "$1: the mapping is written" \
		dd if="$work/data" of=/dev/kdirect/m0 bs=100001 conv=notrunc,nocreat status=none
	check "$1: and read" cmp "$work/data" /dev/kdirect/m0
}

# The end of a scenario: c0 and its listener go, and nothing is left.
finish_pair()
{
	need "no file is left open" wait_for 20 no_opens
	check "the channel is deleted" kdirect channel del c0
	need "and its other end" wait_for 20 no_channels
	kdirect listener del store
	no_leftovers
	finish
}
