#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Symbols of the built objects: libtenon exports only tn_ names; each plugin exports only its entry, and nothing in the
# program can replace its functions (P-93); no plugin needs libtenon (P-35). Prints TAP.
src=${TENON_SRCDIR:-$(cd "$(dirname "$0")/../.." && pwd)}
build=${TENON_BUILDDIR:-$(cd "$(dirname "$0")/../../build" && pwd)}
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
# Sanitizers add their own symbols.
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

# ---- a program with a function of the same name as a plugin's ----

tmp=$(mktemp -d) || exit 99
trap 'rm -rf "$tmp"' EXIT
sed -e 's/test\.minimal/test.clash/g' -e 's/^  \.n_factories = 1,/&\n  .init = init,/' -e 's/n_factories),/init),/' \
  -e 's/^static tn_bool accepts_options/extern int util(void);\
int util(void) { return 1; }\
static tn_status init(tn_error *err) { return util() == 1 ? TN_OK : tn_error_set(err, TN_INTERNAL, "util is another"); }\
&/' "$src/tests/plugins/minimal.c" >"$tmp/clash.c"
cat >"$tmp/program.c" <<'END'
#include <stdio.h>
#include <tenon/tenon.h>
extern int util(void);
int util(void) { return 2; }
int main(void)
{
  tn_error err = TN_ERROR_INIT;
  tn_runtime_info info = { .struct_size = sizeof info };
  tn_status status = tn_runtime_load("test.clash", &info, &err);
  if (status != TN_OK) fprintf(stderr, "%s\n", tn_error_message(&err));
  tn_error_clear(&err);
  return status == TN_OK ? 0 : 1;
}
END
mkdir "$tmp/plugins"
includes="-I$build/include -I$src/include"
# with FLAG...: builds the plugin with these flags, and loads it into the program. Returns 2 if it cannot be built.
with() {
  # shellcheck disable=SC2086
  ${CC:-cc} -O0 -fPIC -shared -DTN_PLUGIN=clash $includes "$@" "$tmp/clash.c" -o "$tmp/plugins/clash.so" 2>"$tmp/log" || return 2
  TENON_PLUGIN_PATH=$tmp/plugins TENON_PLUGIN_PATH_ONLY=1 LD_LIBRARY_PATH=$build/.libs "$tmp/program" 2>"$tmp/log"
}
# shellcheck disable=SC2086
if ${CC:-cc} $includes "$tmp/program.c" -o "$tmp/program" -Wl,--export-dynamic -L"$build/.libs" -ltenon 2>"$tmp/log"; then
  with -fvisibility=hidden -Wl,-z,defs -Wl,-z,now -Wl,-Bsymbolic
  report 'a function of the program does not replace one of a plugin' "$([ $? -eq 0 ] || cat "$tmp/log")"
  with
  report 'it would without the flags for that' \
    "$(! grep -q 'util is another' "$tmp/log" && echo 'it does not: this test shows nothing here'; :)"
else
  n=$((n + 1))
  echo "ok $n - a function of the program does not replace one of a plugin # SKIP no program can be linked"
fi
echo "1..$n"
