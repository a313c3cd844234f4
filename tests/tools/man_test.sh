#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# man_test.sh KDIRECT: the manual is well-formed, and mentions all that the tool takes.
kdirect=${1:?usage: man_test.sh KDIRECT}
here=$(dirname "$0")
man=$here/../../Documentation/man
# shellcheck source-path=SCRIPTDIR
source "$here/tap.sh"

for page in "$man"/*.[348]; do
	# Pages refer to others that need not be installed here.
	report=$(mandoc -T lint "$page" 2>/dev/null | grep -v 'referenced manual not found')
	is "$(basename "$page") passes mandoc" "$report" ""
done

# The completion script lists every command and key, from the tool's own table.
# shellcheck disable=SC1090
source <("$kdirect" completion bash)
for object in $(_kdirect_objects); do
	[[ $object == help ]] && continue
	page=$man/kdirect-$object.8
	[[ $object == completion ]] && page=$man/kdirect.8
	text=$(mandoc -T utf8 "$page" | sed 's/.\x08//g')
	for command in $(_kdirect_commands "$object") ''; do
		[[ $command == help ]] && continue
		for word in $command $(_kdirect_keys "$object${command:+ $command}"); do
			grep -qw -- "$word" <<<"$text"
			tap "kdirect-$object(8) mentions ${command:+$command }$word" $?
		done
	done
done

tap_done
