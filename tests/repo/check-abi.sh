#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The tree keeps the recorded ABI (P-32, P-98): no offset, type or number has changed and nothing was removed. Additions are
# reported, and `make update-abi` records them. Seeded changes show that the check detects each kind. Prints TAP.
#   check-abi.sh            compares with the table of tests/abi
#   check-abi.sh --abidiff  also runs abidiff, if it is installed (make check-abi)
#   check-abi.sh --update   writes the table. Refuses changes that would break a plugin: they need another ABI major, or
#                           ABI_BREAK=yes if the recorded ABI was never released.
#
# The lines of tests/abi/recorded.txt, with offsets and sizes in bytes, and types as in C without the names of parameters:
#   abi MAJOR MINOR | model POINTER SIZE_T ALIGNMENT_OF_INT64
#   type NAME TYPE | enum NAME NUMBER | constant NAME VALUE
#   struct NAME SIZE, and its fields in order: field STRUCT NAME OFFSET SIZE TYPE
#   function NAME TYPE | option NAME KIND
src=${TENON_SRCDIR:-$(cd "$(dirname "$0")/../.." && pwd)}
build=${TENON_BUILDDIR:-$src/build}
: "${CC:=cc}" "${AWK:=awk}"
LC_ALL=C
export LC_ALL
recorded=$src/tests/abi/recorded.txt
tmp=$(mktemp -d "${TMPDIR:-/tmp}/tenon-abi.XXXXXX") || exit 99
trap 'rm -rf "$tmp"' EXIT
n=0

# report NAME FAULTS: reports a test, which passes if FAULTS is empty.
report() {
  n=$((n + 1))
  if [ -z "$2" ]; then
    echo "ok $n - $1"
  else
    echo "not ok $n - $1"
    printf '%s\n' "$2" | sed 's/^/# /' | head -n 40
  fi
}
skip() {
  n=$((n + 1))
  echo "ok $n - $1 # SKIP $2"
}

