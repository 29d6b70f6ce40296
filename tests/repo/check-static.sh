#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# check-static.sh FOLDER: configures and builds in FOLDER a library that contains the runtimes `direct` and `threaded`, and
# tests it: as a shared library, and in fully statically linked programs (P-23, P-51, P-89 to P-91). Both pass the suites of
# sessions. The build is not optimised, as it tests the linking only. A second run rebuilds only what changed. Prints TAP.
#   CC, TENON_TEST_JOBS  the compiler; the number of jobs and tests that run at once, by default 2
set -u
[ $# -eq 1 ] || { echo "usage: check-static.sh FOLDER" >&2; exit 2; }
src=$(cd "$(dirname "$0")/../.." && pwd)
mkdir -p "$1" || exit 99
TENON_BUILDDIR=$(cd "$1" && pwd)
TENON_SRCDIR=$src
jobs=${TENON_TEST_JOBS:-2}
unset TENON_PLUGIN_PATH TENON_PLUGIN_PATH_ONLY TENON_RANK TENON_PROBE MAKEFLAGS MFLAGS MAKELEVEL DESTDIR
TENON_TEST_PLUGINS=$TENON_BUILDDIR/tests/plugins/.libs
TENON_PROBE_PROGRAM=$TENON_BUILDDIR/tools/tenon-probe
TENON_PLUGIN_PATH=/nowhere # the folder of the installation is not created here
export TENON_BUILDDIR TENON_SRCDIR TENON_TEST_PLUGINS TENON_PROBE_PROGRAM TENON_PLUGIN_PATH
set -- static
. "$src/tests/tools/tool_kit.sh" static
digits=$src/examples/digits
log=$build/check-static.log
: >"$log"

# step NAME COMMAND...: runs a command whose failure ends the script.
step() {
  name=$1
  shift
  if (cd "$build" && "$@") >>"$log" 2>&1; then
    n=$((n + 1))
    echo "ok $n - $name"
  else
    n=$((n + 1))
    tail -n 30 "$log" | sed 's/^/#   /'
    echo "not ok $n - $name"
    echo "1..$n"
    exit 1
  fi
}

# suite NAME COMMAND...: runs a command that prints TAP, and shows its failures.
suite() {
  name=$1
  shift
  "$@" >out 2>err
  status=$?
  grep -A 8 '^not ok' out | sed 's/^/#   /'
  [ $status -eq 0 ] && grep -q '^ok ' out && ! grep -q '^not ok' out
  is "$name"
}

# ---- the build ----

arguments="--enable-static --enable-preloaded=direct,threaded --prefix=$build/installed"
if [ ! -e "$build/Makefile" ] || [ "$src/configure" -nt "$build/Makefile" ] || [ "$(cat "$build/.arguments" 2>/dev/null)" != "$arguments" ]; then
  # shellcheck disable=SC2086
  step configure "$src/configure" -q $arguments CFLAGS=-O0 ${CC:+CC="$CC"}
  echo "$arguments" >"$build/.arguments"
fi
unit='tests/registry/preloaded tests/registry/registry tests/registry/loader'
# shellcheck disable=SC2086
step build make -s -j"$jobs" libtenon.la tenon tenon-conformance tools/tenon-probe plugins/direct.la plugins/threaded.la test-modules $unit

run 1 "$src/configure" -q --enable-preloaded=direct,unknown && grep -q "there is no plugin 'unknown'; there are direct, threaded and onednn" err
is 'configure: the error for an unknown plugin lists the existing ones'

! grep -nE '^ *# *(if|ifdef|ifndef)' "$src"/plugins/direct/*.c "$src"/plugins/threaded/*.c >out
is 'sources: no #if in the plugins: linked and loaded plugins have the same code' # P-89

# ---- the shared library, which contains the runtimes ----

run 0 "$tenon" runtimes && grep -Eq '^direct .* ready +preloaded$' out && grep -Eq '^threaded .* ready +preloaded$' out
is 'shared: the runtimes are preloaded'
TENON_PLUGIN_PATH=$build/plugins/.libs run 0 "$tenon" runtimes && grep -Eq '^direct .* ready +preloaded$' out &&
  grep -Eq '^direct .* shadowed +/.*/direct\.so$' out && grep -Eq '^threaded .* shadowed +/.*/threaded\.so$' out
is 'shared: their files are shadowed' # P-90
TENON_PLUGIN_PATH=$build/tests/plugins/.libs run 0 "$tenon" runtimes explain test.minimal && grep -q '^chosen: test.minimal$' out
is 'shared: the file of a third party can be loaded, too'
for runtime in direct threaded:threads=2; do
  suite "shared: the rules of sessions on $runtime" "$build/tenon-conformance" $runtime --jobs "$jobs" --timeout 300
done
for program in $unit; do
  TENON_PLUGIN_PATH=$build/plugins/.libs TENON_PLUGIN_PATH_ONLY=1 suite "shared: $program" "$build/$program"
done
nm -D --defined-only "$build/.libs/libtenon.so" >out && ! grep -q _LTX_ out
is 'shared: no symbol of the plugins is exported'

# ---- the installation ----

step install make -s install-libLTLIBRARIES install-pkgconfigDATA install-tenonincludeHEADERS \
  install-nodist_tenonincludeHEADERS install-exec-local
[ ! -e "$build/installed/lib/tenon/plugins-0/direct.so" ]
is 'install: plugins in the library are not installed as files'
PKG_CONFIG_PATH=$build/installed/lib/pkgconfig
export PKG_CONFIG_PATH
# shellcheck disable=SC2046
${CC:-cc} -static -o classify "$src/examples/static/classify.c" $(pkg-config --cflags --libs --static tenon) >out 2>err
is 'static: the example is built by pkg-config alone'
readelf -lW classify >out && ! grep -q INTERP out
is 'static: it needs no dynamic linker'
run 0 ./classify "$digits/digits.pb" "$digits/images.npy" && [ "$(sed -n 1p out | wc -c)" -eq 301 ] &&
  [ "$(sed -n 2p out)" = 'direct (preloaded)' ] && sed -n 1p out >digits.direct
is 'static: it runs a model on direct'
run 0 ./classify "$digits/digits.pb" "$digits/images.npy" threaded:threads=2 && [ "$(sed -n 2p out)" = 'threaded (preloaded)' ] &&
  sed -n 1p out | cmp -s - digits.direct
is 'static: it runs the same on threaded'
# P-91
run 1 ./classify "$digits/digits.pb" "$digits/images.npy" acme.fast && grep -q '^UNIMPLEMENTED: static build: ' err &&
  grep -qF "'acme.fast'" err && ! grep -qi 'file not found' err
is 'static: the error for a name of a third party says static build'
TENON_PLUGIN_PATH=$build/tests/plugins/.libs run 1 ./classify "$digits/digits.pb" "$digits/images.npy" test.minimal &&
  grep -q '^UNIMPLEMENTED: .*/minimal.so): static build: ' err
is 'static: so does that for the name of a plugin file'
run 1 ./classify "$digits/digits.pb" "$digits/images.npy" nowhere && grep -q '^NOT_FOUND: static build: ' err
is 'static: the error for an unknown name says not found, and static build' # S-OPT-11

# A third-party plugin, linked in with a hand-written table.
cat >table.c <<'END'
#include <ltdl.h>
#include <stdio.h>
#include <tenon/plugins.h>
extern const char minimal_LTX_tn_plugin_manifest[];
void minimal_LTX_tn_plugin_query(void);
static const lt_dlsymlist table[] = {
  { "program", 0 },
  { "minimal.a", 0 },
  { "minimal_LTX_tn_plugin_manifest", (void *)minimal_LTX_tn_plugin_manifest },
  { "minimal_LTX_tn_plugin_query", (void *)minimal_LTX_tn_plugin_query },
  { 0, 0 },
};
int main(int argc, char **argv)
{
  tn_error err = TN_ERROR_INIT;
  tn_runtime_info info = { .struct_size = sizeof info };
  tn_status status = tn_runtime_preload(table, &err);
  if (status == TN_OK && argc == 2) {
    status = tn_runtime_allow_files(1, &err);
    if (status == TN_OK) status = tn_runtime_load_file(argv[1], &info, &err);
  } else if (status == TN_OK) {
    status = tn_runtime_load("test.minimal", &info, &err);
  }
  printf("%s: %s %s\n", tn_status_name(status), status == TN_OK ? info.name : tn_error_message(&err), status == TN_OK ? info.origin : "");
  tn_error_clear(&err);
  return status != TN_OK || tn_runtime_loads_files();
}
END
# shellcheck disable=SC2046
${CC:-cc} -c -o minimal.o -DTN_PLUGIN=minimal $(pkg-config --cflags tenon) "$src/tests/plugins/minimal.c" >out 2>err &&
  ${CC:-cc} -static -o table table.c minimal.o $(pkg-config --cflags --libs --static tenon) >out 2>err &&
  run 0 ./table && [ "$(cat out)" = 'OK: test.minimal preloaded' ]
is 'static: a plugin of the program itself, in addition to those of the library' # P-23
run 1 ./table /nowhere/acme.so && grep -q '^UNIMPLEMENTED: static build: .*/nowhere/acme.so' out
is 'static: the error for a file says static build, whether the file exists or not'

# ---- the package's programs, fully statically linked ----

mkdir -p "$build/shared/tools" && mv "$build/tenon" "$build/tenon-conformance" "$build/shared/" && mv "$build/tools/tenon-probe" "$build/shared/tools/"
step 'static: link' make -s -j"$jobs" tenon tenon-conformance tools/tenon-probe LDFLAGS=-all-static
mkdir -p "$build/static/tools" && mv "$tenon" "$build/tenon-conformance" "$build/static/" && mv "$build/tools/tenon-probe" "$build/static/tools/"
tenon=$build/static/tenon
TENON_PROBE_PROGRAM=$build/static/tools/tenon-probe
for runtime in direct threaded:threads=2; do
  suite "static: the rules of sessions on $runtime" "$build/static/tenon-conformance" $runtime --jobs "$jobs" --timeout 300
done
run 2 "$build/static/tenon-conformance" /nowhere/mine.so
is 'static: tenon-conformance on a missing file'
TENON_PLUGIN_PATH=$build/tests/plugins/.libs run 0 "$tenon" runtimes && grep -q '^This tenon is statically linked' err &&
  grep -Eq '^direct .* ready +preloaded$' out && grep -A1 '^test.minimal ' out | grep -q 'static build: '
is 'static: tenon runtimes says so'
run 0 "$tenon" runtimes --json && grep -q '"loads_files": false' out
is 'static: and in JSON'
TENON_PLUGIN_PATH=$build/plugins/.libs run 0 "$tenon" runtimes doctor && grep -q 'static build: ' out && grep -q '^No problems found' out
is 'static: the doctor does not report files that cannot be loaded'
run 1 "$tenon" runtimes probe "$build/tests/plugins/.libs/minimal.so" && grep -q 'UNIMPLEMENTED: .*static build: ' out
is 'static: nor can the probe load them'
run 0 "$tenon" run "$digits/digits.pb" --feed "image:0=$digits/images.npy" --fetch "class:0=class.npy"
is 'static: tenon run'
run 1 "$tenon" run "$digits/digits.pb" --feed "image:0=$digits/images.npy" --fetch class:0=class.npz:class &&
  grep -q 'UNIMPLEMENTED: .*static build: ' err
is 'static: the error for .npz files says static build'
echo "1..$n"
