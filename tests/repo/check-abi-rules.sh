#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Rules of the plugin ABI that can be checked in headers and objects: every struct begins with its size (P-24), sizes end with
# the last field (P-25), only types of known width cross the ABI (P-33), neither libltdl's search nor lt_dlexit is used
# (P-07, P-76), and a plugin built by another compiler loads (P-31). Prints TAP.
src=${TENON_SRCDIR:-$(cd "$(dirname "$0")/../.." && pwd)}
build=${TENON_BUILDDIR:-$src/build}
tmp=$(mktemp -d) || exit 99
trap 'rm -rf "$tmp"' EXIT
n=0

# report NAME FAULTS: ok without faults.
report() {
  n=$((n + 1))
  if [ -z "$2" ]; then
    echo "ok $n - $1"
  else
    echo "not ok $n - $1"
    printf '%s\n' "$2" | sed 's/^/# /' | head -n 20
  fi
}
skip() {
  n=$((n + 1))
  echo "ok $n - $1 # SKIP $2"
}

# All public headers without comments and strings.
cat "$src"/include/tenon/*.h | sed 's|//.*||; s|"[^"]*"||g' | awk '
  { line = $0
    while (1) {
      if (inside) { at = index(line, "*/"); if (!at) { line = ""; break } line = substr(line, at + 2); inside = 0 }
      at = index(line, "/*"); if (!at) break
      rest = substr(line, at + 2); end = index(rest, "*/")
      if (end) line = substr(line, 1, at - 1) " " substr(rest, end + 2)
      else { line = substr(line, 1, at - 1); inside = 1; break }
    }
    print line }' >"$tmp/headers"

# Structs without a size field, each with the reason:
#   tn_output tn_callable tn_partial_run tn_eager_handle   passed by value, and never grow
#   tn_string tn_handle                    elements of tensors, with the layout of the data
#   tn_import_mapping                      an element of an array in a struct with a size
#   tn_eager_attr                          an element of an array that the caller passes
#   tn_consumer                            an element of an array that the library fills
#   tn_view                                created by the host only, in arrays of pointers, so it can grow at its end
fixed=' tn_output tn_callable tn_partial_run tn_eager_handle tn_eager_attr tn_string tn_handle tn_import_mapping tn_consumer tn_view '
awk '
  /^(typedef )?struct [a-z_0-9]+ *\{/ { for (i = 1; i <= NF; i++) if ($i == "struct") name = $(i + 1); want = 1; next }
  want && NF { print name, $1, $2; want = 0 }' "$tmp/headers" >"$tmp/structs"
faults=$(while read -r name type field; do
  case $fixed in *" $name "*) continue ;; esac
  [ "$type $field" = 'size_t struct_size;' ] || echo "struct $name begins with '$type $field'"
done <"$tmp/structs")
[ "$(wc -l <"$tmp/structs")" -gt 20 ] || faults="only $(wc -l <"$tmp/structs") structs were found"
report 'every public struct begins with its size' "$faults"

# TN_X_SIZE ends with the last field: the padding after it is less than the alignment.
{
  for header in "$src"/include/tenon/*.h; do echo "#include <tenon/${header##*/}>"; done
  grep -hoE '^#define TN_[A-Z_]+_SIZE TN_SIZE_TO\([a-z_]+, [a-z_]+\)' "$tmp/headers" | grep -vE '_MIN_SIZE|TN_OP_FAMILY_SIZE' | # a family without rewrites may end before them
    sed -E 's/^#define (TN_[A-Z_]+) TN_SIZE_TO\(([a-z_]+), ([a-z_]+)\)/_Static_assert(sizeof(\2) - \1 < _Alignof(\2), "\1 ends before the last field");\
_Static_assert(\1 == offsetof(\2, \3) + sizeof(((\2 *)0)->\3), "\1 is not the end of \3");/'
} >"$tmp/sizes.c"
faults=$(${CC:-cc} -std=gnu11 -I"$build/include" -I"$src/include" -include stddef.h -fsyntax-only "$tmp/sizes.c" 2>&1)
[ "$(grep -c _Static_assert "$tmp/sizes.c")" -ge 20 ] || faults="only $(grep -c _Static_assert "$tmp/sizes.c") assertions were made"
report 'sizes end with the last field' "$faults"

