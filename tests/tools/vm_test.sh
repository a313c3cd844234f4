#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# The tool with the module, in one machine whose device is both ends:
#
#   c0 (initiator) ---- rxe0, $ADDR ---- store.0 (accepted by the listener "store")
#
# scripts/vm run tests/tools/vm_test.sh
here=$(dirname "$(readlink -f "$0")")
# shellcheck source-path=SCRIPTDIR
source "$here/tap.sh"
: "${ADDR:?run it in a virtual machine}"
absent=${ADDR%.*}.99 # on the device's network, but nobody answers

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# run ARG...: sets out, err and status
run() {
	out=$(kdirect "$@" 2>"$work/err")
	status=$?
	err=$(<"$work/err")
}

# works ARG...: exits 0 and is quiet on stderr
works() {
	run "$@"
	is "kdirect $*" "$status $err" "0 "
}

# refuses TEXT ARG...: exits 1, and says so
refuses() {
	local text=$1
	shift
	run "$@"
	is "kdirect $* is refused" "$status $err" "1 kdirect: $text"
}

# json EXPRESSION: a Python expression of d, the JSON that was printed, is true
json() {
	python3 -c 'import json, sys; d = json.loads(sys.argv[1]); sys.exit(not eval(sys.argv[2]))' \
		"$out" "$1"
	tap "JSON: $1" $? "$out$err"
}

# Emulated machines are slow: wait for what must come, not for a time.
until_seen() {
	local i
	for ((i = 0; i < 200; i++)); do
		"$@" >/dev/null 2>&1 && return
		sleep 0.1
	done
	tap "waited for: $*" 1
}

gone() { ! kdirect channel show "$1"; }

modprobe kdirect || exit 1

works -j dev show rxe0
json 'd[0]["name"] == "rxe0" and d[0]["transport"] == "roce"'
refuses 'device nosuch: dev-name: there is none of this name (ENOENT)' dev show nosuch

report=$("$here/ynl_check.py" --probe)
tap "the module is what the specification says" $? "$(grep -A5 '^not ok' <<<"$report")"

# --- listeners and channels, as the monitor sees them -----------------------------------
kdirect -d -j monitor >"$work/events" &
monitor=$!
until_seen grep -q monitoring "$work/events"
works listener add store addr "$ADDR" port 7471 allow 10.0.0.0/8
refuses 'listener store: listener "store" exists already (EEXIST)' \
	listener add store addr "$ADDR" port 7472
works -j listener show store
json 'd[0]["port"] == 7471 and d[0]["allow"] == ["10.0.0.0/8"]'
works listener set store allow none max-channels 3
works -j listener
json 'd[0]["allow"] == [] and d[0]["max_channels"] == 3'
works channel add c0 to "$ADDR:7471" poll-queues 1 keep-alive 2.5s
works -j channel
json 'sorted(c["name"] for c in d) == ["c0", "store.0"]'
json '{c["state"] for c in d} == {"live"}'
json '[c.get("listener") for c in sorted(d, key=lambda c: c["name"])] == [None, "store"]'
works -j channel show c0
json 'd[0]["keep_alive_ms"] == 2500 and d[0]["poll_queues"] == 1'
works channel set c0 keep-alive off drain-timeout 500ms
works -d channel show c0
grep -q 'keep-alive off .*drain-timeout 500ms' <<<"$out"
tap "what was set is shown" $? "$out"

# --- ping and statistics ----------------------------------------------------------------
works -j -d ping c0 count 20 warmup 2
json 'd["sent"] == d["received"] == 20 and len(d["round_trips"]) == 20'
json '0 < d["rtt"]["min_ns"] <= d["rtt"]["p50_ns"] <= d["rtt"]["max_ns"]'
json 'all(t["rtt_ns"] <= t["call_ns"] for t in d["round_trips"])'
works -j ping c0 count 3 size 16K poll
json 'd["completion"] == "poll" and d["size_bytes"] == 16384 and d["received"] == 3'
works -j stats store.0
json 'd[0]["pings"] == 25 and len(d[0]["queues"]) == 3'
json 'sorted(q["kind"] for q in d[0]["queues"]) == ["control", "interrupt", "poll"]'
refuses "ping c0: size is above the channel's eager limit (EMSGSIZE)" ping c0 size 17K
kdirect ping c0 count 10000000 >"$work/ping" 2>&1 &
ping=$!
until_seen fuser -s /dev/kdirect/c0
kill -TERM $ping
wait $ping
is "an interrupted ping sums up" "$? $(grep -c '^rtt ' "$work/ping")" "0 1"

# --- the end, and failures --------------------------------------------------------------
works channel del c0
until_seen gone store.0
refuses 'channel c0: there is no channel "c0" (ENOENT)' channel del c0
refuses "channel c1: nothing listens on $ADDR:7999 (ECONNREFUSED)" \
	channel add c1 to "$ADDR:7999"
works listener del store
kill $monitor
is "what the monitor saw of c0" \
	"$(python3 - "$work/events" <<'PYTHON'
import json, sys
events = [json.loads(line) for line in open(sys.argv[1])]
print(*(e.get("state", e["event"]) for e in events if e.get("name") == "c0"))
PYTHON
)" "channel-added connecting live deleting dead channel-removed"

works channel add c2 to "$absent:1" connect-timeout 60s nowait
works channel del c2 nowait
until_seen gone c2

for signal in INT TERM KILL; do
	kdirect channel add c3 to "$absent:1" connect-timeout 60s 2>"$work/err" &
	add=$!
	until_seen kdirect channel show c3
	kill -$signal $add
	wait $add 2>/dev/null
	is "channel add ended by $signal" $? $((128 + $(kill -l $signal)))
	until_seen gone c3
done

# Events that are lost on the way to a stopped process: it must say so, and go on.
kdirect monitor >"$work/slow" &
monitor=$!
kdirect channel add c4 to "$absent:1" connect-timeout 10s 2>"$work/err" &
add=$!
until_seen kdirect channel show c4
kill -STOP $monitor $add
"$here/flood.py" 1500
kill -CONT $monitor $add
wait $add
is "channel add survives lost events" "$? $(<"$work/err")" \
	"1 kdirect: channel c4: not connected within 10000 ms (ETIMEDOUT)"
until_seen grep -q 'events were lost' "$work/slow"
kill $monitor

setpriv --reuid 65534 --regid 65534 --clear-groups kdirect channel add c5 to "$ADDR:1" 2>"$work/err"
is "an ordinary user may not" "$? $(<"$work/err")" \
	"1 kdirect: channel c5: CAP_NET_ADMIN in the network namespace is needed (EPERM)"
setpriv --reuid 65534 --regid 65534 --clear-groups kdirect channel
is "but may look" $? 0

rmmod kdirect
is "the module goes" $? 0
tap_done
