#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# seeds.sh [BUILD]: more seeds for fuzz_graphdef, taken from recorded cases and models, into BUILD/fuzz/found. Looks in
# TENON_ORACLE (a folder with .pb files, at any depth) and TENON_MODELS; files above 64 KB only slow a fuzzer down.
set -eu
build=${1:-.}
to=$build/fuzz/found/fuzz_graphdef
n=0
mkdir -p "$to"
for from in "${TENON_ORACLE:-}" "${TENON_MODELS:-}"; do
  [ -n "$from" ] && [ -d "$from" ] || continue
  for file in $(find "$from" -name '*.pb' -size -64k | sort); do
    cp -f "$file" "$to/$(echo "${file#"$from"/}" | tr / _)"
    n=$((n + 1))
  done
done
if [ $n -eq 0 ]; then
  echo "seeds.sh: no .pb files: set TENON_ORACLE or TENON_MODELS to a folder with some" >&2
  exit 1
fi
echo "$n seeds in $to"
