#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# What the built objects show: libtenon only tn_ names, each plugin only its entry (P-93), and no plugin needs libtenon
# (P-35). Prints TAP.
build=${TENON_BUILDDIR:-$(cd "$(dirname "$0")/../build" && pwd)}
n=0

report() {
  n=$((n + 1))
  if [ -z "$2" ]; then
    echo "ok $n - $1"
  else
    echo "not ok $n - $1"
    printf '%s\n' "$2" | sed 's/^/# /' | head -n 20
  fi
}

skip_all() {
  echo "1..0 # SKIP $1"
  exit 0
}

command -v nm >/dev/null && command -v readelf >/dev/null || skip_all 'nm and readelf are needed'
lib=$build/.libs/libtenon.so
[ -e "$lib" ] || skip_all 'no shared library was built'
# Sanitizers add symbols of their own.
nm -D "$lib" | grep -qE '__(asan|tsan|ubsan)_' && skip_all 'built with sanitizers'

exported() { nm -D --defined-only "$1" | awk '$2 != "A" { sub(/@.*/, "", $3); print $3 }'; }

report 'libtenon exports tn_ names only' "$(exported "$lib" | grep -vE '^tn_[^_]')"
report 'libtenon exports something' "$(exported "$lib" | grep -q . || echo nothing)"
for so in "$build"/plugins/.libs/*.so; do
  [ -e "$so" ] || continue
  name=${so##*/}
  report "$name exports its entry only" "$(exported "$so" | grep -vxE '[a-z][a-z0-9_]*_LTX_tn_plugin_query'
    [ "$(exported "$so" | wc -l)" -eq 1 ] || echo "$(exported "$so" | wc -l) symbols")"
  report "$name does not need libtenon" "$(readelf -d "$so" | grep NEEDED | grep tenon)"
  report "$name takes no symbol from the program" "$(nm -D --undefined-only "$so" | grep -E ' tn_')"
done
echo "1..$n"