# includes FOLDER: prints lines that include all headers of the folder.
includes() { (cd "$1/tenon" && ls ./*.h) | sed 's|^\./\(.*\)|#include <tenon/\1>|'; }

# table_of FOLDER TO: writes the table of the headers in FOLDER/tenon; messages of tools are in $tmp/log.
table_of() {
  includes "$1" >"$tmp/all.c"
  cat "$1"/tenon/*.h | sed -nE \
    -e 's/^#define (TN_[A-Z][A-Z0-9_]*) +(\(?[0-9]|U?INT[0-9]+_(MAX|MIN)).*/  printf("constant \1 %lld\\n", (long long)(\1));/p' \
    -e 's/^#define (TN_[A-Z][A-Z0-9_]*_MIN_SIZE) .*/  printf("constant \1 %lld\\n", (long long)(\1));/p' \
    -e 's/^#define (TN_[A-Z][A-Z0-9_]*) +".*/  printf("constant \1 %s\\n", \1);/p' | grep -vE 'TN_(VERSION|ABI)_' >"$tmp/constants"
  printf '#define TN_ABI_OPTION(name, kind, ...) puts("option " #name " " #kind);\n  TN_OPTION_MAP(TN_ABI_OPTION)\n' >>"$tmp/constants"
  # shellcheck disable=SC2046,SC2086 # names without spaces; CC may have arguments
  $CC -E "-D__attribute__(x)=" -I"$1" "$tmp/all.c" >"$tmp/all.i" 2>"$tmp/log" &&
    $AWK -v constants="$tmp/constants" -f "$src/build-aux/abi-scan.awk" \
      $(cd "$1/tenon" && ls ./*.h | sed 's|^\./|header=|') "$tmp/all.i" >"$tmp/print.c" 2>"$tmp/log" &&
    $CC -I"$1" -o "$tmp/print" "$tmp/print.c" >"$tmp/log" 2>&1 && "$tmp/print" >"$2" 2>"$tmp/log"
}

compare() { $AWK -f "$src/build-aux/abi-compare.awk" "$1" "$2"; }

# Copies the installed headers, so that they can be changed.
copy_headers() {
  mkdir -p "$1/tenon"
  for header in $(sed -n 's|^ *include/tenon/\([a-z_]*\.h\).*|\1|p' "$src/include/include.mk"); do
    cp "$src/include/tenon/$header" "$1/tenon/"
  done
  cp "$build/include/tenon/version.h" "$1/tenon/"
  chmod -R u+w "$1"
}

copy_headers "$tmp/tree"
if ! table_of "$tmp/tree" "$tmp/table"; then
  echo "1..1"
  report 'the headers are read' "$(cat "$tmp/log")"
  exit 1
fi

if [ "${1:-}" = --update ]; then
  faults=$([ -e "$recorded" ] && compare "$recorded" "$tmp/table" | grep '^broken')
  if [ -n "$faults" ] && [ "${ABI_BREAK:-no}" != yes ]; then
    printf '%s\n' "$faults" >&2
    echo 'update-abi: this breaks existing plugins: undo it, or raise TN_ABI_MAJOR in configure.ac;' >&2
    echo 'update-abi: if the ABI was never released: make update-abi ABI_BREAK=yes' >&2
    exit 1
  fi
  [ ! -e "$recorded" ] || compare "$recorded" "$tmp/table"
  {
    echo '# SPDX-License-Identifier: Apache-2.0'
    echo '# The recorded ABI, written by make update-abi; tests/repo/check-abi.sh explains the lines.'
    cat "$tmp/table"
  } >"$tmp/recorded" && cp "$tmp/recorded" "$recorded"
  exit
fi

# ---- the tree ----

faults=$(for kind in type struct field enum constant function option; do
  [ "$(grep -c "^$kind " "$tmp/table")" -ge $(($(grep -c "^$kind " "$recorded") / 2)) ] || echo "hardly any $kind"
done
[ "$(grep -c '^function ' "$tmp/table")" -gt 300 ] || echo 'hardly any functions')
report 'the headers are read' "$faults"
compare "$recorded" "$tmp/table" >"$tmp/found"
report 'nothing of the recorded ABI was changed or removed' "$(grep '^broken' "$tmp/found")"
sed -n 's/^new: /# to record (make update-abi): /p' "$tmp/found"

# P-33: no type whose width depends on the compiler, except that tn_probe_serve returns the exit status of main.
report 'types of known width only' "$(grep -v "^function tn_probe_serve " "$tmp/table" |
  sed -E 's/^(type|field|function) [a-z0-9_]+ ([a-z0-9_]+ [0-9]+ [0-9]+ )?//; t; d' |
  grep -oE '[A-Za-z_][A-Za-z0-9_]*' | sort -u |
  grep -vxE 'tn_[a-z0-9_]+|u?int(8|16|32|64)_t|size_t|char|float|double|void|const|struct|union|DLManagedTensor(Versioned)?' |
  grep -vxE 'small|large|offset|view|size|capacity|count|data')" # fields of tn_string's union

lib=$build/.libs/libtenon.so
if [ -e "$lib" ] && command -v nm >/dev/null && ! nm -D "$lib" | grep -qE '__(asan|tsan|ubsan)_'; then
  nm -D --defined-only "$lib" | $AWK '$2 != "A" { sub(/@.*/, "", $3); print $3 }' | sort >"$tmp/exported"
  sed -n 's/^function \([a-z0-9_]*\) .*/\1/p' "$tmp/table" | grep -v '^tn__' | sort >"$tmp/declared"
  report 'libtenon has each function of the headers, and no other' "$(comm -3 "$tmp/exported" "$tmp/declared")"
else
  skip 'libtenon has each function of the headers, and no other' 'no shared library, no nm, or sanitizers'
fi

# ---- abidiff ----

# stub WHAT TABLE FOLDER TO: builds an object with the declarations of the table, or of the folder's headers.
stub() {
  { [ "$1" = all ] || includes "$3"; $AWK -v what="$1" -f "$src/build-aux/abi-stub.awk" "$2" "$2"; } >"$tmp/stub.c"
  # shellcheck disable=SC2086
  $CC -w -g -O0 -shared -fPIC ${3:+-I"$3"} -o "$4" "$tmp/stub.c" >"$tmp/log" 2>&1
}

with_abidiff=no
if [ "${1:-}" = --abidiff ]; then
  if ! command -v abidiff >/dev/null; then
    skip 'abidiff finds nothing' 'no abidiff'
  elif [ "$(grep '^model' "$recorded")" != "$(grep '^model' "$tmp/table")" ]; then
    skip 'abidiff finds nothing' 'the table was recorded on another type of machine'
  elif [ "$($AWK '$1 == "abi" { print $2 }' "$recorded")" != "$($AWK '$1 == "abi" { print $2 }' "$tmp/table")" ]; then
    skip 'abidiff finds nothing' 'another major was recorded'
  elif ! stub all "$recorded" '' "$tmp/recorded.so"; then
    report 'the recorded ABI as an object' "$(cat "$tmp/log")"
  else
    with_abidiff=yes
  fi
fi

# The structs that must not grow, by their first fields.
fixed=$($AWK '$1 == "struct" { name = $2 } $1 == "field" && name != "" && $2 == name {
  if ($3 != "struct_size" && name != "tn_view") printf "%s%s", n++ ? "|" : "", name
  name = "" }' "$recorded")
sed "s/@FIXED@/$fixed/" "$src/tests/abi/abidiff.suppressions" >"$tmp/suppressions"

# by_abidiff TABLE FOLDER: fails, with the report in $tmp/log, if abidiff finds more than additions. The suppression file hides
# a field whose type changed but not its size, so that is checked without it.
by_abidiff() {
  stub functions "$1" "$2" "$tmp/now.so" &&
    abidiff --suppressions "$tmp/suppressions" --no-added-syms "$tmp/recorded.so" "$tmp/now.so" >"$tmp/log" 2>&1 || return
  abidiff --leaf-changes-only --no-added-syms "$tmp/recorded.so" "$tmp/now.so" >"$tmp/log" 2>&1
  ! grep -q '^ .* data member changes\{0,1\}:' "$tmp/log"
}
if [ $with_abidiff = yes ]; then
  report 'abidiff finds nothing' "$(by_abidiff "$tmp/table" "$tmp/tree" || cat "$tmp/log")"
fi

# ---- seeded changes, in copies of the headers; compared with the tree, so that there are no other changes ----

# seeded WORDS WANTED FILE SED-COMMAND...: makes a change, which must be reported as WANTED: broken, or new.
seeded() {
  words=$1 wanted=$2 file=$3
  shift 3
  rm -rf "$tmp/seeded"
  cp -R "$tmp/tree" "$tmp/seeded"
  for command in "$@"; do
    sed "$command" "$tmp/seeded/tenon/$file" >"$tmp/edited"
    cmp -s "$tmp/edited" "$tmp/seeded/tenon/$file" && { report "$words" "'$command' changes nothing in $file"; return; }
    cp "$tmp/edited" "$tmp/seeded/tenon/$file"
  done
  table_of "$tmp/seeded" "$tmp/seeded.table" || { report "$words: is read" "$(cat "$tmp/log")"; return; }
  compare "$tmp/table" "$tmp/seeded.table" >"$tmp/found"
  case $wanted in
  broken) report "$words is found" "$(grep -q '^broken' "$tmp/found" || { echo 'it is not found:'; cat "$tmp/found"; })" ;;
  new) report "$words is accepted" "$(grep '^broken' "$tmp/found"; grep -q '^new' "$tmp/found" || echo 'it is not reported')" ;;
  esac
  [ $with_abidiff = yes ] && [ "$by_table" = no ] || return
  if by_abidiff "$tmp/seeded.table" "$tmp/seeded"; then
    [ $wanted = new ] && report "$words is accepted by abidiff" '' || report "$words is found by abidiff" 'it is not found'
  else
    [ $wanted = broken ] && report "$words is found by abidiff" '' || report "$words is accepted by abidiff" "$(cat "$tmp/log")"
  fi
}

