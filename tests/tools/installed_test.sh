#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# installed_test.sh BUILD: libkdirect as a program finds it that has nothing but what
# `make install` put somewhere, and pkg-config.
build=${1:?usage: installed_test.sh BUILD}
here=$(cd "$(dirname "$0")" && pwd)
library=$here/../../tools/libkdirect
# shellcheck source-path=SCRIPTDIR
source "$here/tap.sh"

work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
DESTDIR=$work/root cmake --install "$build" --prefix /usr >"$work/log" 2>&1
tap "it is installed" $? "$(tail -n 5 "$work/log")"

pc=$(dirname "$(find "$work/root" -name libkdirect.pc)")
lib=$(dirname "$pc")
export PKG_CONFIG_PATH=$pc LD_LIBRARY_PATH=$lib
unset PKG_CONFIG_SYSROOT_DIR CPATH C_INCLUDE_PATH CPLUS_INCLUDE_PATH LIBRARY_PATH
read -ra flags <<<"$(pkg-config --cflags --libs libkdirect)"
tap "pkg-config knows it" $((${#flags[@]} == 0))
is "its version is the library's" "$(pkg-config --modversion libkdirect)" \
	"$(basename "$(readlink -f "$lib/libkdirect.so")" | sed 's/libkdirect.so.//')"

# compiles NAME COMPILER ARG...
compiles() {
	local name=$1 report
	shift
	report=$(cd "$work" && "$@" 2>&1)
	tap "$name" $? "$report"
}

# --- the examples, and the headers by themselves
strict=(-Wall -Wextra -Werror -pedantic)
for source in "$library"/examples/*.c "$library"/examples/*.cc; do
	name=$(basename "${source%.*}")
	case $source in
	*.c)	with=(cc -std=c11 -D_GNU_SOURCE) ;;
	*)	with=(c++ -std=c++20) ;;
	esac
	compiles "$name compiles" "${with[@]}" "${strict[@]}" "$source" -o "$name" "${flags[@]}"
	compiles "$name compiles with the static library" "${with[@]}" "${strict[@]}" "$source" \
		-o "$name.static" "${flags[0]}" "$lib/libkdirect.a"
	for program in "$work/$name" "$work/$name.static"; do
		usage=$("$program" 2>&1)
		status=$?
		is "$(basename "$program") without arguments exits with 2" $status 2
		is "$(basename "$program") tells its usage" "${usage%% *}" "usage:"
	done
	needed=$(readelf -d "$work/$name" | grep -o 'libkdirect[^]]*')
	is "$name needs the SONAME" "$needed" libkdirect.so.0
done
for standard in c11 c17; do
	compiles "the headers are $standard" cc -std=$standard "${strict[@]}" -fsyntax-only -x c \
		-include libkdirect.h -include libkdirect_raw.h -include libkdirect_uring.h \
		-include kdirect_netlink.h /dev/null "${flags[0]}"
done
for standard in c++11 c++17 c++20; do
	compiles "the C headers are $standard" c++ -std=$standard "${strict[@]}" -fsyntax-only \
		-x c++ -include libkdirect.h -include libkdirect_raw.h \
		-include libkdirect_uring.h -include kdirect_netlink.h /dev/null "${flags[0]}"
done
compiles "the C++ header is c++20" c++ -std=c++20 "${strict[@]}" -fsyntax-only -x c++ \
	-include libkdirect.hh /dev/null "${flags[0]}"

# --- the interface: what the headers declare, with its version, and nothing else
headers=("$library/include/libkdirect.h" "$library/include/libkdirect_raw.h")
symbols=$(nm -D --defined-only "$lib/libkdirect.so" | awk '$2 != "A" { print $3 }')
is "each symbol has a version" "$(grep -v '@@LIBKDIRECT_0\.[0-9]*$' <<<"$symbols")" ""
declared=$(cat "${headers[@]}" | sed 's/^static inline.*//' |
	grep -oE '^[a-z].*\bkdirect_[a-z_]+\(' | grep -oE 'kdirect_[a-z_]+\($' | tr -d '(' | sort)
is "the library has what the headers declare" \
	"$(awk -F @@ '{ print $1 }' <<<"$symbols" | sort)" "$declared"

# --- the manual: each function has a page, by its name
for function in $declared $(grep -ohE '\bkdirect_(prep|desc)_[a-z_]+\(' "${headers[@]}" |
	tr -d '(' | sort -u) kdirect_uring_prep; do
	[[ -e $work/root/usr/share/man/man3/$function.3 ]]
	tap "$function has a manual page" $?
done

tap_done
