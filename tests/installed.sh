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
# P-96
for variable in plugindir runtimedir; do
  [ "$(pkg-config --variable=$variable tenon)" = "$plugindir" ] || { echo "installed: wrong $variable in tenon.pc" >&2; exit 1; }
done
# shellcheck disable=SC2046
macros=$(printf '#include <tenon/version.h>\nTN_ABI_MAJOR.TN_ABI_MINOR\n' | ${CC:-cc} -E -P $(pkg-config --cflags tenon) - | tr -d ' \n')
[ "$(pkg-config --variable=abi_major tenon).$(pkg-config --variable=abi_minor tenon)" = "$macros" ] ||
  { echo "installed: wrong ABI in tenon.pc, the headers say $macros" >&2; exit 1; }
pkg-config --static --libs tenon | grep -q -e '-lltdl' || { echo "installed: no -lltdl for static programs in tenon.pc" >&2; exit 1; }

# The command finds the runtimes where they were installed, without any variable.
for so in "$plugindir"/*.so; do
  [ -e "$so" ] || continue
  "$bindir/tenon" runtimes >"$tmp/runtimes"
  grep -qF "$so" "$tmp/runtimes" || { echo "installed: tenon runtimes does not list $so:" >&2; cat "$tmp/runtimes" >&2; exit 1; }
done

# The rules hold for the runtimes as they are installed, without the source tree.
cd "$tmp"
for runtime in direct threaded:threads=2; do
  "$bindir/tenon-conformance" "$runtime" --jobs 2 --timeout 300 >"$tmp/conformance" 2>&1 && continue
  echo "installed: tenon-conformance $runtime:" >&2
  grep -A 5 -E '^(not ok|Bail out!|#)' "$tmp/conformance" >&2
  exit 1
done

# The probe program was installed, and finds its library.
unset TENON_PROBE_PROGRAM || true
TENON_CACHE_DIR=$tmp "$bindir/tenon" runtimes probe "$plugindir/direct.so" >"$tmp/probe" ||
  { echo "installed: a probe fails:" >&2; cat "$tmp/probe" >&2; exit 1; }
echo "installed: tenon $version in $libdir works"