by_table=no
seeded 'a field in the middle of a struct' broken runtime.h 's|^  void \*user; /\* the plugin|  void *seeded;\n&|'
seeded 'a field in a hole of a struct' broken plan.h \
  '/^struct tn_plan_pass {/,/^}/s/^  tn_bool off;.*/  tn_bool seeded;\n  tn_bool off;/' \
  '/^struct tn_plan_pass {/,/^}/s/reserved\[7\]/reserved[6]/'
seeded 'a function in the middle of the host table' broken host.h \
  's/^  F(const char \*, tn_status_text,.*/  P(tn_seeded, (int32_t number), (number)) \\\n&/'
seeded 'growth of a struct without a size field' broken types.h 's/^  uint64_t id;/&\n  uint64_t seeded;/'
seeded 'a field of another type' broken runtime.h 's/^  int32_t abi_minor;/  uint32_t abi_minor;/'
seeded 'a removed field' broken runtime.h 's/^  size_t n_factories;//'
seeded 'a removed function' broken status.h 's/^TN_API tn_status tn_status_from_name(.*//'
seeded 'another number of an enumerator' broken status.h 's/X(OUT_OF_RANGE, 11,/X(OUT_OF_RANGE, 31,/'
seeded 'a parameter of another type' broken process.h \
  's/^TN_API void tn_set_log_level(int32_t level);/TN_API void tn_set_log_level(int64_t level);/'
