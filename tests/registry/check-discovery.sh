#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# What a listing of plugins touches: the folders of the search list and nothing else (P-03, P-07, P-08). Plugins are planted in
# the current folder, beside the program, and where libltdl and the dynamic linker would look. Prints TAP.
. "$(dirname "$0")/../tools/tool_kit.sh" discovery
plugins=${TENON_TEST_PLUGINS:-$build/tests/plugins/.libs}
unset TENON_PLUGIN_PATH_ONLY TENON_PLUGIN_DISABLE TENON_PLUGIN_SELECT TENON_PROBE TENON_RANK

# The program itself, not libtool's script around it.
binary=$tenon
[ -x "$build/.libs/tenon" ] && binary=$build/.libs/tenon
mkdir list home ltdl ldpath cwd bin lib
cp "$binary" bin/tenon
# As it is installed: in its build tree the library has the plugins of its build, too (check-uninstalled.sh).
[ ! -e "$build/.libs/libtenon.so.0" ] || cp "$build/.libs/libtenon.so.0" lib
for folder in home ltdl ldpath cwd bin; do cp "$plugins/minimal.so" "$folder/planted.so"; done
cp "$plugins/minimal.so" list/good.so
printf "dlname='bait.so'\nlibrary_names='bait.so'\nold_library=''\ninstalled=yes\nlibdir='%s'\n" "$tmp/ltdl" >list/good.la
cp "$plugins/aborts.so" ltdl/bait.so

# tenon_there ARGUMENT...: in a folder, with a home and variables that have planted files.
tenon_there() {
  (cd cwd && HOME=$tmp/home LTDL_LIBRARY_PATH=$tmp/ltdl LD_LIBRARY_PATH=$tmp/lib:$tmp/ldpath \
    TENON_PLUGIN_PATH=:$tmp/list: "$@") >out 2>err </dev/null
}
tenon_there ../bin/tenon runtimes list --json && grep -q '"file": ".*/list/good.so"' out && ! grep -q planted out
is 'planted files are not listed'

tenon_there ../bin/tenon runtimes list --load && grep -E '^test\.minimal ' out | grep -q ' loaded .*/list/good.so'
is 'one of the list is loaded, whatever a .la beside it says'

# ---- by the system calls ----

# touched FILE: the paths that the program names from the moment on when it first looks into a folder of the list.
touched() {
  sed -nE 's/^([0-9]+ +)?[a-z0-9_]+\((AT_FDCWD, )?"(([^"\\]|\\.)*)".*/\3/p' "$1" |
    awk -v list="$tmp/list" '$0 == list { begun = 1 } begun' | sort -u
}
# What remains of standard input without the folders of the list, their files, and what leads there.
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
  skip 'nothing outside of the list is touched' 'no strace that works'
  skip 'not when a plugin is asked for by a name that nobody has, either' 'no strace that works'
elif nm -D "$build/.libs/libtenon.so" 2>/dev/null | grep -qE '__(asan|tsan|ubsan)_'; then
  skip 'nothing outside of the list is touched' 'built with sanitizers'
  skip 'not when a plugin is asked for by a name that nobody has, either' 'built with sanitizers'
else
  tenon_there strace -f -e trace=file -o ../trace ../bin/tenon runtimes list
  touched trace >paths
  { others <paths; grep -nE 'planted|bait|/ltdl|/home' trace; } >out
  grep -qxF "$tmp/list/good.so" paths && [ ! -s out ]
  is 'nothing outside of the list is touched'
  TENON_DEBUG='' tenon_there strace -f -e trace=file -o ../trace ../bin/tenon runtimes explain test.nobody
  touched trace >paths
  { others <paths; grep -nE 'planted|bait|/ltdl|/home' trace; } >out
  grep -qxF "$tmp/list" paths && [ ! -s out ]
  is 'not when a plugin is asked for by a name that nobody has, either'
fi
echo "1..$n"
