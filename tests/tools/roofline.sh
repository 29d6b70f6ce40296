#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# tenon bench --roofline: its table, chart and JSON, and errors of wrong calls. Prints TAP.
. "${TENON_SRCDIR:-$(cd "$(dirname "$0")/../.." && pwd)}/tests/tools/tool_kit.sh" roofline
digits=$src/examples/digits/digits.pb

# bench STATUS ARGUMENT...
bench() {
  wanted=$1
  shift
  run "$wanted" "$tenon" bench "$@"
}
has() { grep -qE -e "$1" out; }
quiet() { [ ! -s out ]; }
# holds FILTER: the JSON on standard output passes the filter.
holds() { [ "$(jq -c "$1" out 2>&1)" = true ]; }
# is_svg FILE: the file is a picture in well-formed XML.
if command -v xmllint >/dev/null; then
  is_svg() { [ "$(xmllint --nonet --xpath 'local-name(/*)' "$1" 2>&1 | head -n 1)" = svg ]; }
else
  is_svg() { grep -q '<svg ' "$1" && [ "$(tail -n 1 "$1")" = '</svg>' ]; }
fi

# A constant, which needs no kernel.
printf '%s' 'node { name: "one" op: "Const" attr { key: "dtype" value { type: DT_FLOAT } } attr { key: "value" value {
  tensor { dtype: DT_FLOAT tensor_shape { } float_val: 1 } } } } node { name: "same" op: "Identity" input: "one"
  attr { key: "T" value { type: DT_FLOAT } } }' >constant.pbtxt
# Multiplies matrices of one size, x by itself.
printf '%s' 'node { name: "x" op: "Placeholder" attr { key: "dtype" value { type: DT_FLOAT } } attr { key: "shape" value {
  shape { dim { size: 64 } dim { size: 64 } } } } } node { name: "p" op: "MatMul" input: "x" input: "x"
  attr { key: "T" value { type: DT_FLOAT } } } node { name: "t" op: "Reverse" input: "p" input: "turn"
  attr { key: "T" value { type: DT_FLOAT } } } node { name: "turn" op: "Const" attr { key: "dtype" value { type: DT_BOOL } }
  attr { key: "value" value { tensor { dtype: DT_BOOL tensor_shape { dim { size: 2 } } bool_val: true bool_val: false } } } }' \
  >product.pbtxt

# ---- results ----

bench 0 "$digits" --seconds 0.05 --no-histogram --roofline &&
  has "^runtime 'direct': roofline, shortest times of [0-9]+ steps$" &&
  has '^limits of 1 thread: [0-9.]+ GFLOP/s \(.*\), memory [0-9.]+ GB/s \(reading [0-9.]+ kB, .*\), caches [0-9.]+ GB/s$' &&
  has '^ +TIME +SHARE +CALLS +GFLOP/S +GB/S +FLOP/B +OF ROOF +BOUND .* OP AND KERNEL$' &&
  has '^ *[0-9.]+ [num]?s +[0-9.]+ % +3 +[0-9.]+ +[0-9.]+ +[0-9.]+ +[0-9]+ %[ *] +compute +#*-* +_TnConv2D [a-z]' &&
  has '^fastest step [0-9.]+ [num]?s, with a trace .*, of which kernels took [0-9.]+ [num]?s \([0-9.]+ %\)$' &&
  has '^roofline [0-9.]+ [num]?s: all kernels at their roofs, [0-9.]+ % of their time, [0-9.]+ % of the step$' && [ "$(tr -d '\n -~' <out | wc -c)" = 0 ]
is 'a table with the costliest kernels; to a file in ASCII'
bench 0 "$digits" --seconds 0.02 --no-histogram && ! has roofline
is 'only with --roofline'
bench 0 constant.pbtxt --fetch same --seconds 0.02 --no-histogram --roofline && has '^no kernel ran$' && has '^roofline 0 ns'
is 'a step without kernels'
if command -v jq >/dev/null; then
  bench 0 product.pbtxt --fetch t --seconds 0.05 --roofline --json --option kernel_plugins=never &&
    holds '.runs[0].roofline.machine | .threads == 1 and .flops_per_second > 1e8 and .bytes_per_second > 1e8
      and .cache_bytes_per_second >= .bytes_per_second and .block_bytes >= 65536 and (.vectors | length) > 0' &&
    holds '.runs[0].roofline.groups | map(select(.op == "MatMul"))[0] | .flops == 524288 and .bytes == 49152
      and .nodes == 1 and .calls == 1 and .bound == "compute" and .ns > 0 and (.flops_per_byte - 524288 / 49152 | fabs) < 1e-6
      and (.flops_per_second - .flops / .ns * 1e9 | fabs) < 1000 and (.of_roof - .roof_ns / .ns | fabs) < 1e-6' &&
    holds '.runs[0].roofline.groups | map(select(.op == "Reverse"))[0] | .flops == 0 and .bound == "memory"
      and .flops_per_byte == 0 and .bytes >= 32768'
  is '--json: operations and bytes of a product, and of what only moves memory'
  holds '.runs[0].roofline | .steps >= 5 and .step_ns > 0 and .traced_step_ns > 0 and .roof_ns <= .kernels_ns + 1
    and (.kernels_ns - ([.groups[].ns] | add) | fabs) < 1 and ([.groups[].share] | add - 1 | fabs) < 1e-6 and ([.groups[].ns] | . == (sort | reverse))'
  is '--json: the costliest group first, and their sums'
  bench 0 "$digits" --seconds 0.02 --json && holds '.runs[0].roofline == null'
  is '--json: null without --roofline'
  bench 0 "$digits" --seconds 0.02 --roofline --json --runtime threaded --threads 1,2 --batch 64 --svg two.svg &&
    holds '[.runs[].roofline.machine.threads] | .[0] == 1 and .[1] <= 2' && is_svg two.svg && [ "$(grep -c '"title"' two.svg)" = 2 ]
  is 'a roofline for each row; --svg draws all of them'