seeded 'another type of a typedef' broken types.h 's/^typedef uint8_t tn_bool;/typedef int32_t tn_bool;/'
seeded 'a field at the end of a struct' new runtime.h \
  '/^struct tn_session_factory {/,/^};/s/^};/  tn_status (*seeded)(const tn_session_factory *self, tn_error *err);\n&/'
seeded 'a function at the end of a host table' new host.h \
  '/^#define TN_HOST_KIT(/,/[^\\]$/s/[^\\]$/& \\\n  P(tn_seeded, (int32_t number), (number))/'
seeded 'another enumerator' new status.h 's/^  X(UNAUTHENTICATED, 16,\(.*\))/  X(UNAUTHENTICATED, 16,\1) X(SEEDED, 17, "seeded")/'
seeded 'another function and struct' new process.h \
  's/^TN_API void tn_free(.*/&\nstruct tn_seeded { size_t struct_size; };\nTN_API void tn_seeded(struct tn_seeded *seeded);/'

# Changes that abidiff does not detect.
by_table=yes
seeded 'a parameter of a callback of another type' broken runtime.h 's/tn_step \*step, tn_error \*err);/const &/'
seeded 'a removed option of a session' broken options.h '/^  X(device_filters,/d'
seeded 'another value of a constant' broken types.h 's/^#define TN_MAX_RANK 254/#define TN_MAX_RANK 8/'

sed -e 's/^abi .*/abi 99 0/' -e '/^function tn_status_from_name /d' "$tmp/table" >"$tmp/next"
report 'another major may change everything' "$(compare "$tmp/table" "$tmp/next" | grep '^broken')"
sed 's/^model .*/model 4 4 4/; s/^\(field [^ ]* [^ ]*\) .* \(size_t\)$/\1 0 4 \2/' "$tmp/table" >"$tmp/small"
report 'another type of machine may have other sizes' "$(compare "$tmp/table" "$tmp/small" | grep '^broken')"
report 'but types may not' "$(sed '/^field tn_plugin name /s/char/int32_t/' "$tmp/small" >"$tmp/odd"
  compare "$tmp/table" "$tmp/odd" | grep -q '^broken' || echo 'another type is not found')"

# ---- released headers (P-36) ----

# An older release, made here: without the factory's last slot and the kit's last function.
copy_headers "$tmp/released/made-here"
slots=$(sed -n 's/^field tn_session_factory \([a-z_]*\) .*/\1/p' "$tmp/table" | tail -n 2)
last=$(echo "$slots" | tail -n 1) before=$(echo "$slots" | head -n 1)
$AWK -v slot="\\(\\*$last\\)\\(" '$0 ~ slot { gone = 1 } !gone { print } /;/ { gone = 0 }' "$src/include/tenon/runtime.h" |
  sed "s/TN_SIZE_TO(tn_session_factory, $last)/TN_SIZE_TO(tn_session_factory, $before)/" >"$tmp/released/made-here/tenon/runtime.h"
