#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Run by make check on the built plugin: it exports one symbol, is listed and loaded, gives the results of 'direct', and
# refuses an unknown setting. The Makefile sets TENON, PLUGIN and RUNTIME.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
model=$here/model.pbtxt
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
TENON_PLUGIN_PATH=$(dirname "$PLUGIN")${TENON_PLUGIN_PATH:+:$TENON_PLUGIN_PATH}
export TENON_PLUGIN_PATH

fail() {
  echo "check: $*" >&2
  cat "$tmp/err" >&2 2>/dev/null || :
  exit 1
}

symbols=$(nm -D --defined-only "$PLUGIN" | wc -l)
[ "$symbols" -eq 1 ] || fail "it shows $symbols symbols, wanted its entry point alone"

"$TENON" runtimes --load >"$tmp/list" 2>"$tmp/err" || fail "tenon runtimes --load"
grep -F "$PLUGIN" "$tmp/list" | grep -q "^$RUNTIME .* loaded " || fail "not loaded: $(cat "$tmp/list")"

for fetch in y chosen picked text; do
  for runtime in direct "$RUNTIME"; do
    "$TENON" run "$model" --runtime "$runtime" --feed x='[[1, 2], [3, -4]]' --fetch $fetch --steps 5 2>"$tmp/err" |
      grep -v '^5 steps in ' >"$tmp/$runtime" || fail "tenon run on $runtime, --fetch $fetch"
  done
  cmp "$tmp/direct" "$tmp/$RUNTIME" ||
    fail "--fetch $fetch: direct gives $(cat "$tmp/direct"), $RUNTIME $(cat "$tmp/$RUNTIME")"
done

./run "$model" direct >"$tmp/c.direct" 2>"$tmp/err" || fail "a program, on direct"
./run "$model" "$RUNTIME" >"$tmp/c" 2>"$tmp/err" || fail "a program, on $RUNTIME"
cmp "$tmp/c.direct" "$tmp/c" || fail "a program gets another result on $RUNTIME"

if "$TENON" run "$model" --runtime "$RUNTIME:no_such=1" --feed x='[[1, 2]]' --fetch y >/dev/null 2>"$tmp/err"; then
  fail "the setting no_such=1 is taken"
fi
grep -q "no_such" "$tmp/err" || fail "the setting no_such=1 is refused without being named"
echo "$RUNTIME: listed, loaded, gives what direct gives"
