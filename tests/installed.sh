#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# installed.sh LIBDIR BINDIR PLUGINDIR VERSION: what make installcheck (and so make distcheck) runs: a program is built with
# pkg-config against what was installed, and runs with it.
set -eu
libdir=$1 bindir=$2 plugindir=$3 version=$4
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
unset TENON_PLUGIN_PATH TENON_PLUGIN_PATH_ONLY || true
LD_LIBRARY_PATH=$libdir${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
PKG_CONFIG_PATH=$libdir/pkgconfig${PKG_CONFIG_PATH:+:$PKG_CONFIG_PATH}
export LD_LIBRARY_PATH PKG_CONFIG_PATH

cat >"$tmp/program.c" <<'END'
#include <stdio.h>
#include <string.h>
#include <tenon/tenon.h>
int main(void)
{
  printf("%s\n", tn_version());
  return strcmp(tn_version(), TN_VERSION_STRING) != 0;
}
END
# shellcheck disable=SC2046
${CC:-cc} -o "$tmp/program" "$tmp/program.c" $(pkg-config --cflags --libs tenon) ${TENON_SANITIZE:-}
found=$("$tmp/program")
[ "$found" = "$version" ] || { echo "installed: the library says $found, wanted $version" >&2; exit 1; }
[ "$(pkg-config --modversion tenon)" = "$version" ] || { echo "installed: wrong version in tenon.pc" >&2; exit 1; }
[ "$(pkg-config --variable=plugindir tenon)" = "$plugindir" ] || { echo "installed: wrong plugindir in tenon.pc" >&2; exit 1; }

# The command finds the runtimes where they were installed, without any variable.
for so in "$plugindir"/*.so; do
  [ -e "$so" ] || continue
  "$bindir/tenon" runtimes >"$tmp/runtimes"
  grep -qF "$so" "$tmp/runtimes" || { echo "installed: tenon runtimes does not list $so:" >&2; cat "$tmp/runtimes" >&2; exit 1; }
done
echo "installed: tenon $version in $libdir works"
