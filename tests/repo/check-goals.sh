#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# check-goals.sh: `make -j2 all tests/x` builds nothing twice at once (build-aux/goals.mk). Prints TAP.
set -u
src=${TENON_SRCDIR:-$(cd "$(dirname "$0")/../.." && pwd)}
build=${TENON_BUILDDIR:-$src/build}
unset MAKEFLAGS MFLAGS MAKELEVEL MAKEOVERRIDES || true
make=${MAKE:-make}
tmp=$(mktemp -d "${TMPDIR:-/tmp}/tenon-goals.XXXXXX") || exit 99
trap 'rm -rf "$tmp"' EXIT
n=0
is() {
  good=$?
  n=$((n + 1))
  if [ $good -eq 0 ]; then echo "ok $n - $1"; else echo "not ok $n - $1"; tail -n 5 "$tmp/log" | sed 's/^/# /'; fi
}
if ! $make --version 2>/dev/null | grep -q 'GNU Make' || [ ! -e "$build/Makefile" ]; then echo "1..0 # SKIP no GNU make"; exit 0; fi

# A library that two makes may build, but only one at a time; `all` as automake writes it.
cat >"$tmp/Makefile" <<END
all: ; \$(MAKE) all-am
all-am: lib slow
recheck: all x
lib: ; mkdir busy && sleep 0.3 && rmdir busy && touch lib
slow: lib ; echo "slow \$(MAKEFLAGS)" >jobs
x y: lib ; touch \$@
-include $src/build-aux/goals.mk
END

for goals in 'all x' 'x all' 'all x y' recheck; do
  rm -rf "$tmp/lib" "$tmp/x" "$tmp/y" "$tmp/busy"
  # shellcheck disable=SC2086 # a list of goals
  $make -C "$tmp" -j2 $goals >"$tmp/log" 2>&1
  is "make -j2 $goals"
done
grep -q 'j' "$tmp/jobs"
is 'all gets all jobs'

# serial GOAL...: whether make would build these goals one after the other in the build folder.
serial() { $make -s -C "$build" -pq -j2 "$@" 2>/dev/null | grep -q '^\.NOTPARALLEL:'; }
serial all tests/base/base && serial bench && ! serial all && ! serial tests/base/base tests/base/error
is 'the Makefile of the build serialises goals in this way'
echo "1..$n"
