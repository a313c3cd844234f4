#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# cli_test.sh KDIRECT: what the tool says and how it exits where no module is loaded.
kdirect=${1:?usage: cli_test.sh KDIRECT}
# shellcheck source-path=SCRIPTDIR
source "$(dirname "$0")/tap.sh"

# run ARG...: sets out, err and status
run() {
	local file
	file=$(mktemp)
	out=$("$kdirect" "$@" 2>"$file")
	status=$?
	err=$(<"$file")
	rm -f "$file"
}

# refuses STATUS TEXT ARG...: exits so, prints nothing, and TEXT is the first line on stderr
refuses() {
	local wanted=$1 text=$2
	shift 2
	run "$@"
	is "kdirect $*: exits $wanted" "$status" "$wanted"
	is "kdirect $*: says why" "${err%%$'\n'*}" "kdirect: $text"
	is "kdirect $*: prints nothing else" "$out" ""
}

# prints PATTERN ARG...: exits 0 and the output has PATTERN
prints() {
	local pattern=$1
	shift
	run "$@"
	is "kdirect $*: exits 0" "$status" 0
	grep -q -- "$pattern" <<<"$out"
	tap "kdirect $*: prints '$pattern'" $? "$out$err"
}

prints '^Usage: kdirect \[-j\]'
prints '^Usage: kdirect \[-j\]' help
prints '^Usage: kdirect \[-j\]' -h
prints '^Usage: kdirect \[-j\]' --help
prints '^  channel  ' help
prints '^kdirect [0-9]' -V
prints '^kdirect [0-9]' --version
prints '^Usage: kdirect channel show' channel help
prints '^Usage: kdirect channel show' ch help
prints '^Usage: kdirect channel show' channel -h
prints '^Usage: kdirect channel add NAME to ADDRESS:PORT' channel add help
prints '^Usage: kdirect channel add NAME to ADDRESS:PORT' ch a -h
prints '^Usage: kdirect stats show' stats help
prints '^Usage: kdirect ping NAME' ping help
prints '^Usage: kdirect monitor' monitor help
prints '^  listener LISTENER .*required' export add help
prints '1B to 16G' export add help
prints '^  ro .*read only' map add help
refuses 2 "object 'm' could be map or monitor" m
refuses 2 "export add: size is missing" export add mem0 listener store
refuses 2 "export add: size '0': must be 1B to 16G" export add mem0 listener store size 0
refuses 2 "export add: listener 'a b': a name is 1 to 31 of A-Z a-z 0-9 _ -, and begins with a letter" \
	export add mem0 listener 'a b' size 1M
refuses 2 "map add: export is missing" map add m0 channel c0
refuses 2 "map add: channel '1': a name is 1 to 31 of A-Z a-z 0-9 _ -, and begins with a letter" \
	map add m0 channel 1 export mem0
prints '^complete -F' completion bash
prints '^complete -F' completion

objects='device, listener, channel, export, map, stats, monitor, ping, completion or help'
name='a name is 1 to 31 of A-Z a-z 0-9 _ -, and begins with a letter'
refuses 2 "unknown object 'foo': use $objects" foo
refuses 2 "object 'c' could be channel or completion" c
refuses 2 "unknown object '': use $objects" ''
refuses 2 "unknown option '-x'" -x
refuses 2 "unknown option '--foo'" channel show --foo
refuses 2 "channel command 's' could be show or set" channel s
refuses 2 "unknown device command 'add': use show or help" device add
refuses 2 "channel add: a name is missing" channel add
refuses 2 "channel add: to is missing" channel add c0
refuses 2 "channel add: name '9': $name" channel add 9 to 10.0.0.2:1
refuses 2 "channel add: name 'a.0': $name" channel add a.0 to 10.0.0.2:1
refuses 2 "channel add: name 'Ger\\xff': $name" channel add $'Ger\xff' to 10.0.0.2:1
refuses 2 "channel add: to '10.0.0.2': not ADDRESS:PORT or [IPV6]:PORT" channel add c0 to 10.0.0.2
refuses 2 "channel add: to '[::1]': not ADDRESS:PORT or [IPV6]:PORT" channel add c0 to '[::1]'
refuses 2 "channel add: to '10.0.0.2:0': a port is 1 to 65535" channel add c0 to 10.0.0.2:0
refuses 2 "channel add: depth '1025': must be 1 to 1024" channel add c0 to 10.0.0.2:1 depth 1025
refuses 2 "channel add: depth is given twice" channel add c0 to 10.0.0.2:1 depth 1 depth 2
refuses 2 "channel add: queues 0 and poll-queues 0: together they must be 1 to 64" \
	channel add c0 to 10.0.0.2:1 queues 0
