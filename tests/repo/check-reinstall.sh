#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# `make install` replaces the file of a running plugin, and never writes into the old file, which would end the programs that
# have it mapped (P-99): steps continue while the plugins are installed repeatedly. Prints TAP.
. "$(dirname "$0")/../tools/tool_kit.sh" reinstall
unset TENON_PLUGIN_PATH MAKEFLAGS MFLAGS MAKELEVEL
[ -r "$build/Makefile" ] || { echo '1..0 # SKIP there is no build folder'; exit 0; }

install_plugins() { (cd "$build" && ${MAKE:-make} -s install-exec-local DESTDIR="$tmp/root") >log 2>&1; }
install_plugins
so=$(find root -name threaded.so) # its code runs in each step; direct leaves its steps to the library
[ -n "$so" ] || { echo '1..0 # SKIP no plugin is installed'; exit 0; }
so=$tmp/$so
TENON_PLUGIN_PATH=$(dirname "$so") TENON_PLUGIN_PATH_ONLY=1
export TENON_PLUGIN_PATH TENON_PLUGIN_PATH_ONLY

inode() { ls -i "$so" | awk '{ print $1 }'; }
# Runs steps in the background until it is ended; the plugin is mapped when this returns.
start_steps() {
  "$tenon" bench "$src/examples/digits/digits.pb" --runtime threaded --seconds 200 --no-histogram >out 2>err </dev/null &
  runs=$!
  waits=0
  while [ $waits -lt 100 ] && kill -0 $runs 2>/dev/null && ! grep -qF "$so" /proc/$runs/maps 2>/dev/null; do
    sleep 0.3
    waits=$((waits + 1))
  done
  trap 'kill $runs 2>/dev/null; rm -rf "$tmp"' EXIT
}

first=$(inode)
start_steps
cp "$so" before.so
changed=0
for i in 1 2 3 4 5; do
  ln "$so" "old$i.so" # its inode is not reused while it has a name
  install_plugins || break
  [ "$(inode)" != "$first" ] && changed=$((changed + 1))
  first=$(inode)
  cmp -s "old$i.so" before.so || changed=0
done
[ $changed -eq 5 ]
is 'each installation is a new file, and the old one is unchanged'
sleep 0.5
kill -TERM $runs
wait $runs
[ $? -eq 143 ] # it ran until the signal
is 'steps continue while plugins are installed'
[ -z "$(find root -name '.*.new')" ] && [ -z "$(find root -name '*.la')" ]
is 'the folder contains nothing else'
run 0 "$tenon" run "$src/examples/digits/digits.pb" --runtime threaded --feed "image:0=$src/examples/digits/images.npy" --fetch class:0
is 'the installed files work'

# Checks the test itself: truncating a mapped plugin ends its program.
if nm -D "$so" 2>/dev/null | grep -qE '__(asan|tsan|ubsan)_'; then
  skip 'a plugin that is overwritten in place ends the program' 'built with sanitizers'
else
  start_steps
  : >"$so"
  wait $runs 2>/dev/null
  [ $? -gt 128 ]
  is 'a plugin that is overwritten in place ends the program'
fi
echo "1..$n"
