#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The runtimes on levels (b) and (c) that the plugin guide shows are built from its pages, run, and tested by tenon-conformance, which
# finds what the page says (P-97, P-100): check-guide.sh on the build tree, as far as a page needs nothing that is installed.
# Prints TAP.
src=${TENON_SRCDIR:-$(cd "$(dirname "$0")/../.." && pwd)}
build=${TENON_BUILDDIR:-$src/build}
lib=$(mktemp -d "${TMPDIR:-/tmp}/tenon-guide.XXXXXX") || exit 99
trap 'rm -rf "$lib"' EXIT
if ! command -v pkg-config >/dev/null; then
  echo '1..0 # SKIP there is no pkg-config'
  exit 0
fi
if grep -q '^TN_SANITIZE = .*-fsanitize' "$build/Makefile"; then
  echo '1..0 # SKIP the library was built with sanitizers'
  exit 0
fi
mkdir "$lib/pkgconfig"
cat >"$lib/pkgconfig/tenon.pc" <<EOF
templatedir=$src/templates
Name: Tenon
Description: the build tree
Version: 0
Cflags: -I$build/include -I$src/include
Libs: -L$build/.libs -ltenon
EOF
sh "$src/tests/repo/check-guide.sh" "$src/docs" "$lib" "$build" kit
