#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# A build tree works before it is installed, without any variable: its library finds the plugins of
# its own build, and of no other place (docs/plugins.md; P-01, P-03, P-77). Prints TAP.
. "$(dirname "$0")/../tools/tool_kit.sh" uninstalled
unset TENON_PLUGIN_PATH TENON_PLUGIN_PATH_ONLY TENON_PLUGIN_DISABLE TENON_PLUGIN_SELECT TENON_PROBE TENON_RANK
digits=$src/examples/digits
[ -e "$build/.libs/libtenon.so" ] || { echo '1..0 # SKIP no shared library was built'; exit 0; }
[ -e "$build/plugins/.libs/direct.so" ] || { echo '1..0 # SKIP no plugin was built'; exit 0; }

# bare STATUS COMMAND...: runs without the variables of the shell.
bare() {
  wanted=$1
  shift
  run "$wanted" env -i PATH="$PATH" HOME="$tmp" ASAN_OPTIONS="${ASAN_OPTIONS-}" TSAN_OPTIONS="${TSAN_OPTIONS-}" "$@"
}
# lists FILE: the listing contains this file.
lists() { grep -qF " $1" out; }

bare 0 "$tenon" runtimes && lists "$build/plugins/.libs/direct.so"
is 'the command of a build tree lists its own plugins'
bare 0 "$tenon" run "$digits/digits.pb" --feed "image:0=$digits/images.npy" --fetch class:0 && grep -q '^class:0  int64 \[300\]' out
is 'it runs a model'
bare 0 "$build/examples/plain_demo" && grep -qx '\[3. 5.\]' out
is 'the examples of a build tree run'
bare 0 "$build/tenon-conformance" direct --filter 'runtime_works*' && grep -q '^ok 1 ' out
is 'tenon-conformance finds the runtime of its build'
bare 0 TENON_CACHE_DIR="$tmp" "$tenon" runtimes doctor && grep -q '^No problems found' out && ! grep -q '^PROBLEM' out
is 'the doctor finds nothing wrong, and tries plugins by the probe program of the build'
bare 0 TENON_PLUGIN_PATH=/nowhere "$tenon" runtimes && lists "$build/plugins/.libs/direct.so"
is 'TENON_PLUGIN_PATH takes precedence'
bare 0 TENON_PLUGIN_PATH=/nowhere TENON_PLUGIN_PATH_ONLY=1 "$tenon" runtimes && ! lists "$build/plugins/.libs/direct.so"
is 'TENON_PLUGIN_PATH_ONLY=1 excludes the build tree'

# ---- copies of a build tree ----

# tree ROOT: creates a minimal build tree.
tree() {
  mkdir -p "$1/.libs" "$1/plugins/.libs"
  cp "$build/.libs/libtenon.so.0" "$1/.libs"
  cp "$build/plugins/.libs/direct.so" "$1/plugins/.libs"
  echo 'installed=no' >"$1/libtenon.la"
}
# with LIBRARIES: lists the plugins found by the library in that folder.
with() { bare 0 LD_LIBRARY_PATH="$1" "$build/.libs/tenon" runtimes; }

tree "$tmp/a b"
with "$tmp/a b/.libs" && lists "$tmp/a b/plugins/.libs/direct.so"
is 'a program finds the plugins of the library that it was started with; the path may have blanks'
tree "$tmp/moved" && rm "$tmp/moved/libtenon.la"
with "$tmp/moved/.libs" && ! lists "$tmp/moved/plugins"
is 'without libtenon.la no plugins are searched'
tree "$tmp/root" && mv "$tmp/root/.libs" "$tmp/root/lib"
with "$tmp/root/lib" && ! lists "$tmp/root/plugins"
is 'an installed library does not search its surroundings'
with a\ b/.libs && ! lists 'plugins/.libs/direct.so'
is 'a library named by a relative path does not search its surroundings'
tree "$tmp/link" && mv "$tmp/link/plugins" "$tmp/link/real" && ln -s real "$tmp/link/plugins"
with "$tmp/link/.libs" && ! lists "$tmp/link"
is 'a link is not followed'
tree "$tmp/wide" && chmod 777 "$tmp/wide/plugins"
with "$tmp/wide/.libs" && grep -A 1 -F "$tmp/wide/plugins/.libs/direct.so" out | grep -q 'it is world-writable'
is 'a world-writable folder is refused'
tree "$tmp/other"
if chown -R 65534 "$tmp/other/plugins" 2>/dev/null; then
  with "$tmp/other/.libs" && ! lists "$tmp/other/plugins"
  is 'plugins of another owner are ignored'
else
  skip 'plugins of another owner are ignored' 'the owner of a file cannot be changed'
fi

echo "1..$n"
