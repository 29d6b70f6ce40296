#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Runs oracle_run on the cases in tests/oracle and on the models (TENON_MODELS, or
# ../shared/models), at level 0 and at the default level; stateless cases also operation by
# operation. Prints TAP: one line for each family and level, with the runner's counts.
# TENON_TEST_RUNTIME selects another runtime. The cases also run with parts of plans computed by a
# runtime itself (tests/plugins/offload.c).
src=${TENON_SRCDIR:-$(cd "$(dirname "$0")/../.." && pwd)}
build=${TENON_BUILDDIR:-.}
runtime=${TENON_TEST_RUNTIME:-direct}
models=$TENON_MODELS
if [ -z "$models" ] && [ -d "$src/../shared/models" ]; then models=$src/../shared/models; fi

eager=--eager

# check WHAT LEVEL FOLDER: the lines of the table become TAP without numbers, all others comments.
# A run fails if its last line is missing or its counts differ from those of the table.
check() {
  { "$build/tests/oracle/run/oracle_run" $eager --runtime "$runtime" --level "$2" "$3" 2>&1; echo "exit status $?"; } |
    awk -v what="$1 on $runtime, level $2" '
      /^family +passed/ { table = 1; next }
      /^exit status [0-9]+$/ { status = $3; next }
      /^[0-9]+ passed, [0-9]+ failed, [0-9]+ skipped$/ { ended = 1; failed = $3 }
      table && NF == 5 && $2 $3 $4 ~ /^[0-9]+$/ {
        printf "%s - %s: %s: %d passed, %d failed, %d skipped\n", $3 ? "not ok" : "ok", what, $1, $2, $3, $4
        counted += $3
        next
      }
      { print "# " $0 }
      END { if (!ended || status > 1 || failed != counted) printf "not ok - %s: ended with status %d\n", what, status }'
}

{
  for level in 0 1; do check oracle "$level" "$src/tests/oracle"; done
  if [ -d "$models" ]; then
    for level in 0 1; do check models "$level" "$models"; done
  else
    echo "ok - models # SKIP no models: set TENON_MODELS to their folder${models:+ ($models is not one)}"
  fi
  if [ -z "${TENON_TEST_RUNTIME:-}" ]; then
    TENON_PLUGIN_PATH=${TENON_PLUGIN_PATH:+$TENON_PLUGIN_PATH:}${TENON_TEST_PLUGINS:-$build/tests/plugins/.libs}
    export TENON_PLUGIN_PATH
    eager=
    for runtime in test.offload test.offload:take=half; do
      for level in 0 1; do check parts "$level" "$src/tests/oracle"; done
    done
  fi
} | awk '
  /^ok - / { sub(/^ok/, "ok " ++n) }
  /^not ok - / { sub(/^not ok/, "not ok " ++n) }
  { print }
  END { print "1.." n + 0 }'
