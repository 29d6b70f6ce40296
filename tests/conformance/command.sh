#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# tenon-conformance as seen by its user: arguments, filters, plugin files; and runtimes that break
# a rule of sessions fail with that rule (rules of plugins: check-conformance-faults.sh). Prints
# TAP.
. "${TENON_SRCDIR:-$(cd "$(dirname "$0")/../.." && pwd)}/tests/tools/tool_kit.sh" test-conformance
conformance=$build/tenon-conformance
plugins=${TENON_TEST_PLUGINS:-$build/tests/plugins/.libs}
TMPDIR=$tmp
export TMPDIR

# ---- arguments ----

run 0 "$conformance" --help && grep -q '^Usage: tenon-conformance RUNTIME' out
is '--help shows the usage'
run 0 "$conformance" --version && grep -qE '^tenon-conformance [0-9]+\.[0-9]+\.[0-9]+' out && grep -q '^plugin ABI ' out
is '--version shows the version'

refused() {
  pattern=$1
  shift
  run 2 "$conformance" "$@" && grep -qE "^tenon-conformance: [A-Z_]+: .*$pattern" err && [ ! -s out ]
}
refused 'no runtime was given'
is 'a runtime must be named'
refused "unknown option '--nothing'" direct --nothing && refused "unknown option '-x'" -x &&
  refused "option '--filter' requires a value" direct --filter && refused "'--list=x' does not take a value" --list=x
is 'errors name wrong options'
refused "'--jobs' is '0'" direct --jobs 0 && refused "'--timeout' is '1s'" direct --timeout 1s &&
  refused "'--jobs' is '-1'" direct --jobs -1 && refused "'--jobs' is '9{20}'" direct --jobs 99999999999999999999
is 'numbers are checked'
refused "unexpected argument 'more'" direct more && refused "'--list' does not take a runtime" direct --list
is 'errors name an extra argument'
refused "no test, suite or rule matches 'nothing'" direct --filter nothing
is 'a filter without matches is an error'
refused "'./nothing.so': No such file" ./nothing.so
is 'a missing file is an error'

# ---- list and filters ----

run 0 "$conformance" --list && [ "$(grep -c '__' out)" -gt 400 ] && [ "$(grep -c ' S-[A-Z]' out)" -gt 250 ] &&
  grep -qE '^session_run__gives_fetches_in_the_order_asked +S-RUN-01$' out && ! grep -qE '__.*__' out
is '--list shows each test with its rules'
run 0 "$conformance" --list --filter 'plugin_*' && [ "$(wc -l <out)" -gt 60 ] && [ "$(grep -c ' P-[0-9]' out)" -gt 60 ] &&
  ! grep -vq ' [PS]-' out
is 'each test of plugins names a rule'
run 0 "$conformance" --list
awk '{ print $1 }' out | sort >names && [ "$(uniq names | wc -l)" -eq "$(wc -l <names)" ]
is 'test names are unique'
run 0 "$conformance" --list --filter 'S-RST-0*' && [ "$(wc -l <out)" -gt 5 ] && ! grep -vq 'S-RST-0' out
is 'a rule is a filter'
run 0 "$conformance" --list --filter queues --filter 'cancel__*' && [ "$(wc -l <out)" -gt 15 ] &&
  ! grep -vqE '^(queues|cancel)__' out
is 'suites and tests are filters'

# ---- runtimes ----

run 0 "$conformance" direct --filter 'S-RUN-0*' && head -n 1 out | grep -qE '^1\.\.[0-9]+$' &&
  [ "$(grep -c '^ok ' out)" = "$(sed -n 's/^1\.\.//p' out)" ] &&
  tail -n 1 out | grep -qE '^# direct: [0-9]+ passed, 0 failed, [0-9.]+ s$'
is 'direct passes'
run 0 "$conformance" direct --jobs 4 --filter 'S-RUN-0*' &&
  awk '/^ok / { if ($2 != ++n) exit 1 }' out
is 'results are in order for any number of concurrent tests'
run 1 "$conformance" nowhere && grep -q '^1\.\.1$' out && grep -q "^not ok 1 - .*S-LIFE-01" out &&
  grep -q "there is no runtime 'nowhere'" out
