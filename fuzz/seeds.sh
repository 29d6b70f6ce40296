#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# seeds.sh [BUILD]: writes further seeds, made from recorded cases and models, to BUILD/fuzz/found. Searches TENON_ORACLE and
# TENON_MODELS for .pb files at any depth. fuzz_graphdef gets all but large ones, fuzz_pbtxt and fuzz_shapes the first case
# of each subject, and fuzz_shapes and fuzz_builder each op that a case is named after. Long lists and files above 64 KB
# would only slow the fuzzer down.
set -eu
build=${1:-.}
n=0
for target in builder graphdef pbtxt shapes; do mkdir -p "$build/fuzz/found/fuzz_$target"; done

# by_op NAME: writes an operation of that op, with inputs of the first kind.
by_op() {
  printf '%s\0\0\1\2\3\4\5\6\7\10\11\12\13\14\15\16' "$1" >"$build/fuzz/found/fuzz_shapes/op_$1"
  printf 'aPlaceholder\0\144\0\001\144\003\242\243\240\001b%s\0\0\0\0\0\0\0\0\0\0\0\0\0' "$1" \
    >"$build/fuzz/found/fuzz_builder/op_$1"
}

for from in "${TENON_ORACLE:-}" "${TENON_MODELS:-}"; do
  [ -n "$from" ] && [ -d "$from" ] || continue
  for file in $(find "$from" -name '*.pb' -size -64k | sort); do
    name=$(echo "${file#"$from"/}" | tr / _)
    cp -f "$file" "$build/fuzz/found/fuzz_graphdef/$name"
    n=$((n + 1))
    case $name in *-000.pb) ;; *) continue ;; esac
    { printf b && cat "$file"; } >"$build/fuzz/found/fuzz_pbtxt/$name"
    { printf g && cat "$file"; } >"$build/fuzz/found/fuzz_shapes/$name"
    op=${file##*/}
    by_op "${op%-000.pb}"
  done
done
if [ $n -eq 0 ]; then
  echo "seeds.sh: no .pb files: set TENON_ORACLE or TENON_MODELS to a folder with some" >&2
  exit 1
fi
echo "$n seeds in $build/fuzz/found"
