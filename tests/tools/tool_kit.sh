# SPDX-License-Identifier: Apache-2.0
# Read by the tests of the command (. tool_kit.sh NAME): where things are, a folder of their own to be in, how they count.
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

# is NAME: whether the last command of the list before went well.
is() {
  good=$?
  n=$((n + 1))
  if [ "$good" -eq 0 ]; then echo "ok $n - $1"; else
    echo "not ok $n - $1"
    head -n 12 out err 2>/dev/null | cut -c1-300 | sed 's/^/#   /'
  fi
}
skip() { n=$((n + 1)); echo "ok $n - $1 # SKIP $2"; }

# run STATUS COMMAND...: ends with the status, in time and without a report of a sanitizer; leaves out and err.
limit=
command -v timeout >/dev/null && limit='timeout 100'
run() {
  wanted=$1
  shift
  $limit "$@" >out 2>err </dev/null
  status=$?
  [ "$status" -eq "$wanted" ] && ! grep -qE 'Sanitizer|runtime error:' err
}
# says PATTERN: standard error has one line that fits, with a code in front.
says() { grep -qE "^tenon: [A-Z_]+: .*$1" err; }
