#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# Generic netlink requests that are nearly right, from many sockets at once: as root,
# who adds and deletes listeners and channels meanwhile; as nobody; and as root of a
# user namespace. The last two change nothing.
#
#   c0  --->  listener store, channel store.0	(the bystander)
#
# KD_SEED changes what is drawn; a mistake names the seed and thread to repeat it.
# timeout: 600
# shellcheck source-path=SCRIPTDIR disable=SC2119,SC2154,SC2317
. "$(dirname "$0")/../lib.sh"
. "$(dirname "$0")/../hostile.sh"

count=$(size 120 1000)
seed=${KD_SEED:-1}

# What an administrator sees, without what changes by itself.
configuration()
{
	kdirect -j listener
	kdirect -j channel | sed 's/"state_age_ms":[0-9]*//g'
}

pair keep-alive 500ms drain-timeout 1s
need "the other end sees it" wait_for 10 is_state store.0 live
drained
before=$(configuration)
objects=$(object_counts)
# The checkout may be where only root gets in.
program=$(mktemp -d)/hostile_netlink
install -m 755 "$(command -v hostile_netlink)" "$program"
chmod 755 "${program%/*}"
nobody=(setpriv --reuid 65534 --regid 65534 --clear-groups)

check "nobody: nothing wrong, seed $seed" "${nobody[@]}" "$program" \
	--seed "$seed" --count "$count" "$PEER" "$port"
is "nobody: all is as before" "$(configuration)" "$before"
inside=("${nobody[@]}" unshare --user --map-root-user --net)
if "${inside[@]}" true 2>/dev/null; then
	check "root of a namespace: nothing wrong, seed $seed" "${inside[@]}" "$program" \
		--seed "$seed" --count "$count" "$PEER" "$port"
	is "root of a namespace: all is as before" "$(configuration)" "$before"
	check "a user namespace in ours: nothing wrong" "${nobody[@]}" unshare --user \
		--map-root-user "$program" --seed "$seed" --count $((count / 4)) "$PEER" "$port"
	is "a user namespace in ours: all is as before" "$(configuration)" "$before"
else
	echo "# no user namespaces here"
fi
check "root: nothing wrong, seed $seed" hostile_netlink --seed "$seed" --count "$count" \
	"$PEER" "$port"

# What random names and sockets that never asked left; the bystander stays.
others_gone()
{
	local name

	for name in $(kdirect -j listener | grep -o '"name":"[^"]*"' | cut -d'"' -f4); do
		[ "$name" = store ] || kdirect listener del "$name"
	done
	for name in $(kdirect -j channel | grep -o '"name":"[^"]*"' | cut -d'"' -f4); do
		case $name in
		c0|store.0) ;;
		*)	kdirect channel del "$name" nowait ;;
		esac
	done
	[ "$(kdirect -j channel | grep -o '"name":' | wc -l)" = 2 ]
}
need "root: what it made goes" wait_for 40 others_gone
honest_use "afterwards"
settled()
{
	[ "$(object_counts)" = "$objects" ]
}
check "the same RDMA objects" wait_for 20 settled
check "the channel is deleted" kdirect channel del c0
need "and its other end" wait_for 20 no_channels
kdirect listener del store
no_leftovers
finish
