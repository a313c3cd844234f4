# SPDX-License-Identifier: GPL-2.0-only
# shellcheck shell=bash
# Sourced by the tests: TAP, one line a check, with what went wrong behind "#".

tap_count=0
tap_failed=0

# tap NAME STATUS [DETAIL]: status 0 is ok
tap() {
	tap_count=$((tap_count + 1))
	if [[ $2 -eq 0 ]]; then
		echo "ok $tap_count - $1"
	else
		tap_failed=$((tap_failed + 1))
		echo "not ok $tap_count - $1"
		[[ -n ${3-} ]] && echo "# ${3//$'\n'/$'\n# '}"
	fi
	return 0
}

# is NAME GOT WANTED
is() {
	[[ $2 == "$3" ]]
	tap "$1" $? "got:    $2
wanted: $3"
}

tap_done() {
	echo "1..$tap_count"
	[[ $tap_failed -eq 0 ]]
}
