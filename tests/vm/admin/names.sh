#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# What an administrator may not ask for: names, ports, depths, sizes, times out
# of range. Every refusal names what is wrong, and leaves nothing.
# timeout: 120
# shellcheck source-path=SCRIPTDIR disable=SC2119,SC2317
. "$(dirname "$0")/../lib.sh"

listener()
{
	kdirect listener add "$1" addr "$PEER" port "${2-$port}" "${@:3}"
}

channel()
{
	kdirect channel add "$1" to "$PEER:${2-$port}" "${@:3}"
}

for name in "" 0a _a .a a.b a/b ../x "a b" $'a\nb' $'a\tb' ä a$'\xff' $'\xc3' 日本 "a%s%n" \
	aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa "$(printf 'x%.0s' {1..300})"; do
	expect_error 'name' listener "$name"
	expect_error 'name' channel "$name"
done
# A listener leaves room for ".1023" behind its name.
longest=$(printf 'x%.0s' {1..26})
expect_error 'name' listener "${longest}x"
check "the longest name of a listener" listener "$longest"
check "the longest name of a channel" channel "$(printf 'y%.0s' {1..31})"
need "the other end" wait_for 10 test -c "/dev/kdirect/$longest.0"
kdirect channel del "$(printf 'y%.0s' {1..31})"
kdirect listener del "$longest"
need "they go" wait_for 10 no_channels

check "a listener" listener store
expect_error 'EEXIST|exist' listener store $((port + 1))
expect_error 'EADDRINUSE|in use' listener other
check "a channel" channel c0
expect_error 'EEXIST|exist' channel c0
for object in listener channel; do
	expect_error 'ENOENT|there is no' kdirect "$object" del unknown
	expect_error 'ENOENT|there is no' kdirect "$object" show unknown
done
expect_error 'ENOENT|there is no' kdirect listener set unknown max-channels 4
expect_error 'ENOENT|there is no' kdirect channel set unknown keep-alive 1s
expect_error 'ENOENT|there is no' kdirect stats unknown
expect_error 'ENOENT|there is no' kdirect device show unknown

for bad in 0 65536 99999999999 x ""; do
	expect_error 'port|out of range|not' listener p "$bad"
	expect_error 'port|out of range|not|endpoint|address' channel p "$bad"
done
for bad in 0 1025 4294967295 4294967296; do
	expect_error 'depth' listener d $((port + 1)) max-depth "$bad"
	expect_error 'depth' channel d "$port" depth "$bad"
done
for good in 1 1024; do
	check "max-depth $good" listener d $((port + 1)) max-depth "$good"
	check "depth $good" channel d $((port + 1)) depth "$good"
	is "depth $good was agreed" "$(kdirect -j channel show d | grep -o '"depth":[0-9]*')" \
		"\"depth\":$good"
	check "the channel of depth $good goes" kdirect channel del d
	kdirect listener del d
	need "both ends go" wait_for 20 gone d.0
done
for bad in "queues 65" "queues 0" "poll-queues 65" "queues 33 poll-queues 32" "queues 70000" \
	"max-message 4095" "max-message 1048577" "eager-limit 255" "eager-limit 65537" \
	"keep-alive 99ms" "keep-alive 61s" "connect-timeout 99ms" "connect-timeout 121s" \
	"drain-timeout 9ms" "drain-timeout 61s"; do
	# shellcheck disable=SC2086 # two words
	expect_error "${bad%% *}" channel q "$port" $bad
done
for bad in "max-channels 0" "max-channels 1025" "max-queues 0" "max-queues 65" \
	"max-message 4095" "max-message 2M" "eager-limit 1" "eager-limit 1M" \
	"allow 10.0.0.0/33" "allow fd00::/129" "allow nonsense"; do
	# shellcheck disable=SC2086 # two words
	expect_error "${bad%% *}" listener q $((port + 1)) $bad
done
# shellcheck disable=SC2046 # a word each
expect_error 'allow' listener q $((port + 1)) $(for i in {1..65}; do echo "allow 10.0.0.$i"; done)
expect_error 'eager-limit' kdirect channel set c0 eager-limit 64K
expect_error 'keep-alive' kdirect channel set c0 keep-alive 5ms
expect_error '.' kdirect channel set c0
check "what may be set" kdirect channel set c0 eager-limit 4K keep-alive 1s drain-timeout 1s

is "only what was asked for is there" "$(kdirect channel | wc -l)/$(kdirect listener | wc -l)" "2/1"
kdirect channel del c0
kdirect listener del store
need "both ends go" wait_for 10 no_channels
no_leftovers
finish
