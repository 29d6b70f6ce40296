#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The rules of sessions hold in every runtime: runs the tests that keep them on each one beside direct, on which make
# check runs them anyway. TENON_TEST_RUNTIMES names others, with settings, between spaces. Prints TAP.
. "${TENON_SRCDIR:-$(cd "$(dirname "$0")/.." && pwd)}/tests/tool_kit.sh" conformance
suite='session session_graph session_run session_step session_threads session_lives callable cancel run_options
  blocked_steps reset_state partial_run partial_steps default_session scoped_session eval config placement control_flow
  branches calls function_loops queues staging barriers variables variable_refs tables tensor_arrays training recurrent'

if [ -z "${TENON_TEST_RUNTIMES:-}" ]; then
  TENON_TEST_RUNTIMES=$("$tenon" runtimes | awk '$2 == "runtime" && $1 != "direct" { print $1 }')
fi
for runtime in $TENON_TEST_RUNTIMES; do
  for name in $suite; do
    if [ ! -x "$build/tests/test_$name" ]; then
      skip "$name on $runtime" 'it was not built'
      continue
    fi
    run 0 env TENON_TEST_RUNTIME="$runtime" TENON_TEST_TIMEOUT="${TENON_TEST_TIMEOUT:-60}" "$build/tests/test_$name" &&
      grep -q '^1\.\.' out && ! grep -qE '^(not ok|Bail out!)' out
    passed=$?
    if [ $passed -ne 0 ]; then grep -A 3 -E '^(not ok|Bail out!)' out >report; mv report out; fi
    [ $passed -eq 0 ]
    is "$name on $runtime"
  done
done
if [ "$n" -eq 0 ]; then echo '1..0 # SKIP there is no runtime beside direct'; else echo "1..$n"; fi
