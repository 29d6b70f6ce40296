#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Each public header compiles alone and without warnings, in each standard of C and C++, for a program and for a plugin, with
# each installed compiler; and it includes only other public headers, stddef.h and stdint.h (P-92). The macros for plugins
# compile in the same way. Prints TAP.
src=${TENON_SRCDIR:-$(cd "$(dirname "$0")/../.." && pwd)}
build=${TENON_BUILDDIR:-$src/build}
warn='-Wall -Wextra -Werror -pedantic -pedantic-errors'
tmp=$(mktemp -d) || exit 99
trap 'rm -rf "$tmp"' EXIT
n=0

# report NAME FAULTS: reports a test, which passes if FAULTS is empty.
report() {
  n=$((n + 1))
  if [ -z "$2" ]; then
    echo "ok $n - $1"
  else
    echo "not ok $n - $1"
    printf '%s\n' "$2" | sed 's/^/# /' | head -n 30
  fi
}

# try COMPILER LANGUAGE STANDARD FILE_OR_FLAG...: compiles the files; prints the messages.
try() {
  compiler=$1 lang=$2 std=$3
  shift 3
  # shellcheck disable=SC2086 # a compiler may have arguments
  $compiler -x "$lang" -std="$std" $warn -I"$build/include" -I"$src/include" -fsyntax-only "$@" 2>&1
}

# A plugin's definitions, without designated initialisers, which C++ has only since 2020.
cat >"$tmp/macros.c" <<'END'
#include <tenon/kit.h>
#include <tenon/runtime.h>
TN_PLUGIN_MANIFEST("runtime", "test.sample", "CPU", "0", "1.0.0", "Tests", "")
static tn_status init(tn_error *err)
{
  tn_log(TN_LOG_INFO, "plugin %s", "sample");
  return tn_error_set(err, TN_UNAVAILABLE, "no device %d", 1);
}
static const tn_session_factory *const factories[] = { NULL };
static const tn_plugin plugin = { TN_PLUGIN_SIZE, TN_ABI_MAJOR, TN_ABI_MINOR, TN_PLUGIN_RUNTIME, 0, "test.sample", "1.0.0",
                                  "CPU", NULL, factories, 1, init, NULL, NULL };
TN_PLUGIN_DEFINE(plugin)
extern tn_bool covers(const tn_host *host);
tn_bool covers(const tn_host *host) { return TN_HAS_FIELD(host, tn_host, kit); }
END

mkdir "$tmp/headers"
for path in "$src"/include/tenon/*.h version.h; do
  printf '#include <tenon/%s>\nextern int not_empty;\n' "${path##*/}" >"$tmp/headers/${path##*/}.c"
done
echo 'extern int not_empty;' >"$tmp/empty.c"

# standards COMPILER LANGUAGE STANDARD...
standards() {
  compiler=$1 lang=$2
  shift 2
  for std in "$@"; do
    what="$(echo "$compiler" | sed 's/^ccache //; s|.*/||'), $std"
    if ! try "$compiler" "$lang" "$std" "$tmp/empty.c" >"$tmp/log"; then
      n=$((n + 1))
      echo "ok $n - $what # SKIP it has no $std"
      continue
    fi
    report "$what: headers of a program" "$(try "$compiler" "$lang" "$std" "$tmp"/headers/*.c)"
    report "$what: headers of a plugin" "$(try "$compiler" "$lang" "$std" -DTN_PLUGIN=sample "$tmp"/headers/*.c)"
    report "$what: macros of a plugin" "$(try "$compiler" "$lang" "$std" -DTN_PLUGIN=sample "$tmp/macros.c")"
  done
}

# compilers LANGUAGE NAME...: the installed ones, each once.
compilers() {
  lang=$1 seen=' '
  shift
  for compiler in "$@"; do
    last=${compiler##* }
    case $seen in *" $last "*) continue ;; esac
    seen="$seen$last "
    if ! command -v "$last" >/dev/null; then
      n=$((n + 1))
      echo "ok $n - $last # SKIP it is not installed"
    elif [ "$lang" = c ]; then
      standards "$compiler" c c99 c11 c17
    else
      standards "$compiler" c++ c++11 c++17 c++20
    fi
  done
}

compilers c "${CC:-cc}" gcc clang
compilers c++ "${CXX:-g++}" g++ clang++
report 'public headers include public headers, stddef.h and stdint.h only' "$(grep -n '^ *# *include' "$src"/include/tenon/*.h |
  grep -vE '# *include <(tenon/[a-z_]+\.h|stddef\.h|stdint\.h)>$')"
echo "1..$n"
