#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Each public header compiles alone, as C11 and C++17; those that a plugin is made with also as C99 and C++11, and with
# TN_PLUGIN set. Prints TAP.
src=${TENON_SRCDIR:-$(cd "$(dirname "$0")/.." && pwd)}
build=${TENON_BUILDDIR:-$src/build}
warn='-Wall -Wextra -Werror -pedantic-errors -Wno-unused-function'
tmp=$(mktemp -d) || exit 99
trap 'rm -rf "$tmp"' EXIT
n=0

# try NAME LANGUAGE STANDARD FLAG...
try() {
  header=$1 lang=$2 std=$3
  shift 3
  n=$((n + 1))
  what="$header alone as $std $*"
  case $lang in c) compiler=${CC:-cc} ;; *) compiler=${CXX:-} ;; esac
  if [ -z "$compiler" ]; then
    echo "ok $n - $what # SKIP no C++ compiler"
  elif printf '#include <tenon/%s>\nextern int not_empty;\n' "$header" | $compiler -x "$lang" -std="$std" $warn "$@" \
      -I"$build/include" -I"$src/include" -fsyntax-only - >"$tmp/log" 2>&1; then
    echo "ok $n - $what"
  else
    echo "not ok $n - $what"
    sed 's/^/# /' "$tmp/log" | head -n 20
  fi
}

for path in "$src"/include/tenon/*.h; do
  header=${path##*/}
  try "$header" c c11
  try "$header" c++ c++17
  case $header in
  runtime.h | op.h | kit.h)
    for mode in '' -DTN_PLUGIN=sample; do
      try "$header" c c99 $mode
      try "$header" c++ c++11 $mode
    done
    ;;
  esac
done
try version.h c c11
try version.h c++ c++17
echo "1..$n"