$AWK '/^#define TN_HOST_KIT\(/ { list = 1; print; next }
  !list { print; next }
  /^  [FP]\(/ { printf "%s", held; held = "" }
  { held = held $0 "\n" }
  !/\\$/ { list = 0; print "" }' "$src/include/tenon/host.h" >"$tmp/released/made-here/tenon/host.h"

can_load=no
[ -x "$build/tenon" ] && ! nm -D "$lib" 2>/dev/null | grep -qE '__(asan|tsan|ubsan)_' && can_load=yes

# build_plugin FOLDER SOURCE SO FLAG...: builds a plugin with the headers of the folder.
build_plugin() {
  folder=$1 source=$2 so=$3
  shift 3
  mkdir -p "${so%/*}"
  # shellcheck disable=SC2086
  $CC -shared -fPIC -fvisibility=hidden -DTN_PLUGIN=released "$@" -I"$folder" "$source" -o "$so" 2>&1
}

# listed FOLDER: loads the plugin in the folder and prints how the library lists it.
listed() {
  TENON_PLUGIN_PATH=$1 TENON_PLUGIN_PATH_ONLY=1 "$build/tenon" runtimes --load 2>&1 | grep -A 1 -E '^test\.minimal '
}

for folder in "$src"/tests/abi/released/*/ "$tmp/released"/*/; do
  [ -d "$folder/tenon" ] || continue
  name=$(basename "$folder")
  table_of "$folder" "$tmp/old" || { report "headers $name are read" "$(cat "$tmp/log")"; continue; }
  compare "$tmp/old" "$tmp/table" >"$tmp/found"
  report "the ABI of headers $name is kept" "$(grep '^broken' "$tmp/found")"
  report "a plugin is built with headers $name" \
    "$(build_plugin "$folder" "$src/tests/plugins/minimal.c" "$tmp/plugins-$name/released.so")"
  [ $can_load = yes ] || { skip 'it is loaded' 'no command, or sanitizers'; continue; }
  listed "$tmp/plugins-$name" >"$tmp/list"
  report 'it is loaded' "$(grep -q ' loaded ' "$tmp/list" || cat "$tmp/list")"
done

# ---- headers of a later minor (P-26, P-28) ----

cp -R "$tmp/tree" "$tmp/later"
minor=$($AWK '$1 == "abi" { print $3 }' "$tmp/table")
sed '/^struct tn_session_factory {/,/^};/s/^};/  tn_status (*later)(const tn_session_factory *self);\n&/' \
  "$src/include/tenon/runtime.h" >"$tmp/later/tenon/runtime.h"
sed "s/^#define TN_ABI_MINOR .*/#define TN_ABI_MINOR $((minor + 1))/" "$tmp/tree/tenon/version.h" >"$tmp/later/tenon/version.h"
sed -e 's/TN_SESSION_FACTORY_MIN_SIZE,/TN_SIZE_TO(tn_session_factory, later),\n  .later = later,/' \
  -e 's/^static const tn_session_factory factory/static tn_status later(const tn_session_factory *self)\
{ (void)self; return TN_OK; }\n&/' \
  "$src/tests/plugins/minimal.c" >"$tmp/later.c"
report 'a plugin is built with headers of a later minor' \
  "$(build_plugin "$tmp/later" "$tmp/later.c" "$tmp/plugins-later/later.so" "-DTN_PLUGIN_MIN_HOST=$minor")$(
    build_plugin "$tmp/later" "$tmp/later.c" "$tmp/plugins-newest/later.so")"
if [ $can_load = yes ]; then
  listed "$tmp/plugins-later" >"$tmp/list"
  report 'it is loaded if it needs nothing new' "$(grep -q ' loaded ' "$tmp/list" || cat "$tmp/list")"
  listed "$tmp/plugins-newest" >"$tmp/list"
  report 'otherwise it is rejected with an error' \
    "$(grep -q 'needs at least .*: the library is older; update the library, or build .* a lower TN_PLUGIN_MIN_HOST' "$tmp/list" ||
      cat "$tmp/list")"
else
  skip 'it is loaded if it needs nothing new' 'no command, or sanitizers'
  skip 'otherwise it is rejected with an error' 'no command, or sanitizers'
fi
echo "1..$n"
