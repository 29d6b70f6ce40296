#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# installed.sh LIBDIR BINDIR PLUGINDIR VERSION: run by make installcheck (and so by make distcheck). A program is built with
# pkg-config against the installed package, and runs with it.
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

# The command finds the installed runtimes without any variable.
for so in "$plugindir"/*.so; do
  [ -e "$so" ] || continue
  "$bindir/tenon" runtimes >"$tmp/runtimes"
  grep -qF "$so" "$tmp/runtimes" || { echo "installed: tenon runtimes does not list $so:" >&2; cat "$tmp/runtimes" >&2; exit 1; }
done

# P-01: the program's folders, then those of TENON_PLUGIN_PATH, then the installed one. The first file of a name is used, and
# the others are listed as shadowed.
cat >"$tmp/planted.c" <<'END'
#include <tenon/runtime.h>
TN_PLUGIN_MANIFEST("runtime", "test.planted", "CPU", "0", "1", "Tests", "")
static tn_status new_session(const tn_session_factory *self, const tn_session_options *options,
                             tn_runtime_session **out, tn_error *err)
{
  (void)self, (void)options;
  *out = NULL;
  return tn_error_set(err, TN_UNIMPLEMENTED, "no sessions here");
}
static tn_bool accepts_options(const tn_session_factory *self, const tn_session_options *options)
{
  return self != NULL && options != NULL;
}
static void destroy_session(const tn_session_factory *self, tn_runtime_session *session) { (void)self, (void)session; }
static const tn_session_factory factory = { TN_SESSION_FACTORY_MIN_SIZE, "test.planted", NULL,
                                            new_session, accepts_options, destroy_session };
static const tn_session_factory *const factories[] = { &factory };
static const tn_plugin plugin = { TN_SIZE_TO(tn_plugin, n_factories), TN_ABI_MAJOR, TN_ABI_MINOR, TN_PLUGIN_RUNTIME, 0,
                                  "test.planted", "1", "CPU", NULL, factories, 1 };
TN_PLUGIN_DEFINE(plugin)
END
cat >"$tmp/search.c" <<'END'
#include <stdio.h>
#include <string.h>
#include <tenon/tenon.h>
int main(int argc, char **argv)
{
  tn_runtime_info one = { .struct_size = sizeof one };
  if (argc > 1 && tn_runtime_add_directory(argv[1], NULL) != TN_OK) return 1;
  for (size_t i = 0; tn_runtime_at(i, &one, NULL) == TN_OK; i++)
    if (strcmp(one.name, "test.planted") == 0) printf("%s%s\n", one.shadowed ? "shadowed " : "first ", one.file);
  if (tn_runtime_load("test.planted", &one, NULL) != TN_OK) return 1;
  printf("loaded %s\n", one.file);
  return 0;
}
END
# search WANTED FOLDER...: compares the program's output, with these folders added, with WANTED.
search() {
  wanted=$1
  shift
  "$tmp/search" "$@" >"$tmp/found" && [ "$(tr '\n' ' ' <"$tmp/found")" = "$wanted " ] ||
    { echo "installed: plugins are searched in another order, wanted $wanted:" >&2; cat "$tmp/found" >&2; exit 1; }
}
if [ -w "$plugindir" ]; then
  mkdir "$tmp/api" "$tmp/env"
  # shellcheck disable=SC2046
  ${CC:-cc} -shared -fPIC -fvisibility=hidden -DTN_PLUGIN=planted $(pkg-config --cflags tenon) "$tmp/planted.c" \
    -o "$tmp/api/planted.so"
  # shellcheck disable=SC2046
  ${CC:-cc} -o "$tmp/search" "$tmp/search.c" $(pkg-config --cflags --libs tenon) ${TENON_SANITIZE:-}
  a=$tmp/api/planted.so e=$tmp/env/planted.so i=$plugindir/planted_by_installcheck.so
  trap 'rm -rf "$tmp" "$i"' EXIT
  cp "$a" "$e"
  cp "$a" "$i"
  (TENON_PLUGIN_PATH=$tmp/env
   export TENON_PLUGIN_PATH
   search "first $a shadowed $e shadowed $i loaded $a" "$tmp/api"
   search "first $e shadowed $i loaded $e")
  search "first $i loaded $i"
  rm -f "$i"
else
  echo "installed: the order of folders is not tested: $plugindir is not writable"
fi

# The installed runtimes obey the rules without the source tree.
cd "$tmp"
for runtime in direct threaded:threads=2; do
  "$bindir/tenon-conformance" "$runtime" --jobs 2 --timeout 300 >"$tmp/conformance" 2>&1 && continue
  echo "installed: tenon-conformance $runtime:" >&2
  grep -A 5 -E '^(not ok|Bail out!|#)' "$tmp/conformance" >&2
  exit 1
done

# The probe program is installed and finds its library. (A runtime inside the library has no file.)
unset TENON_PROBE_PROGRAM || true
[ ! -e "$plugindir/direct.so" ] || TENON_CACHE_DIR=$tmp "$bindir/tenon" runtimes probe "$plugindir/direct.so" >"$tmp/probe" ||
  { echo "installed: a probe fails:" >&2; cat "$tmp/probe" >&2; exit 1; }
echo "installed: tenon $version in $libdir works"
