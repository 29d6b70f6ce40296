#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# A listing of plugins touches the folders of the search list and nothing else (P-03, P-07, P-08).
# Plugins are planted in the current folder, beside the program, and in the places where libltdl
# and the dynamic linker would search. Prints TAP.
. "$(dirname "$0")/../tools/tool_kit.sh" discovery
plugins=${TENON_TEST_PLUGINS:-$build/tests/plugins/.libs}
unset TENON_PLUGIN_PATH_ONLY TENON_PLUGIN_DISABLE TENON_PLUGIN_SELECT TENON_PROBE TENON_RANK

# The program itself rather than libtool's wrapper script.
binary=$tenon
[ -x "$build/.libs/tenon" ] && binary=$build/.libs/tenon
mkdir list home ltdl ldpath cwd bin lib
cp "$binary" bin/tenon
# As installed: in its build tree the library also finds the plugins of its build (check-uninstalled.sh).
[ ! -e "$build/.libs/libtenon.so.0" ] || cp "$build/.libs/libtenon.so.0" lib
for folder in home ltdl ldpath cwd bin; do cp "$plugins/minimal.so" "$folder/planted.so"; done
cp "$plugins/minimal.so" list/good.so
printf "dlname='bait.so'\nlibrary_names='bait.so'\nold_library=''\ninstalled=yes\nlibdir='%s'\n" "$tmp/ltdl" >list/good.la
cp "$plugins/aborts.so" ltdl/bait.so

# tenon_there ARGUMENT...: runs tenon in a folder, with a home and variables, that have planted files.
tenon_there() {
  (cd cwd && HOME=$tmp/home LTDL_LIBRARY_PATH=$tmp/ltdl LD_LIBRARY_PATH=$tmp/lib:$tmp/ldpath \
    TENON_PLUGIN_PATH=:$tmp/list: "$@") >out 2>err </dev/null
}
tenon_there ../bin/tenon runtimes list --json && grep -q '"file": ".*/list/good.so"' out && ! grep -q planted out
is 'planted files are not listed'

tenon_there ../bin/tenon runtimes list --load && grep -E '^test\.minimal ' out | grep -q ' loaded .*/list/good.so'
is 'a plugin of the list is loaded, ignoring a .la file beside it'

# ---- checked by system calls ----

# touched FILE: the paths that the program names once it has first read a folder of the list.
touched() {
  sed -nE 's/^([0-9]+ +)?[a-z0-9_]+\((AT_FDCWD, )?"(([^"\\]|\\.)*)".*/\3/p' "$1" |
    awk -v list="$tmp/list" '$0 == list { begun = 1 } begun' | sort -u
}
# Standard input without the folders of the list, their files, and the parent folders.
others() {
  installed=$(sed -nE 's,^(.*/tenon/plugins-[0-9]+)(/.*)?$,\1,p' paths | head -n 1)
  while read -r path; do
    case $path in
    "$tmp/list" | "$tmp/list/good.so") continue ;;
    /proc/self/*) continue ;;
    */tenon/plugins-[0-9]*) continue ;; # the installed folder
    esac
    case $tmp/list in "$path" | "$path"/*) continue ;; esac # a folder on the way
    case $installed in "$path"/*) continue ;; esac
    [ "$path" = / ] || echo "$path"
  done
}
if ! command -v strace >/dev/null || ! strace -o /dev/null true 2>/dev/null; then
  skip 'nothing outside the list is touched' 'strace does not work'
  skip 'a request for an unknown name touches nothing outside the list' 'strace does not work'
elif nm -D "$build/.libs/libtenon.so" 2>/dev/null | grep -qE '__(asan|tsan|ubsan)_'; then
  skip 'nothing outside the list is touched' 'built with sanitizers'
  skip 'a request for an unknown name touches nothing outside the list' 'built with sanitizers'
else
  tenon_there strace -f -e trace=file -o ../trace ../bin/tenon runtimes list
  touched trace >paths
  { others <paths; grep -nE 'planted|bait|/ltdl|/home' trace; } >out
  grep -qxF "$tmp/list/good.so" paths && [ ! -s out ]
  is 'nothing outside the list is touched'
  TENON_DEBUG='' tenon_there strace -f -e trace=file -o ../trace ../bin/tenon runtimes explain test.unknown
  touched trace >paths
  { others <paths; grep -nE 'planted|bait|/ltdl|/home' trace; } >out
  grep -qxF "$tmp/list" paths && [ ! -s out ]
  is 'a request for an unknown name touches nothing outside the list'
fi
echo "1..$n"
