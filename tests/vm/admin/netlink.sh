#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# The netlink family against its specification; malformed requests; requests
# of users who may not: an ordinary one, and root of a user namespace of its own.
# timeout: 150
# shellcheck source-path=SCRIPTDIR disable=SC2119,SC2317
. "$(dirname "$0")/../lib.sh"

taps "specification" "$KDIRECT_TOP/tests/tools/ynl_check.py" --kernel --probe
taps "malformed requests" "$KDIRECT_TOP/tests/vm/netlink_abuse.py"

pair
nobody=(setpriv --reuid 65534 --regid 65534 --clear-groups)
# The checkout may be where only root gets in.
tool=$(mktemp -d)/kdirect
install -m 755 "$(command -v kdirect)" "$tool"
chmod 755 "${tool%/*}"
check "anybody may look" "${nobody[@]}" "$tool" channel show c0
expect_error 'EPERM|CAP_NET_ADMIN|permi' "${nobody[@]}" "$tool" channel del c0
expect_error 'EPERM|CAP_NET_ADMIN|permi' "${nobody[@]}" "$tool" channel add c1 to "$PEER:$port"
expect_error 'EPERM|CAP_NET_ADMIN|permi' "${nobody[@]}" "$tool" listener add l1 addr "$PEER" port 80
expect_error 'EPERM|CAP_NET_ADMIN|permi' "${nobody[@]}" "$tool" listener del store
expect_error 'EACCES|[Pp]ermission|cannot' "${nobody[@]}" "$tool" ping c0 count 1
refute "anybody may open the node" "${nobody[@]}" cat /dev/kdirect/c0

# Root of a user namespace has CAP_NET_ADMIN in the network namespace that it
# made, and that must not be enough for what creates nodes.
inside=("${nobody[@]}" unshare --user --map-root-user --net)
if "${inside[@]}" true 2>/dev/null; then
	expect_error 'EPERM|permi' "${inside[@]}" "$tool" channel add c1 to "$PEER:$port"
	expect_error 'EPERM|permi' "${inside[@]}" "$tool" listener add l1 addr 127.0.0.1 port 80
	expect_error 'ENOENT|EPERM|permi|there is no' "${inside[@]}" "$tool" channel del c0
	expect_error 'ENOENT|EPERM|permi|there is no' "${inside[@]}" "$tool" listener del store
	is "and sees nothing of ours" "$("${inside[@]}" "$tool" channel)" ""
	expect_error 'EPERM|permi' "${nobody[@]}" unshare --user --map-root-user \
		"$tool" channel del c0
else
	echo "# no user namespaces here"
fi
# Another network namespace of the same root: not its channels, but the names.
other=(unshare --net)
is "another namespace sees none" "$("${other[@]}" kdirect channel; "${other[@]}" kdirect listener)" ""
expect_error 'ENOENT|there is no' "${other[@]}" kdirect channel del c0
expect_error 'ENODEV|EADDRNOTAVAIL|RDMA|host|route|EHOSTUNREACH|ENETUNREACH' \
	"${other[@]}" kdirect listener add l1 addr "$PEER" port 80
expect_error 'RDMA|EHOSTUNREACH|ENETUNREACH|ENODEV' \
	"${other[@]}" kdirect channel add c1 to "$PEER:$port" connect-timeout "$(slow 5s)"

is "all of it is as before" "$(state c0)$(state store.0)" "livelive"
check "the channel goes" kdirect channel del c0
kdirect listener del store
need "at both ends" wait_for 10 no_channels
no_leftovers
finish