is 'a missing runtime is one failed test'
run 1 "$conformance" direct:deep=1 && grep -q "there is no setting 'deep'" out && [ "$(grep -c '^not ok' out)" -eq 1 ]
is 'wrong settings are one failed test'
if [ -e "$plugins/minimal.so" ]; then
  run 0 "$conformance" "$plugins/minimal.so" --filter session_run && grep -q '^ok .*S-RUN-01' out
  is 'a plugin can be named by its file'
  cp "$plugins/minimal.so" "$tmp/Minimal-1.so" && run 1 "$conformance" ./Minimal-1.so && ! grep -q session_run out &&
    grep -q 'is not a plugin name' out && [ "$(grep -c '^not ok' out)" -eq 1 ] && ! grep -q '(null)' out &&
    grep -q '^ok .*plugin_load__opens_a_session' out
  is 'a file with an unsuitable name fails only for that'
  run 1 "$conformance" "$plugins/no_manifest.so" && ! grep -q session_run out && grep -q '.tenon.manifest' out
  is 'a file without a manifest fails'
  run 1 "$conformance" "$plugins/kernels_only.so" && grep -q '^not ok .*plugin_kernels' out && ! grep -q session_run out &&
    grep -q 'returned OK and registered nothing' out
  is 'a kernel plugin is recognised and tested'
  [ -z "$(ls -d "$tmp"/tenon-* 2>/dev/null)" ]
  is 'the temporary folder is empty'
else
  skip 'plugins by their files' 'the test plugins were not built'
fi

# ---- faults ----

# faulty FAULT RULE FILTER [ARGUMENT...]: the run fails, and a failed test names the rule.
faulty() {
  fault=$1 rule=$2 filter=$3
  shift 3
  run 1 "$conformance" "$plugins/faulty.so:fault=$fault" --jobs 2 --filter "$filter" "$@" &&
    grep -q "^not ok .*[( ]$rule[ )]" out
  is "fault=$fault breaks $rule"
}
# skipped FAULT FILTER REASON: a missing feature is skipped, with the reason, and nothing fails. A
# skipped test may leak, which is not checked here.
skipped() {
  run 0 env ASAN_OPTIONS="${ASAN_OPTIONS:-}:detect_leaks=0" "$conformance" "$plugins/faulty.so:fault=$1" --jobs 2 --filter "$2" --filter runtime_works &&
    grep -q "# SKIP UNIMPLEMENTED: .*$3" out && ! grep -q '^not ok' out
  is "fault=$1 skips the tests of that feature"
}
if [ -e "$plugins/faulty.so" ]; then
  run 0 "$conformance" "$plugins/faulty.so:fault=none" --filter session_run --filter reset_state
  is 'the plugin without a fault passes'
  faulty deaf S-LIFE-04 'blocked_steps__end_when*' --timeout 3
  faulty scribbles S-RUN-28 session_run
  faulty loses S-RUN-01 session_run
  faulty lies S-RUN-02 session_run
  faulty hides S-RUN-08 session_run
  faulty forgets S-RST-06 reset_state
  faulty clears S-RST-07 reset_state
  faulty exits S-RUN-01 runtime_works
  grep -q '^# its process ended with status 0 in the test$' out
  is 'exit(0) does not pass for success'
  faulty crashes S-RUN-01 runtime_works
  faulty hangs P-87 runtime_works --timeout 1
  grep -q '^# it did not end in 1 s' out
  is 'a test that hangs is ended'
  faulty deaf S-LIFE-04 'blocked_steps__end_when*' --timeout 3
  rule=$(sed -n 's/^- S-LIFE-04 \(.*[^]]\) \[.*/\1/p' "$src/docs/spec/session-semantics.md" | tr -d '`*')
  [ -n "$rule" ] && grep -qF "# S-LIFE-04: $rule" out
  is 'the rules of a test that hangs are shown with their texts'
  skipped no_reset reset_state 'it keeps what it has'
  skipped no_partial_runs partial_run 'it runs whole plans only'
else
  skip 'runtimes with faults' 'the test plugins were not built'
fi
echo "1..$n"
