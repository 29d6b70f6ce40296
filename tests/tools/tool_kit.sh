# SPDX-License-Identifier: Apache-2.0
# Sourced by the tests of the command (. tool_kit.sh NAME): locations, a temporary working folder,
# counting of tests.
src=${TENON_SRCDIR:-$(cd "$(dirname "$0")/../.." && pwd)}
build=${TENON_BUILDDIR:-$src/build}
tenon=$build/tenon
: "${TENON_PLUGIN_PATH:=$build/plugins/.libs}"
export TENON_PLUGIN_PATH
tmp=$(mktemp -d "${TMPDIR:-/tmp}/tenon-$1.XXXXXX") || exit 99
trap 'rm -rf "$tmp"' EXIT
trap 'exit 1' HUP INT TERM
cd "$tmp" || exit 99
n=0

# is NAME: reports a test, which passes if the last command succeeded.
is() {
  good=$?
  n=$((n + 1))
  if [ "$good" -eq 0 ]; then echo "ok $n - $1"; else
    echo "not ok $n - $1"
    head -n 12 out err 2>/dev/null | cut -c1-300 | sed 's/^/#   /'
  fi
}
skip() { n=$((n + 1)); echo "ok $n - $1 # SKIP $2"; }

# run STATUS COMMAND...: the command ends with the status, in time and without a sanitizer report;
# writes out and err.
limit=
command -v timeout >/dev/null && limit='timeout 100'
run() {
  wanted=$1
  shift
  $limit "$@" >out 2>err </dev/null
  status=$?
  [ "$status" -eq "$wanted" ] && ! grep -qE 'Sanitizer|runtime error:' err
}
# says PATTERN: standard error has a matching line, which begins with a code.
says() { grep -qE "^tenon: [A-Z_]+: .*$1" err; }
