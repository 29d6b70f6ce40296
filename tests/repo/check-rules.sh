#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Each rule of docs/spec/session-semantics.md and docs/spec/plugin-abi.md has a test that cites it, or a line with the reason
# in tests/repo/untested-rules.txt. Tests are in tests/ and conformance/, and are also scripts, fuzz targets and benchmarks.
# Prints TAP.
cd "${TENON_SRCDIR:-$(dirname "$0")/../..}" || exit 99
tmp=$(mktemp -d "${TMPDIR:-/tmp}/tenon-rules.XXXXXX") || exit 99
trap 'rm -rf "$tmp"' EXIT
: "${AWK:=awk}"
n=0

report() {
  n=$((n + 1))
  if [ ! -s "$2" ]; then echo "ok $n - $1"; else
    echo "not ok $n - $1"
    sed 's/^/# /' "$2"
  fi
}

sed -n 's/^- \(S-[A-Z]*-[0-9]*\) .*/\1/p' docs/spec/session-semantics.md >"$tmp/session_rules"
sed -n 's/^- \*\*\(P-[0-9]*\) .*/\1/p' docs/spec/plugin-abi.md >"$tmp/plugin_rules"
sort "$tmp/session_rules" "$tmp/plugin_rules" >"$tmp/rules"
{
  # shellcheck disable=SC2046 # names without spaces
  $AWK -f build-aux/rules.awk $(find tests conformance -name '*.c' | grep -v '^tests/plugins/' | sort)
  # shellcheck disable=SC2046 # names without spaces
  $AWK -v plain=1 -f build-aux/rules.awk $(find tests -name '*.sh' | grep -v check-rules | sort) \
    $(find fuzz bench -name '*.c' | sort)
} | $AWK '{ for (i = 3; i <= NF; i++) print $i, $1 }' | sort -u >"$tmp/citations"
cut -d' ' -f1 "$tmp/citations" | sort -u >"$tmp/cited"

# Lines of the file: "S-EAG-01 to 28: reason" or "S-CFG-23: reason"
$AWK '/^[SP]-/ {
  first = $1
  sub(/:.*/, "", first)
  prefix = first
  sub(/[0-9]+$/, "", prefix)
  from = to = substr(first, length(prefix) + 1)
  if ($2 == "to") to = $3
  sub(/:.*/, "", to)
  for (i = from + 0; i <= to + 0; i++) printf "%s%02d\n", prefix, i
}' tests/repo/untested-rules.txt | sort >"$tmp/excused"

[ "$(wc -l <"$tmp/session_rules")" -gt 200 ] || echo 'docs/spec/session-semantics.md lists hardly any' >"$tmp/few"
[ "$(wc -l <"$tmp/plugin_rules")" -ge 100 ] || echo 'docs/spec/plugin-abi.md lists hardly any' >>"$tmp/few"
touch "$tmp/few"
report 'the rules are found' "$tmp/few"

sort "$tmp/cited" "$tmp/excused" | comm -23 "$tmp/rules" - >"$tmp/missing"
report 'each rule has a test, or a reason why not' "$tmp/missing"

comm -13 "$tmp/rules" "$tmp/cited" >"$tmp/strange"
$AWK 'NR == FNR { strange[$1] = 1; next } $1 in strange' "$tmp/strange" "$tmp/citations" >"$tmp/where"
report 'all rules cited by tests exist' "$tmp/where"

comm -12 "$tmp/cited" "$tmp/excused" >"$tmp/both"
comm -13 "$tmp/rules" "$tmp/excused" >>"$tmp/both"
report 'reasons are given only for existing rules without a test' "$tmp/both"
echo "1..$n"
