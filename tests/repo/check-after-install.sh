#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# make install reports when the installed programs cannot start yet, and what to do. Prints TAP.
. "${TENON_SRCDIR:-$(cd "$(dirname "$0")/../.." && pwd)}/tests/tools/tool_kit.sh" after-install
after=$src/build-aux/after-install.sh

# Lines of the linker's cache.
mkdir tools
printf '#!/bin/sh\n[ "$1" = -p ] && cat "%s/cache"\n' "$tmp" >tools/ldconfig
chmod +x tools/ldconfig
PATH=$tmp/tools:$PATH
printf '2 libs found in cache\n\tlibtenon.so.0 (libc6,x86-64) => /usr/lib/libtenon.so.0\n' >cache

# tenon_that TEXT STATUS: creates a command in bin/ that prints TEXT to standard error.
tenon_that() {
  mkdir -p bin
  printf '#!/bin/sh\n[ -z "$LD_LIBRARY_PATH" ] || exit 0\necho "%s" >&2\nexit %s\n' "$1" "$2" >bin/tenon
  chmod +x bin/tenon
}

tenon_that 'tenon: error while loading shared libraries: libtenon.so.0: cannot open shared object file' 127
run 0 sh "$after" /opt/tenon/lib bin && grep -qx ' *sudo ldconfig' out && grep -qx ' *export LD_LIBRARY_PATH=/opt/tenon/lib' out &&
  grep -q -e '-Wl,-rpath,/opt/tenon/lib$' out
is 'a library that is not found is reported, with ldconfig, LD_LIBRARY_PATH and the run path'
run 0 env LD_LIBRARY_PATH=/opt/tenon/lib sh "$after" /opt/tenon/lib bin && grep -q 'sudo ldconfig' out
is 'a variable of this shell does not hide it'
tenon_that '' 0
run 0 sh "$after" /usr/lib bin && [ ! -s out ] && [ ! -s err ]
is 'nothing is printed if the command starts and the linker knows the library'
run 0 sh "$after" /opt/tenon/lib bin && grep -q 'does not find libtenon in /opt/tenon/lib yet' out
is 'a command with a run path starts, and programs that link the library would not'
: >cache
run 0 sh "$after" /opt/tenon/lib bin && [ ! -s out ]
is 'nothing is printed without a cache'
tenon_that 'cannot execute binary file: Exec format error' 126
run 0 sh "$after" /usr/lib bin && [ ! -s out ] && run 0 sh "$after" /usr/lib nowhere && [ ! -s out ]
is 'nor for a command of another machine, or a missing one'

# lines PAGE HEADING: the lines of one section of a page.
lines() { awk -v want="## $2" '/^## / { on = $0 == want; next } on' "$src/$1"; }
lines README.md Install >part && grep -q 'sudo make install && sudo ldconfig' part && grep -q 'LD_LIBRARY_PATH' part &&
  grep -q 'ldconfig' "$src/docs/tenon.md"
is 'README.md and docs/tenon.md name ldconfig where they install'
if [ -r "$build/Makefile" ]; then
  (cd "$build" && ${MAKE:-make} -n install-data-hook DESTDIR=) >hook 2>/dev/null
  grep -q 'after-install.sh' hook && ! (cd "$build" && ${MAKE:-make} -n install-data-hook DESTDIR=/staged) | grep -q 'sh .*after-install.sh.* /staged'
  is 'make install runs it at the end'
else
  skip 'make install runs it at the end' 'no build folder'
fi

# The files that the manual pages name are installed.
good=true
for page in tenon.1 tenon-conformance.1 tenon-plugin.7; do
  for name in $(sed 's/\\-/-/g' "$src/docs/$page" | grep -oE '[a-z/-]+\.md' | sort -u); do
    case $name in docs/*) good=false ;; esac
    grep -qE "^  docs/$name( |$)" "$src/docs/docs.mk" || { echo "# $page: $name"; good=false; }
    awk '/^TN_DOC_FILES/ { exit } 1' "$src/docs/docs.mk" | grep -qE "^  docs/$name( |$)" || { echo "# $page: $name"; good=false; }
  done
done
$good
is 'manual pages name pages that are installed, by their installed names'

echo "1..$n"
