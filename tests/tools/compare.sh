#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# bench/compare and the programs it runs, as far as possible without its peers. Prints TAP.
src=${TENON_SRCDIR:-$(cd "$(dirname "$0")/../.." && pwd)}
build=${TENON_BUILDDIR:-$src/build}
: "${TENON_PLUGIN_PATH:=$build/plugins/.libs}"
export TENON_PLUGIN_PATH
tmp=$(mktemp -d "${TMPDIR:-/tmp}/tenon-compare.XXXXXX") || exit 99
trap 'rm -rf "$tmp"' EXIT
trap 'exit 1' HUP INT TERM
n=0

ok() { n=$((n + 1)); echo "ok $n - $1"; }
skip() { n=$((n + 1)); echo "ok $n - $1 # SKIP $2"; }
not_ok() {
  n=$((n + 1))
  echo "not ok $n - $1"
  { echo "status $status"; head -n 12 "$tmp/out"; head -n 12 "$tmp/err"; } | sed 's/^/# /'
}

# gives NAME STATUS PATTERN COMMAND...: the command ends with the status, and a line of its output
# matches the pattern.
gives() {
  name=$1 wanted=$2 pattern=$3
  shift 3
  "$@" >"$tmp/out" 2>"$tmp/err" </dev/null
  status=$?
  if [ "$status" -eq "$wanted" ] && cat "$tmp/out" "$tmp/err" | grep -qE -e "$pattern"; then ok "$name"; else not_ok "$name"; fi
}

if command -v python3 >/dev/null; then
  gives 'compare: --help names the options' 0 '--passes-off' "$src/bench/compare" --help
  gives 'compare: an unknown option is an error' 2 'unrecognized arguments: --nothing' "$src/bench/compare" --nothing
  gives 'compare: a build without bench/model is an error' 1 '^compare: .*bench/model is not there' "$src/bench/compare" \
    --build "$tmp" --no-build --no-setup --peers
  gives 'compare: taps on the padding do not count as work, all others do' 0 '^22 24 8 5$' python3 -B -c "
import sys
sys.path.insert(0, '$src/bench')
from compare_count import taps
print(taps(8, 8, 3, 1, 1, 1), taps(10, 8, 3, 1, 1, 0), taps(8, 4, 2, 2, 1, 0), taps(5, 1, 8, 1, 1, 1))"
else
  skip 'compare: taps on the padding do not count as work, all others do' 'no python3'
  skip 'compare: a build without bench/model is an error' 'no python3'
  skip 'compare: --help names the options' 'no python3'
  skip 'compare: an unknown option is an error' 'no python3'
fi

gives 'model: measures the limits of the machine' 0 '"flops": [0-9.e+]*, "bandwidth"' "$build/bench/model" --machine 65536
gives 'model: a missing case is an error' 1 '"error"' "$build/bench/model" --case "$tmp"

digits=${TENON_MODELS:-$src/../shared/models}/digits
if [ -r "$digits/case.json" ]; then
  gives 'model: runs a model and accepts its result' 0 '"error_share"' "$build/bench/model" --case "$digits" --tile 2
  gives 'model: options of the session are given by name' 1 'no_such_field' "$build/bench/model" --case "$digits" --option no_such_field=1
  cp -r "$digits" "$tmp/wrong" && chmod -R u+w "$tmp/wrong" &&
    sed 's/expected\.npy/images.npy/' "$digits/case.json" >"$tmp/wrong/case.json"
  gives 'model: an unexpected result is an error' 1 'than expected' "$build/bench/model" --case "$tmp/wrong"
  if command -v python3 >/dev/null; then
    gives 'compare: Tenon alone gives a table' 0 '^\| digits \| [0-9.]+ \(' "$src/bench/compare" --build "$build" --no-build \
      --no-setup --peers --models "$digits/.." --case digits --seconds 0.03 --loads 1 --out "$tmp/out.d"
  else
    skip 'compare: Tenon alone gives a table' 'no python3'
  fi
else
  for name in 'model: runs a model and accepts its result' 'model: options of the session are given by name' \
    'model: an unexpected result is an error' 'compare: Tenon alone gives a table'; do
    skip "$name" 'no models (TENON_MODELS)'
  done
fi
echo "1..$n"
