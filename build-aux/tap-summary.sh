#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# tap-summary.sh LOG: print "PASSED FAILED SKIPPED" from automake's test-suite.log; "0 1 0" when there is none.
test -r "$1" || { echo "0 1 0"; exit 0; }
awk '
  /^# TOTAL:/ { seen = 1 }
  /^# (PASS|XFAIL):/ { passed += $3 }
  /^# (FAIL|XPASS|ERROR):/ { failed += $3 }
  /^# SKIP:/ { skipped += $3 }
  seen && /^# ERROR:/ { exit }
  END { if (!seen) failed = 1; print passed + 0, failed + 0, skipped + 0 }
' "$1"