# Types whose width depends on the platform or the compiler, and bit-fields.
faults=$(grep -nE '(^|[^a-z_A-Z0-9])(long|FILE|va_list|time_t|bool|_Bool|wchar_t|std::[a-z]+)([^a-z_A-Z0-9]|$)' "$tmp/headers" |
  grep -vE '#|v?snprintf')
report 'types of known width only' "$faults"
faults=$(grep -nE '^ +(u?int[0-9]*_t|unsigned|int|tn_bool) +[a-z_]+ *: *[0-9]+ *;' "$tmp/headers")
report 'no bit-fields' "$faults"
faults=$(grep -nE '^ +enum +[a-z_]+ +[a-z_*]+;' "$tmp/headers")
report 'no fields of an enum type' "$faults"

# ---- objects ----

lib=$build/.libs/libtenon.so
if [ -e "$lib" ] && command -v nm >/dev/null; then
  report 'the search of libltdl is not used' \
    "$(nm -D --undefined-only "$lib" | grep -E ' lt_dl(foreachfile|addsearchdir|insertsearchdir|setsearchpath|openext|exit)')"
  faults=$(nm -D --undefined-only "$lib" | grep -qE ' lt_dlopenadvise' || echo 'lt_dlopenadvise is missing: is this the library?')
  report 'libltdl opens' "$faults"
else
  skip 'the search of libltdl is not used' 'no shared library, or no nm'
fi

# Builds the minimal plugin with each available compiler, and flags that change as much as they can.
tenon=$build/tenon
mkdir "$tmp/plugins"
build_one() {
  name=$1
  shift
  sed "s/test\.minimal/test.$name/g" "$src/tests/plugins/minimal.c" >"$tmp/$name.c"
  "$@" -shared -fPIC -fvisibility=hidden -DTN_PLUGIN="$name" -I"$build/include" -I"$src/include" "$tmp/$name.c" \
    -o "$tmp/plugins/$name.so" >"$tmp/log" 2>&1
}
load_one() {
  TENON_PLUGIN_PATH=$tmp/plugins TENON_PLUGIN_PATH_ONLY=1 "$tenon" runtimes --load >"$tmp/list" 2>&1
  grep -E "^test\.$1 " "$tmp/list" | grep -q ' loaded ' || { cat "$tmp/list"; echo "not loaded"; }
}
if [ -x "$tenon" ] && ! nm -D "$lib" 2>/dev/null | grep -qE '__(asan|tsan|ubsan)_'; then
  # P-15: unreferenced sections are dropped, except the manifest's
  for flags in '-O2 -ffunction-sections -fdata-sections -Wl,--gc-sections -Wl,-s' '-O0 -g3' '-O3 -fno-plt' '-Os -fno-asynchronous-unwind-tables -fomit-frame-pointer' '-O2 -std=c99 -D_FORTIFY_SOURCE=2'; do
    name=$(echo "f$flags" | tr -dc 'a-z0-9' | cut -c1-40)
    # shellcheck disable=SC2086
    if build_one "$name" ${CC:-cc} $flags; then report "loads with $flags" "$(load_one "$name")"; else report "builds with $flags" "$(cat "$tmp/log")"; fi
  done
  for compiler in gcc clang tcc; do
    command -v "$compiler" >/dev/null || { skip "a plugin made by $compiler loads" "no $compiler"; continue; }
    if build_one "by_$compiler" "$compiler" -O1; then report "a plugin made by $compiler loads" "$(load_one "by_$compiler")"; else report "$compiler builds it" "$(cat "$tmp/log")"; fi
  done
else
  skip 'a plugin made by another compiler loads' 'no command, or built with sanitizers'
fi
echo "1..$n"
