#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Builds the plugin guide's runtimes on levels (b) and (c) from its pages, runs them, and tests them with tenon-conformance,
# with the results that the page shows (P-97, P-100): check-guide.sh on the build tree, for pages that need no installed
# package. Prints TAP.
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
mkdir "$lib/pkgconfig" "$lib/templates"
cp -R "$src/templates/c" "$lib/templates/c" && cp "$src"/templates/common/* "$lib/templates/c" # as they are installed
cat >"$lib/pkgconfig/tenon.pc" <<EOF
templatedir=$lib/templates
Name: Tenon
Description: the build tree
Version: 0
Cflags: -I$build/include -I$src/include
Libs: -L$build/.libs -ltenon
EOF
sh "$src/tests/repo/check-guide.sh" "$src/docs" "$lib" "$build" kit
