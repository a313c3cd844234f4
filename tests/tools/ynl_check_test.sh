#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# Each kind of difference between specification and header must be found by ynl_check.py.
here=$(dirname "$0")
# shellcheck source-path=SCRIPTDIR
source "$here/tap.sh"
spec=$here/../../Documentation/netlink/kdirect.yaml
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# finds WHAT LINE SED-SCRIPT: with the specification changed so, the check LINE fails
finds() {
	sed "$3" "$spec" >"$work/spec.yaml"
	cmp -s "$spec" "$work/spec.yaml" && { tap "$1" 1 "the specification is unchanged"; return; }
	local report
	report=$("$here/ynl_check.py" --spec "$work/spec.yaml" 2>&1)
	local status=$?
	[[ $status -eq 1 ]] && grep -q "^not ok [0-9]* - $2" <<<"$report"
	tap "$1" $? "exit $status
$report"
}

"$here/ynl_check.py" >/dev/null
is "the unchanged specification passes" $? 0
finds "family name" "family name" 's/^name: kdirect$/name: other/'
finds "version" "family name" 's/^version: 1$/version: 2/'
finds "group" "family name" '$!N;s/name: events\n *c-define/name: other\n      c-define/;P;D'
finds "renamed attribute" "attributes: names and order" 's/name: state-age-ms/name: state-age/'
finds "order of attributes" "attributes: names and order" \
	'0,/name: opens/s/name: opens/name: x/;0,/name: netns/s/name: netns/name: opens/;s/name: x/name: netns/'
finds "type" "attribute STATE_AGE_MS" '/name: state-age-ms/{n;s/u64/u32/}'
finds "range" "attribute DEPTH" '/name: depth$/,/max:/s/max: 1024/max: 1023/'
finds "lost range" "attribute PORT" '/name: port$/,/max:/s/max: 65535/max: 65534/'
finds "order of commands" "commands: names and order" 's/name: stats-get/name: stat-get/'
finds "enum value" "enum kdirect_state" 's/name: recovering/name: recovery/'
finds "enum order" "enum kdirect_transport" 's/\[ib, roce, iwarp\]/[roce, ib, iwarp]/'
finds "enum prefix" "enum kdirect_queue_kind" 's/name-prefix: kdirect-queue-/name-prefix: kdirect-q-/'
finds "attribute that a command lacks" "operation CHANNEL_NEW" '/- socket-owner/d'
finds "attribute that a reply lacks" "operation CHANNEL_GET" '/- opens/d'
finds "admin permission" "operation LISTENER_NEW" \
	'/name: listener-new/,/flags/s/flags: .*/flags: []/'
finds "missing documentation" "everything is documented" '/name: netns/,/doc/s/doc: .*/doc: ""/'

tap_done
