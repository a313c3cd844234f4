# SPDX-License-Identifier: GPL-2.0-only
# shellcheck shell=bash disable=SC2317,SC2119,SC2120 # functions that others call
#
# Sourced by the scenarios. Each check is a line "ok - TEXT" or "not ok - TEXT",
# with what went wrong behind "#". A scenario ends with `finish`.

set -u
failures=0
scenario=$(basename "$0" .sh)
port=7471
KD_SLOW=${KD_SLOW:-1} KD_FEW=${KD_FEW:-1} # see tests/vm/all

# slow TIME: what that time of the stock kernel is here
slow()
{
	echo $((${1%%[a-z]*} * KD_SLOW))"${1##*[0-9]}"
}

# wander MS: so long of the stock kernel, to meet another moment of something that goes on
wander()
{
	local ms=$(($1 * KD_SLOW))

	read -rt "$((ms / 1000)).$(printf %03d $((ms % 1000)))" <><(:)
}

# few N: how often is enough here for what is done N times elsewhere
few()
{
	echo $((($1 + KD_FEW - 1) / KD_FEW))
}

# What must come at last gets time enough on a busy machine, too: no bound of the
# product's. Those are measured, with now_ms.
patience=$KD_SLOW
[ "${VM_ACCEL-}" = kvm ] || patience=$((patience * 2))

ok()
{
	echo "ok - $scenario: $*"
}

# not_ok TEXT [DETAIL]
not_ok()
{
	echo "not ok - $scenario: $1"
	[ -z "${2-}" ] || printf '%s\n' "$2" | sed 's/^/# /'
	failures=$((failures + 1))
	return 1
}

finish()
{
	exit $((failures != 0))
}

# Ends the scenario, since nothing after this would make sense.
give_up()
{
	not_ok "$@"
	state_of_things | sed 's/^/# /'
	finish
}

state_of_things()
{
	kdirect -d listener 2>&1
	kdirect -d channel 2>&1
	rdma resource show 2>&1
	# retries, duplicates, NAKs: what the transport itself met
	grep -sv '^0$' "/sys/class/infiniband/$RXE/ports/1/hw_counters/"* | sed 's/.*hw_counters.//'
	dmesg | grep kdirect | tail -n 15
}

# check TEXT COMMAND...: it succeeds
check()
{
	local text=$1 output

	shift
	if output=$("$@" 2>&1); then
		ok "$text"
	else
		not_ok "$text" "$* ended with $?
$output"
	fi
}

# need TEXT COMMAND...: the same, and nothing goes on without it
need()
{
	check "$@" || give_up "cannot go on"
}

# refute TEXT COMMAND...: it fails
refute()
{
	local text=$1 output

	shift
	if output=$("$@" 2>&1); then
		not_ok "$text" "$* succeeded
$output"
	else
		ok "$text"
	fi
}

# is TEXT GOT WANTED
is()
{
	if [ "$2" = "$3" ]; then
		ok "$1"
	else
		not_ok "$1" "got:    $2
wanted: $3"
	fi
}

# matches TEXT GOT REGEX
matches()
{
	if grep -Eq -- "$3" <<<"$2"; then
		ok "$1"
	else
		not_ok "$1" "got:    $2
wanted: $3"
	fi
}

# expect_error REGEX COMMAND...: fails, and says so in one line with that in it
expect_error()
{
	local regex=$1 output status

	shift
	output=$("$@" 2>&1)
	status=$?
	if [ "$status" = 0 ] || [ "$status" -gt 125 ]; then
		not_ok "refused: ${*@Q}" "status $status
$output"
	elif ! grep -Eq -- "$regex" <<<"$output"; then
		not_ok "refused: ${*@Q}" "got:    $output
wanted: $regex"
	else
		ok "refused: ${*@Q}"
	fi
}

