#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# bench/check.sh [--record]: compares instruction counts of the fixed steps of bench/check with
# bench/bench-check.txt; run by `make bench-check` in the build folder. A count more than 3 % above
# the recorded one fails; --record rewrites the file.
#
# Instruction counts do not depend on the load of the machine, but on the compiler and its flags,
# which the file records: with others nothing is compared. They depend on the processor's vectors,
# too: valgrind emulates AVX2 at most, even on AVX-512, so the counts are those of the AVX2
# kernels. A processor without AVX2 is skipped with a reason.
limit=3
file=${TENON_SRCDIR:?}/bench/bench-check.txt

skip() { echo "SKIP: bench-check: $1"; exit 0; }
[ -z "$TENON_SANITIZE" ] || skip 'a build with sanitizers has other instructions'
command -v valgrind >/dev/null || skip 'valgrind is not installed'
[ "$(uname -m)" = x86_64 ] || skip 'recorded on x86-64'
grep -qw avx2 /proc/cpuinfo || skip 'no AVX2; the counts were recorded with it'

# Paths of the build do not affect instructions.
flags=$(echo "$TENON_FLAGS" | tr -s ' ')
compiler="$($CC --version | sed -n 1p), $flags"
tmp=$(mktemp -d "${TMPDIR:-/tmp}/tenon-check.XXXXXX") || exit 1
trap 'rm -rf "$tmp"' EXIT
trap 'exit 1' HUP INT TERM

# count NAME: instructions of the step.
count() {
  $LIBTOOL --mode=execute valgrind --tool=callgrind --toggle-collect=bench_counted --callgrind-out-file="$tmp/out" \
    bench/check "$1" >"$tmp/log" 2>&1 || { cat "$tmp/log" >&2; return 1; }
  sed -n 's/^summary: //p' "$tmp/out"
}

if [ "$1" = --record ]; then
  {
    echo '# Instructions of each step of bench/check, AVX2 kernels; written by `make bench-check-record`.'
    echo "# compiler: $compiler"
    for name in $(bench/check); do
      n=$(count "$name") || exit 1
      echo "$name $n"
    done
  } >"$tmp/new" || exit 1
  cp "$tmp/new" "$file" && cat "$file"
  exit
fi

[ -r "$file" ] || { echo "bench-check: $file is missing; make bench-check-record" >&2; exit 1; }
recorded=$(sed -n 's/^# compiler: //p' "$file")
[ "$recorded" = "$compiler" ] || skip "recorded with '$recorded', this is '$compiler'; make bench-check-record here, then compare"
bad=0
for name in $(bench/check); do
  n=$(count "$name") || exit 1
  was=$(sed -n "s/^$name //p" "$file")
  awk -v name="$name" -v n="$n" -v was="$was" -v limit=$limit 'BEGIN {
    if (was == "") { printf "FAILED %-16s %12d instructions, none recorded\n", name, n; exit 1 }
    change = 100 * (n - was) / was
    verdict = change > limit ? "FAILED" : "ok"
    printf "%-6s %-16s %12d instructions, %+.2f %%%s\n", verdict, name, n, change, change < -limit ? " (worth recording)" : ""
    exit change > limit
  }' || bad=1
done
exit $bad