refuses 2 "channel add: queues 60 and poll-queues 5: together they must be 1 to 64" \
	channel add c0 to 10.0.0.2:1 queues 60 poll-queues 5
refuses 2 "channel add: from and to: one is IPv4, the other IPv6" \
	channel add c0 to 10.0.0.2:1 from ::1
refuses 2 "channel set: nothing to set: give eager-limit, keep-alive, keep-alive-misses, request-timeout, drain-timeout, loss-timeout, fast-io-fail, reconnect-delay, reconnect-max-delay, poll-mode, poll-cpu, cq-count or cq-period" \
	channel set c0
refuses 2 "channel del: unknown key 'now': use nowait" channel del c0 now
refuses 2 "listener add: allow '10.0.0.1/8': bits are set behind the prefix length; the network \
is 10.0.0.0/8, the host 10.0.0.1" listener add s addr 10.0.0.2 port 1 allow 10.0.0.1/8
refuses 2 "listener add: allow 'fd00::/16': not of the same family as addr" \
	listener add s addr 10.0.0.2 port 1 allow fd00::/16
refuses 2 "listener add: allow 'none': not an IPv4 or IPv6 address (names are not resolved)" \
	listener add s addr 10.0.0.2 port 1 allow none
refuses 2 "listener set: 'allow none' stands alone" listener set s allow none allow 10.0.0.0/8
refuses 2 "listener set: nothing to set: give allow or max-channels" listener set s
refuses 2 "stats show: unexpected 'c1'" stats c0 c1
refuses 2 "monitor: count '0': must be 1 to 4294967295" monitor count 0
refuses 2 "monitor: unknown key 'c0': use count" monitor c0
refuses 2 "ping: a name is missing" ping
refuses 2 "ping: count '0': must be 1 to 10000000" ping c0 count 0
refuses 2 "ping: size '0': must be 1B to 64K" ping c0 size 0
refuses 2 "ping: interval '1': not a time: a number with ns, us, ms or s" ping c0 interval 1
refuses 2 "ping: timeout '61s': must be 1ns to 60s" ping c0 timeout 61s

prefixes=()
for i in {1..64}; do prefixes+=(allow "10.0.0.$i"); done
refuses 2 "listener add: allow: at most 64 prefixes" \
	listener add s addr 10.0.0.2 port 1 "${prefixes[@]}" allow 10.0.1.0

run channel add c0 to 10.0.0.2:1 depth 0
is "a usage error names the help" "${err#*$'\n'}" "Try 'kdirect channel add help'."

LC_ALL=C.UTF-8 LANGUAGE=de run ping c0 size 1,5K
is "the locale changes nothing" "${err%%$'\n'*}" \
	"kdirect: ping: size '1,5K': not a size: a number of bytes, or with K, M or G (powers of 1024)"

"$kdirect" help >/dev/full 2>/dev/null
is "output that cannot be written is a failure" $? 1

if [[ -e /sys/module/kdirect ]]; then
	echo "# the module is loaded: no checks of its absence"
else
	absent='the kernel module kdirect is not loaded (modprobe kdirect)'
	for object in dev device listener l channel ch export e map ma stats s monitor mo; do
		refuses 1 "$absent" "$object"
	done
	refuses 1 "$absent" -j channel show
	refuses 1 "$absent" channel show -d c0
	refuses 1 "$absent" device show rxe0
	refuses 1 "$absent" listener add s addr 10.0.0.2 port 7471 "${prefixes[@]}"
	refuses 1 "$absent" listener set s allow none max-channels 1
	refuses 1 "$absent" listener del s
	refuses 1 "$absent" channel add c0 to '[fd00::2]:7471' from fd00::1 queues 0 \
		poll-queues 64 depth 1024 max-message 4KiB eager-limit 256 keep-alive off \
		connect-timeout 100ms drain-timeout 10ms nowait
	refuses 1 "$absent" channel add c0 to 10.0.0.2:7471
	refuses 1 "$absent" channel set c0 keep-alive 0.1s
	refuses 1 "$absent" channel del store.0
	refuses 1 "$absent" stats show c0
	refuses 1 "$absent" stats c0
	refuses 1 "$absent" monitor count 1
	refuses 1 "$absent" ping c0 count 1 size 64K interval 1ms timeout 60s warmup 3 poll
fi

tap_done