now_ms()
{
	local seconds fraction

	IFS='. ' read -r seconds fraction _ </proc/uptime
	echo $((seconds * 1000 + 10#$fraction * 10))
}

# in_time TEXT BEGUN LIMIT: that many milliseconds of the stock kernel, since now_ms said BEGUN
in_time()
{
	local took=$(($(now_ms) - $2))

	[ "$took" -lt $(($3 * KD_SLOW)) ] || not_ok "$1" "took $took ms, limit $(($3 * KD_SLOW)) ms"
}

# wait_for SECONDS COMMAND...: until it succeeds; with patience
wait_for()
{
	local deadline=$(($(now_ms) + $1 * 1000 * patience))

	shift
	until "$@" >/dev/null 2>&1; do
		[ "$(now_ms)" -lt "$deadline" ] || return 1
		sleep 0.05
	done
}

# state CHANNEL, and whether it is one of STATE...
state()
{
	kdirect -j channel show "$1" 2>/dev/null | sed -n 's/.*"state":"\([a-z]*\)".*/\1/p'
}

is_state()
{
	local name=$1 now

	shift
	now=$(state "$name")
	[[ " $* " == *" ${now:-gone} "* ]]
}

gone()
{
	! kdirect channel show "$1" >/dev/null 2>&1
}

# counted CHANNEL COUNTER, and whether it has come to N
counted()
{
	kdirect -j stats "$1" | grep -o "\"$2\":[0-9]*" | head -n 1 | cut -d: -f2
}

reached()
{
	[ "$(counted "$1" "$2")" -ge "$3" ]
}

# fixed_now CHANNEL: its fixed buffers
fixed_now()
{
	kdirect -j -d stats "$1" | grep -o '"fixed_buffers":[0-9]*' | cut -d: -f2
}

no_fixed()
{
	[ "$(fixed_now "$1")" = 0 ]
}

# opened CHANNEL N: by so many files, so that programs that were started are there
opened()
{
	[ "$(kdirect -j channel show "$1" | grep -o '"opens":[0-9]*' | cut -d: -f2)" -ge "$2" ]
}

# cause CHANNEL: the first error in words
cause()
{
	kdirect -j channel show "$1" | sed -n 's/.*"cause":"\([^"]*\)".*/\1/p'
}

listen()
{
	need "listens" kdirect listener add store addr "$ADDR" port "$port" "$@"
}

# add_channel NAME WORD...: it must connect. siw may lose the first message of a
# connection (Documentation/testing.md): who administers such a device tries again.
add_channel()
{
	local output tries

	for tries in 1 2 3; do
		output=$(kdirect channel add "$@" 2>&1) && return
		[[ ${KD_RDMA-} = siw && $output = *"not connected within"* ]] || break
		echo "# try $tries: $output" >&2
	done
	echo "$output"
	return 1
}

# pair [WORD...]: listener store and channel c0 to it, in one machine
pair()
{
	need "a listener" kdirect listener add store addr "$PEER" port "$port"
	need "a channel" add_channel c0 to "$PEER:$port" "$@"
	need "its other end" wait_for 10 test -c /dev/kdirect/store.0
}

# Both ends of every channel are deleted or deleting when this returns.
delete_all()
{
	local name

	for name in $(kdirect -j listener 2>/dev/null | grep -o '"name":"[^"]*"' | cut -d'"' -f4); do
		kdirect listener del "$name" 2>/dev/null
	done
	for name in $(kdirect -j channel 2>/dev/null | grep -o '"name":"[^"]*"' | cut -d'"' -f4); do
		kdirect channel del "$name" nowait 2>/dev/null
	done
}

no_channels()
{
	[ -z "$(kdirect channel)" ]
}

# delete_connecting TEXT WORD...: a channel c0 is added, and deleted while it connects;
# begun is when. To a neighbour that does not answer it tries for 2 s only, however slow
# the machine is: where it was gone by then, sooner.
delete_connecting()
{
	local text=$1 ms output status

	shift
	for ms in 300 100 0 0 0 0; do
		kdirect channel add c0 "$@" nowait
		wander "$ms"
		# shellcheck disable=SC2034 # the caller's
		begun=$(now_ms)
		output=$(kdirect channel del c0 2>&1)
		status=$?
		[[ $status != 0 && $output = *ENOENT* ]] || break
	done
	if [ "$status" = 0 ]; then
		ok "$text"
	else
		not_ok "$text" "$output"
	fi
}

# What the kernel's kdirect holds of the RDMA subsystem.
rdma_objects()
{
	local kind

	for kind in qp cq pd mr cm_id; do
		rdma resource show "$kind" 2>/dev/null | grep '\[kdirect\]'
	done
}

no_objects()
{
	[ -z "$(rdma_objects)" ]
}

# The RDMA device, gone and back
del_link()
{
	rdma link del "$RXE"
}

add_link()
{
	rdma link add "$RXE" type "$KD_RDMA" netdev "$NETDEV"
}

# As it was when the machine came up: no object, node, or module use.
no_leftovers()
{
	local reason=''

	wait_for 15 no_objects || reason="RDMA objects are left:
$(rdma_objects)"
	if compgen -G "/dev/kdirect/*" >/dev/null; then
		reason="$reason
nodes are left: $(echo /dev/kdirect/*)"
	fi
	if [ -e /sys/module/kdirect ] && [ "$(cat /sys/module/kdirect/refcnt)" != 0 ]; then
		reason="$reason
the module is in use $(cat /sys/module/kdirect/refcnt) times"
	fi
	if [ -z "$reason" ]; then
		ok "${1:-nothing is left}"
	else
		not_ok "${1:-nothing is left}" "$reason"
	fi
}

# Objects in the caches that an allocation of the module may come from, and
# what vmalloc holds for it; free ones do not count.
memory_in_use()
{
	local file

	sync
	echo 3 >/proc/sys/vm/drop_caches
	for file in /sys/kernel/slab/*/shrink; do
		[ -L "${file%/shrink}" ] || echo 1 >"$file"
	done 2>/dev/null
	awk '/^kmalloc-/ { n += $2 * $4 } END { printf "%d\n", n / 1024 }' /proc/slabinfo
}

# Starts a command; its output goes to $work/NAME.
work=${KD_WORK:-/tmp}
declare -A job
start()
{
	local name=$1

	shift
	"$@" >"$work/$name" 2>&1 </dev/null &
	job[$name]=$!
}

# load NAME CHANNEL COUNTER COMMAND...: starts it, and its data has moved: the counter says so
load()
{
	local name=$1 channel=$2 counter=$3 before

	before=$(counted "$channel" "$counter")
	start "$name" "${@:4}"
	need "the $name is at work" wait_for 20 reached "$channel" "$counter" $((before + 8))
}

# ends TEXT NAME SECONDS STATUS: that command ends in time, and so
ends()
{
	local text=$1 name=$2 status=0 seconds=$(($3 * patience))

	if ! timeout "$seconds" tail --pid="${job[$name]}" -f /dev/null; then
		not_ok "$text" "still runs after $seconds s: $(cat "/proc/${job[$name]}"/task/*/stack 2>/dev/null)
$(cat "$work/$name")
$(kdirect -d stats)"
		kill -KILL "${job[$name]}" 2>/dev/null
		return 1
	fi
	wait "${job[$name]}" || status=$?
	if [ "$status" = "$4" ]; then
		ok "$text"
	else
		not_ok "$text" "status $status, not $4
$(cat "$work/$name")"
	fi
}

# meet NAME [SECONDS]: both machines, or the scenario ends
meet()
{
	barrier "$scenario.$1" $((${2:-60} * patience)) || give_up "the other machine did not come to $1"
}

# gtests LABEL PROGRAM ARG...: each of its tests is a check
gtests()
{
	local label=$1 line name status output=''

	shift
	while IFS= read -r line; do
		case $line in
		"[ RUN      ]"*) output= ;;
		"[       OK ]"*) read -r _ _ _ name _ <<<"$line"; ok "$label $name" ;;
		"[  SKIPPED ]"*) ;;
		"[  FAILED  ]"*" ms)")
			name=${line#"[  FAILED  ] "}
			not_ok "$label ${name% (*}" "$output" ;;
		"status "*) status=${line#status } ;;
		*) output+=$line$'\n' ;;
		esac
	done < <("$@" 2>&1; echo "status $?")
	case $status in
	0|1)	;;
	*)	not_ok "$label: $1 ends by itself" "status $status
$output" ;;
	esac
}

# taps LABEL PROGRAM ARG...: each line of its TAP is a check
taps()
{
	local label=$1 line status='' any=''

	shift
	while IFS= read -r line; do
		case $line in
		"ok "*) ok "$label:${line#ok *-}"; any=1 ;;
		"not ok "*) not_ok "$label:${line#not ok *-}"; any=1 ;;
		"status "*) status=${line#status } ;;
		*) echo "# $line" ;;
		esac
	done < <("$@" 2>&1; echo "status $?")
	if [ -z "$any" ] || [ "$status" -gt 1 ]; then
		not_ok "$label: $1 ends by itself" "status $status"
	fi
}
