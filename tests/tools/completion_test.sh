#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# completion_test.sh KDIRECT: what bash offers for a half-typed command line.
kdirect=${1:?usage: completion_test.sh KDIRECT}
# shellcheck source-path=SCRIPTDIR
source "$(dirname "$0")/tap.sh"

script=$("$kdirect" completion bash) || exit 1
# shellcheck disable=SC1090
source <(echo "$script")

# Stands for the tool when the script asks it for names.
kdirect() {
	case "$*" in
	'-j device show') echo '[{"name":"rxe0","index":0}]' ;;
	'-j listener show') echo '[{"name":"store","port":7471},{"name":"backup"}]' ;;
	'-j channel show') echo '[{"name":"c0","state":"live"},{"name":"store.0"}]' ;;
	'-j export show') echo '[{"name":"mem0","listener":"store"}]' ;;
	'-j map show') echo '[{"name":"m0","state":"live","channel":"c0","export":"mem0"}]' ;;
	*) echo "unexpected: kdirect $*" >&2 ;;
	esac
}

# offers LINE WORD...: the words offered at the end of LINE, in any order
offers() {
	COMP_LINE=$1
	COMP_POINT=${#COMP_LINE}
	COMPREPLY=()
	shift
	_kdirect
	is "'$COMP_LINE'" "$(sort <<<"${COMPREPLY[*]//[[:space:]]/}" | tr ' ' '\n' | sort | xargs)" \
		"$(printf '%s\n' "$@" | sort | xargs)"
}

offers 'kdirect ' device listener channel export map stats monitor ping completion help
offers 'kdirect c' channel completion
offers 'kdirect m' map monitor
offers 'kdirect -j l' listener
offers 'kdirect -' --json --pretty --details --version --help
offers 'kdirect --j' --json
offers 'kdirect channel ' show add set del help
offers 'kdirect ch s' show set
offers 'kdirect channel show ' c0 store.0 help
offers 'kdirect channel show s' store.0
offers 'kdirect -d ch sh c' c0
offers 'kdirect channel show c0 '
offers 'kdirect channel add ' help
offers 'kdirect channel add c1 ' to from queues poll-queues depth max-message eager-limit \
	keep-alive connect-timeout drain-timeout keep-alive-misses request-timeout \
	loss-timeout fast-io-fail \
	reconnect-delay reconnect-max-delay poll-mode poll-cpu cq-count cq-period nowait mode \
	private-data hold retry-count rnr-retry-count initiator-depth responder-resources
offers 'kdirect channel add c1 to 10.0.0.2:7471 q' queues
offers 'kdirect channel add c1 to 10.0.0.2:74'
offers 'kdirect channel add c1 to [fd00::2]:7471 keep-alive ' off
offers 'kdirect channel add c1 to [fd00::2]:7471 loss-timeout ' off forever
offers 'kdirect channel add c1 nowait de' depth
offers 'kdirect channel set store.0 keep-alive 1s d' drain-timeout
offers 'kdirect channel del ' c0 store.0 help
offers 'kdirect channel del c0 ' nowait
offers 'kdirect listener set ' store backup help
offers 'kdirect listener set store allow ' none
offers 'kdirect listener del b' backup
offers 'kdirect export ' show add del help
offers 'kdirect export add mem1 ' listener size ro
offers 'kdirect export add mem1 listener ' store backup
offers 'kdirect export add mem1 listener store ro s' size
offers 'kdirect export del ' mem0 help
offers 'kdirect map add m1 channel c' c0
offers 'kdirect map add m1 channel c0 export mem0 ' channel export ro nowait
offers 'kdirect map show ' m0 help
offers 'kdirect dev show r' rxe0
offers 'kdirect device show r' rxe0
offers 'kdirect stats ' show help c0 store.0
offers 'kdirect stats show ' c0 store.0 help
offers 'kdirect stats c0 '
offers 'kdirect monitor ' count help
offers 'kdirect ping ' c0 store.0 help
offers 'kdirect ping c0 ' count size interval timeout warmup poll
offers 'kdirect ping c0 poll w' warmup
offers 'kdirect completion ' bash help
offers 'kdirect nonsense '
offers 'kdirect channel nonsense '

if command -v shellcheck >/dev/null; then
	report=$(shellcheck -s bash - <<<"$script")
	tap "the script passes shellcheck" $? "$report"
fi

# A line that ends in the middle: what is behind the cursor does not count.
COMP_LINE='kdirect channel show'
COMP_POINT=10
COMPREPLY=()
_kdirect
is "in the middle of a line" "${COMPREPLY[*]}" channel

tap_done
