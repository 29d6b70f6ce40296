#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# A test program started by hand: its filters, the build that it tests, and the commands in CONTRIBUTING.md. Prints TAP.
. "${TENON_SRCDIR:-$(cd "$(dirname "$0")/../.." && pwd)}/tests/tools/tool_kit.sh" programs
program=$build/tests/base/error
if [ ! -x "$program" ]; then
  echo '1..0 # SKIP there is no CUnit, so there are no test programs'
  exit 0
fi

run 0 "$program" 'status__*' && sed -n 1p out | grep -qE '^1\.\.[1-9]' && ! grep -q '^not ok' out
is 'a filter runs the matching tests'
run 2 "$program" 'nothing__*' && [ ! -s out ] && grep -qF "error: no test matches 'nothing__*'; '--list' shows" err
is 'a filter without a match is an error'
run 2 "$program" 'status__*' 'nothing' && [ ! -s out ] && grep -qF "no test matches 'nothing'" err
is 'also if another filter matches'

# bare PROGRAM ARGUMENT...: runs it from another folder, without the variables that make check sets; all its tests must pass.
bare() {
  run 0 env -u TENON_SRCDIR -u TENON_BUILDDIR -u TENON_PLUGIN_PATH -u TENON_PLUGIN_PATH_ONLY -u TENON_TEST_PLUGINS \
    -u TENON_PROBE_PROGRAM "$@" && grep -q '^ok' out && ! grep -qE '^not ok|^Bail' out
}
for one in 'conformance/sessions/session_run session_run__placeholder_must_be_fed' 'tests/formats/npy *' 'tests/registry/loader loader__loads_once'; do
  name=${one%% *}
  if [ -x "$build/$name" ]; then
    bare "$build/$name" "${one#* }"
    is "$name finds runtimes, sources and modules of its build by itself"
  else
    skip "$name by itself" 'it was not built'
  fi
done

# Each "build/tests/NAME 'FILTER'" in CONTRIBUTING.md is a program with matching tests.
grep -oE "build/tests/[a-z_]+/[a-z_]+ '[^-'][^']*'" "$src/CONTRIBUTING.md" | tr -d "'" >shown
good=true
[ -s shown ] || good=false
while read -r name filter; do
  run 0 "$build/${name#build/}" "$filter" || good=false
done <shown
$good
is 'CONTRIBUTING.md shows existing programs and filters'

echo "1..$n"
