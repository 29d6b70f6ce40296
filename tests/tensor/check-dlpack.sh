#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Passes NumPy arrays to the shared library and back by DLPack. TENON_PYTHON names a python3 with
# NumPy. Prints TAP.
src=${TENON_SRCDIR:-$(cd "$(dirname "$0")/../.." && pwd)}
build=${TENON_BUILDDIR:-$src/build}
lib=$build/.libs/libtenon.so
: "${TENON_PLUGIN_PATH:=$build/plugins/.libs}"
export TENON_PLUGIN_PATH

skip_all() {
  echo "1..0 # SKIP $1"
  exit 0
}

[ -e "$lib" ] || skip_all 'no shared library was built'
nm -D "$lib" 2>/dev/null | grep -qE '__(asan|tsan|ubsan)_' && skip_all 'built with sanitizers'
for python in ${TENON_PYTHON:-python3 /usr/bin/python3}; do
  "$python" -c 'import numpy; numpy.from_dlpack' >/dev/null 2>&1 && exec "$python" -B "$src/tests/tensor/dlpack_numpy.py" "$lib"
done
skip_all 'no python3 has NumPy with from_dlpack'