else
  skip '--json' 'jq is not there'
fi
bench 0 "$digits" --seconds 0.05 --no-histogram --roofline --svg one.svg && has '^RUNTIME' && is_svg one.svg &&
  [ "$(grep -c '<circle class="dot"' one.svg)" -ge 4 ] && grep -q '>_TnConv2D, ' one.svg && grep -q '[0-9.]* %; [0-9]* % of its roof' one.svg &&
  grep -q '>memory [0-9.]* GB/s<' one.svg && ! grep -qE '"(nan|-?inf)|[ ,](nan|-?inf)[ "]' one.svg
is '--svg: dots, names and roofs'
bench 0 constant.pbtxt --fetch same --seconds 0.02 --no-histogram --roofline --svg none.svg && is_svg none.svg && ! grep -q '"dot"' none.svg
is '--svg: a step without kernels'
cp product.pbtxt 'a<b&c".pbtxt' && bench 0 'a<b&c".pbtxt' --fetch t --seconds 0.02 --no-histogram --roofline --svg odd.svg && is_svg odd.svg
is '--svg: names are escaped'
if script -qec true /dev/null >/dev/null 2>&1 </dev/null && locale -a 2>/dev/null | grep -qix 'c.utf-\?8'; then
  # on_terminal ENVIRONMENT...: writes the contents of the terminal to out.
  on_terminal() {
    env TERM=xterm LC_ALL=C.UTF-8 "$@" SHELL=/bin/sh $limit script -qec "stty cols 140; '$tenon' bench '$digits' --seconds 0.05 --no-histogram --roofline" \
      /dev/null >out 2>err </dev/null
  }
  escape=$(printf '\033')
  on_terminal NO_COLOR= && has "${escape}\[(32m$(printf '\342\226\210')|33m$(printf '\342\226\221'))"
  is 'on a terminal: bars of blocks, in colour'
  on_terminal NO_COLOR=1 && has "$(printf '\342\226\210')|$(printf '\342\226\221')" && ! has "${escape}\[3[23]m"
  is 'NO_COLOR'
else
  skip 'on a terminal: bars of blocks, in colour' 'script does not work here, or there is no C.UTF-8'
fi

# ---- errors ----

bench 2 x --svg a.svg && says "--svg 'a.svg' draws what --roofline measures" && bench 2 x --roofline --svg a.png &&
  says "--svg 'a.png': the file name must end in .svg" && bench 2 x --roofline --svg .svg && says 'must end in .svg'
is '--svg takes a file name that ends in .svg, with --roofline'
bench 2 x --roofline=a.svg && quiet
is '--roofline takes no value'
bench 2 x --roofline --concurrency 2 && says '--roofline is about the steps of one client, not of --concurrency 2'
is '--roofline is for one client'
mkdir folder.svg && bench 1 "$digits" --roofline --svg nowhere/a.svg && says "cannot write 'nowhere/a.svg'" && quiet &&
  bench 1 "$digits" --roofline --svg folder.svg && says "'folder.svg': it exists and is a directory" && quiet
is 'a file that cannot be written, before anything is measured'
executor=${TENON_TEST_PLUGINS:-$build/tests/plugins/.libs}/executor.so
if [ -r "$executor" ]; then
  bench 1 "$digits" --seconds 0.02 --roofline --runtime "$executor" && quiet &&
    says "--roofline: runtime '.*executor.so': the metadata of its steps has no records of nodes, which give their times"
  is 'a runtime without times of nodes'
else
  skip 'a runtime without times of nodes' 'no plugins of the tests'
fi
if "$tenon" runtimes explain gpu >/dev/null 2>&1; then
  bench 1 "$digits" --seconds 0.02 --roofline --runtime gpu:placement=device && quiet &&
    says "--roofline: runtime 'gpu.*': node '.*' ran on [A-Z]+:0, but only the limits of CPUs are measured"
  is 'a runtime whose nodes run on a device'
else
  skip 'a runtime whose nodes run on a device' 'no device for gpu'
fi

echo "1..$n"
